//! The command line as a user meets it: the binary is run on files in temporary folders.
//!
//! `ingest`: every kind of input, byte for byte. `odd_inputs`: names, links, devices. `long`: inputs of
//! any length, in bounded memory; `memory`: statements with a limit of it. `rows`: documents with columns. `failures`: exit statuses and pinned
//! error texts, and what is left behind. `sql`, `reading`: the other commands.
//! `remote`: corpora behind HTTP and S3; `places`: each command at each kind of location. `living`:
//! corpora that change; `killed`, `leftovers`: with `kill -9`. `full_disk`: no space left; `pipes`: readers
//! that leave. `deep`: statements that are long chains. `secrets`: what no output may show. `damaged`:
//! Parquet.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "cli/damaged.rs"]
mod damaged;
#[path = "cli/deep.rs"]
mod deep;
#[path = "cli/failures.rs"]
mod failures;
#[path = "cli/full_disk.rs"]
mod full_disk;
#[path = "cli/harness.rs"]
mod harness;
#[path = "cli/ingest.rs"]
mod ingest;
#[path = "cli/killed.rs"]
mod killed;
#[path = "cli/leftovers.rs"]
mod leftovers;
#[path = "cli/living.rs"]
mod living;
#[path = "cli/long.rs"]
mod long;
#[cfg(target_os = "linux")]
#[path = "cli/memory.rs"]
mod memory;
#[path = "cli/odd_inputs.rs"]
mod odd_inputs;
#[path = "cli/pipes.rs"]
mod pipes;
#[path = "cli/places.rs"]
mod places;
#[path = "cli/plot.rs"]
mod plot;
#[path = "malformed_input/random.rs"]
#[allow(dead_code)] // shared with another suite
mod random;
#[path = "cli/reading.rs"]
mod reading;
#[path = "cli/remote.rs"]
mod remote;
#[path = "cli/rows.rs"]
mod rows;
#[path = "cli/secrets.rs"]
mod secrets;
#[path = "living_s3/server.rs"]
mod server;
#[path = "cli/sql.rs"]
mod sql;
