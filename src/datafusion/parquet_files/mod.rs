//! Parquet files by any name: DataFusion's own reader, with errors that name the file, and the
//! reader of GSST columns where a file has some.
//!
//! ```text
//! CREATE EXTERNAL TABLE ─▶ format   schema, statistics: footers  ┐ error ─▶ "reading x.parquet: …"
//!                          │ └ a file with GSST columns ─▶ gsst  │ panic ─▶ the same
//! rows                  ─▶ scan     pages, as DataFusion streams ┘
//! ```
//!
//! The libraries expect intact files. On damaged files their errors do not name the file, and some
//! panic. This module converts both to errors that name the file, for every session in which this
//! package is registered. Errors about exhausted memory stay unchanged.

mod format;
mod scan;

pub(super) use format::wrap_parquet_format;
pub use format::{parquet_format, parquet_options};
pub use scan::NameParquetFiles;

use std::future::Future;

use datafusion::error::{DataFusionError, Result};

use crate::errors::{contain_panics, contain_panics_of, datafusion_error};

/// Returns the result of `work` on `file`, or an error that names the file.
fn contain<T>(file: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    match contain_panics(file, work) {
        Ok(done) => done.map_err(|error| named(file, error)),
        Err(panicked) => Err(datafusion_error(panicked)),
    }
}

/// Variant of [`contain`] for a future.
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
