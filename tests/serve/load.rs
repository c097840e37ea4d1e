//! Many clients at a time, with small and large statements: `SERVE_CLIENTS=64 SERVE_SECONDS=30 cargo
//! test --test serve load -- --nocapture`. With `SERVE_PAUSE_MS=1000` each client waits a second
//! between statements, on average, as people do.
//!
//! Each answer is compared with that of the command for the same statement, so nothing is lost and
//! nothing is mixed. The figures are the median of one client, and the 99th percentile of all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use testkit::random::Random;

use crate::server::{Server, rows};

/// Statements, of which each client asks one at random, and how often among 100.
const STATEMENTS: &[(&str, usize)] = &[
    ("SELECT path, byte_offset FROM search('CORPUS', 'line 7 says') ORDER BY doc_id, byte_offset LIMIT 20", 25),
    ("SELECT word, count FROM word_count('CORPUS') ORDER BY count DESC, word LIMIT 10", 20),
    ("SELECT \"left\", match, \"right\" FROM kwic('CORPUS', 'says', width => 3) ORDER BY doc_id LIMIT 20", 15),
    ("SELECT text FROM documents('CORPUS') WHERE doc_id = 4711", 20),
    ("SELECT count(*) AS n, sum(length(text)) AS bytes FROM documents('CORPUS')", 10),
    ("SELECT path, score FROM rank('CORPUS', 'line AND 96', top => 5)", 10),
];

fn number(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Asks statements until `end`, and returns the time of each.
async fn ask(server: &Server, answers: &[Vec<String>], seed: u64, end: Instant) -> Vec<Duration> {
    let mut client = server.client().await;
    let mut random = Random(seed);
    let mut times = Vec::new();
    let pause = Duration::from_millis(number("SERVE_PAUSE_MS", 0) as u64);
    while Instant::now() < end {
        tokio::time::sleep(pause.mul_f64(random.below(2000) as f64 / 1000.0)).await;
        let mut at = random.below(100);
        let which = STATEMENTS.iter().position(|(_, share)| {
            let is_it = at < *share;
            at = at.saturating_sub(*share);
            is_it
        });
        let which = which.unwrap();
        let sql = STATEMENTS[which].0.replace("CORPUS", "lines");
        let started = Instant::now();
        let found = rows(&mut client, &sql).await;
        times.push(started.elapsed());
        assert_eq!(found, answers[which], "{sql}");
    }
    times
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

#[tokio::test(flavor = "multi_thread")]
async fn load_of_many_clients() {
    let num_clients = number("SERVE_CLIENTS", 16);
    let seconds = number("SERVE_SECONDS", 2);
    let limit_mib = number("SERVE_MEMORY_MIB", 512);
    let server = Server::start(&["--memory-limit", &format!("{limit_mib}MiB")]);
    let server = Arc::new(server);
    let mut answers = Vec::new();
    let mut client = server.client().await;
    for (sql, _) in STATEMENTS {
        let served = rows(&mut client, &sql.replace("CORPUS", "lines")).await;
        let local = server.folder.rows(&sql.replace("CORPUS", "lines.tadoc"));
        let served_as_csv: Vec<String> = served.iter().map(|row| row.replace('|', ",")).collect();
        assert_eq!(served_as_csv, local, "{sql}");
        answers.push(served);
    }
    let answers = Arc::new(answers);
    let length = Duration::from_secs(seconds as u64);
    let mut alone = ask(&server, &answers, 1, Instant::now() + length).await;
    let median = percentile(&mut alone, 50);

    let end = Instant::now() + length;
    let clients: Vec<_> = (0..num_clients)
        .map(|n| {
            let server = Arc::clone(&server);
            let answers = Arc::clone(&answers);
            tokio::spawn(async move { ask(&server, &answers, 100 + n as u64, end).await })
        })
        .collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.unwrap());
    }
    let num = times.len();
    let p50 = percentile(&mut times, 50);
    let p99 = percentile(&mut times, 99);
    let max = percentile(&mut times, 100);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_mib: u64 = peak.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024;
    println!(
        "one client: {} statements, median {median:.1?}\n{num_clients} clients: {num} statements in \
         {seconds} s, median {p50:.1?}, p99 {p99:.1?} ({:.1} times the median of one), longest \
         {max:.1?}\nserver: peak {peak_mib} MiB, limit {limit_mib} MiB",
        alone.len(),
        p99.as_secs_f64() / median.as_secs_f64()
    );
    let ended = server.metric("tadoc_statements_total{outcome=\"done\"}");
    assert_eq!(ended as usize, STATEMENTS.len() + alone.len() + num, "none is lost");
}
