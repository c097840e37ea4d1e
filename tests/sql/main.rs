//! SQL over corpora and GSST tables.
//!
//! `slt`: the files below `sql/` and the documents. `session`: what those cannot say. `living_sql`, `living_dml`: corpora
//! that change. `gsst_sql`: columns of strings. `corpora_oracle`: every task on real text. `fixtures`: what they ask.

#![allow(clippy::unwrap_used, clippy::panic)]

mod corpora_oracle;
mod fixtures;
mod gsst_sql;
mod living_dml;
mod living_sql;
mod session;
mod slt;
