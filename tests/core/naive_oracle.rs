//! Tests of every function against a naive program that reads only the documents' own bytes
//! (`testkit::naive`). They cover each tokenizer, builder and traversal, one segment and many, with
//! document borders at any place.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;
use tadoc::Corpus;
use tadoc::analytics::{Traversal, corpus_statistics, inverted_index, word_count};
use tadoc::build::BuilderKind;
use tadoc::query::{
    Hit, Query, SearchOptions, TextPattern, candidate_docs, candidate_documents, count, count_by_document, search,
};
use tadoc::read::{document_bytes, document_num_words, extract};
use tadoc::text::TokenizerProfile;
use testkit::documents::{
    BUILDERS, Document, PROFILES, any_block_bytes, any_texts, corpus_of, numbered, options, own_sources, path_of,
    real_corpora, seeds,
};
use testkit::naive;

const TRAVERSALS: [Traversal; 4] = [Traversal::Auto, Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan];

/// Compares counts, indexes and the documents' own numbers.
#[track_caller]
fn assert_counts_equal(corpus: &Corpus, documents: &[Document]) {
    let profile = corpus.profile();
    let counts = word_count(corpus).unwrap();
    let rows: Vec<(String, u64)> = counts.iter().map(|(w, count)| (w.to_owned(), count)).collect();
    let expected = naive::word_count(profile, documents);
    let num_words: u64 = expected.values().sum();
    assert_same(&rows, &expected.into_iter().collect::<Vec<_>>());

    let expected: Vec<_> = naive::inverted_index(profile, documents).into_iter().collect();
    for traversal in TRAVERSALS {
        let index = inverted_index(corpus, traversal).unwrap();
        let row = |row| (index.word(row).to_owned(), index.doc_ids(row).collect::<Vec<u64>>());
        assert_same(&(0..index.len()).map(row).collect::<Vec<_>>(), &expected);
        for (row, (word, doc_ids)) in expected.iter().enumerate() {
            assert_eq!(index.num_docs(row), doc_ids.len(), "{word}");
            let mut appended = Vec::new();
            index.append_doc_ids(row, &mut appended);
            assert!(appended.iter().map(|&id| id as u64).eq(doc_ids.iter().copied()), "{word}");
        }
    }

    let statistics = corpus_statistics(corpus);
    assert_eq!(statistics.num_docs, documents.len() as u64);
    assert_eq!(statistics.num_words, num_words);
    let num_bytes: usize = documents.iter().map(|(_, text)| text.len()).sum();
    assert_eq!(statistics.len_bytes, num_bytes as u64);
    for (doc_id, (path, text)) in (0..).zip(documents) {
        let num_words = naive::words(profile, text).len() as u64;
        assert_eq!(document_num_words(corpus, doc_id).unwrap(), num_words, "{path}");
        assert_eq!(path_of(corpus, doc_id), path);
    }
}

/// Compares rows and prints only the first difference.
#[track_caller]
fn assert_same<Row: PartialEq + std::fmt::Debug>(rows: &[Row], expected: &[Row]) {
    let difference = rows.iter().zip(expected).find(|(row, expected)| row != expected);
    assert_eq!(difference, None);
    assert_eq!(rows.len(), expected.len());
}

/// Returns the query that asks for each of `items` literally, in quotes.
fn query_text(items: &[String]) -> String {
    let escaped = |character: char| match character {
        '*' | '?' | '/' | '~' | '\\' => format!("\\{character}"),
        '"' => "\"\"".to_owned(),
        other => other.to_string(),
    };
    let quoted = |item: &String| format!("\"{}\"", item.chars().map(escaped).collect::<String>());
    items.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Compares hits, their counts, and the text at each hit.
#[track_caller]
fn assert_search_equals(corpus: &Corpus, documents: &[Document], items: &[String]) {
    let profile = corpus.profile();
    let words_of = |item: &String| -> Vec<String> {
        naive::words(profile, item.as_bytes()).iter().map(|word| word.text.to_owned()).collect()
    };
    let words: BTreeSet<Vec<String>> = items.iter().map(words_of).collect();
    let parsed = Query::parse(profile, &query_text(items));
    if words.is_empty() || words.contains(&Vec::new()) {
        assert!(parsed.is_err(), "{items:?}");
        return;
    }
    let query = parsed.unwrap();
    let hits = search(corpus, &query, None).unwrap();
    let expected: Vec<Hit> = naive::search(profile, documents, &words).into_iter().collect();
    assert_eq!(hits, expected, "{query} in {profile}");

    let options = SearchOptions::default();
    assert_eq!(count(corpus, &query, &options).unwrap(), expected.len() as u64, "{query}");
    let by_document = count_by_document(corpus, &query, &options).unwrap();
    let mut expected_by_document: BTreeMap<u64, u64> = BTreeMap::new();
    expected.iter().for_each(|hit| *expected_by_document.entry(hit.doc_id).or_default() += 1);
    let by_document: Vec<_> = by_document.iter().map(|row| (row.doc_id, row.count)).collect();
    assert_eq!(by_document, expected_by_document.into_iter().collect::<Vec<_>>(), "{query}");

    // Searches one document at a time, and reads the text at each hit.
    for doc_id in expected.iter().map(|hit| hit.doc_id).collect::<BTreeSet<_>>() {
        let hits = search(corpus, &query, Some(doc_id)).unwrap();
        assert!(hits.iter().eq(expected.iter().filter(|hit| hit.doc_id == doc_id)));
    }
    for hit in expected.iter().take(50) {
        let text = &documents[hit.doc_id as usize].1;
        let range = hit.byte_offset as usize..(hit.byte_offset + hit.byte_len) as usize;
        let found = extract(corpus, hit.doc_id, hit.byte_offset, hit.byte_len).unwrap();
        assert_eq!(found, text[range]);
    }
}

/// Checks that the candidates include every document that has the text.
#[track_caller]
fn assert_candidates_suffice(corpus: &Corpus, documents: &[Document], literal: &str) {
    type Predicate<'a> = Box<dyn Fn(&str) -> bool + 'a>;
    let patterns: [(TextPattern, Predicate<'_>); 5] = [
        (TextPattern::equals(literal), Box::new(|text| text == literal)),
        (TextPattern::contains(literal), Box::new(|text| text.contains(literal))),
        (TextPattern::starts_with(literal), Box::new(|text| text.starts_with(literal))),
        (TextPattern::like(&format!("%{literal}"), None), {
            let has_wildcard = literal.contains(['%', '_', '\\']);
            Box::new(move |text| !has_wildcard && text.ends_with(literal))
        }),
        (
            TextPattern::from_fragments(vec![literal.into(), literal.into()]),
            Box::new(|text| {
                let behind = text.find(literal).map(|at| &text[at + literal.len()..]);
                behind.is_some_and(|behind| behind.contains(literal))
            }),
        ),
    ];
    let texts: Vec<_> = documents.iter().map(|(_, text)| String::from_utf8_lossy(text)).collect();
    for (pattern, holds) in patterns {
        let holding: Vec<u64> = (0..).zip(&texts).filter(|(_, text)| holds(text)).map(|(doc_id, _)| doc_id).collect();
        if let Some(candidates) = candidate_documents(corpus, &pattern) {
            assert!(candidates.is_sorted());
            let missing = holding.iter().find(|id| candidates.binary_search(id).is_err());
            assert_eq!(missing, None, "{pattern:?}");
        }
        for (segment_idx, segment) in corpus.segments().iter().enumerate() {
            let Some(docs) = candidate_docs(segment, corpus.profile(), &pattern) else { continue };
            for (at, doc) in holding.iter().flat_map(|&doc_id| corpus.doc_parts(doc_id)) {
                assert!(at != segment_idx || docs.contains(doc), "{pattern:?} in segment {at}");
            }
        }
    }
}

/// Returns items to search for: one to three consecutive words of the documents, and words of no
/// document.
fn items_from(documents: &[Document], profile: TokenizerProfile, picks: &[Index]) -> Vec<String> {
    let words: Vec<&str> =
        documents.iter().flat_map(|(_, text)| naive::words(profile, text)).map(|word| word.text).collect();
    let item = |(i, pick): (usize, &Index)| match words.len() {
        0 => "absent".to_owned(),
        len => {
            let start = pick.index(len);
            words[start..len.min(start + 1 + i % 3)].join(" ")
        }
    };
    picks.iter().enumerate().map(item).collect()
}

#[test]
fn seeds_are_counted_and_found() {
    for profile in PROFILES {
        for builder in BUILDERS {
            for block_bytes in [1, 6, 50, 1 << 20] {
                let documents = numbered(seeds().into_iter().chain([seeds().concat()]));
                let corpus = corpus_of(&documents, &options(profile, builder, block_bytes));
                assert_counts_equal(&corpus, &documents);
                for item in ["one", "a b a", "ab ab", "line", "日本語", "can't", "absent", "e\u{301}"] {
                    assert_search_equals(&corpus, &documents, &[item.to_owned()]);
                    assert_candidates_suffice(&corpus, &documents, item);
                }
                for items in [["one", "one one"], ["a", "b a"], ["line", "line line"]] {
                    assert_search_equals(&corpus, &documents, &items.map(str::to_owned));
                }
            }
        }
    }
}

#[test]
fn own_sources_are_counted_and_found() {
    let documents = own_sources();
    for profile in PROFILES {
        for (builder, block_bytes) in
            [(BuilderKind::Rounds, 16 << 20), (BuilderKind::Rounds, 20_000), (BuilderKind::Sequitur, 100_000)]
        {
            let corpus = corpus_of(&documents, &options(profile, builder, block_bytes));
            assert_counts_equal(&corpus, &documents);
            for item in ["use", "pub fn", "Result<Self>", "crate::error::{Error, Result}", "the file", "no such"] {
                assert_search_equals(&corpus, &documents, &[item.to_owned()]);
                assert_candidates_suffice(&corpus, &documents, item);
            }
            assert_search_equals(&corpus, &documents, &["impl".into(), "usize".into()]);
        }
    }
}

#[test]
fn the_corpora_are_counted_and_found() {
    for (name, documents) in real_corpora() {
        let num_bytes: usize = documents.iter().map(|(_, text)| text.len()).sum();
        for profile in PROFILES {
            let block_bytes = if profile == TokenizerProfile::Word { num_bytes / 5 + 1 } else { 64 << 20 };
            let options = options(profile, BuilderKind::Rounds, block_bytes);
            let corpus = corpus_of(&documents, &options);
            assert_counts_equal(&corpus, &documents);
            for item in ["of the", "error", "2", "function", "in order to"] {
                assert_search_equals(&corpus, &documents, &[item.to_owned()]);
                assert_candidates_suffice(&corpus, &documents, item);
            }
            println!("{name}, {profile}: equal");
        }
    }
}

#[test]
fn candidates_leave_out_what_they_can() {
    let text = |i: u32| format!("document {i} says hello, and number {} answers\n", i + 1000);
    let documents = numbered((0..200).map(|i| text(i).into_bytes()));
    let corpus = corpus_of(&documents, &options(TokenizerProfile::Word, BuilderKind::Rounds, 1 << 20));
    for pattern in [
        TextPattern::contains("document 42 says"),
        TextPattern::contains("er 1042 ans"),
        TextPattern::starts_with("document 42 "),
        TextPattern::like("%42 %number 1042%", None),
        TextPattern::equals(&text(42)),
    ] {
        let candidates = candidate_documents(&corpus, &pattern).unwrap();
        assert!(candidates.contains(&42) && candidates.len() < 5, "{pattern:?}: {candidates:?}");
    }
    assert_eq!(candidate_documents(&corpus, &TextPattern::contains("absent")), Some(vec![]));
    assert_eq!(candidate_documents(&corpus, &TextPattern::contains("hello")), None);
}

#[test]
fn both_builders_give_the_same_answers() {
    let documents = own_sources();
    let [rounds, sequitur] =
        BUILDERS.map(|builder| corpus_of(&documents, &options(TokenizerProfile::Word, builder, 70_000)));
    let counts = [&rounds, &sequitur].map(|corpus| word_count(corpus).unwrap());
    assert!(counts[0].iter().eq(counts[1].iter()));
    let query = Query::parse(TokenizerProfile::Word, "self \"let mut\"").unwrap();
    let hits = [&rounds, &sequitur].map(|corpus| search(corpus, &query, None).unwrap());
    assert!(!hits[0].is_empty());
    assert_eq!(hits[0], hits[1]);
    for doc_id in 0..rounds.num_docs() {
        let texts = [&rounds, &sequitur].map(|c| document_bytes(c, doc_id, u64::MAX).unwrap());
        assert_eq!(texts[0], texts[1]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_texts_are_counted(texts in any_texts(), block_bytes in any_block_bytes()) {
        let documents = numbered(texts);
        for profile in PROFILES {
            for builder in BUILDERS {
                let corpus = corpus_of(&documents, &options(profile, builder, block_bytes));
                assert_counts_equal(&corpus, &documents);
            }
        }
    }

    #[test]
    fn any_words_are_found(
        texts in any_texts(),
        block_bytes in any_block_bytes(),
        picks in prop::collection::vec(any::<Index>(), 6),
    ) {
        let documents = numbered(texts);
        for profile in PROFILES {
            let corpus = corpus_of(&documents, &options(profile, BuilderKind::Rounds, block_bytes));
            let items = items_from(&documents, profile, &picks);
            for item in &items {
                assert_search_equals(&corpus, &documents, std::slice::from_ref(item));
                assert_candidates_suffice(&corpus, &documents, item);
            }
            assert_search_equals(&corpus, &documents, &items[..2]);
            assert_search_equals(&corpus, &documents, &items[3..]);
        }
    }

    #[test]
    fn any_piece_of_text_has_its_candidates(
        texts in any_texts(),
        block_bytes in any_block_bytes(),
        picks in prop::collection::vec(any::<(Index, Index, Index)>(), 10),
    ) {
        let documents = numbered(texts);
        for profile in PROFILES {
            let corpus = corpus_of(&documents, &options(profile, BuilderKind::Rounds, block_bytes));
            for (doc, start, len) in &picks {
                let text = String::from_utf8_lossy(&documents[doc.index(documents.len())].1);
                let start = text.floor_char_boundary(start.index(text.len() + 1));
                let end = text.ceil_char_boundary(start + len.index(text.len() - start + 1));
                assert_candidates_suffice(&corpus, &documents, &text[start..end]);
            }
        }
    }
}
