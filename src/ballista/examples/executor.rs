//! An executor of Ballista that runs tasks over corpora and GSST columns.
//!
//! ```text
//! cargo run -p datafusion-tadoc-ballista --example executor -- df://127.0.0.1:50050 50051 50052 [ROOT…]
//! ```
//!
//! The two ports are those of its rows and of its tasks. With roots (folders or URLs), tasks read nothing
//! else. `VCORES` of the environment is the number of partitions that it computes at a time, or that of its cores.

#[path = "common/process.rs"]
mod process;

use datafusion::common::config_datafusion_err;
use datafusion::error::Result;
use datafusion_tadoc_ballista::ExecutorBuilder;
use url::Url;

#[tokio::main]
async fn main() -> Result<()> {
    process::print_warnings();
    let mut arguments = std::env::args().skip(1);
    let usage = || config_datafusion_err!("usage: executor df://HOST:PORT PORT PORT [ROOT…]");
    let scheduler = arguments.next().and_then(|text| Url::parse(&text).ok()).ok_or_else(usage)?;
    let (host, port) = scheduler.host_str().zip(scheduler.port()).ok_or_else(usage)?;
    let mut next = || arguments.next().and_then(|text| text.parse().ok()).ok_or_else(usage);
    let rows = next()?;
    let tasks = next()?;
    let vcores = std::env::var("VCORES").ok().and_then(|text| text.parse().ok());
    let mut builder = ExecutorBuilder::new(host, port)?
        .with_ports(rows, tasks)
        .with_silence(process::silence())
        // Ballista waits so long for a scheduler that starts later.
        .with_settings(|mut settings| {
            settings.scheduler_connect_timeout_seconds = 20;
            settings.vcores = vcores.unwrap_or(settings.vcores);
            settings
        });
    if let Some(runtime) = process::guarded(arguments)? {
        builder = builder.with_runtime(runtime);
    }
    println!("executor with rows at port {rows} and tasks at port {tasks}");
    builder.run().await
}
