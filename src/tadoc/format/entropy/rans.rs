//! Coder of symbols and bits: two states of 64 bits, words of 32, batches of 65,536 symbols.
//!
//! A state stays in [2^31, 2^63). A symbol of frequency f of 2^15 maps state s to `s / f << 15 | start + s % f`, and
//! the decoder reverses this. Numbers are divided into a symbol (their magnitude, with one bit of mantissa where that
//! pays) and plain bits. Symbols and magnitudes have separate states (Giesen, arXiv:1402.3392), so that a processor
//! decodes the next symbol while it is still busy with the previous number. This is 1.5 times as fast.

use crate::error::Result;
use crate::format::cursor::{Cursor, Origin, push_varint};

use super::{Distribution, Interval, SCALE_BITS, magnitude, smallest, uniform_code};

/// Number of symbols between two fresh states. It bounds the encoder's memory and the symbols that
/// a byte can encode.
const BATCH_LEN: usize = 1 << 16;
const NUM_STATES: usize = 2;
const STATE_BYTES: usize = 8 * NUM_STATES;
/// Greatest number of symbols that a byte of a stream can encode. A larger declared number is
/// false.
pub(in crate::format) const MAX_SYMBOLS_PER_BYTE: u64 = (BATCH_LEN / STATE_BYTES) as u64;
const LOWEST_STATE: u64 = 1 << 31;
/// State for symbols.
const SYMBOLS: usize = 0;
/// State for magnitudes.
const MAGNITUDES: usize = 1;

/// Encoder of symbols and bits into one stream.
#[derive(Debug, Default)]
pub(in crate::format) struct Encoder {
    symbols: SymbolEncoder<NUM_STATES>,
    bits: BitEncoder,
}

impl Encoder {
    /// Encodes `symbol`, which is less than `N`, and updates `distribution`.
    #[inline]
    pub(in crate::format) fn symbol<const N: usize>(&mut self, distribution: &mut Distribution<N>, symbol: usize) {
        self.symbol_in(SYMBOLS, distribution, symbol);
    }

    /// Encodes any `number`, whose magnitude follows `distribution`.
    #[inline]
    pub(in crate::format) fn number(&mut self, distribution: &mut Distribution<32>, number: u32) {
        let magnitude = self.bits.number(number);
        self.symbol_in(MAGNITUDES, distribution, magnitude);
    }

    #[inline]
    fn symbol_in<const N: usize>(&mut self, state: usize, distribution: &mut Distribution<N>, symbol: usize) {
        self.symbols.symbol(state, distribution, symbol);
        if self.symbols.batch.len() == BATCH_LEN {
            self.symbols.end_batch(NUM_STATES);
        }
    }

    /// Appends the stream to `out`.
    pub(in crate::format) fn finish(mut self, out: &mut Vec<u8>) {
        if !self.symbols.batch.is_empty() {
            self.symbols.end_batch(NUM_STATES);
        }
        push_part(out, &self.symbols.finish());
        out.extend_from_slice(&self.bits.finish());
    }
}

/// Appends the length of `bytes`, and `bytes`.
pub(in crate::format) fn push_part(out: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Encoder of symbols in batches, with up to `S` states.
#[derive(Debug, Default)]
pub(in crate::format) struct SymbolEncoder<const S: usize> {
    /// Intervals and their states.
    batch: Vec<(Interval, u8)>,
    symbols: Vec<u8>,
}

impl<const S: usize> SymbolEncoder<S> {
    /// Encodes `symbol`, which is less than `N`, in `state`, and updates `distribution`.
    #[inline]
    pub(in crate::format) fn symbol<const N: usize>(
        &mut self,
        state: usize,
        distribution: &mut Distribution<N>,
        symbol: usize,
    ) {
        let interval = distribution.interval(symbol);
        distribution.learn(interval.start);
        self.batch.push((interval, state as u8));
    }

    /// Writes the symbols since the last batch, which are in the first `num_states` states.
    pub(in crate::format) fn end_batch(&mut self, num_states: usize) {
        // A word is always written, because a branch would be unpredictable.
        let mut words = vec![0u32; self.batch.len() + 1];
        let mut num_words = 0;
        let mut states = [LOWEST_STATE; S];
        for &(interval, state) in self.batch.iter().rev() {
            let state = &mut states[usize::from(state) % S];
            let len = u64::from(interval.len);
            let is_high = *state >= len << (63 - SCALE_BITS);
            words[num_words] = *state as u32;
            num_words += usize::from(is_high);
            let rest = if is_high { *state >> 32 } else { *state };
            let (quotient, remainder) = divided(rest, len);
            *state = (quotient << SCALE_BITS) + u64::from(interval.start) + remainder;
        }
        self.symbols.extend(states[..num_states].iter().flat_map(|state| state.to_le_bytes()));
        self.symbols.extend(words[..num_words].iter().rev().flat_map(|word| word.to_le_bytes()));
        self.batch.clear();
    }

    /// Returns the bytes of all batches.
    pub(in crate::format) fn finish(self) -> Vec<u8> {
        self.symbols
    }
}

/// Returns `number / divisor` and the remainder, for numbers below 2^63 and divisors below 2^32.
/// The division here does not depend on the number. Waiting for the number took most of the time.
#[inline]
fn divided(number: u64, divisor: u64) -> (u64, u64) {
    let inverse = u64::MAX / divisor;
    // The quotient is too small by at most one: the error of the inverse is less than one, so that
    // of the product is less than 1/2.
    let quotient = ((u128::from(number) * u128::from(inverse)) >> 64) as u64;
    let remainder = number - quotient * divisor;
    let is_small = u64::from(remainder >= divisor);
    (quotient + is_small, remainder - is_small * divisor)
}

/// Encoder of plain bits, the second half of a stream.
#[derive(Debug, Default)]
pub(in crate::format) struct BitEncoder {
    /// Whole bytes so far, and room for the next ones.
    bytes: Vec<u8>,
    num_bytes: usize,
    /// Remaining bits, fewer than 8.
    window: u64,
    window_len: u32,
}

impl BitEncoder {
    /// Encodes the low `num_bits` (at most 32) of `value`, whose other bits are zero.
    #[inline]
    pub(in crate::format) fn bits(&mut self, value: u32, num_bits: u32) {
        self.window |= u64::from(value) << self.window_len;
        self.window_len += num_bits;
        // The whole window is always written, because the number of its bits is unpredictable.
        let end = self.num_bytes + 8;
        if end > self.bytes.len() {
            self.bytes.resize(2 * end, 0);
        }
        self.bytes[self.num_bytes..end].copy_from_slice(&self.window.to_le_bytes());
        self.num_bytes += (self.window_len / 8) as usize;
        self.window >>= self.window_len / 8 * 8;
        self.window_len %= 8;
    }

    /// Encodes any `number` except its magnitude, which is returned: a symbol below 32.
    #[inline]
    pub(in crate::format) fn number(&mut self, number: u32) -> usize {
        let symbol = magnitude(number);
        let (smallest, num_bits) = smallest(symbol);
        self.bits(number - smallest, num_bits);
        symbol
    }

    /// Encodes `number`, one of `len` equally likely ones.
    #[inline]
    pub(in crate::format) fn uniform(&mut self, number: u32, len: u32) {
        let (num_bits, num_short) = uniform_code(len);
        if number < num_short {
            self.bits(number, num_bits);
        } else {
            let high = (number - num_short) / 2 + num_short;
            let low = (number - num_short) % 2;
            self.bits(high, num_bits);
            self.bits(low, 1);
        }
    }

    /// Returns the bytes, the last one with zeros behind the bits.
    pub(in crate::format) fn finish(mut self) -> Vec<u8> {
        self.bytes.truncate(self.num_bytes);
        self.bytes.extend_from_slice(&self.window.to_le_bytes()[..self.window_len.div_ceil(8) as usize]);
        self.bytes
    }
}

/// Decoder of a stream. Past its end it reads zeros, and [`finish`](Self::finish) reports this.
#[derive(Debug)]
pub(in crate::format) struct Decoder<'a> {
    place: Origin<'a>,
    symbols: SymbolDecoder<'a, NUM_STATES>,
    num_left: usize,
    /// Plain bits.
    pub(in crate::format) bits: BitDecoder<'a>,
}

impl<'a> Decoder<'a> {
    /// Creates a decoder of `bytes`, the whole output of an [`Encoder`], which lie at `place`.
    pub(in crate::format) fn new(place: Origin<'a>, bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(place, bytes);
        let symbols = SymbolDecoder::new(take_part(&mut cursor)?);
        let bits = BitDecoder::new(cursor.take(cursor.remaining())?);
        Ok(Self { place, symbols, num_left: 0, bits })
    }

    /// Decodes the next symbol and updates `distribution`.
    #[inline]
    pub(in crate::format) fn symbol<const N: usize>(&mut self, distribution: &mut Distribution<N>) -> usize {
        self.symbol_in(SYMBOLS, distribution)
    }

    #[inline]
    fn symbol_in<const N: usize>(&mut self, state: usize, distribution: &mut Distribution<N>) -> usize {
        if self.num_left == 0 {
            self.symbols.begin_batch(NUM_STATES);
            self.num_left = BATCH_LEN;
        }
        self.num_left -= 1;
        self.symbols.symbol(state, distribution)
    }

    /// Decodes the next number, whose magnitude follows `distribution`.
    #[inline]
    pub(in crate::format) fn number(&mut self, distribution: &mut Distribution<32>) -> u32 {
        let magnitude = self.symbol_in(MAGNITUDES, distribution);
        self.bits.number(magnitude)
    }

    /// Decodes the next number below `len`.
    #[inline]
    pub(in crate::format) fn uniform(&mut self, len: u32) -> u32 {
        self.bits.uniform(len)
    }

    /// Checks that the stream ends with the last symbol.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if it does not.
    pub(in crate::format) fn finish(self) -> Result<()> {
        if self.symbols.is_at_end() && self.bits.is_at_end() {
            Ok(())
        } else {
            Err(self.place.fault(0, "expected symbols and bits to end with their stream"))
        }
    }
}

/// Takes what [`push_part`] appended.
pub(in crate::format) fn take_part<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let len = usize::try_from(cursor.varint()?).unwrap_or(usize::MAX);
    cursor.take(len)
}

/// Decoder of symbols in batches, with up to `S` states. Past the end it reads zeros.
#[derive(Debug)]
pub(in crate::format) struct SymbolDecoder<'a, const S: usize> {
    symbols: &'a [u8],
    position: usize,
    states: [u64; S],
}

impl<'a, const S: usize> SymbolDecoder<'a, S> {
    /// Creates a decoder of all bytes of a [`SymbolEncoder`].
    pub(in crate::format) fn new(symbols: &'a [u8]) -> Self {
        Self { symbols, position: 0, states: [LOWEST_STATE; S] }
    }

    /// Begins the next batch, which is in the first `num_states` states.
    pub(in crate::format) fn begin_batch(&mut self, num_states: usize) {
        // Every batch ends in the states with which the encoder began it. A stream that does not is
        // treated as one that was read past its end.
        if self.states != [LOWEST_STATE; S] || self.position > self.symbols.len() {
            self.position = self.symbols.len() + 1;
        }
        for state in &mut self.states[..num_states] {
            let low = word_at(self.symbols, self.position);
            let high = word_at(self.symbols, self.position + 4);
            *state = u64::from(low) | u64::from(high) << 32;
            self.position += 8;
        }
    }

    /// Decodes the next symbol in `state` and updates `distribution`.
    #[inline(always)]
    pub(in crate::format) fn symbol<const N: usize>(
        &mut self,
        state: usize,
        distribution: &mut Distribution<N>,
    ) -> usize {
        self.symbol_by(state, |slot| distribution.next(slot))
    }

    #[inline(always)]
    pub(in crate::format) fn symbol_by(&mut self, state: usize, next: impl FnOnce(u16) -> (usize, Interval)) -> usize {
        let state = &mut self.states[state];
        let slot = *state as u16 % (1 << SCALE_BITS);
        let (symbol, Interval { start, len }) = next(slot);
        let next = u64::from(len) * (*state >> SCALE_BITS) + u64::from(slot - start);
        // A word is always read, because a branch would be unpredictable.
        let is_low = u64::from(next < LOWEST_STATE);
        let word = u64::from(word_at(self.symbols, self.position));
        *state = next << (32 * is_low) | word & is_low.wrapping_neg();
        self.position += 4 * is_low as usize;
        symbol
    }

    /// Returns true if all bytes were read, and not more.
    pub(in crate::format) fn is_at_end(&self) -> bool {
        self.states == [LOWEST_STATE; S] && self.position == self.symbols.len()
    }
}

/// Decoder of plain bits. Past the end it reads zeros.
#[derive(Debug)]
pub(in crate::format) struct BitDecoder<'a> {
    bits: &'a [u8],
    num_bits_read: usize,
}

impl<'a> BitDecoder<'a> {
    /// Creates a decoder of all bytes of a [`BitEncoder`].
    pub(in crate::format) fn new(bits: &'a [u8]) -> Self {
        Self { bits, num_bits_read: 0 }
    }

    /// Reads the next `num_bits` (at most 32) bits.
    #[inline]
    pub(in crate::format) fn bits(&mut self, num_bits: u32) -> u32 {
        let at = self.num_bits_read / 8;
        let window = match self.bits.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(window) => u64::from_le_bytes(*window),
            None => u64::from(word_at(self.bits, at)) | u64::from(word_at(self.bits, at + 4)) << 32,
        };
        let value = window >> (self.num_bits_read % 8) & ((1 << num_bits) - 1);
        self.num_bits_read += num_bits as usize;
        value as u32
    }

    /// Decodes the next number, which has this `magnitude`.
    #[inline]
    pub(in crate::format) fn number(&mut self, magnitude: usize) -> u32 {
        let (smallest, num_bits) = smallest(magnitude);
        smallest.wrapping_add(self.bits(num_bits))
    }

    /// Decodes the next number below `len`.
    #[inline]
    pub(in crate::format) fn uniform(&mut self, len: u32) -> u32 {
        let (num_bits, num_short) = uniform_code(len);
        let high = self.bits(num_bits);
        if high < num_short { high } else { 2 * (high - num_short) + num_short + self.bits(1) }
    }

    /// Returns true if all bytes were read, and not more.
    pub(in crate::format) fn is_at_end(&self) -> bool {
        self.num_bits_read.div_ceil(8) == self.bits.len()
    }
}

/// Returns the 32-bit word at `position`, with zeros behind the end of `bytes`.
#[inline]
fn word_at(bytes: &[u8], position: usize) -> u32 {
    match bytes.get(position..).and_then(|rest| rest.first_chunk()) {
        Some(word) => u32::from_le_bytes(*word),
        None => last_word(bytes, position),
    }
}

#[cold]
fn last_word(bytes: &[u8], position: usize) -> u32 {
    let rest = bytes.get(position..).unwrap_or_default().iter().take(4);
    rest.rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLACE: Origin<'static> = Origin { file: "f", section: "s", offset: 0 };

    proptest! {
        #[test]
        fn division_by_a_product_is_exact(number in 0u64..1 << 63, shift in 0u32..63, divisor in 1u64..1 << 15) {
            for number in [number, number >> shift, number >> shift << shift, (1 << 63) - 1] {
                prop_assert_eq!(divided(number, divisor), (number / divisor, number % divisor));
            }
        }
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
            (any::<u32>(), 0u32..=32).prop_map(|(n, bits)| Item::Bits((u64::from(n) & ((1 << bits) - 1)) as u32, bits)),
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
                    Item::Uniform(n, len) => encoder.bits.uniform(n, len),
                    Item::Bits(n, num_bits) => encoder.bits.bits(n, num_bits),
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
                    Item::Bits(n, num_bits) => prop_assert_eq!(decoder.bits.bits(num_bits), n),
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
