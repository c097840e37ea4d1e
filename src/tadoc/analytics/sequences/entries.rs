//! Sorting of met windows. They are cut by ranges of keys, so that every range is sorted alone, in
//! the cache and in parallel.
//!
//! ```text
//! even      |   |   |   |   |   |   |   |       one shift for a key
//! sampled   |        ||||||||       |   |       a binary search: where one range would keep a thread busy
//! ```
//!
//! Sampled ranges are needed because every line of a log begins alike: one range of equal width
//! then has 38 % of its windows of three words.
//!
//! # Radix sort
//!
//! Each range is sorted by the digits of its keys if that is faster than comparisons.
//!
//! ```text
//! entries   b2 a1 b1 a2        counts of all digits first, in one go
//! lowest    b1 a1 | b2 a2      from one place to the other
//! next      a1 a2 | b1 b2      and back
//! ```
//!
//! The keys of a range differ in 20 to 40 bits, which are two to four digits. Each digit costs about as much as one and
//! a half comparisons for each entry, plus its counts. Sorting by comparison takes log2(entries) comparisons for each
//! entry. Digits have about log2(entries) bits, at most 10.

use std::ops::Range;

use rayon::prelude::*;

use crate::analytics::task_limits::{CHECK_LEN, sort_checked};
use crate::error::{Canceller, Result};

use super::key::{Key, Keyed, Packing};

/// Average number of entries of a bucket.
const BUCKET_LEN: usize = 2048;
/// Maximum number of buckets (2 to this), which limits the number of places written at random.
const MAX_BUCKET_BITS: u32 = 11;

/// Number of entries above which no bucket should have more than a quarter of them, also on one
/// thread. A bucket is sorted beside the entries and its rows are made, which takes 3 to 6 keys for
/// each entry.
const MANY_ENTRIES: usize = 1 << 24;
/// Average number of keys of a bucket that are sampled before all entries are cut.
const BUCKET_SAMPLES: usize = 8;

/// A key with a value.
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

/// Sorts the entries of all parallel tasks by key and passes each bucket to `finish`. Keys lie in
/// `range`. Returns the results in ascending order of keys.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled), and the errors of `finish`.
pub(in crate::analytics) fn sorted_buckets<E: Keyed, T: Send>(
    tasks: Vec<Vec<E>>,
    range: (E::Key, E::Key),
    canceller: Canceller<'_>,
    finish: impl Fn(&mut [E]) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let buckets = Buckets::new(tasks, range, 0, canceller)?;
    let num_buckets = buckets.len();
    (0..num_buckets)
        .into_par_iter()
        .with_min_len(8.min(num_buckets / 8).max(1))
        .map_init(Sorting::default, |sorting, bucket| finish(buckets.sorted(bucket, sorting, canceller)?))
        .collect()
}

/// Entries cut by consecutive ranges of keys.
pub(in crate::analytics) struct Buckets<E> {
    /// Entries by parallel task.
    split: Vec<Split<E>>,
    low_bits: u32,
}

impl<E: Keyed> Buckets<E> {
    /// Cuts the entries of all tasks. Their keys, without the lowest `low_bits` bits, lie in
    /// `range`.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn new(tasks: Vec<Vec<E>>, range: (E::Key, E::Key), low_bits: u32, canceller: Canceller<'_>) -> Result<Self> {
        let num_entries: usize = tasks.iter().map(Vec::len).sum();
        let most_bits = (num_entries / BUCKET_LEN + 1).ilog2().min(MAX_BUCKET_BITS);
        let even = EvenCuts::new(range, most_bits);
        let key = |entry: &E| entry.key().above(low_bits);
        let split = match sampled_cuts(&tasks, num_entries, even, key) {
            None => split_all(tasks, even.num_buckets, canceller, |e| even.bucket(key(e))),
            Some(starts) => split_all(tasks, starts.len() + 1, canceller, |entry| {
                let key = key(entry);
                starts.partition_point(|&start| start <= key)
            }),
        };
        Ok(Self { split: split?, low_bits })
    }

    /// Returns the number of buckets.
    pub fn len(&self) -> usize {
        self.split.first().map_or(0, |split| split.ends.len() - 1)
    }

    /// Groups the buckets to runs of `run_len` entries or a few more.
    pub fn runs(&self, run_len: usize) -> Vec<Range<usize>> {
        let len = |bucket| self.split.iter().map(|split| split.for_bucket(bucket).len()).sum();
        runs_from((0..self.len()).map(len), run_len)
    }

    /// Returns the entries of `bucket`, ascending, in `sorting`. Entries that differ only in the
    /// lowest bits are in any order.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn sorted<'s>(
        &self,
        bucket: usize,
        sorting: &'s mut Sorting<E>,
        canceller: Canceller<'_>,
    ) -> Result<&'s mut [E]> {
        canceller.check()?;
        sorting.entries.clear();
        self.split.iter().for_each(|split| sorting.entries.extend_from_slice(split.for_bucket(bucket)));
        sorting.sort(self.low_bits, canceller)?;
        Ok(&mut sorting.entries)
    }

    /// Returns the memory of the entries in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.split.iter().map(|s| size_of_val(&s.ends[..]) + size_of_val(&s.entries[..])).sum()
    }
}

/// Groups buckets of `lens` entries to runs of `run_len` entries or a few more.
pub(in crate::analytics) fn runs_from(lens: impl Iterator<Item = usize>, run_len: usize) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    let mut end = 0;
    let mut sum = 0;
    for len in lens {
        end += 1;
        sum += len;
        if sum >= run_len {
            runs.push(start..end);
            (start, sum) = (end, 0);
        }
    }
    if sum > 0 {
        runs.push(start..end);
    }
    runs
}

/// Ranges of equal width.
#[derive(Debug, Clone, Copy)]
struct EvenCuts<K> {
    first: K,
    shift: u32,
    num_buckets: usize,
}

impl<K: Key> EvenCuts<K> {
    fn new((first, last): (K, K), most_bits: u32) -> Self {
        let width = last.minus(first);
        let mut shift = 0;
        while most_bits > 0 && width.above(shift) > K::ones(most_bits) {
            shift += 1;
        }
        let num_buckets = match most_bits {
            0 => 1,
            _ => width.above(shift).number() as usize + 1,
        };
        Self { first, shift, num_buckets }
    }

    #[inline]
    fn bucket(self, key: K) -> usize {
        key.minus(self.first).above(self.shift).number() as usize
    }
}

/// Returns the start of each range but the first, such that all ranges have about as many keys.
/// Returns `None` if ranges of equal width leave no thread without work for long.
fn sampled_cuts<E: Keyed>(
    tasks: &[Vec<E>],
    num_entries: usize,
    even: EvenCuts<E::Key>,
    key: impl Fn(&E) -> E::Key,
) -> Option<Vec<E::Key>> {
    let num_threads = rayon::current_num_threads();
    let num_parts = if num_entries > MANY_ENTRIES { num_threads.max(2) } else { num_threads };
    if num_parts < 2 || even.num_buckets < 2 {
        return None;
    }
    let step = (num_entries / (BUCKET_SAMPLES * even.num_buckets)).max(1);
    let mut sample: Vec<E::Key> = tasks.iter().flatten().step_by(step).map(key).collect();
    sample.sort_unstable();
    let buckets = sample.chunk_by(|&a, &b| even.bucket(a) == even.bucket(b));
    let most = buckets.map(<[_]>::len).max()?;
    if 2 * num_parts * most <= sample.len() {
        return None;
    }
    let num_samples = sample.len().div_ceil(even.num_buckets);
    let mut starts: Vec<_> = sample.into_iter().step_by(num_samples).skip(1).collect();
    starts.dedup();
    Some(starts)
}

fn split_all<E: Keyed>(
    tasks: Vec<Vec<E>>,
    num_buckets: usize,
    canceller: Canceller<'_>,
    bucket: impl Fn(&E) -> usize + Sync,
) -> Result<Vec<Split<E>>> {
    let split = |entries| Split::new(entries, num_buckets, canceller, &bucket);
    tasks.into_par_iter().map(split).collect()
}

/// Entries of one parallel task, by bucket.
struct Split<E> {
    ends: Vec<u32>,
    entries: Vec<E>,
}

impl<E: Keyed> Split<E> {
    fn new(
        entries: Vec<E>,
        num_buckets: usize,
        canceller: Canceller<'_>,
        bucket: impl Fn(&E) -> usize,
    ) -> Result<Self> {
        if num_buckets == 1 {
            return Ok(Self { ends: vec![0, entries.len() as u32], entries });
        }
        let mut ends = vec![0u32; num_buckets + 1];
        for entries in entries.chunks(CHECK_LEN) {
            canceller.check()?;
            entries.iter().for_each(|entry| ends[bucket(entry) + 1] += 1);
        }
        for bucket in 0..num_buckets {
            ends[bucket + 1] += ends[bucket];
        }
        let mut next = ends.clone();
        let mut split = vec![E::default(); entries.len()];
        for entries in entries.chunks(CHECK_LEN) {
            canceller.check()?;
            for &entry in entries {
                let slot = &mut next[bucket(&entry)];
                split[*slot as usize] = entry;
                *slot += 1;
            }
        }
        Ok(Self { ends, entries: split })
    }

    fn for_bucket(&self, bucket: usize) -> &[E] {
        &self.entries[self.ends[bucket] as usize..self.ends[bucket + 1] as usize]
    }
}

/// Calls `f` with each run of equal sequences, ascending. `entries` are sorted by key, which is the
/// beginning of the sequences. If a key is not a whole sequence, `words` returns the words of a
/// value, and the keys in a run are those of its last words. O(entries * words of a sequence).
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub(in crate::analytics) fn for_each_sequence<'a>(
    entries: &mut [Entry],
    packing: Packing,
    words: &impl Fn(u64) -> &'a [u32],
    canceller: Canceller<'_>,
    mut f: impl FnMut(&[Entry]),
) -> Result<()> {
    let mut interrupt = canceller.interrupt();
    // Ranges that are sorted up to `depth` words, the innermost last.
    let mut sorted = vec![(0..entries.len(), packing.words_per_key())];
    while let Some((range, depth)) = sorted.last_mut() {
        let start = range.start;
        let depth = *depth;
        let Some(first) = entries[range.clone()].first() else {
            sorted.pop();
            continue;
        };
        let len = entries[range.clone()].iter().take_while(|entry| entry.key == first.key).count();
        interrupt.pass(len)?;
        range.start += len;
        let run = &mut entries[start..start + len];
        if len == 1 || depth >= packing.num_words {
            f(run);
            continue;
        }
        run.iter_mut().for_each(|entry| entry.key = packing.key(&words(entry.value)[depth..]));
        sort_checked(run, |entry| entry.key, canceller)?;
        sorted.push((start..start + len, depth + packing.words_per_key()));
    }
    Ok(())
}

/// Maximum number of bits of a digit. The counts of its 1024 values stay in the cache beside the
/// entries.
const MAX_DIGIT_BITS: u32 = 10;
/// Maximum number of digits.
const MAX_DIGITS: usize = 5;

/// Entries to sort, and room for as many.
#[derive(Debug, Default)]
pub(in crate::analytics) struct Sorting<E> {
    pub entries: Vec<E>,
    spare: Vec<E>,
}

/// Minimum number of entries for which a sample is taken; [`NUM_SAMPLES`] is its size.
const LEAST_SAMPLED: usize = 1 << 14;
const NUM_SAMPLES: usize = 512;

impl<E: Keyed> Sorting<E> {
    /// Sorts by key without its lowest `low_bits` bits, by digits or by comparison. By digits it
    /// takes O(entries * bits in which keys differ).
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled), which only a sort of many entries asks for.
    pub fn sort(&mut self, low_bits: u32, canceller: Canceller<'_>) -> Result<()> {
        let Some((first, rest)) = self.entries.split_first() else { return Ok(()) };
        let differing = |entry: &E| entry.key().differing(first.key());
        // Three entries usually show whether keys differ in more bits than the digits have.
        let few = rest.iter().step_by(rest.len().div_ceil(2).max(1));
        let max_bits = MAX_DIGITS as u32 * MAX_DIGIT_BITS;
        if few.map(differing).any(|bits| bits.above(low_bits).num_bits() > max_bits) {
            return self.compare(canceller);
        }
        let all = rest.iter().fold(E::Key::default(), |bits, e| bits.joined(differing(e)));
        let num_bits = all.above(low_bits).num_bits();
        if num_bits == 0 {
            return Ok(());
        }
        let len = self.entries.len();
        let log_len = self.entries.len().ilog2();
        let num_digits = num_bits.div_ceil(log_len.min(MAX_DIGIT_BITS)) as usize;
        let digit_bits = num_bits.div_ceil(num_digits as u32);
        let by_digits = num_digits.saturating_mul(len * 3 / 2 + (1 << digit_bits));
        let by_comparing = len * log_len as usize;
        if num_digits > MAX_DIGITS || by_digits > by_comparing || self.repeats() {
            return self.compare(canceller);
        }
        match num_digits {
            1 => self.sort_by_digits::<1>(low_bits, digit_bits, canceller),
            2 => self.sort_by_digits::<2>(low_bits, digit_bits, canceller),
            3 => self.sort_by_digits::<3>(low_bits, digit_bits, canceller),
            4 => self.sort_by_digits::<4>(low_bits, digit_bits, canceller),
            _ => self.sort_by_digits::<MAX_DIGITS>(low_bits, digit_bits, canceller),
        }
    }

    /// Sorts by the whole key, including the lowest bits. Shifting these out for each comparison
    /// took a fifth of the time of counting windows of 128 bits.
    fn compare(&mut self, canceller: Canceller<'_>) -> Result<()> {
        sort_checked(&mut self.entries, |entry| entry.key(), canceller)
    }

    /// Returns true if a sample shows few distinct keys among many entries. Comparison is faster
    /// then: equal keys cost it nothing, while increments of the same count wait for one another.
    fn repeats(&self) -> bool {
        let len = self.entries.len();
        if len < LEAST_SAMPLED {
            return false;
        }
        let step = len / NUM_SAMPLES;
        let mut sample: Vec<E::Key> = self.entries.iter().step_by(step).map(|e| e.key()).collect();
        let num_samples = sample.len();
        sample.sort_unstable();
        sample.dedup();
        4 * sample.len() < 3 * num_samples
    }

    /// Sorts by the lowest digit first; each pass moves the entries from one array to the other.
    fn sort_by_digits<const N: usize>(
        &mut self,
        low_bits: u32,
        digit_bits: u32,
        canceller: Canceller<'_>,
    ) -> Result<()> {
        let Self { entries, spare } = self;
        let digit = |entry: E, at: usize| {
            let digit = entry.key().above(low_bits + at as u32 * digit_bits).low(digit_bits);
            digit as usize % (1 << MAX_DIGIT_BITS)
        };
        let mut counts = [[0u32; 1 << MAX_DIGIT_BITS]; N];
        for entries in entries.chunks(CHECK_LEN) {
            for &entry in entries {
                for (at, counts) in counts.iter_mut().enumerate() {
                    counts[digit(entry, at)] += 1;
                }
            }
            if entries.len() == CHECK_LEN {
                canceller.check()?;
            }
        }
        spare.resize(entries.len(), E::default());
        for (at, starts) in counts.iter_mut().enumerate() {
            let mut sum = 0;
            for start in &mut starts[..1 << digit_bits] {
                (*start, sum) = (sum, sum + *start);
            }
            for entries in entries.chunks(CHECK_LEN) {
                for &entry in entries {
                    let place = &mut starts[digit(entry, at)];
                    spare[*place as usize] = entry;
                    *place += 1;
                }
                if entries.len() == CHECK_LEN {
                    canceller.check()?;
                }
            }
            std::mem::swap(entries, spare);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEN: u64 = 200_000;

    fn tasks(key: impl Fn(u64) -> u64) -> Vec<Vec<u64>> {
        let scrambled = |at: u64| at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let keys: Vec<u64> = (0..LEN).map(|at| key(scrambled(at))).collect();
        keys.chunks(7_001).map(<[u64]>::to_vec).collect()
    }

    /// Checks that the buckets are all entries in sorted order. Returns the size of the largest
    /// bucket.
    fn largest_bucket(tasks: &[Vec<u64>], low_bits: u32) -> usize {
        let mut expected: Vec<u64> = tasks.concat();
        expected.sort_unstable_by_key(|key| key >> low_bits);
        let range = (0, u64::ones(44) >> low_bits);
        let stays = Canceller::new(&|| false);
        let buckets = Buckets::new(tasks.to_vec(), range, low_bits, stays).unwrap();
        let mut sorting = Sorting::default();
        let mut got = Vec::new();
        let mut most = 0;
        for bucket in 0..buckets.len() {
            let sorted = buckets.sorted(bucket, &mut sorting, stays).unwrap();
            most = most.max(sorted.len());
            got.extend(sorted.iter().map(|key| *key >> low_bits));
        }
        assert_eq!(got, expected.iter().map(|key| *key >> low_bits).collect::<Vec<_>>());
        let runs = buckets.runs(LEN as usize / 8);
        assert!(runs.windows(2).all(|runs| runs[0].end == runs[1].start));
        most
    }

    #[test]
    fn buckets_in_order_are_all_entries_sorted() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let many = LEN as usize / 10;
        for low_bits in [0, 6] {
            let even = tasks(|number| number);
            // One word begins two fifths of all windows, followed by various words.
            let skewed = tasks(|n| if n % 5 < 2 { 0x7_1234 << 24 | n & 0xFF_FFFF } else { n });
            let equal = tasks(|n| if n % 5 < 2 { 0x7_1234_5678 } else { n });
            for tasks in [&even, &skewed] {
                assert!(pool.install(|| largest_bucket(tasks, low_bits)) < many);
            }
            assert!(alone.install(|| largest_bucket(&skewed, low_bits)) > 3 * many);
            assert!(pool.install(|| largest_bucket(&equal, low_bits)) > 3 * many);
            for tasks in [vec![], vec![vec![]], vec![vec![5; 9_000]], vec![vec![1, 0], vec![3]]] {
                pool.install(|| largest_bucket(&tasks, low_bits));
            }
        }
    }

    /// Checks the sort of `entries`; their `low_bits` bits do not count.
    fn check<E: Keyed>(entries: &[E], low_bits: u32) -> Result<(), TestCaseError> {
        // Entries left from another sort must not matter.
        let mut sorting = Sorting { entries: entries.to_vec(), spare: vec![E::default(); 700] };
        sorting.sort(low_bits, Canceller::new(&|| false)).unwrap();
        let keys = |entries: &[E]| -> Vec<E::Key> { entries.iter().map(|e| e.key()).collect() };
        let got: Vec<E::Key> = keys(&sorting.entries).into_iter().map(|key| key.above(low_bits)).collect();
        prop_assert!(got.is_sorted());
        let mut got = keys(&sorting.entries);
        let mut expected = keys(entries);
        got.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(got, expected);
        Ok(())
    }

    proptest! {
        #[test]
        fn sorts_as_comparing_does(
            numbers in prop::collection::vec(any::<u64>(), 0..3000),
            (bits, low_bits, above) in (1u32..60, 0u32..4, any::<u16>()),
        ) {
            let keys: Vec<u64> = numbers.iter().map(|n| n >> (64 - bits)).collect();
            check(&keys, low_bits)?;
            let wide = |key: &u64| u128::from(above) << 90 | u128::from(*key) << 40;
            check(&keys.iter().map(wide).collect::<Vec<_>>(), 40 + low_bits)?;
            let entry = |(&key, value)| Entry { key, value };
            check(&keys.iter().zip(0..).map(entry).collect::<Vec<_>>(), 0)?;
        }
    }
}
