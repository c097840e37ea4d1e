//! The user columns of records that are read one by one: texts, and a column `date`.

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use std::sync::Arc;

use crate::failure::Outcome;
use crate::rows::Rows;
use crate::timestamps;

/// Number of rows that are collected at once.
const BATCH_ROWS: usize = 1 << 10;
/// Name of the column with the times.
const DATE: &str = "date";

/// Rows that wait to be stored.
pub struct RecordColumns<const N: usize> {
    names: [&'static str; N],
    texts: [Vec<Option<String>>; N],
    dates: Vec<Option<i64>>,
}

impl<const N: usize> RecordColumns<N> {
    /// Creates columns of texts with these names, and a column `date`.
    pub fn new(names: [&'static str; N]) -> Self {
        Self { names, texts: std::array::from_fn(|_| Vec::new()), dates: Vec::new() }
    }

    /// Adds the row of a document. `date` is in microseconds since 1970.
    pub fn push(
        &mut self,
        texts: [Option<String>; N],
        date: Option<i64>,
        rows: &mut Rows<'_, '_>,
    ) -> Outcome {
        for (column, text) in self.texts.iter_mut().zip(texts) {
            column.push(text);
        }
        self.dates.push(date);
        if self.dates.len() < BATCH_ROWS { Ok(()) } else { self.store(rows) }
    }

    /// Stores the rows that wait.
    pub fn store(&mut self, rows: &mut Rows<'_, '_>) -> Outcome {
        if self.dates.is_empty() {
            return Ok(());
        }
        let texts = self.names.into_iter().zip(&mut self.texts).map(|(name, column)| {
            let texts: ArrayRef = Arc::new(column.drain(..).collect::<StringArray>());
            (name, texts, true)
        });
        let mut columns: Vec<(&str, ArrayRef, bool)> = texts.collect();
        columns.push((DATE, timestamps::array(self.dates.drain(..)), true));
        rows.push_columns(&RecordBatch::try_from_iter_with_nullable(columns)?)
    }
}
