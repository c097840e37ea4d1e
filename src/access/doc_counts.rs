//! In which documents something occurs, and how often, without listing the occurrences.
//!
//! Counts are passed from rule to parents, children first: O(places of the rules above the
//! matches), however often these occur, so a corpus of 2^60 words is counted exactly.

use crate::dag::{Dag, Occurrence};
use crate::error::Result;

use super::doc_set::DocSet;
use super::rule_numbers::RuleNumbers;
use super::search::Interrupt;

/// Documents per occurrence beyond which counts are kept as a list instead of an array.
const DOCS_PER_OCCURRENCE: u64 = 16;

/// Counts of matches by rule and by document.
#[derive(Debug)]
pub(super) struct DocCounter<'a> {
    dag: &'a Dag,
    /// Rules above matches, and for each how many matches one occurrence of it holds.
    rules: Vec<(u32, u64)>,
    numbers: RuleNumbers,
    docs: Docs,
}

#[derive(Debug)]
enum Docs {
    Array(Vec<u64>),
    List(Vec<(u32, u64)>),
}

impl<'a> DocCounter<'a> {
    /// A counter of about `num_occurrences`.
    pub fn new(dag: &'a Dag, num_occurrences: u64) -> Self {
        let num_docs = dag.grammar().num_docs();
        let docs = match num_occurrences.saturating_mul(DOCS_PER_OCCURRENCE) < num_docs as u64 {
            true => Docs::List(Vec::new()),
            false => Docs::Array(vec![0; num_docs]),
        };
        Self { dag, rules: Vec::new(), numbers: RuleNumbers::default(), docs }
    }

    /// Adds a match of the element at `place`.
    #[inline]
    pub fn add(&mut self, place: Occurrence) {
        match place.rule_idx {
            0 => self.docs.add(self.dag.doc_at(place.position as usize), 1),
            rule_idx => self.add_to_rule(rule_idx, 1),
        }
    }

    /// Adds `count` matches to each occurrence of rule `rule_idx`, which is not the root.
    #[inline]
    pub fn add_to_rule(&mut self, rule_idx: u32, count: u64) {
        if self.numbers.insert(rule_idx, self.rules.len() as u32) {
            self.rules.push((rule_idx, 0));
        }
        self.rules[self.numbers.get(rule_idx) as usize].1 += count;
    }

    /// Adds a match to document `doc`.
    pub fn add_to_doc(&mut self, doc: u32) {
        self.docs.add(doc as usize, 1);
    }

    /// Documents and their counts, ascending by document.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn finish(mut self, interrupt: &mut Interrupt<'_>) -> Result<Vec<(u32, u64)>> {
        self.meet_parents(interrupt)?;
        let mut order: Vec<u32> = (0..self.rules.len() as u32).collect();
        order.sort_unstable_by_key(|&number| std::cmp::Reverse(self.rules[number as usize].0));
        for number in order {
            let (rule_idx, count) = self.rules[number as usize];
            for &place in self.dag.inverse().of(self.dag.num_terminals() + rule_idx) {
                interrupt.check()?;
                match place.rule_idx {
                    0 => self.docs.add(self.dag.doc_at(place.position as usize), count),
                    parent => self.rules[self.numbers.get(parent) as usize].1 += count,
                }
            }
        }
        Ok(self.docs.into_list())
    }

    /// Numbers all rules above those that were added.
    fn meet_parents(&mut self, interrupt: &mut Interrupt<'_>) -> Result<()> {
        let mut number = 0;
        while number < self.rules.len() {
            let element = self.dag.num_terminals() + self.rules[number].0;
            for place in self.dag.inverse().of(element).iter().filter(|place| place.rule_idx != 0) {
                self.add_to_rule(place.rule_idx, 0);
                interrupt.check()?;
            }
            number += 1;
        }
        Ok(())
    }
}

impl Docs {
    #[inline]
    fn add(&mut self, doc: usize, count: u64) {
        match self {
            Self::Array(counts) => counts[doc] += count,
            Self::List(counts) => counts.push((doc as u32, count)),
        }
    }

    fn into_list(self) -> Vec<(u32, u64)> {
        let mut list = match self {
            Self::Array(counts) => {
                return (0..).zip(counts).filter(|&(_, count)| count > 0).collect();
            }
            Self::List(list) => list,
        };
        list.sort_unstable_by_key(|&(doc, _)| doc);
        list.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        list
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
