//! Errors of the crate, with one variant for each cause; panics of libraries as errors; and the question whether the
//! caller wants to stop.
//!
//! Every message says what was expected, what came, and what the user can do. Variants that concern
//! bytes name the file, the section and the offset. The *type* is public API, the text is not.
//! Errors of other libraries are boxed, so the crate names neither Arrow nor DataFusion nor CUDA.
//!
//! ```
//! use tadoc::format::OpenLimits;
//! use tadoc::{Corpus, Error};
//!
//! let opened = Corpus::from_bytes("notes.tadoc", b"no corpus", &OpenLimits::default());
//! match opened {
//!     Err(Error::Format { file, reason, .. }) => println!("{file} is no corpus: {reason}"),
//!     _ => unreachable!(),
//! }
//! ```
//!
//! # Panics of libraries
//!
//! The crates parquet and arrow expect intact files; some damaged files make them panic. [`contain_panics`] converts
//! such a panic to an error and suppresses the line that a panic prints to standard error (`thread … panicked`). Panics
//! of other crates are contained too, but their line is printed, because they are defects that should be reported.
//! Without a panic the cost is some nanoseconds.
//!
//! # Long work
//!
//! ```text
//! Canceller   the question, for all threads      asked where a part of the work begins
//! Interrupt   the question and steps to it       counted down in a loop, asked at 0
//! ```
//!
//! A step takes some nanoseconds, so the question is asked every fraction of a millisecond; steps that take longer
//! count as several. O(1) for each step. The work ends with [`Error::Cancelled`] when each of its threads has asked.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of building, opening or querying a corpus.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes violate the file format.
    #[error("{file}: section {section}, offset {offset}: {reason}")]
    Format {
        /// Location of the file.
        file: String,
        /// Section of the file, such as `footer` or `grammar`.
        section: &'static str,
        /// Byte offset in the file of the section, or of the fault inside it.
        offset: u64,
        /// Explanation that names the expected and the actual value.
        reason: String,
    },
    /// The file needs something that this build does not know.
    #[error("{file}: written with {got}, this build reads {expected}; use a newer datafusion-tadoc")]
    Version {
        /// Location of the file.
        file: String,
        /// Versions or names that this build reads.
        expected: String,
        /// Version or name that the file needs.
        got: String,
    },
    /// The stored and the computed checksum differ.
    #[error(
        "{file}: section {section}, offset {offset}: checksum {got:#010x} instead of {expected:#010x}; \
         the file is damaged, restore it from a copy"
    )]
    Checksum {
        /// Location of the file.
        file: String,
        /// Section of the file.
        section: &'static str,
        /// Byte offset of the section in the file.
        offset: u64,
        /// CRC32C stored in the file.
        expected: u32,
        /// CRC32C of the bytes in the file.
        got: u32,
    },
    /// An argument of the caller cannot be used.
    #[error("{name}: got {got}, expected {allowed}")]
    InvalidArgument {
        /// Name of the argument.
        name: &'static str,
        /// Value that was passed.
        got: String,
        /// Description of the values that are accepted.
        allowed: String,
    },
    /// An index or offset lies outside its range.
    #[error("{what} {got} is out of range, there are {len}")]
    OutOfRange {
        /// Name of the index, such as `doc_id`.
        what: &'static str,
        /// Value that was passed.
        got: u64,
        /// One past the largest accepted value.
        len: u64,
    },
    /// An offset lies behind the end of a document.
    #[error(
        "{what} {got} is behind the end of {}, which has {len_bytes} bytes",
        name_for(*doc_id, path)
    )]
    PastEnd {
        /// Name of the offset, such as `byte_offset`.
        what: &'static str,
        /// Value that was passed.
        got: u64,
        /// Id of the document.
        doc_id: u64,
        /// Path of the document, where it is at hand. The message has it in place of the id.
        path: Option<String>,
        /// Length of the document, which is the largest accepted value.
        len_bytes: u64,
    },
    /// A configured limit would be exceeded.
    #[error("{what} needs {requested}, the limit is {limit}; raise {knob} to allow it")]
    Capacity {
        /// Thing that would grow too large.
        what: &'static str,
        /// Amount that was requested.
        requested: u64,
        /// Limit in force.
        limit: u64,
        /// Name of the setting that changes the limit.
        knob: &'static str,
    },
    /// One query of a batch cannot be answered, so no query of the batch is answered.
    #[error("query {query_idx} of the batch: {source}")]
    InBatch {
        /// Index of the query in the batch, the smallest of those that fail.
        query_idx: usize,
        /// Error of this query.
        source: Box<Error>,
    },
    /// The operating system or a store reported an error.
    #[error("{what}: {source}")]
    Io {
        /// Operation that failed, with the path.
        what: String,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// A library that this crate calls failed.
    #[error("{what}: {source}")]
    External {
        /// Operation that failed.
        what: String,
        /// Cause of the failure.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A living corpus does not have this version or file.
    #[error("{location}: there is no {what}; {existing}")]
    Missing {
        /// Folder or prefix of the corpus.
        location: String,
        /// Thing that was requested, such as `version 7`.
        what: String,
        /// Things that exist, or a possible explanation.
        existing: String,
    },
    /// Another commit came first and changed the same documents. This commit changed nothing.
    #[error("{what}: version {version} came first; look at it and try again")]
    Conflict {
        /// Operation that failed, with the location.
        what: String,
        /// Version that the other commit created.
        version: u64,
    },
    /// A commit was sent, and its outcome is unknown.
    #[error(
        "{location}: no answer whether version {version} was committed: {source}; before trying \
         again, look for commit {commit_id} in the history"
    )]
    UnknownCommit {
        /// Folder or prefix of the corpus.
        location: String,
        /// Version that the commit would create.
        version: u64,
        /// Id of the commit.
        commit_id: String,
        /// Cause of the failure.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Returns the error for a step that needs more memory than its task may use. The limit is the
    /// setting of the session, or the rest of the session's memory pool if that is less.
    pub(crate) fn memory_of_task(what: &'static str, requested: u64, limit: u64) -> Self {
        let knob = "tadoc.max_memory_bytes, or the session's memory limit where that is less,";
        Self::Capacity { what, requested, limit, knob }
    }

    /// Returns the error for a count that does not fit into 64 bits.
    pub(crate) fn count_overflow(what: &'static str) -> Self {
        let requested = u64::MAX;
        let limit = u64::MAX - 1;
        Self::Capacity { what, requested, limit, knob: "nothing (counts are 64-bit numbers)" }
    }

    /// Returns the same error about document `id` at `path`, if it is about an offset in a
    /// document.
    pub(crate) fn in_document(self, id: u64, path: Option<&str>) -> Self {
        match self {
            Self::PastEnd { what, got, len_bytes, .. } => {
                Self::PastEnd { what, got, doc_id: id, path: path.map(str::to_owned), len_bytes }
            }
            other => other,
        }
    }

    /// Returns true if stored bytes differ from the bytes that were written. False does not mean
    /// that they are intact: they could not be read, or a limit or a format version prevented it.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Format { .. } | Self::Checksum { .. } => true,
            Self::InBatch { source, .. } => source.is_damage(),
            _ => false,
        }
    }

    /// Wraps an I/O error with a description of the operation.
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }

    /// Wraps an error of a library with a description of the operation.
    pub fn external(what: impl Into<String>, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::External { what: what.into(), source: source.into() }
    }
}

fn name_for(doc_id: u64, path: &Option<String>) -> String {
    match path {
        Some(path) if !path.is_empty() => path.clone(),
        _ => format!("document {doc_id}"),
    }
}

const _: () = assert!(size_of::<Error>() <= 96);

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
/// use tadoc::error::contain_panics;
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

/// Steps of a walk between two looks at the cancellation.
const STEPS_PER_CHECK: u32 = 1 << 14;

/// A question whether the caller wants to stop; each parallel task gets its own [`Interrupt`].
#[derive(Clone, Copy)]
pub(crate) struct Canceller<'a>(&'a (dyn Fn() -> bool + Sync));

impl<'a> Canceller<'a> {
    /// Creates a canceller that asks `is_cancelled`, from any thread.
    pub const fn new(is_cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self(is_cancelled)
    }

    /// Asks the question.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the caller wants to stop.
    #[inline]
    pub fn check(self) -> Result<()> {
        if (self.0)() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Returns an interrupt for one task.
    pub fn interrupt(self) -> Interrupt<'a> {
        Interrupt { canceller: self, steps_left: STEPS_PER_CHECK }
    }
}

impl std::fmt::Debug for Canceller<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Canceller")
    }
}

/// A counter of steps that asks the question every [`STEPS_PER_CHECK`] steps.
#[derive(Debug)]
pub(crate) struct Interrupt<'a> {
    canceller: Canceller<'a>,
    steps_left: u32,
}

impl Interrupt<'_> {
    /// Checks the cancellation if enough steps have passed since the last check.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    #[inline]
    pub fn check(&mut self) -> Result<()> {
        self.pass(1)
    }

    /// Counts `num_steps` steps, and checks the cancellation if enough have passed since the last
    /// check.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    #[inline]
    pub fn pass(&mut self, num_steps: usize) -> Result<()> {
        if num_steps < self.steps_left as usize {
            self.steps_left -= num_steps as u32;
            return Ok(());
        }
        self.ask()
    }

    /// Checks the cancellation now.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn ask(&mut self) -> Result<()> {
        self.steps_left = STEPS_PER_CHECK;
        self.canceller.check()
    }
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
