//! A probability distribution over 32 symbols that learns as it is used.
//!
//! Kept as the cumulative frequencies before each symbol, out of 2^15. After each symbol the
//! frequencies move towards it by a share of 2^-rate; the share is large at first (rate 3) and small
//! later (rate 7). The way of moving is Giesen's (in his notes on adaptive multi-symbol models): the ends of
//! the scale leave room for a frequency of one each, so no frequency ever reaches zero. All 32 lanes
//! move in the same few vector instructions.

/// Symbols of a distribution.
pub(in crate::corpus) const NUM_SYMBOLS: usize = 32;
/// log2 of the sum of all frequencies.
pub(super) const SCALE_BITS: u32 = 15;
const SCALE: i32 = 1 << SCALE_BITS;
/// Rate after so many symbols, in steps of [`RATE_STEP`].
const RATES: [u8; 16] = [3, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7];
const RATE_STEP: u16 = 16;
/// Where the starts of the symbols up to one that comes for ever move to: as low as they can.
const LOWEST: [i16; NUM_SYMBOLS] = scale_end(0);
/// How much higher the others move.
const TO_HIGHEST: i16 = (SCALE - NUM_SYMBOLS as i32) as i16;

/// What part of the scale a symbol owns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) start: u16,
    /// At least 1, at most 2^15 - 31.
    pub(super) len: u16,
}

/// Frequencies of 32 symbols.
#[derive(Debug, Clone)]
pub(in crate::corpus) struct Distribution {
    starts: [i16; NUM_SYMBOLS],
    num_seen: u16,
}

impl Distribution {
    /// All symbols equally likely.
    pub(in crate::corpus) fn new() -> Self {
        let starts = std::array::from_fn(|i| (i << SCALE_BITS >> 5) as i16);
        Self { starts, num_seen: 0 }
    }

    /// The symbol that owns `slot`, below 2^15.
    #[inline]
    pub(super) fn symbol_at(&self, slot: u16) -> usize {
        let slot = slot as i16;
        let starts = &self.starts;
        let row = 8
            * (usize::from(starts[8] <= slot)
                + usize::from(starts[16] <= slot)
                + usize::from(starts[24] <= slot));
        let mut symbol = row;
        for i in 1..8 {
            symbol += usize::from(starts[(row + i) % NUM_SYMBOLS] <= slot);
        }
        symbol
    }

    /// The part of `symbol`, which is below 32.
    #[inline]
    pub(super) fn interval(&self, symbol: usize) -> Interval {
        let start = self.starts[symbol % NUM_SYMBOLS] as u16;
        // The end of the last symbol is the start of the first, 0, modulo the scale.
        let end = self.starts[(symbol + 1) % NUM_SYMBOLS] as u16;
        Interval { start, len: end.wrapping_sub(start) % SCALE as u16 }
    }

    /// Learns that the symbol came that owns `slot`, below 2^15.
    #[inline]
    pub(super) fn learn(&mut self, slot: u16) {
        let slot = slot as i16;
        let rate = u32::from(RATES[usize::from(self.num_seen / RATE_STEP) % RATES.len()]);
        self.num_seen = (self.num_seen + 1).min(RATE_STEP * RATES.len() as u16 - 1);
        for (start, lowest) in self.starts.iter_mut().zip(LOWEST) {
            let aim = if *start > slot { lowest + TO_HIGHEST } else { lowest };
            *start += (aim - *start) >> rate;
        }
    }
}

const fn scale_end(first: i16) -> [i16; NUM_SYMBOLS] {
    let mut end = [first; NUM_SYMBOLS];
    let mut i = 0;
    while i < NUM_SYMBOLS {
        end[i] += i as i16;
        i += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_frequency_reaches_zero(symbols in prop::collection::vec(0..NUM_SYMBOLS, 0..2_000)) {
            let mut distribution = Distribution::new();
            for symbol in symbols {
                distribution.learn(distribution.interval(symbol).start);
                let lens = (0..NUM_SYMBOLS).map(|s| u32::from(distribution.interval(s).len));
                prop_assert!(lens.clone().all(|len| len >= 1));
                prop_assert_eq!(lens.sum::<u32>(), 1 << SCALE_BITS);
            }
        }
    }

    #[test]
    fn one_symbol_for_ever_leaves_the_others_a_slot() {
        for symbol in [0, 7, 31] {
            let mut distribution = Distribution::new();
            (0..100_000).for_each(|_| distribution.learn(distribution.interval(symbol).start));
            assert!((0..NUM_SYMBOLS).all(|s| distribution.interval(s).len >= 1));
            assert!(distribution.interval(symbol).len > 30_000);
        }
    }

    #[test]
    fn a_slot_belongs_to_one_symbol() {
        let mut distribution = Distribution::new();
        (0..500).for_each(|i| distribution.learn(distribution.interval(i * i % 13).start));
        for slot in 0..SCALE as u16 {
            let symbol = distribution.symbol_at(slot);
            let Interval { start, len } = distribution.interval(symbol);
            assert!(slot >= start && slot - start < len);
        }
    }
}
