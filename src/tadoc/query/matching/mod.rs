//! From the patterns of a query to occurrences in documents.
//!
//! A *place* is a position of an element on a right-hand side, as the inverse grammar lists it. A
//! *match* is an item of a query that is complete in one rule or in one document of the root. One
//! match stands for many occurrences if its rule occurs often.
//!
//! There are several ways to the occurrences of a word. [`Way`] has the table of them and
//! of the choice between them.
//!
//! Reading order: `resolved` (a query as `word_set`s of each dictionary, found by
//! `dictionary_search`), `occurrences` (answers for one segment), `phrase` (matches inside rules),
//! `match_paths` and `rule_set` (from matches to hits, in order), `doc_counts`, `doc_set` and
//! `rule_numbers` (counts only), `climb` (rare words), `scan` (small documents), `sweep` (first
//! questions of a segment), `kept_count`
//! (segments that keep the words of documents), `way` (the choice between these), `cut` (documents that were cut at a block border),
//! `neighbours` (tokens around an occurrence), `candidates` (documents that a predicate on the text
//! has to read), `needed` (segments that a question has to open).

pub(in crate::query) mod candidates;
pub(in crate::query) mod climb;
pub(in crate::query) mod cut;
pub(in crate::query) mod dictionary_search;
pub(in crate::query) mod doc_counts;
pub(in crate::query) mod doc_set;
pub(in crate::query) mod kept_count;
pub(in crate::query) mod match_paths;
pub(in crate::query) mod needed;
pub(in crate::query) mod neighbours;
pub(in crate::query) mod occurrences;
pub(in crate::query) mod phrase;
pub(in crate::query) mod resolved;
pub(in crate::query) mod rule_numbers;
pub(in crate::query) mod rule_set;
pub(in crate::query) mod scan;
pub(in crate::query) mod sweep;
pub(in crate::query) mod way;
pub(in crate::query) mod word_set;

pub use candidates::{TextPattern, candidate_docs, candidate_documents, documents_for_demands};
pub use doc_set::DocSet;
pub use needed::{
    SegmentWords, may_match, may_match_rules, may_match_rules_with, segments_for_query,
    segments_for_texts,
};

pub(crate) use climb::climb;
pub(crate) use kept_count::kept_count;
pub(crate) use way::{Question, Way};
