//! A server that speaks S3: moto, started once for all tests of the process, gone with it.
//!
//! `TADOC_MOTO_SERVER` says how it is started: the path of `moto_server`, or a command such as
//! `python3 -m moto.server`; without it `moto_server` is looked for on the PATH.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub const BUCKET: &str = "corpora";

/// How long it may take to start.
const MAX_START: Duration = Duration::from_secs(60);
/// Ports tried: another program may take one before the server does.
const MAX_PORTS: usize = 5;
/// Exit status of a shell that finds no such command.
const NOT_FOUND: i32 = 127;

/// Runs the server for as long as standard input is open: the end of the test process closes it,
/// however that ends.
const RUNNER: &str = r#"
exec 3<&0
${TADOC_MOTO_SERVER:-moto_server} -H 127.0.0.1 -p "$1" >"$2" 2>&1 3<&- &
server=$!
{ cat <&3; kill $server; } >/dev/null 2>&1 &
wait $server
"#;

pub struct Server {
    pub address: SocketAddr,
    /// Its standard input ends with the process.
    _runner: Child,
    _log: tempfile::TempDir,
}

/// The server; `None`, with a line that says so, where there is none. `REQUIRE_S3=1` makes that a
/// failure.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(found).as_ref()
}

fn found() -> Option<Server> {
    let is_required = std::env::var_os("REQUIRE_S3").is_some_and(|value| value != "0");
    match start() {
        Ok(server) => Some(server),
        Err(why) if is_required => panic!("REQUIRE_S3 is set: {why}"),
        Err(why) => {
            // Past the test harness, which shows what tests print only where they fail.
            let line = format!("skipped: {why}\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            None
        }
    }
}

fn start() -> Result<Server, String> {
    let mut why = String::new();
    for _ in 0..MAX_PORTS {
        match start_on_a_free_port() {
            Ok(server) => return Ok(server),
            Err(Failure::NotFound) => {
                return Err("no S3 server: `pip install 'moto[server]>=5.2.5,<6'` brings the \
                            program moto_server; put it on the PATH or its path into \
                            TADOC_MOTO_SERVER"
                    .into());
            }
            Err(Failure::Ended(log)) => why = format!("the S3 server ended:\n{log}"),
        }
    }
    Err(why)
}

enum Failure {
    NotFound,
    Ended(String),
}

fn start_on_a_free_port() -> Result<Server, Failure> {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let log = tempfile::tempdir().unwrap();
    let log_file = log.path().join("moto.log");
    let mut runner = Command::new("sh")
        .args(["-c", RUNNER, "sh", &address.port().to_string()])
        .arg(&log_file)
        // Every listing comes in pages.
        .env("MOTO_S3_DEFAULT_MAX_KEYS", "5")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !has_bucket(address) {
        let ended = runner.try_wait().unwrap();
        let log = || std::fs::read_to_string(&log_file).unwrap_or_default();
        match ended {
            Some(status) if status.code() == Some(NOT_FOUND) => return Err(Failure::NotFound),
            Some(_) => return Err(Failure::Ended(log())),
            None => assert!(started.elapsed() < MAX_START, "no answer from moto:\n{}", log()),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Server { address, _runner: runner, _log: log })
}

/// Makes the bucket; whether there is someone who answers that it is made.
fn has_bucket(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let request = format!("PUT /{BUCKET} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\n");
    let mut answer = String::new();
    stream.write_all(format!("{request}connection: close\r\n\r\n").as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}
