//! Benchmark of questions of rows through SQL, on all cores and on a device: 200,000 in one statement.
//!
//! `REQUIRE_GPU=1 cargo bench --features full --bench gpu_questions -- [MIB] [ROWS]` makes text of three kinds (128 MiB
//! of each by default) and writes a corpus of it. A statement asks a table of rows for passages of 64 bytes, for counts
//! of words and for their places. The time is that of the whole statement, planning included; the median of 5. *first*
//! copies the corpus to the device. *auto* has the last runs of ten, after the place was chosen. *fresh* is the first
//! run of all on the cores. All answers are compared with those of the cores. Without a device the benchmark says so
//! and does nothing, unless `REQUIRE_GPU=1`.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "gpu_corpus/mod.rs"]
mod texts;

use std::fs;
use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use datafusion_tadoc::register_all;
use tadoc::build::{CorpusBuilder, IngestOptions};
use testkit::device::open_device;
use texts::documents;

const NUM_RUNS: usize = 5;
/// Runs with `auto` before those that count.
const NUM_CHOOSING: usize = 5;
const CALLS: [(&str, &str); 3] = [
    ("extract_text", "sum(length(extract_text('{}', doc, pos, 64)))"),
    ("count_word", "sum(count_word('{}', doc, word))"),
    ("search_word", "sum(array_length(search_word('{}', doc, word)))"),
];

fn main() -> Result<()> {
    if open_device().is_none() {
        return Ok(());
    }
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let mib = numbers.next().unwrap_or(128);
    let num_rows = numbers.next().unwrap_or(200_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for kind in ["versioned", "prose", "log"] {
        runtime.block_on(measure_kind(kind, mib << 20, num_rows))?;
    }
    Ok(())
}

async fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

/// Returns the median milliseconds of `num_runs` runs of a statement with these rows, on `device`.
async fn median(context: &SessionContext, device: &str, sql: &str, num_runs: usize, expected: &[RecordBatch]) -> f64 {
    run(context, &format!("SET tadoc.device = '{device}'")).await.unwrap();
    let mut times = Vec::new();
    for _ in 0..num_runs {
        let start = Instant::now();
        let rows = run(context, sql).await.unwrap();
        times.push(1e3 * start.elapsed().as_secs_f64());
        assert!(expected.is_empty() || rows == expected, "{sql}");
    }
    times.sort_by(f64::total_cmp);
    times[num_runs / 2]
}

async fn measure_kind(kind: &str, len_bytes: usize, num_rows: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("corpus.tadoc");
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
    for (at, document) in documents(kind, len_bytes).iter().enumerate() {
        builder.push_document(&at.to_string(), document).unwrap();
    }
    fs::write(&path, builder.finish(None).unwrap().0)?;
    let corpus = path.display().to_string();
    println!("\n{kind}, {} MiB, {num_rows} questions, ms", len_bytes >> 20);
    println!("| call | fresh | all cores | first | device | auto | cores : device | cores : auto |");
    for (name, call) in CALLS {
        // Another session has nothing loaded.
        let context = SessionContext::new();
        register_all(&context)?;
        for setting in [
            "SET tadoc.gpu_memory_bytes = '64GiB'",
            "SET tadoc.max_memory_bytes = '64GiB'",
            "SET tadoc.max_hits = '1000000000'",
        ] {
            run(&context, setting).await?;
        }
        ask(&context, &corpus, num_rows).await?;
        let sql = format!("SELECT {} FROM asked", call.replace("{}", &corpus));
        let fresh = median(&context, "cpu", &sql, 1, &[]).await;
        let expected = run(&context, &sql).await?;
        let first = median(&context, "gpu", &sql, 1, &expected).await;
        let device = median(&context, "gpu", &sql, NUM_RUNS, &expected).await;
        median(&context, "auto", &sql, NUM_CHOOSING, &expected).await;
        let auto = median(&context, "auto", &sql, NUM_RUNS, &expected).await;
        let cores = median(&context, "cpu", &sql, NUM_RUNS, &expected).await;
        let to_device = cores / device;
        let to_auto = cores / auto;
        println!(
            "| {name} | {fresh:.1} | {cores:.1} | {first:.1} | {device:.1} | {auto:.1} | {to_device:.2} | {to_auto:.2} |"
        );
    }
    Ok(())
}

/// Fills `asked` with questions to the documents of `corpus`: places, and words of the text there.
async fn ask(context: &SessionContext, corpus: &str, num_rows: usize) -> Result<()> {
    run(context, "SET tadoc.device = 'cpu'").await?;
    let questions = format!(
        "CREATE TABLE asked AS SELECT doc_id AS doc, pos, \
         coalesce(regexp_match(extract_text('{corpus}', doc_id, pos, 64), '\\s([a-z0-9]+)\\s')[1], 'the') AS word \
         FROM (SELECT doc_id, value * 7919 % (bytes - 64) AS pos \
         FROM generate_series(1, {num_rows}) JOIN \
         (SELECT doc_id, bytes, row_number() OVER (ORDER BY doc_id) - 1 AS number, \
         count(*) OVER () AS num_docs FROM documents('{corpus}')) \
         ON number = value * 31 % num_docs)"
    );
    run(context, &questions).await?;
    Ok(())
}
