//! Conditions on rows: on GSST columns, tested on codes, and on ordinary ones, tested before any text
//! is decoded.

use std::fmt;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};

use crate::error::Result;

use super::super::block::Block;
use super::super::pattern::Pattern;
use super::statistics::TextStatistics;

/// A condition on one GSST column; null rows never meet it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePredicate {
    /// The field's place in the schema.
    pub field_idx: usize,
    /// What is asked of a row.
    pub test: CodeTest,
    /// Whether rows are kept that fail the test, as in `NOT LIKE`.
    pub is_negated: bool,
}

/// What is asked of a row's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeTest {
    /// It is one of these: `=`, `IN`.
    IsIn(Vec<Vec<u8>>),
    /// It is like this: `LIKE`, `starts_with`, `contains`.
    Like(Pattern),
}

impl CodePredicate {
    /// Whether some row may meet it; where it says no, none does.
    pub fn may_match(&self, statistics: &TextStatistics) -> bool {
        match &self.test {
            _ if statistics.num_nulls == statistics.num_rows => false,
            CodeTest::IsIn(texts) if !self.is_negated => {
                texts.iter().any(|text| statistics.may_be(text))
            }
            CodeTest::IsIn(_) | CodeTest::Like(_) => true,
        }
    }

    /// Keeps the rows of `rows` that meet it.
    pub(super) fn retain<B: AsRef<[u8]>>(&self, block: &Block<B>, rows: &mut Vec<u32>) {
        let mask = match &self.test {
            CodeTest::IsIn(texts) => {
                let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
                block.rows_equal_to(&texts)
            }
            CodeTest::Like(pattern) => block.rows_like(pattern),
        };
        rows.retain(|row| {
            let row = *row as usize;
            !block.is_null(row) && mask.is_set(row) != self.is_negated
        });
    }
}

/// A condition on ordinary columns.
#[derive(Clone)]
pub struct RowFilter {
    /// The fields it reads, by their place in the schema, ascending.
    pub fields: Vec<usize>,
    /// Which rows of a batch of those fields are kept; null is no.
    pub test: RowTest,
}

/// The test of a [`RowFilter`].
pub type RowTest = Arc<dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync>;

impl fmt::Debug for RowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowFilter").field("fields", &self.fields).finish_non_exhaustive()
    }
}
