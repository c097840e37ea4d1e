//! One occurrence of a part of a query.

/// One occurrence of a leaf of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hit {
    /// Id of the document.
    pub doc_id: u64,
    /// Start of the first word, in bytes from the start of the document.
    pub byte_offset: u64,
    /// Number of bytes from the start of the first word to the end of the last word.
    pub byte_len: u64,
    /// Index of the first word among the words of the document.
    pub word_index: u64,
}
