//! Tests of `tadoc sql --workers` and `tadoc ingest --workers` with processes of `tadoc worker` on loopback.
//!
//! - `rows`: every function has the rows of one process. `metrics`: so have the counters.
//! - `stores`: corpora in S3 and behind HTTP.
//! - `losses`: workers that are not there, killed or silent. `faults`: workers that ask for a token, or refuse a
//!   place; statements that are cancelled.
//! - `devices`: workers with a device use it.
//! - `ingest`: workers build the blocks of an ingest.
//! - `encryption`: workers behind TLS. `hostile`: bytes that no coordinator sends.
//! - Helpers: `cluster`, `proxy`.

#![allow(clippy::unwrap_used, clippy::panic)]

mod cluster;
#[cfg(feature = "cuda")]
mod devices;
mod encryption;
mod faults;
mod hostile;
mod ingest;
mod losses;
mod metrics;
mod proxy;
mod rows;
mod stores;
