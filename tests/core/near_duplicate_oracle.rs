//! Tests of near duplicates against a program that compares the n-grams of all pairs of documents.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use tadoc::analytics::{DocSelection, NearDuplicates, SimilarPair, Vocabulary};
use tadoc::text::TokenizerProfile;
use tadoc::{Corpus, Error};
use testkit::corpus_of_texts;
use testkit::scrambled::{self, doubled, recipes};

/// Memory limit in bytes that is larger than any of these tests needs.
const AMPLE: u64 = 1 << 30;

type Grams<'a> = BTreeSet<&'a [&'a str]>;

/// Evaluates the definition.
fn slow(docs: &[(u64, Vec<&str>)], threshold: f64, num_words: usize) -> Vec<SimilarPair> {
    let sets = docs.iter().map(|(doc_id, words)| (*doc_id, words.windows(num_words).collect()));
    let sets: Vec<(u64, Grams<'_>)> =
        sets.filter(|(_, grams): &(u64, Grams<'_>)| !grams.is_empty()).collect();
    let mut pairs = Vec::new();
    for (at, (doc_id_a, a)) in sets.iter().enumerate() {
        if sets[..at].iter().any(|(_, earlier)| earlier == a) {
            continue;
        }
        for (behind, (doc_id_b, b)) in sets.iter().enumerate().skip(at + 1) {
            let repeats = sets[..behind].iter().position(|(_, earlier)| earlier == b);
            if repeats.is_some_and(|first| first != at) {
                continue;
            }
            let similarity = a.intersection(b).count() as f64 / a.union(b).count() as f64;
            if similarity >= threshold {
                let (doc_id_a, doc_id_b) = (*doc_id_a, *doc_id_b);
                pairs.push(SimilarPair { doc_id_a, doc_id_b, similarity });
            }
        }
    }
    pairs
}

fn fast(
    corpus: &Corpus,
    docs: &DocSelection,
    threshold: f64,
    num_words: usize,
) -> Vec<SimilarPair> {
    let vocabulary = Arc::new(Vocabulary::new(corpus).unwrap());
    let documents = NearDuplicates::new(&vocabulary, docs, threshold, num_words, AMPLE).unwrap();
    let mut found = Vec::new();
    let take = |pairs: &[SimilarPair]| {
        found.extend_from_slice(pairs);
        Ok(true)
    };
    documents.for_each_pairs(&|| false, take).unwrap();
    found
}

const THRESHOLDS: [f64; 9] = [1e-9, 0.1, 0.25, 1.0 / 3.0, 0.5, 0.6, 0.75, 0.8, 1.0];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn pairs_are_those_of_comparing_all(
        recipe in recipes(),
        threshold in prop::sample::select(&THRESHOLDS),
        num_words in prop::sample::select(vec![1, 2, 3, 5, 9, usize::MAX]),
        picks in any::<u8>(),
    ) {
        let case = recipe.cook();
        let words = |doc: usize| case.plain.words[doc].iter().map(|word| word.text.as_str()).collect();
        let docs: Vec<(u64, Vec<&str>)> =
            (0..case.plain.words.len()).map(|doc| (doc as u64, words(doc))).collect();
        let all = DocSelection::all(&case.corpus);
        let found = fast(&case.corpus, &all, threshold, num_words);
        prop_assert_eq!(found, slow(&docs, threshold, num_words));
        let picked: Vec<_> = docs.into_iter().filter(|(doc, _)| picks >> doc & 1 == 1).collect();
        let selection = DocSelection::list(picked.iter().map(|&(doc, _)| doc).collect::<Vec<_>>());
        let found = fast(&case.corpus, &selection.unwrap(), threshold, num_words);
        prop_assert_eq!(found, slow(&picked, threshold, num_words));
    }

    /// Many documents of few words have sets of all similarities.
    #[test]
    fn pairs_of_many_documents(
        docs in prop::collection::vec(prop::collection::vec(0..4_usize, 0..20), 1..60),
        threshold in prop::sample::select(&THRESHOLDS),
        num_words in 1..5_usize,
        block_bytes in 20..400_usize,
    ) {
        const WORDS: [&str; 4] = ["a", "b", "c", "d"];
        let docs: Vec<(u64, Vec<&str>)> = (0..)
            .zip(&docs)
            .map(|(doc_id, doc)| (doc_id, doc.iter().map(|&word| WORDS[word]).collect()))
            .collect();
        let texts: Vec<String> = docs.iter().map(|(_, words)| words.join(" ")).collect();
        let corpus = corpus_of_texts(block_bytes, &texts);
        let found = fast(&corpus, &DocSelection::all(&corpus), threshold, num_words);
        prop_assert_eq!(found, slow(&docs, threshold, num_words));
    }
}

/// Equal documents cost as much as they are, and so do empty ones.
#[test]
fn equal_documents_have_pairs_with_the_first_only() {
    let mut texts = vec![String::new(); 5_000];
    texts.extend((0..10_000).map(|_| "the same text again and again".to_owned()));
    texts.push("the same text again and then".to_owned());
    let corpus = corpus_of_texts(1 << 20, &texts);
    let pairs = fast(&corpus, &DocSelection::all(&corpus), 0.5, 2);
    assert_eq!(pairs.len(), 10_000);
    assert!(pairs.iter().all(|pair| pair.doc_id_a == 5_000));
    assert_eq!(pairs[9_999].similarity, 4.0 / 6.0);
}

#[test]
fn limits_and_the_end_of_a_search() {
    let refused = |corpus: &Corpus, threshold: f64, num_words: usize, max_bytes: u64| {
        let vocabulary = Arc::new(Vocabulary::new(corpus).unwrap());
        let docs = DocSelection::all(corpus);
        NearDuplicates::new(&vocabulary, &docs, threshold, num_words, max_bytes).unwrap_err()
    };
    for doublings in [20, 40, 60] {
        assert!(matches!(refused(&doubled(doublings), 0.8, 5, 1 << 20), Error::Capacity { .. }));
    }
    for (threshold, num_words) in [(0.0, 5), (1.1, 5), (f64::NAN, 5), (0.8, 0)] {
        let invalid = refused(&doubled(2), threshold, num_words, AMPLE);
        assert!(matches!(invalid, Error::InvalidArgument { .. }), "{invalid}");
    }
    let texts: Vec<Vec<u8>> =
        (0..100).map(|at| format!("a b c d {}", at % 7).into_bytes()).collect();
    let corpus = scrambled::case_of(TokenizerProfile::Word, texts, 1).corpus;
    let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
    let docs = DocSelection::all(&corpus);
    let documents = NearDuplicates::new(&vocabulary, &docs, 0.5, 1, AMPLE).unwrap();
    let cancelled = documents.for_each_pairs(&|| true, |_| Ok(true));
    assert!(matches!(cancelled, Err(Error::Cancelled)));
    let mut num_calls = 0;
    let take = |_: &[SimilarPair]| {
        num_calls += 1;
        Ok(false)
    };
    documents.for_each_pairs(&|| false, take).unwrap();
    assert_eq!(num_calls, 1);
    assert!(documents.memory_bytes() > 0);
}
