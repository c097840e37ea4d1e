//! How much each word tells about each document: term frequency times inverse document frequency.
//!
//! The score is tf * ln(D / df): tf is how often the word occurs in the document, df in how many
//! documents of the whole corpus it does, D the number of documents. Counts come from
//! [`term_vector`](super::term_vector()) and [`document_counts`](super::document_counts()).

use std::sync::Arc;

use crate::error::Result;

use super::{DocSelection, TermVectorChunk, TermVectorCursor, TermVectors, document_counts};

/// What cursors over the scores of a corpus share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tfidf {
    vectors: TermVectors,
    /// By row.
    doc_counts: Arc<[u64]>,
    /// ln(D / df) by row.
    weights: Arc<[f64]>,
}

impl Tfidf {
    /// Counts the documents of each word.
    ///
    /// # Errors
    /// As [`document_counts`].
    pub fn new(vectors: TermVectors) -> Result<Self> {
        let num_docs = vectors.vocabulary().corpus().num_docs();
        let doc_counts = document_counts(&vectors)?.into();
        Ok(Self::with_counts(vectors, num_docs, doc_counts))
    }

    /// [`new`](Self::new) where the documents of each word were counted before, by
    /// [`document_counts`], and of a corpus of `num_docs` documents, those that only keep the ids of
    /// dropped ones not counted.
    pub fn with_counts(vectors: TermVectors, num_docs: u64, doc_counts: Arc<[u64]>) -> Self {
        let num_docs = num_docs as f64;
        let weights = doc_counts.iter().map(|&count| (num_docs / count as f64).ln()).collect();
        Self { vectors, doc_counts, weights }
    }

    /// The term vectors that are scored.
    pub fn vectors(&self) -> &TermVectors {
        &self.vectors
    }

    /// Number of documents with the word of each row.
    pub fn doc_counts(&self) -> &[u64] {
        &self.doc_counts
    }

    /// The score of a word that occurs `count` times in a document.
    ///
    /// # Panics
    /// When `row` is not a row of the vocabulary.
    #[inline]
    pub fn score(&self, row: u32, count: u64) -> f64 {
        count as f64 * self.weights[row as usize]
    }

    /// Main memory of what cursors share, the vocabulary not counted.
    pub fn memory_bytes(&self) -> usize {
        16 * self.doc_counts.len() + self.vectors.memory_bytes()
    }

    /// A cursor over the scores of `docs`. With `top`, of each document only its so many words of
    /// the highest scores, these first, words of the same score in byte order.
    pub fn cursor(&self, docs: &DocSelection, top: Option<usize>) -> TfidfCursor {
        TfidfCursor { tfidf: self.clone(), terms: self.vectors.cursor(docs, None), top }
    }
}

/// The scores of selected documents, a chunk at a time.
#[derive(Debug)]
pub struct TfidfCursor {
    tfidf: Tfidf,
    terms: TermVectorCursor,
    top: Option<usize>,
}

impl TfidfCursor {
    /// The next documents, or `None` after the last.
    ///
    /// # Errors
    /// As [`TermVectorCursor::next_chunk`].
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

    /// Main memory of what this cursor alone holds.
    pub fn memory_bytes(&self) -> usize {
        self.terms.memory_bytes()
    }
}

/// Scores of documents that follow each other in the selection.
#[derive(Debug, Clone)]
pub struct TfidfChunk {
    terms: TermVectorChunk,
    scores: Vec<f64>,
}

impl TfidfChunk {
    /// Documents, words and counts.
    pub fn terms(&self) -> &TermVectorChunk {
        &self.terms
    }

    /// The score of each row of [`terms`](Self::terms).
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// Main memory held.
    pub fn memory_bytes(&self) -> usize {
        self.terms.memory_bytes() + 8 * self.scores.capacity()
    }
}

/// Orders the highest score first.
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
