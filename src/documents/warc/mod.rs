//! WARC and ARC: the responses, resources and conversions of a crawl.
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
//! Source: ISO 28500, <https://iipc.github.io/warc-specifications/>. Requests, metadata and revisits are left
//! out. Of a response of HTTP the text is the body, with the lengths of chunks taken out ([`Chunks`]). A body
//! with a content encoding stays as it is, and with `--html text` it is [`decoded`](coded), and becomes text
//! if it is HTML ([`html`]). Memory does not grow with a record, besides its header lines.
//!
//! Some programs write wrong lengths. Where no record begins behind one, the bytes up to the next line that begins
//! one are left out with a warning. A file whose first bytes begin no record is an error.
//!
//! ARC has the crawls before WARC:
//!
//! ```text
//! filedesc://a.arc 0.0.0.0 20140216050221 text/plain 75      the first record: version of the file
//! 1 0 Capture
//! URL IP-address Archive-date Content-type Archive-length
//!
//! http://example.com/ 192.0.2.1 20140216050221 text/html 1591
//! HTTP/1.1 200 OK                                             1,591 bytes, as in WARC
//! ```
//!
//! Version 2 has `Result-code Checksum Location Offset Filename` before the length. A URL may have blanks, so
//! a line is read from its end. Source: "Arc File Format" of the Internet Archive,
//! <https://archive.org/web/researcher/ArcFileFormat.php>.

mod coded;

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use chrono::NaiveDateTime;

use self::coded::Chunks;
use crate::charset::Given;
use crate::failure::{Failure, Outcome};
use crate::headers::{Headers, MAX_HEADER_BYTES, RecordColumns, read_head};
use crate::open::Opened;
use crate::rows::Rows;
use crate::{html, timestamps};

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
            Self::Arc => begins_arc(line),
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
    let form = if head.starts_with(ARC_START) { Form::Arc } else { Form::Warc };
    let budget = opened.budget.clone();
    let codec = opened.codec;
    let input = rows.input;
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
            // The type of the record is that of a body only where it is no message of HTTP.
            let is_http = record.is_http || record.may_be_http && begins_http(&mut block).map_err(failed)?;
            let http =
                if is_http { Headers::parse(&read_head(&mut block).map_err(failed)?) } else { Headers::default() };
            let (transfer_codings, is_chunked) = without_chunks(http.get("transfer-encoding").unwrap_or_default());
            let mut body: Box<dyn BufRead> = if is_chunked {
                Box::new(BufReader::new(Chunks::new(&mut block).map_err(failed)?))
            } else {
                Box::new(&mut block)
            };
            let content_type = http.get("content-type").map(str::to_owned).or(record.content_type.filter(|_| !is_http));
            let mut page = None;
            if rows.options.html_to_text {
                let encodings = [http.get("content-encoding").unwrap_or_default(), transfer_codings].join(",");
                let place = format!("record {number}");
                body = coded::decoded(body, &encodings, &budget, input, &place).map_err(failed)?;
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

/// Returns the codings of a line `Transfer-Encoding` without the outermost one if that is `chunked`, and true if it is.
fn without_chunks(codings: &str) -> (&str, bool) {
    let (before, last) = codings.rsplit_once(',').unwrap_or(("", codings));
    if last.trim().eq_ignore_ascii_case("chunked") { (before, true) } else { (codings, false) }
}

/// Returns true if `block` begins with the first line of a response of HTTP, as far as its buffer goes.
fn begins_http(block: &mut dyn BufRead) -> io::Result<bool> {
    const START: &[u8] = b"HTTP/";
    let start = block.fill_buf()?;
    let start = start.get(..START.len()).unwrap_or(start);
    Ok(!start.is_empty() && START.starts_with(start))
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
    /// True if the block is a message of HTTP.
    is_http: bool,
    /// True if the record does not say what its block is, and its first bytes tell it.
    may_be_http: bool,
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
        let is_http =
            content_type.as_ref().is_some_and(|kind| kind.to_ascii_lowercase().starts_with("application/http"));
        let kind = text("warc-type").ok_or("there is no line WARC-Type")?;
        let may_be_http = content_type.is_none() && kind == "response";
        let uri = headers.get("warc-target-uri");
        Ok(Self {
            kind,
            path: uri.map(|uri| uri.trim_start_matches('<').trim_end_matches('>').to_owned()),
            date: headers.get("warc-date").and_then(timestamps::instant),
            content_type,
            is_http,
            may_be_http,
            len_bytes: len_bytes.ok_or("there is no line Content-Length with a number")?,
        })
    }
}

/// First bytes of a file of ARC.
const ARC_START: &[u8] = b"filedesc://";
/// Fields of a line of ARC behind the URL, in version 1 and 2.
const ARC_NUM_FIELDS: [usize; 2] = [4, 9];
/// Places of the date and the type among these fields.
const ARC_DATE: usize = 1;
const ARC_TYPE: usize = 2;
/// Digits of a date: `20140216050221`. Some programs write more.
const ARC_DATE_DIGITS: usize = 14;

/// Returns true if `line` begins a record.
fn begins_arc(line: &[u8]) -> bool {
    Record::from_line(line).is_ok()
}

impl Record {
    /// Reads the line in front of a record.
    ///
    /// # Errors
    /// It is none. The text says what was expected.
    fn from_line(line: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        let found = ARC_NUM_FIELDS.into_iter().rev().find_map(|num_fields| Self::from_fields(text, num_fields));
        found.ok_or_else(|| {
            let start: String = text.chars().take(60).collect();
            format!("expected a line of ARC: URL, address, date, type and length; found {start:?}")
        })
    }

    /// Reads a line with this number of fields behind the URL.
    fn from_fields(text: &str, num_fields: usize) -> Option<Self> {
        let mut fields: Vec<&str> = text.rsplitn(num_fields + 1, ' ').collect();
        fields.reverse();
        let (uri, fields) = fields.split_first()?;
        let date = *fields.get(ARC_DATE)?;
        let is_date = date.len() >= ARC_DATE_DIGITS && date.bytes().all(|byte| byte.is_ascii_digit());
        if fields.len() < num_fields || !is_date || !uri.contains(':') {
            return None;
        }
        let len_bytes = fields.last()?.parse().ok()?;
        let kind = if uri.as_bytes().starts_with(ARC_START) { "filedesc" } else { "response" };
        let time = NaiveDateTime::parse_from_str(&date[..ARC_DATE_DIGITS], "%Y%m%d%H%M%S").ok();
        Some(Self {
            kind: kind.to_owned(),
            path: Some((*uri).to_owned()),
            date: time.map(|time| time.and_utc().timestamp_micros()),
            content_type: Some(fields[ARC_TYPE].to_owned()),
            is_http: uri.starts_with("http://") || uri.starts_with("https://"),
            may_be_http: false,
            len_bytes,
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

    /// Some programs leave the type of the block out.
    #[test]
    fn responses_without_a_type_are_told_by_their_first_bytes() {
        let record = |kind: &str, more: &str| {
            let head = format!("WARC/1.0\r\nWARC-Type: {kind}\r\n{more}Content-Length: 7\r\n\r\n");
            let record = Record::parse(head.as_bytes()).unwrap();
            (record.is_http, record.may_be_http)
        };
        assert_eq!(record("response", ""), (false, true));
        assert_eq!(record("resource", ""), (false, false));
        assert_eq!(record("response", "Content-Type: text/dns\r\n"), (false, false));
        assert_eq!(record("response", "Content-Type: Application/HTTP; msgtype=response\r\n"), (true, false));
        for (block, expected) in [("HTTP/1.1 200 OK", true), ("HT", true), ("", false), ("HTML", false)] {
            assert_eq!(begins_http(&mut block.as_bytes()).unwrap(), expected, "{block}");
        }
    }

    #[test]
    fn lines_of_both_versions_are_read_from_their_end() {
        let one = b"http://a/b c?d=e f 192.0.2.1 20140216050221 text/html 1591\r\n";
        let two = b"http://a/b c?d=e f 192.0.2.1 20140216050221 text/html 200 abc - 0 a.arc 1591\n";
        for line in [one.as_slice(), two] {
            let record = Record::from_line(line).unwrap();
            assert_eq!(record.path.as_deref(), Some("http://a/b c?d=e f"));
            assert_eq!((record.content_type.as_deref(), record.len_bytes), (Some("text/html"), 1591));
            assert_eq!((record.date, record.is_http), (Some(1_392_526_941_000_000), true));
        }
        let first = Record::from_line(b"filedesc://a.arc 0.0.0.0 20140216050221 text/plain 75\n").unwrap();
        assert_eq!((first.kind.as_str(), first.is_http), ("filedesc", false));
        for line in ["", "\n", "http://a/", "http://a/ 1.2.3.4 2014 text/html 1", "a 1.2.3.4 20140216050221 t 1"] {
            assert!(!begins_arc(line.as_bytes()), "{line}");
        }
        assert!(!begins_arc(b"http://a/ 1.2.3.4 20140216050221 text/html -1\n"));
        assert!(!begins_arc("http://a/ 1.2.3.4 2014021605022\u{e9} text/html 1\n".as_bytes()));
    }
}
