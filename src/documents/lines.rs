//! Reads files, lines of any length, and records of several lines as documents. Their bytes are passed on as they are
//! read.
//!
//! ```text
//! 2024-05-06 07:08:09 ERROR it failed      ◀ a line that --record-start matches: a new document
//!   at main.rs:12                          ◀ joined to the record, with a line end between them
//! 2024-05-06 07:08:10 INFO  it works       ◀ a new document
//! ```
//!
//! Only the first [`HEAD_BYTES`] of a line decide if a record begins and which timestamp it has. The rest is passed on
//! as it is read, so lines have any length. A line of JSON whose field is the timestamp is held as a whole, and one
//! above `--max-row-size` has no timestamp. Time is linear in the bytes, besides the regular expression.

use std::io::BufRead;
use std::sync::Arc;

use arrow::array::RecordBatch;
use memchr::memchr;
use regex::bytes::Regex;

use crate::decoders::is_at_end;
use crate::failure::Outcome;
use crate::gather::Gather;
use crate::inputs::Input;
use crate::open::Opened;
use crate::rows::Rows;
use crate::timestamps;
use crate::timestamps::{Clock, LineTime, MAX_HELD};

/// Reads an input as one document with all of its bytes.
pub fn read_file(mut opened: Opened<'_>, input: &Input, sink: &mut Gather<'_>) -> Outcome {
    let path: Arc<str> = Arc::from(input.path.as_str());
    loop {
        let text = next_bytes(&mut opened, input)?;
        let len = text.len();
        if len == 0 {
            break;
        }
        sink.watch(input, text);
        sink.append(&path, text)?;
        opened.reader.consume(len);
        sink.count_read(opened.take_counts());
    }
    sink.count_read(opened.take_counts());
    sink.end_document(&path)
}

/// Reads an input as one document per line, without the `\n`. A `\r` before it stays. Text after
/// the last line end is a line, too.
pub fn read_lines(mut opened: Opened<'_>, input: &Input, sink: &mut Gather<'_>) -> Outcome {
    let path: Arc<str> = Arc::from(input.path.as_str());
    let mut is_open = false;
    loop {
        let mut text = next_bytes(&mut opened, input)?;
        let len = text.len();
        if len == 0 {
            break;
        }
        sink.watch(input, text);
        while let Some(end) = memchr(b'\n', text) {
            sink.push(&path, &text[..end])?;
            text = &text[end + 1..];
            is_open = false;
        }
        if !text.is_empty() {
            sink.append(&path, text)?;
            is_open = true;
        }
        opened.reader.consume(len);
        sink.count_read(opened.take_counts());
    }
    sink.count_read(opened.take_counts());
    if is_open { sink.end_document(&path) } else { Ok(()) }
}

/// Returns the next bytes of the input, or none at its end.
pub fn next_bytes<'a>(opened: &'a mut Opened<'_>, input: &Input) -> Outcome<&'a [u8]> {
    let is_end = is_at_end(&mut *opened.reader);
    if is_end.map_err(|error| opened.failed(input, &error))? {
        Ok(&[])
    } else {
        // The buffer is filled, so this call reads nothing.
        Ok(opened.reader.fill_buf()?)
    }
}

/// Number of bytes of a line that are looked at.
const HEAD_BYTES: usize = 4 << 10;
/// Number of timestamps that are collected at once.
const BATCH_ROWS: usize = 8 << 10;

/// Reads the lines of one input. `start` matches the first line of a record; without it each line is one.
pub fn read_records(mut opened: Opened<'_>, start: Option<&Regex>, rows: &mut Rows<'_, '_>) -> Outcome {
    let mut records = Records::new(start, rows);
    loop {
        let text = next_bytes(&mut opened, records.rows.input)?;
        let len = text.len();
        if len == 0 {
            break;
        }
        records.rows.sink.watch(records.rows.input, text);
        records.feed(text)?;
        opened.reader.consume(len);
        records.rows.sink.count_read(opened.take_counts());
    }
    records.rows.sink.count_read(opened.take_counts());
    records.finish()
}

/// The lines of one input, in parts of any size.
struct Records<'a, 'r, 's> {
    start: Option<&'a Regex>,
    rows: &'a mut Rows<'r, 's>,
    path: Arc<str>,
    /// First bytes of the line, until it is known what it begins.
    head: Vec<u8>,
    /// True until `head` was passed on.
    is_in_head: bool,
    /// True behind the first byte of a line.
    is_in_line: bool,
    /// True if the last document has not ended.
    is_open: bool,
    times: Vec<LineTime>,
    /// True if later lines tell a time among them.
    needs_others: bool,
}

impl<'a, 'r, 's> Records<'a, 'r, 's> {
    fn new(start: Option<&'a Regex>, rows: &'a mut Rows<'r, 's>) -> Self {
        Self {
            start,
            path: Arc::from(rows.input.path.as_str()),
            rows,
            head: Vec::new(),
            is_in_head: true,
            is_in_line: false,
            is_open: false,
            times: Vec::new(),
            needs_others: false,
        }
    }

    fn feed(&mut self, mut text: &[u8]) -> Outcome {
        while let Some(end) = memchr(b'\n', text) {
            self.part(&text[..end])?;
            self.end_line()?;
            text = &text[end + 1..];
        }
        if text.is_empty() { Ok(()) } else { self.part(text) }
    }

    /// Returns the largest number of bytes of the line that are held, of which `part` comes next.
    fn max_head_bytes(&self, part: &[u8]) -> usize {
        let first = self.head.first().or(part.first());
        let needs_whole = |clock: &Clock| first.is_some_and(|first| clock.how().needs_whole_line(*first));
        match &self.rows.clock {
            Some(clock) if needs_whole(clock) => usize::try_from(self.rows.options.max_row_bytes).unwrap_or(usize::MAX),
            _ => HEAD_BYTES,
        }
    }

    /// Takes the next bytes of a line.
    fn part(&mut self, mut part: &[u8]) -> Outcome {
        self.is_in_line = true;
        if self.is_in_head {
            let room = self.max_head_bytes(part) - self.head.len();
            let (now, later) = part.split_at(room.min(part.len()));
            self.head.extend_from_slice(now);
            part = later;
            if !part.is_empty() {
                self.decide()?;
            }
        }
        self.rows.sink.append(&self.path, part)
    }

    fn end_line(&mut self) -> Outcome {
        if self.is_in_head {
            self.decide()?;
        }
        (self.is_in_head, self.is_in_line) = (true, false);
        match self.start {
            Some(_) => Ok(()),
            None => self.end_document(),
        }
    }

    /// Begins a document with the line, or joins the line to the open document.
    fn decide(&mut self) -> Outcome {
        let begins = self.start.is_none_or(|start| start.is_match(&self.head));
        if begins || !self.is_open {
            self.end_document()?;
            self.is_open = true;
            if let Some(clock) = &mut self.rows.clock {
                let time = clock.for_line(&self.head);
                self.needs_others |= time.needs_others();
                self.times.push(time);
            }
            let max_held = if self.needs_others { MAX_HELD } else { BATCH_ROWS };
            if self.times.len() >= max_held {
                self.store_times()?;
            }
        } else {
            self.rows.sink.append(&self.path, b"\n")?;
        }
        self.rows.sink.append(&self.path, &self.head)?;
        self.head.clear();
        self.is_in_head = false;
        Ok(())
    }

    fn end_document(&mut self) -> Outcome {
        if std::mem::take(&mut self.is_open) { self.rows.sink.end_document(&self.path) } else { Ok(()) }
    }

    fn store_times(&mut self) -> Outcome {
        let Some(clock) = &mut self.rows.clock else { return Ok(()) };
        let times = clock.settled(&self.times);
        self.times.clear();
        self.needs_others = false;
        for batch in times.chunks(BATCH_ROWS) {
            let times = timestamps::array(batch.iter().copied());
            let batch = RecordBatch::try_from_iter_with_nullable([(timestamps::COLUMN, times, true)])?;
            self.rows.columns.push(&batch)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Outcome {
        if self.is_in_line {
            self.end_line()?;
        }
        self.end_document()?;
        if self.times.is_empty() { Ok(()) } else { self.store_times() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::NoColumns;
    use crate::failure::Faults;
    use crate::inputs::{Input, Source};
    use crate::{Batch, Gather, ReadOptions, Sink};

    #[derive(Default)]
    struct Documents(Vec<Vec<u8>>, bool);

    impl Sink for Documents {
        fn take(&mut self, batch: Batch) -> Outcome {
            for part in batch.iter() {
                match self.0.last_mut().filter(|_| self.1) {
                    Some(document) => document.extend_from_slice(part.text),
                    None => self.0.push(part.text.to_vec()),
                }
                self.1 = !part.is_last;
            }
            Ok(())
        }
    }

    /// Returns the records of `text` that is read in parts of `part_bytes`.
    fn records(text: &[u8], start: Option<&str>, part_bytes: usize) -> Vec<Vec<u8>> {
        let start = start.map(|start| Regex::new(start).unwrap());
        let mut documents = Documents::default();
        let mut sink = Gather::new(&mut documents, &Faults::default());
        let mut rows = Rows {
            input: &Input::new(Source::Stdin, "p".to_owned(), 0),
            options: ReadOptions::default(),
            columns: &mut NoColumns,
            clock: None,
            sink: &mut sink,
        };
        let mut records = Records::new(start.as_ref(), &mut rows);
        text.chunks(part_bytes).for_each(|part| records.feed(part).unwrap());
        records.finish().unwrap();
        sink.flush().unwrap();
        documents.0
    }

    /// Divides `text` into lines, and joins those that `start` does not match to the line before.
    fn by_lines(text: &[u8], start: Option<&str>) -> Vec<Vec<u8>> {
        let start = start.map(|start| Regex::new(start).unwrap());
        let text = text.strip_suffix(b"\n").or((!text.is_empty()).then_some(text));
        let mut records: Vec<Vec<u8>> = Vec::new();
        for line in text.into_iter().flat_map(|text| text.split(|&byte| byte == b'\n')) {
            let is_joined = start.as_ref().is_some_and(|start| !start.is_match(line));
            match records.last_mut().filter(|_| is_joined) {
                Some(record) => record.extend_from_slice(&[b"\n", line].concat()),
                None => records.push(line.to_vec()),
            }
        }
        records
    }

    #[test]
    fn records_are_the_lines_joined() {
        let long = format!("A{}\n b\nA{}\n", "x".repeat(3 * HEAD_BYTES), "y".repeat(HEAD_BYTES));
        let texts = ["", "\n", "\n\n", "A", "A\n", "b\nA\n\nb\r\nA", "b", "A1\nA2\n b\n\nA3\n\n", &long];
        for text in texts {
            for start in [None, Some("^A"), Some(""), Some("never")] {
                let expected = by_lines(text.as_bytes(), start);
                for part_bytes in [1, 2, 3, HEAD_BYTES, 1 << 20] {
                    let records = records(text.as_bytes(), start, part_bytes);
                    assert!(records == expected, "{start:?} {part_bytes} {}", text.len());
                }
            }
        }
    }
}
