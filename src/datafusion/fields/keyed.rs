//! Values by key: pairs of logfmt, `level=info msg="disk full" retry`, and paths of JSON, `a.b[0]`, `["a.b"].c`, `[2]`.
//!
//! A key of logfmt is a run of characters without white space, `=` and quotation marks. Behind `=` stands a text in
//! quotation marks, or one up to the next white space. A key without `=` has the value `true`, as in the package of Go.
//! Anything else is passed over. O(bytes of the text).

use std::borrow::Cow;

use serde_json::Value as Json;

use super::{PatternFault, unescaped};

/// Value of a key without `=`.
const TRUE: &str = "true";

/// The pairs of a text, in order.
pub struct Pairs<'t>(&'t str);

impl<'t> Pairs<'t> {
    /// Reads the pairs of `text`.
    pub fn new(text: &'t str) -> Self {
        Self(text)
    }
}

impl<'t> Iterator for Pairs<'t> {
    type Item = (&'t str, Cow<'t, str>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let is_before = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'=' | b'"');
            let num_before = self.0.bytes().take_while(|byte| is_before(byte)).count();
            let text = &self.0[num_before..];
            let key_len = text.bytes().take_while(|byte| !is_before(byte)).count();
            if key_len == 0 {
                self.0 = "";
                return None;
            }
            let (key, rest) = text.split_at(key_len);
            let Some(value) = rest.strip_prefix('=') else {
                self.0 = rest;
                // The text before a quotation mark is no key.
                if rest.starts_with('"') {
                    continue;
                }
                return Some((key, Cow::Borrowed(TRUE)));
            };
            let (value, rest) = match value.strip_prefix('"') {
                Some(quoted) => until_quotation_mark(quoted),
                None => {
                    let len = value.bytes().take_while(|byte| !byte.is_ascii_whitespace()).count();
                    (Cow::Borrowed(&value[..len]), &value[len..])
                }
            };
            self.0 = rest;
            return Some((key, value));
        }
    }
}

/// Returns the text up to the next quotation mark, or all of it if there is none, and the text behind it.
fn until_quotation_mark(text: &str) -> (Cow<'_, str>, &str) {
    let mut is_escaped = false;
    let mut has_escapes = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => (is_escaped, has_escapes) = (true, true),
            b'"' => {
                let value = if has_escapes { Cow::Owned(unescaped(&text[..at])) } else { Cow::Borrowed(&text[..at]) };
                return (value, &text[at + 1..]);
            }
            _ => {}
        }
    }
    (Cow::Borrowed(text), "")
}

/// Most bytes of a path.
const MAX_PATH_BYTES: usize = 8 << 10;

/// A step into a value of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// A compiled path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath(Vec<Step>);

impl JsonPath {
    /// Compiles `path`. An empty one is the whole value.
    ///
    /// # Errors
    /// It is too long, or a step cannot be read.
    pub fn new(path: &str) -> Result<Self, PatternFault> {
        let fault = |at: usize, reason: &str| {
            let character = path[..at].chars().count() + 1;
            PatternFault { character, reason: reason.to_owned() }
        };
        if path.len() > MAX_PATH_BYTES {
            return Err(fault(0, &format!("it has {} bytes, more than {MAX_PATH_BYTES}", path.len())));
        }
        let mut steps = Vec::new();
        let mut at = 0;
        while at < path.len() {
            let rest = &path[at..];
            if let Some(inner) = rest.strip_prefix("[\"") {
                let len = inner.find("\"]").ok_or_else(|| fault(at, "`[\"` has no `\"]`"))?;
                steps.push(Step::Key(inner[..len].to_owned()));
                at += len + 4;
            } else if let Some(inner) = rest.strip_prefix('[') {
                let len = inner.find(']').ok_or_else(|| fault(at, "`[` has no `]`"))?;
                let index = inner[..len].parse().map_err(|_| fault(at, "expected a number as in [0]"))?;
                steps.push(Step::Index(index));
                at += len + 2;
            } else {
                let start = at + usize::from(rest.starts_with('.') && !steps.is_empty());
                let key = &path[start..];
                let len = key.find(['.', '[']).unwrap_or(key.len());
                if len == 0 {
                    return Err(fault(at, "a key is missing"));
                }
                steps.push(Step::Key(key[..len].to_owned()));
                at = start + len;
            }
        }
        Ok(Self(steps))
    }

    /// Returns the value at the path.
    pub fn find<'v>(&self, value: &'v Json) -> Option<&'v Json> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_those_of_the_text() {
        for (text, expected) in [
            ("", vec![]),
            (
                "level=info msg=\"disk \\\"a\\\" full\" retry",
                vec![("level", "info"), ("msg", "disk \"a\" full"), ("retry", "true")],
            ),
            ("a= b=\"\" c=d=e", vec![("a", ""), ("b", ""), ("c", "d=e")]),
            ("=x \"y\" é=ü", vec![("x", "true"), ("é", "ü")]),
            ("m=\"open", vec![("m", "open")]),
        ] {
            let pairs: Vec<(&str, String)> = Pairs::new(text).map(|(key, value)| (key, value.into_owned())).collect();
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(key, value)| (*key, value.as_str())).collect();
            assert_eq!(pairs, expected, "{text}");
        }
    }

    #[test]
    fn steps_lead_into_a_value() {
        let value = serde_json::json!({"a": {"b": [1, {"c": 2}]}, "x.y": 3, "é": null});
        for (path, expected) in [
            ("a.b[0]", Some("1")),
            ("a.b[1].c", Some("2")),
            ("[\"x.y\"]", Some("3")),
            ("é", Some("null")),
            ("a.b[2]", None),
            ("a[0]", None),
            ("b", None),
        ] {
            let path = JsonPath::new(path).unwrap();
            assert_eq!(path.find(&value).map(ToString::to_string).as_deref(), expected, "{path:?}");
        }
        assert_eq!(JsonPath::new("").unwrap().find(&value), Some(&value));
    }

    #[test]
    fn faults_have_a_place() {
        for (path, character) in [("é[", 2), ("a[x]", 2), ("a..b", 2), (".a", 1), ("a.", 2), ("[\"a", 1)] {
            assert_eq!(JsonPath::new(path).unwrap_err().character, character, "{path}");
        }
    }
}
