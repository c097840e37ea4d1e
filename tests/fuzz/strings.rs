//! Fuzz target for query strings. A string is refused, or gives a query that is equal to the parse
//! of its own text and finds as many hits as it counts.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use tadoc::query::{Query, SearchOptions, count, count_by_document, search_with};
use tadoc::text::Fold;
use tadoc::{Corpus, Error};
use testkit::documents::{self, BUILDERS, PROFILES, corpus_of, numbered, options};
use testkit::random::Random;

use super::target::{Input, Verdict, part_input};

/// Pieces of random queries.
const PIECES: [&str; 30] = [
    "a",
    "b",
    "the",
    "cat",
    "Power",
    "naïve",
    "日本語",
    "\"",
    "\"\"",
    "*",
    "?",
    "/",
    "\\",
    "\\*",
    " ",
    "  ",
    "\t",
    "-",
    "pow*",
    "p?w",
    "/a.*b/",
    "/(a|b)+/",
    "/[^a]{2,9}/",
    "/((a*)*)*b/",
    "/\\p{L}+/",
    "/(?i)THE/",
    "\u{0}",
    "\u{feff}",
    "e\u{301}",
    "/a{1000}/",
];
const SEEDS: [&str; 12] = [
    "error",
    "\"power loss\"",
    "error \"power loss\"",
    "well-known",
    "\"say \"\"hi\"\"\"",
    "pow* p?wer *ing",
    "/err(or)?s?/",
    "\"power pl* /st.*n/\"",
    "2\\*3 \\/usr/bin",
    "日本語 naïve",
    "\"\"",
    "/(a|b)*c{2,5}/ /[^\\W\\d_]+/",
];
const MAX_HITS: u64 = 10_000;

/// Returns a corpus of each profile.
fn corpora() -> &'static [Corpus] {
    static CORPORA: LazyLock<Vec<Corpus>> = LazyLock::new(|| {
        let documents = numbered(documents::seeds().into_iter().filter(|seed| seed.len() < 200));
        let of = |profile| corpus_of(&documents, &options(profile, BUILDERS[0], 300));
        PROFILES.map(of).into()
    });
    &CORPORA
}

pub fn query_seeds() -> Vec<Vec<u8>> {
    SEEDS.iter().enumerate().map(|(i, text)| part_input(i, text.as_bytes())).collect()
}

pub fn query(input: &Input<'_>) -> Verdict {
    let number = input.number();
    let mut random = Random(number);
    let text = match *input {
        Input::Part { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
        Input::Number(_) => strung(&mut random, &PIECES),
    };
    let corpus = random.pick(corpora());
    let query = match Query::parse(corpus.profile(), &text) {
        Ok(query) => query,
        Err(Error::InvalidArgument { name: "query", .. } | Error::Capacity { .. }) => {
            return Verdict::Refused;
        }
        Err(other) => panic!("{text:?}: an error of another kind: {other:?}"),
    };
    let again = Query::parse(corpus.profile(), &query.to_string());
    assert_eq!(again.as_ref().ok(), Some(&query), "{text:?} is shown as {query}");
    let folds = ["case", "accents", "case,accents", "stem:english", "accents,stem:german"];
    let fold: Fold = random.pick(&folds).parse().unwrap();
    let query = if random.one_in(4) { query.folded(&fold) } else { Ok(query) };
    let Ok(query) = query else { return Verdict::Refused };
    let counted = count(corpus, &query, &SearchOptions::default()).unwrap();
    let by_document = count_by_document(corpus, &query, &SearchOptions::default()).unwrap();
    assert_eq!(by_document.iter().map(|document| document.count).sum::<u64>(), counted);
    let mut num_hits = 0;
    let options = SearchOptions { max_hits: MAX_HITS, ..Default::default() };
    let outcome = search_with(corpus, &query, &options, &mut |hits| {
        num_hits += hits.len() as u64;
        ControlFlow::Continue(())
    });
    assert_eq!((num_hits, outcome.is_ok()), (counted.min(MAX_HITS), counted <= MAX_HITS));
    Verdict::Answered
}

/// Returns up to 20 of `pieces`, one behind the other.
pub fn strung(random: &mut Random, pieces: &[&str]) -> String {
    (0..1 + random.below(20)).map(|_| *random.pick(pieces)).collect()
}
