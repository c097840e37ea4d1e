//! GSST columns in SQL: `COPY … TO 'x.parquet' STORED AS GSST` and tables `STORED AS GSST`.
//!
//! ```text
//! COPY, INSERT ─▶ format ─▶ sink ─▶ gsst::parquet ─▶ upload          ordinary Parquet files
//! SELECT ─▶ listing table ─▶ format ─▶ source ─▶ opener ─▶ rows      listing, partitions, statistics
//!                                        │          └ pruning, conditions, fetch, device
//!                                        └ filters and projection are taken over whole
//!                                          CPU or GPU: placement
//! ```
//!
//! A GSST table is one of DataFusion's listing tables whose files are read by this module: several
//! files, folders, globs, partition columns, object stores and file statistics work as for Parquet.
//! Files without GSST columns, and columns that are none, are plain Parquet.
//!
//! Reading order: [`format`](GsstFormatFactory), `sink`; `source`, `opener`, `footers`, `pruning`,
//! `conditions`; `file_scan`, `fetch`, `read_buffers`; `placement`, `device`, `device_matching`,
//! `device_rows`.

mod conditions;
mod counters;
mod device;
mod device_matching;
mod fetch;
mod file_scan;
mod footers;
mod format;
mod opener;
mod pruning;
mod read_buffers;
mod sink;
mod source;

pub use format::GsstFormatFactory;
pub use source::GsstSource;
