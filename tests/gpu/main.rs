//! Devices of NVIDIA give what the CPU gives.
//!
//! `parity`, `matching`: columns of strings, decoded and searched. `corpus`, `corpus_batch`, `grammar`: corpora, counted,
//! read, edited and built. `REQUIRE_GPU=1 cargo test --test gpu`; without `REQUIRE_GPU=1` what needs a device is skipped
//! where there is none.

#![allow(clippy::unwrap_used, clippy::panic)]

mod corpus;
mod corpus_batch;
mod grammar;
mod matching;
mod parity;
