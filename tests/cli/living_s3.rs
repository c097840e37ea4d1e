//! Tests of living corpora in S3: a real server, and faults between it and its clients.
//!
//! The steps of `testkit::living` run against moto (`server`) through a proxy that answers, drops,
//! tears and delays as planned (`proxy`, `plan`). The checks afterwards bypass the proxy.

mod message;
mod plan;
mod proxy;
mod statements;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig};
use tadoc::Error;
use tadoc::text::TokenizerProfile;
use tadoc_store::{Change, CommitKind, LivingStore, ObjectPrefix, Storage, Version};
use testkit::command::{BUCKET, s3_server};
use testkit::living::{self, Ledger, Step, Texts, append, batch, eager, run, texts, workload};
use testkit::random::Random;

use self::plan::{Fault, Plan};
use self::proxy::Proxy;
use crate::harness::{Folder, Ran, new_folder};

/// Time-out that no answer reaches.
pub const PATIENT: Duration = Duration::from_secs(60);
/// Number of attempts that `object_store` makes after the first.
const RETRIES: usize = 2;

pub fn client(address: SocketAddr, timeout: Duration) -> AmazonS3 {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(1), max_backoff: Duration::from_millis(2), base: 2.0 };
    let retry = RetryConfig { backoff, max_retries: RETRIES, retry_timeout: PATIENT };
    AmazonS3Builder::new()
        .with_client_options(ClientOptions::new().with_timeout(timeout))
        .with_endpoint(format!("http://{address}"))
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_access_key_id("anybody")
        .with_secret_access_key("secret")
        .with_bucket_name(BUCKET)
        .with_retry(retry)
        .build()
        .unwrap()
}

fn prefix(address: SocketAddr, timeout: Duration, name: &str) -> ObjectPrefix {
    let store: Arc<dyn ObjectStore> = Arc::new(client(address, timeout));
    ObjectPrefix::new(store, Path::from(format!("tests/{name}")))
}

/// Runs a future on a runtime of its own, and ends the connections that it opened.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

#[test]
fn the_server_puts_an_object_once() {
    let Some(server) = s3_server() else { return };
    let store = client(server.address, PATIENT);
    let create = || {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        block_on(store.put_opts(&"once".into(), "x".into(), options))
    };
    create().unwrap();
    let again = create().unwrap_err();
    let is_refused = matches!(again, object_store::Error::AlreadyExists { .. });
    assert!(is_refused, "moto before 5.2.5 answers 500: {again}");
}

/// Runs all steps through a proxy with `plan`. Each step succeeds and takes effect once.
fn ride_out(name: &str, plan: Plan, timeout: Duration) -> Option<Proxy> {
    let server = s3_server()?;
    let proxy = Proxy::new(server.address, plan);
    let mut ledger = Ledger::default();
    let written = block_on(ledger.write(prefix(proxy.address, timeout, name), &workload()));
    written.unwrap_or_else(|error| panic!("{plan:?}: {error}"));
    Some(proxy).inspect(|proxy| {
        let statuses = proxy.deliver();
        assert!(statuses.iter().all(|status| [200, 412].contains(status)), "{statuses:?}");
        block_on(ledger.check(prefix(server.address, PATIENT, name))).unwrap();
    })
}

#[test]
fn answers_that_pass_are_ridden_out() {
    let faults = [Fault::Conflict, Fault::Precondition, Fault::InternalError, Fault::SlowDown];
    for fault in faults {
        let name = format!("{fault:?}");
        let Some(proxy) = ride_out(&name, Plan::First(fault, RETRIES), PATIENT) else { return };
        assert!(proxy.num_faults() > 50, "{}", proxy.num_faults());
    }
}

#[test]
fn broken_connections_and_lost_answers_are_ridden_out() {
    for fault in [Fault::Reset, Fault::LostAnswer, Fault::TornAnswer] {
        let name = format!("{fault:?}");
        let Some(proxy) = ride_out(&name, Plan::First(fault, RETRIES), PATIENT) else { return };
        assert!(proxy.num_faults() > 50, "{}", proxy.num_faults());
    }
}

/// Returns a time-out that this machine keeps even if other programs run on it.
fn short_timeout(address: SocketAddr) -> Duration {
    let store = client(address, PATIENT);
    let slowest = (0..8).map(|_| {
        let start = Instant::now();
        block_on(store.put(&"warm".into(), "up".into())).unwrap();
        start.elapsed()
    });
    (10 * slowest.max().unwrap()).max(Duration::from_millis(300))
}

#[test]
fn requests_that_arrive_after_their_time_out_are_ridden_out() {
    let Some(server) = s3_server() else { return };
    let timeout = short_timeout(server.address);
    for fault in [Fault::Late, Fault::MuchLater] {
        let proxy = ride_out(&format!("{fault:?}"), Plan::First(fault, 1), timeout).unwrap();
        assert!(proxy.num_faults() > 20, "{}", proxy.num_faults());
    }
}

#[test]
fn any_mix_of_bad_days_is_ridden_out() {
    let Some(server) = s3_server() else { return };
    let timeout = short_timeout(server.address);
    for seed in 0..2 {
        let plan = Plan::Mixed(seed, RETRIES);
        let proxy = ride_out(&format!("mixed-{seed}"), plan, timeout).unwrap();
        assert!(proxy.num_faults() > 5, "{}", proxy.num_faults());
    }
}

#[test]
fn an_outage_is_reported_and_loses_nothing() {
    let Some(proxy) = ride_out("calm", Plan::Calm, PATIENT) else { return };
    let server = s3_server().unwrap().address;
    let num_requests = proxy.num_requests();
    let mut num_unknown = 0;
    // The first of the lost answers belongs to the commit that creates the corpus.
    let faults = [Fault::SlowDown, Fault::LostAnswer, Fault::Conflict, Fault::Denied, Fault::Expired];
    for (idx, fault) in faults.into_iter().enumerate() {
        for from in (idx..num_requests).step_by(47) {
            let proxy = Proxy::new(server, Plan::From(fault, from));
            let name = format!("outage-{fault:?}-{from}");
            let mut ledger = Ledger::default();
            let storage = prefix(proxy.address, PATIENT, &name);
            match block_on(ledger.write(storage, &workload())).unwrap_err() {
                Error::UnknownCommit { .. } => num_unknown += 1,
                Error::External { .. } => {}
                other => panic!("{fault:?} {from}: {other:?}"),
            }
            if matches!(fault, Fault::Denied | Fault::Expired) {
                // The second fault is the check for a segment file.
                assert!(proxy.num_faults() <= 2, "{fault:?} {from}: {}", proxy.num_faults());
            }
            proxy.deliver();
            block_on(ledger.check(prefix(server, PATIENT, &name))).unwrap();
        }
    }
    assert!(num_unknown > 0, "{num_unknown}");
}

async fn begin(storage: ObjectPrefix) -> LivingStore {
    let store = LivingStore::create(storage, TokenizerProfile::default(), eager()).await.unwrap();
    run(&store, &Step::Append(vec!["x"])).await.unwrap();
    store
}

#[test]
fn of_two_writers_one_wins_each_version_and_both_succeed_in_the_end() {
    const NUM_COMMITS: u64 = 6;
    let Some(server) = s3_server() else { return };
    for plan in [Plan::Calm, Plan::Mixed(7, RETRIES)] {
        let proxy = Proxy::new(server.address, plan);
        let timeout = short_timeout(server.address);
        let name = format!("racers-{}", matches!(plan, Plan::Calm));
        let base = block_on(async {
            let store = begin(prefix(server.address, PATIENT, &name)).await;
            store.latest().await.unwrap()
        });
        let racer = |digit: &str| {
            let storage = prefix(proxy.address, timeout, &name);
            block_on(async {
                let store = LivingStore::open(storage, eager()).await.unwrap();
                let edit = Change::edit(CommitKind::Edit, &batch(vec![append(0, "!")]));
                let first = store.commit(&base, &edit).await;
                for _ in 0..NUM_COMMITS {
                    let edits = batch(vec![append(0, digit)]);
                    let change = async |_: Version| Ok(Change::edit(CommitKind::Edit, &edits));
                    store.update(change).await.unwrap();
                }
                first
            })
        };
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let racers = ["0", "1"].map(|digit| scope.spawn(move || racer(digit)));
            racers.map(|racer| racer.join().unwrap()).into()
        });
        let won = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        let lost = |outcome: &_| matches!(outcome, Err(Error::Conflict { version: 3, .. }));
        assert_eq!((won, outcomes.iter().filter(|o| lost(o)).count()), (1, 1), "{outcomes:?}");
        proxy.deliver();
        block_on(async {
            let storage = prefix(server.address, PATIENT, &name);
            let store = LivingStore::open(storage, eager()).await.unwrap();
            let history = store.history().await.unwrap();
            assert_eq!(history.len() as u64, 3 + 2 * NUM_COMMITS);
            assert!(history.windows(2).all(|w| w[1].parent_id == w[0].commit_id));
            let ids: BTreeSet<_> = history.iter().map(|version| version.commit_id).collect();
            assert_eq!(ids.len(), history.len());
            let mut found = texts(&store, history.last().unwrap()).await.unwrap();
            let text = found[0].as_mut().unwrap();
            text.sort_unstable();
            assert_eq!(text, b"!000000111111x");
        });
    }
}

#[test]
fn readers_beside_a_writer_see_whole_versions() {
    let Some(server) = s3_server() else { return };
    let open = || prefix(server.address, PATIENT, "readers");
    block_on(begin(open()));
    let expected: Mutex<Vec<Texts>> = Mutex::new(vec![vec![], vec![Some(b"x".to_vec())]]);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                block_on(async {
                    let store = LivingStore::open(open(), eager()).await.unwrap();
                    let mut last = 0;
                    while !is_done.load(Ordering::Relaxed) {
                        let version = store.latest().await.unwrap();
                        let found = texts(&store, &version).await.unwrap();
                        let all = expected.lock().unwrap();
                        assert_eq!(found, all[version.number as usize - 1], "{version:?}");
                        assert!(version.number >= last);
                        last = version.number;
                    }
                });
            });
        }
        block_on(async {
            let store = LivingStore::open(open(), eager()).await.unwrap();
            for i in 0..8 {
                let step = living::round(i);
                // The expected state is known before the version exists.
                let next = living::after(expected.lock().unwrap().last().unwrap(), &step);
                expected.lock().unwrap().push(next);
                run(&store, &step).await.unwrap();
            }
        });
        is_done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn large_files_come_back_from_an_upload_in_parts() {
    let Some(server) = s3_server() else { return };
    let faults = [Fault::InternalError, Fault::Reset, Fault::LostAnswer, Fault::TornAnswer];
    let mut random = Random(1);
    let chunk: Bytes = (0..1 << 20).map(|_| random.number() as u8).collect();
    let chunks = || vec![chunk.clone(); 17].into_iter();
    for (idx, fault) in faults.into_iter().enumerate() {
        let proxy = Proxy::new(server.address, Plan::First(fault, 1));
        // The prefix must not contain the fault's name: clients look for names of errors in
        // answers, and answers contain the key.
        let storage = prefix(proxy.address, PATIENT, &format!("large-{idx}"));
        let name = "segments/large.tadoc";
        let stream = futures::stream::iter(chunks().map(Ok)).boxed();
        block_on(storage.put_stream(name, stream)).unwrap_or_else(|e| panic!("{fault:?}: {e}"));
        let direct = prefix(server.address, PATIENT, &format!("large-{idx}"));
        let stored = block_on(direct.get(name, u64::MAX)).unwrap();
        assert!(stored == chunks().collect::<Vec<_>>().concat(), "{fault:?}");
        // The requests are the beginning, three parts, and the end.
        assert!(proxy.num_faults() >= 5, "{fault:?}: {}", proxy.num_faults());

        // A file whose writer gives up does not show.
        let ends = chunks().map(Ok).chain([Err(Error::Cancelled)]);
        let stream = futures::stream::iter(ends).boxed();
        block_on(storage.put_stream("segments/given-up.tadoc", stream)).unwrap_err();
        let files = block_on(direct.list("segments", None)).unwrap();
        assert_eq!(files.len(), 1, "{fault:?}");
    }
}

#[test]
fn statements_do_in_s3_what_they_do_on_disks() {
    let Some(server) = s3_server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().join("local").display().to_string();
    let expected = block_on(statements::answers(&local, None));
    let timeout = short_timeout(server.address);
    let plans = [
        (Plan::Calm, PATIENT),
        (Plan::First(Fault::Conflict, RETRIES), PATIENT),
        (Plan::First(Fault::InternalError, RETRIES), PATIENT),
        (Plan::First(Fault::LostAnswer, RETRIES), PATIENT),
        (Plan::First(Fault::TornAnswer, RETRIES), PATIENT),
        (Plan::Mixed(1, RETRIES), timeout),
    ];
    for (idx, (plan, timeout)) in plans.into_iter().enumerate() {
        let proxy = Proxy::new(server.address, plan);
        let bucket = Arc::new(client(proxy.address, timeout));
        let place = format!("s3://{BUCKET}/statements/{idx}");
        let found = block_on(statements::answers(&place, Some(("s3://corpora", bucket))));
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{plan:?}");
        }
        assert!(matches!(plan, Plan::Calm) || proxy.num_faults() > 20, "{}", proxy.num_faults());
        proxy.deliver();
    }
}

/// Runs a statement with `tadoc`, as a user of the server does.
fn sql(address: SocketAddr, folder: &Folder, statement: &str) -> Ran {
    tadoc(address, folder, &["sql", "-q", "--format", "csv", "-c", statement])
}

fn tadoc(address: SocketAddr, folder: &Folder, arguments: &[&str]) -> Ran {
    Ran::from(command(address, folder, arguments).output().unwrap())
}

fn command(address: SocketAddr, folder: &Folder, arguments: &[&str]) -> std::process::Command {
    let mut command = folder.command(arguments);
    command.env("AWS_ENDPOINT", format!("http://{address}")).envs([
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "anybody"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ]);
    command
}

#[test]
fn sql_reads_a_file_by_its_url() {
    let Some(server) = s3_server() else { return };
    let folder = new_folder();
    folder.write("in/a.txt", "to be or not to be");
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    let bytes = std::fs::read(folder.join("c.tadoc")).unwrap();
    let path = Path::from("files/c.tadoc");
    block_on(client(server.address, PATIENT).put(&path, bytes.into())).unwrap();
    let words = |url: &str| {
        let words = format!("SELECT word, count FROM word_count('{url}') ORDER BY word LIMIT 2");
        sql(server.address, &folder, &words)
    };
    for url in ["s3://corpora/files/c.tadoc", "s3://corpora/files/*.tadoc"] {
        assert_eq!(words(url).ok(), "word,count\nbe,2\nnot,1\n");
    }
    let missing = words("s3://corpora/files/d.tadoc");
    assert_eq!(missing.status, 1, "{}", missing.stderr);
    assert!(missing.stderr.contains("s3://corpora/files/d.tadoc"), "{}", missing.stderr);
}

/// A bucket that is not there is found before the input is read.
#[test]
fn a_bucket_that_is_not_there_is_found_first() {
    let Some(server) = s3_server() else { return };
    let folder = new_folder();
    folder.write("a.txt", "no number");
    for options in [
        &["-o", "s3://nowhere/c.tadoc"][..],
        &["-o", "s3://nowhere/c.tadoc", "--force"],
        &["-o", "s3://nowhere/notes", "--append"],
    ] {
        // Nothing comes through this pipe, so an ingest that reads it does not end.
        let arguments = [&["ingest", "-", "--documents", "lines"], options].concat();
        let mut command = command(server.address, &folder, &arguments);
        let pipes = command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        let waiting = child.stdin.take();
        let ran = Ran::from(child.wait_with_output().unwrap());
        drop(waiting);
        assert_eq!(ran.status, 1, "{options:?}");
        assert!(ran.stderr.contains("nowhere"), "{options:?}: {}", ran.stderr);
    }
    // The query would fail if it ran.
    let query = "SELECT 'a' AS text, CAST(text AS INT) AS n FROM read_text('a.txt')";
    for target in ["'s3://nowhere/c.tadoc' STORED AS TADOC", "'s3://nowhere/c.parquet' STORED AS GSST"] {
        let ran = sql(server.address, &folder, &format!("COPY ({query}) TO {target}"));
        assert!(ran.stderr.contains("nowhere") && !ran.stderr.contains("no number"), "{}", ran.stderr);
    }
}

#[test]
fn every_command_takes_a_url() {
    let Some(server) = s3_server() else { return };
    let folder = new_folder();
    let tadoc = |arguments: &[&str]| tadoc(server.address, &folder, arguments).ok();
    let url = "s3://corpora/commands/notes";
    folder.write("in/a.txt", "to be");
    folder.write("in/b.txt", "or not");
    for _ in 0..2 {
        tadoc(&["ingest", "in", "-o", url, "--append", "--duplicate"]);
    }
    let told = tadoc(&["edit", url, "--append", "0", " sure", "--drop", "1"]);
    assert_eq!(told, format!("{url}: version 4: 1 append, 1 drop\n"));
    assert!(tadoc(&["verify", url]).starts_with(&format!("{url}: version 4, 3 documents, 2 parts")));
    assert!(tadoc(&["optimize", url]).starts_with(&format!("{url}: version 5: 2 parts ")));
    // The clean-up removes two segment files at once, and four versions.
    let cleaned = tadoc(&["optimize", url, "--clean-up", "0"]);
    assert!(cleaned.contains("removed 6 files") && cleaned.contains("from 5 on"), "{cleaned}");
    assert_eq!(tadoc(&["cat", url, "--doc-id", "0"]), "to be sure");
    assert_eq!(tadoc(&["history", url]).lines().count(), 2);
    let create = format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{url}-2' OPTIONS ('create' 'true')");
    let insert = "INSERT INTO d (path, text) VALUES ('a', 'b c')";
    let count = format!("SELECT count(*) AS n FROM word_count('{url}-2/')");
    let all = ["sql", "-q", "--format", "csv", "-c", &create, "-c", insert, "-c", &count];
    assert!(tadoc(&all).ends_with("n\n2\n"));
}

#[test]
fn four_machines_ingest_into_one_corpus() {
    const NUM_MACHINES: usize = 4;
    const NUM_INGESTS: usize = 3;
    let Some(server) = s3_server() else { return };
    let url = "s3://corpora/machines/logs";
    let machine = |machine: usize| {
        let folder = new_folder();
        for ingest in 0..NUM_INGESTS {
            let lines = (0..50).map(|line| format!("machine {machine} ingest {ingest} line {line}\n"));
            folder.write(&format!("in/{machine}-{ingest}.log"), lines.collect::<String>());
            let input = format!("in/{machine}-{ingest}.log");
            let ingest = ["ingest", &input, "-o", url, "--append", "--documents", "lines"];
            tadoc(server.address, &folder, &ingest).ok();
        }
    };
    std::thread::scope(|scope| {
        (0..NUM_MACHINES).for_each(|idx| drop(scope.spawn(move || machine(idx))));
    });
    let folder = new_folder();
    let texts = format!("SELECT text FROM documents('{url}/') ORDER BY text");
    let found = sql(server.address, &folder, &texts).ok();
    let mut expected: Vec<String> = Vec::new();
    for machine in 0..NUM_MACHINES {
        for ingest in 0..NUM_INGESTS {
            let line = |line| format!("machine {machine} ingest {ingest} line {line}");
            expected.extend((0..50).map(line));
        }
    }
    expected.sort();
    assert_eq!(found.lines().skip(1).collect::<Vec<_>>(), expected);
    // Below the header, each ingest is one version, beside the one that creates the corpus.
    let history = tadoc(server.address, &folder, &["history", url]).ok();
    assert_eq!(history.lines().count(), 2 + NUM_MACHINES * NUM_INGESTS, "{history}");
}
