//! Counts of items for a few documents at a time, from the items that rules contain.
//!
//! ```text
//!              documents 0 1 2 .. 7
//! rule R3      counts   [1 0 2 .. 1]  ─▶ added to what R3 holds: items and rules, all at once
//! item 12      counts   [1 1 2 .. 1]  ─▶ one row for each document with a count
//! ```
//!
//! Items are words, or the numbers of sequences; [`Bodies`] says which items a rule contains. Each document has a lane.
//! The root range of a document puts counts into its lane. Counts then flow from rules to the items and rules that they
//! contain, parents before children. So each rule is visited once for all lanes, however often the documents use it.
//! Waiting rules and items with a count are bits, so nothing is sorted. If the documents contain so much that most
//! rules and items have a count, all rules and items are visited without bits.
//!
//! O(root ranges + items and rules of the rules reached + rows), independent of the length of the expansions.
//!
//! # Ascending sets
//!
//! Sets of small numbers are emptied in ascending order.
//!
//! ```text
//! bits      [0b0110 | 0 | 0 | 0b1000 | ...]     one bit a number
//! blocks    [0b...1001 | ...]                   one bit for each element of `bits` that is not 0
//! groups    [0b...0001]                         one bit for each element of `blocks` that is not 0
//! ```
//!
//! Adding a number is one write if its block has a number already. Finding the least number takes three steps, and one
//! more for each 262,144 numbers before it. Nothing is sorted. 1.02 bits for each number.

use crate::ids::{DocId, RuleId};

/// An entry of the right-hand side of a rule, or of the root range of a document.
pub(super) enum Held {
    /// One occurrence of an item.
    Item(u32),
    /// An item and its number of occurrences.
    Items(u32, u32),
    /// A rule. Its id is larger than that of the rule that contains it.
    Rule(RuleId),
}

/// Right-hand sides of the rules and root ranges of the documents of a segment.
pub(super) trait Bodies {
    /// Returns the approximate number of entries of document `doc`.
    fn len_of_doc(&self, doc: DocId) -> usize;
    /// Calls `f` with each entry of document `doc`.
    fn for_doc(&self, doc: DocId, f: impl FnMut(Held));
    /// Calls `f` with each entry of rule `rule_id`.
    fn for_rule(&self, rule_id: RuleId, f: impl FnMut(Held));
}

/// Integer type of a count.
pub(super) trait Count: Copy + Default + PartialEq + Into<u64> + std::fmt::Debug + Send + Sync {
    /// The count 1.
    const ONE: Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, times: u32) -> Self;
}

macro_rules! count {
    ($number:ty) => {
        impl Count for $number {
            const ONE: Self = 1;
            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline]
            fn times(self, times: u32) -> Self {
                self.wrapping_mul(Self::from(times))
            }
        }
    };
}

count!(u32);
count!(u64);

/// Maximum number of items and rules, for each entry of the documents, for which all items and
/// rules are visited.
const ALL_PER_HELD: usize = 4;

/// Counts for up to `LANES` documents at a time. Counts of rules wrap, which does no harm if the
/// rules contain no item. Counts of items are exact if the counts of each document fit `C`.
#[derive(Debug)]
pub(super) struct LaneCounts<C, const LANES: usize> {
    /// Counts by item; 0 between calls.
    item_counts: Vec<[C; LANES]>,
    /// Counts by rule; 0 between calls.
    rule_counts: Vec<[C; LANES]>,
    /// Items that have a count.
    items: AscendingSet,
    /// Rules whose counts are not passed on yet.
    rules: AscendingSet,
    lanes: [Lane; LANES],
}

/// Items of one document, ascending, and their counts.
#[derive(Debug, Default)]
struct Lane {
    items: Vec<u32>,
    counts: Vec<u64>,
}

impl<C: Count, const LANES: usize> LaneCounts<C, LANES> {
    /// Creates counts for items below `num_items` and rules below `num_rules`.
    pub fn new(num_items: usize, num_rules: usize) -> Self {
        Self {
            item_counts: vec![[C::default(); LANES]; num_items],
            rule_counts: vec![[C::default(); LANES]; num_rules],
            items: AscendingSet::new(num_items),
            rules: AscendingSet::new(num_rules),
            lanes: std::array::from_fn(|_| Lane::default()),
        }
    }

    /// Counts the items of `docs`, which are at most `LANES` documents.
    pub fn count(&mut self, bodies: &impl Bodies, docs: &[DocId]) {
        let num_held: usize = docs.iter().map(|&doc| bodies.len_of_doc(doc)).sum();
        let num_all = self.item_counts.len() + self.rule_counts.len();
        if num_held.saturating_mul(ALL_PER_HELD) < num_all {
            self.hold_docs::<true>(bodies, docs);
            while let Some(rule_idx) = self.rules.pop() {
                self.pass_on::<true>(bodies, RuleId::from(rule_idx as u32));
            }
            self.list();
        } else {
            self.hold_docs::<false>(bodies, docs);
            for rule_idx in 0..self.rule_counts.len() {
                if self.rule_counts[rule_idx] != [C::default(); LANES] {
                    self.pass_on::<false>(bodies, RuleId::from(rule_idx as u32));
                }
            }
            self.list_all();
        }
    }

    /// Counts the items of one document, which `fill` passes on in slices.
    pub fn count_each(&mut self, fill: impl FnOnce(&mut dyn FnMut(&[u32]))) {
        let add = |counts: &mut [C; LANES], _| counts[0] = counts[0].plus(C::ONE);
        fill(&mut |items| items.iter().for_each(|&item| self.hold::<true>(Held::Item(item), add)));
        self.list();
    }

    /// Counts few items of one document by sorting them.
    pub fn count_few(&mut self, items: &[u32]) {
        self.lanes.iter_mut().for_each(Lane::clear);
        let Lane { items: sorted, counts } = &mut self.lanes[0];
        sorted.extend_from_slice(items);
        sorted.sort_unstable();
        counts.resize(sorted.len(), 0);
        let Some(&first) = sorted.first() else { return };
        // The loop has no branch, because an item equals the one before almost at random.
        let mut last = first;
        let mut at = 0;
        for next in 0..sorted.len() {
            let item = sorted[next];
            at += usize::from(item != last);
            sorted[at] = item;
            counts[at] += 1;
            last = item;
        }
        sorted.truncate(at + 1);
        counts.truncate(at + 1);
    }

    /// Adds the entries of the documents to their lanes.
    fn hold_docs<const ARE_MARKED: bool>(&mut self, bodies: &impl Bodies, docs: &[DocId]) {
        for (lane, &doc) in docs.iter().enumerate() {
            let add = |counts: &mut [C; LANES], times| {
                counts[lane] = counts[lane].plus(C::ONE.times(times));
            };
            bodies.for_doc(doc, |held| self.hold::<ARE_MARKED>(held, add));
        }
    }

    /// Passes the counts of a rule on to its entries, and clears them.
    fn pass_on<const ARE_MARKED: bool>(&mut self, bodies: &impl Bodies, rule_id: RuleId) {
        let counts = std::mem::replace(&mut self.rule_counts[rule_id.index()], [C::default(); LANES]);
        let add = |sums: &mut [C; LANES], times| add(sums, counts.map(|count| count.times(times)));
        bodies.for_rule(rule_id, |held| self.hold::<ARE_MARKED>(held, add));
    }

    /// Adds to the counts of one entry and, if `ARE_MARKED`, marks the entry.
    #[inline]
    fn hold<const ARE_MARKED: bool>(&mut self, held: Held, add: impl Fn(&mut [C; LANES], u32)) {
        let (item, times) = match held {
            Held::Item(item) => (item as usize, 1),
            Held::Items(item, times) => (item as usize, times),
            Held::Rule(rule_id) => {
                let rule_idx = rule_id.index();
                if ARE_MARKED {
                    self.rules.insert(rule_idx);
                }
                return add(&mut self.rule_counts[rule_idx], 1);
            }
        };
        if ARE_MARKED {
            self.items.insert(item);
        }
        add(&mut self.item_counts[item], times);
    }

    /// Lists the marked items by lane and clears their counts.
    fn list(&mut self) {
        let Self { lanes, items, item_counts, .. } = self;
        lanes.iter_mut().for_each(Lane::clear);
        items.drain(|item| list_item(lanes, item, &mut item_counts[item]));
    }

    /// Lists all items that have a count by lane, and clears the counts.
    fn list_all(&mut self) {
        let Self { lanes, item_counts, .. } = self;
        lanes.iter_mut().for_each(Lane::clear);
        for (item, counts) in item_counts.iter_mut().enumerate() {
            list_item(lanes, item, counts);
        }
    }

    /// Returns the items of the document in `lane` of the last count, ascending.
    pub fn items(&self, lane: usize) -> &[u32] {
        &self.lanes[lane].items
    }

    /// Returns the number of occurrences of each of [`items`](Self::items).
    pub fn counts(&self, lane: usize) -> &[u64] {
        &self.lanes[lane].counts
    }

    /// Returns the memory of the counts in bytes.
    pub fn memory_bytes(&self) -> usize {
        let lanes = self.lanes.iter();
        let lists: usize = lanes.map(|l| 4 * l.items.capacity() + 8 * l.counts.capacity()).sum();
        size_of_val(self.item_counts.as_slice())
            + size_of_val(self.rule_counts.as_slice())
            + self.items.memory_bytes()
            + self.rules.memory_bytes()
            + lists
    }
}

impl Lane {
    fn clear(&mut self) {
        self.items.clear();
        self.counts.clear();
    }
}

/// Appends an item to the lanes that have a count for it, and clears the counts.
#[inline]
fn list_item<C: Count, const LANES: usize>(lanes: &mut [Lane; LANES], item: usize, counts: &mut [C; LANES]) {
    let counts = std::mem::replace(counts, [C::default(); LANES]);
    for (lane, count) in lanes.iter_mut().zip(counts) {
        if count != C::default() {
            lane.items.push(item as u32);
            lane.counts.push(count.into());
        }
    }
}

#[inline]
fn add<C: Count, const LANES: usize>(sums: &mut [C; LANES], counts: [C; LANES]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.plus(count);
    }
}

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
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const NUM_ITEMS: u32 = 6;

    /// Grammar of a test: elements below [`NUM_ITEMS`] are items, the others are rules. Every
    /// document reports `doc_len` entries.
    struct Grammar {
        docs: Vec<Vec<u32>>,
        rules: Vec<Vec<u32>>,
        doc_len: usize,
    }

    fn held(element: u32) -> Held {
        match element {
            0 => Held::Items(0, 3),
            NUM_ITEMS.. => Held::Rule(RuleId::from(element - NUM_ITEMS)),
            item => Held::Item(item),
        }
    }

    impl Bodies for Grammar {
        fn len_of_doc(&self, _doc: DocId) -> usize {
            self.doc_len
        }
        fn for_doc(&self, doc: DocId, f: impl FnMut(Held)) {
            self.docs[doc.index()].iter().copied().map(held).for_each(f);
        }
        fn for_rule(&self, rule_id: RuleId, f: impl FnMut(Held)) {
            self.rules[rule_id.index()].iter().copied().map(held).for_each(f);
        }
    }

    impl Grammar {
        fn slow(&self, doc: DocId) -> Vec<u32> {
            let mut pending = self.docs[doc.index()].clone();
            let mut items = Vec::new();
            while let Some(element) = pending.pop() {
                match held(element) {
                    Held::Item(item) => items.push(item),
                    Held::Items(item, times) => items.extend((0..times).map(|_| item)),
                    Held::Rule(rule_id) => pending.extend(&self.rules[rule_id.index()]),
                }
            }
            items
        }
    }

    fn listed(items: &[u32]) -> (Vec<u32>, Vec<u64>) {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        items.iter().for_each(|&item| *counts.entry(item).or_default() += 1);
        counts.into_iter().unzip()
    }

    fn check<C: Count, const LANES: usize>(bodies: &Grammar) -> Result<(), TestCaseError> {
        let mut counts = LaneCounts::<C, LANES>::new(NUM_ITEMS as usize, bodies.rules.len());
        let docs: Vec<DocId> = DocId::range(0..bodies.docs.len()).collect();
        for docs in docs.chunks(LANES) {
            counts.count(bodies, docs);
            for (lane, &doc) in docs.iter().enumerate() {
                let got = (counts.items(lane).to_vec(), counts.counts(lane).to_vec());
                prop_assert_eq!(got, listed(&bodies.slow(doc)));
            }
        }
        for doc in docs {
            let items = bodies.slow(doc);
            counts.count_few(&items);
            let got = (counts.items(0).to_vec(), counts.counts(0).to_vec());
            prop_assert_eq!(got, listed(&items));
            counts.count_each(|add| items.chunks(2).for_each(add));
            let got = (counts.items(0).to_vec(), counts.counts(0).to_vec());
            prop_assert_eq!(got, listed(&items));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn items_are_those_of_expansions(
            docs in prop::collection::vec(prop::collection::vec(0u32..NUM_ITEMS + 4, 0..6), 1..12),
            rules in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..5), 4),
        ) {
            // Rules contain items and rules with a larger index.
            let rules: Vec<Vec<u32>> = rules.into_iter().enumerate().map(|(at, rule)| {
                let number = |n: u32| (n % (NUM_ITEMS + 3 - at as u32), at as u32 + 1);
                let element = |(n, behind)| if n < NUM_ITEMS { n } else { n + behind };
                rule.into_iter().map(|n| element(number(n))).collect()
            }).collect();
            // A small and a large length: with marks, and without.
            for doc_len in [0, 1 << 40] {
                let bodies = Grammar { docs: docs.clone(), rules: rules.clone(), doc_len };
                check::<u32, 8>(&bodies)?;
                check::<u32, 4>(&bodies)?;
                check::<u32, 2>(&bodies)?;
                check::<u64, 1>(&bodies)?;
            }
        }
    }

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
