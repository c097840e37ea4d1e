//! The trait that every table function implements.
//!
//! ```text
//! bind      arguments            no input or output: the query is planned
//! prepare   ScanSpec ─▶ Prepared once a scan: files and footers are known; the rest is refused here
//! facts     ScanSpec ─▶ Facts    order, memory, partitions, device, portions, EXPLAIN
//! run       Execution ─▶ rows    once a partition
//! ```

use std::any::Any;
use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{internal_datafusion_err, not_impl_err};
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use futures::future::BoxFuture;

use crate::corpora::memory::Uses;
use crate::placement::Task;
use crate::planning::arguments::Arguments;
use crate::planning::signature::{Columns, Signature};
use crate::planning::{Execution, ScanSpec};
use tadoc::analytics::{MergedRows, Traversal, TraversalTask};
use tadoc::format::SegmentMeta;

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
    /// The same, and rows with the same word become one row with the documents of all.
    JoinedLists,
    /// Concatenation as [`Merge::Behind`], of scans that are told a number of each word
    /// ([`TableFunction::word_numbers`]).
    Numbered,
}

/// The function that is asked about a portion.
#[derive(Debug)]
pub enum OfPortion {
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
        if docs.contains(&doc_id) { Self::Other(Arc::new(of_document(doc_id - docs.start))) } else { Self::Nothing }
    }
}

/// Access to the rows of functions over all portions, for plans.
pub trait PortionRows {
    /// Returns the scan of the whole corpus.
    fn scan(&self) -> &ScanSpec;

    /// Returns `columns` of the rows of `function` in all portions, in order of the portions, as a
    /// table with the function's name.
    ///
    /// # Errors
    /// The errors of planning a scan.
    fn for_all(&self, function: Arc<dyn TableFunction>, columns: &[&str]) -> Result<LogicalPlanBuilder>;

    /// Returns the same rows as [`for_all`](Self::for_all), for documents that pass the filters on
    /// `doc_id`.
    ///
    /// # Errors
    /// The errors of [`for_all`](Self::for_all).
    fn for_documents(&self, function: Arc<dyn TableFunction>, columns: &[&str]) -> Result<LogicalPlanBuilder>;

    /// Returns the words of `function`, one row for each, and their `column`, added up over all portions.
    ///
    /// # Errors
    /// The errors of [`for_all`](Self::for_all).
    fn for_words(&self, function: Arc<dyn TableFunction>, column: &str) -> Result<LogicalPlanBuilder>;
}

/// The kind of files that a function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
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

/// Parts of a computation that are known once a scan is prepared.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Columns by which every partition is sorted, ascending.
    pub(crate) ordering: &'static [&'static str],
    /// True if the first column of the order descends instead.
    pub(crate) is_best_first: bool,
    /// Parts of segments that the function uses, if no filter needs text.
    pub(crate) uses: Uses,
    /// Number of rows without filter and limit.
    pub(crate) num_rows: Precision<usize>,
    /// Mean bytes of a row, in the segment in which it is largest; 0 if rows are only some numbers and
    /// words.
    pub(crate) row_bytes: u64,
    /// Partitions that are worth their threads.
    pub(crate) num_partitions: usize,
    /// True if few rows are likely, in few documents. In sessions with workers this decides which side
    /// of a join all workers get.
    pub(crate) finds_few: bool,
    /// True if rows that a device counted can be sent from any number of partitions.
    pub(crate) can_spread: bool,
    /// Description of the rows that the function packs for other machines: it heeds
    /// [`ScanSpec::parcels`]. `None` if it packs none.
    pub(crate) parcels: Option<ParcelRows>,
    /// The way in which rows of portions are combined, if memory has no room for the corpus.
    pub(crate) merge: Merge,
    /// True if rows have values of user columns under other names than theirs. Values that edits set are
    /// not part of portions.
    pub(crate) reads_user_columns: bool,
    /// The device task, or the reason for using no device. `None` if nothing is computed that a device
    /// could compute.
    pub(crate) task: Option<DeviceTask>,
    /// Facts about the computation, for EXPLAIN, before the device and the traversal.
    pub(crate) explain: Vec<(&'static str, String)>,
    pub(crate) walk: Option<Walk>,
}

/// Rows that a function packs for other machines, for estimates.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParcelRows {
    /// The words of dictionaries, with numbers that are kept.
    Words,
    /// The rows of a task with windows of so many words.
    Task(TraversalTask, usize),
}

/// A task for a device, or the reason for using none.
pub(crate) type DeviceTask = std::result::Result<Task, &'static str>;

/// The work of a function that devices have no kernel for.
pub(crate) const NO_KERNEL: Option<DeviceTask> = Some(Err("there is no kernel for this function"));

impl Default for Facts {
    fn default() -> Self {
        Self {
            ordering: &[],
            is_best_first: false,
            uses: Uses::Positions,
            num_rows: Precision::Absent,
            row_bytes: 0,
            num_partitions: 1,
            finds_few: false,
            can_spread: false,
            parcels: None,
            merge: Merge::Never,
            reads_user_columns: false,
            task: None,
            explain: Vec::new(),
            walk: None,
        }
    }
}

/// The traversal that answers, for EXPLAIN.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Walk {
    /// The only one.
    Only(&'static str),
    /// A choice for each segment, with its reason.
    ForSegments(fn(&SegmentMeta) -> (Traversal, String)),
    /// A choice for all segments, for sequences of so many words.
    ForSequences(TraversalTask, usize),
}

/// State that a function makes once for a scan: a parsed query, for example. All partitions and portions
/// share it.
#[derive(Clone, Default)]
pub struct Prepared(Option<Arc<dyn Any + Send + Sync>>);

impl Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Prepared(state)" } else { "Prepared(nothing)" })
    }
}

impl Prepared {
    /// Returns `state` for [`get`](Self::get).
    pub(crate) fn new<T: Send + Sync + 'static>(state: T) -> Self {
        Self(Some(Arc::new(state)))
    }

    /// Returns the state.
    ///
    /// # Errors
    /// An internal error if the function prepared something else.
    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Result<Arc<T>> {
        let state = self.0.clone().and_then(|any| any.downcast::<T>().ok());
        let name = std::any::type_name::<T>();
        state.ok_or_else(|| internal_datafusion_err!("the scan was prepared without {name}"))
    }
}

/// A table function that is bound to the arguments of a call.
pub type BoundFunction = Arc<dyn TableFunction>;

/// A table function bound to its arguments.
pub trait TableFunction: Debug + Send + Sync + 'static {
    /// Returns the function's signature.
    fn signature(&self) -> &'static Signature;

    /// Returns the columns of the bound function.
    fn columns(&self) -> Columns {
        Columns::from_signature(self.signature())
    }

    /// Returns the kind of files that the function reads.
    fn reads(&self) -> Reads {
        Reads::Corpora
    }

    /// Returns the arguments after the location, for EXPLAIN.
    fn arguments(&self) -> Vec<(&'static str, String)> {
        vec![]
    }

    /// Checks the arguments against the footers, and returns what the other methods need for `scan`.
    ///
    /// # Errors
    /// A plan error.
    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        Ok(Prepared::default())
    }

    /// Returns the facts about `scan`, for which the function prepared `prepared`.
    fn facts(&self, _scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        Facts::default()
    }

    /// Returns a plan that computes the rows of the whole corpus from `rows` of portions, for
    /// [`Merge::Combined`]. The plan has the columns that the scan uses.
    ///
    /// # Errors
    /// The errors of planning.
    fn combine(&self, _rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        not_impl_err!("{} of portions", self.signature().name)
    }

    /// Returns a plan of each word of the corpus and its number, from `rows` of portions, for
    /// [`Merge::Numbered`].
    ///
    /// # Errors
    /// The errors of planning.
    fn word_numbers(&self, _rows: &dyn PortionRows) -> Result<LogicalPlanBuilder> {
        not_impl_err!("numbers of the words of {}", self.signature().name)
    }

    /// Returns the function to ask about the portion with the documents `docs`. It shares what this one
    /// prepared.
    fn for_portion(&self, _docs: Range<u64>) -> OfPortion {
        OfPortion::Same
    }

    /// Returns the number of words of rows that are packed for other machines. `None` if the function packs
    /// none.
    fn merged_words(&self) -> Option<usize> {
        None
    }

    /// Returns the function whose column `word` has all words of packed rows, in their order. `None` if the function packs
    /// no rows of sequences or lists.
    fn words_of_rows(&self) -> Option<BoundFunction> {
        None
    }

    /// Returns the least count of a merged row.
    fn least_count(&self) -> u64 {
        1
    }

    /// Returns the column `name` of those of the merged `rows` that are at `places`. `words` are the texts of
    /// their words.
    ///
    /// # Errors
    /// An internal error if there is no such column.
    fn merged_column(
        &self,
        name: &str,
        _words: &StringViewArray,
        _rows: &MergedRows,
        _places: &[usize],
    ) -> Result<ArrayRef> {
        not_impl_err!("{} of merged rows of {}", name, self.signature().name)
    }

    /// Sends the rows of one partition.
    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>>;
}
