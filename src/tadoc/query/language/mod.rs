//! The query language: from text to patterns of words.
//!
//! Reading order: `query` (the language), `parser`, `pattern` (one word of a phrase), `wildcard`,
//! `regex`.

pub(in crate::query) mod parser;
pub(in crate::query) mod pattern;
pub(in crate::query) mod query;
pub(in crate::query) mod regex;
pub(in crate::query) mod wildcard;

pub use parser::QueryLimits;
pub use pattern::WordPattern;
pub use query::Query;
