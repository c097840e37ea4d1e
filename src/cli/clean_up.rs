//! `tadoc clean-up`: old files of a living corpus removed.
//!
//! Nothing is written, so that it works where no space is left.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tadoc_store::CleanUp;

use crate::display::{bytes, parse_age, plural};
use crate::failure::Outcome;
use crate::living::Living;
use crate::output::say;

/// Remove old files of a living corpus
///
/// Files go that neither the latest version needs nor one that was the latest within AGE: versions before
/// that cannot be read any more, and what interrupted writers left behind is gone. Nothing is written:
/// this also works on a full disk.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The corpus: a folder or URL
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// Versions of the last AGE (90s, 30m, 12h, 7d, 0) can still be read
    ///
    /// The age protects those that still read an old version or are about to commit. With 0 nobody
    /// may do either.
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
    match arguments.quiet {
        true => Ok(()),
        false => say(told(&living, &cleaned, arguments.dry_run)),
    }
}

/// What a clean-up removed, or would.
pub fn told(living: &Living, cleaned: &CleanUp, dry_run: bool) -> String {
    let verb = if dry_run { "would remove" } else { "removed" };
    let files = plural(cleaned.removed.len() as u64, "file");
    let (size, oldest) = (bytes(cleaned.len_bytes()), cleaned.oldest_version);
    format!("{}: {verb} {files}, {size}; versions from {oldest} on are kept", living.store.place())
}
