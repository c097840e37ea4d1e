//! Numbers that hold a whole sequence and, below it, a small value.
//!
//! ```text
//! | word 1 | word 2 | word 3 | value |     bits of a word each, value_bits
//! ```
//!
//! They order as the sequences do. Sequences of up to 64 bits with their value are counted in `u64`, up to
//! 128 bits (7 words of 2^18) in `u128`; longer ones as places in a text.

use std::fmt::Debug;

/// A number that sequences are packed into.
pub(in crate::analytics) trait Key:
    Copy + Default + Ord + Debug + Send + Sync
{
    /// The words before with `word` behind and the oldest one, above `total_bits`, out.
    fn rolled(self, word: u32, word_bits: u32, total_bits: u32) -> Self;
    /// The sequence with `value` below.
    fn with_value(self, value: u32, value_bits: u32) -> Self;
    /// The lowest `bits`, at most 32.
    fn low(self, bits: u32) -> u32;
    /// All but the lowest `bits`.
    fn above(self, bits: u32) -> Self;
    /// The lowest 64 bits.
    fn number(self) -> u64;
    /// All bits that are in one of both.
    fn joined(self, other: Self) -> Self;
    /// The bits that are in one and not in the other.
    fn differing(self, other: Self) -> Self;
    /// Bits up to the highest that is 1.
    fn num_bits(self) -> u32;
    /// The difference to `first`, which is not larger.
    fn minus(self, first: Self) -> Self;
    /// The key whose lowest `bits` are 1 and no other.
    fn ones(bits: u32) -> Self;
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
