//! Tests of a cluster of Ballista: a scheduler and executors as processes, which are the examples of the
//! package `datafusion-tadoc-ballista`.
//!
//! `rows` compares the rows of a cluster with those of one session. `faults` ends processes in the middle,
//! and keeps statements in their places. `cluster` starts the processes, `scene` has the files.

#![allow(clippy::unwrap_used, clippy::panic)]

mod cluster;
mod faults;
mod rows;
mod scene;
