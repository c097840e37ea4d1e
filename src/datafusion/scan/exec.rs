//! The physical plan node of every table function.
//!
//! `execute` spawns one task per partition. The task loads the data that it needs, computes on a
//! blocking thread and sends batches through a channel that holds two. Dropping the stream closes
//! the channel, and the computation notices this at its next batch.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{
    DynamicFilterTracking, EquivalenceProperties, LexOrdering, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::{
    RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter,
};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};

use futures::FutureExt;

use crate::errors::mask_secrets;
use crate::plan_methods::leaf_methods;
use crate::scan::filter::{Stage, project_schema};
use crate::scan::function::TableFunction;
use crate::scan::output::Output;
use crate::scan::{Execution, Scan, Shared};
use crate::source::memory::MemoryWhenUsed;
use crate::source::{CorpusCache, OpenFile};

/// Bytes of a row of numbers and words, as operators store it.
const SHORT_ROW_BYTES: u64 = 64;

/// Plan node of a table function's scan. See the module's description.
#[derive(Debug)]
pub struct TadocExec {
    function: Arc<dyn TableFunction>,
    scan: Arc<Scan>,
    cache: Arc<CorpusCache>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    num_rows: Precision<usize>,
    metrics: ExecutionPlanMetricsSet,
    shared: Arc<Shared>,
}

impl TadocExec {
    pub(crate) fn try_new(
        function: Arc<dyn TableFunction>,
        scan: Scan,
        cache: Arc<CorpusCache>,
    ) -> Result<Self> {
        let schema = project_schema(&scan.schema, &scan.projection)?;
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&schema));
        let ordering = function.ordering(&scan).iter().map_while(|name| col(name, &schema).ok());
        let ordering = ordering.enumerate().map(|(at, expr)| {
            let descending = at == 0 && function.is_best_first();
            PhysicalSortExpr::new(expr, SortOptions { descending, nulls_first: true })
        });
        if let Some(ordering) = LexOrdering::new(ordering) {
            equivalence.add_ordering(ordering);
        }
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(scan.num_partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        let num_rows = limited(function.num_rows(&scan), scan.limit);
        let num_rows = match (scan.share.is_all(), scan.is_filtered()) {
            (true, false) => num_rows,
            (true, true) => num_rows.to_inexact(),
            (false, _) => num_rows.to_inexact().map(|rows| scan.share.part(rows).len()),
        };
        Ok(Self {
            function,
            scan: Arc::new(scan),
            cache,
            schema,
            properties: Arc::new(properties),
            num_rows,
            metrics: ExecutionPlanMetricsSet::new(),
            shared: Arc::new(Shared::default()),
        })
    }

    /// Returns the function and the scan.
    #[cfg(feature = "distributed")]
    pub(crate) fn parts(&self) -> (&Arc<dyn TableFunction>, &Scan) {
        (&self.function, &self.scan)
    }

    /// Returns a key that distinguishes its files from others.
    #[cfg(feature = "distributed")]
    pub(crate) fn files_key(&self) -> String {
        let keys: Vec<String> = self.scan.corpora().iter().map(OpenFile::key).collect();
        keys.join(", ")
    }

    /// Returns the bytes of text of its files.
    #[cfg(feature = "distributed")]
    pub(crate) fn text_bytes(&self) -> u64 {
        self.scan.len_bytes()
    }

    /// Returns an estimate of the number of rows.
    pub(crate) fn num_rows(&self) -> Precision<usize> {
        self.num_rows
    }

    /// Returns the number of documents in which few rows are likely to be found. Returns `None` if its
    /// rows may be many.
    pub(crate) fn docs_with_few(&self) -> Option<u64> {
        self.function.finds_few().then(|| self.scan.num_docs())
    }

    /// Returns the same node with `num_partitions` output partitions. Returns `None` unless a
    /// device counts all rows before the first is sent and the function can divide them.
    pub(crate) fn spread(&self, num_partitions: usize) -> Option<Self> {
        let is_done_first = self.scan.placement.is_on_device() && self.function.can_spread();
        if !is_done_first || self.scan.num_partitions > 1 {
            return None;
        }
        let scan = Scan { num_partitions, ..Scan::clone(&self.scan) };
        Self::try_new(Arc::clone(&self.function), scan, Arc::clone(&self.cache)).ok()
    }

    /// Returns the mean bytes of a row; 0 if rows are only some numbers and words.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.function.row_bytes(&self.scan)
    }

    /// Returns an estimate of the bytes of all rows.
    pub(crate) fn all_bytes(&self) -> u64 {
        let rows = self.num_rows.get_value().map(|&rows| rows as u64);
        match self.row_bytes() {
            0 => {
                rows.unwrap_or_else(|| self.scan.num_word_tokens()).saturating_mul(SHORT_ROW_BYTES)
            }
            row_bytes => rows.unwrap_or(0).saturating_mul(row_bytes).max(self.scan.len_bytes()),
        }
    }

    /// Returns the memory that the segments of each file need, with the file's key.
    pub(crate) fn memory_when_used(&self) -> impl Iterator<Item = (String, MemoryWhenUsed)> {
        let uses = self.function.uses(&self.scan);
        let of_file = move |open: &OpenFile| {
            (open.key(), MemoryWhenUsed::for_segments(&open.footer.segments, uses))
        };
        self.scan.corpora().iter().map(of_file)
    }

    /// Returns the facts that EXPLAIN shows, in order.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let scan = &self.scan;
        let mut facts = vec![("function", self.function.signature().name.to_string())];
        if let Some(first) = self.function.signature().arguments.first() {
            facts.push((first.name, mask_secrets(&scan.location)));
        }
        if let Some(view) = scan.living() {
            facts.push(("version", view.version.number.to_string()));
            facts.push(("edits", view.num_edits().to_string()));
        }
        facts.extend(self.function.arguments());
        match (scan.corpora(), scan.living()) {
            ([], None) => facts.push(("files", scan.files().len().to_string())),
            (files, _) => {
                let segments: usize = files.iter().map(|open| open.footer.segments.len()).sum();
                facts.push(("files", files.len().to_string()));
                facts.push(("segments", segments.to_string()));
            }
        }
        if !scan.share.is_all() {
            let (place, num_shares) = (scan.share.place() + 1, scan.share.num_shares());
            facts.push(("share", format!("{place} of {num_shares}")));
        }
        let names: Vec<&str> = self.schema.fields().iter().map(|f| f.name().as_str()).collect();
        facts.push(("projection", format!("[{}]", names.join(", "))));
        if let Some(stage) = &scan.columns_stage {
            facts.push(("column_filter", stage.shown.clone()));
        }
        for stage in &scan.dynamic_stages {
            facts.push(("dynamic_filter", stage.expr().to_string()));
        }
        if let Some(stage) = &scan.text_stage {
            facts.push(("text_filter", stage.shown.clone()));
            facts.push(("candidates", self.candidates()));
        }
        if let Some(limit) = scan.limit {
            facts.push(("limit", limit.to_string()));
        }
        facts.extend(self.function.explain(scan));
        facts
    }

    /// Returns true if the function can evaluate the filter `stage` before it makes rows.
    fn can_evaluate(&self, stage: &Stage) -> bool {
        let name = |&column: &usize| self.scan.schema.field(column).name().as_str();
        let mut names = stage.columns.iter().map(name);
        names.all(|name| self.function.claims_column(name) && !self.function.needs_text(name))
    }

    /// Describes how the documents for the text filter are chosen.
    fn candidates(&self) -> String {
        let shown = |patterns: &Vec<tadoc::query::TextPattern>| {
            let quoted = |p: &tadoc::query::TextPattern| {
                let parts: Vec<String> = p.fragments.iter().map(|f| format!("{f:?}")).collect();
                parts.join("..")
            };
            patterns.iter().map(quoted).collect::<Vec<_>>().join(" or ")
        };
        match self.scan.demands.as_slice() {
            [] => "all documents".into(),
            demands => {
                let all: Vec<String> = demands.iter().map(shown).collect();
                format!("documents that can spell {}", all.join(" and "))
            }
        }
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
        let facts = self.facts();
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                let facts: Vec<String> = facts.iter().map(|(k, v)| format!("{k}={v}")).collect();
                write!(f, "TadocExec: {}", facts.join(", "))
            }
            DisplayFormatType::TreeRender => {
                facts.iter().try_for_each(|(key, value)| writeln!(f, "{key}={value}"))
            }
        }
    }
}

impl ExecutionPlan for TadocExec {
    leaf_methods!("TadocExec");

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for stage in self.scan.stages() {
            recursion = f(stage.expr())?;
            if recursion == TreeNodeRecursion::Stop {
                break;
            }
        }
        Ok(recursion)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition >= self.scan.num_partitions {
            return internal_err!("TadocExec has no partition {partition}");
        }
        self.scan.placement.check()?;
        if partition == 0 {
            self.scan.placement.begin(&self.scan.devices);
        }
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), 2);
        let output = Output::new(
            builder.tx(),
            Arc::clone(&self.schema),
            context.session_config().batch_size(),
            self.scan.limit,
            BaselineMetrics::new(&self.metrics, partition),
        );
        let shared = match self.scan.num_partitions {
            // The state is dropped with the run. The plan would keep the corpus of each portion in
            // memory.
            1 => Arc::default(),
            _ => Arc::clone(&self.shared),
        };
        let run = Execution {
            scan: Arc::clone(&self.scan),
            shared,
            partition,
            runtime: context.runtime_env(),
            cache: Arc::clone(&self.cache),
            metrics: self.metrics.clone(),
            output,
            loaded: OnceLock::new(),
        };
        let function = Arc::clone(&self.function);
        // The task starts when the first rows are requested: the build side of a join above has
        // been read by then, and its dynamic filter is known.
        let started = async move {
            builder.spawn(function.run(run));
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
        if phase != FilterPushdownPhase::Post {
            return Ok(FilterPushdownPropagation::all_unsupported(result));
        }
        let filters = result.parent_filters.iter().map(|parent| &parent.filter);
        let is_dynamic = |filter: &&Arc<dyn PhysicalExpr>| {
            DynamicFilterTracking::classify(filter).contains_dynamic_filter()
        };
        let mut scan = Scan::clone(&self.scan);
        for filter in filters.filter(is_dynamic) {
            let stage = Stage::pushed(&scan.schema, &scan.projection, filter)?;
            if self.can_evaluate(&stage) {
                scan.dynamic_stages.push(stage);
            }
        }
        // The node that made the filter still applies it: rows that were sent before the filter was
        // complete have not been filtered.
        let pushed = FilterPushdownPropagation::all_unsupported(result);
        if scan.dynamic_stages.len() == self.scan.dynamic_stages.len() {
            return Ok(pushed);
        }
        scan.placement = scan.placement.for_part();
        let exec = Self::try_new(Arc::clone(&self.function), scan, Arc::clone(&self.cache))?;
        Ok(pushed.with_updated_node(Arc::new(exec)))
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
        if args.partition().is_none() || self.scan.num_partitions == 1 {
            statistics.num_rows = self.num_rows;
        }
        Ok(Arc::new(statistics))
    }

    fn fetch(&self) -> Option<usize> {
        self.scan.limit
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let mut scan = Scan { limit, ..Scan::clone(&self.scan) };
        if limit.is_some() {
            scan.placement = scan.placement.for_part();
        }
        let exec = Self::try_new(Arc::clone(&self.function), scan, Arc::clone(&self.cache)).ok()?;
        Some(Arc::new(exec))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        // A recursive query runs a part of its plan again. What filters have learned of the rows of one round
        // is wrong in the next.
        let scan = Scan { dynamic_stages: Vec::new(), ..Scan::clone(&self.scan) };
        Ok(Arc::new(Self::try_new(Arc::clone(&self.function), scan, Arc::clone(&self.cache))?))
    }
}
