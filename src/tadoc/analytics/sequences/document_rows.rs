//! Sequences of documents as rows; the rows of one document follow those of the document before.

use std::ops::Range;

use super::rows::Sequences;

/// Sequences by document with their counts, as rows in the order of the documents and, inside a
/// document, of the words.
#[derive(Debug, Clone)]
pub struct DocumentSequenceCounts {
    pub(super) doc_ids: Vec<u64>,
    /// Ends of the rows: document `at` has the rows `ends[at]..ends[at + 1]`.
    pub(super) ends: Vec<usize>,
    pub(super) sequences: Sequences,
    pub(super) counts: Vec<u64>,
}

impl DocumentSequenceCounts {
    /// Returns the documents of the chunk.
    pub fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// Returns the rows of the document at index `at` of [`doc_ids`](Self::doc_ids).
    ///
    /// # Panics
    /// If `at` is not below the number of documents.
    pub fn rows_of(&self, at: usize) -> Range<usize> {
        self.ends[at]..self.ends[at + 1]
    }

    /// Returns the document of `row`.
    pub(super) fn doc_id_of(&self, row: usize) -> u64 {
        self.doc_ids[self.ends.partition_point(|&end| end <= row) - 1]
    }

    /// Returns the sequences of the rows.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// Returns the number of occurrences of the sequence of each row in the row's document, 1 or
    /// more.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the memory of the rows in bytes, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.sequences.memory_bytes()
            + size_of_val(self.counts.as_slice())
            + size_of_val(self.doc_ids.as_slice())
            + size_of_val(self.ends.as_slice())
    }
}
