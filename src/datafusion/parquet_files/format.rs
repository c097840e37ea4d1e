//! Format `PARQUET` of a session: DataFusion's own, which also reads files with GSST columns, and
//! whose errors about footers name the file.
//!
//! The footers tell which files have GSST columns. If one of them has, the columns are those of all
//! files by their own names, with text as views, and the scan is that of tables `STORED AS GSST`.
//! Else nothing is changed. So a table that was made of plain files may get files of either kind.
//!
//! A column of texts that a table declares as decimals is refused before a row is read. DataFusion would cast
//! it while it scans, where nothing bounds the length of a text: Arrow's parser of decimals recurses over the
//! digits. A cast in a statement is bounded (`planner/decimal_texts.rs`).

use std::collections::HashMap;
use std::sync::Arc;
use std::{fmt, slice};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::config::TableParquetOptions;
use datafusion::common::{GetExt, Statistics, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory, FileMeta};
use datafusion::datasource::physical_plan::parquet::transform_schema_to_view;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::{LexOrdering, LexRequirement};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use datafusion::physical_plan::ExecutionPlan;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore};

use super::contain_future;
use crate::gsst::{PlainFiles, ReadBuffers, footer_with_text, merged, scan_with_text, statistics, table_schema};
use crate::planner::has_type;
use crate::type_depth::check_type_depth;
use gsst::parquet::GsstFooter;

/// Extension of Parquet files, and the name of their format.
const PARQUET: &str = "parquet";

/// Wraps `format` in the naming format if it reads Parquet.
pub(in super::super) fn wrap_parquet_format(format: Arc<dyn FileFormatFactory>) -> Arc<dyn FileFormatFactory> {
    if format.get_ext() != PARQUET || format.is::<NamingFactory>() {
        return format;
    }
    Arc::new(NamingFactory { inner: format, known: Arc::default() })
}

/// Returns the options of `format` if it reads plain Parquet files: DataFusion's own, or that of this
/// module.
pub fn parquet_options<'a>(format: &'a (dyn FileFormat + 'static)) -> Option<&'a TableParquetOptions> {
    let inner = match format.downcast_ref::<NamingFormat>() {
        Some(naming) => naming.inner.as_ref(),
        None => format,
    };
    inner.downcast_ref::<ParquetFormat>().map(ParquetFormat::options)
}

/// Returns the format that reads plain Parquet files.
pub fn parquet_format(options: TableParquetOptions) -> Arc<dyn FileFormat> {
    let inner = Arc::new(ParquetFormat::default().with_options(options));
    Arc::new(NamingFormat { inner, known: Arc::default() })
}

/// Factory that wraps the formats of the session's own factory.
struct NamingFactory {
    inner: Arc<dyn FileFormatFactory>,
    known: Arc<Known>,
}

/// What the statements of a session share.
#[derive(Default)]
struct Known {
    plain: PlainFiles,
    /// Memory for the bytes of files with GSST columns.
    buffers: Arc<ReadBuffers>,
}

impl fmt::Debug for NamingFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl GetExt for NamingFactory {
    fn get_ext(&self) -> String {
        self.inner.get_ext()
    }
}

impl FileFormatFactory for NamingFactory {
    fn create(&self, session: &dyn Session, format_options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        let inner = self.inner.create(session, format_options)?;
        Ok(Arc::new(NamingFormat { inner, known: Arc::clone(&self.known) }))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        let inner = self.inner.default();
        Arc::new(NamingFormat { inner, known: Arc::clone(&self.known) })
    }
}

/// DataFusion's format, wrapped so that it reads GSST columns and errors name the file.
struct NamingFormat {
    inner: Arc<dyn FileFormat>,
    known: Arc<Known>,
}

impl NamingFormat {
    /// Returns the schema of a plain file, with text as views.
    async fn schema_of_plain(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectMeta,
    ) -> Result<Schema> {
        let alone = self.inner.infer_schema(session, store, slice::from_ref(object));
        let schema = contain_future(object.location.as_ref(), alone).await?;
        Ok(transform_schema_to_view(&schema))
    }

    /// Returns the footer of a file if it has GSST columns.
    async fn footer_of(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectMeta,
    ) -> Result<Option<GsstFooter>> {
        let cache = session.runtime_env().cache_manager.get_file_metadata_cache();
        footer_with_text(store, object, &cache, &self.known.plain).await
    }

    /// Returns the footers of those of `objects` that have GSST columns.
    async fn footers_of<'a>(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: Vec<&'a ObjectMeta>,
    ) -> Result<Vec<(&'a ObjectMeta, Option<GsstFooter>)>> {
        let concurrency = session.config_options().execution.meta_fetch_concurrency.get();
        let read = |object: &'a ObjectMeta| async move { Ok((object, self.footer_of(session, store, object).await?)) };
        stream::iter(objects).map(read).boxed().buffer_unordered(concurrency).try_collect().await
    }

    /// Returns the columns of all files, in the order of the names of the files.
    async fn merged_schema(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        mut files: Vec<(&ObjectMeta, Option<GsstFooter>)>,
    ) -> Result<SchemaRef> {
        files.sort_unstable_by(|(one, _), (other, _)| one.location.cmp(&other.location));
        let mut schemas = Vec::with_capacity(files.len());
        for (object, footer) in files {
            schemas.push(match footer {
                Some(footer) => table_schema(&footer),
                None => self.schema_of_plain(session, store, object).await?,
            });
        }
        Ok(Arc::new(merged(&schemas)?))
    }
}

impl fmt::Debug for NamingFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl FileFormat for NamingFormat {
    fn get_ext(&self) -> String {
        self.inner.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.inner.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.inner.compression_type()
    }

    /// Asks for all files at once. If that fails, asks for each file in order, up to the one that
    /// causes the error.
    async fn infer_schema(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let files = self.footers_of(session, store, objects.iter().collect()).await?;
        if files.iter().any(|(_, footer)| footer.is_some()) {
            return self.merged_schema(session, store, files).await;
        }
        let all = self.inner.infer_schema(session, store, objects);
        let error = match contain_future("Parquet files", all).await {
            Ok(schema) => {
                check_type_depth(&schema)?;
                return Ok(schema);
            }
            Err(error) => error,
        };
        for object in objects {
            let alone = self.inner.infer_schema(session, store, slice::from_ref(object));
            contain_future(object.location.as_ref(), alone).await?;
        }
        Err(error)
    }

    async fn infer_stats(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        if let Some(footer) = self.footer_of(session, store, object).await? {
            return statistics(&footer, &table_schema);
        }
        let asked = self.inner.infer_stats(session, store, table_schema, object);
        contain_future(object.location.as_ref(), asked).await
    }

    async fn infer_ordering(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        if self.footer_of(session, store, object).await?.is_some() {
            return Ok(None);
        }
        let asked = self.inner.infer_ordering(session, store, table_schema, object);
        contain_future(object.location.as_ref(), asked).await
    }

    async fn infer_stats_and_ordering(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        if let Some(footer) = self.footer_of(session, store, object).await? {
            return Ok(FileMeta::new(statistics(&footer, &table_schema)?));
        }
        let asked = self.inner.infer_stats_and_ordering(session, store, table_schema, object);
        contain_future(object.location.as_ref(), asked).await
    }

    async fn create_physical_plan(
        &self,
        session: &dyn Session,
        scan: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = without_decimal_texts(scan);
        let store = session.runtime_env().object_store(&scan.object_store_url)?;
        let files = scan.file_groups.iter().flat_map(|group| group.iter());
        let objects = files.map(|file| &file.object_meta).collect();
        let files = self.footers_of(session, &store, objects).await?;
        if files.iter().any(|(_, footer)| footer.is_some()) {
            drop(files);
            return scan_with_text(session, scan, &self.known.buffers).await;
        }
        drop(files);
        self.inner.create_physical_plan(session, scan).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        session: &dyn Session,
        sink: FileSinkConfig,
        order_requirements: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.inner.create_writer_physical_plan(input, session, sink, order_requirements).await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.inner.file_source(table_schema)
    }
}

/// Returns `scan`, which refuses files whose texts are declared as decimals.
pub(super) fn without_decimal_texts(mut scan: FileScanConfig) -> FileScanConfig {
    let usual = || Arc::new(DefaultPhysicalExprAdapterFactory) as _;
    let adapters = scan.expr_adapter_factory.take().unwrap_or_else(usual);
    scan.expr_adapter_factory = Some(Arc::new(NoDecimalTexts(adapters)));
    scan
}

/// Factory of adapters from the columns of a file to those of its table.
#[derive(Debug)]
struct NoDecimalTexts(Arc<dyn PhysicalExprAdapterFactory>);

impl PhysicalExprAdapterFactory for NoDecimalTexts {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> Result<Arc<dyn PhysicalExprAdapter>> {
        for declared in logical_file_schema.fields() {
            let Ok(stored) = physical_file_schema.field_with_name(declared.name()) else {
                continue;
            };
            let is_decimal = has_type(declared.data_type(), &DataType::is_decimal);
            if is_decimal && has_type(stored.data_type(), &DataType::is_string) {
                return plan_err!(
                    "column {} is a text in the file and is declared as {}; declare a text, and cast it in statements",
                    declared.name(),
                    declared.data_type()
                );
            }
        }
        self.0.create(logical_file_schema, physical_file_schema)
    }
}
