//! Tests of inputs that are long or expand to long texts. They come back byte for byte, memory does
//! not grow with them, and errors about limits name the option to pass.

use std::fmt::Write as _;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;

use crate::harness::{gzip, new_folder, zstd};

/// Number of bytes that the reader hands over at once.
const BATCH_BYTES: usize = 4 << 20;
/// Options for blocks so small that a long input has many.
const BLOCK: [&str; 4] = ["--block-size", "1MiB", "--blocks-at-once", "1"];

/// Returns a line of text without a line end, longer than a batch.
fn long_text(seed: usize) -> String {
    // Long words make the build fast.
    let word = "x".repeat(500);
    let mut text = String::with_capacity(BATCH_BYTES + 1000);
    let mut idx = seed;
    while text.len() < BATCH_BYTES + seed {
        write!(text, "{word} {}, ", idx % 97).unwrap();
        idx += 1;
    }
    text
}

#[test]
fn long_files_and_lines_come_back() {
    let folder = new_folder();
    let one = long_text(7);
    let two = long_text(13);
    folder.write("in/one.txt", &one);
    folder.write("in/two.gz", gzip(two.as_bytes()));
    folder.write("in/three.txt", "short");
    folder.ok(&[&["ingest", "in", "-o", "c.tadoc"], &BLOCK[..]].concat());
    assert!(folder.cat("c.tadoc", "one.txt") == one.as_bytes());
    assert!(folder.cat("c.tadoc", "two.gz") == two.as_bytes());
    assert_eq!(folder.cat("c.tadoc", "three.txt"), b"short");
    assert!(folder.ok(&["info", "c.tadoc"]).contains("documents        3\n"));

    folder.write("log.txt", format!("first\n{one}\n\n{two}\nlast"));
    let lines = ["ingest", "log.txt", "--documents", "lines", "-o", "d.tadoc"];
    folder.ok(&[&lines[..], &BLOCK].concat());
    for (id, text) in ["first", &one, "", &two, "last"].into_iter().enumerate() {
        let got = folder.run(&["cat", "d.tadoc", "--doc-id", &id.to_string()]).stdout;
        assert!(got == text.as_bytes(), "{id}");
    }
}

/// Rows of CSV of more than a megabyte have every kind of line end, inside quotes and outside.
#[test]
fn long_rows_of_csv_come_back() {
    let folder = new_folder();
    let text = |row: usize| {
        let line = format!("row {row}, \"\"{}\"\"\r\nand\rmore\n", "quoted".repeat(100));
        line.repeat((1 << 20) / line.len() + row)
    };
    let mut csv = "id,text\r\n".to_owned();
    for row in 0..6 {
        let end = ["\n", "\r\n", "\r"][row % 3];
        write!(csv, "{row},\"{}\"{end}", text(row)).unwrap();
    }
    folder.write("rows.csv", csv);
    let ingest = ["ingest", "rows.csv", "--documents", "csv:text", "-o", "c.tadoc"];
    folder.ok(&[&ingest[..], &BLOCK].concat());
    for row in 0..6 {
        let got = folder.run(&["cat", "c.tadoc", "--doc-id", &row.to_string()]).stdout;
        assert!(got == text(row).replace("\"\"", "\"").as_bytes(), "{row}");
    }
    assert_eq!(folder.table_rows("c.tadoc", "SELECT sum(id) FROM d"), ["15"]);
}

#[test]
fn rows_are_bounded() {
    let folder = new_folder();
    let long = "x".repeat(5_000);
    let size = ["--max-row-size", "4KiB"];
    let too_large = |file: &str, place: &str| {
        format!(
            "{file}: {place} is larger than 4.1 kB; a row is held in memory as a whole: pass a \
             larger --max-row-size"
        )
    };
    let fails = |file: &str, kind: &str, place: &str| {
        let ingest = ["ingest", file, "--documents", kind, "-o", "c.tadoc", "--force"];
        folder.fails(&[&ingest[..], &size].concat(), &too_large(file, place));
        folder.ok(&ingest);
    };
    folder.write("a.jsonl", format!("{{\"t\":\"a\"}}\n{{\"t\":\"{long}\"}}\n{{\"t\":\"b\"}}\n"));
    fails("a.jsonl", "jsonl:t", "line 2");
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", &long]));
    let batch = RecordBatch::try_from_iter([("t", text)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    folder.write("a.parquet", writer.into_inner().unwrap());
    fails("a.parquet", "parquet:t", "row 3");
    // Bytes that came with the end of another row do not count, and these may fill a buffer.
    let long = "x".repeat(600_000);
    folder.write("a.csv", format!("t\na\n\"{long}\"\nb\n"));
    let ingest = ["ingest", "a.csv", "--documents", "csv:t", "-o", "c.tadoc", "--force"];
    folder.fails(
        &[&ingest[..], &size].concat(),
        "a.csv: no valid CSV: the quote that is opened on line 3 is not closed within 4.1 kB (--max-row-size); \
         close it, or pass --quote none where quotation marks are text",
    );
    folder.ok(&ingest);
    folder.write("b.csv", format!("t,{long}\na,b\n"));
    fails("b.csv", "csv:t", "the header");
    // This row is exactly as large as allowed.
    let fits = "x".repeat(4096 - 8);
    folder.write("b.jsonl", format!("{{\"t\":\"{fits}\"}}\n"));
    let ingest = ["ingest", "b.jsonl", "--documents", "jsonl:t", "-o", "d.tadoc"];
    folder.ok(&[&ingest[..], &size].concat());
}

#[test]
fn expansion_is_bounded() {
    let folder = new_folder();
    let text = vec![b' '; 65 << 20];
    folder.write("bomb.zst", zstd(&text));
    folder.write("bomb.gz", gzip(&text));
    for (file, codec) in [("bomb.zst", "zstd"), ("bomb.gz", "gzip")] {
        // The first block would be larger, so nothing is built before the limit is hit.
        let ingest = ["ingest", file, "-o", "c.tadoc"];
        let ran = folder.run(&ingest);
        let start = format!("error: {file}: the {codec} stream gives more than 1000 times its bytes (");
        let end = "); where that is right, pass a larger --max-expansion, or --no-decompress to store \
                   the bytes as they are\n";
        assert!(ran.stderr.starts_with(&start) && ran.stderr.ends_with(end), "{}", ran.stderr);
        assert_eq!((ran.status, folder.names().len()), (1, 2));
        folder.fails(
            &[&ingest[..], &["--max-expanded-size", "1MB"]].concat(),
            &format!(
                "{file}: the {codec} stream gives more than 1.0 MB; where that is right, pass a \
                 larger --max-expanded-size, or --no-decompress to store the bytes as they are"
            ),
        );
    }
    // The expansion ratio of a small file is not checked.
    folder.write("small.zst", zstd(&text[..1 << 20]));
    folder.ok(&["ingest", "small.zst", "-o", "c.tadoc"]);
    assert!(folder.cat("c.tadoc", "small.zst") == text[..1 << 20]);
}

/// This frame asks for a window of 256 MiB and holds five bytes.
#[test]
fn windows_of_zstd_are_bounded() {
    let folder = new_folder();
    let window_descriptor = (28 - 10) << 3;
    let last_raw_block_of_5 = [5 << 3 | 1, 0, 0];
    let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0, window_descriptor], &last_raw_block_of_5[..], b"hello"];
    folder.write("wide.zst", frame.concat());
    folder.fails(
        &["ingest", "wide.zst", "-o", "c.tadoc"],
        "wide.zst: the zstd stream needs a window of more than 134.2 MB of memory; pass a larger \
         --max-window, or --no-decompress to store the bytes as they are",
    );
    folder.ok(&["ingest", "wide.zst", "-o", "c.tadoc", "--max-window", "256MiB"]);
    assert_eq!(folder.cat("c.tadoc", "wide.zst"), b"hello");
}

#[test]
fn the_ratio_is_that_of_the_bytes_that_were_read() {
    let folder = new_folder();
    let row = format!("{{\"t\":\"tea for two\",\"other\":\"{}\"}}\n", "x".repeat(10_000));
    folder.write("a.jsonl", row.repeat(100));
    let ran = folder.run(&["ingest", "a.jsonl", "--documents", "jsonl:t", "-o", "c.tadoc"]);
    let file_bytes = std::fs::metadata(folder.join("c.tadoc")).unwrap().len();
    let first = ran.stderr.lines().next().unwrap();
    let start = "c.tadoc: 100 documents, 1.1 kB of text from 1.0 MB read, in ";
    assert!(first.starts_with(start), "{first}");
    let percent = 100.0 * file_bytes as f64 / (100 * row.len()) as f64;
    assert!(first.contains(&format!(" ({percent:.1} %)")), "{first}");
}

/// A user had a file of some kilobytes that holds one long line.
#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_a_document() {
    const LEN_BYTES: usize = 72 << 20;
    /// Less than the length of the line. Six batches and the blocks took 38 MiB.
    const MAX_MORE_KIB: u64 = 48 << 10;
    let folder = new_folder();
    folder.write("small.txt", "to be or not to be");
    // Words of a kilobyte make the build fast.
    let word = [b"x".repeat(1023), b" ".to_vec()].concat();
    let text = word.repeat(LEN_BYTES / word.len());
    folder.write("large.zst", zstd(&text));
    let peak_of = |input: &str| {
        let ingest = ["ingest", input, "-o", "c.tadoc", "--force", "--documents", "lines"];
        let more = ["--max-expansion", "1000000", "--device", "cpu", "--quiet"];
        folder.peak_kib(&[&ingest[..], &more, &BLOCK].concat())
    };
    let small = peak_of("small.txt");
    let large = peak_of("large.zst");
    println!("{large} KiB, {small} KiB for a small file");
    assert!(large < small + MAX_MORE_KIB, "{large} KiB, {small} KiB for a small file");
    let sum = folder.rows("SELECT count(*), sum(bytes) FROM documents('c.tadoc')");
    assert_eq!(sum, [format!("1,{}", text.len())]);
}
