//! The processor time of a thread. Unlike elapsed time, it does not grow on a busy machine.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Returns the processor time of this thread so far. If the system does not report it, returns the
/// elapsed time.
pub fn busy_time() -> Duration {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = statistics.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| STARTED.elapsed(), Duration::from_nanos)
}
