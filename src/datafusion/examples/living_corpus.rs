//! Keeps documents that change in a folder, with every version of them: `cargo run --example living_corpus`.

use datafusion::error::Result;
use datafusion::prelude::SessionContext;

#[tokio::main]
async fn main() -> Result<()> {
    let ctx = SessionContext::new();
    datafusion_tadoc::register_all(&ctx)?;

    // The option lets the statement begin a corpus where there is none. That is version 1.
    let dir = tempfile::tempdir()?;
    let folder = dir.path().join("notes").display().to_string();
    let create = format!(
        "CREATE EXTERNAL TABLE notes (author VARCHAR) STORED AS TADOC
         LOCATION '{folder}/' OPTIONS ('tadoc.create' 'true')"
    );
    run(&ctx, &create).await?;

    // Each statement that changes documents is one commit: versions 2 to 5.
    let insert = "INSERT INTO notes (path, text, author) VALUES
        ('a.txt', 'the colour of the sky', 'Ada'),
        ('b.txt', 'the colour of the sea', 'Bob'),
        ('c.txt', 'to be deleted', 'Bob')";
    run(&ctx, insert).await?;
    run(&ctx, "UPDATE notes SET text = replace(text, 'colour', 'color') WHERE author = 'Ada'").await?;
    run(&ctx, "DELETE FROM notes WHERE doc_id IN (SELECT doc_id FROM search('notes', 'deleted'))").await?;
    // Edits inside documents name bytes: here four bytes in front of `sea`.
    run(&ctx, "INSERT INTO \"notes$edits\" (doc_id, pos, text) VALUES (1, 18, 'red ')").await?;

    // Every function reads the latest version, or the one that is asked for.
    let now = run(&ctx, "SELECT doc_id, path, text, author FROM notes ORDER BY doc_id").await?;
    let count = |version| {
        format!(
            "SELECT word, count FROM word_count('notes', version => {version})
             WHERE word IN ('color', 'colour', 'deleted') ORDER BY word"
        )
    };
    let then = run(&ctx, &count(2)).await?;
    let last = run(&ctx, &count(5)).await?;
    let history = run(&ctx, "SELECT version, kind FROM \"notes$history\" ORDER BY version").await?;

    assert!(now.contains("| the color of the sky ") && now.contains("| the colour of the red sea "));
    assert!(!now.contains("c.txt"));
    assert!(then.contains("| colour  | 2     |") && then.contains("| deleted | 1     |"));
    assert!(last.contains("| color  | 1     |") && last.contains("| colour | 1     |"));
    assert!(!last.contains("deleted"));
    assert!(history.contains("| 5       | edit "));
    Ok(())
}

/// Runs a statement, prints it with its rows, and returns the rows as text.
async fn run(ctx: &SessionContext, sql: &str) -> Result<String> {
    let rows = ctx.sql(sql).await?.to_string().await?;
    println!("{sql}\n{rows}");
    Ok(rows)
}
