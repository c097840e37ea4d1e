//! Lines as text, in the forms of ripgrep.
//!
//! ```text
//! Lines             Headings        Paths      Counts       Json
//! a.txt-6-before    a.txt           a.txt      a.txt:1      {"type":"begin",…}
//! a.txt:7:line      6-before                                {"type":"match",…}
//! --                7:line                                  {"type":"end",…}
//!                                                           {"type":"summary",…} at the end of all
//! ```
//!
//! Bytes that are not UTF-8 are written as they stand; JSON has them in base64. A last line without
//! an end gets one. Lines around a line are written once, however many lines they surround.

use std::ops::{AddAssign, Range};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tadoc::query::{GrepLine, LinePattern};
use tadoc_documents::display::plain;

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Each line behind its path and number.
    Lines,
    /// Lines below their path.
    Headings,
    /// Paths of documents that have a line.
    Paths,
    /// Paths and numbers of lines.
    Counts,
    /// An object for each line, and for the begin and the end of a document.
    Json,
}

/// Form and colours of the output.
#[derive(Debug, Clone)]
pub struct Style {
    pub format: Format,
    pub is_colored: bool,
    /// If true, control characters of paths are escaped.
    pub is_terminal: bool,
    pub has_numbers: bool,
    /// If false, paths stand in no line.
    pub has_paths: bool,
    /// If true, lines around the lines are written.
    pub has_context: bool,
    /// If true, the lines have no match.
    pub is_inverted: bool,
    /// If true, the matches of a line are written or counted, each on its own.
    pub is_of_matches: bool,
}

/// Colours of ripgrep.
const PATH: &str = "\x1b[35m";
const NUMBER: &str = "\x1b[32m";
const MATCH: &str = "\x1b[1m\x1b[31m";
const RESET: &str = "\x1b[0m";

impl Style {
    /// Returns the text between documents.
    pub fn separator(&self) -> &'static str {
        match self.format {
            Format::Headings => "\n",
            Format::Lines if self.has_context => "--\n",
            _ => "",
        }
    }
}

/// Work of a search, in the words of `rg --json`. A document that cannot have a line is not searched.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics {
    /// Time between the first line of a document and its last one.
    pub elapsed: Duration,
    pub searches: u64,
    pub searches_with_match: u64,
    pub bytes_searched: u64,
    pub bytes_printed: u64,
    pub matched_lines: u64,
    pub matches: u64,
}

impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Self) {
        self.elapsed += other.elapsed;
        self.searches += other.searches;
        self.searches_with_match += other.searches_with_match;
        self.bytes_searched += other.bytes_searched;
        self.bytes_printed += other.bytes_printed;
        self.matched_lines += other.matched_lines;
        self.matches += other.matches;
    }
}

impl Statistics {
    fn to_json(self) -> Value {
        json!({
            "elapsed": json_of(self.elapsed),
            "searches": self.searches,
            "searches_with_match": self.searches_with_match,
            "bytes_searched": self.bytes_searched,
            "bytes_printed": self.bytes_printed,
            "matched_lines": self.matched_lines,
            "matches": self.matches,
        })
    }

    /// Returns the last line of JSON, for a search that took `elapsed`.
    pub fn summary(self, elapsed: Duration) -> String {
        let data = json!({"elapsed_total": json_of(elapsed), "stats": self.to_json()});
        format!("{}\n", json!({"type": "summary", "data": data}))
    }
}

fn json_of(time: Duration) -> Value {
    let (secs, nanos) = (time.as_secs(), time.subsec_nanos());
    json!({"secs": secs, "nanos": nanos, "human": format!("{:.6}s", time.as_secs_f64())})
}

/// A line that is written.
struct Written<'a> {
    number: u64,
    offset: u64,
    text: &'a [u8],
    /// True if the pattern selected it, false if it stands around such a line.
    is_selected: bool,
}

/// A printer of the lines of successive documents.
pub struct Printer<'a> {
    style: &'a Style,
    pattern: &'a LinePattern,
    text: Vec<u8>,
    path: String,
    is_begun: bool,
    /// Work for the document, if it is shown; when its first line came.
    of_document: Statistics,
    begun_at: Instant,
    /// Work for all documents before.
    statistics: Statistics,
    /// Number of selected lines, or of their matches.
    num_selected: u64,
    /// Number and offset of the line behind the last one that was written.
    next_number: u64,
    next_offset: u64,
    /// Lines behind the last selected line, which are not written yet.
    after: Vec<u8>,
}

impl<'a> Printer<'a> {
    pub fn new(style: &'a Style, pattern: &'a LinePattern) -> Self {
        Self {
            style,
            pattern,
            text: Vec::new(),
            path: String::new(),
            is_begun: false,
            of_document: Statistics::default(),
            begun_at: Instant::now(),
            statistics: Statistics::default(),
            num_selected: 0,
            next_number: 1,
            next_offset: 0,
            after: Vec::new(),
        }
    }

    /// Returns the text since the last [`clear`](Self::clear).
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Forgets the text.
    pub fn clear(&mut self) {
        self.text.clear();
    }

    /// Returns the work for the documents that have a line and were ended.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Ends the document before, and begins the one with this path, of `len_bytes`. It has a line.
    pub fn begin(&mut self, path: &str, len_bytes: u64) {
        self.end();
        let of_document = Statistics { searches: 1, searches_with_match: 1, ..Statistics::default() };
        self.of_document = Statistics { bytes_searched: len_bytes, ..of_document };
        self.begun_at = Instant::now();
        self.path = if self.style.is_terminal { plain(path).into_owned() } else { path.to_owned() };
        (self.is_begun, self.num_selected, self.next_number, self.next_offset) = (true, 0, 1, 0);
        self.text.extend_from_slice(self.style.separator().as_bytes());
        match self.style.format {
            Format::Headings | Format::Paths => {
                self.push_path();
                self.text.push(b'\n');
            }
            Format::Json => {
                let begin = json!({"type": "begin", "data": {"path": {"text": self.path}}});
                self.push_json(&begin);
            }
            Format::Lines | Format::Counts => {}
        }
    }

    /// Ends the document, if there is one.
    pub fn end(&mut self) {
        if !std::mem::take(&mut self.is_begun) {
            return;
        }
        self.push_after(u64::MAX);
        match self.style.format {
            Format::Counts => {
                if self.style.has_paths {
                    self.push_path();
                    self.text.push(b':');
                }
                self.text.extend_from_slice(format!("{}\n", self.num_selected).as_bytes());
            }
            Format::Json => {
                self.of_document.matched_lines = self.num_selected;
                self.of_document.elapsed = self.begun_at.elapsed();
                self.statistics += self.of_document;
                let data = json!({
                    "path": {"text": self.path},
                    "binary_offset": null,
                    "stats": self.of_document.to_json(),
                });
                self.push_json(&json!({"type": "end", "data": data}));
            }
            Format::Lines | Format::Headings | Format::Paths => {}
        }
    }

    /// Adds a selected line, and the lines in front of it.
    pub fn line(&mut self, line: &GrepLine<'_>) {
        self.num_selected += match self.style {
            Style { is_of_matches: true, format: Format::Counts, .. } => self.pattern.matches(line.line).count() as u64,
            _ => 1,
        };
        if matches!(self.style.format, Format::Paths | Format::Counts) {
            return;
        }
        self.push_after(line.line_number);
        let num_before = line.before.split_inclusive(|&byte| byte == b'\n').count() as u64;
        let (mut number, mut offset) = (line.line_number - num_before, line.line_offset - line.before.len() as u64);
        let is_gap = self.num_selected > 1 && number > self.next_number;
        if is_gap && self.style.has_context && self.style.format != Format::Json {
            self.text.extend_from_slice(b"--\n");
        }
        for text in line.before.split_inclusive(|&byte| byte == b'\n') {
            if number >= self.next_number {
                self.push(&Written { number, offset, text, is_selected: false });
            }
            (number, offset) = (number + 1, offset + text.len() as u64);
        }
        let (number, offset) = (line.line_number, line.line_offset);
        self.push(&Written { number, offset, text: line.line, is_selected: true });
        self.next_number = line.line_number + 1;
        self.next_offset = line.line_offset + line.line.len() as u64 + 1;
        self.after.extend_from_slice(line.after);
    }

    /// Adds the lines behind the last selected line up to the line `number`.
    fn push_after(&mut self, number: u64) {
        let after = std::mem::take(&mut self.after);
        for text in after.split_inclusive(|&byte| byte == b'\n') {
            if self.next_number >= number {
                break;
            }
            let (number, offset) = (self.next_number, self.next_offset);
            self.push(&Written { number, offset, text, is_selected: false });
            self.next_number += 1;
            self.next_offset += text.len() as u64;
        }
    }

    fn push(&mut self, line: &Written<'_>) {
        let text = line.text.strip_suffix(b"\n").unwrap_or(line.text);
        let has_matches = line.is_selected && !self.style.is_inverted;
        if self.style.format == Format::Json {
            let matches = if has_matches { self.pattern.matches(text).collect() } else { vec![] };
            self.of_document.matches += matches.len() as u64;
            self.push_json_line(line, text, &matches);
            return;
        }
        let pattern = self.pattern;
        if has_matches && self.style.is_of_matches {
            for found in pattern.matches(text) {
                self.push_place(line);
                self.push_colored(MATCH, &text[found]);
                self.text.push(b'\n');
            }
            return;
        }
        self.push_place(line);
        let mut start = 0;
        if has_matches && self.style.is_colored {
            for found in pattern.matches(text).filter(|found| !found.is_empty()) {
                self.text.extend_from_slice(&text[start..found.start]);
                self.push_colored(MATCH, &text[found.clone()]);
                start = found.end;
            }
        }
        self.text.extend_from_slice(&text[start..]);
        self.text.push(b'\n');
    }

    /// Adds the path and the number of a line, as far as they are written.
    fn push_place(&mut self, line: &Written<'_>) {
        let mark = if line.is_selected { ":" } else { "-" };
        if self.style.format == Format::Lines && self.style.has_paths {
            self.push_path();
            self.text.extend_from_slice(mark.as_bytes());
        }
        if self.style.has_numbers {
            self.push_colored(NUMBER, line.number.to_string().as_bytes());
            self.text.extend_from_slice(mark.as_bytes());
        }
    }

    fn push_path(&mut self) {
        let path = std::mem::take(&mut self.path);
        self.push_colored(PATH, path.as_bytes());
        self.path = path;
    }

    fn push_colored(&mut self, color: &str, text: &[u8]) {
        let colors = if self.style.is_colored { [RESET, color, RESET] } else { [""; 3] };
        self.text.extend_from_slice(colors[0].as_bytes());
        self.text.extend_from_slice(colors[1].as_bytes());
        self.text.extend_from_slice(text);
        self.text.extend_from_slice(colors[2].as_bytes());
    }

    fn push_json_line(&mut self, line: &Written<'_>, text: &[u8], matches: &[Range<usize>]) {
        let submatches = matches.iter().map(|found| {
            let (start, end) = (found.start, found.end);
            json!({"match": bytes_of(&text[found.clone()]), "start": start, "end": end})
        });
        let kind = if line.is_selected { "match" } else { "context" };
        let data = json!({
            "path": {"text": self.path},
            "lines": bytes_of(text),
            "line_number": line.number,
            "absolute_offset": line.offset,
            "submatches": submatches.collect::<Vec<Value>>(),
        });
        self.push_json(&json!({"type": kind, "data": data}));
    }

    fn push_json(&mut self, value: &Value) {
        let start = self.text.len();
        self.text.extend_from_slice(value.to_string().as_bytes());
        self.text.push(b'\n');
        self.of_document.bytes_printed += (self.text.len() - start) as u64;
    }
}

/// Returns `bytes` as JSON: text, or base64 if they are not UTF-8.
fn bytes_of(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({"text": text}),
        Err(_) => json!({"bytes": STANDARD.encode(bytes)}),
    }
}
