//! Runs work on the threads of this library while Python's lock is free, and looks for Ctrl-C.
//!
//! Another thread ends the work of a session with its [`Interrupts`].
//!
//! All connections of a process share one runtime, which lives as long as the process. A forked
//! child has no threads of its parent, so it gets an error instead of a wait without end.
//!
//! Deep statements need more stack to be dropped than the threads of Python have. So a [`Plan`] that Python
//! or another library holds is dropped on a thread of this library, too.

use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use datafusion::logical_expr::LogicalPlan;
use datafusion_tadoc::contain_panics_of;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use tadoc_session::Outcome;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::{Error, Interrupted, error_of};

/// Time between two looks for signals.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// True if errors that nobody handles make room; see [`raise_behind_reader`].
static MAKES_ROOM: AtomicBool = AtomicBool::new(false);

/// The runtime, and the process that started it.
static RUNTIME: OnceLock<(u32, Runtime)> = OnceLock::new();

/// Returns the runtime of this process.
///
/// # Errors
/// Threads cannot be started, or this process was forked from one that had started them.
pub fn runtime() -> PyResult<&'static Runtime> {
    if RUNTIME.get().is_none() {
        let runtime = tadoc_session::runtime().map_err(error_of)?;
        if let Err((_, second)) = RUNTIME.set((process::id(), runtime)) {
            second.shutdown_background();
        }
    }
    match RUNTIME.get() {
        Some((owner, runtime)) if *owner == process::id() => Ok(runtime),
        _ => Err(Error::new_err(
            "this process was forked from one that uses datafusion_tadoc, and a fork has no \
             threads; start it with multiprocessing.get_context('spawn')",
        )),
    }
}

/// The number of times that a session was asked to end what it runs.
#[derive(Clone, Default)]
pub struct Interrupts(Arc<AtomicU64>);

impl Interrupts {
    /// Asks all work that was started before to end.
    pub fn ask(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns what tells work that starts now to end.
    pub fn watch(&self) -> Watch {
        Watch { interrupts: self.clone(), num_seen: self.0.load(Ordering::Relaxed) }
    }
}

/// Tells if a session was asked to end what it runs, since the watch began.
pub struct Watch {
    interrupts: Interrupts,
    num_seen: u64,
}

impl Watch {
    /// Checks that nobody has asked.
    ///
    /// # Errors
    /// The statement was interrupted, as [`Interrupted`].
    pub fn check(&self) -> PyResult<()> {
        if self.interrupts.0.load(Ordering::Relaxed) == self.num_seen {
            Ok(())
        } else {
            Err(Interrupted::new_err("the statement was interrupted by interrupt()"))
        }
    }
}

/// Work that runs on the runtime. Dropping it stops the work at its next await.
pub struct Task<T> {
    outcome: Receiver<Outcome<T>>,
    handle: JoinHandle<()>,
    watch: Watch,
}

impl<T: Send + 'static> Task<T> {
    /// Starts `work`, which `interrupts` end.
    ///
    /// # Errors
    /// There are no threads; see [`runtime`].
    pub fn spawn(interrupts: &Interrupts, work: impl Future<Output = Outcome<T>> + Send + 'static) -> PyResult<Self> {
        let watch = interrupts.watch();
        let (sender, outcome) = channel();
        let handle = runtime()?.spawn(async move {
            let contained = contain_panics_of("the statement", work).await;
            // Nobody waits for it any more if this fails.
            let _ = sender.send(contained.map_err(Into::into).and_then(|outcome| outcome));
        });
        Ok(Self { outcome, handle, watch })
    }

    /// Looks for an interrupt.
    ///
    /// # Errors
    /// The session is asked to end the work, or a signal handler raises (`KeyboardInterrupt`).
    pub fn look(&self, py: Python<'_>) -> PyResult<()> {
        self.watch.check()?;
        py.check_signals()
    }

    /// Waits for the end of the work, also if the session was asked before to end it.
    ///
    /// # Errors
    /// The errors of [`Task::wait`].
    pub fn wait_to_end(mut self, py: Python<'_>) -> PyResult<T> {
        self.watch = self.watch.interrupts.watch();
        self.wait(py)
    }

    /// Waits for the end of the work.
    ///
    /// # Errors
    /// The work fails, the session is asked to end it, or a signal handler raises (`KeyboardInterrupt`).
    pub fn wait(mut self, py: Python<'_>) -> PyResult<T> {
        loop {
            let outcome = &mut self.outcome;
            match py.detach(move || outcome.recv_timeout(LOOK_EVERY)) {
                Ok(outcome) => return outcome.map_err(error_of),
                Err(RecvTimeoutError::Timeout) => self.look(py)?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new_err("the statement was stopped"));
                }
            }
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// Runs `work` to its end; see [`Task::wait`].
///
/// # Errors
/// The errors of [`Task::spawn`] and [`Task::wait`].
pub fn wait<T: Send + 'static>(
    py: Python<'_>,
    interrupts: &Interrupts,
    work: impl Future<Output = Outcome<T>> + Send + 'static,
) -> PyResult<T> {
    Task::spawn(interrupts, work)?.wait(py)
}

/// Raises the exception of a signal again, behind a reader that no exception can pass.
///
/// The reader fails first. If nobody handles its error, Python prints it while the exception waits, which comes
/// between and leaves neither. So from now on errors that nobody handles make room for such an exception.
///
/// # Errors
/// The interpreter has no `_thread` or `sys`.
pub fn raise_behind_reader(py: Python<'_>) -> PyResult<()> {
    if !MAKES_ROOM.swap(true, Ordering::Relaxed) {
        let sys = py.import("sys")?;
        let show = sys.getattr("excepthook")?.unbind();
        // Python looks for signals before a function in Python begins, so this one is none.
        let make_room = move |error: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| show_error(&show, error);
        sys.setattr("excepthook", PyCFunction::new_closure(py, None, None, make_room)?)?;
    }
    py.import("_thread")?.call_method0("interrupt_main")?;
    Ok(())
}

/// Shows an error, which is its type, itself and its traceback, or the exception of a signal that waits.
fn show_error(show: &Py<PyAny>, error: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let py = error.py();
    match py.check_signals() {
        Ok(()) => show.call1(py, error.clone()),
        Err(signal) => show.call1(py, (signal.get_type(py), signal.value(py), error.get_item(2)?)),
    }
}

/// A plan that is dropped where there is room for deep statements.
pub struct Plan(LogicalPlan);

impl Plan {
    /// Creates the plan.
    pub fn new(plan: LogicalPlan) -> Self {
        Self(plan)
    }

    /// Returns the plan.
    pub fn get(&self) -> &LogicalPlan {
        &self.0
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        let plan = std::mem::take(&mut self.0);
        match runtime() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(plan))),
            // A forked process leaves it where it is.
            Err(_) => std::mem::forget(plan),
        }
    }
}
