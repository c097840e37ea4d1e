//! The text of Office Open XML: documents of Word, slides of PowerPoint, and what belongs to either.
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
//! Source: ECMA-376 (Office Open XML), parts 1 and 4: WordprocessingML, DrawingML, PresentationML; part 1,
//! 22.9.2.19: ST_Xstring.

use std::borrow::Cow;
use std::io::{Read, Seek};

use memchr::memmem;

use super::text::{Aside, Text};
use super::xml::{Element, Token, Xml};
use super::{Fault, Package};

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
    let (mut depth, mut is_deleted) = (1, false);
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
