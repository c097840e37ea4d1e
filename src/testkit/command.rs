//! Runs programs in processes of their own: `tadoc` in a folder, one test of a binary again, and servers of files.
//!
//! Some faults of a device last as long as the process. The same holds for environment variables
//! and the working directory. So such a test starts its binary again for one case.
//!
//! Servers speak S3, the protocol of Azure, and, in this process, HTTP. A process listens on a free port, starts once
//! for all tests of a process, and ends with it, even after a crash.
//!
//! | server | program | its place |
//! | --- | --- | --- |
//! | S3 | moto | `TADOC_MOTO_SERVER`: the path of `moto_server`, or a command such as `python3 -m moto.server` |
//! | Azure's blobs | azurite | `TADOC_AZURITE`: the path of `azurite-blob` |
//!
//! Without the variable the PATH is searched for the program.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::say;

/// A temporary folder in which commands run.
pub struct Folder {
    folder: tempfile::TempDir,
    program: PathBuf,
}

/// The result of a command.
pub struct Ran {
    /// Exit status, or -1 after a signal.
    pub status: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

impl Folder {
    /// Creates a folder for commands of `program`. That is `env!("CARGO_BIN_EXE_tadoc")`, which is
    /// defined only in suites of the program's package.
    pub fn for_program(program: &str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), program: program.into() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file, and creates the folders above it.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(self.path()).args(arguments).stdin(Stdio::null());
        // Error texts must not depend on the caller's environment.
        command.env_remove("RUST_BACKTRACE").env_remove("RUST_LOG");
        // Requests to other machines are sent to a local port where nothing listens.
        command.env("NO_PROXY", "127.0.0.1").env_remove("no_proxy");
        for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
            command.env(name, "http://127.0.0.1:9");
        }
        command
    }

    /// Runs `tadoc` with `arguments`.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Runs `tadoc` with `input` on standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::from(child.wait_with_output().unwrap())
    }

    /// Runs `tadoc`, expects success, and returns standard output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).ok()
    }

    /// Runs `tadoc` and expects exit status 1 and exactly one line `error: <text>`.
    pub fn fails(&self, arguments: &[&str], text: &str) {
        self.run(arguments).fails(text);
    }

    /// Runs `tadoc`, expects success, and returns its peak resident memory in KiB.
    #[cfg(target_os = "linux")]
    pub fn peak_kib(&self, arguments: &[&str]) -> u64 {
        let (ran, peak_kib, _) = self.run_watched(arguments);
        ran.ok();
        peak_kib
    }

    /// Runs `tadoc` and returns its peak resident memory in KiB.
    ///
    /// Code beyond 32 MiB is not counted, as the binary may be built without optimizations.
    #[cfg(target_os = "linux")]
    pub fn run_measured(&self, arguments: &[&str]) -> (Ran, u64) {
        let (ran, peak_kib, code_kib) = self.run_watched(arguments);
        (ran, peak_kib - code_kib.saturating_sub(32 << 10))
    }

    /// Runs `tadoc` and returns its peak resident memory, and its peak resident memory of files, in
    /// KiB.
    #[cfg(target_os = "linux")]
    fn run_watched(&self, arguments: &[&str]) -> (Ran, u64, u64) {
        let stdout = self.join(".stdout");
        let stderr = self.join(".stderr");
        let mut command = self.command(arguments);
        command.stdout(fs::File::create(&stdout).unwrap());
        let mut child = command.stderr(fs::File::create(&stderr).unwrap()).spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let mut peak_kib = 0;
        let mut code_kib = 0;
        let exit = loop {
            // The file is gone once the process has ended. The values grow until then.
            let text = fs::read_to_string(&status).unwrap_or_default();
            peak_kib = peak_kib.max(kib_of(&text, "VmHWM:"));
            code_kib = code_kib.max(kib_of(&text, "RssFile:"));
            match child.try_wait().unwrap() {
                Some(exit) => break exit,
                None => std::thread::sleep(std::time::Duration::from_millis(2)),
            }
        };
        let [stdout, stderr] = [stdout, stderr].map(|path| {
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(path).unwrap();
            bytes
        });
        (Ran::from(Output { status: exit, stdout, stderr }), peak_kib, code_kib)
    }

    /// Returns the exact bytes of one document.
    pub fn cat(&self, corpus: &str, path: &str) -> Vec<u8> {
        let ran = self.run(&["cat", corpus, path]);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "cat {path}");
        ran.stdout
    }

    /// Returns the rows of a query as CSV lines, without the header.
    pub fn rows(&self, sql: &str) -> Vec<String> {
        let text = self.ok(&["sql", "--quiet", "--format", "csv", "-c", sql]);
        text.lines().skip(1).map(str::to_owned).collect()
    }

    /// Returns the rows of a query on table `d` as CSV lines. The table is `corpus`, with its user
    /// columns.
    pub fn table_rows(&self, corpus: &str, sql: &str) -> Vec<String> {
        let table = format!("CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '{corpus}'");
        let text = self.ok(&["sql", "--quiet", "--format", "csv", "-c", &table, "-c", sql]);
        text.lines().skip(1).map(str::to_owned).collect()
    }

    /// Returns the names of the entries in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Returns the number in a line of `/proc/PID/status`, or 0 if the line is missing.
#[cfg(target_os = "linux")]
fn kib_of(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

impl Ran {
    pub fn ok(self) -> String {
        assert_eq!(self.status, 0, "{}", self.stderr);
        String::from_utf8(self.stdout).unwrap()
    }

    pub fn fails(self, text: &str) {
        assert_eq!(self.stderr, format!("error: {text}\n"));
        assert_eq!(self.status, 1);
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Environment variable that names the case of a process that runs only this case.
const CASE: &str = "TADOC_TEST_CASE";

/// Returns true if this process runs only the test `name`. `name` includes its modules.
pub fn is_alone(name: &str) -> bool {
    std::env::var(CASE).is_ok_and(|current| current == name)
}

/// Runs the test `name` in another process, which `prepare` configures.
pub fn run_apart(name: &str, prepare: impl FnOnce(&mut Command)) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(CASE, name);
    prepare(&mut command);
    let run = command.output().unwrap();
    let [out, err] = [&run.stdout, &run.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(run.status.success() && out.contains("1 passed"), "{}\n{out}\n{err}", run.status);
}

/// Waits for a lock that one case of this machine holds at a time, and returns the locked file.
///
/// The lock also covers other threads, processes and binaries. It is released when the file is
/// closed. If one case fills the device, other cases have no memory there.
pub fn next_turn() -> File {
    let turn = File::create(std::env::temp_dir().join("tadoc-gpu-faults.turn")).unwrap();
    turn.lock().unwrap();
    turn
}

/// Longest time until a server has started.
const MAX_START: Duration = Duration::from_secs(60);
/// Number of ports to try: another program may take a port before the server does.
const MAX_PORTS: usize = 5;
/// Exit status of a shell that does not find a command.
const NOT_FOUND: i32 = 127;

/// A kind of server.
struct Kind {
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
struct Process {
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
                say(&format!("skipped: {why}"));
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
fn answers(address: SocketAddr, request: &str, statuses: &[&str]) -> bool {
    use std::io::Read;
    let Ok(mut stream) = std::net::TcpStream::connect(address) else { return false };
    let request = format!("{request}host: {address}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && statuses.iter().any(|status| answer.starts_with(&format!("HTTP/1.1 {status}")))
}

pub const BUCKET: &str = "corpora";

const MOTO: Kind = Kind {
    name: "S3 server",
    command: "${TADOC_MOTO_SERVER:-moto_server} -H 127.0.0.1 -p \"$1\"",
    // Small pages make every listing come in several.
    variables: &[("MOTO_S3_DEFAULT_MAX_KEYS", "5")],
    is_ready: has_bucket,
    remedy: "`pip install 'moto[server]>=5.2.5,<6'` brings the program moto_server; put it on the PATH or \
             its path into TADOC_MOTO_SERVER",
    required_by: "REQUIRE_S3",
};

pub struct S3Server {
    pub address: SocketAddr,
    _process: Process,
}

impl S3Server {
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
pub fn s3_server() -> Option<&'static S3Server> {
    static SERVER: OnceLock<Option<S3Server>> = OnceLock::new();
    let start = || MOTO.start().map(|process| S3Server { address: process.address, _process: process });
    SERVER.get_or_init(start).as_ref()
}

/// Creates the bucket. Returns true if a server answers that it exists now.
fn has_bucket(address: SocketAddr) -> bool {
    answers(address, &format!("PUT /{BUCKET} HTTP/1.1\r\n"), &["200"])
}

pub const CONTAINER: &str = "corpora";

const AZURITE: Kind = Kind {
    name: "server of Azure's blobs",
    command: "${TADOC_AZURITE:-azurite-blob} --blobHost 127.0.0.1 --blobPort \"$1\" --inMemoryPersistence \
              --skipApiVersionCheck",
    variables: &[],
    is_ready: has_container,
    remedy: "`npm install azurite` brings the program azurite-blob; put it on the PATH or its path into \
             TADOC_AZURITE",
    required_by: "REQUIRE_AZURE",
};

pub struct AzureServer(Process);

impl AzureServer {
    /// Returns the variables of the environment by which `tadoc` finds the server.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AZURITE_BLOB_STORAGE_URL", format!("http://{}", self.0.address)),
            ("AZURE_STORAGE_USE_EMULATOR", "true".into()),
        ]
    }
}

/// Returns the server. Without one it prints a line that says so and returns `None`; with
/// `REQUIRE_AZURE=1` it panics.
pub fn azure_server() -> Option<&'static AzureServer> {
    static SERVER: OnceLock<Option<AzureServer>> = OnceLock::new();
    SERVER.get_or_init(|| AZURITE.start().map(AzureServer)).as_ref()
}

/// Creates the container. Returns true if a server answers that it exists now.
fn has_container(address: SocketAddr) -> bool {
    // The signature of these lines by the key that the emulator's account has everywhere.
    let request = format!(
        "PUT /devstoreaccount1/{CONTAINER}?restype=container HTTP/1.1\r\n\
         x-ms-date: Mon, 06 May 2024 07:08:09 GMT\r\nx-ms-version: 2021-08-06\r\n\
         Authorization: SharedKey devstoreaccount1:lobSde2z6/3H/ScQSRPpRNQUJV1e520w8BTPuSnfaJY=\r\n"
    );
    answers(address, &request, &["201", "409"])
}

/// Serves the files `names` of `folder`, each at any path that ends with its name, for as long as
/// the test runs. Returns the port. Requests below `/forbidden/` are refused, and so are GET
/// requests below `/kept/`. `/moved/` redirects to the file, `/round/` to itself. A GET request
/// below `/together/` is answered once there is a second one, and refused after ten seconds.
pub fn http_server(folder: &Folder, names: &[&str]) -> u16 {
    let read = |name: &&str| (format!("/{name}"), fs::read(folder.join(name)).unwrap());
    let files: Arc<Vec<(String, Vec<u8>)>> = Arc::new(names.iter().map(read).collect());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let files = Arc::clone(&files);
            thread::spawn(move || while answer_http(&stream, &files).is_some() {});
        }
    });
    port
}

/// Answers one request. Returns `None` once the client has left.
fn answer_http(stream: &TcpStream, files: &[(String, Vec<u8>)]) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let request = lines.next()?;
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let (method, path) = request.split_once(' ')?;
    let path = path.split(' ').next()?.split('?').next()?;
    let mut stream = stream;
    let is_get_below = |folder: &str| method == "GET" && path.starts_with(folder);
    if path.starts_with("/forbidden/") || is_get_below("/kept/") || is_get_below("/together/") && !is_accompanied() {
        return stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").ok();
    }
    if let Some(target) = path.strip_prefix("/moved").or(path.starts_with("/round/").then_some(path)) {
        let moved = "HTTP/1.1 302 Found\r\ncontent-length: 0";
        return write!(stream, "{moved}\r\nlocation: {target}\r\n\r\n").ok();
    }
    let Some((_, bytes)) = files.iter().find(|(end, _)| path.ends_with(end)) else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").ok();
    };
    let range = head.iter().find_map(|line| {
        let line = line.to_ascii_lowercase();
        let (start, end) = line.strip_prefix("range: bytes=")?.split_once('-')?;
        let end: usize = end.parse().ok()?;
        Some(start.parse().ok()?..bytes.len().min(end + 1))
    });
    let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
    let body = &bytes[range.clone().unwrap_or(0..bytes.len())];
    let mut response = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    response += "etag: \"1\"\r\nlast-modified: Fri, 20 Nov 2026 10:00:00 GMT\r\n";
    if let Some(range) = range {
        let last = range.end - 1;
        let len = bytes.len();
        response += &format!("content-range: bytes {}-{last}/{len}\r\n", range.start);
    }
    response += "\r\n";
    stream.write_all(response.as_bytes()).ok()?;
    if method == "GET" {
        stream.write_all(body).ok()?;
    }
    Some(())
}

/// Waits for a second request, and returns false after ten seconds.
fn is_accompanied() -> bool {
    static NUM_REQUESTS: AtomicUsize = AtomicUsize::new(0);
    NUM_REQUESTS.fetch_add(1, Ordering::SeqCst);
    let start = Instant::now();
    let is_alone = || NUM_REQUESTS.load(Ordering::SeqCst) < 2;
    while is_alone() && start.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(1));
    }
    !is_alone()
}
