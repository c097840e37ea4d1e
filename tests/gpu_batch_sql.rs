//! Functions of rows (`extract_text`, `count_word`, `search_word`) answer on a device as on the CPU: the same
//! rows and the same errors, and EXPLAIN says where they were answered.
//!
//! `REQUIRE_GPU=1 cargo test --test gpu_batch_sql`; without `REQUIRE_GPU=1` tests that need a device are
//! skipped, with a line that says so, where there is none. All tests share the devices and what is kept
//! there, so they wait for each other.

#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "common/corpora_sql.rs"]
mod corpora_sql;
#[path = "common/device.rs"]
mod device;

use std::sync::Arc;

use corpora_sql::{DEVICES, create_living, documents, living_statements, sum_of, write_corpus};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::gpu::num_devices;
use datafusion_tadoc::ingestion::calibration::{GpuProbe, measure};
use datafusion_tadoc::sql::{TadocSessionStateBuilderExt, register_all};
use device::open_device;
use tempfile::TempDir;
use tokio::sync::MutexGuard;

/// More than a batch has.
const NUM_QUESTIONS: usize = 9_000;

/// What is asked of a corpus `{}` by the rows of `asked`.
const QUERIES: [&str; 7] = [
    "SELECT id, extract_text('{}', doc, pos, len) FROM asked ORDER BY id",
    "SELECT id, count_word('{}', doc, word) FROM asked ORDER BY id",
    "SELECT id, search_word('{}', doc, word) FROM asked ORDER BY id",
    "SELECT id FROM asked WHERE count_word('{}', doc, word) > 1 ORDER BY id",
    "SELECT sum(count_word('{}', doc, word)), max(length(extract_text('{}', doc, pos, 3))) FROM asked",
    "SELECT count_word('{}', doc, word) AS n, count(*) FROM asked GROUP BY n ORDER BY n",
    "SELECT id, extract_text('{}', doc, list[1], 9) FROM \
     (SELECT id, doc, search_word('{}', doc, word) AS list FROM asked) ORDER BY id",
];

/// A session, a folder of corpora, and the devices for one test alone.
struct Scene {
    context: SessionContext,
    dir: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// What devices did for a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Done {
    batches: usize,
    questions: usize,
    upload_bytes: usize,
    fallbacks: usize,
}

const NOTHING: Done = Done { batches: 0, questions: 0, upload_bytes: 0, fallbacks: 0 };

impl Scene {
    async fn new() -> Self {
        let alone = DEVICES.lock().await;
        let builder = SessionStateBuilder::new().with_config(SessionConfig::new());
        let context =
            SessionContext::new_with_state(builder.with_default_features().with_tadoc().build());
        Self { context, dir: tempfile::tempdir().unwrap(), _alone: alone }
    }

    /// `None` where there is no device.
    async fn on_device() -> Option<Self> {
        open_device()?;
        Some(Self::new().await)
    }

    /// Writes a corpus of blocks of so many bytes; where it is.
    fn corpus(&self, name: &str, block_bytes: usize, documents: &[Vec<u8>]) -> String {
        write_corpus(self.dir.path(), name, block_bytes, documents)
    }

    async fn run(&self, sql: &str) -> Vec<RecordBatch> {
        let rows = async { self.context.sql(sql).await?.collect().await };
        rows.await.unwrap_or_else(|error| panic!("{sql}\n{error}"))
    }

    async fn table(&self, sql: &str) -> String {
        pretty_format_batches(&self.run(sql).await).unwrap().to_string()
    }

    /// Fills `asked` with questions to the documents of `location`, some of them NULL.
    async fn ask(&self, location: &str) {
        self.run("DROP TABLE IF EXISTS asked").await;
        self.run(&format!(
            "CREATE TABLE asked AS SELECT value AS id, \
             CASE WHEN value % 101 <> 0 THEN doc_id END AS doc, \
             CASE WHEN value % 103 <> 0 THEN value * 7919 % (bytes + 1) END AS pos, \
             CASE value % 7 WHEN 0 THEN 5000 WHEN 1 THEN 0 ELSE value % 90 END AS len, \
             CASE value % 8 WHEN 0 THEN 'the' WHEN 1 THEN 'sleep' WHEN 2 THEN 'unheardof' \
             WHEN 3 THEN 'über' WHEN 4 THEN 'Only' WHEN 5 THEN NULL WHEN 6 THEN 'furiously' \
             ELSE CAST(value % 90 AS VARCHAR) END AS word \
             FROM generate_series(1, {NUM_QUESTIONS}) JOIN \
             (SELECT doc_id, bytes, row_number() OVER (ORDER BY doc_id) - 1 AS number, \
             count(*) OVER () AS number_of_all FROM documents('{location}')) \
             ON number = value % number_of_all"
        ))
        .await;
    }

    /// `sql` with the device set: rows or the error, what devices did, and the plan behind.
    async fn answer(&self, device: &str, sql: &str) -> (Result<RecordBatch, String>, Done, String) {
        self.run(&format!("SET tadoc.device = '{device}'")).await;
        let plan = self.context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        let rows = collect(Arc::clone(&plan), self.context.task_ctx()).await;
        let rows = rows.map(|rows| concat_batches(&plan.schema(), &rows).unwrap());
        let of = |name| sum_of(&plan, name);
        let done = Done {
            batches: of("device_batches"),
            questions: of("device_questions"),
            upload_bytes: of("device_upload_bytes"),
            fallbacks: of("device_fallbacks"),
        };
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        (rows.map_err(|error| error.to_string()), done, shown)
    }

    /// That a device gives the rows of the CPU, or its error; what it did.
    async fn check(&self, sql: &str) -> Done {
        let (expected, none, plan) = self.answer("cpu", sql).await;
        assert!(none == NOTHING && plan.contains("device=cpu"), "{plan}");
        let (got, done, plan) = self.answer("gpu", sql).await;
        assert!(got == expected, "{sql}\n{:?}\n{:?}", got.err(), expected.err());
        let is_told = match (done.batches > 0, done.fallbacks > 0) {
            (true, false) => plan.contains("device=gpu") && !plan.contains("cpu"),
            (_, true) => plan.contains("cpu: "),
            (false, false) => expected.is_err(),
        };
        assert!(is_told, "{plan}");
        done
    }

    async fn check_all(&self, location: &str) {
        self.ask(location).await;
        for query in QUERIES {
            let done = self.check(&query.replace("{}", location)).await;
            assert!(done.fallbacks == 0 && done.questions > 0, "{query} of {location}: {done:?}");
        }
    }
}

#[tokio::test]
async fn explain_says_where_batches_are_answered() {
    let scene = Scene::new().await;
    let location = scene.corpus("shown", 1 << 20, &documents(2, 20, 100));
    scene.ask(&location).await;
    let sql = format!("SELECT count_word('{location}', doc, word) FROM asked");
    scene.run("SET tadoc.device = 'cpu'").await;
    let plan = scene.table(&format!("EXPLAIN {sql}")).await;
    let node = format!("TadocBatchesExec: count_word({location}), device=");
    assert!(plan.contains(&format!("{node}cpu")), "{plan}");
    scene.run("SET tadoc.device = 'auto'").await;
    let plan = scene.table(&format!("EXPLAIN {sql}")).await;
    assert!(plan.contains(&format!("{node}auto: chosen for each batch")), "{plan}");
    let little = "WHERE id < 9";
    let plan = scene.table(&format!("EXPLAIN ANALYZE {sql} {little}")).await;
    let reason = "cpu: estimated to take less time than on a device";
    assert!(plan.contains(&format!("{node}{reason}")), "{plan}");
    assert!(plan.contains("device_batches=0") && plan.contains("time_on_device="), "{plan}");
    // Several calls of one node, and calls in other nodes.
    let both = format!(
        "SELECT extract_text('{location}', doc, pos, 1) FROM asked \
         WHERE search_word('{location}', doc, word) = [1] AND count_word('{location}', doc, word) > 0"
    );
    let plan = scene.table(&format!("EXPLAIN {both}")).await;
    for call in ["extract_text", "search_word", "count_word"] {
        assert!(plan.contains(&format!("{call}({location}), device=auto")), "{plan}");
    }
    // One question is no batch.
    let one = format!("EXPLAIN SELECT count_word('{location}', 2, 'the')");
    assert!(!scene.table(&one).await.contains("TadocBatchesExec"));
}

#[tokio::test]
async fn sessions_that_are_there_already_explain_too() {
    let scene = Scene::new().await;
    let location = scene.corpus("late", 1 << 20, &documents(2, 20, 100));
    let context = SessionContext::new();
    context.sql("CREATE TABLE asked AS VALUES (1), (2)").await.unwrap();
    let before = context.session_id();
    register_all(&context).unwrap();
    assert_eq!(context.state().session_id(), before);
    let sql = format!("EXPLAIN SELECT count_word('{location}', column1, 'the') FROM asked");
    let plan = context.sql(&sql).await.unwrap().to_string().await.unwrap();
    assert!(plan.contains("TadocBatchesExec: count_word("), "{plan}");
}

#[tokio::test]
async fn a_device_that_is_demanded_and_not_there_is_an_error() {
    if num_devices().is_ok() {
        device::say("skipped: there is a device");
        return;
    }
    let scene = Scene::new().await;
    let location = scene.corpus("none", 1 << 20, &documents(2, 20, 100));
    scene.ask(&location).await;
    for query in QUERIES {
        let sql = query.replace("{}", &location);
        let (rows, done, _) = scene.answer("gpu", &sql).await;
        let error = rows.unwrap_err();
        assert!(error.contains("tadoc.device = gpu: "), "{error}");
        assert!(error.contains("; SET tadoc.device = 'auto'") && done == NOTHING, "{error}");
        let (auto, done, _) = scene.answer("auto", &sql).await;
        assert!(done == NOTHING && auto.unwrap() == scene.answer("cpu", &sql).await.0.unwrap());
    }
    let (one, _, _) =
        scene.answer("gpu", &format!("SELECT count_word('{location}', 2, 'a')")).await;
    assert!(one.is_ok());
}

#[tokio::test]
async fn rows_are_those_of_the_cpu() {
    let Some(scene) = Scene::on_device().await else { return };
    let texts = documents(3, 300, 700);
    for (name, block_bytes) in [("one", 1 << 20), ("many", 4096), ("cut", 200)] {
        let location = scene.corpus(name, block_bytes, &texts);
        scene.check_all(&location).await;
    }
    // Several files as one corpus.
    scene.check_all(&format!("{}/*.tadoc", scene.dir.path().display())).await;
    // All questions at once.
    scene.run("SET datafusion.execution.batch_size = 100000").await;
    let location = scene.corpus("once", 1 << 20, &texts);
    scene.check_all(&location).await;
}

#[tokio::test]
async fn small_and_empty_documents_have_the_cpus_rows() {
    let Some(scene) = Scene::on_device().await else { return };
    for (name, texts) in [
        ("empty", vec![vec![]; 3]),
        ("word", vec![b"the".to_vec()]),
        ("bytes", vec![b"\xff\xfe the \0".to_vec(), b" ,, \n".to_vec(), b"--".to_vec()]),
    ] {
        let location = scene.corpus(name, 1 << 20, &texts);
        scene.ask(&location).await;
        for query in QUERIES {
            let done = scene.check(&query.replace("{}", &location)).await;
            assert_eq!(done.fallbacks, 0, "{query} of {name}");
        }
    }
    let location = scene.corpus("none", 1 << 20, &[]);
    scene.ask(&location).await;
    for query in QUERIES {
        assert_eq!(scene.answer("gpu", &query.replace("{}", &location)).await.1, NOTHING);
    }
}

#[tokio::test]
async fn errors_are_those_of_the_cpu() {
    let Some(scene) = Scene::on_device().await else { return };
    // One thread, so that there is one error to be first.
    scene.run("SET datafusion.execution.target_partitions = 1").await;
    let location = scene.corpus("asked", 2000, &documents(4, 40, 900));
    scene.ask(&location).await;
    for call in [
        "extract_text('{}', id, 0, 1)",
        "extract_text('{}', doc, pos + CASE WHEN id = 7001 THEN 5000 ELSE 0 END, 1)",
        "extract_text('{}', doc, pos, -id)",
        "extract_text('{}', -id, pos, 1)",
        "count_word('{}', id, word)",
        "count_word('{}', doc, CASE WHEN id = 8999 THEN 'two words' ELSE word END)",
        "search_word('{}', doc, '')",
        "search_word('{}', id * 1000000, 'the')",
    ] {
        let sql = format!("SELECT {} FROM asked", call.replace("{}", &location));
        assert_eq!(scene.check(&sql).await.fallbacks, 0);
        assert!(scene.answer("gpu", &sql).await.0.is_err(), "{sql}");
    }
    scene.run("SET tadoc.max_output_bytes = '1000'").await;
    scene.check(&format!("SELECT extract_text('{location}', doc, pos, len) FROM asked")).await;
    scene.run("SET tadoc.max_hits = '100'").await;
    let sql = format!("SELECT search_word('{location}', doc, word) FROM asked");
    let (_, done, plan) = scene.answer("gpu", &sql).await;
    let error = scene.answer("gpu", &sql).await.0.unwrap_err();
    assert!(error.contains("tadoc.max_hits") && done.fallbacks == 1, "{error}\n{plan}");
}

#[tokio::test]
async fn texts_stay_for_the_next_statement() {
    let Some(scene) = Scene::on_device().await else { return };
    let location = scene.corpus("kept", 16 << 10, &documents(5, 400, 1200));
    scene.ask(&location).await;
    let few = "FROM asked WHERE id <= 40";
    let sql = format!("SELECT extract_text('{location}', doc, pos, len) {few}");
    let first = scene.check(&sql).await;
    let second = scene.check(&sql).await;
    assert!(first.fallbacks == 0 && second.upload_bytes < first.upload_bytes / 2, "{second:?}");
    // Words are looked for in the same text.
    let words = scene.check(&format!("SELECT count_word('{location}', doc, word) {few}")).await;
    assert!(words.fallbacks == 0 && words.upload_bytes < first.upload_bytes / 2, "{words:?}");
    // A file that was replaced is another corpus.
    scene.corpus("kept", 16 << 10, &documents(6, 400, 1200));
    scene.ask(&location).await;
    assert!(scene.check(&sql).await.upload_bytes > 2 * second.upload_bytes);
}

#[tokio::test]
async fn little_device_memory_is_used_for_one_segment_after_the_other() {
    let Some(scene) = Scene::on_device().await else { return };
    let location = scene.corpus("large", 32 << 10, &documents(7, 600, 1000));
    scene.run("SET datafusion.execution.target_partitions = 1").await;
    scene.ask(&location).await;
    let few = "FROM asked WHERE id <= 3000";
    let (mut is_swapped, mut is_refused) = (false, false);
    for call in ["extract_text('{}', doc, pos, len)", "search_word('{}', doc, word)"] {
        scene.run("SET tadoc.gpu_memory_bytes = '4GiB'").await;
        let sql = format!("SELECT {} {few}", call.replace("{}", &location));
        scene.check(&sql).await;
        let ample = scene.check(&sql).await;
        assert_eq!(ample.fallbacks, 0);
        for kib in (2..=14).rev().map(|bits| 1 << bits) {
            scene.run(&format!("SET tadoc.gpu_memory_bytes = '{kib}KiB'")).await;
            scene.check(&sql).await;
            let again = scene.check(&sql).await;
            is_swapped |= again.fallbacks == 0 && again.upload_bytes > ample.upload_bytes;
            is_refused |= again.fallbacks == 1;
            assert!(again.fallbacks <= 1, "one fault ends it: {again:?}");
        }
        let (_, _, plan) = scene.answer("gpu", &sql).await;
        assert!(plan.contains("bytes of device memory"), "{plan}");
    }
    assert!(is_swapped && is_refused);
    scene.run("SET tadoc.gpu_memory_bytes = '4GiB'").await;
}

#[tokio::test]
async fn living_corpora_are_asked_with_their_edits() {
    let Some(scene) = Scene::on_device().await else { return };
    let source = scene.corpus("source", 8 << 10, &documents(9, 150, 800));
    for statement in create_living(scene.dir.path()) {
        scene.run(&statement).await;
    }
    for statement in living_statements(&source, "the sleep ") {
        scene.run(&statement).await;
        scene.check_all("d").await;
    }
    // Dropped documents are refused before a device is asked.
    let sql = "SELECT count_word('d', CASE id % 8 WHEN 3 THEN 5 ELSE 1 END, 'the') FROM asked";
    assert_eq!(scene.check(sql).await.fallbacks, 0);
    assert!(scene.answer("gpu", sql).await.0.unwrap_err().contains("which was dropped"));
}

#[tokio::test]
async fn devices_are_measured_for_batches() {
    let Some(_scene) = Scene::on_device().await else { return };
    let mut probe = GpuProbe::open(0).unwrap();
    let calibration = measure(None, Some(&mut probe), |_| {}).unwrap();
    let batches = calibration.device.clone().unwrap().batches;
    let measured = [
        batches.batch_s,
        batches.question_s,
        batches.passage_byte_s,
        batches.word_byte_s,
        batches.prepare_s,
    ];
    assert!(measured.iter().all(Option::is_some), "{batches:?}");
    device::say(&format!("{:?}", calibration.batch_rates()));
}
