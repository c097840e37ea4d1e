//! Answers computed in the slow, obvious way from the bytes of the documents. The tokenizers are
//! not those of the crate (they use the `regex` crate and `unicode-segmentation`), and there is no
//! grammar and no decoder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::bytes::Regex;
use tadoc::text::TokenizerProfile;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use crate::documents::Document;

/// Maximum bytes of a word. A longer word counts as several. This is a contract of the crate, so
/// the number is repeated here.
const MAX_WORD_BYTES: usize = 65_536;

/// A word of a document and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<'a> {
    pub text: &'a str,
    pub byte_offset: usize,
}

/// An occurrence that a query matches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    pub doc_id: u64,
    pub byte_offset: u64,
    pub byte_len: u64,
    pub word_index: u64,
}

/// Returns the words of a document, in order.
pub fn words(profile: TokenizerProfile, text: &[u8]) -> Vec<Word<'_>> {
    // Neither pattern matches invalid UTF-8, as the Unicode classes of the `regex` crate never do.
    static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\w+").unwrap());
    static AUTO: LazyLock<Regex> = LazyLock::new(|| Regex::new(&auto_pattern()).unwrap());
    static NOT_BLANK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[^\s\x00]+").unwrap());
    let runs: Vec<(usize, &[u8])> = match profile {
        TokenizerProfile::Auto => AUTO.find_iter(text).map(|m| (m.start(), m.as_bytes())).collect(),
        TokenizerProfile::Word => WORD.find_iter(text).map(|m| (m.start(), m.as_bytes())).collect(),
        TokenizerProfile::Whitespace => NOT_BLANK.find_iter(text).map(|m| (m.start(), m.as_bytes())).collect(),
        TokenizerProfile::Uax29 => uax29_runs(text),
    };
    runs.into_iter().flat_map(|(start, run)| split(start, std::str::from_utf8(run).unwrap())).collect()
}

/// Returns the pattern of the words of profile `auto`: a character of a script without blanks and its marks, or other
/// characters of words, also with invisible marks between them.
fn auto_pattern() -> String {
    let scripts =
        ["Han", "Hira", "Kana", "Bopo", "Hang", "Thai", "Laoo", "Khmr", "Mymr", "Tale", "Talu", "Lana", "Tavt", "Ahom"];
    let scripts: String = scripts.iter().map(|script| format!(r"\p{{sc={script}}}")).collect();
    let alone = format!(r"[[{scripts}ーｰﾞﾟ〱-〵〼]&&\w--[\p{{M}}\p{{Nd}}\x{{1160}}-\x{{11FF}}\x{{D7B0}}-\x{{D7FF}}]]");
    let letter = format!(r"[\w--{alone}]");
    let invisible = r"[\x{AD}\x{200E}\x{200F}\x{2060}\x{FEFF}]";
    format!(
        r"{alone}[\p{{M}}\p{{Join_Control}}\x{{1160}}-\x{{11FF}}\x{{D7B0}}-\x{{D7FF}}]*|{letter}+(?:{invisible}+{letter}+)*"
    )
}

/// Returns the parts between word boundaries that have a letter or digit, of each run of valid
/// UTF-8.
fn uax29_runs(text: &[u8]) -> Vec<(usize, &[u8])> {
    let start_of = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
    let passages = text.utf8_chunks().flat_map(|chunk| chunk.valid().split('\0'));
    let segments = passages.flat_map(|passage| passage.split_word_bounds());
    segments
        .filter(|segment| segment.chars().any(char::is_alphanumeric))
        .map(|segment| (start_of(segment), segment.as_bytes()))
        .collect()
}

/// Splits a word into parts of at most [`MAX_WORD_BYTES`], between characters.
fn split(mut byte_offset: usize, mut rest: &str) -> Vec<Word<'_>> {
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let len = rest.floor_char_boundary(MAX_WORD_BYTES);
        pieces.push(Word { text: &rest[..len], byte_offset });
        (byte_offset, rest) = (byte_offset + len, &rest[len..]);
    }
    pieces
}

/// Counts the occurrences of each word.
pub fn word_count(profile: TokenizerProfile, documents: &[Document]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for word in documents.iter().flat_map(|(_, text)| words(profile, text)) {
        *counts.entry(word.text.to_owned()).or_default() += 1;
    }
    counts
}

/// Returns the documents that contain each word, in ascending order.
pub fn inverted_index(profile: TokenizerProfile, documents: &[Document]) -> BTreeMap<String, Vec<u64>> {
    let mut index: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (doc_id, (_, text)) in documents.iter().enumerate() {
        for word in words(profile, text) {
            let doc_ids = index.entry(word.text.to_owned()).or_default();
            if doc_ids.last() != Some(&(doc_id as u64)) {
                doc_ids.push(doc_id as u64);
            }
        }
    }
    index
}

/// Returns all hits of all items, in the documents that contain every item. Any separator may
/// stand between the words.
pub fn search(profile: TokenizerProfile, documents: &[Document], items: &BTreeSet<Vec<String>>) -> BTreeSet<Hit> {
    let mut hits = BTreeSet::new();
    for (doc_id, (_, text)) in (0..).zip(documents) {
        let words = words(profile, text);
        let by_item: Vec<_> = items.iter().map(|item| hits_of(doc_id, &words, item)).collect();
        if by_item.iter().all(|hits| !hits.is_empty()) {
            hits.extend(by_item.into_iter().flatten());
        }
    }
    hits
}

/// Returns the texts by which `word` is found: composed, decomposed and as it is, with each apostrophe for all of its own.
fn spellings(word: &str) -> BTreeSet<String> {
    const APOSTROPHES: [&str; 3] = ["'", "\u{2019}", "\u{2bc}"];
    let forms = [word.to_owned(), word.nfc().collect(), word.nfd().collect()];
    let with = |form: &String, apostrophe: &str| {
        APOSTROPHES.iter().fold(form.clone(), |text, other| text.replace(other, apostrophe))
    };
    let replaced = forms.iter().flat_map(|form| APOSTROPHES.map(|apostrophe| with(form, apostrophe)));
    replaced.chain(forms.clone()).collect()
}

fn hits_of(doc_id: u64, words: &[Word<'_>], item: &[String]) -> Vec<Hit> {
    let item: Vec<BTreeSet<String>> = item.iter().map(|word| spellings(word)).collect();
    let matches = |window: &&[Word<'_>]| window.iter().zip(&item).all(|(word, asked)| asked.contains(word.text));
    let windows = words.windows(item.len());
    let indexed = windows.enumerate().filter(|(_, window)| matches(window));
    let hit = |(word_index, window): (usize, &[Word<'_>])| {
        let (first, last) = (window[0], window[window.len() - 1]);
        let end = last.byte_offset + last.text.len();
        Hit {
            doc_id,
            byte_offset: first.byte_offset as u64,
            byte_len: (end - first.byte_offset) as u64,
            word_index: word_index as u64,
        }
    };
    indexed.map(hit).collect()
}
