//! Tests of counting and indexing against oracles that read the plain text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use tadoc::analytics::{
    InvertedIndex, Traversal, Vocabulary, choose_traversal, corpus_statistics, inverted_index, word_count,
};
use testkit::naive::Plain;
use testkit::scrambled::{self, recipes};

fn read_counts(plain: &Plain) -> BTreeMap<&str, u64> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    plain.words.iter().flatten().for_each(|word| *counts.entry(&word.text).or_default() += 1);
    counts
}

fn read_index(plain: &Plain) -> BTreeMap<&str, BTreeSet<u64>> {
    let mut index: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for (doc_id, words) in plain.words.iter().enumerate() {
        words.iter().for_each(|word| {
            index.entry(&word.text).or_default().insert(doc_id as u64);
        });
    }
    index
}

fn rows(index: &InvertedIndex) -> Vec<(&str, Vec<u64>)> {
    (0..index.len()).map(|row| (index.word(row), index.doc_ids(row).collect())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn words_are_counted_as_by_reading(recipe in recipes()) {
        let case = recipe.cook();
        let counts = word_count(&case.corpus).unwrap();
        let expected = read_counts(&case.plain);
        prop_assert_eq!(counts.len(), expected.len());
        prop_assert_eq!(counts.iter().collect::<BTreeMap<_, _>>(), expected.clone());
        prop_assert!(counts.iter().map(|(word, _)| word).is_sorted());
        for (row, (word, count)) in expected.into_iter().enumerate() {
            prop_assert_eq!((counts.word(row), counts.count(row)), (word, count));
            prop_assert_eq!(counts.vocabulary().row_of(word), Some(row));
            for (segment_idx, id) in counts.vocabulary().ids(row) {
                let dictionary = &case.corpus.segments()[segment_idx].dictionary;
                prop_assert_eq!(dictionary.word(id.into()), word);
            }
        }
        prop_assert_eq!(counts.vocabulary().row_of("nowhere"), None);
    }

    #[test]
    fn every_traversal_lists_the_documents_that_reading_finds(recipe in recipes()) {
        let case = recipe.cook();
        let expected: Vec<(&str, Vec<u64>)> = read_index(&case.plain)
            .into_iter()
            .map(|(word, docs)| (word, docs.into_iter().collect()))
            .collect();
        let vocabulary = Arc::new(Vocabulary::new(&case.corpus).unwrap());
        for traversal in [Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan] {
            let index = InvertedIndex::with_vocabulary(vocabulary.clone(), traversal).unwrap();
            prop_assert_eq!(rows(&index), expected.clone());
            prop_assert!(index.traversals().all(|way| way == traversal));
        }
        let index = inverted_index(&case.corpus, Traversal::Auto).unwrap();
        prop_assert_eq!(rows(&index), expected.clone());
        let segments = case.corpus.segments().iter();
        let ways: Vec<_> = segments.map(|segment| choose_traversal(segment.as_ref()).0).collect();
        prop_assert_eq!(index.traversals().collect::<Vec<_>>(), ways);
        for segment in case.corpus.segments() {
            segment.note_words_read(u64::MAX / 2);
        }
        let kept = InvertedIndex::with_vocabulary(vocabulary, Traversal::Auto).unwrap();
        prop_assert_eq!(rows(&kept), expected.clone());
        for (row, (_, docs)) in expected.iter().enumerate() {
            prop_assert_eq!(index.num_docs(row), docs.len());
            let mut appended = vec![-1];
            index.append_doc_ids(row, &mut appended);
            prop_assert_eq!(appended.len(), docs.len() + 1);
            prop_assert!(appended[1..].iter().zip(docs).all(|(&a, &b)| a == b as i64));
        }
    }

    #[test]
    fn statistics_are_those_of_the_text(recipe in recipes()) {
        let case = recipe.cook();
        let statistics = corpus_statistics(&case.corpus);
        prop_assert_eq!(statistics.num_docs, case.plain.docs.len() as u64);
        let len_bytes: usize = case.plain.docs.iter().map(Vec::len).sum();
        prop_assert_eq!(statistics.len_bytes, len_bytes as u64);
        let num_words: usize = case.plain.words.iter().map(Vec::len).sum();
        prop_assert_eq!(statistics.num_words, num_words as u64);
        prop_assert_eq!(statistics.num_segments, case.corpus.segments().len() as u64);
        prop_assert!(statistics.num_tokens >= statistics.num_words);
        prop_assert!(statistics.depth < 26);
    }
}

/// There are more documents than one task takes, and more words than one range takes.
#[test]
fn many_documents_and_words_are_joined_in_order() {
    let docs: Vec<Vec<u8>> = (0..333u32)
        .map(|doc| {
            let words = (0..40u32).map(|at| format!("w{} ", (doc * 37 + at * at * 101) % 5000));
            words.collect::<String>().into_bytes()
        })
        .collect();
    let mut expected: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (doc_id, doc) in docs.iter().enumerate() {
        let text = std::str::from_utf8(doc).unwrap();
        text.split_whitespace().for_each(|word| {
            expected.entry(word.to_owned()).or_default().insert(doc_id as u64);
        });
    }
    let profile = tadoc::text::TokenizerProfile::Word;
    let segments = vec![Arc::new(scrambled::segment_of(profile, &docs, false, 7))];
    let corpus = tadoc::Corpus::new(profile, segments);
    for traversal in [Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan] {
        let index = inverted_index(&corpus, traversal).unwrap();
        assert_eq!(index.len(), expected.len());
        for ((word, docs), row) in expected.iter().zip(0..) {
            assert_eq!(index.word(row), word);
            assert!(index.doc_ids(row).eq(docs.iter().copied()), "{word} {traversal}");
        }
    }
}
