//! Statements that change living corpora, and the tables beside their documents.
//!
//! ```text
//! "d$history", "d$segments", "d$edits" ─▶ tables
//!
//! INSERT INTO d, COPY TO ───▶ insert: rows to edits, or to a segment file ─────────┐
//! DELETE, UPDATE, TRUNCATE ─▶ statement: the query that finds the rows, kept whole ├▶ one commit
//! INSERT INTO "d$edits" ────▶     └▶ changes: edits ────┘
//! ```
//!
//! `corpora/living` reads versions. Reading order: `tables` (tables beside the documents, and their names). Then the
//! files that change a corpus: `insert`, `copy`, `changes`, `statement`. `write/factory` creates one.

mod changes;
mod copy;
mod insert;
mod statement;
mod tables;

use datafusion::datasource::sink::DataSink;

pub use copy::{SegmentTarget, WriteSegmentsExec};
pub(crate) use copy::{check_outside_living, copy_into};
pub(crate) use insert::insert_into;
pub(crate) use statement::LivingStatements;
pub(crate) use tables::{CorpusOpener, LivingCatalogs};

/// Returns true if `sink` adds its rows to a living corpus, by one commit.
pub(super) fn commits_once(sink: &dyn DataSink) -> bool {
    sink.is::<insert::InsertSink>() || sink.is::<copy::SegmentsSink>()
}
