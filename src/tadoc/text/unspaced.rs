//! Words of the profile `auto`: runs of `\w`, but scripts that are written without blanks are cut into characters, and
//! Hangul into syllables, because particles stand at its words.
//!
//! ```text
//! text     Zeitung 東京タワーへ  ชาวโลก  Zei·tung       · is a soft hyphen
//! words    Zeitung 東 京 タ ワ ー へ  ช า ว โ ล ก  Zei·tung
//! ```
//!
//! A phrase of such characters is a search for that text, because phrases do not look at separators. A mark stays with
//! its character (`ก้`). Digits of all scripts and letters of other scripts form runs, as in the profile `word`.
//! A soft hyphen or a mark without width is a part of a word if letters of one word stand on both sides, else it is a
//! part of a separator.
//!
//! Most texts have no such character. A text is read in pieces of a few KiB that end where a word ends and white space
//! begins, and only pieces with such a character are cut character by character: O(bytes) in both cases.

use std::sync::LazyLock;

use super::classes::{PerlWord, WordClass, bits_for};
use super::segments::Words;

/// Number of bytes after which a piece ends at the next place where it can.
pub(super) const PIECE_BYTES: usize = 4096;
/// Number of bytes that are tested at once.
const TESTED_BYTES: usize = 64;

/// Characters that are a word each: those of which line breaking knows that a line can end beside them, or that only a
/// dictionary tells. The last ones belong to several scripts: kana lengths and
/// repetitions. Marks and digits are left out.
static UNSPACED: LazyLock<Vec<u64>> = LazyLock::new(|| {
    bits_for(
        r"[[\p{Han}\p{Hira}\p{Kana}\p{Bopo}\p{Hang}\p{Thai}\p{Laoo}\p{Khmr}\p{Mymr}\p{Tale}\p{Talu}\p{Lana}\p{Tavt}\p{Ahom}\x{30FC}\x{FF70}\x{FF9E}\x{FF9F}\x{3031}-\x{3035}\x{303C}]&&\w&&\P{M}&&\P{Nd}&&[^\x{1160}-\x{11FF}\x{D7B0}-\x{D7FF}]]",
    )
});

/// Characters that stay with the character before them: marks, the two joiners, and vowels and final consonants of
/// decomposed Hangul.
static ATTACHED: LazyLock<Vec<u64>> =
    LazyLock::new(|| bits_for(r"[\p{M}\p{Join_Control}\x{1160}-\x{11FF}\x{D7B0}-\x{D7FF}]"));

fn has_bit(bits: &[u64], c: char) -> bool {
    let c = c as usize;
    bits.get(c / 64).is_some_and(|bits| bits >> (c % 64) & 1 == 1)
}

/// A soft hyphen, and marks without width that no letter needs.
pub(crate) const INVISIBLE: [char; 5] = ['\u{ad}', '\u{200e}', '\u{200f}', '\u{2060}', '\u{feff}'];

/// Returns true for a soft hyphen and for marks without width that no letter needs.
pub(crate) fn is_invisible(c: char) -> bool {
    INVISIBLE.contains(&c)
}

/// Returns true if `text` may have a character that `auto` and `word` treat differently. It never returns false for a
/// text that has one.
pub(super) fn may_differ(text: &[u8]) -> bool {
    // Lead bytes of these characters, and of few others.
    let is_lead = |byte: &u8| *byte >= 0xE0 || *byte == 0xC2;
    let mut blocks = text.chunks(TESTED_BYTES).enumerate();
    blocks.any(|(block_idx, block)| {
        let start = block_idx * TESTED_BYTES;
        block.iter().fold(false, |any, byte| any | is_lead(byte))
            && (start..start + block.len()).any(|at| is_lead(&text[at]) && differs_at(text, at))
    })
}

/// Returns true if the character at `at` of `text` is one that `auto` and `word` treat differently.
fn differs_at(text: &[u8], at: usize) -> bool {
    let bytes = &text[at..text.len().min(at + 4)];
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    valid.chars().next().is_some_and(|c| is_invisible(c) || has_bit(&UNSPACED, c))
}

/// Class of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Joins other letters.
    Letter,
    /// Is a word alone.
    Alone,
    /// Stays with a character before it.
    Attached,
    /// Joins letters on both sides.
    Invisible,
    Other,
}

impl Class {
    fn from_char(c: char, letters: &PerlWord) -> Self {
        match c {
            _ if !letters.has_char(c) => {
                if is_invisible(c) {
                    Self::Invisible
                } else {
                    Self::Other
                }
            }
            '\0'..='\u{ac}' => Self::Letter,
            _ if has_bit(&UNSPACED, c) => Self::Alone,
            _ if has_bit(&ATTACHED, c) => Self::Attached,
            _ => Self::Letter,
        }
    }
}

/// A word that may go on.
#[derive(Clone, Copy)]
struct Open {
    start: usize,
    end: usize,
    /// True for a word of one character and its marks.
    is_alone: bool,
}

/// The words of `auto`.
pub(super) struct AutoWords;

impl Words for AutoWords {
    fn for_each_word(passage: &str, mut word: impl FnMut(usize, usize)) {
        let letters = PerlWord::new();
        let mut open: Option<Open> = None;
        for (at, c) in passage.char_indices() {
            let class = Class::from_char(c, &letters);
            let goes_on = open.is_some_and(|open| match class {
                Class::Letter => !open.is_alone,
                Class::Attached => !open.is_alone || open.end == at,
                Class::Invisible => true,
                Class::Alone | Class::Other => false,
            });
            if !goes_on && let Some(ended) = open.take() {
                word(ended.start, ended.end);
            }
            if !matches!(class, Class::Invisible | Class::Other) {
                let is_alone = class == Class::Alone;
                open.get_or_insert(Open { start: at, end: at, is_alone }).end = at + c.len_utf8();
            }
        }
        if let Some(ended) = open {
            word(ended.start, ended.end);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the parts of `passage` between which a word of `auto` begins or ends, by regular expressions.
    pub(crate) fn slow_parts(passage: &str) -> Vec<(&str, bool)> {
        static WORD: LazyLock<regex::Regex> = LazyLock::new(|| {
            let alone = r"[[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Bopo}\p{sc=Hang}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tale}\p{sc=Talu}\p{sc=Lana}\p{sc=Tavt}\p{sc=Ahom}ーｰﾞﾟ〱-〵〼]&&\w--[\p{M}\p{Nd}\x{1160}-\x{11FF}\x{D7B0}-\x{D7FF}]]";
            let invisible = r"[\x{AD}\x{200E}\x{200F}\x{2060}\x{FEFF}]";
            let letter = format!(r"[\w--{alone}]");
            let pattern = format!(
                r"{alone}[\p{{M}}\p{{Join_Control}}\x{{1160}}-\x{{11FF}}\x{{D7B0}}-\x{{D7FF}}]*|{letter}+(?:{invisible}+{letter}+)*"
            );
            regex::Regex::new(&pattern).unwrap()
        });
        let mut parts = Vec::new();
        let mut at = 0;
        for word in WORD.find_iter(passage) {
            parts.push((&passage[at..word.start()], false));
            parts.push((word.as_str(), true));
            at = word.end();
        }
        parts.push((&passage[at..], false));
        parts
    }

    fn words(passage: &str) -> Vec<&str> {
        let mut words = Vec::new();
        AutoWords::for_each_word(passage, |start, end| words.push(&passage[start..end]));
        words
    }

    #[test]
    fn scripts_without_blanks_are_cut_into_characters() {
        for (text, expected) in [
            ("审批流程v2.0", "审|批|流|程|v2|0"),
            ("東京タワーへ、行く", "東|京|タ|ワ|ー|へ|行|く"),
            ("ชาวโลก ก้า", "ช|า|ว|โ|ล|ก|ก้|า"),
            ("한국어를 text", "한|국|어|를|text"),
            ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}", "\u{1112}\u{1161}\u{11ab}|\u{1100}\u{116e}\u{11a8}"),
            ("๒๕๖๗ 2024年", "๒๕๖๗|2024|年"),
            ("कक्षा naïve e\u{301}té", "कक्षा|naïve|e\u{301}té"),
            ("\u{2bc}n か\u{3099}っこ", "\u{2bc}n|か\u{3099}|っ|こ"),
        ] {
            assert_eq!(words(text), expected.split('|').collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn invisible_marks_join_letters_only() {
        for (text, expected) in [
            ("Zei\u{ad}tung\u{ad} x", "Zei\u{ad}tung|x"),
            ("\u{feff}Title", "Title"),
            ("a\u{2060}\u{ad}b\u{ad}.c", "a\u{2060}\u{ad}b|c"),
            ("中\u{ad}文\u{ad}a", "中|文|a"),
            ("a\u{ad}中", "a|中"),
            ("a\u{ad} b", "a|b"),
            ("a\u{ad}\u{301}b", "a\u{ad}\u{301}b"),
            ("中\u{ad}\u{301}b", "中|\u{301}b"),
        ] {
            assert_eq!(words(text), expected.split('|').collect::<Vec<_>>(), "{text:?}");
        }
    }

    #[test]
    fn texts_that_may_differ_are_found() {
        for text in ["日", "한", "Zei\u{ad}tung", "x\u{feff}", "ไ", "\u{2a6d7}"] {
            for blanks in [0, 1, 61, 62, 63, 64, 65, 200] {
                let text = format!("{}{text} rest", " ".repeat(blanks));
                assert!(may_differ(text.as_bytes()), "{text:?}");
            }
        }
        for text in ["", "It’s “naïve” — é\u{a0}© कक्षा 👩", "\u{200b}"] {
            assert!(!may_differ(text.as_bytes()), "{text:?}");
        }
        assert!(!may_differ(b"\xe3\x81 \xc2 \xef\xbb \xff \xe3"));
    }
}
