//! Ctrl-C while an output file is being written: removes the unfinished file and exits with 130.
//!
//! The builder may compute for seconds between two chances to stop, so the handler's own thread
//! cleans up and ends the process. A finished output cannot be removed by it: the name of the
//! temporary file is taken out under the same lock that covers the rename.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use crate::failure::INTERRUPTED;

static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);
static INSTALLED: Once = Once::new();

/// Remembers `path` as unfinished and installs the handler (once per process).
pub fn protect(path: &Path) {
    *unfinished() = Some(path.to_owned());
    INSTALLED.call_once(|| {
        // Another handler in the process would only mean that the default action stays.
        let _ = ctrlc::set_handler(remove_and_exit);
    });
}

/// Runs `finish` (the rename); an interrupt waits until it has ended.
pub fn finish<T>(finish: impl FnOnce() -> T) -> T {
    let mut unfinished = unfinished();
    let result = finish();
    *unfinished = None;
    result
}

fn remove_and_exit() {
    // The lock is kept to the end, so that no rename happens after the removal.
    let unfinished = unfinished();
    if let Some(path) = unfinished.as_deref() {
        let _ = std::fs::remove_file(path);
    }
    eprintln!("error: interrupted");
    std::process::exit(i32::from(INTERRUPTED));
}

fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
