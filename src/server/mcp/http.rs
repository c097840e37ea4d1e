//! `tadoc mcp --http`: the protocol over HTTP, for agents that do not start the server themselves.
//!
//! ```text
//! POST /mcp ─▶ token, or a name of this machine ─▶ no Origin ─▶ rmcp ─▶ handler, as over standard input
//!              (access, as `tadoc serve`)          │                └──▶ one answer in JSON
//!                                                  └─ with one: 403
//! GET /healthz ─▶ ok
//! ```
//!
//! This is the transport *Streamable HTTP* of the protocol, without sessions: the tools only read, so each request
//! stands for itself, and a server that was started again answers as before. A client that goes away ends the statement
//! of its request.
//!
//! A page of another site can make a browser send requests, also to 127.0.0.1 by a name of its own (DNS rebinding). So,
//! as the protocol demands, a request with an `Origin`, which browsers send and agents do not, is refused. Without a
//! token the server only listens at addresses of this machine, and answers only to `localhost` and to addresses.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use clap::Args;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tadoc_session::{Failure, Outcome, note, runtime_of};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use super::handler::Handler;
use crate::access::{self, Access};
use crate::connections::Connections;
use crate::metrics::Metrics;
use crate::{CONNECTION_THREADS, MAX_REQUESTS, answer_in_time, tls, token};

/// Path of the protocol.
const PATH: &str = "/mcp";
/// Maximum number of connections; idle ones are closed for new ones.
const MAX_CONNECTIONS: usize = 256;
/// Maximum bytes of a request.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Time that running requests have to end after Ctrl-C or SIGTERM.
const GRACE: Duration = Duration::from_secs(30);

/// Arguments of the server over HTTP.
#[derive(Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpArguments {
    /// Listen at this address, or name such as localhost, instead of standard input; clients connect to
    /// http://ADDRESS:PORT/mcp. Port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = access::parse_address)]
    http: Option<SocketAddr>,

    /// File with the token that clients have to send [default: the variable TADOC_TOKEN, if it is set]
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,

    /// File with the certificates of the server (PEM); clients then use https://
    #[arg(long, value_name = "FILE", requires_all = ["http", "tls_key"])]
    tls_cert: Option<PathBuf>,

    /// File with the private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// A server that is ready to listen.
pub struct Server {
    address: SocketAddr,
    access: Access,
    tls: Option<TlsAcceptor>,
}

impl HttpArguments {
    /// Returns the server, or `None` if messages come on standard input.
    ///
    /// # Errors
    /// Other machines reach the address and there is no token, or a file cannot be read.
    pub fn server(&self) -> Outcome<Option<Server>> {
        let Some(address) = self.http else { return Ok(None) };
        let access = Access::new(token(self.token_file.as_deref())?, address)?;
        let tls = tls(self.tls_cert.as_deref(), self.tls_key.as_deref())?;
        Ok(Some(Server { address, access, tls }))
    }
}

impl Server {
    /// Answers requests until `stop` wakes. A request has `request_time`.
    ///
    /// # Errors
    /// The address is taken, or it is not one of this machine.
    pub fn serve(self, handler: Handler, request_time: Duration, stop: Arc<Notify>) -> Outcome {
        let connections = Connections::new(MAX_CONNECTIONS, MAX_REQUESTS, Arc::new(Metrics::default()));
        let router = router(handler, self.access, request_time);
        runtime_of(CONNECTION_THREADS, 1)?.block_on(async {
            let listener = TcpListener::bind(self.address).await;
            let what = format!("listening at {}", self.address);
            let listener = listener.map_err(|error| Failure::with_cause(&what, &error))?;
            let scheme = if self.tls.is_some() { "https" } else { "http" };
            note(format_args!("answering at {scheme}://{}{PATH}", listener.local_addr()?));
            connections.serve(listener, self.tls, router, stop, GRACE).await;
            Ok(())
        })
    }
}

fn router(handler: Handler, access: Access, request_time: Duration) -> Router {
    // `access` has compared the name in the head.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_REQUEST_BYTES)
        .disable_allowed_hosts()
        .enforce_origin_validation();
    let handler = Arc::new(handler);
    let handlers = move || Ok(Arc::clone(&handler));
    let service = StreamableHttpService::new(handlers, Arc::new(NeverSessionManager::default()), config);
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route_service(PATH, service)
        .layer(from_fn_with_state(request_time, answer_in_time))
        .layer(from_fn_with_state(access, access::check))
}
