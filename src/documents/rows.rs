//! Turns rows into documents: one column is the text, `path` is the path, and the others are user
//! columns. A column of timestamps becomes the column `ts`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::{cast, filter, filter_record_batch};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};

use crate::columns::{ColumnSink, leaves};
use crate::failure::{Failure, Outcome};
use crate::inputs::Input;
use crate::timestamps::{self, Clock};
use crate::{Gather, ReadOptions, columns, display};

/// Name of the column with the path of a row's document.
pub const PATH_COLUMN: &str = "path";

/// Receivers of the rows of one input.
pub struct Rows<'a, 'b> {
    /// The input.
    pub input: &'a Input,
    /// Options for reading it.
    pub options: ReadOptions,
    /// Receiver of user columns.
    pub columns: &'a mut dyn ColumnSink,
    /// Reader of timestamps, if they are asked for.
    pub clock: Option<&'a mut Clock>,
    /// Receiver of documents.
    pub sink: &'a mut Gather<'b>,
}

impl Rows<'_, '_> {
    /// Adds the rows of `batch`, or none of them. `locate` names a row by its index in the batch, such as
    /// `line 17`.
    pub fn take(&mut self, text_column: &str, batch: &RecordBatch, locate: &dyn Fn(usize) -> String) -> Outcome {
        let all_texts = texts(text_column, batch)?;
        let fitting = match self.fitting(text_column, all_texts.as_binary_view(), locate)? {
            Some(fits) => Some((filter_record_batch(batch, &fits)?, filter(&all_texts, &fits)?)),
            None => None,
        };
        let (batch, texts) = fitting.as_ref().map_or((batch, &all_texts), |(batch, texts)| (batch, texts));
        let texts = texts.as_binary_view();
        let paths = self.paths(text_column, batch)?;
        let kept = if self.options.keep_columns { other_columns(text_column, batch)? } else { batch.project(&[])? };
        self.push_kept(kept, batch)?;
        let file_path: Arc<str> = Arc::from(self.input.path.as_str());
        for row_idx in 0..batch.num_rows() {
            let text = if texts.is_null(row_idx) { &[] } else { texts.value(row_idx) };
            let own_path = paths.as_ref().map(|paths| paths.as_string::<i64>());
            match own_path.filter(|paths| paths.is_valid(row_idx)) {
                Some(paths) => self.sink.push(&Arc::from(paths.value(row_idx)), text)?,
                None => self.sink.push(&file_path, text)?,
            }
        }
        Ok(())
    }

    /// Returns which rows stay where some texts are missing or too large; `None` if all stay.
    fn fitting(
        &self,
        text_column: &str,
        texts: &BinaryViewArray,
        locate: &dyn Fn(usize) -> String,
    ) -> Outcome<Option<BooleanArray>> {
        let mut fits = vec![true; texts.len()];
        for (row_idx, fits) in fits.iter_mut().enumerate() {
            let failure = if texts.is_null(row_idx) {
                if self.options.allow_missing {
                    continue;
                }
                self.missing_text(text_column, &locate(row_idx))
            } else if texts.value(row_idx).len() as u64 > self.options.max_row_bytes {
                self.too_large(&locate(row_idx))
            } else {
                continue;
            };
            self.sink.faults.pass_row(self.input, failure)?;
            *fits = false;
        }
        let are_all = fits.iter().all(|&fits| fits);
        Ok((!are_all).then(|| BooleanArray::from(fits)))
    }

    /// Adds columns of documents that were passed on already.
    pub fn push_columns(&mut self, batch: &RecordBatch) -> Outcome {
        let kept = if self.options.keep_columns { batch.clone() } else { batch.project(&[])? };
        self.push_kept(kept, batch)
    }

    /// Adds `kept`, columns of `batch`, and the timestamps.
    fn push_kept(&mut self, kept: RecordBatch, batch: &RecordBatch) -> Outcome {
        let rows = self.with_times(kept, batch)?;
        if rows.num_columns() == 0 && !self.options.keep_columns {
            return Ok(());
        }
        let file = self.input.shown();
        let pushed = self
            .columns
            .push(&rows)
            .and_then(|()| check_num_columns(self.columns.num_columns(), self.options.max_columns, &file));
        pushed.inspect_err(|_| self.sink.faults.end())
    }

    /// Returns true if the column `name` is needed for documents whose text is in `text_column`.
    pub fn needs(&self, name: &str, text_column: &str) -> bool {
        let of_times = self.time_column().is_some_and(|path| leads_to(name, path));
        self.options.keep_columns || of_times || [text_column, PATH_COLUMN].contains(&name)
    }

    /// Checks that `schema` has no more columns than are kept.
    ///
    /// # Errors
    /// It has more; the text names the limit.
    pub fn check_num_columns(&self, schema: &Schema) -> Outcome {
        if !self.options.keep_columns {
            return Ok(());
        }
        check_num_columns(leaves(schema.fields()).count(), self.options.max_columns, &self.input.shown())
    }

    /// Checks that `schema` has the column with the timestamps.
    pub fn check_time_column(&self, schema: &Schema) -> Outcome {
        match self.time_column() {
            Some(name) if field_at(schema.fields(), name).is_none() => Err(Failure::new(format!(
                "{}: --timestamp {name}: there is no such column; the columns are {}",
                self.input.shown(),
                names(schema, |_| true)
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the column that has the timestamps, if they are in rows.
    pub fn time_column(&self) -> Option<&str> {
        self.clock.as_ref().and_then(|clock| clock.how().column())
    }

    /// Returns `kept` with the timestamps of the rows of `batch`.
    fn with_times(&mut self, kept: RecordBatch, batch: &RecordBatch) -> Outcome<RecordBatch> {
        let name = self.time_column().map(str::to_owned);
        let (Some(name), Some(clock)) = (name, &mut self.clock) else { return Ok(kept) };
        let times = match column_at(batch, &name) {
            Some((field, times)) => columns::without_mark(&field, &times)?,
            None => new_null_array(&DataType::Null, batch.num_rows()),
        };
        let times = clock.for_column(&times).map_err(|error| {
            let column = format!("{}: --timestamp {name}", self.input.shown());
            Failure::with_cause(column, &error)
        })?;
        let mut columns: Vec<(Arc<Field>, ArrayRef)> =
            kept.schema().fields().iter().cloned().zip(kept.columns().iter().cloned()).collect();
        if name != timestamps::COLUMN && kept.column_by_name(timestamps::COLUMN).is_some() {
            return Err(Failure::new(format!(
                "{}: --timestamp {name}: the rows have a column `{COLUMN}` of their own; pass --timestamp \
                 {COLUMN} to read that one, or --no-columns",
                self.input.shown(),
                COLUMN = timestamps::COLUMN
            )));
        }
        columns.retain(|(field, _)| field.name() != timestamps::COLUMN);
        columns.push((Arc::new(timestamps::field()), times));
        let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    /// Checks that `schema` has the text column and that the column holds text.
    pub fn check_text_column(&self, text_column: &str, schema: &Schema) -> Outcome {
        let file = self.input.shown();
        self.columns.check(schema, &file)?;
        match schema.field_with_name(text_column) {
            Ok(field) if is_text(field.data_type()) => Ok(()),
            Ok(field) => Err(Failure::new(format!(
                "{file}: column `{text_column}` holds {}, not text; columns with text: {}",
                field.data_type(),
                names(schema, is_text)
            ))),
            Err(_) => Err(Failure::new(format!(
                "{file}: there is no column `{text_column}`; the columns are {}",
                names(schema, |_| true)
            ))),
        }
    }

    /// Builds the failure for a row at `place` that is larger than `--max-row-size`.
    pub fn too_large(&self, place: &str) -> Failure {
        Failure::new(format!(
            "{}: {place} is larger than {}; a row is held in memory as a whole: pass a larger \
             --max-row-size",
            self.input.shown(),
            display::bytes(self.options.max_row_bytes)
        ))
    }

    fn missing_text(&self, text_column: &str, place: &str) -> Failure {
        Failure::new(format!(
            "{}: {place}: `{text_column}` is missing or null; pass --allow-missing to store such rows \
             as empty documents",
            self.input.shown()
        ))
    }

    fn paths(&self, text_column: &str, batch: &RecordBatch) -> Outcome<Option<ArrayRef>> {
        let column = batch.column_by_name(PATH_COLUMN).filter(|_| text_column != PATH_COLUMN);
        Ok(column.map(|column| cast(column, &DataType::LargeUtf8)).transpose()?)
    }
}

/// Checks that `num_columns` columns of `file` are no more than `max_columns`.
///
/// # Errors
/// They are more; the text names the limit.
pub fn check_num_columns(num_columns: usize, max_columns: usize, file: &str) -> Outcome {
    if num_columns <= max_columns {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{file}: {} columns, with the fields of structures; at most {} are kept: pass --no-columns to keep \
         the text only, or a larger --max-columns",
        display::grouped(num_columns as u64),
        display::grouped(max_columns as u64)
    )))
}

/// Formats the names of the columns whose type is `wanted`, for messages.
pub fn names(schema: &Schema, wanted: impl Fn(&DataType) -> bool) -> String {
    let fields = schema.fields().iter().filter(|field| wanted(field.data_type()));
    let names: Vec<String> = fields.map(|field| format!("`{}`", field.name())).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Returns true if values of this type are texts or bytes.
pub fn is_text(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, Dictionary, LargeBinary, LargeUtf8, Null, Utf8, Utf8View};
    match data_type {
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | Null => true,
        Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Returns true if the column `name` has the values at `path`: under this name, or in its structures.
pub fn leads_to(name: &str, path: &str) -> bool {
    path == name || path.split('.').next() == Some(name)
}

/// Returns the field at `path`: its whole name, or the names of the structures around it and its own.
fn field_at<'a>(fields: &'a Fields, path: &str) -> Option<&'a FieldRef> {
    if let Some((_, field)) = fields.find(path) {
        return Some(field);
    }
    let (first, below) = path.split_once('.')?;
    match fields.find(first)?.1.data_type() {
        DataType::Struct(inner) => field_at(inner, below),
        _ => None,
    }
}

/// Returns the values at `path`, as [`field_at`] finds them.
fn column_at(batch: &RecordBatch, path: &str) -> Option<(FieldRef, ArrayRef)> {
    let schema = batch.schema();
    let field = Arc::clone(field_at(schema.fields(), path)?);
    let (mut columns, mut fields, mut path) = (batch.columns().to_vec(), schema.fields().clone(), path);
    loop {
        if let Some((idx, _)) = fields.find(path) {
            return Some((field, Arc::clone(&columns[idx])));
        }
        let (first, below) = path.split_once('.')?;
        let inner = Arc::clone(&columns[fields.find(first)?.0]);
        let inner = inner.as_struct_opt()?;
        (columns, fields, path) = (inner.columns().to_vec(), inner.fields().clone(), below);
    }
}

/// Returns the texts of `batch`, all of which are null without the column.
pub fn texts(text_column: &str, batch: &RecordBatch) -> Outcome<ArrayRef> {
    match batch.column_by_name(text_column) {
        Some(column) => text_bytes(column),
        None => Ok(new_null_array(&DataType::BinaryView, batch.num_rows())),
    }
}

/// Returns a text column as `BinaryView`. Dictionary values are not copied for each row.
fn text_bytes(column: &ArrayRef) -> Outcome<ArrayRef> {
    let plain = match column.data_type() {
        DataType::Dictionary(_, values) if values.is_string() => &cast(column, &DataType::Utf8View)?,
        DataType::Dictionary(_, values) => &cast(column, values)?,
        _ => column,
    };
    Ok(cast(plain, &DataType::BinaryView)?)
}

fn other_columns(text_column: &str, batch: &RecordBatch) -> Outcome<RecordBatch> {
    let schema = batch.schema();
    let kept = schema
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| field.name() != text_column && field.name() != PATH_COLUMN);
    let indices: Vec<usize> = kept.map(|(idx, _)| idx).collect();
    Ok(batch.project(&indices)?)
}
