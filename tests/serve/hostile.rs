//! Clients that mean harm. Others are served meanwhile, and the server lives on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use arrow_flight::Ticket;
use arrow_flight::sql::{ProstMessageExt, TicketStatementQuery};
use futures::StreamExt;
use prost::Message;
use testkit::random::Random;

use crate::server::{Server, batches, rows};

const SOON: Duration = Duration::from_secs(10);

/// Asks a small question on a new connection, which has to be answered.
async fn is_served(server: &Server) {
    let asked = async {
        let mut client = server.client().await;
        assert_eq!(rows(&mut client, "SELECT count(*) FROM search('notes', 'power')").await, ["81"]);
    };
    assert!(tokio::time::timeout(SOON, asked).await.is_ok(), "no answer within 10 s");
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_is_refused() {
    let server = Server::start(&[]);
    let mut random = Random(20261125);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    let post = b"POST /query HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n";
    for start in [b"".as_slice(), preface, b"GET / HTTP/1.1\r\n", post, b"\x16\x03\x01\x02\x00"] {
        for _ in 0..20 {
            let len = random.below(2000);
            let rubbish: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            let mut stream = connect(&server);
            // The server may have closed the connection.
            let _ = stream.write_all(start).and_then(|()| stream.write_all(&rubbish));
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
    // Frames of HTTP/2 with random heads.
    for _ in 0..100 {
        let mut stream = connect(&server);
        let mut frames = [preface, b"\0\0\0\x04\0\0\0\0\0"].concat();
        for _ in 0..10 {
            let len = random.below(64);
            frames.extend([0, 0, len as u8, random.below(12) as u8, random.below(256) as u8]);
            frames.extend([0, 0, 0, random.below(6) as u8]);
            frames.extend((0..len).map(|_| random.below(256) as u8));
        }
        let _ = stream.write_all(&frames);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    is_served(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tickets_and_messages_of_others_are_refused() {
    let server = Server::start(&[]);
    let mut client = server.client().await;
    let mut random = Random(7);
    let info = client.execute("SELECT path FROM notes".to_owned(), None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap().ticket;
    for at in 0..ticket.len() {
        let mut changed = ticket.to_vec();
        changed[at] ^= 1 << random.below(8);
        // An error, or the rows of another statement.
        if let Ok(mut stream) = client.do_get(Ticket { ticket: changed.into() }).await {
            while let Some(Ok(_)) = stream.next().await {}
        }
        let cut = Ticket { ticket: ticket.slice(..at) };
        assert!(client.do_get(cut).await.is_err(), "{at}");
    }
    for handle in [vec![], vec![0xff; 100], vec![0x12, 0xff, 0xff, 0xff, 0xff, 0x0f]] {
        let ticket = TicketStatementQuery { statement_handle: handle.into() };
        let ticket = ticket.as_any().encode_to_vec().into();
        assert!(client.do_get(Ticket { ticket }).await.is_err());
    }
    is_served(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_statements_are_refused_or_answered() {
    let server = Server::start(&["--timeout", "20s"]);
    let mut client = server.client().await;
    let too_long = format!("SELECT '{}'", "x".repeat(3 << 20));
    assert!(batches(&mut client, &too_long).await.is_err());
    assert!(matches!(server.query(&too_long).status, 400 | 413));
    let long = format!("SELECT length('{}') AS n", "x".repeat(1 << 19));
    assert_eq!(rows(&mut client, &long).await, [(1 << 19).to_string()]);
    for deep in [
        format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("SELECT 1{}", " + 1".repeat(100_000)),
        format!("SELECT {}1", "NOT ".repeat(100_000)),
        "SELECT * FROM (".repeat(10_000),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(20_000)),
    ] {
        assert!(batches(&mut client, &deep).await.is_err(), "{:.40}", deep);
    }
    // Wide statements take long to plan. Others are served meanwhile.
    let wide = format!("SELECT {}", vec!["a.doc_id + 1"; 20_000].join(", ") + " FROM notes a");
    let planning: Vec<_> = (0..8)
        .map(|_| {
            let mut client = client.clone();
            let wide = wide.clone();
            tokio::spawn(async move { drop(client.execute(wide, None).await) })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    is_served(&server).await;
    for task in planning {
        task.await.unwrap();
    }
    is_served(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_statements_let_others_pass() {
    let server = Server::start(&["--timeout", "15s"]);
    let endless = "SELECT count(*) FROM lines a, lines b, lines c WHERE a.doc_id + b.doc_id = c.doc_id";
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let mut client = server.client().await;
        tasks.push(tokio::spawn(async move { batches(&mut client, endless).await }));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for _ in 0..3 {
        is_served(&server).await;
    }
    assert_eq!(server.get("/healthz").status, 200);
    for task in tasks {
        assert!(task.await.unwrap().unwrap_err().contains("--timeout"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_connections_do_not_shut_others_out() {
    let server = Server::start(&["--max-connections", "100"]);
    let mut working = server.client().await;
    let many = "SELECT a.doc_id FROM lines a, lines b WHERE b.doc_id < 50".to_owned();
    let info = working.execute(many, None).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let mut stream = working.do_get(ticket).await.unwrap();
    let mut num_rows = stream.next().await.unwrap().unwrap().num_rows();
    let mut silent = Vec::new();
    for n in 0..2000 {
        let Ok(mut connection) = TcpStream::connect(("127.0.0.1", server.port)) else { continue };
        if n % 2 == 0 {
            let _ = connection.write_all(b"GET / HTTP/1.1\r\nhost: loc");
        }
        silent.push(connection);
        if silent.len() == 400 {
            silent.drain(..200);
        }
        if n % 500 == 0 {
            is_served(&server).await;
        }
    }
    // A connection that makes room is closed within a moment, or some on a machine that is busy.
    let start = Instant::now();
    while server.metric("tadoc_connections") > 100.0 {
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(server.metric("tadoc_connections_refused_total") >= 1000.0);
    is_served(&server).await;
    while let Some(batch) = stream.next().await {
        num_rows += batch.unwrap().num_rows();
    }
    assert_eq!(num_rows, 20_000 * 50, "a connection in use is not closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_take_little_memory_and_are_closed() {
    let server = Server::start(&["--timeout", "10s"]);
    let before_kib = resident_kib(&server);
    let mut stalled = Vec::new();
    for _ in 0..64 {
        let mut client = server.client().await;
        let many = "SELECT a.text, b.text FROM lines a, lines b".to_owned();
        let info = client.execute(many, None).await.unwrap();
        let ticket = info.endpoint[0].ticket.clone().unwrap();
        // The stream is held and not read.
        stalled.push(client.do_get(ticket).await.unwrap());
    }
    is_served(&server).await;
    let grown_kib = resident_kib(&server).saturating_sub(before_kib);
    assert!(grown_kib < 1 << 20, "{grown_kib} KiB");
    let started = Instant::now();
    server.wait_for_metric("tadoc_statements", 0.0, Duration::from_secs(30));
    assert!(started.elapsed() < Duration::from_secs(25));
    is_served(&server).await;
    for mut stream in stalled {
        let mut last = Ok(());
        while let Some(batch) = stream.next().await {
            last = batch.map(drop);
        }
        assert!(last.is_err(), "no stream ends as if it were whole");
    }
}

fn resident_kib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
