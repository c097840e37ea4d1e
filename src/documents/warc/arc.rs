//! ARC: the crawls before WARC.
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
//! Version 2 has `Result-code Checksum Location Offset Filename` before the length. A URL may have blanks, so a line
//! is read from its end. Source: "Arc File Format" of the Internet Archive,
//! <https://archive.org/web/researcher/ArcFileFormat.php>.

use chrono::NaiveDateTime;

use super::Record;

/// First bytes of a file.
pub const START: &[u8] = b"filedesc://";
/// Fields of a line behind the URL, in version 1 and 2.
const NUM_FIELDS: [usize; 2] = [4, 9];
/// Places of the date and the type among these fields.
const DATE: usize = 1;
const TYPE: usize = 2;
/// Digits of a date: `20140216050221`. Some programs write more.
const DATE_DIGITS: usize = 14;

/// Returns true if `line` begins a record.
pub fn begins(line: &[u8]) -> bool {
    Record::from_line(line).is_ok()
}

impl Record {
    /// Reads the line in front of a record.
    ///
    /// # Errors
    /// It is none. The text says what was expected.
    pub(super) fn from_line(line: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        let found = NUM_FIELDS.into_iter().rev().find_map(|num_fields| Self::from_fields(text, num_fields));
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
        let date = *fields.get(DATE)?;
        let is_date = date.len() >= DATE_DIGITS && date.bytes().all(|byte| byte.is_ascii_digit());
        if fields.len() < num_fields || !is_date || !uri.contains(':') {
            return None;
        }
        let len_bytes = fields.last()?.parse().ok()?;
        let kind = if uri.as_bytes().starts_with(START) { "filedesc" } else { "response" };
        let time = NaiveDateTime::parse_from_str(&date[..DATE_DIGITS], "%Y%m%d%H%M%S").ok();
        Some(Self {
            kind: kind.to_owned(),
            path: Some((*uri).to_owned()),
            date: time.map(|time| time.and_utc().timestamp_micros()),
            content_type: Some(fields[TYPE].to_owned()),
            is_http: uri.starts_with("http://") || uri.starts_with("https://"),
            len_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(!begins(line.as_bytes()), "{line}");
        }
        assert!(!begins(b"http://a/ 1.2.3.4 20140216050221 text/html -1\n"));
        assert!(!begins("http://a/ 1.2.3.4 2014021605022\u{e9} text/html 1\n".as_bytes()));
    }
}
