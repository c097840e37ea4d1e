//! Values by key: pairs of logfmt, `level=info msg="disk full" retry`, and paths of JSON, `a.b[0]`, `["a.b"].c`, `[2]`.
//!
//! A key of logfmt is a run of characters without white space, `=` and quotation marks. Behind `=` stands a text in
//! quotation marks, with the escapes of JSON (`\n`, `\u00e9`), or one up to the next white space. A key without `=` has
//! the value `true`. Both are as in the package of Go. Anything else is passed over. O(bytes of the text).

use std::borrow::Cow;

use super::PatternFault;

/// Value of a key without `=`.
const TRUE: &str = "true";

/// Bytes of a unit of UTF-16 in an escape, behind the backslash.
const UNIT_BYTES: usize = 5;

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

/// Returns `text` with the characters that its escapes stand for. Other backslashes stand for themselves.
fn unescaped(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        output.push_str(&rest[..at]);
        let escaped = &rest[at + 1..];
        let (character, len) = escape(escaped).unwrap_or(('\\', 0));
        output.push(character);
        rest = &escaped[len..];
    }
    output + rest
}

/// Returns the character that the start of a text behind a backslash stands for, and the length of that start. U+FFFD
/// stands for half a character.
fn escape(text: &str) -> Option<(char, usize)> {
    let character = match text.bytes().next()? {
        sign @ (b'"' | b'\\' | b'/' | b'\'') => char::from(sign),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let first = unit(text)?;
            let second = text.get(UNIT_BYTES..).and_then(|rest| unit(rest.strip_prefix('\\')?));
            let pair = char::decode_utf16([Some(first), second].into_iter().flatten()).next()?;
            let is_pair = pair.as_ref().is_ok_and(|pair| pair.len_utf16() == 2);
            let len = if is_pair { 2 * UNIT_BYTES + 1 } else { UNIT_BYTES };
            return Some((pair.unwrap_or(char::REPLACEMENT_CHARACTER), len));
        }
        _ => return None,
    };
    Some((character, 1))
}

/// Returns the unit of UTF-16 at the start of a text such as `u00e9`.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix('u')?.get(..UNIT_BYTES - 1)?;
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if are_digits { u16::from_str_radix(digits, 16).ok() } else { None }
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

    /// Returns the text of the value at the path in `json`, which must be JSON. Of equal keys the last one counts.
    pub fn find<'j>(&self, json: &'j str) -> Option<&'j str> {
        let mut value = json.trim_matches(BLANKS);
        for step in &self.0 {
            let found = match step {
                Step::Key(key) => Members::new(value, '{')?.filter(|(name, _)| is_key(name, key)).last(),
                Step::Index(index) => Members::new(value, '[')?.nth(*index),
            };
            (_, value) = found?;
        }
        Some(value)
    }
}

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Returns true if the string `name` of JSON is `key`.
fn is_key(name: &str, key: &str) -> bool {
    if name.contains('\\') {
        return serde_json::from_str::<String>(name).is_ok_and(|name| name == key);
    }
    name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) == Some(key)
}

/// The members of an object or an array of JSON, with their names; those of an array have none.
struct Members<'j> {
    rest: &'j str,
    has_names: bool,
}

impl<'j> Members<'j> {
    /// Takes `value` if it begins with `bracket`.
    fn new(value: &'j str, bracket: char) -> Option<Self> {
        Some(Self { rest: value.strip_prefix(bracket)?, has_names: bracket == '{' })
    }

    fn take_value(&mut self) -> Option<&'j str> {
        self.rest = self.rest.trim_start_matches(BLANKS);
        let (value, rest) = self.rest.split_at(value_len(self.rest));
        self.rest = rest.trim_start_matches(BLANKS);
        (!value.is_empty()).then_some(value)
    }
}

impl<'j> Iterator for Members<'j> {
    type Item = (&'j str, &'j str);

    fn next(&mut self) -> Option<Self::Item> {
        self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
        let mut name = "";
        if self.has_names {
            name = self.take_value()?;
            self.rest = self.rest.strip_prefix(':')?;
        }
        Some((name, self.take_value()?))
    }
}

/// Place in a text of JSON, inside of a string or outside.
#[derive(Default)]
struct Place {
    in_string: bool,
    is_escaped: bool,
}

impl Place {
    /// Goes behind `character`. Returns true if it belongs to a string, as its quotation marks do.
    fn pass(&mut self, character: char) -> bool {
        let was_in_string = self.in_string;
        match character {
            _ if self.is_escaped => self.is_escaped = false,
            '\\' if self.in_string => self.is_escaped = true,
            '"' => self.in_string = !self.in_string,
            _ => {}
        }
        was_in_string || self.in_string
    }
}

/// Returns the length of the value of JSON at the begin of `text`.
fn value_len(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut place = Place::default();
    for (at, character) in text.char_indices() {
        if place.pass(character) {
            if !place.in_string && depth == 0 {
                return at + 1;
            }
            continue;
        }
        match character {
            '{' | '[' => depth += 1,
            '}' | ']' if depth > 1 => depth -= 1,
            '}' | ']' if depth == 1 => return at + 1,
            '}' | ']' | ',' | ':' if depth == 0 => return at,
            blank if depth == 0 && BLANKS.contains(&blank) => return at,
            _ => {}
        }
    }
    text.len()
}

/// Returns `json` without blanks between its values.
pub fn without_blanks(json: &str) -> String {
    let mut place = Place::default();
    json.chars().filter(|&character| place.pass(character) || !BLANKS.contains(&character)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;

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
            (r#"m="a\nb\t\u00e9\/" n=a\nb"#, vec![("m", "a\nb\té/"), ("n", r"a\nb")]),
            (r#"m="\ud83d\ude00\ud83d \udE00x""#, vec![("m", "😀\u{fffd} \u{fffd}x")]),
            (r#"m="C:\x\u12 \u+123 \\n""#, vec![("m", r"C:\x\u12 \u+123 \n")]),
        ] {
            let pairs: Vec<(&str, String)> = Pairs::new(text).map(|(key, value)| (key, value.into_owned())).collect();
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(key, value)| (*key, value.as_str())).collect();
            assert_eq!(pairs, expected, "{text}");
        }
    }

    #[test]
    fn steps_lead_to_the_text_of_a_value() {
        let json = r#" {"z": 1, "a": {"b": [ 1.50, {"c": 12345678901234567890123}]}, "x.y": 3, "é": null, "t": "}\"],",
            "e": {}, "l": [], "\u0071": true, "z": 1e2 } "#;
        for (path, expected) in [
            ("a.b[0]", Some("1.50")),
            ("a.b[1].c", Some("12345678901234567890123")),
            ("a.b[1]", Some(r#"{"c": 12345678901234567890123}"#)),
            ("[\"x.y\"]", Some("3")),
            ("é", Some("null")),
            ("t", Some(r#""}\"],""#)),
            ("q", Some("true")),
            ("z", Some("1e2")),
            ("e", Some("{}")),
            ("e.a", None),
            ("l[0]", None),
            ("a.b[2]", None),
            ("a[0]", None),
            ("t[0]", None),
            ("b", None),
        ] {
            let path = JsonPath::new(path).unwrap();
            assert_eq!(path.find(json), expected, "{path:?}");
        }
        assert_eq!(JsonPath::new("").unwrap().find(" 7 "), Some("7"));
        assert_eq!(without_blanks(r#"{ "a b" : [ 1,	" \" " ] }"#), r#"{"a b":[1," \" "]}"#);
    }

    /// Values of JSON with odd keys and texts.
    fn values() -> impl Strategy<Value = Json> {
        let text = "[a\\\\\"\\[\\]{},: é\t]{0,4}";
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            text.prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::btree_map(text, inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    /// Returns all steps to the values in `value`, with the values.
    fn all_steps(value: &Json) -> Vec<(Vec<Step>, &Json)> {
        let below: Vec<(Step, &Json)> = match value {
            Json::Array(values) => values.iter().enumerate().map(|(at, value)| (Step::Index(at), value)).collect(),
            Json::Object(values) => values.iter().map(|(key, value)| (Step::Key(key.clone()), value)).collect(),
            _ => Vec::new(),
        };
        let mut all = vec![(Vec::new(), value)];
        for (step, value) in below {
            all.extend(
                all_steps(value).into_iter().map(|(steps, value)| ([vec![step.clone()], steps].concat(), value)),
            );
        }
        all
    }

    proptest! {
        #[test]
        fn values_are_those_of_the_library(value in values(), is_pretty: bool) {
            let json = if is_pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            prop_assert_eq!(without_blanks(&json), value.to_string());
            for (steps, expected) in all_steps(&value) {
                let found = JsonPath(steps).find(&json).unwrap();
                prop_assert_eq!(&serde_json::from_str::<Json>(found).unwrap(), expected);
            }
        }

        #[test]
        fn any_text_has_an_end(text in any::<String>(), path in "a|\\[0\\]|a\\[0\\]\\.a") {
            let _ = JsonPath::new(&path).unwrap().find(&text);
            let _ = JsonPath::new(&path).unwrap().find(&format!("{{\"a\":{text}"));
            let _ = without_blanks(&text);
        }
    }

    #[test]
    fn faults_have_a_place() {
        for (path, character) in [("é[", 2), ("a[x]", 2), ("a..b", 2), (".a", 1), ("a.", 2), ("[\"a", 1)] {
            assert_eq!(JsonPath::new(path).unwrap_err().character, character, "{path}");
        }
    }
}
