//! Tests of `tadoc ingest --follow`: files that grow, are rotated and truncated, and pipes. A model
//! compares the documents with the lines that were written, while the program is killed again and again.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use tadoc::format::OpenLimits;
use tadoc_store::{LivingStore, LocalFolder, StoreOptions};
use testkit::random::Random;

use crate::harness::{Folder, new_folder};

/// Longest time to wait for lines to be stored, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const NUM_STEPS: usize = 40;

/// Arguments that follow `app.log`, with a commit for every look.
const FOLLOW: [&str; 10] =
    ["ingest", "app.log", "-o", "logs", "--append", "--documents", "lines", "--follow", "--commit-every", "0"];

/// Returns all documents, as texts.
fn stored(folder: &Folder) -> Vec<String> {
    block_on(async {
        let place = LocalFolder::new(folder.join("logs"));
        let Ok(store) = LivingStore::open(place, StoreOptions::default()).await else {
            return Vec::new();
        };
        let latest = store.latest().await.unwrap();
        let corpus = store.corpus(&latest, &OpenLimits::default()).await.unwrap();
        let text = |id| String::from_utf8(corpus.extract(id, 0, u64::MAX).unwrap()).unwrap();
        (0..corpus.num_docs()).map(text).collect()
    })
}

/// Waits until the documents are `expected`.
fn wait_for(folder: &Folder, expected: &[String]) {
    let start = Instant::now();
    while stored(folder) != expected {
        assert!(start.elapsed() < PATIENCE, "{:?} and not {expected:?}", stored(folder));
        sleep(Duration::from_millis(20));
    }
}

fn start(folder: &Folder, arguments: &[&str]) -> Child {
    let mut command = folder.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends SIGINT, and returns the exit status and standard error.
fn interrupt(child: Child) -> (ExitStatus, String) {
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    (output.status, String::from_utf8(output.stderr).unwrap())
}

fn texts(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|&line| line.to_owned()).collect()
}

/// A program that writes a log.
struct Writer<'a> {
    folder: &'a Folder,
    random: Random,
    lines: Vec<String>,
    num_rotations: usize,
}

impl Writer<'_> {
    fn log(&self) -> PathBuf {
        self.folder.join("app.log")
    }

    fn append(&self, text: &str) {
        let mut file = File::options().create(true).append(true).open(self.log()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// Writes lines, each in one or in two parts.
    fn write_lines(&mut self) {
        for _ in 0..1 + self.random.below(20) {
            let line = format!("{} line of the log {}", self.lines.len(), "x".repeat(self.random.below(300)));
            let (begin, rest) = line.split_at(self.random.below(line.len()));
            self.append(begin);
            if self.random.below(8) == 0 {
                sleep(Duration::from_millis(self.random.below(200) as u64));
            }
            self.append(&format!("{rest}\n"));
            self.lines.push(line);
        }
    }

    /// Renames the log, or copies and truncates it.
    fn rotate(&mut self) {
        self.num_rotations += 1;
        let rotated = self.folder.join(&format!("app.log.{}", self.num_rotations));
        if self.random.below(2) == 0 {
            fs::rename(self.log(), rotated).unwrap();
        } else {
            fs::copy(self.log(), rotated).unwrap();
            File::create(self.log()).unwrap();
        }
    }
}

#[test]
fn every_line_is_stored_once() {
    let folder = new_folder();
    let mut writer = Writer { folder: &folder, random: Random(2026), lines: Vec::new(), num_rotations: 0 };
    writer.write_lines();
    let mut follower = Some(start(&folder, &FOLLOW));
    wait_for(&folder, &writer.lines);
    // Files that are rotated within one tick of the clock have no order, so the follower catches up in between.
    let mut is_rotated = false;
    let mut num_kills = 0;
    let mut num_truncations = 0;
    for _ in 0..NUM_STEPS {
        match writer.random.below(8) {
            0..3 => writer.write_lines(),
            3..6 => {
                let child = follower.take();
                num_kills += usize::from(child.is_some());
                if let Some(mut child) = child {
                    sleep(Duration::from_millis(writer.random.below(150) as u64));
                    child.kill().unwrap();
                    child.wait().unwrap();
                }
            }
            6 if !is_rotated => {
                writer.rotate();
                writer.write_lines();
                is_rotated = true;
            }
            _ => {
                follower.get_or_insert_with(|| start(&folder, &FOLLOW));
                writer.write_lines();
                wait_for(&folder, &writer.lines);
                is_rotated = false;
                if writer.random.below(2) == 0 {
                    // Everything is stored, so nothing is lost.
                    num_truncations += 1;
                    File::create(writer.log()).unwrap();
                    writer.write_lines();
                }
            }
        }
        if writer.random.below(2) == 0 {
            follower.get_or_insert_with(|| start(&folder, &FOLLOW));
        }
    }
    let follower = follower.unwrap_or_else(|| start(&folder, &FOLLOW));
    wait_for(&folder, &writer.lines);
    let (status, errors) = interrupt(follower);
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(num_kills > 3 && num_truncations > 0 && writer.num_rotations > 1);
    folder.ok(&["optimize", "logs", "--clean-up", "0"]);
    // The place is there after all versions with it were cleaned up.
    writer.append("last\n");
    let mut follower = start(&folder, &FOLLOW);
    writer.lines.push("last".to_owned());
    wait_for(&folder, &writer.lines);
    follower.kill().unwrap();
    follower.wait().unwrap();
}

/// Waits until the corpus has a commit of a follower.
fn wait_for_a_commit(folder: &Folder) {
    let start = Instant::now();
    let has_commit = || {
        block_on(async {
            let place = LocalFolder::new(folder.join("logs"));
            let store = LivingStore::open(place, StoreOptions::default()).await.ok()?;
            store.latest().await.ok().filter(|latest| latest.number > 1)
        })
    };
    while has_commit().is_none() {
        assert!(start.elapsed() < PATIENCE);
        sleep(Duration::from_millis(20));
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_is_rotated_before_the_first_commit_is_read() {
    let folder = new_folder();
    folder.write("app.log", "old 1\nold 2\n");
    let late = [&FOLLOW[..8], &["--commit-every", "3600s"]].concat();
    let mut follower = start(&folder, &late);
    wait_for_a_commit(&folder);
    assert_eq!(stored(&folder), [""; 0]);
    fs::rename(folder.join("app.log"), folder.join("app.log.1")).unwrap();
    folder.write("app.log", "new 1\n");
    follower.kill().unwrap();
    follower.wait().unwrap();
    let follower = start(&folder, &FOLLOW);
    wait_for(&folder, &texts(&["old 1", "old 2", "new 1"]));
    let (status, errors) = interrupt(follower);
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(!errors.contains("is gone"), "{errors}");
}

#[cfg(unix)]
#[test]
fn a_late_line_of_a_renamed_file_is_read() {
    let folder = new_folder();
    folder.write("app.log", "one\n");
    let follower = start(&folder, &FOLLOW);
    wait_for(&folder, &texts(&["one"]));
    let mut old = File::options().append(true).open(folder.join("app.log")).unwrap();
    fs::rename(folder.join("app.log"), folder.join("app.log.1")).unwrap();
    folder.write("app.log", "three\n");
    wait_for(&folder, &texts(&["one", "three"]));
    old.write_all(b"late\n").unwrap();
    wait_for(&folder, &texts(&["one", "three", "late"]));
    let (status, errors) = interrupt(follower);
    assert_eq!(status.code(), Some(0), "{errors}");
    // While nobody follows, and in the gap of a rotation.
    old.write_all(b"later\n").unwrap();
    fs::rename(folder.join("app.log.1"), folder.join("app.log.2")).unwrap();
    fs::rename(folder.join("app.log"), folder.join("app.log.1")).unwrap();
    let follower = start(&folder, &FOLLOW);
    wait_for(&folder, &texts(&["one", "three", "late", "later"]));
    folder.write("app.log", "five\n");
    wait_for(&folder, &texts(&["one", "three", "late", "later", "five"]));
    let (status, errors) = interrupt(follower);
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(errors.contains("note: app.log: waiting for the file"), "{errors}");
    // A name that was never followed is an error.
    let ran = folder.run(&[&["ingest", "apple.log"], &FOLLOW[2..]].concat());
    assert_eq!(ran.status, 1, "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn an_incomplete_line_of_a_renamed_file_waits() {
    let folder = new_folder();
    folder.write("app.log", "one\nha");
    let follower = start(&folder, &FOLLOW);
    wait_for(&folder, &texts(&["one"]));
    let mut old = File::options().append(true).open(folder.join("app.log")).unwrap();
    fs::rename(folder.join("app.log"), folder.join("app.log.1")).unwrap();
    folder.write("app.log", "new\n");
    wait_for(&folder, &texts(&["one", "new"]));
    old.write_all(b"lf-do").unwrap();
    folder.write("app.log", "new\nnewer\n");
    wait_for(&folder, &texts(&["one", "new", "newer"]));
    let (status, errors) = interrupt(follower);
    assert_eq!(status.code(), Some(0), "{errors}");
    let follower = start(&folder, &FOLLOW);
    old.write_all(b"ne\n").unwrap();
    wait_for(&folder, &texts(&["one", "new", "newer", "half-done"]));
    let (status, errors) = interrupt(follower);
    assert_eq!(status.code(), Some(0), "{errors}");
}

#[test]
fn an_incomplete_line_waits() {
    let folder = new_folder();
    folder.write("app.log", "one\ntw");
    let follower = start(&folder, &FOLLOW);
    wait_for(&folder, &texts(&["one"]));
    let (status, errors) = interrupt(follower);
    assert_eq!(status.code(), Some(0), "{errors}");
    let first = "logs: version 2: 1 document, 3 bytes of text from 4 bytes read, in ";
    assert!(errors.starts_with(first), "{errors}");
    assert_eq!(stored(&folder), ["one"]);
    let mut file = File::options().append(true).open(folder.join("app.log")).unwrap();
    file.write_all(b"o\n").unwrap();
    let mut follower = start(&folder, &FOLLOW);
    wait_for(&folder, &texts(&["one", "two"]));
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert_eq!(folder.ok(&["ls", "logs"]), "app.log\n");
}

#[test]
fn a_pipe_is_stored_to_its_end() {
    let folder = new_folder();
    let pipe = ["ingest", "-", "-o", "logs", "--append", "--documents", "lines", "--follow"];
    let ran = folder.run_with_input(&[pipe.as_slice(), &["--path", "web"]].concat(), b"a\nb\n\nc");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(stored(&folder), ["a", "b", "", "c"]);
    assert_eq!(folder.ok(&["ls", "logs"]), "web\n");
    // An interrupt stores what was read.
    let mut follower = start(&folder, &[pipe.as_slice(), &["--commit-every", "0"]].concat());
    follower.stdin.as_ref().unwrap().write_all(b"d\ne").unwrap();
    wait_for(&folder, &texts(&["a", "b", "", "c", "d"]));
    let stdin = follower.stdin.take();
    let (status, errors) = interrupt(follower);
    assert_eq!(status.code(), Some(0), "{errors}");
    assert_eq!(stored(&folder), ["a", "b", "", "c", "d", "e"]);
    drop(stdin);
}

#[test]
fn records_and_timestamps_are_followed() {
    let folder = new_folder();
    folder.write("app.log", "2024-05-06T07:08:09Z one\n at a.rs\n2024-05-06T07:08:10Z two\n");
    let options = ["--record-start", "^2", "--timestamp", "auto"];
    let every = ["--commit-every", "3600s", "--commit-bytes", "1"];
    let follow = [&FOLLOW[..8], options.as_slice(), every.as_slice()].concat();
    let mut follower = start(&folder, &follow);
    let first = "2024-05-06T07:08:09Z one\n at a.rs";
    wait_for(&folder, &texts(&[first]));
    follower.kill().unwrap();
    follower.wait().unwrap();
    let (status, errors) = {
        let follower = start(&folder, &follow);
        sleep(Duration::from_millis(500));
        interrupt(follower)
    };
    assert_eq!(status.code(), Some(0), "{errors}");
    let sql = "SELECT ts FROM d ORDER BY doc_id";
    let expected = ["2024-05-06T07:08:09Z", "2024-05-06T07:08:10Z"];
    assert_eq!(folder.table_rows("logs", sql), expected);
}

#[test]
fn a_record_whose_lines_come_slowly_stays_whole() {
    let folder = new_folder();
    let append = |text: &str| {
        let mut file = File::options().create(true).append(true).open(folder.join("app.log")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    append("2024-05-06T07:08:09Z one\n");
    let options = ["--record-start", "^2", "--timestamp", "auto", "--commit-every", "4s"];
    let follower = start(&folder, &[&FOLLOW[..8], &options].concat());
    wait_for_a_commit(&folder);
    // Longer than the age of a commit, and shorter than twice as long.
    sleep(Duration::from_secs(5));
    append(" at a.rs\n2024-05-06T07:08:10Z two\n");
    let first = "2024-05-06T07:08:09Z one\n at a.rs";
    wait_for(&folder, &texts(&[first]));
    // No record begins behind the last one.
    wait_for(&folder, &texts(&[first, "2024-05-06T07:08:10Z two"]));
    let (status, errors) = interrupt(follower);
    assert_eq!(status.code(), Some(0), "{errors}");
    let without = folder.table_rows("logs", "SELECT count(*) FROM d WHERE ts IS NULL");
    assert_eq!(without, ["0"]);
}

#[test]
fn errors_name_the_line_of_the_file() {
    let folder = new_folder();
    let rows = ["--documents", "jsonl:t", "--follow", "--commit-every", "0"];
    let follow = |input| [&["ingest", input, "-o", "logs", "--append"], rows.as_slice()].concat();
    let append = |text: &str| {
        let mut file = File::options().append(true).open(folder.join("app.log")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    let errors_of = |child: Child| {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    folder.write("app.log", "{\"t\":\"one\"}\n\n{\"t\":\"two\"}\n");
    let follower = start(&folder, &follow("app.log"));
    wait_for(&folder, &texts(&["one", "two"]));
    append("{\"t\":\"three\"}\n");
    wait_for(&folder, &texts(&["one", "two", "three"]));
    append("[5]\n{\"t\":\"six\"}\n");
    let array = "error: app.log: line 5: expected a JSON object, found an array";
    let errors = errors_of(follower);
    assert!(errors.contains(array), "{errors}");
    // The same after a restart.
    let errors = errors_of(start(&folder, &follow("app.log")));
    assert!(errors.starts_with(array), "{errors}");
    let mut follower = start(&folder, &follow("-"));
    let mut stdin = follower.stdin.take().unwrap();
    stdin.write_all(b"{\"t\":\"four\"}\n").unwrap();
    wait_for(&folder, &texts(&["one", "two", "three", "four"]));
    stdin.write_all(b"\nno json\n").unwrap();
    let errors = errors_of(follower);
    assert!(errors.contains("error: stdin: line 3: no JSON object"), "{errors}");

    folder.write("app.log", format!("one\ntwo\n{}", "x".repeat(300)));
    let small = ["--max-row-size", "100", "--commit-bytes", "100"];
    let lines = ["-o", "lines", "--append", "--documents", "lines", "--follow"];
    let ran = folder.run(&[&["ingest", "app.log"], &lines[..], &small].concat());
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("error: app.log: line 3 is larger than 200 bytes"), "{}", ran.stderr);
}

#[test]
fn one_of_two_followers_gives_up() {
    let folder = new_folder();
    folder.write("app.log", "0\n");
    let mut followers = [start(&folder, &FOLLOW), start(&folder, &FOLLOW)];
    let mut lines = texts(&["0"]);
    let begun = Instant::now();
    let loser = loop {
        assert!(begun.elapsed() < PATIENCE);
        let line = lines.len().to_string();
        let mut file = File::options().append(true).open(folder.join("app.log")).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
        lines.push(line);
        wait_for(&folder, &lines);
        let ended = |child: &mut Child| child.try_wait().unwrap().is_some();
        if let Some(loser) = followers.iter_mut().position(ended) {
            break loser;
        }
    };
    let [first, second] = followers;
    let (lost, mut other) = if loser == 0 { (first, second) } else { (second, first) };
    let output = lost.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("logs: reading on in "), "{errors}");
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(stored(&folder), lines);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let folder = new_folder();
    folder.write("in/app.log", "one\n");
    let refused = |arguments: &[&str], text: &str| {
        let command = ["ingest", "-o", "logs", "--append", "--follow"];
        let ran = folder.run(&[command.as_slice(), arguments].concat());
        assert_eq!((ran.status, ran.stderr), (2, format!("error: {text}\n")));
    };
    let lines = ["--documents", "lines"];
    refused(&[["in/app.log", "-"].as_slice(), &lines].concat(), "--follow takes one file, or - for standard input");
    refused(&[["in"].as_slice(), &lines].concat(), "in is a folder; --follow takes one file, or - for standard input");
    refused(&["in/app.log"], "--follow goes with --documents lines and jsonl:FIELD, not with files");
    refused(
        &[["in/app.log", "--charset", "auto"].as_slice(), &lines].concat(),
        "--follow goes with character sets whose line ends are one byte; convert others in a pipe, as in \
         iconv -f utf-16 | tadoc ingest -",
    );
    let ran = folder.run(&["ingest", "in", "-o", "c.tadoc", "--path", "x"]);
    let expected = "error: --path names the documents of standard input or of one file\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (2, expected));
    folder.ok(&["ingest", "in/app.log", "-o", "c.tadoc", "--path", "x"]);
    assert_eq!(folder.cat("c.tadoc", "x"), b"one\n");
}
