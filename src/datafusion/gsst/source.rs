//! A scan of GSST files in a plan: schema of the files, projection, filter and settings.
//!
//! The scan takes over every filter without volatile parts, so that the plan has no filter above
//! the scan. The opener decides for each file how each part is evaluated.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::conjunction;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_adapter::DefaultPhysicalExprAdapterFactory;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, PhysicalExpr, apply_expression_roots};
use object_store::ObjectStore;

use super::conditions::code_predicates;
use super::counters::Counters;
use super::fetch::Objects;
use super::footers::ColumnFacts;
use super::footers::FileFacts;
use super::opener::PlannedFiles;
use super::opener::{GsstOpener, Settings};
use crate::options::TadocOptions;
use crate::placement::DeviceSession;
use crate::placement::{ColumnWork, Placement, Storage, place_columns, selectivity};

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
        };
        Self { filter, ..Self::new(table_schema).with_settings(settings) }
    }

    /// Returns what is known of a column of the files. Columns of the path have no facts.
    fn facts_on(&self, idx: usize) -> ColumnFacts {
        self.settings.facts.columns.get(idx).copied().unwrap_or_default()
    }

    /// Returns the place of the scan, from the devices and the filter at the time of the call.
    fn placement(&self) -> Result<Placement> {
        let Settings { devices, options, calibration, .. } = &self.settings;
        place_columns(devices, options, calibration, &self.work())
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
            is_text_wanted: tested.is_empty() || projected.iter().any(|column| tested.contains(&column.index())),
            stored_len_bytes: sum.stored_len_bytes,
            width: sum.width(),
            num_row_groups: facts.num_row_groups,
            storage: Storage {
                is_local: is_local(store_url),
                observed_gb_per_s: devices.stores().rate_gb_per_s(store_url),
            },
            num_cores: *num_cores,
        }
    }
}

fn is_local(store_url: &str) -> bool {
    store_url.starts_with("file:")
}

impl FileSource for GsstSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let adapters = config.expr_adapter_factory.clone();
        let placement = self.placement()?;
        if partition == 0 {
            placement.begin(&self.settings.devices);
        }
        let is_local = is_local(config.object_store_url.as_str());
        let counters = Counters::new(&self.metrics, partition);
        if let Some(rate) = placement.predicted_gb_per_s().filter(|_| partition == 0) {
            counters.predict(rate);
        }
        let local = is_local.then(|| Arc::clone(&self.settings.buffers));
        Ok(Arc::new(GsstOpener {
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
        }))
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
