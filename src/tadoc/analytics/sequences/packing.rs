//! Packing of word sequences into numbers that have the order of the sequences.

use super::key::Key;

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
