//! The text of Office Open XML: documents of Word, slides of PowerPoint, and what belongs to either; and workbooks of
//! Excel: a line with the name of each sheet, then a line for each row.
//!
//! ```text
//! p  r t "bra"  r t "ve"  r tab  r t "x"  ─▶  brave⇥x⏎        tr tc p …  ─▶  cell⇥cell⏎
//!
//! power failure_x000D_⏎next     power failure, U+000D, a line end, next
//! _x005F_x000D_                 _x000D_
//! ```
//!
//! Runs of a paragraph are joined without blanks. Tabs and breaks are kept. Text that was deleted with changes
//! tracked is left out, and so is the mark of a paragraph. A text box follows the line of its paragraph. Elements are
//! told by their local names, which both dialects (transitional and strict) share.
//!
//! In some texts `_xHHHH_` stands for a unit of UTF-16, so two of them may be one character. An underscore
//! that is written so protects what follows it. U+FFFD stands for half a character.
//!
//! ```text
//! row  c r="A1" t="s" v 0   c r="C1" v 1.5  ─▶  name⇥⇥1.5⏎
//! ```
//!
//! Cells of a row have a tab between them, also for cells that are empty. Rows without text are left out. A cell is
//! one line: line ends in it become blanks. Numbers stand as they are stored, and dates as ISO 8601 has them
//! ([`Dates`]). Formulas give their value. Comments and text boxes follow the rows of their sheet.
//!
//! Source: ECMA-376 (Office Open XML), parts 1 and 4: WordprocessingML, DrawingML, PresentationML; part 1,
//! 22.9.2.19: ST_Xstring; 18: SpreadsheetML.

use std::borrow::Cow;
use std::io::{Read, Seek};

use memchr::memmem;

use super::dates::{Dates, Form};
use super::text::{Aside, Element, Text, Token, Xml};
use super::{Fault, Package, Relationship, open_xml, resolved};

/// Parts that follow a document, by the last word of the type of their relationship.
const BEHIND_DOCUMENT: [&str; 6] = ["diagramData", "header", "footer", "footnotes", "endnotes", "comments"];
/// Parts that follow a slide.
const BEHIND_SLIDE: [&str; 3] = ["diagramData", "notesSlide", "comments"];
/// Elements without text, or with text that nobody reads: deleted, moved away, codes of fields, readings above
/// characters, properties, and the other form of a drawing.
const SKIPPED: [&[u8]; 11] = [
    b"del",
    b"moveFrom",
    b"delText",
    b"instrText",
    b"delInstrText",
    b"rPr",
    b"sdtPr",
    b"sectPr",
    b"ffData",
    b"rt",
    b"Fallback",
];
/// Characters for which symbol fonts have signs of their own.
const PRIVATE: std::ops::RangeInclusive<char> = '\u{e000}'..='\u{f8ff}';

/// Appends the text of the document of Word `main`.
///
/// # Errors
/// A part is broken or exceeds a limit.
pub fn append_document(package: &mut Package<'_, impl Read + Seek>, main: &str, text: &mut Text) -> Result<(), Fault> {
    append_part(package, main, Comments::Paragraphs, text)?;
    append_behind(package, main, &BEHIND_DOCUMENT, Comments::Paragraphs, text)
}

/// Appends the text of the slides of the presentation `main`, hidden ones, too.
///
/// # Errors
/// A part is broken or exceeds a limit.
pub fn append_presentation(
    package: &mut Package<'_, impl Read + Seek>,
    main: &str,
    text: &mut Text,
) -> Result<(), Fault> {
    let relationships = package.relationships(main)?;
    for id in slide_ids(package, main)? {
        let Some(slide) = relationships.iter().find(|relationship| relationship.id == id) else { continue };
        append_part(package, &slide.target, Comments::Plain, text)?;
        append_behind(package, &slide.target, &BEHIND_SLIDE, Comments::Plain, text)?;
    }
    Ok(())
}

fn slide_ids(package: &mut Package<'_, impl Read + Seek>, main: &str) -> Result<Vec<String>, Fault> {
    let mut ids = Vec::new();
    let Some(mut xml) = package.open(main)? else { return Ok(ids) };
    while let Some(token) = xml.next()? {
        if let Token::Start(element) = token
            && element.name() == b"sldId"
        {
            ids.extend(element.relationship_id());
        }
    }
    Ok(ids)
}

/// Appends the parts that `part` names, in the order of `kinds`.
///
/// # Errors
/// A part is broken or exceeds a limit.
pub fn append_behind(
    package: &mut Package<'_, impl Read + Seek>,
    part: &str,
    kinds: &[&str],
    comments: Comments,
    text: &mut Text,
) -> Result<(), Fault> {
    let relationships = package.relationships(part)?;
    for kind in kinds {
        for relationship in relationships.iter().filter(|relationship| relationship.kind == *kind) {
            append_part(package, &relationship.target, comments, text)?;
        }
    }
    Ok(())
}

/// The form of comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comments {
    /// Paragraphs, as in the document.
    Paragraphs,
    /// An element `text`.
    Plain,
    /// An element `text` with [escaped](unescaped) characters.
    Escaped,
}

fn append_part(
    package: &mut Package<'_, impl Read + Seek>,
    part: &str,
    comments: Comments,
    text: &mut Text,
) -> Result<(), Fault> {
    match package.open(part)? {
        Some(mut xml) => {
            Part { text, comments, paragraphs: Vec::new(), num_texts: 0, is_escaped: false }.append(&mut xml)
        }
        None => Ok(()),
    }
}

struct Part<'t> {
    text: &'t mut Text,
    comments: Comments,
    /// The paragraphs that have begun in each other; true if the mark of one was deleted.
    paragraphs: Vec<bool>,
    /// Number of elements with text around this place.
    num_texts: u32,
    /// True in the text of a comment of a workbook.
    is_escaped: bool,
}

impl Part<'_> {
    fn append(&mut self, xml: &mut Xml<'_>) -> Result<(), Fault> {
        while let Some(token) = xml.next()? {
            match token {
                Token::Start(element) if is_skipped(&element) => xml.skip()?,
                Token::Start(element) if element.name() == b"pPr" => {
                    let is_deleted = has_deleted_mark(xml)?;
                    if let Some(mark) = self.paragraphs.last_mut() {
                        *mark = is_deleted;
                    }
                }
                Token::Start(element) => self.start(&element)?,
                Token::End(name) => self.end(name.name())?,
                Token::Text(part) if self.num_texts > 0 => {
                    let part = if self.is_escaped { unescaped(part) } else { part };
                    self.text.push_in_line(&part)?;
                }
                Token::Text(_) | Token::Other => {}
            }
        }
        Ok(())
    }

    fn is_text(&self, name: &[u8]) -> bool {
        name == b"t" || (name == b"text" && self.comments != Comments::Paragraphs)
    }

    fn start(&mut self, element: &Element<'_>) -> Result<(), Fault> {
        match element.name() {
            b"p" => self.paragraphs.push(false),
            b"txbxContent" => self.text.begin_aside(Aside::Box),
            b"tc" => self.text.begin_cell(),
            b"tab" | b"ptab" => self.text.push("\t")?,
            b"br" | b"cr" => self.text.push("\n")?,
            b"noBreakHyphen" => self.text.push("-")?,
            b"sym" => {
                let code = element.attribute("char").and_then(|code| u32::from_str_radix(&code, 16).ok());
                if let Some(sign) = code.and_then(char::from_u32).filter(|sign| !PRIVATE.contains(sign)) {
                    self.text.push(sign.encode_utf8(&mut [0; 4]))?;
                }
            }
            name => {
                self.num_texts += u32::from(self.is_text(name));
                self.is_escaped |= name == b"text" && self.comments == Comments::Escaped;
            }
        }
        Ok(())
    }

    fn end(&mut self, name: &[u8]) -> Result<(), Fault> {
        match name {
            b"p" => match self.paragraphs.pop() {
                Some(true) => {}
                _ => self.text.end_paragraph()?,
            },
            b"txbxContent" => self.text.end_aside(),
            b"tc" => self.text.end_cell()?,
            b"tr" => self.text.end_row()?,
            name if self.is_text(name) => {
                self.num_texts = self.num_texts.saturating_sub(1);
                if name == b"text" {
                    self.is_escaped = false;
                    self.text.end_paragraph()?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn is_skipped(element: &Element<'_>) -> bool {
    let is_of_type = |types: &[&str]| element.attribute("type").is_some_and(|kind| types.contains(&kind.as_str()));
    match element.name() {
        b"footnote" | b"endnote" => is_of_type(&["separator", "continuationSeparator", "continuationNotice"]),
        b"fld" => is_of_type(&["slidenum"]),
        name => SKIPPED.contains(&name),
    }
}

/// Reads the properties of a paragraph. Returns true if its mark was deleted or moved away, so that the next one
/// goes on in its line.
fn has_deleted_mark(xml: &mut Xml<'_>) -> Result<bool, Fault> {
    let mut depth = 1;
    let mut is_deleted = false;
    while depth > 0 {
        match xml.next()? {
            Some(Token::Start(element)) => {
                depth += 1;
                is_deleted |= matches!(element.name(), b"del" | b"moveFrom");
            }
            Some(Token::End(_)) => depth -= 1,
            Some(_) => {}
            None => break,
        }
    }
    Ok(is_deleted)
}

const BEGIN: &[u8] = b"_x";
/// Length of `_xHHHH_`.
const LEN: usize = 7;

/// Returns `text` with the characters that stand in it by their numbers. Time is linear in the bytes.
pub fn unescaped(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut places = memmem::find_iter(text.as_bytes(), BEGIN).filter(|at| unit(&text[*at..]).is_some()).peekable();
    if places.peek().is_none() {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut end = 0;
    // Units that follow each other directly.
    let mut units: Vec<u16> = Vec::new();
    for at in places {
        // The underscore at the end of one does not begin the next one.
        if at < end {
            continue;
        }
        if at > end {
            push_units(&mut plain, &mut units);
            plain.push_str(&text[end..at]);
        }
        units.extend(unit(&text[at..]));
        end = at + LEN;
    }
    push_units(&mut plain, &mut units);
    plain.push_str(&text[end..]);
    plain.into()
}

/// Appends the characters of `units`, which are then none.
fn push_units(plain: &mut String, units: &mut Vec<u16>) {
    let characters = char::decode_utf16(units.drain(..));
    plain.extend(characters.map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)));
}

/// Returns the unit of UTF-16 that `text` begins with as `_xHHHH_`.
fn unit(text: &str) -> Option<u16> {
    let (digits, rest) = text.as_bytes().strip_prefix(BEGIN)?.split_first_chunk::<4>()?;
    let is_number = rest.first() == Some(&b'_') && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = str::from_utf8(digits).ok().filter(|_| is_number)?;
    u16::from_str_radix(digits, 16).ok()
}

/// Parts that follow a sheet.
const BEHIND_SHEET: [&str; 3] = ["comments", "threadedComment", "drawing"];
/// Columns of a sheet.
const MAX_COLUMNS: usize = 16_384;
/// Numbers that are written without an exponent.
const PLAIN_NUMBERS: std::ops::Range<f64> = 1e-5..1e15;

/// Appends the text of the workbook `main`.
///
/// # Errors
/// A part is broken or exceeds a limit.
pub fn append(package: &mut Package<'_, impl Read + Seek>, main: &str, text: &mut Text) -> Result<(), Fault> {
    let relationships = package.relationships(main)?;
    let target = |id: &str| relationships.iter().find(|relationship| relationship.id == id).map(|part| &part.target);
    let mut shared = Strings::default();
    if let Some(mut xml) = package.open(&part_of_kind(&relationships, main, "sharedStrings"))? {
        shared.read(&mut xml, text)?;
    }
    let (sheets, is_1904) = sheets(package, main)?;
    let dates = Dates::read(package, &part_of_kind(&relationships, main, "styles"), is_1904, text)?;
    for (name, id) in sheets {
        text.push_in_line(&unescaped(name.into()))?;
        text.end_paragraph()?;
        let Some(part) = target(&id) else { continue };
        if let Some(mut xml) = package.open(part)? {
            let cell = String::new();
            let has_text = false;
            Sheet { text, shared: &shared, dates: &dates, cell, column_idx: 0, num_tabs: 0, has_text }
                .append(&mut xml)?;
        }
        open_xml::append_behind(package, part, &BEHIND_SHEET, Comments::Escaped, text)?;
    }
    Ok(())
}

/// Returns the name of the part of this kind of the workbook `main`. Without a relationship it is the usual name, as
/// some programs leave the relationship out.
fn part_of_kind(relationships: &[Relationship], main: &str, kind: &str) -> String {
    let folder = main.rsplit_once('/').map_or("", |(folder, _)| folder);
    match relationships.iter().find(|relationship| relationship.kind == kind) {
        Some(part) => part.target.clone(),
        None => resolved(folder, &format!("{kind}.xml")),
    }
}

/// Returns the name and the relationship of each sheet, and true if dates count from 1904.
fn sheets(package: &mut Package<'_, impl Read + Seek>, main: &str) -> Result<(Vec<(String, String)>, bool), Fault> {
    let mut sheets = Vec::new();
    let mut is_1904 = false;
    let Some(mut xml) = package.open(main)? else { return Ok((sheets, is_1904)) };
    while let Some(token) = xml.next()? {
        let Token::Start(element) = token else { continue };
        match element.name() {
            b"sheet" => sheets.extend(element.attribute("name").zip(element.relationship_id())),
            b"workbookPr" => {
                is_1904 = element.attribute("date1904").is_some_and(|value| matches!(value.as_str(), "1" | "true"));
            }
            _ => {}
        }
    }
    Ok((sheets, is_1904))
}

/// Strings that cells share.
#[derive(Default)]
struct Strings {
    text: String,
    ends: Vec<usize>,
}

impl Strings {
    fn read(&mut self, xml: &mut Xml<'_>, held: &mut Text) -> Result<(), Fault> {
        let mut is_text = false;
        while let Some(token) = xml.next()? {
            match token {
                Token::Start(element) if element.name() == b"rPh" => xml.skip()?,
                Token::Start(element) => is_text = element.name() == b"t",
                Token::Text(part) if is_text => {
                    held.hold(part.len() as u64)?;
                    self.text.push_str(&unescaped(part));
                }
                Token::End(name) => {
                    is_text = false;
                    if name.name() == b"si" {
                        held.hold(size_of::<usize>() as u64)?;
                        self.ends.push(self.text.len());
                    }
                }
                Token::Text(_) | Token::Other => {}
            }
        }
        Ok(())
    }

    fn get(&self, idx: usize) -> Option<&str> {
        let end = *self.ends.get(idx)?;
        let begin = idx.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(begin..end)
    }
}

struct Sheet<'t> {
    text: &'t mut Text,
    shared: &'t Strings,
    dates: &'t Dates,
    /// Value of the cell.
    cell: String,
    /// Column of the cell.
    column_idx: usize,
    /// Tabs of the row that were written.
    num_tabs: usize,
    /// True if a cell of the row was written.
    has_text: bool,
}

/// The type of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellType {
    Number,
    Date(Form),
    Shared,
    Boolean,
    Text,
}

impl Sheet<'_> {
    fn append(&mut self, xml: &mut Xml<'_>) -> Result<(), Fault> {
        while let Some(token) = xml.next()? {
            let Token::Start(element) = token else { continue };
            if element.name() == b"row" {
                self.append_row(xml)?;
            }
        }
        Ok(())
    }

    fn append_row(&mut self, xml: &mut Xml<'_>) -> Result<(), Fault> {
        (self.column_idx, self.num_tabs, self.has_text) = (0, 0, false);
        loop {
            match xml.next()? {
                Some(Token::Start(element)) if element.name() == b"c" => {
                    let stated = element.attribute("r").and_then(|place| column_idx(&place));
                    self.column_idx = stated.unwrap_or(self.column_idx);
                    let cell_type = CellType::from_element(&element, self.dates);
                    self.read_cell(cell_type, xml)?;
                    self.write_cell(cell_type)?;
                    self.column_idx += 1;
                }
                Some(Token::Start(_)) => xml.skip()?,
                Some(Token::End(_)) | None => break,
                Some(_) => {}
            }
        }
        if self.has_text { self.text.end_paragraph() } else { Ok(()) }
    }

    fn read_cell(&mut self, cell_type: CellType, xml: &mut Xml<'_>) -> Result<(), Fault> {
        self.cell.clear();
        let mut depth = 1;
        let mut is_value = false;
        while depth > 0 {
            match xml.next()? {
                Some(Token::Start(element)) => match element.name() {
                    b"f" | b"rPh" => xml.skip()?,
                    name => {
                        depth += 1;
                        is_value = name == b"v" || (name == b"t" && cell_type == CellType::Text);
                    }
                },
                Some(Token::End(_)) => {
                    depth -= 1;
                    is_value = false;
                }
                Some(Token::Text(part)) if is_value => {
                    self.cell.push_str(&unescaped(part));
                    self.text.check_held(self.cell.len() as u64)?;
                }
                Some(_) => {}
                None => break,
            }
        }
        Ok(())
    }

    /// Writes the cell behind the tabs up to it, if it has text.
    fn write_cell(&mut self, cell_type: CellType) -> Result<(), Fault> {
        let value = self.cell.trim_ascii();
        let text = match cell_type {
            CellType::Shared => value.parse().ok().and_then(|idx| self.shared.get(idx)).unwrap_or_default(),
            CellType::Boolean if value == "1" => "TRUE",
            CellType::Boolean if value == "0" => "FALSE",
            CellType::Number => &number(value),
            CellType::Date(form) => &self.dates.text(form, value).unwrap_or_else(|| number(value)),
            _ => &self.cell,
        };
        if text.is_empty() {
            return Ok(());
        }
        let wanted = self.column_idx.max(self.num_tabs + usize::from(self.has_text));
        while self.num_tabs < wanted {
            self.text.push("\t")?;
            self.num_tabs += 1;
        }
        self.has_text = true;
        self.text.push(&one_line(text))
    }
}

impl CellType {
    fn from_element(element: &Element<'_>, dates: &Dates) -> Self {
        match element.attribute("t").as_deref() {
            Some("s") => Self::Shared,
            Some("b") => Self::Boolean,
            None | Some("n") => dates.form(element.attribute("s").as_deref()).map_or(Self::Number, Self::Date),
            // Text of a formula or of the cell, an error, or a date.
            Some(_) => Self::Text,
        }
    }
}

/// Returns the column of a cell, 0 for `A7`.
fn column_idx(place: &str) -> Option<usize> {
    let mut number = 0_usize;
    for letter in place.bytes().take_while(u8::is_ascii_alphabetic) {
        number = number * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1;
        if number > MAX_COLUMNS {
            return None;
        }
    }
    number.checked_sub(1)
}

/// Returns the text of a cell with a blank for each line end and tab. A line end may be of two characters.
pub fn one_line(text: &str) -> Cow<'_, str> {
    const ENDS: [char; 3] = ['\n', '\r', '\t'];
    if text.contains(ENDS) { text.replace("\r\n", " ").replace(ENDS, " ").into() } else { text.into() }
}

/// Returns a number without the digits that only make the float exact.
fn number(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(float) if float == 0.0 || PLAIN_NUMBERS.contains(&float.abs()) => float.to_string(),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_stand_for_their_numbers() {
        for (text, expected) in [
            ("power failure_x000D_\nnext", "power failure\r\nnext"),
            ("_x0041_", "A"),
            ("_x00e9__x00E9_", "\u{e9}\u{e9}"),
            ("a_x0009_b", "a\tb"),
            ("_xD83D__xDE00_!", "\u{1f600}!"),
            ("_xD83D_ _xDE00_", "\u{fffd} \u{fffd}"),
            ("_xD83D_x", "\u{fffd}x"),
            // An underscore that protects.
            ("_x005F_x000D_", "_x000D_"),
            ("_x005f_x005F_x005F_x0041_", "_x005F_x0041_"),
            ("_x005F__x0041_", "_A"),
            // Texts that stay.
            ("", ""),
            ("max_x_y", "max_x_y"),
            ("_x041_", "_x041_"),
            ("_x00411_", "_x00411_"),
            ("_X0041_", "_X0041_"),
            ("_x+041_", "_x+041_"),
            ("_x00\u{e9}_", "_x00\u{e9}_"),
            ("_x0041", "_x0041"),
            ("_x004_x0041_", "_x004A"),
            ("_x0041_x0042_", "Ax0042_"),
        ] {
            assert_eq!(unescaped(Cow::Borrowed(text)), expected, "{text}");
        }
        assert!(matches!(unescaped(Cow::Borrowed("plain _x")), Cow::Borrowed(_)));
    }
}
