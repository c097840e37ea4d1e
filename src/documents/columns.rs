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

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type, Schema};
use arrow::error::ArrowError;

use crate::failure::{Failure, Outcome};
use crate::{display, timestamps};

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
