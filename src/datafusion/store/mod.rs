//! Living corpora in SQL: one version for each statement, with every edit.
//!
//! ```text
//! location ─ place ─▶ store ─ cache ─▶ view of a version ─▶ scan: ids, dropped ones, footers
//!                                        │ edits              │
//!                                        └─▶ snapshot ◀───────┘ in `corpora`, once for each commit
//! "d$history", "d$segments", "d$edits" ─ catalog ─▶ tables
//!
//! INSERT INTO d ────────────▶ insert: rows to edits, or to a segment file ─────────┐
//! DELETE, UPDATE, TRUNCATE ─▶ statement: the query that finds the rows, kept whole ├▶ one commit
//! INSERT INTO "d$edits" ────▶     └▶ delete, update, edits_sink ▶ write: edits ────┘
//! ```
//!
//! All scans of a statement take the same version, the latest when it is planned or the one asked for
//! (`reading`); whatever is committed while it runs does not show in it. Ids are those of the corpus: the ids of dropped documents stay away.
//!
//! Reading order: `place` (where a living corpus may be), `cache` (which versions are known), `view`
//! (what a scan knows of one), `reading` (which one a statement reads), `snapshot` (its documents) and `paths` (only what they
//! are called), `catalog` and `tables` (what can be read of
//! a living table beside its documents), `columns` (the rows of those); then what changes one: `create`,
//! `insert`, `statement`, `write`, and a file for each statement.

pub(crate) mod cache;
mod catalog;
mod columns;
mod create;
mod delete;
mod edits_sink;
mod insert;
mod paths;
mod place;
mod reading;
mod recompress;
mod snapshot;
mod statement;
mod tables;
mod update;
mod view;
mod write;

pub(crate) use cache::{FoundCorpus, LivingCache, open_files};
pub(crate) use catalog::LivingCatalogs;
pub(crate) use create::{begin_if_asked, with_declared, with_hint};
pub(crate) use insert::insert_into;
pub(crate) use paths::PathTable;
pub(crate) use place::{LivingPlace, LivingRoots};
pub(crate) use reading::Reading;
pub(crate) use snapshot::make_version;
pub(crate) use statement::LivingStatements;
pub(crate) use view::{LivingView, explain_missing, no_versions};
pub(crate) use write::{read_only, unfiltered};
