//! Fuzz target for Parquet files as tables, plain ones and those with GSST columns. A mutant gives
//! an error that names the file, or rows whose unchanged columns are right.

use std::ops::Range;
use std::sync::LazyLock;

use bytes::Bytes;
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::error::Result;
use datafusion::parquet::file::metadata::ParquetMetaDataReader;
use testkit::malformed::mutations::changed_bytes;
use testkit::random::Random;

use super::statements::{Engine, refused, with_engine};
use super::target::{Input, Verdict, part_input};

/// Number of bytes of the footer length and `PAR1` at the end of a file.
const TRAILER_BYTES: usize = 8;
/// Name of the column of [`ROWS`] that GSST stores with its own checksums.
const TEXT: &str = "text";
const ROWS: &str = "SELECT value AS n, repeat('some text ', value % 7) AS text, [value, 2] AS list, \
                    CAST(value AS VARCHAR) AS name FROM generate_series(1, 300)";

/// An unchanged file and its content.
struct Whole {
    /// Name of the format in `STORED AS`.
    format: &'static str,
    file: Vec<u8>,
    /// Ranges of the values of each column.
    columns: Vec<Range<usize>>,
    footer: Range<usize>,
    rows: RecordBatch,
}

fn wholes() -> &'static [Whole] {
    static WHOLES: LazyLock<Vec<Whole>> = LazyLock::new(|| ["PARQUET", "GSST"].map(whole).into());
    &WHOLES
}

fn whole(format: &'static str) -> Whole {
    let engine = Engine::new();
    engine.rows(&format!("COPY ({ROWS}) TO 'memory:///whole.parquet' STORED AS {format}")).unwrap();
    let file = engine.get("whole.parquet");
    let footer = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(file.clone())).unwrap();
    let [row_group] = footer.row_groups() else { panic!("{} row groups", footer.num_row_groups()) };
    // Only columns that are fields of their own have ranges here. The values of a GSST column lie
    // elsewhere.
    let columns = row_group.columns().iter().map(|column| {
        let (start, len) = column.byte_range();
        start as usize..(start + len) as usize
    });
    let end = file.len() - TRAILER_BYTES;
    let footer_len = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    let rows = rows_of_file(&engine, "whole", format).unwrap();
    Whole { format, columns: columns.collect(), footer: end - footer_len..end, file, rows }
}

/// Returns all rows of `table.parquet` and validates their arrays.
fn rows_of_file(engine: &Engine, table: &str, format: &str) -> Result<RecordBatch> {
    let location = format!("memory:///{table}.parquet");
    engine.rows(&format!("CREATE EXTERNAL TABLE {table} STORED AS {format} LOCATION '{location}'"))?;
    let frame = engine.frame(&format!("SELECT * FROM {table}"));
    let rows = frame.and_then(|frame| {
        let schema = frame.schema().inner().clone();
        Ok((schema, engine.collect(frame)?))
    });
    engine.rows(&format!("DROP TABLE {table}"))?;
    let (schema, batches) = rows?;
    for column in batches.iter().flat_map(RecordBatch::columns) {
        column.to_data().validate_full().unwrap();
    }
    Ok(concat_batches(&schema, &batches)?)
}

pub fn file_seeds() -> Vec<Vec<u8>> {
    wholes().iter().enumerate().map(|(pick, whole)| part_input(pick, &whole.file)).collect()
}

/// Returns a file with one changed part, and the number of the column if only that column changed.
fn mutant(random: &mut Random, whole: &Whole, other: &Whole) -> (Vec<u8>, Option<usize>) {
    let num_columns = whole.columns.len();
    match random.below(num_columns + 3) {
        column if column < num_columns => {
            let range = whole.columns[column].clone();
            let mut file = whole.file.clone();
            let mut part = changed_bytes(random, &file[range.clone()], &other.file);
            part.resize(range.len(), 0);
            file[range].copy_from_slice(&part);
            (file, Some(column))
        }
        part if part == num_columns => (changed_bytes(random, &whole.file, &other.file), None),
        _ => {
            let footer = changed_bytes(random, &whole.file[whole.footer.clone()], &other.file);
            let len = (footer.len() as u32).to_le_bytes();
            let values = &whole.file[..whole.footer.start];
            ([values, &footer, &len, b"PAR1"].concat(), None)
        }
    }
}

pub fn file(input: &Input<'_>) -> Verdict {
    let wholes = wholes();
    let mut random = Random(input.number());
    let (whole, (file, damaged)) = match *input {
        Input::Part { pick, bytes } => (&wholes[pick % wholes.len()], (bytes.to_vec(), None)),
        Input::Number(_) => {
            let whole = random.pick(wholes);
            let other = random.pick(wholes);
            (whole, mutant(&mut random, whole, other))
        }
    };
    with_engine(|engine| {
        let table = format!("mutant{}", engine.num_statements());
        engine.put(&format!("{table}.parquet"), file);
        match rows_of_file(engine, &table, whole.format) {
            Err(error) => refused(&error, &[&format!("{table}.parquet")]),
            Ok(rows) => {
                check_rows(&rows, whole, damaged);
                Verdict::Answered
            }
        }
    })
}

/// Compares the columns that must be right: those with unchanged bytes if only one column changed,
/// and those with checksums.
fn check_rows(rows: &RecordBatch, whole: &Whole, damaged: Option<usize>) {
    let right = &whole.rows;
    let has_checksums = |name: &str| whole.format == "GSST" && name == TEXT;
    for (i, field) in right.schema().fields().iter().enumerate() {
        let is_right = match damaged {
            Some(column) => i != column || has_checksums(field.name()),
            None => rows.schema() == right.schema() && has_checksums(field.name()),
        };
        assert!(!is_right || rows.column(i) == right.column(i), "column {}", field.name());
    }
}
