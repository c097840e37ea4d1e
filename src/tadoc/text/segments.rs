//! Tokens that are the segments of UAX #29 word boundaries.
//!
//! Each passage of valid UTF-8 without NUL is segmented separately. A segment with an alphanumeric character is one
//! word, so words may touch. Neighbouring other segments, invalid bytes and NUL merge into one separator.
//!
//! ```text
//! passage  |It's|  3.14 |naïve |café-bar |x:y
//! fields    ASCII  ASCII  other  other     ASCII
//! ```
//!
//! A passage is divided into fields. A field is ASCII white space and the bytes behind it up to the next ASCII white
//! space. No rule looks across a place where white space follows an ASCII field, or where an ASCII field follows
//! another field. So ASCII fields are cut separately and need only the rules WB5 to WB13 on six classes. Other fields
//! are passed to `unicode-segmentation`. Neighbouring ones stay together, because wide blanks join ASCII ones. The
//! white space before them is included, because a combining mark may attach to it.
//!
//! Measured (one core of a shared Xeon, tokens only, MB/s), with the crate for all fields and with
//! separate ASCII fields: Gutenberg prose 62 and 189, logs 70 and 363, Chinese 93 in both cases.

use unicode_segmentation::UnicodeSegmentation;

/// A rule by which the words of a passage are found.
pub(super) trait Words {
    /// Calls `word` with the start and end of each word in `passage`, which has no NUL, in order.
    fn for_each_word(passage: &str, word: impl FnMut(usize, usize));
}

/// Calls `f` with each token of `text[from..]`, in order. The words are those of `W`, the bytes between two of them are
/// one separator.
pub(super) fn for_each_segment<W: Words>(text: &[u8], from: usize, mut f: impl FnMut(Span)) {
    let mut separator_start = from;
    let mut word = |start: usize, end: usize| {
        let separator = Span { start: separator_start, end: start, is_word: false };
        emit_run::<false>(text, separator, &mut f);
        emit_run::<false>(text, Span { start, end, is_word: true }, &mut f);
        separator_start = end;
    };
    let mut at = from;
    for chunk in text[from..].utf8_chunks() {
        for (passage_idx, passage) in chunk.valid().split('\0').enumerate() {
            at += usize::from(passage_idx > 0);
            W::for_each_word(passage, |start, end| word(at + start, at + end));
            at += passage.len();
        }
        at += chunk.invalid().len();
    }
    let separator = Span { start: separator_start, end: text.len(), is_word: false };
    emit_run::<false>(text, separator, &mut f);
}

/// The words of UAX #29.
pub(super) struct Uax29Words;

impl Words for Uax29Words {
    fn for_each_word(passage: &str, word: impl FnMut(usize, usize)) {
        for_each_field_word(passage, word);
    }
}

fn for_each_field_word(passage: &str, mut word: impl FnMut(usize, usize)) {
    let bytes = passage.as_bytes();
    let mut at = 0;
    let mut wide_start = None;
    while at < bytes.len() {
        let field_start = at;
        at += bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let ink_start = at;
        let mut any = 0;
        while at < bytes.len() && !bytes[at].is_ascii_whitespace() {
            any |= bytes[at];
            at += 1;
        }
        if any >= 0x80 {
            wide_start.get_or_insert(field_start);
            continue;
        }
        if let Some(start) = wide_start.take() {
            for_each_wide_word(passage, start, field_start, &mut word);
        }
        for_each_ascii_word(&bytes[ink_start..at], |start, end| {
            word(ink_start + start, ink_start + end);
        });
    }
    if let Some(start) = wide_start {
        for_each_wide_word(passage, start, bytes.len(), &mut word);
    }
}

fn for_each_wide_word(passage: &str, start: usize, end: usize, word: &mut impl FnMut(usize, usize)) {
    for (offset, segment) in passage[start..end].split_word_bound_indices() {
        if segment.chars().any(char::is_alphanumeric) {
            word(start + offset, start + offset + segment.len());
        }
    }
}

/// UAX #29 class of an ASCII character, as far as the rules need it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AsciiClass {
    Letter,
    Digit,
    /// ExtendNumLet: joins all neighbours, but is not a word alone.
    Underscore,
    /// MidLetter.
    MidLetter,
    /// MidNum.
    MidNumber,
    /// MidNumLet and Single_Quote.
    MidBoth,
    Other,
}

impl AsciiClass {
    const fn from_byte(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Self::Letter,
            b'0'..=b'9' => Self::Digit,
            b'_' => Self::Underscore,
            b':' => Self::MidLetter,
            b',' | b';' => Self::MidNumber,
            b'.' | b'\'' => Self::MidBoth,
            _ => Self::Other,
        }
    }

    fn is_inner(self) -> bool {
        matches!(self, Self::Letter | Self::Digit | Self::Underscore)
    }

    /// Returns true if this class keeps a word together between two characters (WB6, WB7, WB11,
    /// WB12).
    fn joins(self, before: Self, after: Self) -> bool {
        before == after
            && match before {
                Self::Letter => matches!(self, Self::MidLetter | Self::MidBoth),
                Self::Digit => matches!(self, Self::MidNumber | Self::MidBoth),
                _ => false,
            }
    }
}

static ASCII_CLASSES: [AsciiClass; 256] = {
    let mut classes = [AsciiClass::Other; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = AsciiClass::from_byte(byte as u8);
        byte += 1;
    }
    classes
};

fn for_each_ascii_word(field: &[u8], mut word: impl FnMut(usize, usize)) {
    let class_at = |at: usize| field.get(at).map_or(AsciiClass::Other, ascii_class);
    let mut at = 0;
    while at < field.len() {
        let start = at;
        let mut before = class_at(at);
        at += 1;
        if !before.is_inner() {
            continue;
        }
        let mut is_word = before != AsciiClass::Underscore;
        loop {
            let class = class_at(at);
            if !class.is_inner() && !class.joins(before, class_at(at + 1)) {
                break;
            }
            is_word |= class != AsciiClass::Underscore;
            before = class;
            at += 1;
        }
        if is_word {
            word(start, at);
        }
    }
}

fn ascii_class(byte: &u8) -> AsciiClass {
    ASCII_CLASSES[*byte as usize]
}

/// Longest token in bytes. Longer runs are split, words at a char boundary.
pub const MAX_TOKEN_BYTES: usize = 65_536;

/// A token as a range of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) is_word: bool,
}

/// Emits a run. A run longer than a token may be is split, and an empty run is skipped.
#[inline(always)]
pub(super) fn emit_run<const SPACELESS: bool>(text: &[u8], run: Span, f: &mut impl FnMut(Span)) {
    let len = run.end - run.start;
    if len > MAX_TOKEN_BYTES {
        split_run::<SPACELESS>(text, run, f);
    } else if len > 0 {
        f(run);
    }
}

#[cold]
#[inline(never)]
fn split_run<const SPACELESS: bool>(text: &[u8], run: Span, f: &mut impl FnMut(Span)) {
    let mut start = run.start;
    while run.end - start > MAX_TOKEN_BYTES {
        let mut end = start + MAX_TOKEN_BYTES;
        while run.is_word && text[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        f(Span { start, end, ..run });
        if SPACELESS && run.is_word {
            f(Span { start: end, end, is_word: false });
        }
        start = end;
    }
    f(Span { start, ..run });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words_from(passage: &str) -> Vec<(usize, usize)> {
        let mut words = Vec::new();
        Uax29Words::for_each_word(passage, |start, end| words.push((start, end)));
        words
    }

    fn slow_words_from(passage: &str) -> Vec<(usize, usize)> {
        let segments = passage.split_word_bound_indices();
        let words = segments.filter(|(_, segment)| segment.chars().any(char::is_alphanumeric));
        words.map(|(start, segment)| (start, start + segment.len())).collect()
    }

    /// Tests each pair and triple of ASCII characters in each kind of surroundings.
    #[test]
    fn ascii_rules_agree_with_the_crate() {
        let kinds = ["a", "Z", "0", "_", ":", ",", ";", ".", "'", "\"", "-", " ", "\n", "\x0b", "\u{301}"];
        for first in (1..128).map(|byte| char::from(byte).to_string()) {
            for second in kinds {
                for third in kinds {
                    for around in ["", "a", "1", "_"] {
                        let text = format!("{around}{first}{second}{third}{around}");
                        assert_eq!(words_from(&text), slow_words_from(&text), "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn wide_blanks_join_ascii_ones() {
        let text = "a \u{2003} \u{345} b";
        assert_eq!(words_from(text), [(0, 1), (1, 8), (9, 10)]);
        assert_eq!(words_from(text), slow_words_from(text));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn fields_agree_with_the_crate(
            dense in "[a0_:,.' é\u{301}\u{345}\u{200d}日カ🇦👩\u{2003}\r\n\"]{0,12}",
            any in "\\PC{0,60}",
        ) {
            prop_assert_eq!(words_from(&dense), slow_words_from(&dense));
            prop_assert_eq!(words_from(&any), slow_words_from(&any));
        }
    }
}
