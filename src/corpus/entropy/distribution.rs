//! A probability distribution over 32 symbols that learns as it is used.
//!
//! Kept as the cumulative frequencies before each symbol, out of 2^16. After each symbol the
//! frequencies move towards it by a share of 2^-rate; the share is large at first (rate 3) and small
//! later (rate 7). The way of moving is Giesen's ("Interleaved entropy coders" and his later notes
//! on adaptive multi-symbol models): ends of the scale leave room for a frequency of one each, so
//! no frequency ever reaches zero. All 32 lanes move in the same few vector instructions.

/// Symbols of a distribution.
pub(in crate::corpus) const NUM_SYMBOLS: usize = 32;
/// log2 of the sum of all frequencies.
pub(super) const SCALE_BITS: u32 = 16;
/// Rate after so many symbols, in steps of [`RATE_STEP`].
const RATES: [u8; 16] = [3, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7];
const RATE_STEP: u16 = 16;

/// What part of the scale a symbol owns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) start: u16,
    /// At least 1, at most 2^16 - 31.
    pub(super) len: u16,
}

/// Frequencies of 32 symbols.
#[derive(Debug, Clone)]
pub(in crate::corpus) struct Distribution {
    starts: [u16; NUM_SYMBOLS],
    num_seen: u16,
}

impl Distribution {
    /// All symbols equally likely.
    pub(in crate::corpus) fn new() -> Self {
        let starts = std::array::from_fn(|i| (i << SCALE_BITS >> 5) as u16);
        Self { starts, num_seen: 0 }
    }

    /// The symbol that owns `slot`.
    #[inline]
    pub(super) fn symbol_at(&self, slot: u16) -> usize {
        let num_started: u16 = self.starts.iter().map(|&start| u16::from(start <= slot)).sum();
        usize::from(num_started) - 1
    }

    /// The part of `symbol`, which is below 32.
    #[inline]
    pub(super) fn interval(&self, symbol: usize) -> Interval {
        let start = self.starts[symbol];
        // The end of the last symbol, 2^16, is the start of the first, 0, in 16 bits.
        let end = self.starts[(symbol + 1) % NUM_SYMBOLS];
        Interval { start, len: end.wrapping_sub(start) }
    }

    /// Learns that the symbol came that owns `slot`.
    #[inline]
    pub(super) fn learn(&mut self, slot: u16) {
        let rate = u32::from(RATES[usize::from(self.num_seen / RATE_STEP)]);
        self.num_seen = (self.num_seen + 1).min(RATE_STEP * RATES.len() as u16 - 1);
        for (i, start) in self.starts.iter_mut().enumerate() {
            let (lowest, highest) = (i as u16, (u16::MAX - NUM_SYMBOLS as u16 + 1) + i as u16);
            let down = *start - ((*start - lowest) >> rate);
            let up = *start + ((highest - *start) >> rate);
            *start = if *start <= slot { down } else { up };
        }
    }
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
            assert!(distribution.interval(symbol).len > 60_000);
        }
    }

    #[test]
    fn a_slot_belongs_to_one_symbol() {
        let mut distribution = Distribution::new();
        (0..500).for_each(|i| distribution.learn(distribution.interval(i * i % 13).start));
        for slot in 0..=u16::MAX {
            let symbol = distribution.symbol_at(slot);
            let Interval { start, len } = distribution.interval(symbol);
            assert!(slot >= start && slot - start < len);
        }
    }
}
