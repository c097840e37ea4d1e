//! Words of documents and documents of words on the host, as sparse matrices by rows.

use tadoc::ids::DocId;

/// The documents of each word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordDocuments {
    pub(super) offsets: Vec<u32>,
    pub(super) docs: Vec<u32>,
}

/// The words of each document, with their counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentWords {
    pub(super) offsets: Vec<u32>,
    pub(super) words: Vec<u32>,
    pub(super) counts: Vec<u64>,
}

impl WordDocuments {
    /// Returns the documents that contain `word`, ascending, counted from the first of the segment.
    ///
    /// # Panics
    ///
    /// Panics if `word` is no word of the segment.
    pub fn docs(&self, word: u32) -> &[u32] {
        let at = word as usize;
        &self.docs[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    /// Returns the start of each word's documents and the end of the last, and the documents.
    pub fn into_parts(self) -> (Vec<u32>, Vec<u32>) {
        (self.offsets, self.docs)
    }
}

impl DocumentWords {
    /// Returns the word ids of document `doc`, ascending, with their counts.
    ///
    /// # Panics
    ///
    /// Panics if the segment has no document `doc`.
    pub fn for_doc(&self, doc: DocId) -> (&[u32], &[u64]) {
        let range = self.offsets[doc.index()] as usize..self.offsets[doc.index() + 1] as usize;
        (&self.words[range.clone()], &self.counts[range])
    }

    /// Returns the start of each document's words and the end of the last, the words, and their
    /// counts.
    pub fn into_parts(self) -> (Vec<u32>, Vec<u32>, Vec<u64>) {
        (self.offsets, self.words, self.counts)
    }
}
