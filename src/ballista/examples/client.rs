//! Statements that run on a cluster of Ballista, from the command line. Their times go to the standard error.
//!
//! ```text
//! cargo run -p datafusion-tadoc-ballista --example client -- df://127.0.0.1:50050 \
//!     "SELECT word, count FROM word_count('laws.tadoc') ORDER BY count DESC LIMIT 10"
//! ```

use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
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
        let begin = Instant::now();
        let rows = ctx.sql(&statement).await?.collect().await?;
        let seconds = begin.elapsed().as_secs_f64();
        let num_rows: usize = rows.iter().map(RecordBatch::num_rows).sum();
        println!("{}", pretty_format_batches(&rows)?);
        eprintln!("{num_rows} rows, {seconds:.6} s");
    }
    Ok(())
}
