//! Counts of successive pairs of ids, in an open-addressing table whose output order does not
//! depend on the hashes.

/// Number of slots of a new table.
const NUM_SLOTS: usize = 1 << 12;

/// A table of counts, by pair.
#[derive(Debug)]
pub(super) struct PairCounts {
    /// Slots with `pair << 32 | count`, or 0 if free.
    slots: Vec<u64>,
    num_pairs: usize,
    shift: u32,
}

impl PairCounts {
    pub(super) fn new() -> Self {
        Self::with_slots(NUM_SLOTS)
    }

    /// Creates a table of `num_slots` slots, a power of two.
    fn with_slots(num_slots: usize) -> Self {
        Self { slots: vec![0; num_slots], num_pairs: 0, shift: 64 - num_slots.trailing_zeros() }
    }

    /// Adds one occurrence of `second` behind `first`.
    #[inline]
    pub(super) fn add(&mut self, first: u16, second: u16) {
        let pair = u64::from(first) << 16 | u64::from(second);
        let at = self.slot(pair);
        if self.slots[at] != 0 {
            self.slots[at] += 1;
            return;
        }
        self.slots[at] = pair << 32 | 1;
        self.num_pairs += 1;
        if 2 * self.num_pairs > self.slots.len() {
            self.grow();
        }
    }

    /// Returns the slot that holds `pair`, or the free slot for it.
    #[inline]
    fn slot(&self, pair: u64) -> usize {
        let mut at = (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        while self.slots[at] != 0 && self.slots[at] >> 32 != pair {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        let mut grown = Self::with_slots(4 * self.slots.len());
        grown.num_pairs = self.num_pairs;
        for slot in self.slots.iter().filter(|slot| **slot != 0) {
            let at = grown.slot(slot >> 32);
            grown.slots[at] = *slot;
        }
        *self = grown;
    }

    /// Returns the pairs that occur at least twice, with their counts, sorted by pair, and clears
    /// the table.
    pub(super) fn take_repeated(&mut self) -> Vec<(u16, u16, u32)> {
        let mut repeated: Vec<u64> =
            self.slots.iter().copied().filter(|slot| *slot as u32 > 1).collect();
        self.slots.fill(0);
        self.num_pairs = 0;
        repeated.sort_unstable();
        let pair = |slot: u64| ((slot >> 48) as u16, (slot >> 32) as u16, slot as u32);
        repeated.into_iter().map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_apart() {
        let mut counts = PairCounts::with_slots(2);
        for (first, second) in [(0, 0), (9, 1), (1, 9), (0, 0), (9, 1), (9, 1), (5, 5)] {
            counts.add(first, second);
        }
        assert_eq!(counts.take_repeated(), [(0, 0, 2), (9, 1, 3)]);
        assert_eq!(counts.take_repeated(), []);
    }
}
