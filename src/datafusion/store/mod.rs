//! Living corpora in SQL: one version for each statement, including all edits.
//!
//! ```text
//! location ─ place ─▶ store ─ cache ─▶ view of a version ─▶ scan: ids, dropped ids, footers
//!                                        │ edits              │
//!                                        └─▶ snapshot ◀───────┘ in `corpora`, once for each commit
//! "d$history", "d$segments", "d$edits" ─ catalog ─▶ tables
//!
//! INSERT INTO d ────────────▶ insert: rows to edits, or to a segment file ─────────┐
//! DELETE, UPDATE, TRUNCATE ─▶ statement: the query that finds the rows, kept whole ├▶ one commit
//! INSERT INTO "d$edits" ────▶     └▶ delete, update, edits_sink ▶ write: edits ────┘
//! ```
//!
//! All scans of a statement read the same version: the latest one at planning time, or the one that
//! the statement names (`reading`). Commits during the statement are not visible to it. Document
//! ids are those of the corpus; the ids of dropped documents are skipped.
//!
//! Reading order: `place` (locations of living corpora), `cache` (known versions), `view` (data of
//! a version that a scan needs), `reading` (version that a statement reads), `snapshot` (documents
//! of a version), `paths` (only their paths), `catalog` and `tables` (tables beside the documents),
//! `columns` (rows of these tables). Then the files that change a corpus: `create`, `insert`,
//! `statement`, `write`, `delete`, `update`, `edits_sink`, `recompress`.

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
