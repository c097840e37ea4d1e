//! Passages of documents in host memory, and the trait of the text that edits read.
//!
//! [`CorpusText`](super::CorpusText) implements the trait on a device. Tests implement it on the
//! host.

use crate::error::GpuError;
use tadoc::ids::DocId;

/// A query for up to `len_bytes` bytes of a document, starting at `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassageQuery {
    /// Document of the segment.
    pub doc: DocId,
    /// Start of the passage, in bytes of the document.
    pub offset: u64,
    /// Length of the passage in bytes. It is cut at the end of the document.
    pub len_bytes: u64,
}

/// Passages, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passages {
    pub(super) starts: Vec<u64>,
    pub(super) text: Vec<u8>,
}

impl Passages {
    #[cfg(test)]
    pub(super) fn joined<'a>(passages: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut starts, mut text) = (vec![0], Vec::new());
        for passage in passages {
            text.extend_from_slice(passage);
            starts.push(text.len() as u64);
        }
        Self { starts, text }
    }

    /// Returns the start of each passage and the end of the last one, and the bytes of all
    /// passages.
    pub fn into_parts(self) -> (Vec<u64>, Vec<u8>) {
        (self.starts, self.text)
    }

    /// Returns the number of passages.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns true if there are no passages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the passage of the query at index `at` of the batch.
    ///
    /// # Panics
    ///
    /// Panics if `at` is not below [`len`](Self::len).
    pub fn get(&self, at: usize) -> &[u8] {
        &self.text[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// A word or separator: true for a word, and its bytes.
pub(super) type Terminal = (bool, Box<[u8]>);

/// A base text that edits read.
pub(super) trait BaseText: Sync {
    fn num_docs(&self) -> usize;

    /// Returns the length of a document in bytes.
    ///
    /// # Errors
    ///
    /// An error if the document does not exist.
    fn doc_len_bytes(&self, doc: DocId) -> Result<u64, GpuError>;

    fn read(&self, queries: &[PassageQuery]) -> Result<Passages, GpuError>;

    /// Returns the id of the word or separator with exactly these bytes.
    fn terminal_id(&self, is_word: bool, bytes: &[u8]) -> Option<u32>;

    fn num_terminals(&self) -> u32;
}
