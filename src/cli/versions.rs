//! `tadoc history` and `tadoc clean-up`: the versions of a living corpus, oldest first, and the files that
//! only old ones need. No command here writes, so they work on a full disk.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tadoc_documents::display::{bytes, grouped, parse_age, plural, time};
use tadoc_session::Outcome;
use tadoc_store::{CleanUp as Cleaned, Version};

use crate::info::json_string;
use crate::living::Living;
use crate::output::say;

/// List the versions of a living corpus
///
/// Lists every version that is kept, oldest first: the time of its commit (UTC), the kind of
/// change, and the id of the commit. To read an old version: tadoc cat CORPUS --version N PATH.
#[derive(Args)]
pub struct History {
    /// The corpus: a folder or URL
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// Write a JSON array instead
    #[arg(long)]
    json: bool,
}

const HEADER: [&str; 8] = ["version", "time", "kind", "added", "dropped", "edits", "bytes", "commit"];
/// True for columns of words, which are aligned left. Columns of numbers are aligned right.
const WORDS: [bool; 8] = [false, true, true, false, false, false, false, true];

/// Runs `tadoc history`.
pub fn history(arguments: &History) -> Outcome {
    let living = Living::open(&arguments.corpus)?;
    let versions = living.wait(living.store.history())?;
    let text = if arguments.json {
        let versions: Vec<String> = versions.iter().map(json).collect();
        format!("[{}]\n", versions.join(",\n "))
    } else {
        table(versions.iter().map(row).collect())
    };
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

fn row(version: &Version) -> [String; 8] {
    let counts = version.counts;
    [
        version.number.to_string(),
        time(version.time_us),
        version.kind.to_string(),
        grouped(counts.docs_added),
        grouped(counts.docs_dropped),
        grouped(counts.edits),
        grouped(counts.text_bytes),
        version.commit_id.to_string(),
    ]
}

fn table(mut rows: Vec<[String; 8]>) -> String {
    rows.insert(0, HEADER.map(str::to_owned));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADER.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).zip(WORDS).map(|((cell, &width), is_word)| {
            if is_word { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn json(version: &Version) -> String {
    let counts = version.counts;
    format!(
        "{{\"version\":{},\"time\":{},\"time_us\":{},\"kind\":{},\"docs_added\":{},\
         \"docs_dropped\":{},\"edits\":{},\"text_bytes\":{},\"commit_id\":{},\"parent_id\":{},\
         \"writer\":{}}}",
        version.number,
        json_string(&time(version.time_us)),
        version.time_us,
        json_string(version.kind.as_str()),
        counts.docs_added,
        counts.docs_dropped,
        counts.edits,
        counts.text_bytes,
        json_string(&version.commit_id.to_string()),
        json_string(&version.parent_id.to_string()),
        json_string(&version.writer),
    )
}

/// Remove old files of a living corpus
///
/// Keeps the files of the latest version and of every version that was the latest within AGE, and
/// removes all others. Older versions can then no longer be read. Files that interrupted writers
/// left are removed too. The command writes nothing, so it works on a full disk.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CleanUp {
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

/// Runs `tadoc clean-up`.
pub fn clean_up(arguments: &CleanUp) -> Outcome {
    let living = Living::open(&arguments.corpus)?;
    let cleaned = living.wait(living.store.clean_up(arguments.age, arguments.dry_run))?;
    if arguments.quiet { Ok(()) } else { say(told(&living, &cleaned, arguments.dry_run)) }
}

/// Formats what a clean-up removed, or would remove.
pub fn told(living: &Living, cleaned: &Cleaned, dry_run: bool) -> String {
    let verb = if dry_run { "would remove" } else { "removed" };
    let files = plural(cleaned.removed.len() as u64, "file");
    let (size, oldest) = (bytes(cleaned.len_bytes()), cleaned.oldest_version);
    format!("{}: {verb} {files}, {size}; versions from {oldest} on are kept", living.store.location())
}
