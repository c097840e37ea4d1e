//! Workers that fail: a typed error in bounded time, or the right rows.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::cluster::{DIVIDE, TOKEN, Worker, corpora, list, sorted, sql, wait_until};
use testkit::command::Folder;

/// Longest time in which a statement that cannot be answered ends.
const BOUND: Duration = Duration::from_secs(60);
const STATEMENT: &str = "SELECT path, count FROM term_count('many.tadoc', 'scan')";

/// Writes a corpus and returns a statement over it that takes the workers many seconds.
fn long_statement(folder: &Folder) -> &'static str {
    let mut state = 1u64;
    let mut word = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 52
    };
    for n in 0..24 {
        let text: String = (0..60_000).map(|_| format!("w{} ", word())).collect();
        folder.write(&format!("long/{n:02}.txt"), text);
    }
    folder.ok(&["ingest", "long", "--block-size", "1MiB", "-o", "long.tadoc"]);
    "SELECT count(*), sum(count) FROM cooccurrence('long.tadoc', window => 60)"
}

#[test]
fn a_worker_that_is_not_there_is_named() {
    let folder = corpora();
    let worker = Worker::start(&folder, &[]);
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let start = Instant::now();
    let ran = sql(&folder, &format!("{},{gone}", worker.url), STATEMENT);
    assert!(start.elapsed() < BOUND);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains(&gone), "{}", ran.stderr);
    // What needs no worker works all the same.
    assert!(sql(&folder, &gone, "SELECT 1 AS one").ok().contains("one"));
}

#[test]
fn a_silent_worker_ends_in_an_error() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let expected = sorted(sql(&folder, "", STATEMENT));
    assert_eq!(sorted(sql(&folder, &list(&workers), STATEMENT)), expected);
    workers[1].signal("STOP");
    let start = Instant::now();
    let ran = sql(&folder, &list(&workers), STATEMENT);
    assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    workers[1].signal("CONT");
    assert_eq!(sorted(sql(&folder, &list(&workers), STATEMENT)), expected);
}

#[test]
fn a_server_of_another_kind_ends_in_an_error() {
    let folder = corpora();
    let worker = Worker::start(&folder, &[]);
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", mute.local_addr().unwrap());
    let start = Instant::now();
    let ran = sql(&folder, &format!("{},{url}", worker.url), STATEMENT);
    assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    assert_eq!(ran.status, 1, "{}", ran.stderr);
}

/// Runs `statement`, sends `signal` to the second of two workers while it works, and returns the error, which comes in
/// bounded time and without rows.
fn error_when_lost(folder: &Folder, statement: &str, signal: &str) -> (String, [Worker; 2]) {
    let workers = [Worker::start(folder, &[]), Worker::start(folder, &[])];
    let urls = list(&workers);
    let arguments = ["sql", "--format", "ndjson", "--quiet", "--workers", &urls];
    let arguments = [&arguments[..], &DIVIDE, &["-c", statement]].concat();
    let mut child = folder.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(wait_until(BOUND, || workers[1].computed() > 0.5), "the worker does not work: {statement}");
    workers[1].signal(signal);
    let start = Instant::now();
    assert!(wait_until(BOUND, || child.try_wait().unwrap().is_some()), "no end: {statement}");
    assert!(start.elapsed() < BOUND);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{statement}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    (String::from_utf8_lossy(&output.stderr).into_owned(), workers)
}

#[test]
fn a_worker_killed_in_the_middle_gives_no_partial_rows() {
    let folder = corpora();
    let pairs = long_statement(&folder);
    // Packed rows of ranks, and scans that are told numbers of words by an earlier stage.
    let ranks = "SELECT count(*), sum(rank) FROM ranked_inverted_index('long.tadoc', 40)";
    let joined = "SELECT count(*), sum(a.df) FROM tfidf('long.tadoc') a JOIN tokens('long.tadoc') b ON a.word = b.word";
    for statement in [pairs, ranks, joined] {
        let (stderr, workers) = error_when_lost(&folder, statement, "KILL");
        assert!(stderr.starts_with("error: ") && stderr.contains(&workers[1].url), "{stderr}");
        for part in ["the connection broke while it ran task ", " of stage ", "run the statement again"] {
            assert!(stderr.contains(part), "{part} in {stderr}");
        }
    }
}

#[test]
fn a_worker_that_falls_silent_in_the_middle_ends_in_an_error() {
    let folder = corpora();
    let (stderr, workers) = error_when_lost(&folder, long_statement(&folder), "STOP");
    assert!(stderr.starts_with("error: ") && stderr.contains(&workers[1].url), "{stderr}");
    workers[1].signal("CONT");
    // It goes on with later statements.
    let expected = sorted(sql(&folder, "", STATEMENT));
    assert_eq!(sorted(sql(&folder, &list(&workers), STATEMENT)), expected);
}

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
