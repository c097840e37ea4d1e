//! What can be changed in a corpus, as values.
//!
//! Offsets are bytes and may lie anywhere, inside words and characters too. Document ids are stable
//! for ever: a dropped document leaves a gap, an added one gets the next id. What the offsets of a
//! batch refer to is its [`EditMode`]; both are those of the random-access paper.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::error::{Error, Result};

/// One change of a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Puts `text` before the byte at `offset_bytes`, or at the end where that is the length.
    InsertText {
        /// The document.
        doc_id: u64,
        /// Bytes of the document before the text.
        offset_bytes: u64,
        /// What is put in.
        text: Vec<u8>,
    },
    /// Puts `text` at the end of a document.
    AppendText {
        /// The document.
        doc_id: u64,
        /// What is put in.
        text: Vec<u8>,
    },
    /// Takes `len_bytes` bytes out of a document.
    DeleteText {
        /// The document.
        doc_id: u64,
        /// Bytes of the document before those that go.
        offset_bytes: u64,
        /// How many go.
        len_bytes: u64,
    },
    /// Adds a document, whose id is the next one.
    AddDocument {
        /// Its path.
        path: String,
        /// Its bytes.
        content: Vec<u8>,
    },
    /// Takes a document away; its id is never used again.
    DropDocument {
        /// The document.
        doc_id: u64,
    },
    /// Gives a document other bytes, under the same id and path.
    ReplaceDocument {
        /// The document.
        doc_id: u64,
        /// Its bytes from now on.
        content: Vec<u8>,
    },
    /// Gives a document other values of user columns; its text stays.
    SetColumns {
        /// The document.
        doc_id: u64,
        /// The row of `table` with its values.
        row: u64,
        /// The values of all documents that got theirs together: a Parquet file with the columns that
        /// are set. Edits share it, and nobody looks into it here.
        table: Bytes,
    },
}

impl Edit {
    /// The document that is changed; none for one that is added.
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

    /// Bytes of the text that it brings.
    pub fn text_len_bytes(&self) -> u64 {
        match self {
            Self::InsertText { text, .. } | Self::AppendText { text, .. } => text.len() as u64,
            Self::AddDocument { content, .. } | Self::ReplaceDocument { content, .. } => {
                content.len() as u64
            }
            Self::DeleteText { .. } | Self::DropDocument { .. } | Self::SetColumns { .. } => 0,
        }
    }

    /// Whether it changes nothing but user columns.
    pub fn sets_columns(&self) -> bool {
        matches!(self, Self::SetColumns { .. })
    }
}

/// What tells a table from another: tables are shared, and never compared.
pub(super) fn table_identity(table: &Bytes) -> (usize, usize) {
    (table.as_ptr() as usize, table.len())
}

/// The tables that `edits` take values of user columns from, each once, in order of first use.
pub fn column_tables<'a>(
    edits: impl IntoIterator<Item = &'a Edit>,
) -> impl Iterator<Item = &'a Bytes> {
    let mut met = HashSet::new();
    edits.into_iter().filter_map(move |edit| match edit {
        Edit::SetColumns { table, .. } => met.insert(table_identity(table)).then_some(table),
        _ => None,
    })
}

/// What the offsets of the edits of a batch refer to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EditMode {
    /// The text after the edit before.
    #[default]
    InSequence = 0,
    /// The text before the batch. Texts put in at the same offset stand in the order of the batch,
    /// bytes that several edits delete go once, and what is put in between deleted bytes stays.
    InBatch = 1,
}

impl EditMode {
    const ALL: [Self; 2] = [Self::InSequence, Self::InBatch];

    /// The number stored in records.
    pub fn as_u8(self) -> u8 {
        self as u8
    }

    /// The mode stored under this number, if this build knows it.
    pub fn from_u8(stored: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_u8() == stored)
    }

    /// The name used in SQL and on the command line.
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
    /// What their offsets refer to.
    pub mode: EditMode,
    /// The edits, in order.
    pub edits: Vec<Edit>,
}

/// One step of a mixed batch: an edit, or a question that sees all edits before it in the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// A change.
    Edit(Edit),
    /// Bytes of a document, fewer where it ends before.
    Extract {
        /// The document.
        doc_id: u64,
        /// Where they begin, in the text at this place of the batch in either mode.
        offset_bytes: u64,
        /// How many.
        len_bytes: u64,
    },
    /// Where a word occurs in a document.
    Search {
        /// The document.
        doc_id: u64,
        /// The word.
        word: String,
    },
    /// How often a word occurs in a document.
    Count {
        /// The document.
        doc_id: u64,
        /// The word.
        word: String,
    },
}

/// What became of one [`Operation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The edit was made.
    Edited,
    /// The document was added.
    Added {
        /// Its id.
        doc_id: u64,
    },
    /// The bytes of an extract.
    Text(Vec<u8>),
    /// Byte offsets where the word of a search begins, ascending.
    Offsets(Vec<u64>),
    /// The number of a count.
    Count(u64),
}
