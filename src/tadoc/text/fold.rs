//! Folds: rules that make different words count as equal.
//!
//! Each word is folded alone, as by [`str::to_lowercase`]: `ΣΑΣ` becomes `σας`, `İ` becomes `i` and
//! a dot above, `ß` is unchanged.

use std::borrow::Cow;

/// Rule by which words count as equal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Every word counts as itself.
    #[default]
    None,
    /// Words with the same Unicode lower case count as equal.
    Case,
}

impl Fold {
    /// Returns the folded form of `word`.
    pub fn text(self, word: &str) -> Cow<'_, str> {
        let is_folded = || word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
        match self {
            Self::Case if !is_folded() => Cow::Owned(word.to_lowercase()),
            _ => Cow::Borrowed(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_folded_beyond_ascii() {
        for (word, text) in [
            ("tea", "tea"),
            ("Tea_2", "tea_2"),
            ("É", "é"),
            ("ΣΑΣ", "σας"),
            ("İ", "i\u{307}"),
            ("ẞß", "ßß"),
            ("中文", "中文"),
        ] {
            assert_eq!(Fold::Case.text(word), text);
            assert_eq!(Fold::None.text(word), word);
        }
    }
}
