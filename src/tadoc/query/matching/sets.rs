//! Sets of documents and of rules that a search finds.
//!
//! The documents of one segment are a bitmap with one bit for each.
//!
//! # Rules
//!
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
//!
//! # Numbers of rules
//!
//! Numbers of the rules that a search finds.
//!
//! A hash table with open addressing, half full at most. Its size depends on the rules that were
//! found, since an array over all rules would cost more than most searches. It takes 8 to 32 bytes
//! a rule; a look-up takes one or two steps.

use crate::ids::{DocId, RuleId};

/// A set of documents of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocSet {
    bits: Vec<u64>,
    num_docs: usize,
}

impl DocSet {
    /// Creates an empty set for a segment with `num_docs` documents.
    pub fn none(num_docs: usize) -> Self {
        Self { bits: vec![0; num_docs.div_ceil(64)], num_docs }
    }

    /// Creates the set of all documents of a segment with `num_docs` documents.
    pub fn all(num_docs: usize) -> Self {
        let mut bits = vec![u64::MAX; num_docs.div_ceil(64)];
        if let Some(last) = bits.last_mut().filter(|_| !num_docs.is_multiple_of(64)) {
            *last = (1 << (num_docs % 64)) - 1;
        }
        Self { bits, num_docs }
    }

    /// Returns the number of documents of the segment, in the set or not.
    pub fn num_docs(&self) -> usize {
        self.num_docs
    }

    /// Returns the number of documents in the set.
    pub fn len(&self) -> usize {
        self.bits.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// Returns true if no document is in the set.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|&bits| bits == 0)
    }

    /// Returns true if `doc` is in the set. It is false beyond the segment.
    #[inline]
    pub fn contains(&self, doc: DocId) -> bool {
        let doc = doc.index();
        self.bits.get(doc / 64).is_some_and(|bits| bits >> (doc % 64) & 1 != 0)
    }

    /// Adds `doc`, which must be below [`num_docs`](Self::num_docs). Returns true if it was not in
    /// the set.
    #[inline]
    pub fn insert(&mut self, doc: DocId) -> bool {
        let doc = doc.index();
        debug_assert!(doc < self.num_docs);
        let bits = &mut self.bits[doc / 64];
        let is_new = *bits >> (doc % 64) & 1 == 0;
        *bits |= 1 << (doc % 64);
        is_new
    }

    /// Removes all documents that are not in `other`, a set of the same segment.
    pub(crate) fn intersect(&mut self, other: &DocSet) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(bits, other)| *bits &= other);
    }

    /// Returns the documents, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = DocId> + '_ {
        self.bits.iter().enumerate().flat_map(|(at, &bits)| {
            let mut rest = bits;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(DocId::from_index(at * 64 + bit))
            })
        })
    }
}

impl Extend<DocId> for DocSet {
    fn extend<I: IntoIterator<Item = DocId>>(&mut self, docs: I) {
        for doc in docs {
            self.insert(doc);
        }
    }
}

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

/// A map from rules to numbers.
#[derive(Debug, Default)]
pub(in crate::query) struct RuleNumbers {
    /// Rules and numbers. The root marks a free slot. The length is a power of two.
    slots: Vec<(RuleId, u32)>,
    len: usize,
}

impl RuleNumbers {
    /// Gives `rule_id`, which is not the root, the `number` if it has none. Returns true if it had
    /// none.
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
        for (rule_id, number) in before.into_iter().filter(|&(rule_id, _)| rule_id != RuleId::ROOT) {
            let slot = self.slot(rule_id);
            self.slots[slot] = (rule_id, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_tree_set(
            num_docs in 0_usize..200,
            a in prop::collection::btree_set((0u32..200).prop_map(DocId::from), 0..50),
            b in prop::collection::btree_set((0u32..200).prop_map(DocId::from), 0..50),
        ) {
            let is_here = |doc: &DocId| doc.index() < num_docs;
            let set_of = |docs: &BTreeSet<DocId>| {
                let mut set = DocSet::none(num_docs);
                docs.iter().copied().filter(is_here).for_each(|doc| {
                    assert!(set.insert(doc) && !set.insert(doc));
                });
                set
            };
            let mut both = set_of(&a);
            prop_assert_eq!(both.len(), a.iter().copied().filter(is_here).count());
            both.intersect(&set_of(&b));
            let slow: Vec<DocId> = a.intersection(&b).copied().filter(is_here).collect();
            prop_assert_eq!(both.iter().collect::<Vec<_>>(), slow.clone());
            prop_assert_eq!(both.is_empty(), slow.is_empty());
            prop_assert!(DocId::range(0..210).all(|doc| both.contains(doc) == slow.contains(&doc)));
            let all = DocSet::all(num_docs);
            prop_assert!(all.iter().eq(DocId::range(0..num_docs)));
            prop_assert_eq!((all.len(), all.num_docs()), (num_docs, num_docs));
        }
    }

    proptest! {
        #[test]
        fn equals_a_hash_set(rules in prop::collection::vec((0u32..30_000, 0u32..15), 0..500)) {
            let mut set = RuleSet::new(30_000);
            let mut expected = HashSet::new();
            for (rule_id, shift) in rules {
                let rule_id = RuleId::from(rule_id >> shift);
                prop_assert_eq!(set.insert(rule_id), expected.insert(rule_id));
            }
        }
    }

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
