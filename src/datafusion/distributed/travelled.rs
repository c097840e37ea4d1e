//! The plan node of a scan that arrived from another machine.
//!
//! It has the columns, the order and the partitions that were planned. The first partition that is
//! executed opens the files, and the scan is then the one of this machine: it decides anew between cores
//! and devices.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{FutureExt, TryFutureExt};
use tokio::sync::OnceCell;

use super::files::Found;
use super::message::{LivingMessage, SourceKind, SourceMessage};
use super::{TravelError, refused};
use crate::options::TadocOptions;
use crate::placement::{DeviceSession, Placement};
use crate::plan_methods::leaf_methods;
use crate::scan::filter::Stage;
use crate::scan::function::TableFunction;
use crate::scan::{Scan, TadocExec, decide};
use crate::source::memory::Uses;
use crate::source::{CorpusCache, Source};
use crate::store::{FoundCorpus, open_view};
use tadoc::analytics::Share;
use tadoc::query::TextPattern;
use tadoc_store::Version;

/// A scan that arrived, whose files are still to be opened.
#[derive(Debug)]
pub(super) struct Travelled {
    pub(super) function: Arc<dyn TableFunction>,
    /// Location as messages show it.
    pub(super) location: String,
    pub(super) source: SourceMessage,
    /// Files that scans of the same message found.
    pub(super) found: Arc<Found>,
    pub(super) schema: SchemaRef,
    pub(super) projection: Vec<usize>,
    pub(super) columns_stage: Option<Stage>,
    pub(super) dynamic_stages: Vec<Stage>,
    pub(super) text_stage: Option<Stage>,
    pub(super) demands: Vec<Vec<TextPattern>>,
    pub(super) limit: Option<usize>,
    pub(super) options: TadocOptions,
    pub(super) num_partitions: usize,
    pub(super) share: Share,
}

/// A column of the order of a partition.
#[derive(Debug, Clone)]
pub(super) struct Sorted {
    pub(super) column: String,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

/// Plan node of a scan that arrived. See the module's description.
#[derive(Debug)]
pub(super) struct TravelledExec {
    travelled: Arc<Travelled>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    num_rows: Precision<usize>,
    opened: Arc<OnceCell<Arc<TadocExec>>>,
    /// The opened scan, for metrics.
    shown: Arc<OnceLock<Arc<TadocExec>>>,
}

impl TravelledExec {
    /// Builds the node of `travelled`, which returns the columns of `schema`. Each partition is sorted
    /// by `ordering`.
    ///
    /// # Errors
    /// An error if `schema` has no column of `ordering`.
    pub(super) fn try_new(
        travelled: Travelled,
        schema: SchemaRef,
        ordering: &[Sorted],
        num_rows: Precision<usize>,
    ) -> Result<Self> {
        let sorted = ordering.iter().map(|one| {
            let options = SortOptions { descending: one.descending, nulls_first: one.nulls_first };
            Ok(PhysicalSortExpr::new(col(&one.column, &schema)?, options))
        });
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&schema));
        if let Some(ordering) = LexOrdering::new(sorted.collect::<Result<Vec<_>>>()?) {
            equivalence.add_ordering(ordering);
        }
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(travelled.num_partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        let (travelled, properties) = (Arc::new(travelled), Arc::new(properties));
        let (opened, shown) = Default::default();
        Ok(Self { travelled, schema, properties, num_rows, opened, shown })
    }

    fn stages(&self) -> impl Iterator<Item = &Stage> {
        let Travelled { columns_stage, dynamic_stages, text_stage, .. } = self.travelled.as_ref();
        columns_stage.iter().chain(dynamic_stages).chain(text_stage)
    }
}

impl Travelled {
    /// Opens the files, and plans the scan of this machine.
    ///
    /// # Errors
    /// An error if a file is not the one that was planned; the errors of opening files and of planning
    /// a scan.
    async fn open(&self, context: &TaskContext) -> Result<TadocExec> {
        let config = context.session_config();
        let Some(cache) = config.get_extension::<CorpusCache>() else {
            return internal_err!("a scan in a session without datafusion-tadoc");
        };
        let mut scan = Scan {
            location: self.location.clone(),
            source: self.source(context, &cache).await?,
            schema: Arc::clone(&self.schema),
            projection: self.projection.clone(),
            columns_stage: self.columns_stage.clone(),
            dynamic_stages: self.dynamic_stages.clone(),
            text_stage: self.text_stage.clone(),
            demands: self.demands.clone(),
            limit: self.limit,
            options: self.options.clone(),
            devices: DeviceSession::from_config(config),
            num_partitions: self.num_partitions,
            share: self.share,
            synonyms: None,
            uses: Uses::default(),
            placement: Placement::default(),
            are_words_kept: Vec::new(),
        };
        if !scan.share.is_all() && !self.function.has_shares(&scan) {
            return refused(format!("a share of the rows of {}", self.function.signature().name));
        }
        let loaded = cache.loaded(&scan.source);
        decide(self.function.as_ref(), &mut scan, loaded.as_deref())?;
        if !self.dynamic_stages.is_empty() || self.limit.is_some() {
            scan.placement = scan.placement.for_part();
        }
        TadocExec::try_new(Arc::clone(&self.function), scan, cache)
    }

    async fn source(&self, context: &TaskContext, cache: &CorpusCache) -> Result<Source> {
        let (runtime, files) = (context.runtime_env(), &self.source.files);
        let limits = self.options.open_limits();
        match (self.source.kind(), &self.source.living) {
            (SourceKind::Corpora, None) => {
                let open = self.found.open(cache, &runtime, &limits, files).await?;
                Ok(Source::Corpora(open))
            }
            (SourceKind::Files, None) => {
                Ok(Source::Files(self.found.find_all(&runtime, files).await?))
            }
            (SourceKind::Living, Some(living)) => {
                let (found, version) = find_version(&context.runtime_env(), cache, living).await?;
                let view = open_view(cache, &runtime, &self.options, &found, version).await?;
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
    let found = cache.living.find(runtime, location).await?;
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
        let name = self.travelled.function.signature().name;
        match format {
            DisplayFormatType::TreeRender => writeln!(f, "function={name}"),
            _ => write!(f, "TadocExec: function={name}, location={}", self.travelled.location),
        }
    }
}

impl ExecutionPlan for TravelledExec {
    leaf_methods!("TadocExec");

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for stage in self.stages() {
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
        if partition >= self.travelled.num_partitions {
            return internal_err!("TadocExec has no partition {partition}");
        }
        let (travelled, opened) = (Arc::clone(&self.travelled), Arc::clone(&self.opened));
        let shown = Arc::clone(&self.shown);
        let rows = async move {
            let open = async || travelled.open(&context).await.map(Arc::new);
            let exec = opened.get_or_try_init(open).await?;
            shown.get_or_init(|| Arc::clone(exec));
            exec.execute(partition, Arc::clone(&context))
        };
        let schema = Arc::clone(&self.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.boxed().try_flatten_stream())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.shown.get().and_then(|exec| exec.metrics())
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if args.partition().is_none() || self.travelled.num_partitions == 1 {
            statistics.num_rows = self.num_rows;
        }
        Ok(Arc::new(statistics))
    }

    fn fetch(&self) -> Option<usize> {
        self.travelled.limit
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let (opened, shown) = Default::default();
        let (travelled, schema) = (Arc::clone(&self.travelled), Arc::clone(&self.schema));
        let (properties, num_rows) = (Arc::clone(&self.properties), self.num_rows);
        Ok(Arc::new(Self { travelled, schema, properties, num_rows, opened, shown }))
    }
}
