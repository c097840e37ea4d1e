//! Tests of readers that leave early. No command reports an error for that, in any format.

use std::io::Read;
use std::process::{ChildStdout, Stdio};

use crate::harness::{Folder, new_folder};

/// Runs `tadoc`, closes its standard output after `read`, and expects status 0 and no error output.
fn ends_quietly(folder: &Folder, arguments: &[&str], read: impl FnOnce(&mut ChildStdout)) {
    let mut command = folder.command(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    read(&mut stdout);
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), stderr.as_ref()), (Some(0), ""), "{arguments:?}");
}

fn at_once(_: &mut ChildStdout) {}

fn after_some(stdout: &mut ChildStdout) {
    stdout.read_exact(&mut [0; 10]).unwrap();
}

/// A query whose output is several times as large as a pipe's buffer.
const ROWS: &str = "SELECT value, 'some text of the row' AS text FROM generate_series(1, 50000)";

#[test]
fn rows_in_every_format() {
    let folder = new_folder();
    for format in ["csv", "tsv", "json", "ndjson", "table", "automatic"] {
        for sql in [ROWS, &format!("EXPLAIN {ROWS}"), &format!("EXPLAIN ANALYZE {ROWS}"), "SHOW ALL"] {
            let arguments = ["sql", "-q", "--maxrows", "inf", "--format", format, "-c", sql, "-c", sql];
            ends_quietly(&folder, &arguments, at_once);
            ends_quietly(&folder, &arguments, after_some);
        }
    }
}

#[test]
fn functions_on_corpora() {
    let folder = new_folder();
    folder.write("big.txt", "0123456789 words and lines\n".repeat(20_000));
    folder.ok(&["ingest", "big.txt", "-o", "c.tadoc"]);
    let search = "SELECT * FROM search('c.tadoc', 'words')";
    ends_quietly(&folder, &["sql", "-q", "--format", "csv", "-c", search], after_some);
    let lines = "SELECT * FROM read_lines('big.txt')";
    ends_quietly(&folder, &["sql", "-q", "--format", "json", "-c", lines], after_some);
    ends_quietly(&folder, &["cat", "c.tadoc", "big.txt"], after_some);
    ends_quietly(&folder, &["grep", "words", "c.tadoc"], after_some);
}

#[test]
fn every_command_that_prints() {
    let folder = new_folder();
    folder.write("in/a.txt", "to be or not to be");
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    folder.ok(&["ingest", "in", "-o", "notes", "--append"]);
    for arguments in [
        ["cat", "c.tadoc", "a.txt"].as_slice(),
        &["grep", "be", "c.tadoc"],
        &["grep", "--json", "be", "notes"],
        &["info", "c.tadoc"],
        &["info", "--json", "notes"],
        &["verify", "c.tadoc", "notes"],
        &["history", "notes"],
        &["history", "--json", "notes"],
        &["edit", "notes", "--append", "0", "!", "--dry-run"],
        &["edit", "notes", "--append", "0", "!"],
        &["optimize", "notes", "--dry-run"],
        &["optimize", "notes", "--clean-up", "0"],
        &["clean-up", "notes"],
        &["plot", "VALUES ('x', 1), ('y', 2)"],
        &["help"],
    ] {
        ends_quietly(&folder, arguments, at_once);
    }
    // The requested changes are done: an edit, and the optimization.
    assert_eq!(folder.cat("notes", "a.txt"), b"to be or not to be!");
    assert_eq!(folder.ok(&["history", "notes"]).lines().count(), 2);
}

#[test]
fn nobody_reads_what_is_noted() {
    let folder = new_folder();
    folder.write("in/a.txt", "to be or not to be");
    for arguments in [
        ["ingest", "in", "-o", "c.tadoc"].as_slice(),
        &["ingest", "in", "-o", "notes", "--append"],
        &["sql", "-c", "SELECT 1"],
    ] {
        let mut command = folder.command(arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}");
    }
    assert_eq!(folder.cat("c.tadoc", "a.txt"), folder.cat("notes", "a.txt"));
}
