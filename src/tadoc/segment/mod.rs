//! Compressed corpus as a value in memory.
//!
//! A [`Corpus`] is one or more immutable [`Segment`]s, each with its own dictionary and grammar. Word ids are valid in
//! one segment only. Results of segments are merged by word. [`Dag`] is the grammar of a segment as flat arrays.
//!
//! ```
//! use tadoc::Corpus;
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//! use tadoc::format::OpenLimits;
//!
//! # fn main() -> tadoc::Result<()> {
//! let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
//! builder.push_document("a.txt", b"to be or not to be")?;
//! let (file, _report) = builder.finish(None)?;
//! let (_footer, corpus) = Corpus::from_bytes("memory", &file, &OpenLimits::default())?;
//!
//! let segment = &corpus.segments()[0];
//! assert_eq!(segment.paths.get(0), Some("a.txt"));
//! let be = segment.dictionary.word_id(b"be").unwrap();
//! assert_eq!(segment.weights_or_derive()[be.index()], 2);
//! # Ok(())
//! # }
//! ```
//!
//! Paths and lengths of documents need no grammar. Document ids count over consecutive segments, in which documents
//! may be cut.
//!
//! # Counted segments
//!
//! [`Segment::from_lists`] makes a segment that has only some words of its documents, as often as they stand in each.
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

mod cache;
pub(crate) mod dag;

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::ids::DocId;
use crate::segment::cache::SegmentCache;
use crate::text::{Dictionary, TokenizerProfile};

pub(crate) use dag::{Cursor, ELEMENT_TEXT_SLACK, ElementTexts, Len, Next, Place, TEXT_SLACK, TextRuns};
pub use dag::{Dag, DocWords, EdgeWords, Inverse, Measure, Occurrence, PrefixSums};

/// One part of a corpus: dictionary, grammar and document table, ready for queries. These never
/// change. Arrays that are derived from them while the segment is used are kept beside them.
#[derive(Debug)]
pub struct Segment {
    /// Words and separators.
    pub dictionary: Dictionary,
    /// Rules as a graph.
    pub dag: Dag,
    /// Path of each document that begins here, and of the one continued from the previous segment.
    pub paths: Paths,
    /// True if the first document continues the last document of the previous segment.
    pub continues: bool,
    is_absent: bool,
    cache: SegmentCache,
}

impl Segment {
    /// Creates a segment of parts that belong together. Nothing is derived yet.
    pub fn new(dictionary: Dictionary, dag: Dag, paths: Paths, continues: bool) -> Self {
        let cache = SegmentCache::default();
        Self { dictionary, dag, paths, continues, is_absent: false, cache }
    }

    /// Creates a segment that holds the place of one that is not opened. It has `num_docs`
    /// documents without words and paths, so the ids of the documents behind them count on.
    /// Searches find nothing in it.
    ///
    /// # Errors
    /// Same as [`Dag::new`].
    pub fn absent(num_docs: usize, continues: bool) -> Result<Self> {
        let rule_offsets = vec![0, 0];
        let doc_offsets = vec![0; num_docs + 1];
        let grammar = Grammar { num_terminals: 0, rule_offsets, symbols: Vec::new(), doc_offsets };
        let dag = Dag::new(grammar, 0, [].into_iter())?;
        let (dictionary, paths, cache) = Default::default();
        Ok(Self { dictionary, dag, paths, continues, is_absent: true, cache })
    }

    /// Returns true if it holds the place of a segment that is [not opened](Self::absent).
    pub fn is_absent(&self) -> bool {
        self.is_absent
    }

    /// Creates a segment of words and their counts (`counts`, by word id), without documents. It
    /// serves only [`word_count`](crate::analytics::word_count), which needs nothing else.
    ///
    /// # Errors
    /// Same as [`Dag::new`].
    pub(crate) fn from_words(dictionary: Dictionary, counts: &[u64]) -> Result<Self> {
        let dag = Dag::from_words(counts.len() as u32, dictionary.lengths())?;
        let mut weights = counts.to_vec();
        weights.resize(dag.num_elements(), 0);
        let cache = SegmentCache::from_weights(weights);
        let paths = Paths::default();
        Ok(Self { dictionary, dag, paths, continues: false, is_absent: false, cache })
    }
}

/// Paths of the documents of a segment, packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paths {
    bytes: String,
    ends: Vec<u64>,
}

impl Paths {
    /// Creates the paths from `bytes`, cut at `ends`. The ends ascend to the length of `bytes`.
    pub(crate) fn from_parts(bytes: String, ends: Vec<u64>) -> Self {
        Self { bytes, ends }
    }

    /// Appends the path of the next document.
    pub fn push(&mut self, path: &str) {
        self.bytes.push_str(path);
        self.ends.push(self.bytes.len() as u64);
    }

    /// Returns the path of the document at `index`, if it exists.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)? as usize;
        let start = index.checked_sub(1).map_or(0, |d| self.ends[d] as usize);
        self.bytes.get(start..end)
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there is no path.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the length of all paths in bytes.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + 8 * self.ends.len()
    }
}

/// Paths of the documents of a segment, one for equal neighbours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathRuns {
    /// The path of each run.
    pub paths: Paths,
    /// Number of documents of each run.
    pub num_docs: Vec<u64>,
}

impl PathRuns {
    /// Returns the runs in order: path and number of documents.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let num_docs = self.num_docs.iter().enumerate();
        num_docs.filter_map(|(run, &num_docs)| Some((self.paths.get(run)?, num_docs)))
    }
}

/// A read-only corpus: segments in order, with the document ids of each.
#[derive(Debug, Clone)]
pub struct Corpus {
    segments: Vec<Arc<Segment>>,
    doc_ids: DocIds,
    profile: TokenizerProfile,
}

impl Corpus {
    /// Joins `segments` of one tokenizer profile in order. Document ids count from 0. A segment
    /// that `continues` begins with the id of the last document before it, if there is one.
    pub fn new(profile: TokenizerProfile, segments: Vec<Arc<Segment>>) -> Self {
        let num_docs = |segment: &Arc<Segment>| segment.dag.grammar().num_docs() as u64;
        let doc_ids = DocIds::new(segments.iter().map(|s| (s.continues, num_docs(s))));
        Self { segments, doc_ids, profile }
    }

    /// Returns the segments in order.
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// Returns the id of the first document (or continued part) of segment `segment_idx`.
    pub fn first_doc_id(&self, segment_idx: usize) -> u64 {
        self.doc_ids.first_for(segment_idx)
    }

    /// Returns the id in the corpus of document `doc` of segment `segment_idx`.
    #[inline]
    pub fn doc_id(&self, segment_idx: usize, doc: DocId) -> u64 {
        self.doc_ids.first_for(segment_idx) + u64::from(doc)
    }

    /// Returns the number of documents.
    pub fn num_docs(&self) -> u64 {
        self.doc_ids.num_docs()
    }

    /// Checks that document `doc_id` exists.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if it does not.
    pub fn check_doc_id(&self, doc_id: u64) -> Result<()> {
        if doc_id < self.num_docs() {
            return Ok(());
        }
        Err(Error::OutOfRange { what: "doc_id", got: doc_id, len: self.num_docs() })
    }

    /// Returns the profile by which the text was tokenized.
    pub fn profile(&self) -> TokenizerProfile {
        self.profile
    }

    /// Returns the id in segment `segment_idx` of document `doc_id`, if a part of it lies there.
    #[inline]
    pub(crate) fn doc_in(&self, segment_idx: usize, doc_id: u64) -> Option<DocId> {
        let index = self.doc_ids.index_in(segment_idx, doc_id)?;
        let num_docs = self.segments[segment_idx].dag.grammar().num_docs();
        (index < num_docs).then(|| DocId::from_index(index))
    }

    /// Returns the path of document `doc_id`, if it exists and its first segment is open.
    pub fn path(&self, doc_id: u64) -> Option<&str> {
        let (segment_idx, doc) = self.doc_parts(doc_id).next()?;
        self.segments[segment_idx].paths.get(doc.index())
    }

    /// Returns the parts of document `doc_id` in order: segment index and id inside the segment.
    /// There are several parts if the document was cut at a block border, and none if the id does
    /// not exist.
    pub fn doc_parts(&self, doc_id: u64) -> impl Iterator<Item = (usize, DocId)> + '_ {
        self.doc_ids
            .segments_with(doc_id)
            .filter_map(move |segment_idx| Some((segment_idx, self.doc_in(segment_idx, doc_id)?)))
    }
}

/// Length of a document, or of its part in a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DocumentLength {
    /// Number of bytes, including implied blanks.
    pub len_bytes: u64,
    /// Number of words.
    pub num_words: u64,
}

/// Facts about the documents of one segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Path of each document, including a continued one.
    pub paths: Paths,
    /// Length of each document's part in the segment.
    pub lengths: Vec<DocumentLength>,
    /// True if the first document continues the last document of the previous segment.
    pub continues: bool,
}

/// Facts about the documents of consecutive segments. Document ids count from 0, as in a
/// [`Corpus`] of these segments.
#[derive(Debug, Clone, Default)]
pub struct DocumentFacts {
    segments: Vec<SegmentFacts>,
    doc_ids: DocIds,
}

impl DocumentFacts {
    /// Joins `segments` in order.
    pub fn new(segments: Vec<SegmentFacts>) -> Self {
        let doc_ids = DocIds::new(segments.iter().map(|s| (s.continues, s.lengths.len() as u64)));
        Self { segments, doc_ids }
    }

    /// Returns the number of documents.
    pub fn num_docs(&self) -> u64 {
        self.doc_ids.num_docs()
    }

    /// Returns the facts of each segment, in order.
    pub fn segments(&self) -> &[SegmentFacts] {
        &self.segments
    }

    /// Returns the path of document `doc_id`, if it exists.
    pub fn path(&self, doc_id: u64) -> Option<&str> {
        let (segment, index) = self.parts(doc_id).next()?;
        segment.paths.get(index)
    }

    /// Returns the length of document `doc_id`, if it exists. The parts of a document that was cut
    /// between segments are added up.
    pub fn length(&self, doc_id: u64) -> Option<DocumentLength> {
        let parts = self.parts(doc_id).map(|(segment, index)| segment.lengths[index]);
        // The footer of a file guarantees that the sums of all its documents fit.
        parts.reduce(|sum, part| DocumentLength {
            len_bytes: sum.len_bytes.saturating_add(part.len_bytes),
            num_words: sum.num_words.saturating_add(part.num_words),
        })
    }

    /// Returns the parts of document `doc_id` in order: the segment and the position in it.
    fn parts(&self, doc_id: u64) -> impl Iterator<Item = (&SegmentFacts, usize)> + '_ {
        self.doc_ids.segments_with(doc_id).filter_map(move |segment_idx| {
            let segment = &self.segments[segment_idx];
            let index = self.doc_ids.index_in(segment_idx, doc_id)?;
            (index < segment.lengths.len()).then_some((segment, index))
        })
    }

    /// Returns the number of bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        let for_segment = |segment: &SegmentFacts| {
            let lengths_bytes = size_of::<DocumentLength>() * segment.lengths.len();
            size_of::<SegmentFacts>() + segment.paths.memory_bytes() + lengths_bytes
        };
        self.segments.iter().map(for_segment).sum()
    }
}

/// Ids of the documents of consecutive segments, counted from 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocIds {
    /// Id of the first document (or continued part) of each segment.
    firsts: Vec<u64>,
    num_docs: u64,
}

impl DocIds {
    /// Numbers the documents of `segments` in order. Each segment has a flag that is true if its
    /// first document continues the last one before it, if there is one, and its number of
    /// documents.
    pub(crate) fn new(segments: impl ExactSizeIterator<Item = (bool, u64)>) -> Self {
        let mut firsts = Vec::with_capacity(segments.len());
        let mut num_docs = 0u64;
        for (continues, docs_here) in segments {
            // A segment without documents gets the id of the last document too. A later segment may
            // continue that document, and first ids must not fall, because they are searched.
            let is_at_last = num_docs > 0 && (continues || docs_here == 0);
            let first = num_docs - u64::from(is_at_last);
            firsts.push(first);
            num_docs = num_docs.max(first + docs_here);
        }
        Self { firsts, num_docs }
    }

    /// Returns the id of the first document (or continued part) of segment `segment_idx`.
    #[inline]
    pub(crate) fn first_for(&self, segment_idx: usize) -> u64 {
        self.firsts[segment_idx]
    }

    /// Returns the number of documents.
    #[inline]
    pub(crate) fn num_docs(&self) -> u64 {
        self.num_docs
    }

    /// Returns the position that document `doc_id` has in segment `segment_idx` if a part of it
    /// lies there. Returns `None` if it lies before. The caller compares the position with the
    /// number of documents there.
    #[inline]
    fn index_in(&self, segment_idx: usize, doc_id: u64) -> Option<usize> {
        Some(doc_id.checked_sub(self.firsts[segment_idx])? as usize)
    }

    /// Returns the segments that may hold parts of document `doc_id`. Each other segment holds
    /// none.
    #[inline]
    fn segments_with(&self, doc_id: u64) -> Range<usize> {
        let last = self.firsts.partition_point(|&first| first <= doc_id);
        let begins = self.firsts[..last].partition_point(|&first| first < doc_id);
        begins.saturating_sub(1)..last
    }
}

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

    use crate::Corpus;
    use crate::text::TokenizerProfile;

    use super::*;

    fn segment(continues: bool, docs: &[(&str, u64)]) -> SegmentFacts {
        let mut facts = SegmentFacts { continues, ..SegmentFacts::default() };
        for &(path, len_bytes) in docs {
            facts.paths.push(path);
            facts.lengths.push(DocumentLength { len_bytes, num_words: len_bytes / 2 });
        }
        facts
    }

    #[test]
    fn parts_of_a_cut_document_are_added_up() {
        let facts = DocumentFacts::new(vec![
            segment(false, &[("a", 10), ("b", 20)]),
            segment(true, &[("b", 100)]),
            segment(false, &[]),
            segment(true, &[("b", 6), ("c", 0)]),
            segment(false, &[("d", 2)]),
        ]);
        assert_eq!(facts.num_docs(), 4);
        let told = |doc_id| {
            let DocumentLength { len_bytes, num_words } = facts.length(doc_id)?;
            Some((facts.path(doc_id)?, len_bytes, num_words))
        };
        let expected = [("a", 10, 5), ("b", 126, 63), ("c", 0, 0), ("d", 2, 1)];
        assert_eq!((0..5).map_while(told).collect::<Vec<_>>(), expected);
        assert_eq!((facts.path(4), facts.length(4)), (None, None));
        assert!(facts.memory_bytes() > 6 * 16);
        assert_eq!(DocumentFacts::default().path(0), None);
    }

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
