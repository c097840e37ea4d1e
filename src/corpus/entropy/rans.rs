//! The coder of symbols and bits: two states of 64 bits, words of 32, batches of 65,536 symbols.
//!
//! A state stays in [2^31, 2^63); a symbol of frequency f of 2^15 maps state s to
//! `s / f << 15 | start + s % f`, and the decoder goes the other way. Numbers are cut into a
//! symbol (their magnitude, with one bit of mantissa where that pays) and plain bits. Symbols and
//! magnitudes go through a state each (Giesen, arXiv:1402.3392), so that a processor decodes the
//! next symbol while it is busy with the number before: 1.5 times as fast.

use super::super::cursor::{Cursor, Place, push_varint};
use super::distribution::{Distribution, Interval, SCALE_BITS};
use crate::error::Result;

/// Symbols between two fresh states: bounds the encoder's memory, and what a byte can mean.
const BATCH_LEN: usize = 1 << 16;
const NUM_STATES: usize = 2;
const STATE_BYTES: usize = 8 * NUM_STATES;
/// Most symbols a byte of a stream can stand for: what is declared beyond that is a lie.
pub(in crate::corpus) const MAX_SYMBOLS_PER_BYTE: u64 = (BATCH_LEN / STATE_BYTES) as u64;
const LOWEST_STATE: u64 = 1 << 31;
/// State of symbols.
const SYMBOLS: usize = 0;
/// State of magnitudes.
const MAGNITUDES: usize = 1;

/// Codes symbols and bits into a stream.
#[derive(Debug, Default)]
pub(in crate::corpus) struct Encoder {
    /// Intervals and their states.
    batch: Vec<(Interval, u8)>,
    symbols: Vec<u8>,
    bits: Vec<u8>,
    window: u64,
    window_len: u32,
}

impl Encoder {
    /// Codes `symbol`, below `N`, and teaches `distribution`.
    #[inline]
    pub(in crate::corpus) fn symbol<const N: usize>(
        &mut self,
        distribution: &mut Distribution<N>,
        symbol: usize,
    ) {
        self.symbol_with(SYMBOLS, distribution, symbol);
    }

    #[inline]
    fn symbol_with<const N: usize>(
        &mut self,
        state: usize,
        distribution: &mut Distribution<N>,
        symbol: usize,
    ) {
        let interval = distribution.interval(symbol);
        distribution.learn(interval.start);
        self.batch.push((interval, state as u8));
        if self.batch.len() == BATCH_LEN {
            self.flush_batch();
        }
    }

    /// Codes the low `num_bits` (at most 32) of `value`, which has no others.
    #[inline]
    pub(in crate::corpus) fn bits(&mut self, value: u32, num_bits: u32) {
        self.window |= u64::from(value) << self.window_len;
        self.window_len += num_bits;
        if self.window_len >= 32 {
            self.bits.extend((self.window as u32).to_le_bytes());
            self.window >>= 32;
            self.window_len -= 32;
        }
    }

    /// Codes any `number`, whose magnitude follows `distribution`.
    #[inline]
    pub(in crate::corpus) fn number(&mut self, distribution: &mut Distribution<32>, number: u32) {
        let (symbol, num_bits) = magnitude(number);
        self.symbol_with(MAGNITUDES, distribution, symbol);
        self.bits(number - smallest(symbol).0, num_bits);
    }

    /// Codes `number`, one of `len` equally likely ones.
    #[inline]
    pub(in crate::corpus) fn uniform(&mut self, number: u32, len: u32) {
        let (num_bits, num_short) = uniform_code(len);
        if number < num_short {
            self.bits(number, num_bits);
        } else {
            let (high, low) = ((number - num_short) / 2 + num_short, (number - num_short) % 2);
            self.bits(high, num_bits);
            self.bits(low, 1);
        }
    }

    fn flush_batch(&mut self) {
        let mut words: Vec<u32> = Vec::new();
        let mut states = [LOWEST_STATE; NUM_STATES];
        for &(interval, state) in self.batch.iter().rev() {
            let state = &mut states[usize::from(state) % NUM_STATES];
            let len = u64::from(interval.len);
            if *state >= len << (63 - SCALE_BITS) {
                words.push(*state as u32);
                *state >>= 32;
            }
            *state = ((*state / len) << SCALE_BITS) + u64::from(interval.start) + *state % len;
        }
        self.symbols.extend(states.iter().flat_map(|state| state.to_le_bytes()));
        self.symbols.extend(words.iter().rev().flat_map(|word| word.to_le_bytes()));
        self.batch.clear();
    }

    /// Appends the stream to `out`.
    pub(in crate::corpus) fn finish(mut self, out: &mut Vec<u8>) {
        if !self.batch.is_empty() {
            self.flush_batch();
        }
        push_varint(out, self.symbols.len() as u64);
        out.extend_from_slice(&self.symbols);
        out.extend_from_slice(&self.bits);
        let num_last = self.window_len.div_ceil(8) as usize;
        out.extend_from_slice(&self.window.to_le_bytes()[..num_last]);
    }
}

/// Decodes a stream. Past its end come zeros; [`finish`](Self::finish) finds out.
#[derive(Debug)]
pub(in crate::corpus) struct Decoder<'a> {
    place: Place<'a>,
    symbols: &'a [u8],
    position: usize,
    states: [u64; NUM_STATES],
    num_left: usize,
    bits: &'a [u8],
    num_bits_read: usize,
}

impl<'a> Decoder<'a> {
    /// A decoder of `bytes`, all that an [`Encoder`] appended, which lie at `place`.
    pub(in crate::corpus) fn new(place: Place<'a>, bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(place, bytes);
        let symbols_len = usize::try_from(cursor.varint()?).unwrap_or(usize::MAX);
        let symbols = cursor.take(symbols_len)?;
        let bits = cursor.take(cursor.remaining())?;
        let states = [LOWEST_STATE; NUM_STATES];
        Ok(Self { place, symbols, position: 0, states, num_left: 0, bits, num_bits_read: 0 })
    }

    /// The next symbol, which teaches `distribution`.
    #[inline]
    pub(in crate::corpus) fn symbol<const N: usize>(
        &mut self,
        distribution: &mut Distribution<N>,
    ) -> usize {
        self.symbol_with::<SYMBOLS, N>(distribution)
    }

    #[inline]
    fn symbol_with<const STATE: usize, const N: usize>(
        &mut self,
        distribution: &mut Distribution<N>,
    ) -> usize {
        if self.num_left == 0 {
            self.begin_batch();
        }
        self.num_left -= 1;
        let state = self.states[STATE];
        let slot = state as u16 % (1 << SCALE_BITS);
        let symbol = distribution.symbol_at(slot);
        let Interval { start, len } = distribution.interval(symbol);
        distribution.learn(slot);
        let state = u64::from(len) * (state >> SCALE_BITS) + u64::from(slot - start);
        // Whether a word is due cannot be guessed, so it is always read.
        let is_low = state < LOWEST_STATE;
        let refilled = state << 32 | u64::from(word_at(self.symbols, self.position));
        self.states[STATE] = if is_low { refilled } else { state };
        self.position += 4 * usize::from(is_low);
        symbol
    }

    #[cold]
    fn begin_batch(&mut self) {
        // Every batch ends in the states the encoder began it with; a stream that does not is
        // remembered as one read past its end.
        if self.states != [LOWEST_STATE; NUM_STATES] || self.position > self.symbols.len() {
            self.position = self.symbols.len() + 1;
        }
        for state in &mut self.states {
            let (low, high) =
                (word_at(self.symbols, self.position), word_at(self.symbols, self.position + 4));
            *state = u64::from(low) | u64::from(high) << 32;
            self.position += 8;
        }
        self.num_left = BATCH_LEN;
    }

    /// The next `num_bits` (at most 32) bits.
    #[inline]
    pub(in crate::corpus) fn bits(&mut self, num_bits: u32) -> u32 {
        let at = self.num_bits_read / 8;
        let window =
            u64::from(word_at(self.bits, at)) | u64::from(word_at(self.bits, at + 4)) << 32;
        let value = window >> (self.num_bits_read % 8) & ((1 << num_bits) - 1);
        self.num_bits_read += num_bits as usize;
        value as u32
    }

    /// The next number, whose magnitude follows `distribution`.
    #[inline]
    pub(in crate::corpus) fn number(&mut self, distribution: &mut Distribution<32>) -> u32 {
        let (smallest, num_bits) = smallest(self.symbol_with::<MAGNITUDES, 32>(distribution));
        smallest.wrapping_add(self.bits(num_bits))
    }

    /// The next number below `len`.
    #[inline]
    pub(in crate::corpus) fn uniform(&mut self, len: u32) -> u32 {
        let (num_bits, num_short) = uniform_code(len);
        let high = self.bits(num_bits);
        if high < num_short { high } else { 2 * (high - num_short) + num_short + self.bits(1) }
    }

    /// Checks that the stream ended where the last symbol did.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format).
    pub(in crate::corpus) fn finish(self) -> Result<()> {
        let is_whole = self.states == [LOWEST_STATE; NUM_STATES]
            && self.position == self.symbols.len()
            && self.num_bits_read.div_ceil(8) == self.bits.len();
        match is_whole {
            true => Ok(()),
            false => Err(self.place.fault(0, "expected symbols and bits to end with their stream")),
        }
    }
}

/// The 32-bit word at `position`; behind the end of `bytes` come zeros.
#[inline]
fn word_at(bytes: &[u8], position: usize) -> u32 {
    let rest = bytes.get(position..).unwrap_or_default();
    match rest.first_chunk() {
        Some(word) => u32::from_le_bytes(*word),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)),
    }
}

/// Numbers below this have one mantissa bit in their symbol.
const HALF_OCTAVES_BELOW: u32 = 11;

/// The symbol of `number`, and how many bits follow it: 0 | 1 2 | 3-4 5-6 | 7-10 … in half octaves
/// up to 2^11, then octaves up to 2^21, then everything else in one.
#[inline]
fn magnitude(number: u32) -> (usize, u32) {
    let value = u64::from(number) + 1;
    let octave = value.ilog2();
    let symbol = match octave {
        0 => 0,
        1..HALF_OCTAVES_BELOW => 2 * octave - 1 + (value >> (octave - 1) & 1) as u32,
        HALF_OCTAVES_BELOW..=20 => octave + HALF_OCTAVES_BELOW - 1,
        _ => 31,
    };
    (symbol as usize, smallest(symbol as usize).1)
}

/// The smallest number of `symbol`, and how many bits follow.
#[inline]
fn smallest(symbol: usize) -> (u32, u32) {
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

/// Bits of the short codes for numbers below `len` (not 0), and how many codes are short; the
/// others have a bit more.
#[inline]
fn uniform_code(len: u32) -> (u32, u32) {
    let num_bits = len.max(1).ilog2();
    (num_bits, ((2u64 << num_bits) - u64::from(len)) as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLACE: Place<'static> = Place { file: "f", section: "s", offset: 0 };

    #[test]
    fn magnitudes_tile_the_numbers() {
        let mut next = 0u64;
        for symbol in 0..32 {
            let (first, num_bits) = smallest(symbol);
            assert_eq!(u64::from(first), next, "symbol {symbol}");
            assert_eq!(magnitude(first), (symbol, num_bits));
            next += 1 << num_bits;
            assert_eq!(magnitude((next - 1).min(u64::from(u32::MAX)) as u32).0, symbol);
        }
        assert!(next > u64::from(u32::MAX));
    }

    #[derive(Debug, Clone)]
    enum Item {
        Symbol(usize, usize),
        Number(u32),
        Uniform(u32, u32),
        Bits(u32, u32),
    }

    fn items() -> impl Strategy<Value = Vec<Item>> {
        let item = prop_oneof![
            (0usize..3, 0usize..32).prop_map(|(d, s)| Item::Symbol(d, s)),
            (any::<u32>(), 0u32..32).prop_map(|(n, shift)| Item::Number(n >> shift)),
            (1..=u32::MAX, any::<u32>(), 0u32..32).prop_map(|(len, n, shift)| {
                let len = (len >> shift).max(1);
                Item::Uniform(n % len, len)
            }),
            (any::<u32>(), 0u32..=32)
                .prop_map(|(n, bits)| Item::Bits((u64::from(n) & ((1 << bits) - 1)) as u32, bits)),
        ];
        prop::collection::vec(item, 0..400)
    }

    proptest! {
        #[test]
        fn what_is_coded_is_decoded(items in items(), repeats in prop::sample::select(vec![1, 300])) {
            let mut distributions = vec![Distribution::<32>::new(); 4];
            let mut encoder = Encoder::default();
            for item in std::iter::repeat_n(&items, repeats).flatten() {
                match *item {
                    Item::Symbol(d, s) => encoder.symbol(&mut distributions[d], s),
                    Item::Number(n) => encoder.number(&mut distributions[3], n),
                    Item::Uniform(n, len) => encoder.uniform(n, len),
                    Item::Bits(n, num_bits) => encoder.bits(n, num_bits),
                }
            }
            let mut bytes = Vec::new();
            encoder.finish(&mut bytes);
            let mut distributions = vec![Distribution::<32>::new(); 4];
            let mut decoder = Decoder::new(PLACE, &bytes).unwrap();
            for item in std::iter::repeat_n(&items, repeats).flatten() {
                match *item {
                    Item::Symbol(d, s) => prop_assert_eq!(decoder.symbol(&mut distributions[d]), s),
                    Item::Number(n) => prop_assert_eq!(decoder.number(&mut distributions[3]), n),
                    Item::Uniform(n, len) => prop_assert_eq!(decoder.uniform(len), n),
                    Item::Bits(n, num_bits) => prop_assert_eq!(decoder.bits(num_bits), n),
                }
            }
            decoder.finish().unwrap();
        }

        #[test]
        fn any_bytes_decode_to_something(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let Ok(mut decoder) = Decoder::new(PLACE, &bytes) else { return Ok(()) };
            let mut distribution = Distribution::new();
            for _ in 0..2_000 {
                decoder.number(&mut distribution);
                decoder.uniform(17);
            }
            prop_assert!(decoder.finish().is_err());
        }
    }
}
