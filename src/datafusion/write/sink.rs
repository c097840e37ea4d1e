//! Sink of `COPY`: writes its rows to one corpus file, completely or not at all.
//!
//! ```text
//! rows ─▶ building ─▶ upload ─▶ complete
//! ```
//!
//! `INSERT` into a living corpus builds its files in the same way. The upload is completed only
//! after the builder has finished. A failed query, a refused value or a cancelled statement aborts
//! it.
//!
//! An existing corpus is refused unless `tadoc.overwrite` allows to replace it, and a query without rows
//! unless `tadoc.allow_empty` allows a corpus without documents.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::datasource::sink::DataSink;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::sync::mpsc::channel;

use crate::errors::{datafusion_error, mask_secrets};
use crate::options::TadocOptions;
use crate::write::building::{Building, Roles, feed, show_building};
use crate::write::upload::{ChunkWriter, NewFolders, stage};

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
