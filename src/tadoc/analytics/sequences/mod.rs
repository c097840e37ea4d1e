//! Sequences of n words (n-grams): counted, by document, and as a ranked index.
//!
//! Reading order: `edges` and `short` (the windows that each rule contributes), `key` and `windows`
//! (windows as numbers), `limit` (of memory and time), `walk` (over the rules or the text),
//! `entries` (sorting windows), `passes` (several walks if memory is short, and rows in parts),
//! `rows`, and the tasks `count`, `by_document` and `ranked`.

mod by_document;
pub(super) mod count;
pub(super) mod edges;
pub(super) mod entries;
pub(super) mod key;
pub(super) mod limit;
pub(super) mod passes;
mod ranked;
pub(super) mod rows;
mod short;
pub(super) mod walk;
pub(super) mod windows;

pub use passes::for_each_in_order;

use short::Table;

pub use by_document::DocumentSequences;
pub use count::{SegmentSequences, SequenceCounts, sequence_count};
pub use ranked::{RankedInvertedIndex, SegmentRanked, ranked_inverted_index};
pub use rows::{DocumentSequenceCounts, Sequences, too_many_occurrences};

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
