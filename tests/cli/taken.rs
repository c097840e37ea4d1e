//! Tests of the rule that a path, and a file, is one document of a living corpus.

use crate::harness::{Folder, new_folder};
use crate::living::notes;

/// Runs a command three times at the same time.
fn one_of_three_succeeds(folder: &Folder, arguments: &[&str]) {
    let start = || folder.command(arguments).spawn();
    let mut running = [start().unwrap(), start().unwrap(), start().unwrap()];
    let done = running.each_mut().map(|child| child.wait().unwrap().success());
    assert_eq!(done.iter().filter(|done| **done).count(), 1, "{done:?}");
}

/// Two appends of the same folder at the same time: one of them is refused.
#[test]
fn appends_of_the_same_files_at_once_store_them_once() {
    let folder = new_folder();
    for at in 0..200 {
        folder.write(&format!("in/{at}.txt"), format!("text {at}"));
    }
    one_of_three_succeeds(&folder, &["ingest", "in", "-o", "notes", "--append", "-q"]);
    let counts = "SELECT count(*), count(DISTINCT path) FROM documents('notes')";
    assert_eq!(folder.rows(counts), ["200,200"]);
}

/// A path names one document: the same files are not stored twice.
#[test]
fn a_second_append_of_the_same_files_is_refused() {
    let folder = notes();
    let again = ["ingest", "in", "-o", "notes", "--append"];
    let way_out = "nothing was added: `tadoc edit notes --replace ID FILE` changes a document, --path NAME stores \
                   a file under another path, and --duplicate stores all once more";
    folder.fails(&again, &format!("notes: 2 of 2 files are there already, first a.txt; {way_out}"));
    folder.write("in/c.txt", "new");
    for spelled in ["in/", "./in", "in/../in"] {
        let all = ["ingest", spelled, "-o", "notes", "--append"];
        folder.fails(&all, &format!("notes: 2 of 3 files are there already, first a.txt; {way_out}"));
    }
    let one = ["ingest", "in/b.txt", "-o", "notes", "--append", "--path", "b.txt"];
    folder.fails(&one, &format!("notes: b.txt is there already; {way_out}"));
    assert!(folder.ok(&["info", "notes"]).contains("version          2\n"));
    // Files of other paths are added, and the others if that is asked for.
    folder.ok(&["ingest", "in/c.txt", "-o", "notes", "--append"]);
    folder.ok(&["ingest", "in", "-o", "notes", "--append", "--duplicate"]);
    let paths = folder.rows("SELECT path FROM documents('notes') ORDER BY doc_id");
    assert_eq!(paths, ["a.txt", "b.txt", "in/c.txt", "a.txt", "b.txt", "c.txt"]);
    // What was dropped, is not there; what an edit has added, is.
    folder.ok(&["edit", "notes", "--drop", "1", "--drop", "4", "--add", "d.txt", "in/c.txt"]);
    folder.ok(&["ingest", "in/b.txt", "-o", "notes", "--append", "--path", "b.txt"]);
    let added = ["ingest", "in/c.txt", "-o", "notes", "--append", "--path", "d.txt"];
    folder.fails(&added, &format!("notes: d.txt is there already; {way_out}"));
    folder.fails(
        &["edit", "notes", "--add", "d.txt", "in/c.txt"],
        "--add: a document d.txt is there already, and nothing changed; --replace ID FILE gives it other bytes, \
         and --duplicate adds a second one of this path",
    );
    let twice = folder.run(&["edit", "notes", "--add", "e", "in/c.txt", "--add", "e", "in/c.txt"]);
    assert!(twice.stderr.contains("a document e is there already"), "{}", twice.stderr);
    folder.ok(&["edit", "notes", "--drop", "6", "--add", "d.txt", "in/b.txt"]);
    folder.ok(&["edit", "notes", "--duplicate", "--add", "d.txt", "in/c.txt"]);
    folder.ok(&["optimize", "notes"]);
    folder.fails(&added, &format!("notes: d.txt is there already; {way_out}"));
    folder.fails(&one, &format!("notes: b.txt is there already; {way_out}"));
}

/// A file is one document under every spelling of its path. Another file is not refused for it.
#[cfg(unix)]
#[test]
fn another_spelling_is_the_same_file() {
    use std::os::unix::fs::symlink;
    let folder = new_folder();
    folder.write("l.log", "one\ntwo\n");
    folder.write("x/l.log", "three\n");
    folder.write("x/a.txt", "a");
    folder.write("y/a.txt", "a");
    folder.write("y/b.txt", "b");
    symlink("l.log", folder.join("link.log")).unwrap();
    symlink("x", folder.join("z")).unwrap();
    let absolute = |name: &str| folder.join(name).display().to_string();
    let append = |corpus: &str, kind: &str, paths: &[&str]| {
        let options = ["-o", corpus, "--append", "--documents", kind];
        folder.run(&[&["ingest"], paths, &options].concat())
    };
    let refused = |corpus: &str, kind: &str, paths: &[&str], expected: &str| {
        let ran = append(corpus, kind, paths);
        assert_eq!(ran.status, 1, "{paths:?} in {corpus}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{paths:?} in {corpus}: {}", ran.stderr);
    };
    let spellings = ["l.log", "./l.log", "x/../l.log", &absolute("l.log"), "link.log", "l*.log"];
    for (idx, first) in spellings.into_iter().enumerate() {
        let corpus = format!("lines{idx}");
        append(&corpus, "lines", &[first]).ok();
        for again in spellings {
            refused(&corpus, "lines", &[again], " is there already");
            refused(&corpus, "lines", &["x/a.txt", again], "1 of 2 files is there already");
        }
        append(&corpus, "lines", &["x/l.log", "link.log", "--duplicate"]).ok();
        append(&corpus, "lines", &["l.log", "--path", "chosen"]).ok();
        for follow in ["l.log", "link.log", &absolute("l.log")] {
            refused(&corpus, "lines", &[follow, "--follow"], " are there already, and no place");
        }
    }
    let whole = absolute("x");
    let glob = absolute("x/*");
    let folders = ["x", "x/", "./x", "z", "x/*", "z/*", "?/[al]*", &whole, &glob];
    for (idx, first) in folders.into_iter().enumerate() {
        let corpus = format!("files{idx}");
        append(&corpus, "files", &[first]).ok();
        for again in folders {
            refused(&corpus, "files", &[again], " are there already");
            refused(&corpus, "files", &[again, "l.log"], " are there already");
        }
        folder.ok(&["optimize", &corpus, "-q"]);
        refused(&corpus, "files", &["x/l.log", "y/b.txt"], "1 of 2 files is there already");
        // What was dropped is not there.
        let drop = folder.rows(&format!("SELECT doc_id FROM documents('{corpus}')"));
        let drop: Vec<&str> = drop.iter().flat_map(|id| ["--drop", id]).collect();
        folder.ok(&[&["edit", &corpus, "-q"], &drop[..]].concat());
        append(&corpus, "files", &[&whole]).ok();
    }
    // Other files of equal names and bytes are others, also seen from another folder.
    append("other", "files", &["x"]).ok();
    append("other", "files", &["y/a.txt"]).ok();
    append("other", "files", &[&absolute("l.log")]).ok();
    let other = absolute("other");
    let mut elsewhere = folder.command(&["ingest", "../y/a.txt", "-o", &other, "--append", "-q"]);
    assert!(!elsewhere.current_dir(folder.join("x")).status().unwrap().success());
    let mut elsewhere = folder.command(&["ingest", &whole, "-o", &other, "--append", "-q"]);
    assert!(!elsewhere.current_dir(folder.join("y")).status().unwrap().success());
    folder.write("b.txt", "b");
    append("other", "files", &["b.txt"]).ok();
    let b = absolute("y/b.txt");
    let mut elsewhere = folder.command(&["ingest", &b, "-o", &other, "--append", "-q"]);
    assert!(elsewhere.current_dir(folder.join("y")).status().unwrap().success());
    // Members of archives, and rows with paths of their own.
    let mut tar = std::process::Command::new("tar");
    let tar = tar.current_dir(folder.path()).args(["-cf", "m.tar", "x/a.txt"]).status();
    assert!(tar.unwrap().success());
    append("packed", "files", &["m.tar"]).ok();
    append("packed", "files", &[&absolute("x/a.txt")]).ok();
    refused("packed", "files", &["./m.tar", "l.log"], "(as x/a.txt) is there already");
    folder.write("rows.jsonl", "{\"t\":\"a\",\"path\":\"l.log\"}\n");
    append("rows", "jsonl:t", &["rows.jsonl"]).ok();
    append("rows", "lines", &[&absolute("l.log")]).ok();
}

/// Two edits at the same time add a document of one path once.
#[test]
fn edits_at_once_add_a_document_once() {
    let folder = notes();
    for round in 0..4 {
        let path = format!("new{round}");
        one_of_three_succeeds(&folder, &["edit", "notes", "-q", "--add", &path, "in/a.txt"]);
    }
    let counts = "SELECT count(*), count(DISTINCT path) FROM documents('notes')";
    assert_eq!(folder.rows(counts), ["6,6"]);
}

#[test]
fn lines_rows_and_members_are_not_stored_twice() {
    let folder = new_folder();
    folder.write("app.log", "one\ntwo\n");
    folder.write("rows.jsonl", "{\"t\":\"a\",\"path\":\"x\"}\n{\"t\":\"b\",\"path\":\"y\"}\n");
    folder.write("more.jsonl", "{\"t\":\"c\",\"path\":\"z\"}\n{\"t\":\"d\",\"path\":\"y\"}\n");
    folder.write("m/a.txt", "member");
    let tar = |name: &str, files: &[&str]| {
        let mut command = std::process::Command::new("tar");
        command.current_dir(folder.path()).args(["-cf", name]).args(files);
        assert!(command.status().unwrap().success());
    };
    tar("m.tar", &["m/a.txt"]);
    let append = |input: &str, kind: &str, options: &[&str]| {
        let ingest = ["ingest", input, "-o", "c", "--append", "--documents", kind];
        folder.run(&[&ingest[..], options].concat())
    };
    for (input, kind, first) in [
        ("app.log", "lines", "app.log is there already"),
        ("rows.jsonl", "jsonl:t", "a document x is there already"),
        ("m.tar", "files", "a document m/a.txt is there already"),
    ] {
        append(input, kind, &[]).ok();
        let refused = append(input, kind, &[]);
        assert_eq!(refused.status, 1);
        let start = format!("error: c: {first}; nothing was added: ");
        assert!(refused.stderr.starts_with(&start), "{}", refused.stderr);
        assert!(refused.stderr.contains("--duplicate stores all once more"), "{}", refused.stderr);
        append(input, kind, &["--duplicate"]).ok();
    }
    assert!(append("more.jsonl", "jsonl:t", &[]).stderr.contains("a document y is there already"));
    append("app.log", "lines", &["--path", "other.log"]).ok();
    // A pipe never comes again.
    for _ in 0..2 {
        let pipe = ["ingest", "-", "-o", "c", "--append", "--documents", "lines"];
        folder.run_with_input(&pipe, b"from a pipe\n").ok();
        let named = [&pipe[..], &["--path", "app.log"]].concat();
        folder.run_with_input(&named, b"from a pipe\n").ok();
    }
    let text = ["ingest", "-", "-o", "d", "--append"];
    folder.run_with_input(&text, b"text").ok();
    let refused = folder.run_with_input(&text, b"text");
    assert!(refused.stderr.contains("stdin is there already"), "{}", refused.stderr);
    // The lines of a log that came at once are not followed from its start.
    folder.write("new.log", "three\n");
    append("new.log", "lines", &[]).ok();
    let follow = append("new.log", "lines", &["--follow"]);
    assert_eq!(follow.status, 1);
    assert!(
        follow.stderr.contains("c: lines of new.log are there already, and no place up to which"),
        "{}",
        follow.stderr
    );
}
