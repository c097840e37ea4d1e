//! Filter of the sequences that a walk keeps: all, those of a range, or none while it counts them.
//!
//! ```text
//! keys      0 ............................................ last
//! tally       |  12  |   3  | 90 | 7 |  ...         one number for each range of 2^shift keys
//! ranges      [first ..... last] [first .. last]    as many of them as fit, together
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::key::Key;

/// Choice of the sequences that a walk keeps.
#[derive(Debug, Clone, Default)]
pub(in crate::analytics) enum Keep<K> {
    #[default]
    All,
    /// Sequences from the first to the last.
    Within(K, K),
    /// No sequence; they are counted.
    Counted(Arc<Tally<K>>),
}

impl<K: Key> Keep<K> {
    /// Returns the choice of the sequences of `range`, or of all.
    pub fn from_range(range: Option<(K, K)>) -> Self {
        range.map_or(Self::All, |(first, last)| Self::Within(first, last))
    }

    /// Returns true if the sequence `key` is kept.
    #[inline]
    pub fn is_kept(&self, key: impl FnOnce() -> K) -> bool {
        match self {
            Self::All => true,
            Self::Within(first, last) => (*first..=*last).contains(&key()),
            Self::Counted(tally) => {
                tally.add(key());
                false
            }
        }
    }

    /// Returns true if all sequences are kept.
    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }
}

/// Number of sequences met in each range of 2^`shift` keys.
#[derive(Debug)]
pub(in crate::analytics) struct Tally<K> {
    first: K,
    last: K,
    shift: u32,
    counts: Vec<AtomicU64>,
}

impl<K: Key> Tally<K> {
    /// Creates a tally for the keys that differ from `first` only in their lowest `bits` bits, with
    /// at most 2^`num_bits` ranges.
    pub fn new(first: K, bits: u32, num_bits: u32) -> Self {
        let num_bits = num_bits.min(bits);
        let counts = (0..1usize << num_bits).map(|_| AtomicU64::new(0)).collect();
        Self { first, last: first.joined(K::ones(bits)), shift: bits - num_bits, counts }
    }

    /// Returns the number of bits in which the keys of one range differ.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// Returns the first key of each range, and the number of sequences met there.
    pub fn counts(&self) -> impl Iterator<Item = (K, u64)> + '_ {
        self.counts.iter().zip(0u32..).map(|(count, at)| {
            let offset = K::default().with_value(at, 0).with_value(0, self.shift);
            (self.first.joined(offset), count.load(Ordering::Relaxed))
        })
    }

    fn add(&self, key: K) {
        if (self.first..=self.last).contains(&key) {
            let at = key.minus(self.first).above(self.shift).number() as usize;
            self.counts[at].fetch_add(1, Ordering::Relaxed);
        }
    }
}
