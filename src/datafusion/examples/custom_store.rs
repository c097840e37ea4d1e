//! Keeps corpora in an object store of the program: `cargo run --example custom_store`.
//!
//! Here the store is in memory. Everything that implements `ObjectStore` works the same way.

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tadoc::build::{CorpusBuilder, IngestOptions};
use url::Url;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ctx = SessionContext::new();
    datafusion_tadoc::register_all(&ctx)?;

    // The session asks the store for every URL that begins like this one.
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let url = Url::parse("memory://shelf")?;
    ctx.register_object_store(&url, Arc::clone(&store));

    // One corpus arrives as bytes that the core made …
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    builder.push_document("north.txt", b"snow falls, and snow stays")?;
    let (file, _report) = builder.finish(None)?;
    store.put(&Path::from("weather/north.tadoc"), file.into()).await?;

    // … and SQL writes another one.
    let copy = "COPY (SELECT 'south.txt' AS path, 'snow never falls' AS text) \
                TO 'memory://shelf/weather/south.tadoc' STORED AS TADOC";
    run(&ctx, copy).await?;

    // A location is a file, a folder or a glob, as on disks.
    let both = "SELECT word, count FROM word_count('memory://shelf/weather/') WHERE word = 'snow'";
    let both = run(&ctx, both).await?;
    let south = "SELECT path, text FROM documents('memory://shelf/weather/s*.tadoc')";
    let south = run(&ctx, south).await?;

    assert!(both.contains("| snow | 3     |"));
    assert!(south.contains("| south.txt | snow never falls |"));
    Ok(())
}

/// Runs a statement, prints it with its rows, and returns the rows as text.
async fn run(ctx: &SessionContext, sql: &str) -> datafusion::error::Result<String> {
    let rows = ctx.sql(sql).await?.to_string().await?;
    println!("{sql}\n{rows}");
    Ok(rows)
}
