//! From matches inside rules to occurrences in documents, in document order, over the inverse grammar; and
//! counts of matches by document, without a list of the occurrences.
//!
//! ```text
//! climb    word ─▶ rule 9 ─▶ rule 3 ─▶ root       each rule once, however often it occurs
//!                     └─▶ root
//! entries  root:   doc 0, offset 77, rule 9 | doc 0, offset 912, rule 3 | doc 2, offset 5, match
//!          rule 3: offset 21, rule 9
//!          rule 9: offset 4, match
//! walk     doc 0: 77 + 4, 912 + 21 + 4; doc 2: 5
//! ```
//!
//! First all places above the matches are gathered, at most one entry for each element of the grammar. Sorted by
//! position, the entries are a small grammar that contains only paths to matches. A walk from its root yields every
//! occurrence in order. Rules have two uses or more, so there are fewer entries than occurrences, inner steps included.
//! The walk adds two numbers at each step. Memory is that of the entries, not of the occurrences.
//!
//! A climb from each occurrence with a sort of the results takes several times as long. Starts of places that are read
//! when a place is reached, and rules in a hash table, are slower for common words.
//!
//! # Counts
//!
//! Counts are passed from rules to their parents, children first. This costs O(places of the rules
//! above the matches), however often these occur, so a corpus of 2^60 words is counted exactly.
//!
//! Places are sorted by position, those of the root first. If one document is asked for, its places
//! are found among those of the root by two binary searches, and the others are never read. A
//! frequent word has most of its places in the root.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Interrupt, Result};
use crate::ids::{DocId, RuleId};
use crate::segment::{Occurrence, Segment};

use super::sets::{DocSet, RuleNumbers, RuleSet};

/// Flag of the key of a match; keys without it are of rules. At the same place a match sorts after
/// a rule: a match that begins inside that rule and ends after it begins after all that ends
/// inside.
const MATCH: u32 = 1 << 31;

/// Builder of [`MatchPaths`], which gathers the places above the matches.
#[derive(Debug)]
pub(in crate::query) struct MatchPathsBuilder<'a> {
    segment: &'a Segment,
    /// Keys: the position, then the number of the rule or match at that position.
    keys: Vec<u64>,
    /// Rules above matches in the order in which they were found; the index is the number of the
    /// rule.
    rules: Vec<RuleId>,
    is_met: RuleSet,
}

/// A match with its position and the values that do not follow from the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct PositionedMatch {
    /// Rule that holds the match.
    pub rule_id: RuleId,
    /// Position of the element that holds the first byte.
    pub position: u32,
    /// First byte and first word, counted from the start of the rule or document.
    pub offsets: [u64; 2],
    /// Number of bytes from the first word to the end of the last.
    pub byte_len: u64,
}

impl<'a> MatchPathsBuilder<'a> {
    pub fn new(segment: &'a Segment) -> Self {
        let mut is_met = RuleSet::new(segment.dag.grammar().num_rules());
        // Nothing lies above the root.
        is_met.insert(RuleId::ROOT);
        Self { segment, keys: Vec::new(), rules: Vec::new(), is_met }
    }

    /// Adds rules that hold matches. The root is skipped.
    pub fn add_rules(&mut self, rules: impl ExactSizeIterator<Item = RuleId>) {
        let mut num_rules = self.rules.len();
        self.rules.resize(num_rules + rules.len(), RuleId::ROOT);
        for rule_id in rules {
            // Written even if it is not new: a branch here could not be predicted.
            self.rules[num_rules] = rule_id;
            num_rules += usize::from(self.is_met.insert(rule_id));
        }
        self.rules.truncate(num_rules);
    }

    /// Adds the places of the rules and of all rules above them, one generation after the other.
    pub fn climb(&mut self, interrupt: &mut Interrupt<'_>) -> Result<()> {
        let mut number = 0;
        let mut above = Vec::new();
        while number < self.rules.len() {
            // All places of a generation are read before any of them is followed. They are spread
            // over memory, and the processor waits for many of them together.
            for &rule_id in &self.rules[number..] {
                let places =
                    self.segment.inverse_or_derive().for_element(self.segment.dag.grammar().element_for(rule_id));
                let key = |place: &Occurrence| u64::from(place.position) << 32 | number as u64;
                self.keys.extend(places.iter().map(key));
                above.extend(places.iter().map(|place| place.rule_id));
                number += 1;
                interrupt.check()?;
            }
            self.add_rules(above.drain(..));
        }
        Ok(())
    }

    /// Sorts the places, with the matches of one word, which stands at `words`.
    ///
    /// # Errors
    /// [`Error::Capacity`] for 2^31 places or more.
    pub fn finish_words(self, words: &[Occurrence]) -> Result<MatchPaths> {
        self.finish(words.iter().map(|place| u64::from(place.position) << 32), &[])
    }

    /// Sorts the places, with matches of one word each. `keys` are the positions of the matches and
    /// the indexes that a [`Spot`] returns, in any order.
    ///
    /// # Errors
    /// [`Error::Capacity`] for 2^31 places or more.
    pub fn finish_keys(self, mut keys: Vec<u64>) -> Result<MatchPaths> {
        sort_by_position(&mut keys, self.segment.dag.grammar().symbols.len());
        self.finish(keys.into_iter(), &[])
    }

    /// Sorts the places, with `matches`, which ascend by rule and offset.
    ///
    /// # Errors
    /// [`Error::Capacity`] for 2^31 places or more.
    pub fn finish_matches(self, matches: &[PositionedMatch]) -> Result<MatchPaths> {
        let keys = matches.iter().enumerate();
        let keys = keys.map(|(idx, m)| u64::from(m.position) << 32 | idx as u64);
        self.finish(keys, matches)
    }

    /// Sorts the places. `match_keys` are positions and indexes of matches, in ascending order. A
    /// match that is not among `matches` is the element at its position.
    fn finish(
        mut self,
        match_keys: impl ExactSizeIterator<Item = u64>,
        matches: &[PositionedMatch],
    ) -> Result<MatchPaths> {
        let num_positions = self.keys.len() + match_keys.len();
        if num_positions >= MATCH as usize {
            return Err(Error::Capacity {
                what: "places of a search",
                requested: num_positions as u64,
                limit: u64::from(MATCH) - 1,
                knob: "the number of segments (smaller blocks at ingest)",
            });
        }
        // Most places are those of a word, which ascend. Only the places of rules have to be
        // sorted.
        sort_by_position(&mut self.keys, self.segment.dag.grammar().symbols.len());
        self.keys = merged(&self.keys, match_keys.map(|key| key | u64::from(MATCH)));
        let root_len = self.segment.dag.rule_range(RuleId::ROOT).end as u64;
        let num_root = self.keys.partition_point(|&key| key >> 32 < root_len);
        // The starts of all places are read first. They are spread over memory, and the processor
        // waits for many of them together.
        let starts = |&key: &u64| self.starts((key >> 32) as usize);
        let absolute = |key| Entry { offsets: starts(key), ..Entry::default() };
        let mut entries: Vec<Entry> = self.keys.iter().map(absolute).collect();
        let (of_root, of_rules) = entries.split_at_mut(num_root);
        let first_entries = self.fill_rules(matches, num_root, of_rules);
        let known = KnownRules { matches, num_root, first_entries: &first_entries };
        let root_docs = self.fill_root(&known, of_rules, of_root);
        Ok(MatchPaths { entries, root_docs })
    }

    /// Completes `entries`, those after the entries of the root, from the last rule to the first,
    /// so that the first entries of children are known. Returns the first entry of each rule by its
    /// number.
    fn fill_rules(&self, matches: &[PositionedMatch], num_root: usize, entries: &mut [Entry]) -> Vec<u32> {
        let numbered = self.rules.iter().zip(0u64..);
        let mut by_rule: Vec<u64> = numbered.map(|(&rule_id, number)| u64::from(rule_id) << 32 | number).collect();
        sort_by_position(&mut by_rule, self.segment.dag.grammar().num_rules());
        let start = |&key: &u64| self.segment.dag.rule_range(RuleId::from((key >> 32) as u32)).start;
        let bases: Vec<(usize, [u64; 2])> =
            by_rule.iter().map(start).map(|start| (start, self.starts(start))).collect();
        let mut first_entries = vec![0u32; self.rules.len()];
        let mut at = entries.len();
        for (&key, &(start, base)) in by_rule.iter().zip(&bases).rev() {
            let mut is_last = true;
            let known = KnownRules { matches, num_root, first_entries: &first_entries };
            while at > 0 && self.keys[num_root + at - 1] >> 32 >= start as u64 {
                at -= 1;
                let offsets = difference(entries[at].offsets, base);
                let entry = entry(self.keys[num_root + at], offsets, &known, entries);
                entries[at] = Entry { is_last, ..entry };
                is_last = false;
            }
            first_entries[key as u32 as usize] = (num_root + at) as u32;
        }
        first_entries
    }

    /// Completes `entries` of the root. Returns the document of each entry.
    fn fill_root(&self, known: &KnownRules<'_>, rule_entries: &[Entry], entries: &mut [Entry]) -> Vec<DocId> {
        let (docs, each_doc) = self.docs_from(&self.keys[..entries.len()]);
        let base = |&doc: &DocId| self.segment.prefix_sums_or_derive().doc_starts(doc);
        let bases: Vec<[u64; 2]> = each_doc.iter().map(base).collect();
        let mut idx = 0;
        for ((at, &key), &doc) in entries.iter_mut().zip(&self.keys).zip(&docs) {
            idx += usize::from(each_doc[idx] != doc);
            *at = entry(key, difference(at.offsets, bases[idx]), known, rule_entries);
        }
        docs
    }

    /// Returns the documents of ascending `keys` of the root: for each key, and each document once.
    fn docs_from(&self, keys: &[u64]) -> (Vec<DocId>, Vec<DocId>) {
        let mut doc = DocId::FIRST;
        let mut end = 0;
        let mut each_once = Vec::new();
        let doc_of = |&key: &u64| {
            let position = (key >> 32) as usize;
            if end <= position {
                doc = self.segment.doc_at_or_derive(position);
                end = self.segment.dag.doc_range(doc).end;
                each_once.push(doc);
            }
            doc
        };
        (keys.iter().map(doc_of).collect(), each_once)
    }

    /// Returns the number of bytes and words before `position`. Only differences of these are
    /// meaningful.
    #[inline]
    fn starts(&self, position: usize) -> [u64; 2] {
        self.segment.prefix_sums_or_derive().starts(&self.segment.dag, position)
    }
}

/// Data that the entries of rules refer to.
struct KnownRules<'a> {
    matches: &'a [PositionedMatch],
    /// Number of entries of the root, which come before those of rules.
    num_root: usize,
    /// Index of the first entry of each rule, by its number.
    first_entries: &'a [u32],
}

/// Returns the entry of a key, `offsets` from the start of the rule or document: a match, or a rule
/// that holds several matches. A rule with one entry is replaced by that entry, so that each inner
/// step of a path has a choice.
#[inline]
fn entry(key: u64, offsets: [u64; 2], known: &KnownRules<'_>, rule_entries: &[Entry]) -> Entry {
    let what = key as u32;
    let is_match = what & MATCH != 0;
    if is_match {
        let link = what & !MATCH;
        let offsets = known.matches.get(link as usize).map_or(offsets, |matched| matched.offsets);
        return Entry { offsets, link, is_match, is_last: false };
    }
    let link = known.first_entries[what as usize];
    let first = rule_entries[link as usize - known.num_root];
    if first.is_last {
        let [bytes, words] = offsets;
        let offsets = [bytes.wrapping_add(first.offsets[0]), words.wrapping_add(first.offsets[1])];
        return Entry { offsets, ..first };
    }
    Entry { offsets, link, is_match, is_last: false }
}

#[inline]
fn difference(end: [u64; 2], start: [u64; 2]) -> [u64; 2] {
    [end[0].wrapping_sub(start[0]), end[1].wrapping_sub(start[1])]
}

/// Number of keys below which a comparison sort is faster.
const LEAST_RADIX_KEYS: usize = 256;
/// Most bits of a digit: its counts stay in the first-level cache.
const MAX_DIGIT_BITS: u32 = 12;
/// Number of keys below which digits are shorter, so that there are no more counts than keys.
const MANY_KEYS: usize = 1 << MAX_DIGIT_BITS;
const FEW_DIGIT_BITS: u32 = 8;

/// Sorts keys by position, all below `num_positions`. The radix sort starts at the lowest digit and
/// takes a fifth of the time of a comparison sort.
fn sort_by_position(keys: &mut Vec<u64>, num_positions: usize) {
    if keys.len() < LEAST_RADIX_KEYS {
        return keys.sort_unstable();
    }
    let num_bits = usize::BITS - num_positions.leading_zeros();
    let max_bits = if keys.len() < MANY_KEYS { FEW_DIGIT_BITS } else { MAX_DIGIT_BITS };
    let num_digits = num_bits.div_ceil(max_bits);
    let digit_bits = num_bits.div_ceil(num_digits.max(1));
    let mut starts = vec![0u32; 1 + (1 << digit_bits)];
    let mut sorted = vec![0; keys.len()];
    for shift in (0..num_digits).map(|digit| 32 + digit * digit_bits) {
        let bucket = |key: u64| (key >> shift) as usize & ((1 << digit_bits) - 1);
        starts.fill(0);
        keys.iter().for_each(|&key| starts[bucket(key) + 1] += 1);
        (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
        for &key in keys.iter() {
            let start = &mut starts[bucket(key)];
            sorted[*start as usize] = key;
            *start += 1;
        }
        std::mem::swap(keys, &mut sorted);
    }
}

/// Merges two ascending sequences.
fn merged(keys: &[u64], others: impl ExactSizeIterator<Item = u64>) -> Vec<u64> {
    let mut merged = Vec::with_capacity(keys.len() + others.len());
    let mut taken = 0;
    for other in others {
        while let Some(&key) = keys.get(taken).filter(|&&key| key < other) {
            merged.push(key);
            taken += 1;
        }
        merged.push(other);
    }
    merged.extend_from_slice(&keys[taken..]);
    merged
}

/// Paths from documents to matches.
#[derive(Debug)]
pub(in crate::query) struct MatchPaths {
    /// Entries of the root, then those of the rules, by position.
    entries: Vec<Entry>,
    /// Document of each entry of the root.
    root_docs: Vec<DocId>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// Number of bytes and words from the start of the rule or document.
    offsets: [u64; 2],
    /// Index of the match, or of the first entry of the rule.
    link: u32,
    is_match: bool,
    /// Flag: the rule has no further entry.
    is_last: bool,
}

/// An occurrence in a document (or part of one) of the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct Spot {
    pub doc: DocId,
    /// First byte and first word, counted from the start of the document (or part).
    pub offsets: [u64; 2],
    pub match_idx: u32,
}

impl MatchPaths {
    /// Returns the occurrences in the documents of `filter` (all if there is none), by document and
    /// offset.
    pub fn walk(self, filter: Option<Arc<DocSet>>) -> Walk {
        let stack = Vec::with_capacity(32);
        let inner = None;
        Walk { paths: self, filter, next_root: 0, doc: DocId::FIRST, inner, stack }
    }
}

/// An iterator over occurrences.
#[derive(Debug)]
pub(in crate::query) struct Walk {
    paths: MatchPaths,
    filter: Option<Arc<DocSet>>,
    next_root: usize,
    doc: DocId,
    /// The next entry inside a rule, and the offsets of the rule.
    inner: Option<(u32, [u64; 2])>,
    /// Next entries and offsets of the rules around it.
    stack: Vec<(u32, [u64; 2])>,
}

impl Iterator for Walk {
    type Item = Spot;

    #[inline]
    fn next(&mut self) -> Option<Spot> {
        loop {
            let (entry, base) = match self.inner {
                Some((at, base)) => {
                    let entry = self.paths.entries[at as usize];
                    self.inner = if entry.is_last { self.stack.pop() } else { Some((at + 1, base)) };
                    (entry, base)
                }
                None => (self.next_root_entry()?, [0; 2]),
            };
            // Inside one document, so neither sum can exceed 64 bits.
            let offsets = [base[0] + entry.offsets[0], base[1] + entry.offsets[1]];
            if entry.is_match {
                return Some(Spot { doc: self.doc, offsets, match_idx: entry.link });
            }
            self.stack.extend(self.inner.replace((entry.link, offsets)));
        }
    }
}

impl Walk {
    fn next_root_entry(&mut self) -> Option<Entry> {
        loop {
            self.doc = *self.paths.root_docs.get(self.next_root)?;
            self.next_root += 1;
            if self.filter.as_ref().is_none_or(|docs| docs.contains(self.doc)) {
                return Some(self.paths.entries[self.next_root - 1]);
            }
        }
    }
}

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
    /// [`Error::Cancelled`].
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
        fn keys_are_sorted_by_position(
            positions in prop::collection::hash_set(0u64..1 << 31, 0..2_000),
        ) {
            let keyed = positions.iter().zip(0u64..).map(|(position, i)| position << 32 | i);
            let mut keys: Vec<u64> = keyed.collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            sort_by_position(&mut keys, 1 << 31);
            prop_assert_eq!(keys, expected);
        }
    }

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
