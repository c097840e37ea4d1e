//! The sink of `COPY`: rows in, one corpus file out, all of it or nothing.
//!
//! ```text
//! rows ─▶ channel ─▶ blocking thread: CorpusBuilder ─▶ upload ─▶ complete
//! ```
//!
//! `INSERT` into a living corpus feeds the same builder. The upload is completed only after the
//! builder has finished; a failing query, a refused value or a cancelled statement aborts it. The
//! builder's memory, set by `tadoc.block_bytes`, is reserved.
//!
//! Columns: `content` or `text` is the document (`content` wins, it has the exact bytes; NULL is
//! an empty document), `path` its path (NULL or missing is the empty path); `doc_id`, `bytes` and
//! `words` are derived and not stored; all others become user columns.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::cast::{as_binary_view_array, as_string_view_array};
use datafusion::common::{exec_datafusion_err, plan_datafusion_err, plan_err};
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::datasource::sink::DataSink;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use futures::{Stream, StreamExt};
use object_store::path::Path;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::columns::{ColumnsWriter, RESERVED};
use super::failure::datafusion_error;
use super::options::TadocOptions;
use super::upload::{ChunkWriter, stage};
use crate::corpus::{CorpusBuilder, FileFooter, IngestOptions};

/// Writes a corpus; see the module's description.
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

    /// Where the file goes: the path itself, or a new name inside the folder.
    fn target(&self) -> Result<Path> {
        let Some(base) = self.config.table_paths.first() else {
            return Err(exec_datafusion_err!("COPY: no target"));
        };
        if self.config.file_output_mode.single_file_output(base) {
            return Ok(base.prefix().clone());
        }
        // Names rise with time, so that later files come later in the corpus of the folder.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos());
        Ok(base.prefix().clone().join(format!("part-{now:020}.tadoc")))
    }
}

impl fmt::Debug for TadocSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TadocSink").field("url", &self.config.original_url).finish()
    }
}

impl DisplayAs for TadocSink {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tokenizer, builder) = (self.options.tokenizer, self.options.builder);
        let separator = match format {
            DisplayFormatType::TreeRender => "\n",
            _ => ", ",
        };
        let block = self.options.block_bytes;
        let url = &self.config.original_url;
        write!(f, "TadocSink(file={url}{separator}tokenizer={tokenizer}{separator}")?;
        write!(f, "builder={builder}{separator}block_bytes={block})")
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

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let target = self.target()?;
        let store = context.runtime_env().object_store(&self.config.object_store_url)?;
        let reservation =
            MemoryConsumer::new("TadocSink").register(&context.runtime_env().memory_pool);
        let (row_sender, rows) = channel(2);
        let feeding = feed(data, row_sender);
        let (roles, options) = (self.roles.clone(), self.options.ingest_options());
        let schema = Arc::clone(self.config.output_schema());
        let build = move |out: ChunkWriter| {
            let (out, footer) = build(&schema, &roles, options, rows, out, &reservation)?;
            out.finish().map_err(|e| datafusion_error(crate::Error::io("COPY: upload", e)))?;
            Ok(footer.num_docs())
        };
        let bytes_written = MetricBuilder::new(&self.metrics).global_counter("bytes_written");
        let (staged, num_docs) = stage(&store, &target, bytes_written, feeding, build).await?;
        staged.complete().await?;
        MetricBuilder::new(&self.metrics).global_counter("documents").add(num_docs as usize);
        Ok(num_docs)
    }
}

/// What goes from the query to the builder.
pub(crate) enum Message {
    Rows(RecordBatch),
    End,
}

/// Sends `data` to the builder.
pub(crate) async fn feed(
    mut data: impl Stream<Item = Result<RecordBatch>> + Unpin,
    sender: Sender<Message>,
) -> Result<()> {
    while let Some(batch) = data.next().await {
        // A closed channel means that the builder failed; its error is the one to report.
        if sender.send(Message::Rows(batch?)).await.is_err() {
            return Ok(());
        }
    }
    // Without this word the builder knows that its input broke off.
    let _closed = sender.send(Message::End).await;
    Ok(())
}

/// Which column plays which part.
#[derive(Debug, Clone)]
pub(crate) struct Roles {
    text: usize,
    path: Option<usize>,
    user: Vec<usize>,
}

impl Roles {
    /// The parts of the columns of `schema`.
    ///
    /// # Errors
    /// A plan error where there is no text, and for columns of a wrong type.
    pub(crate) fn find(schema: &Schema) -> Result<Self> {
        let position = |name: &str| schema.fields().iter().position(|field| field.name() == name);
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let text = position("content").or_else(|| position("text")).ok_or_else(|| {
            plan_datafusion_err!(
                "STORED AS TADOC: got the columns {}, expected one named text or content; write \
                 SELECT x AS text",
                names.join(", ")
            )
        })?;
        let path = position("path");
        check_type(schema, text, "text or bytes", is_text_or_bytes)?;
        if let Some(path) = path {
            check_type(schema, path, "text", DataType::is_string)?;
        }
        let is_user = |&i: &usize| !RESERVED.contains(&names[i]);
        let user: Vec<usize> = (0..names.len()).filter(is_user).collect();
        let twice = user.iter().find(|&&i| names[..i].contains(&names[i]));
        match twice {
            Some(&i) => plan_err!("STORED AS TADOC: two columns are named {}", names[i]),
            None => Ok(Self { text, path, user }),
        }
    }
}

fn is_text_or_bytes(data_type: &DataType) -> bool {
    let is_bytes =
        matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
    data_type.is_string() || is_bytes
}

fn check_type(
    schema: &Schema,
    position: usize,
    allowed: &str,
    is_allowed: fn(&DataType) -> bool,
) -> Result<()> {
    let field = schema.field(position);
    match is_allowed(field.data_type()) {
        true => Ok(()),
        false => plan_err!(
            "STORED AS TADOC: column {} is {}, expected {allowed}; write a CAST",
            field.name(),
            field.data_type()
        ),
    }
}

/// Builds the corpus on a blocking thread; what it fills to the end of the input it hands back.
pub(crate) fn build<W: Write>(
    schema: &Schema,
    roles: &Roles,
    options: IngestOptions,
    mut rows: Receiver<Message>,
    out: W,
    reservation: &MemoryReservation,
) -> Result<(W, FileFooter)> {
    // One block of text and its tokens: measured peak is 1.4 blocks, and 2 are asked for.
    let for_blocks = 2 * options.block_bytes;
    let mut columns = ColumnsWriter::try_new(schema, roles.user.clone())?;
    let mut builder = CorpusBuilder::new(out, options).map_err(datafusion_error)?;
    let mut text_bytes = 0usize;
    loop {
        match rows.blocking_recv() {
            Some(Message::Rows(batch)) => {
                text_bytes = text_bytes.saturating_add(batch.get_array_memory_size());
                let columns_bytes = columns.as_ref().map_or(0, ColumnsWriter::memory_bytes);
                reservation.try_resize(for_blocks.min(2 * text_bytes) + columns_bytes)?;
                push_rows(&mut builder, roles, &batch)?;
                if let Some(columns) = &mut columns {
                    columns.write(&batch)?;
                }
            }
            Some(Message::End) => break,
            None => return Err(datafusion_error(crate::Error::Cancelled)),
        }
    }
    let columns = columns.map(ColumnsWriter::finish).transpose()?;
    let (out, report) = builder.finish(columns).map_err(datafusion_error)?;
    Ok((out, report.footer))
}

fn push_rows<W: Write>(
    builder: &mut CorpusBuilder<W>,
    roles: &Roles,
    batch: &RecordBatch,
) -> Result<()> {
    let bytes: ArrayRef = cast(batch.column(roles.text), &DataType::BinaryView)?;
    let bytes = as_binary_view_array(&bytes)?;
    let paths = match roles.path {
        Some(path) => Some(cast(batch.column(path), &DataType::Utf8View)?),
        None => None,
    };
    let paths = paths.as_ref().map(|paths| as_string_view_array(paths)).transpose()?;
    for row in 0..batch.num_rows() {
        let path = paths.filter(|paths| paths.is_valid(row)).map_or("", |paths| paths.value(row));
        let text = if bytes.is_valid(row) { bytes.value(row) } else { &[] };
        builder.push_document(path, text).map_err(datafusion_error)?;
    }
    Ok(())
}
