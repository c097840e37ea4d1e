//! User columns of several files as columns of one file, for `tadoc ingest` and recompression.
//!
//! Columns are matched by name. [`join_schemas`] finds their common types, and [`conform`] casts
//! values to them. [`merge_columns`] does both for the files of a living corpus, including the
//! values that edits set (`overlay`).
//!
//! ```
//! use std::sync::Arc;
//!
//! use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
//! use datafusion::arrow::datatypes::{DataType, Field, Schema};
//! use datafusion_tadoc::user_columns::{conform, join_schemas};
//!
//! // One file has numbers, the other one has text.
//! let schema = |data_type| Schema::new(vec![Field::new("year", data_type, true)]);
//! let joined = join_schemas(&schema(DataType::Int64), &schema(DataType::Utf8))?;
//! assert_eq!(joined, schema(DataType::Utf8));
//!
//! let numbers: ArrayRef = Arc::new(Int64Array::from(vec![2024]));
//! let texts = conform(&numbers, joined.field(0).data_type())?;
//! assert_eq!(texts.as_string::<i32>().value(0), "2024");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod merge;
mod overlay;
mod types;

use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

pub use merge::merge_columns;
pub(crate) use overlay::{Overlay, check_tables, table_schema};
pub(crate) use types::join_types;
pub use types::{conform, join_rows, join_schemas, storable};

/// Returns the Parquet properties with which user columns are written.
///
/// # Errors
/// Errors of the Parquet library only.
pub fn parquet_properties() -> Result<WriterProperties, ParquetError> {
    let level = ZstdLevel::try_new(3)?;
    Ok(WriterProperties::builder().set_compression(Compression::ZSTD(level)).build())
}
