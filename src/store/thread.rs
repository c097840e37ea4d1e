//! Threads for blocking work and waiting, so that neither needs a runtime nor blocks the polling
//! thread.
//!
//! A thread costs about 20 µs, a sync of a disk 100 to 10,000 µs.

use std::panic::resume_unwind;
use std::time::Duration;

use futures::channel::oneshot;

use tadoc::error::{Error, Result};

/// Runs `work` on a thread of its own. The work runs to its end even if nobody waits for it any
/// more.
///
/// # Errors
/// [`Error::Io`] if the system cannot start more threads.
pub(super) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::Builder::new().name("tadoc-living".into()).spawn(move || {
        // The receiver is gone if nobody waits.
        let _unheard = sender.send(work());
    });
    let thread = thread.map_err(|e| Error::io("starting a thread", e))?;
    match receiver.await {
        Ok(answer) => Ok(answer),
        Err(_) => match thread.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => Err(Error::Cancelled),
        },
    }
}

/// Runs `work`, which uses rayon's workers, on a thread of its own. If the caller is one of these
/// workers, the work gets a pool of its own, because the caller could be the last free worker.
///
/// # Errors
/// The errors of [`on_thread`], and [`Error::External`] if no pool can be started.
pub(super) async fn on_computing_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    if rayon::current_thread_index().is_none() {
        return on_thread(work).await;
    }
    let num_threads = rayon::current_num_threads();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build();
    let pool = pool.map_err(|e| Error::external("starting threads", e))?;
    on_thread(move || pool.install(work)).await
}

/// Waits for `duration`.
///
/// # Errors
/// The errors of [`on_thread`].
pub(super) async fn wait(duration: Duration) -> Result<()> {
    if duration.is_zero() { Ok(()) } else { on_thread(move || std::thread::sleep(duration)).await }
}
