//! Entropy coding: adaptive rANS for symbols, plain bits for values without a distribution.
//!
//! ```text
//! stream  symbols_len LEB128 | symbols | bits
//! symbols per 65,536 symbols: state u64, then u32 words in the order of the decoder
//! bits    low bits first, zero to the end of the last byte
//! ```
//!
//! [`Distribution`] learns the probabilities of 16 or 32 symbols while coding. [`Encoder`] and
//! [`Decoder`] make the same updates, so the file needs no table. Their halves, for symbols and for
//! bits, can run independently and with more states. rANS (Duda, arXiv:1311.2540) runs
//! backwards, so the encoder stores one batch of intervals and reverses it.
//!
//! Four states decode twice as fast as one. Limits: 2^32 - 1 plain bits, at most 32 bits for each
//! number. A decoder past the end reads zeros and reports this at the end.
//!
//! [`prefix_code`] is the coder of lists that must be decoded fast, [`monotone`] that of ascending
//! numbers of which single ones are read.
//!
//! # Distributions
//!
//! A [`Distribution`] stores the cumulative frequency before each symbol, out of 2^15. After each symbol the
//! frequencies move towards it by a share of 2^-rate. The share is large at first (rate 2) and
//! small later (rate 7). The update is Giesen's (in his notes on adaptive multi-symbol models). The
//! ends of the scale leave room for a frequency of one for each symbol, so no frequency becomes
//! zero, and all symbols move in the same few vector instructions. The search in rows of 8 is
//! scalar: summing comparisons of all lanes takes 1.5 to 2 times as long without AVX2.
//!
//! # Numbers
//!
//! Division of numbers into a magnitude, which is a symbol, and plain bits.
//!
//! ```text
//! number   0 │ 1 2 │ 3-4 5-6 │ 7-10 11-14 │ … │ 2^11 - 1 … │ … │ 2^21 - 1 and more
//! symbol   0 │ 1 2 │ 3   4   │ 5    6     │ … │ 21         │ … │ 31
//! ```

pub(in crate::format) mod monotone;
pub(in crate::format) mod prefix_code;
mod rans;

pub(in crate::format) use rans::{
    BitDecoder, BitEncoder, Decoder, Encoder, MAX_SYMBOLS_PER_BYTE, SymbolDecoder, SymbolEncoder, push_part, take_part,
};

/// Logarithm (base 2) of the sum of all frequencies.
pub(in crate::format) const SCALE_BITS: u32 = 15;
const SCALE: u16 = 1 << SCALE_BITS;
const ROW_LEN: usize = 8;
/// Rate by the number of symbols seen.
static RATES: [u8; 256] = rates();

/// Part of the scale that belongs to a symbol.
#[derive(Debug, Clone, Copy)]
pub(in crate::format) struct Interval {
    pub(in crate::format) start: u16,
    /// Length, at least 1 and less than 2^15.
    pub(in crate::format) len: u16,
}

/// Frequencies of `N` symbols, a multiple of 8.
#[derive(Debug, Clone)]
pub(in crate::format) struct Distribution<const N: usize> {
    starts: [i16; N],
    num_seen: u8,
}

impl<const N: usize> Distribution<N> {
    /// Lowest values of the starts: the limits of the starts up to that of a symbol that is always
    /// repeated.
    const LOWEST: [i16; N] = ascending();
    /// Distance from the lowest to the highest value of a start.
    const TO_HIGHEST: i16 = (SCALE - N as u16) as i16;

    /// Creates a distribution in which all symbols are equally likely.
    pub(in crate::format) fn new() -> Self {
        Self { starts: std::array::from_fn(|i| ((i << SCALE_BITS) / N) as i16), num_seen: 0 }
    }

    /// Returns the symbol that owns `slot`, which is less than 2^15.
    #[inline(always)]
    fn symbol_at(&self, slot: u16) -> usize {
        let is_started = |symbol: usize| usize::from(self.starts[symbol % N] <= slot as i16);
        let row = (1..N / ROW_LEN).map(|row| is_started(ROW_LEN * row)).sum::<usize>() * ROW_LEN;
        row + (1..ROW_LEN).map(|i| is_started(row + i)).sum::<usize>()
    }

    /// Returns the part of `symbol`, which is less than `N`.
    #[inline(always)]
    pub(in crate::format) fn interval(&self, symbol: usize) -> Interval {
        let start = self.starts[symbol % N] as u16;
        // The end of the last symbol is the start of the first, 0, modulo the scale.
        let end = self.starts[(symbol + 1) % N] as u16;
        Interval { start, len: end.wrapping_sub(start) % SCALE }
    }

    /// Returns the symbol that owns `slot`, which is less than 2^15, and its part before it learns
    /// one more occurrence.
    #[inline(always)]
    pub(in crate::format) fn next(&mut self, slot: u16) -> (usize, Interval) {
        let symbol = self.symbol_at(slot);
        let interval = self.interval(symbol);
        self.learn(slot);
        (symbol, interval)
    }

    /// Variant of [`next`](Self::next) for `N` a multiple of 16 that counts the starts above `slot`
    /// in masks.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
    pub(in crate::format) fn next_avx2(&mut self, slot: u16) -> (usize, Interval) {
        use std::arch::x86_64::{_mm256_cmpgt_epi16, _mm256_movemask_epi8, _mm256_set1_epi16, _mm256_setr_epi16};
        let slots = _mm256_set1_epi16(slot as i16);
        let mut num_bytes_above = 0;
        for &[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] in self.starts.as_chunks().0 {
            let row = _mm256_setr_epi16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
            let above = _mm256_movemask_epi8(_mm256_cmpgt_epi16(row, slots));
            num_bytes_above += above.count_ones() as usize;
        }
        let symbol = (N - 1).wrapping_sub(num_bytes_above / 2) % N;
        let interval = self.interval(symbol);
        self.learn(slot);
        (symbol, interval)
    }

    /// Learns one occurrence of the symbol that owns `slot`, which is less than 2^15.
    #[inline(always)]
    pub(in crate::format) fn learn(&mut self, slot: u16) {
        let rate = u32::from(RATES[usize::from(self.num_seen)]) % 8;
        self.num_seen = self.num_seen.saturating_add(1);
        for (start, lowest) in self.starts.iter_mut().zip(Self::LOWEST) {
            let is_above = -i16::from(*start > slot as i16);
            let aim = lowest + (Self::TO_HIGHEST & is_above);
            *start += (aim - *start) >> rate;
        }
    }
}

const fn ascending<const N: usize>() -> [i16; N] {
    let mut numbers = [0; N];
    let mut i = 0;
    while i < N {
        numbers[i] = i as i16;
        i += 1;
    }
    numbers
}

const fn rates() -> [u8; 256] {
    let mut rates = [7; 256];
    let mut i = 0;
    while i < 200 {
        rates[i] = match i {
            0..4 => 2,
            4..10 => 3,
            10..31 => 4,
            31..81 => 5,
            _ => 6,
        };
        i += 1;
    }
    rates
}

/// Octave below which numbers have one mantissa bit in their symbol.
const HALF_OCTAVES_BELOW: u32 = 11;

/// Returns the symbol of `number`: half octaves up to 2^11, octaves up to 2^21, and one symbol for
/// all larger numbers.
#[inline]
pub(in crate::format) fn magnitude(number: u32) -> usize {
    match MAGNITUDES_OF_SMALL.get(number as usize) {
        Some(&symbol) => usize::from(symbol),
        None => magnitude_computed(number),
    }
}

/// Symbols of the most frequent numbers.
static MAGNITUDES_OF_SMALL: [u8; 1 << HALF_OCTAVES_BELOW] = {
    let mut symbols = [0; 1 << HALF_OCTAVES_BELOW];
    let mut number = 0;
    while number < symbols.len() {
        symbols[number] = magnitude_computed(number as u32) as u8;
        number += 1;
    }
    symbols
};

const fn magnitude_computed(number: u32) -> usize {
    let value = number as u64 + 1;
    let octave = value.ilog2();
    let symbol = match octave {
        0 => 0,
        1..HALF_OCTAVES_BELOW => 2 * octave - 1 + (value >> (octave - 1) & 1) as u32,
        HALF_OCTAVES_BELOW..=20 => octave + HALF_OCTAVES_BELOW - 1,
        _ => 31,
    };
    symbol as usize
}

/// Returns the smallest number of `symbol`, and the number of bits that follow.
#[inline]
pub(in crate::format) fn smallest(symbol: usize) -> (u32, u32) {
    SMALLEST[symbol % SMALLEST.len()]
}

static SMALLEST: [(u32, u32); 32] = smallest_numbers();

const fn smallest_numbers() -> [(u32, u32); 32] {
    let mut table = [(0, 0); 32];
    let mut symbol = 1;
    while symbol < 32 {
        let s = symbol as u32;
        table[symbol] = if symbol == 31 {
            ((1 << 21) - 1, 32)
        } else if s < 2 * HALF_OCTAVES_BELOW - 1 {
            let octave = s.div_ceil(2);
            ((2 | (s + 1) & 1) * (1 << octave) / 2 - 1, octave - 1)
        } else {
            let octave = s + 1 - HALF_OCTAVES_BELOW;
            ((1 << octave) - 1, octave)
        };
        symbol += 1;
    }
    table
}

/// Returns the length in bits of the short codes for numbers below `len` (not 0), and the number of
/// short codes. The other codes have one more bit.
#[inline]
pub(in crate::format) fn uniform_code(len: u32) -> (u32, u32) {
    let num_bits = len.max(1).ilog2();
    (num_bits, ((2u64 << num_bits) - u64::from(len)) as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<const N: usize>(distribution: &Distribution<N>) {
        let lens = (0..N).map(|s| distribution.interval(s).len);
        assert!(lens.clone().all(|len| len >= 1));
        assert_eq!(lens.sum::<u16>(), SCALE);
        for slot in 0..SCALE {
            let symbol = distribution.symbol_at(slot);
            let Interval { start, len } = distribution.interval(symbol);
            assert!(slot >= start && slot - start < len);
        }
    }

    fn learn_all<const N: usize>(symbols: impl Iterator<Item = usize>) -> Distribution<N> {
        let mut distribution = Distribution::new();
        for symbol in symbols {
            distribution.learn(distribution.interval(symbol % N).start);
        }
        distribution
    }

    proptest! {
        #[test]
        fn every_slot_belongs_to_one_symbol(symbols in prop::collection::vec(0..32usize, 0..2_000)) {
            check(&learn_all::<32>(symbols.iter().copied()));
            check(&learn_all::<16>(symbols.into_iter()));
        }
    }

    #[test]
    fn one_symbol_for_ever_leaves_the_others_a_slot() {
        for symbol in [0, 7, 31] {
            let distribution = learn_all::<32>(std::iter::repeat_n(symbol, 100_000));
            check(&distribution);
            assert!(distribution.interval(symbol).len > 32_000);
        }
    }

    #[test]
    fn magnitudes_tile_the_numbers() {
        let mut next = 0u64;
        for symbol in 0..32 {
            let (first, num_bits) = smallest(symbol);
            assert_eq!(u64::from(first), next, "symbol {symbol}");
            assert_eq!(magnitude(first), symbol);
            next += 1 << num_bits;
            assert_eq!(magnitude((next - 1).min(u64::from(u32::MAX)) as u32), symbol);
        }
        assert!(next > u64::from(u32::MAX));
    }
}
