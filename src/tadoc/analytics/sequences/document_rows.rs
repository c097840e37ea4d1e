//! Sequences of documents as rows: those of one document behind those of the one before.

use std::ops::Range;

use super::rows::Sequences;

/// Sequences and their counts by document, as rows in the order of the documents and, inside a
/// document, of the words.
#[derive(Debug, Clone)]
pub struct DocumentSequenceCounts {
    pub(super) doc_ids: Vec<u64>,
    /// Document `at` has the rows `ends[at]..ends[at + 1]`.
    pub(super) ends: Vec<usize>,
    pub(super) sequences: Sequences,
    pub(super) counts: Vec<u64>,
}

impl DocumentSequenceCounts {
    /// The documents of the chunk.
    pub fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// The rows of the document `at` that place of [`doc_ids`](Self::doc_ids).
    ///
    /// # Panics
    /// When `at` is not below the number of documents.
    pub fn rows_of(&self, at: usize) -> Range<usize> {
        self.ends[at]..self.ends[at + 1]
    }

    /// The document of `row`.
    pub(super) fn doc_id_of(&self, row: usize) -> u64 {
        self.doc_ids[self.ends.partition_point(|&end| end <= row) - 1]
    }

    /// The rows' sequences.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// How often the sequence of each row occurs in the row's document, 1 or more.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Main memory of the rows, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.sequences.memory_bytes()
            + size_of_val(self.counts.as_slice())
            + size_of_val(self.doc_ids.as_slice())
            + size_of_val(self.ends.as_slice())
    }
}
