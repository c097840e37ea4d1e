//! Versions of living corpora, as statements read them.
//!
//! ```text
//! location ─▶ store ─ cache ─▶ view of a version ─▶ scan: ids, dropped ids, footers
//!                                        │ edits              │
//!                                        └─▶ snapshot ◀───────┘ once for each commit
//! ```
//!
//! All scans of a statement read the same version: the latest one at planning time, or the one that the statement
//! names. Commits during the statement are not visible to it. Document ids are those of the corpus; the ids of dropped
//! documents are skipped.
//!
//! Reading order: `view` (data of a version that a scan needs), `found` (locations and known versions), `opening`
//! (versions that are not known, their paths and snapshots), `narrowing` (parts of corpora). `write/living` changes
//! them.

mod found;
mod narrowing;
mod opening;
mod view;

pub use found::FoundCorpus;
pub(crate) use found::{LivingCache, LivingLocation, Reading};
pub(crate) use narrowing::ranges_of;
pub use opening::open_view;
pub(crate) use opening::{PathTable, make_version, open_columns};
pub use view::{LivingView, Narrowed};
pub(crate) use view::{explain_missing, no_versions, read_only};
