//! Tests of repeated phrases against an oracle that reads every sequence of words of the plain
//! text.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use tadoc::Error;
use tadoc::analytics::{DocSelection, RepeatedPhrases, Vocabulary, repeated_phrases};
use tadoc::text::{MAX_TOKEN_BYTES, TokenizerProfile};
use testkit::scrambled::{self, doubled, recipes};

/// Memory limit in bytes that is larger than any of these tests needs.
const AMPLE: u64 = 1 << 30;

type Row<'a> = (Vec<&'a str>, u64);

/// Number of occurrences of a sequence, and the words before and behind them.
#[derive(Default)]
struct Occurrences<'a> {
    count: u64,
    before: BTreeSet<Option<&'a str>>,
    behind: BTreeSet<Option<&'a str>>,
}

/// Returns true if two neighbours differ. A border, `None`, differs from itself.
fn differ(neighbours: &BTreeSet<Option<&str>>) -> bool {
    neighbours.len() > 1 || neighbours.contains(&None)
}

/// Largest period of a phrase that is dropped.
const MAX_PERIOD: usize = 256;

/// Returns true if `words` are two or more copies of their beginning, the last one whole or cut.
fn is_periodic(words: &[&str]) -> bool {
    let mut periods = 1..=(words.len() / 2).min(MAX_PERIOD);
    periods.any(|period| words[period..] == words[..words.len() - period])
}

fn read_phrases<'a>(docs: &[Vec<&'a str>], min_words: usize, min_count: u64) -> Vec<Row<'a>> {
    let mut sequences: BTreeMap<Vec<&str>, Occurrences> = BTreeMap::new();
    for words in docs {
        for start in 0..words.len() {
            for end in start + min_words..=words.len() {
                let occurrences = sequences.entry(words[start..end].to_vec()).or_default();
                occurrences.count += 1;
                occurrences.before.insert(start.checked_sub(1).map(|before| words[before]));
                occurrences.behind.insert(words.get(end).copied());
            }
        }
    }
    sequences.retain(|words, occurrences| {
        occurrences.count >= min_count
            && differ(&occurrences.before)
            && differ(&occurrences.behind)
            && !is_periodic(words)
    });
    let mut rows: Vec<Row> = sequences.into_iter().map(|(words, occurrences)| (words, occurrences.count)).collect();
    // The sort is stable, so rows with the same cover stay in the order of their words.
    rows.sort_by_key(|(words, count)| Reverse(words.len() as u64 * count));
    rows
}

fn rows(phrases: &RepeatedPhrases) -> Vec<Row<'_>> {
    let word = |&row: &u32| phrases.vocabulary().word(row as usize);
    (0..phrases.len()).map(|row| (phrases.words(row).iter().map(word).collect(), phrases.count(row))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn phrases_are_those_of_reading(
        recipe in recipes(),
        min_words in prop::sample::select(vec![1, 2, 3, 5, 8, 17, 40, usize::MAX]),
        min_count in 2_u64..5,
        picks in any::<u8>(),
    ) {
        let case = recipe.cook();
        let texts = case.plain.words.iter();
        let docs: Vec<Vec<&str>> =
            texts.map(|words| words.iter().map(|word| word.text.as_str()).collect()).collect();
        if min_words < usize::MAX {
            let phrases = repeated_phrases(&case.corpus, min_words, min_count, AMPLE).unwrap();
            let expected = read_phrases(&docs, min_words, min_count);
            prop_assert_eq!(phrases.is_empty(), expected.is_empty());
            prop_assert_eq!(rows(&phrases), expected.clone());
            for (row, (words, _)) in expected.iter().enumerate() {
                let mut text = String::from("before ");
                phrases.append_text(row, usize::MAX, usize::MAX, &mut text);
                prop_assert_eq!(text, format!("before {}", words.join(" ")));
            }
        } else {
            prop_assert!(repeated_phrases(&case.corpus, min_words, min_count, AMPLE).unwrap().is_empty());
        }
        let picked: Vec<u64> = (0..docs.len() as u64).filter(|doc| picks >> doc & 1 == 1).collect();
        let picked_docs: Vec<_> = picked.iter().map(|&doc| docs[doc as usize].clone()).collect();
        let vocabulary = Arc::new(Vocabulary::new(&case.corpus).unwrap());
        let selection = DocSelection::list(picked).unwrap();
        let min_words = min_words.min(50);
        let phrases =
            RepeatedPhrases::with_vocabulary(vocabulary, &selection, min_words, min_count, AMPLE)
                .unwrap();
        prop_assert_eq!(rows(&phrases), read_phrases(&picked_docs, min_words, min_count));
    }

    /// Long runs of few words give large groups of suffixes and repeats that overlap themselves.
    #[test]
    fn phrases_of_few_words_are_those_of_reading(
        docs in prop::collection::vec(prop::collection::vec(0..3_usize, 0..40), 1..5),
        repeats in 1..4_usize,
        min_words in 1..12_usize,
        seed in any::<u64>(),
    ) {
        const WORDS: [&str; 3] = ["a", "b", "c"];
        let docs: Vec<Vec<&str>> = docs
            .iter()
            .map(|doc| doc.repeat(repeats).iter().map(|&word| WORDS[word]).collect())
            .collect();
        let texts = docs.iter().map(|doc| doc.join(" ").into_bytes()).collect();
        let case = scrambled::case_of(TokenizerProfile::Word, texts, seed);
        let phrases = repeated_phrases(&case.corpus, min_words, 2, AMPLE).unwrap();
        prop_assert_eq!(rows(&phrases), read_phrases(&docs, min_words, 2));
    }
}

/// Words of one byte stand beside words of 64 KiB, and one longer word is cut in two.
#[test]
fn long_words_are_repeated() {
    let longest = "x".repeat(MAX_TOKEN_BYTES);
    let word = |at: usize| match at % 7 {
        0 => longest.clone(),
        3 => format!("{longest}yy"),
        _ => char::from(b'a' + (at % 3) as u8).to_string(),
    };
    let text = |doc: usize| (doc..doc + 12).map(|at| word(at) + " ").collect::<String>();
    let docs = (0..4).map(|doc| text(3 * doc).into_bytes()).collect();
    let case = scrambled::case_of(TokenizerProfile::Word, docs, 5);
    let docs = case.plain.words.iter();
    let docs: Vec<Vec<&str>> = docs.map(|words| words.iter().map(|word| word.text.as_str()).collect()).collect();
    assert!(docs.iter().flatten().any(|&word| word == "yy"));
    for min_words in [1, 2, 5] {
        let phrases = repeated_phrases(&case.corpus, min_words, 2, AMPLE).unwrap();
        let expected = read_phrases(&docs, min_words, 2);
        assert!(!expected.is_empty() && rows(&phrases) == expected, "{min_words}");
        for (row, (words, _)) in expected.iter().enumerate() {
            let mut text = String::new();
            let mut cut = String::new();
            phrases.append_text(row, usize::MAX, usize::MAX, &mut text);
            assert!(text == words.join(" "), "{min_words}, {row}");
            phrases.append_text(row, usize::MAX, 1 << 16, &mut cut);
            let is_cut = text.len() > 1 << 16;
            assert_eq!((cut.ends_with('…'), cut.len() < 66_000), (is_cut, true), "{row}");
        }
    }
}

#[test]
fn what_does_not_fit_the_limit_is_refused() {
    for doublings in [20, 40, 60] {
        let refused = repeated_phrases(&doubled(doublings), 8, 2, 1 << 20).unwrap_err();
        assert!(matches!(refused, Error::Capacity { .. }), "{refused}");
    }
    let corpus = doubled(2);
    for (min_words, min_count) in [(0, 2), (8, 1), (8, 0)] {
        let invalid = repeated_phrases(&corpus, min_words, min_count, AMPLE).unwrap_err();
        assert!(matches!(invalid, Error::InvalidArgument { .. }), "{invalid}");
    }
}

/// A run of copies of one phrase is one row, unless the phrase is longer than the longest period. Long
/// texts are cut.
#[test]
fn a_run_is_the_phrase_that_repeats() {
    assert!(repeated_phrases(&doubled(15), 9, 2, AMPLE).unwrap().is_empty());
    let phrases = repeated_phrases(&doubled(15), 2, 2, AMPLE).unwrap();
    let num_words = 1 << 16;
    assert_eq!((phrases.len(), phrases.words(0).len(), phrases.count(0)), (1, 2, num_words / 2));
    let mut text = String::from("- ");
    phrases.append_text(0, usize::MAX, 2, &mut text);
    assert_eq!(text, "- a …");
    text.clear();
    phrases.append_text(0, 1, usize::MAX, &mut text);
    assert_eq!(text, "a …");
    text.clear();
    phrases.append_text(0, usize::MAX, 0, &mut text);
    assert_eq!(text, "…");
    assert_eq!(phrases.memory_bytes(), 4 * (num_words as usize + 1) + 12);
    for (period, is_dropped) in [(MAX_PERIOD, true), (MAX_PERIOD + 1, false)] {
        let line: String = (0..period).map(|word| format!("w{word} ")).collect();
        let text = format!("x {} y", line.repeat(4));
        let case = scrambled::case_of(TokenizerProfile::Word, vec![text.into_bytes()], 3);
        let phrases = repeated_phrases(&case.corpus, 5, 2, AMPLE).unwrap();
        let lens: Vec<usize> = (0..phrases.len()).map(|row| phrases.words(row).len()).collect();
        let expected = if is_dropped { vec![period] } else { vec![2 * period, 3 * period, period] };
        assert_eq!(lens, expected);
    }
}
