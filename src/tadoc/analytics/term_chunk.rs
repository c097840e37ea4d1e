//! Term vectors of a few documents as a sparse matrix by rows (CSR).
//!
//! Words are rows of the [`Vocabulary`](super::Vocabulary), ascending. So a chunk is the
//! document-term matrix of its documents, and chunks joined in order are the matrix of all of them.

use std::cmp::Reverse;
use std::ops::Range;

use crate::error::{Error, Result};

use super::word_rows::SegmentRows;

/// Term vectors of consecutive documents of the selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermVectorChunk {
    doc_ids: Vec<u64>,
    offsets: Vec<u64>,
    rows: Vec<u32>,
    counts: Vec<u64>,
}

impl Default for TermVectorChunk {
    /// Creates a chunk without documents.
    fn default() -> Self {
        Self { doc_ids: Vec::new(), offsets: vec![0], rows: Vec::new(), counts: Vec::new() }
    }
}

impl TermVectorChunk {
    /// Returns the number of documents, including those without words.
    pub fn num_docs(&self) -> usize {
        self.doc_ids.len()
    }

    /// Returns the number of rows, one for each word of each document.
    pub fn num_rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns the ids of the documents, ascending.
    pub fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// Returns the start of the rows of each document, and the end of the last (`indptr` of a CSR
    /// matrix).
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Returns the words, as rows of the vocabulary (`indices` of a CSR matrix).
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Returns the number of occurrences of each of [`rows`](Self::rows) in its document (`data` of
    /// a CSR matrix).
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the indexes of the rows of the document at `index`.
    ///
    /// # Panics
    /// If `index` is not below [`num_docs`](Self::num_docs).
    pub fn range(&self, index: usize) -> Range<usize> {
        self.offsets[index] as usize..self.offsets[index + 1] as usize
    }

    /// Returns document ids, words as rows of the vocabulary, and counts.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32, u64)> + '_ {
        self.doc_ids.iter().enumerate().flat_map(move |(index, &doc_id)| {
            self.range(index).map(move |at| (doc_id, self.rows[at], self.counts[at]))
        })
    }

    /// Returns the memory of the chunk in bytes.
    pub fn memory_bytes(&self) -> usize {
        8 * (self.doc_ids.capacity() + self.offsets.capacity() + self.counts.capacity())
            + 4 * self.rows.capacity()
    }

    /// Reserves room for `num_rows` more rows.
    pub(super) fn reserve(&mut self, num_rows: usize) {
        self.rows.reserve(num_rows);
        self.counts.reserve(num_rows);
    }

    /// Appends the documents of `next`.
    pub(super) fn append(&mut self, next: &Self) {
        let base = self.num_rows() as u64;
        self.doc_ids.extend_from_slice(&next.doc_ids);
        self.offsets.extend(next.offsets[1..].iter().map(|offset| base + offset));
        self.rows.extend_from_slice(&next.rows);
        self.counts.extend_from_slice(&next.counts);
    }

    /// Appends the words of a document, or of a part of it.
    pub(super) fn extend<C: Copy + Into<u64>>(
        &mut self,
        rows: SegmentRows<'_>,
        words: &[u32],
        counts: &[C],
    ) {
        let start = self.rows.len();
        rows.append(words, &mut self.rows);
        self.counts.extend(counts.iter().map(|&count| count.into()));
        if !rows.are_ascending() {
            self.join_from(start);
        }
    }

    /// Sorts the rows from `start` on, and adds up the counts of words that fold to the same text.
    fn join_from(&mut self, start: usize) {
        let counts = self.counts.drain(start..);
        let mut counted: Vec<(u32, u64)> = self.rows.drain(start..).zip(counts).collect();
        counted.sort_unstable_by_key(|(row, _)| *row);
        for same in counted.chunk_by(|a, b| a.0 == b.0) {
            self.rows.push(same[0].0);
            // A segment has fewer than 2^64 words, so a sum of their counts fits 64 bits.
            self.counts.push(same.iter().map(|(_, count)| count).sum());
        }
    }

    /// Appends the rows of the parts of a document, which may be in any order.
    pub(super) fn extend_joined(&mut self, parts: &mut [(u32, u64)]) -> Result<()> {
        parts.sort_unstable();
        for same in parts.chunk_by(|a, b| a.0 == b.0) {
            let count = same.iter().try_fold(0u64, |sum, part| sum.checked_add(part.1));
            self.rows.push(same[0].0);
            self.counts.push(count.ok_or_else(too_large)?);
        }
        Ok(())
    }

    /// Ends document `doc_id` behind the current rows.
    pub(super) fn end_document(&mut self, doc_id: u64) {
        self.doc_ids.push(doc_id);
        self.offsets.push(self.rows.len() as u64);
    }

    /// Keeps the `top` most frequent words of the last document, or all words without `top`.
    pub(super) fn keep_frequent(&mut self, top: Option<usize>) {
        if let Some(top) = top {
            self.keep_top(top, |count, _| Reverse(count));
        }
    }

    /// Keeps the `top` rows of the last document with the least keys, in the order of keys, then of
    /// rows. `key` gets the count and the row.
    pub(super) fn keep_top<K: Ord>(&mut self, top: usize, key: impl Fn(u64, u32) -> K) {
        let Some(last) = self.num_docs().checked_sub(1) else { return };
        let range = self.range(last);
        let start = range.start;
        let mut ranked: Vec<(K, u32, u64)> = range
            .map(|at| (key(self.counts[at], self.rows[at]), self.rows[at], self.counts[at]))
            .collect();
        let by_rank = |a: &(K, u32, u64), b: &(K, u32, u64)| (&a.0, a.1).cmp(&(&b.0, b.1));
        if top > 0 && top < ranked.len() {
            ranked.select_nth_unstable_by(top - 1, by_rank);
        }
        ranked.truncate(top);
        ranked.sort_unstable_by(by_rank);
        self.rows.truncate(start);
        self.counts.truncate(start);
        self.rows.extend(ranked.iter().map(|ranked| ranked.1));
        self.counts.extend(ranked.iter().map(|ranked| ranked.2));
        self.offsets[last + 1] = self.rows.len() as u64;
    }
}

fn too_large() -> Error {
    Error::count_overflow("the count of a word in a document")
}
