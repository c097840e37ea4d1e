//! Estimates of the number of documents that have an n-gram, a byte for each of many classes of hashes.
//!
//! ```text
//! counter    0   1 .. 16    17 ..       24      25 ..      32     …
//! documents  0   1 .. 16    18, 20, ..  32      36, 40, .. 64     …     up to 2^33
//! ```
//!
//! Beyond 16 a counter goes up with a probability (Morris, "Counting large numbers of events in small
//! registers", 1978). N-grams of one class share their counter, so it may be too high. A counter of 1
//! is exact: only one document has n-grams of the class.

use std::sync::atomic::{AtomicU8, Ordering};

/// Number of counters for each n-gram, where memory allows.
const COUNTERS_PER_GRAM: u64 = 2;
/// Counters up to here are exact.
const MAX_EXACT: u8 = 16;
/// Number of steps in which a counter doubles its number of documents.
const STEPS: u8 = 8;

/// Counters of documents.
#[derive(Debug)]
pub(super) struct DocCounts(Vec<AtomicU8>);

impl DocCounts {
    /// Creates counters for `num_grams` n-grams, of at most `max_bytes`.
    pub fn new(num_grams: u64, max_bytes: u64) -> Self {
        let len = num_grams.saturating_mul(COUNTERS_PER_GRAM).min(max_bytes).max(64);
        Self((0..len).map(|_| AtomicU8::new(0)).collect())
    }

    /// Returns the number of bytes of [`new`](Self::new).
    pub fn memory_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    /// Counts document `doc` for the n-gram of `hash`.
    #[inline]
    pub fn add(&self, hash: u64, doc: u32) {
        let counter = self.counter(hash);
        let mut count = counter.load(Ordering::Relaxed);
        while count < u8::MAX {
            if count >= MAX_EXACT {
                let level = u32::from((count - MAX_EXACT) / STEPS) + 1;
                let random = (hash ^ u64::from(doc)).wrapping_mul(0xd6e8_feb8_6659_fd93);
                if random >> (64 - level) != 0 {
                    return;
                }
            }
            let next = count + 1;
            let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
            match counter.compare_exchange_weak(count, next, set, get) {
                Ok(_) => return,
                Err(changed) => count = changed,
            }
        }
    }

    /// Returns the counter of the n-gram of `hash`. It goes up with the number of documents.
    #[inline]
    pub fn count(&self, hash: u64) -> u8 {
        self.counter(hash).load(Ordering::Relaxed)
    }

    #[inline]
    fn counter(&self, hash: u64) -> &AtomicU8 {
        &self.0[((u128::from(hash) * self.0.len() as u128) >> 64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_counts_are_exact_and_large_ones_double_in_eight_steps() {
        let counts = DocCounts::new(1_000, u64::MAX);
        assert_eq!((counts.memory_bytes(), counts.count(7)), (2_000, 0));
        let mut seen = Vec::new();
        for doc in 0..1 << 14 {
            counts.add(7, doc);
            seen.push(counts.count(7));
        }
        assert_eq!(seen[..16], (1..=16).collect::<Vec<u8>>());
        let expected = 16.0 + 8.0 * 10.0;
        assert!((f64::from(seen[seen.len() - 1]) - expected).abs() < 12.0, "{seen:?}");
        assert_eq!(DocCounts::new(u64::MAX, 0).memory_bytes(), 64);
    }
}
