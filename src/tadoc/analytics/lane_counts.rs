//! How often each of a few documents holds each item, from what the rules hold.
//!
//! ```text
//!              documents 0 1 2 .. 7
//! rule R3      counts   [1 0 2 .. 1]  ─▶ added to what R3 holds: items and rules, all at once
//! item 12      counts   [1 1 2 .. 1]  ─▶ one row for each document with a count
//! ```
//!
//! Items are words, or the numbers of sequences ([`Bodies`] says which a rule holds). A document's
//! root range puts a count in the document's lane; counts flow from rules to what they hold, parents
//! before children, so each rule is looked at once for all lanes, however often the documents use
//! it. Rules that wait and items with a count are bits, so nothing is sorted. Where documents hold so much that most
//! rules and items have a count, these are gone through without bits.
//!
//! O(root ranges + items and rules of the rules reached + rows), whatever the documents expand to.

use super::ascending_set::AscendingSet;

/// One thing that a rule or a document holds.
pub(super) enum Held {
    /// An item, once.
    Item(u32),
    /// An item, so many times.
    Items(u32, u32),
    /// A rule, of a larger index.
    Rule(usize),
}

/// What rules and documents of a segment hold.
pub(super) trait Bodies {
    /// About how many things document `doc` holds.
    fn len_of_doc(&self, doc: usize) -> usize;
    /// Calls `f` with what document `doc` (index inside the segment) holds.
    fn of_doc(&self, doc: usize, f: impl FnMut(Held));
    /// Calls `f` with what one use of rule `rule_idx` holds.
    fn of_rule(&self, rule_idx: usize, f: impl FnMut(Held));
}

/// A number that counts.
pub(super) trait Count:
    Copy + Default + PartialEq + Into<u64> + std::fmt::Debug + Send + Sync
{
    /// One.
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

/// Items and rules for each thing that documents hold, up to which all are gone through.
const ALL_PER_HELD: usize = 4;

/// Counts of up to `LANES` documents at a time. They wrap on the way for what holds no item, and are
/// exact for items where each document's count fits `C`.
#[derive(Debug)]
pub(super) struct LaneCounts<C, const LANES: usize> {
    /// By item, 0 between documents.
    item_counts: Vec<[C; LANES]>,
    /// By rule, 0 between documents.
    rule_counts: Vec<[C; LANES]>,
    /// Items with a count.
    items: AscendingSet,
    /// Rules whose counts wait to be passed on.
    rules: AscendingSet,
    lanes: [Lane; LANES],
}

/// Items of one document and their counts, ascending.
#[derive(Debug, Default)]
struct Lane {
    items: Vec<u32>,
    counts: Vec<u64>,
}

impl<C: Count, const LANES: usize> LaneCounts<C, LANES> {
    /// For items and rules below these numbers.
    pub fn new(num_items: usize, num_rules: usize) -> Self {
        Self {
            item_counts: vec![[C::default(); LANES]; num_items],
            rule_counts: vec![[C::default(); LANES]; num_rules],
            items: AscendingSet::new(num_items),
            rules: AscendingSet::new(num_rules),
            lanes: std::array::from_fn(|_| Lane::default()),
        }
    }

    /// Counts the items of `docs`, at most `LANES` of them.
    pub fn count(&mut self, bodies: &impl Bodies, docs: &[usize]) {
        let num_held: usize = docs.iter().map(|&doc| bodies.len_of_doc(doc)).sum();
        let num_all = self.item_counts.len() + self.rule_counts.len();
        if num_held.saturating_mul(ALL_PER_HELD) < num_all {
            self.hold_docs::<true>(bodies, docs);
            while let Some(rule_idx) = self.rules.pop() {
                self.pass_on::<true>(bodies, rule_idx);
            }
            self.list();
        } else {
            self.hold_docs::<false>(bodies, docs);
            for rule_idx in 0..self.rule_counts.len() {
                if self.rule_counts[rule_idx] != [C::default(); LANES] {
                    self.pass_on::<false>(bodies, rule_idx);
                }
            }
            self.list_all();
        }
    }

    /// Counts the items that `fill` hands over, one document's.
    pub fn count_each(&mut self, fill: impl FnOnce(&mut dyn FnMut(&[u32]))) {
        let add = |counts: &mut [C; LANES], _| counts[0] = counts[0].plus(C::ONE);
        fill(&mut |items| items.iter().for_each(|&item| self.hold::<true>(Held::Item(item), add)));
        self.list();
    }

    /// The same for few items: they are sorted.
    pub fn count_few(&mut self, items: &[u32]) {
        self.lanes.iter_mut().for_each(Lane::clear);
        let Lane { items: sorted, counts } = &mut self.lanes[0];
        sorted.extend_from_slice(items);
        sorted.sort_unstable();
        counts.resize(sorted.len(), 0);
        let Some(&first) = sorted.first() else { return };
        // Without a branch: whether an item is the one before is close to random.
        let (mut last, mut at) = (first, 0);
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

    /// Puts what the documents hold into their lanes.
    fn hold_docs<const ARE_MARKED: bool>(&mut self, bodies: &impl Bodies, docs: &[usize]) {
        for (lane, &doc) in docs.iter().enumerate() {
            let add = |counts: &mut [C; LANES], times| {
                counts[lane] = counts[lane].plus(C::ONE.times(times));
            };
            bodies.of_doc(doc, |held| self.hold::<ARE_MARKED>(held, add));
        }
    }

    /// Passes the counts of a rule on to what it holds.
    fn pass_on<const ARE_MARKED: bool>(&mut self, bodies: &impl Bodies, rule_idx: usize) {
        let counts = std::mem::replace(&mut self.rule_counts[rule_idx], [C::default(); LANES]);
        let add = |sums: &mut [C; LANES], times| add(sums, counts.map(|count| count.times(times)));
        bodies.of_rule(rule_idx, |held| self.hold::<ARE_MARKED>(held, add));
    }

    /// Adds to the counts of what is held, and marks that they are there.
    #[inline]
    fn hold<const ARE_MARKED: bool>(&mut self, held: Held, add: impl Fn(&mut [C; LANES], u32)) {
        let (item, times) = match held {
            Held::Item(item) => (item as usize, 1),
            Held::Items(item, times) => (item as usize, times),
            Held::Rule(rule_idx) => {
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

    /// Lists marked items by lane and forgets the counts.
    fn list(&mut self) {
        let Self { lanes, items, item_counts, .. } = self;
        lanes.iter_mut().for_each(Lane::clear);
        items.drain(|item| list_item(lanes, item, &mut item_counts[item]));
    }

    /// The same for all items.
    fn list_all(&mut self) {
        let Self { lanes, item_counts, .. } = self;
        lanes.iter_mut().for_each(Lane::clear);
        for (item, counts) in item_counts.iter_mut().enumerate() {
            list_item(lanes, item, counts);
        }
    }

    /// Items of the document at `lane` of those counted last, ascending.
    pub fn items(&self, lane: usize) -> &[u32] {
        &self.lanes[lane].items
    }

    /// How often each of [`items`](Self::items) occurs.
    pub fn counts(&self, lane: usize) -> &[u64] {
        &self.lanes[lane].counts
    }

    /// Bytes of memory held.
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

/// Lists an item in the lanes that have a count for it, which are 0 then.
#[inline]
fn list_item<C: Count, const LANES: usize>(
    lanes: &mut [Lane; LANES],
    item: usize,
    counts: &mut [C; LANES],
) {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const NUM_ITEMS: u32 = 6;

    /// Items below [`NUM_ITEMS`], above them rules; documents say that they hold `doc_len` things.
    struct Grammar {
        docs: Vec<Vec<u32>>,
        rules: Vec<Vec<u32>>,
        doc_len: usize,
    }

    fn held(element: u32) -> Held {
        match element {
            0 => Held::Items(0, 3),
            NUM_ITEMS.. => Held::Rule((element - NUM_ITEMS) as usize),
            item => Held::Item(item),
        }
    }

    impl Bodies for Grammar {
        fn len_of_doc(&self, _doc: usize) -> usize {
            self.doc_len
        }
        fn of_doc(&self, doc: usize, f: impl FnMut(Held)) {
            self.docs[doc].iter().copied().map(held).for_each(f);
        }
        fn of_rule(&self, rule_idx: usize, f: impl FnMut(Held)) {
            self.rules[rule_idx].iter().copied().map(held).for_each(f);
        }
    }

    impl Grammar {
        fn slow(&self, doc: usize) -> Vec<u32> {
            let (mut pending, mut items) = (self.docs[doc].clone(), Vec::new());
            while let Some(element) = pending.pop() {
                match held(element) {
                    Held::Item(item) => items.push(item),
                    Held::Items(item, times) => items.extend((0..times).map(|_| item)),
                    Held::Rule(rule_idx) => pending.extend(&self.rules[rule_idx]),
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
        let docs: Vec<usize> = (0..bodies.docs.len()).collect();
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
            // Rules hold items and rules behind them.
            let rules: Vec<Vec<u32>> = rules.into_iter().enumerate().map(|(at, rule)| {
                let number = |n: u32| (n % (NUM_ITEMS + 3 - at as u32), at as u32 + 1);
                let element = |(n, behind)| if n < NUM_ITEMS { n } else { n + behind };
                rule.into_iter().map(|n| element(number(n))).collect()
            }).collect();
            // Going through what has a count, and through all.
            for doc_len in [0, 1 << 40] {
                let bodies = Grammar { docs: docs.clone(), rules: rules.clone(), doc_len };
                check::<u32, 8>(&bodies)?;
                check::<u32, 4>(&bodies)?;
                check::<u32, 2>(&bodies)?;
                check::<u64, 1>(&bodies)?;
            }
        }
    }
}
