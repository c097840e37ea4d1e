//! Tests of Avro: files of every codec, and damaged ones.

use std::sync::Arc;

use arrow_avro::compression::CompressionCodec;
use arrow_avro::writer::WriterBuilder;
use arrow_avro::writer::format::AvroOcfFormat;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use crate::harness::{Folder, gzip, new_folder};

const INGEST: [&str; 7] = ["ingest", "x.avro", "--documents", "avro:body", "-o", "c.tadoc", "--force"];

/// Returns the rows from `first` on. The text of row 3 is null.
fn batch(first: i64, num_rows: i64) -> RecordBatch {
    let ids = first..first + num_rows;
    let texts = ids.clone().map(|id| (id != 3).then(|| format!("row {id} says the same words again")));
    let texts: ArrayRef = Arc::new(StringArray::from_iter(texts));
    let paths: ArrayRef = Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("p/{id}"))));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    let columns = [("body", texts), ("path", paths), ("n", numbers)];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

/// Returns the rows 0 to 2,504 in blocks of different sizes.
fn file(codec: Option<CompressionCodec>) -> Vec<u8> {
    let batches = [batch(0, 5), batch(5, 2_500)];
    let schema = batches[0].schema().as_ref().clone();
    let builder = WriterBuilder::new(schema).with_compression(codec);
    let mut writer = builder.build::<_, AvroOcfFormat>(Vec::new()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner()
}

#[test]
fn files_of_every_codec_keep_their_columns() {
    let folder = new_folder();
    let command = [&INGEST[..], &["--allow-missing"]].concat();
    let codecs = [
        None,
        Some(CompressionCodec::Deflate),
        Some(CompressionCodec::Snappy),
        Some(CompressionCodec::ZStandard),
        Some(CompressionCodec::Bzip2),
        Some(CompressionCodec::Xz),
    ];
    for codec in codecs {
        let bytes = file(codec);
        for bytes in [gzip(&bytes), bytes] {
            folder.write("x.avro", bytes);
            folder.ok(&command);
            let sql = "SELECT count(*) AS rows, sum(n) AS n, sum(words) AS words FROM d";
            assert_eq!(folder.table_rows("c.tadoc", sql), ["2505,3136260,17528"], "{codec:?}");
            assert_eq!(folder.cat("c.tadoc", "p/2504"), b"row 2504 says the same words again");
            assert_eq!(folder.cat("c.tadoc", "p/3"), b"");
        }
    }
}

/// Fails with an error that has `text`, and leaves no file.
#[track_caller]
fn refused(folder: &Folder, bytes: &[u8], options: &[&str], text: &str) {
    folder.write("x.avro", bytes);
    let ran = folder.run(&[&INGEST[..], options].concat());
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains(text), "{}", ran.stderr);
    assert_eq!(folder.names(), ["x.avro"]);
}

fn number(value: i64) -> Vec<u8> {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    let mut bytes = Vec::new();
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

fn text(value: &str) -> Vec<u8> {
    [number(value.len() as i64), value.as_bytes().to_vec()].concat()
}

/// Returns a file of texts with one block, which says that it has `num_rows` rows and `len_bytes` bytes.
fn lying(codec: &str, num_rows: i64, len_bytes: Option<i64>, block: &[u8]) -> Vec<u8> {
    let schema = r#"{"type": "record", "name": "r", "fields": [{"name": "body", "type": "string"}]}"#;
    let len = number(len_bytes.unwrap_or(block.len() as i64));
    [
        b"Obj\x01".to_vec(),
        number(2),
        text("avro.schema"),
        text(schema),
        text("avro.codec"),
        text(codec),
        number(0),
        vec![7; 16],
        number(num_rows),
        len,
        block.to_vec(),
        vec![7; 16],
    ]
    .concat()
}

#[test]
fn damaged_files_are_refused_with_a_reason() {
    let folder = new_folder();
    let whole = file(None);
    refused(&folder, &whole, &[], "x.avro: row 4: `body` is missing or null");
    refused(&folder, b"PAR1 or so", &[], "no Avro: expected a file that begins with `Obj`");
    refused(&folder, b"", &[], "the header is cut");
    let rows = [text("one"), text("two")].concat();
    refused(&folder, &lying("null", 1, None, &rows), &[], "block 1: 4 bytes follow its rows");
    refused(&folder, &lying("null", 3, None, &rows), &[], "block 1: it is cut: 1 rows are missing");
    refused(&folder, &lying("null", i64::MAX, None, &[]), &[], "rows are missing");
    refused(&folder, &lying("null", -1, None, &rows), &[], "a block has below 0 rows");
    refused(&folder, &lying("null", 2, Some(1 << 40), &rows), &[], "pass a larger --max-row-size");
    refused(&folder, &lying("null", 2, Some(1 << 20), &rows), &[], "the file is cut");
    refused(&folder, &lying("lzo", 2, None, &rows), &[], "the codec is \"lzo\", expected null, deflate");
    refused(&folder, &lying("snappy", 2, None, &rows[..3]), &[], "the checksum is missing");
    refused(&folder, &lying("deflate", 2, None, &rows), &[], "x.avro: no valid Avro: block 1");
    folder.write("x.avro", lying("null", 2, None, &rows));
    folder.ok(&INGEST);
    assert_eq!(folder.table_rows("c.tadoc", "SELECT text FROM d ORDER BY doc_id"), ["one", "two"]);
}

#[test]
fn blocks_unpack_within_limits() {
    let folder = new_folder();
    let long = text(&"a".repeat(80 << 20));
    let packed = zstd::encode_all(long.as_slice(), 3).unwrap();
    let bomb = lying("zstandard", 1, None, &packed);
    refused(&folder, &bomb, &[], "pass a larger --max-expansion");
    let larger = ["--max-expansion", "100000"];
    let small = [&larger[..], &["--max-row-size", "1MiB"]].concat();
    refused(&folder, &bomb, &small, "pass a larger --max-row-size");
    folder.ok(&[&INGEST[..], &larger].concat());
    assert_eq!(folder.cat("c.tadoc", "x.avro").len(), 80 << 20);
}

/// Every cut and every changed byte gives an error or rows, and no panic.
#[test]
fn damage_anywhere_is_no_panic() {
    let folder = new_folder();
    let options = [&INGEST[..], &["--allow-missing", "--quiet"]].concat();
    for codec in [None, Some(CompressionCodec::Snappy)] {
        let whole = file(codec);
        for at in (0..whole.len()).step_by(whole.len() / 30).chain(0..60) {
            let mut changed = whole.clone();
            changed[at] ^= 0x55;
            for bytes in [&whole[..at], &changed] {
                folder.write("x.avro", bytes);
                let ran = folder.run(&options);
                let text = &ran.stderr;
                assert!(ran.status <= 1 && !text.contains("panicked"), "byte {at}: {text}");
            }
        }
    }
}
