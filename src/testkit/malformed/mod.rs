//! Corpus files that are damaged or written with bad intent.
//!
//! Reading order: `samples` (the valid files), `anatomy` (takes a file apart and seals it again),
//! `mutations` and `rewrite` (the changes), `answers` (questions to a file that still opens),
//! and `busy_time` (the time that the questions take).

pub mod anatomy;
pub mod answers;
pub mod busy_time;
pub mod mutations;
pub mod rewrite;
pub mod samples;

use tadoc::format::OpenLimits;

/// Limits of opening a file in these tests.
pub const LIMITS: OpenLimits = OpenLimits { max_footer_bytes: 1 << 20, max_memory_bytes: 64 << 20 };
