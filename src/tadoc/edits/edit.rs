//! Changes of a corpus, as values.
//!
//! Offsets are bytes and can lie anywhere, also inside words and characters. The id of a document
//! never changes: a dropped document leaves a gap, and an added document gets the next id. The
//! [`EditMode`] of a batch defines the text that its offsets refer to. Both modes are those of the
//! random-access paper.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::error::{Error, Result};

/// One change of a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Inserts `text` before the byte at `offset_bytes`, or at the end if that is the length.
    InsertText {
        /// Id of the document.
        doc_id: u64,
        /// Number of bytes of the document before the text.
        offset_bytes: u64,
        /// Text to insert.
        text: Vec<u8>,
    },
    /// Appends `text` to a document.
    AppendText {
        /// Id of the document.
        doc_id: u64,
        /// Text to append.
        text: Vec<u8>,
    },
    /// Deletes `len_bytes` bytes of a document.
    DeleteText {
        /// Id of the document.
        doc_id: u64,
        /// Number of bytes of the document before the deleted ones.
        offset_bytes: u64,
        /// Number of bytes to delete.
        len_bytes: u64,
    },
    /// Adds a document, which gets the next id.
    AddDocument {
        /// Path of the new document.
        path: String,
        /// Bytes of the new document.
        content: Vec<u8>,
    },
    /// Drops a document. Its id is never used again.
    DropDocument {
        /// Id of the document.
        doc_id: u64,
    },
    /// Replaces the bytes of a document, which keeps its id and path.
    ReplaceDocument {
        /// Id of the document.
        doc_id: u64,
        /// New bytes of the document.
        content: Vec<u8>,
    },
    /// Replaces values of user columns of a document, which keeps its text.
    SetColumns {
        /// Id of the document.
        doc_id: u64,
        /// Row of `table` with the values of the document.
        row: u64,
        /// Values of all documents that were set together: a Parquet file with the columns that are
        /// set. Edits share it, and this crate does not read it.
        table: Bytes,
    },
}

impl Edit {
    /// Returns the document that is changed; `None` for a document that is added.
    pub fn doc_id(&self) -> Option<u64> {
        match self {
            Self::InsertText { doc_id, .. }
            | Self::AppendText { doc_id, .. }
            | Self::DeleteText { doc_id, .. }
            | Self::DropDocument { doc_id }
            | Self::ReplaceDocument { doc_id, .. }
            | Self::SetColumns { doc_id, .. } => Some(*doc_id),
            Self::AddDocument { .. } => None,
        }
    }

    /// Returns the length of the text that the edit adds, in bytes.
    pub fn text_len_bytes(&self) -> u64 {
        match self {
            Self::InsertText { text, .. } | Self::AppendText { text, .. } => text.len() as u64,
            Self::AddDocument { content, .. } | Self::ReplaceDocument { content, .. } => {
                content.len() as u64
            }
            Self::DeleteText { .. } | Self::DropDocument { .. } | Self::SetColumns { .. } => 0,
        }
    }

    /// Returns true if the edit changes only user columns.
    pub fn sets_columns(&self) -> bool {
        matches!(self, Self::SetColumns { .. })
    }
}

/// Returns the identity of a table. Tables are shared, and their bytes are never compared.
pub(super) fn table_identity(table: &Bytes) -> (usize, usize) {
    (table.as_ptr() as usize, table.len())
}

/// Returns the tables from which `edits` take values of user columns, each once, in order of first
/// use.
pub fn column_tables<'a>(
    edits: impl IntoIterator<Item = &'a Edit>,
) -> impl Iterator<Item = &'a Bytes> {
    let mut met = HashSet::new();
    edits.into_iter().filter_map(move |edit| match edit {
        Edit::SetColumns { table, .. } => met.insert(table_identity(table)).then_some(table),
        _ => None,
    })
}

/// The text that the offsets of the edits of a batch refer to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EditMode {
    /// The text after the preceding edit.
    #[default]
    InSequence = 0,
    /// The text before the batch. Texts inserted at the same offset are in the order of the batch.
    /// Bytes that several edits delete are deleted once. Text inserted between deleted bytes stays.
    InBatch = 1,
}

impl EditMode {
    const ALL: [Self; 2] = [Self::InSequence, Self::InBatch];

    /// Returns the number that records store.
    pub fn as_u8(self) -> u8 {
        self as u8
    }

    /// Returns the mode stored under this number, if this build knows it.
    pub fn from_u8(stored: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_u8() == stored)
    }

    /// Returns the name used in SQL and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InSequence => "in_sequence",
            Self::InBatch => "in_batch",
        }
    }
}

impl fmt::Display for EditMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for EditMode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name).ok_or_else(|| {
            Error::InvalidArgument {
                name: "edit_mode",
                got: name.to_owned(),
                allowed: "in_sequence or in_batch".to_owned(),
            }
        })
    }
}

/// Edits that are made together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditBatch {
    /// The text that their offsets refer to.
    pub mode: EditMode,
    /// The edits, in order.
    pub edits: Vec<Edit>,
}

/// One step of a mixed batch: an edit, or a read that sees all edits before it in the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// A change.
    Edit(Edit),
    /// A read of bytes of a document; fewer are returned if it ends before.
    Extract {
        /// Id of the document.
        doc_id: u64,
        /// Offset of the first byte, in the text at this point of the batch in either mode.
        offset_bytes: u64,
        /// Number of bytes.
        len_bytes: u64,
    },
    /// A search for a word in a document.
    Search {
        /// Id of the document.
        doc_id: u64,
        /// The word.
        word: String,
    },
    /// A count of a word in a document.
    Count {
        /// Id of the document.
        doc_id: u64,
        /// The word.
        word: String,
    },
}

/// Result of one [`Operation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The edit was made.
    Edited,
    /// The document was added.
    Added {
        /// Id of the new document.
        doc_id: u64,
    },
    /// The bytes of an extract.
    Text(Vec<u8>),
    /// Byte offsets at which the word of a search begins, in ascending order.
    Offsets(Vec<u64>),
    /// The number of a count.
    Count(u64),
}
