//! Fuzz targets for GSST blocks and for the index of a Parquet file with such blocks. A mutant is
//! refused, or all ways to decode it give the same rows.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, BinaryViewArray, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData};
use gsst::parquet::{GsstFooter, GsstParquetOptions, GsstParquetReader, GsstParquetWriter, INDEX_KEY, ReadOptions};
use gsst::{Block, BlockOptions, CodeWidth, DecodedRows, Error, SealedBlock, write_block, write_block_with};
use testkit::random::Random;

use super::living::{changed, seeds_of};
use super::target::{Input, Verdict};

/// Start of the checked bytes of a block or an index, and offset of their checksum.
const CHECKED_FROM: usize = 8;
const CHECKSUM_AT: usize = 4;
/// Offset of the length of a block.
const BLOCK_LEN_AT: usize = 8;
/// Largest number of rows that are decoded one by one.
const MAX_ROWS: usize = 500;

/// Returns rows with nulls, empty rows, bytes that are not text, and repetitions.
fn rows() -> Vec<Option<Vec<u8>>> {
    let row = |i: usize| match i % 7 {
        0 => None,
        1 => Some(Vec::new()),
        2 => Some(vec![i as u8, 0xff, 0]),
        _ => Some(format!("http://host{}.example/a?b={i}", i % 3).into_bytes()),
    };
    (0..90).map(row).collect()
}

fn blocks() -> &'static [Vec<u8>] {
    static BLOCKS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let rows = rows();
        let all: Vec<Option<&[u8]>> = rows.iter().map(Option::as_deref).collect();
        let texts: Vec<Option<&[u8]>> = all.iter().copied().filter(Option::is_some).collect();
        let repeated = texts.repeat(20);
        let mut blocks = Vec::new();
        for width in [CodeWidth::Eight, CodeWidth::Twelve] {
            for rows in [&all[..], &texts, &repeated[..1_200], &[]] {
                for has_text_lengths in [false, true] {
                    let options = BlockOptions { has_text_lengths, split_codes: 512, ..BlockOptions::new(width) };
                    blocks.push(write_block(rows, &options).unwrap());
                }
            }
        }
        blocks
    });
    &BLOCKS
}

pub fn block_seeds() -> Vec<Vec<u8>> {
    seeds_of(blocks())
}

pub fn block(input: &Input<'_>) -> Verdict {
    let mut bytes = changed(input, blocks());
    // One in eight mutants keeps a wrong length.
    if bytes.len() >= BLOCK_LEN_AT + 4 && !Random(input.number()).one_in(8) {
        let len = bytes.len() as u32;
        bytes[BLOCK_LEN_AT..BLOCK_LEN_AT + 4].copy_from_slice(&len.to_le_bytes());
    }
    seal(&mut bytes);
    let sealed = SealedBlock::open(&bytes[..]);
    let block = match Block::open(&bytes[..]) {
        Ok(block) => block,
        Err(error) => return verdict(&error),
    };
    let sealed = sealed.unwrap();
    check_sealed(&block, &sealed);
    let decoded = block.decode_all();
    assert_eq!(decoded.offsets.len(), block.num_rows() + 1);
    let row_of = |row: usize| &decoded.text[decoded.offsets[row] as usize..decoded.offsets[row + 1] as usize];
    let rows: Vec<Option<&[u8]>> =
        (0..block.num_rows()).map(|row| (!block.is_null(row)).then(|| row_of(row))).collect();
    for (row, expected) in rows.iter().enumerate().take(MAX_ROWS) {
        let mut text = Vec::new();
        assert_eq!(block.decode_row(row, &mut text).unwrap(), expected.is_some());
        assert_eq!(text, expected.unwrap_or_default());
    }
    check_ranges(&block, &decoded);
    let options = BlockOptions { has_text_lengths: true, ..BlockOptions::new(block.width()) };
    match write_block_with(block.table(), &rows, &options) {
        Ok(again) => assert!(Block::open(&again[..]).unwrap().decode_all() == decoded),
        // Codes of 12 bits have no escapes. If a table lacks a byte, other cuts of the rows may
        // need that byte.
        Err(Error::InvalidArgument { .. }) if block.width() == CodeWidth::Twelve => {}
        Err(error) => panic!("{error}"),
    }
    Verdict::Answered
}

/// Compares the values that a device reads from the sealed block with those of the open block.
fn check_sealed(block: &Block<&[u8]>, sealed: &SealedBlock<&[u8]>) {
    for sealed in [sealed, &SealedBlock::from_valid(block)] {
        assert_eq!((sealed.num_rows(), sealed.num_nulls()), (block.num_rows(), block.num_nulls()));
        assert_eq!(sealed.num_codes(), block.num_codes());
        assert_eq!(sealed.text_len_bytes(), block.text_len_bytes());
        assert_eq!((sealed.width(), sealed.table()), (block.width(), block.table()));
        assert_eq!(1 << sealed.split_codes_log2(), block.split_codes());
        assert_eq!(sealed.num_splits(), block.splits().len());
        assert_eq!(sealed.has_text_lengths(), block.text_ends().is_some());
        assert_eq!((sealed.as_bytes(), sealed.validity()), (block.as_bytes(), block.validity()));
        let split = sealed.splits_offset()..sealed.splits_offset() + 4 * sealed.num_splits();
        let words = sealed.as_bytes()[split].chunks(4).map(|word| word.try_into().unwrap());
        assert!(words.map(u32::from_le_bytes).eq(block.splits()));
        let validity = sealed.validity_offset().map(|at| &sealed.as_bytes()[at..]);
        assert!(validity.zip(block.validity()).is_none_or(|(at, bits)| at.starts_with(bits)));
        assert!(!sealed.is_ascii() || block.decode_all().text.is_ascii());
    }
}

/// Checks that rows decoded in other ways are the same, and that rows out of range are refused.
fn check_ranges(block: &Block<&[u8]>, all: &DecodedRows) {
    let num_rows = block.num_rows();
    let start = num_rows / 3;
    let end = num_rows - num_rows / 4;
    let slice = |rows: Range<usize>| DecodedRows {
        text: all.text[all.offsets[rows.start] as usize..all.offsets[rows.end] as usize].to_vec(),
        offsets: all.offsets[rows.clone()]
            .iter()
            .chain([&all.offsets[rows.end]])
            .map(|offset| offset - all.offsets[rows.start])
            .collect(),
    };
    assert_eq!(block.decode_rows(start..end).unwrap(), slice(start..end));
    let selected: Vec<u32> = (start as u32..end as u32).collect();
    assert_eq!(block.decode_selected(&selected).unwrap(), slice(start..end));
    let mut text = Vec::new();
    block.decode_text(&mut text);
    assert_eq!(text, all.text);
    assert!(block.text_ends().is_none_or(|ends| ends == all.offsets));
    assert_eq!(block.code_ends().last().copied(), Some(block.num_codes() as u32));
    let is_refused = |error: Error| matches!(error, Error::OutOfRange { what: "row", .. });
    assert!(is_refused(block.decode_rows(0..num_rows + 1).unwrap_err()));
    assert!(is_refused(block.decode_row(num_rows, &mut text).unwrap_err()));
    assert!(is_refused(block.decode_selected(&[num_rows as u32]).unwrap_err()));
}

fn seal(bytes: &mut [u8]) {
    if bytes.len() >= CHECKED_FROM {
        let checksum = crc32c::crc32c(&bytes[CHECKED_FROM..]);
        bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// A Parquet file of two GSST columns and one of numbers, with its footer and the bytes of its
/// index.
struct ParquetSample {
    file: Bytes,
    footer: Arc<ParquetMetaData>,
    index: Vec<Vec<u8>>,
    num_rows: usize,
}

fn parquet_sample() -> &'static ParquetSample {
    static SAMPLE: LazyLock<ParquetSample> = LazyLock::new(|| {
        let text = |i: i64| (i % 5 != 0).then(|| format!("http://host{}.example/{i}", i % 3));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter(0..300));
        let texts: ArrayRef = Arc::new((0..300).map(text).collect::<StringArray>());
        let binary: ArrayRef = Arc::new((0..300).map(|i| Some(vec![i as u8, 0xff])).collect::<BinaryViewArray>());
        let columns = [("n", numbers), ("text", texts), ("binary", binary)];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let options = GsstParquetOptions::default();
        let mut writer = GsstParquetWriter::new(Vec::new(), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let file = Bytes::from(writer.finish().unwrap());
        let footer = GsstFooter::read(&file).unwrap().parquet().clone();
        let values = footer.file_metadata().key_value_metadata().unwrap();
        let value = values.iter().find(|value| value.key == INDEX_KEY).unwrap();
        let digits = value.value.as_ref().unwrap().as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let index = vec![digits.chunks(2).map(byte).collect()];
        ParquetSample { file, footer, index, num_rows: 300 }
    });
    &SAMPLE
}

pub fn index_seeds() -> Vec<Vec<u8>> {
    seeds_of(&parquet_sample().index)
}

/// Tries a file whose footer has the input as the index of GSST columns.
pub fn index(input: &Input<'_>) -> Verdict {
    let sample = parquet_sample();
    let mut bytes = changed(input, &sample.index);
    seal(&mut bytes);
    let footer = match GsstFooter::new(Arc::new(with_index(&sample.footer, &bytes))) {
        Ok(footer) => footer,
        Err(error) => return verdict_of(&error),
    };
    let reader = GsstParquetReader::with_footer(sample.file.clone(), footer);
    let mut num_rows = 0;
    for row_group_idx in 0..reader.num_row_groups() {
        let batches = match reader.read_row_group(row_group_idx, &ReadOptions::default()) {
            Ok(batches) => batches,
            Err(error) => return verdict_of(&error),
        };
        for batch in batches {
            match batch {
                Ok(batch) => num_rows += batch.num_rows(),
                Err(error) => return verdict_of(&error),
            }
        }
    }
    assert_eq!(num_rows, sample.num_rows);
    Verdict::Answered
}

/// Returns the verdict on an error that may also come from Parquet or Arrow. A caught panic in them
/// has no verdict.
fn verdict_of(error: &Error) -> Verdict {
    match error {
        Error::External { .. } => {
            assert!(!error.to_string().contains("panic"), "{error}");
            Verdict::Refused
        }
        error => verdict(error),
    }
}

/// Returns the verdict on a mutant that was refused with `error`.
fn verdict(error: &Error) -> Verdict {
    match error {
        Error::Checksum { .. } => Verdict::StoppedByChecksum,
        Error::Format { section: "footer", reason, .. } if reason.contains("from a copy") => Verdict::StoppedByChecksum,
        Error::Format { .. } | Error::Version { .. } | Error::Capacity { .. } => Verdict::Refused,
        other => panic!("an error of another kind: {other:?}"),
    }
}

fn with_index(footer: &ParquetMetaData, index: &[u8]) -> ParquetMetaData {
    let old = footer.file_metadata();
    let digits: String = index.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut values = old.key_value_metadata().cloned().unwrap_or_default();
    values.retain(|value| value.key != INDEX_KEY);
    values.push(KeyValue::new(INDEX_KEY.to_owned(), digits));
    let file = FileMetaData::new(
        old.version(),
        old.num_rows(),
        old.created_by().map(str::to_owned),
        Some(values),
        old.schema_descr_ptr(),
        old.column_orders().cloned(),
    );
    ParquetMetaData::new(file, footer.row_groups().to_vec())
}
