//! Tokenizer that cuts bytes into word and separator tokens.
//!
//! ```text
//! profile     I  don't  know…  x_1  日本語  \xff
//! auto        I don ' t know … x_1 日 本 語 \xff     \w+, and characters of scripts without blanks
//! word        I don ' t know … x_1 日本語 \xff       \w+ of the regex crate
//! uax29       I don't know … x_1 日 本 語 \xff        UAX #29 word boundaries
//! whitespace  I don't know… x_1 日本語 \xff           (\xff is a separator in each)
//! ```
//!
//! Every byte string can be cut, and the tokens tile it. Bytes that are not UTF-8 (the bytes that
//! `String::from_utf8_lossy` replaces) and NUL belong to separators, so a word is always valid UTF-8.
//! For `word` and `whitespace` a token is a maximal run of one class, found 64 bytes at a time. For it
//! and `auto` see [`unspaced`](super::unspaced), for `uax29` [`segments`](super::segments). A run
//! longer than [`MAX_TOKEN_BYTES`](super::MAX_TOKEN_BYTES) is cut into tokens of that length, and words
//! at the last char boundary before it. So one base64 blob cannot spoil a dictionary.
//!
//! There are two views of the same tokens: [`for_each_token`] tiles the text, [`for_each_stored`] applies the spaceless
//! model of the [parent module](super). Both need O(bytes) time and no allocation.
//!
//! # Cuts
//!
//! Places at which a text can be cut and tokenized separately, for any text around the visible part:
//!
//! ```text
//! seen      …wer loss, 日|         the rest of the document may be anything, and may change
//! cuts          | |  |           others: where the class changes between two characters
//!               |                uax29: letter or digit, then white space (or `\n`, then a letter)
//! ```
//!
//! The visible part has a whole character on both sides of a cut. UTF-8 characters can be found from any byte, so these
//! two characters are the same in any surroundings. The border between them is a token border: between runs of two
//! classes, or by UAX #29, none of whose rules looks across such a place (WB3a, WB999). Unlike [`next_cut`] this search
//! needs no bytes before the visible part. It takes the nearest place, so cuts are a few bytes apart in ordinary text.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

use super::segments::{Span, Uax29Words, emit_run, for_each_segment};
use super::unspaced::{
    AutoWords, BLOCK_BYTES, ClassBits, Ink, PIECE_BYTES, PerlWord, WordClass, is_invisible, may_differ,
};

/// Version of the Unicode tables of [`TokenizerProfile::Word`], which are those of regex-syntax.
const UNICODE_VERSION: (u8, u8, u8) = (16, 0, 0);

/// Rule by which the tokenizer finds words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum TokenizerProfile {
    /// Maximal matches of `\w+` as the regex crate defines it: letters, marks, decimal digits,
    /// connector punctuation such as `_`, and the two joiners.
    Word = 0,
    /// Segments of UAX #29 that have a letter or a digit. Words may touch, as in `日本`.
    Uax29 = 1,
    /// Maximal runs of characters that are neither white space nor NUL, as in the TADOC papers.
    Whitespace = 2,
    /// The words of `word`, but each character of a script that is written without blanks, and of Hangul, is a word,
    /// and a soft hyphen between letters does not end one. Words may touch, as in `日本`.
    #[default]
    Auto = 3,
}

impl TokenizerProfile {
    /// All profiles, the default first.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Word, Self::Uax29, Self::Whitespace];

    /// Returns the number that files store for this profile.
    pub fn as_u8(self) -> u8 {
        self as u8
    }

    /// Returns the profile with this stored number, if this build knows it.
    pub fn from_u8(stored: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_u8() == stored)
    }

    /// Returns the name used in SQL and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Word => "word",
            Self::Uax29 => "uax29",
            Self::Whitespace => "whitespace",
        }
    }

    /// Returns the version of the Unicode tables that this profile uses.
    ///
    /// Another version may cut the same bytes differently, so files record it.
    pub fn unicode_version(self) -> (u8, u8, u8) {
        let (major, minor, patch) = unicode_segmentation::UNICODE_VERSION;
        match self {
            Self::Auto | Self::Word => UNICODE_VERSION,
            Self::Uax29 => (major as u8, minor as u8, patch as u8),
            Self::Whitespace => char::UNICODE_VERSION,
        }
    }

    /// Returns the profile that questions to corpora of this profile and of `other` have, if there is one. Of `auto`
    /// and `word` it is `auto`: their words are the same but for scripts without blanks and marks that nobody sees.
    /// Such a word is found in corpora of `auto` only.
    pub fn together(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Auto, Self::Word) | (Self::Word, Self::Auto) => Some(Self::Auto),
            _ => (self == other).then_some(self),
        }
    }

    /// Returns true if two words can touch each other.
    pub fn words_can_touch(self) -> bool {
        matches!(self, Self::Auto | Self::Uax29)
    }

    /// Returns true if a word ends behind `c` when white space follows.
    pub(super) fn ends_word(self, c: char) -> bool {
        match self {
            Self::Auto | Self::Word => PerlWord::new().has_char(c),
            Self::Uax29 => c.is_alphanumeric(),
            Self::Whitespace => Ink.has_char(c),
        }
    }
}

impl fmt::Display for TokenizerProfile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for TokenizerProfile {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == name).ok_or_else(|| Error::InvalidArgument {
            name: "tokenizer",
            got: name.to_owned(),
            allowed: "one of auto, word, uax29, whitespace".to_owned(),
        })
    }
}

/// A range of the text that is one word or one separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Bytes of the token, 1 to [`MAX_TOKEN_BYTES`](super::MAX_TOKEN_BYTES). A word is valid UTF-8
    /// without NUL.
    pub bytes: &'a [u8],
    /// True for a word, false for a separator.
    pub is_word: bool,
}

/// Calls `f` with each token of `text` in order. Their concatenation is `text`.
///
/// No token is left out. The blank that the spaceless model implies is passed like any other token.
pub fn for_each_token<'a>(profile: TokenizerProfile, text: &'a [u8], mut f: impl FnMut(Token<'a>)) {
    let f = |span: Span| f(Token { bytes: &text[span.start..span.end], is_word: span.is_word });
    match profile {
        TokenizerProfile::Word => for_each_run::<_, false>(PerlWord::new(), text, 0, false, f),
        TokenizerProfile::Whitespace => for_each_run::<_, false>(Ink, text, 0, false, f),
        TokenizerProfile::Uax29 => for_each_segment::<Uax29Words>(text, 0, f),
        TokenizerProfile::Auto => for_each_auto::<false>(text, 0, false, f),
    }
}

/// Returns true if two characters in a row are in one word.
pub(crate) fn in_one_word(profile: TokenizerProfile, first: char, second: char) -> bool {
    let mut num_tokens = 0;
    let text: String = [first, second].into_iter().collect();
    for_each_token(profile, text.as_bytes(), |_| num_tokens += 1);
    num_tokens == 1
}

/// Calls `f` with each token of `text[from..]` that the spaceless model stores. It leaves out a
/// single blank between two words, and adds an empty separator between two words that touch.
///
/// `from` is the start of a document, or a place inside a document that [`next_cut`] returned. In
/// the second case `after_word` is true. Spans are positions in `text`.
#[inline]
pub(super) fn for_each_stored(
    profile: TokenizerProfile,
    text: &[u8],
    from: usize,
    after_word: bool,
    f: impl FnMut(Span),
) {
    match profile {
        TokenizerProfile::Word => {
            for_each_run::<_, true>(PerlWord::new(), text, from, after_word, f);
        }
        TokenizerProfile::Whitespace => for_each_run::<_, true>(Ink, text, from, after_word, f),
        TokenizerProfile::Uax29 => {
            let mut spaceless = Spaceless { text, after_word, pending: None, f };
            for_each_segment::<Uax29Words>(text, from, |span| spaceless.push(span));
            spaceless.finish();
        }
        TokenizerProfile::Auto => for_each_auto::<true>(text, from, after_word, f),
    }
}

/// Calls `f` with each token of the profile `auto`, piece by piece. Most pieces have the tokens of `word`.
fn for_each_auto<const SPACELESS: bool>(text: &[u8], from: usize, after_word: bool, mut f: impl FnMut(Span)) {
    let mut start = from;
    let mut after_word = after_word;
    loop {
        let end = next_cut(TokenizerProfile::Auto, text, start + PIECE_BYTES).unwrap_or(text.len());
        let seen = &text[..end];
        if !may_differ(&text[start..end]) {
            for_each_run::<_, SPACELESS>(PerlWord::new(), seen, start, after_word, &mut f);
        } else if SPACELESS {
            let mut spaceless = Spaceless { text: seen, after_word, pending: None, f: &mut f };
            for_each_segment::<AutoWords>(seen, start, |span| spaceless.push(span));
            spaceless.finish();
        } else {
            for_each_segment::<AutoWords>(seen, start, &mut f);
        }
        if end == text.len() {
            return;
        }
        start = end;
        after_word = true;
    }
}

/// Returns the first place at or behind `from` where `text` can be cut and tokenized separately: a
/// word ends there and white space begins. Returns `None` if there is no such place before the end.
///
/// UTF-8 decoding, runs, segments and length splits all start anew behind such a place.
pub(super) fn next_cut(profile: TokenizerProfile, text: &[u8], from: usize) -> Option<usize> {
    (from.max(1)..text.len()).find(|&at| {
        matches!(text[at], b' ' | b'\t' | b'\r' | b'\n') && last_char(&text[..at]).is_some_and(|c| profile.ends_word(c))
    })
}

/// Returns the last character of `bytes`, or `None` if it is invalid UTF-8.
pub(super) fn last_char(bytes: &[u8]) -> Option<char> {
    let tail = &bytes[bytes.len().saturating_sub(4)..];
    let start = tail.iter().rposition(|byte| byte & 0xC0 != 0x80)?;
    let mut chars = std::str::from_utf8(&tail[start..]).ok()?.chars();
    chars.next()
}

/// Calls `f` with each token that is a maximal run of one class.
///
/// A border is a bit that differs from the one below it. So a block of 64 bytes takes as many steps
/// as it has tokens. With `SPACELESS`, bit operations remove the implied blanks before any step.
#[inline(always)]
fn for_each_run<C: WordClass, const SPACELESS: bool>(
    class: C,
    text: &[u8],
    from: usize,
    after_word: bool,
    mut f: impl FnMut(Span),
) {
    let mut classes = ClassBits::new(class, text, from);
    let Some(mut block) = classes.next_block() else { return };
    let mut word_before = if after_word { 1 } else { block.words & 1 };
    let mut implied_before = 0;
    let mut run = Span { start: from, end: from, is_word: word_before == 1 };
    let mut block_start = from;
    loop {
        let next = classes.next_block();
        let len = BLOCK_BYTES.min(text.len() - block_start);
        let words = block.words;
        let before = words << 1 | word_before;
        let after = words >> 1 | next.map_or(0, |next| next.words << 63);
        let implied = if SPACELESS { block.blanks & !words & before & after } else { 0 };
        let behind_implied = implied << 1 | implied_before;
        let mut borders = (words ^ before) & !behind_implied & (!0 >> (BLOCK_BYTES - len));
        (word_before, implied_before) = (words >> 63, implied >> 63);
        while borders != 0 {
            let offset = borders.trailing_zeros();
            borders &= borders - 1;
            run.end = block_start + offset as usize;
            emit_run::<SPACELESS>(text, run, &mut f);
            let skipped = implied >> offset & 1;
            run.start = run.end + skipped as usize;
            run.is_word = (words >> offset | skipped) & 1 == 1;
        }
        block_start += len;
        match next {
            Some(next) => block = next,
            None => break,
        }
    }
    emit_run::<SPACELESS>(text, Span { end: text.len(), ..run }, &mut f);
}

/// The spaceless model for any stream of tokens. [`for_each_run`] does the same with bits.
struct Spaceless<'a, F> {
    text: &'a [u8],
    /// True if a word precedes `pending`, or precedes the next token if nothing is pending.
    after_word: bool,
    pending: Option<Span>,
    f: F,
}

impl<F: FnMut(Span)> Spaceless<'_, F> {
    fn push(&mut self, span: Span) {
        if let Some(separator) = self.pending.take() {
            if !(span.is_word && self.after_word && self.is_blank(separator)) {
                (self.f)(separator);
            }
            self.after_word = false;
        } else if span.is_word && self.after_word {
            (self.f)(Span { start: span.start, end: span.start, is_word: false });
        }
        if span.is_word {
            self.after_word = true;
            (self.f)(span);
        } else {
            self.pending = Some(span);
        }
    }

    fn finish(mut self) {
        if let Some(separator) = self.pending.take() {
            (self.f)(separator);
        }
    }

    fn is_blank(&self, span: Span) -> bool {
        &self.text[span.start..span.end] == b" "
    }
}

/// Returns the last cut inside `seen`.
pub fn last_cut(profile: TokenizerProfile, seen: &[u8]) -> Option<usize> {
    (1..seen.len()).rev().find(|&at| is_cut(profile, seen, at))
}

/// Returns the first cut inside `seen`.
pub fn first_cut(profile: TokenizerProfile, seen: &[u8]) -> Option<usize> {
    (1..seen.len()).find(|&at| is_cut(profile, seen, at))
}

fn is_cut(profile: TokenizerProfile, seen: &[u8], at: usize) -> bool {
    // Continuation byte, so `at` lies inside a character. This is the usual case in scripts with
    // multi-byte characters.
    if seen[at] & 0xC0 == 0x80 {
        return false;
    }
    let (Some(before), Some(behind)) = (last_char(&seen[..at]), first_char(&seen[at..])) else {
        return false;
    };
    match profile {
        TokenizerProfile::Word | TokenizerProfile::Whitespace => profile.ends_word(before) != profile.ends_word(behind),
        TokenizerProfile::Auto => {
            profile.ends_word(before) != profile.ends_word(behind) && !is_invisible(before) && !is_invisible(behind)
        }
        TokenizerProfile::Uax29 => match (before, behind) {
            (before, ' ' | '\t' | '\r' | '\n') => before.is_alphanumeric(),
            ('\n', behind) => behind.is_alphanumeric(),
            _ => false,
        },
    }
}

/// Returns the first character of `bytes`, or `None` if it is invalid UTF-8 or longer than `bytes`.
fn first_char(bytes: &[u8]) -> Option<char> {
    let len = match bytes.first()? {
        0..0x80 => 1,
        0..0xE0 => 2,
        0..0xF0 => 3,
        _ => 4,
    };
    std::str::from_utf8(bytes.get(..len)?).ok()?.chars().next()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;
    use crate::text::MAX_TOKEN_BYTES;
    use crate::text::unspaced::tests::slow_parts;

    /// Returns tokens by the definition: one character, segment or fault after the other.
    pub(crate) fn slow_tokens(profile: TokenizerProfile, text: &[u8]) -> Vec<(Vec<u8>, bool)> {
        let is_word = |c: char| match profile {
            TokenizerProfile::Auto | TokenizerProfile::Word => regex_syntax::is_word_character(c),
            TokenizerProfile::Uax29 => c.is_alphanumeric(),
            TokenizerProfile::Whitespace => !c.is_whitespace(),
        };
        let mut runs: Vec<(Vec<u8>, bool)> = Vec::new();
        let mut add = |bytes: &[u8], is_word: bool| match runs.last_mut() {
            Some((run, class)) if *class == is_word && !(is_word && profile.words_can_touch()) => {
                run.extend_from_slice(bytes);
            }
            _ if bytes.is_empty() => {}
            _ => runs.push((bytes.to_vec(), is_word)),
        };
        for chunk in text.utf8_chunks() {
            for passage in chunk.valid().split_inclusive('\0') {
                let (passage, nul) = passage.split_at(passage.trim_end_matches('\0').len());
                if profile == TokenizerProfile::Auto {
                    for (part, is_word) in slow_parts(passage) {
                        add(part.as_bytes(), is_word);
                    }
                } else if profile == TokenizerProfile::Uax29 {
                    for segment in passage.split_word_bounds() {
                        add(segment.as_bytes(), segment.chars().any(is_word));
                    }
                } else {
                    for c in passage.chars() {
                        add(c.encode_utf8(&mut [0; 4]).as_bytes(), is_word(c));
                    }
                }
                add(nul.as_bytes(), false);
            }
            add(chunk.invalid(), false);
        }
        runs.into_iter().flat_map(|(run, is_word)| slow_split(&run, is_word)).collect()
    }

    fn slow_split(run: &[u8], is_word: bool) -> Vec<(Vec<u8>, bool)> {
        let mut tokens = vec![Vec::new()];
        let text = if is_word { std::str::from_utf8(run).unwrap() } else { "" };
        let chars = text.char_indices().map(|(at, c)| &run[at..at + c.len_utf8()]);
        let bytes = run[text.len()..].chunks(1);
        for unit in chars.chain(bytes) {
            if tokens.last().unwrap().len() + unit.len() > MAX_TOKEN_BYTES {
                tokens.push(Vec::new());
            }
            tokens.last_mut().unwrap().extend_from_slice(unit);
        }
        tokens.into_iter().map(|token| (token, is_word)).collect()
    }

    pub(crate) fn fast_tokens(profile: TokenizerProfile, text: &[u8]) -> Vec<(Vec<u8>, bool)> {
        let mut tokens = Vec::new();
        for_each_token(profile, text, |token| tokens.push((token.bytes.to_vec(), token.is_word)));
        tokens
    }

    fn words(profile: TokenizerProfile, text: &str) -> Vec<String> {
        let tokens = fast_tokens(profile, text.as_bytes());
        let words = tokens.into_iter().filter(|(_, is_word)| *is_word);
        words.map(|(bytes, _)| String::from_utf8(bytes).unwrap()).collect()
    }

    /// Returns the tokens of the spaceless model, computed from the tiling tokens.
    fn slow_stored(profile: TokenizerProfile, text: &[u8]) -> Vec<Span> {
        let mut tokens = vec![Span { start: 0, end: 0, is_word: false }];
        for (bytes, is_word) in slow_tokens(profile, text) {
            let start = tokens[tokens.len() - 1].end;
            tokens.push(Span { start, end: start + bytes.len(), is_word });
        }
        let mut stored = Vec::new();
        for idx in 1..tokens.len() {
            let before = tokens[idx - 1];
            let token = tokens[idx];
            let word_follows = tokens.get(idx + 1).is_some_and(|next| next.is_word);
            let is_blank = !token.is_word && &text[token.start..token.end] == b" ";
            if before.is_word && token.is_word {
                stored.push(Span { end: token.start, is_word: false, ..token });
            }
            if !(is_blank && before.is_word && word_follows) {
                stored.push(token);
            }
        }
        stored
    }

    fn fast_stored(profile: TokenizerProfile, text: &[u8], from: usize) -> Vec<Span> {
        let after_word = from > 0;
        let mut stored = Vec::new();
        for_each_stored(profile, text, from, after_word, |span| stored.push(span));
        stored
    }

    /// Generates bytes that combine in difficult ways: letters and joiners of several lengths,
    /// blanks, faults, and long ASCII runs that cross block borders.
    pub(crate) fn odd_text() -> impl Strategy<Value = Vec<u8>> {
        let unit = prop_oneof![
            4 => prop::sample::select(vec![
                " ", " ", "  ", "\n", "\t", "\r\n", "a", "Z", "word", "_", "9", "3.14", "don't", ":",
                ".", ", ", "\0", "é", "e\u{301}", "ſ", "ß", "日本", "カタカナ", "ไทย", "한국", "\u{1112}\u{1161}\u{11ab}", "👩‍👩‍👧", "🇦🇧🇨",
                "\u{200d}", "\u{ad}", "\u{a0}", "\u{2003}", "\u{345}", "²", "½", "𝒳", "\u{10ffff}",
                "\u{85}", "\u{3000}", "…", "\u{feff}", "\u{2060}", "か\u{3099}", "ー",
            ]).prop_map(|text| text.as_bytes().to_vec()),
            1 => prop::collection::vec(any::<u8>(), 0..6),
            1 => (0_usize..70).prop_map(|len| vec![b'x'; len]),
            1 => (0_usize..70).prop_map(|len| vec![b'-'; len]),
            1 => any::<char>().prop_map(|c| c.to_string().into_bytes()),
            1 => any::<char>().prop_map(|c| c.to_string().into_bytes()[1..].to_vec()),
        ];
        prop::collection::vec(unit, 0..60).prop_map(|units| units.concat())
    }

    pub(crate) fn any_profile() -> impl Strategy<Value = TokenizerProfile> {
        prop::sample::select(TokenizerProfile::ALL.to_vec())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn tokens_agree_with_the_definition(text in odd_text(), profile in any_profile()) {
            let tokens = fast_tokens(profile, &text);
            let tiles: Vec<u8> = tokens.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
            prop_assert_eq!(tiles, &text[..]);
            prop_assert_eq!(tokens, slow_tokens(profile, &text));
        }

        #[test]
        fn any_bytes_tile(text in prop::collection::vec(any::<u8>(), 0..300),
                          profile in any_profile()) {
            let tokens = fast_tokens(profile, &text);
            let tiles: Vec<u8> = tokens.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
            prop_assert_eq!(tiles, &text[..]);
            for (bytes, is_word) in tokens {
                prop_assert!(!bytes.is_empty());
                prop_assert!(!is_word || std::str::from_utf8(&bytes).is_ok_and(|w| !w.contains('\0')));
            }
        }

        #[test]
        fn words_are_matches_of_the_regex_crate(text in "(\\PC|[ -~]|\\s|\\w){0,80}") {
            let regex = regex::Regex::new(r"\w+").unwrap();
            let matches: Vec<_> = regex.find_iter(&text).map(|found| found.as_str()).collect();
            prop_assert_eq!(words(TokenizerProfile::Word, &text), matches);
            let split: Vec<_> = text.split(|c: char| c.is_whitespace() || c == '\0')
                .filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(words(TokenizerProfile::Whitespace, &text), split);
        }

        #[test]
        fn stored_tokens_follow_the_spaceless_model(text in odd_text(), profile in any_profile()) {
            prop_assert_eq!(fast_stored(profile, &text, 0), slow_stored(profile, &text));
        }

        #[test]
        fn cuts_change_nothing(text in odd_text(), profile in any_profile(), from in 0_usize..300) {
            let Some(cut) = next_cut(profile, &text, from) else { return Ok(()) };
            prop_assert!(cut >= from && cut > 0 && cut < text.len());
            let mut parts = fast_stored(profile, &text[..cut], 0);
            parts.extend(fast_stored(profile, &text, cut));
            prop_assert_eq!(parts, fast_stored(profile, &text, 0));
        }
    }

    #[test]
    fn each_profile_has_its_words() {
        let text = "I don't know… x_1, 3.14 日本語 e\u{301}t\u{e9} _ ½";
        let word = ["I", "don", "t", "know", "x_1", "3", "14", "日本語", "e\u{301}t\u{e9}", "_"];
        assert_eq!(words(TokenizerProfile::Word, text), word);
        let auto = ["I", "don", "t", "know", "x_1", "3", "14", "日", "本", "語", "e\u{301}t\u{e9}", "_"];
        assert_eq!(words(TokenizerProfile::Auto, text), auto);
        let uax29 = ["I", "don't", "know", "x_1", "3.14", "日", "本", "語", "e\u{301}t\u{e9}", "½"];
        assert_eq!(words(TokenizerProfile::Uax29, text), uax29);
        let whitespace: Vec<_> = text.split_whitespace().collect();
        assert_eq!(words(TokenizerProfile::Whitespace, text), whitespace);
    }

    #[test]
    fn invalid_bytes_and_nul_are_separators() {
        for profile in TokenizerProfile::ALL {
            let tokens = fast_tokens(profile, b"a\xff\xe2\x82b\0c\xf0\x9f\x98");
            let expected: [(&[u8], bool); 6] = [
                (b"a", true),
                (b"\xff\xe2\x82", false),
                (b"b", true),
                (b"\0", false),
                (b"c", true),
                (b"\xf0\x9f\x98", false),
            ];
            let expected = expected.map(|(bytes, is_word)| (bytes.to_vec(), is_word));
            assert_eq!(tokens, expected, "{profile}");
        }
    }

    #[test]
    fn long_tokens_are_split_at_char_boundaries() {
        let text = format!("{} {}{}", "x".repeat(MAX_TOKEN_BYTES), "y", "é".repeat(40_000));
        let tokens = fast_tokens(TokenizerProfile::Word, text.as_bytes());
        let lens: Vec<_> = tokens.iter().map(|(bytes, _)| bytes.len()).collect();
        assert_eq!(lens, [MAX_TOKEN_BYTES, 1, MAX_TOKEN_BYTES - 1, 80_001 - MAX_TOKEN_BYTES + 1]);
        assert!(tokens[3].1);
        let blanks = vec![0xFF; 2 * MAX_TOKEN_BYTES + 1];
        let lens: Vec<_> = fast_tokens(TokenizerProfile::Uax29, &blanks).iter().map(|(bytes, _)| bytes.len()).collect();
        assert_eq!(lens, [MAX_TOKEN_BYTES, MAX_TOKEN_BYTES, 1]);
    }

    #[test]
    fn a_mebibyte_without_a_blank_is_cut_like_the_definition() {
        for profile in TokenizerProfile::ALL {
            for unit in ["aB3", "日本", "é-", "\u{0}", "カ"] {
                let text = unit.repeat((1 << 20) / unit.len()).into_bytes();
                assert_eq!(fast_tokens(profile, &text), slow_tokens(profile, &text), "{profile}");
                let stored = slow_stored(profile, &text);
                assert_eq!(fast_stored(profile, &text, 0), stored, "{profile} {unit}");
                assert_eq!(next_cut(profile, &text, 0), None);
            }
        }
    }

    #[test]
    fn every_character_has_the_class_of_the_regex_crate() {
        let text: String = (0..=u32::from(char::MAX)).filter_map(char::from_u32).collect();
        let mut end = 0;
        let mut class_ends = Vec::new();
        for_each_token(TokenizerProfile::Word, text.as_bytes(), |token| {
            end += token.bytes.len();
            class_ends.push((end, token.is_word));
        });
        for (at, c) in text.char_indices() {
            let token_idx = class_ends.partition_point(|(end, _)| *end <= at);
            assert_eq!(class_ends[token_idx].1, regex_syntax::is_word_character(c), "{c:?}");
        }
    }

    #[test]
    fn the_recorded_unicode_version_is_that_of_the_tables() {
        // U+105C0 is a letter since 16.0, U+10940 since 17.0.
        assert!(regex_syntax::is_word_character('\u{105c0}'));
        assert!(!regex_syntax::is_word_character('\u{10940}'), "raise UNICODE_VERSION");
        assert_eq!(TokenizerProfile::Word.unicode_version(), UNICODE_VERSION);
        assert_eq!(TokenizerProfile::Whitespace.unicode_version(), char::UNICODE_VERSION);
    }

    #[test]
    fn names_and_numbers_come_back() {
        for profile in TokenizerProfile::ALL {
            assert_eq!(profile.to_string().parse::<TokenizerProfile>().unwrap(), profile);
            assert_eq!(TokenizerProfile::from_u8(profile.as_u8()), Some(profile));
        }
        assert_eq!(TokenizerProfile::from_u8(4), None);
        assert_eq!(TokenizerProfile::default(), TokenizerProfile::Auto);
        let fault = "words".parse::<TokenizerProfile>().unwrap_err();
        assert!(matches!(fault, Error::InvalidArgument { name: "tokenizer", .. }));
    }

    fn tokens(profile: TokenizerProfile, text: &[u8]) -> Vec<(Vec<u8>, bool)> {
        let mut tokens = Vec::new();
        for_each_token(profile, text, |token| tokens.push((token.bytes.to_vec(), token.is_word)));
        tokens
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn tokens_are_the_same_on_both_sides_in_any_surroundings(
            before in odd_text(), seen in odd_text(), behind in odd_text(),
            shown in any::<(prop::sample::Index, prop::sample::Index)>(),
            profile in any_profile(),
        ) {
            let start = shown.0.index(seen.len() + 1);
            let end = shown.1.index(seen.len() + 1);
            let seen = &seen[start.min(end)..start.max(end)];
            let whole = [&before, seen, &behind].concat();
            for cut in (1..seen.len()).filter(|&at| is_cut(profile, seen, at)) {
                let (left, right) = whole.split_at(before.len() + cut);
                let apart = [tokens(profile, left), tokens(profile, right)].concat();
                prop_assert_eq!(tokens(profile, &whole), apart);
            }
        }
    }

    #[test]
    fn cuts_are_where_the_header_draws_them() {
        let seen = "wer loss, 日".as_bytes();
        let cuts = |profile, seen| {
            (1..usize::MAX).take(20).filter(move |&at| at < <[u8]>::len(seen) && is_cut(profile, seen, at))
        };
        assert!(cuts(TokenizerProfile::Word, seen).eq([3, 4, 8, 10]));
        assert!(cuts(TokenizerProfile::Auto, seen).eq([3, 4, 8, 10]));
        assert!(cuts(TokenizerProfile::Auto, "a\u{ad}b\u{ad} c".as_bytes()).eq([7]));
        assert!(cuts(TokenizerProfile::Whitespace, seen).eq([3, 4, 9, 10]));
        assert!(cuts(TokenizerProfile::Uax29, seen).eq([3]));
        assert!(cuts(TokenizerProfile::Uax29, "日。\n本".as_bytes()).eq([7]));
        assert_eq!(first_cut(TokenizerProfile::Word, seen), Some(3));
        assert_eq!(last_cut(TokenizerProfile::Word, seen), Some(10));
        // The last character is not completely visible.
        assert_eq!(last_cut(TokenizerProfile::Word, &seen[..12]), Some(8));
        assert_eq!(last_cut(TokenizerProfile::Word, b"abc"), None);
        assert_eq!(first_cut(TokenizerProfile::Word, b""), None);
    }
}
