//! Turns rows into documents: one column is the text, `path` is the path, and the others are user columns. A column of
//! timestamps becomes the column `ts`.
//!
//! Numbers of JSON keep their text until all rows are known.
//!
//! ```text
//! chunk ─▶ floats are decoded as marked texts ─▶ runs ─▶ all rows are known: floats,
//!                                                        or the texts, if a cell of the column is a text
//!                                                        or a float would round a whole number
//! ```
//!
//! So `1.10` is 1.1 in a column of numbers, and `1.10` in a column of texts, wherever the first text comes.
//! This holds for the fields of structures and the items of lists, too. Whole numbers of one column may come
//! as integers in some chunks and as floats in others. Fractions have the nearest float.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::{cast, filter, filter_record_batch};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type, Schema};
use arrow::error::ArrowError;

use crate::failure::{Failure, Outcome};
use crate::inputs::Input;
use crate::timestamps::{self, Clock};
use crate::{Gather, ReadOptions, display};

/// A receiver of user columns, row by row, in the order of the documents.
pub trait ColumnSink {
    /// Checks that columns of this schema can be received. `input` is the name of their input, for messages.
    ///
    /// # Errors
    /// The text names `input`, the column and the bound.
    fn check(&self, schema: &Schema, input: &str) -> Outcome;

    /// Adds rows.
    ///
    /// # Errors
    /// The rows cannot be kept.
    fn push(&mut self, rows: &RecordBatch) -> Outcome;

    /// Returns the number of columns so far, with the fields of structures.
    fn num_columns(&self) -> usize;
}

/// Returns the paths of the values of `fields`: a field, or the fields of a structure.
///
/// ```
/// use arrow::datatypes::{DataType, Field, Fields};
/// use tadoc_documents::columns::leaves;
///
/// let place = DataType::Struct(Fields::from(vec![Field::new("city", DataType::Utf8, true)]));
/// let fields = Fields::from(vec![Field::new("place", place, true)]);
/// assert_eq!(leaves(&fields).collect::<Vec<_>>(), ["place.city"]);
/// ```
pub fn leaves(fields: &Fields) -> impl Iterator<Item = String> + use<> {
    let mut paths = Vec::new();
    let mut open: Vec<(String, FieldRef)> =
        fields.iter().map(|field| (field.name().clone(), Arc::clone(field))).collect();
    while let Some((path, field)) = open.pop() {
        match field.data_type() {
            DataType::Struct(inner) => {
                let inner = inner.iter();
                open.extend(inner.map(|field| (format!("{path}.{}", field.name()), Arc::clone(field))));
            }
            DataType::List(item) | DataType::LargeList(item) => open.push((path, Arc::clone(item))),
            _ => paths.push(path),
        }
    }
    paths.into_iter()
}

/// A receiver that drops all columns.
pub(crate) struct NoColumns;

impl ColumnSink for NoColumns {
    fn check(&self, _schema: &Schema, _input: &str) -> Outcome {
        Ok(())
    }

    fn push(&mut self, _rows: &RecordBatch) -> Outcome {
        Ok(())
    }

    fn num_columns(&self) -> usize {
        0
    }
}

/// Key in the metadata of a field whose texts are numbers.
const MARK: &str = "tadoc.number";
/// Number of digits that a float always keeps.
const FLOAT_DIGITS: usize = 15;
/// Largest whole number up to which a float has all.
const MAX_WHOLE: i64 = 1 << 53;

/// Returns `fields` with marked texts in place of floats, at any depth.
pub(crate) fn as_texts(fields: &Fields) -> Fields {
    let field = |field: &FieldRef| {
        let kind = match field.data_type() {
            DataType::Float64 => {
                let mark = [(MARK.to_owned(), String::new())];
                let text = field.as_ref().clone().with_data_type(DataType::Utf8);
                return Arc::new(text.with_metadata(mark.into()));
            }
            DataType::Struct(inner) => DataType::Struct(as_texts(inner)),
            DataType::List(item) => {
                let item = as_texts(&Fields::from(vec![Arc::clone(item)]));
                DataType::List(Arc::clone(&item[0]))
            }
            _ => return Arc::clone(field),
        };
        Arc::new(field.as_ref().clone().with_data_type(kind))
    };
    fields.iter().map(field).collect()
}

/// Returns true for a field of texts that are numbers.
pub(crate) fn is_number(field: &Field) -> bool {
    field.metadata().contains_key(MARK)
}

/// Returns the values of `field` as floats if they are marked texts and no float rounds a whole one.
///
/// # Errors
/// A text is no number.
pub(crate) fn without_mark(field: &Field, values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !is_number(field) || are_rounded(values) {
        return Ok(Arc::clone(values));
    }
    cast(values, &DataType::Float64)
}

/// Returns true if a float rounds one of `texts`, which are numbers, and it is whole.
pub(crate) fn are_rounded(texts: &ArrayRef) -> bool {
    let texts = texts.as_string_opt::<i32>();
    texts.is_some_and(|texts| texts.iter().flatten().any(is_rounded))
}

fn is_rounded(number: &str) -> bool {
    if number.len() <= FLOAT_DIGITS {
        return false;
    }
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole && !number.parse::<i128>().is_ok_and(|number| number as f64 as i128 == number)
}

/// The columns of all runs, by the paths of their values.
#[derive(Default)]
pub struct Numbers {
    /// Columns with values that are no numbers, or that a float rounds.
    texts: HashSet<String>,
    /// Columns with floats.
    floats: HashSet<String>,
    /// Columns with integers that a float may round.
    large: HashSet<String>,
}

impl Numbers {
    /// Takes up the values of `batch`.
    pub fn observe(&mut self, batch: &RecordBatch) {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns());
        let mut open: Vec<(String, FieldRef, ArrayRef)> =
            columns.map(|(field, column)| (field.name().clone(), Arc::clone(field), Arc::clone(column))).collect();
        while let Some((path, field, column)) = open.pop() {
            match field.data_type() {
                DataType::Struct(inner) => {
                    let parts = inner.iter().zip(column.as_struct().columns());
                    open.extend(parts.map(|(field, part)| {
                        let path = format!("{path}.{}", field.name());
                        (path, Arc::clone(field), Arc::clone(part))
                    }));
                }
                DataType::List(item) => {
                    let values = Arc::clone(column.as_list::<i32>().values());
                    open.push((path, Arc::clone(item), values));
                }
                _ => self.observe_values(path, &field, &column),
            }
        }
    }

    fn observe_values(&mut self, path: String, field: &Field, values: &ArrayRef) {
        match field.data_type() {
            DataType::Float64 => _ = self.floats.insert(path),
            DataType::Utf8 if is_number(field) => {
                if are_rounded(values) {
                    self.texts.insert(path.clone());
                }
                self.floats.insert(path);
            }
            DataType::Int64 => {
                let mut integers = values.as_primitive::<Int64Type>().iter().flatten();
                let is_exact = |integer: i64| (-MAX_WHOLE..=MAX_WHOLE).contains(&integer);
                if !integers.all(is_exact) {
                    self.large.insert(path);
                }
            }
            kind if kind.is_numeric() || kind.is_null() => {}
            _ => _ = self.texts.insert(path),
        }
    }

    /// Returns the schema of a run with the types that its numbers have among all rows.
    pub fn typed(&self, schema: &Schema) -> Schema {
        Schema::new(self.typed_fields("", schema.fields()))
    }

    fn typed_fields(&self, above: &str, fields: &Fields) -> Fields {
        let typed = |field: &FieldRef| {
            let path = format!("{above}{}", field.name());
            Field::new(field.name(), self.typed_values(&path, field), true)
        };
        fields.iter().map(typed).collect()
    }

    fn typed_values(&self, path: &str, field: &Field) -> DataType {
        let is_text = self.texts.contains(path) || self.large.contains(path) && self.floats.contains(path);
        match field.data_type() {
            DataType::Struct(inner) => DataType::Struct(self.typed_fields(&format!("{path}."), inner)),
            DataType::List(item) => {
                let kind = self.typed_values(path, item);
                DataType::List(Arc::new(Field::new(item.name(), kind, true)))
            }
            DataType::Int64 | DataType::Float64 if is_text => DataType::Utf8,
            DataType::Utf8 if is_number(field) && !is_text => DataType::Float64,
            kind => kind.clone(),
        }
    }
}

/// Name of the column with the path of a row's document.
pub(crate) const PATH_COLUMN: &str = "path";

/// Receivers of the rows of one input.
pub(crate) struct Rows<'a, 'b> {
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
        let has_times = self.time_column().is_some_and(|path| has_times(name, path));
        self.options.keep_columns || has_times || [text_column, PATH_COLUMN].contains(&name)
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
            Some(name) if self.time_path(schema).is_none() => {
                let reason = if name == timestamps::AUTO {
                    "no column has a name of times, such as timestamp, time or ts; name one of the columns"
                } else {
                    "there is no such column; the columns are"
                };
                Err(Failure::new(format!(
                    "{}: --timestamp {name}: {reason} {}",
                    self.input.shown(),
                    names(schema, |_| true)
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns the path of the column of `schema` that has the timestamps, if there is one: `auto` is the column
    /// [`COLUMN`](timestamps::COLUMN), or the first one with a name of times.
    fn time_path(&self, schema: &Schema) -> Option<String> {
        let path = self.time_column()?;
        if field_at(schema.fields(), path).is_some() {
            return Some(path.to_owned());
        }
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let first = || names().find(|name| *name == timestamps::COLUMN).or_else(|| timestamps::first_name(names()));
        first().filter(|_| path == timestamps::AUTO).map(str::to_owned)
    }

    /// Returns the column that has the timestamps, if they are in rows.
    pub fn time_column(&self) -> Option<&str> {
        self.clock.as_ref().and_then(|clock| clock.how().column())
    }

    /// Returns `kept` with the timestamps of the rows of `batch`.
    fn with_times(&mut self, kept: RecordBatch, batch: &RecordBatch) -> Outcome<RecordBatch> {
        let name = self.time_path(&batch.schema()).or_else(|| self.time_column().map(str::to_owned));
        let (Some(name), Some(clock)) = (name, &mut self.clock) else { return Ok(kept) };
        let dates = || column_at(batch, &format!("{name}.$date"));
        let times = match column_at(batch, &name) {
            Some((field, _)) if matches!(field.data_type(), DataType::Struct(_)) && dates().is_none() => {
                return Err(Failure::new(format!(
                    "{}: --timestamp {name}: it holds objects; name the field of them that has the time, such as \
                     --timestamp {name}.FIELD",
                    self.input.shown()
                )));
            }
            // MongoDB writes times as objects.
            Some((field, times)) => match dates() {
                Some((field, times)) => without_mark(&field, &times)?,
                None => without_mark(&field, &times)?,
            },
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
pub(crate) fn check_num_columns(num_columns: usize, max_columns: usize, file: &str) -> Outcome {
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
pub(crate) fn names(schema: &Schema, wanted: impl Fn(&DataType) -> bool) -> String {
    let fields = schema.fields().iter().filter(|field| wanted(field.data_type()));
    let names: Vec<String> = fields.map(|field| format!("`{}`", field.name())).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Returns true if values of this type are texts or bytes.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, Dictionary, LargeBinary, LargeUtf8, Null, Utf8, Utf8View};
    match data_type {
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | Null => true,
        Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Returns true if the column `name` has the values at `path`: under this name, or in its structures.
pub(crate) fn leads_to(name: &str, path: &str) -> bool {
    path == name || path.split('.').next() == Some(name)
}

/// Returns true if the column `name` may have the timestamps of `path`, the place of `--timestamp`.
pub(crate) fn has_times(name: &str, path: &str) -> bool {
    leads_to(name, path) || path == timestamps::AUTO && timestamps::is_name(name)
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
    let mut columns = batch.columns().to_vec();
    let mut fields = schema.fields().clone();
    let mut path = path;
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
pub(crate) fn texts(text_column: &str, batch: &RecordBatch) -> Outcome<ArrayRef> {
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
