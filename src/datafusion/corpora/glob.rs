//! Globs in locations: which files match, and which folders can have such files.
//!
//! ```text
//! logs/ 2026-*/[ab]?/x*.txt     base, then a pattern
//!       2026-*  [ab]?           patterns of the folders; no other folder is entered
//! logs/ **/x*.txt               deep: every folder is entered
//! ```
//!
//! `*`, `?` and `[!abc]` stay inside a path segment, `**` crosses segments, `[abc]` is a class, and
//! the rest is literal, braces too. Matching takes time linear in the path.

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::Result;
use globset::{GlobBuilder, GlobMatcher};

/// The part of a location from its first segment with a glob character on.
#[derive(Debug, Clone)]
pub(crate) struct Glob {
    whole: GlobMatcher,
    /// Patterns of the folders from the base on, up to the first segment that crosses folders.
    folders: Vec<GlobMatcher>,
    /// True if any folder below those can have files that match.
    is_deep: bool,
}

impl Glob {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// A plan error that names the fault, such as a class that is not closed.
    pub(crate) fn parse(pattern: &str) -> Result<Self> {
        let whole = compiled(pattern)?;
        let mut segments: Vec<&str> = pattern.split('/').collect();
        let name = segments.pop().unwrap_or_default();
        let mut glob = Self { whole, folders: Vec::new(), is_deep: crosses(name) };
        for segment in segments {
            match compiled(segment) {
                Ok(folder) if !crosses(segment) => glob.folders.push(folder),
                _ => {
                    glob.is_deep = true;
                    break;
                }
            }
        }
        Ok(glob)
    }

    /// Returns true if the file `relative`, a path from the base on, matches.
    pub(crate) fn is_match(&self, relative: &str) -> bool {
        self.whole.is_match(relative)
    }

    /// Returns true if files below the folder `relative`, a path from the base on, can match.
    pub(crate) fn enters(&self, relative: &str) -> bool {
        relative.split('/').enumerate().all(|(depth, name)| match self.folders.get(depth) {
            Some(folder) => folder.is_match(name),
            None => self.is_deep,
        })
    }

    /// Returns true if files in any number of folders below each other can match.
    pub(crate) fn is_deep(&self) -> bool {
        self.is_deep
    }

    /// Returns true if only files directly in the base can match.
    pub(crate) fn is_flat(&self) -> bool {
        !self.is_deep && self.folders.is_empty()
    }
}

/// Returns true if `location` is a pattern that may name several files.
pub(crate) fn is_glob(location: &str) -> bool {
    split_glob(location).is_some()
}

/// Splits at the last slash before the first glob character.
pub(crate) fn split_glob(location: &str) -> Option<(&str, &str)> {
    let is_query = location.starts_with("http://") || location.starts_with("https://");
    let first = location.find(|c| matches!(c, '*' | '[') || (c == '?' && !is_query))?;
    let cut = location[..first].rfind('/').map_or(0, |slash| slash + 1);
    Some(location.split_at(cut))
}

/// Longest pattern in bytes. The library of globs takes quadratic time for open classes, and panics where the
/// regular expression of a pattern is too large.
const MAX_PATTERN_BYTES: usize = 4096;

fn compiled(pattern: &str) -> Result<GlobMatcher> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return plan_err!(
            "a pattern of {} bytes is too long: expected at most {MAX_PATTERN_BYTES}; name the folder, or fewer \
             files at a time",
            pattern.len()
        );
    }
    let escaped = with_literal_braces(pattern);
    let mut glob = GlobBuilder::new(&escaped);
    let glob = glob.literal_separator(true).backslash_escape(false).build();
    let glob = glob.map_err(|error| plan_datafusion_err!("{pattern}: {}", error.kind()))?;
    Ok(glob.compile_matcher())
}

/// Returns `pattern` with a class in place of each brace, which would otherwise group alternatives.
fn with_literal_braces(pattern: &str) -> String {
    let mut escaped = String::with_capacity(pattern.len());
    let mut is_in_class = false;
    for c in pattern.chars() {
        match c {
            '{' | '}' if !is_in_class => escaped.extend(['[', c, ']']),
            _ => escaped.push(c),
        }
        is_in_class = (is_in_class || c == '[') && c != ']';
    }
    escaped
}

/// Returns true if a segment of a pattern can match slashes: `**`, and classes that have the slash.
fn crosses(segment: &str) -> bool {
    let has_slash = |class: &str| compiled(class).map_or(true, |class| class.is_match("/"));
    segment.contains("**") || classes(segment).any(has_slash)
}

/// Returns the classes of a segment of a pattern, from bracket to bracket.
fn classes(segment: &str) -> impl Iterator<Item = &str> {
    let mut rest = segment;
    std::iter::from_fn(move || {
        let class = &rest[rest.find('[')?..];
        // A bracket is closed behind its first character, which may be a bracket itself.
        let inside = class[1..].trim_start_matches(['!', '^']);
        let first = inside.chars().next().map_or(0, char::len_utf8);
        let close = inside[first..].find(']').map_or(inside.len(), |at| first + at + 1);
        let (class, behind) = class.split_at(class.len() - inside.len() + close);
        rest = behind;
        Some(class)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Glob::parse(pattern).unwrap().is_match(path)
    }

    #[test]
    fn globs_stay_inside_a_segment_unless_doubled() {
        assert!(matches("*.txt", "a.txt") && !matches("*.txt", "b/a.txt"));
        assert!(matches("**/*.txt", "a.txt") && matches("**/*.txt", "b/c/a.txt"));
        assert!(matches("a?c", "abc") && !matches("a?c", "a/c"));
        assert!(matches("[a-c]x", "bx") && !matches("[!a-c]x", "bx") && matches("[!a-c]x", "dx"));
        assert!(
            matches("a+(b", "a+(b")
                && matches("[{a]}*", "a}c")
                && matches("{a,b}*", "{a,b}c")
                && matches("a\\b*", "a\\bc")
        );
        assert!(matches("a/**", "a/b/c") && matches("a/**/c", "a/c"));
        let error = Glob::parse("x[").unwrap_err().to_string();
        assert!(error.contains("x[: unclosed character class"), "{error}");
    }

    #[test]
    fn patterns_are_cut_from_their_folder() {
        assert_eq!(split_glob("s3://b/x/*.tadoc"), Some(("s3://b/x/", "*.tadoc")));
        assert_eq!(split_glob("*.tadoc"), Some(("", "*.tadoc")));
        assert_eq!(split_glob("https://h/x?y=1"), None);
        assert_eq!(split_glob("plain"), None);
    }

    #[test]
    fn long_patterns_are_refused() {
        for part in ["*", "[!", "?", "{a,"] {
            assert!(compiled(&part.repeat(MAX_PATTERN_BYTES + 1)).is_err(), "{part}");
            // A panic is an error of the test.
            let _ = compiled(&part.repeat(MAX_PATTERN_BYTES / part.len()));
        }
    }

    #[test]
    fn only_folders_of_the_pattern_are_entered() {
        let cases = [
            ("*.txt", "a", false),
            ("*/x.log", "a", true),
            ("*/x.log", "a/b", false),
            ("2026-*/b/[xy].log", "2026-01", true),
            ("2026-*/b/[xy].log", "2025-01", false),
            ("2026-*/b/[xy].log", "2026-01/b", true),
            ("2026-*/b/[xy].log", "2026-01/c", false),
            ("**/x.log", "a/b/c", true),
            ("a*/**", "b", false),
            ("a*/**", "ab/c/d", true),
            ("[a/]x*", "b", true),
            ("[!a]/x*", "b", true),
            ("[!a]/x*", "b/c", false),
            ("x**", "x/y", true),
        ];
        for (pattern, folder, expected) in cases {
            assert_eq!(Glob::parse(pattern).unwrap().enters(folder), expected, "{pattern} {folder}");
        }
        assert!(Glob::parse("*.txt").unwrap().is_flat() && !Glob::parse("*/x").unwrap().is_flat());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn folders_of_files_that_match_are_entered(
            pattern in "([ab/*?!-]|\\*\\*|\\[!?[ab/]{1,2}\\]|\\[[!-]-[0a]\\]){1,6}",
            parts in prop::collection::vec("[ab!-]{1,2}", 1..5),
        ) {
            if let Ok(glob) = Glob::parse(&pattern)
                && glob.is_match(&parts.join("/"))
            {
                for len in 1..parts.len() {
                    prop_assert!(glob.enters(&parts[..len].join("/")), "{} {:?}", pattern, parts);
                }
            }
        }
    }
}
