//! UTF-7, in which mailers have written beyond ASCII.
//!
//! ```text
//! Hi Mom +Jjo-!  1 +- 1    ─▶    Hi Mom ☺!  1 + 1
//! ```
//!
//! Source: RFC 2152. Between `+` and the first byte that base64 has not stand the bits of UTF-16, big endian; a `-`
//! there is no text. U+FFFD stands for what means nothing: halves of characters, bits that are left over, a `+` before
//! anything else, and bytes beyond ASCII. Bytes of ASCII that the source wants in base64 are read as they are. Time
//! and memory are linear in the bytes.

use std::char::REPLACEMENT_CHARACTER;

/// Bits of a byte of base64, and of a unit of UTF-16.
const BYTE_BITS: u32 = 6;
const UNIT_BITS: u32 = 16;

/// Decodes `bytes`.
pub fn decode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, behind)) = rest.split_first() {
        rest = match first {
            b'+' => decode_shifted(behind, &mut text),
            _ => {
                text.push(if first.is_ascii() { char::from(first) } else { REPLACEMENT_CHARACTER });
                behind
            }
        };
    }
    text
}

/// Appends the characters of the base64 that `bytes` begin with, and returns the bytes behind it.
fn decode_shifted<'a>(bytes: &'a [u8], text: &mut String) -> &'a [u8] {
    let len = bytes.iter().position(|byte| bits_of(*byte).is_none()).unwrap_or(bytes.len());
    let (coded, rest) = bytes.split_at(len);
    let behind = rest.strip_prefix(b"-");
    if coded.is_empty() {
        text.push(if behind.is_some() { '+' } else { REPLACEMENT_CHARACTER });
        return behind.unwrap_or(rest);
    }
    let mut units = Vec::with_capacity(len * 3 / 8);
    // Bits that are in no unit yet, and their number, less than that of a unit.
    let (mut bits, mut num_bits) = (0, 0);
    for more in coded.iter().filter_map(|byte| bits_of(*byte)) {
        bits = bits << BYTE_BITS | u32::from(more);
        num_bits += BYTE_BITS;
        if num_bits >= UNIT_BITS {
            num_bits -= UNIT_BITS;
            units.extend(u16::try_from(bits >> num_bits));
            bits &= (1 << num_bits) - 1;
        }
    }
    let characters = char::decode_utf16(units);
    text.extend(characters.map(|character| character.unwrap_or(REPLACEMENT_CHARACTER)));
    if num_bits >= BYTE_BITS || bits != 0 {
        text.push(REPLACEMENT_CHARACTER);
    }
    behind.unwrap_or(rest)
}

/// Returns the bits of a byte of base64.
fn bits_of(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use testkit::random::Random;

    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_read() {
        for (bytes, text) in [
            ("Hi Mom -+Jjo--!", "Hi Mom -☺-!"),
            ("A+ImIDkQ.", "A≢Α."),
            ("+ZeVnLIqe-", "日本語"),
            ("Item 3 is +AKM-1.", "Item 3 is £1."),
            ("1 +- 1 = +AGE", "1 + 1 = a"),
            ("+AGE-+AGI- +2D3eAA- +AGEAYg=", "ab \u{1f600} ab="),
            ("+AOk\r\nb+AOk--", "é\r\nbé-"),
            ("", ""),
        ] {
            assert_eq!(decode(bytes.as_bytes()), text, "{bytes}");
        }
    }

    #[test]
    fn what_means_nothing_is_shown() {
        for bytes in
            [&b"+"[..], b"a+", b"+!", b"+ -", b"+A-", b"+AG-", b"+AGF-", b"+2D0-", b"+3gA-", b"+AOk+b", b"caf\xe9"]
        {
            let decoded = decode(bytes);
            assert!(decoded.contains(REPLACEMENT_CHARACTER), "{bytes:?}: {decoded}");
        }
        for len in 0..300 {
            let random = &mut Random(len);
            let bytes: Vec<u8> = (0..len).map(|_| *random.pick(b"+-A/z9= \xff\n")).collect();
            decode(&bytes);
        }
    }

    /// Returns `text` in UTF-7, in which any character may stand in base64.
    fn encoded(text: &str, random: &mut Random) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if first.is_ascii() && random.one_in(2) {
                bytes.extend_from_slice(if first == '+' { b"+-" } else { &rest.as_bytes()[..1] });
                rest = &rest[1..];
                continue;
            }
            let num_chars = 1 + random.below(4);
            let shifted: String = rest.chars().take(num_chars).collect();
            rest = &rest[shifted.len()..];
            let units: Vec<u8> = shifted.encode_utf16().flat_map(u16::to_be_bytes).collect();
            bytes.push(b'+');
            bytes.extend_from_slice(STANDARD_NO_PAD.encode(units).as_bytes());
            // Only a byte that base64 has not may follow without a sign between.
            let is_told = rest.starts_with(['.', ' ', '\n']) && random.one_in(2);
            if is_told {
                bytes.extend_from_slice(&rest.as_bytes()[..1]);
                rest = &rest[1..];
            } else {
                bytes.push(b'-');
            }
        }
        bytes
    }

    #[test]
    fn texts_come_back() {
        let signs: Vec<char> = "ab+-/=. \né€日\u{1f600}\u{10ffff}\u{1}".chars().collect();
        for case in 0..2000 {
            let random = &mut Random(case);
            let text: String = (0..random.below(20)).map(|_| *random.pick(&signs)).collect();
            let bytes = encoded(&text, random);
            assert_eq!(decode(&bytes), text, "{}", String::from_utf8_lossy(&bytes));
        }
    }
}
