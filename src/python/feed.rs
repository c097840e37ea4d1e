//! Feeds rows from Python to a statement that reads them once: `COPY` or `INSERT`.
//!
//! ```text
//! thread of Python: iterable ─▶ paths and texts ─▶ batches of 4 MiB ─┐
//!                   Arrow object ─────────────────▶ its batches ─────┤ two batches wait
//!                                                                    ▼
//! runtime:                                            a table that streams ─▶ COPY … TO 'x.tadoc'
//! ```
//!
//! If the source fails, the statement gets an error as its next row, so that it leaves no half of a
//! corpus. The exception of the source is raised when the statement has ended.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, BinaryViewBuilder, RecordBatch, StringViewBuilder};
use arrow::compute::kernels::length::length;
use arrow::compute::{cast, sum};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyString};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::capsules::{Reader, is_arrow, reader_of};
use crate::error_of;
use crate::gathered::Gathered;
use crate::waiting::Task;

/// Batches that wait for the statement.
const WAITING_BATCHES: usize = 2;
/// Bytes of text after which a batch of documents ends.
const BATCH_BYTES: usize = 4 << 20;
/// Bytes that a document counts for beside its text, so that a batch of empty ones ends.
const DOCUMENT_BYTES: usize = 64;
/// Time between two tries to send a batch to a busy statement.
const TRY_EVERY: Duration = Duration::from_millis(2);

/// A callable that gets the number of documents and their bytes, as they come.
pub type Counter<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// One item of the channel.
type Fed = Result<RecordBatch>;

/// A source of rows in Python.
pub enum Feed<'py> {
    /// Batches of an Arrow object.
    Arrow(Reader),
    /// Pairs of path and text.
    Documents(Bound<'py, PyIterator>),
}

impl<'py> Feed<'py> {
    /// Reads from an Arrow object or an iterable.
    ///
    /// # Errors
    /// `source` is neither.
    pub fn new(source: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(if is_arrow(source)? { Self::Arrow(reader_of(source)?) } else { Self::Documents(source.try_iter()?) })
    }

    /// Returns a table that can be read once, and the sender of its rows.
    ///
    /// # Errors
    /// Never: the schema of the table is that of its partition.
    pub fn table(&self) -> Result<(Arc<dyn TableProvider>, Sender<Fed>)> {
        let schema = match self {
            Self::Arrow(reader) => reader.schema(),
            Self::Documents(_) => documents_schema(),
        };
        let (sender, receiver) = channel(WAITING_BATCHES);
        let partition = Arc::new(OnePass { schema: Arc::clone(&schema), rows: Mutex::new(Some(receiver)) });
        Ok((Arc::new(StreamingTable::try_new(schema, vec![partition])?), sender))
    }

    /// Sends all rows to the statement and waits for its end.
    ///
    /// # Errors
    /// The exception of the source or of `counter`, the error of the statement, `Interrupted`, or
    /// `KeyboardInterrupt`.
    pub fn run(
        mut self,
        py: Python<'py>,
        sender: Sender<Fed>,
        statement: Task<Gathered>,
        counter: Counter<'_, 'py>,
    ) -> PyResult<Gathered> {
        match self.send_all(py, &sender, &statement, counter) {
            Ok(()) => {
                drop(sender);
                statement.wait(py)
            }
            Err(exception) => {
                let failed = DataFusionError::Execution("the source of the rows failed".to_owned());
                // It takes what waits before, so there is room soon, unless it has ended.
                py.detach(move || drop(sender.blocking_send(Err(failed))));
                // This error says only that the source failed.
                drop(statement.wait_to_end(py));
                Err(exception)
            }
        }
    }

    /// Sends all rows, or as many as the statement takes.
    fn send_all(
        &mut self,
        py: Python<'py>,
        sender: &Sender<Fed>,
        statement: &Task<Gathered>,
        counter: Counter<'_, 'py>,
    ) -> PyResult<()> {
        while let Some(batch) = self.next(py, counter)? {
            let mut batch = Ok(batch);
            loop {
                statement.look(py)?;
                match sender.try_send(batch) {
                    Ok(()) => break,
                    // It has failed, and `run` gets its error.
                    Err(TrySendError::Closed(_)) => return Ok(()),
                    Err(TrySendError::Full(back)) => batch = back,
                }
                py.detach(|| thread::sleep(TRY_EVERY));
            }
        }
        Ok(())
    }

    fn next(&mut self, py: Python<'py>, counter: Counter<'_, 'py>) -> PyResult<Option<RecordBatch>> {
        match self {
            Self::Arrow(reader) => {
                let batch = py.detach(|| reader.next()).transpose().map_err(error_of)?;
                if let (Some(batch), Some(counter)) = (&batch, counter) {
                    counter.call1((batch.num_rows(), text_bytes(batch)))?;
                }
                Ok(batch)
            }
            Self::Documents(documents) => next_documents(documents, counter),
        }
    }
}

/// Returns the bytes of the documents in `batch`, or 0 if no column holds documents.
fn text_bytes(batch: &RecordBatch) -> i64 {
    // The columns that `COPY` takes, in this order.
    let texts = batch.column_by_name("content").or_else(|| batch.column_by_name("text"));
    let Some(Ok(lengths)) = texts.map(|texts| length(texts.as_ref())) else { return 0 };
    match cast(&lengths, &DataType::Int64) {
        Ok(lengths) => sum(lengths.as_primitive::<Int64Type>()).unwrap_or(0),
        Err(_) => 0,
    }
}

fn documents_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("path", DataType::Utf8View, false),
        Field::new("content", DataType::BinaryView, false),
    ]))
}

/// Takes the next batch of documents, or `None` at the end.
fn next_documents(documents: &mut Bound<'_, PyIterator>, counter: Counter<'_, '_>) -> PyResult<Option<RecordBatch>> {
    let mut paths = StringViewBuilder::new();
    let mut texts = BinaryViewBuilder::new();
    let mut len_bytes = 0;
    while len_bytes < BATCH_BYTES
        && let Some(document) = documents.next()
    {
        let (path, text) = document?
            .extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
            .map_err(|_| PyTypeError::new_err("expected pairs of path and text, such as ('a.txt', 'to be')"))?;
        let path = path_of(&path)?;
        let text = text_of(&text)?;
        if [path.len(), text.len()].into_iter().any(|len| len > i32::MAX as usize) {
            return Err(PyValueError::new_err("a text has more than 2 GiB; write it to a file and ingest the file"));
        }
        paths.append_value(&path);
        texts.append_value(text);
        len_bytes += text.len() + DOCUMENT_BYTES;
        if let Some(counter) = counter {
            counter.call1((1, text.len()))?;
        }
    }
    if len_bytes == 0 {
        return Ok(None);
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(paths.finish()), Arc::new(texts.finish())];
    RecordBatch::try_new(documents_schema(), columns).map(Some).map_err(error_of)
}

fn path_of(path: &Bound<'_, PyAny>) -> PyResult<String> {
    if path.hasattr("__fspath__")? { path.call_method0("__fspath__")?.extract() } else { path.extract() }
}

fn text_of<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    if let Ok(text) = text.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes());
    }
    match text.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes()),
        Err(_) => Err(PyTypeError::new_err("a text is a str or bytes")),
    }
}

/// A partition that is read once.
struct OnePass {
    schema: SchemaRef,
    rows: Mutex<Option<Receiver<Fed>>>,
}

impl fmt::Debug for OnePass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnePass").finish_non_exhaustive()
    }
}

impl PartitionStream for OnePass {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        let rows = futures::stream::unfold(rows, async |rows| {
            let Some(mut rows) = rows else {
                let twice = DataFusionError::Execution("the rows of the source can be read once only".to_owned());
                return Some((Err(twice), None));
            };
            rows.recv().await.map(|batch| (batch, Some(rows)))
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}
