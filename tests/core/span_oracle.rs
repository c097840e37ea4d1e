//! Tests of repeated spans against an oracle that compares every window of words with every earlier
//! one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::prelude::*;
use tadoc::analytics::{RepeatedSpan, RepeatedSpans, repeated_spans};
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::OpenLimits;
use tadoc::text::TokenizerProfile;
use tadoc::{Corpus, Error};
use testkit::naive::{Plain, PlainWord};
use testkit::scrambled::{self, bomb, doubled, recipes};

use crate::parts::Parts;

/// Memory limit in bytes that is larger than any of these tests needs.
const AMPLE: u64 = 1 << 30;

/// A window: its document, its words, and its place in words from the start of the corpus.
struct Window<'a> {
    words: Vec<&'a str>,
    place: usize,
}

/// Finds the spans by the definition, O(windows²).
fn slow_spans(plain: &Plain, min_words: usize) -> Vec<RepeatedSpan> {
    let mut windows = Vec::new();
    // Document, first and last byte of each word.
    let mut places: Vec<(u64, u64, u64)> = Vec::new();
    for (doc_id, words) in (0..).zip(&plain.words) {
        for (at, word) in words.iter().enumerate() {
            let start = word.byte_offset;
            if let Some(window) = words.get(at..).and_then(|rest| rest.get(..min_words)) {
                let words = window.iter().map(|word| word.text.as_str()).collect();
                windows.push(Window { words, place: places.len() });
            }
            places.push((doc_id, start, start + word.text.len() as u64));
        }
        // Words of two documents are no neighbours.
        places.push((doc_id, 0, 0));
    }
    let mut firsts = BTreeMap::new();
    for window in &windows {
        let first = windows.iter().find(|other| other.words == window.words).unwrap();
        if first.place + min_words <= window.place {
            firsts.insert(window.place, first.place);
        }
    }
    let spans = joined(firsts.values().copied().collect(), min_words);
    let copies = joined(firsts.keys().copied().collect(), min_words);
    let mut rows: Vec<(Range<usize>, u64, u64)> =
        spans.iter().zip(0..).map(|(words, span)| (words.clone(), span, 0)).collect();
    let mut num_copies = vec![0; spans.len()];
    for words in copies {
        let span_of = |first: &usize| spans.iter().position(|span| span.contains(first)).unwrap();
        let mut num_windows = vec![0; spans.len()];
        firsts.range(words.clone()).for_each(|(_, first)| num_windows[span_of(first)] += 1);
        let most = *num_windows.iter().max().unwrap();
        let span = num_windows.iter().position(|&num| num == most).unwrap();
        num_copies[span] += 1;
        rows.push((words, span as u64, num_copies[span]));
    }
    rows.sort_by_key(|(words, ..)| words.start);
    let row = |(words, span, copy): (Range<usize>, u64, u64)| {
        let ((doc_id, byte_offset, _), (_, _, end)) = (places[words.start], places[words.end - 1]);
        let byte_len = end - byte_offset;
        let num_words = words.len() as u64;
        RepeatedSpan { doc_id, byte_offset, byte_len, num_words, span, copy }
    };
    rows.into_iter().map(row).collect()
}

/// Returns the stretches of words of windows at `places`.
fn joined(places: BTreeSet<usize>, min_words: usize) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for place in places {
        match all.last_mut().filter(|last| place <= last.end) {
            Some(last) => last.end = place + min_words,
            None => all.push(place..place + min_words),
        }
    }
    all
}

/// Returns the spans of a corpus in parts.
fn spans_of(parts: &Parts, min_words: u64, max_memory_bytes: u64) -> Vec<RepeatedSpan> {
    let spans = RepeatedSpans::find(parts, min_words, max_memory_bytes).unwrap();
    let rows = |(at, part)| spans.rows(at, part, spans.for_part(at));
    parts.0.iter().enumerate().flat_map(rows).collect()
}

/// Checks what a user relies on: rows are in order, copies share no byte, and when they are cut, no two
/// windows without overlap in the pieces that are left have the same words, and no word is lost.
fn check_cuts(plain: &Plain, rows: &[RepeatedSpan], min_words: usize) {
    assert!(rows.is_sorted_by_key(|row| (row.doc_id, row.byte_offset)));
    let copies: Vec<_> = rows.iter().filter(|row| row.copy > 0).collect();
    for pair in copies.windows(2) {
        let end = (pair[0].doc_id, pair[0].byte_offset + pair[0].byte_len);
        assert!(end <= (pair[1].doc_id, pair[1].byte_offset), "{pair:?}");
    }
    let is_cut = |doc_id: u64, word: &PlainWord| {
        let covers = |row: &&RepeatedSpan| {
            let bytes = row.byte_offset..row.byte_offset + row.byte_len;
            row.doc_id == doc_id && bytes.contains(&word.byte_offset)
        };
        copies.iter().any(covers)
    };
    let (mut place, mut firsts) = (0, BTreeMap::<Vec<&str>, usize>::new());
    let mut words = BTreeSet::new();
    let mut words_left = BTreeSet::new();
    for (doc_id, all) in (0..).zip(&plain.words) {
        words.extend(all.iter().map(|word| &word.text));
        let pieces = all.split_inclusive(|word| is_cut(doc_id, word));
        for piece in pieces {
            let (last, before) = piece.split_last().unwrap();
            let left = if is_cut(doc_id, last) { before } else { piece };
            words_left.extend(left.iter().map(|word| &word.text));
            for (at, window) in left.windows(min_words).enumerate() {
                let window = window.iter().map(|word| word.text.as_str()).collect();
                let first = *firsts.entry(window).or_insert(place + at);
                assert!(first + min_words > place + at, "{rows:?}");
            }
            place += piece.len();
        }
    }
    assert_eq!(words, words_left);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn spans_are_those_of_the_definition(
        recipe in recipes(),
        min_words in prop::sample::select(vec![1, 2, 3, 5, 8, 17, 1_000]),
    ) {
        let case = recipe.cook();
        let rows = repeated_spans(&case.corpus, min_words, AMPLE).unwrap();
        prop_assert_eq!(&rows, &slow_spans(&case.plain, min_words as usize));
        prop_assert_eq!(&spans_of(&Parts::of(&case.corpus), min_words, AMPLE), &rows);
        check_cuts(&case.plain, &rows, min_words as usize);
    }

    /// Few words, many times: windows that overlap themselves, and runs that change their source.
    #[test]
    fn spans_of_few_words_are_those_of_the_definition(
        docs in prop::collection::vec(prop::collection::vec(0..3_usize, 0..30), 1..5),
        repeats in 1..5_usize,
        min_words in 1..12_u64,
        seed in any::<u64>(),
    ) {
        const WORDS: [&str; 3] = ["a", "b", "c"];
        let text = |doc: &Vec<usize>| {
            doc.repeat(repeats).iter().map(|&word| WORDS[word]).collect::<Vec<_>>().join(" ")
        };
        let texts = docs.iter().map(|doc| text(doc).into_bytes()).collect();
        let case = scrambled::case_of(TokenizerProfile::Word, texts, seed);
        let rows = repeated_spans(&case.corpus, min_words, AMPLE).unwrap();
        prop_assert_eq!(&rows, &slow_spans(&case.plain, min_words as usize));
        check_cuts(&case.plain, &rows, min_words as usize);
    }
}

fn corpus_of(texts: impl IntoIterator<Item = String>, block_bytes: usize) -> Corpus {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for text in texts {
        builder.push_document("text", text.as_bytes()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    Corpus::from_bytes("spans.tadoc", &file, &OpenLimits::default()).unwrap().1
}

/// Words that differ, from `from` to `to`.
fn numbers(from: usize, to: usize) -> String {
    (from..to).map(|at| format!("w{at} ")).collect()
}

/// A table too small for all windows: they are divided into classes. Two parts are compared.
#[test]
fn little_memory_gives_the_same_rows() {
    let texts = [numbers(0, 30_000), "between".into(), numbers(10_000, 40_000), numbers(0, 9_000)];
    let corpus = corpus_of(texts, 100_000);
    assert!(corpus.segments().len() > 3);
    let rows = repeated_spans(&corpus, 50, AMPLE).unwrap();
    let facts = |row: &RepeatedSpan| (row.doc_id, row.num_words, row.span, row.copy);
    let expected = [(0, 9_000, 0, 0), (0, 20_000, 1, 0), (2, 20_000, 1, 1), (3, 9_000, 0, 1)];
    assert_eq!(rows.iter().map(facts).collect::<Vec<_>>(), expected);
    assert_eq!(spans_of(&Parts::of(&corpus), 50, 1 << 20), rows);
    assert_eq!(repeated_spans(&corpus, 50, 1 << 20).unwrap(), rows);
    let refused = repeated_spans(&corpus, 50, 20_000).unwrap_err();
    assert!(matches!(refused, Error::Capacity { .. }), "{refused}");
}

/// A line that is repeated takes no longer than other text, and its first copy stays. So it is of two
/// words, 2^21 times.
#[test]
fn periodic_text_is_linear() {
    let rows = repeated_spans(&doubled(21), 5, AMPLE).unwrap();
    let facts: Vec<_> = rows.iter().map(|row| (row.copy, row.byte_offset, row.num_words)).collect();
    assert_eq!(facts, [(0, 0, 6), (1, 12, (1 << 22) - 6)]);
    let line = "the same line of nine words over and over\n";
    let corpus = corpus_of([line.repeat(200_000)], 1 << 27);
    let rows = repeated_spans(&corpus, 50, AMPLE).unwrap();
    let copies: Vec<_> = rows.iter().filter(|row| row.copy > 0).collect();
    let num_words: u64 = copies.iter().map(|row| row.num_words).sum();
    assert_eq!((copies.len(), num_words), (1, 9 * 200_000 - 54));
    assert_eq!(copies[0].byte_offset, 6 * line.len() as u64);
}

#[test]
fn arguments_are_checked() {
    let corpus = corpus_of([String::new(), "... !!".into()], 1 << 20);
    assert_eq!(repeated_spans(&corpus, 1, AMPLE).unwrap(), []);
    assert_eq!(repeated_spans(&corpus, u64::MAX, AMPLE).unwrap(), []);
    let refused = repeated_spans(&corpus, 0, AMPLE).unwrap_err();
    assert!(matches!(refused, Error::InvalidArgument { .. }), "{refused}");
    let refused = repeated_spans(&bomb(), 5, AMPLE).unwrap_err();
    assert!(matches!(refused, Error::Capacity { .. }), "{refused}");
}
