//! Base letters of words: letters without accents, strokes and hooks, and without the underscores
//! around a word.
//!
//! ```text
//! _château_ ──NFKD──▶ _cha^teau_ ──no marks──▶ _chateau_ ──base letters──▶ … ──NFC──▶ chateau
//! ```
//!
//! The word is decomposed (NFKD, which also makes `ﬁ` of ligatures and `5` of `⁵`), its nonspacing
//! marks (general category Mn) and any blanks that decompositions have are dropped, letters of
//! [`LETTERS`] are replaced, and the rest is composed again (NFC), so that Hangul stays syllables.
//! Underscores at both ends are dropped last: they are part of words (`\w`), and mark emphasis in
//! plain text. A word of which nothing would be left, such as `__`, stays as it is.
//!
//! In scripts where marks are no accents, more words meet: vowel signs of India are dropped with
//! the other marks, `й` is `и`, and kana lose their voicing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

use crate::text::unspaced::bits_for;

/// Base letters, each with letters that have no decomposition.
///
/// Source: the letters of U+0080 to U+024F whose Unicode name is `LATIN … LETTER X WITH …`, the
/// letters `Æ Ð Þ ß Œ Ŋ ĸ ı ȷ Ɖ Ƕ Ʉ Ȣ Ɋ` as in the table of Lucene's ASCIIFoldingFilter, and the
/// other case of each of these, wherever it is.
const LETTERS: &[(&str, &str)] = &[
    ("A", "Ⱥ"),
    ("a", "ⱥ"),
    ("AE", "Æ"),
    ("ae", "æ"),
    ("B", "ƁƂɃ"),
    ("b", "ƀƃɓ"),
    ("C", "ƇȻ"),
    ("c", "ƈȼ"),
    ("D", "ÐĐƉƊƋ"),
    ("d", "ðđƌȡɖɗ"),
    ("E", "Ɇ"),
    ("e", "ɇ"),
    ("F", "Ƒ"),
    ("f", "ƒ"),
    ("G", "ƓǤ"),
    ("g", "ǥɠ"),
    ("H", "Ħ"),
    ("h", "ħ"),
    ("HV", "Ƕ"),
    ("hv", "ƕ"),
    ("I", "Ɨ"),
    ("i", "ıɨ"),
    ("J", "Ɉ"),
    ("j", "ȷɉ"),
    ("K", "Ƙ"),
    ("k", "ƙ"),
    ("L", "ŁȽ"),
    ("l", "łƚȴ"),
    ("N", "ŊƝȠ"),
    ("n", "ŋƞȵɲ"),
    ("O", "ØƟ"),
    ("o", "øɵ"),
    ("OE", "Œ"),
    ("oe", "œ"),
    ("OU", "Ȣ"),
    ("ou", "ȣ"),
    ("P", "Ƥ"),
    ("p", "ƥ"),
    ("Q", "Ɋ"),
    ("q", "ĸɋ"),
    ("R", "Ɍ"),
    ("r", "ɍ"),
    ("S", "Ȿ"),
    ("s", "ȿ"),
    ("SS", "ẞ"),
    ("ss", "ß"),
    ("T", "ŦƬƮȾ"),
    ("t", "ŧƫƭȶʈⱦ"),
    ("TH", "Þ"),
    ("th", "þ"),
    ("U", "Ʉ"),
    ("u", "ʉ"),
    ("V", "Ʋ"),
    ("v", "ʋ"),
    ("Y", "ƳɎ"),
    ("y", "ƴɏ"),
    ("Z", "ƵȤⱿ"),
    ("z", "ƶȥɀ"),
];

static BASES: LazyLock<HashMap<char, &'static str>> =
    LazyLock::new(|| LETTERS.iter().flat_map(|&(base, letters)| letters.chars().map(move |c| (c, base))).collect());

/// A bit for each character: 1 if it is a nonspacing mark.
static MARKS: LazyLock<Vec<u64>> = LazyLock::new(|| bits_for(r"\p{Mn}"));

/// Returns `word` in base letters.
pub(super) fn base(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return Cow::Borrowed(without_underscores(word));
    }
    let letters = base_letters(word);
    match trimmed(&letters) {
        "" => Cow::Borrowed(word),
        rest if rest.len() == letters.len() => Cow::Owned(letters),
        rest => Cow::Owned(rest.to_owned()),
    }
}

/// Returns `word` with its accents, in the form that stemmers expect: composed (NFKC), without the
/// underscores around it.
pub(super) fn composed(word: &str) -> Cow<'_, str> {
    let rest = without_underscores(word);
    if rest.is_ascii() { Cow::Borrowed(rest) } else { Cow::Owned(rest.nfkc().collect()) }
}

/// Returns `text` in base letters. Its underscores stay, and nothing may be left.
pub(super) fn base_letters(text: &str) -> String {
    let mut letters = String::with_capacity(text.len());
    for character in text.nfkd().filter(|c| !is_mark(*c) && !c.is_whitespace()) {
        match BASES.get(&character) {
            Some(base) => letters.push_str(base),
            None => letters.push(character),
        }
    }
    if letters.is_ascii() { letters } else { letters.nfc().collect() }
}

fn is_mark(character: char) -> bool {
    let place = character as usize;
    MARKS.get(place / 64).is_some_and(|bits| bits >> (place % 64) & 1 == 1)
}

fn trimmed(word: &str) -> &str {
    word.trim_matches('_')
}

/// Returns `word` without the underscores around it, or as it is if nothing else is in it.
pub(super) fn without_underscores(word: &str) -> &str {
    kept(word, trimmed(word))
}

/// Returns `rest` of `word`, or `word` if nothing is left of it.
fn kept<'w>(word: &'w str, rest: &'w str) -> &'w str {
    if rest.is_empty() { word } else { rest }
}

/// Returns `word` in base letters without the way for ASCII.
#[cfg(test)]
pub(super) fn plainly(word: &str) -> String {
    let letters = base_letters(word);
    kept(word, trimmed(&letters)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_lose_accents_strokes_and_underscores() {
        for (word, text) in [
            ("tea", "tea"),
            ("_château_", "chateau"),
            ("cha\u{302}teau", "chateau"),
            ("ÀÉÎÕÜ", "AEIOU"),
            ("Straße", "Strasse"),
            ("STRAẞE", "STRASSE"),
            ("søster", "soster"),
            ("Ǿ", "O"),
            ("ǣon", "aeon"),
            ("Łódź", "Lodz"),
            ("Þór", "THor"),
            ("ﬁn", "fin"),
            ("x⁵", "x5"),
            ("ＡＢ＿", "AB"),
            ("Việt", "Viet"),
            ("ἄνθρωπος", "ανθρωπος"),
            ("ёй", "еи"),
            ("한국어", "한국어"),
            ("中文", "中文"),
            ("مَدْرَسَة", "مدرسة"),
            ("snake_case", "snake_case"),
            ("__init__", "init"),
            ("__", "__"),
            ("\u{301}", "\u{301}"),
            ("¨", "¨"),
            ("", ""),
        ] {
            assert_eq!(base(word), text, "{word}");
        }
    }

    #[test]
    fn letters_of_the_table_have_no_decomposition_and_stand_once() {
        assert!(is_mark('\u{301}') && !is_mark('a') && !is_mark('\u{93e}'));
        let letters: Vec<char> = LETTERS.iter().flat_map(|(_, letters)| letters.chars()).collect();
        assert_eq!(letters.len(), BASES.len());
        assert!(letters.iter().all(|&letter| std::iter::once(letter).nfkd().eq([letter])));
    }

    #[test]
    fn words_are_composed_for_stemmers() {
        assert_eq!(composed("_cha\u{302}teau_"), "château");
        assert_eq!(composed("__tea"), "tea");
        assert_eq!(composed("__"), "__");
    }
}
