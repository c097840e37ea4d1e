//! The compressed corpus as a value.
//!
//! A [`Corpus`] is one or more immutable [`Segment`]s, each with its own dictionary and grammar. Word
//! ids are per segment; results merge by word. [`Dag`] is a segment's grammar as flat arrays.

pub(crate) mod dag;

pub use dag::{
    Cursor, Dag, DocWords, EdgeWords, Inverse, Measure, Next, Occurrence, PrefixSums, TEXT_SLACK,
    TextRuns,
};

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::text::{Dictionary, TokenizerProfile};

/// One immutable part of a corpus: dictionary, grammar and document table, ready for queries.
#[derive(Debug)]
pub struct Segment {
    /// Words and separators.
    pub dictionary: Dictionary,
    /// Rules and what is derived from them.
    pub dag: Dag,
    /// Path of each document that begins here, and of the one continued from the segment before.
    pub paths: Paths,
    /// Whether the first document is the rest of the last document of the segment before.
    pub continues: bool,
}

impl Segment {
    /// Words alone: there is no document, and nothing is known of a word of `dictionary` but how often it occurs
    /// (`counts`, by word id). For [`word_count`](crate::analytics::word_count), which asks for no more.
    ///
    /// # Errors
    /// As [`Dag::new`].
    pub fn of_words(dictionary: Dictionary, counts: &[u64]) -> Result<Self> {
        let dag = Dag::of_words(counts, dictionary.lengths())?;
        Ok(Self { dictionary, dag, paths: Paths::default(), continues: false })
    }
}

/// Paths of the documents of a segment, packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paths {
    bytes: String,
    ends: Vec<u64>,
}

impl Paths {
    /// Takes `bytes` cut at `ends`, which ascend to its length.
    pub(crate) fn from_parts(bytes: String, ends: Vec<u64>) -> Self {
        Self { bytes, ends }
    }

    /// Appends the path of the next document.
    pub fn push(&mut self, path: &str) {
        self.bytes.push_str(path);
        self.ends.push(self.bytes.len() as u64);
    }

    /// Path of document `doc` (index inside the segment), if there is one.
    pub fn get(&self, doc: usize) -> Option<&str> {
        let end = *self.ends.get(doc)? as usize;
        let start = doc.checked_sub(1).map_or(0, |d| self.ends[d] as usize);
        self.bytes.get(start..end)
    }

    /// Number of paths.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no path.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Length of all paths in bytes.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + 8 * self.ends.len()
    }
}

/// A read-only corpus: segments in order, and which document ids each of them holds.
#[derive(Debug, Clone)]
pub struct Corpus {
    segments: Vec<Arc<Segment>>,
    first_doc_ids: Vec<u64>,
    num_docs: u64,
    profile: TokenizerProfile,
}

impl Corpus {
    /// Joins `segments` (of one tokenizer profile) in order. Document ids count from 0; a
    /// segment that `continues` begins with the id of the last document before it, if there is
    /// one.
    pub fn new(profile: TokenizerProfile, segments: Vec<Arc<Segment>>) -> Self {
        let mut first_doc_ids = Vec::with_capacity(segments.len());
        let mut num_docs = 0u64;
        for segment in &segments {
            let docs_here = segment.dag.grammar().num_docs() as u64;
            // One without documents stands at the last document too: a later segment may continue
            // that, and first ids must not fall (they are searched).
            let is_at_last = num_docs > 0 && (segment.continues || docs_here == 0);
            let first = num_docs - u64::from(is_at_last);
            first_doc_ids.push(first);
            num_docs = num_docs.max(first + docs_here);
        }
        Self { segments, first_doc_ids, num_docs, profile }
    }

    /// Segments in order.
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// Document id of the first document (or continued part) of segment `segment_idx`.
    pub fn first_doc_id(&self, segment_idx: usize) -> u64 {
        self.first_doc_ids[segment_idx]
    }

    /// Number of documents.
    pub fn num_docs(&self) -> u64 {
        self.num_docs
    }

    /// Checks that there is a document `doc_id`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn check_doc_id(&self, doc_id: u64) -> Result<()> {
        if doc_id < self.num_docs {
            return Ok(());
        }
        Err(Error::OutOfRange { what: "doc_id", got: doc_id, len: self.num_docs })
    }

    /// How the text was cut into tokens.
    pub fn profile(&self) -> TokenizerProfile {
        self.profile
    }

    /// The parts of document `doc_id`, in order: segment index and document index inside it.
    /// More than one where the document was cut at a block border; none where there is no such id.
    pub fn doc_parts(&self, doc_id: u64) -> impl Iterator<Item = (usize, usize)> + '_ {
        let last = self.first_doc_ids.partition_point(|&first| first <= doc_id);
        let begins = self.first_doc_ids[..last].partition_point(|&first| first < doc_id);
        (begins.saturating_sub(1)..last).filter_map(move |segment_idx| {
            let doc = doc_id - self.first_doc_ids[segment_idx];
            let num_docs = self.segments[segment_idx].dag.grammar().num_docs() as u64;
            (doc < num_docs).then_some((segment_idx, doc as usize))
        })
    }
}
