//! The workers of a session: `--workers`, `--workers-file`, and their token.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use datafusion_tadoc::distributed::WorkerUrls;

use crate::failure::{Failure, Outcome};
use crate::serve::token;

/// Variable of the environment with the workers.
const WORKERS_VARIABLE: &str = "TADOC_WORKERS";

/// Arguments that name workers.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Workers")]
pub struct Arguments {
    /// Answer on these machines, on each of which `tadoc worker` runs: URLs with commas between them
    /// [default: the variable TADOC_WORKERS, if it is set]
    #[arg(long, value_name = "URL,URL…")]
    workers: Option<String>,

    /// File with the URLs of workers, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "workers")]
    workers_file: Option<PathBuf>,

    /// File with the token that the workers ask for [default: the variable TADOC_TOKEN, if it is set]
    #[arg(long, value_name = "FILE")]
    workers_token_file: Option<PathBuf>,
}

impl Arguments {
    /// Returns the workers; `None` if none are named.
    ///
    /// # Errors
    /// A file cannot be read, or what it says is no list of workers.
    pub fn urls(&self) -> Outcome<Option<WorkerUrls>> {
        let text = match (&self.workers, &self.workers_file) {
            (Some(text), _) => Some(text.clone()),
            (None, Some(path)) => {
                let text = fs::read_to_string(path);
                Some(text.map_err(|error| Failure::with_cause(path.display(), &error))?)
            }
            (None, None) => std::env::var(WORKERS_VARIABLE).ok(),
        };
        let Some(text) = text else { return Ok(None) };
        let workers: WorkerUrls = text.parse()?;
        let token = token(self.workers_token_file.as_deref())?;
        Ok(Some(match token {
            Some(token) => workers.with_token(token.trim())?,
            None => workers,
        }))
    }
}
