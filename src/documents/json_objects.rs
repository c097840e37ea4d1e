//! Objects of JSON that follow each other in a stream of bytes, or that are the elements of an array, each as one line.
//!
//! ```text
//! {"a": 1}{"a": 2}        {"a": 1}                              [ {"a": 1},        {"a": 1}
//! {                       {"a": 2}                                {"a":       ─▶   {"a":    2}
//!   "a": 3           ─▶   {␍  "a": 3␍}                               2} ]
//! }                       {"a": "cut
//! {"a": "cut              {"a": 4}
//! {"a": 4}
//! ```
//!
//! Only brackets, strings, commas and line ends are looked at; [`Shape`](crate::json_shape::Shape) checks the rest. A
//! line end inside an object becomes ␍, a blank of JSON, and inside an element of an array a blank. Between objects
//! stand blanks, commas and the separator of RFC 7464. What is no object goes up to the end of its line. An object that
//! is cut ends at a line end inside a text, before a separator, or before a line that begins with `{` where no object
//! may stand. Each byte is looked at once. An element of an array takes no memory.

use std::io::{self, BufRead, Read};

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

/// A reader of the elements of the array in `inner`.
pub struct ArrayLines<R> {
    inner: R,
    place: ArrayPlace,
    /// Number of brackets that are open inside the array.
    depth: u64,
    is_in_string: bool,
    is_escaped: bool,
    /// True if the element has begun.
    has_value: bool,
    /// True if an element has to follow.
    needs_value: bool,
    /// A fault behind the bytes of the last read.
    fault: Option<io::Error>,
}

#[derive(Clone, Copy, PartialEq)]
enum ArrayPlace {
    Before,
    Inside,
    Behind,
}

impl<R: BufRead> ArrayLines<R> {
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            place: ArrayPlace::Before,
            depth: 0,
            is_in_string: false,
            is_escaped: false,
            has_value: false,
            needs_value: false,
            fault: None,
        }
    }

    /// Returns what stands for `byte` in the lines, if anything does.
    fn step(&mut self, byte: u8) -> io::Result<Option<u8>> {
        if self.place != ArrayPlace::Inside {
            return self.outside(byte).map(|()| None);
        }
        if self.is_in_string {
            self.is_in_string = byte != b'"' || self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            return Ok(Some(byte));
        }
        Ok(match byte {
            b' ' | b'\t' | b'\r' | b'\n' => (self.depth > 0).then_some(b' '),
            b',' | b']' if self.depth == 0 => {
                let is_empty = byte == b']' && !self.needs_value;
                if !self.has_value && !is_empty {
                    return Err(invalid("expected an element of the array before `,` or `]`"));
                }
                if byte == b']' {
                    self.place = ArrayPlace::Behind;
                }
                (self.has_value, self.needs_value) = (false, byte == b',');
                Some(b'\n')
            }
            _ => {
                match byte {
                    b'"' => self.is_in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                self.has_value = true;
                Some(byte)
            }
        })
    }

    /// Fills `bytes` as far as the array goes, and sets `len` to the number of bytes.
    fn fill(&mut self, bytes: &mut [u8], len: &mut usize) -> io::Result<()> {
        while *len < bytes.len() {
            let Some(&byte) = self.inner.fill_buf()?.first() else {
                match self.place {
                    ArrayPlace::Behind => break,
                    _ => return Err(invalid("expected `]` at the end of the array")),
                }
            };
            self.inner.consume(1);
            if let Some(byte) = self.step(byte)? {
                bytes[*len] = byte;
                *len += 1;
            }
        }
        Ok(())
    }

    fn outside(&mut self, byte: u8) -> io::Result<()> {
        match (self.place, byte) {
            (_, b' ' | b'\t' | b'\r' | b'\n') => {}
            // A byte order mark.
            (ArrayPlace::Before, 0xef | 0xbb | 0xbf) => {}
            (ArrayPlace::Before, b'[') => self.place = ArrayPlace::Inside,
            _ => return Err(invalid("expected nothing behind the array")),
        }
        Ok(())
    }
}

impl<R: BufRead> Read for ArrayLines<R> {
    /// Reads the bytes in front of a fault first, and returns the fault at the next call.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let mut len = 0;
        match self.fill(bytes, &mut len) {
            Err(fault) if len > 0 => self.fault = Some(fault),
            other => other?,
        }
        Ok(len)
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use testkit::random::Random;

    use super::*;

    /// Returns the objects of `bytes`, which come in pieces of `len` bytes, with their lines.
    fn objects(bytes: &[u8], len: usize) -> Vec<(usize, String)> {
        let mut splitter = Objects::new(1);
        let mut found = Vec::new();
        let mut object = Vec::new();
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
        let signs = ['a', '"', '\\', '[', ']', '{', '}', ',', ':', '\n', ' ', '\u{1e}', 'é'];
        (0..random.below(8)).map(|_| *random.pick(&signs)).collect()
    }

    fn value(random: &mut Random, depth: usize) -> Value {
        match random.below(if depth == 0 { 3 } else { 5 }) {
            0 => json!(random.below(1000)),
            1 => json!(text(random)),
            2 => Value::Null,
            3 => (0..random.below(4)).map(|_| value(random, depth - 1)).collect(),
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
            let mut bytes = String::new();
            let mut expected = Vec::new();
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

    fn lines(text: &str) -> io::Result<Vec<Value>> {
        let mut lines = String::new();
        ArrayLines::new(text.as_bytes()).read_to_string(&mut lines)?;
        let lines = lines.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
    }

    #[test]
    fn every_element_is_a_line() {
        for case in 0..3000 {
            let random = &mut Random(case);
            let elements: Vec<Value> = (0..random.below(6)).map(|_| value(random, 3)).collect();
            let array = Value::from(elements.clone());
            let text = if case % 2 == 0 { format!(" {array:#}\n") } else { array.to_string() };
            assert_eq!(lines(&text).unwrap(), elements, "{case}: {text}");
        }
    }

    #[test]
    fn what_is_no_array_is_refused() {
        assert_eq!(lines("\u{feff}[]").unwrap(), Vec::<Value>::new());
        assert_eq!(lines("[1, [2]]").unwrap(), [json!(1), json!([2])]);
        for text in ["[", "[1", "[1,]", "[,1]", "[1,,2]", "[1] 2", "[\"]", "[1]]", "[{]", "x[1]"] {
            assert!(lines(text).is_err(), "{text}");
        }
    }
}
