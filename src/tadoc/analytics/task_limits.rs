//! Limits of tasks: their memory, a caller who may leave, a selection of documents, and corpora in parts.
//!
//! ```text
//! sequence_count(&corpus, 3, 1 << 30)                   1 GiB; the caller waits for the answer
//! sequence_count(&corpus, 3, TaskLimits { .. })         the same, until `is_cancelled` returns true
//! ```
//!
//! The question is asked by each thread of a task, every few milliseconds at most, so it should be
//! quick: a flag, or a channel that is closed. After the answer `true` a task ends with
//! [`Error::Cancelled`] as soon as all its threads have asked.
//!
//! A task asks for parts of a corpus by number, as often as it likes, and says how much memory it holds
//! beside them. Their owner decides what stays in memory.
//!
//! # Sorting
//!
//! ```text
//! sample      d  m  t                                      63 splitters of 1,024 entries
//! parts       below d | d | d to m | m | m to t | t | above t      as many entries in each, about
//! then        each part alone; those of one key are done
//! ```
//!
//! The sort of the standard library takes seconds for some ten million entries and cannot be stopped. Entries are first
//! cut into parts by a sample of their keys (Frazer, McKellar, "Samplesort", 1970), with a check every [`CHECK_LEN`]
//! entries, and parts of at most [`WHOLE_LEN`] entries are sorted at once. Parts of one key have their own place, so
//! that keys that repeat do not come back. O(entries * log entries), about as fast as the sort of the standard library;
//! a copy of the entries while they are cut. Equal entries are in any order.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Canceller, Error, Result};
use crate::segment::Corpus;

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
    /// [`Error::Cancelled`].
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
const WHOLE_LEN: usize = 1 << 17;
/// Number of entries that are cut between two checks.
pub(super) const CHECK_LEN: usize = 1 << 16;
const NUM_SAMPLES: usize = 1 << 10;
const NUM_SPLITTERS: usize = 63;

/// Sorts `entries` by `key`.
///
/// # Errors
/// [`Error::Cancelled`]; the entries are then in any order, and some may
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

/// Documents by id, ascending, each once. A selection is cheap to clone and to cut.
#[derive(Debug, Clone)]
pub struct DocSelection(Docs);

#[derive(Debug, Clone)]
enum Docs {
    Range(Range<u64>),
    List(Arc<[u64]>, Range<usize>),
}

impl DocSelection {
    /// Selects every document of `corpus`.
    pub fn all(corpus: &Corpus) -> Self {
        Self::range(0..corpus.num_docs())
    }

    /// Selects the documents with an id in `ids`. The selection is empty if the range ends before
    /// it starts.
    pub fn range(ids: Range<u64>) -> Self {
        Self(Docs::Range(ids.start..ids.end.max(ids.start)))
    }

    /// Selects the documents with the given `ids`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless each id is larger than the one before it.
    pub fn list(ids: impl Into<Arc<[u64]>>) -> Result<Self> {
        let ids = ids.into();
        match ids.windows(2).find(|pair| pair[0] >= pair[1]) {
            None => {
                let all = 0..ids.len();
                Ok(Self(Docs::List(ids, all)))
            }
            Some(pair) => Err(Error::InvalidArgument {
                name: "doc_ids",
                got: format!("{} before {}", pair[0], pair[1]),
                allowed: "ids in ascending order, each once".into(),
            }),
        }
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        match &self.0 {
            Docs::Range(ids) => usize::try_from(ids.end - ids.start).unwrap_or(usize::MAX),
            Docs::List(_, range) => range.len(),
        }
    }

    /// Returns true if no document is selected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the id of the document at `index`, or `None` if `index` is not below
    /// [`len`](Self::len).
    #[inline]
    pub fn get(&self, index: usize) -> Option<u64> {
        match &self.0 {
            Docs::Range(ids) => Some(ids.start + index as u64).filter(|&id| id < ids.end),
            Docs::List(ids, range) => ids[range.clone()].get(index).copied(),
        }
    }

    /// Returns the ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map_while(|index| self.get(index))
    }

    /// Returns the documents at `indexes`; indexes behind the end are ignored.
    #[must_use]
    pub fn slice(&self, indexes: Range<usize>) -> Self {
        let end = indexes.end.min(self.len());
        let start = indexes.start.min(end);
        Self(match &self.0 {
            Docs::Range(ids) => Docs::Range(ids.start + start as u64..ids.start + end as u64),
            Docs::List(ids, range) => Docs::List(ids.clone(), range.start + start..range.start + end),
        })
    }

    /// Returns the selected documents with an id in `ids`.
    #[must_use]
    pub fn within(&self, ids: Range<u64>) -> Self {
        self.slice(self.num_below(ids.start)..self.num_below(ids.end))
    }

    /// Returns the number of documents with an id below `end`.
    fn num_below(&self, end: u64) -> usize {
        match &self.0 {
            Docs::Range(ids) => {
                let num_below = end.clamp(ids.start, ids.end) - ids.start;
                usize::try_from(num_below).unwrap_or(usize::MAX)
            }
            Docs::List(ids, range) => ids[range.clone()].partition_point(|&id| id < end),
        }
    }
}

/// Greatest number of words that tasks read for each byte of memory that they may take. So a small
/// file that expands to 2^60 words is refused.
pub(super) const WORDS_PER_BYTE: u64 = 8;

/// A corpus in parts. No document lies in two parts.
pub trait CorpusParts {
    /// A part in memory.
    type Part: Borrow<Corpus>;

    /// Returns the number of parts.
    fn num_parts(&self) -> usize;

    /// Returns an estimate of the number of words of all parts.
    fn num_words(&self) -> u64;

    /// Loads a part. It may be dropped and loaded again. At most two are held at a time.
    ///
    /// # Errors
    /// The errors of loading.
    fn part(&self, index: usize) -> Result<Self::Part>;

    /// Notes that the search holds so many bytes of memory beside the parts.
    ///
    /// # Errors
    /// The owner has too little memory.
    fn hold(&self, bytes: u64) -> Result<()>;

    /// Returns true if the caller wants to stop.
    fn is_cancelled(&self) -> bool;
}

/// A corpus in memory, as its only part.
#[derive(Debug, Clone, Copy)]
pub struct OnePart<'a>(pub &'a Corpus);

impl<'a> CorpusParts for OnePart<'a> {
    type Part = &'a Corpus;

    fn num_parts(&self) -> usize {
        1
    }

    fn num_words(&self) -> u64 {
        0
    }

    fn part(&self, _index: usize) -> Result<&'a Corpus> {
        Ok(self.0)
    }

    fn hold(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Returns the number of words of document `doc_id` of `corpus`, or 2^64 - 1 if there are more.
pub(super) fn doc_words(corpus: &Corpus, doc_id: u64) -> u64 {
    let parts = corpus.doc_parts(doc_id);
    let lens = parts.map(|(at, doc)| corpus.segments()[at].doc_length_or_derive(doc));
    lens.map(|len| len.num_words).fold(0, u64::saturating_add)
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

    #[test]
    fn ranges_and_lists_are_cut_alike() {
        let range = DocSelection::range(3..9);
        let list = DocSelection::list([3, 4, 5, 6, 7, 8]).unwrap();
        for docs in [range, list] {
            assert_eq!(docs.iter().collect::<Vec<_>>(), [3, 4, 5, 6, 7, 8]);
            let part = docs.slice(1..4);
            assert_eq!((part.len(), part.get(0), part.get(3)), (3, Some(4), None));
            assert_eq!(part.slice(2..9).iter().collect::<Vec<_>>(), [6]);
            assert_eq!(docs.within(0..5).iter().collect::<Vec<_>>(), [3, 4]);
            assert_eq!(part.within(5..100).iter().collect::<Vec<_>>(), [5, 6]);
            assert!(docs.within(9..u64::MAX).is_empty() && docs.slice(6..8).is_empty());
        }
        let gaps = DocSelection::list([2, 5, 9]).unwrap();
        assert_eq!(gaps.within(3..9).iter().collect::<Vec<_>>(), [5]);
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = DocSelection::range(5..2);
        assert!(backwards.is_empty());
    }

    #[test]
    fn refuses_ids_out_of_order() {
        for ids in [vec![1, 1], vec![0, 5, 4]] {
            let fault = DocSelection::list(ids).unwrap_err();
            assert!(matches!(fault, Error::InvalidArgument { name: "doc_ids", .. }), "{fault}");
        }
    }
}
