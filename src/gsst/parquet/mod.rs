//! GSST columns in Parquet files. Every Parquet reader can open them and read their other columns.
//!
//! ```text
//! file       row group 0                  row group 1          footer
//!            ┌────────┬───────────────┐  ┌───────┬─────────┐  ┌──────────────────────────┐
//!            │ column │ GSST column   │  │  …    │   …     │  │ schema: Binary, marked   │
//!            │ as it  │ BYTE_ARRAY,   │  │       │         │  │ "tadoc.gsst" ─▶ index:   │
//!            │ was    │ not compressed│  │       │         │  │ runs, blocks, statistics │
//!            └────────┴───────┬───────┘  └───────┴─────────┘  └──────────────────────────┘
//!                             ▼
//! page       levels (nulls) │ lengths of the values │ block │ block │ block      one range read
//!                                                    └────── run ─────────┘
//! rows       ├─ stretch ─┤├─ stretch ─┤├─ stretch ─┤  a block for each GSST column and stretch
//! ```
//!
//! A *stretch* is a run of consecutive rows of a row group for which every GSST column has one
//! block. So the rows found in one column are at the same places in the others.
//!
//! To Parquet, a GSST column is `BYTE_ARRAY` with the encoding `DELTA_LENGTH_BYTE_ARRAY`, whose
//! page holds first all lengths, then all bytes. Nulls are nulls. The first value of a row group
//! that is not null is the *run*: all its blocks, one behind the other. Every other value is empty
//! and takes almost no space. The field carries the Arrow extension type `tadoc.gsst`. The footer
//! stores the places of runs and blocks, and their statistics. This layout has two consequences:
//!
//! - A run is contiguous, not compressed again, and holds whole blocks. One range read fetches the codes, splits and
//!   table for a device. Blocks are multiples of 16 bytes, so if the first one lies on such a boundary, all do. Codes
//!   may have 12 bits, and a block's own checksum covers every byte of it.
//! - Other readers read all ordinary columns, and see the GSST column as binary with another name:
//!   `level (tadoc GSST codes)` for `level`. So a query of `level` is an error there, and never an
//!   answer about codes. They count its nulls correctly.
//!
//! Other layouts fail on one of these points. If each row's codes were a value, other readers would see a value per
//! row, but none that they could use without the table. Codes of 12 bits would be padded to bytes, the numbers of codes
//! would be stored twice, and each block would have to be gathered from several places before its checksum could be
//! compared. Blocks outside of columns are lost when another program rewrites the file, and columns then look smaller
//! than they are to query planners.
//!
//! Statistics of the run's bytes would prune wrongly, so Parquet keeps none for the column. The
//! index has statistics of the decoded values per block.
//!
//! Limits: a row group ends when a run exceeds 64 MiB, because pages have 32-bit lengths and other
//! readers hold a whole value in memory. Only top-level fields become GSST columns. Files must not
//! be encrypted. Files without a GSST column are read as plain Parquet. The reader reads ranges of
//! any `ChunkReader`. Asynchronous readers take the ranges from [`GsstFooter`].
//!
//! Every byte that the reader uses is compared with a checksum before (CRC32C). Blocks have their own, the index has
//! those of the column chunks, and the footer has one of itself and of the page indexes. Damage is an error, and so is
//! a file that another program rewrote. Such a file has to be written again.
//!
//! Files of the first version of the index open too. There the GSST column has the name `level`, and only blocks and
//! the index have checksums. Files without an index are read as plain Parquet: damage there can change names, types and
//! values without a trace. Some of it makes the Parquet crate panic, which is caught and reported as an error.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow::array::{RecordBatch, StringArray};
//! use bytes::Bytes;
//! use gsst::Pattern;
//! use gsst::parquet::{
//!     CodePredicate, CodeTest, GsstParquetReader, GsstParquetWriter, ReadOptions,
//! };
//!
//! let lines = StringArray::from(vec!["to be", "or not", "to be"]);
//! let batch = RecordBatch::try_from_iter([("line", Arc::new(lines) as _)])?;
//! let mut writer = GsstParquetWriter::new(Vec::new(), batch.schema(), Default::default())?;
//! writer.write(&batch)?;
//! let reader = GsstParquetReader::open(Bytes::from(writer.finish()?))?;
//!
//! // The condition is tested on codes. Only rows that meet it are decoded.
//! let test = CodeTest::Like(Pattern::like("%not%", None));
//! let predicates = vec![CodePredicate { field_idx: 0, test, is_negated: false }];
//! let options = ReadOptions { predicates, ..ReadOptions::default() };
//! let found = reader.read_row_group(0, &options)?.next().ok_or("no rows")??;
//! assert_eq!(found, batch.slice(1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::error::Error;
use std::panic::AssertUnwindSafe;

use parquet::errors::ParquetError;

use crate::Result;

pub mod device;
mod index;
mod metadata;
mod read;
mod write;

pub use device::{CodePredicate, CodeTest, RowFilter, RowTest, StretchMatches};
pub use index::{BlockRun, Bound, GsstColumn, GsstRowGroup, INDEX_KEY, StoredBlock, TextStatistics};
pub use metadata::{ColumnTotals, EXTENSION_NAME, FooterSeal, GsstFooter, GsstMetadata, SEAL_KEY, is_gsst_file};
pub use read::{GsstParquetReader, ReadOptions, RowGroupReader};
pub use write::{GsstColumns, GsstParquetOptions, GsstParquetWriter, NUM_FIRST_ROWS};

#[cfg(test)]
mod stored_tests;
#[cfg(test)]
mod tests;

/// Calls into the Parquet crate and turns its panics into errors, since it panics on some damaged
/// files.
fn guarded<T, E: Into<Box<dyn Error + Send + Sync>>>(
    what: &'static str,
    call: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    match std::panic::catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| crate::Error::external(what, error)),
        Err(_) => Err(crate::Error::external(what, "the file is damaged; the Parquet crate gave up")),
    }
}

/// Returns a function that wraps a Parquet error with a description of the failed operation.
fn external(what: &'static str) -> impl Fn(ParquetError) -> crate::Error + Copy {
    move |error| crate::Error::external(what, error)
}
