//! Limits of statements: time, memory, cancelling, and the stop of the server.

use std::time::{Duration, Instant};

use arrow_flight::sql::{ActionCancelQueryRequest, ProstMessageExt};
use futures::StreamExt;
use prost::Message;

use crate::server::{Server, batches, fetch, rows};

/// A statement that computes for hours.
const ENDLESS: &str = "SELECT count(*) FROM lines a, lines b, lines c WHERE a.doc_id + b.doc_id = c.doc_id + 1";
const RUNNING: &str = "tadoc_statements";
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_ends_when_its_time_is_over() {
    let server = Server::start(&["--timeout", "1s"]);
    let mut client = server.client().await;
    let started = Instant::now();
    let text = batches(&mut client, ENDLESS).await.unwrap_err();
    assert!(text.contains("--timeout") && started.elapsed() < SOON, "{text}");
    server.wait_for_metric(RUNNING, 0.0, SOON);
    assert_eq!(server.metric("tadoc_statements_total{outcome=\"timed_out\"}"), 1.0);
    assert_eq!(server.query(ENDLESS).status, 504);
    assert_eq!(rows(&mut client, "SELECT 1").await, ["1"]);
    assert!(is_at_rest(&server));
}

/// An operator that computes without a pause does not stop the clock, and ends then.
#[tokio::test(flavor = "multi_thread")]
async fn time_goes_on_while_an_operator_computes() {
    let server = Server::start(&["--timeout", "1s"]);
    let busy = "SELECT count(*) FROM lines a, lines b, lines c, lines d \
                WHERE length(a.text) + length(b.text) + length(c.text) + length(d.text) = 7";
    let started = Instant::now();
    assert_eq!(server.query(busy).status, 504);
    assert!(started.elapsed() < SOON);
    assert!(is_at_rest(&server));
    assert_eq!(server.query("SELECT 1").status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_ends_when_its_client_leaves() {
    let server = Server::start(&[]);
    let mut client = server.client().await;
    // While it plans and computes, before its first row.
    let left = tokio::time::timeout(Duration::from_millis(500), batches(&mut client, ENDLESS));
    assert!(left.await.is_err());
    server.wait_for_metric(RUNNING, 0.0, SOON);
    // In the middle of its rows.
    let many = "SELECT a.text FROM lines a, lines b".to_owned();
    let info = client.execute(many, None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let mut stream = client.do_get(ticket).await.unwrap();
    for _ in 0..3 {
        stream.next().await.unwrap().unwrap();
    }
    drop(stream);
    server.wait_for_metric(RUNNING, 0.0, SOON);
    assert_eq!(server.metric("tadoc_statements_total{outcome=\"cancelled\"}"), 2.0);
    assert!(is_at_rest(&server));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_ends_when_it_is_cancelled() {
    let server = Server::start(&[]);
    let mut client = server.client().await;
    let info = client.execute(ENDLESS.to_owned(), None).await.unwrap();
    let mut other = server.client().await;
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let rows = tokio::spawn(async move {
        let mut stream = client.do_get(ticket).await?;
        stream.next().await.transpose()
    });
    server.wait_for_metric(RUNNING, 1.0, SOON);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let body = ActionCancelQueryRequest { info: info.encode_to_vec().into() };
    let action = arrow_flight::Action { r#type: "CancelQuery".to_owned(), body: body.as_any().encode_to_vec().into() };
    other.do_action(action.clone()).await.unwrap().message().await.unwrap().unwrap();
    let outcome = rows.await.unwrap();
    assert!(outcome.unwrap_err().to_string().contains("cancelled"));
    server.wait_for_metric(RUNNING, 0.0, SOON);
    // Nobody cancels with something else.
    let rubbish = arrow_flight::Action { body: b"rubbish".to_vec().into(), ..action };
    assert!(other.do_action(rubbish).await.is_err());
    assert!(is_at_rest(&server));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_has_its_memory() {
    let server = Server::start(&["--statement-memory", "1MiB"]);
    let mut client = server.client().await;
    let large = "SELECT text, count(*) FROM lines GROUP BY text ORDER BY text LIMIT 1";
    let text = batches(&mut client, large).await.unwrap_err();
    assert!(text.contains("--statement-memory"), "{text}");
    assert_eq!(rows(&mut client, "SELECT count(*) FROM lines").await, ["20000"]);
    assert_eq!(server.query(large).status, 503);
    assert_eq!(server.metric("tadoc_statements_total{outcome=\"exhausted\"}"), 2.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_statements_are_refused() {
    let server = Server::start(&[]);
    let mut client = server.client().await;
    let long = format!("SELECT '{}'", "x".repeat(1 << 20));
    let text = batches(&mut client, &long).await.unwrap_err();
    assert!(text.contains("the statement has more than 1 MiB"), "{text}");
    let text = client.prepare(long, None).await.err().unwrap().to_string();
    assert!(text.contains("the statement has more than 1 MiB"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_statements_are_refused() {
    let server = Server::start(&["--max-statements", "2"]);
    let mut running = Vec::new();
    for _ in 0..2 {
        let mut client = server.client().await;
        let info = client.execute(ENDLESS.to_owned(), None).await.unwrap();
        running.push(tokio::spawn(async move { fetch(&mut client, info).await }));
    }
    server.wait_for_metric(RUNNING, 2.0, SOON);
    let mut client = server.client().await;
    let text = batches(&mut client, "SELECT 1").await.unwrap_err();
    assert!(text.contains("try again"), "{text}");
    assert_eq!(server.get("/healthz").status, 200);
    running.iter().for_each(|task| task.abort());
    server.wait_for_metric(RUNNING, 0.0, SOON);
    assert_eq!(rows(&mut client, "SELECT 1").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_statements_end() {
    let server = Server::start(&["--grace", "20s"]);
    let mut client = server.client().await;
    let many = "SELECT a.doc_id, b.doc_id FROM lines a, lines b WHERE b.doc_id < 100".to_owned();
    let info = client.execute(many, None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let mut stream = client.do_get(ticket).await.unwrap();
    let mut num_rows = stream.next().await.unwrap().unwrap().num_rows();
    server.ask_to_stop();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(std::net::TcpStream::connect(("127.0.0.1", server.port)).is_err());
    while let Some(batch) = stream.next().await {
        num_rows += batch.unwrap().num_rows();
    }
    assert_eq!(num_rows, 20_000 * 100);
    let (status, rest) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert!(status.success(), "{status}: {rest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_does_not_wait_for_ever() {
    let server = Server::start(&["--grace", "1s"]);
    let mut client = server.client().await;
    let info = client.execute(ENDLESS.to_owned(), None).await.unwrap();
    let running = tokio::spawn(async move { fetch(&mut client, info).await });
    server.wait_for_metric(RUNNING, 1.0, SOON);
    server.ask_to_stop();
    let started = Instant::now();
    let (status, rest) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert!(status.success() && started.elapsed() < SOON, "{status}: {rest}");
    assert!(running.await.unwrap().is_err());
}

/// Returns true if the server uses no processor within two seconds.
fn is_at_rest(server: &Server) -> bool {
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let started = Instant::now();
    while started.elapsed() < SOON {
        let before = ticks();
        std::thread::sleep(Duration::from_millis(500));
        // 10 ms each.
        if ticks() - before <= 5 {
            return true;
        }
    }
    false
}
