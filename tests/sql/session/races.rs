//! Tests of caches that statements share, on several threads: replaced files, commits, and a limit
//! that evicts data which other statements load.
//!
//! ```text
//! writer     version 1 ──── 2 ──── 3 ──── 4            each document contains the version's number
//! statement        ├─ before = 2 ────┤ after = 3       so every answer says which version it is of
//! ```
//!
//! An answer belongs to one version alone: one between `before` and the version behind `after`. At
//! the end no memory is reserved. No scheduler chooses the order, as shuttle does in
//! `tests/store/interleavings.rs`: the caches wait with Tokio's cells and DataFusion's streams,
//! which shuttle does not control. Instead, each test runs hundreds of statements at the same time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use tadoc::build::IngestOptions;

use super::{batches, wait_until};
use crate::fixtures;

const NUM_READERS: usize = 4;
const STATEMENTS_EACH: usize = 40;
const NUM_FILES: usize = 3;
/// Memory to open a file, and to keep some of the dozens of versions.
const LIMIT_BYTES: usize = 4 << 20;

/// Returns a session in a pool of its own.
fn session() -> (SessionContext, Arc<dyn MemoryPool>) {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool)).build_arc().unwrap();
    let builder = SessionStateBuilder::new().with_runtime_env(runtime);
    let config = SessionConfig::new().with_target_partitions(2);
    let state = builder.with_config(config).with_default_features().with_tadoc().build();
    (SessionContext::new_with_state(state), pool)
}

/// Returns the only row of `sql`, which has integers.
async fn numbers(ctx: &SessionContext, sql: &str) -> Result<Vec<i64>> {
    let batches = batches(ctx, sql).await?;
    let mut batches = batches.iter().filter(|batch| batch.num_rows() > 0);
    let row = batches.next().unwrap();
    assert_eq!((row.num_rows(), batches.next()), (1, None), "{sql}");
    Ok(row.columns().iter().map(|column| column.as_primitive::<Int64Type>().value(0)).collect())
}

/// A file that is replaced by its next version from time to time.
struct Replaced {
    path: PathBuf,
    /// Version that is certainly there. The next one may be there already.
    version: AtomicU64,
    /// Version that may be there: it is set before the file is replaced.
    next: AtomicU64,
}

impl Replaced {
    fn new(path: PathBuf) -> Self {
        let file = Self { path, version: AtomicU64::new(0), next: AtomicU64::new(0) };
        file.replace();
        file
    }

    /// Replaces the file by its next version. The length of its words stays the same.
    fn replace(&self) {
        let version = self.version.load(Ordering::SeqCst) + 1;
        let others = |doc: u64| (0..2_000).map(move |i| format!("w{doc}x{i} "));
        let text = |doc: u64| {
            let marks = format!("v{version:05} and {doc} ").repeat(300);
            (marks + &others(doc).collect::<String>()).into_bytes()
        };
        let documents: Vec<(String, Vec<u8>)> = (0..8).map(|doc| (format!("{doc}.txt"), text(doc))).collect();
        let borrowed: Vec<(&str, &[u8])> =
            documents.iter().map(|(path, text)| (path.as_str(), text.as_slice())).collect();
        let new = self.path.with_extension("new");
        fixtures::write_corpus(&new, IngestOptions::default(), &borrowed);
        self.next.store(version, Ordering::SeqCst);
        fs::rename(&new, &self.path).unwrap();
        self.version.store(version, Ordering::SeqCst);
    }

    /// Returns a statement whose answer gives the least and the greatest version and a count, and
    /// the expected count.
    fn statement(&self, kind: usize) -> (String, i64) {
        let path = self.path.display();
        match kind % 3 {
            0 => (
                format!(
                    "SELECT min(CAST(substr(word, 2) AS BIGINT)), max(CAST(substr(word, 2) AS BIGINT)),
                     sum(count) FROM word_count('{path}') WHERE word LIKE 'v%'"
                ),
                8 * 300,
            ),
            1 => (
                format!(
                    "SELECT min(CAST(substr(text, 2, 5) AS BIGINT)),
                     max(CAST(substr(text, 2, 5) AS BIGINT)), count(*) FROM documents('{path}')"
                ),
                8,
            ),
            _ => (
                format!(
                    "SELECT min(CAST(substr(match, 2) AS BIGINT)), max(CAST(substr(match, 2) AS BIGINT)),
                     count(*) FROM kwic('{path}', 'v*', width => 1)"
                ),
                8 * 300,
            ),
        }
    }
}

/// Asks `file`. Returns false if it was replaced meanwhile and the statement reported that.
async fn is_answered(ctx: &SessionContext, file: &Replaced, kind: usize) -> bool {
    let (sql, expected) = file.statement(kind);
    let before = file.version.load(Ordering::SeqCst) as i64;
    let answer = numbers(ctx, &sql).await;
    let after = file.version.load(Ordering::SeqCst) as i64 + 1;
    match answer {
        Ok(row) => {
            assert_eq!((row[0], row[2]), (row[1], expected), "{sql}");
            assert!((before..=after).contains(&row[0]), "{row:?}, {before} to {after}: {sql}");
            true
        }
        Err(error) => {
            let text = error.to_string();
            let name = file.path.file_name().unwrap();
            assert!(text.contains(name.to_str().unwrap()), "{text}");
            let next = file.next.load(Ordering::SeqCst) as i64;
            assert!(before < next, "nobody touched it: {text}");
            false
        }
    }
}

/// Readers ask files one after the other while these are replaced. Memory has room for one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_is_of_one_version_of_a_file_that_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let new = |i: usize| Replaced::new(dir.path().join(format!("file{i}.tadoc")));
    let files: Arc<Vec<Replaced>> = Arc::new((0..NUM_FILES).map(new).collect());
    let (ctx, pool) = session();
    assert!(is_answered(&ctx, &files[0], 1).await);
    let file_bytes = pool.reserved();
    batches(&ctx, &format!("SET tadoc.max_memory_bytes = '{LIMIT_BYTES}'")).await.unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let writer = {
        let files = Arc::clone(&files);
        let is_done = Arc::clone(&is_done);
        std::thread::spawn(move || {
            for file in files.iter().cycle().take_while(|_| !is_done.load(Ordering::SeqCst)) {
                file.replace();
                std::thread::sleep(Duration::from_millis(20));
            }
        })
    };
    let readers = (0..NUM_READERS).map(|reader| {
        let ctx = ctx.clone();
        let files = Arc::clone(&files);
        tokio::spawn(async move {
            let mut num_answered = 0;
            for i in reader..reader + STATEMENTS_EACH {
                num_answered += usize::from(is_answered(&ctx, &files[i % NUM_FILES], i / 2).await);
            }
            num_answered
        })
    });
    let mut num_answered = 0;
    for reader in readers.collect::<Vec<_>>() {
        num_answered += reader.await.unwrap();
    }
    is_done.store(true, Ordering::SeqCst);
    writer.join().unwrap();
    for file in files.iter() {
        assert!(is_answered(&ctx, file, 0).await, "at rest");
    }
    let num_versions: u64 = files.iter().map(|file| file.version.load(Ordering::SeqCst)).sum();
    println!("{num_versions} versions of {file_bytes} bytes, {} are held", pool.reserved());
    assert!(pool.reserved() < 2 * LIMIT_BYTES, "nobody let go of old versions");
    let num_statements = NUM_READERS * STATEMENTS_EACH;
    println!("{num_answered} of {num_statements} answered, the others met a new version");
    assert!(num_answered > num_statements / 4);
    drop(ctx);
    wait_until("the account is at zero", || pool.reserved() == 0).await;
}

/// Commits one more `mark`: a new document, or an edit of the first one.
async fn commit(ctx: &SessionContext, version: u64) {
    let sql = match version % 3 {
        0 => "UPDATE d SET text = text || ' mark' WHERE path = '1'".to_owned(),
        _ => format!("INSERT INTO d (path, text) VALUES ('{version}', 'a mark of {version}')"),
    };
    batches(ctx, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn open(ctx: &SessionContext, folder: &Path) {
    let folder = folder.display();
    let sql = format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{folder}'");
    batches(ctx, &sql).await.unwrap();
}

/// Readers ask a living corpus in a session that keeps very little, while another session commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_is_of_one_version_of_a_living_corpus() {
    const NUM_COMMITS: u64 = 40;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("living");
    fixtures::living::create(&folder);
    let (ctx, pool) = session();
    let (other, _) = session();
    open(&other, &folder).await;
    commit(&other, 1).await;
    batches(&ctx, "SET tadoc.max_memory_bytes = '20000'").await.unwrap();
    let version = Arc::new(AtomicU64::new(1));
    let readers = (0..NUM_READERS).map(|reader| {
        let ctx = ctx.clone();
        let version = Arc::clone(&version);
        let at = folder.display().to_string();
        tokio::spawn(async move {
            let statements = [
                format!("SELECT CAST(sum(count) AS BIGINT) FROM word_count('{at}') WHERE word = 'mark'"),
                format!("SELECT CAST(sum(count) AS BIGINT) FROM term_count('{at}', 'mark')"),
                format!("SELECT count(*) FROM search('{at}', 'mark')"),
            ];
            let mut num_asked = 0;
            while version.load(Ordering::SeqCst) < NUM_COMMITS {
                let sql = &statements[(reader + num_asked) % statements.len()];
                let before = version.load(Ordering::SeqCst) as i64;
                let row = numbers(&ctx, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
                let after = version.load(Ordering::SeqCst) as i64 + 1;
                assert!((before..=after).contains(&row[0]), "{row:?}, {before} to {after}: {sql}");
                num_asked += 1;
            }
            num_asked
        })
    });
    let readers: Vec<_> = readers.collect();
    for next in 2..=NUM_COMMITS {
        commit(&other, next).await;
        version.store(next, Ordering::SeqCst);
    }
    let mut num_asked = 0;
    for reader in readers {
        num_asked += reader.await.unwrap();
    }
    println!("{num_asked} statements between {NUM_COMMITS} commits");
    assert!(num_asked >= NUM_READERS);
    drop(ctx);
    wait_until("the account is at zero", || pool.reserved() == 0).await;
}
