//! The end of a process: Ctrl-C and SIGTERM, in one of four ways per process, and the exit status.
//!
//! [`protect`]: while an output file is being written, the handler removes the unfinished file and
//! exits with 130. The builder may compute for seconds without a chance to stop, so the handler's
//! own thread does this. The handler cannot remove a finished output: the path of the temporary
//! file is cleared under the same lock that covers the rename.
//!
//! [`ask_first`]: work that can be undone, and that often checks [`is_asked`], ends itself and
//! cleans up. After two seconds the process ends in any case.
//!
//! [`ask_twice`]: a server finishes the statements that run. A second signal ends the process.
//!
//! [`watch`]: queries are told to stop, and each writer cleans up its own output. Queries that have
//! not stopped after a second are abandoned, and the process ends. The signal future of tokio does
//! not suffice: an idle worker thread has to wake it, and busy queries leave no thread idle.
//!
//! [`leave`] ends `main`. With `tadoc.device = auto`, a thread may still be opening a GPU that no statement used. The
//! driver registers handlers with `atexit`. They would wait for that thread for up to half a second and then close the
//! GPU. Such a process ends without the handlers: all output is written by then, and the system frees the rest.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use datafusion_tadoc::DeviceSession;
use tadoc_store::staging::StagedFile;
use tokio::sync::Notify;

use crate::failure::INTERRUPTED;

/// Time that queries get to stop.
pub const GRACE: Duration = Duration::from_secs(1);

static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);
static INSTALLED: Once = Once::new();
static ASKED: AtomicBool = AtomicBool::new(false);

/// Creates a file with `create` and remembers it as unfinished.
///
/// The handler is installed (once per process) before the file exists, and an interrupt waits until
/// the path is known. So no signal can leave the file behind.
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

/// Runs `finish` (the rename). An interrupt waits until it has ended.
pub fn finish<T>(finish: impl FnOnce() -> T) -> T {
    let mut unfinished = unfinished();
    let result = finish();
    *unfinished = None;
    result
}

/// Installs a handler that wakes the returned value, and ends the process if it does not end
/// itself.
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

/// Installs a handler that wakes the returned value at the first signal, and ends the process at the
/// second. The work between them may take its time.
pub fn ask_twice() -> Arc<Notify> {
    let interrupted = Arc::new(Notify::new());
    let woken = interrupted.clone();
    install(move || {
        if ASKED.swap(true, Ordering::Relaxed) {
            exit();
        }
        woken.notify_one();
    });
    interrupted
}

/// Installs a handler that records the request to stop, and ends the process if it does not end
/// itself.
pub fn ask_first() {
    install(|| {
        ASKED.store(true, Ordering::Relaxed);
        sleep(2 * GRACE);
        exit();
    });
}

/// Returns true if the user has asked to stop since [`ask_first`].
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

fn install(handler: impl FnMut() + Send + 'static) {
    INSTALLED.call_once(|| {
        // If another handler is already installed, it stays in place.
        let _ = ctrlc::set_handler(handler);
    });
}

fn remove_and_exit() {
    // The lock is held to the end, so that no rename happens after the removal.
    let unfinished = unfinished();
    if let Some(path) = unfinished.as_deref() {
        let _ = std::fs::remove_file(path);
    }
    exit();
}

fn exit() -> ! {
    // `eprintln!` would panic if standard error is closed.
    let _ = writeln!(std::io::stderr(), "error: interrupted");
    std::process::exit(i32::from(INTERRUPTED));
}

fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The devices of the session of this process.
static DEVICES: OnceLock<Arc<DeviceSession>> = OnceLock::new();

/// Remembers the devices that the process may be opening when it ends.
pub fn remember(devices: Arc<DeviceSession>) {
    // A process has one session; a second one would have devices that nobody waits for either.
    let _first_stays = DEVICES.set(devices);
}

/// Ends `main` with `status`, immediately if a GPU is being opened.
#[allow(unsafe_code, reason = "one call that ends the process and has no safe form")]
pub fn leave(status: u8) -> ExitCode {
    #[cfg(unix)]
    if DEVICES.get().is_some_and(|devices| devices.is_opening()) {
        use std::io::Write;
        // An error means that nobody reads standard output any more.
        let _ = std::io::stdout().flush();
        // SAFETY: ends the process without running any more of its code.
        unsafe { libc::_exit(i32::from(status)) }
    }
    ExitCode::from(status)
}
