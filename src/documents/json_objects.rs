//! Objects of JSON that follow each other in a stream of bytes, each as one line.
//!
//! ```text
//! {"a": 1}{"a": 2}        {"a": 1}
//! {                       {"a": 2}
//!   "a": 3           ─▶   {␍  "a": 3␍}      a line end inside an object becomes ␍, a blank of JSON
//! }                       {"a": "cut
//! {"a": "cut              {"a": 4}
//! {"a": 4}
//! ```
//!
//! Only brackets, strings and line ends are looked at; [`Shape`](crate::json_shape::Shape) checks the rest. Between
//! objects stand blanks, commas and the separator of RFC 7464. What is no object goes up to the end of its line.
//! An object that is cut ends at a line end inside a text, before a separator, or before a line that begins with `{`
//! where no object may stand. Each byte is looked at once.

use memchr::memchr3;

/// Byte in front of an object in a sequence of JSON texts (RFC 7464).
pub const SEPARATOR: u8 = 0x1e;

/// Finds the ends of objects.
#[derive(Debug)]
pub struct Objects {
    /// Brackets that are open.
    open: Vec<u8>,
    place: Place,
    /// True behind a backslash at the end of the bytes so far.
    is_escaped: bool,
    /// Last byte of an object that is no blank.
    last: u8,
    /// True if only blanks stand before the next byte in its line.
    begins_line: bool,
    /// Number of the line of the next byte.
    line: usize,
    /// Number of the line in which the object began.
    first_line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Between,
    Inside,
    Text,
    /// In what is no object.
    Other,
}

impl Objects {
    /// Creates the state before the first byte of line `line`.
    pub fn new(line: usize) -> Self {
        Self {
            open: Vec::new(),
            place: Place::Between,
            is_escaped: false,
            last: 0,
            begins_line: true,
            line,
            first_line: line,
        }
    }

    /// Returns the number of the line of the next byte.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Goes on at the start of line `line`, behind an object if there are any.
    pub fn go_on(&mut self, line: usize, has_objects: bool) {
        (self.line, self.begins_line) = (line, true);
        if has_objects {
            self.last = b'}';
        }
    }

    /// Returns true if an object has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.place != Place::Between
    }

    /// Returns the number of the line in which the latest object began.
    pub fn first_line(&self) -> usize {
        self.first_line
    }

    /// Ends the object that is open.
    pub fn end(&mut self) {
        self.place = Place::Between;
        self.open.clear();
        self.is_escaped = false;
    }

    /// Appends `bytes` to `object` up to its end. Returns the number of bytes that are done, and true if the object
    /// ends there.
    pub fn take(&mut self, bytes: &[u8], object: &mut Vec<u8>) -> (usize, bool) {
        let mut idx = 0;
        while idx < bytes.len() {
            let (len, is_end) = match self.place {
                Place::Between => (self.between(bytes[idx]), false),
                Place::Inside => self.inside(&bytes[idx..], object),
                Place::Text => self.text(&bytes[idx..], object),
                Place::Other => self.other(&bytes[idx..], object),
            };
            idx += len;
            if is_end {
                self.end();
                return (idx, true);
            }
        }
        (idx, false)
    }

    /// Skips a byte between objects, or begins one there.
    fn between(&mut self, byte: u8) -> usize {
        match byte {
            b'\n' => self.next_line(),
            // Also a byte order mark.
            b' ' | b'\t' | b'\r' | SEPARATOR | 0xef | 0xbb | 0xbf => {}
            b',' if self.last == b'}' => self.last = 0,
            _ => {
                self.place = if matches!(byte, b'{' | b'[') { Place::Inside } else { Place::Other };
                (self.first_line, self.last) = (self.line, 0);
                return 0;
            }
        }
        1
    }

    fn next_line(&mut self) {
        self.line += 1;
        self.begins_line = true;
    }

    fn inside(&mut self, bytes: &[u8], object: &mut Vec<u8>) -> (usize, bool) {
        for (idx, &byte) in bytes.iter().enumerate() {
            match byte {
                b' ' | b'\t' => continue,
                b'\n' | b'\r' => {
                    object.extend_from_slice(&bytes[..idx]);
                    object.push(if byte == b'\n' { b'\r' } else { b' ' });
                    if byte == b'\n' {
                        self.next_line();
                    }
                    return (idx + 1, false);
                }
                SEPARATOR => {
                    object.extend_from_slice(&bytes[..idx]);
                    return (idx + 1, true);
                }
                b'{' if self.begins_line && !self.may_have_object() => {
                    object.extend_from_slice(&bytes[..idx]);
                    return (idx, true);
                }
                b'{' | b'[' => self.open.push(byte),
                b'}' | b']' => _ = self.open.pop(),
                b'"' => self.place = Place::Text,
                _ => {}
            }
            (self.last, self.begins_line) = (byte, false);
            let is_end = self.open.is_empty();
            if is_end || byte == b'"' {
                object.extend_from_slice(&bytes[..=idx]);
                return (idx + 1, is_end);
            }
        }
        object.extend_from_slice(bytes);
        (bytes.len(), false)
    }

    /// Returns true if an object may begin behind the bytes so far.
    fn may_have_object(&self) -> bool {
        match self.open.last() {
            Some(b'[') => matches!(self.last, b'[' | b','),
            Some(_) => self.last == b':',
            None => true,
        }
    }

    fn text(&mut self, bytes: &[u8], object: &mut Vec<u8>) -> (usize, bool) {
        let from = usize::from(std::mem::take(&mut self.is_escaped) && bytes[0] != b'\n');
        let Some(end) = memchr3(b'"', b'\\', b'\n', &bytes[from..]) else {
            object.extend_from_slice(bytes);
            return (bytes.len(), false);
        };
        let end = from + end;
        match bytes[end] {
            b'\n' => {
                object.extend_from_slice(&bytes[..end]);
                self.next_line();
                return (end + 1, true);
            }
            b'\\' => self.is_escaped = true,
            _ => (self.place, self.last) = (Place::Inside, b'"'),
        }
        object.extend_from_slice(&bytes[..=end]);
        (end + 1, false)
    }

    fn other(&mut self, bytes: &[u8], object: &mut Vec<u8>) -> (usize, bool) {
        match memchr3(b'\n', SEPARATOR, SEPARATOR, bytes) {
            Some(end) => {
                object.extend_from_slice(&bytes[..end]);
                if bytes[end] == b'\n' {
                    self.next_line();
                }
                (end + 1, true)
            }
            None => {
                object.extend_from_slice(bytes);
                (bytes.len(), false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use testkit::random::Random;

    use super::*;

    /// Returns the objects of `bytes`, which come in pieces of `len` bytes, with their lines.
    fn objects(bytes: &[u8], len: usize) -> Vec<(usize, String)> {
        let (mut splitter, mut found, mut object) = (Objects::new(1), Vec::new(), Vec::new());
        for mut piece in bytes.chunks(len) {
            while !piece.is_empty() {
                let (taken, is_end) = splitter.take(piece, &mut object);
                piece = &piece[taken..];
                if is_end {
                    let text = String::from_utf8(std::mem::take(&mut object)).unwrap();
                    found.push((splitter.first_line(), text));
                }
            }
        }
        if splitter.is_open() {
            found.push((splitter.first_line(), String::from_utf8(object).unwrap()));
        }
        found
    }

    fn text(random: &mut Random) -> String {
        let signs = ['a', '"', '\\', '[', ']', '{', '}', ',', ':', '\n', '\u{1e}', 'é'];
        (0..random.below(8)).map(|_| *random.pick(&signs)).collect()
    }

    fn value(random: &mut Random, depth: usize) -> Value {
        match random.below(if depth == 0 { 2 } else { 4 }) {
            0 => json!(random.below(1000)),
            1 => json!(text(random)),
            2 => (0..random.below(4)).map(|_| value(random, depth - 1)).collect(),
            _ => object(random, depth - 1),
        }
    }

    fn object(random: &mut Random, depth: usize) -> Value {
        let entries = (0..random.below(4)).map(|_| (text(random), value(random, depth)));
        Value::Object(entries.collect())
    }

    #[test]
    fn every_object_is_found_with_its_line() {
        for case in 0..3000 {
            let random = &mut Random(case);
            let (mut bytes, mut expected) = (String::new(), Vec::new());
            for _ in 0..random.below(6) {
                let value = object(random, 2);
                bytes += *random.pick(&["", " ", "\n", "\r\n", "\u{1e}", "\n\n\u{1e}"]);
                expected.push((1 + bytes.matches('\n').count(), value.clone()));
                bytes += &match random.below(3) {
                    0 => format!("{value:#}"),
                    1 => format!("{value:#}").replace('\n', "\r\n"),
                    _ => value.to_string(),
                };
                bytes += *random.pick(&["", ",", "\n"]);
            }
            let found = objects(bytes.as_bytes(), 1 + random.below(40));
            assert!(found.iter().all(|(_, object)| !object.contains('\n')));
            let found: Vec<(usize, Value)> =
                found.into_iter().map(|(line, object)| (line, serde_json::from_str(&object).unwrap())).collect();
            assert_eq!(found, expected, "{case}: {bytes}");
        }
    }

    #[test]
    fn a_cut_object_takes_no_other_with_it() {
        let all = |text: &str| objects(text.as_bytes(), 7);
        let found = |expected: &[(usize, &str)]| -> Vec<(usize, String)> {
            expected.iter().map(|(line, object)| (*line, (*object).to_owned())).collect()
        };
        assert_eq!(all("{\"a\":\"b\n{}\n"), found(&[(1, "{\"a\":\"b"), (2, "{}")]));
        assert_eq!(all("{\"a\":1\n {}"), found(&[(1, "{\"a\":1\r "), (2, "{}")]));
        assert_eq!(all("{\"a\":[{}\n{}]}"), found(&[(1, "{\"a\":[{}\r"), (2, "{}"), (2, "]}")]));
        assert_eq!(all("{\"a\":[{},\n{}]}"), found(&[(1, "{\"a\":[{},\r{}]}")]));
        assert_eq!(all("{\"a\":1\u{1e}{}"), found(&[(1, "{\"a\":1"), (1, "{}")]));
        assert_eq!(all("no\n{}x\u{1e}{}\n[1]"), found(&[(1, "no"), (2, "{}"), (2, "x"), (2, "{}"), (3, "[1]")]));
        assert_eq!(all("{\"a\":\"\\\n{}"), found(&[(1, "{\"a\":\"\\"), (2, "{}")]));
        assert_eq!(all(", {},,{}"), found(&[(1, ", {},,{}")]));
    }
}
