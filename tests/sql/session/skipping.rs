//! Tests of statements that look for words: segments without these words are not opened, and the
//! rows are those of a corpus that is loaded whole.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use tadoc::build::IngestOptions;
use tadoc::format::SegmentLayout;
use testkit::random::Random;

use super::{batches, session_with, table};
use crate::fixtures;

/// Queries of `@`, and the number of segments that each skips in a new session.
const QUERIES: [(&str, usize); 37] = [
    ("SELECT * FROM search('@', 'only3')", 3),
    ("SELECT * FROM search('@', 'ONLY3', fold => true)", 3),
    ("SELECT * FROM search('@', 'only?')", 0),
    ("SELECT * FROM search('@', '\"w1 only2\"')", 3),
    ("SELECT * FROM search('@', 'only1 only2')", 4),
    // All segments have the words. The one that has them in a row is known when it is open.
    ("SELECT * FROM search('@', '\"left right\"')", 0),
    ("SELECT * FROM search('@', '\"right left\"')", 0),
    ("SELECT * FROM kwic('@', '\"LEFT right\"', width => 3, fold => true)", 0),
    ("SELECT * FROM term_count('@', '\"left right\" OR only3')", 0),
    ("SELECT * FROM search('@', 'NEAR(\"left right\" w1, 50) OR \"right left\" w1')", 0),
    ("SELECT * FROM search('@', 'absent')", 4),
    ("SELECT * FROM search('@', 'only0', doc_id => 0)", 3),
    ("SELECT count(*) FROM search('@', 'w1')", 0),
    ("SELECT * FROM term_count('@', 'only0')", 3),
    ("SELECT * FROM term_count('@', '/only[12]/')", 2),
    ("SELECT text FROM extract('@', 2, 10, 30)", 3),
    ("SELECT length(text) FROM extract('@', 0, 0, 1000000)", 3),
    ("SELECT * FROM kwic('@', 'only2', width => 3)", 3),
    ("SELECT path, line_number, byte_offset FROM grep('@', 'only2')", 3),
    ("SELECT path, byte_offset, byte_len FROM grep('@', 'w1 (only1|only3)')", 2),
    ("SELECT path, byte_offset, length(line) FROM grep('@', 'ONLY[03]', fold => true)", 2),
    ("SELECT path, byte_offset, byte_len FROM grep('@', 'absent|^$')", 0),
    ("SELECT path, byte_offset FROM grep('@', 'w1') WHERE doc_id >= 2", 2),
    ("SELECT path, byte_offset FROM grep('@', 'absent|bsent')", 4),
    ("SELECT doc_id, path, bytes, words FROM documents('@') WHERE text LIKE '%only1%'", 3),
    ("SELECT path FROM documents('@') WHERE text LIKE '%only1%' OR text LIKE '%nly3%'", 2),
    ("SELECT path FROM documents('@') WHERE text LIKE '%absent%'", 4),
    ("SELECT path FROM documents('@') WHERE text NOT LIKE '%only1%'", 0),
    ("SELECT path FROM documents('@') WHERE contains(text, 'only2') AND path LIKE '%2.txt'", 3),
    ("SELECT right(text, 90) FROM documents('@') WHERE path = '2.txt'", 3),
    ("SELECT doc_id, right(CAST(content AS VARCHAR), 90) FROM documents('@') WHERE doc_id IN (0, 3)", 2),
    ("SELECT doc_id, text FROM documents('@') WHERE bytes < 0 OR words < 0", 4),
    ("SELECT right(text, 90) FROM documents('@') WHERE doc_id < 2 AND text LIKE '%only1%'", 3),
    ("SELECT right(text, 90) FROM documents('@') WHERE doc_id < 2 AND text LIKE '%only3%'", 4),
    ("SELECT length(text) FROM documents('@') WHERE bytes > 0", 0),
    ("SELECT * FROM search('@', 'w1') WHERE doc_id = 2", 3),
    ("SELECT * FROM term_count('@', '/only[12]/') WHERE doc_id > 1", 3),
];

/// Queries of `@` with conditions on documents, and the number of segments that each skips, in a new
/// session and where the corpus is open.
const CONDITIONS: [(&str, usize); 15] = [
    ("SELECT text FROM extract('@', 2, 10, 30)", 3),
    ("SELECT * FROM search('@', 'only0', doc_id => 0)", 3),
    ("SELECT * FROM search('@', 'w1') WHERE doc_id = 2", 3),
    ("SELECT * FROM kwic('@', 'w1', width => 3) WHERE doc_id IN (1, 3)", 2),
    ("SELECT * FROM term_count('@', 'w1') WHERE doc_id > 2", 3),
    ("SELECT path FROM grep('@', 'only2')", 3),
    ("SELECT path, byte_offset FROM grep('@', 'w1') WHERE doc_id >= 2", 2),
    ("SELECT path FROM documents('@') WHERE text LIKE '%only1%'", 3),
    ("SELECT length(text) FROM documents('@') WHERE path = '2.txt'", 3),
    ("SELECT doc_id FROM documents('@') WHERE path LIKE '2%' OR path LIKE '3%'", 2),
    ("SELECT doc_id FROM documents('@') WHERE doc_id < 1", 3),
    ("SELECT path, bytes FROM documents('@') WHERE bytes < 0", 4),
    ("SELECT path, words FROM documents('@') WHERE doc_id % 2 = 0", 2),
    ("SELECT count(*) FROM documents('@') WHERE doc_id >= 0", 0),
    ("SELECT path FROM documents('@') WHERE doc_id > 7", 4),
];

/// Writes four documents, each a segment, of words in random order. Each has one word of its own, and the second
/// begins with two words that are apart in the others.
fn write(path: &Path, words_per_doc: usize, layout: SegmentLayout) -> String {
    let mut random = Random(7);
    let num_words = (words_per_doc / 10).min(500);
    let mut text = |doc: usize| {
        let mut words: Vec<String> = (0..words_per_doc).map(|_| format!("w{}", random.below(num_words))).collect();
        words[words_per_doc / 2 - 1] = "w1".to_owned();
        words[words_per_doc / 2] = format!("only{doc}");
        words[0] = "left".to_owned();
        words[if doc == 1 { 1 } else { 3 }] = "right".to_owned();
        words.join(" ")
    };
    let documents: Vec<(String, String)> = (0..4).map(|doc| (format!("{doc}.txt"), text(doc))).collect();
    let borrowed: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    let len_bytes = documents.iter().map(|(_, text)| text.len()).max().unwrap();
    // Two documents exceed a block, and none is cut.
    let options = IngestOptions { block_bytes: len_bytes, layout, ..IngestOptions::default() };
    fixtures::write_corpus(path, options, &borrowed);
    path.display().to_string()
}

/// Returns the counter `name` of `plan`; 0 if there is none.
fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
    let own = own.map_or(0, |value| value.as_usize());
    own + plan.children().into_iter().map(|child| metric(child, name)).sum::<usize>()
}

/// Runs `sql` and returns the counter `name`.
pub(super) async fn counter(ctx: &SessionContext, sql: &str, name: &str) -> usize {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    metric(&plan, name)
}

/// Returns the rows of `sql`. Those of several partitions come in any order.
async fn sorted(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let mut lines: Vec<String> = table(ctx, sql).await.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[tokio::test]
async fn segments_without_the_words_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    for (name, words_per_doc, layout) in [
        ("few.tadoc", 40, SegmentLayout::Small),
        ("small.tadoc", 100_000, SegmentLayout::Small),
        ("without_lists.tadoc", 100_000, SegmentLayout::Indexed { max_lists_percent: 0 }),
        ("indexed.tadoc", 100_000, SegmentLayout::INDEXED),
    ] {
        let path = write(&dir.path().join(name), words_per_doc, layout);
        let loaded = fixtures::session();
        table(&loaded, &format!("SELECT count(*) FROM term_vector('{path}')")).await;
        let one_after_another = fixtures::session();
        for (query, num_skipped) in QUERIES {
            let query = query.replace('@', &path);
            let skipped = counter(&fixtures::session(), &query, "segments_skipped").await;
            assert_eq!(skipped, num_skipped, "{query}");
            let expected = sorted(&loaded, &query).await;
            assert_eq!(sorted(&fixtures::session(), &query).await, expected, "{query}");
            let one_partition = session_with(SessionConfig::new().with_target_partitions(1));
            assert_eq!(sorted(&one_partition, &query).await, expected, "{query}");
            assert_eq!(sorted(&one_after_another, &query).await, expected, "{query}");
        }
    }
}

#[tokio::test]
async fn conditions_skip_segments_of_open_corpora_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir.path().join("few.tadoc"), 40, SegmentLayout::Small);
    let open = fixtures::session();
    table(&open, &format!("SELECT count(*) FROM term_vector('{path}')")).await;
    for (query, num_skipped) in CONDITIONS {
        let query = query.replace('@', &path);
        for target in [1, 3, 4] {
            let config = SessionConfig::new().with_target_partitions(target);
            let skipped = counter(&session_with(config), &query, "segments_skipped").await;
            assert_eq!(skipped, num_skipped, "{query} in {target} partitions");
        }
        assert_eq!(counter(&open, &query, "segments_skipped").await, num_skipped, "{query}");
    }
}

#[tokio::test]
async fn opened_segments_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir.path().join("large.tadoc"), 100_000, SegmentLayout::Small);
    let file_len = fs::metadata(&path).unwrap().len() as usize;
    assert!(file_len > 300 << 10, "{file_len}");
    let search = |word: &str| format!("SELECT * FROM search('{path}', '{word}')");
    let ctx = fixtures::session();
    let read = async |sql: String| counter(&ctx, &sql, "bytes_read").await;
    let of_dictionaries = read(search("absent")).await;
    assert!((1..file_len / 8).contains(&of_dictionaries), "{of_dictionaries}");
    let of_one = read(search("only1")).await;
    assert!((file_len / 5..file_len / 3).contains(&of_one), "{of_one} of {file_len}");
    assert_eq!(read(search("only1")).await, 0);
    let of_rest = read(search("only?")).await;
    assert!((2 * of_one..4 * of_one).contains(&of_rest), "{of_rest} after {of_one}");
    // The file is whole now.
    assert_eq!(read(format!("SELECT * FROM term_vector('{path}')")).await, 0);
}

#[tokio::test]
async fn a_document_is_read_without_the_other_dictionaries() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir.path().join("large.tadoc"), 100_000, SegmentLayout::Small);
    let file_len = fs::metadata(&path).unwrap().len() as usize;
    let ctx = fixtures::session();
    let read = async |sql: String| counter(&ctx, &sql, "bytes_read").await;
    let extract = format!("SELECT text FROM extract('{path}', 2, 10, 30)");
    let of_one = read(extract.clone()).await;
    assert!((file_len / 5..file_len / 3).contains(&of_one), "{of_one} of {file_len}");
    assert_eq!(read(extract).await, 0);
    // So is a search in one document.
    let in_one = format!("SELECT * FROM search('{path}', 'w1', doc_id => 2)");
    let of_search = counter(&fixtures::session(), &in_one, "bytes_read").await;
    assert_eq!(of_search, of_one);
    // Its dictionary was read with it.
    let of_three = read(format!("SELECT * FROM search('{path}', 'absent')")).await;
    assert!((1..file_len / 8).contains(&of_three), "{of_three}");
    let of_all = format!("SELECT * FROM search('{path}', 'absent')");
    let of_four = counter(&fixtures::session(), &of_all, "bytes_read").await;
    assert!((of_four / 2..of_four).contains(&of_three), "{of_three} of {of_four}");
    for word in ["only2", "only3", "absent", "w1"] {
        let sql = format!("SELECT * FROM search('{path}', '{word}')");
        assert_eq!(sorted(&ctx, &sql).await, sorted(&fixtures::session(), &sql).await, "{word}");
    }
}

#[tokio::test]
async fn a_file_of_which_a_part_is_open_is_loaded_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir.path().join("small.tadoc"), 40, SegmentLayout::Small);
    let ctx = fixtures::session();
    let other = fixtures::session();
    let count = format!("SELECT word, count FROM word_count('{path}') ORDER BY word");
    let vectors = format!("SELECT * FROM term_vector('{path}') ORDER BY doc_id, word");
    let search = format!("SELECT * FROM search('{path}', 'only2')");
    table(&ctx, &search).await;
    for query in [&count, &vectors, &search] {
        assert_eq!(sorted(&ctx, query).await, sorted(&other, query).await, "{query}");
    }
    assert_eq!(counter(&ctx, &search, "segments_skipped").await, 0);
}

#[tokio::test]
async fn lists_of_documents_stay_with_opened_segments() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir.path().join("small.tadoc"), 40, SegmentLayout::Small);
    let ctx = fixtures::session();
    let mut held = Vec::new();
    for query in ["only1 OR only2", "only1 OR only2", "only1 OR only2", "w1 only3", "w1 only3", "only?"] {
        let sql = format!("SELECT * FROM term_count('{path}', '{query}')");
        assert_eq!(sorted(&ctx, &sql).await, sorted(&fixtures::session(), &sql).await, "{query}");
        held.push(ctx.runtime_env().memory_pool.reserved());
    }
    // The second time makes the lists, and the third finds them.
    assert!(held[0] < held[1] && held[1] == held[2], "{held:?}");
    // Those of other segments are not taken for those of all.
    for query in ["only1 OR only2", "w1", "w1", "only3 OR only1"] {
        let sql = format!("SELECT * FROM term_count('{path}', '{query}')");
        assert_eq!(sorted(&ctx, &sql).await, sorted(&fixtures::session(), &sql).await, "{query}");
    }
}

#[tokio::test]
async fn user_columns_choose_the_segments() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("events.tadoc").display().to_string();
    let ctx = fixtures::session();
    let rows = "SELECT 'event ' || i || ' of host ' || repeat('abc ', 100 + i % 7) AS text, \
                to_timestamp(i * 60) AS at FROM (SELECT unnest(range(0, 1000)) AS i)";
    table(&ctx, "SET tadoc.block_bytes = 50000").await;
    table(&ctx, &format!("COPY ({rows}) TO '{file}' STORED AS TADOC")).await;
    let open = async || {
        let ctx = fixtures::session();
        let create = format!("CREATE EXTERNAL TABLE events STORED AS TADOC LOCATION '{file}'");
        table(&ctx, &create).await;
        ctx
    };
    let at = |minute: u32| format!("to_timestamp({})", minute * 60);
    let ranges = [(0, 10), (500, 503), (990, 2000), (2000, 3000)];
    for (first, end) in ranges {
        let sql = format!(
            "SELECT doc_id, left(text, 20) AS text FROM events WHERE at >= {} AND at < {} AND text LIKE 'event%' \
             ORDER BY doc_id",
            at(first),
            at(end)
        );
        let skipped = counter(&open().await, &sql, "segments_skipped").await;
        assert!(skipped >= 5, "{sql}: {skipped}");
        let rows = table(&open().await, &sql).await;
        let expected: Vec<u32> = (first..end.min(1000)).collect();
        assert_eq!(rows.matches("event ").count(), expected.len(), "{sql}");
        assert!(expected.iter().all(|i| rows.contains(&format!("event {i} of"))), "{sql}");
        // Facts of documents have no other segments than texts.
        let facts = format!("SELECT path, bytes FROM events WHERE at >= {} AND at < {}", at(first), at(end));
        assert_eq!(counter(&open().await, &facts, "segments_skipped").await, skipped, "{facts}");
        // The documents that a join chooses so are those that are searched.
        let search = format!(
            "SELECT s.doc_id, s.byte_offset FROM search('events', 'event') s JOIN events d \
             ON s.doc_id = d.doc_id WHERE d.at >= {} AND d.at < {} ORDER BY s.doc_id",
            at(first),
            at(end)
        );
        let skipped = counter(&open().await, &search, "segments_skipped").await;
        // Without a document nothing is searched.
        assert!(skipped >= 5 || expected.is_empty(), "{search}: {skipped}");
        let rows = batches(&open().await, &search).await.unwrap();
        let num_rows: usize = rows.iter().map(|rows| rows.num_rows()).sum();
        assert_eq!(num_rows, expected.len(), "{search}");
    }
}

#[tokio::test]
async fn a_file_that_is_cut_under_a_session_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let all = "SELECT count(*), sum(length(text)) FROM documents('@')";
    for case in 0..8 {
        let layout = [SegmentLayout::Small, SegmentLayout::INDEXED][case / 4];
        let quarters = case % 4;
        let path = write(&dir.path().join("cut.tadoc"), 20_000, layout);
        let whole = fs::read(&path).unwrap();
        let ctx = fixtures::session();
        let expected = sorted(&ctx, &format!("SELECT * FROM search('{path}', 'only1')")).await;
        // One segment is open, and the plans are made.
        let mut plans = Vec::new();
        for query in [all, "SELECT * FROM term_vector('@')", "SELECT * FROM search('@', 'only2')"] {
            let frame = ctx.sql(&query.replace('@', &path)).await.unwrap();
            plans.push(frame.create_physical_plan().await.unwrap());
        }
        fs::write(&path, &whole[..whole.len() * quarters / 4]).unwrap();
        for (at, plan) in plans.into_iter().enumerate() {
            match collect(plan, ctx.task_ctx()).await {
                // What a search of one segment reads may still be there.
                Ok(rows) => {
                    let num_rows: usize = rows.iter().map(|batch| batch.num_rows()).sum();
                    assert_eq!((at, num_rows), (2, 1));
                }
                Err(error) => assert!(error.to_string().contains("cut.tadoc"), "{error}"),
            }
        }
        let error = batches(&ctx, &all.replace('@', &path)).await.unwrap_err().to_string();
        assert!(error.contains("cut.tadoc"), "{layout} {quarters}: {error}");
        // The session answers again when the file is back.
        fs::write(&path, &whole).unwrap();
        let search = format!("SELECT * FROM search('{path}', 'only1')");
        assert_eq!(sorted(&ctx, &search).await, expected, "{layout} {quarters}");
    }
}
