//! Bodies and words of header lines without their transfer encoding.
//!
//! ```text
//! bmVlZGxlIGluIHRo!          needle in th        other signs mean nothing in base64
//! ZSBib2R5Cg==               e body
//! ______________
//! a mailing list             ______________      a footer that a list put behind it stays
//! ```
//!
//! Sources: RFC 2045, 6.7 and 6.8, and RFC 2047, 4, for words. mail-parser gives back the whole body as it
//! stands if a sign of it does not belong there, so bodies are decoded here. Text that is no base64 at all,
//! though it is said to be, stays. Time is linear in the bytes.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::parts::Encoding;

/// Base64 with or without the signs that fill it up.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);
/// Fewest signs of a line behind base64 that ended, if the line is base64, too.
const MIN_SIGNS: usize = 24;

/// Returns `coded` without its encoding.
pub fn decoded(coded: &[u8], encoding: Encoding) -> Cow<'_, [u8]> {
    match encoding {
        Encoding::None => Cow::Borrowed(coded),
        Encoding::Base64 => base64(coded),
        Encoding::QuotedPrintable => Cow::Owned(quoted_printable(coded)),
    }
}

/// Decodes base64. What stands behind it, as a list puts it there, stays.
fn base64(coded: &[u8]) -> Cow<'_, [u8]> {
    let (data, footer) = coded.split_at(end_of_base64(coded));
    let is_sign = |byte: &u8| is_base64(*byte) || *byte == b'=';
    let signs: Vec<u8> = data.iter().copied().filter(is_sign).collect();
    let mut bytes = unpacked(&signs, true).unwrap_or_default();
    let has_others = data.iter().any(|byte| !is_sign(byte) && !byte.is_ascii_whitespace());
    if has_others && bytes.iter().any(is_control) {
        // It is a text with signs of its own.
        return Cow::Borrowed(coded);
    }
    let footer = footer.trim_ascii_end();
    if footer.is_empty() {
        return Cow::Owned(bytes);
    }
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(footer);
    bytes.push(b'\n');
    Cow::Owned(bytes)
}

/// Decodes base64, also of texts that were put behind each other, and with too many signs that fill it up.
/// Returns none if it has other signs, or a text that is not cut ends with a sign that has no byte.
fn unpacked(signs: &[u8], is_cut: bool) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(signs.len() / 4 * 3 + 3);
    for part in signs.split(|&sign| sign == b'=') {
        // One sign has no byte.
        let rest = usize::from(is_cut && part.len() % 4 == 1);
        BASE64.decode_vec(&part[..part.len() - rest], &mut bytes).ok()?;
    }
    Some(bytes)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

/// Returns true for a byte that stands in no text.
fn is_control(byte: &u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r' | b'\x1b')
}

/// Returns the start of the first line that is no base64.
fn end_of_base64(coded: &[u8]) -> usize {
    let mut before = Before::default();
    let mut at = 0;
    for line in coded.split_inclusive(|&byte| byte == b'\n') {
        if before.is_over(line.trim_ascii()) {
            return at;
        }
        at += line.len();
    }
    at
}

/// The lines of base64 before one.
#[derive(Default)]
struct Before {
    num_signs: usize,
    is_padded: bool,
}

impl Before {
    /// Takes a line. Returns true if it is text behind the base64.
    fn is_over(&mut self, line: &[u8]) -> bool {
        let count = |is_counted: fn(&u8) -> bool| line.iter().filter(|byte| is_counted(byte)).count();
        let num_signs = count(|byte| is_base64(*byte));
        let num_pads = count(|byte| *byte == b'=');
        let num_blanks = count(u8::is_ascii_whitespace);
        let num_others = line.len() - num_signs - num_pads - num_blanks;
        let is_rule = num_others > 0 && num_others * 2 >= line.len() || num_pads > 2;
        // Blanks divide base64 anywhere, and words of a text only where four signs are complete.
        let is_complete = self.num_signs > 0 && self.num_signs.is_multiple_of(4);
        let is_sentence = num_blanks > 0 && (num_others > 0 || is_complete);
        // Base64 that was put behind base64 has long lines, or ends as that does. A word of a text does not.
        let is_whole = num_others + num_blanks == 0 && (num_signs + num_pads).is_multiple_of(4);
        let is_second = is_whole && (num_pads > 0 || num_signs >= MIN_SIGNS || line.is_empty());
        if is_rule || is_sentence || self.is_padded && !is_second {
            return true;
        }
        self.is_padded |= num_pads > 0;
        self.num_signs += num_signs + num_pads;
        false
    }
}

/// Decodes quoted-printable. A `=` that means nothing stays.
fn quoted_printable(coded: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(coded.len());
    for line in coded.split_inclusive(|&byte| byte == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let line_end = &line[text.len()..];
        // White space at the end of a line was put there on the way.
        let text = if line_end.is_empty() { text } else { text.trim_ascii_end() };
        match text.strip_suffix(b"=") {
            Some(text) => push_unquoted(text, &mut bytes),
            None => {
                push_unquoted(text, &mut bytes);
                bytes.extend_from_slice(line_end);
            }
        }
    }
    bytes
}

/// Decodes an encoded word in base64, with blanks anywhere. Returns none if it has other signs.
pub fn base64_word(coded: &str) -> Option<Vec<u8>> {
    unpacked(coded.replace([' ', '\t'], "").as_bytes(), false)
}

/// Decodes an encoded word in quoted-printable, in which `_` is a blank.
pub fn quoted_word(coded: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(coded.len());
    push_unquoted(coded.replace('_', " ").as_bytes(), &mut bytes);
    bytes
}

/// Appends `text` with the bytes for `=C3`.
fn push_unquoted(text: &[u8], bytes: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'=', rest) {
        bytes.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match byte_of_digits(rest) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[2..];
            }
            None => bytes.push(b'='),
        }
    }
    bytes.extend_from_slice(rest);
}

/// Returns the byte that the two hex digits at the start of `text` stand for.
fn byte_of_digits(text: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(text.get(..2)?).ok()?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_signs_and_footers_spoil_no_base64() {
        let footer = "_______________\nlist mailing list\n";
        for (coded, text) in [
            ("VGVzdA==", "Test".to_owned()),
            ("bmVlZGxlIGluIHRoZSBib2R5\n", "needle in the body".to_owned()),
            (&format!("bmVlZGxlIGluIHRoZSBib2R5Cg==\n{footer}"), format!("needle in the body\n{footer}")),
            (&format!("bmVlZGxlIGluIHRoZSBib2R5\r\n{footer}"), format!("needle in the body\n{footer}")),
            ("bmVlZGxlIGluIHRoZSBib2R5\nSent from my phone\n", "needle in the body\nSent from my phone\n".to_owned()),
            ("bmVlZGxlIGluIHRoZSBib2R5\n\n-- \nBye\n", "needle in the body\n-- \nBye\n".to_owned()),
            ("VGVzdA==\nRegards", "Test\nRegards\n".to_owned()),
            ("VGVzdA==\n\nepilogue\n", "Test\nepilogue\n".to_owned()),
            ("VGVzdA==\n=====\na", "Test\n=====\na\n".to_owned()),
            ("VGVzdA==\nVGVzdA==\n", "TestTest".to_owned()),
            ("RGVy!IFRleHQ*", "Der Text".to_owned()),
            ("RG\nVyI FRle\n H Q=", "Der Text".to_owned()),
            ("====", "====\n".to_owned()),
            ("<p>not *base64*</p>\n", "<p>not *base64*</p>\n".to_owned()),
            ("Hello!", "Hello!".to_owned()),
            ("thanks!\n", "thanks!\n".to_owned()),
            ("", String::new()),
        ] {
            assert_eq!(String::from_utf8_lossy(&decoded(coded.as_bytes(), Encoding::Base64)), text, "{coded}");
        }
    }

    #[test]
    fn signs_that_mean_nothing_spoil_no_quoted_printable() {
        for (coded, text) in [
            ("caf=C3=A9 =3d", "café ="),
            ("long=\n line= \t\r\nend", "long lineend"),
            ("a  \t\r\nb \n", "a\r\nb\n"),
            ("a==3Db =ZZ =\u{e9} =4", "a==b =ZZ =\u{e9} =4"),
            ("_=", "_"),
        ] {
            let found = decoded(coded.as_bytes(), Encoding::QuotedPrintable);
            assert_eq!(String::from_utf8_lossy(&found), text, "{coded}");
        }
    }
}
