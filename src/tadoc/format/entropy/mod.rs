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
//! [`prefix_code`] is the coder of lists that must be decoded fast, [`encode_monotone`] that of ascending numbers of
//! which single ones are read.
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
//! A number is divided into a magnitude, which is a symbol, and plain bits.
//!
//! ```text
//! number   0 │ 1 2 │ 3-4 5-6 │ 7-10 11-14 │ … │ 2^11 - 1 … │ … │ 2^21 - 1 and more
//! symbol   0 │ 1 2 │ 3   4   │ 5    6     │ … │ 21         │ … │ 31
//! ```
//!
//! # Ascending numbers
//!
//! A list of ascending numbers has no distribution, and any place of it is read alone (Elias, 1974; Fano, 1971).
//!
//! ```text
//! list    low bits of each number | high bits | samples
//! high    number i sets bit (number >> width) + i
//! sample  bit of the high bits that number 128, 256, … sets
//! ```
//!
//! The length of a list and a limit of its numbers are known to the reader, and determine the sizes of all three parts.
//! Each number of n below u takes about 2 + log2(u / n) bits. A number is found by counting the ones behind a sample.

pub(in crate::format) mod prefix_code;
mod rans;

use crate::error::Result;
use crate::format::cursor::Cursor;

use prefix_code::{BitWriter, Stream};

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

/// Numbers between two samples.
const SAMPLE_EVERY: usize = 128;

/// Sizes of the parts of a list.
#[derive(Debug, Clone, Copy)]
struct Shape {
    len: usize,
    /// Numbers are below it.
    limit: u64,
    /// Number of low bits.
    width: u8,
    /// Number of high bits.
    high_len: u64,
    sample_width: u8,
}

impl Shape {
    fn new(len: usize, limit: u64) -> Self {
        let ratio = limit.checked_div(len as u64).unwrap_or(0);
        let width = ratio.checked_ilog2().unwrap_or(0) as u8;
        let high_len = if len == 0 { 0 } else { len as u64 + (limit >> width) + 1 };
        let sample_width = (u64::BITS - high_len.leading_zeros()) as u8;
        Self { len, limit, width, high_len, sample_width }
    }

    fn num_samples(self) -> usize {
        self.len.saturating_sub(1) / SAMPLE_EVERY
    }

    /// Returns the lengths of the three parts in bytes.
    fn part_lens(self) -> [u64; 3] {
        let low = self.len as u64 * u64::from(self.width);
        let samples = self.num_samples() as u64 * u64::from(self.sample_width);
        [low, self.high_len, samples].map(|bits| bits.div_ceil(8))
    }
}

/// Appends `numbers`, which ascend and are below `limit`, to `out`.
pub(in crate::format) fn encode_monotone(out: &mut Vec<u8>, numbers: &[u64], limit: u64) {
    let shape = Shape::new(numbers.len(), limit);
    let mut low = BitWriter::default();
    let mut samples = BitWriter::default();
    let mut high = vec![0u8; shape.part_lens()[1] as usize];
    for (at, &number) in numbers.iter().enumerate() {
        push_long(&mut low, number & !(u64::MAX << shape.width), shape.width);
        let bit = (number >> shape.width) + at as u64;
        high[(bit / 8) as usize] |= 1 << (bit % 8);
        if at > 0 && at % SAMPLE_EVERY == 0 {
            push_long(&mut samples, bit, shape.sample_width);
        }
    }
    out.extend(low.finish());
    out.extend(high);
    out.extend(samples.finish());
}

/// Writes a number of up to 64 bits.
fn push_long(writer: &mut BitWriter, number: u64, width: u8) {
    let low_width = width.min(u32::BITS as u8);
    writer.push(number & !(u64::MAX << low_width), low_width);
    if width > low_width {
        writer.push(number >> low_width, width - low_width);
    }
}

/// A list whose numbers are not read yet.
#[derive(Debug, Clone, Copy)]
pub(in crate::format) struct Monotone<'a> {
    shape: Shape,
    low: &'a [u8],
    high: &'a [u8],
    samples: &'a [u8],
}

impl<'a> Monotone<'a> {
    /// Finds the parts of a list of `len` numbers below `limit`, which must be at most 2^56.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if `cursor` has fewer bytes.
    pub(in crate::format) fn read(cursor: &mut Cursor<'a>, len: usize, limit: u64) -> Result<Self> {
        let shape = Shape::new(len, limit);
        let mut take = |len: u64| cursor.take(usize::try_from(len).unwrap_or(usize::MAX));
        let [low, high, samples] = shape.part_lens();
        Ok(Self { shape, low: take(low)?, high: take(high)?, samples: take(samples)? })
    }

    /// Returns the number of numbers.
    pub(in crate::format) fn len(&self) -> usize {
        self.shape.len
    }

    /// Returns the number at `at`, or `None` if it does not exist or is not below the limit.
    pub(in crate::format) fn get(&self, at: usize) -> Option<u64> {
        if at >= self.shape.len {
            return None;
        }
        let sample_idx = at / SAMPLE_EVERY;
        let start = match sample_idx.checked_sub(1) {
            None => 0,
            Some(before) => number_at(self.samples, before, self.shape.sample_width),
        };
        let bit = nth_one(self.high, start, (at % SAMPLE_EVERY) as u32)?;
        self.number(at, bit)
    }

    /// Returns all numbers, or `None` if they do not ascend below the limit.
    pub(in crate::format) fn numbers(&self) -> Option<Vec<u64>> {
        let mut numbers = Vec::with_capacity(self.shape.len);
        for (word_idx, bytes) in self.high.chunks(8).enumerate() {
            let mut word = Stream { bytes, position: 0 }.bits();
            while word != 0 {
                let bit = 64 * word_idx as u64 + u64::from(word.trailing_zeros());
                numbers.push(self.number(numbers.len(), bit)?);
                word &= word - 1;
            }
        }
        (numbers.len() == self.shape.len && numbers.is_sorted()).then_some(numbers)
    }

    /// Returns the number at `at`, which set `bit`.
    #[inline]
    fn number(&self, at: usize, bit: u64) -> Option<u64> {
        let high = bit.checked_sub(at as u64).filter(|_| at < self.shape.len)?;
        let number = high << self.shape.width | number_at(self.low, at, self.shape.width);
        (number < self.shape.limit).then_some(number)
    }
}

/// Returns the number at `at` among numbers of `width` bits.
#[inline]
fn number_at(bytes: &[u8], at: usize, width: u8) -> u64 {
    let position = at * usize::from(width);
    Stream { bytes, position }.bits() & !(u64::MAX << width)
}

/// Returns the place of one number `nth` among the ones of `bits` from bit `start` on.
fn nth_one(bits: &[u8], start: u64, nth: u32) -> Option<u64> {
    let mut at = usize::try_from(start / 64).ok()?.checked_mul(8)?;
    let mut left = nth;
    let mut mask = u64::MAX << (start % 64);
    while at < bits.len() {
        let word = Stream { bytes: bits, position: 8 * at }.bits() & mask;
        let num_ones = word.count_ones();
        if left < num_ones {
            return Some(8 * at as u64 + u64::from(nth_one_of(word, left)));
        }
        left -= num_ones;
        (at, mask) = (at + 8, u64::MAX);
    }
    None
}

/// Returns the place of one number `nth` in `word`, which has more.
fn nth_one_of(word: u64, nth: u32) -> u32 {
    let mut word = word;
    let mut left = nth;
    let mut place = 0;
    for half in [32, 16, 8] {
        let num_ones = (word & ((1 << half) - 1)).count_ones();
        let skipped = if left < num_ones { 0 } else { half };
        left -= if skipped > 0 { num_ones } else { 0 };
        word >>= skipped;
        place += skipped;
    }
    (0..left).for_each(|_| word &= word - 1);
    place + word.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::format::cursor::Origin;

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

    const PLACE: Origin<'_> = Origin { file: "a", section: "grammar", offset: 0 };

    /// Returns the numbers read one by one, which must be those read at once.
    fn read(bytes: &[u8], len: usize, limit: u64) -> Option<Vec<u64>> {
        let mut cursor = Cursor::new(PLACE, bytes);
        let list = Monotone::read(&mut cursor, len, limit).ok()?;
        let numbers = list.numbers()?;
        cursor.finish().ok()?;
        assert_eq!(list.get(len), None);
        let single: Option<Vec<u64>> = (0..len).map(|at| list.get(at)).collect();
        (single.as_ref() == Some(&numbers)).then_some(numbers)
    }

    proptest! {
        #[test]
        fn lists_come_back(gaps in proptest::collection::vec((0u32..40, any::<u64>()), 0..700), more in 1u64..1000) {
            let ends = gaps.iter().scan(0u64, |end, &(shift, gap)| {
                *end += gap >> 24 >> shift;
                Some(*end)
            });
            let numbers: Vec<u64> = ends.collect();
            let limit = numbers.last().unwrap_or(&0) + more;
            let mut bytes = Vec::new();
            encode_monotone(&mut bytes, &numbers, limit);
            prop_assert_eq!(read(&bytes, numbers.len(), limit), Some(numbers));
        }

        #[test]
        fn any_bytes_are_numbers_below_the_limit_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), len in 0usize..400, limit in 0u64..1 << 20,
        ) {
            let mut cursor = Cursor::new(PLACE, &bytes);
            if let Ok(list) = Monotone::read(&mut cursor, len, limit) {
                prop_assert!((0..len).filter_map(|at| list.get(at)).all(|number| number < limit));
                prop_assert!(list.numbers().is_none_or(|numbers| numbers.len() == len));
            }
        }
    }
}
