//! `tadoc sql`: statements, scripts, or a prompt, in one session. A [`Console`] prints the rows of its statements.
//! Scripts run statement by statement and stop at the first failure.
//!
//! At the prompt, rustyline reads the lines. Commands begin with a backslash and are those of datafusion-cli.
//! Statements run as in scripts. After an error, the prompt continues. The history is kept in
//! `.history`, with secrets masked.

mod print;

use std::fs;
use std::io::{IsTerminal, Read, stdin};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use futures::TryStreamExt;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};

use self::print::{Format, MaxRows, PrintOptions};
use crate::{sync, workers};
use datafusion_tadoc::safety::{Permission, Sandbox};
use datafusion_tadoc::{contain_panics_of, mask_secrets, notices};
use tadoc_documents::display;
use tadoc_session::{
    Failure, MaxWidth, NamedLocation, Outcome, Procedure, Session, Statements, interrupt, is_shown_whole, note,
    remember_secrets, runtime, sandbox_over,
};

/// Ask questions in SQL
///
/// Statements come from -c, from files, from standard input, or from a prompt. A statement names a
/// corpus by its path, as in word_count('notes.tadoc'), or as a table after CREATE EXTERNAL TABLE …
/// STORED AS TADOC. Files that DataFusion knows (CSV, TSV, JSON lines, Parquet) can be used in the same
/// statement.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Run these statements, or a command of the prompt, as '\h kwic' (may be given several times; all share one
    /// session)
    #[arg(short, long = "command", value_name = "SQL")]
    commands: Vec<String>,

    /// Run the statements of this file, after those of -c; - reads standard input
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Give a corpus, or a file of rows, the name of a table (may be given several times); a location alone gives its
    /// own name
    #[arg(short, long = "table", value_name = "NAME=LOCATION")]
    tables: Vec<PathBuf>,

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

    #[command(flatten)]
    workers: workers::Named,
}

const EXAMPLES: &str = "\
Examples:
  tadoc sql                                   a prompt; \\q leaves it, \\? helps
  tadoc sql -c \"SELECT * FROM word_count('notes.tadoc') ORDER BY count DESC LIMIT 10\"
  tadoc sql -c \"SELECT path, byte_offset FROM search('notes.tadoc', '\\\"to do\\\"')\"
  tadoc sql -c \"SELECT ts, author, path FROM 'notes.tadoc' WHERE text LIKE '%deadline%'\"
  tadoc sql --table notes=s3://bucket/notes.tadoc -c 'SELECT author, count(*) FROM notes GROUP BY author'
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
    let tables = NamedLocation::from_arguments(arguments.tables.iter().map(PathBuf::as_path))?;
    let console = Console::new(&arguments, &tables)?;
    let outcome = match scripts {
        Some(scripts) => runtime.block_on(run_scripts(console, tables, scripts)),
        None => {
            let first = first_scripts(&arguments.rc)?;
            runtime.block_on(console.prompt(tables, &first))
        }
    };
    // Dropping the runtime would wait for queries that never end.
    runtime.shutdown_timeout(interrupt::GRACE);
    outcome
}

/// Runs scripts in order until one fails or the user interrupts. A script may be a command of the prompt.
async fn run_scripts(mut console: Console, tables: Vec<NamedLocation>, scripts: Vec<String>) -> Outcome {
    let interrupted = interrupt::watch();
    let run = async {
        console.prepare(tables).await?;
        for (at, script) in scripts.iter().enumerate() {
            if !script.trim_start().starts_with('\\') {
                console.run_script(script, at + 1 == scripts.len()).await?;
            } else if console.answer(script).await? == Next::Leave {
                break;
            }
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
    fn new(arguments: &Arguments, tables: &[NamedLocation]) -> Outcome<Self> {
        let options = PrintOptions { format: arguments.format, max_rows: arguments.maxrows, quiet: arguments.quiet };
        let session = Session::new(arguments.memory_limit, arguments.safe.sandbox(tables)?)?;
        let session = session.with_procedures(&PROCEDURES);
        let console = Self { session, options, max_width: arguments.maxwidth };
        console.on_workers(&arguments.workers)
    }

    /// Opens the prompt after the statements of the scripts `first`. One that fails ends its script, not the prompt.
    async fn prompt(self, tables: Vec<NamedLocation>, first: &[String]) -> Outcome {
        self.prepare(tables).await?;
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

/// Arguments of safe mode.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Safe mode")]
pub struct SafeArguments {
    /// Run statements that are not trusted: only queries, over allowed places
    #[arg(long)]
    safe: bool,

    /// Allow statements to read this file or folder, or everything below this URL (may be given
    /// several times)
    #[arg(long, value_name = "LOCATION", requires = "safe")]
    allow: Vec<String>,

    /// Allow URLs whose hosts are not public: loopback, link-local and private addresses
    #[arg(long, requires = "safe")]
    allow_private: bool,

    /// Permit read_text and read_lines (read-text), COPY (copy), CREATE and DROP (create), or SET of
    /// limits (set); several with commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',', requires = "safe",
          value_parser = |text: &str| text.parse::<Permission>())]
    permit: Vec<Permission>,
}

impl SafeArguments {
    /// Returns the sandbox, in which the places of `tables` may be read; `None` without `--safe`.
    ///
    /// # Errors
    /// A place that is allowed does not exist, or it is no valid URL.
    fn sandbox(&self, tables: &[NamedLocation]) -> Outcome<Option<Sandbox>> {
        if !self.safe {
            return Ok(None);
        }
        let table_roots = tables.iter().map(|table| table.root().to_owned());
        let places: Vec<String> = self.allow.iter().cloned().chain(table_roots).collect();
        let sandbox = sandbox_over(&places, self.allow_private)?;
        Ok(Some(self.permit.iter().copied().fold(sandbox, Sandbox::permit)))
    }
}

/// Procedures that statements call.
const PROCEDURES: [Procedure; 1] = [sync::PROCEDURE];

/// A session whose statements print their rows.
pub struct Console {
    /// The session.
    pub session: Session,
    options: PrintOptions,
    /// Maximum width of a cell of a table.
    max_width: MaxWidth,
}

impl Console {
    /// Creates a console that prints whole tables.
    ///
    /// # Errors
    /// The environment has settings that are not valid.
    pub fn for_tables() -> Outcome<Self> {
        Ok(Self {
            session: Session::new(None, None)?,
            options: PrintOptions::whole_tables(),
            max_width: MaxWidth::default(),
        })
    }

    /// Registers catalogs and functions, and makes `tables`.
    ///
    /// # Errors
    /// A table cannot be opened.
    pub async fn prepare(&self, tables: Vec<NamedLocation>) -> Outcome {
        self.session.prepare().await?;
        for table in tables {
            self.session.add_table(table).await?;
        }
        Ok(())
    }

    /// Lets statements run on the workers that `arguments` name, if they name any. Call it before the session is
    /// prepared.
    ///
    /// # Errors
    /// The text is no list of workers.
    pub fn on_workers(self, arguments: &workers::Named) -> Outcome<Self> {
        Ok(Self { session: self.session.on_engine(arguments.engine()?), ..self })
    }

    /// Runs all statements of `script`. `is_last` says that no other script follows. Only one
    /// statement at a time is held in parsed form.
    pub async fn run_script(&self, script: &str, is_last: bool) -> Outcome {
        self.print_script(script, is_last, &self.options).await
    }

    async fn print_script(&self, script: &str, is_last: bool, options: &PrintOptions) -> Outcome {
        remember_secrets(script);
        let dialect = self.session.dialect()?;
        let mut statements = Statements::new(script, dialect.as_ref())?;
        while let Some(statement) = statements.next(self.session.max_depth())? {
            if is_last && statements.is_at_end() {
                self.session.devices().expect_last_statement();
            }
            contain_panics_of("the statement", self.print_statement(statement, options)).await??;
        }
        Ok(())
    }

    /// Runs one statement and prints its rows.
    async fn print_statement(&self, statement: Statement, options: &PrintOptions) -> Outcome {
        let start = Instant::now();
        let Some(plan) = self.session.plan(statement).await? else { return Ok(()) };
        say_notices(&plan);
        let max_width = self.width_of(&plan);
        let rows = self.session.start(plan).await?;
        let print = async |stream| {
            let format = self.session.context().state_ref().read().config_options().format.clone();
            let pool = &self.session.context().runtime_env().memory_pool;
            let table = print::TableOptions { max_width, format: &format, pool };
            print::print(stream, options, &table).await
        };
        let num_rows = rows.take(print).await?;
        if !options.quiet {
            note(print::footer(&num_rows, start.elapsed()));
        }
        Ok(())
    }

    /// Returns the maximum width of a cell in the table of the rows of `plan`.
    fn width_of(&self, plan: &LogicalPlan) -> MaxWidth {
        if is_shown_whole(plan) { MaxWidth::Lines } else { self.max_width }
    }

    /// Runs all statements of `script`. Returns the rows of the last one, and its text.
    pub async fn rows_of(&self, script: &str) -> Outcome<(SendableRecordBatchStream, String)> {
        remember_secrets(script);
        let dialect = self.session.dialect()?;
        let mut statements = Statements::new(script, dialect.as_ref())?;
        let last = statements.next(self.session.max_depth())?;
        let mut last = last.ok_or_else(|| Failure::usage("there is no statement"))?;
        while let Some(next) = statements.next(self.session.max_depth())? {
            self.print_statement(std::mem::replace(&mut last, next), &self.options).await?;
        }
        self.session.devices().expect_last_statement();
        let sql = last.to_string();
        let plan = self.session.plan(last).await?;
        let plan = plan.ok_or_else(|| Failure::usage("the last statement has no rows"))?;
        say_notices(&plan);
        let frame = self.session.context().execute_logical_plan(plan).await?;
        Ok((frame.execute_stream().await?, sql))
    }
}

/// Writes the notices about a planned statement to standard error.
fn say_notices(plan: &LogicalPlan) {
    for notice in notices(plan) {
        note(format!("note: {}", display::plain(&notice)));
    }
}

/// File of the lines of earlier sessions, in the working directory.
const HISTORY: &str = ".history";
const PROMPT: &str = "> ";

const COMMANDS: &str = "\
\\q                        leaves the prompt
\\?                        shows this list
\\d                        lists the tables
\\d TABLE                  lists the columns of a table
\\h                        lists the functions over corpora and texts
\\h NAME                   describes a function
\\i FILE                   runs the statements of a file
\\pset format [FORMAT]     shows or sets the format of rows: table, csv, tsv, json, ndjson
\\maxwidth [N|inf]         shows or sets the most characters of a cell
\\quiet [on|off]           shows or sets if only rows are written";

const LIST_FUNCTIONS: &str = "SELECT function, kind, summary FROM tadoc_functions()";

/// Describes a function of this crate; the name follows.
const DESCRIBE_OWN: &str = "\
SELECT signature || chr(10) || '  ' || summary \
  || chr(10) || 'arguments:' || chr(10) || '  ' || array_to_string(arguments, chr(10) || '  ') \
  || chr(10) || CASE kind WHEN 'table' THEN 'columns:' ELSE 'type:' END \
  || chr(10) || '  ' || array_to_string(columns, chr(10) || '  ') \
  || chr(10) || 'example:' || chr(10) || '  ' || example \
FROM tadoc_functions() WHERE function";

/// Describes any function; the name follows.
const DESCRIBE_ANY: &str = "\
SELECT DISTINCT coalesce(syntax_example, routine_name) || coalesce(chr(10) || '  ' || description, '') \
FROM information_schema.routines WHERE routine_name";

/// The next action of the prompt.
#[derive(PartialEq, Eq)]
enum Next {
    Ask,
    Leave,
}

impl Console {
    /// Reads and answers lines until the user leaves.
    pub async fn answer_lines(mut self) -> Outcome {
        let mut editor = Editor::<Lines, DefaultHistory>::new().map_err(ended)?;
        editor.set_helper(Some(Lines(FilenameCompleter::new())));
        // The first session of a folder has no history.
        let _ = editor.load_history(HISTORY);
        loop {
            let line = match editor.readline(PROMPT) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(ended(error)),
            };
            editor.add_history_entry(mask_secrets(line.trim_end())).map_err(ended)?;
            let answered = tokio::select! {
                answered = self.answer(&line) => answered,
                _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
            };
            match answered {
                Ok(Next::Ask) => {}
                Ok(Next::Leave) => break,
                Err(failure) => {
                    failure.report();
                }
            }
        }
        editor.save_history(HISTORY).map_err(ended)
    }

    async fn answer(&mut self, line: &str) -> Outcome<Next> {
        let Some(command) = line.trim().strip_prefix('\\') else {
            self.run_script(line, false).await?;
            return Ok(Next::Ask);
        };
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["q"] => return Ok(Next::Leave),
            ["?"] => println!("{COMMANDS}"),
            ["d"] => self.list("SHOW TABLES").await?,
            ["d", table] => self.list(&format!("SHOW COLUMNS FROM {table}")).await?,
            ["h"] => self.list(LIST_FUNCTIONS).await?,
            ["h", name] => print!("{}", self.help_for(name).await?),
            ["i", path] => self.include(path).await?,
            ["quiet"] => println!("quiet is {}", on_or_off(self.options.quiet)),
            ["quiet", "on" | "true" | "t" | "yes" | "y"] => self.options.quiet = true,
            ["quiet", "off" | "false" | "f" | "no" | "n"] => self.options.quiet = false,
            ["maxwidth"] => println!("{}", self.max_width),
            ["maxwidth", width] => self.max_width = width.parse().map_err(Failure::new)?,
            ["pset"] | ["pset", "format"] => println!("format is {}", name(self.options.format)),
            ["pset", "format", format] => {
                self.options.format = Format::from_str(format, true).map_err(Failure::new)?;
            }
            _ => {
                let problem = format!("there is no command \\{command}; \\? lists them");
                return Err(Failure::new(problem));
            }
        }
        Ok(Next::Ask)
    }

    /// Prints all rows of a list.
    async fn list(&self, statement: &str) -> Outcome {
        let options = PrintOptions { max_rows: MaxRows::Unlimited, ..self.options };
        self.print_script(statement, false, &options).await
    }

    /// Returns what is known about the functions of this name, for people.
    ///
    /// # Errors
    /// There is no function of this name.
    async fn help_for(&self, name: &str) -> Outcome<String> {
        let literal = name.replace('\'', "''");
        let mut texts = self.texts(&format!("{DESCRIBE_OWN} = lower('{literal}')")).await?;
        if texts.is_empty() {
            texts = self.texts(&format!("{DESCRIBE_ANY} = lower('{literal}')")).await?;
        }
        if texts.is_empty() {
            return Err(Failure::new(format!("there is no function {name}; \\h lists those over corpora and texts")));
        }
        Ok(texts.iter().map(|text| format!("{text}\n")).collect())
    }

    /// Runs a statement, and returns the texts of its first column.
    async fn texts(&self, statement: &str) -> Outcome<Vec<String>> {
        let Some(plan) = self.session.plan(self.session.parse_one(statement)?).await? else { return Ok(Vec::new()) };
        let batches: Vec<RecordBatch> = self.session.start(plan).await?.take(|rows| rows.try_collect()).await?;
        let mut texts = Vec::new();
        for batch in &batches {
            let column = cast(batch.column(0), &DataType::Utf8).map_err(DataFusionError::from)?;
            texts.extend(column.as_string::<i32>().iter().flatten().map(str::to_owned));
        }
        Ok(texts)
    }

    /// Runs the statements of the file at `path`.
    async fn include(&self, path: &str) -> Outcome {
        if let Some(sandbox) = self.session.sandbox() {
            sandbox.check_location(path)?;
        }
        let script = read_script(Path::new(path))?;
        self.run_script(&script, false).await
    }
}

fn on_or_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn name(format: Format) -> String {
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn ended(error: ReadlineError) -> Failure {
    Failure::with_cause("the prompt ended", &error)
}

/// Helps with lines: completes names of files in quotes, and asks for more until a statement ends.
struct Lines(FilenameCompleter);

/// Returns true if `text` is a command, or ends in a semicolon outside of quotes.
fn is_complete(text: &str) -> bool {
    let text = text.trim_end();
    if text.starts_with('\\') {
        return true;
    }
    if !text.ends_with(';') {
        return false;
    }
    match Tokenizer::new(&GenericDialect, text).tokenize() {
        Ok(tokens) => tokens.last() == Some(&Token::SemiColon),
        // Other errors are reported when the statement runs.
        Err(error) => {
            let open_quote = ["Unterminated", "Expected close"];
            !open_quote.iter().any(|text| error.message.contains(text))
        }
    }
}

impl Validator for Lines {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        if is_complete(context.input()) { Ok(ValidationResult::Valid(None)) } else { Ok(ValidationResult::Incomplete) }
    }
}

impl Completer for Lines {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let is_in_quotes = !line[..position].matches('\'').count().is_multiple_of(2);
        if is_in_quotes || line.starts_with("\\i ") {
            self.0.complete(line, position, context)
        } else {
            Ok((position, Vec::new()))
        }
    }
}

impl Hinter for Lines {
    type Hint = String;
}

impl Highlighter for Lines {}

impl Helper for Lines {}

#[cfg(test)]
mod tests {
    use super::*;
    use tadoc_session::MaxWidth;

    #[tokio::test]
    async fn widths_are_set_at_the_prompt() {
        let mut session = Console::for_tables().unwrap();
        for (line, width) in [("\\maxwidth 7", "7"), ("\\maxwidth inf", "inf")] {
            assert!(session.answer(line).await.is_ok());
            assert_eq!(session.max_width.to_string(), width);
        }
        for line in ["\\maxwidth 0", "\\maxwidth -1", "\\maxwidth 1 2"] {
            assert!(session.answer(line).await.is_err(), "{line}");
            assert_eq!(session.max_width, MaxWidth::Unlimited);
        }
    }

    #[tokio::test]
    async fn functions_are_described_at_the_prompt() {
        let session = Console::for_tables().unwrap();
        session.prepare(Vec::new()).await.unwrap();
        let kwic = session.help_for("KWIC").await.unwrap();
        assert!(kwic.starts_with("kwic(corpus, query, width => 8,"), "{kwic}");
        for part in
            ["sample => NULL, seed => 0)\n", "\n  sample => NULL: ", "\n  left_words List", "\nexample:\n  SELECT"]
        {
            assert!(kwic.contains(part), "{part}: {kwic}");
        }
        assert!(session.help_for("abs").await.unwrap().starts_with("abs(numeric_expression)\n  Returns"));
        for name in session.texts("SELECT function FROM tadoc_functions()").await.unwrap() {
            let described = session.help_for(&name).await.unwrap();
            assert!(described.starts_with(&format!("{name}(")) && described.contains("arguments:"), "{described}");
        }
        let missing = session.help_for("k'wic").await.unwrap_err().into_text();
        assert_eq!(missing, "there is no function k'wic; \\h lists those over corpora and texts");
    }

    #[tokio::test]
    async fn commands_of_the_prompt_run() {
        let mut session = Console::for_tables().unwrap();
        session.prepare(Vec::new()).await.unwrap();
        for line in
            ["CREATE TABLE t AS SELECT 1 AS a;", "\\d", "\\d t", "\\h", "\\h matches", "\\?", "\\quiet", "\\pset"]
        {
            let answered = session.answer(line).await;
            assert!(answered.is_ok(), "{line}: {:?}", answered.err());
        }
    }

    #[test]
    fn lines_end_with_a_semicolon_outside_of_quotes() {
        for text in ["SELECT 1;", "\\q", "SELECT 'a;b';\n", &format!("SELECT 1{};", "+1".repeat(100_000))] {
            assert!(is_complete(text));
        }
        for text in ["SELECT 1", "", "SELECT 'a;", "SELECT 1; -- x;", "SELECT \"a;"] {
            assert!(!is_complete(text), "{text}");
        }
    }
}
