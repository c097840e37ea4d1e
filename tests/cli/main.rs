//! Tests of the command line as a user meets it: the binary runs on files in temporary folders.
//!
//! - Inputs: `ingest` (every kind of input, byte for byte), `archives`, `foreign_archives` (joined, wrapped, old),
//!   `zip_forms`, `kinds_of_files` (names, links, devices), `input_lengths` (any length, in little memory), `limits`,
//!   `rows` and `json_rows` (documents with columns), `avro`, `timestamps`, `log_lines` (colours, parts of lines),
//!   `web_and_mail` (WARC and mbox), `office` (docx, xlsx, odt and the like), `parquet_faults`, `keep_going` (damage
//!   that is left out), `taken` (files that are
//!   there already).
//! - Locations: `remote` (corpora behind HTTP and S3), `azure`, `locations` (each command at each kind of
//!   location).
//! - Living corpora: `living` (corpora that change), `living_s3` (faults of S3), `killed` and
//!   `leftovers` (`kill -9`), `follow` (sources that grow), `sync` (folders that
//!   change), `full_disk` (no free space).
//! - Other commands: `sql`, `csv_quotes` (rows that a quotation mark would take), `named_tables` (arguments that name
//!   tables), `reading`, `restore`, `export` and `export_s3`, `grep`, `plot`, `memory` (statements with a memory
//!   limit), `recursion` (long chains and deep nests).
//! - Output: `failures` (exit statuses, pinned error texts, files left behind), `pipes` (readers
//!   that leave), `secrets` (values that no output may show), `safe` (attempts to leave the sandbox).
//! - Features: `left_out` (what a build without `--features full` says of the rest).
//! - Helpers: `harness`, and the servers of `testkit`.

#![allow(clippy::unwrap_used, clippy::panic)]

mod archives;
mod avro;
#[cfg(feature = "stores")]
mod azure;
mod csv_quotes;
mod export;
#[cfg(feature = "stores")]
mod export_s3;
mod failures;
#[cfg(unix)]
mod follow;
mod foreign_archives;
mod full_disk;
mod grep;
mod grep_lines;
mod grep_options;
mod harness;
mod ingest;
mod input_lengths;
mod json_rows;
mod keep_going;
mod killed;
mod kinds_of_files;
#[cfg(not(feature = "distributed"))]
mod left_out;
mod leftovers;
mod limits;
mod living;
#[cfg(feature = "stores")]
mod living_s3;
#[cfg(feature = "stores")]
mod locations;
mod log_lines;
#[cfg(target_os = "linux")]
mod memory;
mod named_tables;
mod office;
mod parquet_faults;
mod pipes;
mod plot;
mod reading;
mod recursion;
#[cfg(feature = "stores")]
mod remote;
mod restore;
mod rows;
#[cfg(unix)]
mod safe;
#[cfg(feature = "stores")]
mod secrets;
mod sql;
#[cfg(unix)]
mod sync;
mod taken;
mod timestamps;
mod web_and_mail;
mod zip_forms;
