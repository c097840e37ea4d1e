//! Tests of SQL over corpora and GSST tables.
//!
//! `slt` runs the files below `sql/` and the SQL of documents. `session` tests properties that such
//! files cannot express. `safety` tests sandboxes. `living_sql` and `living_dml` test living corpora,
//! `gsst_sql` and `gsst_files` test columns of strings, and `corpora_oracle` tests every task on real
//! text. `fixtures` has their inputs.

#![allow(clippy::unwrap_used, clippy::panic)]

mod corpora_oracle;
mod fixtures;
mod gsst_files;
mod gsst_sql;
mod living_dml;
mod living_sql;
mod safety;
mod session;
mod slt;
