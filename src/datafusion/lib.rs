//! SQL on compressed text: corpora and GSST columns in DataFusion.
//!
//! ```text
//! SQL ─ planner ─▶ functions/… (bound arguments, no I/O) ─▶ scan: table ─▶ provider ─▶ exec ─▶ rows
//!       named args           CREATE EXTERNAL TABLE ─ write/factory ┘           │          ▲
//!       any case             COPY TO ─ write/file_format ─ write/sink          └ source ──┘
//! ```
//!
//! One call registers all of it:
//!
//! ```
//! use datafusion::prelude::*;
//!
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # let file = dir.path().join("plays.tadoc").display().to_string();
//! let ctx = SessionContext::new();
//! datafusion_tadoc::register_all(&ctx)?;
//!
//! let copy = format!("COPY (SELECT 'a.txt' AS path, 'to be or not to be' AS text) TO '{file}'");
//! ctx.sql(&copy).await?.collect().await?;
//! let query = format!("SELECT word, count FROM word_count('{file}') WHERE word IN ('be', 'or')");
//! let rows = ctx.sql(&query).await?.to_string().await?;
//! assert!(rows.contains("| be   | 2     |"));
//! # Ok(())
//! # }
//! ```
//!
//! Rooms, each of which names only those before it:
//!
//! | room | holds |
//! | --- | --- |
//! | `errors` | errors of the core as DataFusion's, secrets in texts, panics of libraries |
//! | [`throughput`] | the model of how fast text arrives, and rates of machines |
//! | `options` | everything under `SET tadoc.` |
//! | `source` | locations, files, footers, what is loaded and kept |
//! | `store` | living corpora: versions, and statements that change them |
//! | `placement` | cores or a device for a task |
//! | `scan` | the table, its filters, the plan's node, rows on their way out |
//! | `functions` | one table function a file, and the scalar functions |
//! | `portions` | corpora larger than memory |
//! | `gsst`, `parquet_files` | string columns in Parquet files, and Parquet files without any |
//! | `write` | `COPY TO` and `CREATE EXTERNAL TABLE` |
//! | `planner` | named arguments, depth of statements, the way out of mistakes |
//! | `session` | registers all of it |
//!
//! Questions and their statements: [`recipes`].

mod errors;
mod functions;
mod gsst;
mod options;
mod parquet_files;
mod placement;
mod planner;
mod portions;
pub mod recipes;
mod scan;
mod session;
mod source;
mod store;
pub mod throughput;
pub mod user_columns;
mod write;

pub use self::errors::{Secrets, contain_panics, contain_panics_of, mask_secrets, quiet_readers};
pub use self::functions::{find_signature, signatures};
pub use self::gsst::{GsstFormatFactory, GsstSource};
pub use self::options::{Device, TadocOptions};
pub use self::planner::{TadocRelationPlanner, check_statement_depth, way_out};
pub use self::scan::{
    Argument, ArgumentKind, Column, ColumnKind, Signature, TadocExec, TadocTable,
};
pub use self::session::{
    FILE_TYPE, GSST_FILE_TYPE, TadocSessionStateBuilderExt, expect_last_statement,
    is_opening_device, register_all,
};
pub use self::source::{FileAt, Found, Resolver, enough_memory};
pub use self::write::{TadocFormatFactory, TadocTableFactory};

/// The Rust examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeExamples;
