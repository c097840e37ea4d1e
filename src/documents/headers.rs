//! Header lines `Name: value`, as in mail, HTTP and WARC, and the user columns of records that have them: texts, and a
//! column `date`.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};

use crate::failure::Outcome;
use crate::rows::Rows;
use crate::timestamps;

/// Maximum bytes of the header lines of a record, which are held in memory.
pub const MAX_HEADER_BYTES: u64 = 1 << 20;

/// Header lines by name.
#[derive(Debug, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Reads the lines in `head`. A line that begins with a blank goes on with the one before. Lines
    /// without a colon are left out. Bytes that are not UTF-8 become U+FFFD.
    pub fn parse(head: &[u8]) -> Self {
        let text = String::from_utf8_lossy(head);
        let mut headers: Vec<(String, String)> = Vec::new();
        for line in text.lines() {
            let line = line.trim_end_matches('\r');
            if let (true, Some((_, value))) = (line.starts_with([' ', '\t']), headers.last_mut()) {
                value.push(' ');
                value.push_str(line.trim());
            } else if let Some((name, value)) = line.split_once(':') {
                headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        Self(headers)
    }

    /// Returns the value of the first line `name`, which is in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Reads lines up to a blank one, and that. At most [`MAX_HEADER_BYTES`] are read.
///
/// # Errors
/// The errors of `reader`.
pub fn read_head(reader: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut reader = reader.take(MAX_HEADER_BYTES);
    loop {
        let before = head.len();
        reader.read_until(b'\n', &mut head)?;
        if head[before..].trim_ascii().is_empty() {
            return Ok(head);
        }
    }
}

/// Number of rows that are collected at once.
const BATCH_ROWS: usize = 1 << 10;
/// Name of the column with the times.
const DATE: &str = "date";

/// Rows that wait to be stored.
pub struct RecordColumns<const N: usize> {
    names: [&'static str; N],
    texts: [Vec<Option<String>>; N],
    dates: Vec<Option<i64>>,
}

impl<const N: usize> RecordColumns<N> {
    /// Creates columns of texts with these names, and a column `date`.
    pub fn new(names: [&'static str; N]) -> Self {
        Self { names, texts: std::array::from_fn(|_| Vec::new()), dates: Vec::new() }
    }

    /// Adds the row of a document. `date` is in microseconds since 1970.
    pub fn push(&mut self, texts: [Option<String>; N], date: Option<i64>, rows: &mut Rows<'_, '_>) -> Outcome {
        for (column, text) in self.texts.iter_mut().zip(texts) {
            column.push(text);
        }
        self.dates.push(date);
        if self.dates.len() < BATCH_ROWS { Ok(()) } else { self.store(rows) }
    }

    /// Stores the rows that wait.
    pub fn store(&mut self, rows: &mut Rows<'_, '_>) -> Outcome {
        if self.dates.is_empty() {
            return Ok(());
        }
        let texts = self.names.into_iter().zip(&mut self.texts).map(|(name, column)| {
            let texts: ArrayRef = Arc::new(column.drain(..).collect::<StringArray>());
            (name, texts, true)
        });
        let mut columns: Vec<(&str, ArrayRef, bool)> = texts.collect();
        columns.push((DATE, timestamps::array(self.dates.drain(..)), true));
        rows.push_columns(&RecordBatch::try_from_iter_with_nullable(columns)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_found_in_any_case() {
        let headers = Headers::parse(b"Subject: one\r\n two\r\nno header\nX-A:b:c\n\td\nx-a: later\xff\n");
        assert_eq!(headers.get("subject"), Some("one two"));
        assert_eq!(headers.get("x-a"), Some("b:c d"));
        assert_eq!(headers.get("to"), None);
        assert_eq!(Headers::parse(b" begins with a blank").get(""), None);
    }

    #[test]
    fn a_head_ends_at_a_blank_line_or_the_end() {
        let mut reader: &[u8] = b"a: 1\r\n\r\nbody\n\n";
        assert_eq!(read_head(&mut reader).unwrap(), b"a: 1\r\n\r\n");
        assert_eq!(reader, b"body\n\n");
        assert_eq!(read_head(&mut &b"a: 1"[..]).unwrap(), b"a: 1");
        let long = vec![b'x'; 3 << 20];
        assert_eq!(read_head(&mut long.as_slice()).unwrap().len() as u64, MAX_HEADER_BYTES);
    }
}
