//! Format `PARQUET` of a session, whose errors about footers name the file.

use std::collections::HashMap;
use std::sync::Arc;
use std::{fmt, slice};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
#[cfg(feature = "distributed")]
use datafusion::common::config::TableParquetOptions;
use datafusion::common::{GetExt, Statistics};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
#[cfg(feature = "distributed")]
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory, FileMeta};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::{LexOrdering, LexRequirement};
use datafusion::physical_plan::ExecutionPlan;
use object_store::{ObjectMeta, ObjectStore};

use super::contain_future;

/// Extension of Parquet files, and the name of their format.
const PARQUET: &str = "parquet";

/// Wraps `format` in the naming format if it reads Parquet.
pub(in super::super) fn wrap_parquet_format(
    format: Arc<dyn FileFormatFactory>,
) -> Arc<dyn FileFormatFactory> {
    match format.get_ext() == PARQUET && !format.is::<NamingFactory>() {
        true => Arc::new(NamingFactory(format)),
        false => format,
    }
}

/// Returns the options of `format` if it reads plain Parquet files: DataFusion's own, or that of this
/// module.
#[cfg(feature = "distributed")]
pub(in super::super) fn parquet_options<'a>(
    format: &'a (dyn FileFormat + 'static),
) -> Option<&'a TableParquetOptions> {
    let inner = match format.downcast_ref::<NamingFormat>() {
        Some(naming) => naming.0.as_ref(),
        None => format,
    };
    inner.downcast_ref::<ParquetFormat>().map(ParquetFormat::options)
}

/// Returns the format that reads plain Parquet files.
#[cfg(feature = "distributed")]
pub(in super::super) fn parquet_format(options: TableParquetOptions) -> Arc<dyn FileFormat> {
    Arc::new(NamingFormat(Arc::new(ParquetFormat::default().with_options(options))))
}

/// Factory that wraps the formats of the session's own factory.
struct NamingFactory(Arc<dyn FileFormatFactory>);

impl fmt::Debug for NamingFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl GetExt for NamingFactory {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }
}

impl FileFormatFactory for NamingFactory {
    fn create(
        &self,
        session: &dyn Session,
        format_options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        Ok(Arc::new(NamingFormat(self.0.create(session, format_options)?)))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(NamingFormat(self.0.default()))
    }
}

/// DataFusion's format, wrapped so that errors name the file.
struct NamingFormat(Arc<dyn FileFormat>);

impl fmt::Debug for NamingFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl FileFormat for NamingFormat {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.0.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.0.compression_type()
    }

    /// Asks for all files at once. If that fails, asks for each file in order, up to the one that
    /// causes the error.
    async fn infer_schema(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let all = contain_future("Parquet files", self.0.infer_schema(session, store, objects));
        let error = match all.await {
            Ok(schema) => return Ok(schema),
            Err(error) => error,
        };
        for object in objects {
            let alone = self.0.infer_schema(session, store, slice::from_ref(object));
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
        let asked = self.0.infer_stats(session, store, table_schema, object);
        contain_future(object.location.as_ref(), asked).await
    }

    async fn infer_ordering(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        let asked = self.0.infer_ordering(session, store, table_schema, object);
        contain_future(object.location.as_ref(), asked).await
    }

    async fn infer_stats_and_ordering(
        &self,
        session: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        let asked = self.0.infer_stats_and_ordering(session, store, table_schema, object);
        contain_future(object.location.as_ref(), asked).await
    }

    async fn create_physical_plan(
        &self,
        session: &dyn Session,
        scan: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_physical_plan(session, scan).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        session: &dyn Session,
        sink: FileSinkConfig,
        order_requirements: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_writer_physical_plan(input, session, sink, order_requirements).await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.0.file_source(table_schema)
    }
}
