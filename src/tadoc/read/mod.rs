//! Readers of documents: exact bytes of whole documents and of passages.
//!
//! ```
//! use tadoc::Corpus;
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//! use tadoc::format::OpenLimits;
//! use tadoc::read::{DEFAULT_MAX_OUTPUT_BYTES, document_bytes, extract};
//!
//! # fn main() -> tadoc::Result<()> {
//! let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
//! builder.push_document("a.txt", b"to be or not to be")?;
//! let (file, _report) = builder.finish(None)?;
//! let (_footer, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
//!
//! assert_eq!(document_bytes(&corpus, 0, DEFAULT_MAX_OUTPUT_BYTES)?, b"to be or not to be");
//! assert_eq!(extract(&corpus, 0, 9, 3)?, b"not");
//! # Ok(())
//! # }
//! ```
//!
//! Reading order: `decode` (whole documents, and limits of the output), `extract` (passages, and
//! batches of them).
//!
//! A document that was cut at a block border is read as one document: offsets count from its start.
//! All code is iterative, so a hostile grammar cannot exhaust the stack. Limits are checked against
//! computed sizes before memory is allocated.

pub(crate) mod decode;
pub(crate) mod extract;

pub use decode::{DEFAULT_MAX_OUTPUT_BYTES, DocumentDecoder, document_bytes, document_len_bytes, document_num_words};
pub use extract::{ExtractQuery, Passages, extract, extract_batch, extract_into};

pub(crate) use extract::in_batch;
