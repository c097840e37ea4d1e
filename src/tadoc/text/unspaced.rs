//! Words of the profile `auto`, and the classes of bytes and characters by which `auto` and other profiles find words.
//!
//! `auto` has runs of `\w`, but scripts that are written without blanks are cut into characters, and Hangul
//! into syllables, because particles stand at its words.
//!
//! ```text
//! text     Zeitung 東京タワーへ  ชาวโลก  Zei·tung       · is a soft hyphen
//! words    Zeitung 東 京 タ ワ ー へ  ช า ว โ ล ก  Zei·tung
//! ```
//!
//! A phrase of such characters is a search for that text, because phrases do not look at separators. A mark
//! stays with its character (`ก้`). Digits of all scripts and letters of other scripts form runs, as in the
//! profile `word`. A soft hyphen or a mark without width is a part of a word if letters of one word stand on
//! both sides, else it is a part of a separator.
//!
//! Most texts have no such character. A text is read in pieces of a few KiB that end where a word ends and white space
//! begins, and only pieces with such a character are cut character by character: O(bytes) in both cases.
//!
//! # Classes
//!
//! Bytes are classified into word bytes and others, as one bit per byte, 64 bytes at a time.
//!
//! ```text
//! bytes   I t ' s   d é j à   v u .
//! bits    1 1 0 1 0 1 1 1 1 1 1 0 1 1 0        (é and à are two bytes each)
//! ```
//!
//! The class of an ASCII byte is computed by arithmetic that the compiler turns into vector instructions. Then one
//! multiplication turns eight class bytes into eight bits. Only characters above U+007F are decoded. Invalid UTF-8 is
//! never part of a word: a lead byte without its continuation and each byte that cannot begin a character have bit 0.
//! This agrees with `std::str::Utf8Chunks`, which may report several of these bytes as one fault.
//!
//! SWAR arithmetic on `u64` is slower, a plain loop over bits much slower. SSE2 intrinsics cannot
//! be called without `unsafe`, even on a target that always has them.

use std::sync::LazyLock;

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

/// Number of bytes in a block, and of bits in its result.
pub(super) const BLOCK_BYTES: usize = 64;

/// A class of characters that form words.
pub(super) trait WordClass {
    /// Returns true if an ASCII byte is in the class, false for bytes from 0x80 on. It has no
    /// branches, so that it vectorizes.
    fn has_ascii(byte: u8) -> bool;
    /// Returns true if a character above U+007F is in the class.
    fn has_wide(&self, c: u32) -> bool;
    /// Returns true if a character is in the class.
    fn has_char(&self, c: char) -> bool {
        if c.is_ascii() { Self::has_ascii(c as u8) } else { self.has_wide(c as u32) }
    }
}

/// The class `\w` of the regex crate.
pub(super) struct PerlWord(&'static [u64]);

impl PerlWord {
    pub(super) fn new() -> Self {
        Self(&PERL_WORD_BITS)
    }
}

impl WordClass for PerlWord {
    #[inline(always)]
    fn has_ascii(byte: u8) -> bool {
        ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10) | (byte == b'_')
    }

    #[inline]
    fn has_wide(&self, c: u32) -> bool {
        self.0.get(c as usize / 64).is_some_and(|bits| bits >> (c % 64) & 1 == 1)
    }
}

/// Table with one bit for each code point, 136 KiB. Ordinary text touches a few pages of it.
static PERL_WORD_BITS: LazyLock<Vec<u64>> = LazyLock::new(|| bits_for(r"\w"));

/// Returns one bit for each code point: 1 if `class`, a class of a regular expression, has it.
pub(super) fn bits_for(class: &str) -> Vec<u64> {
    let mut bits = vec![0_u64; (char::MAX as usize + 1) / 64];
    let ranges = regex_syntax::parse(class).map(|hir| hir.into_kind());
    if let Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) = ranges {
        for c in class.iter().flat_map(|range| range.start()..=range.end()) {
            bits[c as usize / 64] |= 1 << (c as u32 % 64);
        }
    }
    bits
}

/// The class of all characters except white space and NUL.
pub(super) struct Ink;

impl WordClass for Ink {
    #[inline(always)]
    fn has_ascii(byte: u8) -> bool {
        (byte.wrapping_sub(9) >= 5) & (byte != b' ') & (byte != 0) & (byte < 0x80)
    }

    #[inline]
    fn has_wide(&self, c: u32) -> bool {
        char::from_u32(c).is_some_and(|c| !c.is_whitespace())
    }
}

/// Classes of up to 64 bytes, lowest bit first. Bits behind the end of the text are 0.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Block {
    /// Bytes of words.
    pub(super) words: u64,
    /// Bytes that are a blank, U+0020.
    pub(super) blanks: u64,
}

/// Iterator over the classes of a text, block by block.
pub(super) struct ClassBits<'a, C> {
    class: C,
    text: &'a [u8],
    at: usize,
    /// Number of bytes at the start of the next block that belong to a character of this one.
    carried_len: u32,
    carried_bits: u64,
}

impl<'a, C: WordClass> ClassBits<'a, C> {
    /// Starts at byte `at` of `text`. The bytes before it have no influence.
    pub(super) fn new(class: C, text: &'a [u8], at: usize) -> Self {
        Self { class, text, at, carried_len: 0, carried_bits: 0 }
    }

    /// Returns the classes of the next [`BLOCK_BYTES`] bytes, or of the rest of the text.
    #[inline(always)]
    pub(super) fn next_block(&mut self) -> Option<Block> {
        let rest = &self.text[self.at..];
        let (mut block, high) = match rest.first_chunk::<BLOCK_BYTES>() {
            Some(bytes) => ascii_classes::<C>(bytes),
            None if rest.is_empty() => return None,
            None => {
                let mut bytes = [0; BLOCK_BYTES];
                bytes[..rest.len()].copy_from_slice(rest);
                ascii_classes::<C>(&bytes)
            }
        };
        if high != 0 {
            block.words |= self.wide_words(high);
        }
        self.at += BLOCK_BYTES.min(rest.len());
        Some(block)
    }

    /// Returns the word bits of the characters above U+007F. `high` has the bits of their bytes.
    fn wide_words(&mut self, high: u64) -> u64 {
        let mut words = self.carried_bits;
        let mut open = high & (!0 << self.carried_len);
        (self.carried_len, self.carried_bits) = (0, 0);
        while open != 0 {
            let offset = open.trailing_zeros();
            let (c, len) = decode_wide(&self.text[self.at + offset as usize..]);
            let bytes = ((1_u128 << len) - 1) << offset;
            if c.is_some_and(|c| self.class.has_wide(c)) {
                words |= bytes as u64;
                self.carried_bits = (bytes >> BLOCK_BYTES) as u64;
            }
            self.carried_len = (offset + len).saturating_sub(BLOCK_BYTES as u32);
            open &= !(bytes as u64);
        }
        words
    }
}

/// Returns the classes of the ASCII bytes, and the bits of the bytes that are not ASCII.
#[inline(always)]
fn ascii_classes<C: WordClass>(bytes: &[u8; BLOCK_BYTES]) -> (Block, u64) {
    let words = gather(&bytes.map(|byte| u8::from(C::has_ascii(byte))));
    let blanks = gather(&bytes.map(|byte| u8::from(byte == b' ')));
    let any = bytes.iter().fold(0, |any, byte| any | byte);
    let high = if any < 0x80 { 0 } else { gather(&bytes.map(|byte| byte >> 7)) };
    (Block { words, blanks }, high)
}

/// Collects 64 bytes into 64 bits. Each byte must be 0 or 1, and byte i becomes bit i.
#[inline(always)]
fn gather(flags: &[u8; BLOCK_BYTES]) -> u64 {
    let mut bits = 0;
    for (word_idx, word) in flags.as_chunks::<8>().0.iter().enumerate() {
        let eight = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= eight << (8 * word_idx);
    }
    bits
}

/// Decodes the character above U+007F at the start of `bytes` and returns it with its length, or
/// `None` and 1.
#[inline]
fn decode_wide(bytes: &[u8]) -> (Option<u32>, u32) {
    let lead = bytes[0];
    let tail = |idx: usize| match bytes.get(idx) {
        Some(&byte) if byte & 0xC0 == 0x80 => Some(u32::from(byte & 0x3F)),
        _ => None,
    };
    let decoded = match lead {
        0xC2..=0xDF => tail(1).map(|a| (u32::from(lead & 0x1F) << 6 | a, 2)),
        0xE0..=0xEF => tail(1)
            .zip(tail(2))
            .map(|(a, b)| (u32::from(lead & 0x0F) << 12 | a << 6 | b, 3))
            .filter(|(c, _)| *c >= 0x800 && !(0xD800..0xE000).contains(c)),
        0xF0..=0xF4 => tail(1)
            .zip(tail(2))
            .zip(tail(3))
            .map(|((a, b), c)| (u32::from(lead & 0x07) << 18 | a << 12 | b << 6 | c, 4))
            .filter(|(c, _)| (0x1_0000..=0x10_FFFF).contains(c)),
        _ => None,
    };
    decoded.map_or((None, 1), |(c, len)| (Some(c), len))
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
