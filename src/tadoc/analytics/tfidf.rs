//! TF-IDF scores: term frequency times inverse document frequency.
//!
//! The score is tf * ln(D / df): tf is the number of occurrences of the word in the document, df
//! the number of documents of the whole corpus that contain it, and D the number of documents.
//! Counts come from [`term_vector`](super::term_vector()) and
//! [`document_counts`](super::document_counts()).

use std::sync::Arc;

use crate::error::Result;

use super::{DocSelection, TermVectorChunk, TermVectorCursor, TermVectors, document_counts};

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
            Some(top) => self.terms.next_chunk_of(|chunk| {
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
