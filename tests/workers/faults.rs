//! Workers that refuse a statement, and statements that are cancelled.

use std::process::Stdio;
use std::time::Duration;

use super::cluster::{DIVIDE, TOKEN, Worker, corpora, list, long_statement, sorted, sql, wait_until};

/// Longest time in which a statement begins to work.
const BOUND: Duration = Duration::from_secs(60);
const STATEMENT: &str = "SELECT path, count FROM term_count('many.tadoc', 'scan')";

#[test]
fn cancelling_frees_the_workers() {
    let folder = corpora();
    let long = long_statement(&folder);
    // Tasks that a repartition spawns, and joins that find no rows.
    let tables = "tokens('many.tadoc') a, tokens('many.tadoc') b";
    let grouped = format!("SELECT a.word, count(*) FROM {tables} GROUP BY 1");
    let fruitless = format!("SELECT count(*) FROM {tables} WHERE a.word_index + b.word_index < 0");
    for statement in [long, &grouped, &fruitless] {
        let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
        let urls = list(&workers);
        let arguments = [&["sql", "--quiet", "--workers", &urls][..], &DIVIDE, &["-c", statement]].concat();
        let mut child = folder.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let work = || workers.iter().all(|worker| worker.computed() > 0.3);
        assert!(wait_until(BOUND, work), "no work: {statement}");
        let interrupt = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(interrupt.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let is_idle = || {
            let before: f64 = workers.iter().map(Worker::computed).sum();
            std::thread::sleep(Duration::from_millis(500));
            workers.iter().map(Worker::computed).sum::<f64>() - before < 0.1
        };
        assert!(wait_until(Duration::from_secs(20), is_idle), "the workers go on: {statement}");
    }
}

#[test]
fn tokens_are_asked_for_and_never_shown() {
    let folder = corpora();
    folder.write("token", TOKEN);
    let workers = [(), ()].map(|()| Worker::start(&folder, &["--token-file", "token"]));
    let urls = list(&workers);
    let ran = sql(&folder, &urls, STATEMENT);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("token"), "{}", ran.stderr);
    let with = |statement: &str| {
        let arguments = ["sql", "--format", "ndjson", "--quiet", "--workers", &urls, "--workers-token-file", "token"];
        folder.run(&[&arguments[..], &DIVIDE, &["-c", statement]].concat())
    };
    assert_eq!(sorted(with(STATEMENT)), sorted(sql(&folder, "", STATEMENT)));
    let plan = with(&format!("EXPLAIN VERBOSE {STATEMENT}")).ok();
    assert!(plan.contains("TadocRunsExec") && !plan.contains(TOKEN), "{plan}");
    for worker in workers {
        assert_eq!(worker.end(), (0, String::new()));
    }
    let open = folder.run(&["worker", "--listen", "0.0.0.0:0"]);
    assert_eq!(open.status, 2, "{}", open.stderr);
}

#[test]
fn places_that_are_not_allowed_are_refused() {
    let folder = corpora();
    folder.write("elsewhere/x.txt", "nothing");
    let arguments = ["--allow", "elsewhere"];
    let workers = [Worker::start(&folder, &arguments), Worker::start(&folder, &arguments)];
    let ran = sql(&folder, &list(&workers), STATEMENT);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("--allow"), "{}", ran.stderr);
}
