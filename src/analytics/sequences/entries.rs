//! Sorting what was met, cut by ranges of keys so that every range is sorted alone, in the cache and in
//! parallel.

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

/// Sorts the entries of all tasks by key, below 2^`key_bits`, and hands each bucket to `finish`; the
/// results in ascending order of keys. The order by the lowest `low_bits` does not matter.
pub(in crate::analytics) fn sorted_buckets<E: Keyed, T: Send>(
    tasks: Vec<Vec<E>>,
    key_bits: u32,
    low_bits: u32,
    finish: impl Fn(&mut [E]) -> T + Sync,
) -> Vec<T> {
    let num_entries: usize = tasks.iter().map(Vec::len).sum();
    let bucket_bits =
        (num_entries / BUCKET_LEN + 1).ilog2().min(MAX_BUCKET_BITS).min(key_bits - low_bits);
    let shift = key_bits - bucket_bits;
    let num_buckets = 1usize << bucket_bits;
    let split: Vec<Split<E>> =
        tasks.into_par_iter().map(|entries| Split::new(entries, shift, num_buckets)).collect();
    (0..num_buckets)
        .into_par_iter()
        .with_min_len(8.min(num_buckets / 8).max(1))
        .map_init(
            || (Vec::new(), Vec::new()),
            |(entries, scratch): &mut (Vec<E>, Vec<E>), bucket| {
                entries.clear();
                split.iter().for_each(|split| entries.extend_from_slice(split.of(bucket)));
                sort(entries, scratch, low_bits);
                finish(entries)
            },
        )
        .collect()
}

/// Entries of one task, by bucket.
struct Split<E> {
    ends: Vec<u32>,
    entries: Vec<E>,
}

impl<E: Keyed> Split<E> {
    fn new(entries: Vec<E>, shift: u32, num_buckets: usize) -> Self {
        if num_buckets == 1 {
            return Self { ends: vec![0, entries.len() as u32], entries };
        }
        let bucket = |entry: &E| entry.key().above(shift).number() as usize;
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

/// Entries up to which comparisons are faster than counting digits.
const SHORT_LEN: usize = 512;
const DIGIT_BITS: u32 = 8;

/// Sorts by key without its lowest `low_bits`: the bytes in which keys differ are sorted by counting,
/// the last one first.
pub(in crate::analytics) fn sort<E: Keyed>(entries: &mut [E], scratch: &mut Vec<E>, low_bits: u32) {
    if entries.len() <= SHORT_LEN {
        entries.sort_unstable_by_key(|entry| entry.key());
        return;
    }
    let first = entries[0].key();
    let differing = entries
        .iter()
        .fold(E::Key::default(), |bits, entry| bits.joined(entry.key().differing(first)));
    if scratch.len() < entries.len() {
        scratch.resize(entries.len(), E::default());
    }
    let len = entries.len();
    let (mut from, mut to) = (entries, &mut scratch[..len]);
    let mut is_moved = false;
    for shift in (low_bits..E::Key::BITS).step_by(DIGIT_BITS as usize) {
        if differing.above(shift).low(DIGIT_BITS) == 0 {
            continue;
        }
        let digit = |entry: &E| entry.key().above(shift).low(DIGIT_BITS) as usize;
        let mut next = [0u32; 1 << DIGIT_BITS];
        from.iter().for_each(|entry| next[digit(entry)] += 1);
        let mut start = 0;
        for count in &mut next {
            start += std::mem::replace(count, start);
        }
        for entry in from.iter() {
            let slot = &mut next[digit(entry)];
            to[*slot as usize] = *entry;
            *slot += 1;
        }
        std::mem::swap(&mut from, &mut to);
        is_moved = !is_moved;
    }
    if is_moved {
        to.copy_from_slice(from);
    }
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
    let mut scratch = Vec::new();
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
        sort(run, &mut scratch, 0);
        sorted.push((start..start + len, depth + packing.words_per_key()));
    }
}
