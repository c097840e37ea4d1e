//! Search in a corpus without decompressing it.
//!
//! ```text
//! language   text of a query ─▶ Query (patterns of words)
//! matching   patterns ─▶ word ids of a segment ─▶ occurrences: climbed to, counted or scanned for
//! search     hits            term_count   counts by document        kwic   hits with their context
//! batch      words in documents, many at once
//! ```
//!
//! ```
//! use tadoc::Corpus;
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//! use tadoc::format::OpenLimits;
//! use tadoc::query::{Query, SearchOptions, count_by_document, search};
//!
//! # fn main() -> tadoc::Result<()> {
//! let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
//! builder.push_document("a.txt", b"to be or not to be")?;
//! builder.push_document("b.txt", b"let it be")?;
//! let (file, _report) = builder.finish(None)?;
//! let (_footer, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
//!
//! let query = Query::parse(corpus.profile(), "\"to b*\"")?;
//! let hits = search(&corpus, &query, None)?;
//! let offsets: Vec<u64> = hits.iter().map(|hit| hit.byte_offset).collect();
//! assert_eq!(offsets, [0, 13]);
//!
//! let counts = count_by_document(&corpus, &query, &SearchOptions::default())?;
//! assert_eq!((counts.len(), counts[0].doc_id, counts[0].count), (1, 0, 2));
//! # Ok(())
//! # }
//! ```
//!
//! Reading order: `language`, `matching`, `options`, `search`, `term_count`, `kwic`, `batch`.
//!
//! A document that was cut at a block border is searched as one document: offsets and word numbers
//! count from its start, and phrases match across the cut. All code is iterative, so a hostile
//! grammar cannot exhaust the stack. Limits are checked against computed sizes before memory is
//! allocated.

mod batch;
mod kwic;
mod language;
mod matching;
mod options;
mod search;
mod term_count;

pub use batch::{OffsetLists, WordQuery, count_batch, search_batch};
pub use kwic::{Context, ContextBatch, DEFAULT_KWIC_WIDTH, MAX_CONTEXT_BYTES, kwic, kwic_segments};
pub use language::{Query, QueryLimits, WordPattern};
pub use matching::{
    DocSet, SegmentWords, TextPattern, candidate_docs, candidate_documents, segments_for_query,
    segments_for_texts,
};
pub use options::{DEFAULT_MAX_HITS, SearchOptions};
pub use search::{
    Hit, check_num_hits, count, count_by_document, search, search_segments, search_with,
};
pub use term_count::{DocumentCount, term_count};

pub(crate) use batch::check_word;
pub(crate) use matching::{Question, Way, climb, kept_count};
