//! Versions of living corpora, as statements read them.
//!
//! ```text
//! location ─▶ store ─ cache ─▶ view of a version ─▶ scan: ids, dropped ids, footers
//!                                        │ edits              │
//!                                        └─▶ snapshot ◀───────┘ once for each commit
//! ```
//!
//! All scans of a statement read the same version: the latest one at planning time, or the one that
//! the statement names (`reading`). Commits during the statement are not visible to it. Document
//! ids are those of the corpus; the ids of dropped documents are skipped.
//!
//! Reading order: `location` (of a living corpus), `view` (data of a version that a scan needs), `cache`
//! (known versions), `opening` (versions that are not known), `narrowing` (parts of corpora), `reading` (version that a statement reads),
//! `snapshot` (documents of a version), `paths` (only their paths). `write/living` changes them.

mod cache;
mod location;
mod narrowing;
mod opening;
mod paths;
mod reading;
mod snapshot;
mod view;

pub use cache::FoundCorpus;
pub(crate) use cache::LivingCache;
pub(crate) use location::LivingLocation;
pub(crate) use narrowing::ranges_of;
pub(crate) use opening::open_columns;
pub use opening::open_view;
pub(crate) use paths::PathTable;
pub(crate) use reading::Reading;
pub(crate) use snapshot::make_version;
pub use view::{LivingView, Narrowed};
pub(crate) use view::{explain_missing, no_versions, read_only};
