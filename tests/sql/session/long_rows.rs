//! Tests of long rows: their batches have few rows, under any plan.

use datafusion::prelude::SessionConfig;
use tadoc::build::IngestOptions;
use tempfile::TempDir;

use super::{batches, session_with, table};
use crate::fixtures;

const NUM_DOCS: usize = 100;
/// Number of bytes of a document.
const NUM_BYTES: usize = 40_000;

/// Writes a corpus of documents of the same length.
fn write(dir: &TempDir) -> String {
    let text = |at: usize| {
        let line = format!("document {at} says little, and says it again; ");
        line.repeat(NUM_BYTES.div_ceil(line.len()))[..NUM_BYTES].to_owned()
    };
    let documents: Vec<(String, String)> = (0..NUM_DOCS).map(|at| (format!("{at}.txt"), text(at))).collect();
    let borrowed: Vec<(&str, &[u8])> = documents.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    let path = dir.path().join("long.tadoc");
    fixtures::write_corpus(&path, IngestOptions::default(), &borrowed);
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_gather_no_more_than_a_mebibyte() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = write(&dir);
    let most_rows = (1 << 20) / NUM_BYTES;
    let ctx = session_with(SessionConfig::new().with_target_partitions(3));
    for sql in [
        "SELECT a.text FROM documents('@') a JOIN documents('@') b ON a.doc_id = b.doc_id",
        "SELECT text FROM documents('@') ORDER BY text DESC",
        "SELECT content, count(*) FROM documents('@') GROUP BY content",
        "SELECT DISTINCT text || '!' AS t FROM documents('@') WHERE doc_id % 10 <> 3",
    ] {
        let sql = sql.replace('@', &corpus);
        let plan = table(&ctx, &format!("EXPLAIN {sql}")).await;
        assert!(plan.contains(&format!("TadocBatchRowsExec: row_bytes={NUM_BYTES}")), "{plan}");
        let rows = batches(&ctx, &sql).await.unwrap();
        let lens: Vec<usize> = rows.iter().map(|batch| batch.num_rows()).collect();
        let num_rows = if sql.contains("<> 3") { NUM_DOCS * 9 / 10 } else { NUM_DOCS };
        assert_eq!(lens.iter().sum::<usize>(), num_rows, "{sql}");
        assert!(lens.iter().all(|&len| len <= most_rows), "{sql} {lens:?}");
    }
}

#[tokio::test]
async fn short_rows_go_in_batches_of_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = write(&dir);
    let ctx = session_with(SessionConfig::new());
    for sql in ["SELECT path, bytes FROM documents('@')", "SELECT * FROM word_count('@')"] {
        let plan = table(&ctx, &format!("EXPLAIN {}", sql.replace('@', &corpus))).await;
        assert!(!plan.contains("TadocBatchRowsExec"), "{plan}");
    }
    // A smaller batch size in the session still applies.
    let ctx = session_with(SessionConfig::new().with_batch_size(7));
    let sql = format!("SELECT text FROM documents('{corpus}')");
    let rows = batches(&ctx, &sql).await.unwrap();
    assert!(rows.iter().all(|batch| batch.num_rows() <= 7));
}
