//! Tests of wildcards, regular expressions, counts by document and contexts, against oracles that
//! read the plain text and have their own regular expressions for patterns.

use std::ops::ControlFlow;

use proptest::prelude::*;
use tadoc::analytics::Vocabulary;
use tadoc::query::{
    ContextForm, DocumentCount, Hit, MAX_CONTEXT_BYTES, Query, SearchOptions, Window, count, count_by_document,
    count_neighbours, kwic, search, search_with, term_count,
};
use tadoc::text::{Fold, MAX_TOKEN_BYTES, TokenizerProfile};
use tadoc::{Corpus, Error};
use testkit::naive::{self, Plain};
use testkit::scrambled::{self, Case, recipes};

const NO_LIMIT: u64 = u64::MAX;

/// Patterns for one word of a phrase. No profile cuts them.
const PATTERNS: [&str; 27] = [
    "a",
    "b",
    "ab",
    "aa",
    "power",
    "c1",
    "zz",
    "*",
    "?",
    "??",
    "a*",
    "*a",
    "a?",
    "?b",
    "p*r",
    "*o*",
    "*s",
    "zz*",
    "*é*",
    "d?n*",
    "/a+/",
    "/(a|b)b?/",
    "/.*/",
    "/[^a]+/",
    "/pow.*|é/",
    "/(?i)AB|C1/",
    "/x?/",
];

/// More patterns, for queries that ignore case.
const FOLDED_PATTERNS: [&str; 22] = [
    "A",
    "AB",
    "Ab",
    "POWER",
    "pOWER",
    "É",
    "é",
    "İ",
    "i\u{307}",
    "ΑΣ",
    "ας",
    "ασ",
    "P*R",
    "*É*",
    "?B",
    "Α*",
    "*Σ",
    "??",
    "*A*",
    "/A+/",
    "/É|POW.*/",
    "/[^A]+/",
];

fn query_text(items: &[Vec<String>]) -> String {
    // A question mark before the closing quote would be text.
    let quoted = items.iter().map(|item| format!("\"{} \"", item.join(" ")));
    quoted.collect::<Vec<_>>().join(" ")
}

/// Finds the hits in documents with `is_selected`, by reading the plain text.
fn read_query(plain: &Plain, items: &[Vec<String>], is_selected: &dyn Fn(u64) -> bool) -> Vec<Hit> {
    let mut hits = naive::hits(plain, items, naive::fits);
    hits.retain(|hit| is_selected(hit.doc_id));
    hits
}

fn pairs(counts: &[DocumentCount]) -> Vec<(u64, u64)> {
    counts.iter().map(|counted| (counted.doc_id, counted.count)).collect()
}

fn term_counts(corpus: &Corpus, query: &Query, docs: Option<&[u64]>) -> Result<Vec<(u64, u64)>, Error> {
    let mut found = Vec::new();
    let options = SearchOptions { docs, ..Default::default() };
    term_count(corpus, query, &options, &mut |counts| {
        assert!(!counts.is_empty());
        found.extend(pairs(counts));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Compares every answer to `items` with the plain text.
fn check(case: &Case, items: &[Vec<String>], doc_id: Option<u64>) {
    let text = query_text(items);
    let query = Query::parse(case.plain.profile, &text).unwrap();
    let corpus = &case.corpus;
    let doc_id = doc_id.filter(|&doc_id| doc_id < corpus.num_docs());
    let expected = read_query(&case.plain, items, &|id| doc_id.is_none_or(|only| only == id));
    assert_eq!(search(corpus, &query, doc_id).unwrap(), expected, "{text}");
    let options = SearchOptions { doc_id, ..Default::default() };
    assert_eq!(count(corpus, &query, &options).unwrap(), expected.len() as u64, "{text}");
    let by_document = count_by_document(corpus, &query, &options).unwrap();
    assert_eq!(pairs(&by_document), naive::counts_by_document(&expected), "{text}");
    let mut batches = Vec::new();
    search_with(corpus, &query, &options, &mut |batch| {
        batches.extend_from_slice(batch);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(batches, expected, "{text}");
}

/// Compares every answer to `items` in the documents `docs` with the plain text.
fn check_in(case: &Case, items: &[Vec<String>], docs: &[u64]) {
    let text = query_text(items);
    let query = Query::parse(case.plain.profile, &text).unwrap();
    let expected = read_query(&case.plain, items, &|id| docs.contains(&id));
    let found = term_counts(&case.corpus, &query, Some(docs)).unwrap();
    assert_eq!(found, naive::counts_by_document(&expected), "{text}");
    let options = SearchOptions { docs: Some(docs), ..Default::default() };
    assert_eq!(count(&case.corpus, &query, &options).unwrap(), expected.len() as u64, "{text}");
    let counted = count_by_document(&case.corpus, &query, &options).unwrap();
    assert_eq!(pairs(&counted), naive::counts_by_document(&expected), "{text}");
    let mut hits = Vec::new();
    let mut in_context = Vec::new();
    search_with(&case.corpus, &query, &options, &mut |batch| {
        hits.extend_from_slice(batch);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(hits, expected, "{text}");
    kwic(&case.corpus, &query, 2, NO_LIMIT, &options, &mut |batch| {
        in_context.extend(batch.iter().map(|context| context.hit));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(in_context, expected, "{text}");
    // If `docs` and one document are both given, only hits in both count.
    let doc_id = docs.first().map_or(0, |first| first + 1);
    if doc_id < case.corpus.num_docs() {
        let both = SearchOptions { doc_id: Some(doc_id), ..options };
        let of_doc = expected.iter().filter(|hit| hit.doc_id == doc_id).count() as u64;
        assert_eq!(count(&case.corpus, &query, &both).unwrap(), of_doc, "{text}");
    }
}

/// Compares every answer to `items` that ignores case with the plain text.
fn check_in_any_case(case: &Case, items: &[Vec<String>]) {
    let text = query_text(items);
    let query = Query::parse(case.plain.profile, &text).unwrap().folded(&Fold::CASE).unwrap();
    let in_any_case = |item: &Vec<String>| item.iter().map(|p| naive::in_any_case(p)).collect();
    let items: Vec<Vec<String>> = items.iter().map(in_any_case).collect();
    let expected = naive::hits(&case.plain, &items, naive::fits_in_any_case);
    assert_eq!(search(&case.corpus, &query, None).unwrap(), expected, "{text}");
    let counts = term_counts(&case.corpus, &query, None).unwrap();
    assert_eq!(counts, naive::counts_by_document(&expected), "{text}");
    let mut in_context = Vec::new();
    kwic(&case.corpus, &query, 1, NO_LIMIT, &SearchOptions::default(), &mut |batch| {
        in_context.extend(batch.iter().map(|context| context.hit));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(in_context, expected, "{text}");
}

fn patterns() -> impl Strategy<Value = Vec<Vec<String>>> {
    patterns_of(PATTERNS.to_vec())
}

fn patterns_of(patterns: Vec<&'static str>) -> impl Strategy<Value = Vec<Vec<String>>> {
    let pattern = prop::sample::select(patterns).prop_map(str::to_owned);
    prop::collection::vec(prop::collection::vec(pattern, 1..5), 1..4)
}

/// Returns `word` as a wider pattern, made in one of several ways.
fn widened(word: &str, way: usize, profile: TokenizerProfile) -> String {
    let num_chars = word.chars().count();
    let first: String = word.chars().take(1).collect();
    match way {
        0 => word.to_owned(),
        1 => "*".to_owned(),
        2 => "?".repeat(num_chars),
        3 => format!("/{}.*/", regex::escape(&first)),
        // In profile `uax29` not every character joins to a letter.
        _ if profile == TokenizerProfile::Uax29 => format!("/{}/", regex::escape(word)),
        4 => format!("{first}*"),
        _ => format!("*{}", word.chars().skip(num_chars / 2).collect::<String>()),
    }
}

type Pick = (prop::sample::Index, prop::sample::Index, Vec<usize>);

/// Generates places of phrases in the documents, and the ways to widen their words.
fn picks() -> impl Strategy<Value = Vec<Pick>> {
    let ways = prop::collection::vec(0usize..6, 1..6);
    let pick = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), ways);
    prop::collection::vec(pick, 1..3)
}

fn picked(plain: &Plain, picks: &[Pick]) -> Vec<Vec<String>> {
    let picked = picks.iter().filter_map(|(doc, start, ways)| {
        let words = plain.words.get(doc.index(plain.words.len().max(1)))?;
        let start = start.index(words.len().max(1));
        let phrase = words.iter().skip(start).zip(ways);
        let phrase: Vec<String> = phrase.map(|(word, &way)| widened(&word.text, way, plain.profile)).collect();
        (!phrase.is_empty()).then_some(phrase)
    });
    picked.collect()
}

fn check_contexts(case: &Case, items: &[Vec<String>], width: usize) {
    let text = query_text(items);
    let query = Query::parse(case.plain.profile, &text).unwrap();
    let hits = read_query(&case.plain, items, &|_| true);
    check_neighbours(case, &query, &hits, width);
    let mut expected = hits.into_iter();
    let form = ContextForm { width, with_words: true };
    kwic(&case.corpus, &query, form, NO_LIMIT, &SearchOptions::default(), &mut |batch| {
        assert!(!batch.is_empty() && batch.memory_bytes() > 0);
        for context in batch.iter() {
            let hit = expected.next().unwrap();
            assert_eq!(context.hit, hit, "{text}");
            let [left, right] = naive::context_words(&case.plain, &hit, width);
            assert!(context.left_words.iter().eq(left.iter().map(|word| word.as_bytes())), "{text}");
            assert!(context.right_words.iter().eq(right.iter().map(|word| word.as_bytes())), "{text}");
            let found = [context.left, context.matched, context.right];
            assert_eq!(found, naive::context(&case.plain, &hit, width), "{text}");
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(expected.next(), None, "{text}");
}

/// Compares the counts of words near `hits` with the plain text.
fn check_neighbours(case: &Case, query: &Query, hits: &[Hit], width: usize) {
    let window = Window { left: width, right: width / 2 + 1 };
    let segments = 0..case.corpus.segments().len();
    let options = SearchOptions::default();
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let mut counts = Default::default();
    // Segment by segment, as partitions do.
    for at in segments {
        let more = count_neighbours(&case.corpus, query, at..at + 1, window, &options, go_on);
        let sum: &mut tadoc::query::NeighbourCounts = &mut counts;
        sum.add(more.unwrap());
    }
    let expected = naive::neighbours(&case.plain, hits, window.left, window.right);
    assert_eq!(counts.num_hits(), hits.len() as u64);
    assert_eq!(counts.num_words(), expected.values().sum::<u64>());
    assert_eq!(counts.by_word(&case.corpus, &Fold::NONE), expected);
    let sums = |vocabulary: &Vocabulary| {
        let sums = vocabulary.sums_by_row(counts.by_id()).into_iter();
        sums.map(|(row, sum)| (vocabulary.word(row).to_owned(), sum)).collect::<Vec<_>>()
    };
    let vocabulary = Vocabulary::new(&case.corpus).unwrap();
    assert!(sums(&vocabulary).into_iter().eq(expected.clone()));
    let mut folded = std::collections::BTreeMap::new();
    for (word, count) in expected {
        *folded.entry(Fold::CASE.text(&word).into_owned()).or_default() += count;
    }
    assert_eq!(counts.by_word(&case.corpus, &Fold::CASE), folded);
    assert!(sums(&vocabulary.folded(&Fold::CASE).unwrap()).into_iter().eq(folded));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn patterns_find_what_reading_finds(recipe in recipes(), queries in prop::collection::vec((patterns(), prop::option::of(0u64..7)), 1..6)) {
        let case = recipe.cook();
        queries.iter().for_each(|(items, doc_id)| check(&case, items, *doc_id));
    }

    #[test]
    fn widened_phrases_are_found_across_rules_and_cuts(recipe in recipes(), queries in prop::collection::vec((picks(), prop::option::of(0u64..7)), 1..6)) {
        let case = recipe.cook();
        for (picks, doc_id) in &queries {
            let items = picked(&case.plain, picks);
            if !items.is_empty() {
                check(&case, &items, *doc_id);
            }
        }
    }

    #[test]
    fn documents_are_counted(recipe in recipes(), items in patterns(), picks in picks(), docs in prop::collection::btree_set(0u64..8, 0..8)) {
        let case = recipe.cook();
        let docs: Vec<u64> = docs.into_iter().filter(|&id| id < case.corpus.num_docs()).collect();
        for items in [items, picked(&case.plain, &picks)].iter().filter(|items| !items.is_empty()) {
            let query = Query::parse(recipe.profile, &query_text(items)).unwrap();
            let all = read_query(&case.plain, items, &|_| true);
            prop_assert_eq!(term_counts(&case.corpus, &query, None).unwrap(), naive::counts_by_document(&all));
            check_in(&case, items, &docs);
        }
    }

    #[test]
    fn words_are_found_in_any_case(
        recipe in recipes(),
        items in patterns_of([&PATTERNS[..], &FOLDED_PATTERNS].concat()),
        picks in picks(),
        flips in any::<u64>(),
    ) {
        let case = recipe.cook();
        check_in_any_case(&case, &items);
        let mut items = picked(&case.plain, &picks);
        let words = items.iter_mut().flatten().filter(|word| !word.starts_with('/'));
        let flipped = words.enumerate().filter(|(at, _)| flips >> (at % 64) & 1 != 0);
        flipped.for_each(|(_, word)| *word = word.to_uppercase());
        if !items.is_empty() {
            check_in_any_case(&case, &items);
        }
    }

    #[test]
    fn contexts_are_slices(recipe in recipes(), items in patterns(), picks in picks(), width in 0usize..6) {
        let case = recipe.cook();
        for items in [items, picked(&case.plain, &picks)].iter().filter(|items| !items.is_empty()) {
            check_contexts(&case, items, width);
        }
    }
}

fn many_documents(seed: u64) -> Case {
    let doc = |doc: usize| {
        let needle = if [7, 200, 399].contains(&doc) { "the needle, " } else { "" };
        let common = "of the power loss and of the loss ".repeat(doc % 5);
        format!("{common}{needle}doc {doc} ends; of the {}", doc % 17).into_bytes()
    };
    scrambled::case_of(TokenizerProfile::Word, (0..400).map(doc).collect(), seed)
}

/// Sets of many words, most of which occur once, stand beside common words. Documents are listed
/// and scanned.
#[test]
fn wide_sets_are_found_in_many_documents() {
    for seed in 0..6 {
        let case = many_documents(seed);
        let one = |text: &str| vec![text.split(' ').map(str::to_owned).collect::<Vec<_>>()];
        for items in [
            one("*"),
            one("* *"),
            one("?? * ends"),
            one("/[0-9]+/"),
            one("doc *7"),
            one("*e* *e* *"),
            one("need*"),
            one("zz*"),
            [one("need*"), one("/2.*/"), one("of t*")].concat(),
        ] {
            [None, Some(7), Some(8), Some(399)].iter().for_each(|&id| check(&case, &items, id));
            check_contexts(&case, &items, 3);
            for docs in [vec![], vec![7], vec![8, 200], (100..300).collect()] {
                check_in(&case, &items, &docs);
            }
        }
    }
}

/// Words of one byte stand beside words of 64 KiB, and one longer word is cut in two. The test runs
/// without and with kept words of documents.
#[test]
fn long_words_are_found() {
    let longest = "x".repeat(MAX_TOKEN_BYTES);
    let text = |doc: usize| {
        let long = if doc.is_multiple_of(9) { longest.as_str() } else { "x" };
        let cut = if doc == 18 { format!("{longest}zz, b") } else { "yy".to_owned() };
        format!("a {long} b; a {long}, {cut} end {doc}").into_bytes()
    };
    let case = scrambled::case_of(TokenizerProfile::Word, (0..40).map(text).collect(), 7);
    let one = |words: &[&str]| vec![words.iter().map(|word| (*word).to_owned()).collect()];
    let docs: Vec<u64> = (0..40).step_by(6).collect();
    let segment = &case.corpus.segments()[0];
    for num_docs_read in [0, 40] {
        segment.note_docs_read(num_docs_read);
        assert_eq!(segment.doc_words_or_derive_if_worth().is_some(), num_docs_read > 0);
        for items in [
            one(&[&longest]),
            one(&["a", &longest, "b"]),
            one(&[&longest, "yy"]),
            one(&[&longest, "zz", "b"]),
            one(&[&format!("{longest}y")]),
            one(&[&longest[1..]]),
            one(&["xx*"]),
            one(&["*x"]),
            one(&["/x+/", "b"]),
            one(&["a", "*", "*"]),
            [one(&[&longest]), one(&["end", "*"]), one(&["yy"])].concat(),
        ] {
            [None, Some(0), Some(1), Some(18)].iter().for_each(|&id| check(&case, &items, id));
            check_in(&case, &items, &docs);
            check_contexts(&case, &items, 0);
        }
        check_contexts(&case, &one(&["end"]), 1);
    }
    // A word that was cut counts as two words, also if the query has it as one.
    let typed = Query::parse(TokenizerProfile::Word, &format!("{longest}zz")).unwrap();
    let hits = search(&case.corpus, &typed, None).unwrap();
    assert!(hits.iter().map(|hit| (hit.doc_id, hit.byte_len)).eq([(18, 65_538)]), "{hits:?}");
}

#[test]
fn selections_must_ascend_and_exist() {
    let case = many_documents(1);
    let query = Query::parse(TokenizerProfile::Word, "the").unwrap();
    let refused = |docs: &[u64]| term_counts(&case.corpus, &query, Some(docs)).unwrap_err();
    assert!(matches!(refused(&[3, 3]), Error::InvalidArgument { name: "docs", .. }));
    assert!(matches!(refused(&[400]), Error::OutOfRange { what: "doc_id", got: 400, .. }));
    let docs: &[u64] = &[4, 2];
    let options = SearchOptions { docs: Some(docs), ..Default::default() };
    let unsorted = search_with(&case.corpus, &query, &options, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(unsorted, Err(Error::InvalidArgument { name: "docs", .. })), "{unsorted:?}");
    let mut num_batches = 0;
    let options = SearchOptions::default();
    let mut stop = |_: &[DocumentCount]| {
        num_batches += 1;
        ControlFlow::Break(())
    };
    term_count(&case.corpus, &query, &options, &mut stop).unwrap();
    assert_eq!(num_batches, 1);
    let cancelled = SearchOptions { is_cancelled: &|| true, ..Default::default() };
    let stopped = term_count(&case.corpus, &query, &cancelled, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
}

#[test]
fn contexts_are_bounded() {
    let dashes = "-".repeat(MAX_CONTEXT_BYTES - 3);
    let text = format!("far a{dashes}near match{dashes} b c");
    let case = scrambled::case_of(TokenizerProfile::Word, vec![text.into_bytes()], 5);
    let contexts = |query: &str, limit: u64| {
        let query = Query::parse(TokenizerProfile::Word, query).unwrap();
        let mut found = Vec::new();
        let options = SearchOptions::default();
        kwic(&case.corpus, &query, 9, limit, &options, &mut |batch| {
            let owned = |part: &[u8]| String::from_utf8(part.to_vec()).unwrap();
            found.extend(
                batch.iter().map(|context| [owned(context.left), owned(context.matched), owned(context.right)]),
            );
            ControlFlow::Continue(())
        })
        .map(|()| found)
    };
    // "near " and the dashes leave no room for "a"; "b" fits, "c" does not.
    let found = contexts("match", NO_LIMIT).unwrap();
    let right = format!("{dashes} b");
    assert_eq!(found, [["near ".to_owned(), "match".to_owned(), right]]);
    let long = MAX_CONTEXT_BYTES as u64 + 2;
    assert_eq!(contexts("\"a near\"", long).unwrap().len(), 1);
    let refused = contexts("\"a near\"", long - 1).unwrap_err();
    assert!(matches!(refused, Error::Capacity { knob: "tadoc.max_output_bytes", .. }), "{refused}");
}
