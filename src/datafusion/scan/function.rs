//! The trait that every table function implements.
//!
//! A function is bound to its arguments while the query is planned (no I/O). It is prepared when
//! the scan is made: files and footers are known then, so that more can be refused with a plan
//! error. It is run once per partition.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{internal_err, not_impl_err};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use futures::future::BoxFuture;

use crate::placement::Task;
use crate::scan::arguments::Arguments;
use crate::scan::signature::Signature;
use crate::scan::texts::{Compared, Texts};
use crate::scan::{Execution, Scan};
use crate::source::memory::Uses;

/// The way in which rows of portions become rows of the whole corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// No way: a row needs all segments.
    Never,
    /// Concatenation in order of the portions. The column `doc_id`, if there is one, counts from
    /// the first document of each portion.
    Behind,
    /// Combination by the plan of [`TableFunction::combine`].
    Combined,
}

/// The function that is asked about a portion.
#[derive(Debug)]
pub(crate) enum OfPortion {
    /// The function of the whole corpus.
    Same,
    /// The same function about a document with another id in the portion.
    Other(Arc<dyn TableFunction>),
    /// No function: the portion has no rows.
    Nothing,
}

impl OfPortion {
    /// Returns the function for document `doc_id` of the whole corpus, or nothing if it is not
    /// among `docs`, the documents of the portion. `of_document` builds the function for the id
    /// that the document has in the portion.
    pub(crate) fn for_document<F: TableFunction>(
        doc_id: u64,
        docs: Range<u64>,
        of_document: impl FnOnce(u64) -> F,
    ) -> Self {
        if docs.contains(&doc_id) {
            Self::Other(Arc::new(of_document(doc_id - docs.start)))
        } else {
            Self::Nothing
        }
    }
}

/// Access to the rows of functions over all portions, for plans.
pub(crate) trait PortionRows {
    /// Returns the scan of the whole corpus.
    fn scan(&self) -> &Scan;

    /// Returns `columns` of the rows of `function` in all portions, in order of the portions, as a
    /// table with the function's name.
    ///
    /// # Errors
    /// The errors of planning a scan.
    fn for_all(
        &self,
        function: Arc<dyn TableFunction>,
        columns: &[&str],
    ) -> Result<LogicalPlanBuilder>;

    /// Returns the same rows as [`for_all`](Self::for_all), for documents that pass the filters on
    /// `doc_id`.
    ///
    /// # Errors
    /// The errors of [`for_all`](Self::for_all).
    fn for_documents(
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
    /// No files.
    Nothing,
}

/// A function that binds a call. It reads arguments by name, and only those catalogs that answer at
/// once.
pub(crate) type Bind = fn(&Arguments, &dyn Session) -> Arc<dyn TableFunction>;

/// A table function as SQL calls it. Each function defines one, beside its code.
#[derive(Debug)]
pub(crate) struct Definition {
    /// Name, arguments and columns.
    pub(crate) signature: Signature,
    pub(crate) bind: Bind,
}

/// A table function bound to its arguments.
pub(crate) trait TableFunction: Debug + Send + Sync + 'static {
    /// Returns the function's signature.
    fn signature(&self) -> &'static Signature;

    /// Returns the schema with all columns of the function.
    fn schema(&self) -> SchemaRef {
        self.signature().schema()
    }

    /// Returns the kind of files that the function reads.
    fn reads(&self) -> Reads {
        Reads::Corpora
    }

    /// Returns the arguments after the location, for EXPLAIN.
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

    /// Returns true if the rows of `scan` have values of user columns under other names than theirs. Values
    /// that edits set are not part of portions.
    fn reads_user_columns(&self, _scan: &Scan) -> bool {
        false
    }

    /// Returns the columns by which every partition is sorted, ascending.
    fn ordering(&self, _scan: &Scan) -> &'static [&'static str] {
        &[]
    }

    /// Returns true if the first column of [`ordering`](Self::ordering) is sorted in descending order
    /// instead.
    fn is_best_first(&self) -> bool {
        false
    }

    /// Returns the texts of another table that the function compares with the corpus, if it does.
    fn compared(&self) -> Option<&Compared> {
        None
    }

    /// Returns the function with its texts, which each scan reads.
    ///
    /// # Errors
    /// An internal error if the function compares none.
    fn with_texts(&self, _texts: Arc<Texts>) -> Result<Arc<dyn TableFunction>> {
        internal_err!("{} compares no texts", self.signature().name)
    }

    /// Checks the arguments against the footers.
    ///
    /// # Errors
    /// A plan error.
    fn prepare(&self, _scan: &Scan) -> Result<()> {
        Ok(())
    }

    /// Returns the number of rows without filter and limit.
    fn num_rows(&self, _scan: &Scan) -> Precision<usize> {
        Precision::Absent
    }

    /// Returns true if it is likely to find few rows, in few documents. In sessions with workers this
    /// decides which side of a join all workers get.
    fn finds_few(&self) -> bool {
        false
    }

    /// Returns the number of partitions that are worth their threads, at most `target`.
    fn num_partitions(&self, _scan: &Scan, _target: usize) -> usize {
        1
    }

    /// Returns the mean bytes of a row, in the segment in which it is largest; 0 if rows are only
    /// some numbers and words.
    fn row_bytes(&self, _scan: &Scan) -> u64 {
        0
    }

    /// Returns the parts of segments that the function uses, if no filter needs text.
    fn uses(&self, _scan: &Scan) -> Uses {
        Uses::Positions
    }

    /// Returns true if rows that a device counted can be sent from any number of partitions.
    fn can_spread(&self) -> bool {
        false
    }

    /// Returns true if machines that each have the whole corpus can compute different rows: the function
    /// heeds [`Scan::share`], and shares ascend as rows do.
    fn has_shares(&self, _scan: &Scan) -> bool {
        false
    }

    /// Returns the way in which rows of portions are combined, if memory has no room for the
    /// corpus.
    fn merge(&self, _scan: &Scan) -> Merge {
        Merge::Never
    }

    /// Returns a plan that computes the rows of the whole corpus from `rows` of portions, for
    /// [`Merge::Combined`]. The plan has the columns that the scan uses.
    ///
    /// # Errors
    /// The errors of planning.
    fn combine(&self, _rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        not_impl_err!("{} of portions", self.signature().name)
    }

    /// Returns true if rows of [`combine`](Self::combine) with the same word become one row with
    /// the documents of all.
    fn joins_lists(&self) -> bool {
        false
    }

    /// Returns the function to ask about the portion with the documents `docs`.
    fn for_portion(&self, _docs: Range<u64>) -> OfPortion {
        OfPortion::Same
    }

    /// Returns the device task for a scan, or the reason for using no device.
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
    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>>;
}
