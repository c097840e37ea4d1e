//! Embeds the functions in a program that has texts of its own: `cargo run --example embed`.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::util::pretty::print_batches;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use datafusion_tadoc::TadocSessionStateBuilderExt;

#[tokio::main]
async fn main() -> Result<()> {
    // DataFusion as it is, and the functions, file types and settings of this crate. A session
    // that exists already takes `datafusion_tadoc::register_all(&ctx)` instead.
    let state = SessionStateBuilder::new().with_default_features().with_tadoc().build();
    let ctx = SessionContext::new_with_state(state);

    // The texts may come from any table. This one is in memory.
    let paths = StringArray::from(vec!["hamlet.txt", "proverb.txt"]);
    let texts = StringArray::from(vec![
        "To be, or not to be, that is the question.",
        "A thing is not to be had and to be kept.",
    ]);
    let batch = RecordBatch::try_from_iter([("path", Arc::new(paths) as _), ("text", Arc::new(texts) as _)])?;
    ctx.register_batch("texts", batch)?;

    // COPY compresses the texts into one corpus file.
    let dir = tempfile::tempdir()?;
    let corpus = dir.path().join("texts.tadoc").display().to_string();
    run(&ctx, &format!("COPY (SELECT path, text FROM texts) TO '{corpus}' STORED AS TADOC")).await?;

    // The functions answer from the compressed form.
    let words = format!(
        "SELECT word, count FROM word_count('{corpus}', fold => true)
         ORDER BY count DESC, word LIMIT 3"
    );
    let words = run(&ctx, &words).await?;
    let hits = format!("SELECT path, byte_offset FROM search('{corpus}', '\"to be\"')");
    let hits = run(&ctx, &hits).await?;

    // The rows are Arrow arrays.
    let counts = words[0].column(1).as_primitive::<Int64Type>();
    assert_eq!(counts.values().to_vec(), [4, 4, 2]);
    assert_eq!(hits.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
    Ok(())
}

/// Runs a statement and prints it with its rows.
async fn run(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    println!("{sql}");
    let rows = ctx.sql(sql).await?.collect().await?;
    print_batches(&rows)?;
    Ok(rows)
}
