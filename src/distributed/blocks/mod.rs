//! Blocks of an ingest that workers build: `tadoc ingest --workers`.
//!
//! ```text
//! ingest   documents ─▶ blocks ─▶ BlockWorkers ══ text, paths, options ══▶ worker: tokens, grammar, sections
//!                                   │    ▲                                    │
//!          file ◀─ in order ◀─ segments  └═══════ a file of one segment ══════┘
//!                                   └ no worker has built it: here
//! ```
//!
//! The ingest reads, cuts blocks, and writes segments in their order. A worker builds the segment of a block and knows
//! nothing of the others. So the file is the same as without workers, byte for byte, and a block that is built twice,
//! or elsewhere than it was sent, changes nothing.
//!
//! `message` has the bytes, `service` the worker's side, `workers` the side of the ingest.
//!
//! Limits: a block of 128 MiB is sent as one request. The text of a block stays in memory until its segment is there,
//! at most two blocks for each worker. A worker is trusted with the text of documents, as one that answers statements
//! is. Its answers are checked for damage, origin and length
//! ([`Block::take_segment`](tadoc::build::Block::take_segment)).

mod message;
mod service;
#[cfg(test)]
mod tests;
mod workers;

pub use service::with_blocks;
pub use workers::BlockWorkers;

/// Name of the service.
const SERVICE: &str = "tadoc.Blocks";
/// Path of requests with a block.
const BUILD_PATH: &str = "/tadoc.Blocks/Build";
/// Path of requests that only ask for the places of a worker.
const PLACES_PATH: &str = "/tadoc.Blocks/Places";
/// Header of a request: the length of its block in bytes.
const LENGTH_HEADER: &str = "x-tadoc-length";
/// Header of each answer: the number of blocks that the worker takes at a time.
const PLACES_HEADER: &str = "x-tadoc-places";
