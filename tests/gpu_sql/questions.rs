//! Tests that questions of rows have the answers of the CPU on a device: passages, counts and places of words.

use std::sync::OnceLock;

use super::corpora::{create_living, documents, living_statements};
use super::log;
use super::scene::Scene;

/// Number of rows of a table of questions.
const NUM_ROWS: usize = 20_000;

/// Returns a statement that fills `asked` with questions to the documents of `corpus`: places up to the end, and words
/// that stand there, are cut, are nowhere, or are NULL.
fn ask(corpus: &str, seed: u64, num_rows: usize) -> String {
    format!(
        "CREATE OR REPLACE TABLE asked AS SELECT id, doc, pos, len, CASE id % 13 WHEN 0 THEN NULL WHEN 1 THEN \
         'nowhere' WHEN 2 THEN 'Only' ELSE coalesce(regexp_match(extract_text('{corpus}', doc, pos, 40), \
         '([a-z0-9]+)')[1], 'here') END AS word FROM (SELECT id, doc_id AS doc, (id * 7919 + {seed}) % (bytes + 1) AS \
         pos, id * 31 % 150 AS len FROM (SELECT value AS id FROM generate_series(1, {num_rows})) JOIN (SELECT doc_id, \
         bytes, row_number() OVER (ORDER BY doc_id) - 1 AS number, count(*) OVER () AS num_docs FROM \
         documents('{corpus}')) ON number = (id * 17 + {seed}) % num_docs)"
    )
}

/// Returns statements that ask all questions of `asked` of `corpus`.
fn statements(corpus: &str) -> [String; 3] {
    [
        format!("SELECT id, extract_text('{corpus}', doc, pos, len) AS text FROM asked ORDER BY id"),
        format!("SELECT id, count_word('{corpus}', doc, word) AS number FROM asked ORDER BY id"),
        format!("SELECT id, search_word('{corpus}', doc, word) AS places FROM asked ORDER BY id"),
    ]
}

/// Returns a scene whose messages are kept.
async fn scene() -> Option<Scene> {
    static IS_LISTENING: OnceLock<()> = OnceLock::new();
    let scene = Scene::new().await?;
    IS_LISTENING.get_or_init(log::listen);
    Some(scene)
}

/// Checks that a device gives the rows of the cores, and that it gave them.
async fn check(scene: &Scene, corpus: &str) {
    for sql in statements(corpus) {
        let (_, expected, _) = scene.rows("cpu", &sql).await;
        let (on_device, fallbacks) = log::counts();
        let (_, got, _) = scene.rows("gpu", &sql).await;
        assert!(got == expected, "{sql}");
        assert_eq!(log::counts(), (on_device + 1, fallbacks), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_rows_are_those_of_the_cpu() {
    let Some(scene) = scene().await else { return };
    for (seed, num_docs, max_len, block_bytes) in [
        (1, 300, 700, 1 << 20),
        (2, 300, 700, 4096),
        (3, 40, 9000, 2000),
        (4, 1, 60_000, 1 << 20),
        (5, 3000, 60, 16 << 10),
        (6, 200, 3000, 64 << 10),
    ] {
        let corpus = scene.corpus(&format!("asked{seed}"), block_bytes, &documents(seed, num_docs, max_len));
        scene.run("SET tadoc.device = 'cpu'").await;
        scene.run(&ask(&corpus, seed, NUM_ROWS)).await;
        check(&scene, &corpus).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn living_corpora_answer_with_their_edits() {
    let Some(scene) = scene().await else { return };
    let source = scene.corpus("source", 8 << 10, &documents(9, 150, 800));
    for statement in create_living(scene.dir.path()) {
        scene.run(&statement).await;
    }
    for statement in living_statements(&source, "to be or ") {
        scene.run("SET tadoc.device = 'cpu'").await;
        scene.run(&statement).await;
        scene.run(&ask("d", 3, NUM_ROWS)).await;
        check(&scene, "d").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_without_memory_leaves_the_rows_to_the_cpu() {
    let Some(scene) = scene().await else { return };
    let corpus = scene.corpus("full", 64 << 10, &documents(11, 300, 900));
    scene.run("SET tadoc.device = 'cpu'").await;
    scene.run(&ask(&corpus, 3, NUM_ROWS)).await;
    scene.run("SET tadoc.gpu_memory_bytes = '4KiB'").await;
    // The cores may know the counts by now. Then nobody is asked.
    let [texts, _, places] = statements(&corpus);
    for sql in [texts, places] {
        let (_, expected, _) = scene.rows("cpu", &sql).await;
        let (_, fallbacks) = log::counts();
        let (_, got, _) = scene.rows("gpu", &sql).await;
        assert!(got == expected && log::counts().1 > fallbacks, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_place_may_change_from_batch_to_batch() {
    let Some(scene) = scene().await else { return };
    let corpus = scene.corpus("chosen", 256 << 10, &documents(13, 2000, 900));
    scene.run("SET tadoc.device = 'gpu'").await;
    scene.run(&ask(&corpus, 5, 6 * NUM_ROWS)).await;
    for sql in statements(&corpus) {
        let (_, expected, _) = scene.rows("cpu", &sql).await;
        for _ in 0..4 {
            let (_, got, _) = scene.rows("auto", &sql).await;
            assert!(got == expected, "{sql}");
        }
    }
}
