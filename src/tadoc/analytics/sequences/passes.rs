//! Passes: one walk if all windows fit into memory, else several walks over ranges of sequences.
//!
//! ```text
//! walk 1    all               too much: given up
//! walk 2    how many where    | 12 | 3 | 90 | 7 |        a range that alone is too much is cut again
//! walks     [12 3] [90] [7]   kept, counted, sent, forgotten
//! ```
//!
//! A range is cut while it has more than one sequence. So an error means that one sequence occurs
//! more often than memory can hold. O(walks * grammar), where the number of walks is (windows met /
//! windows that fit) + 2.
//!
//! The rows of a pass are made in parts, by [`RowMaker`]. Windows are cut by ranges of sequences.
//! One thread sorts each run of ranges, adds up equal windows and converts them to the result of
//! the caller; another thread takes earlier results meanwhile, in order:
//!
//! ```text
//! tasks     0 1 2 3 | 4 5 6 ...
//! threads   1 3     |               a few tasks ahead of what is taken, no more
//! taken     0       |               in order, by the caller's thread, meanwhile
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use rayon::prelude::*;

use crate::analytics::Vocabulary;
use crate::error::{Error, Result};
use crate::interrupt::Canceller;

use super::Sink;
use super::entries::{Buckets, Entry, Sorting};
use super::key::{Keep, Key, Keyed, Packing, Tally};
use super::limit::Limit;
use super::rows::{Counted, Sequences};
use super::walk::Walk;
use super::windows::{NumberedWeights, TextWindows, Weights};

/// Maximum number of ranges of a tally (2 to this), with 8 bytes each.
const TALLY_BITS: u32 = 16;
const LEAST_TALLY_BITS: u32 = 4;

/// Range of keys that is counted separately: the first key and the last.
pub(in crate::analytics) type KeyRange<K> = (K, K);

/// Returns the keys of `key_bits` bits that begin with one of `words`, of `word_bits` bits each.
/// Returns `None` if there are no words.
pub(in crate::analytics) fn keys_from<K: Key>(
    words: Range<usize>,
    word_bits: u32,
    key_bits: u32,
) -> Option<KeyRange<K>> {
    let rest = key_bits - word_bits;
    let first_for = |word: usize| K::default().with_value(word as u32, 0).with_value(0, rest);
    let last = words.clone().next_back()?;
    Some((first_for(words.start), first_for(last).joined(K::ones(rest))))
}

/// Calls `take` for each pass, until it returns false. `take` gets the sinks of a walk, the range
/// of their keys (`within`, or all keys below 2^`key_bits`; one range of these after another if
/// memory is short), and the bytes that the walk still holds. `new` makes sinks.
///
/// # Errors
/// [`Error::Capacity`] if one sequence alone is met more often than `limit` allows,
/// [`Error::Cancelled`], and the errors of `take`.
pub(in crate::analytics) fn for_each_pass<K: Key, S: Sink + Send>(
    walk: Walk,
    vocabulary: &Vocabulary,
    limit: &Limit<'_>,
    (key_bits, within): (u32, Option<KeyRange<K>>),
    new: impl Fn(Keep<K>) -> S + Sync,
    mut take: impl FnMut(Vec<S>, KeyRange<K>, usize) -> Result<bool>,
) -> Result<()> {
    let all = within.unwrap_or((K::default(), K::ones(key_bits)));
    match walk.tasks(vocabulary, limit, || new(Keep::from_range(within))) {
        Ok(sinks) => {
            drop(walk);
            return take(sinks, all, 0).map(drop);
        }
        Err(Error::Capacity { .. }) => {}
        Err(error) => return Err(error),
    }
    let ranges = fitting_ranges(limit, key_bits, |keep| {
        walk.tasks(vocabulary, &limit.for_range(), || new(keep.clone())).map(drop)
    })?;
    for (first, last) in ranges {
        let (first, last) = (first.max(all.0), last.min(all.1));
        if first > last {
            continue;
        }
        let keep = Keep::Within(first, last);
        let sinks = walk.tasks(vocabulary, &limit.for_range(), || new(keep.clone()))?;
        if !take(sinks, (first, last), walk.memory_bytes())? {
            break;
        }
    }
    Ok(())
}

/// Returns ranges that together have all keys below 2^`key_bits`. Each has at most as many windows
/// as `limit` allows, unless a single key has more.
///
/// # Errors
/// The errors of `walk`.
pub(in crate::analytics) fn fitting_ranges<K: Key>(
    limit: &Limit<'_>,
    key_bits: u32,
    walk: impl Fn(&Keep<K>) -> Result<()>,
) -> Result<Vec<KeyRange<K>>> {
    let max_met = limit.max_met() as u64;
    let num_bits = (max_met + 1).ilog2().clamp(LEAST_TALLY_BITS, TALLY_BITS);
    let mut ranges: Vec<KeyRange<K>> = Vec::new();
    // Number of windows met in the last of `ranges`.
    let mut num_met = u64::MAX;
    // Ranges still to cut, the first one last, with the number of windows met in each.
    let mut waiting = vec![(K::default(), key_bits, u64::MAX)];
    while let Some((first, bits, count)) = waiting.pop() {
        if count > max_met && bits > 0 {
            let tally = Arc::new(Tally::new(first, bits, num_bits));
            walk(&Keep::Counted(tally.clone()))?;
            let parts: Vec<_> = tally.counts().collect();
            waiting.extend(parts.iter().rev().map(|&(first, n)| (first, tally.shift(), n)));
            continue;
        }
        let last = first.joined(K::ones(bits));
        match ranges.last_mut().filter(|_| num_met.saturating_add(count) <= max_met) {
            Some(range) => {
                range.1 = last;
                num_met += count;
            }
            None => {
                ranges.push((first, last));
                num_met = count;
            }
        }
    }
    Ok(ranges)
}

/// Number of words of windows after which a part ends.
pub(in crate::analytics) const PART_WORDS: usize = 1 << 17;

/// Maker of rows, with the data that the rows of all parts share.
pub(in crate::analytics) struct RowMaker<'a> {
    pub vocabulary: &'a Arc<Vocabulary>,
    pub packing: Packing,
    pub weights: &'a Weights,
    /// Minimum count of a row.
    pub min_count: u64,
    pub canceller: Canceller<'a>,
}

impl RowMaker<'_> {
    /// Makes rows from the keys of all parallel tasks. A key has the number of a weight below the
    /// sequence. Returns true if all parts were taken. `take` also gets the number of bytes held.
    ///
    /// # Errors
    /// [`Error::Capacity`] if a count needs more than 64 bits,
    /// [`Error::Cancelled`], and the errors of `take`.
    pub fn keys_to_rows<K: Key + Keyed<Key = K>, T: Send>(
        &self,
        tasks: Vec<Vec<K>>,
        range: KeyRange<K>,
        make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
        take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<bool> {
        let buckets = Buckets::new(tasks, range, self.weights.bits(), self.canceller)?;
        let add =
            |counted: &mut Counted, keys: &mut [K]| counted.add_keys(keys, self.packing, &self.weights, self.min_count);
        self.buckets_to_rows(&buckets, 0, add, make, take)
    }

    /// Makes rows from windows that do not fit a key.
    ///
    /// # Errors
    /// The errors of [`keys_to_rows`](Self::keys_to_rows).
    pub fn texts_to_rows<T: Send>(
        &self,
        tasks: &[TextWindows],
        range: KeyRange<u64>,
        make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
        take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<bool> {
        let entries = |(at, task): (usize, &TextWindows)| {
            self.canceller.check()?;
            Ok(task.entries((at as u64) << 32))
        };
        let entries = tasks.par_iter().enumerate().map(entries).collect::<Result<Vec<_>>>()?;
        let (task, window) = (|value: u64| (value >> 32) as usize, |value: u64| value as u32);
        let words = |value| tasks[task(value)].words(window(value) as usize);
        let weight = |value| tasks[task(value)].weight(window(value) as usize);
        let add = |counted: &mut Counted, entries: &mut [Entry]| {
            let (packing, min_count) = (self.packing, self.min_count);
            counted.add(entries, packing, &words, &weight, min_count, self.canceller)
        };
        let text_bytes = tasks.iter().map(TextWindows::memory_bytes).sum();
        let buckets = Buckets::new(entries, range, 0, self.canceller)?;
        self.buckets_to_rows(&buckets, text_bytes, add, make, take)
    }

    fn buckets_to_rows<E: Keyed, T: Send>(
        &self,
        buckets: &Buckets<E>,
        text_bytes: usize,
        add: impl Fn(&mut Counted, &mut [E]) -> Result<()> + Sync,
        make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
        mut take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<bool> {
        let runs = buckets.runs((PART_WORDS / self.packing.num_words).max(1));
        let held_bytes = text_bytes + buckets.memory_bytes();
        let compute = |run: usize| {
            let (mut counted, mut sorting) = (Counted::default(), Sorting::default());
            for bucket in runs[run].clone() {
                add(&mut counted, buckets.sorted(bucket, &mut sorting, self.canceller)?)?;
            }
            let (sequences, counts) = counted.into_rows(self.vocabulary.clone(), self.packing);
            Ok(make(sequences, counts))
        };
        for_each_in_order(runs.len(), compute, |made: Result<T>| take(made?, held_bytes))
    }
}

/// Maximum number of parallel tasks for each thread that run ahead of the result taken next.
const AHEAD_PER_THREAD: usize = 2;

/// Computes each task in parallel and passes the results to `take` in order, until it returns
/// false. Returns true if all results were taken. Only a few results wait at a time.
///
/// # Errors
/// The errors of `take`.
pub fn for_each_in_order<T: Send>(
    num_tasks: usize,
    compute: impl Fn(usize) -> T + Send + Sync,
    mut take: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    let max_ahead = AHEAD_PER_THREAD * rayon::current_num_threads();
    if rayon::current_thread_index().is_some() {
        // A thread of the pool must not wait here, because the pool would miss it.
        for start in (0..num_tasks).step_by(max_ahead) {
            let tasks = start..num_tasks.min(start + max_ahead);
            for made in tasks.into_par_iter().map(&compute).collect::<Vec<T>>() {
                if !take(made)? {
                    return Ok(false);
                }
            }
        }
        return Ok(true);
    }
    let compute = &compute;
    rayon::in_place_scope(|scope| {
        let mut waiting = VecDeque::with_capacity(max_ahead);
        let mut tasks = 0..num_tasks;
        loop {
            for task in tasks.by_ref().take(max_ahead - waiting.len()) {
                let (sender, receiver) = sync_channel(1);
                // Sending fails if the receiver no longer waits, which does no harm.
                scope.spawn(move |_| drop(sender.send(compute(task))));
                waiting.push_back(receiver);
            }
            let Some(first) = waiting.pop_front() else { return Ok(true) };
            // A task that panicked sends nothing; the scope panics when it ends.
            let Ok(made) = first.recv() else { return Ok(false) };
            if !take(made)? {
                return Ok(false);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(num_tasks: usize, up_to: usize) -> Vec<usize> {
        let mut taken = Vec::new();
        for_each_in_order(
            num_tasks,
            |task| task * task,
            |made| {
                taken.push(made);
                Ok(taken.len() < up_to)
            },
        )
        .unwrap();
        taken
    }

    #[test]
    fn results_come_in_order_until_enough() {
        let squares = |len: usize| (0..len).map(|i| i * i).collect::<Vec<_>>();
        for (num_tasks, up_to) in [(0, 9), (1, 9), (100, usize::MAX), (100, 7)] {
            assert_eq!(taken(num_tasks, up_to), squares(num_tasks.min(up_to)));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            assert_eq!(pool.install(|| taken(num_tasks, up_to)), squares(num_tasks.min(up_to)));
        }
    }
}
