//! Sorting what was met: keys with a value each, cut by ranges of keys so that every range is
//! sorted alone, in the cache and in parallel.

use rayon::prelude::*;

use super::packing::Packing;

/// Entries of a bucket on average.
const BUCKET_LEN: usize = 2048;
/// Buckets at most: the bound of what is written at random while splitting.
const MAX_BUCKET_BITS: u32 = 11;

/// A key and what stands behind it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::analytics) struct Entry {
    pub key: u64,
    pub value: u64,
}

/// Sorts the entries of all tasks by key, below 2^`key_bits`, and
/// hands each bucket to `finish`; the results in ascending order of keys.
pub(in crate::analytics) fn sorted_buckets<T: Send>(
    tasks: Vec<Vec<Entry>>,
    key_bits: u32,
    finish: impl Fn(&mut [Entry]) -> T + Sync,
) -> Vec<T> {
    let num_entries: usize = tasks.iter().map(Vec::len).sum();
    let bucket_bits = (num_entries / BUCKET_LEN + 1).ilog2().min(MAX_BUCKET_BITS).min(key_bits);
    let shift = key_bits - bucket_bits;
    let num_buckets = 1usize << bucket_bits;
    let split: Vec<Split> =
        tasks.into_par_iter().map(|entries| Split::new(entries, shift, num_buckets)).collect();
    (0..num_buckets)
        .into_par_iter()
        .with_min_len(8.min(num_buckets / 8).max(1))
        .map_init(Vec::new, |entries: &mut Vec<Entry>, bucket| {
            entries.clear();
            split.iter().for_each(|split| entries.extend_from_slice(split.of(bucket)));
            sort(entries);
            finish(entries)
        })
        .collect()
}

/// Entries of one task, by bucket.
struct Split {
    ends: Vec<u32>,
    entries: Vec<Entry>,
}

impl Split {
    fn new(entries: Vec<Entry>, shift: u32, num_buckets: usize) -> Self {
        if num_buckets == 1 {
            return Self { ends: vec![0, entries.len() as u32], entries };
        }
        let mut ends = vec![0u32; num_buckets + 1];
        for entry in &entries {
            ends[(entry.key >> shift) as usize + 1] += 1;
        }
        for bucket in 0..num_buckets {
            ends[bucket + 1] += ends[bucket];
        }
        let mut next = ends.clone();
        let mut split = vec![Entry::default(); entries.len()];
        for &entry in &entries {
            let slot = &mut next[(entry.key >> shift) as usize];
            split[*slot as usize] = entry;
            *slot += 1;
        }
        Self { ends, entries: split }
    }

    fn of(&self, bucket: usize) -> &[Entry] {
        &self.entries[self.ends[bucket] as usize..self.ends[bucket + 1] as usize]
    }
}

/// Entries up to which comparisons are faster than counting digits.
const SHORT_LEN: usize = 128;
const DIGIT_BITS: u32 = 8;

/// Sorts by key: the bytes in which keys differ are sorted by counting, the last one first.
pub(in crate::analytics) fn sort(entries: &mut [Entry]) {
    if entries.len() <= SHORT_LEN {
        entries.sort_unstable_by_key(|entry| entry.key);
        return;
    }
    let first = entries[0].key;
    let differing = entries.iter().fold(0, |bits, entry| bits | (entry.key ^ first));
    let mut moved = vec![Entry::default(); entries.len()];
    for shift in (0..u64::BITS).step_by(DIGIT_BITS as usize) {
        let digit = |entry: &Entry| (entry.key >> shift) as usize % (1 << DIGIT_BITS);
        if (differing >> shift).is_multiple_of(1 << DIGIT_BITS) {
            continue;
        }
        let mut next = [0usize; 1 << DIGIT_BITS];
        entries.iter().for_each(|entry| next[digit(entry)] += 1);
        let mut start = 0;
        for count in &mut next {
            start += std::mem::replace(count, start);
        }
        for entry in entries.iter() {
            let slot = &mut next[digit(entry)];
            moved[*slot] = *entry;
            *slot += 1;
        }
        entries.copy_from_slice(&moved);
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
        sort(run);
        sorted.push((start..start + len, depth + packing.words_per_key()));
    }
}
