//! `tadoc serve`: a server for SQL clients and browsers; and `tadoc mcp`, one for agents.
//!
//! ```text
//! connections ─▶ access ─┬─▶ flight (Flight SQL: ADBC, JDBC)
//!                        └─▶ http (page, /query, /healthz, /metrics)
//!                                  └──▶ statements ─▶ the session of `tadoc sql`
//! ```
//!
//! [`run`] is the command `tadoc serve`. [`mcp::run`] is `tadoc mcp`, which shares corpora and statements with it.
//! [`worker::run`] is `tadoc worker` (feature `distributed`), which shares connections and access.
//!
//! Connections run on a few threads of their own, and statements on others, so that a computation
//! delays no request. `statements` has the limits of statements, `connections` those of clients.

#![cfg(feature = "server")]

mod access;
mod connections;
mod corpora;
mod flight;
mod http;
pub mod mcp;
mod metrics;
mod refusal;
mod statements;
mod wire;
#[cfg(feature = "distributed")]
pub mod worker;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use clap::Args;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tadoc_documents::display;
use tadoc_session::{Failure, Outcome, interrupt, note, runtime_of};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use self::access::{Access, TOKEN_VARIABLE};
use self::connections::Connections;
use self::corpora::{Served, StatementLimits};
use self::flight::Flight;
use self::metrics::Metrics;
use self::statements::{MAX_STATEMENT_BYTES, Statements, threads_of_statements};

/// Path of the requests of Flight.
const FLIGHT: &str = "/arrow.flight.protocol.FlightService/{method}";
/// Threads of connections.
const CONNECTION_THREADS: usize = 2;
/// Requests at a time on one connection.
const MAX_REQUESTS: u32 = 32;
/// Time that a request has beyond the time of its statement.
const REQUEST: Duration = Duration::from_secs(30);

/// Serve corpora to SQL clients and browsers
///
/// Each CORPUS becomes a table with the name of its file. Clients of Arrow Flight SQL (ADBC, JDBC
/// and ODBC drivers) connect to grpc://ADDRESS, and a browser shows a page at http://ADDRESS. The
/// server only reads, and only these corpora.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    served: Served,

    /// Address, or name such as localhost, and port to listen at; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8815", value_name = "ADDRESS:PORT",
          value_parser = access::parse_address)]
    listen: SocketAddr,

    /// File with the token that clients have to send [default: the variable TADOC_TOKEN, if it is
    /// set]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// File with the certificates of the server (PEM); clients then use grpc+tls:// and https://
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// File with the private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    #[command(flatten)]
    limits: StatementLimits,

    /// Maximum number of statements that wait, run or send rows
    #[arg(long, default_value = "256", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    max_statements: u16,

    /// Maximum number of connections; idle ones are closed for new ones
    #[arg(long, default_value = "512", value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    max_connections: u16,

    /// Time that running statements have to end after Ctrl-C or SIGTERM
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = display::parse_age)]
    grace: Duration,
}

const EXAMPLES: &str = "\
Examples:
  tadoc serve notes.tadoc                     a page at http://127.0.0.1:8815, for this machine
  tadoc serve law=laws.tadoc s3://b/tickets/  two tables, law and tickets
  TADOC_TOKEN=… tadoc serve --listen 0.0.0.0:8815 --tls-cert c.pem --tls-key k.pem notes.tadoc

In Python, with adbc_driver_flightsql:
  import adbc_driver_flightsql.dbapi as flight
  con = flight.connect(\"grpc://127.0.0.1:8815\")
  con.cursor().execute(\"SELECT * FROM word_count('notes') LIMIT 10\").fetch_arrow_table()

In Java, with the JDBC driver of Arrow Flight SQL:
  jdbc:arrow-flight-sql://127.0.0.1:8815/?useEncryption=false

/healthz says ok while the server takes statements, /metrics has counters for Prometheus.

Exit status: 0 stopped by Ctrl-C or SIGTERM, 1 failed, 2 usage, 130 stopped by a second Ctrl-C.";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let access = Access::new(token(arguments.token_file.as_deref())?, arguments.listen)?;
    let tls = tls(arguments.tls_cert.as_deref(), arguments.tls_key.as_deref())?;
    let threads = threads_of_statements()?;
    let session = threads.block_on(arguments.served.open(arguments.limits.memory_of_process()))?;
    let limits = arguments.limits.for_statements(arguments.max_statements.into());
    let metrics = Arc::new(Metrics::default());
    let statements = Statements::new(session, threads.handle().clone(), limits, Arc::clone(&metrics));
    let connections = Connections::new(arguments.max_connections.into(), MAX_REQUESTS, metrics);
    let router = router(statements, access, arguments.limits.timeout.saturating_add(REQUEST));
    let stop = interrupt::ask_twice();
    let served = runtime_of(CONNECTION_THREADS, 1)?.block_on(async {
        let listener = TcpListener::bind(arguments.listen).await;
        let what = format!("listening at {}", arguments.listen);
        let listener = listener.map_err(|error| Failure::with_cause(&what, &error))?;
        let address = listener.local_addr()?;
        let scheme = if tls.is_some() { ("grpc+tls", "https") } else { ("grpc", "http") };
        note(format_args!("serving at {}://{address} and {}://{address}", scheme.0, scheme.1));
        connections.serve(listener, tls, router, stop, arguments.grace).await;
        Ok(())
    });
    // Dropping the runtime would wait for statements that never end.
    threads.shutdown_timeout(interrupt::GRACE);
    served
}

fn router(statements: Arc<Statements>, access: Access, request_time: Duration) -> Router {
    let flight = Flight::new(Arc::clone(&statements), access.clone());
    let flight = FlightServiceServer::new(flight).max_decoding_message_size(2 * MAX_STATEMENT_BYTES);
    http::routes(statements)
        .route_service(FLIGHT, flight)
        .layer(from_fn_with_state(request_time, answer_in_time))
        .layer(from_fn_with_state(access, access::check))
}

/// Ends a request that takes longer than `time`.
async fn answer_in_time(State(time): State<Duration>, request: Request, next: Next) -> Response {
    let answered = tokio::time::timeout(time, next.run(request)).await;
    answered.unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response())
}

/// Returns the token that clients have to send: that of `file`, or of the environment.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn token(file: Option<&Path>) -> Outcome<Option<String>> {
    match file {
        Some(path) => {
            let text = fs::read_to_string(path);
            text.map(Some).map_err(|error| Failure::with_cause(path.display(), &error))
        }
        None => Ok(std::env::var(TOKEN_VARIABLE).ok()),
    }
}

/// Returns how connections are encrypted, or `None` without files of certificates and their key.
///
/// # Errors
/// A file cannot be read, or the key is not that of the certificate.
pub(crate) fn tls(certificates: Option<&Path>, key: Option<&Path>) -> Outcome<Option<TlsAcceptor>> {
    let (Some(certificates), Some(key)) = (certificates, key) else { return Ok(None) };
    let failed = |path: &Path| {
        let shown = path.display().to_string();
        move |error: rustls::pki_types::pem::Error| Failure::with_cause(shown.clone(), &error)
    };
    let chain = CertificateDer::pem_file_iter(certificates).map_err(failed(certificates))?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(failed(certificates))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(failed(key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let configured = builder.and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
    let what = format!("{} with {}", certificates.display(), key.display());
    let mut config = configured.map_err(|error| Failure::with_cause(what, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}
