//! Keys: numbers that hold a whole sequence and, in the lowest bits, a small value. [`Packing`]
//! lays out their words, [`Keep`] says which of them a walk keeps.
//!
//! ```text
//! | word 1 | word 2 | word 3 | value |     bits of a word each, value_bits
//! ```
//!
//! Keys have the order of the sequences. Sequences that fit 64 bits with their value are counted in
//! `u64`, up to 128 bits (7 words of 2^18) in `u128`. Longer ones are counted as positions in a
//! text.
//!
//! A walk keeps all sequences, those of a range, or none while it counts them:
//!
//! ```text
//! keys      0 ............................................ last
//! tally       |  12  |   3  | 90 | 7 |  ...         one number for each range of 2^shift keys
//! ranges      [first ..... last] [first .. last]    as many of them as fit, together
//! ```

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number that sequences are packed into.
pub(in crate::analytics) trait Key: Copy + Default + Ord + Debug + Send + Sync {
    /// Appends `word` to the sequence and removes its oldest word, whose bits lie above
    /// `total_bits`.
    fn rolled(self, word: u32, word_bits: u32, total_bits: u32) -> Self;
    /// Returns the key with `value` below the sequence.
    fn with_value(self, value: u32, value_bits: u32) -> Self;
    /// Returns the lowest `bits` bits, at most 32.
    fn low(self, bits: u32) -> u32;
    /// Returns the key without its lowest `bits` bits.
    fn above(self, bits: u32) -> Self;
    /// Returns the lowest 64 bits.
    fn number(self) -> u64;
    /// Returns the bits that are 1 in either key.
    fn joined(self, other: Self) -> Self;
    /// Returns the bits that differ between the keys.
    fn differing(self, other: Self) -> Self;
    /// Returns the number of bits up to the highest that is 1.
    fn num_bits(self) -> u32;
    /// Returns the difference to `first`, which must not be larger.
    fn minus(self, first: Self) -> Self;
    /// Returns the key whose lowest `bits` bits are 1 and all others 0.
    fn ones(bits: u32) -> Self;
}

/// Value to sort: a key, or a key with more data.
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

macro_rules! key {
    ($number:ty) => {
        impl Key for $number {
            #[inline]
            fn rolled(self, word: u32, word_bits: u32, total_bits: u32) -> Self {
                (self << word_bits | Self::from(word)) & (Self::MAX >> (Self::BITS - total_bits))
            }
            #[inline]
            fn with_value(self, value: u32, value_bits: u32) -> Self {
                self << value_bits | Self::from(value)
            }
            #[inline]
            fn low(self, bits: u32) -> u32 {
                (self & ((1 << bits) - 1)) as u32
            }
            #[inline]
            fn above(self, bits: u32) -> Self {
                self >> bits
            }
            #[inline]
            fn number(self) -> u64 {
                self as u64
            }
            #[inline]
            fn joined(self, other: Self) -> Self {
                self | other
            }
            #[inline]
            fn differing(self, other: Self) -> Self {
                self ^ other
            }
            #[inline]
            fn num_bits(self) -> u32 {
                Self::BITS - self.leading_zeros()
            }
            #[inline]
            fn minus(self, first: Self) -> Self {
                self - first
            }
            fn ones(bits: u32) -> Self {
                Self::MAX.checked_shr(Self::BITS - bits).unwrap_or(0)
            }
        }
    };
}

key!(u64);
key!(u128);

/// Layout of words in 64-bit keys, with the same number of bits for each row of a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::analytics) struct Packing {
    /// Number of words of a sequence.
    pub num_words: usize,
    bits: u32,
}

impl Packing {
    /// Creates the layout for sequences of `num_words` words that are below `vocabulary_len`.
    pub fn new(num_words: usize, vocabulary_len: usize) -> Self {
        let bits = (usize::BITS - vocabulary_len.saturating_sub(1).leading_zeros()).max(1);
        Self { num_words, bits }
    }

    /// Returns the number of bits of a word.
    pub fn word_bits(self) -> u32 {
        self.bits
    }

    /// Returns the number of bits of all words, at most 2^32 - 1.
    pub fn all_bits(self) -> u32 {
        u32::try_from(self.num_words).unwrap_or(u32::MAX).saturating_mul(self.bits)
    }

    /// Returns the number of words of a key.
    pub fn words_per_key(self) -> usize {
        ((64 / self.bits) as usize).min(self.num_words)
    }

    /// Returns true if a key holds a whole sequence.
    pub fn is_whole(self) -> bool {
        self.words_per_key() == self.num_words
    }

    /// Returns the number of bits of a key.
    pub fn key_bits(self) -> u32 {
        self.bits * self.words_per_key() as u32
    }

    /// Returns the key of the first words of `words`. At the end of a sequence, these may be fewer
    /// than a key has.
    pub fn key(self, words: &[u32]) -> u64 {
        let len = self.words_per_key();
        let words = &words[..len.min(words.len())];
        let key = words.iter().fold(0u64, |key, &word| key << self.bits | u64::from(word));
        key << (self.bits as usize * (len - words.len())).min(63)
    }

    /// Returns word `at` of a whole sequence.
    #[inline]
    pub fn word<K: Key>(self, key: K, at: usize) -> u32 {
        key.above(self.bits * (self.num_words - 1 - at) as u32).low(self.bits)
    }
}

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
