//! Answers about the whole corpus, from the grammar.
//!
//! Tasks go through the grammar in one of three ways, which give the same rows:
//!
//! ```text
//! documents   0: a b a b c     1: a b d                  rules   root: R R c | R d     R: a b
//!
//! top-down    what the root says of R flows to a and b    document 0: R 2, c 1 ──▶ a 2, b 2, c 1
//! bottom-up   what R holds flows to those that use R      R holds {a 1, b 1}; document 0: 2 R + c
//! token scan  documents are written out                   a b a b c ──▶ a 2, b 2, c 1
//!
//! windows     of 2 words lie in R (a b, as often as R) or across a border between two elements of a
//!             rule: b a, b c in the root; for these each rule keeps its first and last n - 1 words
//! ```
//!
//! With G elements in the rules, N words, D documents, V different words:
//!
//! | task | top-down | bottom-up | token scan |
//! | --- | --- | --- | --- |
//! | [`word_count()`] | weights of rules in one sweep, O(G) | | |
//! | [`inverted_index()`] | sets of 64 documents flow down, O(D / 64 * rules reached) | sets of words flow up, documents add theirs | O(N) |
//! | [`term_vector()`], [`Tfidf`] | counts of 8 documents flow down at once | bags of small rules are kept, documents add them | O(N) |
//! | [`sequence_count()`], [`cooccurrence()`] | windows of each rule, times its weight: at most N, 0.1 to 0.8 N measured | | windows of the text |
//! | [`DocumentSequences`], [`ranked_inverted_index()`] | windows of each rule, times its weight in the document | windows of all rules get numbers once, then as term vectors | windows of each document |
//! | [`repeated_phrases()`] | | | repeated sequences of n words, then their suffixes in order, O(N log² N) |
//! | [`TokenCursor`] | | | O(words read) |
//!
//! Once a segment keeps the words of its documents ([`DocWords`](crate::segment::DocWords)), term vectors, scores and inverted indexes
//! are read there, O(rows), unless a way is forced.
//!
//! Sources: top-down and bottom-up traversals, heads and tails of rules: Zhang et al., "TADOC: Text
//! analytics directly on compression", VLDB Journal 2021; those of each task stand below. What is different here:
//! flat arrays in topological order instead of queues of rules and hash tables for each of them,
//! several documents in one sweep, packed windows that are sorted instead of hashed. A table of
//! measured costs says which way is taken ([`choose_task_traversal`]); figures: `benches/README.md`.
//!
//! Reading order: `vocabulary` (the words of all segments as rows), `word_count`,
//! `inverted_index` (with `postings`, the index of one segment), `term_vector`
//! (with `doc_terms` and `lane_counts`, which count a few documents at a time, `ascending_set`,
//! `term_bags` and `term_chunk`), `document_counts` and `tfidf` on top of it,
//! `segment_terms` (both made of what a device answers for each segment), `tokens` (with `word_walk`), `sequences` (n-grams, by document and ranked too), `cooccurrence` (with `pairs`),
//! `repeated_phrases`, `statistics`. `traversal` names the ways, `costs` chooses. `doc_selection` says
//! which documents, `word_rows` leads from word ids to rows, `fold` makes rows of words that count as
//! one.
//!
//! Each task is a pure function of the segments; what it returns keeps the corpus alive, and rows
//! are reached by number, so paging costs nothing. Word ids are per segment: a row is a word, in
//! byte order, and knows its id in every segment that has it.
//!
#![doc = include_str!("algorithms.md")]

mod ascending_set;
mod cooccurrence;
mod costs;
mod doc_selection;
mod doc_terms;
mod document_counts;
mod fold;
mod inverted_index;
mod lane_counts;
mod pairs;
mod postings;
mod repeated_phrases;
mod segment_terms;
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

pub use sequences::for_each_in_order;
pub use sequences::rows::too_many_occurrences;

pub use crate::text::Fold;
pub use cooccurrence::{Cooccurrences, Pairing, cooccurrence};
pub use costs::{
    NUM_STATISTICS, TRAVERSAL_COSTS, TraversalTask, choose_task_traversal, traversal_cost,
    traversal_costs, traversal_statistics,
};
pub use doc_selection::DocSelection;
pub use document_counts::document_counts;
pub use inverted_index::{InvertedIndex, inverted_index};
pub use repeated_phrases::{RepeatedPhrases, repeated_phrases};
pub use segment_terms::{SegmentDocuments, SegmentTerms};
pub use sequences::{
    DocumentSequenceCounts, DocumentSequences, RankedInvertedIndex, SegmentRanked,
    SegmentSequences, SequenceCounts, Sequences, ranked_inverted_index, sequence_count,
};
pub use statistics::{CorpusStatistics, corpus_statistics};
pub use term_chunk::TermVectorChunk;
pub use term_vector::{TermVectorCursor, TermVectors, choose_term_traversal, term_vector};
pub use tfidf::{Tfidf, TfidfChunk, TfidfCursor};
pub use tokens::{TokenChunk, TokenCursor};
pub use traversal::{SegmentShape, Traversal, choose_traversal};
pub use vocabulary::Vocabulary;
pub use word_count::{WordCounts, segment_word_counts, word_count};
