//! The plan node that reads runs of segments side by side, on one machine or on several.
//!
//! ```text
//! segments    0 1 │ 2 │ 3 4 │ 5 │ 6 7 │ 8      runs: no document is cut between two
//! machine 0   0 1 │ 2 │ 3 4                    partition 0: 0 1, then 2; partition 1: 3 4
//! machine 1                 5 │ 6 7 │ 8        partition 0: 5, then 6 7; partition 1: 8
//! ```
//!
//! The node is a leaf, so that an engine that spreads leaves can divide the runs ([`RunsExec::share`]).
//! Each partition reads its runs one after another. The rows of a partition ascend by document if
//! those of a run do.
//!
//! Dynamic filters, of a join or of `ORDER BY … LIMIT`, are passed to each run, and a run that begins
//! later sees more of them. They travel with the plan of a task and are filled in there. So they work
//! where the node that fills them in is in the stage of the scan: a join with a small side, which all
//! tasks get whole. In another stage they stay true. For the planner to see a small side, the node sums
//! up the rows of its runs, and guesses those of searches.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, col, lit};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use datafusion::prelude::SessionConfig;
use futures::{StreamExt, TryStreamExt, stream};

use super::exec::{DOC_ID, labelled};
use crate::plan_methods::leaf_methods;
use crate::planning::TadocExec;

/// Documents for each row that a search is guessed to find.
const DOCS_FOR_A_ROW: usize = 8;
/// Most rows that a search is guessed to find: so few that all workers may get them.
const MAX_GUESS: usize = 10_000;

/// The number of machines that answer statements together. In a session whose configuration holds it as
/// an extension, scans are cut into runs of segments, which an engine can divide between machines.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::prelude::*;
/// use datafusion_tadoc::Spreading;
///
/// let config = SessionConfig::new().with_extension(Arc::new(Spreading { num_workers: 2 }));
/// # drop(config);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Spreading {
    /// Number of machines; 0 if an engine divides partitions between machines that it does not tell.
    pub num_workers: usize,
}

/// Returns the number of machines of a session, if it has several.
pub(crate) fn spreading_of(config: &SessionConfig) -> Option<Spreading> {
    config.get_extension::<Spreading>().map(|spreading| *spreading)
}

/// A run of segments that no document border cuts.
#[derive(Debug, Clone)]
pub struct Run {
    /// Scan of the run as if it were the corpus, with one partition.
    pub scan: Arc<dyn ExecutionPlan>,
    /// Number that is added to its document ids.
    pub first_doc_id: u64,
}

/// Plan node that returns the rows of runs of segments. See the module's description.
#[derive(Debug)]
pub struct RunsExec {
    /// Runs in order of their documents.
    pub runs: Vec<Run>,
    /// Columns by which each partition is ordered, ascending.
    pub ordering: Vec<String>,
    /// Most machines that read the runs.
    pub most_workers: usize,
    /// True if one process is faster once it has the corpus open.
    is_faster_here: bool,
    /// Times with and without workers, for EXPLAIN.
    times: Option<String>,
    properties: Arc<PlanProperties>,
}

impl RunsExec {
    /// Builds a node that returns the rows of `runs` in `num_partitions` partitions. Runs have the
    /// columns of `schema`. Each is ordered by the columns `ordering`, up to the first one that
    /// `schema` lacks.
    pub fn new(runs: Vec<Run>, num_partitions: usize, schema: SchemaRef, ordering: &[impl AsRef<str>]) -> Self {
        let names = ordering.iter().map(AsRef::as_ref);
        let ordering: Vec<String> = names.take_while(|name| schema.index_of(name).is_ok()).map(str::to_owned).collect();
        let sorted = ordering.iter().filter_map(|name| col(name, &schema).ok());
        let sorted = sorted.map(|expr| PhysicalSortExpr::new(expr, SortOptions::default()));
        let sorted = LexOrdering::new(sorted);
        let mut equivalence = EquivalenceProperties::new(schema);
        if let Some(sorted) = sorted {
            equivalence.add_ordering(sorted);
        }
        let properties = Arc::new(PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(num_partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Self { runs, ordering, most_workers: usize::MAX, is_faster_here: false, times: None, properties }
    }

    /// Returns the node for at most `most_workers` machines, which are slower than one process that has the corpus open
    /// if `is_faster_here`.
    pub(super) fn for_workers(self, most_workers: usize, is_faster_here: bool) -> Self {
        Self { most_workers, is_faster_here, ..self }
    }

    /// Notes in the session that workers are asked for the runs, where one process with the corpus open is faster. So the
    /// next such statement opens it.
    pub fn note_asked(&self) {
        let scans = self.runs.iter().filter_map(|run| run.scan.downcast_ref::<TadocExec>());
        scans.filter(|_| self.is_faster_here).for_each(TadocExec::note_asked);
    }

    /// Returns the node with `times` that EXPLAIN shows, or with none.
    #[must_use]
    pub fn with_times(self, times: Option<String>) -> Self {
        Self { times, ..self }
    }

    /// Returns the number of partitions.
    pub fn num_partitions(&self) -> usize {
        self.properties.partitioning.partition_count()
    }

    /// Returns the node with only the runs at `places`, ascending. Runs that pack their rows become one, so that
    /// the machine adds up what it can before it sends rows.
    ///
    /// # Errors
    /// The errors of planning a scan.
    pub fn share(&self, places: &[usize]) -> Result<Self> {
        let runs: Vec<Run> = places.iter().filter_map(|&place| self.runs.get(place).cloned()).collect();
        let scans = runs.iter().map(|run| run.scan.downcast_ref::<TadocExec>());
        let scans: Vec<&TadocExec> = scans.collect::<Option<_>>().unwrap_or_default();
        match TadocExec::joined(&scans)? {
            Some(joined) => Ok(self.with_runs(vec![Run { scan: Arc::new(joined), first_doc_id: 0 }])),
            None => Ok(self.with_runs(runs)),
        }
    }

    /// Returns the node with other scans of its runs.
    fn with_runs(&self, runs: Vec<Run>) -> Self {
        let other = Self::new(runs, self.num_partitions(), self.schema(), &self.ordering);
        other.for_workers(self.most_workers, self.is_faster_here).with_times(self.times.clone())
    }

    /// Returns an estimate of the number of rows, and a guess for a search.
    fn num_rows(&self) -> Precision<usize> {
        let scans = self.runs.iter().map(|run| run.scan.downcast_ref::<TadocExec>());
        let Some(scans) = scans.collect::<Option<Vec<_>>>() else { return Precision::Absent };
        let docs_with_few: Option<u64> = scans.iter().map(|scan| scan.docs_with_few()).sum();
        match docs_with_few {
            Some(num_docs) => {
                let guess = usize::try_from(num_docs).unwrap_or(usize::MAX) / DOCS_FOR_A_ROW;
                Precision::Inexact(guess.clamp(1, MAX_GUESS))
            }
            None => {
                let num_rows = scans.iter().map(|scan| scan.num_rows());
                num_rows.reduce(|sum, rows| sum.add(&rows)).unwrap_or(Precision::Absent)
            }
        }
    }

    /// Returns the runs of a partition. Partitions have equal numbers of runs, in order.
    fn runs_of(&self, partition: usize) -> &[Run] {
        let end = |partition: usize| self.runs.len() * partition / self.num_partitions();
        &self.runs[end(partition)..end(partition + 1)]
    }
}

/// Rewrites `filter` on ids of the whole corpus into one on ids of a run, which count from
/// `first_doc_id`.
fn for_ids(filter: Arc<dyn PhysicalExpr>, first_doc_id: u64) -> Result<Arc<dyn PhysicalExpr>> {
    let shift = |part: Arc<dyn PhysicalExpr>| {
        let is_id = part.downcast_ref::<Column>().is_some_and(|column| column.name() == DOC_ID);
        if !is_id || first_doc_id == 0 {
            return Ok(Transformed::no(part));
        }
        let shifted = BinaryExpr::new(part, Operator::Plus, lit(first_doc_id as i64));
        Ok(Transformed::yes(Arc::new(shifted) as Arc<dyn PhysicalExpr>))
    };
    filter.transform_up(shift).data()
}

impl DisplayAs for RunsExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let num_runs = self.runs.len();
        match (format, self.runs.first()) {
            (DisplayFormatType::TreeRender, _) => writeln!(f, "runs={num_runs}"),
            (_, None) => write!(f, "TadocRunsExec: runs=0"),
            (_, Some(first)) => {
                write!(f, "TadocRunsExec: runs={num_runs}, ")?;
                if let Some(times) = &self.times {
                    write!(f, "workers={times}, ")?;
                }
                write!(f, "first: ")?;
                first.scan.fmt_as(format, f)
            }
        }
    }
}

impl ExecutionPlan for RunsExec {
    leaf_methods!("TadocRunsExec");

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for run in &self.runs {
            recursion = run.scan.apply_expressions(f)?;
            if recursion == TreeNodeRecursion::Stop {
                break;
            }
        }
        Ok(recursion)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition >= self.num_partitions() {
            return internal_err!("TadocRunsExec has no partition {partition}");
        }
        let schema = self.schema();
        let labels = Arc::clone(&schema);
        let streams = self.runs_of(partition).to_vec().into_iter().map(move |run| {
            let rows = run.scan.execute(0, Arc::clone(&context))?;
            let labels = Arc::clone(&labels);
            let first_doc_id = run.first_doc_id;
            Ok::<_, DataFusionError>(rows.map(move |batch| labelled(batch?, &labels, first_doc_id)))
        });
        let rows = stream::iter(streams).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let mut is_narrower = false;
        let narrowed = |run: &Run| {
            let mut run_result = result.clone();
            for parent in &mut run_result.parent_filters {
                parent.filter = for_ids(Arc::clone(&parent.filter), run.first_doc_id)?;
            }
            let passed = run.scan.handle_child_pushdown_result(phase, run_result, config)?;
            is_narrower |= passed.updated_node.is_some();
            let scan = passed.updated_node.unwrap_or_else(|| Arc::clone(&run.scan));
            Ok::<_, DataFusionError>(Run { scan, first_doc_id: run.first_doc_id })
        };
        let runs = self.runs.iter().map(narrowed).collect::<Result<Vec<_>>>()?;
        // Scans leave these filters to the nodes that made them.
        let passed = FilterPushdownPropagation::all_unsupported(result);
        if is_narrower { Ok(passed.with_updated_node(Arc::new(self.with_runs(runs)))) } else { Ok(passed) }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let mut all = MetricsSet::new();
        let run_metrics = self.runs.iter().filter_map(|run| run.scan.metrics());
        run_metrics.for_each(|metrics| metrics.iter().for_each(|metric| all.push(Arc::clone(metric))));
        Some(all.aggregate_by_name())
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        if args.partition().is_none() {
            statistics.num_rows = self.num_rows();
        }
        Ok(Arc::new(statistics))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let reset = |run: &Run| {
            let scan = Arc::clone(&run.scan).reset_state()?;
            Ok::<_, DataFusionError>(Run { scan, first_doc_id: run.first_doc_id })
        };
        let runs = self.runs.iter().map(reset).collect::<Result<_>>()?;
        Ok(Arc::new(self.with_runs(runs)))
    }
}
