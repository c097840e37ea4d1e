//! Time that a thread had a processor: on a busy machine a case takes no more of it.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Returns the time that this thread had a processor so far; where nobody says, the time that went by.
pub fn busy_time() -> Duration {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = statistics.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| STARTED.elapsed(), Duration::from_nanos)
}
