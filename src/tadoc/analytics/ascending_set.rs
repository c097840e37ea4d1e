//! Set of small numbers that is emptied in ascending order.
//!
//! ```text
//! bits      [0b0110 | 0 | 0 | 0b1000 | ...]     one bit a number
//! blocks    [0b...1001 | ...]                   one bit for each element of `bits` that is not 0
//! groups    [0b...0001]                         one bit for each element of `blocks` that is not 0
//! ```
//!
//! Adding a number is one write if its block has a number already. Finding the least number takes
//! three steps, and one more for each 262,144 numbers before it. Nothing is sorted. 1.02 bits for
//! each number.

/// Numbers below a limit, each once.
#[derive(Debug, Default)]
pub(super) struct AscendingSet {
    bits: Vec<u64>,
    blocks: Vec<u64>,
    groups: Vec<u64>,
    /// Index in `groups` below which all entries are 0 while the set is emptied.
    first_group: usize,
}

impl AscendingSet {
    /// Creates an empty set for numbers below `end`.
    pub fn new(end: usize) -> Self {
        let num_blocks = end / 64 + 1;
        let num_groups = num_blocks / 64 + 1;
        Self {
            bits: vec![0; num_blocks],
            blocks: vec![0; num_groups],
            groups: vec![0; num_groups / 64 + 1],
            first_group: 0,
        }
    }

    /// Adds `number`. While the set is emptied, `number` must be above the last number taken.
    #[inline]
    pub fn insert(&mut self, number: usize) {
        let block = number / 64;
        let before = self.bits[block];
        self.bits[block] = before | 1 << (number % 64);
        if before == 0 {
            self.blocks[block / 64] |= 1 << (block % 64);
            self.groups[block / 4096] |= 1 << (block / 64 % 64);
        }
    }

    /// Removes the least number and returns it.
    #[inline]
    pub fn pop(&mut self) -> Option<usize> {
        let block = self.first_block()?;
        let bits = self.bits[block];
        self.bits[block] = bits & (bits - 1);
        if self.bits[block] == 0 {
            self.leave(block);
        }
        Some(block * 64 + bits.trailing_zeros() as usize)
    }

    /// Removes all numbers and calls `f` with each, in ascending order.
    #[inline]
    pub fn drain(&mut self, mut f: impl FnMut(usize)) {
        while let Some(block) = self.first_block() {
            let mut bits = std::mem::take(&mut self.bits[block]);
            self.leave(block);
            while bits != 0 {
                f(block * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Returns the memory of the set in bytes.
    pub fn memory_bytes(&self) -> usize {
        8 * (self.bits.capacity() + self.blocks.capacity() + self.groups.capacity())
    }

    #[inline]
    fn first_block(&mut self) -> Option<usize> {
        while let Some(&groups) = self.groups.get(self.first_group) {
            if groups != 0 {
                let group = self.first_group * 64 + groups.trailing_zeros() as usize;
                return Some(group * 64 + self.blocks[group].trailing_zeros() as usize);
            }
            self.first_group += 1;
        }
        self.first_group = 0;
        None
    }

    /// Clears the bits of `block`, the first block, which has become empty.
    #[inline]
    fn leave(&mut self, block: usize) {
        let group = block / 64;
        self.blocks[group] &= self.blocks[group] - 1;
        if self.blocks[group] == 0 {
            self.groups[group / 64] &= self.groups[group / 64] - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AscendingSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn takes_out_what_a_sorted_set_does(
            numbers in prop::collection::btree_set(0usize..600_000, 0..60),
            added in prop::collection::vec(1usize..300_000, 0..9),
        ) {
            // Each step may start from the step before: 600,000 + 8 * 300,000 at most.
            let mut set = AscendingSet::new(3_000_000);
            // Two rounds, because a set is used again after it was emptied.
            for _ in 0..2 {
                numbers.iter().for_each(|&number| set.insert(number));
                let mut drained = Vec::new();
                set.drain(|number| drained.push(number));
                prop_assert_eq!(&drained, &numbers.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(set.pop(), None);
                let mut expected = numbers.clone();
                numbers.iter().for_each(|&number| set.insert(number));
                let mut steps = added.iter();
                while let Some(number) = set.pop() {
                    prop_assert_eq!(Some(number), expected.pop_first());
                    if let Some(step) = steps.next() {
                        set.insert(number + step);
                        expected.insert(number + step);
                    }
                }
                prop_assert!(expected.is_empty());
            }
        }
    }
}
