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
#[cfg(feature = "distributed")]
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
use super::opener::{GsstOpener, Settings};
#[cfg(feature = "distributed")]
use crate::distributed::PlannedFiles;
#[cfg(feature = "distributed")]
use crate::options::TadocOptions;
#[cfg(feature = "distributed")]
use crate::placement::DeviceSession;
use crate::placement::{ColumnWork, Placement, place_columns, selectivity};
use gsst::arrow::TextType;

/// Facts about the files of a scan, from their statistics.
#[cfg(feature = "distributed")]
#[derive(Debug, Clone, Default)]
pub(crate) struct FileFacts {
    /// Length of the text of each column, if it is a GSST column in all files.
    pub(crate) text_len_bytes: Vec<Option<usize>>,
    pub(crate) num_nulls: Vec<usize>,
    pub(crate) num_rows: usize,
    /// Length of all files, if they have no statistics.
    pub(crate) stored_len_bytes: Option<u64>,
}

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

    /// Returns a copy of the source with the settings of a session.
    pub(super) fn with_settings(&self, settings: Settings) -> Self {
        Self { settings, ..self.clone() }
    }

    /// Returns the filter, and what the scan knows of its files.
    #[cfg(feature = "distributed")]
    pub(crate) fn parts(&self) -> (Option<&Arc<dyn PhysicalExpr>>, FileFacts, &TadocOptions) {
        let Settings { text_len_bytes, num_nulls, num_rows, stored_len_bytes, options, .. } =
            &self.settings;
        let facts = FileFacts {
            text_len_bytes: text_len_bytes.clone(),
            num_nulls: num_nulls.clone(),
            num_rows: *num_rows,
            stored_len_bytes: *stored_len_bytes,
        };
        (self.filter.as_ref(), facts, options)
    }

    /// Builds the source of a scan of the files `planned` that was planned in another session.
    #[cfg(feature = "distributed")]
    pub(crate) fn of_parts(
        table_schema: TableSchema,
        filter: Option<Arc<dyn PhysicalExpr>>,
        facts: FileFacts,
        options: TadocOptions,
        planned: PlannedFiles,
        context: &TaskContext,
    ) -> Self {
        let devices = DeviceSession::from_config(context.session_config());
        let settings = Settings {
            calibration: Arc::new(devices.calibration()),
            devices,
            options,
            runtime: context.runtime_env(),
            text_len_bytes: facts.text_len_bytes,
            num_rows: facts.num_rows,
            num_nulls: facts.num_nulls,
            stored_len_bytes: facts.stored_len_bytes,
            num_cores: context.session_config().target_partitions(),
            buffers: Arc::default(),
            planned: Some(Arc::new(planned)),
        };
        Self { filter, ..Self::new(table_schema).with_settings(settings) }
    }

    /// Returns true if a column of the files is a GSST column. Without statistics, returns true for
    /// every column whose type a GSST column can have.
    fn is_text(&self, idx: usize) -> bool {
        let has_text = self.settings.text_len_bytes.get(idx).is_some_and(Option::is_some);
        let field = self.table_schema.file_schema().fields().get(idx);
        let is_unknown = self.settings.stored_len_bytes.is_some();
        has_text
            || is_unknown
                && field.is_some_and(|field| TextType::from_data_type(field.data_type()).is_some())
    }

    /// Returns the place of the scan, from the devices and the filter at the time of the call.
    fn placement(&self) -> Result<Placement> {
        let Settings { devices, options, calibration, .. } = &self.settings;
        place_columns(devices, options, calibration, &self.work())
    }

    /// Returns the columns that the scan decodes, from the filter and projection at the time of the
    /// call.
    fn work(&self) -> ColumnWork {
        let of_column =
            |column: &Column| self.settings.text_len_bytes.get(column.index()).copied().flatten();
        let filtered: HashSet<Column> = self.filter.iter().flat_map(collect_columns).collect();
        let projected: HashSet<Column> =
            self.projection.iter().flat_map(|one| collect_columns(&one.expr)).collect();
        let predicates = match &self.filter {
            Some(filter) => code_predicates(filter, |idx| self.is_text(idx)),
            None => Vec::new(),
        };
        let tested: HashSet<usize> = predicates.iter().map(|one| one.field_idx).collect();
        let num_rows = self.settings.num_rows;
        let null_part = |idx: usize| match self.settings.num_nulls.get(idx) {
            Some(num_nulls) if num_rows > 0 => (*num_nulls as f64 / num_rows as f64).min(1.0),
            _ => 0.0,
        };
        let columns = projected.iter().chain(&filtered).collect::<HashSet<_>>().into_iter();
        let is_needed = |column: &&Column| tested.is_empty() || tested.contains(&column.index());
        let text_len_bytes: usize = columns.filter(is_needed).filter_map(of_column).sum();
        ColumnWork {
            text_len_bytes: text_len_bytes as u64,
            num_rows: num_rows as u64,
            selectivity: selectivity(&predicates, null_part),
            is_text_wanted: tested.is_empty()
                || projected.iter().any(|column| tested.contains(&column.index())),
            stored_len_bytes: self.settings.stored_len_bytes,
            num_cores: self.settings.num_cores,
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
        let adapters = config.expr_adapter_factory.clone();
        let placement = self.placement()?;
        if partition == 0 {
            placement.begin(&self.settings.devices);
        }
        let is_local = config.object_store_url.as_str().starts_with("file:");
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

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
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
            !is_volatile(filter)
                && collect_columns(filter).iter().all(|column| column.index() < num_columns)
        };
        let taken: Vec<bool> = filters.iter().map(is_ours).collect();
        let answers =
            taken.iter().map(|taken| if *taken { PushedDown::Yes } else { PushedDown::No });
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
