//! Corpus files that are damaged or written with bad intent.
//!
//! `samples`: the valid files. `anatomy`: a file taken apart and sealed again. `mutations` and `rewrite`: what is done
//! to it. `answers`: what it is asked when it opens all the same. `busy_time`: what that took.

pub mod anatomy;
pub mod answers;
pub mod busy_time;
pub mod mutations;
pub mod rewrite;
pub mod samples;

use tadoc::format::OpenLimits;

/// What opening may cost in these tests.
pub const LIMITS: OpenLimits = OpenLimits { max_footer_bytes: 1 << 20, max_memory_bytes: 64 << 20 };
