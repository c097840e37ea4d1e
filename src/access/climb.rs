//! From places inside rules to places in documents, over the inverse grammar.
//!
//! ```text
//! word ─▶ rule 9, offset 4 ─▶ rule 3, offset 21 ─▶ root ─▶ document 12, offset 1,033
//!                         └─▶ root ─▶ document 3, offset 77
//! ```
//!
//! Every step up adds where the element starts in its parent, one cache line of prefix sums. Rules
//! have two uses or more, so inner steps are fewer than occurrences: 1.1 to 1.6 steps each.
//! Listing documents and counting in them does not climb from each occurrence: it passes counts
//! from rule to parents, children first, and is O(rules above the word), however often they occur.

use std::collections::BTreeMap;

use crate::dag::{Dag, Occurrence};
use crate::error::Result;

use super::doc_set::DocSet;
use super::search::Interrupt;

/// Most rules that counts are passed through in a tree map; beyond it an array of all rules wins.
const MAX_SPARSE_RULES: usize = 4096;

/// An occurrence in a document (or part of one) of the segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    pub doc: u32,
    pub byte_offset: u64,
    pub word_idx: u64,
}

/// Walks up from rules to documents.
#[derive(Debug)]
pub(super) struct Climber<'a> {
    dag: &'a Dag,
    /// Rules to climb from, with the offset of the match inside them.
    pending: Vec<(u32, [u64; 2])>,
}

impl<'a> Climber<'a> {
    pub fn new(dag: &'a Dag) -> Self {
        Self { dag, pending: Vec::with_capacity(64) }
    }

    /// Calls `visit` with every occurrence of what starts at `offsets` (bytes, words) inside the
    /// element that stands at `place`.
    #[inline]
    pub fn climb(
        &mut self,
        place: Occurrence,
        offsets: [u64; 2],
        interrupt: &mut Interrupt<'_>,
        visit: &mut impl FnMut(Spot),
    ) -> Result<()> {
        self.step(place, offsets, visit);
        self.drain(interrupt, visit)
    }

    /// [`climb`](Self::climb) from every place of rule `rule_idx`.
    pub fn climb_from_rule(
        &mut self,
        rule_idx: u32,
        offsets: [u64; 2],
        interrupt: &mut Interrupt<'_>,
        visit: &mut impl FnMut(Spot),
    ) -> Result<()> {
        self.pending.push((rule_idx, offsets));
        self.drain(interrupt, visit)
    }

    #[inline]
    fn drain(
        &mut self,
        interrupt: &mut Interrupt<'_>,
        visit: &mut impl FnMut(Spot),
    ) -> Result<()> {
        while let Some((rule_idx, offsets)) = self.pending.pop() {
            for &place in self.dag.inverse().of(self.dag.num_terminals() + rule_idx) {
                interrupt.check()?;
                self.step(place, offsets, visit);
            }
        }
        Ok(())
    }

    /// Moves `offsets` up into the rule or document that holds `place`.
    #[inline]
    fn step(&mut self, place: Occurrence, offsets: [u64; 2], visit: &mut impl FnMut(Spot)) {
        let dag = self.dag;
        let sums = dag.prefix_sums();
        let position = place.position as usize;
        let starts = sums.starts(dag, position);
        let moved = |base: [u64; 2]| {
            [
                starts[0].wrapping_sub(base[0]).wrapping_add(offsets[0]),
                starts[1].wrapping_sub(base[1]).wrapping_add(offsets[1]),
            ]
        };
        if place.rule_idx == 0 {
            let doc = sums.doc_at(dag, position);
            let [byte_offset, word_idx] = moved(sums.starts(dag, dag.doc_range(doc).start));
            visit(Spot { doc: doc as u32, byte_offset, word_idx });
        } else {
            let start = dag.rule_range(place.rule_idx as usize).start;
            self.pending.push((place.rule_idx, moved(sums.starts(dag, start))));
        }
    }
}

/// How often something occurs in each document: counts by rule that are passed to the parents.
#[derive(Debug)]
pub(super) struct DocCounter<'a> {
    dag: &'a Dag,
    rules: RuleCounts,
    docs: Vec<(u32, u64)>,
}

/// Counts by rule; the largest rule index is always taken first, as parents have smaller ones.
#[derive(Debug)]
enum RuleCounts {
    Sparse(BTreeMap<u32, u64>),
    Dense { counts: Vec<u64>, end: usize },
}

impl<'a> DocCounter<'a> {
    pub fn new(dag: &'a Dag) -> Self {
        Self { dag, rules: RuleCounts::Sparse(BTreeMap::new()), docs: Vec::new() }
    }

    /// Adds `count` occurrences at `place`.
    pub fn add(&mut self, place: Occurrence, count: u64) {
        if place.rule_idx == 0 {
            self.add_to_doc(self.dag.doc_at(place.position as usize) as u32, count);
        } else {
            self.add_to_rule(place.rule_idx, count);
        }
    }

    /// Adds `count` occurrences to each occurrence of rule `rule_idx`.
    pub fn add_to_rule(&mut self, rule_idx: u32, count: u64) {
        match &mut self.rules {
            RuleCounts::Dense { counts, .. } => counts[rule_idx as usize] += count,
            RuleCounts::Sparse(counts) => {
                *counts.entry(rule_idx).or_default() += count;
                if counts.len() > MAX_SPARSE_RULES {
                    let mut dense = vec![0; self.dag.grammar().num_rules()];
                    counts.iter().for_each(|(&rule, &count)| dense[rule as usize] = count);
                    let end = dense.len();
                    self.rules = RuleCounts::Dense { counts: dense, end };
                }
            }
        }
    }

    /// Adds `count` occurrences to document `doc`.
    pub fn add_to_doc(&mut self, doc: u32, count: u64) {
        match self.docs.last_mut() {
            Some((last, sum)) if *last == doc => *sum += count,
            _ => self.docs.push((doc, count)),
        }
    }

    /// Documents and their counts, ascending by document.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn finish(mut self, interrupt: &mut Interrupt<'_>) -> Result<Vec<(u32, u64)>> {
        while let Some((rule_idx, count)) = self.rules.take_largest() {
            for &place in self.dag.inverse().of(self.dag.num_terminals() + rule_idx) {
                interrupt.check()?;
                self.add(place, count);
            }
        }
        self.docs.sort_unstable_by_key(|&(doc, _)| doc);
        self.docs.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        Ok(self.docs)
    }
}

impl RuleCounts {
    fn take_largest(&mut self) -> Option<(u32, u64)> {
        match self {
            Self::Sparse(counts) => counts.pop_last(),
            Self::Dense { counts, end } => {
                *end = counts[..*end].iter().rposition(|&count| count > 0)?;
                Some((*end as u32, counts[*end]))
            }
        }
    }
}

/// The documents that hold at least one of `elements`. Each rule is climbed from once: O(places of
/// the elements and of the rules above them), at most O(G).
pub(super) fn docs_with(dag: &Dag, elements: impl IntoIterator<Item = u32>) -> DocSet {
    let grammar = dag.grammar();
    let mut docs = DocSet::none(grammar.num_docs());
    let mut is_visited = vec![0u64; grammar.num_rules() / 64 + 1];
    let mut pending = Vec::new();
    let mut elements = elements.into_iter();
    while let Some(element) = pending.pop().or_else(|| elements.next()) {
        for place in dag.inverse().of(element) {
            if place.rule_idx == 0 {
                docs.insert(dag.doc_at(place.position as usize));
                continue;
            }
            let (word, bit) = (place.rule_idx as usize / 64, 1 << (place.rule_idx % 64));
            if is_visited[word] & bit == 0 {
                is_visited[word] |= bit;
                pending.push(grammar.num_terminals + place.rule_idx);
            }
        }
    }
    docs
}
