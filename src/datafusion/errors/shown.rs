//! Texts of users as errors repeat them: their beginning. Takes O(1) of any text.

use std::borrow::Cow;

/// Most characters of a text that an error repeats.
const MAX_CHARS: usize = 120;

/// Returns `text`, or its beginning and `…`.
pub fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "é".repeat(MAX_CHARS);
        assert_eq!(shown(&long), long);
        assert_eq!(shown(&format!("{long}a")), format!("{long}…"));
    }
}
