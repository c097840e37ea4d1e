//! Limits of a task: the memory that it may take, and a caller who may leave.
//!
//! ```text
//! sequence_count(&corpus, 3, 1 << 30)                   1 GiB; the caller waits for the answer
//! sequence_count(&corpus, 3, TaskLimits { .. })         the same, until `is_cancelled` returns true
//! ```
//!
//! The question is asked by each thread of a task, every few milliseconds at most, so it should be quick: a
//! flag, or a channel that is closed. After the answer `true` a task ends with
//! [`Error::Cancelled`](crate::Error::Cancelled) as soon as all its threads have asked.

use crate::interrupt::Canceller;

/// Memory and cancellation of a task. A number of bytes converts to the limits of a caller who stays.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use tadoc::analytics::{TaskLimits, sequence_count};
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::OpenLimits;
/// use tadoc::{Corpus, Error};
///
/// # fn main() -> tadoc::Result<()> {
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// builder.push_document("a.txt", b"to be or not to be")?;
/// let (file, _report) = builder.finish(None)?;
/// let (_footer, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
///
/// let has_left = AtomicBool::new(true);
/// let is_cancelled = || has_left.load(Ordering::Relaxed);
/// let limits = TaskLimits { max_memory_bytes: 1 << 30, is_cancelled: &is_cancelled };
/// assert!(matches!(sequence_count(&corpus, 2, limits), Err(Error::Cancelled)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct TaskLimits<'a> {
    /// Bytes of memory that the task may take.
    pub max_memory_bytes: u64,
    /// Function that is called from time to time, from any thread; `true` ends the task with
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> TaskLimits<'a> {
    pub(super) fn canceller(&self) -> Canceller<'a> {
        Canceller::new(self.is_cancelled)
    }
}

impl Default for TaskLimits<'_> {
    /// Returns the limits of a task that may take all memory and whose caller stays.
    fn default() -> Self {
        u64::MAX.into()
    }
}

impl From<u64> for TaskLimits<'_> {
    fn from(max_memory_bytes: u64) -> Self {
        Self { max_memory_bytes, is_cancelled: &|| false }
    }
}

impl std::fmt::Debug for TaskLimits<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = formatter.debug_struct("TaskLimits");
        fields.field("max_memory_bytes", &self.max_memory_bytes).finish_non_exhaustive()
    }
}
