//! A segment that has only some words of its documents, as often as they stand in each.
//!
//! ```text
//! lists        storm  2:5  7:1        night  7:2
//! rules        storm² = storm storm   storm⁴ = storm² storm²   night² = night night
//! document 2   storm storm⁴                              5 = 1 + 4
//! document 7   storm night²
//! ```
//!
//! It answers questions about the number of words in documents as the whole segment does: how often
//! each stands in which documents, and with the true lengths how these rank. Places of words,
//! phrases and texts are not those of the documents, so nothing else may be asked.
//!
//! Memory: 4 bytes for each one bit in the count of a word in a document.

use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::segment::cache::SegmentCache;
use crate::segment::{Dag, Segment, SegmentFacts};
use crate::text::Dictionary;

/// Documents of one word of a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WordList {
    /// Numbers of the documents in the segment, ascending.
    pub docs: Vec<u32>,
    /// Occurrences of the word in each, 1 or more.
    pub counts: Vec<u32>,
}

/// A word and its documents, as a list of a file has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedWord {
    /// The documents that have it.
    Counted(WordList),
    /// Numbers of documents in the segment, ascending. Some of them have the word, and no others.
    Near(Vec<u32>),
}

impl ListedWord {
    /// Returns the documents that may have the word, ascending.
    pub fn docs(&self) -> &[u32] {
        match self {
            Self::Counted(list) => &list.docs,
            Self::Near(docs) => docs,
        }
    }

    /// Returns the occurrences of the word in document `doc`, as far as they are known.
    pub fn least_count(&self, doc: u32) -> u32 {
        match self {
            Self::Counted(list) => list.docs.binary_search(&doc).map_or(0, |at| list.counts[at]),
            Self::Near(_) => 0,
        }
    }
}

impl Segment {
    /// Creates a segment in which the documents of `facts` have the words of `words`, strictly
    /// ascending in bytes, each as often as its list says. See the module's description. It needs
    /// O(entries of the lists + documents) time.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for words that do not ascend and documents that do not exist,
    /// [`Error::Capacity`] for more entries than 32 bits number.
    pub fn from_lists(words: &[(&str, WordList)], facts: SegmentFacts) -> Result<Self> {
        let num_docs = facts.lengths.len();
        let dictionary = dictionary_from(words.iter().map(|(word, _)| *word))?;
        let num_terminals = dictionary.len();
        let (doc_offsets, num_elements) = doc_offsets(words, num_docs)?;
        let mut rules = Rules::new(num_terminals, num_elements);
        for (word, (_, list)) in (0..).zip(words) {
            rules.push_powers(word, list);
        }
        let mut root = vec![0u32; num_elements as usize];
        let mut next = doc_offsets.clone();
        for (word, (_, list)) in words.iter().enumerate() {
            for (&doc, &count) in list.docs.iter().zip(&list.counts) {
                for power in (0..u32::BITS).filter(|power| count >> power & 1 == 1) {
                    let at = &mut next[doc as usize];
                    root[*at as usize] = rules.element(word, power);
                    *at += 1;
                }
            }
        }
        let symbols = [root, rules.symbols].concat();
        let grammar = Grammar { num_terminals, rule_offsets: rules.offsets, symbols, doc_offsets };
        let dag = Dag::new(grammar, num_terminals, dictionary.lengths())?;
        let SegmentFacts { paths, lengths, continues } = facts;
        let cache = SegmentCache::from_lengths(lengths);
        Ok(Self { dictionary, dag, paths, continues, is_absent: false, cache })
    }
}

fn dictionary_from<'w>(words: impl ExactSizeIterator<Item = &'w str>) -> Result<Dictionary> {
    let num_words = words.len() as u32;
    let mut bytes = Vec::new();
    let mut offsets = vec![0u32];
    for word in words {
        bytes.extend_from_slice(word.as_bytes());
        offsets.push(u32::try_from(bytes.len()).map_err(|_| too_many("bytes of the words of a question"))?);
    }
    Dictionary::from_parts(num_words, offsets, bytes.into())
}

/// Returns the start of each document in the root, with the end of the last, and this end.
fn doc_offsets(words: &[(&str, WordList)], num_docs: usize) -> Result<(Vec<u32>, u32)> {
    let mut offsets = vec![0u32; num_docs + 1];
    for (_, list) in words {
        for (&doc, &count) in list.docs.iter().zip(&list.counts) {
            let len = offsets.get_mut(doc as usize + 1).ok_or(Error::OutOfRange {
                what: "document of a word",
                got: doc.into(),
                len: num_docs as u64,
            })?;
            *len += count.count_ones();
        }
    }
    let mut end = 0u32;
    for offset in &mut offsets {
        end = end.checked_add(*offset).ok_or_else(|| too_many("entries of the words of a question"))?;
        *offset = end;
    }
    Ok((offsets, end))
}

fn too_many(what: &'static str) -> Error {
    let limit = u64::from(u32::MAX);
    Error::Capacity { what, requested: limit + 1, limit, knob: "nothing (ask for fewer words)" }
}

/// The rules below the root: powers of two of each word, the highest first.
struct Rules {
    num_terminals: u32,
    /// Start of each rule behind the root, and the end of the last.
    offsets: Vec<u32>,
    symbols: Vec<u32>,
    /// The first rule of each word, and its highest power.
    by_word: Vec<(u32, u32)>,
}

impl Rules {
    /// Creates the rules of a grammar whose root has `root_len` elements.
    fn new(num_terminals: u32, root_len: u32) -> Self {
        Self { num_terminals, offsets: vec![0, root_len], symbols: Vec::new(), by_word: Vec::new() }
    }

    /// Appends the powers of `word` that `list` needs.
    fn push_powers(&mut self, word: u32, list: &WordList) {
        let most = list.counts.iter().copied().max().unwrap_or(1);
        let highest = most.checked_ilog2().unwrap_or(0);
        let first_rule = self.offsets.len() as u32 - 1;
        self.by_word.push((first_rule, highest));
        for power in (1..=highest).rev() {
            let half = self.element(word as usize, power - 1);
            self.symbols.extend([half, half]);
            let end = self.offsets.last().copied().unwrap_or_default();
            self.offsets.push(end + 2);
        }
    }

    /// Returns the element that is `word` in a row, 2^`power` times.
    fn element(&self, word: usize, power: u32) -> u32 {
        if power == 0 {
            return word as u32;
        }
        let (first_rule, highest) = self.by_word[word];
        self.num_terminals + first_rule + (highest - power)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::Corpus;
    use crate::segment::{DocumentLength, Paths};
    use crate::text::TokenizerProfile;

    proptest! {
        #[test]
        fn counts_of_words_are_those_of_the_lists(
            counts in proptest::collection::vec(proptest::collection::vec(0u32..40, 3), 0..30),
        ) {
            let list = |word: usize| {
                let found = (0..).zip(&counts).map(|(doc, counts)| (doc, counts[word]));
                let (docs, counts) = found.filter(|&(_, count)| count > 0).unzip();
                WordList { docs, counts }
            };
            let words = [("a", list(0)), ("b", list(1)), ("ü", list(2))];
            let mut paths = Paths::default();
            (0..counts.len()).for_each(|doc| paths.push(&doc.to_string()));
            let lengths = vec![DocumentLength { len_bytes: 9, num_words: 7 }; counts.len()];
            let segment = Segment::from_lists(&words, SegmentFacts { paths, lengths, continues: false }).unwrap();
            let corpus = Corpus::new(TokenizerProfile::Word, vec![Arc::new(segment)]);
            for (word, list) in words {
                let found = corpus.term_count(word).unwrap();
                let found: (Vec<u32>, Vec<u32>) =
                    found.iter().map(|row| (row.doc_id as u32, row.count as u32)).unzip();
                prop_assert_eq!(found, (list.docs, list.counts));
            }
            let segment = &corpus.segments()[0];
            for doc in segment.dag.grammar().docs() {
                prop_assert_eq!(segment.doc_length_or_derive(doc).num_words, 7);
            }
        }
    }

    #[test]
    fn documents_that_do_not_exist_are_refused() {
        let list = WordList { docs: vec![3], counts: vec![1] };
        let error = Segment::from_lists(&[("a", list)], SegmentFacts::default()).unwrap_err();
        assert!(error.to_string().contains("document of a word"), "{error}");
    }
}
