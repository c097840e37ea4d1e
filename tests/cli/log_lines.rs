//! Tests of logs whose lines have codes of terminals, or were divided by a container runtime.

use crate::harness::{gzip, new_folder};

const COLOURED: &str =
    "\u{1b}[31mERROR\u{1b}[0m: disk \u{1b}[1mfull\u{1b}[22m\n2024-05-06 \u{1b}[32mINFO\u{1b}[0m ok\n";
const DIVIDED: &str = "2024-05-06T07:08:09.1Z stdout P first part of \n2024-05-06T07:08:09.2Z stderr F other\n\
                       2024-05-06T07:08:09.3Z stdout F a long message\n2024-05-06T07:08:10Z stdout P cut";

#[test]
fn colours_are_no_words_of_lines() {
    let folder = new_folder();
    folder.write("a.log", COLOURED);
    folder.write("b.log.gz", gzip(COLOURED.as_bytes()));
    let ran = folder.run(&["ingest", "a.log", "b.log.gz", "--documents", "lines", "-o", "c.tadoc"]);
    assert!(ran.stderr.contains("12 terminal codes left out of the text"), "{}", ran.stderr);
    assert_eq!(folder.rows("SELECT count(*) FROM search('c.tadoc', 'ERROR OR INFO OR full')"), ["6"]);
    let texts = folder.rows("SELECT text FROM documents('c.tadoc') WHERE doc_id < 2 ORDER BY doc_id");
    assert_eq!(texts, ["ERROR: disk full", "2024-05-06 INFO ok"]);

    let never = ["ingest", "a.log", "--documents", "lines", "--strip-ansi=never", "-o", "n.tadoc"];
    assert!(!folder.run(&never).stderr.contains("terminal code"));
    assert_eq!(folder.rows("SELECT count(*) FROM search('n.tadoc', 'ERROR')"), ["0"]);

    // Files keep their bytes unless they are asked to lose the codes.
    folder.ok(&["ingest", "a.log", "-o", "f.tadoc"]);
    assert_eq!(folder.cat("f.tadoc", "a.log"), COLOURED.as_bytes());
    folder.ok(&["ingest", "a.log", "--strip-ansi", "-o", "s.tadoc"]);
    assert_eq!(folder.cat("s.tadoc", "a.log"), b"ERROR: disk full\n2024-05-06 INFO ok\n");
}

#[test]
fn parts_of_lines_of_containers_are_joined() {
    let folder = new_folder();
    folder.write("c.log", DIVIDED);
    let lines = ["ingest", "c.log", "--documents", "lines", "--timestamp", "auto", "-o", "c.tadoc"];
    let ran = folder.run(&lines);
    assert!(ran.stderr.contains("2 parts of lines of containers joined"), "{}", ran.stderr);
    let rows = folder.table_rows("c.tadoc", "SELECT ts, text FROM d ORDER BY doc_id");
    assert_eq!(
        rows,
        [
            "2024-05-06T07:08:09.200Z,2024-05-06T07:08:09.2Z stderr F other",
            "2024-05-06T07:08:09.100Z,2024-05-06T07:08:09.1Z stdout F first part of a long message",
            "2024-05-06T07:08:10Z,2024-05-06T07:08:10Z stdout P cut",
        ]
    );
    folder.ok(&["ingest", "c.log", "--documents", "lines", "--join-partial", "never", "-o", "n.tadoc"]);
    assert_eq!(folder.rows("SELECT count(*) FROM documents('n.tadoc')"), ["4"]);
    folder.ok(&["ingest", "c.log", "-o", "f.tadoc"]);
    assert_eq!(folder.cat("f.tadoc", "c.log"), DIVIDED.as_bytes());
}
