//! Builder of corpus files: documents in, file out, in bounded memory.
//!
//! ```text
//! documents ─▶ builder (cuts) ─▶ blocks (pieces, tokens, grammar; several at once) ─▶ writer ─▶ file
//! ```
//!
//! A document may be longer than a block. It then continues in the next segment. In the layout
//! `fast` a block is divided into smaller segments where they share little text.
//!
//! ```
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//!
//! # fn main() -> tadoc::Result<()> {
//! let options = IngestOptions { block_bytes: 16, ..IngestOptions::default() };
//! let mut builder = CorpusBuilder::new(Vec::new(), options)?;
//! builder.push_document("a.txt", b"to be or not")?;
//! builder.push_document("b.txt", b"to be")?;
//! let (file, report) = builder.finish(None)?;
//! assert_eq!(report.footer.segments.len(), 2);
//! assert_eq!(report.file_len_bytes, file.len() as u64);
//! # Ok(())
//! # }
//! ```

mod blocks;
mod builder;
#[cfg(test)]
pub(crate) mod of_texts;
mod options;

pub use blocks::{MAX_BLOCKS_AT_ONCE, usual_blocks_at_once};
pub use builder::{CorpusBuilder, IngestReport, MAX_PATH_BYTES};
pub use options::{BuilderKind, IngestOptions};
