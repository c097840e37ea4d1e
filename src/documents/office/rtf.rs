//! The text of RTF, as word processors wrote it before docx.
//!
//! ```text
//! {\rtf1\ansi{\fonttbl…} Hello bra{\b ve}\par caf\'e9 \u8364?}  ─▶  Hello brave⏎café €⏎
//! ```
//!
//! Groups nest, and each has properties that end with it: the character set of its font, and the number of bytes that
//! stand behind `\u` for readers without Unicode. A group that begins with a destination is another part: tables of
//! fonts and styles, pictures and codes of fields are left out; headers, footers, footnotes and comments follow the
//! text. Of a text that is there in ANSI and in Unicode (`\upr`) the second one counts. Time is linear in the bytes.
//! Groups lie at most [`MAX_DEPTH`] deep.
//!
//! Source: Rich Text Format (RTF) Specification 1.9.1, Microsoft.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::BufRead;

use encoding_rs::{
    BIG5, EUC_KR, Encoding, GBK, IBM866, MACINTOSH, SHIFT_JIS, UTF_8, WINDOWS_874, WINDOWS_1250, WINDOWS_1251,
    WINDOWS_1252, WINDOWS_1253, WINDOWS_1254, WINDOWS_1255, WINDOWS_1256, WINDOWS_1257, WINDOWS_1258,
};

use super::Fault;
use super::text::{Aside, Text};
use crate::code_pages::CodePage;

/// First bytes of a file.
pub const MAGIC: &[u8] = b"{\\rtf";
/// Greatest number of groups that lie in each other.
const MAX_DEPTH: usize = 1000;
/// Fonts of a file that are known.
const MAX_FONTS: usize = 10_000;
/// Letters of a control word, and digits behind it.
const MAX_WORD_BYTES: usize = 32;
/// Bytes of text that are decoded at once.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Destinations that are no text.
const SKIPPED: [&str; 11] =
    ["colortbl", "stylesheet", "info", "pict", "pntext", "listtext", "filetbl", "fldinst", "objdata", "xe", "tc"];
/// Destinations that follow the text.
const NOTES: [&str; 10] =
    ["header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf", "footnote", "annotation"];
/// Destinations that readers may pass over, and that have text.
const KEPT: [&str; 3] = ["shpinst", "annotation", "ud"];

/// Properties of a group.
#[derive(Clone, Copy)]
struct Group {
    is_skipped: bool,
    is_deleted: bool,
    is_font_table: bool,
    /// True if the group is a part that follows the text, and not one inside it.
    is_note: bool,
    /// True if the groups in it are one text in ANSI, and the same in Unicode.
    is_double: bool,
    signs: Signs,
    /// Characters behind `\u` that stand for it.
    num_stand_ins: usize,
}

/// Character set of a text.
#[derive(Clone, Copy)]
enum Signs {
    Web(&'static Encoding),
    Dos(CodePage),
}

impl Signs {
    fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            Self::Web(encoding) => encoding.decode_without_bom_handling(bytes).0,
            Self::Dos(page) => Cow::Owned(page.decode(bytes)),
        }
    }
}

/// Appends the text of `bytes`.
///
/// # Errors
/// They are cut, are no RTF, or exceed a limit.
pub fn append(bytes: &mut dyn BufRead, text: &mut Text) -> Result<(), Fault> {
    let first = Group {
        is_skipped: false,
        is_deleted: false,
        is_font_table: false,
        is_note: false,
        is_double: false,
        signs: Signs::Web(WINDOWS_1252),
        num_stand_ins: 1,
    };
    let mut rtf = Rtf {
        bytes,
        text,
        groups: Vec::new(),
        group: first,
        ansi: Signs::Web(WINDOWS_1252),
        fonts: HashMap::new(),
        font: 0,
        waiting: Vec::new(),
        half: None,
        num_to_skip: 0,
        may_be_skipped: false,
        has_line: false,
    };
    rtf.append()
}

struct Rtf<'r> {
    bytes: &'r mut dyn BufRead,
    text: &'r mut Text,
    /// Properties of the groups around this one.
    groups: Vec<Group>,
    group: Group,
    /// Character set of fonts that name none.
    ansi: Signs,
    fonts: HashMap<i32, Signs>,
    /// Font of the table that is read.
    font: i32,
    /// Bytes of text that are not decoded yet.
    waiting: Vec<u8>,
    /// First half of a character of two.
    half: Option<u16>,
    /// Characters to be skipped behind `\u`.
    num_to_skip: usize,
    /// True behind `\*`.
    may_be_skipped: bool,
    /// True if the last line has text.
    has_line: bool,
}

impl Rtf<'_> {
    fn append(&mut self) -> Result<(), Fault> {
        while let Some(byte) = self.next_byte()? {
            match byte {
                b'{' => {
                    self.decode()?;
                    if self.groups.len() == MAX_DEPTH {
                        return Err(Fault::broken(format!("groups lie more than {MAX_DEPTH} deep in each other")));
                    }
                    self.groups.push(self.group);
                    self.group.is_note = false;
                    self.group.is_skipped |= std::mem::take(&mut self.group.is_double);
                    self.num_to_skip = 0;
                }
                b'}' => {
                    self.decode()?;
                    if self.group.is_note {
                        self.text.end_aside();
                    }
                    let Some(around) = self.groups.pop() else { return Err(Fault::broken("a group ends twice")) };
                    self.group = around;
                    self.num_to_skip = 0;
                    if self.groups.is_empty() {
                        return if self.has_line { self.end_paragraph() } else { Ok(()) };
                    }
                }
                b'\\' => self.control()?,
                b'\r' | b'\n' | 0 => {}
                byte => self.literal(byte)?,
            }
        }
        Err(Fault::broken("it ends inside a group"))
    }

    fn peek(&mut self) -> Result<Option<u8>, Fault> {
        if crate::decoders::is_at_end(self.bytes)? {
            return Ok(None);
        }
        Ok(self.bytes.fill_buf()?.first().copied())
    }

    fn next_byte(&mut self) -> Result<Option<u8>, Fault> {
        let byte = self.peek()?;
        self.bytes.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    /// Takes a byte of text.
    fn literal(&mut self, byte: u8) -> Result<(), Fault> {
        if self.num_to_skip > 0 {
            self.num_to_skip -= 1;
        } else if self.is_text() {
            self.waiting.push(byte);
            if self.waiting.len() >= MAX_TEXT_BYTES && byte.is_ascii() {
                self.decode()?;
            }
        }
        Ok(())
    }

    fn is_text(&self) -> bool {
        !(self.group.is_skipped || self.group.is_deleted || self.group.is_font_table)
    }

    fn decode(&mut self) -> Result<(), Fault> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let text = self.group.signs.decode(&self.waiting);
        self.has_line = true;
        self.text.push(&text)?;
        self.waiting.clear();
        Ok(())
    }

    /// Takes what stands behind a backslash.
    fn control(&mut self) -> Result<(), Fault> {
        let Some(byte) = self.peek()? else { return Ok(()) };
        if byte.is_ascii_alphabetic() {
            let (word, number) = self.word()?;
            return self.obey(&word, number);
        }
        self.bytes.consume(1);
        match byte {
            b'\'' => {
                let mut code = 0;
                for _ in 0..2 {
                    let digit = self.next_byte()?.and_then(|byte| char::from(byte).to_digit(16));
                    let Some(digit) = digit else { return Err(Fault::broken("a character has no code")) };
                    code = code * 16 + digit;
                }
                self.literal(u8::try_from(code).unwrap_or_default())
            }
            b'\\' | b'{' | b'}' => self.literal(byte),
            b'\r' | b'\n' => self.obey("par", None),
            b'~' => self.push("\u{a0}"),
            b'_' => self.push("-"),
            b'*' => {
                self.may_be_skipped = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads a control word, its number, and the blank behind them.
    fn word(&mut self) -> Result<(String, Option<i32>), Fault> {
        let mut word = String::new();
        let mut digits = String::new();
        while let Some(byte) = self.peek()? {
            let is_letter = digits.is_empty() && byte.is_ascii_alphabetic();
            if is_letter {
                word.push(char::from(byte));
            } else if byte.is_ascii_digit() || (byte == b'-' && digits.is_empty()) {
                digits.push(char::from(byte));
            } else {
                self.bytes.consume(usize::from(byte == b' '));
                break;
            }
            if word.len() + digits.len() > MAX_WORD_BYTES {
                return Err(Fault::broken("a control word is too long"));
            }
            self.bytes.consume(1);
        }
        Ok((word, digits.parse().ok()))
    }

    /// Pushes text that no character set decodes.
    fn push(&mut self, text: &str) -> Result<(), Fault> {
        self.decode()?;
        if self.is_text() {
            self.has_line = true;
            self.text.push(text)?;
        }
        Ok(())
    }

    fn end_paragraph(&mut self) -> Result<(), Fault> {
        self.decode()?;
        self.has_line = false;
        if self.is_text() { self.text.end_paragraph() } else { Ok(()) }
    }

    fn obey(&mut self, word: &str, number: Option<i32>) -> Result<(), Fault> {
        self.decode()?;
        self.half = self.half.filter(|_| word == "u");
        if std::mem::take(&mut self.may_be_skipped) && !KEPT.contains(&word) {
            self.group.is_skipped = true;
            return Ok(());
        }
        let is_on = number != Some(0);
        match word {
            "bin" => return self.skip(number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0)),
            "u" => return self.unicode(number.unwrap_or(0)),
            "uc" => self.group.num_stand_ins = number.and_then(|number| usize::try_from(number).ok()).unwrap_or(1),
            "ansicpg" => {
                let page = number.and_then(signs_of_code_page);
                self.set_default(page.unwrap_or(Signs::Web(WINDOWS_1252)));
            }
            "mac" => self.set_default(Signs::Web(MACINTOSH)),
            "pc" => self.set_default(Signs::Dos(CodePage::Dos437)),
            "pca" => self.set_default(Signs::Dos(CodePage::Dos850)),
            "upr" => self.group.is_double = true,
            "ud" => {
                let around = self.groups.last().filter(|around| around.is_double);
                self.group.is_skipped = around.map_or(self.group.is_skipped, |around| around.is_skipped);
            }
            "fonttbl" => self.group.is_font_table = true,
            "f" if self.group.is_font_table => self.font = number.unwrap_or(0),
            "fcharset" if self.group.is_font_table && self.fonts.len() < MAX_FONTS => {
                self.fonts.extend(number.and_then(signs_of_charset).map(|signs| (self.font, signs)));
            }
            "f" => {
                let font = self.fonts.get(&number.unwrap_or(0)).copied();
                self.group.signs = font.unwrap_or(self.ansi);
            }
            "plain" => (self.group.is_deleted, self.group.signs) = (false, self.ansi),
            "deleted" => self.group.is_deleted = is_on,
            name if SKIPPED.contains(&name) => self.group.is_skipped = true,
            name if NOTES.contains(&name) && !self.group.is_skipped && !self.group.is_note => {
                self.group.is_note = true;
                self.text.begin_aside(Aside::Note);
            }
            "par" | "sect" | "page" => return self.end_paragraph(),
            _ if !self.is_text() => {}
            "trowd" => self.text.begin_cell(),
            "cell" | "nestcell" => {
                self.text.end_cell()?;
                self.text.begin_cell();
            }
            "row" | "nestrow" => {
                self.has_line = false;
                self.text.end_row()?;
                self.text.begin_cell();
            }
            word => {
                if let Some(sign) = sign(word) {
                    self.push(sign)?;
                }
            }
        }
        Ok(())
    }

    /// Sets the character set of fonts that name none.
    fn set_default(&mut self, signs: Signs) {
        (self.ansi, self.group.signs) = (signs, signs);
    }

    /// Takes half a character, or a whole one, in UTF-16.
    fn unicode(&mut self, number: i32) -> Result<(), Fault> {
        self.num_to_skip = self.group.num_stand_ins;
        // Numbers have 16 bits, with a sign.
        let unit = u16::try_from(number.rem_euclid(1 << 16)).unwrap_or_default();
        let half = self.half.take();
        if (0xd800..0xdc00).contains(&unit) {
            self.half = Some(unit);
            return Ok(());
        }
        let units: Vec<u16> = half.into_iter().chain([unit]).collect();
        self.push(&String::from_utf16_lossy(&units))
    }

    fn skip(&mut self, num_bytes: usize) -> Result<(), Fault> {
        let mut left = num_bytes;
        while left > 0 && self.peek()?.is_some() {
            let len = self.bytes.fill_buf()?.len().min(left);
            self.bytes.consume(len);
            left -= len;
        }
        Ok(())
    }
}

/// Returns the sign for which a control word stands.
fn sign(word: &str) -> Option<&'static str> {
    Some(match word {
        "tab" => "\t",
        "line" => "\n",
        "emdash" => "—",
        "endash" => "–",
        "bullet" => "•",
        "lquote" => "‘",
        "rquote" => "’",
        "ldblquote" => "“",
        "rdblquote" => "”",
        "emspace" | "enspace" | "qmspace" => " ",
        _ => return None,
    })
}

fn signs_of_code_page(number: i32) -> Option<Signs> {
    Some(Signs::Web(match number {
        437 => return Some(Signs::Dos(CodePage::Dos437)),
        850 => return Some(Signs::Dos(CodePage::Dos850)),
        866 => IBM866,
        874 => WINDOWS_874,
        932 => SHIFT_JIS,
        936 => GBK,
        949 => EUC_KR,
        950 => BIG5,
        1250 => WINDOWS_1250,
        1251 => WINDOWS_1251,
        1252 => WINDOWS_1252,
        1253 => WINDOWS_1253,
        1254 => WINDOWS_1254,
        1255 => WINDOWS_1255,
        1256 => WINDOWS_1256,
        1257 => WINDOWS_1257,
        1258 => WINDOWS_1258,
        10_000 => MACINTOSH,
        65_001 => UTF_8,
        _ => return None,
    }))
}

fn signs_of_charset(number: i32) -> Option<Signs> {
    let page = match number {
        77 => 10_000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        254 => 437,
        _ => return None,
    };
    signs_of_code_page(page)
}
