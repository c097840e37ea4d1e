//! Office files as text: docx, pptx and xlsx, odt, odp and ods, their templates, and rtf.
//!
//! ```text
//! zip file ─┬─ mimetype: application/vnd.oasis.opendocument.… ─▶ content.xml, styles.xml
//!           ├─ [Content_Types].xml ─▶ main part ─┬─ document      its paragraphs, headers, notes, comments
//!           │                                    ├─ presentation  its slides, each with its notes
//!           │                                    └─ workbook      its sheets, rows of cells
//!           └─ no office file: its members are documents
//! ```
//!
//! Paragraphs are lines, and cells have a tab between them. A file that is broken has a warning, and its members are
//! documents then. All of its parts together may expand as far as one zip file of this length. A tag or text of a
//! part, and what is held in memory, may have `--max-row-size` bytes.

mod dates;
mod open_document;
mod open_xml;
mod rtf;
mod text;

use std::io::{self, BufRead, Read, Seek};
use std::sync::Arc;

use zip::ZipArchive;

use self::text::{Text, Token, TooLong, Xml};
use crate::display;
use crate::failure::{Failure, MemberBytes, Outcome};
use crate::inputs::Input;
use crate::open::{Budget, Counters, Opened, limited, open_member};

/// Types of OpenDocument, in the member [`MIMETYPE`].
const OPEN_DOCUMENT: [&str; 2] = ["application/vnd.oasis.opendocument.", "application/vnd.sun.xml."];
const MIMETYPE: &str = "mimetype";
const MAX_MIMETYPE_BYTES: u64 = 256;
/// Member that each file of Office Open XML has.
const CONTENT_TYPES: &str = "[Content_Types].xml";
/// Main parts, where no relationship names another one.
const MAIN_PARTS: [&str; 3] = ["word/document.xml", "ppt/presentation.xml", "xl/workbook.xml"];
/// Members up to which a name is looked for in any case of letters.
const MAX_COMPARED: usize = 10_000;
/// Codec of the text, for messages.
const CODEC: &str = "office";

/// A reason not to read an office file as text.
#[derive(Debug)]
pub enum Fault {
    /// A part is not as it ought to be.
    Broken(String),
    /// A tag or text, or what is held in memory, is too long.
    TooLong,
    /// A part cannot be read, or it exceeds a limit of expansion.
    Read(Arc<io::Error>),
}

impl Fault {
    fn broken(reason: impl Into<String>) -> Self {
        Self::Broken(reason.into())
    }

    /// Names the place of the fault in its part.
    fn at(self, at_byte: u64) -> Self {
        match self {
            Self::Broken(reason) => Self::Broken(format!("{reason}, at byte {at_byte}")),
            other => other,
        }
    }

    /// Names the part that has the fault.
    fn within(self, part: &str) -> Self {
        match self {
            Self::Broken(reason) => Self::Broken(format!("{}: {reason}", display::plain(part))),
            other => other,
        }
    }
}

impl From<quick_xml::Error> for Fault {
    fn from(error: quick_xml::Error) -> Self {
        match error {
            quick_xml::Error::Io(error) if error.get_ref().is_some_and(|error| error.is::<TooLong>()) => Self::TooLong,
            quick_xml::Error::Io(error) => Self::Read(error),
            error => Self::Broken(error.to_string()),
        }
    }
}

/// The kind of an office file, with its main part.
enum Kind {
    OpenDocument,
    Document(String),
    Presentation(String),
    Workbook(String),
}

/// Limits of an office file, and the numbers for which it counts.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Numbers of the whole input.
    pub budget: &'a Budget,
    /// Numbers of all parts.
    pub counters: &'a Counters,
    /// Greatest number of bytes of a tag or text, and of what is held in memory.
    pub max_held_bytes: u64,
}

/// Opens the text of `zip`, if it is an office file. One that is broken has a warning.
///
/// # Errors
/// The file exceeds a limit.
pub fn open_zip(
    zip: &mut ZipArchive<impl Read + Seek>,
    input: &Input,
    limits: Limits<'_>,
) -> Outcome<Option<Opened<'static>>> {
    let read = |text: &mut Text| Package { zip, limits }.append(text);
    open_text(read, "its members are documents", input, limits)
}

/// Returns true if `head` begins an office file that is no zip file.
pub fn is_rtf(head: &[u8]) -> bool {
    head.starts_with(rtf::MAGIC)
}

/// Opens the text of `bytes`, which are RTF. Bytes that are broken have a warning.
///
/// # Errors
/// The file exceeds a limit.
pub fn open_rtf(bytes: &mut dyn BufRead, input: &Input, limits: Limits<'_>) -> Outcome<Option<Opened<'static>>> {
    let read = |text: &mut Text| rtf::append(bytes, text).map(|()| true);
    open_text(read, "its bytes are the document", input, limits)
}

/// Opens the text that `read` appends, if it returns true. Without a text the inputs are `instead`.
fn open_text(
    read: impl FnOnce(&mut Text) -> Result<bool, Fault>,
    instead: &str,
    input: &Input,
    limits: Limits<'_>,
) -> Outcome<Option<Opened<'static>>> {
    let Limits { budget, counters, max_held_bytes } = limits;
    let mut text = Text::new(budget, counters, max_held_bytes);
    let shown = input.shown();
    let is_office = read(&mut text);
    let reason = match is_office.and_then(|is_office| if is_office { text.finish().map(Some) } else { Ok(None) }) {
        Ok(None) => return Ok(None),
        Ok(Some(text)) => {
            let mut opened = open_member(input, Box::new(text), false, budget)?;
            opened.codec = Some(CODEC);
            opened.is_utf8 = true;
            return Ok(Some(opened));
        }
        Err(Fault::Read(error)) if Budget::is_exceeded(&error) => return Err(budget.failed(None, input, &error)),
        Err(Fault::TooLong) => {
            return Err(Failure::new(format!(
                "{shown}: a text or tag of the office file, or what is kept of it in memory, has more than {}; \
                 where that is right, pass a larger --max-row-size, or --office members",
                display::bytes(max_held_bytes)
            )));
        }
        Err(Fault::Read(error)) => error.to_string(),
        Err(Fault::Broken(reason)) => reason,
    };
    budget.faults.note(
        input,
        Failure::new(format!(
            "{shown}: the office file is broken, and {instead} ({reason}); repair it if its text is wanted, or pass \
             --office members"
        )),
    );
    Ok(None)
}

/// The parts of an office file.
struct Package<'z, R> {
    zip: &'z mut ZipArchive<R>,
    limits: Limits<'z>,
}

/// A relationship of a part to another one.
struct Relationship {
    id: String,
    /// Last word of its type.
    kind: String,
    /// Name of the other part.
    target: String,
}

impl<R: Read + Seek> Package<'_, R> {
    /// Appends the text. Returns false if this is no office file.
    fn append(&mut self, text: &mut Text) -> Result<bool, Fault> {
        match self.kind()? {
            Some(Kind::OpenDocument) => open_document::append(self, text)?,
            Some(Kind::Document(main)) => open_xml::append_document(self, &main, text)?,
            Some(Kind::Presentation(main)) => open_xml::append_presentation(self, &main, text)?,
            Some(Kind::Workbook(main)) => open_xml::append(self, &main, text)?,
            None => return Ok(false),
        }
        Ok(true)
    }

    fn kind(&mut self) -> Result<Option<Kind>, Fault> {
        if self.find(MIMETYPE).is_some() && self.find(open_document::CONTENT).is_some() {
            let mut mimetype = String::new();
            if let Some(part) = self.bytes(MIMETYPE)? {
                part.take(MAX_MIMETYPE_BYTES).read_to_string(&mut mimetype).unwrap_or_default();
            }
            if OPEN_DOCUMENT.iter().any(|start| mimetype.starts_with(start)) {
                return Ok(Some(Kind::OpenDocument));
            }
        }
        if self.find(CONTENT_TYPES).is_none() {
            return Ok(None);
        }
        let named = self.relationships("")?.into_iter().find(|part| part.kind == "officeDocument");
        let known = || MAIN_PARTS.into_iter().find(|part| self.find(part).is_some()).map(str::to_owned);
        let Some(main) = named.map(|part| part.target).or_else(known) else { return Ok(None) };
        // The main part of xlsb is no XML.
        if !main.to_ascii_lowercase().ends_with(".xml") {
            return Ok(None);
        }
        Ok(match self.root(&main)?.as_deref() {
            Some(b"document") => Some(Kind::Document(main)),
            Some(b"presentation") => Some(Kind::Presentation(main)),
            Some(b"workbook") => Some(Kind::Workbook(main)),
            _ => None,
        })
    }

    /// Returns the name of the first element of a part.
    fn root(&mut self, part: &str) -> Result<Option<Vec<u8>>, Fault> {
        let Some(mut xml) = self.open(part)? else { return Ok(None) };
        loop {
            match xml.next()? {
                Some(Token::Start(element)) => return Ok(Some(element.name().to_vec())),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    fn find(&self, part: &str) -> Option<usize> {
        self.zip.index_for_name(part).or_else(|| {
            let is_small = self.zip.len() <= MAX_COMPARED;
            is_small.then(|| self.zip.file_names().position(|name| name.eq_ignore_ascii_case(part)))?
        })
    }

    fn bytes(&mut self, part: &str) -> Result<Option<Box<dyn Read + '_>>, Fault> {
        let Some(idx) = self.find(part) else { return Ok(None) };
        let packed = self.zip.by_index(idx).map_err(|error| Fault::broken(error.to_string()).within(part))?;
        let Limits { budget, counters, .. } = self.limits;
        Ok(Some(limited(Box::new(MemberBytes(packed)), counters, budget)))
    }

    /// Opens a part, if it is there.
    fn open(&mut self, part: &str) -> Result<Option<Xml<'_>>, Fault> {
        let max_held_bytes = self.limits.max_held_bytes;
        match self.bytes(part)? {
            Some(bytes) => Ok(Some(Xml::new(bytes, part, max_held_bytes)?)),
            None => Ok(None),
        }
    }

    /// Returns the relationships of a part to others in the file.
    fn relationships(&mut self, part: &str) -> Result<Vec<Relationship>, Fault> {
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let separator = if folder.is_empty() { "" } else { "/" };
        let max_held_bytes = self.limits.max_held_bytes;
        let Some(mut xml) = self.open(&format!("{folder}{separator}_rels/{name}.rels"))? else { return Ok(Vec::new()) };
        let mut relationships = Vec::new();
        let mut held_bytes = 0;
        while let Some(token) = xml.next()? {
            let Token::Start(element) = token else { continue };
            if element.name() != b"Relationship" || element.attribute("TargetMode").as_deref() == Some("External") {
                continue;
            }
            let values = ["Id", "Type", "Target"].map(|name| element.attribute(name));
            let [Some(id), Some(kind), Some(target)] = values else { continue };
            held_bytes += (id.len() + kind.len() + folder.len() + target.len()) as u64;
            if held_bytes > max_held_bytes {
                return Err(Fault::TooLong);
            }
            let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
            relationships.push(Relationship { id, kind, target: resolved(folder, &target) });
        }
        Ok(relationships)
    }
}

/// Returns the name of the part at `target`, which is relative to `folder` unless it begins with a slash.
fn resolved(folder: &str, target: &str) -> String {
    let base = if target.starts_with('/') { "" } else { folder };
    let mut names: Vec<&str> = Vec::new();
    for name in base.split('/').chain(target.split('/')) {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.join("/")
}
