//! SQL on compressed text.
//!
//! ```text
//! documents ──text──▶ tokens ──grammar──▶ rules ──corpus──▶ file.tadoc
//!                                                              │ open
//!             sql (DataFusion) ◀── analytics, access ◀── dag ◀─┘
//! ```
//!
//! Reading order: [`text`] (bytes to tokens), [`grammar`] (tokens to rules), [`dag`] (rules as flat
//! arrays), [`corpus`] (values and files), [`analytics`] and [`access`] (answers without
//! decompressing), [`edits`] and [`living`] (documents that change, and how their versions are stored),
//! [`sql`] (the answers from DataFusion; [`sql::recipes`] has questions). [`gsst`] stands alone: string columns
//! as FSST codes, which [`gpu`] decodes on a device where [`ingestion`] says that it pays. [`plot`] draws
//! charts; [`staging`] keeps files in the making apart from those that are complete.

pub mod access;
pub mod analytics;
mod containment;
pub mod corpus;
pub mod dag;
pub mod edits;
pub mod error;
#[cfg(feature = "cuda")]
pub mod gpu;
pub mod grammar;
pub mod gsst;
pub mod ingestion;
pub mod living;
pub mod plot;
pub mod sql;
pub mod staging;
pub mod text;

pub use containment::{contain_panics, quiet_readers};
pub use corpus::Corpus;
pub use error::{Error, Result};

/// The Rust examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
