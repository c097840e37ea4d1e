//! mbox: one document for each message of a mailbox, or for a file with one message (`.eml`).
//!
//! ```text
//! From ann@example.com Mon May  6 07:08:09 2024     left out: it begins a message
//! From: Ann <ann@example.com>                       ─▶ columns from, to, subject, date
//! Subject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?=                 (decoded)
//!
//! Hello,                                            ─▶ text: header lines and body
//! >From now on                                         `>From `, `>>From ` lose one `>`
//!                                                   the blank line at the end is left out
//! From bob@example.com …
//! ```
//!
//! Sources: RFC 4155 and the forms mboxo, mboxrd and mboxcl for mailboxes, RFC 5322 for messages. A message begins at a
//! line `From ` at the start of the file or behind a blank line, because some mailers quote no such line in bodies. If
//! the line has a date, a header line or a blank one follows; without a date, a header line of a usual name
//! ([`starts`]). Other lines of that kind are text, so each line is in a document or begins one. `Content-Length` is
//! not looked at. A file whose name ends with `.eml` is one message, with every byte of it but the byte order mark of
//! UTF-8 in front, which is left out of mailboxes, too. So is a file of a folder `cur` or `new` of Maildir ([`Place`]),
//! and one of MH, whose name is a number, unless it begins with `From `. Attachments stay encoded. With `--html text` a
//! message is its text instead ([`text`]), and is in memory as a whole. Otherwise lines and messages have any length,
//! and the header lines of one message are in memory.

mod date;
mod flowed;
mod headers;
mod parts;
mod starts;
mod text;
mod transfer;
mod utf7;

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use self::headers::{Witness, decoded, in_utf8};
use self::starts::{Place, START, begins_message, has_date};
use crate::charset::MARK;
use crate::failure::{Failure, Outcome};
use crate::headers::{Headers, MAX_HEADER_BYTES, RecordColumns};
use crate::open::Opened;
use crate::rows::Rows;

/// Number of bytes of a line that are held at once.
const PART_BYTES: u64 = 64 << 10;

/// Reads the messages of one input.
pub fn read(mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let place = Place::from_path(&rows.input.path);
    if place == Place::Delivery {
        rows.sink.undelivered.add(1, || rows.input.shown());
        return Ok(());
    }
    let mut messages = Messages::new(rows);
    let mut is_first = true;
    loop {
        let part = read_part(&mut *opened.reader);
        let mut part = part.map_err(|error| opened.failed(messages.rows.input, &error))?;
        if std::mem::take(&mut is_first) {
            if part.starts_with(MARK) {
                part.drain(..MARK.len());
                if part.is_empty() {
                    continue;
                }
            }
            if place.is_of_message(&part) {
                messages.is_alone = true;
                messages.state = State::Head;
            }
        }
        if part.is_empty() {
            break;
        }
        messages.take(part)?;
        messages.rows.sink.count_read(opened.take_counts());
    }
    messages.end_input()?;
    let Messages { mut columns, rows, .. } = messages;
    columns.store(rows)
}

/// Reads a line, or the next part of one.
fn read_part(reader: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let mut part = Vec::new();
    reader.take(PART_BYTES).read_until(b'\n', &mut part)?;
    Ok(part)
}

/// The messages of one input, line by line.
struct Messages<'a, 'r, 's> {
    rows: &'a mut Rows<'r, 's>,
    path: Arc<str>,
    columns: RecordColumns<3>,
    /// Header lines of the message.
    head: Vec<u8>,
    /// The message so far, if its text is wanted.
    message: Option<Vec<u8>>,
    /// Number of messages before this one.
    num_ended: u64,
    state: State,
    /// True if the file is one message, without a line in front.
    is_alone: bool,
    /// True at the start of a line.
    is_line_start: bool,
    /// A blank line that belongs to the message unless the next line begins another one.
    blank: Vec<u8>,
    /// True in a message that is too large and is left out.
    is_left_out: bool,
    /// A line `From ` that begins a message if a header line is next.
    start: Option<Vec<u8>>,
}

/// Place in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first message.
    Before,
    Head,
    Body,
}

impl<'a, 'r, 's> Messages<'a, 'r, 's> {
    fn new(rows: &'a mut Rows<'r, 's>) -> Self {
        let path = rows.input.path.as_str();
        let is_alone = path.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("eml"));
        Self {
            path: Arc::from(path),
            message: rows.options.html_to_text.then(Vec::new),
            num_ended: 0,
            rows,
            columns: RecordColumns::new(["from", "to", "subject"]),
            head: Vec::new(),
            state: if is_alone { State::Head } else { State::Before },
            is_alone,
            is_line_start: true,
            blank: Vec::new(),
            is_left_out: false,
            start: None,
        }
    }

    /// Takes a line, or a part of one.
    fn take(&mut self, part: Vec<u8>) -> Outcome {
        let is_start = std::mem::replace(&mut self.is_line_start, part.ends_with(b"\n"));
        if let Some(line) = self.start.take() {
            if begins_message(&line, &part) {
                self.begin_message()?;
            } else {
                self.take_text(&line, true)?;
            }
        }
        let may_begin = self.state == State::Before || !self.blank.is_empty();
        let is_whole = part.ends_with(b"\n") || (part.len() as u64) < PART_BYTES;
        if is_start && is_whole && may_begin && part.starts_with(START) && !self.is_alone {
            self.start = Some(part);
            return Ok(());
        }
        self.take_text(&part, is_start)
    }

    fn begin_message(&mut self) -> Outcome {
        self.end_message()?;
        self.state = State::Head;
        Ok(())
    }

    /// Takes bytes of a message. `is_start` is true at the start of a line.
    fn take_text(&mut self, part: &[u8], is_start: bool) -> Outcome {
        let is_blank = is_start && part.trim_ascii().is_empty() && part.ends_with(b"\n");
        match self.state {
            State::Before if is_blank => return Ok(()),
            State::Before => {
                let expected = if part.contains(&b'\r') && !part.ends_with(b"\r\n") {
                    "lines that end with LF, not with CR alone (tr '\\r' '\\n' converts them)"
                } else if part.starts_with(START) {
                    "a header line behind the first line"
                } else {
                    "a first line that begins with `From `"
                };
                let shown = self.rows.input.shown();
                return Err(Failure::new(format!("{shown}: no mbox: expected {expected}")));
            }
            State::Head if is_blank => self.state = State::Body,
            State::Head => {
                let room = MAX_HEADER_BYTES.saturating_sub(self.head.len() as u64) as usize;
                self.head.extend_from_slice(&part[..room.min(part.len())]);
            }
            State::Body => {}
        }
        let blank = std::mem::take(&mut self.blank);
        self.append(&blank)?;
        if is_blank && !self.is_alone {
            self.blank = part.to_vec();
            return Ok(());
        }
        let is_quoted = is_start && self.state == State::Body && !self.is_alone;
        self.append(if is_quoted { unquoted(part) } else { part })
    }

    /// Appends bytes of the message.
    fn append(&mut self, bytes: &[u8]) -> Outcome {
        let Some(message) = &mut self.message else {
            return self.rows.sink.append(&self.path, bytes);
        };
        if self.is_left_out {
            return Ok(());
        }
        message.extend_from_slice(bytes);
        if message.len() as u64 <= self.rows.options.max_row_bytes {
            return Ok(());
        }
        let failure = self.rows.too_large(&format!("message {}", self.num_ended + 1));
        self.rows.sink.faults.pass_row(self.rows.input, failure)?;
        message.clear();
        self.is_left_out = true;
        Ok(())
    }

    /// Ends the input, and the message in it.
    fn end_input(&mut self) -> Outcome {
        if let Some(line) = self.start.take() {
            if has_date(&line) {
                self.begin_message()?;
            } else {
                self.take_text(&line, true)?;
            }
        }
        self.end_message()
    }

    /// Ends the message, if there is one. The blank line at its end is left out, unless it is the one
    /// behind the header lines.
    fn end_message(&mut self) -> Outcome {
        self.blank.clear();
        if self.state == State::Before {
            return Ok(());
        }
        let head = std::mem::take(&mut self.head);
        if std::mem::take(&mut self.is_left_out) {
            self.num_ended += 1;
            return Ok(());
        }
        if let Some(message) = &mut self.message {
            let message = std::mem::take(message);
            text::append_text(&self.path, &message, self.rows)?;
        }
        self.num_ended += 1;
        self.rows.sink.end_document(&self.path)?;
        let Rows { input, sink, .. } = &mut *self.rows;
        let mut witness = Witness { input, undecoded: &mut sink.undecoded };
        let headers = Headers::parse(&in_utf8(head, &mut witness));
        let mut text = |name: &str| headers.get(name).map(|value| decoded(value.trim_start(), &mut witness));
        let texts = ["from", "to", "subject"].map(&mut text);
        let date = headers.get("date").and_then(date::micros);
        self.columns.push(texts, date, self.rows)
    }
}

/// Returns the line without one `>` if it is `>From ` behind any number of `>`.
fn unquoted(line: &[u8]) -> &[u8] {
    let quotes = line.iter().take_while(|&&byte| byte == b'>').count();
    match line.get(quotes..) {
        Some(rest) if quotes > 0 && rest.starts_with(START) => line.get(1..).unwrap_or(line),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use testkit::random::Random;

    use super::*;
    use crate::columns::NoColumns;
    use crate::inputs::{Input, Source};
    use crate::{ArchiveOptions, Batch, Division, Documents, ReadOptions, Sink, read as read_inputs};

    #[test]
    fn quoted_lines_lose_one_mark() {
        assert_eq!(unquoted(b">From x\n"), b"From x\n");
        assert_eq!(unquoted(b">>From x\n"), b">From x\n");
        for line in [b"From x\n".as_slice(), b"> From x\n", b">Fromage\n", b""] {
            assert_eq!(unquoted(line), line);
        }
    }

    #[test]
    fn a_file_without_a_message_is_no_mailbox() {
        let dated = "From ann Mon May  6 07:08:09 2024\n";
        for text in ["From here on", "From a@b Mon May  6 07:08:09 2024\rSubject: 1\r\rbody\r"] {
            assert_eq!(documents_in(text), None, "{text}");
        }
        assert_eq!(documents_in(dated), Some(vec![Vec::new()]));
    }

    #[derive(Default)]
    struct Texts(Vec<Vec<u8>>);

    impl Sink for Texts {
        fn take(&mut self, batch: Batch) -> Outcome {
            self.0.extend(batch.iter().map(|part| part.text.to_vec()));
            Ok(())
        }
    }

    /// Returns the documents of a file.
    pub fn documents_read(bytes: &[u8], path: &str, options: ReadOptions) -> Option<Vec<Vec<u8>>> {
        let source = Source::Text { bytes: bytes.to_vec().into(), lines_before: 0 };
        let inputs = [Input::new(source, path.to_owned(), 0)];
        let division = Division::from(Documents::Mbox);
        let mut texts = Texts::default();
        let archives = ArchiveOptions::default();
        read_inputs(&inputs, &division, options, &archives, &mut NoColumns, &mut texts).ok()?;
        Some(texts.0)
    }

    fn documents_in(mailbox: &str) -> Option<Vec<Vec<u8>>> {
        documents_read(mailbox.as_bytes(), "a.mbox", ReadOptions::default())
    }

    /// Divides the lines of a mailbox slowly, with all of them in view.
    fn expected(mailbox: &str) -> Vec<String> {
        let lines: Vec<&str> = mailbox.split_inclusive('\n').collect();
        let is_blank = |line: &str| line.trim().is_empty();
        let begins = |idx: usize| {
            let is_dated = lines[idx].contains("Mon May  6 07:08:09 2024");
            let follows = match lines.get(idx + 1) {
                Some(line) if line.starts_with("From: ") || line.starts_with("Subject: ") => true,
                Some(line) => is_dated && (is_blank(line) || line.starts_with(">From ")),
                None => is_dated,
            };
            lines[idx].starts_with("From ") && follows && (idx == 0 || is_blank(lines[idx - 1]))
        };
        let starts: Vec<usize> = (0..lines.len()).filter(|&idx| begins(idx)).collect();
        let ends = starts.iter().skip(1).copied().chain([lines.len()]);
        let message = |(start, end): (&usize, usize)| {
            let lines = &lines[start + 1..end];
            let head_lines = lines.iter().position(|line| is_blank(line)).unwrap_or(lines.len());
            let mut text = String::new();
            for (idx, line) in lines.iter().enumerate() {
                let is_last_blank = idx + 1 == lines.len() && is_blank(line) && line.ends_with('\n');
                let is_quoted = idx > head_lines && line.trim_start_matches('>').starts_with("From ");
                if !is_last_blank {
                    text += if is_quoted { line.strip_prefix('>').unwrap_or(line) } else { line };
                }
            }
            text
        };
        starts.iter().zip(ends).map(message).collect()
    }

    #[test]
    fn every_line_is_in_a_document_or_begins_one() {
        let lines = [
            "From ann Mon May  6 07:08:09 2024",
            "From my side",
            "From: Ann",
            "Subject: x",
            "",
            "",
            ">From here",
            ">>From there",
            "text",
            "a b: c",
        ];
        for case in 0..5000 {
            let random = &mut Random(case);
            let end = if case % 3 == 0 { "\r\n" } else { "\n" };
            let mut mailbox = format!("From x{end}Subject: first{end}");
            for _ in 0..random.below(12) {
                mailbox += *random.pick(&lines);
                mailbox += end;
            }
            if random.one_in(3) {
                mailbox += "no line end";
            }
            let found = documents_in(&mailbox).unwrap();
            let found: Vec<String> = found.into_iter().map(|text| String::from_utf8(text).unwrap()).collect();
            assert_eq!(found, expected(&mailbox), "{mailbox}");
        }
    }

    #[test]
    fn a_mailbox_begins_with_a_message() {
        let x = "From x Mon May  6 07:08:09 2024\n";
        assert_eq!(documents_in(x).unwrap(), [b""]);
        assert_eq!(documents_in(&format!("{x}\nbody\n")).unwrap(), [b"\nbody\n"]);
        let quoted = format!("{x}>From y\nA: b\n");
        assert_eq!(documents_in(&quoted).unwrap(), [b">From y\nA: b\n"]);
        for text in ["From x\n", "From x\n\nbody\n", "From my side\nwe meet\n", "Subject: x\n", "text"] {
            assert!(documents_in(text).is_none(), "{text}");
        }
    }
}
