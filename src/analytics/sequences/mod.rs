//! Sequences of n words, counted and listed from the grammar.
//!
//! Reading order: `edges` (which windows are met where), `borders` (documents cut over segments),
//! `packing` and `windows` (windows as numbers), `entries` (sorting them), `rows`, and the tasks
//! `count`, `by_document`, `ranked`.

mod borders;
mod by_document;
pub(super) mod count;
pub(super) mod edges;
pub(super) mod entries;
pub(super) mod packing;
mod ranked;
pub(super) mod rows;
mod windows;

pub use by_document::{DocumentSequenceCounts, DocumentSequences};
pub use count::{SequenceCounts, sequence_count};
pub use ranked::{RankedInvertedIndex, ranked_inverted_index};
pub use rows::Sequences;
