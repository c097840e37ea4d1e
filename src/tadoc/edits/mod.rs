//! Documents that change while they stay compressed.
//!
//! ```text
//! edits ──plan──▶ steps ──▶ pieces of the base and of new text ──▶ extract, count, search
//!                                         │
//!                                         └──snapshot──▶ a corpus: base rules under new roots
//! ```
//!
//! Reading order: [`Edit`] and [`EditMode`] (what can be changed, and what offsets refer to),
//! [`encode_batch`] (edits as bytes), [`LivingCorpus`] (the whole), `plan` with `batch_offsets` (from
//! operations to steps that cannot fail), `document` with `surroundings`, `piece_tree` and `word_changes`
//! (one edited document), `base_words` (words of the base), `batch` (many reads at once), `snapshot`
//! with `root_writer` (a corpus again).
//!
//! The papers keep records of inserted text and move every offset behind them, which takes more than
//! 90 % of the time of an insert (Hu et al., section on random access operations); here an edit
//! touches one path of a tree of the document's pieces and nothing else.

mod base_words;
mod batch;
mod batch_offsets;
mod document;
mod edit;
mod living_corpus;
mod piece_tree;
mod plan;
mod record;
mod root_writer;
mod snapshot;
mod surroundings;
mod word_changes;

pub use batch_offsets::BatchOffsets;
pub use edit::{Answer, Edit, EditBatch, EditMode, Operation, column_tables};
pub use living_corpus::LivingCorpus;
pub use piece_tree::{Piece, PieceTree, Source};
pub use record::{decode_batch, encode_batch};
