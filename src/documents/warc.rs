//! WARC: the responses, resources and conversions of a crawl.
//!
//! ```text
//! WARC/1.0                                      one record
//! WARC-Type: response                           ─▶ column type
//! WARC-Target-URI: https://example.com/         ─▶ path
//! WARC-Date: 2024-05-06T07:08:09Z               ─▶ column date
//! Content-Type: application/http;msgtype=response
//! Content-Length: 1234
//!
//! HTTP/1.1 200 OK                               left out
//! Content-Type: text/html                       ─▶ column content_type
//!
//! <html>…                                       ─▶ text, of any length
//! ```
//!
//! Source: ISO 28500, <https://iipc.github.io/warc-specifications/>. Requests, metadata and revisits are
//! left out. Of a response of HTTP the text is the body, with the lengths of chunks taken out. A body with
//! a content encoding stays as it is. With `--html text` bodies of HTML become text ([`html`]). Memory does
//! not grow with a record, besides its header lines.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;

use crate::charset::Given;
use crate::failure::{Failure, Outcome};
use crate::headers::{Headers, MAX_HEADER_BYTES, RecordColumns, read_head};
use crate::html::{self, Form};
use crate::open::Opened;
use crate::rows::Rows;
use crate::timestamps;

/// Types of records that become documents.
const KEPT_TYPES: [&str; 3] = ["response", "resource", "conversion"];
/// The way out of records that are damaged, for messages.
const WAY_OUT: &str = "; pass --keep-going to store what can be read";
/// Maximum bytes of the line in front of a chunk.
const MAX_CHUNK_LINE: u64 = 1 << 10;

/// Reads the records of one input.
pub fn read(mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let (budget, codec, input) = (opened.budget.clone(), opened.codec, rows.input);
    let failed = |error: io::Error| budget.failed(codec, input, &error);
    let mut columns = RecordColumns::new(["type", "content_type"]);
    // First line of the next record, if it was read.
    let mut ahead = Vec::new();
    for number in 1u64.. {
        let wrong = |reason: String| Failure::new(format!("{}: record {number}: {reason}", input.shown()));
        let ahead_line = std::mem::take(&mut ahead);
        let Some(head) = read_record_head(ahead_line, &mut *opened.reader).map_err(failed)? else { break };
        let record = match Record::parse(&head) {
            Ok(record) => record,
            Err(reason) if rows.sink.faults.are_left_out() => {
                rows.sink.faults.note(input, wrong(reason));
                rows.sink.faults.add_rows(u64::from(head.starts_with(b"WARC/")));
                skip_to_record(&mut *opened.reader, &mut ahead).map_err(failed)?;
                continue;
            }
            Err(reason) => return Err(wrong(format!("{reason}{WAY_OUT}"))),
        };
        let mut block = (&mut *opened.reader).take(record.len_bytes);
        if KEPT_TYPES.contains(&record.kind.as_str()) {
            let path = Arc::from(record.path.as_deref().unwrap_or(&input.path));
            let http = if record.is_http {
                Headers::parse(&read_head(&mut block).map_err(failed)?)
            } else {
                Headers::default()
            };
            let mut body: Box<dyn BufRead> = match http.get("transfer-encoding") {
                Some(coding) if coding.eq_ignore_ascii_case("chunked") => {
                    Box::new(BufReader::new(Chunks::new(&mut block).map_err(failed)?))
                }
                _ => Box::new(&mut block),
            };
            let content_type = http.get("content-type").map(str::to_owned).or(record.content_type);
            let form = Form::from_type(content_type.as_deref(), http.get("content-encoding"));
            let appended = match form.filter(|_| rows.options.html_to_text) {
                Some(form) => {
                    let given = Given::ContentType(content_type.as_deref());
                    html::append_text(form, given, &path, &mut *body, rows, &failed)
                }
                None => rows.sink.append_from(&path, &mut *body, &failed),
            };
            // The text up to a fault is stored.
            rows.sink.faults.pass(input, appended)?;
            rows.sink.end_document(&path)?;
            drop(body);
            let texts = [Some(record.kind), content_type];
            columns.push(texts, record.date, rows)?;
        }
        io::copy(&mut block, &mut io::sink()).map_err(failed)?;
        if block.limit() > 0 {
            let reason = format!("it is cut: {} bytes are missing", block.limit());
            if !rows.sink.faults.are_left_out() {
                return Err(wrong(format!("{reason}{WAY_OUT}")));
            }
            rows.sink.faults.note(input, wrong(reason));
        }
        rows.sink.count_read(opened.take_counts());
    }
    rows.sink.count_read(opened.take_counts());
    columns.store(rows)
}

/// Reads the header lines of the next record, behind its first line or behind blank lines. Returns none at the end.
fn read_record_head(first: Vec<u8>, reader: &mut dyn BufRead) -> io::Result<Option<Vec<u8>>> {
    if !first.is_empty() {
        return Ok(Some([first, read_head(reader)?].concat()));
    }
    loop {
        match reader.fill_buf()?.first() {
            None => return Ok(None),
            Some(b'\r' | b'\n') => reader.consume(1),
            Some(_) => return read_head(reader).map(Some),
        }
    }
}

/// Skips to the first line of a record, and reads it into `line`, which stays empty at the end.
fn skip_to_record(reader: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    let mut is_start = true;
    loop {
        line.clear();
        reader.take(MAX_HEADER_BYTES).read_until(b'\n', line)?;
        if line.is_empty() || is_start && line.starts_with(b"WARC/") {
            return Ok(());
        }
        is_start = line.ends_with(b"\n");
    }
}

/// The header lines of a record.
#[derive(Debug)]
struct Record {
    kind: String,
    path: Option<String>,
    date: Option<i64>,
    content_type: Option<String>,
    is_http: bool,
    len_bytes: u64,
}

impl Record {
    fn parse(head: &[u8]) -> Result<Self, String> {
        if !head.starts_with(b"WARC/") {
            let start = String::from_utf8_lossy(head.get(..20.min(head.len())).unwrap_or_default());
            return Err(format!("expected a line WARC/1.0 or WARC/1.1, found {start:?}"));
        }
        if !head.ends_with(b"\n") {
            return Err(format!("it is cut, or it has header lines of more than {MAX_HEADER_BYTES} bytes"));
        }
        let headers = Headers::parse(head);
        let len_bytes = headers.get("content-length").and_then(|length| length.parse().ok());
        let text = |name| headers.get(name).map(str::to_owned);
        let content_type = text("content-type");
        let is_http = content_type.as_ref().is_some_and(|kind| kind.starts_with("application/http"));
        let uri = headers.get("warc-target-uri");
        Ok(Self {
            kind: text("warc-type").ok_or("there is no line WARC-Type")?,
            path: uri.map(|uri| uri.trim_start_matches('<').trim_end_matches('>').to_owned()),
            date: headers.get("warc-date").and_then(timestamps::instant),
            content_type,
            is_http,
            len_bytes: len_bytes.ok_or("there is no line Content-Length with a number")?,
        })
    }
}

/// A body in chunks, each behind a line with its length. A body whose first line is none, although the
/// header lines say so, stays as it is; so does the rest behind a line that is none.
struct Chunks<R> {
    inner: R,
    /// Bytes of a line that is no length of a chunk.
    line: Cursor<Vec<u8>>,
    /// Bytes up to the next length, or none if there are no chunks any more.
    rest: Option<u64>,
}

impl<R: BufRead> Chunks<R> {
    fn new(inner: R) -> io::Result<Self> {
        let mut chunks = Self { inner, line: Cursor::default(), rest: Some(0) };
        chunks.next_chunk()?;
        Ok(chunks)
    }

    /// Reads the length of the next chunk. The last one has the length 0.
    fn next_chunk(&mut self) -> io::Result<()> {
        let mut line = Vec::new();
        (&mut self.inner).take(MAX_CHUNK_LINE).read_until(b'\n', &mut line)?;
        let text = std::str::from_utf8(&line).unwrap_or_default();
        let digits = text.split(';').next().unwrap_or_default().trim();
        match u64::from_str_radix(digits, 16) {
            Ok(0) => {
                io::copy(&mut self.inner, &mut io::sink())?;
                self.rest = None;
            }
            Ok(len) if line.ends_with(b"\n") => self.rest = Some(len),
            _ => (self.line, self.rest) = (Cursor::new(line), None),
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.line.read(bytes)?;
        let Some(rest) = self.rest.filter(|_| len == 0) else {
            return if len > 0 { Ok(len) } else { self.inner.read(bytes) };
        };
        let len = (&mut self.inner).take(rest).read(bytes)?;
        self.rest = Some(rest - len as u64);
        if self.rest == Some(0) {
            // The line end behind the chunk.
            let mut line = Vec::new();
            (&mut self.inner).take(2).read_until(b'\n', &mut line)?;
            self.next_chunk()?;
        } else if len == 0 && !bytes.is_empty() {
            self.rest = None;
        }
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(body: &str) -> String {
        let mut text = String::new();
        Chunks::new(body.as_bytes()).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn chunks_are_joined() {
        assert_eq!(joined("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n"), "abcde");
        assert_eq!(joined("A\r\n0123456789\r\n0\r\n\r\n"), "0123456789");
        assert_eq!(joined("0\r\n\r\n"), "");
    }

    #[test]
    fn other_bodies_stay() {
        for body in ["", "<html>\n</html>", "no line end", "zz\r\nabc", "3"] {
            assert_eq!(joined(body), body);
        }
        assert_eq!(joined("3\r\nabc\r\nmore\r\n3\r\n"), "abcmore\r\n3\r\n");
        assert_eq!(joined("9\r\ncut"), "cut");
    }

    #[test]
    fn records_need_a_type_and_a_length() {
        let record = Record::parse(
            b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: <http://a/>\r\n\
              WARC-Date: 2024-05-06T07:08:09Z\r\nContent-Length: 7\r\n\r\n",
        );
        let record = record.unwrap();
        assert_eq!((record.path.as_deref(), record.len_bytes), (Some("http://a/"), 7));
        assert_eq!(record.date, Some(1_714_979_289_000_000));
        for (head, reason) in [
            ("HTTP/1.1 200 OK\r\n\r\n", "expected a line WARC/1.0 or WARC/1.1, found \"HTTP/1.1 200 OK\\r\\n\\r\\n\""),
            ("WARC/1.0\nContent-Length: 1\n\n", "there is no line WARC-Type"),
            ("WARC/1.0\nWARC-Type: x\nContent-Length: -1\n\n", "there is no line Content-Length with a number"),
            ("WARC/1.0", "it is cut, or it has header lines of more than 1048576 bytes"),
        ] {
            assert_eq!(Record::parse(head.as_bytes()).unwrap_err(), reason);
        }
    }
}
