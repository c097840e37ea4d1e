//! Words that count as one.
//!
//! A word is folded by itself, as [`str::to_lowercase`] does: `ΣΑΣ` to `σας`, `İ` to `i` and a dot
//! above, `ß` stays.

use std::borrow::Cow;

/// Which words count as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Every word is its own.
    #[default]
    None,
    /// Words of the same Unicode lower case.
    Case,
}

impl Fold {
    /// What `word` counts as.
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
