//! `tadoc history`: the versions of a living corpus, oldest first.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use tadoc_documents::display::{grouped, time};
use tadoc_session::Outcome;
use tadoc_store::Version;

use crate::info::json_string;
use crate::living::Living;

/// List the versions of a living corpus
///
/// Lists every version that is kept, oldest first: the time of its commit (UTC), the kind of
/// change, and the id of the commit. To read an old version: tadoc cat CORPUS --version N PATH.
#[derive(Args)]
pub struct Arguments {
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

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
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
