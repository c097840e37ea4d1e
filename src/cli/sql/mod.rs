//! `tadoc sql`: statements, scripts, or a prompt, in one DataFusion session.

mod cells;
mod format;
mod heap;
mod parameters;
mod prepared;
mod print;
mod prompt;
mod remote;
mod resident;
mod safe;
mod script;
#[cfg(feature = "stores")]
mod stores;
#[cfg(feature = "distributed")]
mod workers;

use std::fs;
use std::io::{IsTerminal, Read, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use datafusion::config::ConfigOptions;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::ExplainFormat;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::safety::Sandbox;
use datafusion_tadoc::{DeviceSession, charge_calls, with_stores};
use tadoc_documents::display;

use crate::failure::{Failure, Outcome};
use crate::output::note;
use crate::runtime::runtime;
use crate::{interrupt, leave};

pub use self::cells::{BoundedTable, MaxWidth};
pub use self::parameters::Parameters;
#[cfg(feature = "server")]
pub use self::parameters::parameter_names;
pub use self::print::is_shown_whole;
#[cfg(feature = "server")]
pub use self::safe::sandbox_over;
pub use self::script::{Rows, Statements};
#[cfg(feature = "distributed")]
pub use self::workers::{Arguments as WorkerArguments, credentials};

use self::format::{Format, MaxRows, PrintOptions};
use self::prepared::Prepared;
use self::resident::ResidentPool;
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
    let session = Session::new(&arguments)?;
    let outcome = match scripts {
        Some(scripts) => runtime.block_on(run_scripts(session, scripts)),
        None => {
            let first = first_scripts(&arguments.rc)?;
            runtime.block_on(session.prompt(&first))
        }
    };
    // Dropping the runtime would wait for queries that never end.
    runtime.shutdown_timeout(interrupt::GRACE);
    outcome
}

/// Runs scripts in order until one fails or the user interrupts.
async fn run_scripts(session: Session, scripts: Vec<String>) -> Outcome {
    let interrupted = interrupt::watch();
    let run = async {
        session.prepare().await?;
        for (at, script) in scripts.iter().enumerate() {
            session.run_script(script, at + 1 == scripts.len()).await?;
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

/// Makes `COPY` to Parquet end a row group at an eighth of `limit`, as the default is a million
/// rows.
fn limit_row_groups(config: &mut ConfigOptions, limit: u64) -> Outcome {
    if config.execution.parquet.max_row_group_bytes.is_none() {
        let bytes = (limit / 8).max(1).to_string();
        config.set("datafusion.execution.parquet.max_row_group_bytes", &bytes)?;
        // Only the writer that has all columns measures the bytes of a row group.
        config.execution.parquet.allow_single_file_parallelism = false;
    }
    Ok(())
}

/// Returns `runtime` with the limit of memory and the places of `sandbox`, and the pool of the memory.
pub fn limited(
    mut runtime: RuntimeEnvBuilder,
    memory_limit: Option<u64>,
    sandbox: Option<&Sandbox>,
) -> (RuntimeEnvBuilder, Option<Arc<ResidentPool>>) {
    if let Some(sandbox) = sandbox {
        runtime = sandbox.guard(runtime);
    }
    let Some(limit) = memory_limit else { return (runtime, None) };
    heap::keep_little();
    let pool = ResidentPool::new(usize::try_from(limit).unwrap_or(usize::MAX));
    (runtime.with_memory_pool(Arc::clone(&pool) as _), Some(pool))
}

/// A DataFusion session with all table functions.
pub struct Session {
    context: SessionContext,
    options: PrintOptions,
    /// Maximum width of a cell of a table.
    max_width: MaxWidth,
    /// Memory pool, if memory is limited.
    memory: Option<Arc<ResidentPool>>,
    /// Places and statements that are allowed, in safe mode.
    sandbox: Option<Sandbox>,
    /// Prepared statements that DataFusion cannot plan before they have values.
    prepared: Prepared,
    #[cfg(feature = "distributed")]
    workers: Option<datafusion_tadoc::distributed::WorkerUrls>,
}

impl Session {
    fn new(arguments: &Arguments) -> Outcome<Self> {
        let options = PrintOptions {
            format: arguments.format,
            max_rows: arguments.maxrows,
            quiet: arguments.quiet,
        };
        let session =
            Self::with_options(options, arguments.memory_limit, arguments.safe.sandbox()?)?;
        let session = Self { max_width: arguments.maxwidth, ..session };
        #[cfg(feature = "distributed")]
        let session = session.on_workers(&arguments.workers)?;
        Ok(session)
    }

    /// Lets statements run on the workers that `arguments` name, if they name any. Call it before
    /// [`prepare`](Self::prepare).
    ///
    /// # Errors
    /// The text is no list of workers.
    #[cfg(feature = "distributed")]
    pub fn on_workers(self, arguments: &WorkerArguments) -> Outcome<Self> {
        Ok(Self { workers: arguments.urls()?, ..self })
    }

    /// Creates a session that prints whole tables.
    pub fn for_tables() -> Outcome<Self> {
        Self::with_options(PrintOptions::whole_tables(), None, None)
    }

    /// Creates a session that a program asks, with at most `memory_limit` bytes of memory for the
    /// process, and with `settings`, each a name and a value as in `SET name = 'value'`.
    ///
    /// # Errors
    /// There is no such setting, or it does not take the value.
    pub async fn for_program(
        memory_limit: Option<u64>,
        settings: &[(String, String)],
    ) -> Outcome<Self> {
        let session = Self::with_options(PrintOptions::whole_tables(), memory_limit, None)?;
        session.prepare().await?;
        let state = session.context.state_ref();
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        settings.iter().try_for_each(|(name, value)| options.set(name, value))?;
        drop(state);
        Ok(session)
    }

    /// Creates a session of statements that are not trusted, with at most `memory_limit` bytes of
    /// memory for the process.
    ///
    /// # Errors
    /// The environment has settings that are not valid.
    pub async fn for_strangers(memory_limit: Option<u64>, sandbox: Sandbox) -> Outcome<Self> {
        let session =
            Self::with_options(PrintOptions::whole_tables(), memory_limit, Some(sandbox))?;
        session.prepare().await?;
        Ok(session)
    }

    /// Returns DataFusion's session.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    fn with_options(
        options: PrintOptions,
        memory_limit: Option<u64>,
        sandbox: Option<Sandbox>,
    ) -> Outcome<Self> {
        let mut config = ConfigOptions::from_env()?;
        if std::env::var_os("DATAFUSION_EXPLAIN_FORMAT").is_none() {
            config.explain.format = ExplainFormat::Indent;
        }
        if std::env::var_os("DATAFUSION_FORMAT_NULL").is_none() {
            config.format.null = "NULL".to_owned();
        }
        let runtime = with_stores(RuntimeEnvBuilder::new());
        let (runtime, memory) = limited(runtime, memory_limit, sandbox.as_ref());
        if let Some(limit) = memory_limit {
            limit_row_groups(&mut config, limit)?;
        }
        let config = SessionConfig::from(config).with_information_schema(true);
        let context = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
        Ok(Self {
            context: context.enable_url_table(),
            options,
            max_width: MaxWidth::default(),
            memory,
            sandbox,
            prepared: Prepared::default(),
            #[cfg(feature = "distributed")]
            workers: None,
        })
    }

    /// Registers catalogs and table functions.
    pub async fn prepare(&self) -> Outcome {
        let context = &self.context;
        context.refresh_catalogs().await?;
        datafusion_tadoc::register_all(context)?;
        if self.memory.is_some() {
            let pool = Arc::clone(&context.runtime_env().memory_pool);
            charge_calls(context, &pool)?;
        }
        #[cfg(feature = "distributed")]
        if let Some(workers) = &self.workers {
            datafusion_tadoc::distributed::register_workers(context, workers.clone())?;
        }
        leave::remember(self.devices());
        Ok(())
    }

    /// Returns true if statements run on workers.
    fn has_workers(&self) -> bool {
        #[cfg(feature = "distributed")]
        return self.workers.is_some();
        #[cfg(not(feature = "distributed"))]
        return false;
    }

    /// Returns the devices of the session.
    fn devices(&self) -> Arc<DeviceSession> {
        DeviceSession::from_config(self.context.state_ref().read().config())
    }

    /// Opens the prompt after the statements of the scripts `first`. One that fails ends its script, not the prompt.
    async fn prompt(self, first: &[String]) -> Outcome {
        self.prepare().await?;
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
