//! Sequences of words as numbers that order as the sequences do.

use super::key::Key;

/// How words are packed into 64-bit keys: the same number of bits for each row of a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::analytics) struct Packing {
    /// Words of a sequence.
    pub num_words: usize,
    bits: u32,
}

impl Packing {
    /// For sequences of `num_words` words that are below `vocabulary_len`.
    pub fn new(num_words: usize, vocabulary_len: usize) -> Self {
        let bits = (usize::BITS - vocabulary_len.saturating_sub(1).leading_zeros()).max(1);
        Self { num_words, bits }
    }

    /// Bits of a word.
    pub fn word_bits(self) -> u32 {
        self.bits
    }

    /// Bits of all words, 2^32 - 1 at most.
    pub fn all_bits(self) -> u32 {
        u32::try_from(self.num_words).unwrap_or(u32::MAX).saturating_mul(self.bits)
    }

    /// Words of a key.
    pub fn words_per_key(self) -> usize {
        ((64 / self.bits) as usize).min(self.num_words)
    }

    /// Whether a key is a whole sequence.
    pub fn is_whole(self) -> bool {
        self.words_per_key() == self.num_words
    }

    /// Bits of a key.
    pub fn key_bits(self) -> u32 {
        self.bits * self.words_per_key() as u32
    }

    /// The key of the first words of `words`, which may be fewer than a key has at the end of a
    /// sequence.
    pub fn key(self, words: &[u32]) -> u64 {
        let len = self.words_per_key();
        let words = &words[..len.min(words.len())];
        let key = words.iter().fold(0u64, |key, &word| key << self.bits | u64::from(word));
        key << (self.bits as usize * (len - words.len())).min(63)
    }

    /// Word `at` of a whole sequence.
    #[inline]
    pub fn word<K: Key>(self, key: K, at: usize) -> u32 {
        key.above(self.bits * (self.num_words - 1 - at) as u32).low(self.bits)
    }
}
