//! The sink of `COPY` and `INSERT`: rows in, Parquet files with GSST columns out.
//!
//! ```text
//! rows ─▶ demultiplexer (by partition columns, by rows per file) ─┬─▶ writer ─▶ staged file
//!                                                                 └─▶ writer ─▶ staged file
//! ```
//!
//! Each file is encoded on a blocking thread of its own. The files become visible when all files of
//! the statement are written; if one fails, none becomes visible.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::common::{exec_err, plan_datafusion_err};
use datafusion::datasource::file_format::write::demux::DemuxedStreamReceiver;
use datafusion::datasource::file_format::write::get_writer_schema;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::DataSink;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::sync::mpsc::{Receiver, channel};

use crate::errors::{datafusion_error, gsst_error, mask_secrets, task_error};
use crate::options::{TadocOptions, shown_parse};
use crate::write::file_format::no_rows;
use crate::write::upload::{ChunkWriter, NewFolders, Staged, check_writable, stage};
use gsst::parquet::{GsstParquetOptions, GsstParquetWriter, NUM_FIRST_ROWS};

/// Bytes that a writer reserves for the text of a block, its codes and a part of the upload. The
/// row group takes memory beyond that, up to a quarter of a bounded pool.
const WRITER_BYTES: usize = 32 << 20;
/// Bytes of batches that wait until the columns are chosen. The writer has no text yet, so they are within
/// [`WRITER_BYTES`].
const FIRST_BYTES: usize = 16 << 20;
/// Number of copies of a row group when it is finished: gathered rows, Arrow array, Parquet pages.
const COPIES: usize = 3;

/// The sink of Parquet files with GSST columns.
pub(super) struct GsstSink {
    config: FileSinkConfig,
    options: TadocOptions,
    parquet: GsstParquetOptions,
    /// True if the statement says that it replaces nothing.
    refuses_existing: bool,
    metrics: ExecutionPlanMetricsSet,
}

impl GsstSink {
    /// Builds the sink. Refuses columns that cannot be GSST columns before the statement runs.
    pub(super) fn try_new(config: FileSinkConfig, options: TadocOptions, refuses_existing: bool) -> Result<Self> {
        let parquet = options.gsst_parquet_options();
        let schema = get_writer_schema(&config);
        GsstParquetWriter::new(std::io::sink(), schema, parquet.clone())
            .map_err(|error| plan_datafusion_err!("STORED AS GSST: {error}"))?;
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { config, options, parquet, refuses_existing, metrics })
    }

    /// Returns true for `COPY`, which names its target. `INSERT` adds a file to a table.
    fn is_copy(&self) -> bool {
        !self.config.original_url.is_empty()
    }

    /// Returns the path of the file, if the target is one file.
    fn single_file(&self) -> Option<&Path> {
        let base = self.config.table_paths.first()?;
        self.config.file_output_mode.single_file_output(base).then(|| base.prefix())
    }

    async fn check_free(&self, store: &dyn ObjectStore, target: &Path) -> Result<()> {
        match store.head(target).await {
            Ok(_) => exec_err!(
                "COPY: {} exists; choose another name, or replace it with OPTIONS ('tadoc.overwrite' 'true')",
                mask_secrets(&self.config.original_url)
            ),
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl fmt::Debug for GsstSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GsstSink").field("url", &self.config.original_url).finish()
    }
}

impl DisplayAs for GsstSink {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = match format {
            DisplayFormatType::TreeRender => "\n",
            _ => ", ",
        };
        let columns = match self.options.gsst_columns.as_str() {
            "" => "text that repeats little",
            columns => columns,
        };
        let bits = self.options.code_width().bits();
        let parse = shown_parse(self.options.gsst_parse);
        let url = mask_secrets(&self.config.original_url);
        write!(f, "GsstSink(file={url}{separator}columns={columns}{separator}")?;
        write!(f, "code_bits={bits}{separator}parse={parse})")
    }
}

#[async_trait]
impl DataSink for GsstSink {
    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        if !self.is_copy() {
            return FileSink::write_all(self, data, context).await;
        }
        let store = context.runtime_env().object_store(&self.config.object_store_url)?;
        if let Some(target) = self.single_file() {
            if self.refuses_existing {
                self.check_free(store.as_ref(), target).await?;
            }
            check_writable(&store, target).await?;
        }
        FileSink::write_all(self, data, context).await
    }
}

#[async_trait]
impl FileSink for GsstSink {
    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        mut file_stream_rx: DemuxedStreamReceiver,
        object_store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let bytes_written = MetricBuilder::new(&self.metrics).global_counter("bytes_written");
        let rows_written = MetricBuilder::new(&self.metrics).global_counter("rows_written");
        let files_written = MetricBuilder::new(&self.metrics).global_counter("files_written");
        let schema = get_writer_schema(&self.config);
        let folders = NewFolders::default();
        let mut writers = JoinSet::new();
        while let Some((target, batches)) = file_stream_rx.recv().await {
            let store = Arc::clone(&object_store);
            let schema = Arc::clone(&schema);
            let parquet = self.parquet.clone();
            let bytes_written = bytes_written.clone();
            let pool = Arc::clone(context.memory_pool());
            let folders = folders.clone();
            writers.spawn(async move {
                let (sender, input) = channel(1);
                let feeding = feed(batches, sender);
                let write = move |out| write_file(out, schema, parquet, input, &pool);
                stage(&store, &target, &folders, bytes_written, feeding, write).await
            });
        }
        // The streams end in the same way if the query fails, so its result is checked here.
        let fed = demux_task.join_unwind().await.map_err(task_error).and_then(|result| result);
        let (files, outcome) = join_all(writers).await;
        // The writer's error comes first: the query only sees that its rows are not taken.
        let outcome = outcome.and_then(|num_rows| fed.map(|()| num_rows));
        let outcome = outcome.and_then(|num_rows| {
            let is_missing = num_rows == 0 && self.is_copy() && !self.options.allow_empty;
            if is_missing { Err(no_rows(&self.config.original_url)) } else { Ok(num_rows) }
        });
        let num_rows = match outcome {
            Ok(num_rows) => num_rows,
            Err(error) => {
                for file in files {
                    file.abort().await;
                }
                return Err(error);
            }
        };
        for file in files {
            file.complete().await?;
            files_written.add(1);
        }
        rows_written.add(num_rows as usize);
        Ok(num_rows)
    }
}

/// Waits for all writers. Returns the files that are whole, and the number of their rows or the first error.
async fn join_all(mut writers: JoinSet<Result<(Staged, u64)>>) -> (Vec<Staged>, Result<u64>) {
    let mut files = Vec::new();
    let mut outcome = Ok(0);
    while let Some(written) = writers.join_next().await {
        match written.map_err(task_error).and_then(|result| result) {
            Ok((file, num_rows)) => {
                files.push(file);
                outcome = outcome.map(|sum| sum + num_rows);
            }
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    (files, outcome)
}

/// Forwards batches until one side ends.
async fn feed(mut batches: Receiver<RecordBatch>, sender: tokio::sync::mpsc::Sender<RecordBatch>) -> Result<()> {
    while let Some(batch) = batches.recv().await {
        // A closed channel means that the writer failed. The writer reports the error.
        if sender.send(batch).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Receives the batches that tell which columns repeat their values, as many as [`FIRST_BYTES`] hold.
fn first_batches(batches: &mut Receiver<RecordBatch>) -> Vec<RecordBatch> {
    let mut first = Vec::new();
    let mut num_rows = 0;
    let mut num_bytes = 0;
    while num_rows < NUM_FIRST_ROWS && num_bytes < FIRST_BYTES {
        let Some(batch) = batches.blocking_recv() else { break };
        num_rows += batch.num_rows();
        num_bytes += batch.get_array_memory_size();
        first.push(batch);
    }
    first
}

/// Writes one file on a blocking thread. Returns the number of its rows.
fn write_file(
    out: ChunkWriter,
    schema: SchemaRef,
    mut options: GsstParquetOptions,
    mut batches: Receiver<RecordBatch>,
    pool: &Arc<dyn MemoryPool>,
) -> Result<u64> {
    let reservation = MemoryConsumer::new("GsstSink").register(pool);
    reservation.try_resize(WRITER_BYTES)?;
    let first = first_batches(&mut batches);
    options.columns = options.columns.without_repeated(&first).map_err(gsst_error)?;
    let mut writer = GsstParquetWriter::new(out, schema, options).map_err(gsst_error)?;
    let mut num_rows = 0;
    // Short memory makes short row groups, because the query that feeds the sink needs memory too.
    let most_bytes = match pool.memory_limit() {
        MemoryLimit::Finite(limit) => limit / 4,
        _ => usize::MAX,
    };
    let mut first = first.into_iter();
    while let Some(batch) = first.next().or_else(|| batches.blocking_recv()) {
        num_rows += batch.num_rows() as u64;
        writer.write(&batch).map_err(gsst_error)?;
        let group_bytes = COPIES * writer.memory_bytes();
        if group_bytes > most_bytes || reservation.try_resize(WRITER_BYTES + group_bytes).is_err() {
            writer.flush().map_err(gsst_error)?;
            reservation.try_resize(WRITER_BYTES + COPIES * writer.memory_bytes())?;
        }
    }
    let out = writer.finish().map_err(gsst_error)?;
    out.finish().map_err(|e| datafusion_error(tadoc::Error::io("COPY: upload", e)))?;
    Ok(num_rows)
}
