//! User columns of several files as those of one: what `tadoc ingest` and recompression share.
//!
//! Columns meet by name. [`join_schemas`] says what type they then have, [`conform`] makes it of
//! theirs, [`merge_columns`] does both for the files of a living corpus, with what edits set over them
//! (`overlay`).

mod merge;
mod overlay;
mod types;

use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

pub use merge::merge_columns;
pub(crate) use overlay::{Overlay, check_tables, table_schema};
pub use types::{conform, join_schemas, storable};

/// How columns are compressed.
///
/// # Errors
/// None but of the Parquet library.
pub fn parquet_properties() -> Result<WriterProperties, ParquetError> {
    let level = ZstdLevel::try_new(3)?;
    Ok(WriterProperties::builder().set_compression(Compression::ZSTD(level)).build())
}
