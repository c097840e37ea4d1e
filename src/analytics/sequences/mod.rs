//! Sequences of n words, counted and listed from the grammar.
//!
//! Reading order: `edges` (which windows are met where), `borders` (documents cut over segments),
//! `token_walk` (windows of the text), `walk` (both), `packing`, `key`, `weights` and `windows` (windows
//! as numbers), `entries` (sorting them), `rows`, and the tasks `count` (with `merged`), `by_document`
//! (with `numbered`), `ranked`; `choice` between the ways.

mod borders;
mod by_document;
pub(super) mod choice;
pub(super) mod count;
pub(super) mod edges;
pub(super) mod entries;
pub(super) mod key;
mod merged;
mod numbered;
pub(super) mod packing;
mod ranked;
pub(super) mod rows;
mod token_walk;
pub(super) mod walk;
pub(super) mod weights;
mod windows;

pub use by_document::{DocumentSequenceCounts, DocumentSequences};
pub use count::{SequenceCounts, sequence_count};
pub use merged::SegmentSequences;
pub use ranked::{RankedInvertedIndex, ranked_inverted_index};
pub use rows::Sequences;
