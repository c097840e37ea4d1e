//! Sets that a search finds: documents, rules, and the words that can stand at one place of a phrase.
//!
//! The documents of one segment are a bitmap with one bit for each.
//!
//! # Rules
//!
//! ```text
//! page_of  [0 0 2 0 1 …]            by 4,096 rules; page 0 is nobody's and stays empty
//! pages    [empty][bits][bits] …    in the order they were needed
//! ```
//!
//! The set has one bit for each rule, in pages that are allocated when one of their rules is added. Clearing bits for
//! all rules would take longer than most searches, and a hash table takes three times as long for each look-up of a
//! large set. Memory: 4 bytes for 4,096 rules and 512 bytes a page.
//!
//! Numbers of the rules that a search finds stand in a hash table with open addressing, half full at most.
//! Its size depends on the rules that were found, since an array over all rules would cost more than most
//! searches. It takes 8 to 32 bytes a rule; a look-up takes one or two steps.
//!
//! # Words
//!
//! ```text
//! power       12..13                 one id
//! pow*        12..40                 ids are in byte order of words, so a prefix is a range
//! *ing        first 7, 1001 0000…    many ranges become a bitmap from the first id on
//! ```
//!
//! A look-up takes one or two steps however large the set is. The set takes V / 8 bytes at most. Tokens that contain
//! some bytes are found in one pass over the arena of the dictionary, where tokens are stored end to end.

use std::ops::Range;

use memchr::memmem::Finder;
use rayon::prelude::*;
use regex_automata::meta::Regex;

use crate::ids::{DocId, RuleId, WordId};
use crate::segment::{Occurrence, Segment};
use crate::text::Dictionary;

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

/// Number of ranges above which a set becomes a bitmap.
const MAX_RANGES: usize = 4;

/// A set of word ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::query) struct WordSet {
    /// Ranges in ascending order, with ids between them that are not in the set; empty if there is
    /// a bitmap.
    ranges: Vec<Range<u32>>,
    /// Id of the lowest bit of `bits`.
    first: u32,
    bits: Vec<u64>,
}

impl WordSet {
    /// Creates the set of the words of `range`.
    pub fn from_range(range: Range<u32>) -> Self {
        let ranges = if range.is_empty() { Vec::new() } else { vec![range] };
        Self { ranges, ..Self::default() }
    }

    /// Creates the set of the words `ids`, which ascend.
    pub fn from_ids(ids: &[u32]) -> Self {
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for &id in ids {
            if let Some(last) = ranges.last_mut().filter(|last| last.end == id) {
                last.end += 1;
                continue;
            }
            if ranges.len() == MAX_RANGES {
                return Self::bitmap(ids);
            }
            ranges.push(id..id + 1);
        }
        Self { ranges, ..Self::default() }
    }

    fn bitmap(ids: &[u32]) -> Self {
        let (Some(&first), Some(&last)) = (ids.first(), ids.last()) else {
            return Self::default();
        };
        let mut bits = vec![0; (last - first) as usize / 64 + 1];
        ids.iter().map(|id| id - first).for_each(|at| bits[at as usize / 64] |= 1 << (at % 64));
        Self { ranges: Vec::new(), first, bits }
    }

    /// Returns true if there is no word.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.bits.is_empty()
    }

    /// Returns the word, if the set has exactly one.
    pub fn only(&self) -> Option<WordId> {
        match &self.ranges[..] {
            [range] if range.len() == 1 => Some(range.start.into()),
            _ => None,
        }
    }

    /// Returns true if `word` is in the set. It is false for a number that is no word of the
    /// segment.
    #[inline]
    pub fn contains(&self, word: u32) -> bool {
        if self.bits.is_empty() {
            return self.ranges.iter().any(|range| range.contains(&word));
        }
        let at = word.wrapping_sub(self.first);
        self.bits.get(at as usize / 64).is_some_and(|bits| bits >> (at % 64) & 1 != 0)
    }

    /// Returns the words, in ascending order.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        let first = self.first;
        let from_bits = self.bits.iter().zip(0u32..).flat_map(move |(&bits, at)| {
            let mut rest = bits;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(first + at * 64 + bit)
            })
        });
        self.ranges.iter().cloned().flatten().chain(from_bits)
    }

    /// Returns the number of occurrences of the words in the segment; O(set).
    pub fn weight(&self, segment: &Segment) -> u64 {
        let weights = segment.weights_or_derive();
        // Each weight is a share of the words of the segment, whose number is below 2^64.
        self.ids().map(|id| weights[id as usize]).sum()
    }

    /// Returns the positions of the words, one word after the other.
    pub fn positions(&self, segment: &Segment) -> Vec<Occurrence> {
        let inverse = segment.inverse_or_derive();
        self.ids().flat_map(|id| inverse.for_element(id)).copied().collect()
    }
}

/// Number of tokens that one task of a dictionary search reads.
const TOKENS_PER_TASK: usize = 1 << 15;

/// Returns the `ids` for which `fits` is true, in ascending order.
pub(in crate::query) fn filtered(ids: Range<u32>, fits: impl Fn(u32) -> bool + Sync) -> Vec<u32> {
    ids.into_par_iter().with_min_len(TOKENS_PER_TASK).filter(|&id| fits(id)).collect()
}

/// Returns the tokens of `ids` that contain `needle`, in ascending order, by a search over the
/// arena.
pub(in crate::query) fn tokens_containing(dictionary: &Dictionary, ids: Range<u32>, needle: &[u8]) -> Vec<u32> {
    let finder = Finder::new(needle);
    let found = |bytes: &[u8]| finder.find(bytes).map(|at| at..at + needle.len());
    tasks(ids).flat_map_iter(|ids| search_range(dictionary, ids, found, (true, true))).collect()
}

/// Returns the tokens of `ids` that contain the text of `finder`, in ascending order. If `is_open`
/// is false in front of it or behind it, a token begins or ends with it.
pub(in crate::query) fn tokens_containing_any_case(
    dictionary: &Dictionary,
    ids: Range<u32>,
    finder: &AnyCaseFinder,
    is_open: (bool, bool),
) -> Vec<u32> {
    // Each task has its own copy, so that tasks do not wait for each other's scratch memory.
    let search = |AnyCaseFinder(regex): &mut AnyCaseFinder, ids: Range<u32>| {
        let found = |bytes: &[u8]| regex.find(bytes).map(|found| found.range());
        search_range(dictionary, ids, found, is_open)
    };
    tasks(ids).map_init(|| finder.clone(), search).flatten_iter().collect()
}

/// A text that is searched for in any case, by Unicode's simple case folding.
#[derive(Debug, Clone)]
pub(in crate::query) struct AnyCaseFinder(Regex);

impl AnyCaseFinder {
    /// Creates a finder of `text`; `None` if it is too long to be searched for.
    pub fn new(text: &str) -> Option<Self> {
        let syntax = regex_automata::util::syntax::Config::new().case_insensitive(true);
        let regex = Regex::builder().syntax(syntax).build(&regex_syntax::escape(text));
        regex.ok().map(Self)
    }
}

/// Returns the ids of each task of a search.
fn tasks(ids: Range<u32>) -> impl IndexedParallelIterator<Item = Range<u32>> {
    let starts: Vec<u32> = ids.clone().step_by(TOKENS_PER_TASK).collect();
    let end_of = move |start: u32| ids.end.min(start.saturating_add(TOKENS_PER_TASK as u32));
    starts.into_par_iter().map(move |start| start..end_of(start))
}

/// Returns the tokens of `ids` with a place that `find` finds, at their border where `is_open` is
/// false.
fn search_range(
    dictionary: &Dictionary,
    ids: Range<u32>,
    find: impl Fn(&[u8]) -> Option<Range<usize>>,
    is_open: (bool, bool),
) -> Vec<u32> {
    let offsets = &dictionary.offsets()[..=ids.end as usize];
    let end = offsets[ids.end as usize] as usize;
    let mut at = offsets[ids.start as usize] as usize;
    let mut first_id = ids.start as usize;
    let mut found = Vec::new();
    while let Some(hit) = find(&dictionary.bytes()[at..end]) {
        let hit = at + hit.start..at + hit.end;
        // The last token that starts at or before the hit. Empty tokens before it have the same
        // start.
        first_id += offsets[first_id..].partition_point(|&offset| offset as usize <= hit.start) - 1;
        let token = offsets[first_id] as usize..offsets[first_id + 1] as usize;
        let is_inside =
            hit.end <= token.end && (is_open.0 || hit.start == token.start) && (is_open.1 || hit.end == token.end);
        if is_inside {
            found.push(first_id as u32);
            at = token.end;
        } else {
            at = hit.start + 1;
        }
    }
    found
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

    proptest! {
        #[test]
        fn a_set_of_words_agrees_with_a_tree_set(ids in prop::collection::btree_set(0u32..300, 0..40), base in 0u32..1000) {
            let ids: BTreeSet<u32> = ids.iter().map(|id| id + base).collect();
            let set = WordSet::from_ids(&ids.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.ids().collect::<Vec<_>>(), ids.iter().copied().collect::<Vec<_>>());
            prop_assert!((0..1400).chain([u32::MAX]).all(|id| set.contains(id) == ids.contains(&id)));
            prop_assert_eq!(set.is_empty(), ids.is_empty());
            let only = ids.first().copied().filter(|_| ids.len() == 1).map(WordId::from);
            prop_assert_eq!(set.only(), only);
        }

        #[test]
        fn ranges_are_sets(start in 0u32..100, len in 0u32..100) {
            let ids: Vec<u32> = (start..start + len).collect();
            prop_assert_eq!(WordSet::from_range(start..start + len), WordSet::from_ids(&ids));
        }
    }
}
