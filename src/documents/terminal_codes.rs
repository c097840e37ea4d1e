//! Takes the codes of terminals out of lines on their way to a reader.
//!
//! ```text
//! ESC[31mERROR ESC[0m: disk full               ERROR : disk full
//! ```
//!
//! Codes are those of ECMA-48 (section 5.4, control sequences, and 5.6, control strings) and of xterm:
//!
//! ```text
//! ESC [ 0;31 m          colours and the like: nothing
//! ESC [ 2;40 H          another place of the screen: a blank, as it divides words; so ESC D, E and M
//! ESC ] 8;;URL ESC \    titles and links, up to BEL or ESC \ on the same line: nothing
//! ESC ( B               character sets of a terminal, and ESC 7, 8, =, >, c, H and Z: nothing
//! ```
//!
//! A text in ISO-2022-JP has `ESC $ B` in front of Japanese and `ESC ( B` behind it. Behind the first `ESC $` the codes of
//! character sets stay.
//!
//! Time is linear in the bytes, and memory is a buffer and a code.

use std::io::{self, BufRead, Read};
use std::rc::Rc;

use memchr::memchr;

use crate::log_lines::{Mended, read_buffered};

const ESCAPE: u8 = 0x1b;
/// Most bytes between `ESC [` and the end of the code. A longer one is text.
const MAX_CODE_BYTES: usize = 64;
/// Most bytes of a title or link.
const MAX_STRING_BYTES: usize = 4096;
const BELL: u8 = 0x07;

/// A reader without the codes of terminals of `inner`.
pub struct WithoutColours<R> {
    inner: R,
    /// Text behind the first code of a buffer. Before that, buffers are passed on as they are.
    text: Vec<u8>,
    at: usize,
    /// Start of a code that the buffer has cut.
    cut: Vec<u8>,
    /// True if the text has several character sets (ISO 2022), whose codes stay.
    has_character_sets: bool,
    is_passed: bool,
    num_codes: Mended,
}

impl<R: BufRead> WithoutColours<R> {
    /// Creates a reader that adds the number of codes to `num_codes`.
    pub fn new(inner: R, num_codes: &Mended) -> Self {
        let num_codes = Rc::clone(num_codes);
        let (text, cut) = (Vec::new(), Vec::new());
        Self { inner, text, at: 0, cut, has_character_sets: false, is_passed: false, num_codes }
    }

    /// Moves the next bytes to `text`, until there are some or the input ends.
    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.at = 0;
        while self.text.is_empty() {
            let buffer = self.inner.fill_buf()?;
            let len = buffer.len();
            if len == 0 {
                self.text.append(&mut self.cut);
                return Ok(());
            }
            let mut bytes = std::mem::take(&mut self.cut);
            bytes.extend_from_slice(buffer);
            self.inner.consume(len);
            self.take_text(&bytes);
        }
        Ok(())
    }

    /// Appends the text of `bytes` and keeps a code that is cut at their end.
    fn take_text(&mut self, mut bytes: &[u8]) {
        while let Some(start) = memchr(ESCAPE, bytes) {
            let (before, code) = bytes.split_at(start);
            self.text.extend_from_slice(before);
            self.has_character_sets |= code.get(1) == Some(&b'$');
            let len = match code_at(code) {
                Code::CharacterSet(_) if self.has_character_sets => {
                    self.text.push(ESCAPE);
                    1
                }
                Code::Plain(len) | Code::CharacterSet(len) => {
                    self.num_codes.set(self.num_codes.get() + 1);
                    len
                }
                Code::Move(len) => {
                    self.num_codes.set(self.num_codes.get() + 1);
                    self.text.push(b' ');
                    len
                }
                Code::Cut => {
                    self.cut.extend_from_slice(code);
                    return;
                }
                Code::None => {
                    self.text.push(ESCAPE);
                    1
                }
            };
            bytes = code.get(len..).unwrap_or_default();
        }
        self.text.extend_from_slice(bytes);
    }
}

impl<R: BufRead> BufRead for WithoutColours<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.text.len() {
            let has_code = !self.cut.is_empty() || memchr(ESCAPE, self.inner.fill_buf()?).is_some();
            self.is_passed = !has_code;
            if has_code {
                self.fill()?;
            }
        }
        if self.is_passed { self.inner.fill_buf() } else { Ok(self.text.get(self.at..).unwrap_or_default()) }
    }

    fn consume(&mut self, len: usize) {
        if self.is_passed { self.inner.consume(len) } else { self.at += len }
    }
}

impl<R: BufRead> Read for WithoutColours<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, bytes)
    }
}

/// The beginning of a text that begins with an escape character.
enum Code {
    /// A code of so many bytes.
    Plain(usize),
    /// One behind which text goes on at another place.
    Move(usize),
    /// One that chooses a character set.
    CharacterSet(usize),
    /// The beginning of one.
    Cut,
    None,
}

/// Reads the code that `text` begins with.
fn code_at(text: &[u8]) -> Code {
    match text.get(1) {
        None => Code::Cut,
        Some(b'[') => control_sequence(text),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => control_string(text),
        Some(b'#' | b'%' | b'(' | b')' | b'*' | b'+') => match text.get(2) {
            None => Code::Cut,
            Some(b'0'..=b'~') => Code::CharacterSet(3),
            Some(_) => Code::None,
        },
        Some(b'7' | b'8' | b'=' | b'>' | b'c' | b'H' | b'Z') => Code::Plain(2),
        Some(b'D' | b'E' | b'M') => Code::Move(2),
        Some(_) => Code::None,
    }
}

/// Reads `ESC [`, parameters, blanks and the like, and a letter or sign.
fn control_sequence(text: &[u8]) -> Code {
    let inner = text.get(2..).unwrap_or_default();
    let num_parameters = inner.iter().take_while(|byte| matches!(byte, b'0'..=b'?')).count();
    let num_others = inner[num_parameters..].iter().take_while(|byte| matches!(byte, b' '..=b'/')).count();
    let num_inner = num_parameters + num_others;
    match inner.get(num_inner) {
        _ if num_inner >= MAX_CODE_BYTES => Code::None,
        None => Code::Cut,
        Some(b'A'..=b'H' | b'`' | b'd' | b'f') if num_others == 0 => Code::Move(num_inner + 3),
        Some(b'@'..=b'~') => Code::Plain(num_inner + 3),
        Some(_) => Code::None,
    }
}

/// Reads `ESC ]` or another beginning of a string up to its end on the same line.
fn control_string(text: &[u8]) -> Code {
    let inner = text.get(2..).unwrap_or_default();
    let end = inner.iter().take(MAX_STRING_BYTES).position(|byte| matches!(*byte, BELL | ESCAPE | b'\n'));
    let Some(len) = end else {
        return if inner.len() < MAX_STRING_BYTES { Code::Cut } else { Code::None };
    };
    match (inner[len], inner.get(len + 1)) {
        (BELL, _) => Code::Plain(len + 3),
        (ESCAPE, Some(b'\\')) => Code::Plain(len + 4),
        (ESCAPE, None) => Code::Cut,
        _ => Code::None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;
    use regex::bytes::{Captures, Regex};

    use super::*;

    fn without_colours(text: &[u8], buffer_bytes: usize) -> (Vec<u8>, u64) {
        let num_codes = Mended::default();
        let mut reader = WithoutColours::new(BufReader::with_capacity(buffer_bytes, text), &num_codes);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        (read, num_codes.get())
    }

    proptest! {
        #[test]
        fn codes_are_what_an_expression_finds(
            text in "(\x1b|\\[|\\]|[0-9;:?>]{1,3}|m|K|H|M|\x07|\\\\|\\(B|\\$| |a|\n|é){0,40}",
            buffer_bytes in 1usize..9,
        ) {
            let code = Regex::new(
                "(?-u)\x1b(?:\\[[0-?]{0,63}(?<place>[A-H`df])|(?<line>[DEM])|\\[[0-?]*[ -/]*[@-~]|\
                 [\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|(?<set>[#%()*+][0-~])|[78=>cHZ])",
            );
            let code = code.unwrap();
            let first_set = text.find("\x1b$").unwrap_or(text.len());
            let mut expected_codes = 0;
            let expected = code.replace_all(text.as_bytes(), |found: &Captures<'_>| {
                let whole = found.get(0).unwrap();
                if found.name("set").is_some() && whole.start() > first_set {
                    return whole.as_bytes().to_vec();
                }
                expected_codes += 1;
                let is_move = found.name("place").or(found.name("line")).is_some();
                if is_move { vec![b' '] } else { Vec::new() }
            });
            let (read, num_codes) = without_colours(text.as_bytes(), buffer_bytes);
            prop_assert_eq!(String::from_utf8_lossy(&read), String::from_utf8_lossy(&expected));
            prop_assert_eq!(num_codes, expected_codes);
        }
    }

    #[test]
    fn codes_of_terminals_are_left_out() {
        for (text, expected) in [
            ("\x1b[31mERROR\x1b(B\x1b[mfull disk", "ERRORfull disk"),
            ("a\x1b[1;1Hhome\x1b[5Cb\x1bMup", "a home b up"),
            ("\x1b[?2004hpaste\x1b[>4;2mmode\x1b[2 qshape", "pastemodeshape"),
            ("\x1b]8;;http://h/p\x1b\\linked\x1b]8;;\x1b\\ \x1b]0;title\x07shown", "linked shown"),
            ("\x1bPq\x1b\\dcs\x1b7\x1b=\x1b>x", "dcsx"),
            // No codes: an end is missing, or the text is in ISO-2022-JP.
            ("\x1b]0;title\nnext \x1b[31", "\x1b]0;title\nnext \x1b[31"),
            ("\x1b$BF|K\\\x1b(B!", "\x1b$BF|K\\\x1b(B!"),
            ("\x1bx \x1b\x1b[m", "\x1bx \x1b"),
        ] {
            for buffer_bytes in 1..9 {
                let (read, _) = without_colours(text.as_bytes(), buffer_bytes);
                assert_eq!(String::from_utf8(read).unwrap(), expected, "{text:?}");
            }
        }
        let long = format!("\x1b[{}ma", "1".repeat(MAX_CODE_BYTES));
        assert_eq!(without_colours(long.as_bytes(), 7), (long.clone().into_bytes(), 0));
        let long = format!("\x1b]0;{}\x07", "x".repeat(MAX_STRING_BYTES));
        assert_eq!(without_colours(long.as_bytes(), 1000), (long.clone().into_bytes(), 0));
    }
}
