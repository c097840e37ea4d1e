//! Reads Parquet rows. The reader needs to seek, so other sources than plain files are first copied
//! to a temporary file.
//!
//! Rows are decoded in batches of about [`BATCH_BYTES`], according to the sizes in the file. Texts
//! are views into the pages, so a dictionary value that a thousand rows share is in memory once.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::ParquetMetaData;

use datafusion_tadoc::contain_panics;

use super::BATCH_BYTES;
use super::archives::seekable;
use super::open::{Counts, Opened};
use super::rows::Rows;
use crate::failure::{Failure, Outcome};

/// Maximum number of rows decoded at once.
const BATCH_ROWS: usize = 1024;

/// Reads the rows of one input. `column` is the name of the text column.
pub fn read(column: &str, opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let file = rows.input.shown();
    let bad = |error: &(dyn std::error::Error + 'static)| {
        Failure::with_cause(format!("{file}: no valid Parquet"), error)
    };
    let file = seekable(opened, rows.input)?;
    let file_bytes = file.metadata()?.len();
    let contained = |error: tadoc::Error| bad(&error);
    let metadata = contain_panics("footer", || metadata(column, &file)).map_err(contained)?;
    let metadata = metadata.map_err(|error| bad(&error))?;
    rows.check_text_column(column, metadata.schema())?;
    rows.check_num_columns(metadata.schema())?;
    rows.check_time_column(metadata.schema())?;
    let batch_rows = batch_rows(metadata.metadata());
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    let mask = match rows.options.keep_columns {
        true => ProjectionMask::all(),
        false => {
            let names = reader.schema().fields().iter().map(|field| field.name().as_str());
            let needed = names.filter(|name| rows.needs(name, column));
            ProjectionMask::columns(reader.parquet_schema(), needed)
        }
    };
    let num_rows = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
    let reader = reader.with_batch_size(batch_rows).with_projection(mask);
    let mut row_idx = 0;
    let batches = contain_panics("pages", || reader.build()).map_err(contained)?;
    let mut batches = batches.map_err(|error| bad(&error))?;
    while let Some(batch) = contain_panics("pages", || batches.next()).map_err(contained)? {
        let batch = batch.map_err(|error| bad(&error))?;
        let share = |whole| share(whole, batch.num_rows() as u64, num_rows);
        let disk_bytes = share(rows.input.len_bytes);
        rows.sink.count_read(Counts { disk_bytes, text_bytes: share(file_bytes) });
        rows.take(column, &batch, &|idx| format!("row {}", row_idx + idx + 1))?;
        row_idx += batch.num_rows();
    }
    Ok(())
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
        match field.name() == column {
            true => Arc::new(field.as_ref().clone().with_data_type(view)),
            false => Arc::clone(field),
        }
    });
    let schema =
        Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata.schema().metadata().clone());
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
