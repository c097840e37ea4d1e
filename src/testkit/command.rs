//! Runs programs in processes of their own: `tadoc` in a folder, and one test of a binary again.
//!
//! Some faults of a device last as long as the process. The same holds for environment variables
//! and the working directory. So such a test starts its binary again for one case.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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
        let (stdout, stderr) = (self.join(".stdout"), self.join(".stderr"));
        let mut command = self.command(arguments);
        command.stdout(fs::File::create(&stdout).unwrap());
        let mut child = command.stderr(fs::File::create(&stderr).unwrap()).spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let (mut peak_kib, mut code_kib) = (0, 0);
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
