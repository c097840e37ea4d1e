//! Tests of many queries at once against the same queries one by one, and against the plain text.

use proptest::prelude::*;
use tadoc::Error;
use tadoc::edits::{Edit, EditBatch, LivingCorpus};
use tadoc::query::{Query, SearchOptions, WordQuery, count, count_batch, search, search_batch};
use tadoc::read::{ExtractQuery, extract, extract_batch};
use tadoc::text::TokenizerProfile;
use testkit::naive::Plain;
use testkit::scrambled::{self, Case, bomb, recipes};

const NO_LIMIT: u64 = u64::MAX;
const WORDS: [&str; 10] = ["a", "b", "ab", "aa", "power", "loss", "c1", "é", "中", "zz"];

/// Finds the offsets of `word` in a document by reading the plain text.
fn read(plain: &Plain, doc_id: u64, word: &str) -> Vec<u64> {
    let words = plain.words[doc_id as usize].iter();
    words.filter(|placed| placed.text == word).map(|placed| placed.byte_offset).collect()
}

/// Asks for all words in the order of `queries`, in one batch, and compares the answers with the
/// plain text.
fn check_words(case: &Case, queries: &[WordQuery<'_>]) {
    let expected: Vec<Vec<u64>> = queries.iter().map(|query| read(&case.plain, query.doc_id, query.word)).collect();
    let counts = count_batch(&case.corpus, queries).unwrap();
    assert!(expected.iter().map(|list| list.len() as u64).eq(counts));
    let total: u64 = expected.iter().map(|list| list.len() as u64).sum();
    for max_hits in [NO_LIMIT, total] {
        let lists = search_batch(&case.corpus, queries, max_hits).unwrap();
        assert_eq!(lists.len(), queries.len());
        for (query_idx, expected) in expected.iter().enumerate() {
            assert_eq!(lists.get(query_idx).unwrap(), expected, "{:?}", queries[query_idx]);
        }
        assert_eq!(lists.get(queries.len()), None);
        let (offsets, ends) = lists.into_parts();
        assert_eq!((offsets, ends.len()), (expected.concat(), queries.len()));
    }
    if total > 0 {
        let refused = search_batch(&case.corpus, queries, total - 1);
        assert!(matches!(refused, Err(Error::Capacity { knob: "tadoc.max_hits", .. })));
    }
}

/// Makes segments keep the words of documents, where they can.
fn keep_words(case: &Case) {
    case.corpus.segments().iter().for_each(|segment| segment.note_words_read(u64::MAX / 2));
}

/// Asks for words one by one and compares the answers with the plain text.
fn check_single_words(case: &Case, queries: &[WordQuery<'_>]) {
    let living = LivingCorpus::new(case.corpus.clone());
    for &WordQuery { doc_id, word } in queries {
        let expected = read(&case.plain, doc_id, word);
        assert_eq!(living.count(doc_id, word).unwrap(), expected.len() as u64);
        assert_eq!(living.search(doc_id, word).unwrap(), expected);
        let query = Query::for_word(word);
        let options = SearchOptions { doc_id: Some(doc_id), ..Default::default() };
        assert_eq!(count(&case.corpus, &query, &options).unwrap(), expected.len() as u64);
        let hits = search(&case.corpus, &query, Some(doc_id)).unwrap();
        assert!(hits.iter().map(|hit| hit.byte_offset).eq(expected));
    }
}

/// Returns the error and the index of the query that it names.
fn of_query<T: std::fmt::Debug>(outcome: Result<T, Error>) -> (usize, Error) {
    match outcome.unwrap_err() {
        Error::InBatch { query_idx, source } => (query_idx, *source),
        other => (usize::MAX, other),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn passages_are_those_of_single_calls(
        recipe in recipes(),
        places in prop::collection::vec((0u64..7, 0u64..90, 0u64..60), 0..40),
    ) {
        let case = recipe.cook();
        let query = |&(doc_id, byte_offset, byte_len)| ExtractQuery { doc_id, byte_offset, byte_len };
        let queries: Vec<ExtractQuery> = places.iter().map(query).collect();
        let one = |q: &ExtractQuery| extract(&case.corpus, q.doc_id, q.byte_offset, q.byte_len);
        let expected: Vec<_> = queries.iter().map(one).collect();
        if let Some(bad) = expected.iter().position(Result::is_err) {
            let (query_idx, error) = of_query(extract_batch(&case.corpus, &queries, NO_LIMIT));
            prop_assert_eq!(query_idx, bad);
            prop_assert_eq!(error.to_string(), expected[bad].as_ref().unwrap_err().to_string());
        }
        let (queries, expected): (Vec<_>, Vec<_>) =
            queries.into_iter().zip(expected).filter_map(|(q, e)| Some((q, e.ok()?))).unzip();
        let passages = extract_batch(&case.corpus, &queries, NO_LIMIT).unwrap();
        prop_assert_eq!(passages.len(), queries.len());
        prop_assert_eq!(passages.is_empty(), queries.is_empty());
        for (query_idx, expected) in expected.iter().enumerate() {
            prop_assert_eq!(passages.get(query_idx).unwrap(), &expected[..]);
        }
        prop_assert_eq!(passages.get(queries.len()), None);
        let total = expected.concat().len() as u64;
        prop_assert_eq!(extract_batch(&case.corpus, &queries, total).unwrap(), passages);
        if total > 0 {
            let refused = extract_batch(&case.corpus, &queries, total - 1);
            let is_refused =
                matches!(refused, Err(Error::Capacity { knob: "tadoc.max_output_bytes", .. }));
            prop_assert!(is_refused);
        }
    }

    #[test]
    fn words_are_those_that_reading_finds(
        recipe in recipes(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0usize..10), 0..60),
    ) {
        let case = recipe.cook();
        let num_docs = case.plain.docs.len();
        let query = |(doc, word): &(prop::sample::Index, usize)| WordQuery {
            doc_id: doc.index(num_docs) as u64,
            word: WORDS[*word],
        };
        let queries: Vec<_> = picks.iter().filter(|_| num_docs > 0).map(query).collect();
        check_words(&case, &queries);
        keep_words(&case);
        check_words(&case, &queries);
        check_single_words(&case, &queries);
    }
}

/// Frequent and rare words in long and short documents are asked for many times and once.
#[test]
fn frequent_words_and_long_documents_are_answered_in_groups() {
    let docs: Vec<Vec<u8>> = (0..120usize)
        .map(|doc| {
            let filler = "power loss, a b ".repeat([0, 1, 9, 700][doc % 4]);
            let rare = if doc % 30 == 7 { "zz of the aa" } else { "" };
            format!("{filler}{rare}c1 {filler}").into_bytes()
        })
        .collect();
    for seed in 0..4 {
        let case = scrambled::case_of(TokenizerProfile::Word, docs.clone(), seed);
        let all = (0..120).flat_map(|doc_id| WORDS.map(|word| WordQuery { doc_id, word }));
        let all: Vec<WordQuery<'_>> = all.collect();
        check_words(&case, &all);
        let backwards: Vec<WordQuery<'_>> = all.iter().rev().chain(&all).copied().collect();
        check_words(&case, &backwards);
        for query in all.iter().step_by(37) {
            check_words(&case, &[*query]);
            check_words(&case, &[*query; 3]);
        }
        keep_words(&case);
        assert!(case.corpus.segments().iter().any(|it| it.doc_words_or_derive_if_worth().is_some()));
        check_words(&case, &all);
        check_single_words(&case, &all[..200]);
        let of_long = all.iter().filter(|query| query.doc_id % 4 == 3 && query.word == "power");
        check_words(&case, &of_long.copied().collect::<Vec<_>>());
    }
}

#[test]
fn the_first_bad_query_is_named() {
    let docs = vec![b"power loss".to_vec(), b"a b".to_vec()];
    let corpus = scrambled::case_of(TokenizerProfile::Word, docs, 1).corpus;
    let mut living = LivingCorpus::new(corpus.clone());
    let edits = vec![Edit::AppendText { doc_id: 1, text: b" power".to_vec() }];
    living.apply(&EditBatch { edits, ..Default::default() }).unwrap();
    let queries = |words: [(u64, &'static str); 3]| words.map(|(doc_id, word)| WordQuery { doc_id, word });
    let two_words = queries([(0, "power"), (1, "power loss"), (9, "a")]);
    let unknown = queries([(1, "power"), (0, "loss"), (2, "a")]);
    for (queries, expected, what) in [(two_words, 1, "word: got `power loss`"), (unknown, 2, "doc_id 2")] {
        for (query_idx, error) in [
            of_query(count_batch(&corpus, &queries)),
            of_query(search_batch(&corpus, &queries, NO_LIMIT)),
            of_query(living.count_batch(&queries)),
            of_query(living.search_batch(&queries, NO_LIMIT)),
        ] {
            assert_eq!(query_idx, expected);
            assert!(error.to_string().starts_with(what), "{error}");
        }
    }
    // The error names the first of two bad queries, also if its document was edited.
    let query = |doc_id, byte_offset| ExtractQuery { doc_id, byte_offset, byte_len: 1 };
    for (queries, expected) in [
        ([query(0, 0), query(1, 99), query(0, 99)], 1),
        ([query(1, 3), query(0, 99), query(1, 99)], 1),
        ([query(1, 3), query(0, 3), query(7, 0)], 2),
    ] {
        assert_eq!(of_query(living.extract_batch(&queries, NO_LIMIT)).0, expected);
    }
    assert!(count_batch(&corpus, &[]).unwrap().is_empty());
    assert!(search_batch(&corpus, &[], 0).unwrap().is_empty());
    assert!(extract_batch(&corpus, &[], 0).unwrap().is_empty());
}

#[test]
fn a_bomb_is_counted_in_a_batch_and_its_places_are_refused() {
    let corpus = bomb();
    let query = |doc_id, word| WordQuery { doc_id, word };
    let queries = [query(0, "ab"), query(0, "zz"), query(1, "ab"), query(1, "zz"), query(0, "ab")];
    let copies = 1u64 << 59;
    assert_eq!(count_batch(&corpus, &queries).unwrap(), [copies, 1, 2, 0, copies]);
    let refused = search_batch(&corpus, &queries, 1 << 20).unwrap_err();
    assert!(matches!(refused, Error::Capacity { limit: 1_048_576, .. }), "{refused}");
    let lists = search_batch(&corpus, &queries[1..4], 1 << 20).unwrap();
    assert_eq!(lists.get(0).unwrap(), [copies * 3]);
    let passage = |byte_offset, byte_len| ExtractQuery { doc_id: 0, byte_offset, byte_len };
    let passages = [passage(copies * 3 - 4, 99), passage(copies + copies / 2, 7)];
    let found = extract_batch(&corpus, &passages, 1 << 20).unwrap();
    assert_eq!(found.get(0).unwrap(), &b"b ab zz"[1..]);
    let refused = extract_batch(&corpus, &[passage(0, u64::MAX), passage(0, 1)], 1 << 20);
    assert!(matches!(refused, Err(Error::Capacity { .. })), "{refused:?}");
}
