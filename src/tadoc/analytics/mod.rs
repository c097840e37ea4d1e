//! Analytics: tasks over a whole corpus, answered from the grammar.
//!
//! ```
//! use tadoc::Corpus;
//! use tadoc::analytics::{Traversal, inverted_index, sequence_count, word_count};
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//! use tadoc::format::OpenLimits;
//!
//! # fn main() -> tadoc::Result<()> {
//! let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
//! builder.push_document("a.txt", b"to be or not to be")?;
//! builder.push_document("b.txt", b"let it be")?;
//! let (file, _report) = builder.finish(None)?;
//! let (_footer, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
//!
//! let counts = word_count(&corpus)?;
//! let row = counts.top(1)[0];
//! assert_eq!((counts.word(row), counts.count(row)), ("be", 3));
//!
//! let index = inverted_index(&corpus, Traversal::Auto)?;
//! assert_eq!(index.doc_ids(row).collect::<Vec<u64>>(), [0, 1]);
//!
//! let sequences = sequence_count(&corpus, 2, 1 << 30)?;
//! let mut text = String::new();
//! sequences.sequences().append_text(sequences.len() - 1, &mut text);
//! assert_eq!((text.as_str(), sequences.counts()[sequences.len() - 1]), ("to be", 2));
//! # Ok(())
//! # }
//! ```
//!
//! A task visits the rules in one of three traversals, which give the same rows:
//!
//! ```text
//! documents   0: a b a b c     1: a b d                  rules   root: R R c | R d     R: a b
//!
//! top-down    the count of R in the root flows to a, b    document 0: R 2, c 1 ──▶ a 2, b 2, c 1
//! bottom-up   the words of R flow to the parents of R     R holds {a 1, b 1}; document 0: 2 R + c
//! token scan  documents are expanded                      a b a b c ──▶ a 2, b 2, c 1
//!
//! windows     of 2 words lie in R (a b, as often as R) or across a border between two elements
//!             of a rule: b a, b c in the root; so each rule keeps its first and last n - 1 words
//! ```
//!
//! With G elements in the rules, N words, D documents:
//!
//! | task | top-down | bottom-up | token scan |
//! | --- | --- | --- | --- |
//! | [`word_count()`] | weights of rules in one sweep, O(G) | | |
//! | [`inverted_index()`] | sets of 64 documents flow down, O(D / 64 * rules reached) | sets of words flow up, documents add the sets of their rules | O(N) |
//! | [`term_vector()`], [`Tfidf`] | counts of 8 documents flow down at once | small rules have bags of words, documents add them | O(N) |
//! | [`sequence_count()`], [`cooccurrence()`] | windows of each rule, times its weight: at most N, 0.1 to 0.8 N measured | | windows of the text |
//! | [`DocumentSequences`], [`ranked_inverted_index()`] | windows of each rule, times its weight in the document | windows of all rules get numbers once, then as term vectors | windows of each document |
//! | [`repeated_phrases()`] | | | repeated sequences of n words, then their suffixes in order, O(N log² N) |
//! | [`NearDuplicates`] | | | hashes of n-grams, joined by their prefixes, and words compared |
//! | [`repeated_spans()`] | | | windows of n words by their hashes, O(N) |
//! | [`overlap()`] | | | sequences of n words by their hashes, O(N) |
//! | [`TokenCursor`] | | | O(words read) |
//! | [`LogTemplates`] | lines of each rule, made once, times its weight; documents visit the rules below them | | |
//!
//! Once a segment keeps the words of its documents ([`DocWords`](crate::segment::DocWords)), term vectors, scores and
//! inverted indexes are read from these in O(rows), unless a traversal is forced.
//!
//! Sources: the traversals and the heads and tails of rules are from Zhang et al., "TADOC: Text analytics directly on
//! compression", VLDB Journal 2021. The sources of each task are given below. The differences to that paper are flat
//! arrays in topological order instead of queues of rules with a hash table for each rule, several documents in one
//! sweep, and packed windows that are sorted instead of hashed. A table of measured costs decides about the traversal
//! ([`choose_task_traversal`]). Figures are in `benches/README.md`.
//!
//! Reading order: `task_limits` (memory, a caller who may leave, documents of a task, corpora larger than memory in
//! parts), `vocabulary` (words of all segments as rows, and their counts), `inverted_index` with `postings` (the index
//! of one segment), `term_vector` (also scores) with `doc_terms` and `lane_counts` (counts of a few documents at a
//! time), `segment_terms` (answers of a device), `sequences` (n-grams), `cooccurrence`, `repeated_phrases`,
//! `log_templates`, `repeated_spans`, `overlap` (n-grams of other texts) and `near_duplicates` with `rolling_hash`,
//! `parcels` (rows that machines send to one another), `statistics`, `traversal` (names, shapes and the choice).
//!
//! Each task is a pure function of the segments. Its result keeps the corpus alive, and rows are
//! addressed by number, so paging is free. Word ids belong to a segment. A row is a word, in byte
//! order, with its id in every segment that contains it.
//!
#![doc = include_str!("algorithms.md")]

mod cooccurrence;
mod doc_terms;
mod inverted_index;
mod lane_counts;
mod log_templates;
mod near_duplicates;
mod overlap;
mod parcels;
mod postings;
mod repeated_phrases;
mod repeated_spans;
mod rolling_hash;
mod segment_terms;
mod sequences;
mod statistics;
mod task_limits;
mod term_vector;
mod traversal;
mod vocabulary;

pub use sequences::{
    DocumentSequenceCounts, DocumentSequences, RankedInvertedIndex, SegmentDocumentSequences, SegmentRanked,
    SegmentSequences, SequenceCounts, Sequences, for_each_in_order, ranked_inverted_index, sequence_count,
    too_many_occurrences,
};

pub use crate::text::Fold;
pub use cooccurrence::{Cooccurrences, Pairing, cooccurrence};
pub use doc_terms::{TokenChunk, TokenCursor};
pub use inverted_index::{InvertedIndex, inverted_index};
pub use log_templates::{LogTemplate, LogTemplates, TemplateOptions};
pub use near_duplicates::{ClusteredDoc, DuplicateClusters, NearDuplicates, SimilarPair, check_similarity};
pub use overlap::{OverlapTexts, TextOverlap, overlap};
pub use parcels::{MergedParcels, MergedRows, NamedChunk, Packed, ParcelPacker};
pub use repeated_phrases::{RepeatedPhrases, repeated_phrases};
pub use repeated_spans::{RepeatedSpan, RepeatedSpans, repeated_spans};
pub use segment_terms::{SegmentDocuments, SegmentTerms, TermVectorChunk};
pub use statistics::{Company, CorpusStatistics, Dispersion, Measure, Part, Whole, corpus_statistics, keyness};
pub use task_limits::{CorpusParts, DocSelection, OnePart, TaskLimits};
pub use term_vector::{
    TermVectorCursor, TermVectors, Tfidf, TfidfChunk, TfidfCursor, choose_term_traversal, document_counts,
    document_counts_until, term_vector,
};
pub use traversal::{
    NUM_STATISTICS, SegmentShape, TRAVERSAL_COSTS, Traversal, TraversalTask, choose_task_traversal, choose_traversal,
    traversal_cost, traversal_costs, traversal_statistics,
};
pub use vocabulary::{Vocabulary, WordCounts, segment_word_counts, word_count};
