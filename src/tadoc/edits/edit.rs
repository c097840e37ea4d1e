//! Changes of a corpus, as values.
//!
//! Offsets are bytes and can lie anywhere, also inside words and characters. The id of a document never changes: a
//! dropped document leaves a gap, and an added document gets the next id. The [`EditMode`] of a batch defines the text
//! that its offsets refer to. Both modes are those of the random-access paper.
//!
//! # Records
//!
//! ```text
//! batch    mode (1 byte) | number of edits | edit | edit | ...
//! edit     0 | doc_id | offset_bytes | text        insert
//!          1 | doc_id | text                       append
//!          2 | doc_id | offset_bytes | len_bytes   delete
//!          3 | path | content                      add a document
//!          4 | doc_id                              drop a document
//!          5 | doc_id | content                    replace a document
//!          6 | doc_id | row | number | table       set user columns: a row of a new table
//!          6 | doc_id | row | number               set user columns: a row of table `number`
//! ```
//!
//! Kinds are one byte, integers are LEB128, and a text, path or content is its length followed by its bytes. Tables of
//! user columns are numbered from 0 in order of first use, so that each is stored once. An edit costs 2 to 6 bytes
//! beside its text. The file around the record has checksums and compression. Decoding is O(bytes) and allocates no
//! more than the bytes account for. The code that applies the edits checks documents and offsets.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::cursor::{Cursor, Origin, push_varint};

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
            Self::AddDocument { content, .. } | Self::ReplaceDocument { content, .. } => content.len() as u64,
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
pub fn column_tables<'a>(edits: impl IntoIterator<Item = &'a Edit>) -> impl Iterator<Item = &'a Bytes> {
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
        Self::ALL.into_iter().find(|mode| mode.as_str() == name).ok_or_else(|| Error::InvalidArgument {
            name: "edit_mode",
            got: name.to_owned(),
            allowed: "in_sequence or in_batch".to_owned(),
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

const INSERT_TEXT: u8 = 0;
const APPEND_TEXT: u8 = 1;
const DELETE_TEXT: u8 = 2;
const ADD_DOCUMENT: u8 = 3;
const DROP_DOCUMENT: u8 = 4;
const REPLACE_DOCUMENT: u8 = 5;
const SET_COLUMNS: u8 = 6;

/// Encodes `batch` as bytes.
pub fn encode_batch(batch: &EditBatch) -> Vec<u8> {
    let mut out = vec![batch.mode.as_u8()];
    push_varint(&mut out, batch.edits.len() as u64);
    let mut numbers = HashMap::new();
    batch.edits.iter().for_each(|edit| push_edit(&mut out, edit, &mut numbers));
    out
}

/// Decodes the batch in `bytes`, which come from `file`.
///
/// # Errors
/// [`Error::Format`] if they are not bytes that [`encode_batch`] writes.
pub fn decode_batch(file: &str, bytes: &[u8]) -> Result<EditBatch> {
    let mut cursor = Cursor::new(Origin { file, section: "edits", offset: 0 }, bytes);
    let at = cursor.clone();
    let stored_mode = cursor.u8()?;
    let mode = EditMode::from_u8(stored_mode)
        .ok_or_else(|| at.fault(format!("expected edit mode 0 or 1, got {stored_mode}")))?;
    let num_edits = cursor.varint()?;
    let mut edits = Vec::new();
    let mut tables = Vec::new();
    for _ in 0..num_edits {
        edits.push(edit(&mut cursor, &mut tables)?);
    }
    cursor.finish()?;
    Ok(EditBatch { mode, edits })
}

/// Appends `edit`; `numbers` are those of the tables so far.
fn push_edit(out: &mut Vec<u8>, edit: &Edit, numbers: &mut HashMap<(usize, usize), u64>) {
    match edit {
        Edit::InsertText { doc_id, offset_bytes, text } => {
            push_numbers(out, INSERT_TEXT, &[*doc_id, *offset_bytes]);
            push_text(out, text);
        }
        Edit::AppendText { doc_id, text } => {
            push_numbers(out, APPEND_TEXT, &[*doc_id]);
            push_text(out, text);
        }
        Edit::DeleteText { doc_id, offset_bytes, len_bytes } => {
            push_numbers(out, DELETE_TEXT, &[*doc_id, *offset_bytes, *len_bytes]);
        }
        Edit::AddDocument { path, content } => {
            push_numbers(out, ADD_DOCUMENT, &[]);
            push_text(out, path.as_bytes());
            push_text(out, content);
        }
        Edit::DropDocument { doc_id } => push_numbers(out, DROP_DOCUMENT, &[*doc_id]),
        Edit::ReplaceDocument { doc_id, content } => {
            push_numbers(out, REPLACE_DOCUMENT, &[*doc_id]);
            push_text(out, content);
        }
        Edit::SetColumns { doc_id, row, table } => {
            let next = numbers.len() as u64;
            let number = *numbers.entry(table_identity(table)).or_insert(next);
            push_numbers(out, SET_COLUMNS, &[*doc_id, *row, number]);
            if number == next {
                push_text(out, table);
            }
        }
    }
}

fn push_numbers(out: &mut Vec<u8>, kind: u8, numbers: &[u64]) {
    out.push(kind);
    numbers.iter().for_each(|&number| push_varint(out, number));
}

fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    push_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Reads the edit at `cursor`; `tables` are the tables so far.
fn edit(cursor: &mut Cursor<'_>, tables: &mut Vec<Bytes>) -> Result<Edit> {
    let at = cursor.clone();
    Ok(match cursor.u8()? {
        INSERT_TEXT => {
            Edit::InsertText { doc_id: cursor.varint()?, offset_bytes: cursor.varint()?, text: text(cursor)? }
        }
        APPEND_TEXT => Edit::AppendText { doc_id: cursor.varint()?, text: text(cursor)? },
        DELETE_TEXT => {
            Edit::DeleteText { doc_id: cursor.varint()?, offset_bytes: cursor.varint()?, len_bytes: cursor.varint()? }
        }
        ADD_DOCUMENT => Edit::AddDocument { path: path(cursor)?, content: text(cursor)? },
        DROP_DOCUMENT => Edit::DropDocument { doc_id: cursor.varint()? },
        REPLACE_DOCUMENT => Edit::ReplaceDocument { doc_id: cursor.varint()?, content: text(cursor)? },
        SET_COLUMNS => {
            Edit::SetColumns { doc_id: cursor.varint()?, row: cursor.varint()?, table: table(cursor, tables)? }
        }
        kind => return Err(at.fault(format!("expected a kind of edit from 0 to 6, got {kind}"))),
    })
}

fn text(cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
    let len = cursor.varint()?;
    Ok(cursor.take(usize::try_from(len).unwrap_or(usize::MAX))?.to_vec())
}

/// Reads the table at `cursor`, which is one of `tables` or is appended to them.
fn table(cursor: &mut Cursor<'_>, tables: &mut Vec<Bytes>) -> Result<Bytes> {
    let at = cursor.clone();
    let number = cursor.varint()?;
    let num_tables = tables.len() as u64;
    if number > num_tables {
        let most = "expected the number of a table, at most";
        return Err(at.fault(format!("{most} {num_tables}, got {number}")));
    }
    if number == num_tables {
        let table = Bytes::from(text(cursor)?);
        // All empty tables are the same table.
        if table.is_empty() && tables.iter().any(Bytes::is_empty) {
            return Err(at.fault("expected one empty table, got another"));
        }
        tables.push(table);
    }
    Ok(tables[number as usize].clone())
}

fn path(cursor: &mut Cursor<'_>) -> Result<String> {
    let at = cursor.clone();
    String::from_utf8(text(cursor)?).map_err(|_| at.fault("expected a path in UTF-8"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_edit() -> impl Strategy<Value = Edit> {
        let text = || prop::collection::vec(any::<u8>(), 0..300);
        let number = || prop_oneof![0..300u64, any::<u64>()];
        prop_oneof![
            (number(), number(), text())
                .prop_map(|(doc_id, offset_bytes, text)| { Edit::InsertText { doc_id, offset_bytes, text } }),
            (number(), text()).prop_map(|(doc_id, text)| Edit::AppendText { doc_id, text }),
            (number(), number(), number())
                .prop_map(|(doc_id, offset_bytes, len_bytes)| { Edit::DeleteText { doc_id, offset_bytes, len_bytes } }),
            ("\\PC{0,20}", text()).prop_map(|(path, content)| Edit::AddDocument { path, content }),
            number().prop_map(|doc_id| Edit::DropDocument { doc_id }),
            (number(), text()).prop_map(|(doc_id, content)| Edit::ReplaceDocument { doc_id, content }),
        ]
    }

    fn any_batch() -> impl Strategy<Value = EditBatch> {
        let mode = prop_oneof![Just(EditMode::InSequence), Just(EditMode::InBatch)];
        let tables = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 3);
        // Tables are shared: a third of the edits take rows of one of these.
        let set = (0..300u64, 0..300u64, 0..3usize);
        let edit = prop_oneof![2 => any_edit().prop_map(Ok), 1 => set.prop_map(Err)];
        (mode, tables, prop::collection::vec(edit, 0..12)).prop_map(|(mode, tables, edits)| {
            let tables: Vec<Bytes> = tables.into_iter().map(Bytes::from).collect();
            let edits = edits.into_iter().map(|edit| {
                edit.unwrap_or_else(|(doc_id, row, table)| Edit::SetColumns {
                    doc_id,
                    row,
                    table: tables[table].clone(),
                })
            });
            EditBatch { mode, edits: edits.collect() }
        })
    }

    fn is_format(error: &Error) -> bool {
        matches!(error, Error::Format { section: "edits", .. })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_batch_comes_back(batch in any_batch()) {
            prop_assert_eq!(decode_batch("memory", &encode_batch(&batch)).unwrap(), batch);
        }

        #[test]
        fn any_damage_is_an_error_or_another_batch(
            batch in any_batch(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let bytes = encode_batch(&batch);
            let shorter = &bytes[..cut.index(bytes.len())];
            prop_assert!(is_format(&decode_batch("f", shorter).unwrap_err()));
            let mut damaged = bytes.clone();
            damaged[at.index(bytes.len())] = byte;
            match decode_batch("f", &damaged) {
                Ok(other) => {
                    let again = decode_batch("f", &encode_batch(&other));
                    prop_assert_eq!(again.unwrap(), other);
                }
                Err(error) => prop_assert!(is_format(&error)),
            }
        }

        #[test]
        fn any_bytes_are_an_error_or_a_batch(bytes in prop::collection::vec(0..8u8, 0..60)) {
            match decode_batch("f", &bytes) {
                Ok(batch) => prop_assert_eq!(encode_batch(&batch), bytes),
                Err(error) => prop_assert!(is_format(&error)),
            }
        }
    }

    #[test]
    fn a_table_is_stored_once() {
        let table = Bytes::from(vec![7; 500]);
        let set = |doc_id| Edit::SetColumns { doc_id, row: doc_id, table: table.clone() };
        let batch = EditBatch { edits: (0..100).map(set).collect(), ..EditBatch::default() };
        let bytes = encode_batch(&batch);
        assert_eq!(bytes.len(), 2 + 100 * 4 + 2 + 500);
        let decoded = decode_batch("memory", &bytes).unwrap();
        assert_eq!(super::super::column_tables(&decoded.edits).count(), 1);
        assert_eq!(decoded, batch);
    }

    #[test]
    fn faults_name_the_place() {
        let fault = |bytes: &[u8]| decode_batch("f.edits", bytes).unwrap_err().to_string();
        assert!(fault(&[2, 0]).contains("offset 0: expected edit mode"));
        assert!(fault(&[0, 1, 9]).contains("offset 2: expected a kind of edit"));
        assert!(fault(&[0, 1, 6, 0, 0, 1]).contains("offset 5: expected the number of a table"));
        let twice = [0, 2, 6, 0, 0, 0, 0, 6, 1, 0, 1, 0];
        assert!(fault(&twice).contains("expected one empty table"));
        assert!(fault(&[0, 1, 3, 1, 0xff, 0]).contains("offset 3: expected a path in UTF-8"));
        assert!(fault(&[0, 0, 0]).contains("1 bytes are left"));
        let num_edits = [0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(fault(&num_edits).contains("expected 1 more bytes"));
    }
}
