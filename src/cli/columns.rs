//! The user columns of rows: collects them while rows are read, and stores them in the corpus as
//! one Parquet section.
//!
//! ```text
//! batches ──▶ one temporary file: run 0 │ run 1 │ …      a run = batches of one schema
//!                                  └──────┬──────┘
//!                    one schema (by name) ▼  casts, nulls for columns that a run lacks
//!                                    Parquet, one row per document
//! ```
//!
//! The types of JSON lines and CSV are certain only at the end, so a temporary file is needed.
//! Memory is one batch and the compressed Parquet bytes.

mod guess;

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, SeekFrom};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::errors::ParquetError;
use datafusion_tadoc::check_type_depth;
use datafusion_tadoc::user_columns::{self, join_schemas, parquet_properties, storable};
use tadoc_documents as documents;
use tadoc_documents::columns::leaves;
use tadoc_documents::numbers::Numbers;
use tadoc_documents::{ColumnSink, Documents};
use tadoc_session::{Failure, Outcome};

use self::guess::Guesses;

/// Names of columns that every corpus has. A user column with such a name is renamed.
const TAKEN_NAMES: [&str; 6] = ["doc_id", "path", "bytes", "words", "text", "content"];

/// Maximum nesting of structures and lists in a column. The Arrow metadata inside Parquet files is
/// read to a depth of 64.
const MAX_DEPTH: usize = 50;

/// Columns ready to be stored.
pub struct StoredColumns {
    /// Parquet bytes with one row per document.
    pub parquet: Vec<u8>,
    /// Names and types of the columns.
    pub schema: SchemaRef,
    /// Messages to the user about names and types.
    pub notes: Vec<String>,
}

/// Collects user columns row by row, in the order of the documents.
#[derive(Default)]
pub struct Columns {
    /// Guessed types, if all values are texts.
    narrow: Option<Guesses>,
    numbers: Numbers,
    runs: Vec<SchemaRun>,
    writer: Option<StreamWriter<BufWriter<File>>>,
    file: Option<File>,
    /// Paths of all columns, with the fields of structures.
    paths: HashSet<String>,
}

/// Consecutive rows with one schema.
struct SchemaRun {
    schema: SchemaRef,
    /// Name of the input of the first row, for messages.
    input: String,
    /// Start of the run in the temporary file, or `None` if the run has no columns.
    offset: Option<u64>,
    num_rows: usize,
}

impl Columns {
    /// Creates columns of `documents`. Cells of CSV are texts that may hold numbers, dates or booleans.
    pub fn for_documents(documents: &Documents) -> Self {
        match documents {
            Documents::Csv(_) | Documents::Tsv(_) => Self::from_texts(),
            _ => Self::default(),
        }
    }

    fn from_texts() -> Self {
        Self { narrow: Some(Guesses::default()), ..Self::default() }
    }

    fn push_batch(&mut self, batch: &RecordBatch, input: &str) -> Result<(), ArrowError> {
        if self.runs.last().is_none_or(|run| run.schema != batch.schema()) {
            self.start_run(batch.schema(), input)?;
        }
        if let Some(run) = self.runs.last_mut() {
            run.num_rows += batch.num_rows();
        }
        match &mut self.writer {
            Some(writer) => writer.write(batch),
            None => Ok(()),
        }
    }

    fn start_run(&mut self, schema: SchemaRef, input: &str) -> Result<(), ArrowError> {
        self.end_run()?;
        self.paths.extend(leaves(schema.fields()));
        let mut offset = None;
        if !schema.fields().is_empty() {
            let mut file = match self.file.take() {
                Some(file) => file,
                None => tempfile::tempfile()?,
            };
            offset = Some(file.stream_position()?);
            self.writer = Some(StreamWriter::try_new(BufWriter::new(file), &schema)?);
        }
        self.runs.push(SchemaRun { schema, input: input.to_owned(), offset, num_rows: 0 });
        Ok(())
    }

    fn end_run(&mut self) -> Result<(), ArrowError> {
        if let Some(mut writer) = self.writer.take() {
            writer.finish()?;
            let file = writer.into_inner()?.into_inner();
            self.file = Some(file.map_err(std::io::IntoInnerError::into_error)?);
        }
        Ok(())
    }

    /// Returns all rows as Parquet, or `None` if there are no user columns.
    ///
    /// # Errors
    /// The types of a column cannot be joined (the text names the column), or I/O fails.
    pub fn into_parquet(mut self) -> Outcome<Option<StoredColumns>> {
        self.end_run()?;
        let schema = self.joined_schema()?;
        let Some(file) = self.file.as_mut().filter(|_| !schema.fields().is_empty()) else {
            return Ok(None);
        };
        let mut notes = Vec::new();
        let stored = Arc::new(stored_schema(&schema, &mut notes));
        let parquet = write_parquet(file, &self.runs, &schema, &stored)
            .map_err(|error| Failure::with_cause("storing columns", &error))?;
        Ok(Some(StoredColumns { parquet, schema: stored, notes }))
    }

    /// Formats the message for a `run` whose columns cannot be joined with earlier runs.
    fn not_joined(&self, run: &SchemaRun, reason: &str) -> String {
        let typed = |run: &SchemaRun| self.numbers.typed(&run.schema);
        let differs = |earlier: &&SchemaRun| join_schemas(&typed(earlier), &typed(run)).is_err();
        let earlier = self.runs.iter().find(differs).unwrap_or(run);
        let inputs = if earlier.input == run.input {
            format!("both in {}", earlier.input)
        } else {
            format!("{}, then {}", earlier.input, run.input)
        };
        format!("{reason} ({inputs}); pass --no-columns to keep the text only")
    }

    /// Joins the columns of all runs by name. Each gets a type that holds all of its values.
    fn joined_schema(&self) -> Outcome<Schema> {
        let mut schema = Schema::empty();
        for run in &self.runs {
            schema = join_schemas(&schema, &self.numbers.typed(&run.schema))
                .map_err(|reason| Failure::new(self.not_joined(run, &reason)))?;
        }
        if let Some(deep) = schema.fields().iter().find(|field| depth(field) > MAX_DEPTH) {
            return Err(Failure::new(format!(
                "column `{}` is nested {} levels deep, {MAX_DEPTH} at most can be stored; pass \
                 --no-columns to keep the text only",
                deep.name(),
                depth(deep)
            )));
        }
        let fields = schema.fields().iter().filter_map(|field| {
            let guessed = self.narrow.as_ref().and_then(|guesses| guesses.for_column(field.name()));
            let data_type = guessed.or_else(|| storable(field.data_type()))?;
            Some(Field::new(field.name(), data_type, true))
        });
        Ok(Schema::new(fields.collect::<Vec<_>>()))
    }
}

impl ColumnSink for Columns {
    fn check(&self, schema: &Schema, input: &str) -> documents::Outcome {
        check_type_depth(schema).map_err(|error| documents::Failure::with_cause(input, &error))
    }

    /// Collects the rows in a temporary file.
    fn push(&mut self, batch: &RecordBatch, input: &str) -> documents::Outcome {
        match &mut self.narrow {
            Some(guesses) => guesses.observe(batch),
            None => self.numbers.observe(batch),
        }
        let pushed = self.push_batch(batch, input);
        let what = "collecting columns in a temporary file";
        pushed.map_err(|error| documents::Failure::with_cause(what, &error))
    }

    fn num_columns(&self) -> usize {
        self.paths.len()
    }
}

/// Returns the number of nested levels of `field`, including itself.
fn depth(field: &Field) -> usize {
    let inner = match field.data_type() {
        DataType::Struct(fields) => fields.iter().map(|field| depth(field)).max(),
        DataType::List(field) | DataType::LargeList(field) => Some(depth(field)),
        _ => None,
    };
    1 + inner.unwrap_or(0)
}

/// Renames the columns whose names are taken, and notes the new names.
fn stored_schema(schema: &Schema, notes: &mut Vec<String>) -> Schema {
    let is_taken = |name: &str| TAKEN_NAMES.contains(&name) || schema.field_with_name(name).is_ok();
    let fields = schema.fields().iter().map(|field| {
        if !TAKEN_NAMES.contains(&field.name().as_str()) {
            return field.as_ref().clone();
        }
        let mut number = 1;
        while is_taken(&format!("{}_{number}", field.name())) {
            number += 1;
        }
        let name = format!("{}_{number}", field.name());
        notes
            .push(format!("column `{}` is stored as `{name}`, as the name is taken", field.name()));
        field.as_ref().clone().with_name(name)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

fn write_parquet(
    file: &mut File,
    runs: &[SchemaRun],
    schema: &Schema,
    stored: &SchemaRef,
) -> Result<Vec<u8>, ParquetError> {
    let mut writer = ArrowWriter::try_new(Vec::new(), stored.clone(), Some(parquet_properties()?))?;
    for run in runs {
        let Some(offset) = run.offset else {
            writer.write(&conform(&empty_rows(run)?, schema, stored)?)?;
            continue;
        };
        file.seek(SeekFrom::Start(offset))?;
        for batch in StreamReader::try_new(BufReader::new(&mut *file), None)? {
            writer.write(&conform(&batch?, schema, stored)?)?;
        }
    }
    writer.into_inner()
}

fn empty_rows(run: &SchemaRun) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(run.num_rows));
    RecordBatch::try_new_with_options(run.schema.clone(), Vec::new(), &options)
}

/// Returns `batch` with the columns of `schema`, under the names in `stored`.
fn conform(
    batch: &RecordBatch,
    schema: &Schema,
    stored: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let column = |field: &Arc<Field>| -> Result<ArrayRef, ArrowError> {
        match batch.column_by_name(field.name()) {
            Some(column) => user_columns::conform(column, field.data_type()),
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        }
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(stored.clone(), columns)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use datafusion::arrow::array::{AsArray, Int64Array, StringArray};
    use datafusion::arrow::datatypes::{Float64Type, Int64Type};
    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap()
    }

    fn read_back(stored: StoredColumns) -> RecordBatch {
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(stored.parquet)).unwrap();
        reader.build().unwrap().next().unwrap().unwrap()
    }

    #[test]
    fn runs_with_other_columns_and_types_are_joined_by_name() {
        let mut columns = Columns::default();
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let floats: ArrayRef = Arc::new(datafusion::arrow::array::Float64Array::from(vec![0.5]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        columns.push(&batch(vec![("n", ints)]), "a").unwrap();
        columns.push(&batch(vec![("text", names), ("n", floats)]), "b").unwrap();
        columns.push(&RecordBatch::new_empty(Arc::new(Schema::empty())), "c").unwrap();
        let stored = columns.into_parquet().unwrap().unwrap();
        assert_eq!(stored.notes, ["column `text` is stored as `text_1`, as the name is taken"]);
        let rows = read_back(stored);
        let numbers = rows.column_by_name("n").unwrap().as_primitive::<Float64Type>();
        assert_eq!(numbers.values(), &[1.0, 2.0, 0.5]);
        let names = rows.column_by_name("text_1").unwrap().as_string::<i32>();
        assert_eq!(names.iter().collect::<Vec<_>>(), [None, None, Some("x")]);
    }

    #[test]
    fn texts_become_numbers_only_where_nothing_is_lost() {
        let mut columns = Columns::from_texts();
        let column = |values: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(values)) };
        let rows = batch(vec![
            ("year", column(vec!["1999", "-2000"])),
            ("zip", column(vec!["01234", "99999"])),
        ]);
        columns.push(&rows, "a").unwrap();
        let rows = read_back(columns.into_parquet().unwrap().unwrap());
        let years = rows.column_by_name("year").unwrap().as_primitive::<Int64Type>();
        assert_eq!(years.values(), &[1999, -2000]);
        assert_eq!(rows.column_by_name("zip").unwrap().data_type(), &DataType::Utf8);
    }

    #[test]
    fn without_columns_nothing_is_stored() {
        assert!(Columns::default().into_parquet().unwrap().is_none());
        let mut columns = Columns::default();
        let options = RecordBatchOptions::new().with_row_count(Some(3));
        let schema = Arc::new(Schema::empty());
        let rows = RecordBatch::try_new_with_options(schema, Vec::new(), &options).unwrap();
        columns.push(&rows, "a").unwrap();
        assert!(columns.into_parquet().unwrap().is_none());
    }
}
