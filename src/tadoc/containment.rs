//! Containment of panics in libraries that read foreign bytes.
//!
//! The crates parquet and arrow expect intact files; some damaged files make them panic.
//! [`contain_panics`] converts such a panic to an error and suppresses the line that a panic prints
//! to standard error (`thread … panicked`). Panics of other crates are contained too, but their
//! line is printed, because they are defects that should be reported. Without a panic the cost is
//! some nanoseconds.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Crates whose panics are caused by their input bytes, as they appear in source paths. `bytes` is
/// included because it slices at offsets that come from the file.
/// The last one ends with its runtime: datafusion-distributed waits there for requests to workers when a
/// statement has failed, while the process ends.
const READERS: [&str; 4] = ["/parquet-", "/arrow-", "/bytes-", "/src/task/join_set.rs"];

thread_local! {
    /// Number of nested calls of [`contain_panics`] on this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

static INSTALLED: Once = Once::new();
static ALL_THREADS: AtomicBool = AtomicBool::new(false);

/// Returns the result of `work`, or an error about `what` if it panics.
///
/// ```
/// use tadoc::containment::contain_panics;
///
/// assert_eq!(contain_panics("x.parquet", || 7)?, 7);
/// # Ok::<(), tadoc::Error>(())
/// ```
///
/// # Errors
/// [`Error::External`] with `what` and the text of the panic.
pub fn contain_panics<T>(what: &str, work: impl FnOnce() -> T) -> Result<T> {
    install();
    DEPTH.set(DEPTH.get() + 1);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    outcome.map_err(|payload| {
        let reason = format!("the bytes are damaged; a library gave up: {}", text_of(&*payload));
        Error::external(what, reason)
    })
}

/// Suppresses the panic lines of the reading libraries in all threads. Intended for a process that
/// contains every panic of its statements.
pub fn quiet_readers() {
    ALL_THREADS.store(true, Ordering::Relaxed);
    install();
}

fn install() {
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !is_contained(info) {
                before(info);
            }
        }));
    });
}

fn is_contained(info: &PanicHookInfo<'_>) -> bool {
    let is_of_reader = |file: &str| READERS.iter().any(|reader| file.contains(reader));
    let is_awaited = ALL_THREADS.load(Ordering::Relaxed) || DEPTH.get() > 0;
    is_awaited && info.location().is_some_and(|location| is_of_reader(location.file()))
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_text() {
        let empty: [u8; 0] = [];
        let index = std::hint::black_box(3);
        let error = contain_panics("x.parquet: footer", || empty[index]).unwrap_err().to_string();
        assert!(error.starts_with("x.parquet: footer: the bytes are damaged"), "{error}");
        assert!(error.contains("index out of bounds"), "{error}");
        assert_eq!(DEPTH.get(), 0);
    }
}
