//! A scan of GSST files in a plan, and the opener of its files.
//!
//! ```text
//! footer ─▶ filter and projection for this file ─▶ row groups that may match ─▶ file_scan
//! ```
//!
//! The scan takes over every filter without volatile parts, so that the plan has no filter above it. The
//! opener decides for each file how each part is evaluated. A row group belongs to the partition whose byte
//! range contains its first byte. So a file may be cut at any byte.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::conjunction;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapterFactory, replace_columns_with_literals,
};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{DisplayFormatType, PhysicalExpr, apply_expression_roots};
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use super::conditions::{Conditions, code_predicates, possible_row_groups};
use super::fetch::{Objects, ReadBuffers};
use super::file_scan::{Counters, DeviceUse, FileScan};
use super::footers::{ColumnFacts, FileFacts, read_footer, read_schema};
use crate::options::{Device, TadocOptions};
use crate::placement::{ColumnWork, DeviceSession, Placement, Storage, is_local, place_columns, selectivity};
use crate::throughput::Calibration;
use gsst::parquet::ReadOptions;

/// A source of rows from Parquet files with GSST columns.
#[derive(Clone)]
pub struct GsstSource {
    table_schema: TableSchema,
    projection: ProjectionExprs,
    filter: Option<Arc<dyn PhysicalExpr>>,
    batch_size: usize,
    metrics: ExecutionPlanMetricsSet,
    settings: Settings,
}

impl GsstSource {
    /// Builds a source of all columns of a table, with default settings.
    pub fn new(table_schema: TableSchema) -> Self {
        let all: Vec<usize> = (0..table_schema.table_schema().fields().len()).collect();
        Self {
            projection: ProjectionExprs::from_indices(&all, table_schema.table_schema()),
            table_schema,
            filter: None,
            batch_size: 8192,
            metrics: ExecutionPlanMetricsSet::new(),
            settings: Settings::default(),
        }
    }

    /// Returns the source with another projection of the columns of its table.
    pub(super) fn with_projection(self, projection: ProjectionExprs) -> Self {
        Self { projection, ..self }
    }

    /// Returns a copy of the source with the settings of a session.
    pub(super) fn with_settings(&self, settings: Settings) -> Self {
        Self { settings, ..self.clone() }
    }

    /// Returns the filter, and what the scan knows of its files.
    pub fn parts(&self) -> (Option<&Arc<dyn PhysicalExpr>>, &FileFacts, &TadocOptions) {
        let Settings { facts, options, .. } = &self.settings;
        (self.filter.as_ref(), facts, options)
    }

    /// Builds the source of a scan of the files `planned` that was planned in another session.
    pub fn from_parts(
        table_schema: TableSchema,
        store_url: &str,
        filter: Option<Arc<dyn PhysicalExpr>>,
        facts: FileFacts,
        options: TadocOptions,
        planned: Arc<dyn PlannedFiles>,
        context: &TaskContext,
    ) -> Self {
        let devices = DeviceSession::from_config(context.session_config());
        let settings = Settings {
            calibration: Arc::new(devices.calibration()),
            devices,
            options,
            runtime: context.runtime_env(),
            store_url: store_url.into(),
            facts,
            num_cores: context.session_config().target_partitions(),
            buffers: Arc::default(),
            planned: Some(planned),
            may_travel: true,
        };
        Self { filter, ..Self::new(table_schema).with_settings(settings) }
    }

    /// Returns what is known of a column of the files. Columns of the path have no facts.
    pub(super) fn facts_on(&self, idx: usize) -> ColumnFacts {
        self.settings.facts.columns.get(idx).copied().unwrap_or_default()
    }

    /// Returns the place of the scan, from the devices and the filter at the time of the call.
    fn placement(&self) -> Result<Placement> {
        self.place(&self.work())
    }

    /// Returns the place of the comparison of all rows, of which no text goes to the host.
    pub(super) fn placement_of_comparison(&self) -> Result<Placement> {
        self.place(&ColumnWork { is_text_wanted: false, are_rows_compared: true, ..self.work() })
    }

    fn place(&self, work: &ColumnWork) -> Result<Placement> {
        let Settings { devices, options, calibration, .. } = &self.settings;
        place_columns(devices, options, calibration, work)
    }

    /// Returns the source with metrics of its own.
    pub(super) fn with_own_metrics(self) -> Self {
        Self { metrics: ExecutionPlanMetricsSet::new(), ..self }
    }

    /// Returns the settings of the scan.
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the opener of the files of a partition, which are read at `placement`.
    pub(super) fn opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
        placement: Placement,
    ) -> GsstOpener {
        let adapters = config.expr_adapter_factory.clone();
        if partition == 0 {
            placement.begin(&self.settings.devices);
        }
        let is_local = is_local(config.object_store_url.as_str());
        let counters = Counters::new(&self.metrics, partition);
        if let Some(rate) = placement.predicted_gb_per_s().filter(|_| partition == 0) {
            counters.predict(rate);
        }
        let local = is_local.then(|| Arc::clone(&self.settings.buffers));
        GsstOpener {
            placement,
            objects: Objects { store, local },
            table_schema: self.table_schema.clone(),
            projection: self.projection.clone(),
            filter: self.filter.clone(),
            batch_size: self.batch_size,
            adapters: adapters.unwrap_or_else(|| Arc::new(DefaultPhysicalExprAdapterFactory)),
            settings: self.settings.clone(),
            counters,
            partition,
        }
    }

    /// Returns the columns that the scan decodes, from the filter and projection at the time of the
    /// call.
    fn work(&self) -> ColumnWork {
        let Settings { facts, store_url, devices, num_cores, .. } = &self.settings;
        let filtered: HashSet<Column> = self.filter.iter().flat_map(collect_columns).collect();
        let projected: HashSet<Column> = self.projection.iter().flat_map(|one| collect_columns(&one.expr)).collect();
        let is_text = |idx: usize| self.facts_on(idx).text_len_bytes.is_some();
        let predicates = match &self.filter {
            Some(filter) => code_predicates(filter, is_text),
            None => Vec::new(),
        };
        let tested: HashSet<usize> = predicates.iter().map(|one| one.field_idx).collect();
        let null_part = |idx: usize| {
            let num_nulls = self.facts_on(idx).num_nulls as f64;
            (num_nulls / facts.num_rows.max(1) as f64).min(1.0)
        };
        let columns: HashSet<usize> = projected.iter().chain(&filtered).map(Column::index).collect();
        let is_needed = |idx: &usize| tested.is_empty() || tested.contains(idx);
        let needed = columns.into_iter().filter(is_needed).map(|idx| self.facts_on(idx));
        let sum = needed.fold(ColumnFacts::default(), ColumnFacts::plus);
        ColumnWork {
            text_len_bytes: sum.text_len_bytes.unwrap_or(0),
            num_rows: facts.num_rows,
            selectivity: selectivity(&predicates, null_part),
            are_rows_compared: false,
            is_text_wanted: tested.is_empty() || projected.iter().any(|column| tested.contains(&column.index())),
            stored_len_bytes: sum.stored_len_bytes,
            width: sum.width(),
            num_row_groups: facts.num_row_groups,
            storage: Storage::for_url(devices, store_url),
            num_cores: *num_cores,
        }
    }
}

impl FileSource for GsstSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        Ok(Arc::new(self.opener(store, config, partition, self.placement()?)))
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_size, ..self.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.filter.clone()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "gsst"
    }

    fn fmt_extra(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = match format {
            DisplayFormatType::TreeRender => "\n",
            _ => ", ",
        };
        if let Some(filter) = &self.filter {
            write!(f, "{separator}filter={filter}")?;
        }
        match self.placement() {
            Ok(placement) => write!(f, "{separator}device={placement}"),
            Err(error) => write!(f, "{separator}device=none: {}", error.strip_backtrace()),
        }
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let projection = self.projection.try_merge(projection)?;
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let num_columns = self.table_schema.table_schema().fields().len();
        let is_ours = |filter: &Arc<dyn PhysicalExpr>| {
            !is_volatile(filter) && collect_columns(filter).iter().all(|column| column.index() < num_columns)
        };
        let taken: Vec<bool> = filters.iter().map(is_ours).collect();
        let answers = taken.iter().map(|taken| if *taken { PushedDown::Yes } else { PushedDown::No });
        let answer = FilterPushdownPropagation::with_parent_pushdown_result(answers.collect());
        let taken = filters.iter().zip(&taken).filter(|(_, taken)| **taken);
        let mut parts: Vec<_> = taken.map(|(filter, _)| Arc::clone(filter)).collect();
        if parts.is_empty() {
            return Ok(answer);
        }
        parts.splice(0..0, self.filter.clone());
        let filter = Some(conjunction(parts));
        Ok(answer.with_updated_node(Arc::new(Self { filter, ..self.clone() })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let filter = self.filter.iter();
        apply_expression_roots(filter.chain(self.projection.iter().map(|one| &one.expr)), f)
    }
}

/// Settings of a scan, from its session and from the footers of its files.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub(super) options: TadocOptions,
    pub(super) devices: Arc<DeviceSession>,
    pub(super) calibration: Arc<Calibration>,
    pub(super) runtime: Arc<RuntimeEnv>,
    /// URL of the store of the files.
    pub(super) store_url: Arc<str>,
    pub(super) facts: FileFacts,
    pub(super) num_cores: usize,
    pub(super) buffers: Arc<ReadBuffers>,
    /// Files of a scan that was planned on another machine.
    pub(super) planned: Option<Arc<dyn PlannedFiles>>,
    /// True if parts of the plan may be executed by other processes.
    pub(super) may_travel: bool,
}

/// Files of a scan that was planned on another machine.
#[async_trait]
pub trait PlannedFiles: fmt::Debug + Send + Sync {
    /// Returns the length and the version of the file at `location` in the store of the scan.
    ///
    /// # Errors
    /// The errors of the store; an error if the scan has no such file, or if the file is not the one that
    /// was planned.
    async fn find(&self, runtime: &RuntimeEnv, location: &Path) -> Result<ObjectMeta>;
}

/// Opener of the files of one partition.
#[derive(Clone)]
pub(super) struct GsstOpener {
    pub(super) objects: Objects,
    pub(super) table_schema: TableSchema,
    pub(super) projection: ProjectionExprs,
    pub(super) filter: Option<Arc<dyn PhysicalExpr>>,
    pub(super) batch_size: usize,
    pub(super) adapters: Arc<dyn PhysicalExprAdapterFactory>,
    pub(super) settings: Settings,
    pub(super) placement: Placement,
    pub(super) counters: Counters,
    pub(super) partition: usize,
}

impl FileOpener for GsstOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = self.clone();
        Ok(Box::pin(async move {
            let scan = opener.plan(file).await?;
            let mut stream = RecordBatchReceiverStreamBuilder::new(scan.output_schema(), 2);
            let batches = stream.tx();
            stream.spawn(async move { scan.run(batches).await });
            Ok(stream.build().boxed())
        }))
    }
}

impl GsstOpener {
    /// Reads the footer, and decides what is read of the file, and how.
    pub(super) async fn plan(self, file: PartitionedFile) -> Result<FileScan> {
        let file = self.as_planned(file).await?;
        let cache = self.settings.runtime.cache_manager.get_file_metadata_cache();
        let footer = read_footer(&self.objects.store, &file.object_meta, Some(&cache)).await?;
        let schema = read_schema(&footer);
        let (filter, projection) = self.adapted(&file, &schema)?;
        let counters = self.counters.clone();
        counters.start();

        let mut row_groups: Vec<usize> = (0..footer.num_row_groups()).collect();
        if let Some(range) = &file.range {
            let range = range.start as u64..range.end as u64;
            row_groups.retain(|i| range.contains(&footer.row_group_start(*i)));
        }
        let num_row_groups = row_groups.len();
        if let Some(filter) = &filter {
            let errors = &counters.pruning_errors;
            row_groups = possible_row_groups(&footer, &schema, filter, row_groups, errors)?;
        }
        counters.row_groups_pruned.add(num_row_groups - row_groups.len());

        let conditions = match &filter {
            Some(filter) => Conditions::new(filter, &footer, &schema)?,
            None => Conditions::default(),
        };
        let mut decoded = projection.column_indices();
        decoded.extend(conditions.rest.iter().flat_map(collect_columns).map(|c| c.index()));
        decoded.sort_unstable();
        decoded.dedup();
        let mut read = decoded.clone();
        read.extend(conditions.code_predicates.iter().map(|predicate| predicate.field_idx));
        read.extend(conditions.row_filter.iter().flat_map(|filter| filter.fields.clone()));

        let decoded_schema = Arc::new(schema.project(&decoded)?);
        let at_place = |expr| reassign_expr_columns(expr, &decoded_schema);
        let is_only_column = conditions.row_filter.is_none()
            && conditions.rest.is_none()
            && matches!(projection.as_ref(), [one] if one.expr.is::<Column>());
        let projector = projection.try_map_exprs(at_place)?.make_projector(&decoded_schema)?;
        let Conditions { row_filter, code_predicates, rest } = conditions;
        let options = &self.settings.options;
        let device =
            self.settings.devices.columns().filter(|_| self.placement.is_on_device()).map(|columns| DeviceUse {
                columns: Arc::clone(columns),
                partition: self.partition,
                max_bytes: options.gpu_memory_bytes,
                is_demanded: options.device == Device::Gpu,
            });
        let consumer = MemoryConsumer::new(format!("GsstScan[{}]", self.partition));
        Ok(FileScan {
            object: file.object_meta,
            row_groups,
            ranges_of: read,
            options: ReadOptions {
                projection: Some(decoded),
                predicates: code_predicates,
                row_filter,
                batch_rows: self.batch_size,
                text_as_views: true,
            },
            rest: rest.map(at_place).transpose()?,
            projector: Arc::new(projector),
            is_only_column,
            reservation: Arc::new(consumer.register(&self.settings.runtime.memory_pool)),
            objects: self.objects,
            store_url: Arc::clone(&self.settings.store_url),
            stores: Arc::clone(self.settings.devices.stores()),
            written_width: options.code_width(),
            footer,
            device,
            counters,
        })
    }

    /// Returns `file` as it is now, if another machine planned the scan.
    ///
    /// # Errors
    /// The errors of the store; an error if the file is not the one that was planned.
    async fn as_planned(&self, file: PartitionedFile) -> Result<PartitionedFile> {
        let Some(planned) = &self.settings.planned else { return Ok(file) };
        let location = &file.object_meta.location;
        let object_meta = planned.find(&self.settings.runtime, location).await?;
        Ok(PartitionedFile { object_meta, ..file })
    }

    /// Returns the filter and the projection on the columns of this file. Columns of the path
    /// become literals, missing columns become null, and other types are cast.
    fn adapted(
        &self,
        file: &PartitionedFile,
        schema: &SchemaRef,
    ) -> Result<(Option<Arc<dyn PhysicalExpr>>, ProjectionExprs)> {
        let names = self.table_schema.table_partition_cols().iter().map(|field| field.name().clone());
        let literals: HashMap<String, ScalarValue> = names.zip(file.partition_values.iter().cloned()).collect();
        let adapter = self.adapters.create(Arc::clone(self.table_schema.file_schema()), Arc::clone(schema))?;
        let simplifier = PhysicalExprSimplifier::new(schema);
        let adapt = |expr| {
            let expr = replace_columns_with_literals(expr, &literals)?;
            simplifier.simplify(adapter.rewrite(expr)?)
        };
        let filter = self.filter.clone().map(adapt).transpose()?;
        Ok((filter, self.projection.clone().try_map_exprs(adapt)?))
    }
}
