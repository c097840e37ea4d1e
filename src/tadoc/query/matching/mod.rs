//! From the patterns of a query to occurrences in documents.
//!
//! A *place* is a position of an element on a right-hand side, as the inverse grammar lists it. A
//! *match* is an item of a query that is complete in one rule or in one document of the root. One
//! match stands for many occurrences if its rule occurs often.
//!
//! There are several ways to the occurrences of a word. [`Way`] has the table of them and
//! of the choice between them.
//!
//! Reading order: `resolved` (a query as `word_set`s of each dictionary, and documents that were
//! cut at a block border), `occurrences` (answers for one segment, and phrases as matches inside
//! rules), `match_paths` (from matches to hits, in order), `doc_counts` (counts only), with `sets`
//! of documents and rules, `climb` (rare words, and tokens around an occurrence), `sweep` (first
//! questions of a segment), `way` (the choice between these, and the scan of small documents),
//! `candidates` (documents that a predicate on the text has to read, and segments that a question
//! has to open), `word_condition` (what word lists say about the documents of a question).

pub(in crate::query) mod candidates;
pub(in crate::query) mod climb;
pub(in crate::query) mod doc_counts;
pub(in crate::query) mod match_paths;
pub(in crate::query) mod occurrences;
pub(in crate::query) mod resolved;
pub(in crate::query) mod sets;
pub(in crate::query) mod sweep;
pub(in crate::query) mod way;
pub(in crate::query) mod word_condition;
pub(in crate::query) mod word_set;

pub use candidates::{
    SegmentWords, TextPattern, candidate_docs, candidate_documents, documents_for_demands, may_match,
    segments_for_query, segments_for_texts,
};
pub use sets::DocSet;
pub use word_condition::WordCondition;

pub(crate) use climb::{climb, kept_count};
pub(crate) use way::{Question, Way};
