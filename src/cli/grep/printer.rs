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
//!
//! Tasks print parts of a text side by side. A part keeps the lines in front of its first line aside, and knows
//! what lies behind its last one. So parts that are joined in order are what one printer writes:
//!
//! ```text
//! part 1   1:a 2-b 3-c ┐          ┌ lines in front of the first one, 2-b 3-c
//!               part 2 └ 4:d 5-e  ┘ written as far as they are not written yet
//! ```

use std::collections::HashMap;
use std::ops::{AddAssign, Range};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memchr_iter;
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
    /// If true, lines end with `\r\n`.
    pub has_crlf: bool,
    /// The byte behind each path, if it is none of those of its place.
    pub path_end: Option<u8>,
    /// If true, the number of the first byte of a match in its line is written.
    pub has_columns: bool,
    /// If true, the number of bytes before a line is written, or before a match that is written alone.
    pub has_offsets: bool,
    /// If true, a line is written for each match.
    pub is_once_per_match: bool,
    /// If true, lines around the lines are written.
    pub has_context: bool,
    /// If true, the lines have no match.
    pub is_inverted: bool,
    /// If true, the matches of a line are written or counted, each on its own.
    pub is_of_matches: bool,
    /// Most lines of a text.
    pub max_lines: u64,
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
            Format::Headings => self.line_end(),
            Format::Lines if self.has_context && self.has_crlf => "--\r\n",
            Format::Lines if self.has_context => "--\n",
            _ => "",
        }
    }

    /// Returns a path as it is written.
    pub fn shown(&self, path: &str) -> String {
        if self.is_terminal { plain(path).into_owned() } else { path.to_owned() }
    }

    /// Adds a path that stands alone to `text`.
    pub fn push_path_alone(&self, text: &mut Vec<u8>, path: &str) {
        self.push_colored(text, PATH, path.as_bytes());
        match self.path_end {
            Some(end) => text.push(end),
            None => text.extend_from_slice(self.line_end().as_bytes()),
        }
    }

    fn line_end(&self) -> &'static str {
        if self.has_crlf { "\r\n" } else { "\n" }
    }

    /// Adds a number of lines, and the path if it is written, to `text`.
    pub fn push_count(&self, text: &mut Vec<u8>, path: &str, count: u64) {
        if self.has_paths {
            self.push_colored(text, PATH, path.as_bytes());
            text.push(self.path_end.unwrap_or(b':'));
        }
        text.extend_from_slice(format!("{count}{}", self.line_end()).as_bytes());
    }

    fn push_colored(&self, text: &mut Vec<u8>, color: &str, colored: &[u8]) {
        let colors = if self.is_colored { [RESET, color, RESET] } else { [""; 3] };
        text.extend_from_slice(colors[0].as_bytes());
        text.extend_from_slice(colors[1].as_bytes());
        text.extend_from_slice(colored);
        text.extend_from_slice(colors[2].as_bytes());
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
    let secs = time.as_secs();
    let nanos = time.subsec_nanos();
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

/// The state of a text after a line.
#[derive(Debug, Clone, Default)]
struct Progress {
    /// Number of selected lines, and of these or their matches, whichever are counted.
    num_lines: u64,
    num_counted: u64,
    /// Number and offset of the line behind the last one that was written.
    next_number: u64,
    next_offset: u64,
    /// Lines behind the last selected line, which are not written yet.
    after: Vec<u8>,
    /// Matches and bytes that were written as JSON.
    num_matches: u64,
    bytes_printed: u64,
}

/// The lines in front of the first line of a part.
#[derive(Debug, Default)]
struct Before {
    number: u64,
    offset: u64,
    lines: Vec<u8>,
    /// Number of the first line.
    first_number: u64,
}

/// Lines of one text, printed by a task.
#[derive(Debug)]
pub struct Part {
    /// Number of the text, and a document that has a line.
    pub text: usize,
    pub doc_id: u64,
    before: Before,
    body: Vec<u8>,
    progress: Progress,
    /// Length of the body and progress after each line, if some lines may be one too many.
    steps: Vec<(usize, Progress)>,
}

/// A printer of lines. It prints texts one after the other, or parts of them for such a printer.
pub struct Printer<'a> {
    style: &'a Style,
    pattern: &'a LinePattern,
    text: Vec<u8>,
    path: String,
    is_begun: bool,
    progress: Progress,
    /// True if the lines in front of the first line are kept in `before`.
    is_part: bool,
    before: Before,
    steps: Vec<(usize, Progress)>,
    /// Bytes of the text, and when its first line came.
    len_bytes: u64,
    begun_at: Instant,
    /// Work for all texts before.
    statistics: Statistics,
    /// If asked for: texts that have a line and were ended, by path. They are not in `text` then.
    pub found: Option<HashMap<String, Vec<u8>>>,
}

impl<'a> Printer<'a> {
    pub fn new(style: &'a Style, pattern: &'a LinePattern) -> Self {
        Self {
            style,
            pattern,
            text: Vec::new(),
            path: String::new(),
            is_begun: false,
            progress: Progress::default(),
            is_part: false,
            before: Before::default(),
            steps: Vec::new(),
            len_bytes: 0,
            begun_at: Instant::now(),
            statistics: Statistics::default(),
            found: None,
        }
    }

    /// Creates a printer of a part of the text with this path.
    pub fn for_part(style: &'a Style, pattern: &'a LinePattern, path: &str) -> Self {
        let mut printer = Self { is_part: true, ..Self::new(style, pattern) };
        printer.set_path(path);
        printer
    }

    /// Returns the text since the last [`clear`](Self::clear).
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Forgets the text.
    pub fn clear(&mut self) {
        self.text.clear();
    }

    /// Returns the work for the texts that have a line and were ended.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the number of lines of the current text that are still wanted.
    pub fn num_left(&self) -> u64 {
        let max_lines = self.style.max_lines;
        if self.is_begun { max_lines.saturating_sub(self.progress.num_lines) } else { max_lines }
    }

    /// Returns the number of lines behind the last line that are wanted and not known yet.
    pub fn num_missing_after(&self, after: usize) -> usize {
        if self.is_begun { after.saturating_sub(memchr_iter(b'\n', &self.progress.after).count()) } else { 0 }
    }

    /// Adds lines behind the last line, each with its end.
    pub fn add_after(&mut self, lines: &[u8]) {
        self.progress.after.extend_from_slice(lines);
    }

    /// Ends the text before, and begins the one with this path, of `len_bytes` up to here. It has a line.
    pub fn begin(&mut self, path: &str, len_bytes: u64) {
        self.end();
        self.len_bytes = len_bytes;
        self.begun_at = Instant::now();
        self.set_path(path);
        self.is_begun = true;
        self.progress = Progress { next_number: 1, ..Progress::default() };
        self.text.extend_from_slice(self.style.separator().as_bytes());
        match self.style.format {
            Format::Headings if !self.style.has_paths => {}
            Format::Headings | Format::Paths => {
                self.style.push_path_alone(&mut self.text, &self.path);
            }
            Format::Json => {
                let begin = json!({"type": "begin", "data": {"path": {"text": self.path}}});
                self.push_json(&begin);
            }
            Format::Lines | Format::Counts => {}
        }
    }

    /// Adds `len_bytes` to the length of the text.
    pub fn lengthen(&mut self, len_bytes: u64) {
        self.len_bytes += len_bytes;
    }

    /// Ends the text, if there is one.
    pub fn end(&mut self) {
        if !self.is_begun {
            return;
        }
        if self.style.format == Format::Counts {
            self.count_after();
        } else {
            self.push_after(u64::MAX);
        }
        self.is_begun = false;
        match self.style.format {
            Format::Counts => {
                self.style.push_count(&mut self.text, &self.path, self.progress.num_counted);
            }
            Format::Json => {
                let statistics = Statistics {
                    elapsed: self.begun_at.elapsed(),
                    searches: 1,
                    searches_with_match: 1,
                    bytes_searched: self.len_bytes,
                    bytes_printed: self.progress.bytes_printed,
                    matched_lines: self.progress.num_lines,
                    matches: self.progress.num_matches,
                };
                let data = json!({
                    "path": {"text": self.path},
                    "binary_offset": null,
                    "stats": statistics.to_json(),
                });
                self.push_json(&json!({"type": "end", "data": data}));
                self.statistics += statistics;
            }
            Format::Lines | Format::Headings | Format::Paths => {}
        }
        if let Some(found) = &mut self.found {
            found.entry(self.path.clone()).or_default().append(&mut self.text);
        }
    }

    /// Adds a selected line, and the lines in front of it.
    pub fn line(&mut self, line: &GrepLine<'_>) {
        self.progress.num_counted += self.counted(line.line);
        self.progress.num_lines += 1;
        if self.style.format == Format::Counts {
            self.progress.after = line.after.to_vec();
        } else if self.style.format != Format::Paths {
            let num_before = memchr_iter(b'\n', line.before).count() as u64;
            let number = line.line_number - num_before;
            let offset = line.line_offset.wrapping_sub(line.before.len() as u64);
            if self.is_part && self.progress.num_lines == 1 {
                let lines = line.before.to_vec();
                let first_number = line.line_number;
                self.before = Before { number, offset, lines, first_number };
            } else {
                self.push_before(number, offset, line.before, line.line_number);
            }
            let number = line.line_number;
            let offset = line.line_offset;
            self.push(&Written { number, offset, text: line.line, is_selected: true });
            self.progress.next_number = number + 1;
            self.progress.next_offset = offset.wrapping_add(line.line.len() as u64 + 1);
            self.progress.after.extend_from_slice(line.after);
        }
        if self.is_part && self.style.max_lines < u64::MAX {
            self.steps.push((self.text.len(), self.progress.clone()));
        }
    }

    /// Adds a number of selected lines, whose text is not shown.
    pub fn add_count(&mut self, num_lines: u64) {
        self.progress.num_counted += num_lines;
        self.progress.num_lines += num_lines;
    }

    /// Adds what a task printed of the current text.
    pub fn join(&mut self, mut part: Part) {
        let num_left = self.num_left();
        if num_left == 0 {
            return;
        }
        if part.progress.num_lines > num_left
            && let Some((len, progress)) = part.steps.into_iter().nth(num_left as usize - 1)
        {
            part.body.truncate(len);
            part.progress = progress;
        }
        let Before { number, offset, lines, first_number } = &part.before;
        if !matches!(self.style.format, Format::Paths | Format::Counts) {
            self.push_before(*number, *offset, lines, *first_number);
            self.text.extend_from_slice(&part.body);
        }
        let before = &self.progress;
        self.progress = Progress {
            num_lines: before.num_lines + part.progress.num_lines,
            num_counted: before.num_counted + part.progress.num_counted,
            num_matches: before.num_matches + part.progress.num_matches,
            bytes_printed: before.bytes_printed + part.progress.bytes_printed,
            ..part.progress
        };
    }

    /// Returns what was printed of the text with this number, if it has a line, of which one is in `doc_id`.
    pub fn into_part(self, text: usize, doc_id: u64) -> Option<Part> {
        let Self { before, text: body, progress, steps, .. } = self;
        (progress.num_lines > 0).then_some(Part { text, doc_id, before, body, progress, steps })
    }

    /// Returns the number that a selected line adds to the count.
    fn counted(&self, line: &[u8]) -> u64 {
        let counts_matches = self.style.format == Format::Counts && self.style.is_of_matches && !self.style.is_inverted;
        if counts_matches { self.pattern.matches(line).count() as u64 } else { 1 }
    }

    /// Counts the lines behind the last one that is wanted, as ripgrep does if lines around lines are asked for.
    fn count_after(&mut self) {
        let after = std::mem::take(&mut self.progress.after);
        if self.num_left() == 0 {
            let lines = after.split_inclusive(|&byte| byte == b'\n').map(without_end);
            let selected = lines.filter(|line| self.pattern.selects(line));
            self.progress.num_counted += selected.map(|line| self.counted(line)).sum::<u64>();
        }
    }

    fn set_path(&mut self, path: &str) {
        self.path = self.style.shown(path);
    }

    /// Adds the lines between the last selected line and the line `first_number`: those behind the one, and
    /// `before` the other, of which the first has this number and offset.
    fn push_before(&mut self, mut number: u64, mut offset: u64, before: &[u8], first_number: u64) {
        self.push_after(first_number);
        let is_gap = self.progress.next_number > 1 && number > self.progress.next_number;
        if is_gap && self.style.has_context && self.style.format != Format::Json {
            self.text.extend_from_slice(b"--\n");
        }
        for text in before.split_inclusive(|&byte| byte == b'\n') {
            if number >= self.progress.next_number {
                self.push(&Written { number, offset, text, is_selected: false });
            }
            (number, offset) = (number + 1, offset.wrapping_add(text.len() as u64));
        }
    }

    /// Adds the lines behind the last selected line up to the line `number`. If no more lines are wanted, those
    /// that match are written as such.
    fn push_after(&mut self, number: u64) {
        let after = std::mem::take(&mut self.progress.after);
        let is_last = self.num_left() == 0;
        for text in after.split_inclusive(|&byte| byte == b'\n') {
            if self.progress.next_number >= number {
                break;
            }
            let number = self.progress.next_number;
            let offset = self.progress.next_offset;
            let is_selected = is_last && self.pattern.selects(without_end(text));
            self.push(&Written { number, offset, text, is_selected });
            self.progress.next_number += 1;
            self.progress.next_offset = offset.wrapping_add(text.len() as u64);
        }
    }

    fn push(&mut self, line: &Written<'_>) {
        let text = without_end(line.text);
        let pattern = self.pattern;
        let style = self.style;
        if style.format == Format::Json {
            let has_matches = line.is_selected && !style.is_inverted;
            let matches = if has_matches { pattern.matches(text).collect() } else { vec![] };
            self.progress.num_matches += matches.len() as u64;
            self.push_json_line(line, text, &matches);
            return;
        }
        let has_matches = line.is_selected != style.is_inverted;
        // Lines without a match are written whole, and once.
        if has_matches && (style.is_of_matches || style.is_once_per_match) {
            for found in pattern.matches(text) {
                self.push_place(line, Some(&found));
                if style.is_of_matches {
                    self.push_colored(MATCH, &text[found]);
                } else {
                    self.push_line(text, [found]);
                }
                self.text.push(b'\n');
            }
            return;
        }
        let first = if has_matches && style.has_columns { pattern.matches(text).next() } else { None };
        self.push_place(line, first.as_ref());
        if has_matches && style.is_colored {
            self.push_line(text, pattern.matches(text));
        } else {
            self.text.extend_from_slice(text);
        }
        self.text.push(b'\n');
    }

    /// Adds the bytes of a line, with its matches in their colour. Neighbours are coloured together.
    fn push_line(&mut self, text: &[u8], matches: impl IntoIterator<Item = Range<usize>>) {
        let mut start = 0;
        let mut matches = matches.into_iter().filter(|found| !found.is_empty()).peekable();
        while let Some(mut found) = matches.next() {
            while let Some(neighbour) = matches.next_if(|next| next.start == found.end) {
                found.end = neighbour.end;
            }
            self.text.extend_from_slice(&text[start..found.start]);
            self.push_colored(MATCH, &text[found.clone()]);
            start = found.end;
        }
        self.text.extend_from_slice(&text[start..]);
    }

    /// Adds the path and the numbers of a line, as far as they are written. Those of a match are its own, if it is
    /// written alone.
    fn push_place(&mut self, line: &Written<'_>, found: Option<&Range<usize>>) {
        let mark = if line.is_selected { b':' } else { b'-' };
        let style = self.style;
        if style.format == Format::Lines && style.has_paths {
            self.push_path();
            self.text.push(style.path_end.unwrap_or(mark));
        }
        if style.has_numbers {
            self.push_number(NUMBER, line.number, mark);
        }
        if let Some(found) = found.filter(|_| style.has_columns) {
            self.push_number("", found.start as u64 + 1, mark);
        }
        if style.has_offsets {
            let is_alone = style.is_of_matches || style.is_once_per_match;
            let in_line = found.filter(|_| is_alone).map_or(0, |found| found.start as u64);
            self.push_number("", line.offset.wrapping_add(in_line), mark);
        }
    }

    fn push_number(&mut self, color: &str, number: u64, mark: u8) {
        self.push_colored(color, number.to_string().as_bytes());
        self.text.push(mark);
    }

    fn push_path(&mut self) {
        self.style.push_colored(&mut self.text, PATH, self.path.as_bytes());
    }

    fn push_colored(&mut self, color: &str, text: &[u8]) {
        self.style.push_colored(&mut self.text, color, text);
    }

    fn push_json_line(&mut self, line: &Written<'_>, text: &[u8], matches: &[Range<usize>]) {
        let submatches = matches.iter().map(|found| {
            let start = found.start;
            let end = found.end;
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
        self.progress.bytes_printed += (self.text.len() - start) as u64;
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// Returns `bytes` as JSON: text, or base64 if they are not UTF-8.
fn bytes_of(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({"text": text}),
        Err(_) => json!({"bytes": STANDARD.encode(bytes)}),
    }
}
