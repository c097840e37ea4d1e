//! Functions of rows through SQL, on all cores and on a device: 100,000 questions in one statement.
//!
//! `REQUIRE_GPU=1 cargo bench --bench gpu_batch_sql -- [MIB]` makes text of three kinds, 208 MiB of each
//! unless told otherwise, and writes a corpus of it. A statement asks 100,000 rows for passages of 64 bytes,
//! for counts of words and for their places; what is timed is the whole statement, planning included.
//! "First" has nothing of the corpus on the device, "again" has it there. Rows of a batch are DataFusion's
//! 8,192, then all. All answers are compared with the CPU's. Without a device this says so and does nothing,
//! unless `REQUIRE_GPU=1`.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "gpu_corpus/mod.rs"]
mod texts;

use std::fs;
use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use datafusion_tadoc::corpus::{CorpusBuilder, IngestOptions};
use datafusion_tadoc::gpu::num_devices;
use datafusion_tadoc::sql::register_all;
use texts::documents;

const NUM_QUESTIONS: usize = 100_000;
/// Runs of a statement; the least counts.
const NUM_RUNS: usize = 5;
const BATCH_ROWS: [usize; 2] = [8_192, NUM_QUESTIONS];

fn main() -> Result<()> {
    if let Err(error) = num_devices()
        && std::env::var_os("REQUIRE_GPU").is_none()
    {
        println!("skipped: {error}");
        return Ok(());
    }
    let mib = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(208);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for kind in ["log", "versioned", "prose"] {
        runtime.block_on(measure_kind(kind, mib << 20))?;
    }
    Ok(())
}

async fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

/// The rows and seconds of a statement.
async fn timed(context: &SessionContext, sql: &str) -> Result<(Vec<RecordBatch>, f64)> {
    let start = Instant::now();
    let rows = run(context, sql).await?;
    Ok((rows, start.elapsed().as_secs_f64()))
}

async fn measure_kind(kind: &str, len_bytes: usize) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("corpus.tadoc");
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
    for (at, document) in documents(kind, len_bytes).iter().enumerate() {
        builder.push_document(&at.to_string(), document).unwrap();
    }
    fs::write(&path, builder.finish(None).unwrap().0)?;
    let corpus = path.display().to_string();
    println!("\n{kind}, {} MiB", len_bytes >> 20);
    println!(
        "| {NUM_QUESTIONS} questions | rows of a batch | all cores, ms | first | again | all cores : again |"
    );
    for (name, call) in [
        ("extract_text", "sum(length(extract_text('{}', doc, pos, 64)))"),
        ("count_word", "sum(count_word('{}', doc, word))"),
        ("search_word", "sum(array_length(search_word('{}', doc, word)))"),
    ] {
        for batch_rows in BATCH_ROWS {
            // Another session has nothing loaded.
            let context = SessionContext::new();
            register_all(&context)?;
            for setting in [
                format!("SET datafusion.execution.batch_size = {batch_rows}"),
                "SET tadoc.gpu_memory_bytes = '64GiB'".to_owned(),
                "SET tadoc.max_memory_bytes = '64GiB'".to_owned(),
                "SET tadoc.max_hits = '1000000000'".to_owned(),
            ] {
                run(&context, &setting).await?;
            }
            ask(&context, &corpus).await?;
            let sql = format!("SELECT {} FROM asked", call.replace("{}", &corpus));
            run(&context, "SET tadoc.device = 'cpu'").await?;
            let (expected, mut cores_s) = timed(&context, &sql).await?;
            for _ in 1..NUM_RUNS {
                cores_s = cores_s.min(timed(&context, &sql).await?.1);
            }
            run(&context, "SET tadoc.device = 'gpu'").await?;
            let (got, first_s) = timed(&context, &sql).await?;
            assert!(got == expected, "{sql}");
            let mut again_s = f64::MAX;
            for _ in 0..NUM_RUNS {
                let (got, seconds) = timed(&context, &sql).await?;
                assert!(got == expected, "{sql}");
                again_s = again_s.min(seconds);
            }
            let [cores_ms, first_ms, again_ms] = [cores_s, first_s, again_s].map(|s| s * 1e3);
            let ratio = cores_s / again_s;
            println!(
                "| {name} | {batch_rows} | {cores_ms:.1} | {first_ms:.1} | {again_ms:.1} | {ratio:.2} |"
            );
        }
    }
    Ok(())
}

/// Fills `asked` with questions to the documents of `corpus`: places, and words of the text there.
async fn ask(context: &SessionContext, corpus: &str) -> Result<()> {
    let questions = format!(
        "CREATE TABLE asked AS SELECT doc_id AS doc, pos, \
         coalesce(regexp_match(extract_text('{corpus}', doc_id, pos, 64), '\\s([a-z0-9]+)\\s')[1], 'the') AS word \
         FROM (SELECT doc_id, value * 7919 % (bytes - 64) AS pos \
         FROM generate_series(1, {NUM_QUESTIONS}) JOIN \
         (SELECT doc_id, bytes, row_number() OVER (ORDER BY doc_id) - 1 AS number, \
         count(*) OVER () AS number_of_all FROM documents('{corpus}')) \
         ON number = value * 31 % number_of_all)"
    );
    run(context, "SET tadoc.device = 'cpu'").await?;
    run(context, &questions).await?;
    Ok(())
}
