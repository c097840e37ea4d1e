//! Arguments of the scheduler and the executor, and warnings of Ballista on the standard error, which tells
//! clients less than it logs.

use std::sync::Arc;
use std::time::Duration;

use datafusion::error::Result;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion_tadoc_ballista::datafusion_tadoc::safety::{Permission, Sandbox};
use log::{LevelFilter, Log, Metadata, Record};

/// Returns a runtime that reads `roots` and nothing else, or `None` without roots.
pub fn guarded(roots: impl Iterator<Item = String>) -> Result<Option<Arc<RuntimeEnv>>> {
    let mut sandbox = Sandbox::default().permit(Permission::ReadText);
    let mut has_roots = false;
    for root in roots {
        (sandbox, has_roots) = (sandbox.allow(&root)?, true);
    }
    if has_roots { sandbox.guard(RuntimeEnvBuilder::new()).build_arc().map(Some) } else { Ok(None) }
}

/// Returns the time in which a machine may be silent: `SILENT_SECONDS` of the environment, or 30 seconds.
pub fn silence() -> Duration {
    let seconds = std::env::var("SILENT_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(30))
}

struct StandardError;

impl Log for StandardError {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        eprintln!("{} {}: {}", record.level(), record.target(), record.args());
    }

    fn flush(&self) {}
}

/// Prints all warnings and errors of this process from now on.
pub fn print_warnings() {
    if log::set_logger(&StandardError).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
