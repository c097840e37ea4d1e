//! Division of numbers into a magnitude, which is a symbol, and plain bits.
//!
//! ```text
//! number   0 │ 1 2 │ 3-4 5-6 │ 7-10 11-14 │ … │ 2^11 - 1 … │ … │ 2^21 - 1 and more
//! symbol   0 │ 1 2 │ 3   4   │ 5    6     │ … │ 21         │ … │ 31
//! ```

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
    use super::*;

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
