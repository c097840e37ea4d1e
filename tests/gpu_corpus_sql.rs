//! SQL over corpora on a device gives the rows of the CPU, in their order, and EXPLAIN says where they were
//! counted.
//!
//! `REQUIRE_GPU=1 cargo test --test gpu_corpus_sql`; without `REQUIRE_GPU=1` tests are skipped, with a
//! line that says so, where there is no device. All tests share the devices and what is kept there, so
//! they wait for each other.

#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "common/device.rs"]
mod device;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::corpus::{CorpusBuilder, IngestOptions};
use datafusion_tadoc::sql::TadocSessionStateBuilderExt;
use device::{Random, open_device};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

/// Tasks with kernels, over a corpus `{}`.
const QUERIES: [&str; 9] = [
    "SELECT * FROM word_count('{}')",
    "SELECT * FROM word_count('{}', fold => true)",
    "SELECT word, count FROM word_sort('{}') WHERE count > 20 AND word >= 'r' LIMIT 7",
    "SELECT count FROM word_count('{}') WHERE word LIKE '%e%'",
    "SELECT * FROM sequence_count('{}', 2)",
    "SELECT * FROM sequence_count('{}', 3, fold => true)",
    "SELECT sequence, count FROM sequence_count('{}', 3) WHERE count > 3 LIMIT 11",
    "SELECT count FROM sequence_count('{}', 5) ORDER BY count DESC LIMIT 5",
    "SELECT sum(count), count(*) FROM sequence_count('{}', 4)",
];

static DEVICES: Mutex<()> = Mutex::const_new(());

/// A session, a folder of corpora, and the devices for one test alone.
struct Scene {
    context: SessionContext,
    dir: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// What a device did for a query.
#[derive(Debug, PartialEq, Eq)]
struct Done {
    upload_bytes: usize,
    rows: usize,
    fallbacks: usize,
}

fn write_corpus(path: &Path, block_bytes: usize, documents: &[Vec<u8>]) {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc, text) in documents.iter().enumerate() {
        builder.push_document(&doc.to_string(), text).unwrap();
    }
    fs::write(path, builder.finish(None).unwrap().0).unwrap();
}

fn documents(seed: u64, num_docs: usize, max_len: usize) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    let mut text = |doc: usize| {
        let len = random.below(max_len);
        let mut text = random.words(len);
        text.extend_from_slice(format!(" Only {} here", doc % 90).as_bytes());
        text
    };
    (0..num_docs).map(&mut text).collect()
}

impl Scene {
    /// `None` where there is no device.
    async fn new() -> Option<Self> {
        open_device()?;
        let alone = DEVICES.lock().await;
        let builder = SessionStateBuilder::new().with_config(SessionConfig::new());
        let context =
            SessionContext::new_with_state(builder.with_default_features().with_tadoc().build());
        Some(Self { context, dir: tempfile::tempdir().unwrap(), _alone: alone })
    }

    /// Writes a corpus of blocks of so many bytes; where it is.
    fn corpus(&self, name: &str, block_bytes: usize, documents: &[Vec<u8>]) -> String {
        let path = self.dir.path().join(format!("{name}.tadoc"));
        write_corpus(&path, block_bytes, documents);
        path.display().to_string()
    }

    async fn run(&self, sql: &str) -> Vec<RecordBatch> {
        let rows = async { self.context.sql(sql).await?.collect().await };
        rows.await.unwrap_or_else(|error| panic!("{sql}\n{error}"))
    }

    /// Where `sql` is planned to run, its rows, and what the device did.
    async fn rows(&self, device: &str, sql: &str) -> (String, String, Done) {
        self.run(&format!("SET tadoc.device = '{device}'")).await;
        let plan = self.context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        let rows = collect(Arc::clone(&plan), self.context.task_ctx()).await;
        let rows = rows.unwrap_or_else(|error| panic!("{device}: {sql}\n{error}"));
        let of = |name| sum_of(&plan, name);
        let done = Done {
            upload_bytes: of("device_upload_bytes"),
            rows: of("device_rows"),
            fallbacks: of("device_fallbacks"),
        };
        (shown, pretty_format_batches(&rows).unwrap().to_string(), done)
    }

    /// That a device gives the rows of the CPU; what it did.
    async fn check(&self, sql: &str) -> Done {
        let (_, expected, none) = self.rows("cpu", sql).await;
        assert_eq!(none, Done { upload_bytes: 0, rows: 0, fallbacks: 0 }, "{sql}");
        let (plan, got, done) = self.rows("gpu", sql).await;
        assert!(plan.contains("device=gpu"), "{plan}");
        assert!(got == expected, "{sql}\n{got}\n{expected}");
        done
    }

    async fn check_all(&self, location: &str) {
        for query in QUERIES {
            let done = self.check(&query.replace("{}", location)).await;
            assert!(done.fallbacks == 0 && done.rows > 0, "{query} of {location}: {done:?}");
        }
    }
}

/// A metric of all nodes of `plan`.
fn sum_of(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
    let below: usize = plan.children().into_iter().map(|child| sum_of(child, name)).sum();
    own.map_or(0, |sum| sum.as_usize()) + below
}

#[tokio::test]
async fn rows_are_those_of_the_cpu() {
    let Some(scene) = Scene::new().await else { return };
    let texts = documents(3, 300, 700);
    let one = scene.corpus("one", 1 << 20, &texts);
    let many = scene.corpus("many", 4096, &texts);
    for location in [&one, &many] {
        scene.check_all(location).await;
    }
    // Several files as one corpus.
    scene.check_all(&format!("{}/*.tadoc", scene.dir.path().display())).await;
    let segments = scene.run(&format!("SELECT * FROM corpus_info('{many}')")).await;
    assert!(segments.iter().map(RecordBatch::num_rows).sum::<usize>() > 0);
}

#[tokio::test]
async fn small_and_empty_corpora_have_the_cpus_rows() {
    let Some(scene) = Scene::new().await else { return };
    for (name, texts) in [
        ("none", vec![]),
        ("empty", vec![vec![]; 3]),
        ("word", vec![b"one".to_vec()]),
        ("separators", vec![b" ,, \n".to_vec(), b"--".to_vec()]),
    ] {
        let location = scene.corpus(name, 1 << 20, &texts);
        for query in QUERIES {
            let done = scene.check(&query.replace("{}", &location)).await;
            assert_eq!(done.fallbacks, 0, "{query} of {name}");
        }
    }
}

#[tokio::test]
async fn copies_stay_for_the_next_query() {
    let Some(scene) = Scene::new().await else { return };
    let location = scene.corpus("kept", 16 << 10, &documents(5, 200, 600));
    let sql = format!("SELECT * FROM sequence_count('{location}', 3)");
    let first = scene.check(&sql).await;
    assert!(first.upload_bytes > 0 && first.fallbacks == 0);
    let second = scene.check(&sql).await;
    assert_eq!(second, Done { upload_bytes: 0, ..first });
    // What both need is there.
    let other = scene.check(&sql.replace(", 3)", ", 2)")).await;
    assert!(other.fallbacks == 0 && other.upload_bytes < first.upload_bytes);
    // A file that was replaced is another corpus.
    let again = scene.corpus("kept", 16 << 10, &documents(6, 200, 600));
    assert_eq!(again, location);
    assert!(scene.check(&sql).await.upload_bytes > 0);
}

#[tokio::test]
async fn little_device_memory_is_used_for_one_segment_after_the_other() {
    let Some(scene) = Scene::new().await else { return };
    let location = scene.corpus("large", 32 << 10, &documents(7, 600, 1000));
    let sql = format!("SELECT * FROM sequence_count('{location}', 3)");
    scene.run("SET tadoc.gpu_memory_bytes = '4GiB'").await;
    let ample = scene.check(&sql).await;
    assert_eq!((ample.fallbacks, scene.check(&sql).await.upload_bytes), (0, 0));
    let (mut is_swapped, mut is_refused) = (false, false);
    for kib in (2..=16).rev().map(|bits| 1 << bits) {
        scene.run(&format!("SET tadoc.gpu_memory_bytes = '{kib}KiB'")).await;
        scene.check(&sql).await;
        let again = scene.check(&sql).await;
        if again.fallbacks == 0 {
            // What is there goes, and what is needed comes again.
            assert_eq!(again.rows, ample.rows);
            is_swapped |= again.upload_bytes > 0;
        } else {
            // Not enough for one segment: the CPU counts, and it is said.
            assert_eq!((again.fallbacks, again.rows), (1, 0));
            is_refused = true;
        }
    }
    assert!(is_swapped && is_refused);
    scene.run("SET tadoc.gpu_memory_bytes = '4GiB'").await;
    assert_eq!(scene.check(&sql).await.fallbacks, 0);
}

#[tokio::test]
async fn what_a_device_cannot_count_the_cpu_does() {
    let Some(scene) = Scene::new().await else { return };
    let cut = scene.corpus("cut", 2000, &[b"one two three ".repeat(600)]);
    let sql = format!("SELECT * FROM sequence_count('{cut}', 2)");
    let (_, expected, _) = scene.rows("cpu", &sql).await;
    let (plan, got, done) = scene.rows("gpu", &sql).await;
    assert!(plan.contains("device=cpu: a document goes on in another segment"), "{plan}");
    assert!(got == expected && done.rows == 0);
    // Its words are counted there.
    let words = scene.check(&format!("SELECT * FROM word_count('{cut}')")).await;
    assert!(words.rows > 0 && words.fallbacks == 0);
    // Words of all segments together have more bits than those of each.
    let (plan, _, _) = scene.rows("gpu", &sql.replace(", 2)", ", 40)")).await;
    assert!(plan.contains("device=cpu: "), "{plan}");
}

#[tokio::test]
async fn living_corpora_are_counted_with_their_edits() {
    let Some(scene) = Scene::new().await else { return };
    let folder = scene.dir.path().join("living").display().to_string();
    let source = scene.corpus("source", 8 << 10, &documents(9, 150, 800));
    scene.run("SET tadoc.recompress_ratio = '1'").await;
    let create = "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION";
    scene
        .run(&format!("{create} '{folder}/' OPTIONS ('create' 'true', 'block_bytes' '8192')"))
        .await;
    for statement in [
        format!("INSERT INTO d (path, text) SELECT path, text FROM documents('{source}')"),
        "INSERT INTO \"d$edits\" (doc_id, pos, text) VALUES (3, 0, 'to be or '), (4, NULL, ' x y')"
            .to_owned(),
        "DELETE FROM d WHERE doc_id IN (5, 6, 40)".to_owned(),
        "INSERT INTO d (path, text) VALUES ('new', 'furiously regular furiously regular')"
            .to_owned(),
        "UPDATE d SET text = upper(text) WHERE doc_id = 20".to_owned(),
    ] {
        scene.run(&statement).await;
        scene.check_all("d").await;
    }
    scene.run("SET tadoc.device = 'gpu'").await;
    let (_, old, _) = scene.rows("gpu", "SELECT * FROM word_count('d', version => 2)").await;
    let (_, expected, _) = scene.rows("cpu", "SELECT * FROM word_count('d', version => 2)").await;
    assert!(old == expected);
}
