//! Sequences of n words (n-grams): counted, by document, and as a ranked index.
//!
//! Reading order: `edges` and `short` (the windows that each rule contributes), `borders`
//! (documents cut over segments), `token_walk` (windows of the text), `walk` (both ways), `limit`
//! (of their memory), `packing`, `key`, `keep`, `weights` and `windows` (windows as numbers),
//! `entries` and `digits` (sorting them), `passes` (several walks if memory is short), `ordered`,
//! `rows`, `row_maker` (rows in parts), and the tasks `count` (with `merged`), `by_document` (with
//! `numbered` and `document_rows`) and `ranked` (with `ranked_segments`). `choice` chooses a
//! traversal.

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
pub(super) mod limit;
pub(super) mod merged;
mod numbered;
mod ordered;
pub(super) mod packing;
pub(super) mod passes;
mod ranked;
mod ranked_segments;
pub(super) mod row_maker;
pub(super) mod rows;
mod short;
mod token_walk;
pub(super) mod walk;
pub(super) mod weights;
pub(super) mod windows;

pub use ordered::for_each_in_order;

use short::Table;

pub use by_document::DocumentSequences;
pub use count::{SequenceCounts, sequence_count};
pub use document_rows::DocumentSequenceCounts;
pub use merged::SegmentSequences;
pub use ranked::{RankedInvertedIndex, ranked_inverted_index};
pub use ranked_segments::SegmentRanked;
pub use rows::Sequences;

/// Receiver of the words that a walk meets.
pub(in crate::analytics) trait Sink {
    /// Begins a text that occurs `weight` times. Earlier words do not count.
    fn begin(&mut self, weight: u64);
    /// Receives the next word.
    fn push(&mut self, word: u32);
    /// Receives the next child. `head` has its first words. If it has more words, `tail` has the
    /// last ones.
    fn push_child(&mut self, head: &[u32], tail: Option<&[u32]>);
    /// Receives the next elements, whose first and last words are in `table`.
    fn push_short<const R: usize>(&mut self, table: &Table<R>, elements: &[u32])
    where
        Self: Sized,
    {
        table.push_each(elements, self);
    }
    /// Receives the words before the next one, at the start of a text. Windows inside them do not
    /// count.
    fn prime(&mut self, words: &[u32]);
    /// Returns the number of windows or pairs met so far.
    fn num_met(&self) -> usize;
    /// Ends the input.
    fn close(&mut self);
}
