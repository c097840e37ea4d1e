//! Tests of inputs that would take time or memory out of proportion: they are read in linear time, or
//! refused by a limit with a name.

use std::io::Write;

use crate::archives::tar;
use crate::harness::{Folder, new_folder};

/// Rows of JSON with a key of its own in each row.
fn rows_with_new_keys(num_rows: usize) -> String {
    (0..num_rows).map(|idx| format!("{{\"body\":\"x\",\"c{idx}\":{idx}}}\n")).collect()
}

/// Ingests `arguments`, and returns the error.
fn refused(folder: &Folder, arguments: &[&str]) -> String {
    let ran = folder.run(&[&["ingest", "-q", "--force", "-o", "c.tadoc"], arguments].concat());
    assert_eq!(ran.status, 1, "{arguments:?}: {}", ran.stderr);
    ran.stderr
}

fn ingest(folder: &Folder, arguments: &[&str]) {
    folder.ok(&[&["ingest", "-q", "--force", "-o", "c.tadoc"], arguments].concat());
}

#[test]
fn columns_have_a_limit() {
    let folder = new_folder();
    folder.write("wide.jsonl", rows_with_new_keys(1001));
    let rows = ["wide.jsonl", "--documents", "jsonl:body"];
    let error = refused(&folder, &rows);
    assert!(error.contains("wide.jsonl: 1,002 columns") && error.contains("--max-columns"), "{error}");
    ingest(&folder, &[&rows[..], &["--no-columns"]].concat());
    assert_eq!(folder.table_rows("c.tadoc", "SELECT count(*) FROM d"), ["1001"]);
    ingest(&folder, &[&rows[..], &["--max-columns", "2000"]].concat());
    assert_eq!(folder.table_rows("c.tadoc", "SELECT c7 FROM d WHERE c7 > 0"), ["7"]);
}

#[test]
fn fields_of_structures_and_columns_of_other_files_count() {
    let folder = new_folder();
    let keys = |from: usize| -> String { (from..from + 600).map(|idx| format!(",\"k{idx}\":1")).collect() };
    folder.write("a.jsonl", format!("{{\"body\":\"x\"{}}}\n", keys(0)));
    folder.write("b.jsonl", format!("{{\"body\":\"x\"{}}}\n", keys(600)));
    ingest(&folder, &["a.jsonl", "--documents", "jsonl:body"]);
    let error = refused(&folder, &["a.jsonl", "b.jsonl", "--documents", "jsonl:body"]);
    assert!(error.contains("b.jsonl: 1,200 columns"), "{error}");

    let fields: String = (0..1100).map(|idx| format!(",\"k{idx}\":1")).collect();
    folder.write("c.jsonl", format!("{{\"body\":\"x\",\"s\":{{\"a\":1{fields}}}}}\n"));
    let error = refused(&folder, &["c.jsonl", "--documents", "jsonl:body"]);
    assert!(error.contains("c.jsonl: 1,102 columns"), "{error}");

    let names: String = (0..1100).map(|idx| format!(",c{idx}")).collect();
    folder.write("d.csv", format!("body{names}\nx{}\n", ",1".repeat(1100)));
    let error = refused(&folder, &["d.csv", "--documents", "csv:body"]);
    assert!(error.contains("d.csv: 1,101 columns"), "{error}");
    ingest(&folder, &["d.csv", "--documents", "csv:body", "--no-columns"]);
}

#[test]
fn empty_streams_of_bzip2_are_skipped() {
    let stream = |text: &[u8]| {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let empty = stream(b"");
    assert_eq!(empty.len(), 14);
    let many = empty.repeat(50_000);
    let folder = new_folder();
    let packed = [&many[..], &stream(b"one\n"), &many, &stream(b"two\n"), &many].concat();
    folder.write("a.log.bz2", &packed);
    ingest(&folder, &["a.log.bz2", "--documents", "lines"]);
    assert_eq!(folder.table_rows("c.tadoc", "SELECT text FROM d ORDER BY doc_id"), ["one", "two"]);
    folder.write("b.log.bz2", &packed[..packed.len() - 3]);
    let error = refused(&folder, &["b.log.bz2", "--documents", "lines"]);
    assert!(error.contains("bzip2 stream is cut or damaged"), "{error}");
    folder.write("c.log.bz2", [&stream(b"one\n")[..], b"garbage behind it"].concat());
    let error = refused(&folder, &["c.log.bz2", "--documents", "lines"]);
    assert!(error.contains("bzip2 stream is cut or damaged"), "{error}");
}

/// An archive whose member has a name of `len` bytes, as GNU tar writes it.
fn tar_with_long_name(len: usize) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut name = tar::Header::new_gnu();
    name.set_entry_type(tar::EntryType::GNULongName);
    name.set_size(len as u64);
    name.set_cksum();
    builder.append(&name, &vec![b'n'; len][..]).unwrap();
    let mut archive = builder.get_ref().clone();
    archive.extend(tar(&[("short.txt", b"text")]));
    archive
}

#[test]
fn names_and_paths_have_limits() {
    let folder = new_folder();
    folder.write("a.tar", tar_with_long_name(2 << 20));
    let error = refused(&folder, &["a.tar"]);
    assert!(error.contains("a name or attributes of 2097152 bytes"), "{error}");
    folder.write("b.tar", tar_with_long_name(70_000));
    let error = refused(&folder, &["b.tar"]);
    assert!(error.contains("documents have paths of 65536 at most"), "{error}");

    let path = format!("{}x.txt", "d/".repeat(3000));
    folder.write("c.jsonl", format!("{{\"body\":\"x\",\"path\":\"{path}\"}}\n"));
    ingest(&folder, &["c.jsonl", "--documents", "jsonl:body"]);
    let ran = folder.run(&["restore", "c.tadoc", "-o", "out"]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("has a path of more than 4096 bytes"), "{}", ran.stderr);
}
