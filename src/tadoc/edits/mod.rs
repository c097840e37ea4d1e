//! Edits of documents, which stay compressed.
//!
//! ```text
//! edits ──plan──▶ steps ──▶ pieces of the base and of new text ──▶ extract, count, search
//!                                         │
//!                                         └──snapshot──▶ a corpus: base rules under new roots
//! ```
//!
//! ```
//! use tadoc::Corpus;
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//! use tadoc::edits::{Edit, EditBatch, LivingCorpus};
//! use tadoc::format::OpenLimits;
//! use tadoc::read::{DEFAULT_MAX_OUTPUT_BYTES, document_bytes};
//!
//! # fn main() -> tadoc::Result<()> {
//! let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
//! builder.push_document("a.txt", b"to be")?;
//! let (file, _report) = builder.finish(None)?;
//! let (_footer, base) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
//!
//! let mut living = LivingCorpus::new(base);
//! let insert = Edit::InsertText { doc_id: 0, offset_bytes: 5, text: b" or not".to_vec() };
//! let add = Edit::AddDocument { path: "b.txt".to_owned(), content: b"let it be".to_vec() };
//! let added = living.apply(&EditBatch { edits: vec![insert, add], ..Default::default() })?;
//! assert_eq!(added, 1..2);
//! assert_eq!(living.count(1, "be")?, 1);
//!
//! let corpus = living.snapshot()?;
//! assert_eq!(document_bytes(&corpus, 0, DEFAULT_MAX_OUTPUT_BYTES)?, b"to be or not");
//! assert_eq!(document_bytes(&corpus, 1, DEFAULT_MAX_OUTPUT_BYTES)?, b"let it be");
//! # Ok(())
//! # }
//! ```
//!
//! Reading order: `edit` ([`Edit`] and [`EditMode`]: changes, and the text that offsets refer to;
//! [`encode_batch`]: edits as bytes), `living_corpus` ([`LivingCorpus`]), `plan` (from operations
//! to steps that cannot fail; batches, all or none), `document` with `piece_tree` and `words` (one
//! edited document), `batch` (many reads at once), `snapshot` (from a living corpus to a corpus).
//!
//! The papers keep records of inserted text and move every offset after them, which takes more than
//! 90 % of the time of an insert (Hu et al., section on random access operations). Here an edit
//! changes only one path of a tree of the pieces of the document.

mod batch;
mod document;
mod edit;
mod living_corpus;
mod piece_tree;
mod plan;
mod snapshot;
mod words;

pub use edit::{Answer, Edit, EditBatch, EditMode, Operation, column_tables, decode_batch, encode_batch};
pub use living_corpus::LivingCorpus;
pub use piece_tree::{Piece, PieceTree, Source};
pub use plan::BatchOffsets;
