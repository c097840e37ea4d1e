//! Sorting what was met, cut by ranges of keys so that every range is sorted alone, in the cache and in
//! parallel.

use std::ops::Range;

use rayon::prelude::*;

use super::key::Key;
use super::packing::Packing;

/// Entries of a bucket on average.
const BUCKET_LEN: usize = 2048;
/// Buckets at most: the bound of what is written at random while splitting.
const MAX_BUCKET_BITS: u32 = 11;

/// What is sorted: a key, or more behind one.
pub(in crate::analytics) trait Keyed: Copy + Default + Send + Sync {
    type Key: Key;
    fn key(self) -> Self::Key;
}

impl Keyed for u64 {
    type Key = Self;
    #[inline]
    fn key(self) -> Self {
        self
    }
}

impl Keyed for u128 {
    type Key = Self;
    #[inline]
    fn key(self) -> Self {
        self
    }
}

/// A key and what stands behind it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::analytics) struct Entry {
    pub key: u64,
    pub value: u64,
}

impl Keyed for Entry {
    type Key = u64;
    #[inline]
    fn key(self) -> u64 {
        self.key
    }
}

/// Sorts the entries of all tasks by key, which lie in `range`, and hands each bucket to `finish`; the
/// results in ascending order of keys.
pub(in crate::analytics) fn sorted_buckets<E: Keyed, T: Send>(
    tasks: Vec<Vec<E>>,
    range: (E::Key, E::Key),
    finish: impl Fn(&mut [E]) -> T + Sync,
) -> Vec<T> {
    let buckets = Buckets::new(tasks, range, 0);
    let num_buckets = buckets.len();
    (0..num_buckets)
        .into_par_iter()
        .with_min_len(8.min(num_buckets / 8).max(1))
        .map_init(Vec::new, |entries, bucket| finish(buckets.sorted(bucket, entries)))
        .collect()
}

/// Entries cut by ranges of keys that follow one another.
pub(in crate::analytics) struct Buckets<E> {
    /// By task.
    split: Vec<Split<E>>,
    low_bits: u32,
}

impl<E: Keyed> Buckets<E> {
    /// Cuts the entries of all tasks, whose keys without their lowest `low_bits` lie in `first..=last`.
    pub fn new(tasks: Vec<Vec<E>>, (first, last): (E::Key, E::Key), low_bits: u32) -> Self {
        let num_entries: usize = tasks.iter().map(Vec::len).sum();
        let most_bits = (num_entries / BUCKET_LEN + 1).ilog2().min(MAX_BUCKET_BITS);
        let (width, mut shift) = (last.minus(first), 0);
        while most_bits > 0 && width.above(shift) > E::Key::ones(most_bits) {
            shift += 1;
        }
        let num_buckets = match most_bits {
            0 => 1,
            _ => width.above(shift).number() as usize + 1,
        };
        let bucket =
            |entry: &E| entry.key().above(low_bits).minus(first).above(shift).number() as usize;
        let split = tasks.into_par_iter().map(|entries| Split::new(entries, num_buckets, bucket));
        Self { split: split.collect(), low_bits }
    }

    /// Number of buckets.
    pub fn len(&self) -> usize {
        self.split.first().map_or(0, |split| split.ends.len() - 1)
    }

    /// Buckets in runs of `run_len` entries or a little more.
    pub fn runs(&self, run_len: usize) -> Vec<Range<usize>> {
        let (mut runs, mut start, mut len) = (Vec::new(), 0, 0);
        for bucket in 0..self.len() {
            len += self.split.iter().map(|split| split.of(bucket).len()).sum::<usize>();
            if len >= run_len {
                runs.push(start..bucket + 1);
                (start, len) = (bucket + 1, 0);
            }
        }
        if len > 0 {
            runs.push(start..self.len());
        }
        runs
    }

    /// The entries of `bucket`, ascending, in `entries`; the order by the lowest bits does not matter.
    pub fn sorted<'s>(&self, bucket: usize, entries: &'s mut Vec<E>) -> &'s mut [E] {
        entries.clear();
        self.split.iter().for_each(|split| entries.extend_from_slice(split.of(bucket)));
        sort(entries, self.low_bits);
        entries
    }

    /// Main memory of the entries.
    pub fn memory_bytes(&self) -> usize {
        self.split.iter().map(|s| size_of_val(&s.ends[..]) + size_of_val(&s.entries[..])).sum()
    }
}

/// Entries of one task, by bucket.
struct Split<E> {
    ends: Vec<u32>,
    entries: Vec<E>,
}

impl<E: Keyed> Split<E> {
    fn new(entries: Vec<E>, num_buckets: usize, bucket: impl Fn(&E) -> usize) -> Self {
        if num_buckets == 1 {
            return Self { ends: vec![0, entries.len() as u32], entries };
        }
        let mut ends = vec![0u32; num_buckets + 1];
        entries.iter().for_each(|entry| ends[bucket(entry) + 1] += 1);
        for bucket in 0..num_buckets {
            ends[bucket + 1] += ends[bucket];
        }
        let mut next = ends.clone();
        let mut split = vec![E::default(); entries.len()];
        for &entry in &entries {
            let slot = &mut next[bucket(&entry)];
            split[*slot as usize] = entry;
            *slot += 1;
        }
        Self { ends, entries: split }
    }

    fn of(&self, bucket: usize) -> &[E] {
        &self.entries[self.ends[bucket] as usize..self.ends[bucket + 1] as usize]
    }
}

/// Sorts by key without its lowest `low_bits`. Comparisons are faster than counting digits, 1.0 to 2.9
/// times measured on buckets of 512 to 32,768 keys: many keys are equal, which costs them nothing.
pub(in crate::analytics) fn sort<E: Keyed>(entries: &mut [E], low_bits: u32) {
    entries.sort_unstable_by_key(|entry| entry.key().above(low_bits));
}

/// Calls `f` with each run of equal sequences, ascending. `entries` are sorted by key, which is the
/// beginning of the sequences; where that is not all, `words` says which words belong to a value. The
/// keys in a run are those of its last words then. O(entries * words of a sequence).
pub(in crate::analytics) fn for_each_sequence<'a>(
    entries: &mut [Entry],
    packing: Packing,
    words: &impl Fn(u64) -> &'a [u32],
    mut f: impl FnMut(&[Entry]),
) {
    // Ranges that are sorted as far as `depth` words, the innermost last.
    let mut sorted = vec![(0..entries.len(), packing.words_per_key())];
    while let Some((range, depth)) = sorted.last_mut() {
        let (start, depth) = (range.start, *depth);
        let Some(first) = entries[range.clone()].first() else {
            sorted.pop();
            continue;
        };
        let len = entries[range.clone()].iter().take_while(|entry| entry.key == first.key).count();
        range.start += len;
        let run = &mut entries[start..start + len];
        if len == 1 || depth >= packing.num_words {
            f(run);
            continue;
        }
        run.iter_mut().for_each(|entry| entry.key = packing.key(&words(entry.value)[depth..]));
        sort(run, 0);
        sorted.push((start..start + len, depth + packing.words_per_key()));
    }
}
