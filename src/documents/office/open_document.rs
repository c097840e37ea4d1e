//! The text of OpenDocument: texts, sheets and slides of LibreOffice and others.
//!
//! ```text
//! text:p "a" text:s c=2 "b" text:tab  ─▶  a␣␣b⇥⏎          table:table-row table:table-cell …  ─▶  cell⇥cell⏎
//! ```
//!
//! White space in a paragraph is one blank, and none at its ends; what is meant has elements of its own. Footnotes and
//! comments follow the body, and so do the headers and footers of pages. Text that was deleted with changes tracked is
//! left out. A sheet begins with a line that is its name, and its cells stand as they are shown. Rows and cells that
//! are stored once and repeated are repeated, unless they are empty.
//!
//! Source: OpenDocument 1.3 (OASIS), part 3.

use std::io::{Read, Seek};

use super::open_xml::one_line;
use super::text::{Aside, Element, Text, Token, Xml};
use super::{Fault, Package};

/// Part with the text, and part with the pages.
pub const CONTENT: &str = "content.xml";
const STYLES: &str = "styles.xml";
/// Elements without text, or with text that nobody reads.
const SKIPPED: [&[u8]; 12] = [
    b"text:tracked-changes",
    b"table:tracked-changes",
    b"table:content-validations",
    b"text:note-citation",
    b"text:ruby-text",
    b"office:forms",
    b"office:binary-data",
    b"dc:creator",
    b"dc:date",
    b"meta:creator-initials",
    b"svg:title",
    b"svg:desc",
];
/// Attributes with the value of a cell that has no text.
const VALUES: [&str; 5] = ["string-value", "date-value", "time-value", "boolean-value", "value"];

/// Appends the text of a document.
///
/// # Errors
/// A part is broken or exceeds a limit.
pub fn append(package: &mut Package<'_, impl Read + Seek>, text: &mut Text) -> Result<(), Fault> {
    for part in [CONTENT, STYLES] {
        if let Some(mut xml) = package.open(part)? {
            Part::new(part == STYLES, text).append(&mut xml)?;
        }
    }
    Ok(())
}

struct Part<'t> {
    text: &'t mut Text,
    /// True if only headers and footers count.
    is_of_pages: bool,
    /// Number of headers and footers around this place.
    num_margins: u32,
    /// Number of paragraphs around this place, in each box that has begun. The first is that of the body.
    paragraphs: Vec<u32>,
    /// True if white space came since the last character.
    is_behind_blank: bool,
    /// True if the line has no character.
    is_at_start: bool,
    is_workbook: bool,
    /// Rows and cells of a sheet that have begun in each other.
    row: Option<Row>,
    cell: Option<Cell>,
    /// Tables in the cell.
    num_inner_tables: u32,
}

/// A row of a sheet.
#[derive(Default)]
struct Row {
    num_times: u64,
    text: String,
    /// Tabs up to the next cell.
    num_tabs: u64,
}

/// A cell of a sheet.
struct Cell {
    num_times: u64,
    value: Option<String>,
}

impl<'t> Part<'t> {
    fn new(is_of_pages: bool, text: &'t mut Text) -> Self {
        Self {
            text,
            is_of_pages,
            num_margins: 0,
            paragraphs: vec![0],
            is_behind_blank: false,
            is_at_start: true,
            is_workbook: false,
            row: None,
            cell: None,
            num_inner_tables: 0,
        }
    }

    fn append(&mut self, xml: &mut Xml<'_>) -> Result<(), Fault> {
        while let Some(token) = xml.next()? {
            match token {
                Token::Start(element) if SKIPPED.contains(&element.full_name()) => xml.skip()?,
                Token::Start(element) => self.start(&element)?,
                Token::End(name) => self.end(name.full_name())?,
                Token::Text(part) if self.is_in_paragraph() => self.push_collapsed(&part)?,
                Token::Text(_) | Token::Other => {}
            }
        }
        Ok(())
    }

    fn is_wanted(&self) -> bool {
        !self.is_of_pages || self.num_margins > 0
    }

    fn is_in_paragraph(&self) -> bool {
        self.is_wanted() && self.paragraphs.last().is_some_and(|&number| number > 0)
    }

    fn start(&mut self, element: &Element<'_>) -> Result<(), Fault> {
        match element.full_name() {
            name if is_margin(name) => self.num_margins += 1,
            _ if !self.is_wanted() => {}
            b"text:p" | b"text:h" => {
                if self.is_in_paragraph() {
                    self.text.begin_aside(Aside::Box);
                }
                self.begin_line();
                if let Some(number) = self.paragraphs.last_mut() {
                    *number += 1;
                }
            }
            b"text:s" if self.is_in_paragraph() => {
                let number = element.attribute("c").and_then(|number| number.parse().ok()).unwrap_or(1);
                self.text.check_held(number)?;
                for _ in 0..number {
                    self.push_exact(" ")?;
                }
            }
            b"text:tab" if self.is_in_paragraph() => self.push_exact("\t")?,
            b"text:line-break" if self.is_in_paragraph() => {
                self.push_exact("\n")?;
                self.begin_line();
            }
            b"text:note" | b"office:annotation" => self.begin_aside(Aside::Note),
            b"draw:text-box" => self.begin_aside(Aside::Box),
            b"office:spreadsheet" => self.is_workbook = true,
            b"table:table" if self.cell.is_some() => self.num_inner_tables += 1,
            b"table:table" if self.is_workbook => {
                self.text.push(&one_line(&element.attribute("name").unwrap_or_default()))?;
                self.text.end_paragraph()?;
            }
            b"table:table-row" if self.is_workbook && self.num_inner_tables == 0 => {
                let num_times = times(element, "number-rows-repeated");
                self.row = Some(Row { num_times, ..Row::default() });
            }
            b"table:table-cell" | b"table:covered-table-cell" if self.row.is_some() && self.num_inner_tables == 0 => {
                let num_times = times(element, "number-columns-repeated");
                let value = VALUES.into_iter().find_map(|name| element.attribute(name));
                self.cell = Some(Cell { num_times, value });
                self.begin_aside(Aside::Box);
            }
            b"table:table-cell" | b"table:covered-table-cell" => self.text.begin_cell(),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &[u8]) -> Result<(), Fault> {
        match name {
            name if is_margin(name) => self.num_margins = self.num_margins.saturating_sub(1),
            _ if !self.is_wanted() => {}
            b"text:p" | b"text:h" => {
                if let Some(number) = self.paragraphs.last_mut() {
                    *number = number.saturating_sub(1);
                }
                self.text.end_paragraph()?;
                if self.is_in_paragraph() {
                    self.text.end_aside();
                }
                (self.is_behind_blank, self.is_at_start) = (false, false);
            }
            b"text:note" | b"office:annotation" | b"draw:text-box" => {
                self.text.end_aside();
                self.leave();
                if name == b"draw:text-box" && !self.is_in_paragraph() {
                    self.text.end_boxes()?;
                }
            }
            b"table:table" => self.num_inner_tables = self.num_inner_tables.saturating_sub(1),
            b"table:table-row" if self.num_inner_tables == 0 && self.row.is_some() => self.end_sheet_row()?,
            b"table:table-row" => self.text.end_row()?,
            b"table:table-cell" | b"table:covered-table-cell" => match self.cell.take() {
                Some(cell) if self.num_inner_tables == 0 => self.end_sheet_cell(cell)?,
                cell => {
                    self.cell = cell;
                    self.text.end_cell()?;
                }
            },
            _ => {}
        }
        Ok(())
    }

    fn begin_line(&mut self) {
        (self.is_behind_blank, self.is_at_start) = (false, true);
    }

    fn begin_aside(&mut self, aside: Aside) {
        self.text.begin_aside(aside);
        self.paragraphs.push(0);
    }

    fn leave(&mut self) {
        if self.paragraphs.len() > 1 {
            self.paragraphs.pop();
        }
        (self.is_behind_blank, self.is_at_start) = (false, false);
    }

    /// Appends text that has no white space of its own.
    fn push_collapsed(&mut self, part: &str) -> Result<(), Fault> {
        for (idx, word) in part.split([' ', '\t', '\n', '\r']).enumerate() {
            self.is_behind_blank |= idx > 0;
            if !word.is_empty() {
                self.push_exact(word)?;
            }
        }
        Ok(())
    }

    /// Appends text as it is, behind the white space before it.
    fn push_exact(&mut self, part: &str) -> Result<(), Fault> {
        if std::mem::take(&mut self.is_behind_blank) && !self.is_at_start {
            self.text.push(" ")?;
        }
        self.is_at_start = false;
        self.text.push(part)
    }

    fn end_sheet_cell(&mut self, cell: Cell) -> Result<(), Fault> {
        let text = self.text.take_aside();
        self.leave();
        let shown = text.strip_suffix('\n').unwrap_or(&text);
        let shown = if shown.is_empty() { cell.value.as_deref().unwrap_or_default() } else { shown };
        let Some(row) = &mut self.row else { return Ok(()) };
        if shown.is_empty() {
            row.num_tabs = row.num_tabs.saturating_add(cell.num_times);
            return Ok(());
        }
        let shown = one_line(shown);
        let more_bytes = (shown.len() as u64 + 1).saturating_mul(cell.num_times).saturating_add(row.num_tabs);
        self.text.check_held(more_bytes.saturating_add(row.text.len() as u64))?;
        for _ in 0..cell.num_times {
            row.text.extend((0..std::mem::replace(&mut row.num_tabs, 1)).map(|_| '\t'));
            row.text.push_str(&shown);
        }
        Ok(())
    }

    fn end_sheet_row(&mut self) -> Result<(), Fault> {
        let Some(row) = self.row.take().filter(|row| !row.text.is_empty()) else { return Ok(()) };
        for _ in 0..row.num_times {
            self.text.push(&row.text)?;
            self.text.end_paragraph()?;
        }
        Ok(())
    }
}

/// Returns true for a header or a footer of a page.
fn is_margin(name: &[u8]) -> bool {
    name.starts_with(b"style:header") && !name.ends_with(b"-style")
        || name.starts_with(b"style:footer") && !name.ends_with(b"-style")
}

/// Returns how often a row or cell is there.
fn times(element: &Element<'_>, name: &str) -> u64 {
    element.attribute(name).and_then(|number| number.parse().ok()).unwrap_or(1)
}
