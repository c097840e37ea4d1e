//! Statements that change living corpora, and the tables beside their documents.
//!
//! ```text
//! "d$history", "d$segments", "d$edits" ─ catalog ─▶ tables
//!
//! INSERT INTO d, COPY TO ───▶ insert: rows to edits, or to a segment file ─────────┐
//! DELETE, UPDATE, TRUNCATE ─▶ statement: the query that finds the rows, kept whole ├▶ one commit
//! INSERT INTO "d$edits" ────▶     └▶ update, edits_sink ▶ write: edits ────┘
//! ```
//!
//! `corpora/living` reads versions. Reading order: `tables` (tables beside the documents) and `catalog`. Then
//! the files that change a corpus: `create`, `write`, `insert`, `copy`, `update`, `edits_sink`, `statement`.

mod catalog;
mod copy;
mod create;
mod edits_sink;
mod insert;
mod statement;
mod tables;
mod update;
mod write;

pub(crate) use catalog::{CorpusOpener, LivingCatalogs};
pub use copy::{SegmentTarget, WriteSegmentsExec};
pub(crate) use copy::{check_outside_living, copy_into};
pub(crate) use create::{begin_if_asked, with_declared, with_hint};
pub(crate) use insert::insert_into;
pub(crate) use statement::LivingStatements;
