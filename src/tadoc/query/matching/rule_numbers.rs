//! Numbers of the rules that a search finds.
//!
//! A hash table with open addressing, half full at most. Its size depends on the rules that were
//! found, since an array over all rules would cost more than most searches. It takes 8 to 32 bytes
//! a rule; a look-up takes one or two steps.

/// A map from rules to numbers.
#[derive(Debug, Default)]
pub(in crate::query) struct RuleNumbers {
    /// Rules and numbers. Rule 0, the root, marks a free slot. The length is a power of two.
    slots: Vec<(u32, u32)>,
    len: usize,
}

impl RuleNumbers {
    /// Gives `rule_idx`, which is not 0, the `number` if it has none. Returns true if it had none.
    #[inline]
    pub fn insert(&mut self, rule_idx: u32, number: u32) -> bool {
        if self.len * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(rule_idx);
        if self.slots[slot].0 == rule_idx {
            return false;
        }
        self.slots[slot] = (rule_idx, number);
        self.len += 1;
        true
    }

    /// Returns the number of `rule_idx`, which must have one.
    #[inline]
    pub fn get(&self, rule_idx: u32) -> u32 {
        self.slots[self.slot(rule_idx)].1
    }

    /// Returns the slot of `rule_idx`, or the slot into which it can be inserted.
    #[inline]
    fn slot(&self, rule_idx: u32) -> usize {
        let hash = rule_idx.wrapping_mul(0x9E37_79B1);
        let mut slot = ((u64::from(hash) * self.slots.len() as u64) >> 32) as usize;
        while self.slots[slot].0 != 0 && self.slots[slot].0 != rule_idx {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    fn grow(&mut self) {
        let slots = vec![(0, 0); (self.slots.len() * 2).max(16)];
        let before = std::mem::replace(&mut self.slots, slots);
        for (rule_idx, number) in before.into_iter().filter(|&(rule_idx, _)| rule_idx != 0) {
            let slot = self.slot(rule_idx);
            self.slots[slot] = (rule_idx, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_their_numbers_while_the_table_grows() {
        let mut numbers = RuleNumbers::default();
        let rules: Vec<u32> = (1..5000).map(|i| i * 4096 + i % 7).collect();
        for (&rule_idx, number) in rules.iter().zip(0..) {
            assert!(numbers.insert(rule_idx, number));
            assert!(!numbers.insert(rule_idx, number + 1));
        }
        assert!(rules.iter().zip(0..).all(|(&rule_idx, number)| numbers.get(rule_idx) == number));
    }
}
