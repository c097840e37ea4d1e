//! Numbers of the rules that a search finds.
//!
//! A hash table with open addressing, half full at most. Its size depends on the rules that were
//! found, since an array over all rules would cost more than most searches. It takes 8 to 32 bytes
//! a rule; a look-up takes one or two steps.

use crate::ids::RuleId;

/// A map from rules to numbers.
#[derive(Debug, Default)]
pub(in crate::query) struct RuleNumbers {
    /// Rules and numbers. The root marks a free slot. The length is a power of two.
    slots: Vec<(RuleId, u32)>,
    len: usize,
}

impl RuleNumbers {
    /// Gives `rule_id`, which is not the root, the `number` if it has none. Returns true if it had none.
    #[inline]
    pub fn insert(&mut self, rule_id: RuleId, number: u32) -> bool {
        if self.len * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(rule_id);
        if self.slots[slot].0 == rule_id {
            return false;
        }
        self.slots[slot] = (rule_id, number);
        self.len += 1;
        true
    }

    /// Returns the number of `rule_id`, which must have one.
    #[inline]
    pub fn get(&self, rule_id: RuleId) -> u32 {
        self.slots[self.slot(rule_id)].1
    }

    /// Returns the slot of `rule_id`, or the slot into which it can be inserted.
    #[inline]
    fn slot(&self, rule_id: RuleId) -> usize {
        let hash = u32::from(rule_id).wrapping_mul(0x9E37_79B1);
        let mut slot = ((u64::from(hash) * self.slots.len() as u64) >> 32) as usize;
        while self.slots[slot].0 != RuleId::ROOT && self.slots[slot].0 != rule_id {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    fn grow(&mut self) {
        let slots = vec![(RuleId::ROOT, 0); (self.slots.len() * 2).max(16)];
        let before = std::mem::replace(&mut self.slots, slots);
        for (rule_id, number) in before.into_iter().filter(|&(rule_id, _)| rule_id != RuleId::ROOT)
        {
            let slot = self.slot(rule_id);
            self.slots[slot] = (rule_id, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_their_numbers_while_the_table_grows() {
        let mut numbers = RuleNumbers::default();
        let rules: Vec<RuleId> = (1..5000u32).map(|i| RuleId::from(i * 4096 + i % 7)).collect();
        for (&rule_id, number) in rules.iter().zip(0..) {
            assert!(numbers.insert(rule_id, number));
            assert!(!numbers.insert(rule_id, number + 1));
        }
        assert!(rules.iter().zip(0..).all(|(&rule_id, number)| numbers.get(rule_id) == number));
    }
}
