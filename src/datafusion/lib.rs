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
//! | `depth` | the depth of statements, conditions and types, before they are parsed |
//! | `dynamic_filters` | the evaluation of conditions, some of which joins compute |
//! | `planning` | the table, its filters, portions of large corpora, the plan node, and the output of rows |
//! | [`functions`] | the table functions, a file for each or for some of one idea, and the scalar functions |
//! | `write` | `COPY TO`, `CREATE EXTERNAL TABLE`, and statements that change living corpora |
//! | `gsst`, `parquet_files`, `text_files` | GSST columns in Parquet files, plain Parquet files, and text files |
//! | `precedence` | comparisons that the parser reads otherwise than SQL has them |
//! | `planner` | named arguments, conditions that DataFusion would move or compare wrongly, notices, hints for errors |
//! | `session`, [`TadocExtension`] | registration with a session |
//! | `multiplied` | memory of operators that repeat rows |
//! | `promises` | orders that files declare, and constants of outer joins, of which DataFusion promises too much |
//! | `equal_names` | filters above operators with several columns of one name |
//! | `stop` | joins that let others run, and can be stopped |
//! | [`travel`] | the interface for crates that send scans to other machines |
//!
//! [`recipes`] lists common questions and their SQL statements.

mod corpora;
mod depth;
mod dynamic_filters;
mod equal_names;
mod errors;
mod fields;
pub mod functions;
mod gsst;
mod multiplied;
mod options;
mod parquet_files;
mod placement;
mod plan_methods;
mod planner;
mod planning;
mod precedence;
mod promises;
pub mod safety;
mod session;
#[cfg(test)]
mod shown_rows;
mod stop;
mod text_files;
pub mod throughput;
pub mod user_columns;
mod write;

pub use self::corpora::{FileAt, Found, Resolver, is_memory_of_corpora, made_store, with_stores};
pub use self::depth::{check_statement_depth, check_type_depth};
pub use self::errors::{Secrets, contain_panics, contain_panics_of, mask_secrets, quiet_readers};
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
pub use self::session::{FILE_TYPE, GSST_FILE_TYPE, Parts, TadocExtension, TadocSessionStateBuilderExt, register_all};
pub use self::stop::{Stop, cooperative, stoppable};
pub use self::write::{TadocFormatFactory, TadocTableFactory, check_writable};
pub use ::gsst::parquet as gsst_parquet;

pub mod recipes {
    //! Questions about a corpus and the SQL statements that answer them: boilerplate, templates of log
    //! lines, growth of the vocabulary, phrases over time, keyness (of some documents against the rest,
    //! and of one collection against another), and neighbours of a word.
    //!
    //! The statements are those of `sql/examples/recipes.sql`. A test runs them on the corpus of
    //! `tadoc demo`. They work on every other corpus.
    //!
    //! ```
    //! # use datafusion::prelude::*;
    //! # #[tokio::main]
    //! # async fn main() -> datafusion::error::Result<()> {
    //! # let dir = tempfile::tempdir()?;
    //! # let file = dir.path().join("notes.tadoc").display().to_string();
    //! # let ctx = SessionContext::new();
    //! # datafusion_tadoc::register_all(&ctx)?;
    //! # let copy = format!("COPY (SELECT repeat('to be or not to be. ', 9) AS text) TO '{file}'");
    //! # ctx.sql(&copy).await?.collect().await?;
    //! // The neighbours of a word.
    //! let neighbours = format!(
    //!     "SELECT word2, count FROM cooccurrence('{file}', window => 2) WHERE word1 = 'be'"
    //! );
    //! let rows = ctx.sql(&neighbours).await?.to_string().await?;
    //! assert!(rows.contains("| to    | 26    |"), "{rows}");
    //! # Ok(())
    //! # }
    //! ```
    //!
    //! ```sql
    #![doc = include_str!("../../sql/examples/recipes.sql")]
    //! ```
}

pub mod travel {
    //! The interface for crates that send scans to other machines. Versions of this crate may change it at any time.
    //!
    //! ```text
    //! TadocExec, RunsExec, …  ─ facts ─▶ message ══▶ message ─ facts ─▶ the same nodes on another machine
    //! TadocTable ─ ResolvedTable ─▶ message ══▶ message ─ ResolvedTable ─▶ the same table on another machine
    //! ```
    //!
    //! The messages are those of the other crate. Here are the parts that it takes apart and puts together again. All
    //! engines share them: `datafusion-tadoc-distributed` has the messages, for its own workers and for Ballista.
    //!
    //! ```
    //! use datafusion_tadoc::travel::Texts;
    //!
    //! let texts = Texts::from_rows([("first", "to be")].into_iter());
    //! assert_eq!(texts.iter().next(), Some(("to be", "first".to_owned())));
    //! ```

    pub use crate::corpora::living::{FoundCorpus, Narrowed, open_view};
    pub use crate::corpora::location::{SourceFile, object_store, store_of};
    pub use crate::corpora::{CorpusCache, OpenFile, Source};
    pub use crate::errors::{datafusion_error, shown};
    pub use crate::functions::{AtWorker, CorpusFunction, bound_again, with_condition};
    pub use crate::gsst::{ColumnFacts, FileFacts, PlannedFiles, gsst_format, gsst_options};
    pub use crate::parquet_files::{NameParquetFiles, parquet_format, parquet_options};
    pub use crate::plan_methods::{leaf_methods, one_input_methods, same_rows_methods};
    pub use crate::planning::filter::{Filters, Stage};
    pub use crate::planning::function::BoundFunction;
    pub use crate::planning::long_rows::{BatchRowsExec, context_with};
    pub use crate::planning::parcels::Parcels;
    pub use crate::planning::portions::{
        JoinedLists, MergedRowsExec, PlannedRows, PortionFacts, PortionsExec, Run, RunsExec, WordNumbersExec,
    };
    pub use crate::planning::resolved::ResolvedTable;
    pub use crate::planning::table::ResolvedLocation;
    pub use crate::planning::{BatchRows, ScanSpec, Texts};
    pub use crate::promises::NullableRowsExec;
    pub use crate::text_files::{json_format, json_options};
    pub use crate::write::living::{SegmentTarget, WriteSegmentsExec};

    /// Returns true if nothing that `sink` writes is seen before all of it is written.
    pub fn shows_all_or_nothing(sink: &dyn datafusion::datasource::sink::DataSink) -> bool {
        crate::write::shows_all_or_nothing(sink) || crate::gsst::is_sink(sink)
    }
}

/// Rust examples of the README, which run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeExamples;
