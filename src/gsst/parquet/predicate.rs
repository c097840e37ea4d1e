//! Conditions on rows. Those on GSST columns are tested on codes. Those on ordinary columns are
//! tested before any text is decoded.

use std::fmt;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};

use crate::error::Result;

use super::statistics::TextStatistics;
use crate::block::Block;
use crate::pattern::Pattern;

/// A condition on one GSST column. Null rows never meet it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePredicate {
    /// Place of the field in the schema.
    pub field_idx: usize,
    /// Test of a row's text.
    pub test: CodeTest,
    /// True to keep the rows that fail the test, as in `NOT LIKE`.
    pub is_negated: bool,
}

/// A test of a row's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeTest {
    /// Equality with one of these texts: `=`, `IN`.
    IsIn(Vec<Vec<u8>>),
    /// A match of this pattern: `LIKE`, `starts_with`, `contains`.
    Like(Pattern),
}

impl CodePredicate {
    /// Returns true if some row may meet the condition. If false, no row meets it.
    pub fn may_match(&self, statistics: &TextStatistics) -> bool {
        match &self.test {
            _ if statistics.num_nulls == statistics.num_rows => false,
            CodeTest::IsIn(texts) if !self.is_negated => {
                texts.iter().any(|text| statistics.may_be(text))
            }
            CodeTest::IsIn(_) | CodeTest::Like(_) => true,
        }
    }

    /// Keeps those of `rows` that meet the condition.
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
    /// Fields that the test reads, by their place in the schema, ascending.
    pub fields: Vec<usize>,
    /// Test that returns, for a batch of those fields, the rows to keep. Null means no.
    pub test: RowTest,
}

/// Function type of the test of a [`RowFilter`].
pub type RowTest = Arc<dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync>;

impl fmt::Debug for RowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowFilter").field("fields", &self.fields).finish_non_exhaustive()
    }
}
