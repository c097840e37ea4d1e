//! Answers about the whole corpus, from the grammar.
//!
//! Reading order: `vocabulary` (the words of all segments as rows), `word_count`,
//! `inverted_index` (with `postings`, the index of one segment), `statistics`.
//!
//! Each task is a pure function of the segments; what it returns keeps the corpus alive, and rows
//! are reached by number, so paging costs nothing. Word ids are per segment: a row is a word, in
//! byte order, and knows its id in every segment that has it.

mod inverted_index;
mod postings;
mod statistics;
mod traversal;
mod vocabulary;
mod word_count;

pub use inverted_index::{InvertedIndex, inverted_index};
pub use statistics::{CorpusStatistics, corpus_statistics};
pub use traversal::{SegmentShape, Traversal, choose_traversal};
pub use vocabulary::Vocabulary;
pub use word_count::{WordCounts, segment_word_counts, word_count};
