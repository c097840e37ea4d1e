//! Tests of every function with little memory and with any number of partitions: the same rows, or
//! an error that says so.

use std::sync::Arc;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use tadoc::build::IngestOptions;
use tempfile::TempDir;

use super::{batches, table, wait_until, write_large_in};
use crate::fixtures;

const MIB: usize = 1 << 20;

/// Calls, numbers that tell their rows apart when they are added up, and the columns by which rows
/// are sorted.
pub(super) const CALLS: &[(&str, &str, &str)] = &[
    ("documents(@)", "doc_id + words + octet_length(text)", "doc_id"),
    ("word_count(@)", "octet_length(word) * count", "word"),
    ("word_sort(@, fold => true)", "octet_length(word) * count", "word"),
    ("inverted_index(@)", "octet_length(word) * doc_count + doc_ids[1] + doc_ids[-1]", "word"),
    ("term_vector(@)", "(doc_id + octet_length(word)) * count", "doc_id, word"),
    ("term_vector(@, top => 3, fold => true)", "(doc_id + octet_length(word)) * count", ""),
    ("tfidf(@)", "(doc_id + df) * tf + CAST(1000 * score AS BIGINT)", "doc_id, word"),
    ("doc_term_matrix(@)", "doc_id + word_ids[-1] + counts[1]", "doc_id"),
    ("tokens(@)", "doc_id + word_index * word_id", "doc_id, word_index"),
    ("sequence_count(@, n => 1)", "octet_length(sequence) * count", "sequence"),
    ("sequence_count(@)", "octet_length(sequence) * count", "sequence"),
    ("sequence_count(@, n => 8, fold => true)", "octet_length(sequence) * count", "sequence"),
    ("sequence_count(@, n => 2, by_doc => true)", "(doc_id + 1) * count", "doc_id, sequence"),
    ("ranked_inverted_index(@, n => 2)", "(doc_id + rank) * count", "sequence, rank"),
    ("cooccurrence(@, window => 3)", "octet_length(word1) * count", "word1, word2"),
    ("repeated_phrases(@, min_words => 4)", "words * count", ""),
    (
        "near_duplicates(@, threshold => 0.05, n => 2)",
        "doc_id_a * doc_id_b + octet_length(path_a) + CAST(1000 * similarity AS BIGINT)",
        "doc_id_a, doc_id_b",
    ),
    (
        "near_duplicate_clusters(@, threshold => 0.05, n => 2)",
        "(doc_id + 1) * first_doc_id + octet_length(path) + docs + CAST(is_kept AS BIGINT)",
        "doc_id",
    ),
    (
        "log_templates(@)",
        "octet_length(template) * count + doc_count * first_doc_id + last_doc_id + octet_length(example)",
        "",
    ),
    ("log_templates(@, similarity => 0.7, by_doc => true)", "(doc_id + octet_length(template)) * count", "doc_id"),
    (
        "repeated_spans(@, min_words => 8)",
        "(doc_id + byte_offset) * byte_len + num_words * span + copy",
        "doc_id, byte_offset",
    ),
    ("overlap(@, @, n => 4)", "num_found * longest_match_words + docs + doc_ids[1]", ""),
    ("search(@, '\"the s*\"')", "doc_id + byte_offset * word_index", "doc_id, byte_offset"),
    ("term_count(@, '/(?i)T[ho].*/')", "(doc_id + 1) * count", "doc_id"),
    ("kwic(@, 'of', width => 2)", "(doc_id + 1) * octet_length(\"left\")", ""),
    (
        "grep(@, '(?i)the [a-s]', context => 1)",
        "(doc_id + byte_offset) * line_number + octet_length(before) - octet_length(after)",
        "doc_id, line_number",
    ),
    ("collocates(@, 'of')", "octet_length(word) * count + corpus_count", ""),
    ("cooccurrence(@, word => 'of')", "octet_length(word2) * count", "word1, word2"),
    ("keyness(@, @)", "octet_length(word) * count - reference_count", ""),
    ("corpus_info(@)", "octet_length(value)", ""),
    ("corpus_verify(@)", "coalesce(\"offset\", 0)", ""),
];

/// Writes two corpora of many segments, with documents that were cut: a text that repeats itself,
/// and the sources of this package.
fn corpora(dir: &TempDir) -> [String; 2] {
    let options = IngestOptions { block_bytes: 100_000, ..IngestOptions::default() };
    let large = write_large_in(dir.path(), options);
    let sources = dir.path().join("sources.tadoc");
    let root = testkit::root().join("src/datafusion");
    let texts: Vec<(String, Vec<u8>)> = fixtures::files_below(&root)
        .into_iter()
        .map(|file| (file.display().to_string(), std::fs::read(&file).unwrap()))
        .collect();
    let borrowed: Vec<(&str, &[u8])> = texts.iter().map(|(path, text)| (path.as_str(), text.as_slice())).collect();
    fixtures::write_corpus(&sources, options, &borrowed);
    [large, sources.display().to_string()]
}

fn in_memory_of(pool_bytes: usize) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(pool_bytes, 1.0).build_arc();
    let builder = SessionStateBuilder::new().with_runtime_env(runtime.unwrap());
    let config = SessionConfig::new().with_target_partitions(2);
    let state = builder.with_config(config).with_default_features().with_tadoc().build();
    SessionContext::new_with_state(state)
}

fn pool_of(context: &SessionContext) -> Arc<dyn MemoryPool> {
    Arc::clone(&context.runtime_env().memory_pool)
}

/// With little memory a function gives the same answer as with much, or an error about memory. The
/// session continues and holds no more than after the same statement before. Portions are an
/// exception: half of the pool may stay with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn little_memory_gives_the_same_rows_or_an_error() {
    let dir = TempDir::new().unwrap();
    let corpora = corpora(&dir);
    let plenty = in_memory_of(usize::MAX);
    let small = "SELECT sum(count) FROM word_count('small.tadoc')";
    let path = dir.path().join("small.tadoc");
    fixtures::write_corpus(&path, IngestOptions::default(), &fixtures::PLAYS);
    let small = small.replace("small.tadoc", &path.display().to_string());
    let expected_of_small = table(&plenty, &small).await;
    let mut num_answers = [0, 0];
    let mut refused_in_64_mib = Vec::new();
    for ((call, number, _), corpus) in CALLS.iter().flat_map(|call| corpora.iter().map(move |corpus| (call, corpus))) {
        let call = call.replace('@', &format!("'{corpus}'"));
        let sql = format!("SELECT count(*), sum({number}) FROM {call}");
        let expected = table(&plenty, &sql).await;
        for (at, pool_bytes) in [64 * MIB, 10 * MIB].into_iter().enumerate() {
            let context = in_memory_of(pool_bytes);
            let pool = pool_of(&context);
            let mut held = usize::MAX;
            for _ in 0..2 {
                match batches(&context, &sql).await {
                    Ok(rows) => {
                        let rows = pretty_format_batches(&rows).unwrap().to_string();
                        assert_eq!(rows, expected, "{pool_bytes}: {sql}");
                        num_answers[at] += 1;
                    }
                    Err(error) => {
                        let root = error.find_root();
                        let is_typed = matches!(root, DataFusionError::ResourcesExhausted(_));
                        assert!(is_typed, "{pool_bytes}: {sql}\n{error}");
                        if at == 0 {
                            refused_in_64_mib.push(call.split('(').next().unwrap().to_owned());
                        }
                    }
                }
                // Tasks of a statement that was refused may end a little later.
                let kept = held.max(pool_bytes / 2 + MIB);
                wait_until(&format!("memory is back after {sql}"), || pool.reserved() <= kept).await;
                held = settled(&pool).await;
                assert_eq!(table(&context, &small).await, expected_of_small, "{sql}");
                wait_until(&format!("memory is back after {sql}"), || pool.reserved() <= kept).await;
                // With little memory the small corpus takes the place of the other.
                held = held.max(settled(&pool).await);
            }
            drop(context);
            wait_until("the pool is empty", || pool.reserved() == 0).await;
        }
    }
    // Of 1.7 million words, repeated phrases take 80 MB and texts to look for 109, beside the corpus.
    // Repeated spans of 8 words are too many for half of what it leaves. Each is asked twice.
    let refused = ["repeated_phrases", "repeated_spans", "overlap"];
    let refused = refused.map(|name| [name; 2]).concat();
    assert_eq!(refused_in_64_mib, refused, "64 MiB are enough for all others");
    assert_eq!(num_answers[0], 4 * CALLS.len() - refused.len());
    assert!((1..num_answers[0]).contains(&num_answers[1]), "{} of 10 MiB", num_answers[1]);
}

/// Returns the bytes that a pool holds once they no longer change.
async fn settled(pool: &Arc<dyn MemoryPool>) -> usize {
    let mut before = pool.reserved();
    loop {
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        let now = pool.reserved();
        if now == before {
            return now;
        }
        before = now;
    }
}

/// One, two and seven partitions give the same rows, in the declared order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_give_the_same_rows_in_the_order_they_declare() {
    let dir = TempDir::new().unwrap();
    let [large, sources] = corpora(&dir);
    let session = |partitions| super::session_with(SessionConfig::new().with_target_partitions(partitions));
    let sessions = [session(1), session(2), session(7)];
    for (call, number, order) in CALLS {
        for corpus in [&large, &sources] {
            let call = call.replace('@', &format!("'{corpus}'"));
            let sum = format!("SELECT count(*), sum({number}), min({number}) FROM {call}");
            let expected = table(&sessions[0], &sum).await;
            for session in &sessions[1..] {
                assert_eq!(table(session, &sum).await, expected, "{sum}");
            }
            if order.is_empty() {
                continue;
            }
            // Rows are numbered in their own order, and in the order of a sort of rows without a
            // declared order.
            let rows = format!("SELECT row_number() OVER (ORDER BY {order}) AS at, {order} FROM");
            let unlike = format!(
                "SELECT count(*) FROM ({rows} {call}) AS a JOIN ({rows} unsorted) AS b USING (at) WHERE {}",
                order.split(", ").map(|column| format!("a.{column} <> b.{column}")).collect::<Vec<_>>().join(" OR ")
            );
            for session in &sessions {
                let all = format!("CREATE OR REPLACE TABLE unsorted AS SELECT {order} FROM {call}");
                table(session, &all).await;
                assert!(table(session, &unlike).await.contains("| 0        |"), "{unlike}");
                let plan = table(session, &format!("EXPLAIN SELECT {order} FROM {call} ORDER BY {order}")).await;
                assert!(!plan.contains("SortExec"), "{plan}");
            }
        }
    }
}

/// A join or `ORDER BY … LIMIT` gives a scan a filter while it runs, when partitions are made already. The
/// rows are those that a condition above the scan keeps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_of_joins_keep_all_rows() {
    let dir = TempDir::new().unwrap();
    let [_, corpus] = corpora(&dir);
    let with = |target: usize| super::session_with(SessionConfig::new().with_target_partitions(target));
    let of_documents = CALLS.iter().filter(|(.., order)| order.starts_with("doc_id"));
    let kwic = CALLS.iter().filter(|(call, ..)| call.starts_with("kwic"));
    for (call, number, _) in of_documents.chain(kwic) {
        let key = if number.contains("doc_id_a") { "doc_id_a" } else { "doc_id" };
        let call = call.replace('@', &format!("'{corpus}'"));
        let kept = format!("FILTER (WHERE {key} % 3 < 2)");
        let expected = format!("SELECT count(*) {kept} AS rows, sum({number}) {kept} AS sum FROM {call}");
        let joined = format!(
            "SELECT count(*) AS rows, sum({number}) AS sum FROM {call} JOIN \
             (SELECT doc_id AS id FROM documents('{corpus}') WHERE doc_id % 3 < 2) ON {key} = id"
        );
        let last = format!("SELECT count(*), sum({key}) FROM (SELECT {key} FROM {call} ORDER BY {key} DESC LIMIT 999)");
        let [expected, expected_last] = [table(&with(1), &expected).await, table(&with(1), &last).await];
        for target in [1, 3, 4] {
            assert_eq!(table(&with(target), &joined).await, expected, "{target}: {joined}");
            assert_eq!(table(&with(target), &last).await, expected_last, "{target}: {last}");
        }
    }
}
