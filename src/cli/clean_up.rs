//! `tadoc clean-up`: removes old files of a living corpus.
//!
//! The command writes nothing, so it works on a full disk.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tadoc_documents::display::{bytes, parse_age, plural};
use tadoc_session::Outcome;
use tadoc_store::CleanUp;

use crate::living::Living;
use crate::output::say;

/// Remove old files of a living corpus
///
/// Keeps the files of the latest version and of every version that was the latest within AGE, and
/// removes all others. Older versions can then no longer be read. Files that interrupted writers
/// left are removed too. The command writes nothing, so it works on a full disk.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The corpus: a folder or URL
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// Keep versions of the last AGE (90s, 30m, 12h, 7d, 0) readable
    ///
    /// The age protects readers of old versions and writers that are about to commit. With 0 there
    /// must be none of either.
    #[arg(long, default_value = "7d", value_name = "AGE", value_parser = parse_age)]
    age: Duration,

    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,

    /// Say nothing unless something fails
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  tadoc clean-up notes/                       versions of the last 7 days can still be read
  tadoc clean-up notes/ --age 0 --dry-run     what only old versions need
  tadoc clean-up s3://bucket/notes --age 12h

Exit status: 0 done or nothing to do, 1 failed, 2 usage, 130 interrupted.";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let living = Living::open(&arguments.corpus)?;
    let cleaned = living.wait(living.store.clean_up(arguments.age, arguments.dry_run))?;
    if arguments.quiet { Ok(()) } else { say(told(&living, &cleaned, arguments.dry_run)) }
}

/// Formats what a clean-up removed, or would remove.
pub fn told(living: &Living, cleaned: &CleanUp, dry_run: bool) -> String {
    let verb = if dry_run { "would remove" } else { "removed" };
    let files = plural(cleaned.removed.len() as u64, "file");
    let (size, oldest) = (bytes(cleaned.len_bytes()), cleaned.oldest_version);
    format!("{}: {verb} {files}, {size}; versions from {oldest} on are kept", living.store.location())
}
