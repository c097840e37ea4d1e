//! Answers about the whole corpus, from the grammar.
//!
//! Reading order: `vocabulary` (the words of all segments as rows), `word_count`,
//! `selected_word_count`, `inverted_index` (with `postings`, the index of one segment), `term_vector`
//! (with `doc_terms` and `lane_counts`, which count a few documents at a time, `ascending_set`,
//! `expansion`, `term_bags` and `term_chunk`),
//! `document_counts` and `tfidf` on top of it, `tokens` (with `word_walk`), `sequences` (n-grams, by
//! document and ranked too), `cooccurrence`, `repeated_phrases`, `statistics`. `traversal` names the
//! ways, `costs` chooses. `doc_selection` says which documents, `word_rows` leads from word ids to
//! rows, `fold` makes rows of words that count as one.
//!
//! Each task is a pure function of the segments; what it returns keeps the corpus alive, and rows
//! are reached by number, so paging costs nothing. Word ids are per segment: a row is a word, in
//! byte order, and knows its id in every segment that has it.

mod ascending_set;
mod cooccurrence;
mod costs;
mod doc_selection;
mod doc_terms;
mod document_counts;
mod expansion;
mod fold;
mod inverted_index;
mod lane_counts;
mod postings;
mod repeated_phrases;
mod selected_word_count;
mod sequences;
mod statistics;
mod term_bags;
mod term_chunk;
mod term_vector;
mod tfidf;
mod tokens;
mod traversal;
mod vocabulary;
mod word_count;
mod word_rows;
mod word_walk;

pub use cooccurrence::{Cooccurrences, cooccurrence};
pub use costs::{
    NUM_STATISTICS, TraversalTask, choose_task_traversal, traversal_costs, traversal_statistics,
};
pub use doc_selection::DocSelection;
pub use document_counts::document_counts;
pub use fold::Fold;
pub use inverted_index::{InvertedIndex, inverted_index};
pub use repeated_phrases::{RepeatedPhrases, repeated_phrases};
pub use selected_word_count::SelectedWordCounts;
pub use sequences::{
    DocumentSequenceCounts, DocumentSequences, RankedInvertedIndex, SequenceCounts, Sequences,
    ranked_inverted_index, sequence_count,
};
pub use statistics::{CorpusStatistics, corpus_statistics};
pub use term_chunk::TermVectorChunk;
pub use term_vector::{TermVectorCursor, TermVectors, choose_term_traversal, term_vector};
pub use tfidf::{Tfidf, TfidfChunk, TfidfCursor};
pub use tokens::{TokenChunk, TokenCursor};
pub use traversal::{SegmentShape, Traversal, choose_traversal};
pub use vocabulary::Vocabulary;
pub use word_count::{WordCounts, segment_word_counts, word_count};
