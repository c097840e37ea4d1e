//! Warnings of Ballista on the standard error: it tells clients less than it logs.

use log::{LevelFilter, Log, Metadata, Record};

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
