//! `tadoc`: the command line of datafusion-tadoc.
//!
//! ```text
//! ingest    files, folders, globs, URLs, standard input ──▶ corpus.tadoc
//! sql       statements, scripts or a prompt; every tadoc table function is registered
//! serve     a server for SQL clients (Flight SQL) and browsers
//! mcp       a server for agents (Model Context Protocol)
//! worker    a machine of `tadoc sql --workers` and `tadoc ingest --workers` (feature `distributed`)
//! info      contents of a corpus (reads the footer only)
//! verify    checks every stored byte
//! ls        paths of documents
//! cat       exact bytes of documents
//! restore   documents as files below a folder
//! export    documents as files of rows
//! grep      lines that match a regular expression
//! demo      a tour on text that is already on this machine
//! sync      keeps a living corpus in step with a folder
//! edit      changes documents of a living corpus
//! optimize  compresses a living corpus anew
//! history   versions of a living corpus
//! clean-up  removes files that only old versions need
//! plot      an SVG of the result of a query
//! calibrate measures storage and the link to the GPU
//! ```
//!
//! Each subcommand has its own file; `history` and `clean-up` share `versions`. Shared modules are `living`
//! (an open living corpus), `ls` (its documents by path), `workers` (and its twin in a build without them),
//! `taken` (the paths that it has, and the files that they came from), `tasks` (its documents a few at a
//! time), `inputs` (the files to read), `columns` (the user columns of rows) and `output` (the files that
//! commands write). Statements are those of `tadoc_session`, and documents are read by `tadoc_documents`. The
//! command uses only the public API of the libraries.
//!
//! The binary calls [`main`]. The wheel of the Python module calls [`run`] for its command `tadoc`.

mod calibrate;
mod cat;
mod columns;
mod demo;
mod edit;
mod export;
mod grep;
mod info;
mod ingest;
mod inputs;
mod living;
mod ls;
mod output;
mod plot;
mod restore;
mod sql;
mod sync;
mod taken;
mod tasks;
mod verify;
mod versions;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::{env, thread};

use clap::{Parser, Subcommand};
use tadoc_session::{Failure, Outcome, STACK_BYTES, interrupt};

/// `tadoc worker`, and the arguments of other commands that name workers.
#[cfg(feature = "distributed")]
mod workers {
    pub use tadoc_server::worker::{Arguments as Worker, Named, run};
}

/// The twin of `workers` in a build without the feature `distributed`: it says what is left out.
#[cfg(not(feature = "distributed"))]
mod workers {
    use std::ffi::OsString;
    use std::sync::Arc;

    use clap::Args;
    use tadoc::build::RemoteBuilder;
    use tadoc_session::{Engine, Failure, Outcome};

    /// Arguments of `tadoc worker`.
    pub type Worker = LeftOut;

    /// Not in this build: compile it with --features full
    #[derive(Args)]
    #[command(disable_help_flag = true)]
    pub struct LeftOut {
        /// Arguments of the command, which are not read
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        _arguments: Vec<OsString>,
    }

    impl LeftOut {
        /// Refuses the command `name`.
        ///
        /// # Errors
        /// Always.
        pub fn refuse(&self, name: &str) -> Outcome {
            let problem = format!("this build has no `tadoc {name}`");
            Err(Failure::usage(format!("{problem}; compile it with `--features full`")))
        }
    }

    /// Arguments that name workers: none.
    #[derive(Args)]
    pub struct Named {}

    impl Named {
        /// Returns no engine.
        ///
        /// # Errors
        /// None.
        pub fn engine(&self) -> Outcome<Option<Box<dyn Engine>>> {
            Ok(None)
        }

        /// Returns no builder.
        ///
        /// # Errors
        /// None.
        pub fn builder(&self) -> Outcome<Option<Arc<dyn RemoteBuilder>>> {
            Ok(None)
        }
    }

    /// Refuses `tadoc worker`.
    ///
    /// # Errors
    /// Always.
    pub fn run(arguments: &Worker) -> Outcome {
        arguments.refuse("worker")
    }
}

/// SQL on compressed text.
///
/// `tadoc ingest` turns text into a corpus: one compressed file (.tadoc) that is searched,
/// counted and read back without decompressing it. `tadoc sql` asks it questions.
#[derive(Parser)]
#[command(name = "tadoc", version, after_long_help = EXAMPLES)]
#[command(propagate_version = true, arg_required_else_help = true, infer_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Ingest(Box<ingest::Arguments>),
    Sql(sql::Arguments),
    #[cfg(feature = "server")]
    Serve(tadoc_server::Arguments),
    #[cfg(not(feature = "server"))]
    Serve(workers::LeftOut),
    #[cfg(feature = "server")]
    Mcp(tadoc_server::mcp::Arguments),
    #[cfg(not(feature = "server"))]
    Mcp(workers::LeftOut),
    Worker(workers::Worker),
    Info(info::Arguments),
    Verify(verify::Arguments),
    Sync(sync::Arguments),
    Edit(edit::Arguments),
    Optimize(versions::Optimize),
    CleanUp(versions::CleanUp),
    History(versions::History),
    Ls(ls::Arguments),
    Cat(cat::Arguments),
    Restore(restore::Arguments),
    Export(export::Arguments),
    Grep(grep::Arguments),
    Demo(demo::Arguments),
    Plot(plot::Arguments),
    Calibrate(calibrate::Arguments),
}

const EXAMPLES: &str = "\
Examples:
  tadoc demo                                  a tour on text that is already on this machine
  tadoc ingest notes/ -o notes.tadoc          one document for each file of a folder
  tadoc ingest app.log.gz --documents lines -o app.tadoc
  tadoc sql -c \"SELECT * FROM word_count('notes.tadoc') ORDER BY count DESC LIMIT 10\"
  tadoc ls notes.tadoc '*.md'                 the paths of documents
  tadoc cat notes.tadoc todo/monday.md        the exact bytes of one document
  tadoc restore notes.tadoc -o notes/         every document as a file again
  tadoc export notes.tadoc -o rows/           documents as JSON lines or Parquet, for other programs
  tadoc grep -i 'power (loss|fail)' notes.tadoc   lines that match a regular expression
  tadoc serve notes.tadoc                     for SQL clients (Flight SQL) and browsers
  tadoc mcp notes.tadoc                       for agents (Model Context Protocol)
  tadoc ingest notes/ -o living/ --append     a living corpus: documents are added and edited
  tadoc sync notes/ living/                   documents added, changed and dropped as the files are
  tadoc edit living/ --append 7 'one more line'

Exit status:
  0    done
  1    failed: one line on standard error says what, where, and the way out
  2    the command line was not understood
       (grep: 1 if there is no line, 2 if it failed)
  130  interrupted (Ctrl-C); no half-written output is left behind";

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    interrupt::leave(run(env::args_os()))
}

/// Runs a command line and returns its exit status. The first argument is the name of the program.
///
/// Ends the process where a command line is not understood, or asks for help.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = Arguments::parse_from(arguments);
    datafusion_tadoc::quiet_readers();
    let outcome = on_deep_stack(|| dispatch(arguments.command));
    let status = outcome.map_or_else(Failure::report, |()| 0);
    // Only a Rust program does this at its end. An error means that nobody reads any more.
    let _ = io::stdout().flush();
    status
}

/// Runs `command` on a thread with room for deep statements.
fn on_deep_stack(command: impl FnOnce() -> Outcome + Send) -> Outcome {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let running = thread.spawn_scoped(scope, command);
        let running = running.map_err(|error| Failure::with_cause("starting a thread", &error))?;
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn dispatch(command: Command) -> Outcome {
    match command {
        Command::Ingest(arguments) => ingest::run(&arguments),
        Command::Sql(arguments) => sql::run(arguments),
        #[cfg(feature = "server")]
        Command::Serve(arguments) => tadoc_server::run(&arguments),
        #[cfg(not(feature = "server"))]
        Command::Serve(arguments) => arguments.refuse("serve"),
        #[cfg(feature = "server")]
        Command::Mcp(arguments) => tadoc_server::mcp::run(&arguments),
        #[cfg(not(feature = "server"))]
        Command::Mcp(arguments) => arguments.refuse("mcp"),
        Command::Worker(arguments) => workers::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Sync(arguments) => sync::run(&arguments),
        Command::Edit(arguments) => edit::run(&arguments),
        Command::Optimize(arguments) => versions::optimize(&arguments),
        Command::CleanUp(arguments) => versions::clean_up(&arguments),
        Command::History(arguments) => versions::history(&arguments),
        Command::Ls(arguments) => ls::run(&arguments),
        Command::Cat(arguments) => cat::run(&arguments),
        Command::Restore(arguments) => restore::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Grep(arguments) => grep::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Plot(arguments) => plot::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments),
    }
}
