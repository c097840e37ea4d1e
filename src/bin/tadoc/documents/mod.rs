//! From inputs to documents: what one document is, and who reads it.
//!
//! ```text
//! Input ─open─▶ bytes ─decompress─▶ text ─┬─ files   one document a file
//!                                         ├─ lines   one document a line
//!                                         ├─ jsonl   one document a row: text column ─▶ Batch
//!                                         ├─ csv                         path column ─▶ Batch
//!                                         └─ parquet                     the others  ─▶ Columns
//! ```
//!
//! Readers hand over [`Batch`]es of about [`BATCH_BYTES`], so memory does not grow with a file
//! unless one document is that large.

mod csv;
mod jsonl;
mod open;
mod parquet;
mod rows;
mod text;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::columns::{Columns, StoredColumns};
use crate::failure::Outcome;
use crate::inputs::Input;

/// About how much text is handed over at once.
pub const BATCH_BYTES: usize = 4 << 20;

/// What one document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Documents {
    /// A whole file.
    Files,
    /// A line, without its line end.
    Lines,
    /// A row of JSON lines; the text is in this field.
    Jsonl(String),
    /// A row of CSV with a header; the text is in this column.
    Csv(String),
    /// A row of Parquet; the text is in this column.
    Parquet(String),
}

impl FromStr for Documents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, column) = match text.split_once(':') {
            Some((kind, column)) => (kind, Some(column).filter(|column| !column.is_empty())),
            None => (text, None),
        };
        match (kind, column.map(str::to_owned)) {
            ("files", None) => Ok(Self::Files),
            ("lines", None) => Ok(Self::Lines),
            ("jsonl" | "ndjson", Some(field)) => Ok(Self::Jsonl(field)),
            ("csv", Some(column)) => Ok(Self::Csv(column)),
            ("parquet", Some(column)) => Ok(Self::Parquet(column)),
            ("jsonl" | "ndjson" | "csv" | "parquet", None) => {
                Err(format!("say which column holds the text, such as {kind}:text"))
            }
            _ => Err("expected files, lines, jsonl:FIELD, csv:COLUMN or parquet:COLUMN".to_owned()),
        }
    }
}

impl fmt::Display for Documents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files => write!(f, "files"),
            Self::Lines => write!(f, "lines"),
            Self::Jsonl(field) => write!(f, "jsonl:{field}"),
            Self::Csv(column) => write!(f, "csv:{column}"),
            Self::Parquet(column) => write!(f, "parquet:{column}"),
        }
    }
}

/// How inputs are read.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions {
    /// gzip and zstd inputs are decompressed.
    pub decompress: bool,
    /// Rows without a text become empty documents instead of an error.
    pub allow_missing: bool,
    /// The other columns of rows are kept, not only text and path.
    pub keep_columns: bool,
}

/// Some documents, their texts one after another.
#[derive(Debug, Default)]
pub struct Batch {
    /// The texts.
    pub text: Vec<u8>,
    /// Path of each document and where its text ends.
    pub documents: Vec<(Arc<str>, usize)>,
    /// Bytes taken from disk since the batch before (compressed ones for compressed inputs).
    pub read_bytes: u64,
}

impl Batch {
    /// Ends the document whose bytes have been appended to `text`.
    pub fn end_document(&mut self, path: &Arc<str>) {
        self.documents.push((path.clone(), self.text.len()));
    }

    /// The documents: path and text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut begin = 0;
        self.documents.iter().map(move |(path, end)| {
            let text = &self.text[begin..*end];
            begin = *end;
            (path.as_ref(), text)
        })
    }
}

/// Where batches go; an error means that nobody takes them any more.
pub trait Sink {
    /// Takes a batch. Waits while the receiver is busy.
    fn take(&mut self, batch: Batch) -> Outcome;
}

/// Reads all `inputs` in order. Returns the other columns of the rows, if there are any.
///
/// # Errors
/// A file that cannot be read or does not hold what `documents` says; the text names the file, the
/// line where there are lines, and the way out.
pub fn read(
    inputs: &[Input],
    documents: &Documents,
    options: ReadOptions,
    sink: &mut dyn Sink,
) -> Outcome<Option<StoredColumns>> {
    let mut sink = Gather { batch: Batch::default(), sink };
    let mut columns = match documents {
        Documents::Csv(_) => Columns::of_texts(),
        _ => Columns::default(),
    };
    for input in inputs {
        let rows = &mut rows::Rows { input, options, columns: &mut columns, sink: &mut sink };
        match documents {
            Documents::Files => text::read_file(input, options.decompress, rows.sink),
            Documents::Lines => text::read_lines(input, options.decompress, rows.sink),
            Documents::Jsonl(field) => jsonl::read(field, rows),
            Documents::Csv(column) => csv::read(column, rows),
            Documents::Parquet(column) => parquet::read(column, rows),
        }?;
    }
    sink.flush()?;
    columns.into_parquet()
}

/// Joins small documents to batches.
pub struct Gather<'a> {
    batch: Batch,
    sink: &'a mut dyn Sink,
}

impl Gather<'_> {
    /// Adds one document.
    fn push(&mut self, path: &Arc<str>, text: &[u8]) -> Outcome {
        self.batch.text.extend_from_slice(text);
        self.batch.end_document(path);
        self.flush_if_full()
    }

    /// Adds one document without copying it where it is large.
    fn push_owned(&mut self, path: &Arc<str>, text: Vec<u8>) -> Outcome {
        if text.len() < BATCH_BYTES {
            return self.push(path, &text);
        }
        self.flush()?;
        self.batch.text = text;
        self.batch.end_document(path);
        self.flush()
    }

    /// Counts bytes taken from disk.
    fn count_read(&mut self, read_bytes: u64) {
        self.batch.read_bytes += read_bytes;
    }

    fn flush_if_full(&mut self) -> Outcome {
        // Empty documents count too: a million of them must not wait in one batch.
        match self.batch.text.len() + 64 * self.batch.documents.len() < BATCH_BYTES {
            true => Ok(()),
            false => self.flush(),
        }
    }

    fn flush(&mut self) -> Outcome {
        let batch = std::mem::take(&mut self.batch);
        match batch.documents.is_empty() && batch.read_bytes == 0 {
            true => Ok(()),
            false => self.sink.take(batch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_and_written() {
        for kind in ["files", "lines", "jsonl:text", "csv:a b", "parquet:x:y"] {
            assert_eq!(kind.parse::<Documents>().unwrap().to_string(), kind);
        }
        for bad in ["", "file", "jsonl", "csv:", "files:x"] {
            assert!(bad.parse::<Documents>().is_err(), "{bad}");
        }
    }

    #[test]
    fn documents_of_a_batch_tile_its_text() {
        let mut batch = Batch::default();
        for text in ["one", "", "two"] {
            batch.text.extend_from_slice(text.as_bytes());
            batch.end_document(&"p".into());
        }
        let texts: Vec<&[u8]> = batch.iter().map(|(_, text)| text).collect();
        assert_eq!(texts, [b"one".as_slice(), b"", b"two"]);
    }
}
