//! GSST columns in Parquet files that any Parquet reader opens.
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
//! A *stretch* is consecutive rows of a row group of which every GSST column has one block, so that
//! rows found in one column are at the same place in the others.
//!
//! To Parquet a GSST column is `BYTE_ARRAY` with `DELTA_LENGTH_BYTE_ARRAY`, whose page is first all
//! lengths, then all bytes. Nulls are nulls. The first value of a row group that is not null is the
//! *run*: its blocks, one behind the other. Every other value is empty and costs next to nothing.
//! The field carries the Arrow extension type `tadoc.gsst`; the footer says where runs and blocks
//! lie, and their statistics. So
//!
//! - a run is contiguous, not compressed again and holds whole blocks: codes, splits and table of a
//!   device's work come with one range read, and as blocks are multiples of 16 bytes, all lie on
//!   such a boundary where the first does. Codes may have 12 bits, and a block's own checksum
//!   covers every byte of it;
//! - other readers read all ordinary columns, see the GSST column as binary, and count its nulls
//!   right. Who copies rows in their order keeps the run.
//!
//! Other forms lost on one of these: each row's codes as a value would show other readers something
//! per row, but something none can use without the table, at the price of padding codes of 12 bits
//! to bytes, storing the numbers of codes twice, and gathering each block from several places
//! before its checksum can be compared. Blocks outside of columns are lost when another program
//! rewrites the file, and make columns look smaller than they are to those who plan reads.
//!
//! Statistics of such bytes would prune wrongly, so Parquet keeps none for the column; the index
//! has those of decoded values per block.
//!
//! Limits: a row group ends when a run passes 64 MiB (pages have 32-bit lengths, and other readers
//! hold a value whole). Only top-level fields become GSST columns; files must not be encrypted.
//! Files without such a column read as plain Parquet. Reading is by ranges of anything that is a
//! `ChunkReader`; asynchronous readers take the ranges from [`GsstFooter`].
//!
//! Parquet has no checksum over footers, and pages of ordinary columns have none by default: damage
//! there can change names, types and ordinary values without a trace, or make the Parquet crate
//! panic, which is caught and is an error like others, or reserve 2 GiB for a page. A file that
//! another program rewrote is found out by places and checksums, and has to be written again.

use std::error::Error;
use std::panic::AssertUnwindSafe;

use parquet::errors::ParquetError;

use crate::error::Result;

mod column_writer;
mod footer;
mod given;
mod index;
mod metadata;
mod predicate;
mod read;
mod row_group;
mod statistics;
mod write;

pub use footer::GsstFooter;
pub use given::StretchMatches;
pub use index::{GsstColumn, GsstRowGroup, INDEX_KEY, Run, StoredBlock};
pub use metadata::{EXTENSION_NAME, GsstMetadata};
pub use predicate::{CodePredicate, CodeTest, RowFilter, RowTest};
pub use read::{GsstParquetReader, ReadOptions};
pub use row_group::RowGroupReader;
pub use statistics::{Bound, TextStatistics};
pub use write::{GsstColumns, GsstParquetOptions, GsstParquetWriter};

#[cfg(test)]
mod tests;

/// What `call` into the Parquet crate says; that crate panics on some damaged files.
fn guarded<T, E: Into<Box<dyn Error + Send + Sync>>>(
    what: &'static str,
    call: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    match std::panic::catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| crate::Error::external(what, error)),
        Err(_) => {
            Err(crate::Error::external(what, "the file is damaged; the Parquet crate gave up"))
        }
    }
}

/// An error of the crates below, with what was being done.
fn external(what: &'static str) -> impl Fn(ParquetError) -> crate::Error + Copy {
    move |error| crate::Error::external(what, error)
}
