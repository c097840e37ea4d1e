//! Conversion of document paths to text: UTF-8 is unchanged, other bytes are escaped, one to one.
//!
//! ```text
//! name on disk             path in the file, in SQL and in messages
//! notes/été.txt            notes/été.txt
//! n, byte FF, .txt         n\xFF.txt         a byte that is not UTF-8
//! n, \, xFF.txt            n\x5CxFF.txt      a backslash that would look like an escape
//! a\b.txt, a\xff.txt       a\b.txt, a\xff.txt
//! ```
//!
//! Escapes are only `\x80` to `\xFF` and `\x5C`, in capitals. [`path_bytes`] reverses
//! [`path_text`], so two different names never have the same path. Both take O(length).

use std::borrow::Cow;
use std::fmt::Write as _;

const BACKSLASH: u8 = b'\\';
const ESCAPE_LEN: usize = r"\xFF".len();

/// Returns the path of a document whose name has these bytes.
pub fn path_text(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) if first_escape(name).is_none() => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(name)),
    }
}

/// Returns the bytes of the name from which [`path_text`] makes `path`.
pub fn path_bytes(path: &str) -> Cow<'_, [u8]> {
    let mut rest = path.as_bytes();
    let mut name = Vec::new();
    while let Some((at, byte)) = first_escape(rest) {
        name.extend_from_slice(&rest[..at]);
        name.push(byte);
        rest = &rest[at + ESCAPE_LEN..];
    }
    if name.is_empty() {
        return Cow::Borrowed(rest);
    }
    name.extend_from_slice(rest);
    Cow::Owned(name)
}

fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len() + 2 * ESCAPE_LEN);
    let push_byte = |text: &mut String, byte: u8| {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{byte:02X}");
    };
    for chunk in name.utf8_chunks() {
        let mut valid = chunk.valid();
        // An escape follows the valid bytes, so no other escape begins in them and ends behind
        // them.
        while let Some((at, _)) = first_escape(valid.as_bytes()) {
            text.push_str(&valid[..at]);
            push_byte(&mut text, BACKSLASH);
            valid = &valid[at + 1..];
        }
        text.push_str(valid);
        chunk.invalid().iter().for_each(|&byte| push_byte(&mut text, byte));
    }
    text
}

/// Returns the position of the first escape in `bytes` and the byte that it encodes.
fn first_escape(bytes: &[u8]) -> Option<(usize, u8)> {
    memchr::memchr_iter(BACKSLASH, bytes).find_map(|at| Some((at, escape_at(&bytes[at..])?)))
}

/// Returns the byte that the escape at the start of `bytes` encodes.
fn escape_at(bytes: &[u8]) -> Option<u8> {
    let [BACKSLASH, b'x', high, low, ..] = *bytes else { return None };
    let byte = hex(high)? << 4 | hex(low)?;
    (byte >= 0x80 || byte == BACKSLASH).then_some(byte)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn utf8_stands_as_it_is() {
        for name in ["", "notes/été.txt", "a\tb\u{1b}", r"a\b", r"a\xff", r"\x41", r"\x5c", r"\xF"] {
            assert_eq!(path_text(name.as_bytes()), name);
        }
    }

    #[test]
    fn other_bytes_and_what_reads_as_an_escape_are_escaped() {
        assert_eq!(path_text(b"n\xff.txt"), r"n\xFF.txt");
        assert_eq!(path_text(br"n\xFF.txt"), r"n\x5CxFF.txt");
        assert_eq!(path_text(b"\xc3"), r"\xC3");
        assert_eq!(path_text(br"\x5C"), r"\x5Cx5C");
        assert_eq!(path_text(b"\\x8\xf0"), r"\x8\xF0");
    }

    /// Generates names with many escapes, parts of escapes and parts of characters.
    fn names() -> impl Strategy<Value = Vec<u8>> {
        let pieces: [&[u8]; 14] =
            [b"\\", b"x", b"\\x", b"F", b"8", b"5", b"C", b"5C", b"FF", b"\xff", b"\xc3", b"\xa9", b"/", b"a"];
        let piece = prop_oneof![
            4 => prop::sample::select(pieces.map(<[u8]>::to_vec).to_vec()),
            1 => prop::collection::vec(any::<u8>(), 1..3),
        ];
        prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Checks that the function can be reversed, so that it maps no two names to one path.
        #[test]
        fn names_come_back(name in names()) {
            let path = path_text(&name);
            prop_assert_eq!(&*path_bytes(&path), &name[..]);
        }

        #[test]
        fn a_path_is_made_component_by_component(left in names(), right in names()) {
            let whole = path_text(&[&left[..], b"/", &right].concat()).into_owned();
            prop_assert_eq!(format!("{}/{}", path_text(&left), path_text(&right)), whole);
        }
    }
}
