//! `tadoc worker`: a machine that answers parts of statements of `tadoc sql --workers`, and builds blocks of `tadoc
//! ingest --workers`; and the arguments that name such machines.
//!
//! ```text
//! tadoc sql --workers ══ parts of plans ══▶ access ─▶ worker ─▶ files, other workers
//!                     ◀═════ rows ════════
//! tadoc ingest --workers ══ blocks ═════▶ access ─▶ builder: no files
//!                        ◀═ segments ════
//! ```
//!
//! A worker shares the connections, the token, TLS and the stop of `tadoc serve`, and the limit of memory and
//! the allowed places of `tadoc sql`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use clap::Args;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionContext;
use datafusion_tadoc_distributed::{
    BlockWorkers, Credentials, WORKER_VERSION, WorkerAccess, WorkerUrls, register_workers, with_blocks, worker_of,
    worker_routes,
};
use http_body_util::BodyExt;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tadoc::build::RemoteBuilder;
use tadoc_documents::display;
use tadoc_session::{Engine, Failure, Outcome, interrupt, limited, note, runtime_of, sandbox_over};
use tokio::net::TcpListener;

use crate::access::{Access, check, parse_address};
use crate::connections::{Connections, InUse};
use crate::corpora::usual_memory;
use crate::metrics::Metrics;
use crate::{tls, token};

/// Threads of connections and of tasks. Many, so that the system shares the cores among tasks that
/// compute for long without a pause.
const TASK_THREADS: usize = 64;
/// Maximum number of threads that load corpora and compute for table functions.
const MAX_BLOCKING: usize = 2048;
/// Requests at a time on one connection: each task of a statement has one from its begin to its end.
const MAX_REQUESTS: u32 = 1 << 16;

/// Variable of the environment with the workers.
const WORKERS_VARIABLE: &str = "TADOC_WORKERS";

/// Answer parts of statements of other machines
///
/// `tadoc sql --workers` divides the segments of corpora between workers. Each worker reads its
/// segments itself, so it needs the same files: in an object store, behind HTTP, or in a folder that
/// all machines share at the same path. Workers send rows to each other, so each must reach all
/// others by the URLs that --workers names. A worker only reads, unless --writable lets it write segments of living
/// corpora.
///
/// `tadoc ingest --workers` sends blocks of text, and the worker sends back their segments. It reads and writes no file
/// for them.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Address, or name such as localhost, and port to listen at; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8816", value_name = "ADDRESS:PORT",
          value_parser = parse_address)]
    listen: SocketAddr,

    /// Read only this file or folder, or what is below this URL (may be given several times)
    /// [default: what the user of the process may read]
    #[arg(long, value_name = "LOCATION")]
    allow: Vec<String>,

    /// Allow URLs whose hosts are not public: loopback, link-local and private addresses
    #[arg(long, requires = "allow")]
    allow_private: bool,

    /// Write segments of living corpora, for COPY in sessions with SET tadoc.workers_write = true
    #[arg(long, conflicts_with = "allow")]
    writable: bool,

    /// File with the token that coordinators and workers have to send, and that this worker sends to
    /// others [default: the variable TADOC_TOKEN, if it is set]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// File with the certificates of the worker (PEM); its URL then begins with https
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// File with the private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// File with the certificates that other workers may have, or with those of an authority that
    /// signed them (PEM) [default: the authorities of the system]
    #[arg(long, value_name = "FILE")]
    workers_ca: Option<PathBuf>,

    /// Maximum memory of the process, such as 4GiB [default: three quarters of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = display::parse_size)]
    memory_limit: Option<u64>,

    /// Maximum number of connections; idle ones are closed for new ones
    #[arg(long, default_value = "512", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    max_connections: u16,

    /// Time that running tasks have to end after Ctrl-C or SIGTERM
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = display::parse_age)]
    grace: Duration,
}

const EXAMPLES: &str = "\
Examples:
  tadoc worker                                for this machine, at http://127.0.0.1:8816
  TADOC_TOKEN=… tadoc worker --listen 10.0.0.7:8816 --allow s3://bucket/corpora/
  tadoc sql --workers http://10.0.0.7:8816,http://10.0.0.8:8816 -c \"SELECT …\"
  tadoc ingest logs -o logs.tadoc --workers http://10.0.0.7:8816,http://10.0.0.8:8816
  tadoc worker --listen 0.0.0.0:8816 --tls-cert one.pem --tls-key one.key --workers-ca ca.pem
  tadoc sql --workers https://one:8816,https://two:8816 --workers-ca ca.pem -c \"SELECT …\"

Without --tls-cert the token and the rows are not encrypted: keep such workers in a network of your own.
/healthz says ok while the worker takes tasks.

Exit status: 0 stopped by Ctrl-C or SIGTERM, 1 failed, 2 usage, 130 stopped by a second Ctrl-C.";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let secret = token(arguments.token_file.as_deref())?;
    let access = Access::new(secret.clone(), arguments.listen)?;
    let sandbox = match arguments.allow.as_slice() {
        [] => None,
        places => Some(sandbox_over(places, arguments.allow_private)?),
    };
    let memory_limit = arguments.memory_limit.or_else(usual_memory);
    let (environment, _pool) = limited(RuntimeEnvBuilder::new(), memory_limit, sandbox.as_ref());
    let tls = tls(arguments.tls_cert.as_deref(), arguments.tls_key.as_deref())?;
    let credentials = credentials(secret.as_deref(), arguments.workers_ca.as_deref())?;
    let permission = if arguments.writable { WorkerAccess::Write } else { WorkerAccess::Read };
    let environment = environment.build_arc()?;
    let worker = worker_of(Arc::clone(&environment), credentials, permission);
    let routes = with_blocks(worker_routes(worker), environment);
    let router = router(routes.into_axum_router(), access);
    let max_connections = arguments.max_connections.into();
    let connections = Connections::new(max_connections, MAX_REQUESTS, Arc::new(Metrics::default()));
    let stop = interrupt::ask_twice();
    let num_cores = available_parallelism().map_or(1, usize::from);
    let threads = runtime_of(TASK_THREADS.max(num_cores), MAX_BLOCKING)?;
    let served = threads.block_on(async {
        let listener = TcpListener::bind(arguments.listen).await;
        let what = format!("listening at {}", arguments.listen);
        let listener = listener.map_err(|error| Failure::with_cause(&what, &error))?;
        let address = listener.local_addr()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        note(format_args!("{WORKER_VERSION}: working at {scheme}://{address}"));
        connections.serve(listener, tls, router, stop, arguments.grace).await;
        Ok(())
    });
    // Dropping the runtime would wait for tasks that never end.
    threads.shutdown_timeout(interrupt::GRACE);
    served
}

fn router(routes: Router, access: Access) -> Router {
    routes
        .route("/healthz", get(|| async { "ok\n" }))
        .layer(from_fn(hold_connection))
        .layer(from_fn_with_state(access, check))
}

/// Keeps the connection in use until the last row of an answer was sent.
async fn hold_connection(request: Request, next: Next) -> Response {
    let in_use = request.extensions().get::<InUse>().cloned();
    let (head, body) = next.run(request).await.into_parts();
    let held = body.map_frame(move |frame| {
        let _ = &in_use;
        frame
    });
    Response::from_parts(head, Body::new(held))
}

/// Arguments that name workers.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Workers")]
pub struct Named {
    /// Work on these machines, on each of which `tadoc worker` runs: URLs with commas between them
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

impl Named {
    /// Returns the workers, as the engine of a session; `None` if none are named. A warning tells of each worker that
    /// is lost.
    ///
    /// # Errors
    /// A file cannot be read, or what it says is no list of workers.
    pub fn engine(&self) -> Outcome<Option<Box<dyn Engine>>> {
        let Some(workers) = self.urls()? else { return Ok(None) };
        let workers = workers.with_warnings(|fault| note(format_args!("warning: {fault}")));
        Ok(Some(Box::new(Workers(workers))))
    }

    /// Returns the workers, as builders of the segments of an ingest; `None` if none are named. A warning tells of each
    /// fault of a worker, now and later.
    ///
    /// # Errors
    /// The errors of [`engine`](Self::engine), and those of the system when it starts threads.
    pub fn builder(&self) -> Outcome<Option<Arc<dyn RemoteBuilder>>> {
        let Some(workers) = self.urls()? else { return Ok(None) };
        let workers = BlockWorkers::new(&workers, |fault| note(format_args!("warning: {fault}")));
        let workers = workers.map_err(|error| Failure::with_cause("starting a thread", &error))?;
        Ok(Some(Arc::new(workers)))
    }

    /// Returns the URLs of the workers and the credentials; `None` if none are named.
    fn urls(&self) -> Outcome<Option<WorkerUrls>> {
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
        Ok(Some(workers.with_credentials(credentials)))
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
fn credentials(token: Option<&str>, certificates: Option<&Path>) -> Outcome<Credentials> {
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
