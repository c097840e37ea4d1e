//! Panics of libraries that read foreign bytes, as errors.
//!
//! parquet and arrow are made for files that are whole: some damaged ones make them panic. Where such
//! bytes go in, [`contain_panics`] makes an error of it, and keeps the line that a panic prints
//! (`thread … panicked`) off standard error. Panics of other crates are contained, too, but their line
//! stays: they are defects that somebody should hear of. Without a panic it costs some nanoseconds.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use tadoc::error::{Error, Result};

/// Crates whose panics are about the bytes that they were given, as they stand in paths of sources. `bytes` cuts them
/// where a damaged file says.
const READERS: [&str; 3] = ["/parquet-", "/arrow-", "/bytes-"];

thread_local! {
    /// How many calls of [`contain_panics`] this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

static INSTALLED: Once = Once::new();
static ALL_THREADS: AtomicBool = AtomicBool::new(false);

/// What `work` returns, or an error about `what` where it panics.
///
/// ```
/// use datafusion_tadoc::contain_panics;
///
/// assert_eq!(contain_panics("x.parquet", || 7)?, 7);
/// # Ok::<(), tadoc::Error>(())
/// ```
///
/// # Errors
/// [`Error::External`] with `what` and the panic's text.
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

/// Keeps the panic lines of the readers off standard error in all threads: for a process that contains
/// every panic of its statements.
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
