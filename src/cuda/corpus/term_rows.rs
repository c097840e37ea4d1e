//! Words of documents and documents of words as the host gets them: sparse matrices by rows.

/// The documents of each word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordDocuments {
    pub(super) offsets: Vec<u32>,
    pub(super) docs: Vec<u32>,
}

/// The words of each document with their counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentWords {
    pub(super) offsets: Vec<u32>,
    pub(super) words: Vec<u32>,
    pub(super) counts: Vec<u64>,
}

impl WordDocuments {
    /// Documents that hold `word`, ascending, counted from the first of the segment.
    ///
    /// # Panics
    ///
    /// When `word` is no word of the segment.
    pub fn docs(&self, word: u32) -> &[u32] {
        let at = word as usize;
        &self.docs[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    /// Where the documents of each word begin and the last end, and the documents.
    pub fn into_parts(self) -> (Vec<u32>, Vec<u32>) {
        (self.offsets, self.docs)
    }
}

impl DocumentWords {
    /// Word ids of document `doc` (counted from the first of the segment), ascending, and how often
    /// each occurs.
    ///
    /// # Panics
    ///
    /// When the segment has no document `doc`.
    pub fn of(&self, doc: usize) -> (&[u32], &[u64]) {
        let range = self.offsets[doc] as usize..self.offsets[doc + 1] as usize;
        (&self.words[range.clone()], &self.counts[range])
    }

    /// Where the words of each document begin and the last end, the words, and their counts.
    pub fn into_parts(self) -> (Vec<u32>, Vec<u32>, Vec<u64>) {
        (self.offsets, self.words, self.counts)
    }
}
