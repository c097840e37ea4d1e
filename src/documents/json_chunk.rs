//! Chunks of rows of JSON, each an object in a line.
//!
//! ```text
//! lines that are whole objects ─▶ typed at once ───────────┐
//! from the first other one on ─▶ cut where objects end ─▶ chunk of rows ─▶ the next chunk begins with lines again
//! ```
//!
//! A line is looked at once where it is a whole object, as most are: the check of its JSON, that of `serde_json`, finds
//! its [`Shape`], too.

use std::mem;

use memchr::memchr;

use crate::charset::MARK;
use crate::decoders::is_at_end;
use crate::failure::Outcome;
use crate::gather::BATCH_BYTES;
use crate::json_objects::Objects;
use crate::json_shape::{Shape, Wanted};
use crate::open::{Counts, Opened};
use crate::rows::Rows;

/// Most bytes that are looked at before the size of a row is checked.
const PIECE_BYTES: usize = 64 << 10;

/// The bytes of an input, of which some are read again.
struct Bytes<'o> {
    opened: Opened<'o>,
    /// Bytes that are read again before the next ones, and the number of those that were.
    ahead: Vec<u8>,
    ahead_taken: usize,
}

impl Bytes<'_> {
    /// Returns the next bytes, none at the end of the input.
    fn next(&mut self, rows: &Rows<'_, '_>) -> Outcome<&[u8]> {
        if self.ahead_taken < self.ahead.len() {
            return Ok(&self.ahead[self.ahead_taken..]);
        }
        let is_end = match is_at_end(&mut *self.opened.reader) {
            Ok(is_end) => is_end,
            Err(error) => {
                let failure = self.opened.failed(rows.input, &error);
                // An array that is cut: its whole elements are rows.
                rows.sink.faults.pass(rows.input, Err(failure))?;
                true
            }
        };
        Ok(if is_end { &[] } else { self.opened.reader.fill_buf()? })
    }

    fn consume(&mut self, len: usize) {
        if self.ahead_taken < self.ahead.len() {
            self.ahead_taken += len;
        } else {
            self.opened.reader.consume(len);
        }
    }

    /// Puts `bytes` before the next ones.
    fn put_back(&mut self, mut bytes: Vec<u8>) {
        bytes.extend_from_slice(&self.ahead[self.ahead_taken..]);
        (self.ahead, self.ahead_taken) = (bytes, 0);
    }
}

/// Cuts an input into rows.
pub struct Cutter<'o> {
    bytes: Bytes<'o>,
    objects: Objects,
}

impl<'o> Cutter<'o> {
    /// Cuts `opened`, whose first line has the number `line`.
    pub fn new(opened: Opened<'o>, line: usize) -> Self {
        let bytes = Bytes { opened, ahead: Vec::new(), ahead_taken: 0 };
        Self { bytes, objects: Objects::new(line) }
    }

    /// Returns the bytes read since the last call.
    pub fn take_counts(&mut self) -> Counts {
        self.bytes.opened.take_counts()
    }

    /// Reads rows until the chunk is full, and returns true at the end of the input.
    pub fn fill(&mut self, chunk: &mut Chunk, wanted: &Wanted, rows: &mut Rows<'_, '_>) -> Outcome<bool> {
        // Rows that wait for the next parts are decoded once more.
        self.fill_up_to(BATCH_BYTES.max(2 * chunk.len()), chunk, wanted, rows)
    }

    fn fill_up_to(
        &mut self,
        full_bytes: usize,
        chunk: &mut Chunk,
        wanted: &Wanted,
        rows: &mut Rows<'_, '_>,
    ) -> Outcome<bool> {
        match self.fill_lines(chunk, full_bytes, wanted, rows)? {
            Some(is_end) => Ok(is_end),
            None => self.fill_objects(chunk, full_bytes, rows),
        }
    }

    /// Reads lines as long as each is a whole object. Returns none before another one, and else true at the end of the
    /// input.
    fn fill_lines(
        &mut self,
        chunk: &mut Chunk,
        full_bytes: usize,
        wanted: &Wanted,
        rows: &Rows<'_, '_>,
    ) -> Outcome<Option<bool>> {
        let max_bytes = rows.options.max_row_bytes;
        let mut line = self.objects.line();
        loop {
            let bytes = self.bytes.next(rows)?;
            let is_end = bytes.is_empty();
            let line_end = memchr(b'\n', bytes);
            chunk.bytes.extend_from_slice(&bytes[..line_end.unwrap_or(bytes.len())]);
            let len = line_end.map_or(bytes.len(), |end| end + 1);
            self.bytes.consume(len);
            let is_whole = is_end || line_end.is_some();
            let is_odd = if is_whole {
                !chunk.end_line(line, max_bytes, wanted)
            } else {
                (chunk.bytes.len() - chunk.len()) as u64 > max_bytes
            };
            if is_odd {
                let mut odd = chunk.bytes.split_off(chunk.len());
                odd.extend(line_end.map(|_| b'\n'));
                self.bytes.put_back(odd);
                return Ok(None);
            }
            if line_end.is_some() {
                line += 1;
                self.objects.go_on(line, !chunk.rows.is_empty());
            }
            if is_end || is_whole && chunk.len() >= full_bytes {
                return Ok(Some(is_end));
            }
        }
    }

    /// Reads objects until the chunk is full, and returns true at the end of the input.
    fn fill_objects(&mut self, chunk: &mut Chunk, full_bytes: usize, rows: &mut Rows<'_, '_>) -> Outcome<bool> {
        let max_bytes = rows.options.max_row_bytes;
        let faults = rows.sink.faults.clone();
        chunk.shape = None;
        // True in a row that is too large.
        let mut is_skipped = false;
        loop {
            let bytes = self.bytes.next(rows)?;
            let is_end = bytes.is_empty();
            let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
            let (len, is_row_end) = self.objects.take(piece, &mut chunk.bytes);
            self.bytes.consume(len);
            if (chunk.bytes.len() - chunk.len()) as u64 > max_bytes {
                let failure = rows.too_large(&format!("{} {}", chunk.unit, self.objects.first_line()));
                faults.pass(rows.input, Err(failure))?;
                is_skipped = true;
            }
            if is_skipped {
                chunk.bytes.truncate(chunk.len());
            }
            if is_row_end || is_end && self.objects.is_open() {
                self.objects.end();
                if mem::take(&mut is_skipped) {
                    faults.add_rows(1);
                } else {
                    chunk.end_row(self.objects.first_line());
                }
            }
            if is_end || is_row_end && chunk.len() >= full_bytes {
                return Ok(is_end);
            }
        }
    }
}

/// Rows, each with a line end behind it.
pub struct Chunk {
    /// Bytes of the rows, and of one that has not ended.
    pub bytes: Vec<u8>,
    /// Number of the first line of each row, and the end of its bytes.
    pub rows: Vec<(usize, usize)>,
    /// Name of a line in the input: a line, or an element of an array.
    pub unit: &'static str,
    /// Shape of all rows, if each is known to be an object of the standard.
    pub shape: Option<Shape>,
}

impl Chunk {
    /// Creates a chunk without rows, with room for `num_bytes`.
    pub fn new(num_bytes: usize, unit: &'static str) -> Self {
        let shape = Some(Shape::default());
        Self { bytes: Vec::with_capacity(num_bytes), rows: Vec::new(), unit, shape }
    }

    /// Returns the number of bytes of all rows.
    pub fn len(&self) -> usize {
        self.rows.last().map_or(0, |(_, end)| *end)
    }

    /// Ends the row whose bytes were appended.
    pub fn end_row(&mut self, line: usize) {
        let row = &self.bytes[self.len()..];
        self.bytes.truncate(self.len() + row.trim_ascii_end().len());
        self.bytes.push(b'\n');
        self.rows.push((line, self.bytes.len()));
    }

    /// Ends the line whose bytes were appended, if it is blank or one whole object. Returns false if it is neither;
    /// the bytes stay then.
    fn end_line(&mut self, line: usize, max_bytes: u64, wanted: &Wanted) -> bool {
        let begin = self.len();
        let text = self.bytes[begin..].trim_ascii_end();
        let row = text.trim_ascii_start();
        let row = row.strip_prefix(MARK).unwrap_or(row).trim_ascii_start();
        if row.is_empty() {
            self.bytes.truncate(begin);
            return true;
        }
        let num_before = text.len() - row.len();
        let is_large = row.len() as u64 > max_bytes;
        // Carriage returns are line ends in a row.
        let is_one_line = !is_large && memchr(b'\r', row).is_none();
        let is_whole = is_one_line && self.shape.as_mut().is_some_and(|shape| shape.add(row, wanted).is_ok());
        if is_whole {
            self.bytes.drain(begin..begin + num_before);
            self.end_row(line);
        }
        is_whole
    }

    /// Adds a row, whose shape is not known.
    pub fn push(&mut self, line: usize, row: &[u8]) {
        self.shape = None;
        self.bytes.extend_from_slice(row);
        self.end_row(line);
    }

    /// Returns a chunk of the rows behind the first `num_rows`.
    pub fn behind(&self, num_rows: usize, wanted: &Wanted) -> Self {
        let mut behind = Self::new(0, self.unit);
        self.rows().skip(num_rows).for_each(|(line, row)| behind.push(line, row));
        behind.shape = behind.shape_of_rows(wanted);
        behind
    }

    /// Returns the rows with the numbers of their lines.
    pub fn rows(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut begin = 0;
        self.rows.iter().map(move |&(line, end)| {
            let row = &self.bytes[begin..end - 1];
            begin = end;
            (line, row)
        })
    }

    /// Returns the number of the first line of a row.
    pub fn line(&self, row_idx: usize) -> usize {
        self.rows.get(row_idx).map_or(1, |(line, _)| *line)
    }

    /// Returns the shape of all rows; `None` if one of them is no object of the standard.
    pub fn shape_of_rows(&self, wanted: &Wanted) -> Option<Shape> {
        let mut shape = Shape::default();
        self.rows().all(|(_, row)| shape.add(row, wanted).is_ok()).then_some(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::NoColumns;
    use crate::failure::Faults;
    use crate::gather::{Gather, Nowhere};
    use crate::inputs::{Input, Source};
    use crate::open::{ExpansionLimits, open};
    use crate::options::ReadOptions;
    use testkit::random::Random;

    /// Returns the rows of `bytes` with their lines, in chunks of `full_bytes`. Lines are looked at if `by_lines`.
    fn rows(bytes: &[u8], full_bytes: usize, max_row_bytes: u64, by_lines: bool) -> Vec<(usize, Vec<u8>)> {
        let source = Source::Text { bytes: bytes.to_vec().into(), lines_before: 0 };
        let input = Input::new(source, "a".to_owned(), 0);
        let faults = Faults::new(true);
        let mut columns = NoColumns;
        let mut sink = Nowhere;
        let opened = open(&input, None, false, ExpansionLimits::DEFAULT, &faults).unwrap();
        let options = ReadOptions { max_row_bytes, ..ReadOptions::default() };
        let columns = &mut columns as _;
        let sink = &mut Gather::new(&mut sink, &faults);
        let mut rows = Rows { input: &input, options, columns, clock: None, sink };
        let mut cutter = Cutter::new(opened, 1);
        let mut found = Vec::new();
        loop {
            let mut chunk = Chunk::new(0, "line");
            let is_end = if by_lines {
                cutter.fill_up_to(full_bytes, &mut chunk, &|_| true, &mut rows).unwrap()
            } else {
                cutter.fill_objects(&mut chunk, full_bytes, &mut rows).unwrap()
            };
            if let (Some(shape), Some(expected)) = (&chunk.shape, chunk.shape_of_rows(&|_| true)) {
                assert_eq!(shape.columns(), expected.columns());
            }
            found.extend(chunk.rows().map(|(line, row)| (line, row.to_vec())));
            if is_end {
                return found;
            }
        }
    }

    #[test]
    fn lines_are_the_objects_that_brackets_find() {
        let parts: [&[u8]; 16] = [
            b"{\"a\":1}\n",
            b"{\"a\":\"x\",\"b\":[1,{}]}\r\n",
            b" {\"c\": null} \n",
            b"{}{\"a\":2}\n",
            b"{\"a\":NaN}\n",
            b"{\n\"a\":\n1}\n",
            b"{\"a\":\"cut\n",
            b"{\"a\":[\n",
            b"\n",
            b",",
            b"nope\n",
            b"\x1e",
            b"\xef\xbb\xbf",
            b"[1]\n",
            b"{\"a\":\r1}\n",
            b"{\"long\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}\n",
        ];
        for case in 0..5000 {
            let random = &mut Random(case);
            let bytes: Vec<u8> = (0..random.below(12)).flat_map(|_| random.pick(&parts).to_vec()).collect();
            let full_bytes = 1 + random.below(60);
            let max_bytes = *random.pick(&[30, 1 << 20]);
            let shown = String::from_utf8_lossy(&bytes);
            let [by_lines, expected] = [true, false].map(|by_lines| rows(&bytes, full_bytes, max_bytes, by_lines));
            assert_eq!(by_lines, expected, "{case}: {shown}");
        }
    }
}
