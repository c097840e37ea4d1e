//! Building of a corpus file from rows, for `COPY` and `INSERT`.
//!
//! ```text
//! rows ─▶ channel ─▶ blocking thread: CorpusBuilder ─▶ out
//!                      └ parallel blocks         tadoc.blocks_at_once, fewer if memory is short
//! ```
//!
//! The file does not depend on the number of blocks. Memory is reserved as text arrives: at most 2 blocks for the block
//! that is being filled, and 4 for each block that is being built. These factors cover measurements of a process
//! (`tadoc ingest`, blocks of 4 to 32 MiB of prose, logs and versions, 1 to 4 in parallel: 3.3 to 6.2 for the first
//! block and 2.3 to 4.8 for each other one). If the session's memory is too small, the blocks in progress are written
//! first, and fewer blocks are built in parallel from then on.
//!
//! Columns: `content` is the document, or `text` where there is no `content`. A row with both must have the same text
//! in them, and one with neither is refused. `path` is the path of the document; a NULL or missing path is empty.
//! `doc_id`, `bytes` and `words` are derived and not stored. All other columns become user columns.

use std::fmt;
use std::io::Write;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{cast, is_not_null};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::cast::{as_binary_view_array, as_string_view_array};
use datafusion::common::{exec_datafusion_err, exec_err, internal_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use futures::{Stream, StreamExt};
use tokio::sync::mpsc::{Receiver, Sender};

use crate::corpora::columns::{ColumnsWriter, RESERVED, unstorable};
use crate::errors::datafusion_error;
use crate::options::TadocOptions;
use tadoc::build::CorpusBuilder;
use tadoc::format::FileFooter;

/// Bytes of memory for each byte of a block that is being filled, and of a block that is being
/// built.
const FILLING: usize = 2;
const BUILDING: usize = 4;

/// Message from the query to the builder.
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
        // A closed channel means that the builder failed. Its own error is reported.
        if sender.send(Message::Rows(batch?)).await.is_err() {
            return Ok(());
        }
    }
    // Without this message the builder knows that its input was interrupted.
    let _closed = sender.send(Message::End).await;
    Ok(())
}

/// Roles of the columns, as indices.
#[derive(Debug, Clone)]
pub(crate) struct Roles {
    content: Option<usize>,
    text: Option<usize>,
    path: Option<usize>,
    user: Vec<usize>,
}

impl Roles {
    /// Finds the roles of the columns of `schema`.
    ///
    /// # Errors
    /// A plan error if there is no text, or if a column has a wrong type.
    pub(crate) fn find(schema: &Schema) -> Result<Self> {
        let position = |name: &str| schema.fields().iter().position(|field| field.name() == name);
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let content = position("content");
        let text = position("text");
        if content.is_none() && text.is_none() {
            return plan_err!(
                "STORED AS TADOC: got the columns {}, expected one named text or content; write \
                 SELECT x AS text",
                names.join(", ")
            );
        }
        let path = position("path");
        for column in [content, text].into_iter().flatten() {
            check_type(schema, column, "text or bytes", is_text_or_bytes)?;
        }
        if let Some(path) = path {
            check_type(schema, path, "text", DataType::is_string)?;
        }
        let is_user = |&i: &usize| !RESERVED.contains(&names[i]);
        let user: Vec<usize> = (0..names.len()).filter(is_user).collect();
        let twice = user.iter().find(|&&i| names[..i].contains(&names[i]));
        if let Some(&i) = twice {
            return plan_err!("STORED AS TADOC: two columns are named {}", names[i]);
        }
        if let Some((i, error)) = unstorable(schema, &user) {
            return plan_err!(
                "STORED AS TADOC: column {} is {}, which no file can hold ({}); write a CAST, such as \
                 CAST({0} AS VARCHAR)",
                names[i],
                schema.field(i).data_type(),
                error.strip_backtrace()
            );
        }
        Ok(Self { content, text, path, user })
    }

    /// Returns the indices of the user columns.
    pub(crate) fn user(&self) -> Vec<usize> {
        self.user.clone()
    }

    /// Returns the paths of the documents in `rows` as text, and their contents as bytes.
    ///
    /// # Errors
    /// An execution error for a row without text, or with two texts.
    pub(crate) fn documents(&self, rows: &RecordBatch) -> Result<(ArrayRef, ArrayRef)> {
        let column = |at: Option<usize>| at.map(|at| rows.column(at));
        let paths = match column(self.path) {
            Some(paths) => cast(paths, &DataType::Utf8View)?,
            None => new_null_array(&DataType::Utf8View, rows.num_rows()),
        };
        Ok((paths, contents(column(self.content), column(self.text))?))
    }
}

/// Returns the contents of documents as bytes: those of the column `content`, or of the column `text`
/// where `content` is NULL.
///
/// # Errors
/// An execution error for a row without both, and for one whose `text` is not the text of its `content`.
pub(crate) fn contents(content: Option<&ArrayRef>, text: Option<&ArrayRef>) -> Result<ArrayRef> {
    let bytes = |column: &ArrayRef| cast(column, &DataType::BinaryView);
    let contents = match (content, text) {
        (Some(content), Some(text)) => joined(bytes(content)?, &bytes(text)?)?,
        (Some(only), None) | (None, Some(only)) => bytes(only)?,
        (None, None) => return internal_err!("a document has a column with its text"),
    };
    match contents.null_count() {
        0 => Ok(contents),
        num_nulls => Err(no_text(num_nulls)),
    }
}

/// Returns `content`, or `text` where it is NULL.
fn joined(content: ArrayRef, text: &ArrayRef) -> Result<ArrayRef> {
    let pairs = as_binary_view_array(&content)?.iter().zip(as_binary_view_array(text)?);
    let num_different = pairs.filter(|&pair| differ(pair)).count();
    if num_different > 0 {
        return exec_err!(
            "the columns text and content of {num_different} row(s) hold different texts; give one of the \
             two, as in SELECT path, text"
        );
    }
    match content.null_count() {
        0 => Ok(content),
        _ => Ok(zip(&is_not_null(&content)?, &content, text)?),
    }
}

/// Returns true if both are there and `text` is not `content` with U+FFFD for invalid bytes.
fn differ(pair: (Option<&[u8]>, Option<&[u8]>)) -> bool {
    let (Some(content), Some(text)) = pair else { return false };
    content != text && String::from_utf8_lossy(content).as_bytes() != text
}

fn is_text_or_bytes(data_type: &DataType) -> bool {
    let is_bytes = matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
    data_type.is_string() || is_bytes
}

fn check_type(schema: &Schema, position: usize, allowed: &str, is_allowed: fn(&DataType) -> bool) -> Result<()> {
    let field = schema.field(position);
    if is_allowed(field.data_type()) {
        Ok(())
    } else {
        plan_err!("STORED AS TADOC: column {} is {}, expected {allowed}; write a CAST", field.name(), field.data_type())
    }
}

/// A corpus file to be built.
pub(crate) struct Building {
    pub(crate) schema: SchemaRef,
    pub(crate) roles: Roles,
    pub(crate) options: TadocOptions,
    pub(crate) reservation: MemoryReservation,
    pub(crate) metrics: ExecutionPlanMetricsSet,
}

impl Building {
    /// Builds the file on the current, blocking thread. Returns `out` and the footer.
    pub(crate) fn run<W: Write>(self, mut rows: Receiver<Message>, out: W) -> Result<(W, FileFooter)> {
        let mut columns = ColumnsWriter::try_new(&self.schema, self.roles.user())?;
        let mut builder = self.builder(out)?;
        let mut room = Room::new(&self);
        loop {
            match rows.blocking_recv() {
                Some(Message::Rows(batch)) => {
                    room.columns_bytes = columns.as_ref().map_or(0, ColumnsWriter::memory_bytes);
                    room.text_bytes = room.text_bytes.saturating_add(batch.get_array_memory_size());
                    self.make(&mut room, &mut builder)?;
                    push_rows(&mut builder, &self.roles, &batch)?;
                    if let Some(columns) = &mut columns {
                        columns.write(&batch)?;
                    }
                }
                Some(Message::End) => break,
                None => return Err(datafusion_error(tadoc::Error::Cancelled)),
            }
        }
        let at_once = MetricBuilder::new(&self.metrics).global_gauge("blocks_at_once");
        at_once.set(room.num_blocks);
        let columns = columns.map(ColumnsWriter::finish).transpose()?;
        let (out, report) = builder.finish(columns).map_err(datafusion_error)?;
        Ok((out, report.footer))
    }

    fn builder<W: Write>(&self, out: W) -> Result<CorpusBuilder<W>> {
        let builder = CorpusBuilder::new(out, self.options.ingest_options());
        let builder = builder.map_err(datafusion_error)?;
        Ok(builder.with_blocks_at_once(self.options.max_blocks_at_once()))
    }

    /// Reserves the memory that `room` asks for. Reduces the number of parallel blocks if memory is
    /// short.
    fn make<W: Write>(&self, room: &mut Room, builder: &mut CorpusBuilder<W>) -> Result<()> {
        while let Err(full) = self.reservation.try_resize(room.len_bytes()) {
            if room.num_blocks == 1 {
                return Err(self.too_large(full));
            }
            room.num_blocks -= 1;
            builder.set_blocks_at_once(room.num_blocks).map_err(datafusion_error)?;
        }
        Ok(())
    }

    fn too_large(&self, full: DataFusionError) -> DataFusionError {
        full.context(format!(
            "tadoc.block_bytes = {}: lower it, or raise the session's memory limit",
            self.options.block_bytes
        ))
    }
}

/// Memory of a file while it is built.
struct Room {
    block_bytes: usize,
    num_blocks: usize,
    /// Bytes of the rows that arrived.
    text_bytes: usize,
    columns_bytes: usize,
}

impl Room {
    fn new(building: &Building) -> Self {
        Self {
            block_bytes: building.options.ingest_options().block_bytes,
            num_blocks: building.options.max_blocks_at_once(),
            text_bytes: 0,
            columns_bytes: 0,
        }
    }

    fn len_bytes(&self) -> usize {
        let blocks_bytes = self.block_bytes.saturating_mul(FILLING + BUILDING * self.num_blocks);
        let texts_bytes = self.text_bytes.saturating_mul(FILLING + BUILDING);
        blocks_bytes.min(texts_bytes).saturating_add(self.columns_bytes)
    }
}

/// Writes the part of a sink's line in `EXPLAIN` that describes how files are built, up to its end.
pub(crate) fn show_building(
    options: &TadocOptions,
    format: DisplayFormatType,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let separator = match format {
        DisplayFormatType::TreeRender => "\n",
        _ => ", ",
    };
    let builder = options.builder;
    write!(f, "builder={builder}{separator}block_bytes={}", options.block_bytes)?;
    write!(f, "{separator}blocks_at_once={}{separator}device=cpu)", options.max_blocks_at_once())
}

fn push_rows<W: Write>(builder: &mut CorpusBuilder<W>, roles: &Roles, batch: &RecordBatch) -> Result<()> {
    let (paths, contents) = roles.documents(batch)?;
    for (path, content) in as_string_view_array(&paths)?.iter().zip(as_binary_view_array(&contents)?) {
        let path = path.unwrap_or_default();
        let content = content.unwrap_or_default();
        builder.push_document(path, content).map_err(datafusion_error)?;
    }
    Ok(())
}

/// Returns the error for rows whose text is NULL. The statement must say if they are empty documents or not
/// documents.
pub(crate) fn no_text(num_rows: usize) -> DataFusionError {
    exec_datafusion_err!(
        "the text of {num_rows} row(s) is NULL; store them as empty documents with coalesce(text, ''), or \
         leave them out with WHERE text IS NOT NULL"
    )
}
