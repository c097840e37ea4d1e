//! Text of a followed source that waits for its commit, and how much of it may be committed.
//!
//! ```text
//! line 1\nline 2\n line 3\n line 4
//! └── complete lines ─────┘ └ waits for its line end
//! └── complete records ┘      with --record-start: the last record may go on
//! ```
//!
//! The last record goes on until the next one begins, or the text was quiet for the age of a commit and as
//! long again.

use std::time::{Duration, Instant};

use memchr::memrchr;
use regex::bytes::Regex;

/// The size and the age at which waiting text is committed.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of bytes.
    pub len_bytes: usize,
    /// Age of the oldest byte.
    pub age: Duration,
}

/// Text that waits.
#[derive(Debug)]
pub struct Waiting {
    /// Bytes that were read and not taken.
    pub text: Vec<u8>,
    start: Option<Regex>,
    /// Time since which there is text, and time of the last read.
    since: Instant,
    grown: Instant,
}

impl Waiting {
    /// Creates a text without bytes. `start` matches the first line of a record.
    pub fn new(start: Option<Regex>) -> Self {
        let now = Instant::now();
        Self { text: Vec::new(), start, since: now, grown: now }
    }

    /// Notes that bytes were appended to the text, which had `before` bytes.
    pub fn note_read(&mut self, before: usize) {
        self.grown = Instant::now();
        if before == 0 {
            self.since = self.grown;
        }
    }

    /// Takes the complete documents if they are old or large enough.
    pub fn take_due(&mut self, limits: Limits) -> Option<Vec<u8>> {
        let is_large = self.text.len() >= limits.len_bytes;
        if self.text.is_empty() || !(is_large || self.since.elapsed() >= limits.age) {
            return None;
        }
        let is_quiet = self.grown.elapsed() >= limits.age.saturating_mul(2);
        self.take_up_to(self.complete_len(is_quiet))
    }

    /// Takes the complete lines, or none if there are none.
    pub fn take_lines(&mut self) -> Option<Vec<u8>> {
        self.take_up_to(self.complete_len(true))
    }

    /// Takes the complete documents, or none if there are none.
    pub fn take_complete(&mut self) -> Option<Vec<u8>> {
        self.take_up_to(self.complete_len(false))
    }

    /// Takes everything, or none if there is nothing.
    pub fn take_all(&mut self) -> Option<Vec<u8>> {
        self.take_up_to(self.text.len())
    }

    /// Returns the number of bytes of complete lines, without the last record unless it `has_ended`.
    fn complete_len(&self, has_ended: bool) -> usize {
        let lines_end = memrchr(b'\n', &self.text).map_or(0, |end| end + 1);
        let Some(start) = self.start.as_ref().filter(|_| !has_ended) else { return lines_end };
        let mut rest = self.text.get(..lines_end).unwrap_or_default();
        while let Some(lines) = rest.strip_suffix(b"\n") {
            let begin = memrchr(b'\n', lines).map_or(0, |end| end + 1);
            if lines.get(begin..).is_some_and(|line| start.is_match(line)) {
                return begin;
            }
            rest = lines.get(..begin).unwrap_or_default();
        }
        0
    }

    fn take_up_to(&mut self, len: usize) -> Option<Vec<u8>> {
        if len == 0 {
            return None;
        }
        let rest = self.text.split_off(len);
        self.since = Instant::now();
        Some(std::mem::replace(&mut self.text, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ONCE: Limits = Limits { len_bytes: 1 << 20, age: Duration::ZERO };

    fn waiting(text: &str, start: Option<&str>) -> Waiting {
        let mut waiting = Waiting::new(start.map(|start| Regex::new(start).unwrap()));
        waiting.text = text.as_bytes().to_vec();
        waiting.note_read(0);
        waiting
    }

    #[test]
    fn incomplete_lines_wait() {
        let mut lines = waiting("one\ntwo\nthr", None);
        assert_eq!(lines.take_due(AT_ONCE).unwrap(), b"one\ntwo\n");
        assert_eq!(lines.take_due(AT_ONCE), None);
        assert_eq!(lines.take_lines(), None);
        assert_eq!(lines.take_all().unwrap(), b"thr");
        assert_eq!(lines.take_all(), None);
    }

    #[test]
    fn text_is_due_by_age_or_size() {
        let mut lines = waiting("one\n", None);
        let age = Duration::from_secs(3600);
        assert_eq!(lines.take_due(Limits { len_bytes: 5, age }), None);
        assert_eq!(lines.take_due(Limits { len_bytes: 4, age }).unwrap(), b"one\n");
    }

    #[test]
    fn the_last_record_waits_until_it_is_quiet() {
        let (text, age) = ("A\n b\nA\n c\n", Duration::from_secs(3600));
        let mut records = waiting(text, Some("^A"));
        assert_eq!(records.take_due(Limits { len_bytes: 1, age }).unwrap(), b"A\n b\n");
        assert_eq!(records.take_due(Limits { len_bytes: 1, age }), None);
        assert_eq!(records.take_due(AT_ONCE).unwrap(), b"A\n c\n");
        // It also waits while it is old enough for a commit and its lines come slowly.
        let age = Duration::from_secs(60);
        let limits = Limits { len_bytes: 1 << 20, age };
        let mut slow = waiting(text, Some("^A"));
        let ago = |ages: f64| Instant::now().checked_sub(age.mul_f64(ages)).unwrap();
        (slow.since, slow.grown) = (ago(1.5), ago(1.5));
        assert_eq!(slow.take_due(limits).unwrap(), b"A\n b\n");
        slow.since = ago(1.5);
        assert_eq!(slow.take_due(limits), None);
        slow.grown = ago(2.0);
        assert_eq!(slow.take_due(limits).unwrap(), b"A\n c\n");
        assert_eq!(waiting(" b\n c\n", Some("^A")).take_lines().unwrap(), b" b\n c\n");
    }
}
