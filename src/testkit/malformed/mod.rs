//! Corpus files that are damaged or written with bad intent.
//!
//! Reading order: `samples` (the valid files), `anatomy` (takes a file apart and seals it again),
//! `mutations` and `rewrite` (the changes), `answers` (questions to a file that still opens),
//! and [`busy_time`] (the time that the questions take).

pub mod anatomy;
pub mod answers;
pub mod mutations;
pub mod rewrite;
pub mod samples;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tadoc::format::OpenLimits;

/// Limits of opening a file in these tests.
pub const LIMITS: OpenLimits = OpenLimits { max_footer_bytes: 1 << 20, max_memory_bytes: 64 << 20 };

/// Returns the processor time of this thread so far. If the system does not report it, returns the
/// elapsed time.
pub fn busy_time() -> Duration {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = statistics.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| STARTED.elapsed(), Duration::from_nanos)
}
