//! Tests of living corpora as they are stored and optimized.
//!
//! `store` tests that acknowledged changes stay. `interleavings` tests this in every order of
//! calls, and `optimize` tests it with optimizations. `known` tests what programs keep beside versions.
//! `disk` and `faults` are storages with faults.

#![allow(clippy::unwrap_used, clippy::panic)]

mod disk;
mod faults;
mod interleavings;
mod known;
mod optimize;
mod store;
