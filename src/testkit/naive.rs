//! Answers computed in the slow, obvious way from the bytes of the documents, one word after the other. The
//! tokenizers are not those of the crate (they use the `regex` crate and `unicode-segmentation`), and there is no
//! grammar, no decoder, and no segment.
//!
//! The functions over [`Plain`] and below it compare words as they are given. So they work on texts and on the ranks of
//! words, which compare faster in large corpora.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Regex, bytes};
use tadoc::query::Hit;
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

/// Returns the words of a document, in order.
pub fn words(profile: TokenizerProfile, text: &[u8]) -> Vec<Word<'_>> {
    // Neither pattern matches invalid UTF-8, as the Unicode classes of the `regex` crate never do.
    static WORD: LazyLock<bytes::Regex> = LazyLock::new(|| bytes::Regex::new(r"\w+").unwrap());
    static AUTO: LazyLock<bytes::Regex> = LazyLock::new(|| bytes::Regex::new(&auto_pattern()).unwrap());
    static NOT_BLANK: LazyLock<bytes::Regex> = LazyLock::new(|| bytes::Regex::new(r"[^\s\x00]+").unwrap());
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

/// Returns the texts by which `word` is found: composed, decomposed and as it is, with each apostrophe for all of its
/// own.
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
        let first = window[0];
        let last = window[window.len() - 1];
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

/// A word of a document with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainWord {
    pub text: String,
    pub byte_offset: u64,
    pub byte_len: u64,
}

/// The plain content of a corpus, for the oracles.
#[derive(Debug, Clone)]
pub struct Plain {
    pub docs: Vec<Vec<u8>>,
    /// Words of each document. If parts of a document were tokenized separately, so were these.
    pub words: Vec<Vec<PlainWord>>,
    pub profile: TokenizerProfile,
}

impl Plain {
    /// Splits whole documents into words with [`words`].
    pub fn from_documents(profile: TokenizerProfile, documents: &[Document]) -> Self {
        let placed = |word: Word<'_>| PlainWord {
            text: word.text.to_owned(),
            byte_offset: word.byte_offset as u64,
            byte_len: word.text.len() as u64,
        };
        let placed_words = |text| words(profile, text).into_iter().map(placed).collect();
        Self {
            docs: documents.iter().map(|(_, text)| text.clone()).collect(),
            words: documents.iter().map(|(_, text)| placed_words(text)).collect(),
            profile,
        }
    }

    /// Returns the words of each document as texts.
    pub fn texts(&self) -> Vec<Vec<&str>> {
        let texts = self.words.iter().map(|words| words.iter().map(|word| &word.text[..]).collect());
        texts.collect()
    }

    pub fn doc_ids(&self) -> Vec<u64> {
        (0..self.docs.len() as u64).collect()
    }
}

/// A document id, a word of the document, and its count there.
pub type Term = (u64, String, u64);

/// Counts the words of each document, ordered by document and word. Ids of missing documents give
/// no rows.
pub fn terms(plain: &Plain, docs: &[u64]) -> Vec<Term> {
    let mut rows = Vec::new();
    for &doc_id in docs {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let words = plain.words.get(doc_id as usize).into_iter().flatten();
        words.for_each(|word| *counts.entry(&word.text).or_default() += 1);
        rows.extend(counts.into_iter().map(|(word, count)| (doc_id, word.to_owned(), count)));
    }
    rows
}

/// Returns the first `top` rows of each document, ordered by `key` and then by word.
pub fn best<K: Ord>(rows: &[Term], top: usize, key: impl Fn(&Term) -> K) -> Vec<Term> {
    let mut best = Vec::new();
    for doc_rows in rows.chunk_by(|a, b| a.0 == b.0) {
        let mut doc_rows = doc_rows.to_vec();
        doc_rows.sort_by_key(|row| (key(row), row.1.clone()));
        best.extend(doc_rows.into_iter().take(top));
    }
    best
}

/// Sequences of words with their counts.
pub type Counts<W> = BTreeMap<Vec<W>, u64>;

/// Counts the sequences of `n` words in a document.
pub fn sequences_of<W: Ord + Copy>(words: &[W], n: usize) -> Counts<W> {
    let mut counts = Counts::new();
    words.windows(n).for_each(|window| *counts.entry(window.to_vec()).or_default() += 1);
    counts
}

/// Counts the sequences of `n` words in all documents.
pub fn sequences<W: Ord + Copy>(docs: &[Vec<W>], n: usize) -> Counts<W> {
    let mut all = Counts::new();
    for (sequence, count) in docs.iter().flat_map(|words| sequences_of(words, n)) {
        *all.entry(sequence).or_default() += count;
    }
    all
}

/// The ranked documents of each sequence: by falling count, then by id.
pub type Ranked<W> = BTreeMap<Vec<W>, BTreeSet<(Reverse<u64>, u64)>>;

pub fn ranked<W: Ord + Copy>(docs: &[Vec<W>], n: usize) -> Ranked<W> {
    let mut ranked = Ranked::new();
    for (doc_id, words) in (0..).zip(docs) {
        for (sequence, count) in sequences_of(words, n) {
            ranked.entry(sequence).or_default().insert((Reverse(count), doc_id));
        }
    }
    ranked
}

/// Counts pairs of words less than `window` words apart, with the smaller word first. Returns those
/// that occur at least `min_count` times.
pub fn pairs<W: Ord + Copy>(docs: &[Vec<W>], window: usize, min_count: u64) -> Counts<W> {
    let mut pairs = Counts::new();
    for words in docs {
        for i in 0..words.len() {
            for j in i + 1..words.len().min(i + window) {
                let pair = vec![words[i].min(words[j]), words[i].max(words[j])];
                *pairs.entry(pair).or_default() += 1;
            }
        }
    }
    pairs.retain(|_, count| *count >= min_count);
    pairs
}

/// A test that returns true if a word matches a pattern.
pub type Fits = Box<dyn Fn(&str) -> bool>;

/// Returns a test for words that match a pattern: a word, a wildcard or a regular expression.
pub fn fits(pattern: &str) -> Fits {
    let regex = match source_of(pattern) {
        Some(source) => whole(source),
        None => wildcard(pattern),
    };
    Box::new(move |word| regex.is_match(word))
}

/// Returns a test for words that match a pattern in any case.
pub fn fits_in_any_case(pattern: &str) -> Fits {
    let folded = in_any_case(pattern);
    if let Some(source) = source_of(pattern) {
        let regex = whole(&format!("(?i:{source})"));
        Box::new(move |word| regex.is_match(word))
    } else if is_wildcard(pattern) {
        let regex = wildcard(&folded);
        Box::new(move |word| regex.is_match(&folded_word(word).replace('ς', "σ")))
    } else {
        Box::new(move |word| folded_word(word) == folded)
    }
}

/// Folds a pattern, so that patterns that match the same words in any case become equal.
///
/// The two lower-case sigmas are unified in a wildcard, because the next letter decides between
/// them and a wildcard leaves it open.
pub fn in_any_case(pattern: &str) -> String {
    match pattern {
        regex if source_of(regex).is_some() => regex.to_owned(),
        wildcard if is_wildcard(wildcard) => {
            let folded: String = wildcard.chars().flat_map(char::to_lowercase).collect();
            folded.replace('ς', "σ").trim_matches('_').to_owned()
        }
        word => folded_word(word),
    }
}

/// Returns `word` in lower case, without the underscores around it if there is more than these.
fn folded_word(word: &str) -> String {
    let lower = word.to_lowercase();
    match lower.trim_matches('_') {
        "" => lower,
        bare => bare.to_owned(),
    }
}

fn source_of(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'))
}

fn is_wildcard(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

fn wildcard(pattern: &str) -> Regex {
    whole(&regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", "."))
}

fn whole(source: &str) -> Regex {
    Regex::new(&format!("^(?:{source})$")).unwrap()
}

/// Returns the hits of all items in documents that contain every item. An item is a sequence of
/// patterns.
pub fn hits(plain: &Plain, items: &[Vec<String>], fits: impl Fn(&str) -> Fits) -> Vec<Hit> {
    let distinct: BTreeSet<&Vec<String>> = items.iter().collect();
    let patterns = |item: &Vec<String>| item.iter().map(|pattern| fits(pattern)).collect();
    let by_item: Vec<Vec<Hit>> = distinct.into_iter().map(|item| hits_of_item(plain, patterns(item))).collect();
    let doc_ids = |hits: &Vec<Hit>| hits.iter().map(|hit| hit.doc_id).collect();
    let ids: Vec<BTreeSet<u64>> = by_item.iter().map(doc_ids).collect();
    let mut hits = by_item.concat();
    hits.retain(|hit| ids.iter().all(|ids| ids.contains(&hit.doc_id)));
    hits.sort();
    hits
}

fn hits_of_item(plain: &Plain, item: Vec<Fits>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (doc_id, placed) in (0..).zip(&plain.words) {
        for (word_index, window) in (0..).zip(placed.windows(item.len())) {
            if window.iter().zip(&item).all(|(word, fits)| fits(&word.text)) {
                let first = &window[0];
                let last = &window[window.len() - 1];
                let byte_len = last.byte_offset + last.byte_len - first.byte_offset;
                hits.push(Hit { doc_id, byte_offset: first.byte_offset, byte_len, word_index });
            }
        }
    }
    hits
}

/// Returns the text of `hit` and the text of `width` words before and after it: left, match, right.
pub fn context<'p>(plain: &'p Plain, hit: &Hit, width: usize) -> [&'p [u8]; 3] {
    let doc = &plain.docs[hit.doc_id as usize];
    let words = &plain.words[hit.doc_id as usize];
    let start = hit.byte_offset as usize;
    let end = (hit.byte_offset + hit.byte_len) as usize;
    let first = hit.word_index as usize;
    let behind = words.partition_point(|word| (word.byte_offset as usize) < end);
    let left = words[first.saturating_sub(width)].byte_offset as usize;
    let last = &words[words.len().min(behind + width) - 1];
    let right = (last.byte_offset + last.byte_len) as usize;
    [&doc[left..start], &doc[start..end], &doc[end..right]]
}

/// Returns the words of `width` before and after `hit`, nearest first: left, right.
pub fn context_words<'p>(plain: &'p Plain, hit: &Hit, width: usize) -> [Vec<&'p str>; 2] {
    let words = &plain.words[hit.doc_id as usize];
    let end = hit.byte_offset + hit.byte_len;
    let behind = words.partition_point(|word| word.byte_offset < end);
    let text = |word: &'p PlainWord| word.text.as_str();
    let left = words[..hit.word_index as usize].iter().rev().take(width).map(text).collect();
    [left, words[behind..].iter().take(width).map(text).collect()]
}

/// Counts the words of at most `left` before and `right` after each hit.
pub fn neighbours(plain: &Plain, hits: &[Hit], left: usize, right: usize) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for hit in hits {
        let [before, _] = context_words(plain, hit, left);
        let [_, after] = context_words(plain, hit, right);
        for word in before.into_iter().chain(after) {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Counts the hits of each document.
pub fn counts_by_document(hits: &[Hit]) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    hits.iter().for_each(|hit| *counts.entry(hit.doc_id).or_default() += 1);
    counts.into_iter().collect()
}
