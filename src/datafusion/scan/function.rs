//! The trait that every table function implements.
//!
//! A function is bound to its arguments while the query is planned (no I/O), prepared when the
//! scan is made (files and footers are known, so that more can be refused with a plan error), and
//! run once per partition.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::not_impl_err;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use futures::future::BoxFuture;

use crate::placement::Task;
use crate::scan::arguments::Arguments;
use crate::scan::signature::Signature;
use crate::scan::{Run, Scan};
use crate::source::memory::Uses;

/// The way in which rows of portions become rows of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// Nothing: a row needs all segments.
    Never,
    /// The rows of the whole, one portion behind the other; column `doc_id`, if there is one, counts from the
    /// first document of each.
    Behind,
    /// The plan of [`TableFunction::combine`].
    Combined,
}

/// The question of a function to a portion.
#[derive(Debug)]
pub(crate) enum OfPortion {
    /// The question to the whole.
    Same,
    /// The same of a document, which has another id there.
    Other(Arc<dyn TableFunction>),
    /// Nothing.
    Nothing,
}

impl OfPortion {
    /// Returns the question about document `doc_id` of the whole. `of_document` builds the function
    /// for the id that the document has in the portion.
    pub(crate) fn of_document<F: TableFunction>(
        doc_id: u64,
        docs: Range<u64>,
        of_document: impl FnOnce(u64) -> F,
    ) -> Self {
        match docs.contains(&doc_id) {
            true => Self::Other(Arc::new(of_document(doc_id - docs.start))),
            false => Self::Nothing,
        }
    }
}

/// The rows of functions over all portions, for plans.
pub(crate) trait PortionRows {
    /// Returns the scan of the whole.
    fn scan(&self) -> &Scan;

    /// Returns `columns` of the rows of `function` in all portions, one portion behind the other, in
    /// a table of its name.
    ///
    /// # Errors
    /// The errors of planning a scan.
    fn of_all(
        &self,
        function: Arc<dyn TableFunction>,
        columns: &[&str],
    ) -> Result<LogicalPlanBuilder>;

    /// Returns the same of documents that filters on `doc_id` leave.
    ///
    /// # Errors
    /// As [`of_all`](Self::of_all).
    fn of_documents(
        &self,
        function: Arc<dyn TableFunction>,
        columns: &[&str],
    ) -> Result<LogicalPlanBuilder>;
}

/// The kind of files that a function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Corpora, whose footers are read and checked when the scan is made.
    Corpora,
    /// Corpora that may be damaged: nothing is read when the scan is made.
    UncheckedCorpora,
    /// Any files.
    Files,
    /// None.
    Nothing,
}

/// A table function as SQL calls it. Each function has one, beside its code.
#[derive(Debug)]
pub(crate) struct Definition {
    /// Its name, arguments and columns.
    pub(crate) signature: Signature,
    /// Binds a call. Reads arguments by name, and nothing else but catalogs that answer at once.
    pub(crate) bind: fn(&Arguments, &dyn Session) -> Arc<dyn TableFunction>,
}

/// A table function bound to its arguments.
pub(crate) trait TableFunction: Debug + Send + Sync + 'static {
    /// Its entry in the table of signatures.
    fn signature(&self) -> &'static Signature;

    /// All its columns.
    fn schema(&self) -> SchemaRef {
        self.signature().schema()
    }

    /// Returns the kind of files that it reads.
    fn reads(&self) -> Reads {
        Reads::Corpora
    }

    /// Arguments after the location, for EXPLAIN.
    fn arguments(&self) -> Vec<(&'static str, String)> {
        vec![]
    }

    /// Returns true if the function evaluates filters on this column itself.
    fn claims_column(&self, _column: &str) -> bool {
        false
    }

    /// Returns true if a filter on this column needs decoded text.
    fn needs_text(&self, _column: &str) -> bool {
        false
    }

    /// Columns by which every partition is sorted, ascending.
    fn ordering(&self, _scan: &Scan) -> &'static [&'static str] {
        &[]
    }

    /// Checks arguments against what the footers say.
    ///
    /// # Errors
    /// A plan error.
    fn prepare(&self, _scan: &Scan) -> Result<()> {
        Ok(())
    }

    /// Rows without filter and limit.
    fn num_rows(&self, _scan: &Scan) -> Precision<usize> {
        Precision::Absent
    }

    /// Partitions worth having, at most `target`.
    fn num_partitions(&self, _scan: &Scan, _target: usize) -> usize {
        1
    }

    /// Bytes of a row by the mean, of the segment with the longest; 0 where rows are some numbers and words.
    fn row_bytes(&self, _scan: &Scan) -> u64 {
        0
    }

    /// Returns the parts of segments that it uses, if no filter needs text.
    fn uses(&self, _scan: &Scan) -> Uses {
        Uses::Places
    }

    /// Returns true if rows that a device counted can leave through any number of partitions.
    fn can_spread(&self) -> bool {
        false
    }

    /// Returns the way in which rows of portions are joined, if memory has no room for the corpus.
    fn merge(&self, _scan: &Scan) -> Merge {
        Merge::Never
    }

    /// Returns a plan that makes the rows of the whole from `rows` of portions, for
    /// [`Merge::Combined`]. The plan has the columns that are asked for.
    ///
    /// # Errors
    /// The errors of planning.
    fn combine(&self, _rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        not_impl_err!("{} of portions", self.signature().name)
    }

    /// Returns true if rows of [`combine`](Self::combine) with the same word become one row with the
    /// documents of all.
    fn joins_lists(&self) -> bool {
        false
    }

    /// Returns the question to the portion that has the documents `docs`.
    fn of_portion(&self, _docs: Range<u64>) -> OfPortion {
        OfPortion::Same
    }

    /// Returns the task of a device for a scan, or the reason why no device is asked.
    ///
    /// # Errors
    /// The reason.
    fn device_task(&self, _scan: &Scan) -> std::result::Result<Task, &'static str> {
        Err("there is no kernel for this function")
    }

    /// Returns facts about the computation, for EXPLAIN.
    fn explain(&self, _scan: &Scan) -> Vec<(&'static str, String)> {
        vec![]
    }

    /// Sends the rows of one partition.
    fn run(self: Arc<Self>, run: Run) -> BoxFuture<'static, Result<()>>;
}
