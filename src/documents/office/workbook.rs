//! The text of workbooks of Excel: a line with the name of each sheet, then a line for each row.
//!
//! ```text
//! row  c r="A1" t="s" v 0   c r="C1" v 1.5  ─▶  name⇥⇥1.5⏎
//! ```
//!
//! Cells have a tab between them, also for cells that are empty. Rows without text are left out. A cell is
//! one line: line ends in it become blanks. Characters that a text cannot have are
//! [escaped](super::open_xml::unescaped) in the file. Numbers stand as they are stored, dates, too, which are
//! days since 1900. Formulas give their value. Comments and text boxes follow the rows of their sheet.
//!
//! Source: ECMA-376 (Office Open XML), part 1, 18: SpreadsheetML.

use std::borrow::Cow;
use std::io::{Read, Seek};

use super::open_xml::{self, Comments, unescaped};
use super::text::Text;
use super::xml::{Element, Token, Xml};
use super::{Fault, Package};

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
    let strings = relationships.iter().find(|relationship| relationship.kind == "sharedStrings");
    let mut shared = Strings::default();
    if let Some(strings) = strings
        && let Some(mut xml) = package.open(&strings.target)?
    {
        shared.read(&mut xml, text)?;
    }
    for (name, id) in sheets(package, main)? {
        text.push_in_line(&unescaped(name.into()))?;
        text.end_paragraph()?;
        let Some(part) = target(&id) else { continue };
        if let Some(mut xml) = package.open(part)? {
            let (cell, has_text) = (String::new(), false);
            Sheet { text, shared: &shared, cell, column_idx: 0, num_tabs: 0, has_text }.append(&mut xml)?;
        }
        open_xml::append_behind(package, part, &BEHIND_SHEET, Comments::Escaped, text)?;
    }
    Ok(())
}

/// Returns the name and the relationship of each sheet.
fn sheets(package: &mut Package<'_, impl Read + Seek>, main: &str) -> Result<Vec<(String, String)>, Fault> {
    let mut sheets = Vec::new();
    let Some(mut xml) = package.open(main)? else { return Ok(sheets) };
    while let Some(token) = xml.next()? {
        if let Token::Start(element) = token
            && element.name() == b"sheet"
        {
            sheets.extend(element.attribute("name").zip(element.relationship_id()));
        }
    }
    Ok(sheets)
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
                    let cell_type = CellType::from_element(&element);
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
        let (mut depth, mut is_value) = (1, false);
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
    fn from_element(element: &Element<'_>) -> Self {
        match element.attribute("t").as_deref() {
            Some("s") => Self::Shared,
            Some("b") => Self::Boolean,
            None | Some("n") => Self::Number,
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
