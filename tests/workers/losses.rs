//! Workers that are lost, or slow: the statement goes on with the others until its first row, and ends with an error
//! after it.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use super::cluster::{DIVIDE, Worker, corpora, list, long_statement, sorted, sql, wait_until};
use super::proxy::Proxy;
use testkit::command::{Folder, Ran};

/// Longest time in which a statement begins to work, and in which it ends after a worker was lost.
const BOUND: Duration = Duration::from_secs(120);
const PAIRS: &str = "SELECT count(*), sum(count) FROM cooccurrence('long.tadoc', window => 20)";
/// A statement whose only row comes last.
const STATEMENT: &str = "SELECT count(*), sum(count) FROM term_count('many.tadoc', 'scan')";

/// Starts a statement on `workers`.
fn start(folder: &Folder, workers: &[Worker], statement: &str) -> Child {
    let urls = list(workers);
    let arguments = ["sql", "--format", "ndjson", "--quiet", "--workers", &urls];
    let arguments = [&arguments[..], &DIVIDE, &["-c", statement]].concat();
    folder.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs `statement`, sends `signal` to the second of `workers` while it works, and returns the result, which comes in
/// bounded time.
fn when_lost(folder: &Folder, workers: &[Worker], statement: &str, signal: &str) -> Ran {
    let mut child = start(folder, workers, statement);
    let before = workers[1].computed();
    assert!(wait_until(BOUND, || workers[1].computed() - before > 0.5), "the worker does not work: {statement}");
    workers[1].signal(signal);
    assert!(wait_until(BOUND, || child.try_wait().unwrap().is_some()), "no end: {statement}");
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ran { status: output.status.code().unwrap_or(-1), stdout: output.stdout, stderr }
}

/// Checks that `ran` has the `expected` lines, and warns of the loss of `lost` alone.
fn assert_goes_on(ran: Ran, lost: &str, num_left: usize, expected: &[String]) {
    let end = match num_left {
        0 | 1 => "; the statement goes on in this process\n".to_owned(),
        _ => format!("; the statement goes on with {num_left} of {} workers\n", num_left + 1),
    };
    let warning = format!("warning: worker {lost}");
    assert!(ran.stderr.starts_with(&warning) && ran.stderr.ends_with(&end), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert_eq!(sorted(ran), expected);
}

/// Returns the URL of a port at which nothing listens.
fn free_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn a_worker_that_is_not_there_is_done_without() {
    let folder = corpora();
    let worker = Worker::start(&folder, &[]);
    let gone = free_url();
    let expected = sorted(sql(&folder, "", STATEMENT));
    assert_goes_on(sql(&folder, &format!("{},{gone}", worker.url), STATEMENT), &gone, 1, &expected);
    // The next statement of a session does not ask for it.
    let twice = sql(&folder, &format!("{gone},{}", worker.url), &format!("{STATEMENT}; {STATEMENT}"));
    assert_goes_on(twice, &gone, 1, &sorted_twice(&expected));
    // Nor is any worker needed.
    let ran = sql(&folder, &format!("{gone},{}", free_url()), STATEMENT);
    assert_goes_on(ran, "http://127.0.0.1:", 1, &expected);
    // What needs no worker works all the same.
    assert!(sql(&folder, &gone, "SELECT 1 AS one").ok().contains("one"));
}

fn sorted_twice(lines: &[String]) -> Vec<String> {
    let mut twice = [lines, lines].concat();
    twice.sort_unstable();
    twice
}

#[test]
fn a_silent_worker_is_done_without() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let expected = sorted(sql(&folder, "", STATEMENT));
    assert_eq!(sorted(sql(&folder, &list(&workers), STATEMENT)), expected);
    workers[1].signal("STOP");
    let start = Instant::now();
    let ran = sql(&folder, &list(&workers), STATEMENT);
    assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    assert_goes_on(ran, &workers[1].url, 1, &expected);
    workers[1].signal("CONT");
    assert_eq!(sorted(sql(&folder, &list(&workers), STATEMENT)), expected);
}

#[test]
fn a_server_of_another_kind_is_done_without() {
    let folder = corpora();
    let worker = Worker::start(&folder, &[]);
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", mute.local_addr().unwrap());
    let expected = sorted(sql(&folder, "", STATEMENT));
    let start = Instant::now();
    let ran = sql(&folder, &format!("{},{url}", worker.url), STATEMENT);
    assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    assert_goes_on(ran, &url, 1, &expected);
}

#[test]
fn a_statement_goes_on_when_a_worker_is_killed() {
    let folder = corpora();
    long_statement(&folder);
    let expected = sorted(sql(&folder, "", PAIRS));
    let workers = [(), (), ()].map(|()| Worker::start(&folder, &[]));
    assert_goes_on(when_lost(&folder, &workers, PAIRS, "KILL"), &workers[1].url, 2, &expected);
}

#[test]
fn a_statement_goes_on_when_a_worker_falls_silent() {
    let folder = corpora();
    long_statement(&folder);
    let expected = sorted(sql(&folder, "", PAIRS));
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    assert_goes_on(when_lost(&folder, &workers, PAIRS, "STOP"), &workers[1].url, 1, &expected);
    workers[1].signal("CONT");
    // It goes on with later statements.
    let expected = sorted(sql(&folder, "", STATEMENT));
    assert_eq!(sorted(sql(&folder, &list(&workers), STATEMENT)), expected);
}

/// Statements of all kinds, and true for those whose only row comes last.
const KINDS: [(&str, bool); 6] = [
    // Packed rows, of words, of sequences and with ranks.
    ("SELECT count(*), sum(count) FROM word_count('many.tadoc')", true),
    ("SELECT count(*), sum(count) FROM sequence_count('many.tadoc', 3)", true),
    ("SELECT count(*), sum(rank) FROM ranked_inverted_index('many.tadoc', 40)", true),
    // Scans that are told numbers of words by an earlier stage.
    ("SELECT count(*), sum(a.df) FROM tfidf('many.tadoc') a JOIN tokens('many.tadoc') b ON a.word = b.word", true),
    // Rows behind one another, sorted, and as they come.
    ("SELECT word, count(*) AS n FROM tokens('many.tadoc') GROUP BY word ORDER BY n DESC, word LIMIT 20", false),
    ("SELECT path, text FROM documents('many.tadoc')", false),
];

#[test]
fn connections_that_break_anywhere_leave_all_rows_or_an_error() {
    let folder = corpora();
    let workers = [(), (), ()].map(|()| Worker::start(&folder, &[]));
    for (statement, comes_last) in KINDS {
        let expected = sorted(sql(&folder, "", statement));
        let mut num_gone_on = 0;
        for num_bytes in [1, 90, 400, 1500, 6000, 30_000] {
            let proxy = Proxy::start(&workers[1].url, num_bytes, Duration::ZERO);
            let urls = format!("{},{},{}", workers[0].url, proxy.url, workers[2].url);
            let ran = sql(&folder, &urls, statement);
            let is_whole = ran.status == 0;
            assert!(is_whole || !comes_last || !ran.stdout.is_empty(), "{num_bytes}, {statement}: {}", ran.stderr);
            if is_whole && !ran.stderr.is_empty() {
                assert!(proxy.is_broken());
                assert_goes_on(ran, &proxy.url, 2, &expected);
                num_gone_on += 1;
            } else if is_whole {
                assert_eq!(sorted(ran), expected, "{num_bytes}: {statement}");
            } else {
                assert!(ran.stderr.contains("run the statement again"), "{num_bytes}, {statement}: {}", ran.stderr);
                assert_part(&String::from_utf8(ran.stdout).unwrap(), &expected);
            }
        }
        assert!(num_gone_on > 0, "{statement}");
    }
}

/// Checks that each line of `rows` is one of the `expected` lines, and none comes again.
fn assert_part(rows: &str, expected: &[String]) {
    let mut left = expected.to_vec();
    for row in rows.lines() {
        let at = left.iter().position(|line| line == row);
        left.swap_remove(at.unwrap_or_else(|| panic!("{row} comes again, or from nowhere")));
    }
}

#[test]
fn a_slow_worker_is_waited_for() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    for (statement, _) in KINDS {
        let expected = sorted(sql(&folder, "", statement));
        let proxy = Proxy::start(&workers[1].url, u64::MAX, Duration::from_millis(30));
        let ran = sql(&folder, &format!("{},{}", workers[0].url, proxy.url), statement);
        assert_eq!(ran.stderr, "");
        assert_eq!(sorted(ran), expected, "{statement}");
    }
}

/// Runs a statement on `workers` of which the second one works for one of `times` parts of the time.
fn with_a_slow_one(folder: &Folder, workers: &[Worker], statement: &str, times: u32) -> Ran {
    let is_over = AtomicBool::new(false);
    let working = Duration::from_millis(50);
    scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                workers[1].signal("STOP");
                sleep(working * (times - 1));
                workers[1].signal("CONT");
                sleep(working);
            }
        });
        let ran = sql(folder, &list(workers), statement);
        is_over.store(true, Ordering::Relaxed);
        ran
    })
}

#[test]
fn a_statement_goes_on_without_a_worker_whose_scans_are_slow() {
    let folder = corpora();
    long_statement(&folder);
    let expected = sorted(sql(&folder, "", PAIRS));
    let workers = [(), (), ()].map(|()| Worker::start(&folder, &[]));
    let urls = list(&workers);
    assert_eq!(sorted(sql(&folder, &urls, PAIRS)), expected);
    let start = Instant::now();
    assert_eq!(sorted(sql(&folder, &urls, PAIRS)), expected);
    let fast = start.elapsed();
    let start = Instant::now();
    let ran = with_a_slow_one(&folder, &workers, PAIRS, 10);
    let slow = start.elapsed();
    assert!(ran.stderr.contains("its scans take more than "), "{slow:?}: {}", ran.stderr);
    assert_goes_on(ran, &workers[1].url, 2, &expected);
    // The first attempt, two seconds, and a second one by two workers.
    assert!(slow < 4 * fast + Duration::from_secs(10), "{slow:?}, and {fast:?} without a slow worker");
}

#[test]
fn a_statement_goes_on_in_this_process_without_the_slow_one_of_two_workers() {
    let folder = corpora();
    long_statement(&folder);
    let pairs = "SELECT count(*), sum(count) FROM cooccurrence('long.tadoc', window => 3)";
    let expected = sorted(sql(&folder, "", pairs));
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let start = Instant::now();
    assert_eq!(sorted(sql(&folder, &list(&workers), pairs)), expected);
    let fast = start.elapsed();
    let start = Instant::now();
    let ran = with_a_slow_one(&folder, &workers, pairs, 60);
    let slow = start.elapsed();
    assert!(ran.stderr.contains("and this process needs "), "{slow:?}, {fast:?} otherwise: {}", ran.stderr);
    assert_goes_on(ran, &workers[1].url, 1, &expected);
}

/// Ends of a `COPY` to something with this name, and what reads it.
const COPIES: [(&str, &str); 6] = [
    ("TO '@.tadoc' STORED AS TADOC", "documents('@.tadoc')"),
    ("TO '@.parquet' STORED AS PARQUET", "'@.parquet'"),
    ("TO '@.parquet' STORED AS GSST", "'@.parquet'"),
    ("TO '@.json' STORED AS JSON", "'@.json'"),
    ("TO '@/' STORED AS PARQUET", "'@/'"),
    ("TO 'living/' STORED AS TADOC", "documents('living') WHERE doc_id >= 3"),
];

#[test]
fn a_copy_that_loses_a_worker_is_written_once() {
    let rows = |from: &str| format!("SELECT path, md5(text) AS digest FROM {from}");
    for (at, (end, from)) in COPIES.into_iter().enumerate() {
        let folder = corpora();
        let expected = sorted(sql(&folder, "", &rows("documents('many.tadoc')")));
        let num_versions = folder.ok(&["history", "living"]).lines().count();
        let workers = [(), (), ()].map(|()| Worker::start(&folder, &["--writable"]));
        let num_bytes = 3000;
        let proxy = Proxy::start(&workers[1].url, num_bytes, Duration::ZERO);
        let urls = format!("{},{},{}", workers[0].url, proxy.url, workers[2].url);
        let name = format!("copy{at}");
        let copy = format!("COPY (SELECT path, text FROM documents('many.tadoc')) {}", end.replace('@', &name));
        let ran = sql(&folder, &urls, &copy);
        assert!(proxy.is_broken(), "{copy}");
        assert_goes_on(ran, &proxy.url, 2, &["{\"count\":60}".to_owned()]);
        assert_eq!(sorted(sql(&folder, "", &rows(&from.replace('@', &name)))), expected, "{copy}");
        let is_of_copy = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().starts_with(&name);
        let found =
            std::fs::read_dir(folder.join(".")).unwrap().filter(|entry| is_of_copy(&entry.as_ref().unwrap().path()));
        let is_living = end.contains("living");
        assert_eq!(found.count(), usize::from(!is_living), "{copy}");
        let versions = folder.ok(&["history", "living"]);
        assert_eq!(versions.lines().count(), num_versions + usize::from(is_living), "{versions}");
    }
}

#[test]
fn segments_of_a_lost_worker_are_in_no_version() {
    let folder = corpora();
    let rows = |from: &str| format!("SELECT path, md5(text) AS digest FROM {from}");
    let expected = sorted(sql(&folder, "", &rows("documents('many.tadoc')")));
    let workers = [(), (), ()].map(|()| Worker::start(&folder, &["--writable"]));
    // The plan is there, and the row that names the segment is not.
    let proxy = Proxy::start(&workers[1].url, 300, Duration::ZERO);
    let urls = format!("{},{},{}", workers[0].url, proxy.url, workers[2].url);
    let copy = "SET tadoc.workers_write = true; \
                COPY (SELECT path, text FROM documents('many.tadoc')) TO 'living/' STORED AS TADOC";
    assert_goes_on(sql(&folder, &urls, copy), &proxy.url, 2, &["{\"count\":60}".to_owned()]);
    assert_eq!(sorted(sql(&folder, "", &rows("documents('living') WHERE doc_id >= 3"))), expected);
}

#[test]
fn a_table_in_memory_gets_no_rows_of_a_statement_that_loses_a_worker() {
    let folder = corpora();
    let workers = [(), (), ()].map(|()| Worker::start(&folder, &[]));
    let proxy = Proxy::start(&workers[1].url, 3000, Duration::ZERO);
    let urls = format!("{},{},{}", workers[0].url, proxy.url, workers[2].url);
    let insert = "CREATE TABLE t (path VARCHAR, text VARCHAR); \
                  INSERT INTO t SELECT path, text FROM documents('many.tadoc')";
    let start = Instant::now();
    let ran = sql(&folder, &urls, insert);
    assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    assert!(ran.status == 1 && ran.stdout.is_empty(), "{}", String::from_utf8_lossy(&ran.stdout));
    assert!(ran.stderr.contains(&proxy.url) && ran.stderr.contains("run the statement again"), "{}", ran.stderr);
}

#[test]
fn no_row_comes_again_after_the_first_one() {
    let folder = corpora();
    long_statement(&folder);
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let tokens = "SELECT doc_id, word_index, word FROM tokens('long.tadoc')";
    let mut child = start(&folder, &workers, tokens);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut rows = String::new();
    stdout.read_line(&mut rows).unwrap();
    workers[1].signal("KILL");
    stdout.read_to_string(&mut rows).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains(&workers[1].url), "{stderr}");
    for part in ["the connection broke while it ran task ", " of stage ", "run the statement again"] {
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
    let mut lines: Vec<&str> = rows.lines().collect();
    let num_rows = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), num_rows);
}
