//! Questions about a corpus and the SQL statements that answer them: boilerplate, templates of log
//! lines, growth of the vocabulary, phrases over time, keyness (of some documents against the rest,
//! and of one collection against another), and neighbours of a word.
//!
//! The statements are those of `sql/examples/recipes.sql`. A test runs them on the corpus of
//! `tadoc demo`. They work on every other corpus.
//!
//! ```
//! # use datafusion::prelude::*;
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # let file = dir.path().join("notes.tadoc").display().to_string();
//! # let ctx = SessionContext::new();
//! # datafusion_tadoc::register_all(&ctx)?;
//! # let copy = format!("COPY (SELECT repeat('to be or not to be. ', 9) AS text) TO '{file}'");
//! # ctx.sql(&copy).await?.collect().await?;
//! // The neighbours of a word.
//! let neighbours = format!(
//!     "SELECT word2, count FROM cooccurrence('{file}', window => 2) WHERE word1 = 'be'"
//! );
//! let rows = ctx.sql(&neighbours).await?.to_string().await?;
//! assert!(rows.contains("| to    | 26    |"), "{rows}");
//! # Ok(())
//! # }
//! ```
//!
//! ```sql
#![doc = include_str!("../../sql/examples/recipes.sql")]
//! ```
