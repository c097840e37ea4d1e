//! Radix sort of entries by the digits of their keys, used if it is faster than comparisons.
//!
//! ```text
//! entries   b2 a1 b1 a2        counts of all digits first, in one go
//! lowest    b1 a1 | b2 a2      from one place to the other
//! next      a1 a2 | b1 b2      and back
//! ```
//!
//! The keys of a bucket differ in 20 to 40 bits, which are two to four digits. Each digit costs
//! about as much as one and a half comparisons for each entry, plus its counts. Sorting by
//! comparison takes log2(entries) comparisons for each entry. Digits have about log2(entries) bits,
//! at most 10. With them, buckets of windows of two words are sorted two to three times as fast
//! (profiles). That made counting such windows 1.2 to 1.4 times as fast on seven corpora, and
//! windows of three words (38 bits) 1.17 to 1.28 times. With digits of 9 bits, and three at most,
//! windows of three words were left to comparisons.

use crate::analytics::checked_sort::{CHECK_LEN, sort_checked};
use crate::error::Result;
use crate::interrupt::Canceller;

use super::key::{Key, Keyed};

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
        let (len, log_len) = (self.entries.len(), self.entries.len().ilog2());
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

    /// Sorts by the whole key, including the lowest bits. Shifting these out for each comparison took a
    /// fifth of the time of counting windows of 128 bits.
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

    use super::super::entries::Entry;
    use super::*;

    /// Checks the sort of `entries`; their `low_bits` bits do not count.
    fn check<E: Keyed>(entries: &[E], low_bits: u32) -> Result<(), TestCaseError> {
        // Entries left from another sort must not matter.
        let mut sorting = Sorting { entries: entries.to_vec(), spare: vec![E::default(); 700] };
        sorting.sort(low_bits, Canceller::new(&|| false)).unwrap();
        let keys = |entries: &[E]| -> Vec<E::Key> { entries.iter().map(|e| e.key()).collect() };
        let got: Vec<E::Key> =
            keys(&sorting.entries).into_iter().map(|key| key.above(low_bits)).collect();
        prop_assert!(got.is_sorted());
        let (mut got, mut expected) = (keys(&sorting.entries), keys(entries));
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
