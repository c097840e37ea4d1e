//! `COPY (query) TO 'x.tadoc' STORED AS TADOC`: a write-only file format, and its sink.
//!
//! ```text
//! rows ─▶ building ─▶ upload ─▶ complete
//! ```
//!
//! DataFusion finds the format by its name or by the extension `.tadoc`, and asks it for a plan that writes.
//! Reading uses [`TadocTableFactory`](crate::TadocTableFactory), which has more information than a listing
//! table. A folder that is a living corpus gets a new version with the rows, as `INSERT` makes it.
//!
//! The sink writes one file, completely or not at all: the upload is completed only after the builder has
//! finished. A failed query, a refused value or a cancelled statement aborts it. An existing corpus is
//! refused unless `tadoc.overwrite` allows to replace it, and a query without rows unless `tadoc.allow_empty`
//! allows a corpus without documents.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Statistics, exec_datafusion_err, exec_err, not_impl_err, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::sync::mpsc::channel;

use crate::corpora::location::object_store;
use crate::errors::{datafusion_error, mask_secrets};
use crate::options::TadocOptions;
use crate::write::building::{Building, Roles, feed, show_building};
use crate::write::living::{check_outside_living, copy_into};
use crate::write::upload::{ChunkWriter, NewFolders, stage};

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
        let location = &config.original_url;
        let options = &self.options;
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

/// Sink that writes a corpus; see the module's description.
pub(crate) struct TadocSink {
    config: FileSinkConfig,
    roles: Roles,
    options: TadocOptions,
    metrics: ExecutionPlanMetricsSet,
}

impl TadocSink {
    pub(crate) fn try_new(config: FileSinkConfig, options: TadocOptions) -> Result<Self> {
        let roles = Roles::find(&config.output_schema)?;
        Ok(Self { config, roles, options, metrics: ExecutionPlanMetricsSet::new() })
    }

    /// Returns the path of the file: the target itself, or a new name inside the target folder.
    fn target(&self) -> Result<Path> {
        let Some(base) = self.config.table_paths.first() else {
            return Err(exec_datafusion_err!("COPY: no target"));
        };
        if self.config.file_output_mode.single_file_output(base) {
            return Ok(base.prefix().clone());
        }
        // Names increase with time, so that later files come later in the corpus of the folder.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos());
        Ok(base.prefix().clone().join(format!("part-{now:020}.tadoc")))
    }

    /// Refuses an existing file at `target`, unless it may be replaced.
    async fn check_free(&self, store: &dyn ObjectStore, target: &Path) -> Result<()> {
        if self.options.overwrite {
            return Ok(());
        }
        match store.head(target).await {
            Ok(_) => exec_err!(
                "COPY: {} exists; choose another name, or replace it with OPTIONS ('tadoc.overwrite' \
                 'true')",
                mask_secrets(&self.config.original_url)
            ),
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the error of a `COPY` without rows to `url`, which writes nothing.
pub(crate) fn no_rows(url: &str) -> DataFusionError {
    exec_datafusion_err!(
        "COPY: the query has no rows, so {} was not written; OPTIONS ('tadoc.allow_empty' 'true') writes a \
         file without rows",
        mask_secrets(url)
    )
}

impl fmt::Debug for TadocSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TadocSink").field("url", &self.config.original_url).finish()
    }
}

impl DisplayAs for TadocSink {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokenizer = self.options.tokenizer;
        let separator = match format {
            DisplayFormatType::TreeRender => "\n",
            _ => ", ",
        };
        let url = mask_secrets(&self.config.original_url);
        write!(f, "TadocSink(file={url}{separator}tokenizer={tokenizer}{separator}")?;
        show_building(&self.options, format, f)
    }
}

#[async_trait]
impl DataSink for TadocSink {
    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        let target = self.target()?;
        let store = context.runtime_env().object_store(&self.config.object_store_url)?;
        self.check_free(store.as_ref(), &target).await?;
        let (row_sender, rows) = channel(2);
        let feeding = feed(data, row_sender);
        let memory = MemoryConsumer::new("TadocSink");
        let building = Building {
            schema: Arc::clone(self.config.output_schema()),
            roles: self.roles.clone(),
            options: self.options.clone(),
            reservation: memory.register(&context.runtime_env().memory_pool),
            metrics: self.metrics.clone(),
        };
        let build = move |out: ChunkWriter| {
            let (out, footer) = building.run(rows, out)?;
            out.finish().map_err(|e| datafusion_error(tadoc::Error::io("COPY: upload", e)))?;
            Ok(footer.num_docs())
        };
        let bytes_written = MetricBuilder::new(&self.metrics).global_counter("bytes_written");
        let (staged, num_docs) = stage(&store, &target, &NewFolders::default(), bytes_written, feeding, build).await?;
        if num_docs == 0 && !self.options.allow_empty {
            staged.abort().await;
            return Err(no_rows(&self.config.original_url));
        }
        staged.complete().await?;
        MetricBuilder::new(&self.metrics).global_counter("documents").add(num_docs as usize);
        Ok(num_docs)
    }
}
