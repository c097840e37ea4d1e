//! Tests of tasks with a result for each document, against oracles that count plain words.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tadoc::analytics::{
    DocSelection, InvertedIndex, TermVectorChunk, TermVectors, Tfidf, TokenCursor, Traversal, Vocabulary,
    document_counts, term_vector, word_count,
};
use tadoc::grammar::Grammar;
use tadoc::segment::{Dag, Paths, Segment};
use tadoc::text::{MAX_TOKEN_BYTES, TokenizerProfile, tokenize_block};
use tadoc::{Corpus, Error};
use testkit::naive::{Term, best, terms};
use testkit::scrambled::{self, Case, recipes};

const WAYS: [Traversal; 4] = [Traversal::Auto, Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan];

fn rows_of(vocabulary: &Vocabulary, chunk: &TermVectorChunk) -> Vec<Term> {
    assert_eq!(chunk.offsets().len(), chunk.num_docs() + 1);
    assert_eq!(chunk.offsets().last(), Some(&(chunk.num_rows() as u64)));
    let name = |(doc_id, row, count)| (doc_id, vocabulary.word(row as usize).to_owned(), count);
    chunk.iter().map(name).collect()
}

fn drain(vectors: &TermVectors, docs: &DocSelection, top: Option<usize>) -> Vec<Term> {
    let mut cursor = vectors.cursor(docs, top);
    let mut rows = Vec::new();
    while let Some(chunk) = cursor.next_chunk().unwrap() {
        rows.extend(rows_of(vectors.vocabulary(), &chunk));
    }
    rows
}

/// Returns a range and a list of documents. Some of them may not exist.
fn selections(case: &Case, picks: u64) -> [(Vec<u64>, DocSelection); 2] {
    let num_docs = case.plain.docs.len() as u64;
    let range = picks % 5..picks % 5 + picks / 5 % 6;
    let list: Vec<u64> = (0..num_docs + 3).filter(|doc_id| picks >> (doc_id % 64) & 1 != 0).collect();
    [(range.clone().collect(), DocSelection::range(range)), (list.clone(), DocSelection::list(list).unwrap())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn every_traversal_counts_the_words_that_reading_finds(
        recipe in recipes(), picks in any::<u64>(), top in 0usize..4,
    ) {
        let case = recipe.cook();
        let vocabulary = Arc::new(Vocabulary::new(&case.corpus).unwrap());
        let all: Vec<u64> = (0..case.plain.docs.len() as u64).collect();
        let expected = terms(&case.plain, &all);
        for way in WAYS {
            let joined = term_vector(&case.corpus, way).unwrap();
            prop_assert_eq!(joined.doc_ids(), &all[..]);
            prop_assert_eq!(rows_of(&vocabulary, &joined), expected.clone());
            let vectors = TermVectors::new(vocabulary.clone(), way);
            let is_as_asked = vectors.traversals().all(|taken| match way {
                Traversal::Auto => taken != Traversal::Auto,
                forced => taken == forced,
            });
            prop_assert!(is_as_asked);
            for (ids, docs) in selections(&case, picks) {
                let expected = terms(&case.plain, &ids);
                prop_assert_eq!(drain(&vectors, &docs, None), expected.clone());
                let expected = best(&expected, top, |row| Reverse(row.2));
                prop_assert_eq!(drain(&vectors, &docs, Some(top)), expected.clone());
                let joined = vectors.collect(&docs, Some(top)).unwrap();
                prop_assert_eq!(rows_of(&vocabulary, &joined), expected);
            }
        }
    }

    #[test]
    fn scores_are_those_of_the_formula(recipe in recipes(), picks in any::<u64>(), top in 0usize..4) {
        let case = recipe.cook();
        let vocabulary = Arc::new(Vocabulary::new(&case.corpus).unwrap());
        let all: Vec<u64> = (0..case.plain.docs.len() as u64).collect();
        let mut doc_counts: BTreeMap<String, u64> = BTreeMap::new();
        for (_, word, _) in terms(&case.plain, &all) {
            *doc_counts.entry(word).or_default() += 1;
        }
        let vectors = TermVectors::new(vocabulary.clone(), Traversal::Auto);
        let counted = document_counts(&vectors).unwrap();
        prop_assert_eq!(counted, doc_counts.values().copied().collect::<Vec<_>>());
        let tfidf = Tfidf::new(vectors).unwrap();
        let num_docs = all.len() as f64;
        let score = |row: &Term| row.2 as f64 * (num_docs / doc_counts[&row.1] as f64).ln();
        for (ids, docs) in selections(&case, picks) {
            for top in [None, Some(top)] {
                let mut expected = terms(&case.plain, &ids);
                if let Some(top) = top {
                    // Scores are not negative, and such numbers sort as their bits do.
                    expected = best(&expected, top, |row| Reverse(score(row).to_bits()));
                }
                let mut cursor = tfidf.cursor(&docs, top);
                let mut rows = Vec::new();
                let mut scores = Vec::new();
                while let Some(chunk) = cursor.next_chunk().unwrap() {
                    rows.extend(rows_of(&vocabulary, chunk.terms()));
                    scores.extend_from_slice(chunk.scores());
                }
                prop_assert_eq!(scores, expected.iter().map(score).collect::<Vec<_>>());
                prop_assert_eq!(rows, expected);
            }
        }
    }

    #[test]
    fn tokens_are_the_words_in_order(recipe in recipes(), picks in any::<u64>()) {
        let case = recipe.cook();
        let vocabulary = Arc::new(Vocabulary::new(&case.corpus).unwrap());
        let all = DocSelection::all(&case.corpus);
        let first = TokenCursor::new(vocabulary.clone(), &all);
        for (_, docs) in selections(&case, picks) {
            let mut expected = Vec::new();
            for doc_id in docs.iter().filter(|&id| id < case.corpus.num_docs()) {
                let words = (0..).zip(&case.plain.words[doc_id as usize]);
                expected.extend(words.map(|(index, word)| (doc_id, index, word.text.clone())));
            }
            let mut cursor = first.with_docs(&docs);
            let mut tokens = Vec::new();
            while let Some(chunk) = cursor.next_chunk().unwrap() {
                for ((&doc_id, &index), &row) in
                    chunk.doc_ids().iter().zip(chunk.word_indexes()).zip(chunk.rows())
                {
                    tokens.push((doc_id, index, vocabulary.word(row as usize).to_owned()));
                }
            }
            prop_assert_eq!(tokens, expected);
        }
    }

    #[test]
    fn top_words_are_the_most_frequent(recipe in recipes(), num_rows in 0usize..9) {
        let counts = word_count(&recipe.cook().corpus).unwrap();
        let mut expected: Vec<usize> = (0..counts.len()).collect();
        expected.sort_by_key(|&row| (Reverse(counts.count(row)), row));
        expected.truncate(num_rows);
        prop_assert_eq!(counts.top(num_rows), expected);
    }
}

/// The documents are versions of a text, so each is counted by its difference from the one before.
/// There are enough documents and words for several chunks.
#[test]
fn versions_are_counted_by_their_differences() {
    let line = |at: usize| format!("line {at} of {} has w{} and w{}\n", at % 7, at * at % 997, at % 31);
    let mut lines: Vec<String> = (0..150).map(line).collect();
    let mut docs: Vec<Vec<u8>> = Vec::new();
    for version in 0..120 {
        let at = version * 37 % lines.len();
        match version % 3 {
            0 => lines[at] = line(1000 + version),
            1 => lines.insert(at, line(2000 + version)),
            _ => drop(lines.remove(at)),
        }
        docs.push(lines.concat().into_bytes());
        if version % 50 == 49 {
            docs.push(b"something else altogether".to_vec());
        }
    }
    let mut builder = tadoc::build::CorpusBuilder::new(Vec::new(), tadoc::build::IngestOptions::default()).unwrap();
    docs.iter().for_each(|doc| builder.push_document("", doc).unwrap());
    let (file, _) = builder.finish(None).unwrap();
    let limits = tadoc::format::OpenLimits::default();
    let (_, corpus) = Corpus::from_bytes("versions", &file, &limits).unwrap();
    let plain = scrambled::case_of(TokenizerProfile::Word, docs, 1).plain;
    let ids: Vec<u64> = (0..plain.docs.len() as u64).collect();
    let every_third: Vec<u64> = ids.iter().copied().filter(|id| id % 3 == 0).collect();
    let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
    for way in WAYS {
        let vectors = TermVectors::new(vocabulary.clone(), way);
        for ids in [&ids, &every_third] {
            let docs = DocSelection::list(ids.clone()).unwrap();
            assert_eq!(drain(&vectors, &docs, None), terms(&plain, ids), "{way}");
        }
    }
}

/// Words of one byte stand beside words of 64 KiB, and one longer word is cut in two. The test runs
/// with and without kept words of documents.
#[test]
fn long_words_are_counted() {
    let longest = "x".repeat(MAX_TOKEN_BYTES);
    let word = |doc: usize, at: usize| match (doc * 7 + at * at) % 13 {
        0 if doc < 4 => longest.clone(),
        1 if doc < 2 => format!("{longest}yy"),
        2 => format!("{}é", "x".repeat(doc % 3)),
        other => format!("w{}", other * (doc % 5)),
    };
    let text = |doc| (0..30).map(|at| word(doc, at) + ", ").collect::<String>().into_bytes();
    let case = scrambled::case_of(TokenizerProfile::Word, (0..200).map(text).collect(), 3);
    let words = || case.plain.words.iter().flatten();
    assert!(words().any(|word| word.text == "yy") && words().any(|word| word.text == longest));
    let vocabulary = Arc::new(Vocabulary::new(&case.corpus).unwrap());
    let (ids, all): (Vec<u64>, _) = ((0..200).collect(), DocSelection::all(&case.corpus));
    let expected = terms(&case.plain, &ids);
    let mut doc_ids: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    expected.iter().for_each(|(doc_id, word, _)| doc_ids.entry(word).or_default().push(*doc_id));
    for way in WAYS.iter().chain(&WAYS) {
        let vectors = TermVectors::new(vocabulary.clone(), *way);
        assert!(drain(&vectors, &all, None) == expected, "{way}");
        let top = best(&expected, 2, |row| Reverse(row.2));
        assert!(drain(&vectors, &all, Some(2)) == top, "{way}");
        let doc_counts = document_counts(&vectors).unwrap();
        assert!(doc_ids.values().map(|docs| docs.len() as u64).eq(doc_counts), "{way}");
        let index = InvertedIndex::with_vocabulary(vocabulary.clone(), *way).unwrap();
        let found = (0..index.len()).map(|row| (index.word(row), index.doc_ids(row).collect()));
        assert!(found.eq(doc_ids.clone()), "{way}");
    }
    let segment = &case.corpus.segments()[0];
    assert!(segment.doc_words_or_derive_if_worth().is_some());
    let mut tokens = TokenCursor::new(vocabulary.clone(), &all);
    let mut read = Vec::new();
    while let Some(chunk) = tokens.next_chunk().unwrap() {
        read.extend_from_slice(chunk.rows());
    }
    assert!(read.iter().map(|&row| vocabulary.word(row as usize)).eq(words().map(|w| &w.text[..])));
}

/// 40 rules expand to 2^40 words. These are counted exactly, and refused if every word would be
/// read.
#[test]
fn documents_of_any_size_are_counted() {
    let block = tokenize_block(TokenizerProfile::Word, b"a b", &[3]).unwrap();
    let num_terminals = block.dictionary.len();
    // Rule r is twice rule r + 1, and the last rule is "a b". Two documents contain the first rule
    // and one word.
    let mut rules: Vec<Vec<u32>> = vec![vec![num_terminals + 1, 0, num_terminals + 1, 1, 1]];
    rules.extend((1..40).map(|rule| vec![num_terminals + rule + 1; 2]));
    rules.push(vec![0, 1]);
    let mut rule_offsets = vec![0];
    rules.iter().for_each(|rule| rule_offsets.push(rule_offsets.last().unwrap() + rule.len() as u32));
    let symbols = rules.concat();
    let doc_offsets = vec![0, 2, 5];
    let grammar = Grammar { num_terminals, rule_offsets, symbols, doc_offsets };
    let num_words = block.dictionary.num_words();
    let dag = Dag::new(grammar, num_words, block.dictionary.lengths()).unwrap();
    let segment = Segment::new(block.dictionary, dag, Paths::default(), false);
    let corpus = Corpus::new(TokenizerProfile::Word, vec![Arc::new(segment)]);
    let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
    let many = 1u64 << 39;
    let row = |doc_id, word: &str, count| (doc_id, word.to_owned(), count);
    let expected = [row(0, "a", many + 1), row(0, "b", many), row(1, "a", many), row(1, "b", many + 2)];
    for way in [Traversal::Auto, Traversal::TopDown, Traversal::BottomUp] {
        let found = term_vector(&corpus, way).unwrap();
        assert_eq!(rows_of(&vocabulary, &found), expected, "{way}");
    }
    let fault = term_vector(&corpus, Traversal::TokenScan).unwrap_err();
    assert!(matches!(fault, Error::Capacity { limit: 0x1_0000_0000, .. }), "{fault}");
    let mut tokens = TokenCursor::new(vocabulary, &DocSelection::range(1..2));
    let chunk = tokens.next_chunk().unwrap().unwrap();
    assert_eq!((chunk.len(), &chunk.rows()[..3]), (8192, &[0, 1, 0][..]));
}
