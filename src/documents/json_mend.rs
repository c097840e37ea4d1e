//! Mends rows of JSON that other programs write and that the standard does not allow, and writes values as texts.
//!
//! ```text
//! {"a": NaN, "b": "cut \ud83d", "c": 1e999}   ─mend─▶       {"a": null, "b": "cut \ufffd", "c": "1e999"}
//! {"a": {"b": 1}}, where a is a text elsewhere ─with_texts─▶ {"a": "{\"b\":1}"}
//! ```
//!
//! Time is linear in the bytes of the row.

use std::borrow::Cow;

use crate::json_shape::Shape;

/// Parts of rows that were mended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Mended {
    /// True if U+FFFD stands for bytes that are no UTF-8.
    pub has_bytes: bool,
    /// True if U+FFFD stands for halves of characters.
    pub has_halves: bool,
    /// True if NULL stands for numbers that are none.
    pub has_no_numbers: bool,
}

/// Returns `row` as the standard has it: with null for NaN and infinities, texts for other numbers that are none or
/// too large, and U+FFFD for halves of characters and for bytes that are no UTF-8.
pub fn mend(row: &[u8]) -> (Vec<u8>, Mended) {
    let mut out = Vec::with_capacity(row.len() + 16);
    let mut mended = Mended::default();
    let mut idx = 0;
    while let Some(&byte) = row.get(idx) {
        let len = match byte {
            b'"' => text_len(&row[idx..]),
            byte if is_token(byte) => row[idx..].iter().take_while(|byte| is_token(**byte)).count(),
            _ => 1,
        };
        let part = &row[idx..idx + len];
        match byte {
            b'"' => mend_text(part, &mut out, &mut mended),
            byte if is_token(byte) => mend_token(part, &mut out, &mut mended),
            _ => out.push(byte),
        }
        idx += len;
    }
    (out, mended)
}

/// Returns the number of bytes of the text that `bytes` begin with, with its quotes.
fn text_len(bytes: &[u8]) -> usize {
    let mut idx = 1;
    loop {
        match bytes.get(idx) {
            Some(b'"') => return idx + 1,
            Some(b'\\') => idx += 2,
            Some(_) => idx += 1,
            None => return bytes.len(),
        }
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
}

fn mend_token(token: &[u8], out: &mut Vec<u8>, mended: &mut Mended) {
    let unsigned = token.strip_prefix(b"-").or(token.strip_prefix(b"+")).unwrap_or(token);
    let no_numbers: [&[u8]; 5] = [b"NaN", b"nan", b"Infinity", b"inf", b"Inf"];
    if no_numbers.contains(&unsigned) {
        mended.has_no_numbers = true;
        return out.extend_from_slice(b"null");
    }
    let is_number = token.first().is_some_and(|byte| !byte.is_ascii_alphabetic());
    if is_number && serde_json::from_slice::<f64>(token).is_err() {
        out.push(b'"');
        out.extend_from_slice(token);
        return out.push(b'"');
    }
    out.extend_from_slice(token);
}

fn mend_text(text: &[u8], out: &mut Vec<u8>, mended: &mut Mended) {
    let text = String::from_utf8_lossy(text);
    mended.has_bytes |= matches!(text, Cow::Owned(_));
    let bytes = text.as_bytes();
    let is_closed = bytes.len() > 1 && text_len(bytes) == bytes.len() && bytes.ends_with(b"\"");
    let end = bytes.len() - usize::from(is_closed);
    let mut idx = 1.min(end);
    out.extend_from_slice(&bytes[..idx]);
    while idx < end {
        let len = match bytes[idx] {
            b'\\' => mend_escape(&bytes[idx..end], out, mended),
            byte if byte < b' ' => {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                1
            }
            byte => {
                out.push(byte);
                1
            }
        };
        idx += len;
    }
    out.extend_from_slice(&bytes[end..]);
}

/// Mends the escape that `bytes` begin with, and returns the number of its bytes.
fn mend_escape(bytes: &[u8], out: &mut Vec<u8>, mended: &mut Mended) -> usize {
    match (bytes.get(1), unit(bytes)) {
        (Some(b'u'), Some(0xd800..=0xdbff)) => {
            let low = bytes.get(6..).and_then(unit);
            if low.is_some_and(|low| (0xdc00..=0xdfff).contains(&low)) {
                out.extend_from_slice(&bytes[..12]);
                return 12;
            }
            mend_half(out, mended)
        }
        (Some(b'u'), Some(0xdc00..=0xdfff)) => mend_half(out, mended),
        (Some(b'u'), Some(_)) => {
            out.extend_from_slice(&bytes[..6]);
            6
        }
        (Some(escaped), _) if b"\"\\/bfnrt".contains(escaped) => {
            out.extend_from_slice(&bytes[..2]);
            2
        }
        // A backslash that begins no escape is text.
        _ => {
            out.extend_from_slice(b"\\\\");
            1
        }
    }
}

fn mend_half(out: &mut Vec<u8>, mended: &mut Mended) -> usize {
    mended.has_halves = true;
    out.extend_from_slice("\u{fffd}".as_bytes());
    6
}

/// Returns the number of the escape `\uXXXX` that `bytes` begin with.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let digits = digits.iter().map(|digit| char::from(*digit).to_digit(16));
    digits.into_iter().try_fold(0, |unit, digit| Some(unit * 16 + digit?))
}

/// Returns `row`, a valid object, with texts for the objects and lists whose place has values of several kinds.
pub fn with_texts(row: &[u8], shape: &Shape) -> Vec<u8> {
    let mut cursor = Cursor(row);
    let mut out = Vec::with_capacity(row.len() + 16);
    cursor.write(Some(shape), &mut out);
    out
}

/// Returns the bytes of the value at `path`, the names of fields, in `row`, which is a valid object. The last of
/// several fields of one name counts.
pub fn value_at<'a>(row: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    let Some((name, below)) = path.split_first() else { return Some(row.trim_ascii()) };
    let mut cursor = Cursor(row);
    let mut found = None;
    let mut has_more = cursor.next() == Some(b'{');
    while has_more && cursor.peek() == Some(b'"') {
        let key = cursor.skip();
        let is_wanted = text_of(key) == *name;
        cursor.next();
        let value = cursor.skip();
        if is_wanted {
            found = Some(value);
        }
        has_more = cursor.next() == Some(b',');
    }
    value_at(found?, below)
}

fn text_of(key: &[u8]) -> Cow<'_, str> {
    let plain = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
    match std::str::from_utf8(plain) {
        Ok(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
        _ => Cow::Owned(serde_json::from_slice(key).unwrap_or_default()),
    }
}

/// Bytes of a valid value, from a token on.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    /// Returns the next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        self.0 = self.0.trim_ascii_start();
        self.0.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.0 = &self.0[1..];
        Some(byte)
    }

    /// Skips a value, and returns its bytes.
    fn skip(&mut self) -> &'a [u8] {
        let _first = self.peek();
        let bytes = self.0;
        let mut idx = 0;
        let mut depth = 0usize;
        while let Some(&byte) = bytes.get(idx) {
            match byte {
                b'"' => idx += text_len(&bytes[idx..]),
                b'{' | b'[' => (idx, depth) = (idx + 1, depth + 1),
                b'}' | b']' => (idx, depth) = (idx + 1, depth.saturating_sub(1)),
                byte if is_token(byte) => {
                    idx += bytes[idx..].iter().take_while(|byte| is_token(**byte)).count();
                }
                _ => idx += 1,
            }
            if depth == 0 {
                break;
            }
        }
        let (value, rest) = bytes.split_at(idx.min(bytes.len()));
        self.0 = rest;
        value
    }

    /// Writes the next value of this shape. It goes no deeper than the shape.
    fn write(&mut self, shape: Option<&Shape>, out: &mut Vec<u8>) {
        let first = self.peek();
        match (shape.filter(|shape| shape.has_mixed()), first) {
            (Some(shape), Some(b'{' | b'[')) if shape.is_mixed() => out.extend_from_slice(&as_text(self.skip())),
            (Some(shape), Some(b'{')) => self.write_all(out, &|cursor, out| {
                let key = cursor.skip();
                out.extend_from_slice(key);
                out.extend(cursor.next());
                cursor.write(shape.field(&text_of(key)), out);
            }),
            (Some(shape), Some(b'[')) => self.write_all(out, &|cursor, out| cursor.write(shape.items(), out)),
            _ => out.extend_from_slice(self.skip()),
        }
    }

    /// Writes what is between the next two brackets.
    fn write_all(&mut self, out: &mut Vec<u8>, write: &dyn Fn(&mut Self, &mut Vec<u8>)) {
        out.extend(self.next());
        while !matches!(self.peek(), Some(b'}' | b']') | None) {
            write(self, out);
            if self.peek() == Some(b',') {
                out.extend(self.next());
            }
        }
        out.extend(self.next());
    }
}

/// Returns a text that holds `value`, without the blanks between its parts.
fn as_text(value: &[u8]) -> Vec<u8> {
    let mut compact = Vec::with_capacity(value.len());
    let mut idx = 0;
    while let Some(&byte) = value.get(idx) {
        let len = if byte == b'"' { text_len(&value[idx..]) } else { 1 };
        if !byte.is_ascii_whitespace() {
            compact.extend_from_slice(&value[idx..idx + len]);
        }
        idx += len;
    }
    let compact = String::from_utf8_lossy(&compact);
    serde_json::to_vec(&compact).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use testkit::random::Random;

    use super::*;

    fn mended(row: &[u8]) -> Value {
        let (row, _) = mend(row);
        serde_json::from_slice(&row).unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(&row)))
    }

    /// Writes values in odd forms, beside those that are expected.
    fn odd(random: &mut Random, depth: usize) -> (Vec<u8>, Value) {
        let bytes = |text: &str| text.as_bytes().to_vec();
        match random.below(if depth == 0 { 6 } else { 9 }) {
            0 => {
                let forms = ["NaN", "Infinity", "-Infinity", "-NaN", "null"];
                let form = *random.pick(&forms);
                (bytes(form), Value::Null)
            }
            1 => {
                let text = *random.pick(&["1e999", "007", "+1", ".5", "-", "1.", "0x1f"]);
                (bytes(text), json!(text))
            }
            2..=4 => odd_text(random),
            5 => (bytes("12"), json!(12)),
            6 => {
                let items: Vec<_> = (0..random.below(4)).map(|_| odd(random, depth - 1)).collect();
                let (texts, values): (Vec<_>, Vec<_>) = items.into_iter().unzip();
                ([&b"["[..], &texts.join(&b", "[..]), b" ]"].concat(), Value::Array(values))
            }
            _ => {
                let mut text = bytes("{ ");
                let mut object = serde_json::Map::new();
                for idx in 0..random.below(4) {
                    let (odd_value, value) = odd(random, depth - 1);
                    text.extend_from_slice(if idx > 0 { b",\r" } else { b"" });
                    text.extend_from_slice(format!("\"n{idx}\" : ").as_bytes());
                    text.extend_from_slice(&odd_value);
                    object.insert(format!("n{idx}"), value);
                }
                text.push(b'}');
                (text, Value::Object(object))
            }
        }
    }

    fn odd_text(random: &mut Random) -> (Vec<u8>, Value) {
        let parts: [(&[u8], &str); 14] = [
            (b"plain", "plain"),
            (b"\\ud83d\\ude00", "\u{1f600}"),
            (b"\\ud83d.", "\u{fffd}."),
            (b"\\ude00", "\u{fffd}"),
            (b"\\ud83d\\n", "\u{fffd}\n"),
            (b"\xff.", "\u{fffd}."),
            (b"\xe2\x82.", "\u{fffd}."),
            ("é€".as_bytes(), "é€"),
            (b"\x01\t", "\u{1}\t"),
            (b"\\x41", "\\x41"),
            (b"\\u12", "\\u12"),
            (b"\\\"\\\\", "\"\\"),
            (b"NaN, {[", "NaN, {["),
            (b"\\u00e9", "é"),
        ];
        let mut text = vec![b'"'];
        let mut value = String::new();
        for _ in 0..random.below(4) {
            let (odd, expected) = random.pick(&parts);
            text.extend_from_slice(odd);
            value += expected;
            text.extend_from_slice(b"|");
            value.push('|');
        }
        text.push(b'"');
        (text, json!(value))
    }

    #[test]
    fn odd_rows_are_mended() {
        for case in 0..5000 {
            let random = &mut Random(case);
            let (text, expected) = odd(random, 3);
            assert_eq!(mended(&text), expected, "{case}: {}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn valid_rows_stay_as_they_are() {
        for row in ["{}", "{\"a\": [1.10, -0, 1e5, true, false, null], \"b\":\"\\u00e9\\n\"}", "nope", "{\"a", "\"\\"] {
            let (same, mended) = mend(row.as_bytes());
            if serde_json::from_str::<Value>(row).is_ok() {
                assert_eq!((String::from_utf8(same).unwrap().as_str(), mended), (row, Mended::default()));
            }
        }
        for len in 0..200 {
            let random = &mut Random(len);
            let bytes: Vec<u8> = (0..len).map(|_| *random.pick(b"\"\\u{d8[]:,N-1\xff\n")).collect();
            mend(&bytes);
            value_at(&bytes, &["u"]);
        }
    }

    #[test]
    fn values_of_several_kinds_become_texts() {
        let rows: [&[u8]; 3] = [
            br#"{"a":{"b": [1, "x y"]},"c":[1,{"d":null}],"e":{"f":[ ]},"k\u00e9":{}}"#,
            r#"{"a":1.10,"c":[],"e":{"f":"x"},"ké":2}"#.as_bytes(),
            br#"{"a":"x","e":null}"#,
        ];
        let mut shape = Shape::default();
        rows.iter().for_each(|row| shape.add(row, &|_| true).unwrap());
        let texts: Vec<Value> =
            rows.iter().map(|row| serde_json::from_slice(&with_texts(row, &shape)).unwrap()).collect();
        let first = json!({"a": r#"{"b":[1,"x y"]}"#, "c": [1, r#"{"d":null}"#], "e": {"f": "[]"}, "ké": "{}"});
        assert_eq!(texts[0], first);
        assert_eq!(texts[1], serde_json::from_slice::<Value>(rows[1]).unwrap());
        assert_eq!(texts[2], serde_json::from_slice::<Value>(rows[2]).unwrap());
    }

    #[test]
    fn values_are_found_by_their_path() {
        let row = br#" {"a": {"b": "x", "b\u0031": [1, 2] , "a": 1}, "b": {"b": 2} , "a.b": 3, "b": 4}"#;
        let found = |path: &[&str]| value_at(row, path).map(|value| String::from_utf8_lossy(value).into_owned());
        assert_eq!(found(&["a", "b1"]).as_deref(), Some("[1, 2]"));
        assert_eq!(found(&["b"]).as_deref(), Some("4"));
        assert_eq!(found(&["a.b"]).as_deref(), Some("3"));
        assert_eq!((found(&["a", "c"]), found(&["b", "b"])), (None, None));
    }
}
