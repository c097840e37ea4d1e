//! Tests of the files that killed and interrupted writers leave. The next writer removes them, but
//! no file in use.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::harness::{Folder, new_folder};

/// Starts an ingest that waits for more on standard input.
fn start(folder: &Folder, arguments: &[&str]) -> Child {
    let ingest = [&["ingest", "-", "--documents", "lines"], arguments].concat();
    let mut child = folder.command(&ingest).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"a line\nanother").unwrap();
    child
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited too long");
        sleep(Duration::from_millis(10));
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
}

fn interrupt(mut child: Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

fn num_parts(folder: &Folder) -> usize {
    folder.names().iter().filter(|name| name.ends_with(".part")).count()
}

#[cfg(unix)]
#[test]
fn an_ingest_removes_what_a_killed_one_left_and_not_what_is_written() {
    let folder = new_folder();
    folder.write("a.txt", "text");
    let alive = start(&folder, &["-o", "alive.tadoc"]);
    wait_for(|| num_parts(&folder) == 1);
    let killed = start(&folder, &["-o", "c.tadoc"]);
    wait_for(|| num_parts(&folder) == 2);
    kill(killed);
    assert_eq!(num_parts(&folder), 2);
    folder.ok(&["ingest", "a.txt", "-o", "c.tadoc"]);
    assert_eq!(num_parts(&folder), 1);
    // `wait_with_output` closes standard input, which ends the ingest.
    assert!(alive.wait_with_output().unwrap().status.success());
    assert_eq!(folder.names(), ["a.txt", "alive.tadoc", "c.tadoc"]);
    assert_eq!(folder.cat("alive.tadoc", "stdin"), b"a line\nanother\n");
}

#[cfg(unix)]
#[test]
fn an_append_removes_what_a_killed_one_left_and_not_what_is_written() {
    let folder = new_folder();
    folder.write("a.txt", "text");
    folder.ok(&["ingest", "a.txt", "-o", "notes", "--append"]);
    let num_segments = || std::fs::read_dir(folder.join("notes/segments")).unwrap().count();
    assert_eq!(num_segments(), 1);
    // Each writer has its segment file and a mark file that says it is being written.
    let alive = start(&folder, &["-o", "notes", "--append"]);
    wait_for(|| num_segments() == 3);
    let killed = start(&folder, &["-o", "notes", "--append"]);
    wait_for(|| num_segments() == 5);
    kill(killed);
    assert_eq!(num_segments(), 5);
    folder.ok(&["ingest", "a.txt", "-o", "notes", "--append", "--duplicate"]);
    assert_eq!(num_segments(), 4);
    assert!(alive.wait_with_output().unwrap().status.success());
    assert_eq!(num_segments(), 3);
    let interrupted = start(&folder, &["-o", "notes", "--append"]);
    wait_for(|| num_segments() == 5);
    interrupt(interrupted);
    folder.ok(&["ingest", "a.txt", "-o", "notes", "--append", "--duplicate"]);
    assert_eq!(num_segments(), 4);
    folder.ok(&["verify", "--quiet", "notes"]);
    assert!(folder.ok(&["info", "notes"]).contains("documents        5\n"));
}

#[cfg(unix)]
#[test]
fn a_copy_removes_what_a_killed_one_left() {
    for (format, file, other) in [("GSST", "x.parquet", "y.parquet"), ("TADOC", "x.tadoc", "y.tadoc")] {
        let folder = new_folder();
        let copy = |num_rows: u64, file: &str| {
            format!(
                "COPY (SELECT CAST(value AS VARCHAR) AS text FROM range({num_rows})) TO '{file}' \
                 STORED AS {format}"
            )
        };
        let start = |file: &str| {
            let endless = copy(1 << 40, file);
            let mut command = folder.command(&["sql", "--quiet", "-c", &endless]);
            let child = command.stderr(Stdio::null()).spawn().unwrap();
            wait_for(|| num_parts(&folder) == 1);
            child
        };
        kill(start(file));
        assert_eq!((num_parts(&folder), folder.names().len()), (1, 1), "{format}");
        folder.ok(&["sql", "--quiet", "-c", &copy(10, file)]);
        assert_eq!(folder.names(), [file]);
        interrupt(start(other));
        assert_eq!(folder.names(), [file], "{format}");
    }
}

#[cfg(unix)]
#[test]
fn a_restore_removes_what_a_killed_one_left() {
    let folder = new_folder();
    for number in 0..3000 {
        folder.write(&format!("in/{:02}/{number}.txt", number % 20), format!("text {number}"));
    }
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    let left = || {
        let folders = std::fs::read_dir(folder.join("out")).unwrap().flatten();
        let entries = folders.flat_map(|entry| {
            let below = std::fs::read_dir(entry.path()).into_iter().flatten().flatten();
            below.chain([entry]).collect::<Vec<_>>()
        });
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(".tadoc-restore-")).collect::<Vec<_>>()
    };
    // What an earlier build left, which had no locks, and what the next lines of this test leave.
    std::fs::create_dir_all(folder.join("out/05")).unwrap();
    folder.write("out/05/.tadoc-restore-77-3", "half");
    let killed = folder.command(&["restore", "c.tadoc", "-o", "out"]).spawn().unwrap();
    wait_for(|| folder.join("out/00").exists());
    kill(killed);
    assert!(!left().is_empty());
    folder.ok(&["restore", "c.tadoc", "-o", "out", "--force"]);
    assert_eq!(left(), Vec::<String>::new());
    assert_eq!(std::fs::read_to_string(folder.join("out/19/2999.txt")).unwrap(), "text 2999");
}
