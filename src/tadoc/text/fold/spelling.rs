//! Spellings of one word: texts that people write and read as the same word.
//!
//! ```text
//! don’t            don't            one of several apostrophes
//! cafe^            café             a letter and its mark, or one character (NFD and NFC)
//! Zei·tung         Zeitung          · is a soft hyphen or another mark that nobody sees
//! ```
//!
//! Each fold compares the usual spelling of words. A word without a fold is found by its spellings with composed or
//! decomposed letters and with each apostrophe. Marks that nobody sees are dropped by folds only. O(bytes).

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::text::unspaced::is_invisible;

/// Characters that are written for an apostrophe, the usual one first.
const APOSTROPHES: [char; 3] = ['\'', '\u{2019}', '\u{2bc}'];
/// The two joiners: marks without width that some letters need.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

/// Returns the usual spelling of `word`: composed (NFC), with one kind of apostrophe, without marks that nobody sees.
/// A word of such marks alone stays as it is.
pub(super) fn usual(word: &str) -> Cow<'_, str> {
    if word.is_ascii() || is_usual(word) {
        return Cow::Borrowed(word);
    }
    match usual_letters(word) {
        letters if letters.is_empty() => Cow::Borrowed(word),
        letters => Cow::Owned(letters),
    }
}

/// Returns true if `word` is in the usual spelling as far as a look at each character tells.
fn is_usual(word: &str) -> bool {
    let is_written = |c: char| is_seen(c) && !APOSTROPHES[1..].contains(&c);
    word.chars().all(is_written) && is_nfc_quick(word.chars()) == IsNormalized::Yes
}

fn is_seen(c: char) -> bool {
    !is_invisible(c) && !JOINERS.contains(&c)
}

/// Returns `text` in the usual spelling. Nothing may be left.
pub(super) fn usual_letters(text: &str) -> String {
    let letters = text.chars().filter(|c| is_seen(*c));
    letters.map(|c| if APOSTROPHES.contains(&c) { APOSTROPHES[0] } else { c }).nfc().collect()
}

/// Returns `word`, and its other spellings with composed or decomposed letters and with each apostrophe.
pub(crate) fn spellings(word: String) -> Vec<String> {
    let has_apostrophe = word.contains(APOSTROPHES);
    if word.is_ascii() && !has_apostrophe {
        return vec![word];
    }
    let mut all = vec![word.clone(), word.nfc().collect(), word.nfd().collect()];
    if has_apostrophe {
        let with = |form: &String, apostrophe: char| form.replace(APOSTROPHES, apostrophe.encode_utf8(&mut [0; 4]));
        let others: Vec<String> =
            all.iter().flat_map(|form| APOSTROPHES.map(|apostrophe| with(form, apostrophe))).collect();
        all.extend(others);
    }
    let mut distinct: Vec<String> = Vec::new();
    for form in all {
        if !distinct.contains(&form) {
            distinct.push(form);
        }
    }
    distinct
}

/// Returns the text that all [`spellings`] of `word` have in common: composed, with one kind of apostrophe.
pub(crate) fn composed(word: &str) -> String {
    word.replace(APOSTROPHES, "'").nfc().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_a_word_are_those_that_people_write() {
        assert_eq!(spellings("tea".to_owned()), ["tea"]);
        assert_eq!(spellings("中文".to_owned()), ["中文"]);
        assert_eq!(spellings("don't".to_owned()), ["don't", "don’t", "don\u{2bc}t"]);
        assert_eq!(spellings("cafe\u{301}".to_owned()), ["cafe\u{301}", "café"]);
        assert_eq!(spellings("l’été".to_owned()).len(), 6);
        assert_eq!(usual("Zei\u{ad}tung"), "Zeitung");
        assert_eq!(usual("می\u{200c}روم"), "میروم");
        assert_eq!(usual("\u{200d}"), "\u{200d}");
        assert_eq!(usual("l’e\u{301}te\u{301}"), "l'été");
    }

    proptest! {
        #[test]
        fn every_spelling_has_the_same_usual_one(word in "[a-z'’é\u{301}Å\u{2bc}\u{ad}\\PC]{1,12}") {
            let expected = usual(&word).into_owned();
            let letters = usual_letters(&word);
            prop_assert_eq!(&expected, if letters.is_empty() { &word } else { &letters });
            prop_assert_eq!(usual(&expected), &expected[..]);
            for spelling in spellings(word.clone()) {
                prop_assert_eq!(usual(&spelling), &expected[..], "{}", spelling);
                prop_assert_eq!(composed(&spelling), composed(&word));
                prop_assert!(spellings(spelling).contains(&word) || word.nfc().ne(word.chars()));
            }
        }
    }
}
