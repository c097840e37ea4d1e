//! A server that speaks S3: moto. It starts once for all tests of the process and ends with the
//! process.
//!
//! `TADOC_MOTO_SERVER` says how to start it: the path of `moto_server`, or a command such as
//! `python3 -m moto.server`. Without the variable the PATH is searched for `moto_server`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub const BUCKET: &str = "corpora";

/// Longest time until the server has started.
const MAX_START: Duration = Duration::from_secs(60);
/// Number of ports to try: another program may take a port before the server does.
const MAX_PORTS: usize = 5;
/// Exit status of a shell that does not find a command.
const NOT_FOUND: i32 = 127;

/// A script that runs the server for as long as standard input is open. The end of the test process
/// closes it, even after a crash.
const RUNNER: &str = r#"
exec 3<&0
${TADOC_MOTO_SERVER:-moto_server} -H 127.0.0.1 -p "$1" >"$2" 2>&1 3<&- &
server=$!
{ cat <&3; kill $server; } >/dev/null 2>&1 &
wait $server
"#;

pub struct Server {
    pub address: SocketAddr,
    /// The shell that runs the server. Its standard input ends with the process.
    _runner: Child,
    _log: tempfile::TempDir,
}

impl Server {
    /// Returns the variables of the environment by which `tadoc` finds the server.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", "anybody".into()),
            ("AWS_SECRET_ACCESS_KEY", "secret".into()),
        ]
    }
}

/// Returns the server. Without one it prints a line that says so and returns `None`; with
/// `REQUIRE_S3=1` it panics.
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
            // Writes past the test harness, which shows output only of tests that fail.
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
        // Small pages make every listing come in several.
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

/// Creates the bucket. Returns true if a server answers that it exists now.
fn has_bucket(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let request = format!("PUT /{BUCKET} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\n");
    let mut answer = String::new();
    stream.write_all(format!("{request}connection: close\r\n\r\n").as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}
