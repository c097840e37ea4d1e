//! Writes an Arrow array as a GSST column of a Parquet file, reads it back and filters it with SQL:
//! `cargo run --example gsst_from_arrow`.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use datafusion::prelude::SessionContext;
use gsst::parquet::{GsstParquetOptions, GsstParquetReader, GsstParquetWriter, ReadOptions};

/// Rows of the file.
const NUM_ROWS: i64 = 10_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A column of numbers and a column of text.
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..NUM_ROWS));
    let path = |id| format!("https://shop.example/item/{id}/reviews?page={}", id % 7);
    let urls: ArrayRef = Arc::new(StringArray::from_iter_values((0..NUM_ROWS).map(path)));
    let text_bytes: usize = (0..NUM_ROWS).map(|id| path(id).len()).sum();
    let batch = RecordBatch::try_from_iter([("id", ids), ("url", urls)])?;

    // The writer encodes all text columns, unless the options name some of them.
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("reviews.parquet");
    let options = GsstParquetOptions::default();
    let mut writer = GsstParquetWriter::new(File::create(&file)?, batch.schema(), options)?;
    writer.write(&batch)?;
    writer.finish()?;
    let file_bytes = std::fs::metadata(&file)?.len();
    println!("{text_bytes} bytes of text and {NUM_ROWS} numbers in a file of {file_bytes} bytes");
    assert!(file_bytes < text_bytes as u64 / 2);

    // A program reads the rows as they were.
    let reader = GsstParquetReader::open(File::open(&file)?)?;
    let mut batches = Vec::new();
    for row_group in 0..reader.num_row_groups() {
        for rows in reader.read_row_group(row_group, &ReadOptions::default())? {
            batches.push(rows?);
        }
    }
    assert_eq!(concat_batches(&batch.schema(), &batches)?, batch);

    // SQL filters the codes and decodes only the rows that are left.
    let ctx = SessionContext::new();
    datafusion_tadoc::register_all(&ctx)?;
    let location = file.display();
    ctx.sql(&format!("CREATE EXTERNAL TABLE reviews STORED AS GSST LOCATION '{location}'")).await?;
    let query = "SELECT id, url FROM reviews WHERE url LIKE '%/item/77_/%page=3' ORDER BY id";
    let rows = ctx.sql(query).await?.to_string().await?;
    println!("{query}\n{rows}");
    assert!(rows.contains("| 773 | https://shop.example/item/773/reviews?page=3 |"));
    Ok(())
}
