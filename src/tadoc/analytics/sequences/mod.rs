//! Sequences of n words (n-grams): counted, by document, and as a ranked index.
//!
//! Reading order: `edges` and `short` (the windows that each rule contributes), `borders`
//! (documents cut over segments), `token_walk` (windows of the text), `walk` (both ways),
//! `packing`, `key`, `keep`, `weights` and `windows` (windows as numbers), `entries` and `digits`
//! (sorting them), `passes` (several walks if memory is short), `ordered`, `rows`, `parts` (rows in
//! parts), and the tasks `count` (with `merged`), `by_document` (with `numbered` and
//! `document_rows`) and `ranked` (with `ranked_segments`). `choice` chooses a traversal.

mod borders;
mod by_document;
pub(super) mod choice;
pub(super) mod count;
pub(super) mod digits;
mod document_rows;
pub(super) mod edges;
pub(super) mod entries;
pub(super) mod keep;
pub(super) mod key;
pub(super) mod merged;
mod numbered;
mod ordered;
pub(super) mod packing;
pub(super) mod parts;
pub(super) mod passes;
mod ranked;
mod ranked_segments;
pub(super) mod rows;
mod short;
mod token_walk;
pub(super) mod walk;
pub(super) mod weights;
pub(super) mod windows;

pub use ordered::for_each_in_order;

pub use by_document::DocumentSequences;
pub use count::{SequenceCounts, sequence_count};
pub use document_rows::DocumentSequenceCounts;
pub use merged::SegmentSequences;
pub use ranked::{RankedInvertedIndex, ranked_inverted_index};
pub use ranked_segments::SegmentRanked;
pub use rows::Sequences;
