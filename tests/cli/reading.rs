//! Tests of `cat`, `info`, `verify` and `demo`.

use std::io::Read;
use std::process::Stdio;

use crate::harness::{Folder, new_folder};

fn corpus() -> Folder {
    let folder = new_folder();
    folder.write("in/src/main.rs", "fn main() {}\n");
    folder.write("in/docs/readme.md", "read me, read me\n");
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    folder
}

#[test]
fn documents_are_named_by_path_or_number() {
    let folder = corpus();
    let both = folder.ok(&["cat", "c.tadoc", "src/main.rs", "docs/readme.md"]);
    assert_eq!(both, "fn main() {}\nread me, read me\n");
    assert_eq!(folder.ok(&["cat", "c.tadoc", "--doc-id", "0"]), "read me, read me\n");
    folder.fails(
        &["cat", "c.tadoc", "main.rs"],
        "there is no document `main.rs`; the nearest are `src/main.rs`, `docs/readme.md`",
    );
    folder.fails(&["cat", "c.tadoc", "--doc-id", "2"], "doc_id 2 is out of range, there are 2");
}

#[test]
fn what_is_no_corpus_is_named() {
    let folder = corpus();
    for command in ["cat", "info"] {
        let run = |file| folder.run(&[command, file, "x"][..if command == "cat" { 3 } else { 2 }]);
        let here = folder.path().canonicalize().unwrap();
        let here = here.display();
        run("nowhere.tadoc").fails(&format!("nowhere.tadoc: there is no file and no folder {here}/nowhere.tadoc"));
        run("in").fails(&format!("in: the folder {here}/in holds no .tadoc file; other files: 2"));
        let ran = run("in/src/main.rs");
        assert_eq!(ran.status, 1);
        assert!(ran.stderr.starts_with("error: in/src/main.rs: "), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1);
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = new_folder();
    folder.write("big.txt", "0123456789 words\n".repeat(200_000));
    folder.ok(&["ingest", "big.txt", "-o", "c.tadoc"]);
    let mut command = folder.command(&["cat", "c.tadoc", "big.txt"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(&first, b"0123456789");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn info_tells_what_there_is() {
    let folder = corpus();
    let info = folder.ok(&["info", "c.tadoc"]);
    for line in ["documents        2\n", "text bytes       30 bytes\n", "tokenizer        auto\n"] {
        assert!(info.contains(line), "{info}");
    }
    let json = folder.ok(&["info", "--json", "c.tadoc"]);
    assert!(json.starts_with("{\"file\":\"c.tadoc\",\"file_bytes\":"), "{json}");
    folder.write("info.json", &json);
    let ran = folder.run(&["sql", "-q", "--format", "csv", "-c", "SELECT documents FROM 'info.json'"]);
    assert_eq!(ran.ok(), "documents\n2\n");
}

#[test]
fn verify_finds_every_flipped_byte() {
    let folder = corpus();
    let report = folder.ok(&["verify", "c.tadoc"]);
    assert!(report.starts_with("c.tadoc: 2 documents, 1 segment\n"), "{report}");
    for section in ["dictionary", "grammar", "documents"] {
        let is_line = |line: &&str| line.starts_with("  segment 0") && line.contains(section);
        let line = report.lines().find(is_line).unwrap();
        assert!(line.ends_with(" ok"), "{line}");
    }
    assert_eq!(folder.ok(&["verify", "--quiet", "c.tadoc"]), "");
    let good = std::fs::read(folder.join("c.tadoc")).unwrap();
    for at in (0..good.len()).step_by(97) {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        folder.write("bad.tadoc", &bad);
        let ran = folder.run(&["verify", "bad.tadoc", "c.tadoc"]);
        assert_eq!(ran.status, 1, "byte {at} of {}", good.len());
        ran.fails("1 of 2 files failed the check; restore from a copy or ingest again");
    }
}

#[test]
fn damage_is_reported_by_section() {
    let folder = corpus();
    let report = folder.ok(&["verify", "c.tadoc"]);
    let line = report.lines().find(|line| line.contains("grammar")).unwrap();
    let offset: usize = line.split("offset ").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let mut bytes = std::fs::read(folder.join("c.tadoc")).unwrap();
    bytes[offset] ^= 1;
    folder.write("bad.tadoc", &bytes);
    let ran = folder.run(&["verify", "bad.tadoc"]);
    let report = String::from_utf8(ran.stdout).unwrap();
    let verdict = |section| {
        let line = report.lines().find(|line| line.trim_start().starts_with("segment 0") && line.contains(section));
        line.unwrap().split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(verdict("dictionary"), "ok");
    assert_eq!(verdict("grammar"), "DAMAGED");
    assert_eq!(verdict("documents"), "ok");
    assert!(report.contains("  damaged: bad.tadoc: section grammar, offset "), "{report}");
}

#[test]
fn the_demo_runs_on_any_folder() {
    let folder = new_folder();
    for idx in 0..5 {
        let text = format!("//! The caller must know file {idx}.\nunsafe fn main() {{}}\n").repeat(9);
        folder.write(&format!("in/crate-{idx}/examples/main.rs"), text);
    }
    let report = folder.ok(&["demo", "--source", "in", "--dir", "tour"]);
    assert!(report.starts_with("Compressing 5 files ("), "{report}");
    assert!(report.contains("\n1. "), "{report}");
    assert!(report.contains("tadoc ingest YOUR_FOLDER -o yours.tadoc"), "{report}");
    folder.ok(&["verify", "tour/demo.tadoc"]);
    // The queries of the demo run from its folder, and the demo can run again.
    let mut again = folder.command(&["sql", "--quiet", "-f", "tour.sql"]);
    assert!(again.current_dir(folder.join("tour")).output().unwrap().status.success());
    folder.ok(&["demo", "--source", "in", "--dir", "tour"]);
}
