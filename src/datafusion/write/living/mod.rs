//! Statements that change living corpora, and the tables beside their documents.
//!
//! ```text
//! "d$history", "d$segments", "d$edits" ─ catalog ─▶ tables
//!
//! INSERT INTO d, COPY TO ───▶ insert: rows to edits, or to a segment file ─────────┐
//! DELETE, UPDATE, TRUNCATE ─▶ statement: the query that finds the rows, kept whole ├▶ one commit
//! INSERT INTO "d$edits" ────▶     └▶ delete, update, edits_sink ▶ write: edits ────┘
//! ```
//!
//! `corpora/living` reads versions. Reading order: `columns` (rows of the tables beside the documents), `tables`
//! and `catalog` (these tables), `read_together` (one reading for all tables of a plan). Then the files that change
//! a corpus: `create`, `recompress`, `unique`, `insert`, `spread_copy`, `copy`, `write`, `delete`, `update`,
//! `edits_sink`, `statement`.

mod catalog;
mod columns;
mod copy;
mod create;
mod delete;
mod edits_sink;
mod insert;
mod read_together;
mod recompress;
mod spread_copy;
mod statement;
mod tables;
mod unique;
mod update;
mod write;

pub(crate) use catalog::{CorpusOpener, LivingCatalogs};
pub(crate) use copy::{check_outside_living, copy_into};
pub(crate) use create::{begin_if_asked, with_declared, with_hint};
pub(crate) use insert::insert_into;
pub use spread_copy::{SegmentTarget, WriteSegmentsExec};
pub(crate) use statement::LivingStatements;
