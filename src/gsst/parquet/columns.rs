//! The choice of the columns that become GSST columns.
//!
//! A column with few different values, such as a level or the name of a host, is shorter as an ordinary column:
//! Parquet stores each value once and a number of a few bits for each row, and compresses those. GSST takes a
//! byte and more for each row. [`GsstColumns::without_repeated`] leaves such columns to Parquet, by the rows that a
//! file begins with. If other values follow, Parquet gives up its dictionary, and the column is compressed text.
//!
//! Complexity: a hash of each value of the first rows, at most [`NUM_FIRST_ROWS`].

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};

use crate::arrow::{TextType, rows};
use crate::error::{Error, Result};
use crate::symbol_table::CodeWidth;

use super::index::GsstColumn;
use super::metadata::has_extension;

/// Number of rows that tell whether the values of a column repeat. Fewer rows tell nothing.
pub const NUM_FIRST_ROWS: usize = 8192;
/// Smallest number of values among them that tells it.
const MIN_VALUES: usize = 4096;
/// A column is left to Parquet if each of its values occurs so many times, on average, or more.
const MIN_REPEATS: usize = 16;

/// Choice of the columns that become GSST columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GsstColumns {
    /// All top-level fields of a [`TextType`] without an extension type.
    AllText,
    /// Columns with these names.
    Named(Vec<String>),
}

impl GsstColumns {
    /// Returns the choice for a file that begins with the rows of `first`: [`GsstColumns::AllText`] without the
    /// columns that have few different values there. Columns that were named stay, and so do all columns of a
    /// file with fewer than 4,096 values.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow::array::{RecordBatch, StringArray};
    /// use gsst::parquet::GsstColumns;
    ///
    /// let levels = StringArray::from_iter_values((0..8192).map(|i| ["INFO", "WARN"][i % 2]));
    /// let lines = StringArray::from_iter_values((0..8192).map(|i| format!("request {i}")));
    /// let batch = RecordBatch::try_from_iter([("level", Arc::new(levels) as _), ("line", Arc::new(lines) as _)])?;
    /// assert_eq!(GsstColumns::AllText.without_repeated(&[batch])?, GsstColumns::Named(vec!["line".to_owned()]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None for batches of one schema.
    pub fn without_repeated(self, first: &[RecordBatch]) -> Result<Self> {
        let (Self::AllText, Some(batch)) = (&self, first.first()) else { return Ok(self) };
        let mut names = Vec::new();
        let mut is_shorter = false;
        for (field_idx, field) in batch.schema().fields().iter().enumerate() {
            if TextType::from_data_type(field.data_type()).is_none() || has_extension(field) {
                continue;
            }
            if has_few_values(first, field_idx)? {
                is_shorter = true;
            } else {
                names.push(field.name().clone());
            }
        }
        Ok(if is_shorter { Self::Named(names) } else { self })
    }
}

/// Returns true if the first rows of a column have enough values, and few different ones.
fn has_few_values(first: &[RecordBatch], field_idx: usize) -> Result<bool> {
    let mut different = HashSet::new();
    let mut num_values = 0;
    let mut num_rows = 0;
    for batch in first {
        let num_left = NUM_FIRST_ROWS - num_rows;
        let array = batch.column(field_idx).slice(0, num_left.min(batch.num_rows()));
        num_rows += array.len();
        for value in rows(&array)?.into_iter().flatten() {
            num_values += 1;
            if !different.contains(value) {
                different.insert(value.to_vec());
            }
        }
    }
    Ok(num_values >= MIN_VALUES && different.len() * MIN_REPEATS <= num_values)
}

pub(super) fn chosen_columns(schema: &Schema, choice: &GsstColumns, width: CodeWidth) -> Result<Vec<GsstColumn>> {
    if let GsstColumns::Named(names) = choice {
        for name in names {
            let field = schema.field_with_name(name).ok();
            let field = field.filter(|field| TextType::from_data_type(field.data_type()).is_some());
            if field.is_none_or(has_extension) {
                return Err(Error::InvalidArgument {
                    name: "GSST columns",
                    got: name.clone(),
                    allowed: format!("strings or binary: {}", possible_columns(schema)),
                });
            }
        }
    }
    let column = |(field_idx, field): (usize, &Arc<Field>)| {
        let is_chosen = match choice {
            GsstColumns::AllText => !has_extension(field),
            GsstColumns::Named(names) => names.contains(field.name()),
        };
        let text_type = TextType::from_data_type(field.data_type()).filter(|_| is_chosen);
        text_type.map(|text_type| GsstColumn { field_idx, text_type, width: Some(width) })
    };
    Ok(schema.fields().iter().enumerate().filter_map(column).collect())
}

/// Returns the names of the fields that can become GSST columns.
fn possible_columns(schema: &Schema) -> String {
    let is_possible =
        |field: &&Arc<Field>| TextType::from_data_type(field.data_type()).is_some() && !has_extension(field);
    let names = schema.fields().iter().filter(is_possible).map(|field| field.name().as_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none of these".to_owned() } else { names.join(", ") }
}
