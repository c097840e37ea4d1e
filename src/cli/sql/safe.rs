//! The arguments of safe mode, and the sandbox of `tadoc sql --safe` and `tadoc serve`.

use clap::Args;
use datafusion_tadoc::safety::{Permission, Sandbox};
use tadoc_session::{Outcome, sandbox_over};

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
    /// Returns the sandbox; `None` without `--safe`.
    ///
    /// # Errors
    /// A place that is allowed does not exist, or it is no valid URL.
    pub fn sandbox(&self) -> Outcome<Option<Sandbox>> {
        if !self.safe {
            return Ok(None);
        }
        let sandbox = sandbox_over(&self.allow, self.allow_private)?;
        Ok(Some(self.permit.iter().copied().fold(sandbox, Sandbox::permit)))
    }
}
