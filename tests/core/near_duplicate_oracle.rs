//! Tests of near duplicates against a program that compares the n-grams of all pairs of documents.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use tadoc::analytics::{ClusteredDoc, CorpusParts, Fold, NearDuplicates, OnePart, SimilarPair, check_similarity};
use tadoc::text::TokenizerProfile;
use tadoc::{Corpus, Error};
use testkit::corpus_of_texts;
use testkit::scrambled::{self, doubled, recipes};

use crate::parts::Parts;

/// Memory limit in bytes that is larger than any of these tests needs.
const AMPLE: u64 = 1 << 30;

type Grams<'a> = BTreeSet<&'a [String]>;

/// Evaluates the definition.
fn slow(docs: &[Vec<String>], threshold: f64, num_words: usize) -> Vec<SimilarPair> {
    let sets = (0..).zip(docs).map(|(doc_id, words)| (doc_id, words.windows(num_words).collect()));
    let sets: Vec<(u64, Grams<'_>)> = sets.filter(|(_, grams): &(u64, Grams<'_>)| !grams.is_empty()).collect();
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
                let doc_id_a = *doc_id_a;
                let doc_id_b = *doc_id_b;
                pairs.push(SimilarPair { doc_id_a, doc_id_b, similarity });
            }
        }
    }
    pairs
}

/// Gives each document the least number that documents which all pairs join have, until no number changes.
fn slow_clusters(docs: &[Vec<String>], threshold: f64, num_words: usize) -> Vec<ClusteredDoc> {
    let sets: Vec<Grams<'_>> = docs.iter().map(|words| words.windows(num_words).collect()).collect();
    let are_similar = |a: usize, b: usize| {
        let num_common = sets[a].intersection(&sets[b]).count();
        num_common > 0 && num_common as f64 / sets[a].union(&sets[b]).count() as f64 >= threshold
    };
    let mut numbers: Vec<u64> = (0..docs.len() as u64).collect();
    loop {
        let before = numbers.clone();
        for a in 0..docs.len() {
            for b in a + 1..docs.len() {
                if are_similar(a, b) {
                    let least = numbers[a].min(numbers[b]);
                    (numbers[a], numbers[b]) = (least, least);
                }
            }
        }
        if numbers == before {
            break;
        }
    }
    let docs = (0..).zip(&numbers).map(|(doc_id, &first_doc_id)| {
        let num_docs = numbers.iter().filter(|&&number| number == first_doc_id).count() as u64;
        ClusteredDoc { doc_id, first_doc_id, num_docs }
    });
    docs.filter(|doc| doc.num_docs > 1).collect()
}

fn fast_clusters(
    parts: &(impl CorpusParts + Sync),
    (threshold, num_words): (f64, usize),
    max_memory_bytes: u64,
) -> tadoc::Result<Vec<ClusteredDoc>> {
    let documents = NearDuplicates::new(parts, threshold, num_words, &Fold::NONE, max_memory_bytes)?;
    let num_docs = documents.first_doc_id(parts.num_parts());
    let clusters = documents.clusters()?;
    let halves = clusters.docs(0..num_docs / 2).chain(clusters.docs(num_docs / 2..u64::MAX));
    let docs: Vec<ClusteredDoc> = halves.collect();
    assert!(docs.iter().all(|doc| doc.is_first() == (doc.doc_id == doc.first_doc_id)));
    Ok(docs)
}

fn try_fast(
    parts: &(impl CorpusParts + Sync),
    (threshold, num_words): (f64, usize),
    fold: &Fold,
    max_memory_bytes: u64,
) -> tadoc::Result<Vec<SimilarPair>> {
    let documents = NearDuplicates::new(parts, threshold, num_words, fold, max_memory_bytes)?;
    let mut found = Vec::new();
    documents.for_each_pairs(|pairs| {
        found.extend_from_slice(pairs);
        Ok(true)
    })?;
    Ok(found)
}

fn fast(corpus: &Corpus, threshold: f64, num_words: usize, fold: &Fold) -> Vec<SimilarPair> {
    try_fast(&OnePart(corpus), (threshold, num_words), fold, AMPLE).unwrap()
}

const THRESHOLDS: [f64; 9] = [1e-9, 0.1, 0.25, 1.0 / 3.0, 0.5, 0.6, 0.75, 0.8, 1.0];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn pairs_are_those_of_comparing_all(
        recipe in recipes(),
        threshold in prop::sample::select(&THRESHOLDS),
        num_words in prop::sample::select(vec![1, 2, 3, 5, 9, usize::MAX]),
        fold in prop::sample::select(vec![Fold::NONE, Fold::CASE]),
        memory in 4_000..200_000_u64,
    ) {
        let case = recipe.cook();
        let mut docs: Vec<Vec<String>> = Vec::new();
        for words in &case.plain.words {
            docs.push(words.iter().map(|word| fold.text(&word.text).into()).collect());
        }
        let expected = slow(&docs, threshold, num_words);
        prop_assert_eq!(&fast(&case.corpus, threshold, num_words, &fold), &expected);
        let parts = Parts::of(&case.corpus);
        let how = (threshold, num_words);
        prop_assert_eq!(&try_fast(&parts, how, &fold, AMPLE).unwrap(), &expected);
        match try_fast(&parts, how, &fold, memory) {
            Ok(pairs) => prop_assert_eq!(pairs, expected),
            Err(error) => prop_assert!(matches!(error, Error::Capacity { .. }), "{}", error),
        }
    }

    /// Many documents of few words have sets of all similarities.
    #[test]
    fn pairs_of_many_documents(
        docs in prop::collection::vec(prop::collection::vec(0..4_usize, 0..20), 1..60),
        threshold in prop::sample::select(&THRESHOLDS),
        num_words in 1..5_usize,
        block_bytes in 20..400_usize,
        memory in 4_000..60_000_u64,
    ) {
        const WORDS: [&str; 4] = ["a", "b", "c", "d"];
        let words = |doc: &Vec<usize>| doc.iter().map(|&word| WORDS[word].to_owned()).collect();
        let docs: Vec<Vec<String>> = docs.iter().map(words).collect();
        let texts: Vec<String> = docs.iter().map(|words| words.join(" ")).collect();
        let corpus = corpus_of_texts(block_bytes, &texts);
        let expected = slow(&docs, threshold, num_words);
        prop_assert_eq!(&fast(&corpus, threshold, num_words, &Fold::NONE), &expected);
        let how = (threshold, num_words);
        let found = try_fast(&Parts::of(&corpus), how, &Fold::NONE, memory);
        match found {
            Ok(pairs) => prop_assert_eq!(pairs, expected),
            Err(error) => prop_assert!(matches!(error, Error::Capacity { .. }), "{}", error),
        }
    }

    /// Clusters are those of all similar pairs, also of those that are no rows because a document before has
    /// equal n-grams.
    #[test]
    fn clusters_are_those_of_joining_all(
        docs in prop::collection::vec(prop::collection::vec(0..5_usize, 0..12), 0..50),
        threshold in prop::sample::select(&THRESHOLDS),
        num_words in 1..4_usize,
        block_bytes in 20..400_usize,
        memory in 4_000..60_000_u64,
    ) {
        const WORDS: [&str; 5] = ["a", "b", "c", "d", "e"];
        let words = |doc: &Vec<usize>| doc.iter().map(|&word| WORDS[word].to_owned()).collect();
        let docs: Vec<Vec<String>> = docs.iter().map(words).collect();
        let texts: Vec<String> = docs.iter().map(|words| words.join(" ")).collect();
        let corpus = corpus_of_texts(block_bytes, &texts);
        let how = (threshold, num_words);
        let parts = Parts::of(&corpus);
        let expected = slow_clusters(&docs, threshold, num_words);
        prop_assert_eq!(&fast_clusters(&OnePart(&corpus), how, AMPLE).unwrap(), &expected);
        prop_assert_eq!(&fast_clusters(&parts, how, AMPLE).unwrap(), &expected);
        match fast_clusters(&parts, how, memory) {
            Ok(docs) => prop_assert_eq!(docs, expected),
            Err(error) => prop_assert!(matches!(error, Error::Capacity { .. }), "{}", error),
        }
    }
}

/// Equal documents cost as much as they are, and so do empty ones.
#[test]
fn equal_documents_have_pairs_with_the_first_only() {
    let mut texts = vec![String::new(); 5_000];
    texts.extend((0..10_000).map(|_| "the same text again and again".to_owned()));
    texts.push("the same text again and then".to_owned());
    let corpus = corpus_of_texts(1 << 20, &texts);
    let pairs = fast(&corpus, 0.5, 2, &Fold::NONE);
    assert_eq!(pairs.len(), 10_000);
    assert!(pairs.iter().all(|pair| pair.doc_id_a == 5_000));
    assert_eq!(pairs[9_999].similarity, 4.0 / 6.0);
}

/// A corpus in memory whose search is cancelled, or whose owner notes the memory in use.
struct Watched<'a> {
    corpus: &'a Corpus,
    is_cancelled: bool,
    most_bytes: AtomicU64,
}

impl<'a> CorpusParts for Watched<'a> {
    type Part = &'a Corpus;

    fn num_parts(&self) -> usize {
        1
    }

    fn num_words(&self) -> u64 {
        0
    }

    fn part(&self, _index: usize) -> tadoc::Result<&'a Corpus> {
        Ok(self.corpus)
    }

    fn hold(&self, bytes: u64) -> tadoc::Result<()> {
        self.most_bytes.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }
}

#[test]
fn limits_and_the_end_of_a_search() {
    let refused = |corpus: &Corpus, how: (f64, usize), max_bytes: u64| {
        try_fast(&OnePart(corpus), how, &Fold::NONE, max_bytes).unwrap_err()
    };
    for doublings in [20, 40, 60] {
        let error = refused(&doubled(doublings), (0.8, 5), 1 << 20);
        assert!(matches!(error, Error::Capacity { .. }), "{error}");
    }
    for how in [(0.0, 5), (1.1, 5), (f64::NAN, 5), (0.8, 0)] {
        let invalid = refused(&doubled(2), how, AMPLE);
        assert!(matches!(invalid, Error::InvalidArgument { .. }), "{invalid}");
        assert!(check_similarity(how.0, how.1).is_err());
    }
    let texts: Vec<Vec<u8>> = (0..100).map(|at| format!("a b c d {}", at % 7).into_bytes()).collect();
    let corpus = &scrambled::case_of(TokenizerProfile::Word, texts, 1).corpus;
    let watched = |is_cancelled| Watched { corpus, is_cancelled, most_bytes: AtomicU64::new(0) };
    let cancelled = try_fast(&watched(true), (0.5, 1), &Fold::NONE, AMPLE);
    assert!(matches!(cancelled, Err(Error::Cancelled)));
    let parts = watched(false);
    let documents = NearDuplicates::new(&parts, 0.5, 1, &Fold::NONE, AMPLE).unwrap();
    let num_calls = Cell::new(0);
    documents
        .for_each_pairs(|_| {
            num_calls.set(num_calls.get() + 1);
            Ok(false)
        })
        .unwrap();
    assert_eq!(num_calls.get(), 1);
    assert_eq!((documents.first_doc_id(0), documents.first_doc_id(1)), (0, 100));
    assert!(documents.memory_bytes() > 0);
    // What was noted is enough.
    let most_bytes = parts.most_bytes.load(Ordering::Relaxed);
    let noted = try_fast(&OnePart(corpus), (0.5, 1), &Fold::NONE, 8 * most_bytes);
    assert_eq!(noted.unwrap().len(), 93 + 21);
}
