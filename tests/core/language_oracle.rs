//! Tests of the query language: AND, OR, NOT, NEAR, gaps, edits and first words, against an evaluation
//! of the same expression that reads the words of each document, on random corpora and expressions,
//! with folds and after edits.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};

use proptest::prelude::*;
use tadoc::edits::{EditMode, LivingCorpus};
use tadoc::query::{
    DocumentCount, Hit, LeafLists, Query, QueryLimits, RankOptions, Ranker, SearchOptions, SegmentWords, count,
    count_by_document, search, search_with, segments_for_query, text_hits,
};
use tadoc::text::{Fold, TokenizerProfile};
use testkit::documents::numbered;
use testkit::edit_model::{Model, Random};
use testkit::naive::{self, Plain, PlainWord};
use testkit::scrambled::{Case, Recipe, recipes};

/// A query as it is generated. Leaves are distinct texts, so no hit is listed twice.
#[derive(Debug, Clone)]
enum Node {
    Phrase(Vec<&'static str>),
    First(Vec<&'static str>),
    Near(Vec<Vec<&'static str>>, u64),
    Gapped(Vec<&'static str>, u64),
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>, Box<Node>),
}

const WORDS: [&str; 10] = ["a", "b", "ab", "aa", "power", "c1", "a*", "?", "pawer~1", "/a+|b/"];

fn words() -> impl Strategy<Value = &'static str> {
    prop::sample::select(WORDS.to_vec())
}

fn nodes() -> impl Strategy<Value = Node> {
    let phrase = || prop::collection::vec(words(), 1..3);
    let leaf = prop_oneof![
        4 => phrase().prop_map(Node::Phrase),
        1 => phrase().prop_map(Node::First),
        2 => (prop::collection::vec(phrase(), 2..4), 0u64..12).prop_map(|(p, n)| Node::Near(p, n)),
        2 => (prop::collection::vec(words(), 2..4), 0u64..6).prop_map(|(w, n)| Node::Gapped(w, n)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let parts = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            parts.clone().prop_map(Node::And),
            parts.prop_map(Node::Or),
            (inner.clone(), inner).prop_map(|(a, b)| Node::Not(Box::new(a), Box::new(b))),
        ]
    })
}

/// Writes a node with more parentheses than are needed, and operators in any of their forms.
fn text_of(node: &Node, seed: u64) -> String {
    let quoted = |words: &[&str]| format!("\"{}\"", words.join(" "));
    let inner = |parts: &[Node]| -> Vec<String> {
        parts.iter().map(|part| format!("({})", text_of(part, seed.rotate_right(3)))).collect()
    };
    match node {
        Node::Phrase(words) if words.len() == 1 && seed & 1 == 1 => words[0].to_owned(),
        Node::Phrase(words) => quoted(words),
        Node::First(words) if words.len() == 1 && seed & 1 == 1 => format!("^{}", words[0]),
        Node::First(words) => format!("^{}", quoted(words)),
        Node::Near(items, n) => {
            let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
            format!("NEAR({}, {n})", items.join(" "))
        }
        Node::Gapped(words, n) => format!("{}~{n}", quoted(words)),
        Node::And(parts) => inner(parts).join(if seed & 2 == 0 { " " } else { " AND " }),
        Node::Or(parts) => inner(parts).join(" OR "),
        Node::Not(kept, excluded) => {
            format!("({}) NOT ({})", text_of(kept, seed), text_of(excluded, seed))
        }
    }
}

/// Starts of the occurrences of a phrase.
fn starts(words: &[&str], phrase: &[&str]) -> Vec<usize> {
    let fits = |window: &[&str]| window.iter().zip(phrase).all(|(w, p)| fits(w, p));
    words.windows(phrase.len()).enumerate().filter(|(_, w)| fits(w)).map(|(at, _)| at).collect()
}

fn fits(word: &str, pattern: &str) -> bool {
    match pattern {
        "a*" => word.starts_with('a'),
        "?" => word.chars().count() == 1,
        "/a+|b/" => word == "b" || word.chars().all(|c| c == 'a'),
        "pawer~1" => is_one_edit("pawer", word),
        exact => word == exact,
    }
}

/// Returns true if at most one edit lies between two words, by trying all edits of the first.
fn is_one_edit(from: &str, to: &str) -> bool {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let without = |word: &[char], at: usize| [&word[..at], &word[at + 1..]].concat();
    let num_differences = from.iter().zip(&to).filter(|(a, b)| a != b).count();
    let is_swapped = |at: usize| {
        let mut swapped = from.clone();
        swapped.swap(at, at + 1);
        swapped == to
    };
    from.len() == to.len() && (num_differences <= 1 || (0..from.len() - 1).any(is_swapped))
        || (0..from.len()).any(|at| without(&from, at) == to)
        || (0..to.len()).any(|at| without(&to, at) == from)
}

/// Keeps the stretches that contain no other.
fn shortest(mut stretches: Vec<Range<usize>>) -> Vec<Range<usize>> {
    stretches.sort_by_key(|stretch| (stretch.start, stretch.end));
    stretches.dedup();
    let all = stretches.clone();
    let holds = |a: &Range<usize>, b: &Range<usize>| a != b && a.start <= b.start && b.end <= a.end;
    stretches.retain(|stretch| !all.iter().any(|other| holds(stretch, other)));
    stretches
}

/// Stretches with all parts, each the starts of its occurrences and its number of words.
fn near_stretches(parts: &[(Vec<usize>, usize)], max_between: u64) -> Vec<Range<usize>> {
    let lasts = parts.iter().flat_map(|(starts, _)| starts).copied();
    let stretch = |last: usize| {
        let nearest = parts.iter().map(|(starts, len)| {
            let start = starts.iter().copied().filter(|&at| at <= last).max()?;
            Some(start..start + len)
        });
        let nearest: Vec<Range<usize>> = nearest.collect::<Option<_>>()?;
        let first_end = nearest.iter().map(|part| part.end).min()?;
        let is_near = last as u64 <= first_end as u64 + max_between;
        let start = nearest.iter().map(|part| part.start).min()?;
        is_near.then_some(start..nearest.iter().map(|part| part.end).max()?)
    };
    lasts.filter_map(stretch).collect()
}

/// Stretches of words, by the definition of each leaf; `None` for a node that is no leaf.
fn leaf_stretches(words: &[&str], node: &Node) -> Option<Vec<Range<usize>>> {
    let all: Vec<Range<usize>> = match node {
        Node::Phrase(phrase) => {
            return Some(starts(words, phrase).into_iter().map(|at| at..at + phrase.len()).collect());
        }
        Node::First(phrase) => {
            let first = starts(words, phrase).into_iter().filter(|&at| at == 0);
            return Some(first.map(|at| at..at + phrase.len()).collect());
        }
        Node::Near(items, max_between) => {
            let parts = items.iter().map(|item| (starts(words, item), item.len()));
            near_stretches(&parts.collect::<Vec<_>>(), *max_between)
        }
        Node::Gapped(gapped, max_between) => {
            let mut chains: Vec<(usize, usize)> = Vec::new();
            for (idx, word) in gapped.iter().enumerate() {
                let places = starts(words, &[word]);
                chains = match idx {
                    0 => places.iter().map(|&at| (at, at)).collect(),
                    _ => chains
                        .iter()
                        .flat_map(|&(start, last)| {
                            places.iter().filter(move |&&at| at > last).map(move |&at| (start, at))
                        })
                        .collect(),
                };
                chains.sort_unstable();
                chains.dedup();
            }
            let others = |start: usize, last: usize| (last + 1 - start - gapped.len()) as u64;
            chains.retain(|&(start, last)| others(start, last) <= *max_between);
            chains.into_iter().map(|(start, last)| start..last + 1).collect()
        }
        _ => return None,
    };
    Some(shortest(all))
}

fn holds(words: &[&str], node: &Node) -> bool {
    match node {
        Node::And(parts) => parts.iter().all(|part| holds(words, part)),
        Node::Or(parts) => parts.iter().any(|part| holds(words, part)),
        Node::Not(kept, excluded) => holds(words, kept) && !holds(words, excluded),
        leaf => leaf_stretches(words, leaf).is_some_and(|found| !found.is_empty()),
    }
}

/// Adds the hits of each leaf of a node that holds, by the normal form of the leaf.
fn note(words: &[&str], node: &Node, hits: &mut BTreeMap<String, Vec<Range<usize>>>) {
    match node {
        Node::And(parts) => parts.iter().for_each(|part| note(words, part, hits)),
        Node::Or(parts) => {
            parts.iter().filter(|part| holds(words, part)).for_each(|part| note(words, part, hits));
        }
        Node::Not(kept, _) => note(words, kept, hits),
        leaf => {
            let query = Query::parse(TokenizerProfile::Word, &text_of(leaf, 0)).unwrap();
            let found = leaf_stretches(words, leaf).unwrap_or_default();
            hits.insert(query.to_string(), found);
        }
    }
}

type Row = (u64, u64, u64, u64);

fn expected(plain: &Plain, node: &Node, fold: &Fold) -> Vec<Row> {
    let mut rows = Vec::new();
    for (doc_id, placed) in (0..).zip(&plain.words) {
        let words: Vec<Cow<'_, str>> = placed.iter().map(|word| fold.text(&word.text)).collect();
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        if !holds(&words, node) {
            continue;
        }
        let mut hits = BTreeMap::new();
        note(&words, node, &mut hits);
        let stretches = hits.values().flatten();
        rows.extend(stretches.map(|stretch| row_of(doc_id, placed, stretch)));
    }
    rows.sort_unstable();
    rows
}

fn row_of(doc_id: u64, placed: &[PlainWord], stretch: &Range<usize>) -> Row {
    let first = &placed[stretch.start];
    let last = &placed[stretch.end - 1];
    let byte_len = last.byte_offset + last.byte_len - first.byte_offset;
    (doc_id, first.byte_offset, byte_len, stretch.start as u64)
}

fn check(case: &Case, node: &Node, seed: u64, fold: &Fold, docs: &BTreeSet<u64>) {
    let plain = &case.plain;
    let corpus = &case.corpus;
    let text = text_of(node, seed);
    let query = Query::parse(plain.profile, &text).unwrap().folded(fold).unwrap();
    let expected = expected(plain, node, fold);
    let row = |hit: &tadoc::query::Hit| (hit.doc_id, hit.byte_offset, hit.byte_len, hit.word_index);
    let found: Vec<Row> = search(corpus, &query, None).unwrap().iter().map(row).collect();
    assert_eq!(found, expected, "{text} is {query}");

    let counts = |rows: &[Row]| {
        let mut counts = BTreeMap::new();
        rows.iter().for_each(|row| *counts.entry(row.0).or_insert(0) += 1);
        counts.into_iter().collect::<Vec<(u64, u64)>>()
    };
    let counted = |options: &SearchOptions<'_>| -> Vec<(u64, u64)> {
        let counts = count_by_document(corpus, &query, options).unwrap();
        counts.iter().map(|row| (row.doc_id, row.count)).collect()
    };
    assert_eq!(counted(&SearchOptions::default()), counts(&expected), "{text}");
    let all = count(corpus, &query, &SearchOptions::default()).unwrap();
    assert_eq!(all, expected.len() as u64, "{text}");

    let docs: Vec<u64> = docs.iter().copied().filter(|&id| id < corpus.num_docs()).collect();
    let options = SearchOptions { docs: Some(&docs), ..Default::default() };
    let chosen: Vec<Row> = expected.iter().filter(|row| docs.contains(&row.0)).copied().collect();
    assert_eq!(counted(&options), counts(&chosen), "{text} in {docs:?}");
    let mut found = Vec::new();
    search_with(corpus, &query, &options, &mut |hits| {
        found.extend(hits.iter().map(row));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(found, chosen, "{text} in {docs:?}");
}

/// Checks that the hits of a text alone are those of the document.
fn check_texts(case: &Case, node: &Node, seed: u64) {
    let query = Query::parse(case.plain.profile, &text_of(node, seed)).unwrap();
    let all = search(&case.corpus, &query, None).unwrap();
    for (doc_id, text) in (0..).zip(&case.plain.docs) {
        let found = text_hits(&query, case.plain.profile, text);
        let found = found.iter().map(|hit| (hit.byte_range.start as u64, hit.byte_range.len() as u64));
        let expected = all.iter().filter(|hit| hit.doc_id == doc_id);
        let expected: Vec<(u64, u64)> = expected.map(|hit| (hit.byte_offset, hit.byte_len)).collect();
        assert_eq!(found.collect::<Vec<_>>(), expected, "{query}");
    }
}

/// Checks exact phrases against the text of each document.
fn check_exact(case: &Case, phrase: &str) {
    let limits = QueryLimits::default();
    let Ok(query) = Query::parse_exact(case.plain.profile, phrase, &limits) else { return };
    let again = Query::parse_exact(case.plain.profile, &query.to_string(), &limits).unwrap();
    assert_eq!(again, query);
    let inner = phrase.trim_matches('"');
    let plain = Query::parse(case.plain.profile, phrase).unwrap();
    let lead = naive::words(case.plain.profile, inner.as_bytes())[0].byte_offset;
    let fits = |hit: &Hit| {
        let text = &case.plain.docs[hit.doc_id as usize];
        let start = (hit.byte_offset as usize).checked_sub(lead);
        start.is_some_and(|start| text[start..].starts_with(inner.as_bytes()))
    };
    let mut expected = search(&case.corpus, &plain, None).unwrap();
    expected.retain(fits);
    assert_eq!(search(&case.corpus, &query, None).unwrap(), expected, "{phrase}");
    let counted = count(&case.corpus, &query, &SearchOptions::default()).unwrap();
    assert_eq!(counted, expected.len() as u64);
    for (doc_id, text) in (0..).zip(&case.plain.docs) {
        if case.corpus.segments().len() == 1 {
            let found = text_hits(&query, case.plain.profile, text).len();
            assert_eq!(found, expected.iter().filter(|hit| hit.doc_id == doc_id).count());
        }
    }
}

/// Checks NEAR of exact phrases, each at the words and the text around them.
fn check_exact_near(case: &Case, phrases: &[String; 2], max_between: u64) {
    let plain = &case.plain;
    let text = format!("NEAR(\"{}\" \"{}\", {max_between})", phrases[0], phrases[1]);
    let limits = QueryLimits::default();
    let Ok(query) = Query::parse_exact(plain.profile, &text, &limits) else { return };
    let again = Query::parse_exact(plain.profile, &query.to_string(), &limits).unwrap();
    assert_eq!(again, query);
    let starts_of = |placed: &[PlainWord], doc: &[u8], phrase: &str| {
        let own = naive::words(plain.profile, phrase.as_bytes());
        let words: Vec<&str> = own.iter().map(|word| word.text).collect();
        let texts: Vec<&str> = placed.iter().map(|word| &word.text[..]).collect();
        let fits = |at: &usize| {
            let start = (placed[*at].byte_offset as usize).checked_sub(own[0].byte_offset);
            start.is_some_and(|start| doc[start..].starts_with(phrase.as_bytes()))
        };
        (starts(&texts, &words).into_iter().filter(fits).collect::<Vec<_>>(), words.len())
    };
    let mut expected = Vec::new();
    for (doc_id, (placed, doc)) in (0..).zip(plain.words.iter().zip(&plain.docs)) {
        let parts = phrases.each_ref().map(|phrase| starts_of(placed, doc, phrase));
        let stretches = shortest(near_stretches(&parts, max_between));
        expected.extend(stretches.iter().map(|stretch| row_of(doc_id, placed, stretch)));
    }
    let row = |hit: &Hit| (hit.doc_id, hit.byte_offset, hit.byte_len, hit.word_index);
    let found: Vec<Row> = search(&case.corpus, &query, None).unwrap().iter().map(row).collect();
    assert_eq!(found, expected, "{text}");
    if case.corpus.segments().len() == 1 {
        let docs = plain.docs.iter().map(|doc| text_hits(&query, plain.profile, doc).len());
        assert_eq!(docs.sum::<usize>(), expected.len(), "{text}");
    }
}

/// Checks that segments that are not needed hold no hit.
fn check_segments(case: &Case, node: &Node, seed: u64) {
    let corpus = &case.corpus;
    let query = Query::parse(case.plain.profile, &text_of(node, seed)).unwrap();
    let words: Vec<SegmentWords<'_>> = corpus
        .segments()
        .iter()
        .map(|segment| SegmentWords {
            dictionary: &segment.dictionary,
            num_docs: segment.dag.grammar().num_docs() as u64,
            continues: segment.continues,
        })
        .collect();
    let is_needed = segments_for_query(&query, &words);
    for hit in search(corpus, &query, None).unwrap() {
        for (segment_idx, _) in corpus.doc_parts(hit.doc_id) {
            assert!(is_needed[segment_idx], "{query}: segment {segment_idx}");
        }
    }
}

/// Scores by the formula, from the words of each document. Best first.
fn expected_ranks(plain: &Plain, node: &Node, k1: f64, b: f64) -> Vec<(u64, f64)> {
    let texts = plain.texts();
    let num_docs = texts.len() as f64;
    let mean = texts.iter().map(Vec::len).sum::<usize>() as f64 / num_docs;
    let by_leaf: Vec<BTreeMap<String, Vec<Range<usize>>>> = texts
        .iter()
        .map(|words| {
            let mut hits = BTreeMap::new();
            if holds(words, node) {
                note(words, node, &mut hits);
            }
            hits
        })
        .collect();
    // The number of documents with a leaf does not depend on the rest of the query.
    let mut with = BTreeMap::new();
    leaves(node, &mut |leaf| {
        let name = Query::parse(plain.profile, &text_of(leaf, 0)).unwrap().to_string();
        with.insert(name, texts.iter().filter(|words| holds(words, leaf)).count() as f64);
    });
    let score = |(words, hits): (&Vec<&str>, &BTreeMap<String, Vec<Range<usize>>>)| {
        let part = |(name, hits): (&String, &Vec<Range<usize>>)| {
            let tf = hits.len() as f64;
            let df = with[name];
            let idf = (1.0 + (num_docs - df + 0.5) / (df + 0.5)).ln();
            idf * tf * (k1 + 1.0) / (tf + k1 * (1.0 - b + b * words.len() as f64 / mean))
        };
        hits.iter().map(part).sum::<f64>()
    };
    let scores = (0..).zip(texts.iter().zip(&by_leaf).map(score));
    let mut ranked: Vec<(u64, f64)> =
        scores.filter(|&(doc_id, _): &(u64, f64)| holds(&texts[doc_id as usize], node)).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
}

fn leaves(node: &Node, visit: &mut dyn FnMut(&Node)) {
    match node {
        Node::And(parts) | Node::Or(parts) => parts.iter().for_each(|part| leaves(part, visit)),
        Node::Not(kept, excluded) => {
            leaves(kept, visit);
            leaves(excluded, visit);
        }
        leaf => visit(leaf),
    }
}

/// Returns the counts of `query` in all documents, with `lists`.
fn counts_by_lists(case: &Case, lists: &LeafLists, query: &Query) -> Vec<DocumentCount> {
    let mut found = Vec::new();
    let mut visit = |counts: &[DocumentCount]| {
        found.extend_from_slice(counts);
        ControlFlow::Continue(())
    };
    lists.term_count(&case.corpus, query, &SearchOptions::default(), &mut visit).unwrap();
    found
}

fn check_ranks(case: &Case, ranker: &Ranker, node: &Node, top: usize, k1: f64, b: f64) {
    let query = Query::parse(case.plain.profile, &text_of(node, 0)).unwrap();
    let options = RankOptions { top, k1, b };
    let search = SearchOptions::default();
    let found = ranker.rank(&case.corpus, &LeafLists::default(), &query, &options, &search).unwrap();
    let expected = expected_ranks(&case.plain, node, k1, b);
    assert_eq!(found.len(), expected.len().min(top), "{query}");
    for (found, expected) in found.iter().zip(&expected) {
        // Documents with scores that differ by rounding only may change places.
        assert!((found.score - expected.1).abs() < 1e-9, "{query}: {found:?} {expected:?}");
        let scored = expected_ranks(&case.plain, node, k1, b);
        let own = scored.iter().find(|row| row.0 == found.doc_id).unwrap();
        assert!((found.score - own.1).abs() < 1e-9, "{query}: {found:?} {own:?}");
    }
}

/// Number of cases; `TADOC_QUERY_CASES` asks for more.
fn num_cases() -> u32 {
    std::env::var("TADOC_QUERY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(num_cases()))]

    #[test]
    fn expressions_find_what_reading_finds(
        recipe in recipes(),
        queries in prop::collection::vec((nodes(), any::<u64>()), 1..12),
        docs in prop::collection::btree_set(0u64..8, 0..8),
    ) {
        let case = recipe.cook();
        for (node, seed) in &queries {
            check(&case, node, *seed, &Fold::NONE, &docs);
            check_segments(&case, node, *seed);
        }
        // Words of a document that was cut inside a word are those of its parts.
        if case.corpus.segments().len() == 1 {
            queries.iter().for_each(|(node, seed)| check_texts(&case, node, *seed));
        }
    }

    #[test]
    fn exact_phrases_are_those_of_the_text(
        recipe in recipes(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1usize..12), 1..8),
    ) {
        let case = recipe.cook();
        for (doc, start, len) in picks {
            let Some(text) = case.plain.docs.get(doc.index(case.plain.docs.len().max(1))) else { continue };
            let Ok(text) = std::str::from_utf8(text) else { continue };
            let chars: Vec<char> = text.chars().filter(|c| !"\"*?/\\~".contains(*c)).collect();
            let start = start.index(chars.len() + 1);
            let piece_at = |start: usize| -> String {
                chars[start..chars.len().min(start + len)].iter().collect()
            };
            let piece = piece_at(start);
            // White space at the ends belongs to the phrase; a word that is cut does not match.
            check_exact(&case, &format!("\"{piece}\""));
            // Parts of a cut document are tokenized one by one, so text at a cut is no oracle.
            if case.corpus.segments().len() == 1 {
                let other = piece_at(chars.len().min(start / 2 + len));
                check_exact_near(&case, &[piece, other], len as u64 % 4);
            }
        }
    }

    #[test]
    fn documents_are_ranked_by_the_formula(
        recipe in recipes(),
        nodes in prop::collection::vec(nodes(), 1..6),
        top in 1usize..6,
        k1 in 0.0f64..3.0,
        b in 0.0f64..=1.0,
    ) {
        let case = recipe.cook();
        let ranker = Ranker::new(&case.corpus, None, None).unwrap();
        for node in &nodes {
            check_ranks(&case, &ranker, node, top, k1, b);
        }
        prop_assert!(ranker.memory_bytes() >= 8 * case.plain.docs.len());
    }

    #[test]
    fn lists_of_documents_count_what_the_grammar_counts(
        recipe in recipes(),
        nodes in prop::collection::vec(nodes(), 1..6),
    ) {
        let case = recipe.cook();
        let lists = LeafLists::default();
        for node in nodes.iter().chain(&nodes) {
            let query = Query::parse(case.plain.profile, &text_of(node, 0)).unwrap();
            let slow = count_by_document(&case.corpus, &query, &SearchOptions::default()).unwrap();
            for _ in 0..2 {
                prop_assert_eq!(&counts_by_lists(&case, &lists, &query), &slow, "{}", query);
            }
        }
        lists.clear();
        prop_assert_eq!(lists.memory_bytes(), 0);
    }

    #[test]
    fn folded_expressions_find_what_reading_finds(
        recipe in recipes(),
        queries in prop::collection::vec((nodes(), any::<u64>()), 1..6),
        fold in prop::sample::select(vec!["case", "accents", "case,accents"]),
    ) {
        let case = recipe.cook();
        let fold = fold.parse().unwrap();
        for (node, seed) in &queries {
            check(&case, node, *seed, &fold, &BTreeSet::new());
        }
    }

    #[test]
    fn expressions_find_what_reading_finds_after_edits(
        first in recipes(),
        second in recipes(),
        queries in prop::collection::vec((nodes(), any::<u64>()), 1..6),
        seed in any::<u64>(),
        fold in prop::sample::select(vec!["none", "case"]),
    ) {
        let profile = first.profile;
        let fold = fold.parse().unwrap();
        let whole = |recipe: Recipe| Recipe { profile, cuts: Vec::new(), ..recipe }.cook();
        let first = whole(first);
        let second = whole(second);
        let mut living = LivingCorpus::new(first.corpus);
        living.append_base(&second.corpus).unwrap();
        let mut model = Model::new([first.plain.docs, second.plain.docs].concat());
        let mut random = Random::new(seed);
        for mode in [EditMode::InSequence, EditMode::InBatch] {
            let (operations, _) = model.run_batch(&mut random, profile, mode);
            living.run(mode, &operations).unwrap();
            let texts = model.docs.iter().map(|doc| doc.clone().unwrap_or_default());
            let plain = Plain::from_documents(profile, &numbered(texts));
            let case = Case { plain, corpus: living.snapshot().unwrap() };
            for (node, seed) in &queries {
                check(&case, node, *seed, &fold, &BTreeSet::new());
                check_segments(&case, node, *seed);
            }
        }
    }

    #[test]
    fn the_normal_form_of_an_expression_is_stable(node in nodes(), seed in any::<u64>()) {
        let query = Query::parse(TokenizerProfile::Word, &text_of(&node, seed)).unwrap();
        let again = Query::parse(TokenizerProfile::Word, &query.to_string());
        prop_assert_eq!(again.unwrap(), query);
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[ab() \"~12,/\\\\*?^ANDORTE]{0,40}") {
        if let Ok(query) = Query::parse(TokenizerProfile::Word, &text) {
            let again = Query::parse(TokenizerProfile::Word, &query.to_string());
            prop_assert_eq!(again.unwrap(), query);
        }
    }
}
