//! GSST columns in SQL: `COPY … TO 'x.parquet' STORED AS GSST` and tables `STORED AS GSST`; here is the format.
//!
//! ```text
//! COPY, INSERT ─▶ format ─▶ sink ─▶ gsst::parquet ─▶ upload       ordinary Parquet files
//! SELECT ─▶ listing table ─▶ format ─▶ source ─▶ file_scan ─▶ rows   listing, partitions, statistics
//!                                        │          └ conditions, fetch, device
//!                                        └ takes whole filters and projections;
//!                                          CPU or GPU: datafusion::placement
//! ```
//!
//! A GSST table is a listing table of DataFusion whose files this module reads. Several files, folders, globs,
//! partition columns, object stores and file statistics work as for Parquet. The files end in `.parquet`, because they
//! are Parquet files. Files without GSST columns, and all other columns, are plain Parquet. Tables `STORED AS PARQUET`
//! and files that a statement names come here, too, if one of their files has GSST columns (`parquet_files`).
//!
//! Reading order: [`GsstFormatFactory`], `sink`; `source`, `footers`, `conditions`; `file_scan`, `fetch`; `comparing`,
//! `distinct`, `frequent` (different rows that stay on a device, their number, and the most frequent of them).

mod comparing;
#[cfg(test)]
mod comparing_host;
mod conditions;
mod distinct;
mod fetch;
mod file_scan;
mod footers;
mod frequent;
mod sink;
mod source;

pub(crate) use fetch::ReadBuffers;
pub use footers::{ColumnFacts, FileFacts};
pub(crate) use footers::{PlainFiles, footer_with_text, statistics, table_schema};
pub use source::{GsstSource, PlannedFiles};

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{GetExt, Statistics, internal_datafusion_err, not_impl_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use futures::{StreamExt, TryStreamExt};
use gsst::CodeWidth;
use object_store::{ObjectMeta, ObjectStore};

use crate::corpora::location::object_store;
use crate::depth::check_type_depth;
use crate::gsst::distinct::DistinctCountExec;
use crate::gsst::footers::read_footer;
use crate::gsst::frequent::FrequentRowsExec;
use crate::gsst::sink::GsstSink;
use crate::gsst::source::Settings;
use crate::options::TadocOptions;
use crate::placement::{DeviceSession, Storage, fastest_width, prepare};
use crate::planning::portions::spreading_of;

/// Returns true if `sink` writes files with GSST columns.
pub(crate) fn is_sink(sink: &dyn DataSink) -> bool {
    sink.is::<GsstSink>()
}

/// Factory of the format `GSST`. It builds the format of a statement from its options.
#[derive(Debug, Default)]
pub struct GsstFormatFactory {
    buffers: Arc<ReadBuffers>,
}

impl GetExt for GsstFormatFactory {
    fn get_ext(&self) -> String {
        "gsst".into()
    }
}

impl FileFormatFactory for GsstFormatFactory {
    fn create(&self, session: &dyn Session, format_options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        let format =
            GsstFormat { overrides: TadocOptions::for_format(format_options), buffers: Arc::clone(&self.buffers) };
        // Wrong keys and values are refused now, not by the first query.
        format.options(session)?;
        Ok(Arc::new(format))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(GsstFormat { buffers: Arc::clone(&self.buffers), ..GsstFormat::default() })
    }
}

/// Returns the plan of a scan of Parquet files of which at least one has GSST columns, as of a table
/// `STORED AS GSST`.
///
/// # Errors
/// The errors of planning such a table.
pub(crate) async fn scan_with_text(
    session: &dyn Session,
    config: FileScanConfig,
    buffers: &Arc<ReadBuffers>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let planned = config.file_source();
    let source = GsstSource::new(planned.table_schema().clone());
    let source = match planned.projection() {
        Some(projection) => source.with_projection(projection.clone()),
        None => source,
    };
    let source = Arc::new(source);
    let config = FileScanConfigBuilder::from(config).with_source(source).build();
    let format = GsstFormat { buffers: Arc::clone(buffers), ..GsstFormat::default() };
    format.create_physical_plan(session, config).await
}

/// The format `GSST` with the options of one statement.
#[derive(Debug, Default)]
struct GsstFormat {
    overrides: HashMap<String, String>,
    buffers: Arc<ReadBuffers>,
}

/// Returns the options of the table with the format `format`, if that is `GSST`.
pub fn gsst_options<'a>(format: &'a (dyn FileFormat + 'static)) -> Option<&'a HashMap<String, String>> {
    format.downcast_ref::<GsstFormat>().map(|format| &format.overrides)
}

/// Returns the format `GSST` with the options of a table.
///
/// # Errors
/// A configuration error that names the first unknown key or refused value.
pub fn gsst_format(overrides: HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
    TadocOptions::default().with_overrides(&overrides)?;
    Ok(Arc::new(GsstFormat { overrides, buffers: Arc::default() }))
}

impl GsstFormat {
    /// Returns the settings of the session, overridden by those of the statement.
    fn options(&self, session: &dyn Session) -> Result<TadocOptions> {
        TadocOptions::from_config(session.config_options()).with_overrides(&self.overrides)
    }
}

#[async_trait]
impl FileFormat for GsstFormat {
    fn get_ext(&self) -> String {
        "parquet".into()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        if compression.is_compressed() {
            not_impl_err!("a GSST file is compressed already")
        } else {
            Ok(self.get_ext())
        }
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        // With a compression type, DataFusion finds the files of a folder by their ending
        // (`.parquet`), not by the name of the format.
        Some(FileCompressionType::UNCOMPRESSED)
    }

    async fn infer_schema(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        prepare(&DeviceSession::from_config(session.config()), &self.options(session)?);
        let cache = session.runtime_env().cache_manager.get_file_metadata_cache();
        let concurrency = session.config_options().execution.meta_fetch_concurrency.get();
        let mut schemas: Vec<_> = futures::stream::iter(objects)
            .map(|object| async {
                let footer = read_footer(store, object, Some(&cache)).await?;
                Ok::<_, datafusion::error::DataFusionError>((object.location.clone(), table_schema(&footer)))
            })
            .boxed()
            .buffer_unordered(concurrency)
            .try_collect()
            .await?;
        // The order of columns follows the names of the files, not the listing of the store.
        schemas.sort_unstable_by(|(one, _), (two, _)| one.cmp(two));
        let schemas: Vec<Schema> = schemas.into_iter().map(|(_, schema)| schema).collect();
        let schema = merged(&schemas)?;
        check_type_depth(&schema)?;
        Ok(Arc::new(schema))
    }

    async fn infer_stats(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        let cache = session.runtime_env().cache_manager.get_file_metadata_cache();
        let footer = read_footer(store, object, Some(&cache)).await?;
        statistics(&footer, &table_schema)
    }

    async fn create_physical_plan(
        &self,
        session: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = config
            .file_source()
            .downcast_ref::<GsstSource>()
            .ok_or_else(|| internal_datafusion_err!("a GSST table without a GSST source"))?;
        let options = self.options(session)?;
        let devices = DeviceSession::from_config(session.config());
        prepare(&devices, &options);
        let store_url = &config.object_store_url;
        let store = session.runtime_env().object_store(store_url)?;
        let files = config.file_groups.iter().flat_map(|group| group.iter());
        let objects = files.map(|file| file.object_meta.clone()).collect();
        let settings = Settings {
            calibration: Arc::new(devices.calibration()),
            devices,
            options,
            runtime: Arc::clone(session.runtime_env()),
            store_url: store_url.as_str().into(),
            facts: FileFacts::read(session, &store, objects, source.table_schema().file_schema()).await?,
            num_cores: session.config_options().execution.target_partitions,
            buffers: Arc::clone(&self.buffers),
            planned: None,
            may_travel: spreading_of(session.config()).is_some(),
        };
        let source = Arc::new(source.with_settings(settings));
        let config = FileScanConfigBuilder::from(config).with_source(source).build();
        Ok(DataSourceExec::from_data_source(config))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        session: &dyn Session,
        config: FileSinkConfig,
        order_requirements: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if config.insert_op != InsertOp::Append {
            return not_impl_err!(
                "{} into a table STORED AS GSST; INSERT INTO adds files, COPY replaces one",
                config.insert_op
            );
        }
        // Builds the store if the session does not have it, as for reading.
        object_store(session.runtime_env(), config.object_store_url.as_ref())?;
        let mut options = self.options(session)?;
        if options.gsst_code_bits.is_none() {
            options.gsst_code_bits = Some(width_for(session, &options, &config)?);
        }
        // Without the option, COPY replaces as DataFusion's own does.
        let is_asked = self.overrides.keys().any(|key| key.ends_with("overwrite"));
        let sink = GsstSink::try_new(config, options.clone(), is_asked && !options.overwrite)?;
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order_requirements)))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(GsstSource::new(table_schema))
    }
}

/// Optimizer rule that compares rows of a GSST column on a device: it puts [`DistinctCountExec`] above counts of
/// different rows, and [`FrequentRowsExec`] above sorts of their counts.
#[derive(Debug, Default)]
pub(crate) struct RowsOnDevice;

impl PhysicalOptimizerRule for RowsOnDevice {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let compared = |node: Arc<dyn ExecutionPlan>| {
            if let Some(exec) = DistinctCountExec::over(&node) {
                return Ok(Transformed::yes(Arc::new(exec) as _));
            }
            Ok(match FrequentRowsExec::over(&node) {
                Some(exec) => Transformed::yes(Arc::new(exec) as _),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(compared).data()
    }

    fn name(&self) -> &str {
        "tadoc_rows_on_device"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the width of codes with which scans of the files that `config` writes are predicted to be faster.
fn width_for(session: &dyn Session, options: &TadocOptions, config: &FileSinkConfig) -> Result<CodeWidth> {
    let devices = DeviceSession::from_config(session.config());
    let storage = Storage::for_url(&devices, config.object_store_url.as_str());
    let num_cores = session.config_options().execution.target_partitions;
    fastest_width(&devices, options, &devices.calibration(), storage, num_cores)
}

/// Returns the columns of all files. A column that a file lacks is nullable.
pub(crate) fn merged(schemas: &[Schema]) -> Result<Schema> {
    let all = Schema::try_merge(schemas.iter().map(|schema| Schema::new(schema.fields().clone())))?;
    let is_everywhere = |field: &Field| schemas.iter().all(|schema| schema.column_with_name(field.name()).is_some());
    let field = |field: &Arc<Field>| {
        if is_everywhere(field) { Arc::clone(field) } else { Arc::new(field.as_ref().clone().with_nullable(true)) }
    };
    Ok(Schema::new(all.fields().iter().map(field).collect::<Vec<_>>()))
}
