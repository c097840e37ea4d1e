//! A planned statement, and the stream of its rows.
//!
//! ```text
//! Statement ─ __arrow_c_stream__ ─▶ rows as they come, two batches ahead of the reader
//!           ├ batches ─▶ Batches ─▶ the same, for Python: Ctrl-C is an exception
//!           ├ gather ─▶ Gathered  ─▶ rows(), preview(), __arrow_c_stream__
//!           └ preview ─▶ Preview  ─▶ cells of the first rows
//! ```
//!
//! A query runs each time that its rows are asked for. A task of the runtime sends batches through a
//! channel. Who drops the stream ends the task.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::logical_expr::LogicalPlan;
use futures::TryStreamExt;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tadoc_session::Outcome;
use tokio::sync::Semaphore;

use crate::capsules::{schema_capsule, stream_capsule, table_capsule, table_of};
use crate::gathered::{Gathered, Preview, gather, preview};
use crate::waiting::{Interrupts, LOOK_EVERY, Plan, Task, Watch, raise_behind_reader, wait};
use crate::{Error, Interrupted, error_of};

/// Batches that may wait for the reader of a stream.
const WAITING_BATCHES: usize = 2;

/// A planned query, or a statement that has run.
#[pyclass(frozen, weakref, module = "datafusion_tadoc._native")]
pub struct Statement {
    state: State,
    notices: Vec<String>,
}

enum State {
    Query { session: Arc<tadoc_session::Session>, interrupts: Interrupts, plan: Plan },
    Done(Gathered),
}

impl Statement {
    /// Creates a query that has not run, and that `interrupts` end when it runs.
    pub fn query(session: Arc<tadoc_session::Session>, interrupts: Interrupts, plan: LogicalPlan) -> Self {
        Self { state: State::Query { session, interrupts, plan: Plan::new(plan) }, notices: Vec::new() }
    }

    /// Creates a statement that has run.
    pub fn done(rows: Gathered) -> Self {
        Self { state: State::Done(rows), notices: Vec::new() }
    }

    /// Adds what the author of the statement may not have meant.
    pub fn with_notices(self, notices: Vec<String>) -> Self {
        Self { notices, ..self }
    }

    fn schema(&self) -> SchemaRef {
        match &self.state {
            State::Query { plan, .. } => Arc::clone(plan.get().schema().inner()),
            State::Done(rows) => rows.schema(),
        }
    }
}

#[pymethods]
impl Statement {
    /// True if the statement is a query, which runs when its rows are asked for.
    #[getter]
    fn is_query(&self) -> bool {
        matches!(self.state, State::Query { .. })
    }

    /// Notices of parts that the author of the statement may not have meant.
    #[getter]
    fn notices(&self) -> Vec<String> {
        self.notices.clone()
    }

    /// The names and types of the columns.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        let schema = self.schema();
        let name_and_type = |field: &arrow::datatypes::FieldRef| (field.name().clone(), field.data_type().to_string());
        schema.fields().iter().map(name_and_type).collect()
    }

    /// Runs the statement and returns at most `limit` rows.
    #[pyo3(signature = (limit=None))]
    fn gather(&self, py: Python<'_>, limit: Option<usize>) -> PyResult<Gathered> {
        match &self.state {
            State::Query { session, interrupts, plan } => {
                let session = Arc::clone(session);
                let plan = plan.get().clone();
                wait(py, interrupts, async move { gather(&session, plan, limit).await })
            }
            State::Done(rows) => Ok(rows.clone()),
        }
    }

    /// Runs the statement until it has more than `limit` rows, and returns the first ones as cells for people.
    /// A cell has at most `max_width` characters, any number if it is `None`, and a note of what was cut.
    #[pyo3(signature = (limit, max_width))]
    fn preview(&self, py: Python<'_>, limit: usize, max_width: Option<usize>) -> PyResult<Preview> {
        match &self.state {
            State::Query { session, interrupts, plan } => {
                let session = Arc::clone(session);
                let plan = plan.get().clone();
                wait(py, interrupts, async move { preview(&session, plan, limit, max_width).await })
            }
            State::Done(rows) => rows.preview(limit, max_width),
        }
    }

    /// Starts the statement and returns its rows batch by batch.
    fn batches(&self, py: Python<'_>) -> PyResult<Batches> {
        let source = match &self.state {
            State::Query { session, interrupts, plan } => {
                Source::Running(Stream::start(py, Arc::clone(session), interrupts, plan.get().clone())?)
            }
            State::Done(rows) => Source::Done(Some(rows.clone())),
        };
        Ok(Batches { source: Mutex::new(source) })
    }

    /// Starts the statement and returns its rows as a stream of Arrow.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Best effort, as the interface allows: the reader casts.
        let _ = requested_schema;
        match &self.state {
            State::Query { session, interrupts, plan } => {
                let stream = Stream::start(py, Arc::clone(session), interrupts, plan.get().clone())?;
                stream_capsule(py, Box::new(stream))
            }
            State::Done(rows) => stream_capsule(py, rows.reader()),
        }
    }

    /// Returns the rows as a table of a session of the package `datafusion`. The statement runs
    /// each time that the table is read.
    fn __datafusion_table_provider__<'py>(&self, session: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
        match &self.state {
            State::Query { session: ours, plan, .. } => table_capsule(session, table_of(ours, plan.get())?),
            State::Done(_) => Err(Error::new_err(
                "only the rows of a query can be a table of another DataFusion; this statement has \
                 run already, so take its rows with arrow()",
            )),
        }
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema())
    }
}

/// The batches of a statement, for one reader of Python at a time. Dropping them ends the statement.
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct Batches {
    source: Mutex<Source>,
}

enum Source {
    Running(Stream),
    Done(Option<Gathered>),
}

#[pymethods]
impl Batches {
    /// Waits for the next batch, or returns `None` behind the last one.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Gathered>> {
        // A reader that waits needs Python's lock to end, so no other one may wait for it with the lock.
        let Ok(mut source) = self.source.try_lock() else {
            return Err(Error::new_err("another thread reads these rows; let each thread ask for rows of its own"));
        };
        match &mut *source {
            Source::Done(rows) => Ok(rows.take()),
            Source::Running(stream) => {
                let batch = stream.wait(py)?.transpose().map_err(error_of)?;
                Ok(batch.map(|batch| Gathered::new(batch.schema(), vec![batch])))
            }
        }
    }
}

/// The rows of a running statement.
///
/// The thread that asked for the stream holds Python's lock when it reads, or can get it. It gives
/// the lock back while it waits and looks for Ctrl-C. Other threads, such as those of another
/// engine, only wait: they must not wait for the lock, because its holder may wait for them.
struct Stream {
    schema: SchemaRef,
    batches: Receiver<Outcome<RecordBatch>>,
    room: Arc<Semaphore>,
    asked_by: ThreadId,
    watch: Watch,
    _task: Task<()>,
}

impl Stream {
    fn start(
        py: Python<'_>,
        session: Arc<tadoc_session::Session>,
        interrupts: &Interrupts,
        plan: LogicalPlan,
    ) -> PyResult<Self> {
        let watch = interrupts.watch();
        let (sender, batches) = channel();
        let (tell_schema, schema) = channel();
        let room = Arc::new(Semaphore::new(WAITING_BATCHES));
        let room_of_task = Arc::clone(&room);
        let work = async move {
            let rows = session.start(plan).await;
            let rows = match rows {
                Ok(rows) => rows,
                Err(error) => {
                    let _ = tell_schema.send(Err(error.into()));
                    return Ok(());
                }
            };
            let failed = sender.clone();
            let taken = rows.take(async |mut stream| {
                let _ = tell_schema.send(Ok(stream.schema()));
                while let Some(batch) = stream.try_next().await? {
                    let Ok(room) = room_of_task.acquire().await else { break };
                    room.forget();
                    if sender.send(Ok(batch)).is_err() {
                        break;
                    }
                }
                Ok(())
            });
            if let Err(error) = taken.await {
                let _ = failed.send(Err(error.into()));
            }
            Ok(())
        };
        let task = Task::spawn(interrupts, work)?;
        let schema = wait_for_schema(py, &task, schema)?;
        let asked_by = thread::current().id();
        Ok(Self { schema, batches, room, asked_by, watch, _task: task })
    }

    /// Waits for the next batch with Python's lock, which is free meanwhile.
    ///
    /// # Errors
    /// The session is asked to end the statement, or a signal handler raises (`KeyboardInterrupt`).
    fn wait(&mut self, py: Python<'_>) -> PyResult<Option<Outcome<RecordBatch>>> {
        loop {
            // Batches that come fast leave no other time to look.
            self.watch.check()?;
            py.check_signals()?;
            let batches = &mut self.batches;
            match py.detach(move || batches.recv_timeout(LOOK_EVERY)) {
                Ok(batch) => {
                    self.room.add_permits(1);
                    return Ok(Some(batch));
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Waits for the next batch for a reader that is no Python code.
    fn next_with(&mut self, py: Python<'_>) -> Option<Result<RecordBatch, ArrowError>> {
        match self.wait(py) {
            Ok(batch) => batch.map(arrived),
            Err(exception) if exception.is_instance_of::<Interrupted>(py) => Some(Err(interrupted())),
            Err(_) => {
                // A Python without these modules ends, and raises nothing any more.
                drop(raise_behind_reader(py));
                Some(Err(ArrowError::ComputeError("interrupted".to_owned())))
            }
        }
    }

    /// Waits for the next batch without Python's lock.
    fn next_alone(&self) -> Option<Result<RecordBatch, ArrowError>> {
        loop {
            if self.watch.check().is_err() {
                return Some(Err(interrupted()));
            }
            match self.batches.recv_timeout(LOOK_EVERY) {
                Ok(batch) => {
                    self.room.add_permits(1);
                    return Some(arrived(batch));
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

fn arrived(batch: Outcome<RecordBatch>) -> Result<RecordBatch, ArrowError> {
    batch.map_err(|failure| ArrowError::ComputeError(failure.into_text()))
}

fn interrupted() -> ArrowError {
    ArrowError::ComputeError("the statement was interrupted by interrupt()".to_owned())
}

fn wait_for_schema(py: Python<'_>, task: &Task<()>, mut schema: Receiver<Outcome<SchemaRef>>) -> PyResult<SchemaRef> {
    loop {
        let waiting = &mut schema;
        match py.detach(move || waiting.recv_timeout(LOOK_EVERY)) {
            Ok(schema) => return schema.map_err(error_of),
            Err(RecvTimeoutError::Timeout) => task.look(py)?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new_err("the statement broke down"));
            }
        }
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if thread::current().id() == self.asked_by
            && let Some(next) = Python::try_attach(|py| self.next_with(py))
        {
            return next;
        }
        self.next_alone()
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
