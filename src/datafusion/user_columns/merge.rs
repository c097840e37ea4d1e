//! Merging of the user columns of consecutive files into one file, and the values that edits set over the others.
//!
//! Columns are matched by name and get a type that holds all values. A value is NULL if its file lacks the column or
//! its document was dropped.
//!
//! ```text
//! column             a  b  c  d  e
//! table T            x  y              2 ← row 0 of T, 4 ← row 1 of T     edits in order:
//! table U            z                 2 ← row 0 of U                     the last one counts
//! over the column    a  b  z  d  y
//! ```
//!
//! A table holds the columns that a statement sets. Its documents keep their values in all other columns. The edits say
//! which row belongs to which document, so a table does not depend on where its documents are stored.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::compute::{concat, interleave, nullif};
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::arrow::{ArrowWriter, ProjectionMask};
use datafusion::parquet::errors::ParquetError;

use super::{join_schemas, parquet_properties};
use crate::errors::contain_panics;
use crate::user_columns;
use tadoc::edits::{Edit, column_tables};
use tadoc::error::{Error, Result};
use tadoc_store::ColumnsOfPart;

/// Number of rows of NULLs made at a time.
const ROWS_AT_ONCE: u64 = 8192;

/// Merges the columns of all `parts` into one Parquet file, with the values that `edits` set. The
/// `dropped` rows are NULL. Returns `None` if no part and no edit has columns.
///
/// # Errors
/// An error for a column whose types have no common type, and for bytes that are not a Parquet
/// file. The latter names the file.
pub fn merge_columns(parts: &[ColumnsOfPart], edits: &[Edit], dropped: &[Range<u64>]) -> Result<Option<Vec<u8>>> {
    contain_panics("joining columns", || merge(parts, edits, dropped)).flatten()
}

fn merge(parts: &[ColumnsOfPart], edits: &[Edit], dropped: &[Range<u64>]) -> Result<Option<Vec<u8>>> {
    let mut schema = Schema::empty();
    let mut join = |other: SchemaRef| -> Result<()> {
        schema = join_schemas(&schema, &other).map_err(|reason| Error::external("joining columns", reason))?;
        Ok(())
    };
    for part in parts {
        if let Some(parquet) = &part.parquet {
            join(in_columns(part, || table_schema(parquet))?)?;
        }
    }
    for parquet in column_tables(edits) {
        join(table_schema(parquet)?)?;
    }
    if schema.fields().is_empty() {
        return Ok(None);
    }
    let overlay = Overlay::read(edits, schema.fields(), u64::MAX)?;
    write(parts, &overlay, dropped, &Arc::new(schema)).map(Some)
}

/// Returns the result of `work` on the columns of `part`, or an error that names their file.
fn in_columns<T, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    part: &ColumnsOfPart,
    work: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    let what = format!("{}: section columns", part.file);
    contain_panics(&what, work)?.map_err(|error| Error::external(what, error))
}

fn write(parts: &[ColumnsOfPart], overlay: &Overlay, dropped: &[Range<u64>], schema: &SchemaRef) -> Result<Vec<u8>> {
    let failed = |error| Error::external("storing columns", error);
    let properties = parquet_properties().map_err(failed)?;
    let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties));
    let mut writer = writer.map_err(failed)?;
    let mut first_row = 0;
    let mut push = |batch: &RecordBatch| -> std::result::Result<(), ParquetError> {
        let num_rows = batch.num_rows() as u64;
        writer.write(&conformed(batch, schema, overlay, first_row, dropped)?)?;
        first_row += num_rows;
        Ok(())
    };
    for part in parts {
        in_columns(part, || push_part(part, &mut push))?;
    }
    writer.into_inner().map_err(failed)
}

/// Passes the rows of `part` to `push`. The rows are NULLs if it has no columns.
fn push_part(
    part: &ColumnsOfPart,
    push: &mut impl FnMut(&RecordBatch) -> std::result::Result<(), ParquetError>,
) -> std::result::Result<(), ParquetError> {
    let mut left = part.num_docs;
    if let Some(parquet) = part.parquet.clone() {
        for batch in ParquetRecordBatchReaderBuilder::try_new(parquet)?.build()? {
            let batch = batch?;
            left = left
                .checked_sub(batch.num_rows() as u64)
                .ok_or_else(|| ParquetError::General("a file has more rows than documents".into()))?;
            push(&batch)?;
        }
    }
    while left > 0 {
        let num_rows = left.min(ROWS_AT_ONCE);
        let options = RecordBatchOptions::new().with_row_count(Some(num_rows as usize));
        let schema = Arc::new(Schema::empty());
        push(&RecordBatch::try_new_with_options(schema, Vec::new(), &options)?)?;
        left -= num_rows;
    }
    Ok(())
}

/// Converts `batch`, whose first row is `first_row`, to the columns of `schema`. `overlay` has the
/// same fields.
fn conformed(
    batch: &RecordBatch,
    schema: &SchemaRef,
    overlay: &Overlay,
    first_row: u64,
    dropped: &[Range<u64>],
) -> std::result::Result<RecordBatch, ArrowError> {
    let is_dropped = |row: u64| {
        let next = dropped.partition_point(|rows| rows.end <= row);
        dropped.get(next).is_some_and(|rows| rows.contains(&row))
    };
    let rows = first_row..first_row + batch.num_rows() as u64;
    let gone: BooleanArray = rows.map(|row| Some(is_dropped(row))).collect();
    let column = |(place, field): (usize, &FieldRef)| {
        let came = match batch.column_by_name(field.name()) {
            Some(column) => user_columns::conform(column, field.data_type())?,
            None => new_null_array(field.data_type(), batch.num_rows()),
        };
        let column = overlay.over(place, &came, first_row)?;
        match gone.true_count() {
            0 => Ok(column),
            _ => nullif(&column, &gone),
        }
    };
    let columns = schema.fields().iter().enumerate().map(column);
    RecordBatch::try_new(schema.clone(), columns.collect::<std::result::Result<_, ArrowError>>()?)
}

/// Values that edits set in some columns; see the module's description.
#[derive(Debug)]
pub(crate) struct Overlay {
    /// Columns, in the order of the requested fields.
    columns: Vec<SetColumn>,
}

/// Values that edits set in one column.
#[derive(Debug, Default)]
struct SetColumn {
    /// Values of each table that has the column.
    values: Vec<ArrayRef>,
    /// Places of the values, in order of document.
    places: Vec<ValueSource>,
}

/// Place of the value of a document.
#[derive(Debug, Clone, Copy)]
struct ValueSource {
    doc_id: u64,
    /// Index into the values of its column.
    table: usize,
    row: usize,
}

/// A table that edits name.
struct Table {
    num_rows: u64,
    /// For each field, the index of its values in the column; `None` if the table does not set it.
    places: Vec<Option<usize>>,
}

impl Overlay {
    /// Reads the values that `edits`, in order, set in `fields`, and casts them to the types of
    /// `fields`. Decodes at most `limit_bytes`.
    ///
    /// # Errors
    /// An error for tables that are damaged, lack a row that an edit names, or hold values that do
    /// not fit the type; [`Error::Capacity`] if the limit is exceeded.
    pub(crate) fn read<'a>(
        edits: impl IntoIterator<Item = &'a Edit>,
        fields: &[FieldRef],
        limit_bytes: u64,
    ) -> Result<Self> {
        let mut columns: Vec<SetColumn> = fields.iter().map(|_| SetColumn::default()).collect();
        // Edits share tables and never copy them, so the address identifies a table.
        let mut tables: HashMap<(*const u8, usize), Table> = HashMap::new();
        let mut left_bytes = limit_bytes;
        for edit in edits {
            let Edit::SetColumns { doc_id, row, table: stored } = edit else { continue };
            let table = match tables.entry((stored.as_ptr(), stored.len())) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(read_table(stored, fields, &mut columns, &mut left_bytes)?),
            };
            if *row >= table.num_rows {
                let reason = format!("expected one of {} rows, got row {row}", table.num_rows);
                return Err(Error::external("setting columns", reason));
            }
            for (column, place) in columns.iter_mut().zip(&table.places) {
                if let Some(place) = place {
                    let doc_id = *doc_id;
                    let row = *row as usize;
                    column.places.push(ValueSource { doc_id, table: *place, row });
                }
            }
        }
        columns.iter_mut().for_each(SetColumn::settle);
        Ok(Self { columns })
    }

    /// Replaces values in `values`, a range of the field at `place` that starts at document
    /// `first_doc`, by those that were set.
    ///
    /// # Errors
    /// Errors of Arrow only.
    pub(crate) fn over(
        &self,
        place: usize,
        values: &ArrayRef,
        first_doc: u64,
    ) -> std::result::Result<ArrayRef, ArrowError> {
        let SetColumn { values: set, places } = &self.columns[place];
        let docs = first_doc..first_doc.saturating_add(values.len() as u64);
        let below = |end| places.partition_point(|place| place.doc_id < end);
        let places = &places[below(docs.start)..below(docs.end)];
        if places.is_empty() {
            return Ok(Arc::clone(values));
        }
        let mut rows: Vec<(usize, usize)> = (0..values.len()).map(|row| (0, row)).collect();
        for ValueSource { doc_id, table, row } in places {
            rows[(doc_id - first_doc) as usize] = (table + 1, *row);
        }
        let all: Vec<&dyn Array> = std::iter::once(values).chain(set).map(|values| values.as_ref()).collect();
        interleave(&all, &rows)
    }
}

impl SetColumn {
    /// Sorts the places by document and keeps the last one of each document.
    fn settle(&mut self) {
        self.places.sort_by_key(|place| place.doc_id);
        self.places.dedup_by(|later, earlier| {
            let is_same = later.doc_id == earlier.doc_id;
            if is_same {
                *earlier = *later;
            }
            is_same
        });
    }
}

/// Reads the table `stored` and appends its columns to those of `fields`.
fn read_table(stored: &Bytes, fields: &[FieldRef], columns: &mut [SetColumn], left_bytes: &mut u64) -> Result<Table> {
    let broken = |error| Error::external("reading columns", error);
    let builder = open(stored)?;
    let num_rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
    let schema = Arc::clone(builder.schema());
    let is_wanted = |name: &str| fields.iter().any(|field| field.name() == name);
    let roots = (0..schema.fields().len()).filter(|&i| is_wanted(schema.field(i).name()));
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    let reader = builder.with_projection(mask).build().map_err(|error| broken(error.into()))?;
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>().map_err(broken)?;
    let mut places = Vec::with_capacity(fields.len());
    for (field, column) in fields.iter().zip(columns) {
        let parts = batches.iter().filter_map(|batch| batch.column_by_name(field.name()));
        let parts: Vec<&dyn Array> = parts.map(AsRef::as_ref).collect();
        if parts.is_empty() {
            places.push(None);
            continue;
        }
        let values = concat(&parts).and_then(|values| user_columns::conform(&values, field.data_type()));
        let values = values.map_err(broken)?;
        if values.len() as u64 != num_rows {
            let reason = format!("expected {num_rows} rows, got {}", values.len());
            return Err(Error::external("reading columns", reason));
        }
        take_room(left_bytes, values.get_array_memory_size() as u64)?;
        places.push(Some(column.values.len()));
        column.values.push(values);
    }
    Ok(Table { num_rows, places })
}

fn take_room(left_bytes: &mut u64, requested: u64) -> Result<()> {
    let limit = *left_bytes;
    *left_bytes = limit.checked_sub(requested).ok_or(Error::Capacity {
        what: "columns that edits set in bytes",
        requested,
        limit,
        knob: "tadoc.max_memory_bytes",
    })?;
    Ok(())
}

/// Reads every value that `edits`, all of one version, set.
///
/// # Errors
/// The errors of [`Overlay::read`].
pub(crate) fn check_tables(edits: &[Edit], limit_bytes: u64) -> Result<()> {
    let read = || match column_tables(edits).next() {
        // A statement sets the same columns in all of its tables.
        Some(first) => Overlay::read(edits, table_schema(first)?.fields(), limit_bytes).map(drop),
        None => Ok(()),
    };
    contain_panics("reading columns", read).flatten()
}

/// Returns the columns of `table`, a Parquet file.
///
/// # Errors
/// An error if the file is damaged.
pub(crate) fn table_schema(table: &Bytes) -> Result<SchemaRef> {
    Ok(Arc::clone(open(table)?.schema()))
}

fn open(table: &Bytes) -> Result<ParquetRecordBatchReaderBuilder<Bytes>> {
    let opened = ParquetRecordBatchReaderBuilder::try_new(table.clone());
    opened.map_err(|error| Error::external("reading columns", error))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use datafusion::arrow::array::{
        ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray, StringViewArray, new_null_array,
    };
    use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
    use datafusion::parquet::arrow::ArrowWriter;

    use super::*;

    fn part(columns: Vec<(&str, ArrayRef)>) -> ColumnsOfPart {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)));
        let batch = batch.unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let parquet = Some(writer.into_inner().unwrap().into());
        ColumnsOfPart { file: String::new(), num_docs: batch.num_rows() as u64, parquet }
    }

    #[test]
    fn parts_are_joined_by_name_and_dropped_rows_are_emptied() {
        let none = |num_docs| ColumnsOfPart { file: String::new(), num_docs, parquet: None };
        assert_eq!(merge_columns(&[none(2), none(0)], &[], &[]).unwrap(), None);
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        let parts = [part(vec![("n", ints)]), none(2), part(vec![("who", names), ("n", floats)])];
        let parquet = merge_columns(&parts, &[], &[1..2, 4..5]).unwrap().unwrap();
        let mut reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(parquet)).unwrap().build().unwrap();
        let rows = reader.next().unwrap().unwrap();
        let numbers = rows.column_by_name("n").unwrap().as_primitive::<Float64Type>();
        let expected = [Some(1.0), None, Some(3.0), None, None, Some(0.5)];
        assert_eq!(numbers.iter().collect::<Vec<_>>(), expected);
        let names = rows.column_by_name("who").unwrap().as_string::<i32>();
        assert_eq!(names.iter().flatten().collect::<Vec<_>>(), ["x"]);
        assert_eq!(rows.num_rows(), 6);
    }

    #[test]
    fn a_list_and_a_number_do_not_meet() {
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let list =
            datafusion::arrow::array::ListArray::from_iter_primitive::<datafusion::arrow::datatypes::Int64Type, _, _>(
                [Some([Some(1)])],
            );
        let parts = [part(vec![("n", ints)]), part(vec![("n", Arc::new(list))])];
        let text = merge_columns(&parts, &[], &[]).unwrap_err().to_string();
        assert!(text.contains("column `n` is Int64 first"), "{text}");
    }

    fn table(columns: Vec<(&str, ArrayRef)>) -> Bytes {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap().into()
    }

    fn integers(values: &[Option<i64>]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    #[test]
    fn the_last_value_of_each_document_counts() {
        let names: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b"]));
        let both = table(vec![("who", names), ("n", integers(&[Some(10), None]))]);
        let one = table(vec![("n", integers(&[Some(20)]))]);
        let set = |doc_id, row, table: &Bytes| Edit::SetColumns { doc_id, row, table: table.clone() };
        let edits = [set(4, 0, &both), set(2, 1, &both), Edit::DropDocument { doc_id: 1 }, set(4, 0, &one)];
        let field = |name: &str, data_type| Arc::new(Field::new(name, data_type, true));
        let fields = [field("n", DataType::Int64), field("who", DataType::Utf8)];
        let overlay = Overlay::read(&edits, &fields, u64::MAX).unwrap();
        let numbers = integers(&[Some(1), Some(2), Some(3), Some(4)]);
        let over = overlay.over(0, &numbers, 1).unwrap();
        let found: Vec<_> = over.as_primitive::<Int64Type>().iter().collect();
        assert_eq!(found, [Some(1), None, Some(3), Some(20)]);
        assert!(Arc::ptr_eq(&overlay.over(0, &numbers, 5).unwrap(), &numbers));
        let names = new_null_array(&DataType::Utf8, 5);
        let over = overlay.over(1, &names, 0).unwrap();
        let found: Vec<_> = over.as_string::<i32>().iter().collect();
        assert_eq!(found, [None, None, Some("b"), None, Some("a")]);
    }

    #[test]
    fn tables_that_are_not_what_edits_say_are_refused() {
        let one = table(vec![("n", integers(&[Some(20)]))]);
        let fields = [Arc::new(Field::new("n", DataType::Int64, true))];
        let refused = |table: &[u8], row, limit_bytes| {
            let table = Bytes::copy_from_slice(table);
            let edits = [Edit::SetColumns { doc_id: 0, row, table }];
            Overlay::read(&edits, &fields, limit_bytes).unwrap_err().to_string()
        };
        assert!(refused(&one, 1, u64::MAX).contains("expected one of 1 rows, got row 1"));
        assert!(refused(&one[1..], 0, u64::MAX).contains("reading columns"));
        assert!(refused(&one, 0, 1).contains("tadoc.max_memory_bytes"));
        let edits = [Edit::SetColumns { doc_id: 0, row: 1, table: one }];
        assert!(check_tables(&edits, u64::MAX).is_err());
    }
}
