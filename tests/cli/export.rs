//! `tadoc export`: files of rows, the same ones however often the export was interrupted.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use testkit::random::Random;

use crate::harness::{Folder, new_folder};

pub const NUM_DOCS: usize = 400;

/// A corpus of lines, each a document.
pub fn lines() -> Folder {
    let folder = new_folder();
    let rows = (0..NUM_DOCS).map(|n| format!("{{\"text\": \"line {n} says \\\"ö\\\"\", \"year\": {}}}\n", n % 7));
    folder.write("lines.jsonl", rows.collect::<String>());
    folder.ok(&["ingest", "lines.jsonl", "--documents", "jsonl:text", "-o", "lines.tadoc"]);
    folder
}

/// Returns the names and bytes of the files of an export.
pub fn files(folder: &Folder, name: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder.join(name)).unwrap().map(|entry| entry.unwrap().path());
    let file = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read(path).unwrap())
    };
    let mut files: Vec<(String, Vec<u8>)> = entries.map(file).collect();
    files.sort();
    files
}

/// Runs a command that fails with a text that has `part`.
fn refused(folder: &Folder, arguments: &[&str], part: &str) {
    let ran = folder.run(arguments);
    assert!(ran.status != 0 && ran.stderr.contains(part), "{arguments:?}: {}", ran.stderr);
}

fn rows(bytes: &[u8]) -> Vec<Value> {
    String::from_utf8(bytes.to_vec()).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn documents_become_files_of_rows() {
    let folder = lines();
    let export = ["export", "lines.tadoc", "-o", "out", "--docs-per-file", "150", "--where", "year < 3 -- few"];
    folder.ok(&export);
    let written = files(&folder, "out");
    let names: Vec<&str> = written.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["export.json", "part-00000.jsonl", "part-00001.jsonl", "part-00002.jsonl"]);
    let all: Vec<Value> = written[1..].iter().flat_map(|(_, bytes)| rows(bytes)).collect();
    let expected: Vec<usize> = (0..NUM_DOCS).filter(|n| n % 7 < 3).collect();
    assert_eq!(all.len(), expected.len());
    for (row, n) in all.iter().zip(expected) {
        let text = format!("line {n} says \"ö\"");
        assert_eq!((&row["doc_id"], &row["text"], &row["year"]), (&n.into(), &text.into(), &(n % 7).into()));
        assert!(row["path"].is_string() && row.as_object().unwrap().len() == 4, "{row}");
    }
    // Other forms, other columns, and a range without a document.
    for (form, ending) in [("jsonl.gz", "jsonl.gz"), ("jsonl.zst", "jsonl.zst"), ("parquet", "parquet")] {
        let columns = ["--columns", "text, year + 1 AS next", "--where", "doc_id < 9", "--docs-per-file", "200"];
        folder.ok(&[&["export", "lines.tadoc", "-o", form, "--format", form], &columns[..]].concat());
        let first = format!("{form}/part-00000.{ending}");
        assert!(folder.join(&first).exists() && !folder.join(&format!("{form}/part-00000.{ending}.zst")).exists());
        if form == "parquet" {
            assert_eq!(folder.rows(&format!("SELECT max(next), count(*) FROM '{first}'")), ["7,9"]);
            assert_eq!(folder.rows(&format!("SELECT count(*) FROM '{form}/part-00001.{ending}'")), ["0"]);
        }
    }
    let packed = fs::read(folder.join("jsonl.zst/part-00000.jsonl.zst")).unwrap();
    assert_eq!(rows(&zstd::decode_all(&packed[..]).unwrap()).len(), 9);
}

#[test]
fn an_export_that_was_killed_goes_on() {
    let folder = lines();
    let export = |out: &'static str| ["export", "lines.tadoc", "-o", out, "--docs-per-file", "10"];
    folder.ok(&export("whole"));
    let whole = files(&folder, "whole");
    assert_eq!(whole.len(), 1 + NUM_DOCS / 10);
    let mut random = Random(7);
    let mut num_killed = 0;
    let mut num_parts = Vec::new();
    for attempt in 0..60 {
        let mut child = folder.command(&export("parts")).stderr(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(random.below(120 + 60 * attempt) as u64));
        // Sends SIGKILL. A run that has ended already keeps its exit status.
        child.kill().unwrap();
        let is_done = child.wait().unwrap().success();
        num_killed += usize::from(!is_done);
        // Files with a name are whole at all times.
        let there = if folder.join("parts").exists() { files(&folder, "parts") } else { Vec::new() };
        for file in there.iter().filter(|(name, _)| name.starts_with("part-")) {
            assert!(whole.contains(file), "{}", file.0);
        }
        num_parts.push(there.iter().filter(|(name, _)| name.starts_with("part-")).count());
        if is_done {
            break;
        }
    }
    assert!(num_killed > 0 && num_parts.is_sorted(), "{num_killed} killed: {num_parts:?}");
    folder.ok(&export("parts"));
    assert_eq!(files(&folder, "parts"), whole);
    // Files that are complete stay as they are: a run that finds all of them writes none.
    fs::write(folder.join("parts/part-00003.jsonl"), "kept\n").unwrap();
    let said = folder.run(&export("parts"));
    assert!(said.stderr.contains("0 documents in 0 files"), "{}", said.stderr);
    assert_eq!(fs::read(folder.join("parts/part-00003.jsonl")).unwrap(), b"kept\n");
}

#[test]
fn a_living_corpus_is_exported_at_one_version() {
    let folder = new_folder();
    folder.write("in/a.txt", "first");
    folder.write("in/b.txt", "second");
    folder.ok(&["ingest", "in", "-o", "living/", "--append"]);
    let export = ["export", "living/", "-o", "out", "--docs-per-file", "1"];
    folder.ok(&export);
    let before = files(&folder, "out");
    fs::remove_file(folder.join("out/part-00001.jsonl")).unwrap();
    folder.ok(&["edit", "living/", "--replace", "1", "in/a.txt"]);
    folder.ok(&export);
    assert_eq!(files(&folder, "out"), before, "the second file has the text of the first version");
    folder.ok(&["export", "living/", "-o", "new"]);
    assert_eq!(rows(&files(&folder, "new")[1].1)[1]["text"], "first");
    refused(
        &folder,
        &["export", "living/", "-o", "out", "--docs-per-file", "1", "--version", "3"],
        "the corpus has changed since",
    );
}

#[test]
fn what_does_not_go_on_is_refused() {
    let folder = lines();
    folder.ok(&["export", "lines.tadoc", "-o", "out"]);
    for (arguments, fault) in [
        (["--where", "year = 1"], "its where is null, and now \"year = 1\""),
        (["--columns", "text"], "its columns is null, and now \"text\""),
        (["--format", "parquet"], "its format is \"jsonl\", and now \"parquet\""),
        (["--docs-per-file", "7"], "its docs_per_file is 100000, and now 7"),
    ] {
        refused(&folder, &[&["export", "lines.tadoc", "-o", "out"], &arguments[..]].concat(), fault);
    }
    fs::remove_file(folder.join("lines.tadoc")).unwrap();
    folder.ok(&["ingest", "lines.jsonl", "-o", "lines.tadoc"]);
    refused(&folder, &["export", "lines.tadoc", "-o", "out"], "the corpus has changed since");
    folder.write("other/notes.txt", "mine");
    refused(&folder, &["export", "lines.tadoc", "-o", "other"], "has files of something else");
    assert_eq!(fs::read(folder.join("other/notes.txt")).unwrap(), b"mine");
    refused(&folder, &["export", "lines.tadoc", "-o", "a", "--where", "nothing = 1"], "No field named nothing");
    refused(&folder, &["export", "lines.tadoc", "-o", "a", "--columns", "nothing"], "No field named nothing");
    refused(&folder, &["export", "lines.tadoc", "-o", "b", "--where", "1 = 1) OR (2 = 2"], "--where");
    refused(&folder, &["export", "lines.tadoc", "-o", "b", "--columns", "path FROM corpus --"], "--columns");
    refused(&folder, &["export", "lines.tadoc", "-o", "c", "--docs-per-file", "0"], "--docs-per-file");
    refused(&folder, &["export", "missing.tadoc", "-o", "d/e"], "missing.tadoc");
    refused(&folder, &["export", "lines.tadoc", "-o", "s3://"], "s3://: expected the name of a bucket");
    // What did not begin leaves nothing behind.
    assert!(["a", "b", "c", "d", "s3:"].iter().all(|name| !folder.join(name).exists()), "{:?}", folder.names());
}

#[test]
fn a_file_url_is_the_folder() {
    let folder = lines();
    let here = folder.path().canonicalize().unwrap().display().to_string();
    folder.ok(&["export", "lines.tadoc", "-o", "plain", "--docs-per-file", "150"]);
    let url = format!("file://{here}/deep/er");
    folder.ok(&["export", "lines.tadoc", "-o", &url, "--docs-per-file", "150"]);
    assert_eq!(files(&folder, "deep/er"), files(&folder, "plain"));
    assert!(!folder.names().iter().any(|name| name.starts_with("file")), "{:?}", folder.names());
    let said = folder.run(&["export", "lines.tadoc", "-o", &url, "--docs-per-file", "150"]);
    assert!(said.stderr.contains("0 documents in 0 files"), "{}", said.stderr);
    refused(&folder, &["export", "lines.tadoc", "-o", "http://127.0.0.1:9/out"], "read over HTTP, not written");
}
