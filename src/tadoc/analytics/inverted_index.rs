//! Inverted index: for each word, the documents that contain it.
//!
//! The index is built for each segment separately ([`postings`](super::postings)): from the grammar, or from the words
//! of each document if the segment keeps them ([`DocWords`](crate::segment::DocWords)). Rows join the lists of the
//! segments by word when they are read. A document that is cut over segments is listed once.

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Canceller, Result};
use crate::segment::{Corpus, Segment};

use super::postings::Postings;
use super::segment_terms::check_number;
use super::{SegmentDocuments, Traversal, Vocabulary, choose_traversal};

/// Builds the inverted index of `corpus`. Rows are in byte order of the words.
///
/// # Errors
/// The errors of [`Vocabulary::new`] and [`InvertedIndex::with_vocabulary`].
pub fn inverted_index(corpus: &Corpus, traversal: Traversal) -> Result<InvertedIndex> {
    InvertedIndex::with_vocabulary(Arc::new(Vocabulary::new(corpus)?), traversal)
}

/// Words and the documents that contain them, as rows.
#[derive(Debug, Clone)]
pub struct InvertedIndex {
    vocabulary: Arc<Vocabulary>,
    /// Lists by segment.
    postings: Vec<Arc<Postings>>,
}

impl InvertedIndex {
    /// Builds the index of the words of `vocabulary`; rows are those of `vocabulary`. Every segment
    /// uses `traversal`; with [`Traversal::Auto`] each segment uses its best traversal.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) if the lists of a segment have more than 2^29
    /// documents in total.
    pub fn with_vocabulary(vocabulary: Arc<Vocabulary>, traversal: Traversal) -> Result<Self> {
        Self::cancellable(vocabulary, traversal, &|| false)
    }

    /// Variant of [`with_vocabulary`](Self::with_vocabulary) whose caller may leave: `is_cancelled`
    /// is asked now and then, by any thread.
    ///
    /// # Errors
    /// The errors of [`with_vocabulary`](Self::with_vocabulary), and
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn cancellable(
        vocabulary: Arc<Vocabulary>,
        traversal: Traversal,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self> {
        let canceller = Canceller::new(is_cancelled);
        let build = |(segment, first_ids): (&Arc<Segment>, Vec<u32>)| {
            canceller.check()?;
            if traversal != Traversal::Auto {
                return Postings::new(segment, traversal, &first_ids, canceller).map(Arc::new);
            }
            if let Some(doc_words) = segment.doc_words_or_derive_if_worth() {
                let num_words = segment.dag.num_words() as usize;
                let documents = SegmentDocuments::from_doc_words(doc_words, num_words);
                return documents.into_postings(&first_ids).map(Arc::new);
            }
            segment.note_docs_read(segment.dag.grammar().num_docs() as u64);
            let (way, _) = choose_traversal(segment.as_ref());
            Postings::new(segment, way, &first_ids, canceller).map(Arc::new)
        };
        let segments = vocabulary.corpus().segments().iter().zip(vocabulary.first_ids());
        let postings = segments.map(build).collect::<Result<_>>()?;
        Ok(Self { vocabulary, postings })
    }

    /// Creates the index of a corpus from those of each of its segments.
    ///
    /// # Errors
    /// The errors of [`TermVectors::from_segments`](super::TermVectors::from_segments), and
    /// [`Error::Capacity`](crate::Error::Capacity) as for
    /// [`with_vocabulary`](Self::with_vocabulary).
    pub fn from_segments(vocabulary: Arc<Vocabulary>, parts: Vec<SegmentDocuments>) -> Result<Self> {
        let segments = vocabulary.corpus().segments();
        check_number(parts.len(), segments.len())?;
        let first_ids = vocabulary.first_ids();
        let parts = parts.into_par_iter().zip(segments).zip(&first_ids);
        let postings = parts.map(|((part, segment), first_ids)| {
            part.check(segment)?;
            part.into_postings(first_ids).map(Arc::new)
        });
        let postings = postings.collect::<Result<_>>()?;
        Ok(Self::with_postings(vocabulary, postings))
    }

    /// Creates the index from the lists of each segment.
    fn with_postings(vocabulary: Arc<Vocabulary>, postings: Vec<Arc<Postings>>) -> Self {
        Self { vocabulary, postings }
    }

    /// Returns the vocabulary that the rows belong to.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the number of rows, which are the distinct words.
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Returns the memory of the lists in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.postings.iter().map(|postings| postings.memory_bytes()).sum()
    }

    /// Returns true if there is no word.
    pub fn is_empty(&self) -> bool {
        self.vocabulary.is_empty()
    }

    /// Returns the word of `row`. Words ascend in byte order.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn word(&self, row: usize) -> &str {
        self.vocabulary.word(row)
    }

    /// Returns the number of documents that contain the word of `row`, which is 1 or more.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn num_docs(&self, row: usize) -> usize {
        if let Some((_, docs)) = self.only_part(row) {
            return docs.len();
        }
        let mut last = None;
        self.parts(row).fold(0, |sum, (first_doc_id, docs)| {
            let is_continued = is_continued(last, first_doc_id, docs);
            last = docs.last().map(|&doc| first_doc_id + u64::from(doc)).or(last);
            sum + docs.len() - usize::from(is_continued)
        })
    }

    /// Returns the ids of the documents that contain the word of `row`, ascending, each once.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn doc_ids(&self, row: usize) -> impl Iterator<Item = u64> + '_ {
        let mut last = None;
        self.parts(row).flat_map(move |(first_doc_id, docs)| {
            let is_continued = is_continued(last, first_doc_id, docs);
            last = docs.last().map(|&doc| first_doc_id + u64::from(doc)).or(last);
            docs[usize::from(is_continued)..].iter().map(move |&doc| first_doc_id + u64::from(doc))
        })
    }

    /// Appends the [`doc_ids`](Self::doc_ids) of `row` to `output`.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn append_doc_ids(&self, row: usize, output: &mut Vec<i64>) {
        let mut append = |first_doc_id: u64, docs: &[u32]| {
            output.extend(docs.iter().map(|&doc| (first_doc_id + u64::from(doc)) as i64));
        };
        if let Some((first_doc_id, docs)) = self.only_part(row) {
            return append(first_doc_id, docs);
        }
        let mut last = None;
        for (first_doc_id, docs) in self.parts(row) {
            let is_continued = is_continued(last, first_doc_id, docs);
            last = docs.last().map(|&doc| first_doc_id + u64::from(doc)).or(last);
            append(first_doc_id, &docs[usize::from(is_continued)..]);
        }
    }

    /// Returns the traversal of each segment, never [`Traversal::Auto`].
    pub fn traversals(&self) -> impl Iterator<Item = Traversal> + '_ {
        self.postings.iter().map(|postings| postings.traversal())
    }

    /// Returns the only list of `row` if there is one segment.
    #[inline]
    fn only_part(&self, row: usize) -> Option<(u64, &[u32])> {
        let vocabulary = &self.vocabulary;
        let part = || (vocabulary.corpus().first_doc_id(0), self.postings[0].docs(row as u32));
        vocabulary.is_one_segment().then(part)
    }

    /// Returns the lists of `row` by segment: the first document id of the segment, and the
    /// documents in it.
    fn parts(&self, row: usize) -> impl Iterator<Item = (u64, &[u32])> + '_ {
        self.vocabulary.ids(row).map(|(segment_idx, word)| {
            let first_doc_id = self.vocabulary.corpus().first_doc_id(segment_idx);
            (first_doc_id, self.postings[segment_idx].docs(word))
        })
    }
}

/// Returns true if `docs` begins with the document that the earlier segments ended with.
fn is_continued(last: Option<u64>, first_doc_id: u64, docs: &[u32]) -> bool {
    last.is_some() && docs.first().map(|&doc| first_doc_id + u64::from(doc)) == last
}
