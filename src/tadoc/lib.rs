//! Text as a word-level grammar, asked without decompressing it.
//!
//! ```text
//! documents ──text──▶ tokens ──grammar──▶ rules ──corpus──▶ file.tadoc
//!                                                              │ open
//!                 edits ◀── analytics, access ◀──────── dag ◀──┘
//! ```
//!
//! Reading order: [`text`] (bytes to tokens), [`grammar`] (tokens to rules), [`dag`] (rules as flat
//! arrays), [`corpus`] (values and files), [`analytics`] and [`access`] (answers without
//! decompressing), [`edits`] (documents that change).
//!
//! The crate knows neither Arrow nor DataFusion, no runtime, no object store and no device. Those are
//! the crates around it: `tadoc-store`, `tadoc-cuda`, `datafusion-tadoc`.

pub mod access;
pub mod analytics;
pub mod corpus;
pub mod dag;
pub mod edits;
pub mod error;
pub mod grammar;
pub mod text;

pub use corpus::Corpus;
pub use error::{Error, Result};
