//! The query language: from text to patterns of words.
//!
//! Reading order: `query` (the language), `expression` (its form), `parser`, `words` (from an item
//! to patterns), `pattern` (one word of a phrase: with wildcards or edits), `regex`.

pub(in crate::query) mod expression;
pub(in crate::query) mod parser;
pub(in crate::query) mod pattern;
pub(in crate::query) mod query;
pub(in crate::query) mod regex;
pub(in crate::query) mod words;

pub use expression::{Expression, Leaf, Place};
pub use pattern::WordPattern;
pub use query::Query;
pub use words::QueryLimits;
