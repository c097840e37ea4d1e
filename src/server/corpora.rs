//! Corpora that are served, and the limits of statements: arguments that `tadoc serve` and `tadoc mcp` share.
//!
//! ```text
//! CORPUS…, --allow             ─▶ sandbox ─▶ session in safe mode ─▶ a table for each corpus
//! --timeout, --memory-limit, … ─▶ limits of each statement
//! ```

use std::fs;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use clap::Args;
use tadoc_documents::display;
use tadoc_session::{Failure, NamedLocation, Outcome, Session, sandbox_over};

use crate::statements::Limits;

/// The corpora, and the places that statements may read beside them.
#[derive(Args)]
pub struct Served {
    /// Corpora to serve: files, living corpora or URLs; NAME=LOCATION gives a table another name
    #[arg(value_name = "CORPUS", required = true)]
    corpora: Vec<PathBuf>,

    /// Allow statements to read this file or folder too, or everything below this URL (may be given
    /// several times)
    #[arg(long, value_name = "LOCATION")]
    allow: Vec<String>,

    /// Allow URLs whose hosts are not public: loopback, link-local and private addresses
    #[arg(long)]
    allow_private: bool,
}

impl Served {
    /// Returns the names of the tables and the locations of the corpora.
    ///
    /// # Errors
    /// A location gives no name, or two give the same.
    pub fn named(&self) -> Outcome<Vec<NamedLocation>> {
        NamedLocation::from_arguments(self.corpora.iter().map(PathBuf::as_path))
    }

    /// Opens a session in safe mode, with a table for each corpus. Statements read these corpora and
    /// what `--allow` names, and nothing else.
    ///
    /// # Errors
    /// A corpus cannot be opened, or two have the same name.
    pub async fn open(&self, memory_limit: Option<u64>) -> Outcome<Session> {
        let corpora = self.named()?;
        let mut sandbox = sandbox_over(&self.allow, self.allow_private)?;
        for corpus in &corpora {
            let allowed = sandbox.allow(corpus.root());
            sandbox = allowed.map_err(|error| Failure::from(error).about(&corpus.location))?;
        }
        let session = Session::for_strangers(memory_limit, sandbox).await?;
        for corpus in corpora {
            session.add_table(corpus).await?;
        }
        Ok(session)
    }
}

/// Time and memory of statements.
#[derive(Args)]
pub struct StatementLimits {
    /// Maximum time of a statement, up to its last row, such as 30s or 10m
    #[arg(long, default_value = "5m", value_name = "TIME", value_parser = parse_limit)]
    pub timeout: Duration,

    /// Maximum memory of the process, such as 4GiB [default: three quarters of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = display::parse_size)]
    memory_limit: Option<u64>,

    /// Maximum memory of one statement, without open corpora [default: a half of --memory-limit]
    #[arg(long, value_name = "SIZE", value_parser = display::parse_size)]
    statement_memory: Option<u64>,
}

impl StatementLimits {
    /// Returns the maximum memory of the process; `None` if nobody knows that of the machine.
    pub fn memory_of_process(&self) -> Option<u64> {
        self.memory_limit.or_else(usual_memory)
    }

    /// Returns the limits of statements, of which `num_statements` are open at a time.
    pub fn for_statements(&self, num_statements: usize) -> Limits {
        let half_of_process = self.memory_of_process().map(|limit| limit / 2);
        let memory_bytes = self.statement_memory.or(half_of_process);
        Limits {
            time: self.timeout,
            memory_bytes: memory_bytes.and_then(|bytes| bytes.try_into().ok()).unwrap_or(usize::MAX),
            num_statements,
            num_turns: 2 * available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Returns three quarters of the memory of the machine, or `None` if the system does not say.
pub fn usual_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some((kib << 10) / 4 * 3)
}

/// Parses a limit of time as [`display::parse_age`] does. It is not 0.
fn parse_limit(text: &str) -> Result<Duration, String> {
    match display::parse_age(text) {
        Ok(Duration::ZERO) => Err("expected a time above 0, such as 90s, 30m or 12h".to_owned()),
        parsed => parsed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_time_are_above_zero() {
        assert!(parse_limit("0").is_err() && parse_limit("0s").is_err());
        assert_eq!(parse_limit("2m"), Ok(Duration::from_secs(120)));
    }
}
