//! From the patterns of a query to occurrences in documents.
//!
//! Reading order: `resolved` (a query as `word_set`s of each dictionary, found by
//! `dictionary_search`), `occurrences` (answers for one segment), with `phrase` (matches inside
//! rules), `places` and `rule_set` (from there to documents, in order), `doc_counts` and
//! `rule_numbers` (counts only), `climb` (rare words), `scan` (small documents) and `kept_count`
//! (segments that keep the words of documents). `cut` joins documents that were cut at a block
//! border, `neighbours` reads the tokens around an occurrence, `candidates` finds the documents that
//! a predicate on the text has to look at.

pub(in crate::query) mod candidates;
pub(in crate::query) mod climb;
pub(in crate::query) mod cut;
pub(in crate::query) mod dictionary_search;
pub(in crate::query) mod doc_counts;
pub(in crate::query) mod doc_set;
pub(in crate::query) mod kept_count;
pub(in crate::query) mod neighbours;
pub(in crate::query) mod occurrences;
pub(in crate::query) mod phrase;
pub(in crate::query) mod places;
pub(in crate::query) mod resolved;
pub(in crate::query) mod rule_numbers;
pub(in crate::query) mod rule_set;
pub(in crate::query) mod scan;
pub(in crate::query) mod word_set;

pub use candidates::{TextPattern, candidate_docs, candidate_documents};
pub use doc_set::DocSet;

pub(crate) use climb::climb;
pub(crate) use kept_count::kept_count;
