//! The plan node that merges the rows which machines have packed.
//!
//! ```text
//! machine 0   TadocRunsExec: parcels ─ RepartitionExec, by parcel ─┬─▶ TadocMergedRowsExec: parcels 0, 2
//! machine 1   TadocRunsExec: parcels ─ RepartitionExec, by parcel ─┴─▶ TadocMergedRowsExec: parcels 1, 3
//! ```
//!
//! A partition gathers the chunks of its parcels, a few bytes for each row, and merges them as numbers. It
//! drops rows below the least count, evaluates filters, and makes the texts of the rest. All parcels of a
//! partition are merged together, so its rows ascend. The function of the scan makes the columns. The node opens
//! no file, but for the words of the corpus where all machines number them alike and rows are asked for their texts.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, ByteView, MAX_INLINE_VIEW_LEN, RecordBatch, StringViewArray};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{exec_err, internal_datafusion_err, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::filter_pushdown::{ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation};
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, EmptyRecordBatchStream, ExecutionPlan, ExecutionPlanProperties,
    Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{FutureExt, StreamExt};

use crate::errors::{datafusion_error, task_error};
use crate::planning::filter::Filters;
use crate::planning::output::Output;
use crate::planning::parcels::{MACHINE, PARCEL, ROWS};
use crate::planning::{ScanSpec, selected};
use tadoc::analytics::{MergedParcels, MergedRows};

/// Bytes of the words and numbers of rows in memory, for each byte of their chunks.
const BYTES_FOR_EACH: usize = 2;

/// Fewest partitions of the node where an engine divides stages. Of a plan with one partition, it would run all that
/// follows as one task: so a partition without rows stands beside an only one. An engine that divides the partitions of
/// a stage between tasks needs exactly those of the input.
pub(super) const LEAST_PARTITIONS: usize = 2;

/// Plan node that merges the rows of machines. See the module's description.
#[derive(Debug)]
pub struct MergedRowsExec {
    input: Arc<dyn ExecutionPlan>,
    spec: Arc<ScanSpec>,
    /// Text for EXPLAIN.
    times: String,
    ordering: Vec<PhysicalSortExpr>,
    least_partitions: usize,
    /// A scan of the words that all machines number alike, in their order.
    words: Option<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl MergedRowsExec {
    /// Builds a node that merges the packed rows of `input` to the rows of `spec`. Those of each partition are
    /// ordered by `ordering`. EXPLAIN shows `times`. The files of `spec` are not looked at. Partitions without rows
    /// stand behind those of `input`, if these are fewer than `least_partitions`.
    ///
    /// # Errors
    /// An error if `input` has no packed rows of the function, or if `spec` asks for a column that the function
    /// lacks.
    pub fn try_new(
        input: Arc<dyn ExecutionPlan>,
        spec: Arc<ScanSpec>,
        ordering: Vec<PhysicalSortExpr>,
        times: String,
        least_partitions: usize,
    ) -> Result<Self> {
        for name in [PARCEL, MACHINE, ROWS] {
            input.schema().field_with_name(name)?;
        }
        if spec.function.merged_words().is_none() {
            return internal_err!("the rows of {} are not merged", spec.function.signature().name);
        }
        let mut equivalence = EquivalenceProperties::new(spec.projected_schema()?);
        if let Some(ordering) = LexOrdering::new(ordering.clone()) {
            equivalence.add_ordering(ordering);
        }
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count().max(least_partitions)),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        let properties = Arc::new(properties);
        Ok(Self { input, spec, times, ordering, least_partitions, words: None, properties, metrics })
    }

    /// Returns the node for rows whose words all machines number alike. The scan `words` has their texts as its only
    /// column, in the order of the numbers. It is no child of the node: each partition runs it alone.
    #[must_use]
    pub fn with_words(self, words: Option<Arc<dyn ExecutionPlan>>) -> Self {
        Self { words, ..self }
    }

    /// Returns the scan of the words that all machines number alike, if they do.
    pub fn words(&self) -> Option<&Arc<dyn ExecutionPlan>> {
        self.words.as_ref()
    }

    /// Returns the scan whose rows are merged.
    pub fn spec(&self) -> &ScanSpec {
        &self.spec
    }

    /// Returns the text that EXPLAIN shows.
    pub fn times(&self) -> &str {
        &self.times
    }

    /// Returns the fewest partitions of the node.
    pub fn least_partitions(&self) -> usize {
        self.least_partitions
    }

    fn with_spec(&self, spec: ScanSpec) -> Result<Self> {
        self.with_input(Arc::clone(&self.input), Arc::new(spec))
    }

    fn with_input(&self, input: Arc<dyn ExecutionPlan>, spec: Arc<ScanSpec>) -> Result<Self> {
        let node = Self::try_new(input, spec, self.ordering.clone(), self.times.clone(), self.least_partitions)?;
        Ok(node.with_words(self.words.clone()))
    }

    /// Returns true if a column that is returned or filtered on has texts.
    fn uses_texts(&self) -> bool {
        let fields = self.spec.function.columns().schema;
        let mut texts = fields.fields().iter().filter(|field| field.data_type() == &DataType::Utf8View);
        texts.any(|field| self.spec.uses(field.name()))
    }
}

impl DisplayAs for MergedRowsExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.spec.function.signature().name;
        match format {
            DisplayFormatType::TreeRender => return writeln!(f, "function={name}\nworkers={}", self.times),
            _ => write!(f, "TadocMergedRowsExec: function={name}")?,
        }
        if let Some(stage) = &self.spec.filters.columns {
            write!(f, ", column_filter={}", stage.shown)?;
        }
        for stage in &self.spec.filters.dynamic {
            write!(f, ", dynamic_filter={}", stage.expr())?;
        }
        if let Some(limit) = self.spec.limit {
            write!(f, ", limit={limit}")?;
        }
        if self.words.is_some() {
            write!(f, ", words=common")?;
        }
        write!(f, ", workers={}", self.times)
    }
}

impl ExecutionPlan for MergedRowsExec {
    fn name(&self) -> &str {
        "TadocMergedRowsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        let by: Vec<Arc<dyn PhysicalExpr>> = col(PARCEL, &self.input.schema()).into_iter().collect();
        vec![Distribution::KeyPartitioned(by)]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.spec.filters.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(self.with_input(input, Arc::clone(&self.spec))?)),
            _ => internal_err!("TadocMergedRowsExec has one input"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        if partition >= self.input.output_partitioning().partition_count() {
            return Ok(Box::pin(EmptyRecordBatchStream::new(schema)));
        }
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), 2);
        let batch_size = context.session_config().batch_size();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let output = Output::new(builder.tx(), Arc::clone(&schema), batch_size, self.spec.limit, metrics);
        let held = MemoryConsumer::new(format!("TadocMergedRows[{partition}]")).register(context.memory_pool());
        let counter = |name| MetricBuilder::new(&self.metrics).counter(name, partition);
        let bytes_received = counter("bytes_received");
        let rows_merged = counter("rows_merged");
        let words = self.words.as_ref().filter(|_| self.uses_texts());
        let words = words.map(|words| words.execute(0, Arc::clone(&context))).transpose()?;
        let input = self.input.execute(partition, context)?;
        let spec = Arc::clone(&self.spec);
        // As a scan, it starts when the first rows are asked for.
        let started = async move {
            builder.spawn(async move {
                let parcels = gathered(input, &held, &bytes_received).await?;
                let words = match words {
                    Some(words) => Some(common_words(words, &held).await?),
                    None => None,
                };
                let merge = move || Merging { spec, output, held, words, rows_merged }.send(&parcels);
                tokio::task::spawn_blocking(merge).await.map_err(task_error)?
            });
            builder.build()
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, started.flatten_stream())))
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let pushed = self.spec.pushed(phase, &result)?;
        let propagation = FilterPushdownPropagation::all_unsupported(result);
        if pushed.is_empty() {
            return Ok(propagation);
        }
        let dynamic = self.spec.filters.dynamic.iter().cloned().chain(pushed).collect();
        let filters = Filters { dynamic, ..self.spec.filters.clone() };
        let node = self.with_spec(ScanSpec { filters, ..ScanSpec::clone(&self.spec) })?;
        Ok(propagation.with_updated_node(Arc::new(node)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let filters = self.spec.filters.without_dynamic();
        Ok(Arc::new(self.with_spec(ScanSpec { filters, ..ScanSpec::clone(&self.spec) })?))
    }
}

/// Gathers all batches of `input`. Their memory is taken from `held`.
async fn gathered(
    mut input: SendableRecordBatchStream,
    held: &MemoryReservation,
    bytes_received: &Count,
) -> Result<Vec<RecordBatch>> {
    let mut parcels = Vec::new();
    while let Some(batch) = input.next().await.transpose()? {
        let len_bytes = batch.get_array_memory_size();
        held.try_grow(len_bytes.saturating_mul(BYTES_FOR_EACH))?;
        bytes_received.add(len_bytes);
        parcels.push(batch);
    }
    Ok(parcels)
}

/// Gathers the texts of all words, of which `words` is a scan. Their memory is taken from `held`.
async fn common_words(mut words: SendableRecordBatchStream, held: &MemoryReservation) -> Result<StringViewArray> {
    let mut views: Vec<u128> = Vec::new();
    let mut buffers: Vec<Buffer> = Vec::new();
    while let Some(batch) = words.next().await.transpose()? {
        let Some(texts) = batch.column(0).as_string_view_opt() else {
            return internal_err!("words are texts, got {}", batch.schema());
        };
        held.try_grow(size_of_val(texts.views().as_ref()))?;
        // The batches of a scan share the buffers of its corpus.
        let is_known = texts.data_buffers().len() <= buffers.len()
            && texts.data_buffers().iter().zip(&buffers).all(|(one, other)| one.ptr_eq(other));
        if is_known {
            views.extend_from_slice(texts.views());
            continue;
        }
        let first = buffers.len() as u32;
        buffers.extend(texts.data_buffers().iter().cloned());
        views.extend(texts.views().iter().map(|&view| in_buffers_from(view, first)));
    }
    Ok(StringViewArray::try_new(views.into(), buffers, None)?)
}

/// Returns a view of a text whose buffer stands behind `first` others.
fn in_buffers_from(view: u128, first: u32) -> u128 {
    let inside = ByteView::from(view);
    if inside.length <= MAX_INLINE_VIEW_LEN {
        return view;
    }
    inside.with_buffer_index(inside.buffer_index + first).as_u128()
}

/// State of merging the rows of a partition.
struct Merging {
    spec: Arc<ScanSpec>,
    output: Output,
    held: MemoryReservation,
    /// Texts of the words that all machines number alike, if they are asked for.
    words: Option<StringViewArray>,
    rows_merged: Count,
}

impl Merging {
    fn send(mut self, parcels: &[RecordBatch]) -> Result<()> {
        self.output.start_computing();
        let mut chunks = Vec::new();
        for batch in parcels {
            let column = |name| batch.column_by_name(name).ok_or_else(|| internal_datafusion_err!("no column {name}"));
            let parcels = column(PARCEL)?.as_primitive_opt::<Int64Type>();
            let machines = column(MACHINE)?.as_primitive_opt::<Int64Type>();
            let rows = column(ROWS)?.as_binary_opt::<i32>();
            let (Some(parcels), Some(machines), Some(rows)) = (parcels, machines, rows) else {
                return internal_err!("packed rows are numbers and bytes, got {}", batch.schema());
            };
            let names = parcels.values().iter().copied().zip(machines.values().iter().copied());
            chunks.extend(names.zip(rows.iter().flatten()));
        }
        let num_words = self.spec.function.merged_words().unwrap_or(1);
        let mut merged = MergedParcels::new(num_words, chunks).map_err(datafusion_error)?;
        self.held.try_grow(merged.memory_bytes())?;
        let words = match (self.words.take(), merged.num_common_words()) {
            (Some(words), Some(num_common)) if words.len() == num_common => words,
            (None, None) => StringViewArray::from_iter_values(merged.words()),
            // No column has texts.
            (None, Some(_)) => StringViewArray::new_null(0),
            (Some(_), None) if parcels.is_empty() => return Ok(()),
            (Some(words), got) => {
                let len = words.len();
                return exec_err!("packed rows: expected numbers of {len} words, got those of {got:?}; run it again");
            }
        };
        let least_count = self.spec.function.least_count();
        while !self.output.is_done() {
            let rows = merged.next_rows(self.output.batch_size(), least_count).map_err(datafusion_error)?;
            if rows.counts.is_empty() || !self.send_rows(&words, &rows)? {
                break;
            }
        }
        Ok(())
    }

    /// Sends those of `rows` that pass the filters. Returns false if no more are wanted.
    fn send_rows(&mut self, words: &StringViewArray, rows: &MergedRows) -> Result<bool> {
        self.rows_merged.add(rows.counts.len());
        let spec = &self.spec;
        let function = &self.spec.function;
        let mut places: Vec<usize> = (0..rows.counts.len()).collect();
        let filtered = |name: &str| function.merged_column(name, words, rows, &places);
        if let Some(mask) = spec.mask(places.len(), filtered)? {
            places = selected(&mask).collect();
        }
        if places.is_empty() {
            return Ok(!self.output.is_done());
        }
        let columns = spec.projected().map(|name| function.merged_column(name, words, rows, &places));
        let columns = columns.collect::<Result<_>>()?;
        self.output.send_columns(columns, places.len())
    }
}
