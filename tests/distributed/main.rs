//! Tests of plans that travel to other machines.
//!
//! `travel` encodes the plan of each function, decodes it in another session, and compares the rows.
//! `hostile` decodes damaged and forged messages. `logical` does both with tables of logical plans.
//! `spread` compares the rows of two and three workers with those of one session, and `plans` does so for
//! random statements. `panics` ends statements whose operators panic. `fixtures` has corpora, sessions and workers on
//! loopback.

#![allow(clippy::unwrap_used, clippy::panic)]

mod fixtures;
mod hostile;
mod logical;
mod panics;
mod plans;
mod spread;
mod travel;
