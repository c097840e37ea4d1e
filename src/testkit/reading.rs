//! What the tasks answer by reading words one after the other: no grammar, no segments, no ids.
//!
//! Words are compared as they are given, so the same reading serves texts and their ranks, which are
//! faster to compare where there is much to read.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use tadoc::query::Hit;
use tadoc::text::TokenizerProfile;

use crate::documents::Document;
use crate::naive;

/// A word of a document, placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedWord {
    pub text: String,
    pub byte_offset: u64,
    pub byte_len: u64,
}

/// What a corpus was made from, as the oracles see it.
#[derive(Debug, Clone)]
pub struct Plain {
    pub docs: Vec<Vec<u8>>,
    /// Words of each document; where parts of a document were tokenized on their own, so are these.
    pub words: Vec<Vec<PlacedWord>>,
    pub profile: TokenizerProfile,
}

impl Plain {
    /// Whole documents, in words as [`naive::words`] finds them.
    pub fn of(profile: TokenizerProfile, documents: &[Document]) -> Self {
        let placed = |word: naive::Word<'_>| PlacedWord {
            text: word.text.to_owned(),
            byte_offset: word.byte_offset as u64,
            byte_len: word.text.len() as u64,
        };
        let words = |text| naive::words(profile, text).into_iter().map(placed).collect();
        Self {
            docs: documents.iter().map(|(_, text)| text.clone()).collect(),
            words: documents.iter().map(|(_, text)| words(text)).collect(),
            profile,
        }
    }

    /// The words of each document.
    pub fn texts(&self) -> Vec<Vec<&str>> {
        let texts =
            self.words.iter().map(|words| words.iter().map(|word| &word.text[..]).collect());
        texts.collect()
    }

    pub fn doc_ids(&self) -> Vec<u64> {
        (0..self.docs.len() as u64).collect()
    }
}

/// A document, a word of it and how often that occurs there.
pub type Term = (u64, String, u64);

/// By document, then word; nothing for a document that is not there.
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

/// The first `top` rows of each document by `key`, ties by word.
pub fn best<K: Ord>(rows: &[Term], top: usize, key: impl Fn(&Term) -> K) -> Vec<Term> {
    let mut best = Vec::new();
    for of_doc in rows.chunk_by(|a, b| a.0 == b.0) {
        let mut of_doc = of_doc.to_vec();
        of_doc.sort_by_key(|row| (key(row), row.1.clone()));
        best.extend(of_doc.into_iter().take(top));
    }
    best
}

/// Sequences of words and how often each occurs.
pub type Counts<W> = BTreeMap<Vec<W>, u64>;

/// The sequences of `n` words of a document.
pub fn sequences_of<W: Ord + Copy>(words: &[W], n: usize) -> Counts<W> {
    let mut counts = Counts::new();
    words.windows(n).for_each(|window| *counts.entry(window.to_vec()).or_default() += 1);
    counts
}

/// The sequences of `n` words of all documents.
pub fn sequences<W: Ord + Copy>(docs: &[Vec<W>], n: usize) -> Counts<W> {
    let mut all = Counts::new();
    for (sequence, count) in docs.iter().flat_map(|words| sequences_of(words, n)) {
        *all.entry(sequence).or_default() += count;
    }
    all
}

/// The documents of each sequence, as they rank: by count from the highest, then by id.
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

/// Pairs of words less than `window` words apart, the lesser first, that occur `min_count` times.
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

/// Whether a word is what a query asks for.
pub type Fits = Box<dyn Fn(&str) -> bool>;

/// The words that a word, wildcard or regular expression of a query asks for.
pub fn fits(pattern: &str) -> Fits {
    let regex = match source_of(pattern) {
        Some(source) => whole(source),
        None => wildcard(pattern),
    };
    Box::new(move |word| regex.is_match(word))
}

/// The same in any case.
pub fn fits_in_any_case(pattern: &str) -> Fits {
    let folded = in_any_case(pattern);
    if let Some(source) = source_of(pattern) {
        let regex = whole(&format!("(?i:{source})"));
        Box::new(move |word| regex.is_match(word))
    } else if is_wildcard(pattern) {
        let regex = wildcard(&folded);
        Box::new(move |word| regex.is_match(&word.to_lowercase().replace('ς', "σ")))
    } else {
        Box::new(move |word| word.to_lowercase() == folded)
    }
}

/// What two patterns have in common that ask for the same words in any case. What follows a sigma
/// says which one it is, and that a wildcard leaves open.
pub fn in_any_case(pattern: &str) -> String {
    match pattern {
        regex if source_of(regex).is_some() => regex.to_owned(),
        wildcard if is_wildcard(wildcard) => {
            let folded: String = wildcard.chars().flat_map(char::to_lowercase).collect();
            folded.replace('ς', "σ")
        }
        word => word.to_lowercase(),
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

/// Hits of all items, each a sequence of patterns, in documents that hold all of them.
pub fn hits(plain: &Plain, items: &[Vec<String>], fits: impl Fn(&str) -> Fits) -> Vec<Hit> {
    let distinct: BTreeSet<&Vec<String>> = items.iter().collect();
    let patterns = |item: &Vec<String>| item.iter().map(|pattern| fits(pattern)).collect();
    let by_item: Vec<Vec<Hit>> =
        distinct.into_iter().map(|item| hits_of_item(plain, patterns(item))).collect();
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
                let (first, last) = (&window[0], &window[window.len() - 1]);
                let byte_len = last.byte_offset + last.byte_len - first.byte_offset;
                hits.push(Hit { doc_id, byte_offset: first.byte_offset, byte_len, word_index });
            }
        }
    }
    hits
}

/// Left, match and right of `hit`.
pub fn context<'p>(plain: &'p Plain, hit: &Hit, width: usize) -> [&'p [u8]; 3] {
    let (doc, words) = (&plain.docs[hit.doc_id as usize], &plain.words[hit.doc_id as usize]);
    let (start, end) = (hit.byte_offset as usize, (hit.byte_offset + hit.byte_len) as usize);
    let first = hit.word_index as usize;
    let behind = words.partition_point(|word| (word.byte_offset as usize) < end);
    let left = words[first.saturating_sub(width)].byte_offset as usize;
    let last = &words[words.len().min(behind + width) - 1];
    let right = (last.byte_offset + last.byte_len) as usize;
    [&doc[left..start], &doc[start..end], &doc[end..right]]
}

/// How many of `hits` lie in each document.
pub fn counts_by_document(hits: &[Hit]) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    hits.iter().for_each(|hit| *counts.entry(hit.doc_id).or_default() += 1);
    counts.into_iter().collect()
}
