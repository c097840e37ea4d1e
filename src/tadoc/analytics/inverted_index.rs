//! For each word the documents that hold it.
//!
//! The index is built for each segment on its own ([`postings`](super::postings)), from its grammar or from the
//! words of each document where the segment keeps them ([`DocWords`](crate::segment::DocWords)); rows join the
//! lists of the segments by word when they are read. A document that was cut over segments is
//! listed once.

use std::sync::Arc;

use crate::error::Result;
use crate::segment::{Corpus, Segment};

use super::postings::Postings;
use super::{SegmentDocuments, Traversal, Vocabulary, choose_traversal};

/// For each word of `corpus`, in byte order, the documents that hold it.
///
/// # Errors
/// As [`Vocabulary::new`] and [`InvertedIndex::with_vocabulary`].
pub fn inverted_index(corpus: &Corpus, traversal: Traversal) -> Result<InvertedIndex> {
    InvertedIndex::with_vocabulary(Arc::new(Vocabulary::new(corpus)?), traversal)
}

/// Words and the documents that hold them, as rows.
#[derive(Debug, Clone)]
pub struct InvertedIndex {
    vocabulary: Arc<Vocabulary>,
    /// By segment.
    postings: Vec<Arc<Postings>>,
}

impl InvertedIndex {
    /// The index of the words of `vocabulary`, with its rows. `traversal` is taken for every
    /// segment, or the best one for each.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) for more than 2^29 documents in the lists of a
    /// segment's words.
    pub fn with_vocabulary(vocabulary: Arc<Vocabulary>, traversal: Traversal) -> Result<Self> {
        let build = |(segment, first_ids): (&Arc<Segment>, Vec<u32>)| {
            if traversal != Traversal::Auto {
                return Postings::new(segment, traversal, &first_ids).map(Arc::new);
            }
            if let Some(doc_words) = segment.dag.doc_words_if_worth() {
                let num_words = segment.dag.num_words() as usize;
                let documents = SegmentDocuments::of_doc_words(doc_words, num_words);
                return documents.into_postings(&first_ids).map(Arc::new);
            }
            segment.dag.note_docs_read(segment.dag.grammar().num_docs() as u64);
            let (way, _) = choose_traversal(segment.as_ref());
            Postings::new(segment, way, &first_ids).map(Arc::new)
        };
        let segments = vocabulary.corpus().segments().iter().zip(vocabulary.first_ids());
        let postings = segments.map(build).collect::<Result<_>>()?;
        Ok(Self { vocabulary, postings })
    }

    /// The index with these lists, one set for each segment.
    pub(super) fn with_postings(vocabulary: Arc<Vocabulary>, postings: Vec<Arc<Postings>>) -> Self {
        Self { vocabulary, postings }
    }

    /// The rows' words.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Number of rows, the distinct words.
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Main memory of the lists.
    pub fn memory_bytes(&self) -> usize {
        self.postings.iter().map(|postings| postings.memory_bytes()).sum()
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.vocabulary.is_empty()
    }

    /// The word of `row`, ascending in byte order.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
    pub fn word(&self, row: usize) -> &str {
        self.vocabulary.word(row)
    }

    /// Number of documents that hold the word of `row`, 1 or more.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
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

    /// The documents that hold the word of `row`, ascending, each once.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
    pub fn doc_ids(&self, row: usize) -> impl Iterator<Item = u64> + '_ {
        let mut last = None;
        self.parts(row).flat_map(move |(first_doc_id, docs)| {
            let is_continued = is_continued(last, first_doc_id, docs);
            last = docs.last().map(|&doc| first_doc_id + u64::from(doc)).or(last);
            docs[usize::from(is_continued)..].iter().map(move |&doc| first_doc_id + u64::from(doc))
        })
    }

    /// Appends [`doc_ids`](Self::doc_ids) of `row` to `output`.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
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

    /// The way that was taken for each segment, never [`Traversal::Auto`].
    pub fn traversals(&self) -> impl Iterator<Item = Traversal> + '_ {
        self.postings.iter().map(|postings| postings.traversal())
    }

    /// [`parts`](Self::parts) where there is one segment.
    #[inline]
    fn only_part(&self, row: usize) -> Option<(u64, &[u32])> {
        let vocabulary = &self.vocabulary;
        let part = || (vocabulary.corpus().first_doc_id(0), self.postings[0].docs(row as u32));
        vocabulary.is_one_segment().then(part)
    }

    /// The lists of `row` by segment: the segment's first document id, and its documents.
    fn parts(&self, row: usize) -> impl Iterator<Item = (u64, &[u32])> + '_ {
        self.vocabulary.ids(row).map(|(segment_idx, word)| {
            let first_doc_id = self.vocabulary.corpus().first_doc_id(segment_idx);
            (first_doc_id, self.postings[segment_idx].docs(word))
        })
    }
}

/// Whether `docs` begins with the document that the segments before ended with.
fn is_continued(last: Option<u64>, first_doc_id: u64, docs: &[u32]) -> bool {
    last.is_some() && docs.first().map(|&doc| first_doc_id + u64::from(doc)) == last
}
