//! Executors that end in the middle, and statements that leave their places: the right rows or an error in
//! bounded time.

use std::time::{Duration, Instant};

use datafusion_tadoc_ballista::datafusion_tadoc_distributed::TravelError;

use super::cluster::{Cluster, wait_until};
use super::scene::{Scene, rows, session, sorted, write_corpus};

/// Longest time in which a statement ends after an executor did.
const BOUND: Duration = Duration::from_secs(240);

/// Writes a corpus and returns a statement over it that takes the executors many seconds.
fn long_statement(scene: &Scene) -> String {
    let mut state = 1u64;
    let mut word = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 55
    };
    let text = |n: usize| {
        let text: String = (0..20_000).map(|_| format!("w{} ", word())).collect();
        (format!("{n:02}"), text.into_bytes())
    };
    let texts: Vec<_> = (0..12).map(text).collect();
    write_corpus(&scene.path("long.tadoc"), 100_000, &texts);
    scene.call("SELECT count(*), sum(count) FROM cooccurrence('~/long.tadoc', window => 60)")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_killed_in_the_middle_loses_no_rows() {
    let scene = Scene::new().await;
    let sql = long_statement(&scene);
    let expected = rows(&session(), &sql).await.unwrap();
    let mut cluster = Cluster::start(2, &[]);
    let together = cluster.session();
    // Both are there and have read a corpus.
    let short = scene.call("SELECT count(*) FROM term_vector(@)");
    rows(&together, &short).await.unwrap_or_else(|error| panic!("{error}\n{}", cluster.said()));
    let before = [0, 1].map(|at| cluster.executors[at].computed());
    let asked = tokio::spawn(async move { rows(&together, &sql).await });
    // One of them may get all tasks.
    let working = || (0..2).find(|&at| cluster.executors[at].computed() > before[at] + 0.3);
    assert!(wait_until(BOUND, || working().is_some()).await, "no executor works");
    assert!(!asked.is_finished());
    let working = working().unwrap_or_default();
    cluster.executors[working].kill();
    let start = Instant::now();
    let outcome = tokio::time::timeout(BOUND, asked).await.unwrap().unwrap();
    match outcome {
        Ok(got) => assert_eq!(got, expected),
        Err(error) => assert!(!error.to_string().is_empty(), "{error}"),
    }
    assert!(start.elapsed() < BOUND);
    // The other one answers alone.
    let together = cluster.session();
    let alone = sorted(rows(&session(), &short).await.unwrap());
    let got = tokio::time::timeout(BOUND, rows(&together, &short)).await.unwrap().unwrap();
    assert_eq!(sorted(got), alone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_without_executors_ends_in_an_error() {
    let scene = Scene::new().await;
    let sql = long_statement(&scene);
    let mut cluster = Cluster::start(1, &[]);
    let together = cluster.session();
    let asked = tokio::spawn(async move { rows(&together, &sql).await });
    let works = || cluster.executors[0].computed() > 0.5;
    assert!(wait_until(BOUND, works).await, "the executor does not work");
    cluster.executors[0].kill();
    let outcome = tokio::time::timeout(BOUND, asked).await.unwrap().unwrap();
    assert!(outcome.is_err(), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_stay_below_the_roots_of_the_cluster() {
    let scene = Scene::new().await;
    let folder = scene.dir.path().join("notes").display().to_string();
    let cluster = Cluster::start(1, &[&folder]);
    let together = cluster.session();
    let lines = scene.call("SELECT text FROM read_lines('~/notes/*.md')");
    let got = rows(&together, &lines).await;
    let got = got.unwrap_or_else(|error| panic!("{error}\n{}", cluster.said()));
    assert!(got.iter().any(|row| row.contains("and another")), "{got:?}");
    scene.tables(&together).await;
    for outside in [
        "SELECT * FROM word_count(@)",
        "SELECT * FROM documents(#)",
        "SELECT * FROM read_text('~/notes/../many.tadoc')",
        "SELECT * FROM columns",
        "SELECT * FROM plain",
    ] {
        let error = rows(&together, &scene.call(outside)).await.unwrap_err().to_string();
        assert!(error.contains("safe mode") || error.contains("allowed"), "{outside}: {error}");
    }
}

#[tokio::test]
async fn what_cannot_travel_is_a_typed_error() {
    let scene = Scene::new().await;
    let cluster = Cluster::start(0, &[]);
    let together = cluster.session();
    scene.tables(&together).await;
    let sql = "SELECT * FROM alike JOIN word_count('many') ON column1 = word";
    let error = together.sql(sql).await.unwrap().create_physical_plan().await.unwrap_err();
    assert!(matches!(TravelError::from_error(&error), Some(TravelError::Stays(_))), "{error}");
}
