//! Tests of queries that are as large or as hostile as they can be: each is answered, or refused by an
//! error that names the limit, within seconds.

use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tadoc::query::{LeafLists, Query, QueryLimits, RankOptions, Ranker, SearchOptions, count, count_by_document};
use tadoc::text::{Fold, TokenizerProfile};
use tadoc::{Corpus, Error};
use testkit::documents::{BUILDERS, corpus_of, numbered, options};

/// Longest time of a query, with room for a debug build on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(60);
const NUM_DOCS: u64 = 400;
/// Most words of a query of [`many`].
const NUM_WORDS: u64 = 100_000;

/// Documents with a hundred of the two most frequent words, a rare word, and one word of 60,000 letters.
static CORPUS: LazyLock<Corpus> = LazyLock::new(|| {
    let text = |i: u64| format!("w{i} {} w{i}", "the of ".repeat(50)).into_bytes();
    let long = "a".repeat(60_000).into_bytes();
    let texts = (0..NUM_DOCS).map(text).chain([long]);
    corpus_of(&numbered(texts), &options(TokenizerProfile::Word, BUILDERS[0], 1 << 20))
});

fn within<T>(query: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let answer = run();
    let shown: String = query.chars().take(40).collect();
    assert!(start.elapsed() < MAX_TIME, "{shown}: {:?}", start.elapsed());
    answer
}

fn parse(text: &str) -> tadoc::Result<Query> {
    parse_within(text, QueryLimits::default().max_bytes)
}

fn parse_within(text: &str, max_bytes: u64) -> tadoc::Result<Query> {
    let limits = QueryLimits { max_bytes, max_terms: NUM_WORDS };
    within(text, || Query::parse_within(TokenizerProfile::Word, text, &limits))
}

fn count_all(text: &str) -> u64 {
    let query = parse(text).unwrap();
    within(text, || count(&CORPUS, &query, &SearchOptions::default()).unwrap())
}

/// Returns as many words as a query can have, joined by `joiner`.
fn many(joiner: &str) -> String {
    let words: Vec<String> = (0..NUM_WORDS).map(|i| format!("w{i}")).collect();
    words.join(joiner)
}

#[test]
fn a_hundred_thousand_words_are_answered() {
    let corpus = &*CORPUS;
    let options = SearchOptions::default();
    for (text, num_docs) in [(many(" OR "), NUM_DOCS), (many(" "), 0), (many(" NOT "), 1)] {
        // With NOT between them they are longer than a query may be by default.
        let query = parse_within(&text, 2 << 20).unwrap();
        let folded = within(&text, || query.clone().folded(&Fold::CASE).unwrap());
        assert_eq!(folded.leaves().len() as u64, NUM_WORDS);
        let counts = within(&text, || count_by_document(corpus, &query, &options).unwrap());
        assert_eq!(counts.len() as u64, num_docs);
        let lists = LeafLists::default();
        for _ in 0..2 {
            let mut num_found = 0;
            let mut visit = |counts: &[_]| {
                num_found += counts.len() as u64;
                ControlFlow::Continue(())
            };
            let read = || lists.term_count(corpus, &query, &options, &mut visit).unwrap();
            within(&text, read);
            assert_eq!(num_found, num_docs);
        }
        let ranker = Ranker::new(corpus, None, None).unwrap();
        let rank = || ranker.rank(corpus, &lists, &query, &RankOptions::default(), &options);
        assert_eq!(within(&text, rank).unwrap().len() as u64, num_docs.min(10));
        let shown = within(&text, || query.to_string());
        assert_eq!(parse_within(&shown, 2 << 20).unwrap(), query);
    }
}

#[test]
fn a_megabyte_is_answered_or_the_limit_is_named() {
    let max_bytes = QueryLimits::default().max_bytes as usize;
    for (text, knob) in
        [("a ".repeat(max_bytes / 2), "tadoc.max_query_terms"), ("a".repeat(max_bytes + 1), "tadoc.max_query_bytes")]
    {
        let fault = parse(&text).unwrap_err();
        assert!(matches!(fault, Error::Capacity { .. }) && fault.to_string().contains(knob));
    }
    for (text, reason) in [
        ("(".repeat(max_bytes), "at most 256 deep"),
        ("\"".repeat(max_bytes - 1), "not closed"),
        ("/".to_owned() + &"(".repeat(max_bytes - 2) + "/", "more than 8192"),
        ("^".repeat(max_bytes), "at character 1"),
        ("a* ".repeat(max_bytes / 3), "at most 256 wildcards"),
    ] {
        let fault = parse(&text).unwrap_err().to_string();
        assert!(fault.contains(reason) && fault.len() < 600, "{fault}");
    }
    // The place of the word `b` is behind a megabyte of blanks, or of punctuation.
    for gap in [" ", "-", "\"\""] {
        let text = format!("\"a{}b\"", gap.repeat((max_bytes - 4) / gap.len()));
        assert_eq!(count_all(&text), 0);
        let query = Query::parse_exact(TokenizerProfile::Word, &text, &QueryLimits::default());
        let query = query.unwrap();
        assert_eq!(within(&text, || count(&CORPUS, &query, &SearchOptions::default())).unwrap(), 0);
    }
    assert_eq!(count_all(&"a".repeat(max_bytes)), 0);
    assert_eq!(count_all(&"*a".repeat(max_bytes / 2)), 0);
    assert_eq!(count_all(&format!("\"{}\"", "the of ".repeat(5_000))), 0);
}

#[test]
fn frequent_words_near_each_other_are_counted_in_time() {
    let hundreds = 100 * NUM_DOCS;
    assert_eq!(count_all("NEAR(the of, 1000000)"), hundreds - NUM_DOCS);
    assert_eq!(count_all("\"the of\"~1000000"), hundreds / 2);
    assert_eq!(count_all("NEAR(the* of* \"the of\" \"of the\", 1000000)"), hundreds - 2 * NUM_DOCS);
    assert_eq!(count_all("^w*"), NUM_DOCS);
    assert_eq!(count_all("^the OR ^of"), 0);
}

#[test]
fn expressions_that_defeat_backtracking_are_answered() {
    for text in [
        "/(a*)*b/",
        "/(a|aa)+b/",
        "/(a|a?)+c/",
        "/(a+)+(a+)+d/",
        "/(.*)(.*)(.*)(.*)(.*)(.*)x/",
        "/(a?){100}a{100}b/",
        "a*a*a*a*a*a*a*b",
        "?*?*?*?*b",
    ] {
        assert_eq!(count_all(text), 0, "{text}");
    }
    assert_eq!(count_all("/(a*)*/"), 1);
    assert_eq!(count_all("a*a*a*a*a*a*a*"), 1);
    for text in ["/\\w{1000}{1000}/", "/(((a{100}){100}){100})/"] {
        assert!(parse(text).unwrap_err().to_string().contains("size"), "{text}");
    }
}
