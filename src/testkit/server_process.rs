//! Servers that tests start as processes: on a free port, once for all tests of a process, and
//! ended with it, even after a crash.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time until a server has started.
const MAX_START: Duration = Duration::from_secs(60);
/// Number of ports to try: another program may take a port before the server does.
const MAX_PORTS: usize = 5;
/// Exit status of a shell that does not find a command.
const NOT_FOUND: i32 = 127;

/// A kind of server.
pub struct Kind {
    /// Name in messages.
    pub name: &'static str,
    /// Shell words that start it at port `$1` of 127.0.0.1.
    pub command: &'static str,
    /// Variables of its environment.
    pub variables: &'static [(&'static str, &'static str)],
    /// Returns true once it takes requests.
    pub is_ready: fn(SocketAddr) -> bool,
    /// The way to install it.
    pub remedy: &'static str,
    /// Variable of the environment that makes a missing server a failure.
    pub required_by: &'static str,
}

/// A server that runs.
pub struct Process {
    pub address: SocketAddr,
    /// The shell that runs the server. Its standard input ends with the process.
    _runner: Child,
    _log: tempfile::TempDir,
}

enum Failure {
    NotFound,
    Ended(String),
}

impl Kind {
    /// Starts a server. Without one it prints a line that says so and returns `None`; if the
    /// variable that requires it is set, it panics.
    pub fn start(&self) -> Option<Process> {
        let is_required = std::env::var_os(self.required_by).is_some_and(|value| value != "0");
        match self.start_on_some_port() {
            Ok(server) => Some(server),
            Err(why) if is_required => panic!("{} is set: {why}", self.required_by),
            Err(why) => {
                // Writes past the test harness, which shows output only of tests that fail.
                let line = format!("skipped: {why}\n");
                std::io::stderr().write_all(line.as_bytes()).unwrap();
                None
            }
        }
    }

    fn start_on_some_port(&self) -> Result<Process, String> {
        let mut why = String::new();
        for _ in 0..MAX_PORTS {
            match self.start_on_a_free_port() {
                Ok(server) => return Ok(server),
                Err(Failure::NotFound) => return Err(format!("no {}: {}", self.name, self.remedy)),
                Err(Failure::Ended(log)) => why = format!("the {} ended:\n{log}", self.name),
            }
        }
        Err(why)
    }

    fn start_on_a_free_port(&self) -> Result<Process, Failure> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let log = tempfile::tempdir().unwrap();
        let log_file = log.path().join("log");
        // The end of the test process closes its standard input, which ends the server.
        let runner = format!(
            "exec 3<&0\n{} >\"$2\" 2>&1 3<&- &\nserver=$!\n\
             {{ cat <&3; kill $server; }} >/dev/null 2>&1 &\nwait $server\n",
            self.command
        );
        let mut runner = Command::new("sh")
            .args(["-c", &runner, "sh", &address.port().to_string()])
            .arg(&log_file)
            .envs(self.variables.iter().copied())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while !(self.is_ready)(address) {
            let ended = runner.try_wait().unwrap();
            let log = || std::fs::read_to_string(&log_file).unwrap_or_default();
            match ended {
                Some(status) if status.code() == Some(NOT_FOUND) => return Err(Failure::NotFound),
                Some(_) => return Err(Failure::Ended(log())),
                None => {
                    let name = self.name;
                    assert!(started.elapsed() < MAX_START, "no answer from the {name}:\n{}", log());
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Process { address, _runner: runner, _log: log })
    }
}

/// Sends a request without a body, and returns true if the answer begins with one of `statuses`.
pub fn answers(address: SocketAddr, request: &str, statuses: &[&str]) -> bool {
    use std::io::Read;
    let Ok(mut stream) = std::net::TcpStream::connect(address) else { return false };
    let request = format!("{request}host: {address}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && statuses.iter().any(|status| answer.starts_with(&format!("HTTP/1.1 {status}")))
}
