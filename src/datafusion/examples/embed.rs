//! Embeds the functions in a program that has texts and a store of its own: `cargo run --example embed`.
//!
//! Here the store is in memory. Everything that implements `ObjectStore` works the same way.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::util::pretty::print_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use datafusion_tadoc::TadocSessionStateBuilderExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tadoc::build::{CorpusBuilder, IngestOptions};
use url::Url;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // DataFusion as it is, and the functions, file types and settings of this crate. A session
    // that exists already takes `datafusion_tadoc::register_all(&ctx)` instead.
    let state = SessionStateBuilder::new().with_default_features().with_tadoc().build();
    let ctx = SessionContext::new_with_state(state);

    // The session asks the store for every URL that begins like this one. Paths need no store.
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    ctx.register_object_store(&Url::parse("memory://shelf")?, Arc::clone(&store));

    // The texts may come from any table. This one is in memory.
    let paths = StringArray::from(vec!["hamlet.txt", "proverb.txt"]);
    let texts = StringArray::from(vec![
        "To be, or not to be, that is the question.",
        "A thing is not to be had and to be kept.",
    ]);
    let batch = RecordBatch::try_from_iter([("path", Arc::new(paths) as _), ("text", Arc::new(texts) as _)])?;
    ctx.register_batch("texts", batch)?;

    // COPY compresses the texts into one corpus file …
    let copy = "COPY (SELECT path, text FROM texts) TO 'memory://shelf/books/plays.tadoc' STORED AS TADOC";
    run(&ctx, copy).await?;

    // … and another one arrives as bytes that the core made.
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    builder.push_document("north.txt", b"snow falls, and snow is to be seen")?;
    let (file, _report) = builder.finish(None)?;
    store.put(&Path::from("books/weather.tadoc"), file.into()).await?;

    // The functions answer from the compressed form. A location is a file, a folder or a glob, as on disks.
    let words = "SELECT word, count FROM word_count('memory://shelf/books/', fold => true)
                 ORDER BY count DESC, word LIMIT 3";
    let words = run(&ctx, words).await?;
    let hits = "SELECT path, byte_offset FROM search('memory://shelf/books/p*.tadoc', '\"to be\"')";
    let hits = run(&ctx, hits).await?;

    // The rows are Arrow arrays.
    let counts = words[0].column(1).as_primitive::<Int64Type>();
    assert_eq!(counts.values().to_vec(), [5, 5, 3]);
    assert_eq!(hits.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
    Ok(())
}

/// Runs a statement and prints it with its rows.
async fn run(ctx: &SessionContext, sql: &str) -> datafusion::error::Result<Vec<RecordBatch>> {
    println!("{sql}");
    let rows = ctx.sql(sql).await?.collect().await?;
    print_batches(&rows)?;
    Ok(rows)
}
