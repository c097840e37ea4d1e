//! Hashes of sequences of words: polynomials over the field of 2^61 - 1 elements, at a random point
//! (Karp and Rabin, "Efficient randomized pattern-matching algorithms", 1987).
//!
//! ```text
//! words       w0 w1 w2 w3        values v0 .. v3, from a keyed hash of the bytes of each word
//! prefixes    0, v0, v0 b + v1, v0 b² + v1 b + v2, …
//! w1 w2       prefix 3 - prefix 1 · b²  =  v1 b + v2
//! ```
//!
//! Keys and the point b are random, so no text can be made that collides. They are the same for all segments, because
//! they depend on the bytes of words and not on their ids. Two sequences of n words that differ have the same hash with
//! a chance of about n / 2^61. Tasks do not rely on it: they compare words.

use std::hash::{BuildHasher, RandomState};

/// Number of elements of the field, a Mersenne prime.
const PRIME: u64 = (1 << 61) - 1;

/// A class of hashes: those with these first bits, when mixed. Classes follow one another, and one that is
/// too large is halved.
#[derive(Debug, Clone, Copy)]
pub(super) struct HashClass {
    number: u64,
    num_bits: u32,
}

/// Greatest number of bits that divide hashes into classes.
const MAX_CLASS_BITS: u32 = 20;

impl HashClass {
    /// The class of all hashes.
    pub const ALL: Self = Self { number: 0, num_bits: 0 };

    #[inline]
    pub fn contains(self, hash: u64) -> bool {
        let mixed = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
        self.num_bits == 0 || mixed >> (64 - self.num_bits) == self.number
    }

    /// Returns the class of as many bits behind this one, if there is one.
    pub fn next(self) -> Option<Self> {
        let number = self.number + 1;
        (number >> self.num_bits == 0).then_some(Self { number, ..self })
    }

    /// Returns the first half of this class, or `None` if it has 20 bits already.
    pub fn first_half(self) -> Option<Self> {
        let halved = Self { number: 2 * self.number, num_bits: self.num_bits + 1 };
        (halved.num_bits <= MAX_CLASS_BITS).then_some(halved)
    }
}

/// Random values of words, and a random point.
#[derive(Debug)]
pub(super) struct Hashing {
    keys: RandomState,
    point: u64,
    /// Bits of a word's value that are kept: all of them, except in tests of collisions.
    kept_bits: u64,
}

impl Hashing {
    /// Draws new values, of which `kept_bits` are kept.
    pub fn new(kept_bits: u64) -> Self {
        let keys = RandomState::new();
        // Neither 0 nor 1, at which many sequences have the same hash.
        let point = 2 + keys.hash_one("point") % (PRIME - 2);
        Self { keys, point, kept_bits }
    }

    /// Returns the value of a word.
    #[inline]
    pub fn value(&self, word: &[u8]) -> u64 {
        (self.keys.hash_one(word) & self.kept_bits) % PRIME
    }

    /// Returns the point to the power of `exponent`.
    pub fn power(&self, mut exponent: u64) -> u64 {
        let mut power = 1;
        let mut square = self.point;
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = product(power, square);
            }
            square = product(square, square);
            exponent >>= 1;
        }
        power
    }

    /// Returns the hash of a sequence and the word of value `value` behind it.
    #[inline]
    pub fn extended(&self, hash: u64, value: u64) -> u64 {
        reduced(product(hash, self.point) + value)
    }
}

/// Hashes of the last words of a text, for sequences of one length.
#[derive(Debug)]
pub(super) struct Rolling<'a> {
    hashing: &'a Hashing,
    num_words: usize,
    power: u64,
    /// Hash of the first n words at n modulo the length, for the words of the last sequence.
    prefixes: Vec<u64>,
    num_read: usize,
}

impl<'a> Rolling<'a> {
    /// Creates the hashes of sequences of `num_words` words, at least 1.
    pub fn new(hashing: &'a Hashing, num_words: usize) -> Self {
        let prefixes = vec![0; (num_words + 1).next_power_of_two()];
        Self { hashing, num_words, power: hashing.power(num_words as u64), prefixes, num_read: 0 }
    }

    /// Begins the next text.
    #[inline]
    pub fn start(&mut self) {
        self.num_read = 0;
        self.prefixes[0] = 0;
    }

    /// Reads the next word, and returns the mixed hash of the sequence that ends with it.
    #[inline]
    pub fn push(&mut self, value: u64) -> Option<u64> {
        let mask = self.prefixes.len() - 1;
        let prefix = self.hashing.extended(self.prefixes[self.num_read & mask], value);
        self.num_read += 1;
        self.prefixes[self.num_read & mask] = prefix;
        let start = self.num_read.checked_sub(self.num_words)?;
        Some(mixed(behind(self.prefixes[start & mask], prefix, self.power)))
    }
}

/// Returns the hash of the words behind the prefix `before`, up to the end of the prefix `whole`.
/// `power` is the point to the power of their number.
#[inline]
pub(super) fn behind(before: u64, whole: u64, power: u64) -> u64 {
    reduced(whole + PRIME - product(before, power))
}

/// Mixes a hash one to one, so that all its bits are random.
#[inline]
pub(super) fn mixed(hash: u64) -> u64 {
    let product = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

#[inline]
fn product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    reduced((product as u64 & PRIME) + (product >> 61) as u64)
}

/// Reduces a number below twice the prime.
#[inline]
fn reduced(number: u64) -> u64 {
    if number >= PRIME { number - PRIME } else { number }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hashes_depend_only_on_the_words(
            values in prop::collection::vec(0..PRIME, 1..40),
            cut in any::<prop::sample::Index>(),
        ) {
            let hashing = Hashing::new(u64::MAX);
            let hash = |values: &[u64]| values.iter().fold(0, |h, &v| hashing.extended(h, v));
            let start = cut.index(values.len());
            let len = (values.len() - start) as u64;
            let slow = (0..len).fold(1, |power, _| product(power, hashing.point));
            prop_assert_eq!(hashing.power(len), slow);
            let found = behind(hash(&values[..start]), hash(&values), slow);
            prop_assert_eq!(found, hash(&values[start..]));
            let mut rolling = Rolling::new(&hashing, len as usize);
            rolling.push(7);
            rolling.start();
            let hashes: Vec<_> = values.iter().map(|&value| rolling.push(value)).collect();
            prop_assert!(hashes[..len as usize - 1].iter().all(Option::is_none));
            prop_assert_eq!(hashes[values.len() - 1], Some(mixed(found)));
        }

        #[test]
        fn products_are_those_of_the_field(a in 0..PRIME, b in 0..PRIME) {
            let expected = (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64;
            prop_assert_eq!(product(a, b), expected);
        }
    }
}
