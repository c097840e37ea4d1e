//! A scheduler of Ballista that plans statements over corpora and GSST columns.
//!
//! ```text
//! cargo run -p datafusion-tadoc-ballista --example scheduler -- 127.0.0.1:50050 [ROOT…]
//! ```
//!
//! With roots (folders or URLs), statements read nothing else.

#[path = "common/process.rs"]
mod process;

use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion_tadoc_ballista::SchedulerBuilder;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<()> {
    process::print_warnings();
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:50050".to_owned());
    let mut builder = SchedulerBuilder::new()?.with_silence(process::silence());
    if let Some(runtime) = process::guarded(arguments)? {
        builder = builder.with_runtime(runtime);
    }
    let listener = TcpListener::bind(&address).await;
    let listener = listener.map_err(|error| exec_datafusion_err!("{address}: {error}"))?;
    let address = listener.local_addr().map_err(|error| exec_datafusion_err!("{error}"))?;
    println!("scheduler at df://{address}");
    builder.serve(listener).await
}
