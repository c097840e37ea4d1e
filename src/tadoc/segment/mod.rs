//! Compressed corpus as a value in memory.
//!
//! A [`Corpus`] is one or more immutable [`Segment`]s, each with its own dictionary and grammar.
//! Word ids are valid in one segment only. Results of segments are merged by word. [`Dag`] is the
//! grammar of a segment as flat arrays.
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

mod cache;
mod counted;
pub(crate) mod dag;

pub use counted::{ListedWord, WordList};
pub(crate) use dag::{Cursor, ELEMENT_TEXT_SLACK, ElementTexts, Len, Next, Place, TEXT_SLACK, TextRuns};
pub use dag::{Dag, DocWords, EdgeWords, Inverse, Measure, Occurrence, PrefixSums};

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::ids::DocId;
use crate::segment::cache::SegmentCache;
use crate::text::{Dictionary, TokenizerProfile};

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
    pub(crate) fn index_in(&self, segment_idx: usize, doc_id: u64) -> Option<usize> {
        Some(doc_id.checked_sub(self.firsts[segment_idx])? as usize)
    }

    /// Returns the segments that may hold parts of document `doc_id`. Each other segment holds
    /// none.
    #[inline]
    pub(crate) fn segments_with(&self, doc_id: u64) -> Range<usize> {
        let last = self.firsts.partition_point(|&first| first <= doc_id);
        let begins = self.firsts[..last].partition_point(|&first| first < doc_id);
        begins.saturating_sub(1)..last
    }
}

#[cfg(test)]
mod tests {
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
}
