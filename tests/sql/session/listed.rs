//! Tests of questions about words that word lists answer: rows are those of a corpus without lists.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::prelude::{SessionConfig, SessionContext};
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use tadoc::build::IngestOptions;
use tadoc::format::{OpenLimits, SegmentLayout};
use testkit::random::Random;
use url::Url;

use super::skipping::counter;
use super::{session_with, table};
use crate::fixtures;
use crate::living_sql::reads::NotingStore;

const WORDS: [&str; 9] = ["the", "The", "storm", "storms", "night", "café", "cafe\u{301}", "x1", "rare"];

/// Writes documents of random words, cut where they exceed a block, some without words.
fn write(path: &Path, seed: u64, layout: SegmentLayout) -> String {
    write_up_to(path, seed, layout, 900)
}

/// Writes documents of random words, the longest of `most_words`. They are cut where they exceed a block.
fn write_up_to(path: &Path, seed: u64, layout: SegmentLayout, most_words: usize) -> String {
    let mut random = Random(seed);
    let mut text = |doc: usize| {
        let num_words = [0, 3, 40, most_words][doc % 4];
        let word = |random: &mut Random| WORDS[random.below(WORDS.len()).min(random.below(WORDS.len()))];
        let words: Vec<&str> = (0..num_words).map(|_| word(&mut random)).collect();
        let words = words.join(if doc.is_multiple_of(3) { " " } else { ", " });
        // Some documents have a word in one of their parts only.
        let ends = if num_words < most_words {
            ["", ""]
        } else {
            *random.pick(&[["first", ""], ["", "last"], ["first", "last"]])
        };
        [ends[0], &words, ends[1]].join(" ")
    };
    let documents: Vec<(String, String)> = (0..60).map(|doc| (format!("{doc}.txt"), text(doc))).collect();
    let borrowed: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    let options = IngestOptions { block_bytes: 3_000, layout, ..IngestOptions::default() };
    fixtures::write_corpus(path, options, &borrowed);
    path.display().to_string()
}

/// Returns a random query of single words.
fn query(random: &mut Random) -> String {
    let word = |random: &mut Random| {
        *random.pick(&[
            "first", "last", "the", "storm", "night", "café", "x1", "rare", "absent", "st*", "?ight", "storm~1",
            "/x[0-9]/",
        ])
    };
    let mut query = word(random).to_owned();
    for _ in 0..random.below(3) {
        let joined = random.pick(&["AND", "OR", "NOT"]);
        query = format!("({query}) {joined} {}", word(random));
    }
    query
}

fn session() -> SessionContext {
    session_with(SessionConfig::new().with_target_partitions(2))
}

#[tokio::test]
async fn rows_from_lists_are_those_of_the_grammar() {
    let dir = tempfile::tempdir().unwrap();
    let half = SegmentLayout::Indexed { max_lists_percent: 5 };
    let mut num_listed = 0;
    for (seed, layout) in [(1, SegmentLayout::INDEXED), (2, SegmentLayout::INDEXED), (3, half)] {
        let indexed = write(&dir.path().join(format!("{seed}.tadoc")), seed, layout);
        let plain = write(&dir.path().join(format!("{seed}.small.tadoc")), seed, SegmentLayout::Small);
        let mut random = Random(seed);
        for _ in 0..40 {
            let query = query(&mut random);
            let fold = random.pick(&["", ", fold => true", ", fold => 'accents'"]);
            let call = match random.below(4) {
                0 => format!("rank('@', '{query}', top => 7{fold})"),
                1 => format!("term_count('@', '{query}'{fold}) WHERE doc_id % 3 <> 1"),
                _ => format!("term_count('@', '{query}'{fold})"),
            };
            let sql = format!("SELECT * FROM {call}");
            let expected = table(&session(), &sql.replace('@', &plain)).await;
            let from_lists = sql.replace('@', &indexed);
            assert_eq!(table(&session(), &from_lists).await, expected, "{seed}: {sql}");
            num_listed += counter(&session(), &from_lists, "segments_listed").await;
        }
    }
    assert!(num_listed > 500, "{num_listed}");
}

#[tokio::test]
async fn phrases_are_counted_without_opening_segments() {
    let dir = tempfile::tempdir().unwrap();
    let calls = [
        "doc_id, path FROM search('@', '\"the storm\"')",
        "count(*) FROM search('@', '\"the storm\" OR night')",
        "count(*) FROM search('@', 'the')",
        "path, count(*) FROM search('@', '\"the s*\"', fold => true) GROUP BY path ORDER BY path",
        "doc_id FROM search('@', '\"storm~1 the\"') WHERE doc_id % 3 = 1",
        "doc_id FROM search('@', '\"the the\"') LIMIT 3",
        "* FROM term_count('@', '\"the storm\" NOT \"rare the\"')",
        "* FROM term_count('@', '\"absent the\" OR first')",
        "* FROM term_count('@', '\"the the the the the the the the the the the the the the the the the\" OR rare')",
        "* FROM rank('@', '\"the night\" \"the storm\" OR rare')",
        "* FROM search('@', '\"the storm\"')",
    ];
    let mut num_grammars = 0;
    let mut num_units = 0;
    let few = SegmentLayout::Indexed { max_lists_percent: 3 };
    for (seed, layout) in [(1, SegmentLayout::INDEXED), (2, few)] {
        // Documents that are cut need their text.
        for most_words in [250, 900] {
            let path = |kind: &str| dir.path().join(format!("{seed}.{most_words}.{kind}.tadoc"));
            let indexed = write_up_to(&path("indexed"), seed, layout, most_words);
            let plain = write_up_to(&path("plain"), seed, SegmentLayout::Small, most_words);
            let shared = session();
            for call in calls {
                let sql = format!("SELECT {call}");
                let expected = table(&session(), &sql.replace('@', &plain)).await;
                let sql = sql.replace('@', &indexed);
                assert_eq!(table(&session(), &sql).await, expected, "{seed} {most_words}: {sql}");
                // Statements that follow each other find some segments open.
                assert_eq!(table(&shared, &sql).await, expected, "{seed} {most_words}: {sql}");
                num_grammars += counter(&session(), &sql, "grammars_counted").await;
                num_units += counter(&session(), &sql, "units_decoded").await;
            }
        }
    }
    assert!(num_grammars > 100 && num_units > 10, "{num_grammars} {num_units}");
}

#[tokio::test]
async fn words_of_few_documents_are_counted_without_opening_segments() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(11);
    let text = |random: &mut Random| {
        let word = |_| format!("w{}", random.below(4_000).min(random.below(4_000)).min(random.below(4_000)));
        (0..4_000).map(word).collect::<Vec<_>>().join(" ")
    };
    let documents: Vec<(String, String)> = (0..150).map(|doc| (format!("{doc}.txt"), text(&mut random))).collect();
    let borrowed: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    let write = |name: &str, layout: SegmentLayout| {
        let path = dir.path().join(name);
        fixtures::write_corpus(&path, IngestOptions { layout, ..IngestOptions::default() }, &borrowed);
        path.display().to_string()
    };
    let plain = write("plain.tadoc", SegmentLayout::Small);
    let mut num_listed = 0;
    let mut num_read = 0;
    for max_lists_percent in [20, 21, 22, 23] {
        let indexed = write(&format!("{max_lists_percent}.tadoc"), SegmentLayout::Indexed { max_lists_percent });
        for word in [0, 7, 2_500, 3_500, 3_900, 3_950] {
            for call in ["term_count('@', 'w0W')", "rank('@', 'w0W OR w3', top => 5)", "term_count('@', 'w0W AND w1')"]
            {
                let sql = format!("SELECT * FROM {}", call.replace("0W", &word.to_string()));
                let expected = table(&session(), &sql.replace('@', &plain)).await;
                let from_lists = sql.replace('@', &indexed);
                assert_eq!(table(&session(), &from_lists).await, expected, "{sql}");
                num_listed += counter(&session(), &from_lists, "segments_listed").await;
                num_read += counter(&session(), &from_lists, "units_decoded").await;
                num_read += counter(&session(), &from_lists, "grammars_counted").await;
            }
        }
    }
    assert!(num_listed > 20 && num_read > 15, "{num_listed} {num_read}");
}

#[tokio::test]
async fn a_segment_without_lists_leaves_the_others_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let words = |of: &str, num: usize| (0..num).map(|at| format!("{of}{at}")).collect::<Vec<_>>().join(" ");
    // Lists of documents that repeat each other would be longer than their grammar.
    let repeated = words("same", 800);
    let mut texts = vec![repeated; 1_500];
    texts.extend((0..40).map(|doc| format!("{} same7", words(&format!("w{doc}x"), 3_000))));
    let documents: Vec<(String, &[u8])> =
        texts.iter().enumerate().map(|(doc, text)| (format!("{doc}.txt"), text.as_bytes())).collect();
    let borrowed: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let path = dir.path().join("a.tadoc");
    let options = IngestOptions { block_bytes: repeated_bytes(&texts), ..IngestOptions::default() };
    fixtures::write_corpus(&path, options, &borrowed);
    let (footer, _) = tadoc::Corpus::open(&path, &OpenLimits::default()).unwrap();
    let has_lists: Vec<bool> = footer.segments.iter().map(|segment| segment.lists_range().is_some()).collect();
    assert!(has_lists.contains(&true) && has_lists.contains(&false), "{has_lists:?}");
    let sql = |word: &str| format!("SELECT count(*), sum(count) FROM term_count('{}', '{word}')", path.display());
    for (word, rows, num_listed) in [("same7", 1_540, 1), ("same8", 1_500, 0), ("w3x9", 1, 0)] {
        let found = table(&session(), &sql(word)).await;
        assert!(found.contains(&format!("| {rows} ")), "{word}: {found}");
        let listed = counter(&session(), &sql(word), "segments_listed").await;
        assert!(listed >= num_listed, "{word}: {listed}");
    }
}

/// Returns the length of the documents that are equal to the first one.
fn repeated_bytes(texts: &[String]) -> usize {
    texts.iter().take_while(|text| **text == texts[0]).map(String::len).sum()
}

#[tokio::test]
async fn questions_about_places_open_segments() {
    let dir = tempfile::tempdir().unwrap();
    let indexed = write(&dir.path().join("a.tadoc"), 5, SegmentLayout::INDEXED);
    let plain = write(&dir.path().join("b.tadoc"), 5, SegmentLayout::Small);
    for call in [
        "search('@', 'storm')",
        "kwic('@', 'storm', width => 2)",
        "term_count('@', '\"the storm\"')",
        "term_count('@', 'NEAR(storm night, 2)')",
        "term_count('@', '^storm')",
        "term_count('@', 'storm', exact => true)",
        "rank('@', '\"the night\" OR rare')",
    ] {
        let sql = format!("SELECT * FROM {call}");
        // The lists leave the session in a state that other questions can go on from.
        let context = session();
        table(&context, &format!("SELECT * FROM term_count('{indexed}', 'storm OR st*')")).await;
        let expected = table(&session(), &sql.replace('@', &plain)).await;
        assert_eq!(table(&context, &sql.replace('@', &indexed)).await, expected, "{call}");
        table(&context, &format!("SELECT * FROM word_count('{indexed}')")).await;
        assert_eq!(table(&context, &sql.replace('@', &indexed)).await, expected, "{call}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_wait_few_times_for_a_store() {
    let dir = tempfile::tempdir().unwrap();
    // Words enough for a dictionary with a head, and for lists beyond the budget.
    let text = |doc: usize| (0..9_000).map(|at| format!("w{}x{at} the storm ", doc / 2)).collect::<String>();
    let documents: Vec<(String, String)> = (0..24).map(|doc| (format!("{doc}.txt"), text(doc))).collect();
    let borrowed: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    let path = dir.path().join("a.tadoc");
    let options = IngestOptions { block_bytes: 1 << 20, ..IngestOptions::default() };
    fixtures::write_corpus(&path, options, &borrowed);
    let (footer, _) = tadoc::Corpus::open(&path, &OpenLimits::default()).unwrap();
    assert!(footer.segments.len() > 3 && footer.segments.iter().all(|segment| segment.head_range().is_some()));
    let store = NotingStore::new(InMemory::new());
    store.put(&"a.tadoc".into(), fs::read(&path).unwrap().into()).await.unwrap();
    let store = store.with_latency(Duration::from_millis(200));
    for (most_rounds, statement) in [
        (6, "count(*) FROM term_count('@', 'w3x77')"),
        (6, "count(*) FROM term_count('@', 'the OR absent')"),
        (6, "* FROM rank('@', 'w3x77 storm') LIMIT 2"),
        (6, "count(*) FROM search('@', '\"the storm\"')"),
        (6, "* FROM search('@', 'w3x77')"),
        (6, "* FROM kwic('@', 'w3x77 the')"),
        (6, "byte_offset FROM search('@', 'the') LIMIT 50"),
        (4, "text FROM documents('@') WHERE doc_id = 9"),
        (4, "* FROM extract('@', 9, 100, 20)"),
    ] {
        let context = session();
        context.register_object_store(&Url::parse("mem://far").unwrap(), Arc::new(store.clone()));
        store.take_rounds();
        let rows = super::batches(&context, &format!("SELECT {}", statement.replace('@', "mem://far/a.tadoc"))).await;
        assert!(rows.unwrap().iter().any(|batch| batch.num_rows() > 0), "{statement}");
        let num_rounds = store.take_rounds();
        assert!(num_rounds <= most_rounds, "{statement}: {num_rounds} rounds");
    }
}

#[tokio::test]
async fn damaged_lists_are_an_error_and_not_other_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tadoc");
    let indexed = write_up_to(&path, 7, SegmentLayout::INDEXED, 250);
    let bytes = fs::read(&path).unwrap();
    for query in ["st* OR night", "\"the storm\""] {
        fs::write(&path, &bytes).unwrap();
        let sql = format!("SELECT * FROM term_count('{indexed}', '{query}')");
        let right = table(&session(), &sql).await;
        let mut num_faults = 0;
        for at in (64..bytes.len()).step_by(61) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            match super::batches(&session(), &sql).await {
                Ok(_) => assert_eq!(table(&session(), &sql).await, right, "byte {at}"),
                Err(error) => {
                    num_faults += 1;
                    assert!(error.to_string().contains("a.tadoc"), "{error}");
                }
            }
        }
        assert!(num_faults > 0, "{query}");
    }
}
