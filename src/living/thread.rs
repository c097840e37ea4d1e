//! Blocking work and waiting, off the thread that polls, without asking for a runtime.
//!
//! A thread costs about 20 µs, a sync of a disk 100 to 10,000.

use std::panic::resume_unwind;
use std::time::Duration;

use futures::channel::oneshot;

use crate::error::{Error, Result};

/// Runs `work` on a thread of its own. It runs to its end even where nobody waits for it any more.
///
/// # Errors
/// [`Error::Io`] where there can be no more threads.
pub(super) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::Builder::new().name("tadoc-living".into()).spawn(move || {
        // The receiver is gone where nobody waits.
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

/// Waits.
///
/// # Errors
/// As [`on_thread`].
pub(super) async fn wait(duration: Duration) -> Result<()> {
    match duration.is_zero() {
        true => Ok(()),
        false => on_thread(move || std::thread::sleep(duration)).await,
    }
}
