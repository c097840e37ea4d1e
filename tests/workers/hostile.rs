//! Bytes that no coordinator sends: a worker refuses them, stays alive, and serves others.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use super::cluster::{Worker, corpora, list, sorted, sql};
use datafusion_tadoc_distributed::WORKER_VERSION;
use testkit::command::Folder;
use testkit::random::Random;

const STATEMENT: &str = "SELECT path, count FROM term_count('many.tadoc', 'scan')";
/// Paths of requests of gRPC.
const METHODS: [&str; 3] = ["CoordinatorChannel", "ExecuteTask", "GetWorkerInfo"];
/// Longest time for an answer.
const BOUND: Duration = Duration::from_secs(20);
/// Status of gRPC for a message that is longer than allowed.
const OUT_OF_RANGE: &str = "grpc-status: 11";

/// Connects to a worker and sends `bytes`. The worker may hang up at once.
fn connect(worker: &Worker, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(worker.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    let _ = stream.write_all(bytes);
    stream
}

/// Sends `bytes`, and returns the beginning of the answer. It is empty if the worker hangs up.
fn send(worker: &Worker, bytes: &[u8]) -> String {
    let mut stream = connect(worker, bytes);
    let mut answer = [0; 4096];
    let len = stream.read(&mut answer).unwrap_or(0);
    String::from_utf8_lossy(&answer[..len]).into_owned()
}

/// Returns a request of gRPC, over HTTP/1.1, that promises `len` bytes of body and has `body`.
fn request(method: &str, version: &str, len: usize, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /worker.WorkerService/{method} HTTP/1.1\r\nhost: 127.0.0.1\r\nte: trailers\r\n\
         content-type: application/grpc\r\nx-tadoc-version: {version}\r\ncontent-length: {len}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Returns the head of a message of `len` bytes.
fn message_head(len: u32) -> Vec<u8> {
    [&[0], &len.to_be_bytes()[..]].concat()
}

/// Checks that the workers answer a statement as one process does.
fn check(folder: &Folder, workers: &[Worker]) {
    assert_eq!(sorted(sql(folder, &list(workers), STATEMENT)), sorted(sql(folder, "", STATEMENT)));
}

#[test]
fn lengths_in_heads_take_no_memory() {
    const NUM_HEADS: u64 = 16;
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    check(&folder, &workers);
    let before = workers[0].peak_kib();
    for at in 0..NUM_HEADS {
        // Four GiB, of which nothing follows.
        let method = METHODS[at as usize % 2];
        let answer = send(&workers[0], &request(method, "x", 1000, &message_head(u32::MAX - 9)));
        assert!(answer.contains(OUT_OF_RANGE), "{method}: {answer:?}");
    }
    let grown = workers[0].peak_kib().saturating_sub(before);
    assert!(grown < NUM_HEADS * (4 << 20) / 8, "{grown} KiB");
    check(&folder, &workers);
    for worker in workers {
        assert_eq!(worker.end(), (0, String::new()));
    }
}

#[test]
fn garbage_is_refused() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let mut random = Random(26);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for round in 0..60 {
        let garbage: Vec<u8> = (0..1 + random.below(300)).map(|_| random.number() as u8).collect();
        let framed = [&message_head(garbage.len() as u32)[..], &garbage].concat();
        let method = *random.pick(&METHODS);
        let bytes = match round % 4 {
            0 => garbage,
            // Frames of HTTP/2 with lengths and kinds at random.
            1 => [&preface[..], &garbage].concat(),
            2 => request(method, "tadoc 0.0.1, messages 0", framed.len(), &framed),
            _ => {
                // A message that ends too soon.
                let cut = framed.len() - random.below(framed.len());
                request(method, "tadoc", cut, &framed[..cut])
            }
        };
        let mut stream = connect(&workers[0], &bytes);
        // The worker would wait for more of bytes that may be a beginning.
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        // `GetWorkerInfo` has no fields, and tells the version to everybody.
        let is_refused = !answer.contains("grpc-status: 0");
        assert!(is_refused || method == METHODS[2], "round {round}: {method} {answer:?}");
    }
    check(&folder, &workers);
    for worker in workers {
        assert_eq!(worker.end(), (0, String::new()));
    }
}

#[test]
fn blocks_that_nobody_sends_are_refused() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let before = workers[0].peak_kib();
    let mut random = Random(48);
    let version = WORKER_VERSION;
    let head = |length: &str, version: &str, body: usize| {
        format!(
            "POST /tadoc.Blocks/Build HTTP/1.1\r\nhost: 127.0.0.1\r\nx-tadoc-version: {version}\r\n\
             x-tadoc-length: {length}\r\ncontent-length: {body}\r\nconnection: close\r\n\r\n"
        )
    };
    let garbage: Vec<u8> = (0..300).map(|_| random.number() as u8).collect();
    for (length, version, body, status) in [
        ("300", version, 300, "400"),
        ("200", version, 300, "400"),
        ("301", version, 300, "400"),
        ("20", version, 20, "400"),
        ("0", version, 0, "400"),
        ("300", "tadoc 0.0.1, messages 0", 300, "412"),
        ("many", version, 300, "411"),
        ("-1", version, 300, "411"),
        // More memory than there is, of which nothing follows.
        (&usize::MAX.to_string(), version, 300, "503"),
        (&(1usize << 44).to_string(), version, 300, "503"),
    ] {
        let request = [head(length, version, body).as_bytes(), &garbage[..body]].concat();
        let answer = send(&workers[0], &request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{length} {version}: {answer}");
    }
    let grown = workers[0].peak_kib().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} KiB");
    check(&folder, &workers);
    for worker in workers {
        assert_eq!(worker.end(), (0, String::new()));
    }
}

#[test]
fn questions_about_tasks_that_are_not_there_have_no_answer() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let long = "a".repeat(1000);
    for task in ["", "a/1/0", "00000000-0000-0000-0000-000000000000/1/0", &long] {
        for (path, version) in
            [("Scans", WORKER_VERSION), ("Scans", "tadoc 0.0.1, messages 0"), ("Other", WORKER_VERSION)]
        {
            let request = format!(
                "POST /tadoc.Progress/{path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-tadoc-version: {version}\r\n\
                 x-tadoc-task: {task}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            let answer = send(&workers[0], request.as_bytes());
            assert!(answer.starts_with("HTTP/1.1 404 "), "{path} {version}: {answer}");
        }
    }
    check(&folder, &workers);
    for worker in workers {
        assert_eq!(worker.end(), (0, String::new()));
    }
}

#[test]
fn senders_that_say_nothing_keep_nobody_waiting() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let begun = request("CoordinatorChannel", "x", 1000, &message_head(900));
    let open: Vec<TcpStream> = (0..64).map(|_| connect(&workers[0], &begun)).collect();
    check(&folder, &workers);
    drop(open);
    check(&folder, &workers);
}
