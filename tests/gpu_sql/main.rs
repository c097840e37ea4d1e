//! Tests that SQL over corpora on a device gives the rows of the CPU in their order, and that
//! EXPLAIN says where they were counted.
//!
//! `REQUIRE_GPU=1 cargo test --test gpu_sql`. Without `REQUIRE_GPU=1` and without a device, tests
//! that need one print a line that they are skipped. The tests share the devices and the data on
//! them, so they wait for each other.

#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod corpora;
mod distinct;
mod log;
mod queries;
mod questions;
mod scene;

use datafusion::arrow::array::RecordBatch;

use corpora::{create_living, documents, living_statements};
use queries::{QUERIES, WHOLE_DOCUMENTS};
use scene::{Done, NOTHING, Scene, shown};

#[tokio::test]
async fn rows_are_those_of_the_cpu() {
    let Some(scene) = Scene::new().await else { return };
    let texts = documents(3, 300, 700);
    let one = scene.corpus("one", 1 << 20, &texts);
    let many = scene.corpus("many", 4096, &texts);
    // Several files can also be one corpus.
    let both = format!("{}/*.tadoc", scene.dir.path().display());
    for location in [&one, &many, &both] {
        scene.check_all(&QUERIES, location).await;
        scene.check_all(&WHOLE_DOCUMENTS, location).await;
    }
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
        for query in QUERIES.iter().chain(&WHOLE_DOCUMENTS) {
            let done = scene.check(&query.replace("{}", &location)).await;
            assert_eq!(done.fallbacks, 0, "{query} of {name}");
        }
    }
}

/// The copies of one session stay on the device whatever the limit of another one is.
#[tokio::test]
async fn sessions_have_limits_of_their_own() {
    let Some(ample) = Scene::new().await else { return };
    let little = Scene::anywhere();
    let location = ample.corpus("shared", 16 << 10, &documents(6, 200, 600));
    let sql = format!("SELECT * FROM sequence_count('{location}', 3)");
    let first = ample.check(&sql).await;
    assert!(first.upload_bytes > 0 && first.fallbacks == 0);
    little.run("SET tadoc.gpu_memory_bytes = '4KiB'").await;
    assert_eq!(little.check(&sql).await.fallbacks, 1);
    assert_eq!(ample.check(&sql).await, first.resident());
}

#[tokio::test]
async fn copies_stay_for_the_next_query() {
    let Some(scene) = Scene::new().await else { return };
    let location = scene.corpus("kept", 16 << 10, &documents(5, 200, 600));
    let sql = format!("SELECT * FROM sequence_count('{location}', 3)");
    let first = scene.check(&sql).await;
    assert!(first.upload_bytes > 0 && first.fallbacks == 0);
    let second = scene.check(&sql).await;
    assert_eq!(second, first.resident());
    // The data that both queries need is on the device.
    let other = scene.check(&sql.replace(", 3)", ", 2)")).await;
    assert!(other.fallbacks == 0 && other.upload_bytes < first.upload_bytes);
    // All tasks on words of documents need the same data.
    let terms = format!("SELECT * FROM term_vector('{location}')");
    let first = scene.check(&terms).await;
    assert!(first.upload_bytes > 0 && first.fallbacks == 0);
    for sql in [terms.clone(), terms.replace("term_vector", "tfidf"), terms.replace("')", "', 5)")] {
        assert_eq!(scene.check(&sql).await, first.resident(), "{sql}");
    }
    let index = scene.check(&terms.replace("term_vector", "inverted_index")).await;
    assert_eq!(index, first.resident());
    // Pairs need other data than sequences of two words.
    for function in ["cooccurrence", "ranked_inverted_index"] {
        let sql = sql.replace("sequence_count", function);
        let first = scene.check(&sql).await;
        assert!(first.rows > 0 && first.fallbacks == 0);
        assert_eq!(scene.check(&sql).await, first.resident());
    }
    // A file that was replaced is another corpus.
    let again = scene.corpus("kept", 16 << 10, &documents(6, 200, 600));
    assert_eq!(again, location);
    assert!(scene.check(&sql).await.upload_bytes > 0);
}

#[tokio::test]
async fn rows_go_out_of_all_partitions_and_each_step_has_its_time() {
    let Some(scene) = Scene::new().await else { return };
    let location = scene.corpus("spread", 16 << 10, &documents(21, 400, 900));
    for task in ["sequence_count('{}', 3)", "cooccurrence('{}')", "ranked_inverted_index('{}', 2)"] {
        let sql = format!("SELECT count(*), sum(count) FROM {task}").replace("{}", &location);
        scene.check(&sql).await;
        let (plan, ..) = scene.rows("gpu", &sql).await;
        assert!(!plan.contains("RoundRobinBatch"), "{plan}");
        let (_, told, _) = scene.rows("gpu", &format!("EXPLAIN ANALYZE {sql}")).await;
        for step in ["preparing", "counting", "copying", "joining", "making_rows"] {
            assert!(told.contains(&format!("time_{step}=")), "{told}");
        }
    }
}

#[tokio::test]
async fn little_device_memory_is_used_for_one_segment_after_the_other() {
    let Some(scene) = Scene::new().await else { return };
    let location = scene.corpus("large", 32 << 10, &documents(7, 600, 1000));
    for task in [
        "sequence_count('{}', 3)",
        "term_vector('{}')",
        "inverted_index('{}')",
        "cooccurrence('{}', 3)",
        "ranked_inverted_index('{}', 2)",
        "sequence_count('{}', 2, by_doc => true)",
    ] {
        check_little_memory(&scene, &format!("SELECT * FROM {task}").replace("{}", &location)).await;
    }
}

async fn check_little_memory(scene: &Scene, sql: &str) {
    scene.run("SET tadoc.gpu_memory_bytes = '4GiB'").await;
    let ample = scene.check(sql).await;
    assert_eq!((ample.fallbacks, scene.check(sql).await.upload_bytes), (0, 0), "{sql}");
    let mut is_swapped = false;
    let mut is_refused = false;
    for kib in (2..=16).rev().map(|bits| 1 << bits) {
        scene.run(&format!("SET tadoc.gpu_memory_bytes = '{kib}KiB'")).await;
        scene.check(sql).await;
        let again = scene.check(sql).await;
        if again.fallbacks == 0 {
            // Data on the device is dropped, and needed data is uploaded again.
            assert_eq!(again.rows, ample.rows, "{sql}");
            is_swapped |= again.upload_bytes > 0;
        } else {
            // Memory has no room for one segment: the CPU counts, and the metrics say so.
            assert_eq!((again.fallbacks, again.rows), (1, 0), "{sql}");
            is_refused = true;
        }
    }
    assert!(is_swapped && is_refused, "{sql}");
    scene.run("SET tadoc.gpu_memory_bytes = '4GiB'").await;
    assert_eq!(scene.check(sql).await.fallbacks, 0);
}

/// Number of documents, and number of words in each. All words of a document differ.
const NUM_DOCS: usize = 5000;
const WORDS_OF_A_DOCUMENT: usize = 30;
/// Step by which memory is given back until the CPU has enough.
const MEMORY_STEP: usize = 64 << 10;

#[tokio::test]
async fn little_host_memory_leaves_the_rows_to_the_cpu() {
    let with_device = Scene::new().await;
    let has_device = with_device.is_some();
    let scene = with_device.unwrap_or_else(Scene::anywhere);
    let word = |doc: usize, at: usize| format!("w{} ", (doc + 7 * at) % 40);
    let text = |doc| (0..WORDS_OF_A_DOCUMENT).map(|at| word(doc, at)).collect::<String>();
    let texts: Vec<_> = (0..NUM_DOCS).map(|doc| text(doc).into_bytes()).collect();
    let location = scene.corpus("rows", 64 << 10, &texts);
    let sql = format!("SELECT count(*), sum(count), max(word) FROM term_vector('{location}')");
    scene.run("SET tadoc.traversal = 'top_down'").await;
    // The corpus is loaded once. After that, nearly all memory belongs to another consumer.
    let (_, expected, _) = scene.rows("cpu", &sql).await;
    let taken = scene.take_memory();
    let mut left_bytes = 0;
    while scene.try_rows("cpu", &sql).await.is_err() {
        taken.shrink(MEMORY_STEP);
        left_bytes += MEMORY_STEP;
    }
    // The CPU holds a few documents at a time, a device holds all rows.
    assert!(left_bytes < 12 * NUM_DOCS * WORDS_OF_A_DOCUMENT, "{left_bytes}");
    if !has_device {
        return;
    }
    let (_, got, done) = scene.rows("gpu", &sql).await;
    assert!(got == expected);
    assert_eq!(done, Done { rows: 0, fallbacks: 1, ..done });
    drop(taken);
    assert_eq!(scene.check(&sql).await.rows, NUM_DOCS * WORDS_OF_A_DOCUMENT);
}

#[tokio::test]
async fn documents_that_are_cut_have_their_words() {
    let Some(scene) = Scene::new().await else { return };
    let mut texts = documents(13, 40, 900);
    texts.insert(20, b"one TWO three Two four-five ".repeat(600));
    let cut = scene.corpus("cut", 2000, &texts);
    scene.check_all(&QUERIES, &cut).await;
}

/// Queries over a corpus `{}` that run on the CPU even if a device is demanded, with the reason.
/// The first value is true if the corpus has a document that is cut.
const REFUSED: [(bool, &str, &str); 11] = [
    (true, "SELECT * FROM sequence_count('{}', 2)", "a document goes on in another segment"),
    (true, "SELECT * FROM cooccurrence('{}', 2)", "a document goes on in another segment"),
    (true, "SELECT * FROM ranked_inverted_index('{}')", "a document goes on in another segment"),
    (true, "SELECT * FROM sequence_count('{}', by_doc => true)", "a document goes on in another segment"),
    (false, "SELECT * FROM sequence_count('{}', 40)", "40 words do not fit 64 bits"),
    (false, "SELECT * FROM sequence_count('{}', 40, by_doc => true)", "40 words do not fit 64 bits"),
    (false, "SELECT * FROM ranked_inverted_index('{}', 40)", "40 words do not fit 64 bits"),
    (false, "SELECT * FROM cooccurrence('{}', 300)", "windows of 300 words, 255 at most"),
    (false, "SELECT word FROM inverted_index('{}')", "no documents are asked for"),
    (false, "SELECT word FROM word_count('{}')", "nothing is counted"),
    (false, "SELECT * FROM word_count('{}', fold => true)", COUNTED),
];

#[tokio::test]
async fn what_a_device_cannot_count_the_cpu_does() {
    let scene = Scene::anywhere();
    let whole = scene.corpus("whole", 2000, &documents(15, 20, 700));
    let cut = scene.corpus("cut", 2000, &[b"one two three ".repeat(600)]);
    for (is_cut, query, reason) in REFUSED {
        let sql = query.replace("{}", if is_cut { &cut } else { &whole });
        let (_, expected, _) = scene.rows("cpu", &sql).await;
        let (plan, got, done) = scene.rows("gpu", &sql).await;
        assert!(plan.contains(&format!("device=cpu: {reason}")), "{plan}");
        assert!(got == expected && done == NOTHING);
    }
}

/// Queries that run on the CPU with `auto`, with the reason.
const LEFT: [(&str, &str); 11] = [
    ("SELECT * FROM term_vector('{}', fold => true)", SMALL),
    ("SELECT * FROM term_vector('{}') WHERE doc_id = 3", PART),
    ("SELECT word, score FROM tfidf('{}') LIMIT 7", PART),
    ("SELECT doc_id, word FROM tfidf('{}', 3) ORDER BY doc_id LIMIT 3", SMALL),
    ("SELECT word, doc_ids FROM inverted_index('{}') WHERE word > 'q'", SMALL),
    ("SELECT * FROM cooccurrence('{}') WHERE count > 2", SMALL),
    ("SELECT * FROM sequence_count('{}', by_doc => true) WHERE doc_id = 3", PART),
    ("SELECT sequence FROM sequence_count('{}', by_doc => true) LIMIT 3", PART),
    ("SELECT * FROM ranked_inverted_index('{}') WHERE doc_id = 3", SMALL),
    ("SELECT sequence FROM ranked_inverted_index('{}', 2) WHERE doc_id = 3", PART),
    ("SELECT sequence FROM ranked_inverted_index('{}', 2) WHERE count > 3 LIMIT 2", SMALL),
];
const COUNTED: &str = "the vocabulary has counted words";
const SMALL: &str = "the text is small";
const PART: &str = "some documents are asked for";

#[tokio::test]
async fn small_corpora_are_left_to_the_cores() {
    let scene = Scene::anywhere();
    let location = scene.corpus("small", 4096, &documents(17, 60, 700));
    let others = QUERIES.iter().chain(&WHOLE_DOCUMENTS).map(|&query| (query, ""));
    for (query, reason) in LEFT.into_iter().chain(others) {
        let sql = query.replace("{}", &location);
        let (_, expected, _) = scene.rows("cpu", &sql).await;
        let (plan, got, done) = scene.rows("auto", &sql).await;
        assert!(plan.contains(&format!("device=cpu: {reason}")), "{sql}\n{plan}");
        assert!(got == expected && done == NOTHING, "{sql}");
    }
}

#[tokio::test]
async fn repeated_tasks_are_tried_on_a_device_and_then_run_where_they_are_faster() {
    let Some(scene) = Scene::new().await else { return };
    let location = scene.corpus("repeated", 16 << 10, &documents(25, 800, 600));
    for task in [
        "sequence_count('{}', 3)",
        "cooccurrence('{}')",
        "ranked_inverted_index('{}', 2)",
        "sequence_count('{}', 3, by_doc => true)",
    ] {
        let sql = format!("SELECT * FROM {task}").replace("{}", &location);
        // A device that has all copies is tried after any run on the cores.
        let (_, expected, _) = scene.rows("gpu", &sql).await;
        for place in ["device=cpu: the task was not timed yet", "device=gpu: a trial"] {
            let (plan, rows, _) = scene.rows("auto", &sql).await;
            assert!(plan.contains(place) && rows == expected, "{plan}");
        }
        let (plan, rows, _) = scene.rows("auto", &sql).await;
        assert!(plan.contains(" s instead of ") && rows == expected, "{plan}");
    }
}

#[tokio::test]
async fn words_of_documents_that_are_kept_are_left_to_the_cores() {
    let with_device = Scene::new().await;
    let has_device = with_device.is_some();
    let scene = with_device.unwrap_or_else(Scene::anywhere);
    let location = scene.corpus("kept", 16 << 10, &documents(23, 800, 600));
    let tasks = ["term_vector('{}')", "inverted_index('{}')", "tfidf('{}', fold => true)"];
    let sqls = tasks.map(|task| format!("SELECT * FROM {task}").replace("{}", &location));
    // With a set traversal the cores keep no words. Their time counts, so that a device is tried.
    scene.run("SET tadoc.traversal = 'top_down'").await;
    for sql in &sqls[..2] {
        if has_device {
            scene.rows("gpu", sql).await;
        }
        scene.rows("auto", sql).await;
    }
    scene.run("SET tadoc.traversal = 'auto'").await;
    for sql in &sqls {
        let shown = shown(&scene.plan("auto", sql).await);
        let wanted = if has_device { "device=gpu: a trial" } else { "device=cpu: " };
        assert!(shown.contains(wanted) && !shown.contains(KEPT), "{shown}");
    }
    let early = scene.plan("auto", &sqls[2]).await;
    let (_, counted, done) = scene.rows("auto", &sqls[2]).await;
    assert_eq!((done.rows > 0, done.fallbacks), (has_device, 0), "{done:?}");
    // The cores visit all documents and keep their words from then on.
    let expected = scene.rows("cpu", &sqls[2]).await.1;
    assert!(counted == expected && scene.rows("cpu", &sqls[2]).await.1 == expected);
    for sql in &sqls {
        let (_, expected, _) = scene.rows("cpu", sql).await;
        let (plan, rows, done) = scene.rows("auto", sql).await;
        assert!(plan.contains(&format!("device=cpu: {KEPT}")), "{plan}");
        assert!(rows == expected && done == NOTHING, "{sql}: {done:?}");
    }
    // A plan that was made earlier also leaves the words to the cores.
    let (rows, done) = scene.collect(&early).await.unwrap();
    assert!(rows == expected && done == NOTHING, "{done:?}");
    // Kept words do not apply to sequences, nor to a task with a set traversal.
    let other = sqls[0].replace("term_vector('", "sequence_count('").replace("')", "', 2)");
    assert!(!shown(&scene.plan("auto", &other).await).contains(KEPT));
    scene.run("SET tadoc.traversal = 'top_down'").await;
    assert!(!shown(&scene.plan("auto", &sqls[0]).await).contains(KEPT));
    scene.run("SET tadoc.traversal = 'auto'").await;
    if has_device {
        // A demanded device is used.
        assert!(scene.check(&sqls[0]).await.rows > 0);
    }
}

/// Reason that EXPLAIN gives for kept words.
const KEPT: &str = "the words of documents are kept";

#[tokio::test]
async fn living_corpora_are_counted_with_their_edits() {
    let Some(scene) = Scene::new().await else { return };
    let source = scene.corpus("source", 8 << 10, &documents(9, 150, 800));
    for statement in create_living(scene.dir.path()) {
        scene.run(&statement).await;
    }
    for statement in living_statements(&source, "to be or ") {
        scene.run(&statement).await;
        scene.check_all(&QUERIES, "d").await;
        scene.check_all(&WHOLE_DOCUMENTS, "d").await;
    }
    scene.run("SET tadoc.device = 'gpu'").await;
    for task in ["word_count", "tfidf", "inverted_index", "cooccurrence", "ranked_inverted_index"] {
        let sql = format!("SELECT * FROM {task}('d', version => 2)");
        let (_, old, _) = scene.rows("gpu", &sql).await;
        let (_, expected, _) = scene.rows("cpu", &sql).await;
        assert!(old == expected, "{sql}");
    }
}
