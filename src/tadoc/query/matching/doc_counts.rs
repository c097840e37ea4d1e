//! Counts of matches by document, without a list of the occurrences.
//!
//! Counts are passed from rules to their parents, children first. This costs O(places of the rules
//! above the matches), however often these occur, so a corpus of 2^60 words is counted exactly.
//!
//! Places are sorted by position, those of the root first. If one document is asked for, its places
//! are found among those of the root by two binary searches, and the others are never read. A
//! frequent word has most of its places in the root.

use std::ops::Range;

use crate::error::Result;
use crate::ids::{DocId, RuleId};
use crate::segment::{Occurrence, Segment};

use super::sets::{DocSet, RuleNumbers};
use crate::interrupt::Interrupt;
use crate::query::matching::match_paths::sort_by_position;

/// Documents for each occurrence above which counts are kept as a list instead of an array.
const DOCS_PER_OCCURRENCE: u64 = 16;

/// A counter of matches by rule and by document.
#[derive(Debug)]
pub(in crate::query) struct DocCounter<'a> {
    segment: &'a Segment,
    /// Rules above matches, each with the number of matches that one occurrence of it holds.
    rules: Vec<(RuleId, u64)>,
    numbers: RuleNumbers,
    docs: Docs,
}

#[derive(Debug)]
enum Docs {
    Array(Vec<u64>),
    List(Vec<(DocId, u64)>),
    /// One document, its range in the root, and its count.
    One(DocId, Range<usize>, u64),
}

impl<'a> DocCounter<'a> {
    /// Creates a counter for about `num_occurrences` occurrences.
    pub fn new(segment: &'a Segment, num_occurrences: u64) -> Self {
        let num_docs = segment.dag.grammar().num_docs();
        let docs = if num_occurrences.saturating_mul(DOCS_PER_OCCURRENCE) < num_docs as u64 {
            Docs::List(Vec::new())
        } else {
            Docs::Array(vec![0; num_docs])
        };
        Self { segment, rules: Vec::new(), numbers: RuleNumbers::default(), docs }
    }

    /// Creates a counter for document `doc` only.
    pub fn for_doc(segment: &'a Segment, doc: DocId) -> Self {
        let docs = Docs::One(doc, segment.dag.doc_range(doc), 0);
        Self { segment, rules: Vec::new(), numbers: RuleNumbers::default(), docs }
    }

    /// Adds a match at each of `places`, which are all places of one element.
    pub fn add(&mut self, places: &[Occurrence]) {
        let (of_root, of_rules) = split(places);
        self.docs.add_positions(self.segment, of_root, 1);
        of_rules.iter().for_each(|place| self.add_to_rule(place.rule_id, 1));
    }

    /// Adds `count` matches to each occurrence of rule `rule_id`, which is not the root.
    #[inline]
    pub fn add_to_rule(&mut self, rule_id: RuleId, count: u64) {
        if self.numbers.insert(rule_id, self.rules.len() as u32) {
            self.rules.push((rule_id, 0));
        }
        self.rules[self.numbers.get(rule_id) as usize].1 += count;
    }

    /// Adds a match to document `doc`.
    pub fn add_to_doc(&mut self, doc: DocId) {
        self.docs.add(doc, 1);
    }

    /// Returns the documents and their counts, in ascending order of the document.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn finish(mut self, interrupt: &mut Interrupt<'_>) -> Result<Vec<(DocId, u64)>> {
        self.meet_parents(interrupt)?;
        let key = |(&(rule_id, _), number): (&(RuleId, u64), u64)| u64::from(rule_id) << 32 | number;
        let mut order: Vec<u64> = self.rules.iter().zip(0..).map(key).collect();
        sort_by_position(&mut order, self.segment.dag.grammar().num_rules());
        for number in order.into_iter().rev().map(|key| key as u32) {
            let (rule_id, count) = self.rules[number as usize];
            let places = self.segment.inverse_or_derive().for_element(self.segment.dag.grammar().element_for(rule_id));
            let (of_root, of_rules) = split(places);
            self.docs.add_positions(self.segment, of_root, count);
            for place in of_rules {
                interrupt.check()?;
                self.rules[self.numbers.get(place.rule_id) as usize].1 += count;
            }
            interrupt.check()?;
        }
        Ok(self.docs.into_list())
    }

    /// Numbers all rules above the rules that were added.
    fn meet_parents(&mut self, interrupt: &mut Interrupt<'_>) -> Result<()> {
        let mut number = 0;
        while number < self.rules.len() {
            let element = self.segment.dag.grammar().element_for(self.rules[number].0);
            for place in split(self.segment.inverse_or_derive().for_element(element)).1 {
                self.add_to_rule(place.rule_id, 0);
                interrupt.check()?;
            }
            number += 1;
        }
        Ok(())
    }
}

/// Splits `places` into those in the root and those in rules.
fn split(places: &[Occurrence]) -> (&[Occurrence], &[Occurrence]) {
    places.split_at(places.partition_point(|place| place.rule_id == RuleId::ROOT))
}

impl Docs {
    /// Adds `count` matches at each of `places`, which are in the root.
    fn add_positions(&mut self, segment: &Segment, places: &[Occurrence], count: u64) {
        if let Self::One(_, range, sum) = self {
            let before = |end| places.partition_point(|place| (place.position as usize) < end);
            *sum += count * (before(range.end) - before(range.start)) as u64;
            return;
        }
        let doc = |place: &Occurrence| segment.doc_at_or_derive(place.position as usize);
        places.iter().for_each(|place| self.add(doc(place), count));
    }

    #[inline]
    fn add(&mut self, doc: DocId, count: u64) {
        match self {
            Self::Array(counts) => counts[doc.index()] += count,
            Self::List(counts) => counts.push((doc, count)),
            Self::One(only, _, sum) if *only == doc => *sum += count,
            Self::One(..) => {}
        }
    }

    fn into_list(self) -> Vec<(DocId, u64)> {
        let mut list = match self {
            Self::Array(counts) => {
                return DocId::range(0..counts.len()).zip(counts).filter(|&(_, count)| count > 0).collect();
            }
            Self::List(list) => list,
            Self::One(_, _, 0) => Vec::new(),
            Self::One(doc, _, count) => vec![(doc, count)],
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

/// Returns the documents that contain at least one of `elements`. Each rule is visited once:
/// O(places of the elements and of the rules above them), at most O(G).
pub(in crate::query) fn docs_with(segment: &Segment, elements: impl IntoIterator<Item = u32>) -> DocSet {
    let grammar = segment.dag.grammar();
    let mut docs = DocSet::none(grammar.num_docs());
    let mut is_visited = vec![0u64; grammar.num_rules() / 64 + 1];
    let mut pending = Vec::new();
    let mut elements = elements.into_iter();
    while let Some(element) = pending.pop().or_else(|| elements.next()) {
        for place in segment.inverse_or_derive().for_element(element) {
            if place.rule_id == RuleId::ROOT {
                docs.insert(segment.doc_at_or_derive(place.position as usize));
                continue;
            }
            let rule_idx = place.rule_id.index();
            let word = rule_idx / 64;
            let bit = 1 << (rule_idx % 64);
            if is_visited[word] & bit == 0 {
                is_visited[word] |= bit;
                pending.push(grammar.element_for(place.rule_id));
            }
        }
    }
    docs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::OpenLimits;
    use crate::query::SearchOptions;
    use crate::segment::Corpus;

    proptest! {
        #[test]
        fn one_document_has_the_count_that_it_has_among_all(
            docs in prop::collection::vec(prop::collection::vec(0usize..6, 0..60), 1..8),
        ) {
            let words = ["to", "be", "or", "not", "that is", "the question, to be"];
            let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
            for doc in &docs {
                let text: Vec<&str> = doc.iter().map(|&word| words[word]).collect();
                builder.push_document("d", text.join(" ").as_bytes()).unwrap();
            }
            let (file, _) = builder.finish(None).unwrap();
            let (_, corpus) = Corpus::from_bytes("f", &file, &OpenLimits::default()).unwrap();
            let options = SearchOptions::default();
            for segment in corpus.segments() {
                for word in 0..segment.dictionary.num_words() {
                    let count = |mut counter: DocCounter<'_>| {
                        counter.add(segment.inverse_or_derive().for_element(word));
                        counter.finish(&mut options.canceller().interrupt()).unwrap()
                    };
                    let text = segment.dictionary.word(word.into());
                    let occurs = |doc: &[usize]| {
                        let words = doc.iter().flat_map(|&word| words[word].split([' ', ',']));
                        words.filter(|&other| other == text).count() as u64
                    };
                    let slow = segment.dag.grammar().docs().zip(docs.iter().map(|doc| occurs(doc)));
                    let slow: Vec<(DocId, u64)> = slow.filter(|&(_, count)| count > 0).collect();
                    prop_assert_eq!(&count(DocCounter::new(segment, u64::MAX)), &slow);
                    prop_assert_eq!(&count(DocCounter::new(segment, 0)), &slow);
                    for doc in segment.dag.grammar().docs() {
                        let mut one = slow.clone();
                        one.retain(|&(other, _)| other == doc);
                        prop_assert_eq!(count(DocCounter::for_doc(segment, doc)), one);
                    }
                }
            }
        }
    }
}
