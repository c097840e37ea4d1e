//! Living corpora in SQL: one version for each statement, including all edits.
//!
//! ```text
//! location ─▶ store ─ cache ─▶ view of a version ─▶ scan: ids, dropped ids, footers
//!                                        │ edits              │
//!                                        └─▶ snapshot ◀───────┘ in `corpora`, once for each commit
//! "d$history", "d$segments", "d$edits" ─ catalog ─▶ tables
//!
//! INSERT INTO d, COPY TO ───▶ insert: rows to edits, or to a segment file ─────────┐
//! DELETE, UPDATE, TRUNCATE ─▶ statement: the query that finds the rows, kept whole ├▶ one commit
//! INSERT INTO "d$edits" ────▶     └▶ delete, update, edits_sink ▶ write: edits ────┘
//! ```
//!
//! All scans of a statement read the same version: the latest one at planning time, or the one that
//! the statement names (`reading`). Commits during the statement are not visible to it. Document
//! ids are those of the corpus; the ids of dropped documents are skipped.
//!
//! Reading order: `location` (of a living corpus), `view` (data of a version that a scan
//! needs), `cache` (known versions), `opening` (versions that are not known), `reading` (version
//! that a statement reads), `snapshot` (documents of a version), `paths` (only their paths),
//! `columns` (rows of the tables beside the documents), `tables` and `catalog` (these tables),
//! `read_together` (one reading for all tables of a plan). Then the files that change a corpus:
//! `create`, `recompress`, `insert`, `spread_copy`, `copy`, `write`, `delete`, `update`, `edits_sink`, `statement`.

pub(crate) mod cache;
mod catalog;
mod columns;
mod copy;
mod create;
mod delete;
mod edits_sink;
mod insert;
mod location;
mod opening;
mod paths;
mod read_together;
mod reading;
mod recompress;
mod snapshot;
mod spread_copy;
mod statement;
mod tables;
mod update;
mod view;
mod write;

pub(crate) use cache::{FoundCorpus, LivingCache};
pub(crate) use catalog::{CorpusOpener, LivingCatalogs};
pub(crate) use copy::{check_outside_living, copy_into};
pub(crate) use create::{begin_if_asked, with_declared, with_hint};
pub(crate) use insert::insert_into;
pub(crate) use location::LivingLocation;
pub(crate) use opening::{open_columns, open_view};
pub(crate) use paths::PathTable;
pub(crate) use reading::Reading;
pub(crate) use snapshot::make_version;
#[cfg(feature = "distributed")]
pub(crate) use spread_copy::{SegmentTarget, WriteSegmentsExec};
pub(crate) use statement::LivingStatements;
pub(crate) use view::{LivingView, explain_missing, no_versions};
pub(crate) use write::{read_only, unfiltered};
