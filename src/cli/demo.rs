//! `tadoc demo`: a corpus of text that is already on this machine, and a tour of queries on it.
//!
//! Nothing is downloaded. The text is the sources of the crates that cargo has unpacked; they exist
//! wherever this program was built. Without them, the demo takes the documentation of the Rust
//! toolchain or the sources of this project.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs};

use clap::Args;
use tadoc::build::IngestOptions;
use tadoc_documents::{ArchiveOptions, Documents, Input, ReadOptions, Source, display};
use tadoc_session::{Failure, Outcome, runtime};

use crate::ingest::{Job, Machine};
use crate::inputs::{self, Wanted};
use crate::output::{Output, say, write_file};
use crate::sql::Console;

/// Queries of the tour. They name the corpus `demo.tadoc`.
const TOUR: &str = include_str!("../../sql/examples/tour.sql");
const CORPUS_NAME: &str = "demo.tadoc";
const TOUR_NAME: &str = "tour.sql";

/// File name endings of text that people write.
const TEXT_ENDINGS: [&str; 9] = [".rs", ".md", ".toml", ".txt", ".sql", ".html", ".py", ".rst", ".adoc"];
/// Maximum size of a file. Larger files in source trees are mostly generated.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum bytes of text per crate. Crates of bindings are huge and similar to each other, and no
/// single crate may fill the corpus.
const MAX_CRATE_BYTES: u64 = 2 << 20;

/// Take the tour on text that is already on this machine
///
/// Compresses the sources of the crates that cargo has unpacked here (nothing is downloaded), then
/// runs a few queries on them and shows the time of each.
#[derive(Args)]
pub struct Arguments {
    /// Folder for the corpus and the queries; created if it does not exist
    #[arg(long, default_value = "tadoc-demo", value_name = "DIR")]
    dir: PathBuf,

    /// Maximum amount of text
    #[arg(long, default_value = "64MiB", value_name = "SIZE", value_parser = display::parse_size)]
    max_size: u64,

    /// Read the text files of this folder instead
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let (inputs, origin) = find_text(arguments)?;
    let dir = &arguments.dir;
    fs::create_dir_all(dir).map_err(|error| Failure::with_cause(dir.display(), &error))?;
    let corpus = dir.join(CORPUS_NAME);
    let total_bytes = inputs.iter().map(|input| input.len_bytes).sum();
    say(format_args!(
        "Compressing {} ({}) from {origin} …",
        display::plural(inputs.len() as u64, "file"),
        display::bytes(total_bytes)
    ))?;
    let summary = job().run(&inputs, Output::create(&corpus, true)?, &corpus)?;
    say(summary)?;
    let tour = dir.join(TOUR_NAME);
    write_file(&tour, TOUR.as_bytes(), true)?;
    runtime()?.block_on(take_tour(&corpus))?;
    say(farewell(dir))
}

fn job() -> Job {
    Job {
        options: IngestOptions::default(),
        division: Documents::Files.into(),
        read: ReadOptions::default(),
        archives: ArchiveOptions::default(),
        machine: Machine::default(),
        allow_empty: false,
        quiet: false,
        heeds_interrupts: true,
        notes: Vec::new(),
        taken: None,
        filter: None,
        remote: None,
    }
}

async fn take_tour(corpus: &Path) -> Outcome {
    let console = Console::for_tables()?;
    console.session.prepare().await?;
    let corpus = corpus.display().to_string().replace('\'', "''");
    for (stop_idx, stop) in stops(TOUR).into_iter().enumerate() {
        say(format_args!("\n{}. {}\n\n{}\n", stop_idx + 1, stop.title, stop.sql))?;
        let start = Instant::now();
        console.run_script(&stop.sql.replace(CORPUS_NAME, &corpus), false).await?;
        say(display::seconds(start.elapsed()))?;
    }
    Ok(())
}

/// One query of the tour.
struct Stop {
    /// Title: the comment above the query.
    title: String,
    /// Text of the query, as in the file.
    sql: String,
}

/// Splits a script into stops: `-- title` lines, then a statement with `;` at the end of a line.
fn stops(script: &str) -> Vec<Stop> {
    let mut stops = Vec::new();
    let mut title = Vec::new();
    let mut sql = Vec::new();
    for line in script.lines() {
        match line.strip_prefix("--") {
            Some(comment) if sql.is_empty() => title.push(comment.trim()),
            None if sql.is_empty() && line.trim().is_empty() => title.clear(),
            _ => sql.push(line),
        }
        if line.trim_end().ends_with(';') {
            stops.push(Stop { title: title.join(" "), sql: sql.join("\n") });
            title.clear();
            sql.clear();
        }
    }
    stops
}

fn farewell(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "\nThe corpus is {dir}/{CORPUS_NAME}, the queries are in {dir}/{TOUR_NAME}. Go on with\n  \
         cd {dir}\n  \
         tadoc sql -f {TOUR_NAME}\n  \
         tadoc sql                      a prompt\n  \
         tadoc info {CORPUS_NAME}\n  \
         tadoc ingest YOUR_FOLDER -o yours.tadoc"
    )
}

/// Finds text files up to the requested size. Returns them and the folder that holds them.
fn find_text(arguments: &Arguments) -> Outcome<(Vec<Input>, String)> {
    if let Some(folder) = &arguments.source {
        let inputs = text_files(std::slice::from_ref(folder), arguments.max_size, u64::MAX)?;
        return if inputs.is_empty() {
            Err(Failure::new(format!("{}: no text file inside", folder.display())))
        } else {
            Ok((inputs, folder.display().to_string()))
        };
    }
    for folders in [crate_sources(), toolchain_documents(), own_sources()] {
        let inputs = text_files(&folders, arguments.max_size, MAX_CRATE_BYTES)?;
        if let (false, Some(folder)) = (inputs.is_empty(), folders.first()) {
            return Ok((inputs, folder.display().to_string()));
        }
    }
    Err(Failure::new("found no text on this machine; pass --source FOLDER"))
}

/// Returns the folders `$CARGO_HOME/registry/src/*`, which hold the sources of unpacked crates.
fn crate_sources() -> Vec<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let Some(home) = home else { return Vec::new() };
    let Ok(entries) = fs::read_dir(home.join("registry/src")) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// Returns the folders of the documentation and standard library of the Rust toolchain.
fn toolchain_documents() -> Vec<PathBuf> {
    let mut rustc = Command::new("rustc");
    let rustc = rustc.args(["--print", "sysroot"]).stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(output) = rustc.output() else { return Vec::new() };
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let folders = [sysroot.join("lib/rustlib/src"), sysroot.join("share/doc")];
    folders.into_iter().filter(|folder| folder.is_dir()).collect()
}

fn own_sources() -> Vec<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = package.parent().filter(|folder| folder.ends_with("src")).unwrap_or(package);
    if folder.is_dir() { vec![folder.to_owned()] } else { Vec::new() }
}

/// Collects the text files below `folders` in order, by their endings.
///
/// Takes at most `max_bytes` in total and `max_part_bytes` from each folder directly inside
/// `folders`.
fn text_files(folders: &[PathBuf], max_bytes: u64, max_part_bytes: u64) -> Outcome<Vec<Input>> {
    let mut inputs = Vec::new();
    let mut room = max_bytes;
    for folder in folders {
        let mut part = String::new();
        let mut part_room = max_part_bytes;
        inputs::walk(folder, Wanted::default(), None, &mut |file, relative, metadata| {
            let len_bytes = metadata.len();
            let is_text = TEXT_ENDINGS.iter().any(|ending| relative.ends_with(ending));
            let (this_part, _) = relative.split_once('/').unwrap_or(("", relative));
            if this_part != part {
                (part, part_room) = (this_part.to_owned(), max_part_bytes);
            }
            if is_text && (1..=MAX_FILE_BYTES.min(room).min(part_room)).contains(&len_bytes) {
                room -= len_bytes;
                part_room -= len_bytes;
                let source = Source::File(file.to_owned());
                inputs.push(Input::new(source, relative.to_owned(), len_bytes));
            }
        })?;
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_cut_into_titled_queries() {
        let stops = stops("-- About\n-- this file.\n\n-- First\nSELECT 1;\n\n-- Second\n-- one\nSELECT\n  2;\n");
        assert_eq!(stops.len(), 2);
        assert_eq!((stops[0].title.as_str(), stops[0].sql.as_str()), ("First", "SELECT 1;"));
        assert_eq!((stops[1].title.as_str(), stops[1].sql.as_str()), ("Second one", "SELECT\n  2;"));
    }

    #[test]
    fn every_stop_of_the_tour_has_a_title_and_names_the_corpus() {
        let stops = stops(TOUR);
        assert!(stops.len() >= 6);
        for stop in stops {
            assert!(!stop.title.is_empty(), "{}", stop.sql);
            assert!(stop.sql.contains(CORPUS_NAME), "{}", stop.sql);
        }
    }
}
