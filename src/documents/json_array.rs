//! A JSON array as lines: each element of the array becomes one line.
//!
//! ```text
//! [ {"a": 1},        {"a": 1}
//!   {"a":            {"a":    2}
//!      2} ]
//! ```
//!
//! Only brackets, commas and strings are looked at, so an element of any length takes no memory.
//! Line ends inside an element become blanks. The elements are not checked; the reader of lines does.

use std::io::{self, BufRead, Read};

/// A reader of the elements of the array in `inner`.
pub struct ArrayLines<R> {
    inner: R,
    place: Place,
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
enum Place {
    Before,
    Inside,
    Behind,
}

impl<R: BufRead> ArrayLines<R> {
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            place: Place::Before,
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
        if self.place != Place::Inside {
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
                    self.place = Place::Behind;
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
                    Place::Behind => break,
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
            (Place::Before, 0xef | 0xbb | 0xbf) => {}
            (Place::Before, b'[') => self.place = Place::Inside,
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
    use serde_json::{Map, Value, json};
    use testkit::random::Random;

    use super::*;

    fn lines(text: &str) -> io::Result<Vec<Value>> {
        let mut lines = String::new();
        ArrayLines::new(text.as_bytes()).read_to_string(&mut lines)?;
        let lines = lines.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
    }

    fn text(random: &mut Random) -> String {
        let signs = ['a', '"', '\\', '[', ']', '{', '}', ',', ':', '\n', ' ', 'é'];
        (0..random.below(8)).map(|_| *random.pick(&signs)).collect()
    }

    fn value(random: &mut Random, depth: usize) -> Value {
        match random.below(if depth == 0 { 3 } else { 5 }) {
            0 => json!(random.below(1000)),
            1 => json!(text(random)),
            2 => Value::Null,
            3 => (0..random.below(4)).map(|_| value(random, depth - 1)).collect(),
            _ => {
                let entries = (0..random.below(4)).map(|_| (text(random), value(random, depth - 1)));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
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
