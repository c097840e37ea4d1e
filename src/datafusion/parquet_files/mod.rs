//! Plain Parquet files: DataFusion's own reader, with errors that name the file.
//!
//! ```text
//! CREATE EXTERNAL TABLE ─▶ format   schema and statistics, from footers      ┐  error ─▶ "reading x.parquet: …"
//! rows                  ─▶ scan     pages, in the streams of DataFusion      ┘  panic ─▶ the same
//! ```
//!
//! The libraries are made for whole files: on damaged ones their errors name none, and some panic. Both become errors
//! with the file here, for every session that has this package registered. Memory that lacks stays the error that it is.

mod format;
mod scan;

pub(super) use format::wrap_parquet_format;
pub(super) use scan::NameParquetFiles;

use std::future::Future;

use datafusion::error::{DataFusionError, Result};

use crate::errors::{contain_panics, contain_panics_of, datafusion_error};

/// What `work` on `file` returns, or an error that names the file.
fn contain<T>(file: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    match contain_panics(file, work) {
        Ok(done) => done.map_err(|error| named(file, error)),
        Err(panicked) => Err(datafusion_error(panicked)),
    }
}

/// The same for `work` that waits.
async fn contain_future<T>(file: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    match contain_panics_of(file, work).await {
        Ok(done) => done.map_err(|error| named(file, error)),
        Err(panicked) => Err(panicked),
    }
}

fn named(file: &str, error: DataFusionError) -> DataFusionError {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => error,
        _ => error.context(format!("reading {file}")),
    }
}
