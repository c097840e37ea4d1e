//! A folder with corpora, and workers that are processes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::command::{Folder, Ran};

/// Token of workers that ask for one.
pub const TOKEN: &str = "not-for-everybody";

/// A worker. It is killed when this is dropped.
pub struct Worker {
    pub url: String,
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Worker {
    pub fn start(folder: &Folder, arguments: &[&str]) -> Self {
        Self::start_with(folder, arguments, &[])
    }

    /// Variant of [`Worker::start`] with variables of the environment.
    pub fn start_with(folder: &Folder, arguments: &[&str], variables: &[(&str, String)]) -> Self {
        let worker = ["worker", "--listen", "127.0.0.1:0"];
        let mut command = folder.command(&[&worker, arguments].concat());
        command.env_remove("TADOC_TOKEN");
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().filter(|url| url.starts_with("http"));
        let url = url.unwrap_or_else(|| panic!("no worker: {line}")).to_owned();
        Self { url, child, stderr }
    }

    /// Sends a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Returns the seconds that the process has computed.
    pub fn computed(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks: f64 = [11, 12].iter().map(|&at| fields[at].parse::<f64>().unwrap()).sum();
        ticks / 100.0
    }

    /// Returns the most memory that the process has set aside, used or not, in KiB.
    pub fn peak_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Asks for the end, and returns the exit status and the rest of standard error.
    pub fn end(mut self) -> (i32, String) {
        self.signal("TERM");
        let status = self.child.wait().unwrap().code().unwrap_or(-1);
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (status, rest)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a folder with a corpus of many segments, a living one, one of many lines, and files.
pub fn corpora() -> Folder {
    let folder = Folder::for_program(env!("CARGO_BIN_EXE_tadoc"));
    for n in 0..60 {
        let words: Vec<String> =
            (0..400).map(|i| format!("{} of the scan {}", WORDS[(n * i + i / 7) % 9], i % 13)).collect();
        folder.write(&format!("texts/text{n:02}.txt"), words.join(if n % 2 == 0 { " " } else { ".\n" }));
    }
    folder.ok(&["ingest", "texts", "--block-size", "20KiB", "-o", "many.tadoc"]);
    folder.write("first/a.txt", "red and green");
    folder.write("first/b.txt", "green, and blue");
    folder.write("second/c.txt", "the red scan of the file");
    folder.ok(&["ingest", "first", "-o", "living", "--append"]);
    folder.ok(&["ingest", "second", "-o", "living", "--append"]);
    folder.write("notes/one.md", "one line\nand another\n");
    folder
}

/// Returns a folder with `needles.tadoc`: 64 documents, each a segment. Document 17 alone has the word
/// needle.
pub fn needles() -> Folder {
    let folder = Folder::for_program(env!("CARGO_BIN_EXE_tadoc"));
    let text = |n: usize| {
        let mut words: Vec<String> =
            (0..600).map(|i| format!("{} of the {}", WORDS[(n * i + i / 7) % 9], i % 13)).collect();
        words.truncate(550 + n % 50);
        if n == 17 {
            words[200] = "the needle of".to_owned();
        }
        words.join(" ")
    };
    let texts: Vec<String> = (0..64).map(text).collect();
    for (n, text) in texts.iter().enumerate() {
        folder.write(&format!("texts/{n:02}.txt"), text);
    }
    // Two documents exceed a block, and none is cut.
    let block_size = texts.iter().map(String::len).max().unwrap().to_string();
    folder.ok(&["ingest", "texts", "--block-size", &block_size, "-o", "needles.tadoc"]);
    folder
}

const WORDS: [&str; 9] = ["file", "Fold", "the sea", "segment", "café", "scan", "storm", "To be", "grammar"];

/// Writes a corpus and returns a statement over it that takes the workers many seconds.
pub fn long_statement(folder: &Folder) -> &'static str {
    let mut state = 1u64;
    let mut word = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 52
    };
    for n in 0..24 {
        let text: String = (0..60_000).map(|_| format!("w{} ", word())).collect();
        folder.write(&format!("long/{n:02}.txt"), text);
    }
    folder.ok(&["ingest", "long", "--block-size", "1MiB", "-o", "long.tadoc"]);
    "SELECT count(*), sum(count) FROM cooccurrence('long.tadoc', window => 60)"
}

/// Returns the URLs of workers for `--workers`.
pub fn list(workers: &[Worker]) -> String {
    workers.iter().map(|worker| worker.url.as_str()).collect::<Vec<_>>().join(",")
}

/// Options by which workers answer all that can be divided, though one process would be faster.
pub const DIVIDE: [&str; 2] = ["-c", "SET tadoc.divide = 'always'"];

/// Runs a statement, on workers if there are any.
pub fn sql(folder: &Folder, workers: &str, statement: &str) -> Ran {
    let mut arguments = vec!["sql", "--format", "ndjson", "--quiet"];
    if !workers.is_empty() {
        arguments.extend(["--workers", workers]);
        arguments.extend(DIVIDE);
    }
    arguments.extend(["-c", statement]);
    folder.run(&arguments)
}

/// Writes the words of `needles.tadoc` to `columns.parquet`, a GSST file of small row groups.
pub fn write_columns(folder: &Folder) {
    let statement = "COPY (SELECT doc_id, path || ' of ' || word AS text \
                     FROM term_vector('needles.tadoc') JOIN documents('needles.tadoc') USING (doc_id) \
                     ORDER BY doc_id, word) \
                     TO 'columns.parquet' STORED AS GSST OPTIONS (gsst_row_group_rows '100')";
    folder.ok(&["sql", "-q", "-c", statement]);
}

/// Runs a statement over `columns.parquet`, as the table g, on workers if there are any. Files of any
/// length are divided.
pub fn on_columns(folder: &Folder, workers: &str, device: &str, statement: &str) -> Ran {
    let device = format!("SET tadoc.device = '{device}'");
    let mut arguments = vec!["sql", "-q", "--format", "ndjson"];
    for setting in [
        "CREATE EXTERNAL TABLE g STORED AS GSST LOCATION 'columns.parquet'",
        "SET datafusion.optimizer.repartition_file_min_size = '0'",
        &device,
    ] {
        arguments.extend(["-c", setting]);
    }
    if !workers.is_empty() {
        let divide = "SET distributed.file_scan_config_bytes_per_partition = '1'";
        arguments.extend(["-c", divide, "--workers", workers]);
    }
    folder.run(&[&arguments[..], &["-c", statement]].concat())
}

/// Returns the sum of the counter `name` of all nodes of an `EXPLAIN ANALYZE`.
pub fn counter(analyzed: &str, name: &str) -> u64 {
    let marked = format!("{name}=");
    let counts = analyzed.split([' ', '[', ',']).filter_map(|part| part.strip_prefix(&marked));
    let number = |count: &str| {
        let end = count.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(count.len());
        count[..end].parse::<u64>().unwrap_or_else(|_| panic!("{name}={count} is rounded"))
    };
    counts.map(number).sum()
}

/// Returns the lines of `ran`, sorted.
pub fn sorted(ran: Ran) -> Vec<String> {
    let text = ran.ok();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Waits until `is_so`, at most `most`.
pub fn wait_until(most: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + most;
    while !is_so() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}
