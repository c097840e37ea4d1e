//! The command line as a user meets it: the binary is run on files in temporary folders.
//!
//! `ingest`: every kind of input, byte for byte. `odd_inputs`: names, links, devices. `long`: inputs of
//! any length, in bounded memory; `memory`: statements with a limit of it. `rows`: documents with columns. `failures`: exit statuses and pinned
//! error texts, and what is left behind. `sql`, `reading`: the other commands.
//! `remote`: corpora behind HTTP and S3; `places`: each command at each kind of location. `living`:
//! corpora that change; `living_s3`: in S3, on bad days; `killed`, `leftovers`: with `kill -9`. `full_disk`: no space
//! left; `pipes`: readers that leave. `deep`: statements that are long chains. `secrets`: what no output may show.
//! `damaged`: Parquet.

#![allow(clippy::unwrap_used, clippy::panic)]

mod damaged;
mod deep;
mod failures;
mod full_disk;
mod harness;
mod ingest;
mod killed;
mod leftovers;
mod living;
mod living_s3;
mod long;
#[cfg(target_os = "linux")]
mod memory;
mod odd_inputs;
mod pipes;
mod places;
mod plot;
mod reading;
mod remote;
mod rows;
mod secrets;
mod server;
mod sql;
