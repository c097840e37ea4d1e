//! Pairs of logfmt: `level=info msg="disk full" retry`.
//!
//! A key is a run of characters without white space, `=` and quotation marks. Behind `=` stands a text in
//! quotation marks, or one up to the next white space. A key without `=` has the value `true`, as in the package
//! of Go. Anything else is passed over. O(bytes of the text).

use std::borrow::Cow;

use super::values::unescaped;

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
}
