//! Questions to a corpus and how SQL asks them: boilerplate, templates of log lines, growth of the
//! vocabulary, phrases over time, keyness of some documents against the rest and of one collection
//! against another, a word's neighbours.
//!
//! These are the statements of `sql/examples/recipes.sql`, which a test runs on the corpus of
//! `tadoc demo`; every other corpus will do.
//!
//! ```sql
#![doc = include_str!("../../sql/examples/recipes.sql")]
//! ```
