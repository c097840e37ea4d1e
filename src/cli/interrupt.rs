//! Ctrl-C (and SIGTERM), in three ways. A process uses one of them.
//!
//! [`protect`]: while an output file is being written, the handler removes the unfinished file and
//! exits with 130. The builder may compute for seconds between two chances to stop, so the
//! handler's own thread does it. A finished output cannot be removed by it: the name of the
//! temporary file is taken out under the same lock that covers the rename.
//!
//! [`ask_first`]: work that can be undone, and that looks often whether it [`is_asked`] to stop, ends
//! itself and tidies up; after two seconds the process ends all the same.
//!
//! [`watch`]: queries are told to stop, so that what they write is cleaned up by whoever writes it;
//! what has not stopped after a second is left behind and the process ends. tokio's own signal
//! future will not do: it is woken by a worker thread that has nothing else to do, and busy queries
//! leave none.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use tadoc_store::staging::StagedFile;
use tokio::sync::Notify;

use crate::failure::INTERRUPTED;

/// Time for queries to stop.
pub const GRACE: Duration = Duration::from_secs(1);

static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);
static INSTALLED: Once = Once::new();
static ASKED: AtomicBool = AtomicBool::new(false);

/// Creates a file with `create` and remembers it as unfinished.
///
/// The handler is installed (once per process) before the file exists, and an interrupt waits until
/// its path is known. So there is no moment in which a signal leaves the file behind.
///
/// # Errors
/// The errors of `create`.
pub fn protect(create: impl FnOnce() -> io::Result<StagedFile>) -> io::Result<StagedFile> {
    install(remove_and_exit);
    let mut unfinished = unfinished();
    let file = create()?;
    *unfinished = Some(file.path().to_owned());
    Ok(file)
}

/// Runs `finish` (the rename); an interrupt waits until it has ended.
pub fn finish<T>(finish: impl FnOnce() -> T) -> T {
    let mut unfinished = unfinished();
    let result = finish();
    *unfinished = None;
    result
}

/// Installs a handler that wakes the returned value, and ends the process if that does not.
pub fn watch() -> Arc<Notify> {
    let interrupted = Arc::new(Notify::new());
    let woken = interrupted.clone();
    install(move || {
        woken.notify_one();
        sleep(2 * GRACE);
        exit();
    });
    interrupted
}

/// Installs a handler that only notes the wish to stop, and ends the process if nobody sees to it.
pub fn ask_first() {
    install(|| {
        ASKED.store(true, Ordering::Relaxed);
        sleep(2 * GRACE);
        exit();
    });
}

/// Returns true if the user asked to stop since [`ask_first`].
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

fn install(handler: impl FnMut() + Send + 'static) {
    INSTALLED.call_once(|| {
        // Another handler in the process would only mean that the default action stays.
        let _ = ctrlc::set_handler(handler);
    });
}

fn remove_and_exit() {
    // The lock is kept to the end, so that no rename happens after the removal.
    let unfinished = unfinished();
    if let Some(path) = unfinished.as_deref() {
        let _ = std::fs::remove_file(path);
    }
    exit();
}

fn exit() -> ! {
    // Not by a macro that panics where nobody reads it.
    let _ = writeln!(std::io::stderr(), "error: interrupted");
    std::process::exit(i32::from(INTERRUPTED));
}

fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
