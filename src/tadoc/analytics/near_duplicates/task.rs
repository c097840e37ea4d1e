//! The task: its arguments, its memory, and the division of documents among threads.
//!
//! Documents of few words are read in parallel, some at a time. A document that alone needs the share of
//! a thread is read while no other is. So memory for reading is bounded by the threads' share and by the
//! largest document.

use std::ops::Range;

use rayon::prelude::*;

use crate::analytics::corpus_parts::CorpusParts;
use crate::analytics::rolling_hash::Hashing;
use crate::error::{Error, Result};
use crate::text::Fold;

/// Bytes of memory for each word of a document that is read: 4 for the word, 8 for its hash, 16 for its
/// slots, 8 for distinct hashes, and 1 for their counts.
const READING_BYTES: u64 = 40;
/// Greatest number of words that a thread reads before its results are taken.
const MAX_TASK_WORDS: u64 = 1 << 16;
/// Number of tasks for each thread before results are taken.
const TASKS_PER_THREAD: usize = 8;

/// Arguments of the task.
pub(super) struct Task<'a, P> {
    pub parts: &'a P,
    pub fold: &'a Fold,
    pub threshold: f64,
    pub num_words: usize,
    pub max_memory_bytes: u64,
    pub hashing: Hashing,
}

impl<P: CorpusParts + Sync> Task<'_, P> {
    /// Notes the memory in use.
    ///
    /// # Errors
    /// [`Error::Capacity`] if it is too much; the errors of the owner of the parts.
    pub fn hold(&self, bytes: u64) -> Result<()> {
        if bytes > self.max_memory_bytes {
            return Err(self.too_little(bytes));
        }
        self.parts.hold(bytes)
    }

    /// Returns the error of a task that needs so many bytes.
    pub fn too_little(&self, bytes: u64) -> Error {
        Error::memory_of_task("looking for near duplicates (bytes)", bytes, self.max_memory_bytes)
    }

    /// Checks that the caller does not want to stop.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    #[inline]
    pub fn check_cancelled(&self) -> Result<()> {
        if self.parts.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Returns the greatest number of bytes of memory for reading documents of at most `max_doc_words`.
    pub fn reading_bytes(&self, max_doc_words: u64) -> u64 {
        let side_by_side = self.words_of_thread().min(max_doc_words) * num_threads();
        side_by_side.max(max_doc_words).saturating_mul(READING_BYTES)
    }

    /// Returns the number of words that a thread may have in memory beside others.
    fn words_of_thread(&self) -> u64 {
        let share = self.max_memory_bytes / 8 / num_threads() / READING_BYTES;
        share.min(MAX_TASK_WORDS)
    }

    /// Calls `read` with ranges of `lens`, which are numbers of words of documents, and `take` with the
    /// results, in order. `read` is called in parallel, unless a document is large.
    ///
    /// # Errors
    /// The errors of `read` and `take`.
    pub fn for_each_range<T: Send>(
        &self,
        lens: &[u32],
        read: impl Fn(Range<usize>) -> Result<T> + Sync,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let max_words = self.words_of_thread();
        let (mut tasks, mut start, mut num_words) = (Vec::new(), 0, 0u64);
        for (at, &len) in lens.iter().enumerate() {
            if at > start && num_words + u64::from(len) > max_words {
                tasks.push((start..at, num_words));
                (start, num_words) = (at, 0);
            }
            // An empty document takes time, too.
            num_words += u64::from(len).max(1);
        }
        if start < lens.len() {
            tasks.push((start..lens.len(), num_words));
        }
        let is_small = |task: &(Range<usize>, u64)| task.1 <= max_words;
        for tasks in tasks.chunk_by(|a, b| is_small(a) && is_small(b)) {
            for tasks in tasks.chunks(TASKS_PER_THREAD * num_threads() as usize) {
                let read = |(range, _): &(Range<usize>, u64)| read(range.clone());
                let made: Result<Vec<T>> = tasks.par_iter().map(read).collect();
                made?.into_iter().try_for_each(&mut take)?;
            }
        }
        Ok(())
    }
}

fn num_threads() -> u64 {
    rayon::current_num_threads() as u64
}
