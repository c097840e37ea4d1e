//! Searching a corpus without decompressing it.
//!
//! ```text
//! language   text of a query ─▶ Query (patterns of words)
//! matching   patterns ─▶ word ids of a segment ─▶ occurrences: climbed to, counted or scanned for
//! search     hits            term_count   counts by document        kwic   hits with their context
//! batch      words in documents, many at once
//! ```
//!
//! Every answer is as if no document had been cut at a block border: offsets and word numbers count
//! from the start of the document, and phrases match across the cut. Everything is iterative, so a
//! hostile grammar cannot exhaust the stack, and limits are checked against counted sizes before
//! memory is taken.

mod batch;
mod kwic;
mod language;
mod matching;
mod search;
mod term_count;

pub use batch::{OffsetLists, WordQuery, count_batch, search_batch};
pub use kwic::{Context, ContextBatch, DEFAULT_KWIC_WIDTH, MAX_CONTEXT_BYTES, kwic, kwic_segments};
pub use language::{Query, QueryLimits, WordPattern};
pub use matching::{DocSet, TextPattern, candidate_docs, candidate_documents};
pub use search::{
    DEFAULT_MAX_HITS, DocumentCount, Hit, SearchOptions, check_num_hits, count, count_by_document,
    search, search_segments, search_with,
};
pub use term_count::term_count;

pub(crate) use batch::check_word;
pub(crate) use matching::{climb, kept_count};
