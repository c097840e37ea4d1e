//! Limits of a task: the memory that it may take, and a caller who may leave.
//!
//! ```text
//! sequence_count(&corpus, 3, 1 << 30)                   1 GiB; the caller waits for the answer
//! sequence_count(&corpus, 3, TaskLimits { .. })         the same, until `is_cancelled` returns true
//! ```
//!
//! The question is asked by each thread of a task, every few milliseconds at most, so it should be
//! quick: a flag, or a channel that is closed. After the answer `true` a task ends with
//! [`Error::Cancelled`](crate::Error::Cancelled) as soon as all its threads have asked.
//!
//! # Sorting
//!
//! Sorting of many entries that a caller can stop.
//!
//! ```text
//! sample      d  m  t                                      63 splitters of 1,024 entries
//! parts       below d | d | d to m | m | m to t | t | above t      as many entries in each, about
//! then        each part alone; those of one key are done
//! ```
//!
//! The sort of the standard library takes seconds for some ten million entries and cannot be
//! stopped. Entries are first cut into parts by a sample of their keys (Frazer, McKellar,
//! "Samplesort", 1970), with a check every [`CHECK_LEN`] entries, and parts of at most
//! [`WHOLE_LEN`] entries are sorted at once. Parts of one key have their own place, so that keys
//! that repeat do not come back. O(entries * log entries), about as fast as the sort of the
//! standard library; a copy of the entries while they are cut. Equal entries are in any order.

use crate::error::Result;
use crate::interrupt::Canceller;

/// Memory and cancellation of a task. A number of bytes converts to the limits of a caller who
/// stays.
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

/// Greatest number of entries that are sorted at once, in some milliseconds.
pub(super) const WHOLE_LEN: usize = 1 << 17;
/// Number of entries that are cut between two checks.
pub(super) const CHECK_LEN: usize = 1 << 16;
const NUM_SAMPLES: usize = 1 << 10;
const NUM_SPLITTERS: usize = 63;

/// Sorts `entries` by `key`.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled); the entries are then in any order, and some may
/// be missing.
pub(super) fn sort_checked<E: Copy, K: Ord + Copy>(
    entries: &mut [E],
    key: impl Fn(&E) -> K,
    canceller: Canceller<'_>,
) -> Result<()> {
    sort_in_parts(entries, &key, WHOLE_LEN, canceller)
}

/// Sorts `entries`, at most `whole_len` of them at once.
fn sort_in_parts<E: Copy, K: Ord + Copy>(
    entries: &mut [E],
    key: &impl Fn(&E) -> K,
    whole_len: usize,
    canceller: Canceller<'_>,
) -> Result<()> {
    if entries.len() <= whole_len {
        entries.sort_unstable_by_key(key);
        return Ok(());
    }
    let mut waiting = vec![(0, entries.len())];
    while let Some((start, end)) = waiting.pop() {
        canceller.check()?;
        let part = &mut entries[start..end];
        if part.len() <= whole_len {
            part.sort_unstable_by_key(key);
            continue;
        }
        let ends = cut(part, key, canceller)?;
        let bounds = || std::iter::once(0).chain(ends.iter().copied()).zip(ends.iter().copied());
        // A sample that says nothing about the entries does not help again.
        let is_cut = bounds().step_by(2).all(|(first, last)| last - first <= part.len() / 2);
        for (first, last) in bounds().step_by(2) {
            if is_cut {
                waiting.push((start + first, start + last))
            } else {
                part[first..last].sort_unstable_by_key(key)
            }
        }
    }
    Ok(())
}

/// Cuts `entries` into parts by a sample of their keys, and returns the ends of the parts. Every
/// second part, from the second on, has entries of one key.
fn cut<E: Copy, K: Ord + Copy>(
    entries: &mut [E],
    key: &impl Fn(&E) -> K,
    canceller: Canceller<'_>,
) -> Result<Vec<usize>> {
    let mut splitters: Vec<K> = entries.iter().step_by(entries.len().div_ceil(NUM_SAMPLES)).map(key).collect();
    splitters.sort_unstable();
    let step = splitters.len().div_ceil(NUM_SPLITTERS + 1);
    splitters = splitters.into_iter().step_by(step).skip(1).collect();
    splitters.dedup();
    let part_from = |entry: &E| {
        let key = key(entry);
        let at = splitters.partition_point(|&splitter| splitter < key);
        2 * at + usize::from(splitters.get(at) == Some(&key))
    };
    let mut ends = vec![0usize; 2 * splitters.len() + 2];
    for entries in entries.chunks(CHECK_LEN) {
        canceller.check()?;
        entries.iter().for_each(|entry| ends[part_from(entry) + 1] += 1);
    }
    for at in 1..ends.len() {
        ends[at] += ends[at - 1];
    }
    // Each start moves to the end of its part.
    for before in entries.to_vec().chunks(CHECK_LEN) {
        canceller.check()?;
        for entry in before {
            let next = &mut ends[part_from(entry)];
            entries[*next] = *entry;
            *next += 1;
        }
    }
    ends.pop();
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    const STAYS: Canceller<'static> = Canceller::new(&|| false);

    proptest! {
        #[test]
        fn sorts_as_the_standard_library_does(
            numbers in prop::collection::vec(any::<u32>(), 0..3_000),
            num_keys in 1..3_000u32,
            whole_len in 1..90usize,
        ) {
            let mut entries: Vec<(u32, usize)> =
                numbers.iter().map(|number| number % num_keys).zip(0..).collect();
            let mut expected = entries.clone();
            expected.sort_unstable();
            sort_in_parts(&mut entries, &|entry| entry.0, whole_len, STAYS).unwrap();
            prop_assert!(entries.is_sorted_by_key(|entry| entry.0));
            entries.sort_unstable();
            prop_assert_eq!(entries, expected);
        }
    }

    #[test]
    fn a_caller_who_leaves_is_noticed_at_the_next_part() {
        let scrambled = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let entries: Vec<u64> = (0..400_000).map(scrambled).collect();
        let num_asked = AtomicUsize::new(0);
        for stays_for in [0, 1, 5, 9, 40] {
            num_asked.store(0, Ordering::Relaxed);
            let leaves = || num_asked.fetch_add(1, Ordering::Relaxed) >= stays_for;
            let mut sorted = entries.clone();
            let stopped = sort_checked(&mut sorted, |&entry| entry, Canceller::new(&leaves));
            assert!(stopped.is_err() && num_asked.load(Ordering::Relaxed) == stays_for + 1);
        }
        let mut sorted = entries.clone();
        sort_checked(&mut sorted, |&entry| entry, STAYS).unwrap();
        assert!(sorted.is_sorted());
    }
}
