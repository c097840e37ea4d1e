//! Chooses between the cores and a GPU, and shows the choice: `cargo run --example gpu`.
//!
//! The program runs on every machine. Without a device it says so.

use datafusion::error::Result;
use datafusion::prelude::SessionContext;

const QUESTION: &str = "SELECT sequence, count FROM sequence_count('tales', n => 3)
    ORDER BY count DESC, sequence LIMIT 3";

#[tokio::main]
async fn main() -> Result<()> {
    let ctx = SessionContext::new();
    datafusion_tadoc::register_all(&ctx)?;
    let dir = tempfile::tempdir()?;
    let corpus = dir.path().join("tales.tadoc").display().to_string();
    let copy = format!(
        "COPY (SELECT 'tale ' || value AS path, repeat('once upon a time ', value) AS text
               FROM generate_series(1, 100)) TO '{corpus}' STORED AS TADOC"
    );
    ctx.sql(&copy).await?.collect().await?;
    let create = format!("CREATE EXTERNAL TABLE tales STORED AS TADOC LOCATION '{corpus}'");
    ctx.sql(&create).await?;

    // `cpu` is the reference: the rows are the same everywhere.
    ctx.sql("SET tadoc.device = 'cpu'").await?;
    let expected = ctx.sql(QUESTION).await?.to_string().await?;
    println!("{QUESTION}\n{expected}");
    assert!(expected.contains("| once upon a | 5050  |"));

    // `auto` takes the place that is estimated to be faster. For so little text that is the cores.
    // `gpu` demands a device. Without one such a statement is an error that names the way out.
    for device in ["auto", "gpu"] {
        ctx.sql(&format!("SET tadoc.device = '{device}'")).await?;
        println!("tadoc.device = {device}: {}", place(&ctx).await?);
        match ctx.sql(QUESTION).await?.to_string().await {
            Ok(rows) => assert_eq!(rows, expected),
            Err(error) if device == "gpu" => println!("no answer from a device: {error}"),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the place of the question and the reason for it, as `EXPLAIN` shows them.
async fn place(ctx: &SessionContext) -> Result<String> {
    let plan = ctx.sql(&format!("EXPLAIN {QUESTION}")).await?.to_string().await?;
    let (_, place) = plan.split_once("device=").unwrap_or_default();
    let (place, _traversal) = place.split_once(", traversal=").unwrap_or_default();
    Ok(place.to_owned())
}
