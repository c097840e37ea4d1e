//! Tests of `--memory-limit` as the system measures it. The resident memory of a process stays near
//! the limit, or the statement ends with an error that names a sufficient limit.

use std::fmt::Write as _;

use crate::harness::{Folder, Ran, new_folder};

const LIMIT_MIB: u64 = 64;
const NUM_DOCS: usize = 9_000;
const WORDS_OF_DOC: usize = 18;
const NUM_WORDS: usize = 700;
const WORD_BYTES: usize = 500;

/// Writes a corpus of 81 MB of text, in which no two documents are equal. Long words make the build
/// fast.
fn write_corpus(folder: &Folder) {
    let words: Vec<String> = (0..NUM_WORDS).map(|at| format!("w{at}").repeat(WORD_BYTES)).collect();
    let words: Vec<&str> = words.iter().map(|word| &word[..WORD_BYTES]).collect();
    let mut state = 7u64;
    let mut lines = String::new();
    for doc in 0..NUM_DOCS {
        write!(lines, "{doc}").unwrap();
        for _ in 0..WORDS_OF_DOC {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            write!(lines, " {}", words[(state >> 33) as usize % NUM_WORDS]).unwrap();
        }
        lines.push('\n');
    }
    folder.write("lines.txt", lines);
    folder.ok(&["ingest", "lines.txt", "--documents", "lines", "-o", "c.tadoc", "--quiet"]);
}

/// Runs `sql` with a limit and checks the peak of resident memory.
fn run_limited(folder: &Folder, sql: &str, limit_mib: u64) -> Ran {
    let limit = format!("{limit_mib}MiB");
    let arguments = ["sql", "--quiet", "--format", "csv", "--memory-limit", &limit, "-c", sql];
    let (ran, peak_kib) = folder.run_measured(&arguments);
    println!("{limit}: {} MiB, {}, {sql}", peak_kib >> 10, ran.stderr);
    let most_kib = (limit_mib * 5 / 4 + 64) << 10;
    assert!(peak_kib <= most_kib, "{peak_kib} KiB by a limit of {limit}: {sql}");
    ran
}

#[test]
fn a_limit_is_kept_or_another_named() {
    let folder = new_folder();
    write_corpus(&folder);
    let of_all = format!("{NUM_DOCS}");
    for (sql, rows) in [
        ("SELECT count(DISTINCT content) FROM documents('c.tadoc')", of_all.as_str()),
        (
            "SELECT count(*) FROM (SELECT text, row_number() OVER (ORDER BY text DESC) AS n \
             FROM documents('c.tadoc')) WHERE n % 2 = 0 AND length(text) > 0",
            "4500",
        ),
        (
            "SELECT count(l) FROM (SELECT lag(text) OVER (ORDER BY text) AS l \
             FROM documents('c.tadoc'))",
            "8999",
        ),
        (
            "SELECT count(*) FROM documents('c.tadoc') a JOIN documents('c.tadoc') b \
             ON a.text = b.text",
            &of_all,
        ),
        ("COPY (SELECT doc_id, text FROM documents('c.tadoc')) TO 'x.parquet'", &of_all),
    ] {
        let ran = run_limited(&folder, sql, LIMIT_MIB);
        let answer = match ran.status {
            0 => ran.ok(),
            _ => run_limited(&folder, sql, named_limit(&ran.stderr)).ok(),
        };
        assert_eq!(answer.lines().nth(1), Some(rows), "{sql}");
    }
}

#[test]
fn long_answers_of_functions_are_refused_before_they_are_made() {
    let folder = new_folder();
    for sql in [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT cardinality(range(2000000000))",
        "SELECT length(lpad('x', value * 100000000)) FROM generate_series(1, 9)",
    ] {
        let ran = run_limited(&folder, sql, LIMIT_MIB);
        assert_eq!(ran.status, 1, "{sql}");
        assert!(ran.stderr.contains("so much memory is not left"), "{sql}: {}", ran.stderr);
    }
    let short = run_limited(&folder, "SELECT length(repeat('x', 20000000))", LIMIT_MIB).ok();
    assert_eq!(short.lines().nth(1), Some("20000000"));
}

#[test]
fn tables_of_long_cells_are_printed_in_little_memory() {
    let folder = new_folder();
    let sql = "SELECT value, repeat('all the world''s a stage\n', 16000) AS text, \
               encode(repeat('x', 16000), 'hex') AS hex FROM generate_series(1, 200)";
    let limit = format!("{LIMIT_MIB}MiB");
    let batches = "SET datafusion.execution.batch_size = 8";
    let arguments = ["sql", "-q", "--memory-limit", &limit, "-c", batches, "-c", sql];
    let (ran, peak_kib) = folder.run_measured(&arguments);
    assert!(peak_kib <= (LIMIT_MIB * 5 / 4 + 64) << 10, "{peak_kib} KiB");
    let table = ran.ok();
    assert_eq!(table.lines().count(), 44);
    assert!(table.len() < 44 * 400, "{} bytes", table.len());
}

/// Returns the limit in MiB that an error names.
fn named_limit(error: &str) -> u64 {
    let named = error.split_once("--memory-limit ").and_then(|(_, rest)| rest.split_once("MiB"));
    let (number, _) = named.unwrap_or_else(|| panic!("no limit is named: {error}"));
    number.parse().unwrap()
}
