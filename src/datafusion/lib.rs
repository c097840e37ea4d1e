//! SQL on compressed text: corpora and GSST columns in DataFusion.
//!
//! ```text
//! SQL ─ planner ─▶ functions/… (bound arguments, no I/O) ─▶ planning: table ─▶ provider ─▶ exec ▶ rows
//!       named args           CREATE EXTERNAL TABLE ─ write/factory ┘               │          ▲
//!       any case             COPY TO ─ write/file_format                           └ corpora ─┘
//! ```
//!
//! One call registers everything:
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
//! Modules, roughly in order of dependency:
//!
//! | module | contents |
//! | --- | --- |
//! | `errors` | conversion of the core's errors, masking of secrets |
//! | [`throughput`] | the model of how fast text arrives, and rates of machines |
//! | `options` | the settings under `SET tadoc.` |
//! | [`safety`] | safe mode: the one door to storage, and the statements that are allowed |
//! | `placement` | the choice between cores and a device for a task |
//! | `fields` | patterns that say where the fields of a text are |
//! | [`user_columns`] | columns that users add to documents |
//! | `corpora` | locations, files, footers, versions of living corpora, and the cache of loaded corpora |
//! | `statement_depth` | the depth of statements and conditions, before they are parsed |
//! | `planning` | the table, its filters, portions of large corpora, the plan node, and the output of rows |
//! | `functions` | one file for each table function, and the scalar functions |
//! | `write` | `COPY TO`, `CREATE EXTERNAL TABLE`, and statements that change living corpora |
//! | `gsst`, `parquet_files`, `text_files` | GSST columns in Parquet files, plain Parquet files, and text files |
//! | `planner` | named arguments, notices, hints for errors |
//! | `session`, [`TadocExtension`] | registration with a session |
//! | `declared_orders` | the check of the order that a table declares |
//! | `multiplied` | memory of operators that repeat rows |
//! | `outer_joins` | constants of outer joins, of which DataFusion promises too much |
//! | `stop` | joins that let others run, and can be stopped |
//! | [`travel`] | the interface for crates that send scans to other machines |
//!
//! [`recipes`] lists common questions and their SQL statements.

mod corpora;
mod declared_orders;
mod disk_paths;
mod errors;
mod extension;
mod fields;
mod file_scans;
pub mod functions;
mod gsst;
mod multiplied;
mod options;
mod outer_joins;
mod parquet_files;
mod placement;
mod plan_methods;
mod planner;
mod planning;
pub mod recipes;
pub mod safety;
mod session;
mod statement_depth;
mod stop;
mod text_files;
pub mod throughput;
pub mod travel;
mod type_depth;
pub mod user_columns;
mod write;

pub use self::corpora::{FileAt, Found, Resolver, is_memory_of_corpora, made_store, with_stores};
pub use self::errors::{Secrets, contain_panics, contain_panics_of, mask_secrets, quiet_readers};
pub use self::extension::{Parts, TadocExtension};
pub use self::functions::{bound_functions, charge_calls, find_signature, fold_little, is_memory_of_calls, signatures};
pub use self::gsst::{GsstFormatFactory, GsstSource};
pub use self::multiplied::asking;
pub use self::options::{Device, TadocOptions};
pub use self::placement::DeviceSession;
pub use self::planner::{
    TadocRelationPlanner, check_clauses, check_parameters, explain_missing_table, notices, plan_statement, way_out,
};
pub use self::planning::{
    Argument, ArgumentKind, Column, ColumnKind, Signature, Spreading, TadocExec, TadocTable, enough_memory,
};
pub use self::session::{FILE_TYPE, GSST_FILE_TYPE, TadocSessionStateBuilderExt, register_all};

pub use self::statement_depth::check_statement_depth;
pub use self::stop::{Stop, cooperative, stoppable};
pub use self::type_depth::check_type_depth;
pub use self::write::{TadocFormatFactory, TadocTableFactory, check_writable};
pub use ::gsst::parquet as gsst_parquet;

/// Rust examples of the README, which run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeExamples;
