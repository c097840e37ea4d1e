//! The command line as a user meets it: the binary is run on files in temporary folders.
//!
//! `ingest`: every kind of input, byte for byte. `rows`: documents with columns. `failures`: exit
//! statuses and pinned error texts, and what is left behind. `sql`, `reading`: the other commands.
//! `remote`: corpora behind HTTP and S3. `living`: corpora that change; `killed`: with `kill -9`.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "cli/failures.rs"]
mod failures;
#[path = "cli/harness.rs"]
mod harness;
#[path = "cli/ingest.rs"]
mod ingest;
#[path = "cli/killed.rs"]
mod killed;
#[path = "cli/living.rs"]
mod living;
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
#[path = "cli/sql.rs"]
mod sql;
