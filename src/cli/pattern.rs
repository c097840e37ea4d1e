//! Globs: `*` and `?` inside one path component, `**` across components, `[abc]`, `[!abc]`, `{a,b}`.
//!
//! A pattern is compiled to a regular expression, so matching takes time linear in the path.
//! A backslash escapes the next character. A pattern without a slash is matched against the file
//! name.

use regex::Regex;

/// A compiled glob.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// The pattern is invalid, for example because a bracket is not closed. The text names the
    /// fault.
    pub fn new(text: &str) -> Result<Self, String> {
        let source = to_regex(text)?;
        let regex = Regex::new(&source).map_err(|_| format!("`{text}` is no valid glob"))?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// Returns true if the whole `path` matches.
    pub fn matches_path(&self, path: &str) -> bool {
        self.regex.is_match(path)
    }

    /// Returns true if `path` matches. A pattern without a slash is matched against the last
    /// component.
    pub fn matches(&self, path: &str) -> bool {
        match self.text.contains('/') {
            true => self.matches_path(path),
            false => self.matches_path(path.rsplit('/').next().unwrap_or(path)),
        }
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Returns true if `text` has a character that is special in a glob.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

fn to_regex(glob: &str) -> Result<String, String> {
    let mut regex = String::from("(?s)^");
    let mut chars = glob.chars().peekable();
    let mut num_open_braces = 0usize;
    while let Some(c) = chars.next() {
        match c {
            '*' if chars.peek() == Some(&'*') => {
                while chars.next_if_eq(&'*').is_some() {}
                let whole = regex.ends_with('^') || regex.ends_with('/');
                match whole && chars.next_if_eq(&'/').is_some() {
                    true => regex.push_str("(?:.*/)?"),
                    false => regex.push_str(".*"),
                }
            }
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            '[' => regex.push_str(&class(glob, &mut chars)?),
            '{' => {
                num_open_braces += 1;
                regex.push_str("(?:");
            }
            '}' if num_open_braces > 0 => {
                num_open_braces -= 1;
                regex.push(')');
            }
            ',' if num_open_braces > 0 => regex.push('|'),
            '\\' => push_literal(&mut regex, chars.next().unwrap_or('\\')),
            c => push_literal(&mut regex, c),
        }
    }
    if num_open_braces > 0 {
        return Err(format!("`{glob}`: a `{{` is not closed"));
    }
    regex.push('$');
    Ok(regex)
}

/// Compiles the rest of a bracket expression, after its `[`.
fn class(glob: &str, chars: &mut impl Iterator<Item = char>) -> Result<String, String> {
    let mut inside = String::new();
    let mut negated = false;
    for (idx, c) in chars.enumerate() {
        match c {
            '!' | '^' if idx == 0 => negated = true,
            ']' if !inside.is_empty() => {
                let negation = if negated { "^/" } else { "" };
                return Ok(format!("[{negation}{inside}]"));
            }
            '-' => inside.push('-'),
            c => push_literal(&mut inside, c),
        }
    }
    Err(format!("`{glob}`: a `[` is not closed"))
}

fn push_literal(regex: &mut String, c: char) {
    regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        let cases = [
            ("*.md", "a.md", true),
            ("*.md", "docs/a.md", true),
            ("docs/*.md", "docs/a.md", true),
            ("docs/*.md", "docs/deep/a.md", false),
            ("docs/**/*.md", "docs/a.md", true),
            ("docs/**/*.md", "docs/x/y/a.md", true),
            ("**", "x/y", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[ab].txt", "b.txt", true),
            ("[!ab].txt", "b.txt", false),
            ("[a-c]1", "b1", true),
            ("*.{rs,toml}", "Cargo.toml", true),
            ("*.{rs,toml}", "Cargo.lock", false),
            ("a+b (1).txt", "a+b (1).txt", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
        ];
        for (glob, path, expected) in cases {
            assert_eq!(Pattern::new(glob).unwrap().matches(path), expected, "{glob} on {path}");
        }
    }

    #[test]
    fn broken_patterns_are_errors() {
        for bad in ["[ab", "{a,b", "[z-a]"] {
            assert!(Pattern::new(bad).is_err(), "{bad}");
        }
    }
}
