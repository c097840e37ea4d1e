//! Write-only file format of `COPY (query) TO 'x.tadoc' STORED AS TADOC`.
//!
//! DataFusion finds the format by its name or by the extension `.tadoc`, and asks it for a plan
//! that writes. Reading uses [`TadocTableFactory`](crate::TadocTableFactory), which has more
//! information than a listing table.
//!
//! A folder that is a living corpus gets a new version with the rows, as `INSERT` makes it.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Statistics, not_impl_err, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use object_store::{ObjectMeta, ObjectStore};

use crate::corpora::location::object_store;
use crate::options::TadocOptions;
use crate::write::living::{check_outside_living, copy_into};
use crate::write::sink::TadocSink;

/// Factory that creates the format of `COPY … STORED AS TADOC` from the options of the statement.
#[derive(Debug, Default)]
pub struct TadocFormatFactory;

impl GetExt for TadocFormatFactory {
    fn get_ext(&self) -> String {
        "tadoc".into()
    }
}

impl FileFormatFactory for TadocFormatFactory {
    fn create(&self, session: &dyn Session, format_options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        let ours = TadocOptions::for_format(format_options);
        let options = TadocOptions::from_config(session.config_options()).with_overrides(&ours)?;
        Ok(Arc::new(TadocFormat { options }))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(TadocFormat { options: TadocOptions::default() })
    }
}

/// File format that writes corpora.
#[derive(Debug)]
struct TadocFormat {
    options: TadocOptions,
}

fn cannot_list<T>() -> Result<T> {
    not_impl_err!(
        "a .tadoc file is read with CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION '…', or with \
         documents('…')"
    )
}

#[async_trait]
impl FileFormat for TadocFormat {
    fn get_ext(&self) -> String {
        "tadoc".into()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        if compression.is_compressed() {
            not_impl_err!("a .tadoc file is compressed already")
        } else {
            Ok(self.get_ext())
        }
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(
        &self,
        _session: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        _objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        cannot_list()
    }

    async fn infer_stats(
        &self,
        _session: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        _object: &ObjectMeta,
    ) -> Result<Statistics> {
        Ok(Statistics::new_unknown(&table_schema))
    }

    async fn create_physical_plan(
        &self,
        _session: &dyn Session,
        _config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        cannot_list()
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        session: &dyn Session,
        config: FileSinkConfig,
        order_requirements: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !config.table_partition_cols.is_empty() {
            return plan_err!("STORED AS TADOC does not take PARTITIONED BY");
        }
        // Creates the store if the session does not know it, as for reading.
        object_store(session.runtime_env(), config.object_store_url.as_ref())?;
        let is_folder = |base| !config.file_output_mode.single_file_output(base);
        let (location, options) = (&config.original_url, &self.options);
        if config.table_paths.first().is_some_and(is_folder) {
            let copy = copy_into(location, session, &input, options, &order_requirements).await?;
            if let Some(plan) = copy {
                return Ok(plan);
            }
        } else {
            check_outside_living(location, session).await?;
        }
        let sink = Arc::new(TadocSink::try_new(config, self.options.clone())?);
        Ok(Arc::new(DataSinkExec::new(input, sink, order_requirements)))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        // Unreachable: a scan is refused before it asks for a source.
        Arc::new(datafusion::datasource::physical_plan::ArrowSource::new_file_source(table_schema))
    }
}
