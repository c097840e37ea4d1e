//! Questions about a corpus and the SQL statements that answer them: boilerplate, templates of log
//! lines, growth of the vocabulary, phrases over time, keyness (of some documents against the rest,
//! and of one collection against another), and neighbours of a word.
//!
//! The statements are those of `sql/examples/recipes.sql`. A test runs them on the corpus of
//! `tadoc demo`. They work on every other corpus.
//!
//! ```sql
#![doc = include_str!("../../sql/examples/recipes.sql")]
//! ```
