//! Closes the multiparts of a message that do not close themselves, as when it is cut.
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

use std::collections::HashMap;

use mail_parser::{Message, MimeHeaders, PartType};
use memchr::memmem;

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
            (
                format!("{head}--m\n{inner}--a\n\none\n"),
                format!("{head}--m\n{inner}--a\n\none\n--a--\n--m--\n"),
            ),
        ] {
            assert_eq!(close(&cut), Some(expected), "{cut}");
        }
    }

    #[test]
    fn many_open_multiparts_take_linear_time() {
        let deep: String = (0..20_000)
            .map(|idx| format!("Content-Type: multipart/mixed; boundary=b{idx}\n\n--b{idx}\n"))
            .collect();
        let cut = deep + &"--x\n--b0\n".repeat(100_000);
        assert!(close(&cut).is_some());
    }
}
