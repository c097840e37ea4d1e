//! Tests of sequences of words (by corpus, by document and ranked) and of pairs of near words,
//! against oracles that read the plain text.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use tadoc::analytics::{
    Cooccurrences, DocSelection, DocumentSequences, RankedInvertedIndex, SequenceCounts, Sequences, Traversal,
    Vocabulary, cooccurrence, ranked_inverted_index, sequence_count,
};
use tadoc::text::{TokenizerProfile, for_each_token};
use tadoc::{Corpus, Error};
use testkit::naive;
use testkit::scrambled::{self, doubled, recipes};

/// Memory limit in bytes that is larger than any of these tests needs.
const AMPLE: u64 = 1 << 30;

const WAYS: [Traversal; 4] = [Traversal::Auto, Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan];

fn vocabulary(corpus: &Corpus) -> Arc<Vocabulary> {
    Arc::new(Vocabulary::new(corpus).unwrap())
}

fn sequence(sequences: &Sequences, row: usize) -> Vec<&str> {
    sequences.words(row).map(|word| sequences.vocabulary().word(word as usize)).collect()
}

fn rows<'a>(sequences: &'a Sequences, counts: &[u64]) -> Vec<(Vec<&'a str>, u64)> {
    assert_eq!(sequences.len(), counts.len());
    counts.iter().enumerate().map(|(row, &count)| (sequence(sequences, row), count)).collect()
}

/// Generates lengths of windows: some fit one key, some fit two, and some exceed most documents.
fn lengths() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![1, 2, 3, 4, 5, 8, 12, 20, 33, 70])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn sequences_are_counted_as_by_reading(recipe in recipes(), n in lengths()) {
        let case = recipe.cook();
        let counts = sequence_count(&case.corpus, n, AMPLE).unwrap();
        let docs = case.plain.texts();
        let expected: Vec<_> = naive::sequences(&docs, n).into_iter().collect();
        prop_assert_eq!(counts.is_empty(), expected.is_empty());
        for way in WAYS {
            let words = vocabulary(&case.corpus);
            let counts = SequenceCounts::with_vocabulary(words, n, way, AMPLE).unwrap();
            prop_assert_eq!(rows(counts.sequences(), counts.counts()), expected.clone(), "{}", way);
        }
        for (row, (words, _)) in expected.iter().enumerate() {
            let mut text = String::new();
            counts.sequences().append_text(row, &mut text);
            prop_assert_eq!(text, words.join(" "));
        }
    }

    /// Tests the sort order that rows of SQL declare: words of the profile `word` have no byte up
    /// to the blank.
    #[test]
    fn texts_ascend_as_their_words_do(
        text in r"[ -\x7f\n\x01'\w\u{200d}\u{2139}]{0,60}|[ab_0\u{e9}\u{300} ]{0,60}",
        n in 1_usize..4,
    ) {
        let mut words: Vec<String> = Vec::new();
        for_each_token(TokenizerProfile::Word, text.as_bytes(), |token| {
            words.extend(token.is_word.then(|| String::from_utf8(token.bytes.to_vec()).unwrap()));
        });
        prop_assert!(words.iter().all(|word| word.bytes().all(|byte| byte > b' ')), "{:?}", words);
        let sequences: BTreeSet<&[String]> = words.windows(n).collect();
        let texts: Vec<String> = sequences.iter().map(|sequence| sequence.join(" ")).collect();
        prop_assert!(texts.is_sorted(), "{:?}", texts);
        let folded: BTreeSet<Vec<String>> = sequences
            .iter()
            .map(|sequence| sequence.iter().map(|word| word.to_lowercase()).collect())
            .collect();
        let texts: Vec<String> = folded.iter().map(|sequence| sequence.join(" ")).collect();
        prop_assert!(texts.is_sorted(), "{:?}", texts);
    }

    #[test]
    fn documents_are_counted_as_by_reading(
        recipe in recipes(),
        n in lengths(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
    ) {
        let case = recipe.cook();
        let docs = case.plain.texts();
        let num_docs = docs.len();
        let mut doc_ids = case.plain.doc_ids();
        if num_docs > 0 {
            doc_ids.extend(picks.iter().map(|pick| pick.index(num_docs) as u64));
        }
        for way in WAYS {
            let words = vocabulary(&case.corpus);
            let by_document = DocumentSequences::new(words, n, way, AMPLE).unwrap();
            // This runs twice, because chunks reuse the memory of earlier chunks.
            for doc_ids in [&doc_ids[..], &doc_ids[doc_ids.len() / 2..]] {
                let chunk = by_document.chunk(doc_ids).unwrap();
                prop_assert_eq!(chunk.doc_ids(), doc_ids);
                let all = rows(chunk.sequences(), chunk.counts());
                for (at, &doc_id) in doc_ids.iter().enumerate() {
                    let expected: Vec<_> =
                        naive::sequences_of(&docs[doc_id as usize], n).into_iter().collect();
                    prop_assert_eq!(&all[chunk.rows_of(at)], &expected[..], "{}", way);
                }
            }
            let outside = by_document.chunk(&[num_docs as u64]).unwrap_err();
            let is_out_of_range = matches!(outside, Error::OutOfRange { what: "doc_id", .. });
            prop_assert!(is_out_of_range, "{}", outside);
        }
    }

    #[test]
    fn ranks_are_those_of_reading(recipe in recipes(), n in lengths()) {
        let case = recipe.cook();
        let docs = case.plain.texts();
        let expected = naive::ranked(&docs, n);
        for way in WAYS {
            let words = vocabulary(&case.corpus);
            let index = RankedInvertedIndex::with_vocabulary(words, n, way, AMPLE).unwrap();
            prop_assert_eq!(index.len(), expected.len());
            for (row, (words, docs)) in expected.iter().enumerate() {
                prop_assert_eq!(&sequence(index.sequences(), row), words);
                let places = index.entries_of(row);
                let found = index.counts()[places.clone()].iter().zip(&index.doc_ids()[places]);
                let found = found.map(|(&count, &doc_id)| (Reverse(count), doc_id));
                prop_assert_eq!(found.collect::<Vec<_>>(), docs.iter().copied().collect::<Vec<_>>(), "{}", way);
            }
        }
    }

    /// The memory is so small that a task takes several walks. A refusal is a capacity error.
    #[test]
    fn little_memory_gives_the_same_rows(
        recipe in recipes(),
        n in lengths(),
        way in prop::sample::select(WAYS.to_vec()),
        max_bytes in prop::sample::select(vec![1 << 9, 1 << 11, 1 << 12, 1 << 14, 1 << 16]),
    ) {
        let case = recipe.cook();
        let words = vocabulary(&case.corpus);
        let is_refused = |error: &Error| matches!(error, Error::Capacity { .. });
        let all = SequenceCounts::with_vocabulary(words.clone(), n, way, AMPLE).unwrap();
        match SequenceCounts::with_vocabulary(words.clone(), n, way, max_bytes) {
            Ok(some) => prop_assert_eq!(
                rows(some.sequences(), some.counts()), rows(all.sequences(), all.counts())
            ),
            Err(error) => prop_assert!(is_refused(&error), "{}", error),
        }
        let all = RankedInvertedIndex::with_vocabulary(words.clone(), n, way, AMPLE).unwrap();
        match RankedInvertedIndex::with_vocabulary(words.clone(), n, way, max_bytes) {
            Ok(some) => {
                let places = |index: &RankedInvertedIndex| {
                    (0..index.len()).map(|row| index.entries_of(row)).collect::<Vec<_>>()
                };
                prop_assert_eq!(places(&some), places(&all));
                prop_assert_eq!(some.doc_ids(), all.doc_ids());
                prop_assert_eq!(some.counts(), all.counts());
                for row in 0..all.len() {
                    prop_assert_eq!(sequence(some.sequences(), row), sequence(all.sequences(), row));
                }
            }
            Err(error) => prop_assert!(is_refused(&error), "{}", error),
        }
        let window = n.max(2);
        let all = Cooccurrences::with_vocabulary(words.clone(), window, 2, way, AMPLE).unwrap();
        match Cooccurrences::with_vocabulary(words, window, 2, way, max_bytes) {
            Ok(some) => {
                prop_assert_eq!(rows(some.pairs(), some.counts()), rows(all.pairs(), all.counts()));
            }
            Err(error) => prop_assert!(is_refused(&error), "{}", error),
        }
    }

    #[test]
    fn near_words_are_paired_as_by_reading(
        recipe in recipes(),
        window in prop::sample::select(vec![2, 3, 5, 9, 40]),
        min_count in 0_u64..4,
    ) {
        let case = recipe.cook();
        let docs = case.plain.texts();
        let expected: Vec<_> = naive::pairs(&docs, window, min_count).into_iter().collect();
        for way in WAYS {
            let words = vocabulary(&case.corpus);
            let found = Cooccurrences::with_vocabulary(words, window, min_count, way, AMPLE);
            let found = found.unwrap();
            prop_assert_eq!(rows(found.pairs(), found.counts()), expected.clone(), "{}", way);
        }
    }
}

#[test]
fn counts_beyond_32_bits_are_exact() {
    let corpus = doubled(40);
    let times = 1u64 << 40;
    let expected = [(vec!["a", "b", "a"], times - 1), (vec!["b", "a", "b"], times - 1)];
    let counts = sequence_count(&corpus, 3, AMPLE).unwrap();
    assert_eq!(rows(counts.sequences(), counts.counts()), expected);
    for way in [Traversal::Auto, Traversal::TopDown, Traversal::BottomUp] {
        let by_document = DocumentSequences::new(vocabulary(&corpus), 3, way, AMPLE).unwrap();
        let chunk = by_document.chunk(&[0]).unwrap();
        assert_eq!(rows(chunk.sequences(), chunk.counts()), expected);
    }
    let index = ranked_inverted_index(&corpus, 3, AMPLE).unwrap();
    assert_eq!((index.doc_ids(), index.counts()), (&[0, 0][..], &[times - 1; 2][..]));
    let pairs = cooccurrence(&corpus, 3, 1, AMPLE).unwrap();
    let expected = [(vec!["a", "a"], times - 1), (vec!["a", "b"], 2 * times - 1), (vec!["b", "b"], times - 1)];
    assert_eq!(rows(pairs.pairs(), pairs.counts()), expected);
}

/// Memory has room for one in ten of 20,000 windows.
#[test]
fn what_does_not_fit_at_once_is_counted_in_ranges() {
    let docs: Vec<Vec<u8>> = (0..40u64)
        .map(|doc| {
            let word = |at: u64| (doc + 1) * (at + 7) * (at + 11) / 3 % 90;
            (0..500).map(|at| format!("w{} ", word(at))).collect::<String>().into_bytes()
        })
        .collect();
    let case = scrambled::case_of(TokenizerProfile::Word, docs, 3);
    let words = vocabulary(&case.corpus);
    for way in WAYS {
        // The lengths need keys of 64 bits, keys of 128 bits, and places in the text.
        for (n, max_bytes) in [(2, 1 << 18), (3, 1 << 18), (12, 1 << 19), (40, 1 << 20)] {
            let all = SequenceCounts::with_vocabulary(words.clone(), n, way, AMPLE).unwrap();
            let some = SequenceCounts::with_vocabulary(words.clone(), n, way, max_bytes).unwrap();
            let same = rows(some.sequences(), some.counts()) == rows(all.sequences(), all.counts());
            assert!(same, "{n}, {way}");
            let mut num_parts = 0;
            let count = |_: SequenceCounts| ();
            SequenceCounts::in_parts(words.clone(), n, way, max_bytes, count, |(), _| {
                num_parts += 1;
                Ok(num_parts < 3)
            })
            .unwrap();
            assert_eq!(num_parts, 3, "{n}, {way}");
        }
        let all = Cooccurrences::with_vocabulary(words.clone(), 5, 2, way, AMPLE).unwrap();
        let some = Cooccurrences::with_vocabulary(words.clone(), 5, 2, way, 1 << 20).unwrap();
        assert!(rows(some.pairs(), some.counts()) == rows(all.pairs(), all.counts()), "{way}");
        let all = RankedInvertedIndex::with_vocabulary(words.clone(), 3, way, AMPLE).unwrap();
        let mut num_rows = 0;
        let docs = DocSelection::all(&case.corpus);
        let mut num_ranges = 0;
        RankedInvertedIndex::in_ranges(words.clone(), &docs, 3, way, 1 << 18, |some| {
            let expected = all.entries_of(num_rows).start..all.entries_of(num_rows + some.len() - 1).end;
            assert_eq!(some.doc_ids(), &all.doc_ids()[expected.clone()], "{way}");
            assert_eq!(some.counts(), &all.counts()[expected], "{way}");
            assert_eq!(sequence(some.sequences(), 0), sequence(all.sequences(), num_rows));
            num_rows += some.len();
            num_ranges += 1;
            Ok(true)
        })
        .unwrap();
        assert!(num_rows == all.len() && num_ranges > 1, "{way}: {num_ranges}");
    }
}

/// Windows as long as half of an expanded text of 2^41 words cannot be listed, so they are refused.
#[test]
fn what_does_not_fit_the_limit_is_refused() {
    let corpus = doubled(40);
    let refused = |error: Error| assert!(matches!(error, Error::Capacity { .. }), "{error}");
    let tight = 1 << 20;
    refused(sequence_count(&corpus, 1 << 40, tight).unwrap_err());
    refused(ranked_inverted_index(&corpus, 1 << 40, tight).unwrap_err());
    refused(cooccurrence(&corpus, 1 << 40, 1, tight).unwrap_err());
    refused(sequence_count(&corpus, 1 << 8, 1 << 10).unwrap_err());
    let (scan, words) = (Traversal::TokenScan, || vocabulary(&corpus));
    refused(SequenceCounts::with_vocabulary(words(), 3, scan, AMPLE).unwrap_err());
    refused(Cooccurrences::with_vocabulary(words(), 3, 1, scan, AMPLE).unwrap_err());
    refused(RankedInvertedIndex::with_vocabulary(words(), 3, scan, AMPLE).unwrap_err());
    refused(sequence_count(&corpus, 1 << 10, 1 << 17).unwrap_err());
    let invalid = |error: Error| assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    invalid(sequence_count(&corpus, 0, AMPLE).unwrap_err());
    invalid(cooccurrence(&corpus, 1, 1, AMPLE).unwrap_err());
}

/// Words of one byte stand beside one of 64 KiB, and there are enough documents for several tasks.
#[test]
fn long_words_and_many_documents() {
    let long = "x".repeat(65_536);
    let docs: Vec<Vec<u8>> = (0..3000u32)
        .map(|doc| {
            let words = (0..20u32).map(|at| match (doc * 7 + at * at) % 11 {
                0 if doc < 3 => format!("{long} "),
                other => format!("w{} ", other * (doc % 5)),
            });
            words.collect::<String>().into_bytes()
        })
        .collect();
    let case = scrambled::case_of(TokenizerProfile::Word, docs, 5);
    for n in [2, 15, 20, 21] {
        let counts = sequence_count(&case.corpus, n, AMPLE).unwrap();
        let expected: Vec<_> = naive::sequences(&case.plain.texts(), n).into_iter().collect();
        assert_eq!(rows(counts.sequences(), counts.counts()), expected, "{n}");
    }
}

/// The root has more positions than a task takes, so tasks begin inside a document.
#[test]
fn long_documents_are_counted_in_tasks() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % 60
    };
    let docs: Vec<Vec<u8>> = [3, 90_000, 40_000]
        .into_iter()
        .map(|len| (0..len).map(|_| format!("w{} ", next())).collect::<String>().into_bytes())
        .collect();
    let case = scrambled::case_of(TokenizerProfile::Word, docs, 11);
    for (n, way) in [1, 2, 3, 12].into_iter().flat_map(|n| WAYS.map(|way| (n, way))) {
        let words = vocabulary(&case.corpus);
        let counts = SequenceCounts::with_vocabulary(words, n, way, AMPLE).unwrap();
        let expected: Vec<_> = naive::sequences(&case.plain.texts(), n).into_iter().collect();
        assert!(rows(counts.sequences(), counts.counts()) == expected, "{n}, {way}");
    }
}
