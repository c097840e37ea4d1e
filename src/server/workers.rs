//! The workers of a session: `--workers`, `--workers-file`, and their token.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use datafusion_tadoc_distributed::{Credentials, WorkerUrls, register_workers};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tadoc_session::{Engine, Failure, Outcome};

use crate::token;

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

    /// File with the certificates that workers at https URLs may have, or with those of an authority
    /// that signed them (PEM) [default: the authorities of the system]
    #[arg(long, value_name = "FILE")]
    workers_ca: Option<PathBuf>,
}

impl Arguments {
    /// Returns the workers, as the engine of a session; `None` if none are named.
    ///
    /// # Errors
    /// A file cannot be read, or what it says is no list of workers.
    pub fn engine(&self) -> Outcome<Option<Box<dyn Engine>>> {
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
        let credentials = credentials(token.as_deref(), self.workers_ca.as_deref())?;
        Ok(Some(Box::new(Workers(workers.with_credentials(credentials)))))
    }
}

/// The engine of a session whose statements run on workers.
struct Workers(WorkerUrls);

impl Engine for Workers {
    fn register(&self, context: &SessionContext) -> Result<()> {
        register_workers(context, self.0.clone())
    }
}

/// Returns the credentials of connections to workers: a token, and a file of certificates.
///
/// # Errors
/// The token is none, or the file cannot be read or has no certificate.
pub fn credentials(token: Option<&str>, certificates: Option<&Path>) -> Outcome<Credentials> {
    let mut credentials = Credentials::default();
    if let Some(token) = token {
        credentials = credentials.with_token(token.trim())?;
    }
    let Some(path) = certificates else { return Ok(credentials) };
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| Failure::with_cause(path.display(), &error))?;
    let read: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    if read.is_empty() || read.iter().any(Result::is_err) {
        let shown = path.display();
        return Err(Failure::new(format!("{shown}: expected certificates in the form PEM")));
    }
    Ok(credentials.with_certificates(&text))
}
