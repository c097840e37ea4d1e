//! The physical plan node of every table function, and the rule that spreads its rows.
//!
//! `execute` spawns one task per partition. The task loads the data that it needs, computes on a
//! blocking thread and sends batches through a channel that holds two. Dropping the stream closes
//! the channel, and the computation notices this at its next batch.
//!
//! Rows of a device are sent from as many partitions as the plan above reads ([`SpreadRows`]):
//!
//! ```text
//! AggregateExec: mode=Partial                         AggregateExec: mode=Partial
//!   RepartitionExec: RoundRobinBatch(16)     ──▶        TadocExec, 16 partitions
//!     TadocExec, 1 partition
//! ```
//!
//! All rows are in host memory at that time. So each partition makes the texts of its own rows, and
//! no batch is passed from one partition to another. If the plan needs the order of rows, it has no
//! such node, and the rule changes nothing.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{DynamicFilterTracking, EquivalenceProperties, LexOrdering, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::filter_pushdown::{ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use datafusion::prelude::SessionConfig;
use futures::FutureExt;
use tracing::Instrument;

use crate::corpora::memory::MemoryWhenUsed;
use crate::corpora::{CorpusCache, OpenFile, Source};
use crate::errors::mask_secrets;
use crate::placement::DeviceSession;
use crate::plan_methods::leaf_methods;
use crate::planning::filter::Stage;
use crate::planning::output::Output;
use crate::planning::parcels::Parcels;
use crate::planning::portions::{shape_of, work_ns};
use crate::planning::signature::Claim;
use crate::planning::{Execution, ScanPlan, ScanSpec, Shared};

/// Bytes of a row of numbers and words, as operators store it.
const SHORT_ROW_BYTES: u64 = 64;

/// Plan node of a table function's scan. See the module's description.
#[derive(Debug)]
pub struct TadocExec {
    plan: Arc<ScanPlan>,
    cache: Arc<CorpusCache>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    num_rows: Precision<usize>,
    metrics: ExecutionPlanMetricsSet,
    shared: Arc<Shared>,
}

impl TadocExec {
    /// Builds the node of `plan`.
    ///
    /// # Errors
    /// An error if the scan returns a column that its function lacks.
    pub(crate) fn try_new(plan: ScanPlan, cache: Arc<CorpusCache>) -> Result<Self> {
        let spec = &plan.spec;
        let facts = &plan.facts;
        let schema = spec.projected_schema()?;
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&schema));
        let ordering = facts.ordering.iter().map_while(|name| col(name, &schema).ok());
        let ordering = ordering.enumerate().map(|(at, expr)| {
            let descending = at == 0 && facts.is_best_first;
            PhysicalSortExpr::new(expr, SortOptions { descending, nulls_first: true })
        });
        if let Some(ordering) = LexOrdering::new(ordering) {
            equivalence.add_ordering(ordering);
        }
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(plan.num_partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        let num_rows = limited(facts.num_rows, spec.limit);
        let num_rows = match (&spec.parcels, spec.is_filtered()) {
            (Some(_), _) => Precision::Absent,
            (None, true) => num_rows.to_inexact(),
            (None, false) => num_rows,
        };
        Ok(Self {
            plan: Arc::new(plan),
            cache,
            schema,
            properties: Arc::new(properties),
            num_rows,
            metrics: ExecutionPlanMetricsSet::new(),
            shared: Arc::new(Shared::default()),
        })
    }

    /// Builds the node of the scan `spec` that another session planned, in `num_partitions` partitions. It chooses
    /// anew between cores and devices. Returns `None` if the scan packs the rows of a function that does not.
    ///
    /// # Errors
    /// The errors of planning a scan.
    pub fn planned_again(
        spec: ScanSpec,
        num_partitions: usize,
        cache: Arc<CorpusCache>,
        config: &SessionConfig,
    ) -> Result<Option<Self>> {
        let prepared = spec.function.prepare(&spec)?;
        let facts = spec.function.facts(&spec, &prepared);
        if spec.parcels.is_some() && facts.parcels.is_none() {
            return Ok(None);
        }
        let loaded = cache.loaded(&spec.source);
        let is_part = !spec.filters.dynamic.is_empty() || spec.limit.is_some();
        let devices = DeviceSession::from_config(config);
        let plan = ScanPlan::new(spec, prepared, facts, devices, loaded.as_deref(), 1).with_partitions(num_partitions);
        Self::try_new(if is_part { plan.for_part() } else { plan }, cache).map(Some)
    }

    /// Returns the scan that the node runs.
    pub fn spec(&self) -> &ScanSpec {
        &self.plan.spec
    }

    /// Returns a key that distinguishes its files from others.
    pub fn files_key(&self) -> String {
        let keys: Vec<String> = self.plan.spec.corpora().iter().map(OpenFile::key).collect();
        keys.join(", ")
    }

    /// Notes in the session that a worker is asked for its rows.
    pub(crate) fn note_asked(&self) {
        self.cache.note_asked_elsewhere(self.plan.spec.corpora());
    }

    /// Returns its estimated work, in nanoseconds of one core: by elements of its grammars, or by bytes of its texts.
    /// All its segments are open, or none is.
    pub fn work_ns(&self, are_open: bool) -> u64 {
        work_ns(shape_of(self.plan.spec.corpora()), &self.plan.facts, are_open) as u64
    }

    /// Returns an estimate of the number of rows.
    pub fn num_rows(&self) -> Precision<usize> {
        self.num_rows
    }

    /// Returns the number of documents in which few rows are likely to be found. Returns `None` if its
    /// rows may be many.
    pub(crate) fn docs_with_few(&self) -> Option<u64> {
        self.plan.facts.finds_few.then(|| self.plan.spec.num_docs())
    }

    /// Returns the same node with `num_partitions` output partitions. Returns `None` unless a
    /// device counts all rows before the first is sent and the function can divide them.
    pub(crate) fn spread(&self, num_partitions: usize) -> Option<Self> {
        let plan = &self.plan;
        let is_done_first = plan.placement.is_on_device() && plan.facts.can_spread;
        if !is_done_first || plan.num_partitions > 1 {
            return None;
        }
        Self::try_new(plan.with_partitions(num_partitions), Arc::clone(&self.cache)).ok()
    }

    /// Returns the mean bytes of a row; 0 if rows are only some numbers and words.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.plan.facts.row_bytes
    }

    /// Returns an estimate of the bytes of all rows.
    pub(crate) fn all_bytes(&self) -> u64 {
        let rows = self.num_rows.get_value().map(|&rows| rows as u64);
        match self.row_bytes() {
            0 => rows.unwrap_or_else(|| self.plan.spec.num_word_tokens()).saturating_mul(SHORT_ROW_BYTES),
            row_bytes => rows.unwrap_or(0).saturating_mul(row_bytes).max(self.plan.spec.len_bytes()),
        }
    }

    /// Returns the memory that the segments of each file need, with the file's key.
    pub(crate) fn memory_when_used(&self) -> impl Iterator<Item = (String, MemoryWhenUsed)> {
        let uses = self.plan.facts.uses;
        let file_memory =
            move |open: &OpenFile| (open.key(), MemoryWhenUsed::for_segments(&open.footer.segments, uses));
        self.plan.spec.corpora().iter().map(file_memory)
    }

    /// Returns the scan of the files of all `scans`, which pack their rows, in this order. Returns `None` if
    /// there are none, or if one of them is no such scan.
    ///
    /// # Errors
    /// The errors of planning a scan.
    pub(crate) fn joined(scans: &[&Self]) -> Result<Option<Self>> {
        let Some(first) = scans.first() else { return Ok(None) };
        let mut files = Vec::new();
        let mut first_doc_ids = Vec::new();
        for scan in scans {
            let Some(parcels) = &scan.spec().parcels else { return Ok(None) };
            first_doc_ids.extend_from_slice(&parcels.first_doc_ids);
            files.extend_from_slice(scan.spec().corpora());
        }
        let Some(of_first) = first.spec().parcels.as_deref() else { return Ok(None) };
        let parcels = Parcels { first_doc_ids, ..of_first.clone() };
        let spec = ScanSpec {
            parcels: Some(Arc::new(parcels)),
            numbered_by: first.spec().numbered_by.clone(),
            ..first.spec().with_source(Source::Corpora(files))
        };
        let prepared = first.plan.prepared.clone();
        let devices = Arc::clone(&first.plan.devices);
        let facts = spec.function.facts(&spec, &prepared);
        let plan = ScanPlan::new(spec, prepared, facts, devices, None, 1);
        Self::try_new(plan, Arc::clone(&first.cache)).map(Some)
    }
}

impl ScanSpec {
    /// Returns the dynamic filters among those of `result` that the scan can evaluate before it makes rows.
    pub(crate) fn pushed(&self, phase: FilterPushdownPhase, result: &ChildPushdownResult) -> Result<Vec<Stage>> {
        let mut stages = Vec::new();
        if phase != FilterPushdownPhase::Post {
            return Ok(stages);
        }
        let columns = self.function.columns();
        let is_claimed = |&column: &usize| columns.claim(self.schema.field(column).name()) == Claim::Early;
        for parent in &result.parent_filters {
            if !DynamicFilterTracking::classify(&parent.filter).contains_dynamic_filter() {
                continue;
            }
            let stage = Stage::pushed(&self.schema, &self.projection, &parent.filter)?;
            if stage.columns.iter().all(is_claimed) {
                stages.push(stage);
            }
        }
        Ok(stages)
    }
}

fn limited(rows: Precision<usize>, limit: Option<usize>) -> Precision<usize> {
    match (rows, limit) {
        (Precision::Exact(rows), Some(limit)) => Precision::Exact(rows.min(limit)),
        (Precision::Inexact(rows), Some(limit)) => Precision::Inexact(rows.min(limit)),
        (Precision::Absent, Some(limit)) => Precision::Inexact(limit),
        (rows, None) => rows,
    }
}

impl DisplayAs for TadocExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = self.plan.explain();
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                let facts: Vec<String> = facts.iter().map(|(k, v)| format!("{k}={v}")).collect();
                write!(f, "TadocExec: {}", facts.join(", "))
            }
            DisplayFormatType::TreeRender => facts.iter().try_for_each(|(key, value)| writeln!(f, "{key}={value}")),
        }
    }
}

impl ExecutionPlan for TadocExec {
    leaf_methods!("TadocExec");

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.plan.spec.filters.apply_expressions(f)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition >= self.plan.num_partitions {
            return internal_err!("TadocExec has no partition {partition}");
        }
        self.plan.placement.check()?;
        if partition == 0 {
            self.plan.placement.begin(&self.plan.devices);
        }
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), 2);
        let output = Output::new(
            builder.tx(),
            Arc::clone(&self.schema),
            context.session_config().batch_size(),
            self.plan.spec.limit,
            BaselineMetrics::new(&self.metrics, partition),
        );
        let shared = match self.plan.num_partitions {
            // The state is dropped with the run. The plan would keep the corpus of each portion in
            // memory.
            1 => Arc::default(),
            _ => Arc::clone(&self.shared),
        };
        let run = Execution {
            plan: Arc::clone(&self.plan),
            scan: Arc::clone(&self.plan.spec),
            shared,
            partition,
            runtime: context.runtime_env(),
            cache: Arc::clone(&self.cache),
            metrics: self.metrics.clone(),
            output,
            loaded: OnceLock::new(),
            numbers: context.session_config().get_extension(),
            common: OnceLock::new(),
        };
        let function = Arc::clone(&self.plan.spec.function);
        let corpus = mask_secrets(&self.plan.spec.location);
        let name = function.signature().name;
        // The task starts when the first rows are requested: the build side of a join above has
        // been read by then, and its dynamic filter is known.
        let started = async move {
            let span = tracing::info_span!("tadoc_scan", function = name, %corpus, partition);
            builder.spawn(function.run(run).instrument(span));
            builder.build()
        };
        let schema = Arc::clone(&self.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, started.flatten_stream())))
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let new = self.plan.spec.pushed(phase, &result)?;
        // The node that made the filter still applies it: rows that were sent before the filter was
        // complete have not been filtered.
        let pushed = FilterPushdownPropagation::all_unsupported(result);
        if new.is_empty() {
            return Ok(pushed);
        }
        let known = self.plan.spec.filters.dynamic.iter().cloned();
        let plan = self.plan.with_dynamic(known.chain(new).collect());
        Ok(pushed.with_updated_node(Arc::new(Self::try_new(plan, Arc::clone(&self.cache))?)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if args.partition().is_none() || self.plan.num_partitions == 1 {
            statistics.num_rows = self.num_rows;
        }
        Ok(Arc::new(statistics))
    }

    fn fetch(&self) -> Option<usize> {
        self.plan.spec.limit
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let exec = Self::try_new(self.plan.with_limit(limit), Arc::clone(&self.cache)).ok()?;
        Some(Arc::new(exec))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        // A recursive query runs a part of its plan again. What filters have learned of the rows of one round
        // is wrong in the next.
        Ok(Arc::new(Self::try_new(self.plan.without_dynamic(), Arc::clone(&self.cache))?))
    }
}

/// Optimizer rule that removes the node that distributes rows of a device over partitions.
#[derive(Debug, Default)]
pub(crate) struct SpreadRows;

impl PhysicalOptimizerRule for SpreadRows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let spread = |plan: Arc<dyn ExecutionPlan>| {
            Ok(match spread(plan.as_ref()) {
                Some(exec) => Transformed::yes(Arc::new(exec) as _),
                None => Transformed::no(plan),
            })
        };
        plan.transform_up(spread).data()
    }

    fn name(&self) -> &str {
        "tadoc_spread_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn spread(plan: &dyn ExecutionPlan) -> Option<TadocExec> {
    let dealt = plan.downcast_ref::<RepartitionExec>()?;
    match *dealt.partitioning() {
        Partitioning::RoundRobinBatch(num_partitions) => {
            dealt.input().downcast_ref::<TadocExec>()?.spread(num_partitions)
        }
        _ => None,
    }
}
