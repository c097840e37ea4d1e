//! The node of a scan that arrived from another machine.
//!
//! It has the columns, the order and the partitions that were planned. The first partition that is executed opens the
//! files, and the scan is then the one of this machine: it decides anew between cores and devices.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{FutureExt, StreamExt, TryFutureExt, stream};
use tokio::sync::OnceCell;

use crate::files::Found;
use crate::message::{LivingMessage, PartMessage, SourceKind, SourceMessage};
use crate::progress::Scans;
use crate::{TravelError, refused};
use datafusion_tadoc::TadocExec;
use datafusion_tadoc::travel::{CorpusCache, FoundCorpus, ScanSpec, Source, leaf_methods, open_view};
use tadoc_store::Version;

/// Plan node of a scan that arrived. See the module's description.
#[derive(Debug)]
pub(super) struct TravelledExec {
    arrived: Arc<Arrived>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    num_rows: Precision<usize>,
    opened: Arc<OnceCell<Arc<TadocExec>>>,
    /// The opened scan, for metrics.
    shown: Arc<OnceLock<Arc<TadocExec>>>,
}

/// A scan that arrived, whose files are still to be opened.
#[derive(Debug)]
struct Arrived {
    spec: ScanSpec<SourceMessage>,
    /// Files that scans of the same message found.
    found: Arc<Found>,
    num_partitions: usize,
}

impl TravelledExec {
    /// Builds the node of `spec`, in `num_partitions` partitions that are each sorted by `ordering`.
    ///
    /// # Errors
    /// An error if the scan returns a column that its function lacks.
    pub(super) fn try_new(
        spec: ScanSpec<SourceMessage>,
        found: Arc<Found>,
        num_partitions: usize,
        ordering: Vec<PhysicalSortExpr>,
        num_rows: Precision<usize>,
    ) -> Result<Self> {
        let schema = spec.projected_schema()?;
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&schema));
        if let Some(ordering) = LexOrdering::new(ordering) {
            equivalence.add_ordering(ordering);
        }
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(num_partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Self {
            arrived: Arc::new(Arrived { spec, found, num_partitions }),
            schema,
            properties: Arc::new(properties),
            num_rows,
            opened: Arc::default(),
            shown: Arc::default(),
        })
    }
}

impl Arrived {
    /// Opens the files, and plans the scan on this machine.
    ///
    /// # Errors
    /// An error if a file is not the one that was planned; the errors of opening files and of planning
    /// a scan.
    async fn open(&self, context: &TaskContext) -> Result<TadocExec> {
        let config = context.session_config();
        let Some(cache) = config.get_extension::<CorpusCache>() else {
            return internal_err!("a scan in a session without datafusion-tadoc");
        };
        let source = self.source(context, &cache).await?;
        let numbered_by = match &self.spec.numbered_by {
            Some(files) => Some(self.whole(files, context, &cache).await?),
            None => None,
        };
        let spec = ScanSpec { numbered_by, ..self.spec.with_source(source) };
        match TadocExec::planned_again(spec, self.num_partitions, cache, config)? {
            Some(exec) => Ok(exec),
            None => refused(format!("packed rows of {}", self.spec.function.signature().name)),
        }
    }

    async fn source(&self, context: &TaskContext, cache: &CorpusCache) -> Result<Source> {
        let whole = self.whole(&self.spec.source, context, cache).await?;
        match &self.spec.source.part {
            Some(part) => cache.narrowed(&context.runtime_env(), whole, &part.condition, ranges_of_message(part)?),
            None => Ok(whole),
        }
    }

    /// Returns all files of `message`, opened.
    async fn whole(&self, message: &SourceMessage, context: &TaskContext, cache: &CorpusCache) -> Result<Source> {
        let runtime = context.runtime_env();
        let files = &message.files;
        let limits = self.spec.options.open_limits();
        match (message.kind(), &message.living) {
            (SourceKind::Corpora, None) => {
                let open = self.found.open(cache, &runtime, &limits, files).await?;
                Ok(Source::Corpora(open))
            }
            (SourceKind::Files, None) => Ok(Source::Files(self.found.find_all(&runtime, files).await?)),
            (SourceKind::Living, Some(living)) => {
                let (found, version) = find_version(&context.runtime_env(), cache, living).await?;
                let view = open_view(cache, &runtime, &self.spec.options, &found, version).await?;
                Ok(Source::Living(view))
            }
            (SourceKind::Unchecked, Some(living)) => {
                let (found, version) = find_version(&context.runtime_env(), cache, living).await?;
                Ok(Source::Unchecked(Arc::new(found), version))
            }
            (kind, _) => refused(format!("expected the files of a scan, got {kind:?}")),
        }
    }
}

/// Returns the ranges of documents of `message`.
fn ranges_of_message(message: &PartMessage) -> Result<Vec<Range<u64>>> {
    let ranges: Vec<Range<u64>> = message.starts.iter().zip(&message.ends).map(|(&start, &end)| start..end).collect();
    let ascend = ranges.windows(2).all(|pair| pair[0].end < pair[1].start);
    if message.starts.len() == message.ends.len() && ascend && ranges.iter().all(|range| range.start < range.end) {
        Ok(ranges)
    } else {
        refused("expected ascending ranges of documents")
    }
}

/// Returns the version that `living` names.
///
/// # Errors
/// An error if there is no such version any more; the errors of the store.
pub(super) async fn find_version(
    runtime: &RuntimeEnv,
    cache: &CorpusCache,
    living: &LivingMessage,
) -> Result<(FoundCorpus, Version)> {
    let LivingMessage { location, number, commit } = living;
    let changed = |what: String| -> DataFusionError {
        TravelError::Changed(format!("{location}: not the corpus that was planned, {what}")).into()
    };
    let found = cache.find_living(runtime, location).await?;
    let found = found.ok_or_else(|| changed("there is no living corpus".into()))?;
    let version = found.version(Some(*number)).await?;
    if version.commit_id.to_string() == *commit {
        Ok((found, version))
    } else {
        Err(changed(format!("version {number} has another commit")))
    }
}

impl DisplayAs for TravelledExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(opened) = self.shown.get() {
            return opened.fmt_as(format, f);
        }
        let name = self.arrived.spec.function.signature().name;
        match format {
            DisplayFormatType::TreeRender => writeln!(f, "function={name}"),
            _ => write!(f, "TadocExec: function={name}, location={}", self.arrived.spec.location),
        }
    }
}

impl ExecutionPlan for TravelledExec {
    leaf_methods!("TadocExec");

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.arrived.spec.filters.apply_expressions(f)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition >= self.arrived.num_partitions {
            return internal_err!("TadocExec has no partition {partition}");
        }
        let arrived = Arc::clone(&self.arrived);
        let opened = Arc::clone(&self.opened);
        let shown = Arc::clone(&self.shown);
        let rows = async move {
            let running = context.session_config().get_extension::<Scans>().map(|scans| scans.begin());
            let open = async || arrived.open(&context).await.map(Arc::new);
            let exec = opened.get_or_try_init(open).await?;
            shown.get_or_init(|| Arc::clone(exec));
            let rows = exec.execute(partition, Arc::clone(&context))?;
            // After the last row, and not only when the stream is dropped.
            let ended = stream::once(async move { drop(running) }).filter_map(async |()| None);
            Ok::<_, DataFusionError>(rows.chain(ended))
        };
        let schema = Arc::clone(&self.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.boxed().try_flatten_stream())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        // Ballista refuses tasks of one stage that have metrics of different nodes. A join without rows on
        // its first side never runs the other side, so this node has metrics also if it never ran.
        let metrics = self.shown.get().and_then(|exec| exec.metrics());
        Some(metrics.unwrap_or_default())
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if args.partition().is_none() || self.arrived.num_partitions == 1 {
            statistics.num_rows = self.num_rows;
        }
        Ok(Arc::new(statistics))
    }

    fn fetch(&self) -> Option<usize> {
        self.arrived.spec.limit
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self {
            arrived: Arc::clone(&self.arrived),
            schema: Arc::clone(&self.schema),
            properties: Arc::clone(&self.properties),
            num_rows: self.num_rows,
            opened: Arc::default(),
            shown: Arc::default(),
        }))
    }
}
