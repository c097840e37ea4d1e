//! The text of a message: its header lines, and what a reader of the mail sees below them.
//!
//! ```text
//! multipart/mixed                          From: …            header lines, as they are
//! ├─ multipart/alternative                 Subject: …
//! │  ├─ text/plain, quoted-printable ──▶
//! │  └─ text/html                          Grüße, …           decoded, in UTF-8
//! └─ application/pdf, base64               (left out)
//! ```
//!
//! Sources: RFC 2045 to 2049 for parts, encodings and character sets, by the crate mail-parser. Of alternatives the
//! plain text counts; a page without one becomes text as any other ([`html`]). Messages inside a message and
//! attachments are left out. A multipart that is cut is [`closed`], and the body of one without a
//! boundary, or of a damaged text, is text as it stands there. The message is in memory, and so are its texts.
//!
//! mail-parser makes a tree of messages inside messages and recurses once for each level when the tree is
//! copied or dropped. So the types that hold messages are [hidden](without_messages) from it before it is
//! called, and the tree has one level. Parts inside parts are a list, at any depth.
//!
//! A multipart of a cut message ends with the one around it:
//!
//! ```text
//! multipart/mixed; boundary=m           --m
//! ├─ multipart/alternative; b=a         --a      the first part
//! │  └─ text/plain                      ──────── `--a--` is missing here: m ends a
//! └─ text/plain                         --m      the second part
//!                                       ──────── `--m--` is missing here: the message ends m
//! ```
//!
//! mail-parser takes what stands in a part without an end for an attachment. Source: RFC 2046, 5.1.2: the
//! boundary of an outer part ends the parts in it. Time is linear in the bytes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{Encoding, Message, MessageParser, MessagePart, MimeHeaders, PartType};
use memchr::memmem;
use tadoc::containment::contain_panics;

use super::headers::{self, Witness};
use crate::charset::Given;
use crate::failure::{Failure, Outcome};
use crate::html::{self, Form};
use crate::rows::Rows;

/// Most times that a message is read again because its parts were not closed.
const MAX_ROUNDS: usize = 4;

/// Appends the text of `message`, whose header lines have `head_bytes` bytes, to the open document.
///
/// # Errors
/// A page in it is larger than a row may be.
pub fn append_text(path: &Arc<str>, message: &[u8], head_bytes: usize, rows: &mut Rows<'_, '_>) -> Outcome {
    let (head, body) = message.split_at_checked(head_bytes).unwrap_or((message, &[]));
    rows.sink.append(path, head)?;
    let name = format!("{}: message", rows.input.shown());
    let mut flat = without_messages(message);
    for round in 0.. {
        let parsed = contain_panics(&name, || MessageParser::new().parse(flat.as_ref()));
        let Some(parsed) = parsed.map_err(Failure::from)? else {
            // There are no header lines.
            return rows.sink.append(path, body);
        };
        let closed = closed(&flat, &parsed).filter(|_| round < MAX_ROUNDS);
        let Some(closed) = closed else { return append_parts(path, &flat, &parsed, &name, rows) };
        flat = Cow::Owned(closed);
    }
    Ok(())
}

/// Appends the texts of `flat`, which was read as `parsed`.
fn append_parts(path: &Arc<str>, flat: &[u8], parsed: &Message<'_>, name: &str, rows: &mut Rows<'_, '_>) -> Outcome {
    let in_digests = messages_in_digests(parsed);
    let mut shown = lost_texts(parsed);
    shown.extend(&parsed.text_body);
    shown.sort_unstable();
    shown.dedup();
    for part in shown.iter().filter(|part| !in_digests.contains(part)) {
        let Some(part) = parsed.parts.get(*part as usize) else { continue };
        rows.sink.append(path, b"\n")?;
        let is_page = has_type(part, "text", Some("html")) || matches!(part.body, PartType::Html(_));
        let (text, given) = text_in_utf8(part, flat, rows);
        let text = with_messages(&text);
        if is_page {
            let failed = |error| Failure::with_cause(name.to_owned(), &error);
            html::append_text(Form::Html, given, path, &mut text.as_ref(), rows, &failed)?;
        } else {
            rows.sink.append(path, &text)?;
        }
    }
    Ok(())
}

/// Returns the parts with text that mail-parser takes for attachments, though they are none: multiparts without a
/// boundary, damaged texts, and the text of a message of a type that it does not know.
fn lost_texts(parsed: &Message<'_>) -> Vec<u32> {
    let is_lost = |(idx, part): &(usize, &MessagePart<'_>)| {
        let is_multipart = has_type(part, "multipart", None);
        let is_text = part.content_type().is_none() || has_type(part, "text", None);
        let is_alone = *idx == 0;
        let is_attached = part.content_disposition().is_some_and(|kind| kind.is_attachment());
        match &part.body {
            PartType::Text(text) | PartType::Html(text) => {
                let is_damaged = part.is_encoding_problem || is_alone;
                !text.is_empty() && !is_attached && (is_multipart || is_text && is_damaged)
            }
            PartType::Binary(bytes) | PartType::InlineBinary(bytes) => !bytes.is_empty() && is_multipart,
            _ => false,
        }
    };
    let lost = parsed.parts.iter().enumerate().filter(is_lost);
    lost.filter_map(|(idx, _)| u32::try_from(idx).ok()).collect()
}

fn has_type(part: &MessagePart<'_>, main: &str, subtype: Option<&str>) -> bool {
    part.content_type().is_some_and(|kind| {
        let is_subtype = |wanted: &str| kind.subtype().is_some_and(|subtype| subtype.eq_ignore_ascii_case(wanted));
        kind.ctype().eq_ignore_ascii_case(main) && subtype.is_none_or(is_subtype)
    })
}

/// Returns the text of a part in UTF-8, or its bytes if nobody knows their character set, and what is known of it
/// if it is a page.
fn text_in_utf8<'p>(
    part: &'p MessagePart<'_>,
    flat: &[u8],
    rows: &mut Rows<'_, '_>,
) -> (Cow<'p, [u8]>, Given<'static>) {
    let text = match &part.body {
        PartType::Text(text) | PartType::Html(text) => text,
        PartType::Binary(bytes) | PartType::InlineBinary(bytes) => {
            return (Cow::Borrowed(bytes), Given::Utf8);
        }
        _ => return (Cow::default(), Given::Utf8),
    };
    let charset = part.content_type().and_then(|kind| kind.attribute("charset"));
    let is_decoded =
        !text.contains(char::REPLACEMENT_CHARACTER) && (text.is_ascii() || charset.is_none_or(headers::is_plain));
    let bytes = if is_decoded { None } else { bytes_of(part, flat) };
    let Some(bytes) = bytes else { return (Cow::Borrowed(text.as_bytes()), Given::Utf8) };
    let is_page = matches!(part.body, PartType::Html(_));
    if is_page && charset.is_none() {
        return (Cow::Owned(bytes), Given::ContentType(None));
    }
    let mut witness = Witness { input: rows.input, undecoded: &mut rows.sink.undecoded };
    match witness.decode(charset.unwrap_or("utf-8"), &bytes) {
        Some(text) => (Cow::Owned(text.into_bytes()), Given::Utf8),
        None => (Cow::Owned(bytes), Given::ContentType(None)),
    }
}

/// Returns the bytes of a part without its transfer encoding.
fn bytes_of(part: &MessagePart<'_>, flat: &[u8]) -> Option<Vec<u8>> {
    let coded = flat.get(part.offset_body as usize..part.offset_end as usize)?;
    match part.encoding {
        Encoding::None => Some(coded.to_vec()),
        Encoding::QuotedPrintable => quoted_printable_decode(coded),
        Encoding::Base64 => base64_decode(coded),
    }
}

/// Subtypes of parts that hold messages: `message/rfc822`, `message/global`, `multipart/digest`.
const HOLDERS: [&[u8; 6]; 3] = [b"rfc822", b"global", b"digest"];
/// Index of the letter of a subtype that is hidden.
const HIDDEN: usize = 2;
/// Marks in the place of a hidden letter, large or small.
const MARKS: [u8; 2] = [0x02, 0x03];

/// Returns `message` with a mark in the place of a letter of each subtype that holds messages. mail-parser
/// takes such a part for an attachment. It reads a subtype as it stands in the message, so none is missed.
fn without_messages(message: &[u8]) -> Cow<'_, [u8]> {
    let is_holder = |window: &[u8]| HOLDERS.iter().any(|holder| window.eq_ignore_ascii_case(holder.as_slice()));
    let places = message.windows(HOLDERS[0].len()).enumerate();
    let places = places.filter(|(_, window)| is_holder(window)).map(|(at, _)| at + HIDDEN);
    let mut flat = Cow::Borrowed(message);
    for at in places {
        let letter = &mut flat.to_mut()[at];
        *letter = MARKS[usize::from(letter.is_ascii_lowercase())];
    }
    flat
}

/// Undoes [`without_messages`] in a text of the message.
fn with_messages(text: &[u8]) -> Cow<'_, [u8]> {
    let mut whole = Cow::Borrowed(text);
    for (at, window) in text.windows(HOLDERS[0].len()).enumerate() {
        let Some(is_small) = MARKS.iter().position(|&mark| mark == window[HIDDEN]) else {
            continue;
        };
        let matches = |holder: &&[u8; 6]| {
            window[..HIDDEN].eq_ignore_ascii_case(&holder[..HIDDEN])
                && window[HIDDEN + 1..].eq_ignore_ascii_case(&holder[HIDDEN + 1..])
        };
        if let Some(holder) = HOLDERS.into_iter().find(matches) {
            let letter = holder[HIDDEN];
            whole.to_mut()[at + HIDDEN] = if is_small == 1 { letter } else { letter.to_ascii_uppercase() };
        }
    }
    whole
}

/// Returns the parts of hidden digests that name no type, which are messages.
fn messages_in_digests(parsed: &Message<'_>) -> HashSet<u32> {
    let mut messages = HashSet::new();
    for part in &parsed.parts {
        let subtype = part.content_type().and_then(|kind| kind.subtype()).unwrap_or_default();
        let PartType::Multipart(children) = &part.body else { continue };
        if with_messages(subtype.as_bytes()).eq_ignore_ascii_case(b"digest") {
            let has_no_type =
                |child: &&u32| parsed.parts.get(**child as usize).is_some_and(|part| part.content_type().is_none());
            messages.extend(children.iter().filter(has_no_type));
        }
    }
    messages
}

/// Returns `message`, which was read as `parsed`, with the missing ends of its multiparts, if there are any.
pub fn closed(message: &[u8], parsed: &Message<'_>) -> Option<Vec<u8>> {
    // A multipart without its boundary in it is read as a text.
    let multiparts = parsed.parts.iter().filter(|part| matches!(part.body, PartType::Multipart(_)));
    let multiparts = multiparts.filter_map(|part| {
        let kind = part.content_type().filter(|kind| kind.ctype() == "multipart")?;
        let boundary = kind.attribute("boundary").filter(|boundary| !boundary.is_empty())?;
        Some((part.offset_body as usize, boundary.as_bytes()))
    });
    let mut multiparts: Vec<(usize, &[u8])> = multiparts.collect();
    if multiparts.is_empty() {
        return None;
    }
    multiparts.sort_by_key(|(body, _)| *body);
    let mut multiparts = multiparts.into_iter().peekable();
    let mut open = Open::default();
    let mut closed = Closed { message, taken: 0, bytes: Vec::new() };
    for at in memmem::find_iter(message, b"\n--").map(|at| at + 1) {
        while let Some((_, boundary)) = multiparts.next_if(|(body, _)| *body <= at) {
            open.push(boundary);
        }
        let line = &message[at + 2..];
        let end = memchr::memchr(b'\n', line).unwrap_or(line.len());
        let Some((depth, is_end)) = open.find(line[..end].trim_ascii_end()) else { continue };
        while open.boundaries.len() > depth + 1 {
            closed.end(open.pop(), at);
        }
        if is_end {
            open.pop();
        }
    }
    while !open.boundaries.is_empty() {
        closed.end(open.pop(), message.len());
    }
    closed.finish()
}

/// The multiparts around a line, from the outermost.
#[derive(Default)]
struct Open<'a> {
    boundaries: Vec<&'a [u8]>,
    /// Depths of the multiparts with a boundary.
    depths: HashMap<&'a [u8], Vec<usize>>,
}

impl<'a> Open<'a> {
    fn push(&mut self, boundary: &'a [u8]) {
        self.depths.entry(boundary).or_default().push(self.boundaries.len());
        self.boundaries.push(boundary);
    }

    /// Ends the innermost multipart, and returns its boundary.
    fn pop(&mut self) -> &'a [u8] {
        let boundary = self.boundaries.pop().unwrap_or_default();
        if let Some(depths) = self.depths.get_mut(boundary) {
            depths.pop();
        }
        boundary
    }

    /// Returns the depth of the multipart whose boundary is `line`, and true if `line` ends it.
    fn find(&self, line: &[u8]) -> Option<(usize, bool)> {
        let depth = |boundary: &[u8]| self.depths.get(boundary)?.last().copied();
        let at_end = || line.strip_suffix(b"--").and_then(depth);
        depth(line).map(|depth| (depth, false)).or_else(|| Some((at_end()?, true)))
    }
}

/// A message, and what is to be put into it.
struct Closed<'a> {
    message: &'a [u8],
    /// Number of bytes of the message in `bytes`.
    taken: usize,
    bytes: Vec<u8>,
}

impl Closed<'_> {
    /// Puts the end of the multipart with `boundary` in front of the byte `at`.
    fn end(&mut self, boundary: &[u8], at: usize) {
        self.bytes.extend_from_slice(&self.message[self.taken..at]);
        self.taken = at;
        if !self.bytes.ends_with(b"\n") {
            self.bytes.push(b'\n');
        }
        for part in [b"--", boundary, b"--\n"] {
            self.bytes.extend_from_slice(part);
        }
    }

    /// Returns the message, if something was put into it.
    fn finish(mut self) -> Option<Vec<u8>> {
        if self.bytes.is_empty() {
            return None;
        }
        self.bytes.extend_from_slice(&self.message[self.taken..]);
        Some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use mail_parser::MessageParser;

    use super::*;

    #[test]
    fn hidden_letters_come_back() {
        let message = b"type: message/RFC822 or Message/rfc822, multipart/Digest, dIGEST, global";
        let flat = without_messages(message);
        assert!(
            HOLDERS
                .iter()
                .all(|holder| { !flat.to_ascii_lowercase().windows(6).any(|window| window == holder.as_slice()) })
        );
        assert_eq!(with_messages(&flat).as_ref(), message);
        let plain = b"no such type, and \x02 and rf\x02 822";
        assert!(matches!(without_messages(plain), Cow::Borrowed(_)));
        assert!(matches!(with_messages(plain), Cow::Borrowed(_)));
    }

    #[test]
    fn messages_inside_messages_have_one_level() {
        let deep = "Content-Type: message/rfc822\n\n".repeat(100_000) + "Subject: x\n\nend\n";
        let flat = without_messages(deep.as_bytes());
        let parsed = MessageParser::new().parse(flat.as_ref()).unwrap();
        assert!(parsed.text_body.is_empty());
        let digest = "Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: in\n\ninner\n--b\n\
                      Content-Type: text/plain\n\nouter\n--b--\n";
        let flat = without_messages(digest.as_bytes());
        let parsed = MessageParser::new().parse(flat.as_ref()).unwrap();
        let messages = messages_in_digests(&parsed);
        let texts: Vec<u32> = parsed.text_body.iter().copied().filter(|part| !messages.contains(part)).collect();
        assert_eq!(texts.len(), 1);
        let PartType::Text(text) = &parsed.parts[texts[0] as usize].body else { panic!("no text") };
        assert_eq!(text.trim_end(), "outer");
    }

    fn close(message: &str) -> Option<String> {
        let parsed = MessageParser::new().parse(message).unwrap();
        closed(message.as_bytes(), &parsed).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn missing_ends_are_put_in() {
        let head = "Content-Type: multipart/mixed; boundary=m\n\n";
        let inner = "Content-Type: multipart/alternative; boundary=a\n\n";
        for whole in [
            "Subject: x\n\n--m\n\ntext".to_owned(),
            format!("{head}--m\n\none\n--m--\n"),
            format!("{head}--m\n{inner}--a\n\none\n--a--\n--m\n\ntwo\n--m--\nbehind"),
            format!("{head}--m\r\n\r\none\r\n--m-- \r\n"),
        ] {
            assert_eq!(close(&whole), None, "{whole}");
        }
        for (cut, expected) in [
            (format!("{head}--m\n\none"), format!("{head}--m\n\none\n--m--\n")),
            (
                format!("{head}--m\n{inner}--a\n\none\n--m\n\ntwo\n--m--\n"),
                format!("{head}--m\n{inner}--a\n\none\n--a--\n--m\n\ntwo\n--m--\n"),
            ),
            (format!("{head}--m\n{inner}--a\n\none\n"), format!("{head}--m\n{inner}--a\n\none\n--a--\n--m--\n")),
        ] {
            assert_eq!(close(&cut), Some(expected), "{cut}");
        }
    }

    #[test]
    fn many_open_multiparts_take_linear_time() {
        let deep: String =
            (0..20_000).map(|idx| format!("Content-Type: multipart/mixed; boundary=b{idx}\n\n--b{idx}\n")).collect();
        let cut = deep + &"--x\n--b0\n".repeat(100_000);
        assert!(close(&cut).is_some());
    }
}
