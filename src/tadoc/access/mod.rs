//! Reading and searching a corpus without decompressing it.
//!
//! Reading order: `decode` (whole documents), `extract` (passages), `query` with `query_parser` and
//! `word_pattern` (`wildcard`, `word_regex`), `resolved` (a query as `word_set`s of each dictionary,
//! found by `dictionary_search`), `search` (places; `occurrences` answers for one segment with
//! `phrase`, which finds matches inside rules, `places` with `rule_set` and `doc_counts` with
//! `rule_numbers`, which lead from there to documents, and `scan` for small documents; `cut` joins
//! documents again that were cut at a block border), `term_count` (counts by document), `kwic` with
//! `neighbours` (matches in their context), `candidates` (which documents a text predicate has to
//! look at). Many questions at once: `extract` for passages, `word_batch` for words in documents (with
//! `word_plan`, and `climb` for rare ones), `batch` for what both share.
//!
//! Every answer is as if no document had been cut: offsets and word numbers count from the start
//! of the document, and phrases match across the cut. Everything is iterative, so a hostile grammar
//! cannot exhaust the stack, and limits are checked against counted sizes before memory is taken.

mod batch;
mod candidates;
mod climb;
mod cut;
mod decode;
mod dictionary_search;
mod doc_counts;
mod doc_set;
mod extract;
mod kept_count;
mod kwic;
mod neighbours;
mod occurrences;
mod phrase;
mod places;
mod query;
mod query_parser;
mod resolved;
mod rule_numbers;
mod rule_set;
mod scan;
mod search;
mod term_count;
mod wildcard;
mod word_batch;
mod word_pattern;
mod word_plan;
mod word_regex;
mod word_set;

pub use batch::{OffsetLists, Passages};
pub use candidates::{TextPattern, candidate_docs, candidate_documents};
pub use decode::{DocumentDecoder, document_bytes, document_len_bytes, document_num_words};
pub use doc_set::DocSet;
pub use extract::{ExtractQuery, extract, extract_batch, extract_into};
pub use kwic::{Context, ContextBatch, DEFAULT_KWIC_WIDTH, MAX_CONTEXT_BYTES, kwic, kwic_segments};
pub use query::{Query, QueryLimits};
pub use search::{
    DEFAULT_MAX_HITS, DocumentCount, Hit, SearchOptions, count, count_by_document, search,
    search_segments, search_with,
};
pub use term_count::term_count;
pub use word_batch::{WordQuery, count_batch, search_batch};
pub use word_pattern::WordPattern;

pub(crate) use batch::in_batch;
pub(crate) use climb::climb;
pub(crate) use kept_count::kept_count;
pub use search::check_num_hits;
pub(crate) use word_batch::check_word;

use crate::error::{Error, Result};

/// Most bytes that one call decodes unless told otherwise: 2 GiB.
pub const DEFAULT_MAX_OUTPUT_BYTES: u64 = 2 << 30;

/// Length of an output of `len` bytes that grows by `added`, if the limit and the machine allow it.
fn check_output_len(len: u64, added: u64, limit: u64) -> Result<usize> {
    let requested = len.saturating_add(added);
    // Slack for short copies has to fit too; no allocation can be larger than this.
    let limit = limit.min(isize::MAX as u64 - 64);
    match usize::try_from(requested) {
        Ok(requested_len) if requested <= limit => Ok(requested_len),
        _ => Err(Error::Capacity {
            what: "decoded text in bytes",
            requested,
            limit,
            knob: "tadoc.max_output_bytes",
        }),
    }
}

/// Makes room for `len` bytes in all; a machine without as much memory is an error, not an abort.
fn reserve(output: &mut Vec<u8>, len: usize) -> Result<()> {
    output.try_reserve(len.saturating_sub(output.len())).map_err(|_| Error::Capacity {
        what: "decoded text in bytes of memory",
        requested: len as u64,
        limit: output.capacity() as u64,
        knob: "the memory of this process",
    })
}
