//! Globs: `*` and `?` inside one path component, `**` across components, `[abc]`, `[!abc]`, `{a,b}`.
//!
//! A pattern is compiled to a regular expression, so matching takes time linear in the path. A backslash escapes the
//! next character. A pattern without a slash is matched against the file name.
//!
//! ```
//! use tadoc_documents::pattern::Pattern;
//!
//! let pattern = Pattern::new("docs/**/*.{md,txt}")?;
//! assert!(pattern.matches("docs/a/b.md") && !pattern.matches("src/b.md"));
//! # Ok::<(), String>(())
//! ```

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
        if self.text.contains('/') {
            self.matches_path(path)
        } else {
            self.matches_path(path.rsplit('/').next().unwrap_or(path))
        }
    }

    /// Returns the regular expression that matches the paths of [`matches_path`](Self::matches_path).
    pub fn as_regex(&self) -> &str {
        self.regex.as_str()
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The folders that can have files of a glob.
#[derive(Debug)]
pub struct Folders {
    /// Patterns of the folders, up to the first component that crosses folders.
    parts: Vec<Pattern>,
    /// True if any folder below those can have files that match.
    is_deep: bool,
}

impl Folders {
    /// Returns the folders of `glob`. O(length).
    pub fn from_glob(glob: &str) -> Self {
        let mut components: Vec<&str> = glob.split('/').collect();
        let name = components.pop().unwrap_or_default();
        let mut folders = Self { parts: Vec::new(), is_deep: crosses(name) };
        for component in components {
            match Pattern::new(component) {
                Ok(part) if !crosses(component) => folders.parts.push(part),
                _ => {
                    folders.is_deep = true;
                    break;
                }
            }
        }
        folders
    }

    /// Returns true if files below the folder `path` can match.
    pub fn enters(&self, path: &str) -> bool {
        path.split('/').enumerate().all(|(depth, name)| match self.parts.get(depth) {
            Some(part) => part.matches_path(name),
            None => self.is_deep,
        })
    }
}

/// Returns true if a component can match slashes, or belongs to a class, to braces or to an escape that
/// a slash cut in two.
fn crosses(component: &str) -> bool {
    let has_slash = |at: usize| {
        let close = component[at..].find(']').map_or(component.len(), |close| at + close + 1);
        let class = Pattern::new(&component[at..close]);
        class.map_or(true, |class| class.matches_path("/"))
    };
    component.contains("**")
        || component.ends_with('\\')
        || Pattern::new(component).is_err()
        || component.match_indices('[').any(|(at, _)| has_slash(at))
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
                if whole && chars.next_if_eq(&'/').is_some() {
                    regex.push_str("(?:.*/)?")
                } else {
                    regex.push_str(".*")
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
    use proptest::prelude::*;

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
    fn only_folders_of_a_glob_are_entered() {
        let cases = [
            ("*.md", "docs", false),
            ("docs/*.md", "docs", true),
            ("docs/*/x.md", "docs/a", true),
            ("docs/*/x.md", "docs/a/b", false),
            ("docs/*/x.md", "src", false),
            ("docs/**/x.md", "docs/a/b", true),
            ("{a,b}/x", "b", true),
            ("{a,b}/x", "c", false),
            ("{a/b,c}/x", "a/b/c", true),
            ("{a,**}", "b/c", true),
        ];
        for (glob, folder, expected) in cases {
            assert_eq!(Folders::from_glob(glob).enters(folder), expected, "{glob} {folder}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn folders_of_files_that_match_are_entered(
            glob in "([ab/*?,!-]|\\*\\*|\\{[ab/],[ab*]\\}|\\[!?[ab/]{1,2}\\]|\\[[!-]-[0a]\\]|\\\\[a/]){1,6}",
            parts in prop::collection::vec("[ab!-]{1,2}", 1..5),
        ) {
            if let Ok(pattern) = Pattern::new(&glob)
                && pattern.matches_path(&parts.join("/"))
            {
                for len in 1..parts.len() {
                    let folder = parts[..len].join("/");
                    prop_assert!(Folders::from_glob(&glob).enters(&folder), "{} {:?}", glob, parts);
                }
            }
        }
    }

    #[test]
    fn broken_patterns_are_errors() {
        for bad in ["[ab", "{a,b", "[z-a]"] {
            assert!(Pattern::new(bad).is_err(), "{bad}");
        }
    }
}
