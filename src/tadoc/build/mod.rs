//! From documents to a corpus file, in bounded memory.
//!
//! ```text
//! documents ─▶ block_cut ─▶ blocks (tokens, grammar; several at once) ─▶ format::writer ─▶ file
//! ```
//!
//! A document may be longer than a block: it continues in the next segment.

mod block_cut;
mod blocks;
mod builder;
#[cfg(test)]
pub(crate) mod of_texts;

pub use blocks::{MAX_BLOCKS_AT_ONCE, usual_blocks_at_once};
pub use builder::{BuilderKind, CorpusBuilder, IngestOptions, IngestReport};
