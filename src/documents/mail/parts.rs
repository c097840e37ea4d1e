//! The parts of a message, as a list.
//!
//! ```text
//! Content-Type: multipart/mixed; boundary=m     0  multipart
//!                                               │
//! --m                                           ├─ 1  multipart
//! Content-Type: multipart/alternative; …=a      │  │
//! --a                                           │  └─ 2  text
//! …                                             │            `--a--` is missing here: m ends a
//! --m                                           └─ 3  message
//! Content-Type: message/rfc822                     │
//!                                                  └─ 4  text: the message itself, with its header lines
//! Subject: inner
//!                                                            `--m--` is missing here: the end ends m
//! ```
//!
//! Sources: RFC 2046, 5.1: a boundary stands alone in its line, but for white space behind it, and the
//! boundary of an outer part ends the parts in it. mail-parser finds it inside lines and at the start of
//! longer ones, and makes a tree of messages inside messages, so the parts are found here, and it reads the
//! header lines of a part. A part stands behind the one that it is in, and the first part of another directly
//! behind it. Parts lie at any depth, without recursion. Time is linear in the bytes, and so is memory.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use mail_parser::{HeaderName, Message, MessageParser, MimeHeaders};
use memchr::memmem::Finder;

use super::starts::name_of_header;

/// Start of the names of header lines that say what a part is.
const CONTENT: &[u8] = b"content-";
/// Longest header line of those, folds included, that is looked at.
const MAX_LINE_BYTES: usize = 16 << 10;

/// A part of a message.
#[derive(Debug)]
pub struct Part {
    /// Index of the part that this one is in.
    pub parent: Option<usize>,
    /// Header lines.
    pub head: Range<usize>,
    /// Bytes behind the blank line that ends them.
    pub body: Range<usize>,
    /// Kind of its body.
    pub kind: Kind,
    /// Facts of its header lines, if they have any.
    pub facts: Option<Box<Facts>>,
}

/// Kinds of bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Parts: `multipart/…`.
    Multipart(Multipart),
    /// A multipart without its boundary in it, or without one at all.
    Undivided,
    /// A message, which is the next part.
    Message,
    /// A message in an encoding.
    PackedMessage,
    /// Plain text, or a part without a type.
    Plain,
    /// HTML.
    Page,
    /// Text of another type.
    OtherText,
    /// Other bytes.
    Binary,
}

/// Kinds of multiparts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multipart {
    /// Parts with the same meaning.
    Alternative,
    /// Messages, unless they have a type.
    Digest,
    /// A part and what it shows.
    Related,
    /// Parts one behind the other.
    Mixed,
}

/// Encodings of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// The bytes as they are.
    #[default]
    None,
    Base64,
    QuotedPrintable,
}

/// Forms of the lines of a plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lines {
    /// The lines as they are.
    #[default]
    Fixed,
    /// Broken lines, `format=flowed`.
    Flowed {
        /// True if the blank at the end of a line that goes on is no text.
        deletes_blanks: bool,
    },
}

/// Facts that header lines state of a part.
#[derive(Debug, Default)]
pub struct Facts {
    /// Type and subtype in small letters.
    content_type: Option<(String, String)>,
    boundary: Option<String>,
    /// Name of the part of a multipart that is looked at first.
    pub start: Option<String>,
    /// Name of this part.
    pub id: Option<String>,
    /// Character set.
    pub charset: Option<String>,
    /// Encoding of the body.
    pub encoding: Encoding,
    /// Form of its lines.
    pub lines: Lines,
    /// True for an attachment.
    pub is_attached: bool,
    /// True if its type has a name of a file.
    pub has_name: bool,
}

impl Part {
    /// Returns the encoding of its body.
    pub fn encoding(&self) -> Encoding {
        self.facts.as_ref().map_or(Encoding::None, |facts| facts.encoding)
    }

    /// Returns the name of its character set.
    pub fn charset(&self) -> Option<&str> {
        self.facts.as_ref()?.charset.as_deref()
    }

    /// Returns the form of its lines.
    pub fn lines(&self) -> Lines {
        let stated = self.facts.as_ref().filter(|_| self.kind == Kind::Plain);
        stated.map_or(Lines::Fixed, |facts| facts.lines)
    }

    /// Returns true for an attachment.
    pub fn is_attached(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.is_attached)
    }
}

impl Facts {
    /// Returns what `head` says. Returns none if it has no line that says anything of the part.
    fn parse(head: &[u8]) -> Option<Self> {
        let lines = content_lines(head);
        if lines.is_empty() {
            return None;
        }
        let parser = MessageParser::new()
            .header_content_type(HeaderName::ContentType)
            .header_content_type(HeaderName::ContentDisposition)
            .header_text(HeaderName::ContentTransferEncoding)
            .header_text(HeaderName::ContentId);
        let parsed = parser.default_header_ignore().parse_headers(&lines)?;
        Some(Self::from_parsed(&parsed))
    }

    fn from_parsed(parsed: &Message<'_>) -> Self {
        let content_type = parsed.content_type();
        let attribute = |name: &str| content_type?.attribute(name).map(str::to_owned);
        let is = |name: &str, value: &str| attribute(name).is_some_and(|stated| stated.eq_ignore_ascii_case(value));
        let flowed = is("format", "flowed").then(|| Lines::Flowed { deletes_blanks: is("delsp", "yes") });
        let types = content_type.map(|kind| {
            let subtype = kind.subtype().unwrap_or_default();
            (kind.ctype().to_ascii_lowercase(), subtype.to_ascii_lowercase())
        });
        Self {
            content_type: types,
            boundary: attribute("boundary"),
            start: attribute("start"),
            id: parsed.content_id().map(str::to_owned),
            charset: attribute("charset"),
            encoding: parsed.content_transfer_encoding().map_or(Encoding::None, encoding_named),
            lines: flowed.unwrap_or_default(),
            is_attached: parsed.content_disposition().is_some_and(|kind| kind.is_attachment()),
            has_name: content_type.is_some_and(|kind| kind.has_attribute("name")),
        }
    }

    /// Returns the kind of a part with a type. RFC 2045, 5.2: without a subtype a type means nothing.
    fn kind(&self) -> Option<Kind> {
        let (main, subtype) = self.content_type.as_ref()?;
        let kind = match (main.as_str(), subtype.as_str()) {
            ("multipart", "alternative") => Kind::Multipart(Multipart::Alternative),
            ("multipart", "digest") => Kind::Multipart(Multipart::Digest),
            ("multipart", "related") => Kind::Multipart(Multipart::Related),
            ("multipart", _) => Kind::Multipart(Multipart::Mixed),
            (_, "") => return None,
            ("message", "rfc822" | "global" | "news") if self.encoding == Encoding::None => Kind::Message,
            ("message", "rfc822" | "global" | "news") => Kind::PackedMessage,
            ("text", "plain") => Kind::Plain,
            ("text", "html") => Kind::Page,
            ("text", _) => Kind::OtherText,
            _ => Kind::Binary,
        };
        Some(kind)
    }

    /// Returns the boundary. RFC 2046, 5.1.1: white space at its end is no part of it.
    fn boundary(&self) -> Option<&[u8]> {
        let boundary = self.boundary.as_ref()?.as_bytes().trim_ascii_end();
        (!boundary.is_empty()).then_some(boundary)
    }
}

/// Returns the encoding with a name, which may have quotation marks, a comment or a semicolon.
fn encoding_named(name: &str) -> Encoding {
    let name = name.trim_matches(|sign: char| sign.is_whitespace() || matches!(sign, '"' | '\''));
    let end = name.find(|sign: char| sign.is_whitespace() || matches!(sign, ';' | '(' | '"'));
    match name[..end.unwrap_or(name.len())].to_ascii_lowercase().as_str() {
        "base64" => Encoding::Base64,
        "quoted-printable" => Encoding::QuotedPrintable,
        _ => Encoding::None,
    }
}

/// Returns the header lines that say what a part is, and a blank line. Each is cut, because mail-parser takes
/// more than linear time for some.
fn content_lines(head: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut room = 0;
    for line in head.split_inclusive(|&byte| byte == b'\n') {
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            let start = line.get(..CONTENT.len()).unwrap_or_default();
            room = if start.eq_ignore_ascii_case(CONTENT) { MAX_LINE_BYTES } else { 0 };
        }
        if room < line.len() {
            room = 0;
            continue;
        }
        room -= line.len();
        lines.extend_from_slice(line);
    }
    if !lines.is_empty() {
        lines.extend_from_slice(b"\n\n");
    }
    lines
}

/// Returns the parts of `message`. The first is the message itself.
pub fn split(message: &[u8]) -> Vec<Part> {
    let finder = Finder::new(b"\n--");
    let mut splitter = Splitter { message, finder, parts: Vec::new(), open: Open::default(), leaf: None };
    let mut next = Some(Place { at: 0, parent: None, is_message: true });
    while let Some(place) = next {
        next = splitter.take_part(&place);
    }
    splitter.parts
}

/// Returns true if a line ends the header lines.
fn is_blank(line: &[u8]) -> bool {
    line.ends_with(b"\n") && line.trim_ascii().is_empty()
}

/// The start of a part.
struct Place {
    at: usize,
    parent: Option<usize>,
    /// True if the part is a message, whose header lines go on up to a blank line.
    is_message: bool,
}

/// Header lines, and the start of the body behind them.
struct Head {
    lines: Range<usize>,
    body: usize,
}

/// Divides a message.
struct Splitter<'m> {
    message: &'m [u8],
    finder: Finder<'m>,
    parts: Vec<Part>,
    open: Open,
    /// The part without parts that the next boundary ends.
    leaf: Option<usize>,
}

impl<'m> Splitter<'m> {
    /// Takes the part at a place. Returns the next place.
    fn take_part(&mut self, place: &Place) -> Option<Place> {
        let mut head = self.head_at(place);
        let facts = Facts::parse(&self.message[head.lines.clone()]);
        if facts.is_none() && !place.is_message && head.body == head.lines.end {
            // No blank line follows, so it is text that looks like header lines.
            head = Head { lines: place.at..place.at, body: place.at };
        }
        let parent = place.parent.and_then(|parent| self.parts.get(parent));
        let is_in_digest = parent.is_some_and(|part| part.kind == Kind::Multipart(Multipart::Digest));
        let default = if is_in_digest { Kind::Message } else { Kind::Plain };
        let mut kind = facts.as_ref().and_then(Facts::kind).unwrap_or(default);
        let idx = self.parts.len();
        if let Kind::Multipart(_) = kind {
            match facts.as_ref().and_then(Facts::boundary) {
                Some(boundary) => self.open.push(boundary, idx),
                None => kind = Kind::Undivided,
            }
        }
        let body = head.body..self.message.len();
        self.parts.push(Part { parent: place.parent, head: head.lines, body, kind, facts: facts.map(Box::new) });
        match kind {
            Kind::Message => return Some(Place { at: head.body, parent: Some(idx), is_message: true }),
            Kind::Multipart(_) => {}
            _ => self.leaf = Some(idx),
        }
        self.seek(head.body)
    }

    fn line_at(&self, at: usize) -> &'m [u8] {
        let rest = self.message.get(at..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        &rest[..end]
    }

    /// Returns the header lines at a place.
    fn head_at(&self, place: &Place) -> Head {
        let mut at = place.at;
        loop {
            let line = self.line_at(at);
            if is_blank(line) {
                return Head { lines: place.at..at, body: at + line.len() };
            }
            let is_fold = at > place.at && (line.starts_with(b" ") || line.starts_with(b"\t"));
            let is_header = place.is_message || is_fold || name_of_header(line).is_some();
            if line.is_empty() || !is_header || self.open.find(line).is_some() {
                return Head { lines: place.at..at, body: at };
            }
            at += line.len();
        }
    }

    /// Returns the place behind the next boundary from the line at `at`, and ends the parts that it ends.
    fn seek(&mut self, mut at: usize) -> Option<Place> {
        while let Some(start) = self.next_dashes(at) {
            let line = self.line_at(start);
            at = start + line.len();
            let Some((depth, is_end)) = self.open.find(line) else { continue };
            self.end_parts(depth + usize::from(!is_end), start);
            if !is_end {
                let parent = self.open.begin_part();
                return Some(Place { at, parent, is_message: false });
            }
        }
        self.end_parts(0, self.message.len());
        None
    }

    /// Returns the next line from the one at `at` that may be a boundary.
    fn next_dashes(&self, at: usize) -> Option<usize> {
        if self.open.frames.is_empty() {
            return None;
        }
        let rest = self.message.get(at..)?;
        if rest.starts_with(b"--") {
            return Some(at);
        }
        self.finder.find(rest).map(|idx| at + idx + 1)
    }

    /// Ends the multiparts from `depth` on, and the part in them, in front of the line at `at`.
    fn end_parts(&mut self, depth: usize, at: usize) {
        // The line end in front of a boundary belongs to it.
        let bytes = &self.message[..at];
        let is_boundary = at < self.message.len();
        let line = bytes.strip_suffix(b"\n").filter(|_| is_boundary).unwrap_or(bytes);
        let end = line.strip_suffix(b"\r").filter(|_| line.len() < at).unwrap_or(line).len();
        if let Some(idx) = self.leaf.take() {
            self.end_part(idx, end);
        }
        while self.open.frames.len() > depth {
            let Some(frame) = self.open.pop() else { break };
            if !frame.has_parts {
                self.parts[frame.part].kind = Kind::Undivided;
                self.end_part(frame.part, end);
            }
        }
    }

    fn end_part(&mut self, idx: usize, end: usize) {
        let body = &mut self.parts[idx].body;
        body.end = end.max(body.start);
    }
}

/// The multiparts around a line, from the outermost.
#[derive(Default)]
struct Open {
    frames: Vec<Frame>,
    /// Depths of the multiparts with a boundary.
    depths: HashMap<Rc<[u8]>, Vec<usize>>,
}

/// A multipart that is open.
struct Frame {
    boundary: Rc<[u8]>,
    part: usize,
    has_parts: bool,
}

impl Open {
    fn push(&mut self, boundary: &[u8], part: usize) {
        let boundary: Rc<[u8]> = boundary.into();
        self.depths.entry(Rc::clone(&boundary)).or_default().push(self.frames.len());
        self.frames.push(Frame { boundary, part, has_parts: false });
    }

    /// Ends the innermost multipart.
    fn pop(&mut self) -> Option<Frame> {
        let frame = self.frames.pop()?;
        if let Some(depths) = self.depths.get_mut(&frame.boundary) {
            depths.pop();
        }
        Some(frame)
    }

    /// Begins a part of the innermost multipart, and returns the index of that.
    fn begin_part(&mut self) -> Option<usize> {
        let frame = self.frames.last_mut()?;
        frame.has_parts = true;
        Some(frame.part)
    }

    /// Returns the depth of the multipart whose boundary is `line`, and true if `line` ends it.
    fn find(&self, line: &[u8]) -> Option<(usize, bool)> {
        let line = line.strip_prefix(b"--")?.trim_ascii_end();
        let depth = |boundary: &[u8]| self.depths.get(boundary)?.last().copied();
        let at_end = || line.strip_suffix(b"--").and_then(depth);
        depth(line).map(|depth| (depth, false)).or_else(|| Some((at_end()?, true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bodies of the parts without parts, each with its kind.
    fn leaves(message: &str) -> Vec<(Kind, &str)> {
        let parts = split(message.as_bytes());
        let is_leaf = |part: &&Part| !matches!(part.kind, Kind::Multipart(_) | Kind::Message);
        parts.iter().filter(is_leaf).map(|part| (part.kind, &message[part.body.clone()])).collect()
    }

    const MIXED: &str = "Content-Type: multipart/mixed; boundary=b\n\n";

    #[test]
    fn a_boundary_is_alone_in_its_line() {
        let plain = |text| (Kind::Plain, text);
        for (body, expected) in [
            (
                "--b\n\nfirst\n--bar is text\nx --b\n--b-- is text\nsecond\n--b--\n",
                vec!["first\n--bar is text\nx --b\n--b-- is text\nsecond"],
            ),
            ("--b \t\r\n\r\none\r\n--b\r\n\r\n\r\n--b-- \r\nbehind", vec!["one", ""]),
            ("in front\n--b\nno header\n--b\nA: b\n--b\n\n--b\n", vec!["no header", "A: b", "", ""]),
        ] {
            let expected: Vec<(Kind, &str)> = expected.into_iter().map(plain).collect();
            assert_eq!(leaves(&format!("{MIXED}{body}")), expected, "{body}");
        }
        let nested = "--b\nContent-Type: multipart/mixed; boundary=\"b-1 \"\n\n--b-1\n\none\n--b-1--\n--b\n\ntwo";
        assert_eq!(leaves(&format!("{MIXED}{nested}")), [plain("one"), plain("two")]);
    }

    #[test]
    fn multiparts_that_are_cut_end_with_the_one_around_them() {
        let inner = "Content-Type: multipart/alternative; boundary=a\n\n";
        let plain = |text| (Kind::Plain, text);
        assert_eq!(leaves(&format!("{MIXED}--b\n\none")), [plain("one")]);
        let cut = format!("{MIXED}--b\n{inner}--a\n\none\n--b\n\ntwo\n--b--\n");
        assert_eq!(leaves(&cut), [plain("one"), plain("two")]);
        let none = format!("{MIXED}--b\n{inner}text\n--b\n\ntwo\n--b--\n");
        assert_eq!(leaves(&none), [(Kind::Undivided, "text"), plain("two")]);
        assert_eq!(leaves(&format!("{MIXED}text\n--b--\n")), [(Kind::Undivided, "text")]);
        assert_eq!(leaves("Content-Type: multipart/mixed\n\ntext"), [(Kind::Undivided, "text")]);
    }

    #[test]
    fn parts_and_messages_lie_at_any_depth() {
        let messages = "Content-Type: message/rfc822\n\n".repeat(100_000) + "Subject: x\n\nend\n";
        let parts = split(messages.as_bytes());
        assert_eq!(parts.len(), 100_001);
        assert_eq!(&messages[parts[100_000].body.clone()], "end\n");
        let deep: String =
            (0..20_000).map(|idx| format!("Content-Type: multipart/mixed; boundary=b{idx}\n\n--b{idx}\n")).collect();
        let cut = deep + &"--x\n--b0\n".repeat(100_000);
        assert_eq!(split(cut.as_bytes()).len(), 120_001);
        let lines = format!("Content-Type: text/plain{}\n\nx", ";\n a*1=b".repeat(1 << 18));
        assert_eq!(split(lines.as_bytes()).len(), 1);
    }

    #[test]
    fn types_without_a_meaning_are_plain_text() {
        for (head, kind) in [
            ("Content-Type: text\n", Kind::Plain),
            ("content-type:\n", Kind::Plain),
            ("Content-Type: TEXT/Html; charset=x\n", Kind::Page),
            ("Subject: x\nContent-type\n : text/html\n", Kind::Plain),
            ("Content-Type: text/calendar\n", Kind::OtherText),
            ("Content-Type: image/png\n", Kind::Binary),
            ("Content-Type: message/rfc822\nContent-Transfer-Encoding: \"Base64\"\n", Kind::PackedMessage),
        ] {
            assert_eq!(leaves(&format!("{head}\nx")), [(kind, "x")], "{head}");
        }
        assert_eq!(encoding_named(" Quoted-Printable; x"), Encoding::QuotedPrintable);
    }
}
