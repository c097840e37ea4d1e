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
//! a content encoding stays as it is, and with `--html text` it is [`decoded`](coded), and becomes text if it is HTML
//! ([`html`]). Files of [`arc`] are read, too. Memory does not grow with a record, besides its header lines.
//!
//! Some programs write wrong lengths. Where no record begins behind one, the bytes up to the next line that begins
//! one are left out with a warning. A file whose first bytes begin no record is an error.

mod arc;
mod chunks;
mod coded;

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use self::chunks::Chunks;

use crate::charset::Given;
use crate::failure::{Failure, Outcome};
use crate::headers::{Headers, MAX_HEADER_BYTES, RecordColumns, read_head};
use crate::html;
use crate::open::Opened;
use crate::rows::Rows;
use crate::timestamps;

/// Types of records that become documents.
const KEPT_TYPES: [&str; 3] = ["response", "resource", "conversion"];
/// The way out of records that are damaged, for messages.
const WAY_OUT: &str = "; pass --keep-going to store what can be read";
/// The likely cause of bytes that begin no record, for warnings.
const WRONG_LENGTH: &str =
    "; the length of the record before may be wrong: the bytes up to the next record are left out";

/// Forms of crawls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Warc,
    Arc,
}

impl Form {
    /// Returns true if a record may begin with `line`.
    fn begins(self, line: &[u8]) -> bool {
        match self {
            Self::Warc => line.starts_with(b"WARC/"),
            Self::Arc => arc::begins(line),
        }
    }

    /// Reads what stands in front of a record, behind `first` if its first line was read already.
    fn read_head(self, first: Vec<u8>, reader: &mut dyn BufRead) -> io::Result<Vec<u8>> {
        match self {
            Self::Warc => Ok([first, read_head(reader)?].concat()),
            Self::Arc if first.is_empty() => read_line(reader),
            Self::Arc => Ok(first),
        }
    }

    fn parse(self, head: &[u8]) -> Result<Record, String> {
        match self {
            Self::Warc => Record::parse(head),
            Self::Arc => Record::from_line(head),
        }
    }
}

/// Reads the records of one input, which begins with `head`.
pub fn read(mut opened: Opened<'_>, head: &[u8], rows: &mut Rows<'_, '_>) -> Outcome {
    let form = if head.starts_with(arc::START) { Form::Arc } else { Form::Warc };
    let (budget, codec, input) = (opened.budget.clone(), opened.codec, rows.input);
    let failed = |error: io::Error| budget.failed(codec, input, &error);
    let mut columns = RecordColumns::new(["type", "content_type"]);
    // First line of the next record, if it was read.
    let mut ahead = Vec::new();
    for number in 1u64.. {
        let wrong = |reason: String| Failure::new(format!("{}: record {number}: {reason}", input.shown()));
        let ahead_line = std::mem::take(&mut ahead);
        let Some(head) = next_head(form, ahead_line, &mut *opened.reader).map_err(failed)? else { break };
        let record = match form.parse(&head) {
            Ok(record) => record,
            Err(reason) => {
                let is_record = form.begins(&head);
                if rows.sink.faults.are_left_out() {
                    rows.sink.faults.note(input, wrong(reason));
                    rows.sink.faults.add_rows(u64::from(is_record));
                } else if is_record || number == 1 {
                    return Err(wrong(format!("{reason}{WAY_OUT}")));
                } else {
                    rows.sink.faults.note(input, wrong(format!("{reason}{WRONG_LENGTH}")));
                }
                skip_to_record(form, &mut *opened.reader, &mut ahead).map_err(failed)?;
                continue;
            }
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
            let mut page = None;
            if rows.options.html_to_text {
                if let Some(encodings) = http.get("content-encoding") {
                    let place = format!("record {number}");
                    body = coded::decoded(body, encodings, &budget, input, &place).map_err(failed)?;
                }
                page = html::Form::from_type(content_type.as_deref());
            }
            let appended = match page {
                Some(page) => {
                    let given = Given::ContentType(content_type.as_deref());
                    html::append_text(page, given, &path, &mut *body, rows, &failed)
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

/// Reads what stands in front of the next record, behind its first line or behind blank lines. Returns none at the
/// end.
fn next_head(form: Form, first: Vec<u8>, reader: &mut dyn BufRead) -> io::Result<Option<Vec<u8>>> {
    while first.is_empty() {
        match reader.fill_buf()?.first() {
            None => return Ok(None),
            Some(b'\r' | b'\n') => reader.consume(1),
            Some(_) => break,
        }
    }
    form.read_head(first, reader).map(Some)
}

/// Reads a line, or the first bytes of a very long one.
fn read_line(reader: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
    Ok(line)
}

/// Skips to the first line of a record, and reads it into `line`, which stays empty at the end.
fn skip_to_record(form: Form, reader: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    let mut is_start = true;
    loop {
        *line = read_line(reader)?;
        if line.is_empty() || is_start && form.begins(line) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
