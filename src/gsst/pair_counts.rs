//! How often each pair of ids follows one another: an open-addressing table that never iterates
//! in an order of its own.

/// Counts by pair.
#[derive(Debug)]
pub(super) struct PairCounts {
    /// `pair << 32 | count`; 0 where free.
    slots: Vec<u64>,
    shift: u32,
}

impl PairCounts {
    /// Room for up to `max_pairs` additions.
    pub(super) fn new(max_pairs: usize) -> Self {
        let num_slots = (2 * max_pairs).next_power_of_two().max(2);
        Self { slots: vec![0; num_slots], shift: 64 - num_slots.trailing_zeros() }
    }

    /// Counts one more `second` behind `first`.
    #[inline]
    pub(super) fn add(&mut self, first: u16, second: u16) {
        let pair = u64::from(first) << 16 | u64::from(second);
        let mut at = (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        while self.slots[at] != 0 && self.slots[at] >> 32 != pair {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = (pair << 32 | (self.slots[at] & u64::from(u32::MAX))) + 1;
    }

    /// Pairs that came at least twice, with their counts, by pair.
    pub(super) fn repeated(mut self) -> Vec<(u16, u16, u32)> {
        self.slots.retain(|slot| *slot as u32 > 1);
        self.slots.sort_unstable();
        let pair = |slot: &u64| ((slot >> 48) as u16, (slot >> 32) as u16, *slot as u32);
        self.slots.iter().map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_apart() {
        let mut counts = PairCounts::new(7);
        for (first, second) in [(0, 0), (9, 1), (1, 9), (0, 0), (9, 1), (9, 1), (5, 5)] {
            counts.add(first, second);
        }
        assert_eq!(counts.repeated(), [(0, 0, 2), (9, 1, 3)]);
    }
}
