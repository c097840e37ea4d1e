//! Statements that run on a cluster of Ballista, from the command line.
//!
//! ```text
//! cargo run -p datafusion-tadoc-ballista --example client -- df://127.0.0.1:50050 \
//!     "SELECT word, count FROM word_count('laws.tadoc') ORDER BY count DESC LIMIT 10"
//! ```

use datafusion::common::config_datafusion_err;
use datafusion::error::Result;
use datafusion_tadoc_ballista::SessionBuilder;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || config_datafusion_err!("usage: client df://HOST:PORT STATEMENT…");
    let scheduler = arguments.next().ok_or_else(usage)?;
    let ctx = SessionBuilder::new(&scheduler)?.build()?;
    for statement in arguments {
        ctx.sql(&statement).await?.show().await?;
    }
    Ok(())
}
