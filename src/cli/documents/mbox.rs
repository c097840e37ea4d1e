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
//! Sources: RFC 4155 and the form mboxrd for mailboxes, RFC 5322 for messages, RFC 2047 for encoded words.
//! A message begins at a line `From ` at the start of the file or behind a blank line. A file whose name ends
//! with `.eml` is one message, with every byte of it. Attachments stay encoded. With `--html text` a message
//! is its text instead ([`message_text`]), and is in memory as a whole. Otherwise lines and messages have any
//! length, and the header lines of one message are in memory.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;

use super::headers::{Headers, MAX_HEADER_BYTES};
use super::message_text;
use super::open::Opened;
use super::record_columns::RecordColumns;
use super::rows::Rows;
use crate::failure::{Failure, Outcome};

/// First bytes of the line in front of a message.
const START: &[u8] = b"From ";
/// Number of bytes of a line that are held at once.
const PART_BYTES: u64 = 64 << 10;

/// Reads the messages of one input.
pub fn read(mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let mut messages = Messages::new(rows);
    loop {
        let part = read_part(&mut *opened.reader);
        let part = part.map_err(|error| opened.failed(messages.rows.input, &error))?;
        if part.is_empty() {
            break;
        }
        messages.take(&part)?;
        messages.rows.sink.count_read(opened.take_counts());
    }
    messages.end_message()?;
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
        let is_alone =
            path.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("eml"));
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
        }
    }

    /// Takes a line, or a part of one.
    fn take(&mut self, part: &[u8]) -> Outcome {
        let is_start = std::mem::replace(&mut self.is_line_start, part.ends_with(b"\n"));
        let is_blank = is_start && part.trim_ascii().is_empty() && part.ends_with(b"\n");
        let begins = is_start && part.starts_with(START) && !self.is_alone;
        let may_begin = self.state == State::Before || !self.blank.is_empty();
        match self.state {
            _ if begins && may_begin => {
                self.end_message()?;
                self.state = State::Head;
                return Ok(());
            }
            State::Before if is_blank => return Ok(()),
            State::Before => {
                return Err(Failure::new(format!(
                    "{}: no mbox: expected a first line that begins with `From `",
                    self.rows.input.shown()
                )));
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
        match part {
            _ if is_blank && !self.is_alone => {
                self.blank = part.to_vec();
                Ok(())
            }
            part if is_start && self.state == State::Body && !self.is_alone => {
                self.append(unquoted(part))
            }
            part => self.append(part),
        }
    }

    /// Appends bytes of the message.
    fn append(&mut self, bytes: &[u8]) -> Outcome {
        let Some(message) = &mut self.message else {
            return self.rows.sink.append(&self.path, bytes);
        };
        message.extend_from_slice(bytes);
        match message.len() as u64 <= self.rows.options.max_row_bytes {
            true => Ok(()),
            false => Err(self.rows.too_large(&format!("message {}", self.num_ended + 1))),
        }
    }

    /// Ends the message, if there is one. The blank line at its end is left out, unless it is the one
    /// behind the header lines.
    fn end_message(&mut self) -> Outcome {
        self.blank.clear();
        if self.state == State::Before {
            return Ok(());
        }
        let head = std::mem::take(&mut self.head);
        if let Some(message) = &mut self.message {
            let message = std::mem::take(message);
            message_text::append_text(&self.path, &message, head.len(), self.rows)?;
        }
        self.num_ended += 1;
        self.rows.sink.end_document(&self.path)?;
        let headers = Headers::parse(&head);
        let texts = ["from", "to", "subject"].map(|name| headers.get(name).map(decoded));
        let date = headers.get("date").and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        let date = date.map(|date| date.timestamp_micros());
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

/// Decodes the encoded words `=?CHARSET?B?…?=` and `=?CHARSET?Q?…?=` of UTF-8, ASCII and Latin-1.
fn decoded(value: &str) -> String {
    let mut text = String::new();
    let mut rest = value;
    let mut is_behind_word = false;
    while let Some((before, word, after)) = next_word(rest) {
        // Blanks between two encoded words are left out.
        if !(is_behind_word && before.trim().is_empty()) {
            text.push_str(before);
        }
        text.push_str(&word);
        (rest, is_behind_word) = (after, true);
    }
    text + rest
}

/// Returns the text before the first encoded word, the word, and the text behind it.
fn next_word(text: &str) -> Option<(&str, String, &str)> {
    for (start, _) in text.match_indices("=?") {
        let mut parts = text.get(start + 2..)?.splitn(3, '?');
        let (Some(charset), Some(encoding), Some(rest)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let Some((coded, after)) = rest.split_once("?=") else { continue };
        if let Some(word) = word_of(charset, encoding, coded) {
            return Some((text.get(..start)?, word, after));
        }
    }
    None
}

fn word_of(charset: &str, encoding: &str, coded: &str) -> Option<String> {
    let bytes = match encoding {
        "B" | "b" => STANDARD.decode(coded).ok()?,
        "Q" | "q" => quoted_printable(coded)?,
        _ => return None,
    };
    match charset.to_ascii_lowercase().as_str() {
        "utf-8" | "us-ascii" => String::from_utf8(bytes).ok(),
        "iso-8859-1" => Some(bytes.into_iter().map(char::from).collect()),
        _ => None,
    }
}

fn quoted_printable(coded: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = coded.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let (byte, len) = match first {
            b'=' => {
                let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
                (u8::from_str_radix(digits, 16).ok()?, 2)
            }
            b'_' => (b' ', 0),
            byte => (byte, 0),
        };
        bytes.push(byte);
        rest = behind.get(len..)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_words_are_decoded() {
        for (value, expected) in [
            ("plain", "plain"),
            ("=?UTF-8?Q?Gr=C3=BC=C3=9Fe?= an =?utf-8?b?QW5u?=", "Grüße an Ann"),
            ("=?UTF-8?B?QW4=?=  =?UTF-8?B?bmE=?= x", "Anna x"),
            ("=?iso-8859-1?q?caf=E9_au?=", "café au"),
            ("=?koi8-r?B?QW4=?= =?UTF-8?B?QW4=?=", "=?koi8-r?B?QW4=?= An"),
            ("=?UTF-8?Q?=C3?=", "=?UTF-8?Q?=C3?="),
            ("=?UTF-8?Q?=ZZ?= =?", "=?UTF-8?Q?=ZZ?= =?"),
            ("a =? b ?= c", "a =? b ?= c"),
        ] {
            assert_eq!(decoded(value), expected, "{value}");
        }
    }

    #[test]
    fn quoted_lines_lose_one_mark() {
        assert_eq!(unquoted(b">From x\n"), b"From x\n");
        assert_eq!(unquoted(b">>From x\n"), b">From x\n");
        for line in [b"From x\n".as_slice(), b"> From x\n", b">Fromage\n", b""] {
            assert_eq!(unquoted(line), line);
        }
    }
}
