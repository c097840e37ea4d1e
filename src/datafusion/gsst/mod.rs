//! GSST columns in SQL: `COPY … TO 'x.parquet' STORED AS GSST` and tables `STORED AS GSST`.
//!
//! ```text
//! COPY, INSERT ─▶ format ─▶ sink ─▶ gsst::parquet ─▶ upload       ordinary Parquet files
//! SELECT ─▶ listing table ─▶ format ─▶ source ─▶ file_scan ─▶ rows   listing, partitions, statistics
//!                                        │          └ conditions, fetch, device
//!                                        └ takes whole filters and projections;
//!                                          CPU or GPU: datafusion::placement
//! ```
//!
//! A GSST table is a listing table of DataFusion whose files this module reads. Several files,
//! folders, globs, partition columns, object stores and file statistics work as for Parquet. Files
//! without GSST columns, and all other columns, are plain Parquet. Tables `STORED AS PARQUET` and
//! files that a statement names come here, too, if one of their files has GSST columns
//! (`parquet_files`).
//!
//! Reading order: [`format`](GsstFormatFactory), `sink`; `source`, `footers`, `conditions`; `file_scan`,
//! `fetch`.

mod conditions;
mod fetch;
mod file_scan;
mod footers;
mod format;
mod sink;
mod source;

pub(crate) use fetch::ReadBuffers;
pub(crate) use footers::PlainFiles;
pub use footers::{ColumnFacts, FileFacts};
pub(crate) use footers::{footer_with_text, statistics, table_schema};
pub use format::{GsstFormatFactory, gsst_format, gsst_options};
pub(crate) use format::{merged, scan_with_text};
pub use source::{GsstSource, PlannedFiles};
