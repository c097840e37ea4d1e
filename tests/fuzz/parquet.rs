//! Parquet files, plain ones and those with GSST columns, as tables: an error that names the file, or rows of which
//! those in columns that nobody touched are right.

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

/// Length of a footer and `PAR1`, at the end.
const TRAILER_BYTES: usize = 8;
/// The column of [`ROWS`] that GSST stores with checksums of its own.
const TEXT: &str = "text";
const ROWS: &str = "SELECT value AS n, repeat('some text ', value % 7) AS text, [value, 2] AS list, \
                    CAST(value AS VARCHAR) AS name FROM generate_series(1, 300)";

/// A whole file and what is in it.
struct Whole {
    /// In `STORED AS`.
    format: &'static str,
    file: Vec<u8>,
    /// Where the values of each column lie.
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
    // The columns that are fields of their own; a GSST column's values lie elsewhere.
    let columns = row_group.columns().iter().map(|column| {
        let (start, len) = column.byte_range();
        start as usize..(start + len) as usize
    });
    let end = file.len() - TRAILER_BYTES;
    let footer_len = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    let rows = rows_of_file(&engine, "whole", format).unwrap();
    Whole { format, columns: columns.collect(), footer: end - footer_len..end, file, rows }
}

/// All rows of `table.parquet`, each of them sound.
fn rows_of_file(engine: &Engine, table: &str, format: &str) -> Result<RecordBatch> {
    let location = format!("memory:///{table}.parquet");
    engine
        .rows(&format!("CREATE EXTERNAL TABLE {table} STORED AS {format} LOCATION '{location}'"))?;
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

/// A file of which one part is changed, and the column that is, where it is one alone.
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
            let (whole, other) = (random.pick(wholes), random.pick(wholes));
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

/// Compares what cannot have been changed: columns whose bytes are as they were where it is known which are not, and
/// those that have checksums.
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
