//! Living corpora in SQL: one version for each scan, with every edit.
//!
//! ```text
//! location ─ place ─▶ store ─ cache ─▶ view of a version ─▶ scan: ids, dropped ones, footers
//!                                        │ edits              │
//!                                        └─▶ snapshot ◀───────┘ in `corpora`, once for each commit
//! "d$history", "d$segments", "d$edits" ─ catalog ─▶ tables
//! ```
//!
//! A scan takes the latest version, or the one asked for, when it is made; whatever is committed while
//! it runs does not show in it. Ids are those of the corpus: the ids of dropped documents stay away.
//!
//! Reading order: `place` (where a living corpus may be), `cache` (which versions are known), `view`
//! (what a scan knows of one), `snapshot` (its documents), `catalog` and `tables` (what can be read of a living table beside its
//! documents), `columns` (the rows of those).

mod cache;
mod catalog;
mod columns;
mod place;
mod snapshot;
mod tables;
mod view;

pub(crate) use cache::{FoundCorpus, LivingCache};
pub(crate) use catalog::LivingCatalogs;
pub(crate) use place::LivingRoots;
pub(crate) use snapshot::make_version;
pub(crate) use view::{LivingView, explain_missing, no_versions};
