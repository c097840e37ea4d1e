//! Reads Parquet rows. The reader needs to seek, so other sources than plain files are first copied
//! to a temporary file.
//!
//! Rows are decoded in batches of about [`BATCH_BYTES`], according to the sizes in the file. Texts
//! are views into the pages, so a dictionary value that a thousand rows share is in memory once.
//! GSST columns are decoded, and have the names that they were written with.

use std::fs::File;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use gsst::parquet::{GsstParquetReader, ReadOptions, is_gsst_file};
use tadoc::containment::contain_panics;

use crate::BATCH_BYTES;
use crate::archives::seekable;
use crate::failure::{Failure, Outcome};
use crate::open::{Counts, Opened};
use crate::rows::Rows;

/// Maximum number of rows decoded at once.
const BATCH_ROWS: usize = 1024;

/// Reads the rows of one input. `column` is the name of the text column.
pub fn read(column: &str, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let file = rows.input.shown();
    let bad =
        |error: &(dyn std::error::Error + 'static)| Failure::with_cause(format!("{file}: no valid Parquet"), error);
    let file = seekable(&mut opened, rows.input)?;
    let file_bytes = file.metadata()?.len();
    let contained = |error: tadoc::Error| bad(&error);
    let metadata = contain_panics("footer", || metadata(column, &file)).map_err(contained)?;
    let metadata = metadata.map_err(|error| bad(&error))?;
    let batch_rows = batch_rows(metadata.metadata());
    let num_rows = u64::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or(0);
    let mut taken = Taken { column, file_bytes, num_rows, num_taken: 0 };
    if is_gsst_file(metadata.metadata()) {
        return read_gsst(file, batch_rows, &mut taken, rows);
    }
    rows.check_text_column(column, metadata.schema())?;
    rows.check_num_columns(metadata.schema())?;
    rows.check_time_column(metadata.schema())?;
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    let mask = if rows.options.keep_columns {
        ProjectionMask::all()
    } else {
        let names = reader.schema().fields().iter().map(|field| field.name().as_str());
        let needed = names.filter(|name| rows.needs(name, column));
        ProjectionMask::columns(reader.parquet_schema(), needed)
    };
    let reader = reader.with_batch_size(batch_rows).with_projection(mask);
    let batches = contain_panics("pages", || reader.build()).map_err(contained)?;
    let mut batches = batches.map_err(|error| bad(&error))?;
    while let Some(batch) = contain_panics("pages", || batches.next()).map_err(contained)? {
        taken.take(&batch.map_err(|error| bad(&error))?, rows)?;
    }
    Ok(())
}

/// Reads the rows of a file with GSST columns.
fn read_gsst(file: File, batch_rows: usize, taken: &mut Taken<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let name = rows.input.shown();
    let bad =
        |error: &(dyn std::error::Error + 'static)| Failure::with_cause(format!("{name}: no valid Parquet"), error);
    let contained = |error: tadoc::Error| bad(&error);
    let reader = contain_panics("footer", || GsstParquetReader::open(file)).map_err(contained)?;
    let reader = reader.map_err(|error| bad(&error))?;
    rows.check_text_column(taken.column, reader.schema())?;
    rows.check_time_column(reader.schema())?;
    let fields = reader.schema().fields().iter().enumerate();
    let is_kept = |name: &str| rows.options.keep_columns || rows.needs(name, taken.column);
    let kept = fields.filter(|(_, field)| is_kept(field.name()));
    let options = ReadOptions {
        projection: Some(kept.map(|(field_idx, _)| field_idx).collect()),
        batch_rows,
        text_as_views: true,
        ..ReadOptions::default()
    };
    for row_group_idx in 0..reader.num_row_groups() {
        let batches = reader.read_row_group(row_group_idx, &options);
        let mut batches = batches.map_err(|error| bad(&error))?;
        while let Some(batch) = contain_panics("pages", || batches.next()).map_err(contained)? {
            taken.take(&batch.map_err(|error| bad(&error))?, rows)?;
        }
    }
    Ok(())
}

/// Progress through the rows of a file.
struct Taken<'a> {
    /// Name of the text column.
    column: &'a str,
    file_bytes: u64,
    num_rows: u64,
    num_taken: usize,
}

impl Taken<'_> {
    /// Hands the rows of `batch` over.
    fn take(&mut self, batch: &RecordBatch, rows: &mut Rows<'_, '_>) -> Outcome {
        let share = |whole| share(whole, batch.num_rows() as u64, self.num_rows);
        let disk_bytes = share(rows.input.len_bytes);
        rows.sink.count_read(Counts { disk_bytes, text_bytes: share(self.file_bytes) });
        rows.take(self.column, batch, &|idx| format!("row {}", self.num_taken + idx + 1))?;
        self.num_taken += batch.num_rows();
        Ok(())
    }
}

/// Reads the metadata of `file`, with view types for the texts in `column`.
fn metadata(column: &str, file: &File) -> Result<ArrowReaderMetadata, ParquetError> {
    let metadata = ArrowReaderMetadata::load(file, ArrowReaderOptions::new())?;
    let fields = metadata.schema().fields().iter().map(|field| {
        let view = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            other => other.clone(),
        };
        if field.name() == column { Arc::new(field.as_ref().clone().with_data_type(view)) } else { Arc::clone(field) }
    });
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    // Not every schema is accepted. The schema of the file gives the same values.
    Ok(ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).unwrap_or(metadata))
}

/// Returns the number of rows that take about [`BATCH_BYTES`] in the row group with the largest
/// rows.
fn batch_rows(metadata: &ParquetMetaData) -> usize {
    let row_bytes = metadata.row_groups().iter().map(|group| {
        let (bytes, num_rows) = (group.total_byte_size(), group.num_rows());
        usize::try_from(bytes / num_rows.max(1)).unwrap_or(0)
    });
    (BATCH_BYTES / row_bytes.max().unwrap_or(0).max(1)).clamp(1, BATCH_ROWS)
}

/// Returns the part of `whole` for the progress bar, in proportion to the rows. Columns are read in
/// any order, but rows come in order.
fn share(whole: u64, num_rows: u64, all_rows: u64) -> u64 {
    (u128::from(whole) * u128::from(num_rows) / u128::from(all_rows.max(1))) as u64
}
