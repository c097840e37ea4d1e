//! The receiver of user columns, and their names.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Fields, Schema};

use crate::failure::Outcome;

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
