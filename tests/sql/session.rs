//! Tests that SQL files cannot express: stores, memory limits, cancellation, partitions, caching,
//! and random predicates against the same predicates on plain rows.

mod blocks;
mod declared_decimals;
mod declared_orders;
mod denials;
mod digits;
mod document_facts;
mod every_function;
mod extension;
mod fields;
mod first_rows;
mod heads;
mod json_arrays;
mod listed;
mod long_rows;
mod portions;
mod races;
mod skipping;
mod subcorpora;
mod threads;
mod units;
mod user_columns;
mod whole_files;
mod word_counts;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{Array, RecordBatch, StringViewArray};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::{TadocSessionStateBuilderExt, register_all};
use futures::StreamExt;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use proptest::prelude::*;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tempfile::TempDir;
use url::Url;

use crate::fixtures;

fn fixtures_folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fixtures::write_all(dir.path());
    dir
}

fn session_with(config: SessionConfig) -> SessionContext {
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    SessionContext::new_with_state(builder.with_tadoc().build())
}

async fn batches(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    ctx.sql(sql).await?.collect().await
}

async fn table(ctx: &SessionContext, sql: &str) -> String {
    let rows = batches(ctx, sql).await.unwrap_or_else(|e| panic!("{sql}\n{e}"));
    pretty_format_batches(&rows).unwrap().to_string()
}

/// Writes ninety documents of 100 KB each, enough for several partitions.
fn write_large(dir: &Path) -> String {
    write_large_in(dir, IngestOptions::default())
}

/// Writes the same documents with other options for blocks.
fn write_large_in(dir: &Path, options: IngestOptions) -> String {
    let documents: Vec<(String, Vec<u8>)> = (0..90)
        .map(|i| {
            let line = format!("document {i} says the same thing over and over again, caf\u{e9}\n");
            (format!("{i:02}.txt"), line.repeat(100_000 / line.len()).into_bytes())
        })
        .collect();
    let borrowed: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_slice())).collect();
    let path = dir.join("large.tadoc");
    fixtures::write_corpus(&path, options, &borrowed);
    path.display().to_string()
}

#[tokio::test]
async fn both_ways_of_registration_answer_alike() {
    let dir = fixtures_folder();
    let plays = dir.path().join("plays.tadoc").display().to_string();
    let ctx = SessionContext::new();
    register_all(&ctx).unwrap();
    let sql = format!("SELECT * FROM WORD_COUNT(corpus => '{plays}')");
    assert_eq!(table(&ctx, &sql).await, table(&fixtures::session(), &sql).await);
    ctx.sql("SET tadoc.max_hits = '3'").await.unwrap();
    let copy = dir.path().join("copy.tadoc").display().to_string();
    table(&ctx, &format!("COPY (SELECT 'x' AS text) TO '{copy}' OPTIONS (builder 'rounds')")).await;
    let create = format!("CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION '{copy}'");
    ctx.sql(&create).await.unwrap();
    assert!(table(&ctx, "SELECT text FROM t").await.contains("| x    |"));
}

#[tokio::test]
async fn planning_reads_nothing() {
    let ctx = fixtures::session();
    for call in ["documents('no.tadoc')", "word_count('no.tadoc')", "read_text('no*.txt')"] {
        let frame = ctx.sql(&format!("SELECT * FROM {call}")).await.unwrap();
        let error = frame.create_physical_plan().await.unwrap_err();
        assert!(matches!(error.find_root(), DataFusionError::Plan(_)), "{error}");
    }
}

#[tokio::test]
async fn corpora_live_in_any_object_store() {
    let ctx = fixtures::session();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let url = Url::parse("memory://bucket").unwrap();
    ctx.register_object_store(&url, Arc::clone(&store));
    for (name, text) in [("a", "red green"), ("b", "green blue")] {
        let target = format!("memory://bucket/shelf/{name}.tadoc");
        let copy = format!("COPY (SELECT '{name}' AS path, '{text}' AS text, 7 AS n) TO '{target}'");
        table(&ctx, &copy).await;
    }
    for location in ["memory://bucket/shelf", "memory://bucket/shelf/", "memory://bucket/**/*.tadoc"] {
        let sql = format!("SELECT word, count FROM word_count('{location}') WHERE word = 'green'");
        assert!(table(&ctx, &sql).await.contains("| green | 2     |"), "{location}");
    }
    let create = "CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION 'memory://bucket/shelf/b.tadoc'";
    ctx.sql(create).await.unwrap();
    assert!(table(&ctx, "SELECT path, n FROM t").await.contains("| b    | 7 |"));
    let error = batches(&ctx, "SELECT * FROM documents('memory://bucket/none')").await.unwrap_err();
    assert!(error.to_string().contains("there is no file"), "{error}");
    let error = batches(&ctx, "SELECT * FROM documents('memory://other/x')").await;
    assert!(error.is_err());
}

#[tokio::test]
async fn a_small_memory_pool_is_respected_and_survived() {
    let dir = fixtures_folder();
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(3 << 20, 1.0).build_arc().unwrap();
    let pool = Arc::clone(&runtime.memory_pool);
    let builder = SessionStateBuilder::new().with_runtime_env(runtime).with_default_features();
    let ctx = SessionContext::new_with_state(builder.with_tadoc().build());
    let large = write_large(dir.path());
    let error = batches(&ctx, &format!("SELECT text FROM documents('{large}')")).await.unwrap_err();
    assert!(matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)), "{error}");
    let plays = dir.path().join("plays.tadoc").display().to_string();
    let rows = table(&ctx, &format!("SELECT count(*) FROM word_count('{plays}')")).await;
    assert!(rows.contains("| 31       |"), "{rows}");
    drop(ctx);
    wait_until("the pool is empty", || pool.reserved() == 0).await;
}

#[tokio::test]
async fn damage_is_our_own_typed_error() {
    let dir = fixtures_folder();
    let damaged = dir.path().join("damaged.tadoc").display().to_string();
    let sql = format!("SELECT text FROM documents('{damaged}')");
    let error = batches(&fixtures::session(), &sql).await.unwrap_err();
    let DataFusionError::External(inner) = error.find_root() else { panic!("{error}") };
    let inner = inner.downcast_ref::<tadoc::Error>();
    assert!(matches!(inner, Some(tadoc::Error::Checksum { .. })), "{error}");
}

#[tokio::test]
async fn columns_that_are_no_parquet_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tadoc");
    let ctx = fixtures::session();
    for garbage in [b"".to_vec(), b"PAR1".to_vec(), b"PAR1\x00\x00\x00\x7fPAR1".to_vec()] {
        let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
        builder.push_document("a", b"text").unwrap();
        fs::write(&path, builder.finish(Some(garbage)).unwrap().0).unwrap();
        let location = path.display();
        let create = format!("CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION '{location}'");
        let error = ctx.sql(&create).await.unwrap_err().to_string();
        assert!(error.contains("x.tadoc: section columns"), "{error}");
        // Without its columns the corpus still answers.
        let rows = table(&ctx, &format!("SELECT text FROM documents('{location}')")).await;
        assert!(rows.contains("| text |"), "{rows}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_do_not_depend_on_partitions_and_batches() {
    let dir = fixtures_folder();
    let large = write_large(dir.path());
    let queries = [
        format!("SELECT doc_id, path, bytes, words, text FROM documents('{large}') ORDER BY doc_id"),
        format!("SELECT path FROM documents('{large}') WHERE text LIKE '%nt 7% says%' ORDER BY path"),
        format!("SELECT * FROM word_count('{large}')"),
        format!("SELECT * FROM inverted_index('{large}')"),
        format!("SELECT * FROM search('{large}', '\"7 says\"') ORDER BY doc_id, byte_offset"),
    ];
    let session = |partitions, batch_size| {
        let config = SessionConfig::new().with_target_partitions(partitions);
        session_with(config.with_batch_size(batch_size))
    };
    let one = session(1, 8192);
    let four = session(4, 7);
    let plan = four.sql(&queries[0]).await.unwrap().create_physical_plan().await.unwrap();
    let plan = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
    assert!(plan.contains("SortPreservingMerge"), "{plan}");
    for query in &queries {
        let rows = batches(&four, query).await.unwrap();
        assert!(rows.iter().all(|batch| batch.num_rows() <= 7), "{query}");
        let rows = pretty_format_batches(&rows).unwrap().to_string();
        assert!(rows == table(&one, query).await, "{query}");
    }
}

#[tokio::test]
async fn batches_of_text_are_bounded_in_bytes() {
    let dir = fixtures_folder();
    let large = write_large(dir.path());
    let config = SessionConfig::new().with_target_partitions(1);
    let sql = format!("SELECT text FROM documents('{large}')");
    let rows = batches(&session_with(config), &sql).await.unwrap();
    assert!(rows.len() > 1);
    for batch in rows {
        let text: &StringViewArray = batch.column(0).as_any().downcast_ref().unwrap();
        let len_bytes: usize = text.iter().flatten().map(str::len).sum();
        assert!(len_bytes <= 8 << 20, "{len_bytes}");
    }
}

/// Returns the sum of a counter over all nodes of an executed plan.
fn counted(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
    let below: usize = plan.children().into_iter().map(|child| counted(child, name)).sum();
    own.map_or(0, |value| value.as_usize()) + below
}

#[tokio::test]
async fn joins_and_sorts_tell_a_scan_which_rows_they_want() {
    let dir = tempfile::tempdir().unwrap();
    let large = write_large(dir.path());
    // A scan runs ahead of the sort above it: one batch in work, two in the channel, one that waits
    // to be sent, and the next. Each of several partitions would do so at once.
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(8);
    let ctx = session_with(config);
    let wanted = "(VALUES ('07.txt'), ('11.txt')) AS wanted (name)";
    for (sql, most) in [
        (format!("SELECT text FROM documents('{large}') JOIN {wanted} ON path = name"), 5),
        (format!("SELECT text FROM documents('{large}') ORDER BY path LIMIT 3"), 5 * 8),
    ] {
        let plan = ctx.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
        let rows = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
        let num_rows: usize = rows.iter().map(RecordBatch::num_rows).sum();
        let expected: usize = if sql.contains("LIMIT") { 3 } else { 2 };
        assert_eq!(num_rows, expected, "{sql}");
        let num_decoded = counted(&plan, "documents_decoded");
        assert!((expected..=most).contains(&num_decoded), "{num_decoded} decoded by {sql}");
    }
}

#[tokio::test]
async fn filters_on_documents_reach_what_counts_them() {
    let dir = tempfile::tempdir().unwrap();
    let large = write_large(dir.path());
    let ctx = session_with(SessionConfig::new());
    let wanted = "SELECT t.doc_id FROM {} AS t JOIN (VALUES (7), (11)) AS wanted (id) ON t.doc_id = id";
    for (function, counter) in [
        (format!("term_vector('{large}')"), "documents_counted"),
        (format!("tfidf('{large}', top => 3)"), "documents_counted"),
        (format!("sequence_count('{large}', n => 2, by_doc => true)"), "documents_counted"),
        (format!("ranked_inverted_index('{large}', n => 2)"), "documents_counted"),
        (format!("term_count('{large}', 'same')"), "documents_searched"),
        (format!("search('{large}', '\"same thing\"')"), "documents_searched"),
        (format!("kwic('{large}', 'document', width => 2)"), "documents_searched"),
    ] {
        let sql = wanted.replace("{}", &function);
        let plan = ctx.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
        let rows = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
        assert!(rows.iter().any(|batch| batch.num_rows() > 0), "{sql}");
        // A join may know only the least and the greatest id.
        let num_counted = counted(&plan, counter);
        assert!((2..=5).contains(&num_counted), "{num_counted} counted by {sql}");
    }
}

#[tokio::test]
async fn sequences_that_do_not_fit_are_a_typed_error_and_the_session_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let large = write_large(dir.path());
    let pool = RuntimeEnvBuilder::new().with_memory_limit(1 << 20, 1.0).build_arc().unwrap();
    let builder = SessionStateBuilder::new().with_runtime_env(pool).with_default_features();
    let ctx = SessionContext::new_with_state(builder.with_tadoc().build());
    for n in [1, 3, 5000] {
        let sql = format!("SELECT count(*) FROM sequence_count('{large}', {n})");
        if let Err(error) = batches(&ctx, &sql).await {
            assert!(matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)), "{error}");
        }
    }
    assert!(table(&ctx, &format!("SELECT count(*) FROM documents('{large}')")).await.contains("90"));
}

#[tokio::test]
async fn a_corpus_is_read_once() {
    let dir = fixtures_folder();
    let plays = dir.path().join("plays.tadoc").display().to_string();
    let ctx = fixtures::session();
    let bytes_read = || async {
        let sql = format!("EXPLAIN ANALYZE SELECT * FROM word_count('{plays}')");
        let text = table(&ctx, &sql).await;
        let after = text.split("bytes_read=").nth(1).map(str::to_string).unwrap_or_default();
        after.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    assert_ne!(bytes_read().await, "0");
    assert_eq!(bytes_read().await, "0");
}

#[tokio::test]
async fn explain_analyze_tells_what_a_scan_did() {
    let dir = fixtures_folder();
    let plays = dir.path().join("plays.tadoc").display().to_string();
    let ctx = fixtures::session();
    let sql = format!("EXPLAIN ANALYZE SELECT * FROM inverted_index('{plays}')");
    let first = table(&ctx, &sql).await;
    for nothing in ["elapsed_compute=1ns", "output_bytes=0.0 B", "output_batches=0"] {
        assert!(!first.contains(nothing), "{nothing} in {first}");
    }
    for fact in ["time_loading=", "output_batches=1,", "rules_visited="] {
        assert!(first.contains(fact), "no {fact} in {first}");
    }
    // From the second statement on, words of documents are kept, and no rule is visited.
    table(&ctx, &sql).await;
    let third = table(&ctx, &sql).await;
    assert!(third.contains("words of documents are kept"), "{third}");
    assert!(!first.contains("rules_visited=0") && third.contains("rules_visited=0"), "{third}");
}

/// `RepartitionExec` gathers as many rows as a batch has, and batches of long rows have few.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_sequences_are_not_gathered() {
    let dir = fixtures_folder();
    let path = dir.path().join("long.tadoc");
    let text: String = (0..1_500).map(|at| format!("w{} ", at * at % 977)).collect();
    let document = [("long.txt", text.as_bytes())];
    fixtures::write_corpus(&path, IngestOptions::default(), &document);
    let ctx = session_with(SessionConfig::new().with_target_partitions(3));
    let alone = session_with(SessionConfig::new().with_target_partitions(1));
    for (n, is_short) in [(3, true), (1_024, false), (1_400, false)] {
        let sql = format!(
            "SELECT count(*), sum(count), max(length(sequence)) \
             FROM sequence_count('{}', n => {n})",
            path.display()
        );
        let plan = table(&ctx, &format!("EXPLAIN {sql}")).await;
        assert!(plan.contains("RepartitionExec"), "{plan}");
        assert_eq!(!plan.contains("TadocBatchRowsExec: row_bytes="), is_short, "{plan}");
        let rows = table(&ctx, &sql).await;
        assert_eq!(rows, table(&alone, &sql).await);
        assert!(rows.contains(&format!("| {} ", 1_501 - n)), "{rows}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_stream_stops_and_gives_its_memory_back() {
    let dir = fixtures_folder();
    let large = write_large(dir.path());
    let ctx = session_with(SessionConfig::new().with_batch_size(1).with_target_partitions(2));
    let pool = Arc::clone(&ctx.runtime_env().memory_pool);
    let sql = format!("SELECT text FROM documents('{large}') WHERE text NOT LIKE '%nowhere%'");
    // This takes memory for all derived data, as the filter on text does.
    batches(&ctx, &format!("SELECT count(*) FROM search('{large}', 'same')")).await.unwrap();
    let idle = pool.reserved();
    let mut stream = ctx.sql(&sql).await.unwrap().execute_stream().await.unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    wait_until("the scan's memory is back", || pool.reserved() <= idle).await;
}

/// Several partitions find the hits of one, and all together find no more than allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn segments_are_searched_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let options = IngestOptions { block_bytes: 1 << 20, ..IngestOptions::default() };
    let large = write_large_in(dir.path(), options);
    let searched = format!("search('{large}', '\"caf\u{e9} document\"')");
    let in_context = format!("kwic('{large}', 'thing', width => 3)");
    let sum = |column: &str| format!("count(*), sum(doc_id), sum({column})");
    let sql = [
        format!("SELECT {} FROM {searched}", sum("byte_offset + word_index")),
        format!("SELECT {} FROM {in_context}", sum("octet_length(\"left\" || \"right\")")),
    ];
    let session = |partitions| session_with(SessionConfig::new().with_target_partitions(partitions));
    let one = session(1);
    let four = session(4);
    for sql in &sql {
        assert_eq!(table(&four, sql).await, table(&one, sql).await);
    }
    let frame = four.sql(&format!("SELECT * FROM {searched}")).await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    assert_eq!(plan.output_partitioning().partition_count(), 4);
    let ordered = format!("EXPLAIN SELECT doc_id, word_index FROM {searched} ORDER BY doc_id");
    let plan = table(&four, &ordered).await;
    assert!(plan.contains("SortPreservingMergeExec") && !plan.contains("SortExec"), "{plan}");
    let hits = batches(&one, &format!("SELECT doc_id FROM {searched}")).await.unwrap();
    let num_hits: usize = hits.iter().map(RecordBatch::num_rows).sum();
    four.sql(&format!("SET tadoc.max_hits = {num_hits}")).await.unwrap();
    table(&four, &sql[0]).await;
    four.sql(&format!("SET tadoc.max_hits = {}", num_hits - 1)).await.unwrap();
    for sql in sql {
        let error = batches(&four, &sql).await.unwrap_err();
        assert!(error.to_string().contains("tadoc.max_hits"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_copy_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("x.tadoc").display().to_string();
    let ctx = fixtures::session();
    let copy = format!(
        "COPY (SELECT 'line ' || value AS text FROM generate_series(1, 1000000000)) TO '{target}' \
         OPTIONS ('tadoc.block_bytes' '64KiB')"
    );
    let task = tokio::spawn(async move { batches(&ctx, &copy).await });
    wait_until("the copy has begun", || fs::read_dir(dir.path()).unwrap().count() > 0).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    wait_until("the folder is empty", || fs::read_dir(dir.path()).unwrap().count() == 0).await;
}

#[tokio::test]
async fn a_failing_copy_keeps_what_was_there() {
    let dir = fixtures_folder();
    let plays = dir.path().join("plays.tadoc");
    let before = fs::read(&plays).unwrap();
    let ctx = fixtures::session();
    let copy = format!(
        "COPY (SELECT text, CAST(path AS INT) AS n FROM documents('{0}')) TO '{0}' \
         OPTIONS ('tadoc.overwrite' 'true')",
        plays.display()
    );
    assert!(batches(&ctx, &copy).await.is_err());
    assert_eq!(fs::read(&plays).unwrap(), before);
    // A corpus may be rewritten from itself: the new file replaces it when it is complete.
    let copy = format!(
        "COPY (SELECT * FROM documents('{0}') WHERE bytes > 0) TO '{0}' OPTIONS (overwrite 'true')",
        plays.display()
    );
    assert!(table(&ctx, &copy).await.contains("| 4     |"));
    let count = format!("SELECT count(*) FROM documents('{}')", plays.display());
    assert!(table(&ctx, &count).await.contains("| 4        |"));
    let stray = fs::read_dir(dir.path()).unwrap().flatten();
    assert!(stray.into_iter().all(|entry| !entry.file_name().to_string_lossy().contains('#')));
}

async fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Generates words and separators that make matches across token borders likely.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "to",
        "be",
        "not",
        "tobe",
        "caf\u{e9}",
        " ",
        " ",
        " ",
        "  ",
        ", ",
        "\n",
        "%",
        "_",
        "\\",
        "'",
        "x",
        "\u{FFFD}",
        "be to",
        ".",
    ])
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns predicates on the column `text` made of `literal`.
fn predicates(literal: &str, other: &str) -> Vec<String> {
    let escaped: String =
        literal.chars().flat_map(|c| matches!(c, '%' | '_' | '\\').then_some('\\').into_iter().chain([c])).collect();
    let l = quoted(literal);
    let o = quoted(other);
    let regex = quoted(&regex_escape(literal));
    vec![
        format!("text = {l}"),
        format!("text IN ({l}, {o}, 'to be')"),
        format!("text LIKE {}", quoted(&format!("%{escaped}%"))),
        format!("text LIKE {}", quoted(&format!("{escaped}%"))),
        format!("text LIKE {}", quoted(&format!("%{literal}%"))),
        format!("text NOT LIKE {}", quoted(&format!("%{escaped}%"))),
        format!("text ILIKE {}", quoted(&format!("%{escaped}%"))),
        format!("contains(text, {l}) AND NOT contains(text, {o})"),
        format!("contains(text, {l}) OR starts_with(text, {o})"),
        format!("starts_with(text, {l})"),
        format!("ends_with(text, {l})"),
        format!("regexp_like(text, {regex})"),
        format!("regexp_like(text, '(x|' || {regex} || ')+ ?be')"),
        format!("contains(text, {l}) AND doc_id > 3"),
    ]
}

fn regex_escape(literal: &str) -> String {
    let special = |c: char| c.is_ascii_punctuation();
    literal.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Candidates and stages never change an answer.
    #[test]
    fn filters_answer_as_on_plain_rows(
        texts in prop::collection::vec(text(), 1..12),
        literal in text(),
        other in text(),
        block_bytes in prop::sample::select(vec![16usize, 1 << 20]),
        cut in 0usize..64,
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        // Half of the literals are taken from a text, so that they match.
        let source = &texts[cut % texts.len()];
        let from: usize = source.char_indices().nth(cut % 3).map_or(0, |(at, _)| at);
        let literal = if cut % 2 == 0 { source[from..].to_string() } else { literal };
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x.tadoc");
            let documents: Vec<(&str, &[u8])> = texts.iter().map(|t| ("p", t.as_bytes())).collect();
            let options = IngestOptions { block_bytes, ..IngestOptions::default() };
            fixtures::write_corpus(&path, options, &documents);
            let ctx = fixtures::session();
            let create = format!("CREATE EXTERNAL TABLE c STORED AS TADOC LOCATION '{}'", path.display());
            ctx.sql(&create).await.unwrap();
            ctx.sql("CREATE TABLE plain AS SELECT doc_id, text FROM c").await.unwrap();
            for predicate in predicates(&literal, &other) {
                let rows = |name| format!("SELECT doc_id, text FROM {name} WHERE {predicate} ORDER BY doc_id");
                let expected = table(&ctx, &rows("plain")).await;
                let got = table(&ctx, &rows("c")).await;
                assert_eq!(got, expected, "{predicate}");
            }
        });
    }
}
