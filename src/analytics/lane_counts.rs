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
//! it. Rules that wait and items with a count are bits, so nothing is sorted.
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
    /// Calls `f` with what document `doc` (index inside the segment) holds.
    fn of_doc(&self, doc: usize, f: impl FnMut(Held));
    /// Calls `f` with what one use of rule `rule_idx` holds.
    fn of_rule(&self, rule_idx: usize, f: impl FnMut(Held));
}

/// A number that counts.
pub(super) trait Count: Copy + Default + PartialEq + Into<u64> {
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
        for (lane, &doc) in docs.iter().enumerate() {
            bodies.of_doc(doc, |held| match held {
                Held::Item(item) => self.add_item(lane, item, C::ONE),
                Held::Items(item, times) => self.add_item(lane, item, C::ONE.times(times)),
                Held::Rule(rule_idx) => {
                    self.rules.insert(rule_idx);
                    let slot = &mut self.rule_counts[rule_idx][lane];
                    *slot = slot.plus(C::ONE);
                }
            });
        }
        while let Some(rule_idx) = self.rules.pop() {
            let counts = std::mem::replace(&mut self.rule_counts[rule_idx], [C::default(); LANES]);
            bodies.of_rule(rule_idx, |held| match held {
                Held::Item(item) => {
                    self.items.insert(item as usize);
                    add(&mut self.item_counts[item as usize], counts);
                }
                Held::Items(item, times) => {
                    self.items.insert(item as usize);
                    add(&mut self.item_counts[item as usize], counts.map(|c| c.times(times)));
                }
                Held::Rule(rule_idx) => {
                    self.rules.insert(rule_idx);
                    add(&mut self.rule_counts[rule_idx], counts);
                }
            });
        }
        self.list();
    }

    /// Counts the items that `fill` hands over, one document's.
    pub fn count_each(&mut self, fill: impl FnOnce(&mut dyn FnMut(&[u32]))) {
        fill(&mut |items| items.iter().for_each(|&item| self.add_item(0, item, C::ONE)));
        self.list();
    }

    #[inline]
    fn add_item(&mut self, lane: usize, item: u32, count: C) {
        self.items.insert(item as usize);
        let slot = &mut self.item_counts[item as usize][lane];
        *slot = slot.plus(count);
    }

    /// Lists items with a count by lane and forgets the counts.
    fn list(&mut self) {
        let Self { lanes, items, item_counts, .. } = self;
        for lane in lanes.iter_mut() {
            lane.items.clear();
            lane.counts.clear();
        }
        items.drain(|item| {
            let counts = std::mem::replace(&mut item_counts[item], [C::default(); LANES]);
            for (lane, count) in lanes.iter_mut().zip(counts) {
                if count != C::default() {
                    lane.items.push(item as u32);
                    lane.counts.push(count.into());
                }
            }
        });
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

#[inline]
fn add<C: Count, const LANES: usize>(sums: &mut [C; LANES], counts: [C; LANES]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.plus(count);
    }
}
