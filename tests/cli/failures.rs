//! Tests of exit statuses and pinned error texts, and that failures leave no files behind.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::harness::{Folder, gzip, new_folder};

#[test]
fn inputs_that_are_not_there_are_named() {
    let folder = new_folder();
    folder.write("docs/a.txt", "text");
    std::fs::create_dir(folder.join("empty")).unwrap();
    fn ingest<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
        [&["ingest", "-o", "c.tadoc"], arguments].concat()
    }
    folder.fails(&ingest(&["nowhere"]), "nowhere: No such file or directory (os error 2)");
    folder.fails(
        &ingest(&["docs/*.md"]),
        "docs/*.md: no file matches this glob (`*` stays inside one folder, `**` does not; hidden \
         files are skipped)",
    );
    folder.fails(&ingest(&["docs", "--glob", "*.md"]), "docs: no file matches --glob *.md");
    let hint = "name a folder with files, or pass --allow-empty for a corpus without documents";
    folder.fails(&ingest(&["empty"]), &format!("empty: no file in it or below it (none is hidden); {hint}"));
    folder.write("empty/.git/config", "text");
    folder.write("empty/.env", "text");
    folder.fails(
        &ingest(&["empty"]),
        &format!(
            "empty: no file in it or below it (2 hidden names left out; name one to read \
             it); {hint}"
        ),
    );
    assert_eq!(folder.names(), ["docs", "empty"]);
}

#[test]
fn outputs_that_cannot_be_written_are_named() {
    let folder = new_folder();
    folder.write("a.txt", "text");
    folder.write("old.tadoc", "old");
    std::fs::create_dir(folder.join("dir")).unwrap();
    let ingest = |output| ["ingest", "a.txt", "-o", output];
    folder.fails(&ingest("old.tadoc"), "old.tadoc exists; choose another name or pass --force");
    assert_eq!(std::fs::read(folder.join("old.tadoc")).unwrap(), b"old");
    for dir in ["dir", "dir/"] {
        let refused = format!(
            "{dir} is a folder; name a file, such as -o dir/a.tadoc, or pass --append with a new or \
             empty folder for a living corpus"
        );
        folder.fails(&ingest(dir), &refused);
    }
    folder.fails(&["ingest", "a.txt", "--force", "-o", "/dev/null"], "/dev/null is no ordinary file; name a new file");
    folder.fails(&ingest("no/such/c.tadoc"), "no/such/c.tadoc: the folder no/such does not exist; create it first");
    folder.fails(
        &["ingest", "old.tadoc", "--force", "-o", "old.tadoc"],
        "old.tadoc is to be read and written; choose another name for the output",
    );
    folder.ok(&["ingest", "a.txt", "-o", "old.tadoc", "--force"]);
    assert_eq!(folder.cat("old.tadoc", "a.txt"), b"text");
    assert_eq!(folder.names(), ["a.txt", "dir", "old.tadoc"]);
}

#[test]
fn a_failed_ingest_keeps_the_old_file() {
    let folder = new_folder();
    folder.write("good.txt", "text");
    let mut cut = gzip(&b"some text to compress ".repeat(1000));
    cut.truncate(cut.len() / 2);
    folder.write("in/cut.gz", &cut);
    folder.ok(&["ingest", "good.txt", "-o", "c.tadoc"]);
    let ran = folder.run(&["ingest", "in", "-o", "c.tadoc", "--force"]);
    assert_eq!(ran.status, 1);
    let start = "error: in/cut.gz: the gzip stream is cut or damaged (";
    assert!(ran.stderr.starts_with(start), "{}", ran.stderr);
    let end = "); repair it, or pass --no-decompress to store the bytes as they are, or --keep-going to store what can \
               be read\n";
    assert!(ran.stderr.ends_with(end), "{}", ran.stderr);
    assert_eq!(folder.cat("c.tadoc", "good.txt"), b"text");
    assert_eq!(folder.names(), ["c.tadoc", "good.txt", "in"]);
}

/// Returns the names in `living`, or none if there is no such folder.
fn names_in(folder: &Folder, living: &str) -> Option<Vec<OsString>> {
    let entries = std::fs::read_dir(folder.join(living)).ok()?;
    Some(entries.map(|entry| entry.unwrap().file_name()).collect())
}

#[test]
fn a_first_append_that_fails_leaves_nothing() {
    let folder = new_folder();
    folder.write("docs/a.txt", "text");
    folder.write("bad.jsonl", "{\"t\":\"one\"}\nno json\n");
    folder.write("none.txt", "");
    let jsonl = ["--documents", "jsonl:t"];
    let lines = ["--documents", "lines"];
    let failing: [(&[&str], &[&str]); 7] = [
        (&["nowhere"], &[]),
        (&["docs/*.md"], &[]),
        (&["docs", "--glob", "*.md"], &[]),
        (&["none.txt"], &lines),
        (&["bad.jsonl"], &jsonl),
        (&["nowhere", "--follow"], &lines),
        (&["bad.jsonl", "--follow", "--commit-every", "0"], &jsonl),
    ];
    std::fs::create_dir(folder.join("mine")).unwrap();
    for (inputs, options) in failing {
        for living in ["new/deep/notes", "mine"] {
            let ingest = ["ingest", "--append", "-o", living];
            let ran = folder.run(&[&ingest[..], inputs, options].concat());
            assert_eq!(ran.status, 1, "{inputs:?}: {}", ran.stderr);
        }
        assert_eq!(folder.names(), ["bad.jsonl", "docs", "mine", "none.txt"], "{inputs:?}");
        assert_eq!(names_in(&folder, "mine"), Some(Vec::new()), "{inputs:?}");
    }
    let pipe = ["ingest", "-", "--follow", "--append", "-o", "piped"];
    let ran = folder.run_with_input(&[&pipe[..], &jsonl].concat(), b"no json\n");
    assert_eq!((ran.status, names_in(&folder, "piped")), (1, None), "{}", ran.stderr);
    // What is there already stays, also if it has no document.
    let mine = ["--append", "-o", "mine"];
    folder.ok(&[&["ingest", "none.txt", "--allow-empty"], &lines[..], &mine].concat());
    for versions in [2, 3] {
        let failing = [&["ingest", "bad.jsonl"], &jsonl[..], &mine].concat();
        assert_eq!(folder.run(&failing).status, 1);
        assert_eq!(folder.ok(&["history", "mine"]).lines().count(), versions);
        folder.ok(&["ingest", "docs", "--append", "--duplicate", "-o", "mine"]);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_first_append_leaves_nothing() {
    let folder = new_folder();
    let arguments = ["ingest", "-", "--documents", "lines", "--append", "-o", "new/notes"];
    let mut child = folder.command(&arguments).stdin(Stdio::piped()).spawn().unwrap();
    wait_for(|| names_in(&folder, "new/notes/segments").is_some_and(|names| names.len() == 2));
    assert!(kill(&child, "-INT"));
    let input = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn a_corpus_without_documents_is_asked_for() {
    let folder = new_folder();
    folder.write("a.log", "");
    let command = ["ingest", "a.log", "--documents", "lines", "-o", "c.tadoc"];
    folder.fails(&command, "the inputs hold no document; pass --allow-empty to write an empty corpus");
    assert_eq!(folder.names(), ["a.log"]);
    folder.ok(&[command.as_slice(), &["--allow-empty"]].concat());
    folder.ok(&["verify", "c.tadoc"]);
}

#[test]
fn command_lines_that_make_no_sense_exit_with_2() {
    let folder = new_folder();
    folder.write("a.txt", "text");
    for arguments in [
        &["frobnicate"] as &[&str],
        &["ingest"],
        &["ingest", "a.txt"],
        &["ingest", "a.txt", "-o", "c.tadoc", "--documents", "jsonl"],
        &["ingest", "a.txt", "-o", "c.tadoc", "--tokenizer", "letters"],
        &["ingest", "a.txt", "-o", "c.tadoc", "--builder", "magic"],
        &["ingest", "a.txt", "-o", "c.tadoc", "--block-size", "many"],
        &["ingest", "a.txt", "-o", "c.tadoc", "--threads", "0"],
        &["ingest", "a.txt", "-o", "c.tadoc", "--glob", "[a"],
        &["cat", "c.tadoc"],
        &["verify"],
        &["sql", "--format", "xml"],
    ] {
        let ran = folder.run(arguments);
        assert_eq!(ran.status, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("error: ") || ran.stderr.contains("Usage:"), "{arguments:?}");
    }
    assert_eq!(folder.names(), ["a.txt"]);
}

#[test]
fn help_says_what_the_exit_statuses_mean() {
    let folder = new_folder();
    for arguments in [&["help"] as &[&str], &["--help"], &["help", "ingest"], &["sql", "--help"]] {
        let text = folder.ok(arguments);
        assert!(text.contains("Exit status:"), "{arguments:?}");
        assert!(text.contains("Examples:"), "{arguments:?}");
        assert!(text.contains("130"), "{arguments:?}");
    }
    let version = folder.ok(&["--version"]);
    assert_eq!(version, format!("tadoc {}\n", env!("CARGO_PKG_VERSION")));
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing_behind() {
    for signal in ["-INT", "-TERM"] {
        let folder = new_folder();
        folder.write("old.tadoc", "old");
        let arguments = ["ingest", "-", "--documents", "lines", "-o", "old.tadoc", "--force"];
        let mut command = folder.command(&arguments);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"a line\nanother").unwrap();
        wait_for(|| folder.names().iter().any(|name| name.ends_with(".part")));
        assert!(kill(&child, signal));
        // Standard input stays open until the end, so the signal ends the program.
        let input = child.stdin.take();
        let output = child.wait_with_output().unwrap();
        drop(input);
        assert_eq!(output.status.code(), Some(130), "{signal}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted\n");
        assert_eq!(folder.names(), ["old.tadoc"]);
        assert_eq!(std::fs::read(folder.join("old.tadoc")).unwrap(), b"old");
    }
}

#[cfg(unix)]
fn kill(child: &Child, signal: &str) -> bool {
    Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success()
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited too long");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn long_inputs_are_cut_in_errors() {
    let folder = new_folder();
    folder.write("x.json", format!("[{}[1]]", "[1, 2, 3], ".repeat(100_000)));
    let ran = folder.run(&["sql", "-c", "SELECT * FROM 'x.json'"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.len() < 1000, "{} bytes", ran.stderr.len());
    assert!(ran.stderr.contains("read_lines('…')"), "{}", ran.stderr);
    let long = "x".repeat(50_000);
    let ran = folder.run(&["sql", "-c", &format!("SELECT * FROM word_count('a', fold => '{long}')")]);
    assert!(ran.status == 1 && ran.stderr.len() < 1500, "{}", ran.stderr);
    let ran = folder.run(&["sql", "-c", &format!("SELECT * FROM {long}")]);
    assert!(ran.status == 1 && ran.stderr.len() < 4000, "{}", ran.stderr.len());
}
