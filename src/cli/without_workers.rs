//! The twin of `workers` in a build without the feature `distributed`: it says what is left out.

use std::ffi::OsString;

use clap::Args;
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
}

/// Refuses `tadoc worker`.
///
/// # Errors
/// Always.
pub fn run(arguments: &Worker) -> Outcome {
    arguments.refuse("worker")
}
