//! Tests of `tadoc serve` and `tadoc mcp` as their clients meet them: the binary serves corpora of a temporary folder.
//!
//! - `flight`: Flight SQL, with the client of arrow-flight. `tests/python` has ADBC.
//! - `limits`: time, memory, cancelling, and the stop of the server.
//! - `bounded`: statements that ask for far more than the limits give.
//! - `access`: tokens, TLS, and names of hosts.
//! - `http`: the page's requests, health and metrics.
//! - `grafana`: the dashboard of `sql/examples/grafana`, asked as Grafana asks.
//! - `hostile`: clients that send rubbish, read slowly, or open thousands of connections.
//! - `mcp`: agents, with the client of the SDK of the Model Context Protocol.
//! - `mcp_http`: the same over HTTP, and what a page of another site may not do.
//! - `page`: the page in a browser, if there is one.
//! - `load`: many clients at a time. `SERVE_CLIENTS=64 SERVE_SECONDS=30 cargo test --test serve load
//!   -- --nocapture` measures.
//! - `readme`: README.md, the reference, `--help` and `\h` say the same.
//! - Helpers: `server`, `browser`.

#![allow(clippy::unwrap_used, clippy::panic)]

mod access;
mod bounded;
mod browser;
mod flight;
mod grafana;
mod hostile;
mod http;
mod limits;
mod load;
mod mcp;
mod mcp_http;
mod page;
mod readme;
mod server;
