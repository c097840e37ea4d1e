//! Set of the rules that a search has found.
//!
//! ```text
//! page_of  [0 0 2 0 1 …]            by 4,096 rules; page 0 is nobody's and stays empty
//! pages    [empty][bits][bits] …    in the order they were needed
//! ```
//!
//! The set has one bit for each rule, in pages that are allocated when one of their rules is added.
//! Clearing bits for all rules would take longer than most searches, and a hash table takes three
//! times as long for each look-up of a large set. Memory: 4 bytes for 4,096 rules and 512 bytes a
//! page.

use crate::ids::RuleId;

const WORD_BITS: usize = 64;
const PAGE_WORDS: usize = 64;
const PAGE_RULES: usize = PAGE_WORDS * WORD_BITS;

/// A set of rules.
#[derive(Debug)]
pub(in crate::query) struct RuleSet {
    page_of: Vec<u32>,
    pages: Vec<[u64; PAGE_WORDS]>,
}

impl RuleSet {
    /// Creates an empty set of rules below `num_rules`.
    pub fn new(num_rules: usize) -> Self {
        let page_of = vec![0; num_rules.div_ceil(PAGE_RULES)];
        Self { page_of, pages: vec![[0; PAGE_WORDS]] }
    }

    /// Adds `rule_id`. Returns true if it was not in the set.
    #[inline]
    pub fn insert(&mut self, rule_id: RuleId) -> bool {
        let rule_idx = rule_id.index();
        let page_idx = &mut self.page_of[rule_idx / PAGE_RULES];
        if *page_idx == 0 {
            *page_idx = self.pages.len() as u32;
            self.pages.push([0; PAGE_WORDS]);
        }
        let word = &mut self.pages[*page_idx as usize][rule_idx / WORD_BITS % PAGE_WORDS];
        let bit = 1 << (rule_idx % WORD_BITS);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equals_a_hash_set(rules in prop::collection::vec((0u32..30_000, 0u32..15), 0..500)) {
            let (mut set, mut expected) = (RuleSet::new(30_000), HashSet::new());
            for (rule_id, shift) in rules {
                let rule_id = RuleId::from(rule_id >> shift);
                prop_assert_eq!(set.insert(rule_id), expected.insert(rule_id));
            }
        }
    }
}
