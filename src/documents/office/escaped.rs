//! Texts of workbooks, in which `_xHHHH_` stands for a character.
//!
//! ```text
//! power failure_x000D_⏎next     power failure, U+000D, a line end, next
//! _x005F_x000D_                 _x000D_
//! ```
//!
//! Four hexadecimal digits are a unit of UTF-16, so two of them may be one character. An underscore that is
//! written so protects what follows it. U+FFFD stands for half a character.
//!
//! Source: ECMA-376 (Office Open XML), part 1, 22.9.2.19: ST_Xstring.

use std::borrow::Cow;

use memchr::memmem;

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
