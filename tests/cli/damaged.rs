//! Damaged Parquet: an error that names the file, or the rows; never a panic.

use std::fs;

use crate::harness::Folder;

/// Copies of `bytes` with a few bytes changed, `num_each` in each of three parts of the file.
fn damaged(bytes: &[u8], num_each: usize) -> Vec<Vec<u8>> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
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

fn parquet_files(folder: &Folder) -> [&'static str; 2] {
    let rows = "SELECT value AS n, repeat('some text ', value % 7) AS text, [value, 2] AS list \
                FROM generate_series(1, 300)";
    folder.ok(&["sql", "-q", "-c", &format!("COPY ({rows}) TO 'plain.parquet'")]);
    folder.ok(&["sql", "-q", "-c", &format!("COPY ({rows}) TO 'gsst.parquet' STORED AS GSST")]);
    ["plain.parquet", "gsst.parquet"]
}

#[test]
fn damaged_parquet_is_an_error_or_an_answer() {
    let folder = Folder::new();
    for file in parquet_files(&folder) {
        let whole = fs::read(folder.join(file)).unwrap();
        let table = match file {
            "plain.parquet" => "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'x.parquet'",
            _ => "CREATE EXTERNAL TABLE t STORED AS GSST LOCATION 'x.parquet'",
        };
        for (number, bytes) in damaged(&whole, 5).iter().enumerate() {
            folder.write("x.parquet", bytes);
            let asked = ["sql", "-q", "-c", table, "-c", "SELECT * FROM t"];
            let taken = ["ingest", "x.parquet", "--force", "-q", "-o", "x.tadoc"];
            let taken = if file == "plain.parquet" { &taken[..] } else { &asked[..] };
            for arguments in [&asked[..], taken] {
                let ran = folder.run(arguments);
                assert!(!ran.stderr.contains("panicked"), "{file} {number}: {}", ran.stderr);
                assert!(!ran.stderr.contains("broke down"), "{file} {number}: {}", ran.stderr);
                assert!(
                    matches!(ran.status, 0 | 1),
                    "{file} {number}: {} {}",
                    ran.status,
                    ran.stderr
                );
            }
        }
    }
}
