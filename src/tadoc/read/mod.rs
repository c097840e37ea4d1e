//! Reading documents back: exact bytes of whole documents and of passages.
//!
//! Reading order: `decode` (whole documents), `extract` (passages), `batch` (many at once).
//!
//! Every answer is as if no document had been cut at a block border: offsets count from the start of
//! the document. Everything is iterative, so a hostile grammar cannot exhaust the stack, and limits
//! are checked against counted sizes before memory is taken.

pub(crate) mod batch;
pub(crate) mod decode;
mod extract;
pub(crate) mod output;

pub use batch::Passages;
pub use decode::{DocumentDecoder, document_bytes, document_len_bytes, document_num_words};
pub use extract::{ExtractQuery, extract, extract_batch, extract_into};
pub use output::DEFAULT_MAX_OUTPUT_BYTES;

pub(crate) use batch::in_batch;
