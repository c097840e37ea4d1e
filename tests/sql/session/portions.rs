//! Tests of corpora larger than memory: the rows of all portions together are those of the whole
//! corpus.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use tadoc::build::IngestOptions;
use tempfile::TempDir;

use super::skipping::counter;
use super::{batches, session_with, table};
use crate::fixtures;

/// Returns the bytes for decoding: 3 MiB for each segment that is decoded at once, of which plans count two.
fn decoding_bytes() -> usize {
    (3 << 20) * std::thread::available_parallelism().unwrap().get().min(2)
}

/// Returns a limit for some of the segments. All together hold 1 MiB or more.
fn limit() -> usize {
    decoding_bytes() + (1 << 19)
}

const NUM_DOCS: usize = 300;

/// Writes two files, the first of many segments, with documents that span several of them.
fn write(dir: &TempDir) -> String {
    let text = |at: usize| {
        if at == 200 {
            return "... ?\n".to_owned();
        }
        let line = format!("the {at} quick brown foxes {} jump, caf\u{e9} and all\n", at % 17);
        // Each document has its own words, so that segments take most of the memory.
        let own: String = (0..100).map(|word| format!("{at}_{word} ")).collect();
        own + &line.repeat(if at % 100 == 50 { 2_000 } else { 1 + at % 40 })
    };
    let documents: Vec<(String, Vec<u8>)> =
        (0..NUM_DOCS).map(|at| (format!("{at:03}.txt"), text(at).into_bytes())).collect();
    let borrowed: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_slice())).collect();
    let (first, second) = borrowed.split_at(NUM_DOCS - 40);
    for (name, documents) in [("a.tadoc", first), ("b.tadoc", second)] {
        let options = IngestOptions { block_bytes: 40_000, ..IngestOptions::default() };
        fixtures::write_corpus(&dir.path().join(name), options, documents);
    }
    dir.path().display().to_string()
}

/// Queries of `@`. Rows without an order of their own are sorted.
const QUERIES: [&str; 46] = [
    "SELECT * FROM documents('@')",
    "SELECT doc_id, path FROM documents('@') WHERE doc_id % 7 = 3 AND text LIKE '%foxes 1%'",
    "SELECT count(*) FROM documents('@') WHERE text LIKE '%299 quick%'",
    "SELECT doc_id, bytes, length(text) FROM documents('@') WHERE doc_id IN (3, 150, 298) ORDER BY 1 DESC",
    "SELECT * FROM documents('@') LIMIT 3",
    "SELECT * FROM search('@', '\"brown foxes\"')",
    "SELECT * FROM search('@', 'caf\u{e9}', doc_id => 297)",
    "SELECT path FROM search('@', '77') WHERE doc_id > 70",
    "SELECT * FROM kwic('@', '250', width => 2)",
    "SELECT * FROM grep('@', '(brown|quick).* 25[0-9]\\b')",
    "SELECT doc_id, line_number, before, after FROM grep('@', 'FOXES', 1, fold => true) WHERE doc_id > 290",
    "SELECT * FROM term_count('@', 'f*')",
    "SELECT * FROM term_vector('@') WHERE doc_id BETWEEN 140 AND 160 OR doc_id = 280",
    "SELECT doc_id, word, count FROM term_vector('@', top => 2)",
    "SELECT * FROM extract('@', 299, 4, 20)",
    "SELECT * FROM sequence_count('@', 2, by_doc => true) WHERE doc_id < 5 OR doc_id > 295",
    "SELECT * FROM sequence_count('@') ORDER BY sequence",
    "SELECT count(*), sum(count) FROM sequence_count('@', 2) WHERE count > 100",
    "SELECT sequence FROM sequence_count('@', 4, fold => true) ORDER BY count DESC, sequence LIMIT 9",
    "SELECT * FROM cooccurrence('@') ORDER BY word1, word2",
    "SELECT word1, sum(count) FROM cooccurrence('@', window => 3) GROUP BY word1 ORDER BY word1",
    "SELECT * FROM word_count('@') WHERE count > 20 ORDER BY word",
    "SELECT d.path, v.word FROM documents('@') d JOIN term_vector('@', 1) v USING (doc_id) ORDER BY 1, 2",
    "SELECT sequence, count FROM sequence_count('@') s WHERE count = \
        (SELECT max(count) FROM sequence_count('@')) ORDER BY sequence",
    "SELECT count(*) FROM sequence_count('@', 2)",
    "SELECT * FROM cooccurrence('@', min_count => 300) ORDER BY word1, word2",
    "SELECT count(*), sum(count) FROM cooccurrence('@', min_count => 40, fold => true) WHERE count < 90",
    "SELECT * FROM inverted_index('@') WHERE doc_count > 1 ORDER BY word",
    "SELECT word, doc_ids[2], cardinality(doc_ids) FROM inverted_index('@', fold => true) ORDER BY 1",
    "SELECT count(*), sum(doc_count), max(word) FROM inverted_index('@') WHERE word > 'b'",
    "SELECT * FROM tfidf('@') WHERE doc_id IN (0, 150, 299) ORDER BY doc_id, word",
    "SELECT doc_id, word, score FROM tfidf('@', top => 3)",
    "SELECT count(*), sum(df), sum(tf) FROM tfidf('@', fold => true) WHERE score > 0",
    "SELECT count(*) FROM tfidf('@', top => 0)",
    "SELECT * FROM ranked_inverted_index('@', 2) WHERE rank < 3 AND count > 1 ORDER BY sequence, rank",
    "SELECT doc_id, sum(count) FROM ranked_inverted_index('@', 4) WHERE doc_id > 295 GROUP BY doc_id ORDER BY 1",
    "SELECT doc_id, word_index, word FROM tokens('@') WHERE doc_id % 100 = 49",
    "SELECT * FROM tokens('@', fold => true) WHERE doc_id IN (7, 260) ORDER BY doc_id, word_index",
    "SELECT count(*), sum(word_id) FROM tokens('@') WHERE doc_id BETWEEN 198 AND 201",
    "SELECT * FROM doc_term_matrix('@') WHERE doc_id % 30 = 1",
    "SELECT count(*), sum(cardinality(counts)), max(word_ids[1]) FROM doc_term_matrix('@', fold => true)",
    "SELECT * FROM log_templates('@') ORDER BY template",
    "SELECT * FROM log_templates('@', similarity => 1) WHERE count > 3 ORDER BY template",
    "SELECT * FROM log_templates('@', depth => 3, by_doc => true) WHERE doc_id % 50 = 0 ORDER BY doc_id, template",
    "SELECT * FROM log_templates('@', similarity => 1, by_doc => true) WHERE doc_id > 270 ORDER BY doc_id, template",
    "SELECT t.word, i.doc_count FROM tfidf('@', top => 1) t JOIN inverted_index('@') i USING (word) ORDER BY 1 LIMIT 5",
];

async fn rows(ctx: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    batches(ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn portions_together_are_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = write(&dir);
    for query in QUERIES {
        let sql = query.replace('@', &corpus);
        let whole = session_with(SessionConfig::new().with_target_partitions(1));
        let expected = rows(&whole, &sql).await;
        for (limit, num_runs) in [(limit(), 2), (limit() + (1 << 18), 1)] {
            let ctx = session_with(SessionConfig::new().with_target_partitions(2));
            table(&ctx, &format!("SET tadoc.max_memory_bytes = '{limit}'")).await;
            table(&ctx, "SET tadoc.traversal = 'top_down'").await;
            let plan = table(&ctx, &format!("EXPLAIN {sql}")).await;
            assert!(plan.contains("TadocPortionsExec"), "{sql}\n{plan}");
            for _ in 0..num_runs {
                let shown = |rows: &[RecordBatch]| pretty_format_batches(rows).unwrap().to_string();
                let got = shown(&rows(&ctx, &sql).await);
                let expected = shown(&expected);
                let differs = got.lines().zip(expected.lines()).find(|(a, b)| a != b);
                assert_eq!((differs, got.len()), (None, expected.len()), "{sql}");
            }
        }
    }
}

/// Spans of one portion are repeated in others, which are loaded to compare them. Texts are found in all,
/// and documents are similar to those of other portions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_that_load_portions_themselves_have_the_rows_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = write(&dir);
    let asked = "CREATE VIEW asked AS SELECT 'the ' || value || ' quick brown foxes ' || (value % 17) \
                 || ' jump!' AS text FROM generate_series(0, 299, 7)";
    let whole = session_with(SessionConfig::new().with_target_partitions(1));
    table(&whole, asked).await;
    for call in [
        format!("repeated_spans('{corpus}', min_words => 20)"),
        format!("repeated_spans('{corpus}', min_words => 50)"),
        format!("overlap('{corpus}', 'asked', n => 4)"),
        format!("near_duplicates('{corpus}', threshold => 0.04, n => 1)"),
        format!("near_duplicate_clusters('{corpus}', threshold => 0.04, n => 1)"),
    ] {
        let sql = format!("SELECT * FROM {call}");
        let expected = table(&whole, &sql).await;
        assert!(expected.lines().count() > 20, "{expected}");
        let ctx = session_with(SessionConfig::new().with_target_partitions(2));
        table(&ctx, asked).await;
        table(&ctx, &format!("SET tadoc.max_memory_bytes = '{}'", limit())).await;
        let analyzed = table(&ctx, &format!("EXPLAIN ANALYZE {sql}")).await;
        assert!(analyzed.contains("portions=") && !analyzed.contains("portions=1,"), "{analyzed}");
        assert!(table(&ctx, &sql).await == expected, "{call}");
    }
}

/// Portions take half of the memory. The error of the function names the limit of both.
#[tokio::test]
async fn errors_of_functions_that_load_portions_name_the_whole_limit() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = write(&dir);
    let ctx = session_with(SessionConfig::new());
    let asked = "CREATE VIEW asked AS SELECT 'text ' || value || ' of many' AS text \
                 FROM generate_series(1, 100000)";
    table(&ctx, asked).await;
    table(&ctx, &format!("SET tadoc.max_memory_bytes = '{}'", limit())).await;
    let sql = format!("SELECT count(*) FROM overlap('{corpus}', 'asked', n => 3)");
    let error = super::batches(&ctx, &sql).await.unwrap_err().to_string();
    assert!(error.contains(&format!("the limit is {};", limit())), "{error}");
}

/// Only portions with wanted documents are read.
#[tokio::test]
async fn ids_choose_the_portions() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = write(&dir);
    let ctx = session_with(SessionConfig::new());
    table(&ctx, &format!("SET tadoc.max_memory_bytes = '{}'", limit())).await;
    for (call, filter) in [
        ("documents", "WHERE doc_id = 299"),
        ("term_vector", "WHERE doc_id >= 299"),
        ("search", "WHERE doc_id IN (1, 2)"),
    ] {
        let query = if call == "search" { ", 'quick'" } else { "" };
        let sql = format!("EXPLAIN SELECT * FROM {call}('{corpus}'{query}) {filter}");
        let plan = table(&ctx, &sql).await;
        assert!(plan.contains("read=1") && !plan.contains("portions=1,"), "{plan}");
    }
    let nothing = format!("SELECT count(*) FROM term_vector('{corpus}') WHERE doc_id < 0");
    assert!(table(&ctx, &nothing).await.contains("| 0 "));
}

/// A pool without room for the whole corpus takes one portion after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bounded_pool_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = write(&dir);
    // Half of the pool is for loaded data.
    let pool_bytes = 2 * limit();
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(pool_bytes, 1.0).build_arc().unwrap();
    let pool = std::sync::Arc::clone(&runtime.memory_pool);
    // A sort reserves 10 MiB for the merge of spilled rows, which is nearly all of this pool.
    let config = SessionConfig::new().with_sort_spill_reservation_bytes(1 << 18);
    let builder = SessionStateBuilder::new().with_runtime_env(runtime).with_config(config);
    let ctx = SessionContext::new_with_state(builder.with_default_features().with_tadoc().build());
    let unlimited = session_with(SessionConfig::new());
    for query in [
        "SELECT count(*), sum(bytes) FROM documents('@') WHERE text <> ''",
        "SELECT count(*), sum(count) FROM sequence_count('@', 2) WHERE count > 100",
        "SELECT count(*), sum(tf), sum(df) FROM tfidf('@') WHERE doc_id % 2 = 0",
        "SELECT count(*), sum(cardinality(doc_ids)) FROM inverted_index('@')",
    ] {
        let sql = query.replace('@', &corpus);
        assert_eq!(table(&ctx, &sql).await, table(&unlimited, &sql).await);
        assert!(pool.reserved() <= pool_bytes);
    }
    let count = format!("SELECT count(*) FROM word_count('{corpus}')");
    assert_eq!(table(&ctx, &count).await, table(&unlimited, &count).await);
}

/// If the pool has no room for a segment, the error names a sufficient limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_that_an_error_names_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = write(&dir);
    let session_of = |pool_bytes: usize| {
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(pool_bytes, 1.0).build_arc();
        let builder = SessionStateBuilder::new().with_runtime_env(runtime.unwrap());
        SessionContext::new_with_state(builder.with_default_features().with_tadoc().build())
    };
    let unlimited = session_with(SessionConfig::new());
    for query in [
        "SELECT count(*), sum(length(text)) FROM documents('@')",
        "SELECT count(*), sum(count) FROM sequence_count('@', 3)",
        "SELECT count(*), sum(byte_offset) FROM search('@', 'brown')",
        "SELECT count(*), sum(count) FROM repeated_phrases('@')",
    ] {
        let sql = query.replace('@', &corpus);
        let refused = batches(&session_of(1 << 20), &sql).await.unwrap_err();
        let error = refused.find_root().to_string();
        assert!(matches!(refused.find_root(), DataFusionError::ResourcesExhausted(_)), "{error}");
        let (_, named) = error.split_once("--memory-limit ").unwrap_or_else(|| panic!("{error}"));
        let (mebibytes, _) = named.split_once("MiB").unwrap();
        let enough = session_of(mebibytes.parse::<usize>().unwrap() << 20);
        assert_eq!(table(&enough, &sql).await, table(&unlimited, &sql).await);
    }
}

/// User columns match the portion's documents. Versions without edits are read in portions too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_and_versions_are_read_in_portions() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name).display().to_string();
    let file = place("columns.tadoc");
    let living = place("living");
    let rows = "SELECT 'p' || value AS path, repeat('word ' || value || ' and ', 3000) || \
                array_to_string(range(value * 1000, value * 1000 + 1000), ' ') AS text, \
                value * 2 AS n, to_timestamp(value) AS ts FROM generate_series(1, 60)";
    let small_blocks = "SET tadoc.block_bytes = '65536'";
    let unlimited = session_with(SessionConfig::new().with_target_partitions(1));
    for sql in [
        small_blocks.to_string(),
        format!("COPY ({rows}) TO '{file}' STORED AS TADOC"),
        format!("CREATE EXTERNAL TABLE f STORED AS TADOC LOCATION '{file}'"),
        format!(
            "CREATE EXTERNAL TABLE v (n BIGINT, ts TIMESTAMP) STORED AS TADOC LOCATION '{living}' \
             OPTIONS ('create' 'true')"
        ),
        format!("INSERT INTO v (path, text, n, ts) {rows}"),
    ] {
        table(&unlimited, &sql).await;
    }
    let limited = session_with(SessionConfig::new().with_target_partitions(1));
    for sql in [
        format!("SET tadoc.max_memory_bytes = '{}'", limit()),
        format!("CREATE EXTERNAL TABLE f STORED AS TADOC LOCATION '{file}'"),
        format!("CREATE EXTERNAL TABLE v STORED AS TADOC LOCATION '{living}'"),
    ] {
        table(&limited, &sql).await;
    }
    for name in ["f", "v"] {
        for query in [
            "SELECT doc_id, path, n FROM @ WHERE text LIKE '%word 37 %'",
            "SELECT sum(n), sum(bytes), sum(octet_length(text)) FROM @",
            "SELECT doc_id, n FROM @ WHERE n > 100 AND text <> '' ORDER BY n DESC",
            "SELECT * FROM term_count('@', 'word') WHERE doc_id > 50",
            "SELECT count, doc_count, first_ts, last_ts FROM log_templates('@') ORDER BY first_ts",
            "SELECT doc_id, count, ts FROM log_templates('@', by_doc => true) WHERE doc_id > 50",
        ] {
            let sql = query.replace('@', name);
            let plan = table(&limited, &format!("EXPLAIN {sql}")).await;
            assert!(plan.contains("TadocPortionsExec"), "{sql}\n{plan}");
            assert_eq!(table(&limited, &sql).await, table(&unlimited, &sql).await, "{sql}");
        }
    }
}

/// Decoding needs memory for the files that are decoded at once, not for all files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_files_are_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for at in 0..400 {
        let name = format!("{at:03}.txt");
        let text = format!("word {at} and word");
        let document = [(name.as_str(), text.as_bytes())];
        let path = dir.path().join(format!("{at:03}.tadoc"));
        fixtures::write_corpus(&path, IngestOptions::default(), &document);
    }
    let ctx = session_with(SessionConfig::new());
    let cores = std::thread::available_parallelism().unwrap().get();
    // 1,200 MiB would be needed if each file took memory of its own.
    let limit = (3 << 20) * cores + (16 << 20);
    table(&ctx, &format!("SET tadoc.max_memory_bytes = '{limit}'")).await;
    let sql = format!("SELECT sum(count) FROM term_count('{}', 'word')", dir.path().display());
    let plan = table(&ctx, &format!("EXPLAIN {sql}")).await;
    assert!(!plan.contains("TadocPortionsExec"), "{plan}");
    assert!(table(&ctx, &sql).await.contains("| 800 "));
}

#[tokio::test]
async fn small_limits_open_the_first_segments() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir);
    let session = || session_with(SessionConfig::new().with_target_partitions(1));
    for call in [
        "search('@', 'quick')",
        "search('@', '\"77 quick\" OR \"298 quick\"')",
        "kwic('@', 'foxes', width => 2)",
        "grep('@', 'quick brown')",
        "term_count('@', 'the OR caf\u{e9}') WHERE doc_id > 20",
        "documents('@') WHERE text LIKE '%foxes 1%'",
    ] {
        let sql = format!("SELECT * FROM {}", call.replace('@', &path));
        let all = batches(&session(), &sql).await.unwrap();
        let all = datafusion::arrow::compute::concat_batches(&all[0].schema(), &all).unwrap();
        for limit in [1, 5, 8_000] {
            let sql = format!("{sql} LIMIT {limit}");
            let expected = all.slice(0, all.num_rows().min(limit));
            let expected = pretty_format_batches(&[expected]).unwrap().to_string();
            assert_eq!(table(&session(), &sql).await, expected, "{sql}");
        }
        let read_for_all = counter(&session(), &sql, "bytes_read").await;
        let read_for_one = counter(&session(), &format!("{sql} LIMIT 1"), "bytes_read").await;
        assert!(4 * read_for_one < read_for_all || call.contains("298"), "{call}: {read_for_one}, {read_for_all}");
    }
}
