//! TF-IDF scores: term frequency times inverse document frequency.
//!
//! The score is tf * ln(D / df): tf is the number of occurrences of the word in the document, df
//! the number of documents of the whole corpus that contain it, and D the number of documents.
//! Counts come from [`term_vector`](super::term_vector()) and
//! [`document_counts`](super::document_counts()).
//!
//! # Document frequencies
//!
//! Document frequencies: the number of documents that contain each word, without listing them.
//!
//! The sets of documents flow down as for an inverted index ([`postings`](super::postings)), 64
//! documents in one sweep. They are counted instead of kept, which takes 4 bytes for each word and
//! thread. A document that is cut over segments is left out of the sweeps; its term vector is
//! counted instead. If term vectors exist already, from a device or kept with the segment, their
//! entries are counted.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::Result;
use crate::ids::DocId;
use crate::interrupt::Canceller;
use crate::segment::Corpus;

use super::postings::{DOCS_PER_TASK, Masks};
use super::{DocSelection, TermVectorChunk, TermVectorCursor, TermVectors};

/// Data that the cursors over the scores of a corpus share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tfidf {
    vectors: TermVectors,
    /// Number of documents by row.
    doc_counts: Arc<[u64]>,
    /// Weight ln(D / df) by row.
    weights: Arc<[f64]>,
}

impl Tfidf {
    /// Counts the documents of each word and prepares the scores of `vectors`.
    ///
    /// # Errors
    /// The errors of [`document_counts`].
    pub fn new(vectors: TermVectors) -> Result<Self> {
        let num_docs = vectors.vocabulary().corpus().num_docs();
        let doc_counts = document_counts(&vectors)?.into();
        Ok(Self::with_counts(vectors, num_docs, doc_counts))
    }

    /// Prepares the scores of `vectors` from `doc_counts`, which [`document_counts`] returned
    /// earlier, and `num_docs`, the number of documents of the corpus. Documents that were dropped
    /// and only keep their ids do not count.
    pub fn with_counts(vectors: TermVectors, num_docs: u64, doc_counts: Arc<[u64]>) -> Self {
        let num_docs = num_docs as f64;
        let weights = doc_counts.iter().map(|&count| (num_docs / count as f64).ln()).collect();
        Self { vectors, doc_counts, weights }
    }

    /// Returns the term vectors that are scored.
    pub fn vectors(&self) -> &TermVectors {
        &self.vectors
    }

    /// Returns the number of documents that contain the word of each row.
    pub fn doc_counts(&self) -> &[u64] {
        &self.doc_counts
    }

    /// Returns the score of the word of `row` in a document where it occurs `count` times.
    ///
    /// # Panics
    /// If `row` is not a row of the vocabulary.
    #[inline]
    pub fn score(&self, row: u32, count: u64) -> f64 {
        count as f64 * self.weights[row as usize]
    }

    /// Returns the memory of the shared data in bytes, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        16 * self.doc_counts.len() + self.vectors.memory_bytes()
    }

    /// Returns a cursor over the scores of `docs`. With `top`, each document has only the `top`
    /// words with the highest scores, in descending order of score; words with the same score are
    /// in byte order.
    pub fn cursor(&self, docs: &DocSelection, top: Option<usize>) -> TfidfCursor {
        TfidfCursor { tfidf: self.clone(), terms: self.vectors.cursor(docs, None), top }
    }
}

/// Cursor over the scores of selected documents, one chunk at a time.
#[derive(Debug)]
pub struct TfidfCursor {
    tfidf: Tfidf,
    terms: TermVectorCursor,
    top: Option<usize>,
}

impl TfidfCursor {
    /// Returns the scores of the next documents, or `None` after the last.
    ///
    /// # Errors
    /// The errors of [`TermVectorCursor::next_chunk`].
    pub fn next_chunk(&mut self) -> Result<Option<TfidfChunk>> {
        let tfidf = &self.tfidf;
        let rank = |row: u32, count: u64| Descending(tfidf.score(row, count));
        let terms = match self.top {
            None => self.terms.next_chunk()?,
            Some(top) => self.terms.next_chunk_for(|chunk| {
                chunk.keep_top(top, |count, row| rank(row, count));
            })?,
        };
        Ok(terms.map(|terms| {
            let counted = terms.rows().iter().zip(terms.counts());
            let scores = counted.map(|(&row, &count)| tfidf.score(row, count)).collect();
            TfidfChunk { terms, scores }
        }))
    }

    /// Returns the memory of this cursor in bytes, without the shared data.
    pub fn memory_bytes(&self) -> usize {
        self.terms.memory_bytes()
    }
}

/// Scores of consecutive documents of the selection.
#[derive(Debug, Clone)]
pub struct TfidfChunk {
    terms: TermVectorChunk,
    scores: Vec<f64>,
}

impl TfidfChunk {
    /// Returns the documents, words and counts.
    pub fn terms(&self) -> &TermVectorChunk {
        &self.terms
    }

    /// Returns the score of each row of [`terms`](Self::terms).
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// Returns the memory of the chunk in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.terms.memory_bytes() + 8 * self.scores.capacity()
    }
}

/// Score that orders the highest first.
#[derive(Debug, Clone, Copy)]
struct Descending(f64);

impl Ord for Descending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.0.total_cmp(&self.0)
    }
}

impl PartialOrd for Descending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Descending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Descending {}

/// Returns the number of documents that contain each word, by row of the vocabulary; 1 or more.
///
/// # Errors
/// The errors of [`TermVectorCursor::next_chunk`](super::TermVectorCursor::next_chunk).
pub fn document_counts(vectors: &TermVectors) -> Result<Vec<u64>> {
    document_counts_until(vectors, &|| false)
}

/// Variant of [`document_counts`] whose caller may leave. `is_cancelled` is asked now and then, by
/// any thread.
///
/// # Errors
/// The errors of [`document_counts`], and [`Error::Cancelled`](crate::Error::Cancelled).
pub fn document_counts_until(vectors: &TermVectors, is_cancelled: &(dyn Fn() -> bool + Sync)) -> Result<Vec<u64>> {
    let canceller = Canceller::new(is_cancelled);
    canceller.check()?;
    let vocabulary = vectors.vocabulary();
    let corpus = vocabulary.corpus();
    let by_segment: Vec<Vec<u32>> = vocabulary
        .first_ids()
        .into_par_iter()
        .enumerate()
        .map(|(segment_idx, first_ids)| segment_counts(vectors, segment_idx, &first_ids, canceller))
        .collect::<Result<_>>()?;
    let count = |row: usize| {
        let ids = vocabulary.ids(row);
        ids.map(|(segment_idx, word)| u64::from(by_segment[segment_idx][word as usize])).sum()
    };
    let mut counts: Vec<u64> = (0..vocabulary.len()).map(count).collect();
    let mut cursor = vectors.cursor(&DocSelection::list(cut_docs(corpus))?, None);
    while let Some(chunk) = cursor.next_chunk()? {
        canceller.check()?;
        chunk.rows().iter().for_each(|&row| counts[row as usize] += 1);
    }
    Ok(counts)
}

/// Returns the documents that lie in more than one segment, ascending.
fn cut_docs(corpus: &Corpus) -> Vec<u64> {
    let first_ids = (0..corpus.segments().len()).map(|segment_idx| corpus.first_doc_id(segment_idx));
    let mut ids: Vec<u64> = first_ids.filter(|&doc_id| is_cut(corpus, doc_id)).collect();
    ids.dedup();
    ids
}

fn is_cut(corpus: &Corpus, doc_id: u64) -> bool {
    corpus.doc_parts(doc_id).nth(1).is_some()
}

/// Returns the documents of a segment that lie in no other segment, as indexes inside the segment.
fn whole_docs(corpus: &Corpus, segment_idx: usize) -> Range<usize> {
    let num_docs = corpus.segments()[segment_idx].dag.grammar().num_docs();
    let is_cut = |doc| is_cut(corpus, corpus.doc_id(segment_idx, doc));
    let mut docs = DocId::range(0..num_docs);
    let start = usize::from(docs.next().is_some_and(is_cut));
    let end = num_docs - usize::from(docs.next_back().is_some_and(is_cut));
    start..end
}

/// Returns the number of whole documents that contain each word of a segment. Folded words are
/// counted with the first of the words that fold to the same text.
fn segment_counts(
    vectors: &TermVectors,
    segment_idx: usize,
    first_ids: &[u32],
    canceller: Canceller<'_>,
) -> Result<Vec<u32>> {
    let corpus = vectors.vocabulary().corpus();
    let dag = &corpus.segments()[segment_idx].dag;
    let docs = whole_docs(corpus, segment_idx);
    let num_words = dag.num_words() as usize;
    let num_tasks = docs.len().div_ceil(DOCS_PER_TASK);
    let num_pieces = rayon::current_num_threads().min(num_tasks).max(1);
    let none = || vec![0u32; num_words];
    let count_piece = |piece: usize| {
        let [start, end] =
            [piece, piece + 1].map(|piece| docs.end.min(docs.start + num_tasks * piece / num_pieces * DOCS_PER_TASK));
        if let Some(terms) = vectors.counted(segment_idx) {
            canceller.check()?;
            return Ok(terms.doc_counts(start..end, first_ids, num_words));
        }
        let mut masks = Masks::new(dag, first_ids);
        let mut counts = none();
        for first in (start..end).step_by(DOCS_PER_TASK) {
            canceller.check()?;
            masks.count_docs(first..end.min(first + DOCS_PER_TASK), &mut counts);
        }
        Ok(counts)
    };
    (0..num_pieces).into_par_iter().map(count_piece).try_reduce(none, |mut sums, counts| {
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        Ok(sums)
    })
}
