//! Tests of `tadoc sql --workers` and `tadoc ingest --workers` with processes of `tadoc worker` on loopback.
//!
//! - `rows`: every function has the rows of one process. `metrics`: so have the counters.
//! - `stores`: corpora in S3 and behind HTTP.
//! - `faults`: workers that are killed, silent, stopped, or ask for a token; statements that are
//!   cancelled.
//! - `devices`: workers with a device use it.
//! - `ingest`: workers build the blocks of an ingest.
//! - `encryption`: workers behind TLS. `hostile`: bytes that no coordinator sends.
//! - Helpers: `cluster`.

#![allow(clippy::unwrap_used, clippy::panic)]

mod cluster;
#[cfg(feature = "cuda")]
mod devices;
mod encryption;
mod faults;
mod hostile;
mod ingest;
mod metrics;
mod rows;
mod stores;
