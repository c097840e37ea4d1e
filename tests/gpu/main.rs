//! Tests that devices of NVIDIA give what the CPU gives.
//!
//! `parity`, `matching` and `distinct` test columns of strings, decoded, searched and counted. `corpus` and
//! `corpus_batch` test corpora: counted and read; `corpus_edits`, with the feature `edits`, edited.
//! Command: `REQUIRE_GPU=1 cargo test --test gpu`. Without `REQUIRE_GPU=1` and without a device, tests that need one
//! are skipped.

#![allow(clippy::unwrap_used, clippy::panic)]

mod corpus;
mod corpus_batch;
#[cfg(feature = "edits")]
mod corpus_edits;
mod distinct;
mod matching;
mod parity;
