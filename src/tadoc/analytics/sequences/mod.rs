//! Sequences of n words, counted and listed from the grammar.
//!
//! Reading order: `edges` and `short` (which windows are met where), `borders` (documents cut over segments),
//! `token_walk` (windows of the text), `walk` (both), `packing`, `key`, `keep`, `weights` and `windows`
//! (windows as numbers), `entries` and `digits` (sorting them), `passes` (several walks where memory is short),
//! `ordered`, `rows`, `parts` (rows as they are counted), and the tasks `count` (with
//! `merged`), `by_document` (with `numbered` and `document_rows`), `ranked` (with
//! `ranked_segments`); `choice` between the ways.

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
