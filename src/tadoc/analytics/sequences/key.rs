//! Keys: numbers that hold a whole sequence and, in the lowest bits, a small value.
//!
//! ```text
//! | word 1 | word 2 | word 3 | value |     bits of a word each, value_bits
//! ```
//!
//! Keys have the order of the sequences. Sequences that fit 64 bits with their value are counted in
//! `u64`, up to 128 bits (7 words of 2^18) in `u128`. Longer ones are counted as positions in a
//! text.

use std::fmt::Debug;

/// Number that sequences are packed into.
pub(in crate::analytics) trait Key:
    Copy + Default + Ord + Debug + Send + Sync
{
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
