//! The parts of office files as tokens (starts and ends of elements, and text), and their text as it grows: paragraphs
//! as lines, cells and rows of tables, and text that stands aside.
//!
//! ```text
//! member of the zip file ─ limits ─▶ UTF-8 ─▶ bytes of a token, bounded ─▶ quick-xml ─▶ Token
//!
//! a paragraph, with a box ─ in it ─▶  line of the paragraph       body
//!                                     lines of the box
//! a note ──────────────────────────▶  lines of the note           behind the body
//! ```
//!
//! Entities are the five of XML and numbers. Others are a fault, so that none expands. Elements lie at most
//! [`MAX_DEPTH`] deep, and a token has at most `--max-row-size` bytes. Time is linear in the bytes.
//!
//! The body goes to memory, and from [`MEMORY_BYTES`] on to a temporary file. All of it counts for the limits of
//! expansion, because cells may be repeated. Text that stands aside stays in memory, within `--max-row-size`.
//!
//! Source: XML 1.0 (W3C), by the crate quick-xml. A part names its character set as a page does.

use std::borrow::Cow;
use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::io::{self, BufReader, Read, Seek, Write};
use std::rc::Rc;
use std::sync::Arc;

use quick_xml::Reader;
use quick_xml::encoding::Decoder;
use quick_xml::events::{BytesEnd, BytesRef, BytesStart, Event};
use tempfile::SpooledTempFile;

use super::Fault;
use crate::charset::{Given, Utf8Page};
use crate::open::{Budget, Counters};

/// Bytes of text in memory.
const MEMORY_BYTES: usize = 4 << 20;
/// Bytes of text that are written at once.
const WRITE_BYTES: usize = 64 << 10;

/// Text of an office file.
pub struct Text {
    body: Lines,
    /// Texts that have begun in each other.
    aside: Vec<(Lines, Aside)>,
    behind_body: String,
    /// Bytes of text that stood aside.
    aside_bytes: u64,
    max_aside_bytes: u64,
    file: SpooledTempFile,
    budget: Budget,
    counters: Counters,
}

/// The place of a text that stands aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aside {
    /// Behind the line of the paragraph around it.
    Box,
    /// Behind the body.
    Note,
}

#[derive(Default)]
struct Lines {
    text: String,
    /// Boxes of the line that has not ended.
    boxes: String,
    /// True if the cell has a line.
    has_line: bool,
}

impl Text {
    /// Creates an empty text. It counts for `counters`, and `max_aside_bytes` of it may stand aside.
    pub fn new(budget: &Budget, counters: &Counters, max_aside_bytes: u64) -> Self {
        Self {
            body: Lines::default(),
            aside: Vec::new(),
            behind_body: String::new(),
            aside_bytes: 0,
            max_aside_bytes,
            file: SpooledTempFile::new(MEMORY_BYTES),
            budget: budget.clone(),
            counters: counters.clone(),
        }
    }

    fn lines(&mut self) -> &mut Lines {
        match self.aside.last_mut() {
            Some((lines, _)) => lines,
            None => &mut self.body,
        }
    }

    /// Appends to the line.
    ///
    /// # Errors
    /// The text exceeds a limit, or the temporary file cannot be written.
    pub fn push(&mut self, text: &str) -> Result<(), Fault> {
        self.lines().text.push_str(text);
        if self.aside.is_empty() {
            return if self.body.text.len() < WRITE_BYTES { Ok(()) } else { self.write() };
        }
        self.hold(text.len() as u64)
    }

    /// Appends to the line, with a blank for each line end.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn push_in_line(&mut self, text: &str) -> Result<(), Fault> {
        if text.contains(['\n', '\r']) { self.push(&text.replace(['\n', '\r'], " ")) } else { self.push(text) }
    }

    /// Counts bytes that are held in memory.
    ///
    /// # Errors
    /// There are too many.
    pub fn hold(&mut self, len_bytes: u64) -> Result<(), Fault> {
        self.aside_bytes += len_bytes;
        self.check_held(0)
    }

    /// Checks that `more_bytes` may be held in memory, too.
    ///
    /// # Errors
    /// There are too many.
    pub fn check_held(&self, more_bytes: u64) -> Result<(), Fault> {
        if self.aside_bytes + more_bytes > self.max_aside_bytes { Err(Fault::TooLong) } else { Ok(()) }
    }

    /// Ends the line of a paragraph.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn end_paragraph(&mut self) -> Result<(), Fault> {
        self.lines().has_line = true;
        self.push("\n")?;
        self.end_boxes()
    }

    /// Appends the boxes of the line.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn end_boxes(&mut self) -> Result<(), Fault> {
        let boxes = std::mem::take(&mut self.lines().boxes);
        self.push(&boxes)
    }

    /// Begins a cell of a table.
    pub fn begin_cell(&mut self) {
        self.lines().has_line = false;
    }

    /// Ends a cell of a table.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn end_cell(&mut self) -> Result<(), Fault> {
        let lines = self.lines();
        if lines.has_line && lines.text.ends_with('\n') {
            lines.text.pop();
        }
        lines.has_line = true;
        self.push("\t")
    }

    /// Ends a row of a table.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn end_row(&mut self) -> Result<(), Fault> {
        let lines = self.lines();
        if lines.text.ends_with('\t') {
            lines.text.pop();
        }
        self.end_paragraph()
    }

    /// Begins a text that stands aside.
    pub fn begin_aside(&mut self, aside: Aside) {
        self.aside.push((Lines::default(), aside));
    }

    /// Ends the innermost text that stands aside.
    pub fn end_aside(&mut self) {
        let Some((lines, aside)) = self.aside.pop() else { return };
        let place = match aside {
            Aside::Box => &mut self.lines().boxes,
            Aside::Note => &mut self.behind_body,
        };
        for text in [lines.text, lines.boxes] {
            place.push_str(&text);
            if !(text.is_empty() || text.ends_with('\n')) {
                place.push('\n');
            }
        }
    }

    /// Ends the innermost text that stands aside, and returns it.
    pub fn take_aside(&mut self) -> String {
        match self.aside.pop() {
            Some((lines, _)) => lines.text + &lines.boxes,
            None => String::new(),
        }
    }

    /// Writes the text of the body but for its last character, which may still change.
    fn write(&mut self) -> Result<(), Fault> {
        let text = &mut self.body.text;
        let end = text.char_indices().next_back().map_or(0, |(at, _)| at);
        self.budget.count(&self.counters, end as u64)?;
        self.file.write_all(&text.as_bytes()[..end])?;
        text.drain(..end);
        Ok(())
    }

    /// Ends the text, and returns a reader of it.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn finish(mut self) -> Result<SpooledTempFile, Fault> {
        let rest = [&self.body.text, &self.body.boxes, &self.behind_body].map(String::as_str).concat();
        self.budget.count(&self.counters, rest.len() as u64)?;
        self.file.write_all(rest.as_bytes())?;
        self.file.rewind()?;
        Ok(self.file)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Read(Arc::new(error))
    }
}

/// Greatest number of elements that lie in each other.
const MAX_DEPTH: usize = 1000;

/// A token of a part.
pub enum Token<'t> {
    /// The start of an element. Its end follows, also if it is empty.
    Start(Element<'t>),
    /// The end of an element.
    End(Ended<'t>),
    /// Text, or a part of it.
    Text(Cow<'t, str>),
    /// Something that is no text.
    Other,
}

/// The start of an element.
pub struct Element<'t> {
    start: BytesStart<'t>,
    decoder: Decoder,
}

impl Element<'_> {
    /// Returns the name with its prefix.
    pub fn full_name(&self) -> &[u8] {
        self.start.name().0
    }

    /// Returns the name without its prefix.
    pub fn name(&self) -> &[u8] {
        local(self.full_name())
    }

    /// Returns the value of the attribute with this name, whatever its prefix is.
    pub fn attribute(&self, name: &str) -> Option<String> {
        self.value(|key| local(key) == name.as_bytes())
    }

    /// Returns the value of the attribute `id` that has a prefix, which names a relationship.
    pub fn relationship_id(&self) -> Option<String> {
        self.value(|key| key != b"id" && local(key) == b"id")
    }

    fn value(&self, is_wanted: impl Fn(&[u8]) -> bool) -> Option<String> {
        let mut attributes = self.start.attributes();
        let attribute = attributes.with_checks(false).flatten().find(|attribute| is_wanted(attribute.key.0))?;
        attribute.decode_and_unescape_value(self.decoder).ok().map(Cow::into_owned)
    }
}

/// The end of an element.
pub struct Ended<'t>(BytesEnd<'t>);

impl Ended<'_> {
    /// Returns the name with its prefix.
    pub fn full_name(&self) -> &[u8] {
        self.0.name().0
    }

    /// Returns the name without its prefix.
    pub fn name(&self) -> &[u8] {
        local(self.full_name())
    }
}

/// Returns the name without its prefix.
fn local(name: &[u8]) -> &[u8] {
    match memchr::memchr(b':', name) {
        Some(at) => &name[at + 1..],
        None => name,
    }
}

/// A reader of a part.
pub struct Xml<'a> {
    /// Name of the part.
    part: Rc<str>,
    reader: Reader<BufReader<Bounded<'a>>>,
    buffer: Vec<u8>,
    depth: usize,
    has_root: bool,
    max_token_bytes: u64,
    /// Bytes that the token may still have.
    left_bytes: Rc<Cell<u64>>,
}

impl<'a> Xml<'a> {
    /// Reads the `bytes` of a part, whose tokens may have `max_token_bytes`.
    ///
    /// # Errors
    /// The errors of `bytes`.
    pub fn new(bytes: Box<dyn Read + 'a>, part: &str, max_token_bytes: u64) -> io::Result<Self> {
        let page = Utf8Page::new(BufReader::new(bytes), Given::ContentType(None))?;
        let left_bytes = Rc::new(Cell::new(max_token_bytes));
        let bounded = Bounded { page, left_bytes: Rc::clone(&left_bytes) };
        let mut reader = Reader::from_reader(BufReader::new(bounded));
        reader.config_mut().expand_empty_elements = true;
        let part = Rc::from(part);
        let buffer = Vec::new();
        Ok(Self { part, reader, buffer, depth: 0, has_root: false, max_token_bytes, left_bytes })
    }

    /// Returns the next token, or none at the end of the part.
    ///
    /// # Errors
    /// The part is no XML, is cut, or exceeds a limit.
    pub fn next(&mut self) -> Result<Option<Token<'_>>, Fault> {
        let part = Rc::clone(&self.part);
        self.token().map_err(|fault| fault.within(&part))
    }

    fn token(&mut self) -> Result<Option<Token<'_>>, Fault> {
        self.buffer.clear();
        self.left_bytes.set(self.max_token_bytes);
        let decoder = self.reader.decoder();
        let event = self.reader.read_event_into(&mut self.buffer);
        let at_byte = self.reader.error_position();
        Ok(Some(match event.map_err(|error| Fault::from(error).at(at_byte))? {
            Event::Start(start) => {
                self.depth += 1;
                self.has_root = true;
                if self.depth > MAX_DEPTH {
                    return Err(Fault::broken(format!("elements lie more than {MAX_DEPTH} deep in each other")));
                }
                Token::Start(Element { start, decoder })
            }
            Event::End(end) => {
                self.depth -= 1;
                Token::End(Ended(end))
            }
            Event::Text(text) => Token::Text(lossy(text.into_inner())),
            Event::CData(text) => Token::Text(lossy(text.into_inner())),
            Event::GeneralRef(entity) => Token::Text(resolved(&entity)?),
            Event::Eof if self.depth > 0 => return Err(Fault::broken("it ends inside an element")),
            Event::Eof if !self.has_root => return Err(Fault::broken("it has no element")),
            Event::Eof => return Ok(None),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => Token::Other,
        }))
    }

    /// Skips to the end of the element whose start was the last token.
    ///
    /// # Errors
    /// Same as [`next`](Self::next).
    pub fn skip(&mut self) -> Result<(), Fault> {
        let outside = self.depth.saturating_sub(1);
        while self.depth > outside {
            if self.next()?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

fn lossy(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Returns the character for which `entity` stands.
fn resolved(entity: &BytesRef<'_>) -> Result<Cow<'static, str>, Fault> {
    if let Some(character) = entity.resolve_char_ref()? {
        return Ok(Cow::Owned(character.to_string()));
    }
    let name: &[u8] = entity;
    Ok(Cow::Borrowed(match name {
        b"amp" => "&",
        b"lt" => "<",
        b"gt" => ">",
        b"quot" => "\"",
        b"apos" => "'",
        _ => return Err(Fault::broken("it has entities that XML does not know")),
    }))
}

/// A reader that stops where a token has too many bytes.
struct Bounded<'a> {
    page: Utf8Page<BufReader<Box<dyn Read + 'a>>>,
    left_bytes: Rc<Cell<u64>>,
}

/// The error of a token with too many bytes.
#[derive(Debug)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or tag is too long")
    }
}

impl Error for TooLong {}

impl Read for Bounded<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(left_bytes) = self.left_bytes.get().checked_sub(1) else { return Err(io::Error::other(TooLong)) };
        let len = self.page.read(bytes)?;
        self.left_bytes.set((left_bytes + 1).saturating_sub(len as u64));
        Ok(len)
    }
}
