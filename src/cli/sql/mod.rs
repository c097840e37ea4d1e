//! `tadoc sql`: statements, scripts, or a prompt, in one DataFusion session.

mod console;
mod format;
mod print;
mod prompt;
mod safe;

use std::fs;
use std::io::{IsTerminal, Read, stdin};
use std::path::{Path, PathBuf};

use clap::Args;
use tadoc_documents::display;
#[cfg(feature = "distributed")]
use tadoc_server::workers::Arguments as WorkerArguments;
use tadoc_session::{Failure, MaxWidth, Outcome, Session, interrupt, note, runtime};

pub use self::console::Console;
use self::format::{Format, MaxRows, PrintOptions};
use self::safe::SafeArguments;

/// Ask questions in SQL
///
/// Statements come from -c, from files, from standard input, or from a prompt. A statement names a
/// corpus by its path, as in word_count('notes.tadoc'), or as a table after CREATE EXTERNAL TABLE …
/// STORED AS TADOC. Files that DataFusion knows (CSV, TSV, JSON lines, Parquet) can be used in the same
/// statement.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Run these statements (may be given several times; all share one session)
    #[arg(short, long = "command", value_name = "SQL")]
    commands: Vec<String>,

    /// Run the statements of this file, after those of -c; - reads standard input
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Output format of rows: table, csv, tsv, json, ndjson; automatic means table
    #[arg(long, value_enum, default_value = "automatic", hide_possible_values = true)]
    format: Format,

    /// Maximum number of rows that a table shows (inf for all); other formats write all rows
    #[arg(long, default_value = "40", value_name = "N")]
    maxrows: MaxRows,

    /// Maximum number of characters of a cell of a table (inf for all); other formats write all of it
    #[arg(long, default_value_t, value_name = "N")]
    maxwidth: MaxWidth,

    /// Maximum memory of queries, such as 4GiB (default: no limit)
    #[arg(short, long, value_name = "SIZE", value_parser = display::parse_size)]
    memory_limit: Option<u64>,

    /// Folder that relative paths start from, those of scripts too (default: this one)
    #[arg(short = 'p', long, value_name = "FOLDER")]
    data_path: Option<PathBuf>,

    /// Run the statements of this file before the prompt, instead of those of ~/.datafusionrc (may be given several
    /// times)
    #[arg(long, value_name = "FILE")]
    rc: Vec<PathBuf>,

    /// Write only rows: no row counts, no times, no banner
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    safe: SafeArguments,

    #[cfg(feature = "distributed")]
    #[command(flatten)]
    workers: WorkerArguments,
}

const EXAMPLES: &str = "\
Examples:
  tadoc sql                                   a prompt; \\q leaves it, \\? helps
  tadoc sql -c \"SELECT * FROM word_count('notes.tadoc') ORDER BY count DESC LIMIT 10\"
  tadoc sql -c \"SELECT path, byte_offset FROM search('notes.tadoc', '\\\"to do\\\"')\"
  tadoc sql -c \"CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'notes.tadoc'\" \\
            -c \"SELECT path FROM d WHERE text LIKE '%deadline%'\"
  tadoc sql --safe --allow corpora/ -f of-a-stranger.sql
  tadoc sql -f report.sql --format csv > report.csv

Rows go to standard output; row counts, times and errors go to standard error. The first statement
that fails ends the run.

Exit status: 0 done, 1 a statement failed, 2 usage, 130 interrupted.";

const BANNER: &str = concat!(
    "tadoc ",
    env!("CARGO_PKG_VERSION"),
    " (DataFusion): SQL on compressed text. \\q leaves, \\? helps.\n",
    "Try: SELECT * FROM word_count('FILE.tadoc') ORDER BY count DESC LIMIT 10;"
);

/// Runs the command.
pub fn run(arguments: Arguments) -> Outcome {
    if let Some(folder) = &arguments.data_path {
        let entered = std::env::set_current_dir(folder);
        entered.map_err(|error| Failure::with_cause(folder.display(), &error))?;
    }
    let runtime = runtime()?;
    let scripts = scripts(&arguments)?;
    let console = Console::new(&arguments)?;
    let outcome = match scripts {
        Some(scripts) => runtime.block_on(run_scripts(console, scripts)),
        None => {
            let first = first_scripts(&arguments.rc)?;
            runtime.block_on(console.prompt(&first))
        }
    };
    // Dropping the runtime would wait for queries that never end.
    runtime.shutdown_timeout(interrupt::GRACE);
    outcome
}

/// Runs scripts in order until one fails or the user interrupts.
async fn run_scripts(console: Console, scripts: Vec<String>) -> Outcome {
    let interrupted = interrupt::watch();
    let run = async {
        console.session.prepare().await?;
        for (at, script) in scripts.iter().enumerate() {
            console.run_script(script, at + 1 == scripts.len()).await?;
        }
        Ok(())
    };
    tokio::select! {
        outcome = run => outcome,
        () = interrupted.notified() => Err(Failure::interrupted()),
    }
}

/// Returns the scripts to run, or `None` to open the prompt.
fn scripts(arguments: &Arguments) -> Outcome<Option<Vec<String>>> {
    let mut scripts = arguments.commands.clone();
    for path in &arguments.files {
        scripts.push(read_script(path)?);
    }
    if scripts.is_empty() {
        if stdin().is_terminal() {
            return Ok(None);
        }
        scripts.push(read_script(Path::new("-"))?);
    }
    Ok(Some(scripts))
}

/// Returns the scripts that run before the prompt: `files`, or the one that datafusion-cli runs, if it is there.
fn first_scripts(files: &[PathBuf]) -> Outcome<Vec<String>> {
    if !files.is_empty() {
        return files.iter().map(|path| read_script(path)).collect();
    }
    let usual = std::env::home_dir().map(|home| home.join(".datafusionrc"));
    usual.filter(|path| path.is_file()).iter().map(|path| read_script(path)).collect()
}

fn read_script(path: &Path) -> Outcome<String> {
    let text = if path.as_os_str() == "-" {
        let mut text = String::new();
        stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|error| Failure::with_cause(path.display(), &error))?;
    // A script may be executable: `#!/usr/bin/env -S tadoc sql -f`.
    if text.starts_with("#!") {
        Ok(text.split_once('\n').map_or_else(String::new, |(_, rest)| rest.to_owned()))
    } else {
        Ok(text)
    }
}

impl Console {
    fn new(arguments: &Arguments) -> Outcome<Self> {
        let options = PrintOptions {
            format: arguments.format,
            max_rows: arguments.maxrows,
            quiet: arguments.quiet,
        };
        let session = Session::new(arguments.memory_limit, arguments.safe.sandbox()?)?;
        let console = Self { session, options, max_width: arguments.maxwidth };
        #[cfg(feature = "distributed")]
        let console = console.on_workers(&arguments.workers)?;
        Ok(console)
    }

    /// Opens the prompt after the statements of the scripts `first`. One that fails ends its script, not the prompt.
    async fn prompt(self, first: &[String]) -> Outcome {
        self.session.prepare().await?;
        if !self.options.quiet {
            note(BANNER);
        }
        for script in first {
            if let Err(failure) = self.run_script(script, false).await {
                failure.report();
            }
        }
        self.answer_lines().await
    }
}
