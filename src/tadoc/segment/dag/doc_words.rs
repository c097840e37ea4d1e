//! Words of each document, with their counts.
//!
//! ```text
//! offsets   0        3     4                  start of the words of documents 0, 1, ..
//! words     2 7 19 | 7   | 1 2 ..             ascending inside a document
//! counts    1 4 1  | 2   | 6 1 ..
//! ```
//!
//! Without this table, counting a word in one document takes as many steps through the inverse
//! grammar as the word has occurrences, tens of thousands for words like "the". Here a search among
//! the words of the document suffices. Term vectors and inverted indexes are not counted again.
//!
//! Positions of a word in a document are found by reading it, except rules without the word. Each
//! rule has a signature of 64 bits, which excludes most words that the rule does not contain.
//!
//! The table is built from the words of the text, in O(N) on all cores, after a quarter of them was read without it. It
//! needs 8 bytes for each word of each document. On the corpora of `benches/README.md` these are 0.04 to 1.9 times as
//! many as elements. The table is not built if there would be more than [`MAX_PAIRS_PER_ELEMENT`], or if documents
//! repeat each other so often that their expansion takes more than [`MAX_STEPS_PER_ELEMENT`]. Then questions are
//! answered from the rules.
//!
//! # First and last words
//!
//! First and last word of each rule's expansion.
//!
//! Phrase search compares them before it descends into a rule. This excludes almost every candidate. They are built by
//! one backward sweep, children before parents, in O(G). They need 8 bytes for each rule.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ids::{DocId, RuleId, WordId};
use crate::segment::Dag;

use super::expansion::{Expansion, MAX_WORDS, RuleTexts, num_words_at};
use super::map_chunks;

/// Greatest number of pairs of a document and a distinct word, for each element of the grammar.
const MAX_PAIRS_PER_ELEMENT: usize = 2;
/// Number of pairs that is always allowed.
const FEW_PAIRS: usize = 1 << 16;
const FEW_STEPS: u64 = 1 << 20;
/// Greatest number of steps to expand all documents, for each element of the grammar.
const MAX_STEPS_PER_ELEMENT: u64 = 64;
/// Number of words after which a piece of the work ends, with the current document.
const PIECE_WORDS: u64 = 1 << 19;

/// Words and counts of each document.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DocWords {
    offsets: Vec<u32>,
    words: Vec<u32>,
    counts: Vec<u32>,
    /// Signature of each rule: the bits of all words in its expansion. None for lists.
    signatures: Vec<u64>,
}

/// Returns the signature bit of `word`.
#[inline]
fn bit(word: u32) -> u64 {
    1 << (word.wrapping_mul(0x9E37_79B1) >> 26)
}

impl DocWords {
    /// Builds the table from the words of the text. Returns `None` if this would take too much time
    /// or memory.
    pub(in crate::segment) fn new(dag: &Dag) -> Option<Self> {
        let words = Self::counted(dag, max_pairs(dag), true)?;
        Some(Self { signatures: signatures(dag), ..words })
    }

    /// Variant of [`new`](Self::new) without signatures of rules, in which the words of a document stand in any order,
    /// for lists of words. It is `None` if there are more than `max_pairs` pairs of a document and a distinct word.
    pub(crate) fn unordered(dag: &Dag, max_pairs: usize) -> Option<Self> {
        Self::counted(dag, max_pairs, false)
    }

    fn counted(dag: &Dag, max_pairs: usize, is_ordered: bool) -> Option<Self> {
        if !is_short_walk(dag) || max_pairs > u32::MAX as usize {
            return None;
        }
        let texts = RuleTexts::new(dag);
        let num_pairs = AtomicUsize::new(0);
        let parts = map_chunks(&mut pieces(dag), 1, |_, docs| {
            let mut part = Self::default();
            let mut counter = Counter::new(dag, &texts);
            for doc in DocId::range(docs[0].clone()) {
                counter.count(dag.doc_range(doc), is_ordered, &mut part);
                part.offsets.push(part.words.len() as u32);
                if num_pairs.load(Ordering::Relaxed) + part.words.len() > max_pairs {
                    return None;
                }
            }
            let before = num_pairs.fetch_add(part.words.len(), Ordering::Relaxed);
            (before + part.words.len() <= max_pairs).then_some(part)
        });
        let parts: Vec<Self> = parts.into_iter().collect::<Option<_>>()?;
        Some(Self::joined(dag.grammar().num_docs(), &parts))
    }

    fn joined(num_docs: usize, parts: &[Self]) -> Self {
        let num_pairs = parts.iter().map(|part| part.words.len()).sum();
        let mut joined = Self {
            offsets: Vec::with_capacity(num_docs + 1),
            words: Vec::with_capacity(num_pairs),
            counts: Vec::with_capacity(num_pairs),
            signatures: Vec::new(),
        };
        joined.offsets.push(0);
        for part in parts {
            let before = joined.words.len() as u32;
            joined.offsets.extend(part.offsets.iter().map(|offset| before + offset));
            joined.words.extend_from_slice(&part.words);
            joined.counts.extend_from_slice(&part.counts);
        }
        joined
    }

    /// Returns the ids of the documents.
    pub fn docs(&self) -> impl Iterator<Item = DocId> + use<> {
        DocId::range(0..self.offsets.len() - 1)
    }

    /// Returns the words of document `doc`, ascending, and their counts.
    ///
    /// # Panics
    /// If the segment has no document `doc`.
    #[inline]
    pub fn for_doc(&self, doc: DocId) -> (&[u32], &[u32]) {
        let range = self.offsets[doc.index()] as usize..self.offsets[doc.index() + 1] as usize;
        (&self.words[range.clone()], &self.counts[range])
    }

    /// Returns the number of occurrences of `word` in document `doc`.
    ///
    /// # Panics
    /// If the segment has no document `doc`.
    #[inline]
    pub fn count(&self, doc: DocId, word: WordId) -> u64 {
        let (words, counts) = self.for_doc(doc);
        words.binary_search(&word.into()).map_or(0, |at| u64::from(counts[at]))
    }

    /// Returns the union of the signature bits of `words`, for `has_none_of`.
    pub fn mask(words: impl IntoIterator<Item = u32>) -> u64 {
        words.into_iter().fold(0, |mask, word| mask | bit(word))
    }

    /// Returns true if rule `rule_id` contains none of the words of `mask`. False means that it
    /// may contain one.
    ///
    /// # Panics
    /// If the segment has no such rule, or the words were made without signatures.
    #[inline]
    pub(crate) fn has_none_of(&self, mask: u64, rule_id: RuleId) -> bool {
        self.signatures[rule_id.index()] & mask == 0
    }

    /// Returns the start of the words of each document with the end of the last, and the words.
    pub fn lists(&self) -> (&[u32], &[u32]) {
        (&self.offsets, &self.words)
    }

    /// Returns the number of bytes of main memory in use.
    pub(in crate::segment) fn memory_bytes(&self) -> usize {
        4 * (self.offsets.capacity() + self.words.capacity() + self.counts.capacity()) + 8 * self.signatures.capacity()
    }

    /// Returns the greatest number of bytes of main memory that the words of documents can need.
    pub(in crate::segment) fn max_memory_bytes(dag: &Dag) -> usize {
        let num_words = usize::try_from(dag.len_words(dag.num_terminals())).unwrap_or(usize::MAX);
        let grammar = dag.grammar();
        8 * (max_pairs(dag).min(num_words) + grammar.num_rules()) + 4 * (grammar.num_docs() + 1)
    }

    /// Returns false if making the words of documents would take too long, or 32 bits cannot number
    /// them.
    pub(in crate::segment) fn can_be_made(dag: &Dag) -> bool {
        is_short_walk(dag) && max_pairs(dag) <= u32::MAX as usize
    }
}

fn max_pairs(dag: &Dag) -> usize {
    (dag.grammar().symbols.len() * MAX_PAIRS_PER_ELEMENT).max(FEW_PAIRS)
}

/// Returns true if all documents can be expanded in few steps, counts fit into 32 bits, and no
/// element of the root is too large for the array.
fn is_short_walk(dag: &Dag) -> bool {
    let grammar = dag.grammar();
    // Number of elements visited below each rule. Rules come before the rules that they contain.
    let mut steps = vec![0u64; grammar.num_rules()];
    for rule_id in grammar.rule_ids().rev() {
        let rule = grammar.rule(rule_id);
        let from_children = rule.iter().map(|&element| match dag.rule_of(element) {
            Some(child) if dag.len_words(element) > 0 => steps[child.index()],
            _ => 0,
        });
        steps[rule_id.index()] = from_children.fold(rule.len() as u64, u64::saturating_add);
    }
    let max_steps = (grammar.symbols.len() as u64 * MAX_STEPS_PER_ELEMENT).max(FEW_STEPS);
    steps[0] <= max_steps
        && dag.len_words(dag.num_terminals()) <= u64::from(u32::MAX)
        && grammar.root().iter().all(|&element| dag.len_words(element) <= MAX_WORDS)
}

/// Returns the signatures of all rules, computed children before parents.
fn signatures(dag: &Dag) -> Vec<u64> {
    let grammar = dag.grammar();
    let mut signatures = vec![0u64; grammar.num_rules()];
    for rule_id in grammar.rule_ids().skip(1).rev() {
        let for_element = |&element: &u32| match dag.rule_of(element) {
            Some(child) => signatures[child.index()],
            None if element < dag.num_words() => bit(element),
            None => 0,
        };
        signatures[rule_id.index()] = grammar.rule(rule_id).iter().map(for_element).fold(0, |a, b| a | b);
    }
    signatures
}

/// Divides the documents into pieces with about the same number of words.
fn pieces(dag: &Dag) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut num_words = 0u64;
    for doc in dag.grammar().docs() {
        num_words = num_words.saturating_add(num_words_at(dag, dag.doc_range(doc)));
        if num_words >= PIECE_WORDS {
            pieces.push(start..doc.index() + 1);
            (start, num_words) = (doc.index() + 1, 0);
        }
    }
    pieces.push(start..dag.grammar().num_docs());
    pieces
}

/// Counter of the words of one document after another.
struct Counter<'a> {
    dag: &'a Dag,
    texts: &'a RuleTexts,
    expansion: Expansion,
    /// Count of each word, 0 between documents.
    counts: Vec<u32>,
    /// Words with a count in the current document.
    met: Vec<u32>,
}

impl<'a> Counter<'a> {
    fn new(dag: &'a Dag, texts: &'a RuleTexts) -> Self {
        let counts = vec![0; dag.num_words() as usize];
        Self { dag, texts, expansion: Expansion::default(), counts, met: Vec::new() }
    }

    /// Appends the words at `positions` of the root, which are a document, with their counts, ascending if
    /// `is_ordered`.
    fn count(&mut self, positions: Range<usize>, is_ordered: bool, part: &mut DocWords) {
        let mut start = positions.start;
        while start < positions.end {
            let end = end_of_run(self.dag, start..positions.end);
            for &word in self.expansion.expand(self.dag, self.texts, start..end) {
                let count = &mut self.counts[word as usize];
                if *count == 0 {
                    self.met.push(word);
                }
                *count += 1;
            }
            start = end;
        }
        if is_ordered {
            self.met.sort_unstable();
        }
        let counts = &mut self.counts;
        part.counts.extend(self.met.iter().map(|&word| std::mem::take(&mut counts[word as usize])));
        part.words.append(&mut self.met);
    }
}

/// Returns the end of a run of elements from the start of `positions` that has few enough words for
/// the array. The run has at least one element.
fn end_of_run(dag: &Dag, positions: Range<usize>) -> usize {
    let symbols = &dag.grammar().symbols[positions.clone()];
    let mut num_words = 0;
    let fits = |&&element: &&u32| {
        num_words += dag.len_words(element);
        num_words <= MAX_WORDS
    };
    positions.start + symbols.iter().take_while(fits).count().max(1)
}

/// Mark of an expansion without words.
const NO_WORD: u32 = u32::MAX;

/// First and last word of each rule.
#[derive(Debug)]
pub struct EdgeWords {
    first: Vec<u32>,
    last: Vec<u32>,
}

impl EdgeWords {
    /// Finds the first and last word of each rule of `dag`, O(G).
    pub fn new(dag: &Dag) -> Self {
        let num_rules = dag.grammar.num_rules();
        let mut edges = Self { first: vec![NO_WORD; num_rules], last: vec![NO_WORD; num_rules] };
        for rule_id in dag.grammar.rule_ids().rev() {
            let rule = dag.grammar.rule(rule_id);
            let has_word = |&&element: &&u32| dag.len_words(element) > 0;
            if let Some(&element) = rule.iter().find(has_word) {
                edges.first[rule_id.index()] = edges.first_for(dag, element);
            }
            if let Some(&element) = rule.iter().rfind(has_word) {
                edges.last[rule_id.index()] = edges.last_for(dag, element);
            }
        }
        edges
    }

    /// Returns the first word of `element`. If its expansion has no word, the result is not a word
    /// id.
    #[inline]
    pub(crate) fn first_for(&self, dag: &Dag, element: u32) -> u32 {
        dag.rule_of(element).map_or(element, |rule_id| self.first[rule_id.index()])
    }

    /// Returns the last word of `element`. If its expansion has no word, the result is not a word
    /// id.
    #[inline]
    pub(crate) fn last_for(&self, dag: &Dag, element: u32) -> u32 {
        dag.rule_of(element).map_or(element, |rule_id| self.last[rule_id.index()])
    }

    pub(in crate::segment) fn memory_bytes(&self) -> usize {
        8 * self.first.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::dag_for;
    use super::*;

    /// Returns the words of each document with counts, computed from its text.
    fn slow(dag: &Dag) -> Vec<Vec<(u32, u32)>> {
        let documents = dag.grammar().docs().map(|doc| {
            let mut pending: Vec<u32> = dag.grammar().root()[dag.doc_range(doc)].to_vec();
            let mut counts = std::collections::BTreeMap::new();
            while let Some(element) = pending.pop() {
                match dag.rule_of(element) {
                    Some(rule_id) => pending.extend(dag.grammar().rule(rule_id)),
                    None if element < dag.num_words() => *counts.entry(element).or_insert(0) += 1,
                    None => {}
                }
            }
            counts.into_iter().collect()
        });
        documents.collect()
    }

    fn check(dag: &Dag) {
        let doc_words = DocWords::new(dag).unwrap();
        let unordered = DocWords::unordered(dag, max_pairs(dag)).unwrap();
        for (doc, expected) in dag.grammar().docs().zip(slow(dag)) {
            let (words, counts) = unordered.for_doc(doc);
            let mut found: Vec<_> = words.iter().copied().zip(counts.iter().copied()).collect();
            found.sort_unstable();
            assert_eq!(found, expected);
            let (words, counts) = doc_words.for_doc(doc);
            let found: Vec<_> = words.iter().copied().zip(counts.iter().copied()).collect();
            assert_eq!(found, expected);
            for word in 0..dag.num_words() {
                let count = expected.iter().find(|(other, _)| *other == word).map_or(0, |at| at.1);
                assert_eq!(doc_words.count(doc, word.into()), u64::from(count));
            }
        }
        assert!(doc_words.docs().eq(dag.grammar().docs()));
        assert!(doc_words.memory_bytes() <= DocWords::max_memory_bytes(dag));
        for rule_id in dag.grammar().rule_ids().skip(1) {
            let mut below = dag.grammar().rule(rule_id).to_vec();
            while let Some(element) = below.pop() {
                below.extend(dag.rule_of(element).map_or(&[][..], |rule| dag.grammar().rule(rule)));
                let mask = DocWords::mask([element]);
                assert!(element >= dag.num_words() || !doc_words.has_none_of(mask, rule_id));
            }
            assert!(doc_words.has_none_of(0, rule_id));
        }
    }

    proptest! {
        #[test]
        fn words_of_documents_are_those_of_their_texts(
            root in prop::collection::vec(0u32..9, 0..40),
            cuts in prop::collection::vec(0usize..41, 0..4),
        ) {
            // Words 0 to 2, separators 3 and 4 (empty), rules 6 to 8 behind the root.
            let used: Vec<u32> = [6, 7, 8].into_iter().chain(root.into_iter().filter(|&e| e != 5)).collect();
            let end = |cut: usize| cut.min(used.len()) as u32;
            let mut offsets: Vec<u32> = cuts.into_iter().map(end).collect();
            offsets.extend([0, used.len() as u32]);
            offsets.sort_unstable();
            let rules = vec![used, vec![7, 4, 0, 8], vec![8, 1, 8], vec![2, 3]];
            check(&dag_for(rules, &offsets, 3, &[1, 2, 3, 1, 0]));
        }
    }

    #[test]
    fn there_are_none_where_documents_repeat_too_much() {
        // Rule r is twice rule r + 1: 2^20 words in 42 elements.
        let mut rules: Vec<Vec<u32>> = (0..20).map(|r| vec![r + 2, r + 2]).collect();
        rules.push(vec![0]);
        let dag = dag_for(rules, &[0, 2], 1, &[1]);
        assert_eq!(DocWords::new(&dag), None);
        // 10,000 documents of the same 9 words, 10,009 elements.
        let rules = vec![vec![10; 10_000], (0..9).collect()];
        let offsets: Vec<u32> = (0..=10_000).collect();
        let dag = dag_for(rules, &offsets, 9, &[1; 9]);
        assert_eq!(DocWords::new(&dag), None);
    }

    #[test]
    fn pieces_hold_all_documents_once() {
        let words = 3 * PIECE_WORDS / 2;
        let num_doublings = words.ilog2();
        let mut rules = vec![(0..4).map(|_| 2).collect::<Vec<u32>>()];
        rules.extend((1..num_doublings).map(|r| vec![r + 2, r + 2]));
        rules.push(vec![0, 0]);
        let dag = dag_for(rules, &[0, 1, 1, 2, 4], 1, &[1]);
        let pieces = pieces(&dag);
        assert!(pieces.len() > 1);
        assert!(pieces.into_iter().flatten().eq(0..4));
    }

    #[test]
    fn skips_separators_at_the_edges() {
        // Words 0, 1; separator 2; rules 3 (root), 4 = ", a [6] ,", 5 = ", ,", 6 = "b ,".
        let dag = dag_for(vec![vec![4, 5, 6], vec![2, 0, 6, 2], vec![2, 2], vec![1, 2]], &[0, 3], 2, &[1, 1, 1]);
        let edges = EdgeWords::new(&dag);
        let of = |element| (edges.first_for(&dag, element), edges.last_for(&dag, element));
        assert_eq!([of(3), of(4), of(6), of(1)], [(0, 1), (0, 1), (1, 1), (1, 1)]);
        assert_eq!(of(5), (NO_WORD, NO_WORD));
    }
}
