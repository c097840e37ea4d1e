//! Tests of damaged Parquet files on the command line. The result is an error that names the file,
//! or rows that are the same for every way to ask for them. `tests/fuzz/main.rs` tries thousands of
//! such files in one process (`parquet_file`).

use std::fs;

use crate::harness::{Folder, Ran, new_folder};

/// Returns copies of `bytes` with a few changed bytes, `num_each` in each of three parts of the
/// file.
fn damaged(bytes: &[u8], num_each: usize) -> Vec<Vec<u8>> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let footer_len = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap()) as usize;
    let footer = bytes.len() - 8 - footer_len;
    let mut copies = Vec::new();
    for range in [4..footer, footer..bytes.len() - 8, 0..bytes.len()] {
        for _ in 0..num_each {
            let mut copy = bytes.to_vec();
            for _ in 0..1 + random(3) {
                copy[range.start + random(range.len())] = random(256) as u8;
            }
            copies.push(copy);
        }
    }
    copies.push(bytes[..bytes.len() / 2].to_vec());
    copies
}

fn parquet_files(folder: &Folder) -> [(&'static str, &'static str); 2] {
    let rows = "SELECT value AS n, repeat('some text ', value % 7) AS text, [value, 2] AS list \
                FROM generate_series(1, 300)";
    folder.ok(&["sql", "-q", "-c", &format!("COPY ({rows}) TO 'plain.parquet'")]);
    folder.ok(&["sql", "-q", "-c", &format!("COPY ({rows}) TO 'gsst.parquet' STORED AS GSST")]);
    [("PARQUET", "plain.parquet"), ("GSST", "gsst.parquet")]
}

/// Returns true if `ran` succeeded. Otherwise checks that the error names the damaged file and that
/// nothing panicked.
fn succeeded(ran: &Ran, what: &str) -> bool {
    let Ran { status, stderr, .. } = ran;
    assert!(!stderr.contains("panicked") && !stderr.contains("broke down"), "{what}: {stderr}");
    assert!(matches!(status, 0 | 1), "{what}: {status} {stderr}");
    assert!(*status == 0 || stderr.contains("x.parquet"), "{what} names no file: {stderr}");
    *status == 0
}

#[test]
fn damaged_parquet_is_an_error_that_names_the_file_or_an_answer() {
    let folder = new_folder();
    for (format, file) in parquet_files(&folder) {
        let whole = fs::read(folder.join(file)).unwrap();
        let table = format!("CREATE EXTERNAL TABLE t STORED AS {format} LOCATION 'x.parquet'");
        for (number, bytes) in damaged(&whole, 5).iter().enumerate() {
            let what = format!("{file} {number}");
            folder.write("x.parquet", bytes);
            let ask = |format: &str, sql: &str| folder.run(&["sql", "-q", "--format", format, "-c", &table, "-c", sql]);
            succeeded(&ask("table", "SELECT * FROM t"), &what);
            let text = ask("csv", "SELECT text FROM t");
            let documents = ["--documents", "parquet:text"];
            let ingest = ["ingest", "x.parquet", "--force", "-q", "-o", "x.tadoc"];
            let ingest = [&ingest[..], &documents].concat();
            if !succeeded(&text, &what) || !succeeded(&folder.run(&ingest), &what) {
                continue;
            }
            // Two readers must give one answer.
            let documents = "SELECT text FROM documents('x.tadoc') ORDER BY doc_id";
            let documents = folder.ok(&["sql", "-q", "--format", "csv", "-c", documents]);
            assert_eq!(String::from_utf8(text.stdout).unwrap(), documents, "{what}");
        }
    }
}
