//! Parquet rows. The reader needs to seek, so other sources than plain files are copied to a
//! temporary file first.

use std::fs::File;
use std::io::{self, Seek};

use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::open::{Opened, open};
use super::rows::{PATH_COLUMN, Rows};
use crate::failure::{Failure, Outcome};
use crate::inputs::Source;

/// Rows decoded at once. Cells can be long texts, so this is small.
const BATCH_ROWS: usize = 1024;

/// Reads the rows of one input; `column` holds the text.
pub fn read(column: &str, rows: &mut Rows<'_, '_>) -> Outcome {
    let file = rows.input.shown();
    let bad = |error: &(dyn std::error::Error + 'static)| {
        Failure::with_cause(format!("{file}: no valid Parquet"), error)
    };
    let opened = open(rows.input, rows.options.decompress)?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(seekable(opened, rows)?)
        .map_err(|error| bad(&error))?;
    rows.check_text_column(column, reader.schema())?;
    let mask = match rows.options.keep_columns {
        true => ProjectionMask::all(),
        false => ProjectionMask::columns(reader.parquet_schema(), [column, PATH_COLUMN]),
    };
    let num_rows = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
    let reader = reader.with_batch_size(BATCH_ROWS).with_projection(mask);
    let mut row_idx = 0;
    for batch in reader.build().map_err(|error| bad(&error))? {
        let batch = batch.map_err(|error| bad(&error))?;
        let share = share(rows.input.len_bytes, batch.num_rows() as u64, num_rows);
        rows.sink.count_read(share);
        rows.take(column, &batch, &|idx| format!("row {}", row_idx + idx + 1))?;
        row_idx += batch.num_rows();
    }
    Ok(())
}

/// A part of `whole` for the progress bar: columns are read in any order, rows come in order.
fn share(whole: u64, num_rows: u64, all_rows: u64) -> u64 {
    (u128::from(whole) * u128::from(num_rows) / u128::from(all_rows.max(1))) as u64
}

fn seekable(mut opened: Opened, rows: &Rows<'_, '_>) -> Outcome<File> {
    if let (Source::File(path), None) = (&rows.input.source, opened.codec) {
        let is_plain = path.metadata().is_ok_and(|metadata| metadata.is_file());
        if let (true, Ok(file)) = (is_plain, File::open(path)) {
            return Ok(file);
        }
    }
    let copied = tempfile::tempfile().and_then(|mut file| {
        io::copy(&mut opened.reader, &mut file)?;
        file.rewind()?;
        Ok(file)
    });
    copied.map_err(|error| opened.failed(rows.input, &error))
}
