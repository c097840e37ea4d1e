//! Search in a corpus without decompressing it.
//!
//! ```text
//! language   text of a query ─▶ Query (patterns of words)
//! matching   patterns ─▶ word ids of a segment ─▶ occurrences: climbed to, counted or scanned for
//! condition  documents that meet AND, OR, NOT       hits   occurrences of each leaf, merged
//! search     hits, counts by document, line and column of a hit         rank   the best by BM25
//! context    hits with their context, words near hits and how often
//! leaf_lists documents with a leaf, kept for leaves that are asked for again
//! batch      words in documents, many at once
//! text_hits  hits in a text that is in no corpus, and its best part with hits marked
//! grep       lines of text that match a regular expression
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
//! Reading order: `language`, `matching`, `hit`, `windows` (NEAR), `hits`, `condition`, `search`,
//! `leaf_lists`, `context`, `rank`, `batch`, `grep`, `text_hits`.
//!
//! A document that was cut at a block border is searched as one document: offsets and word numbers
//! count from its start, and phrases match across the cut. All code is iterative, so a hostile
//! grammar cannot exhaust the stack. Limits are checked against computed sizes before memory is
//! allocated.

mod batch;
mod condition;
mod context;
mod grep;
mod hit;
mod hits;
mod language;
mod leaf_lists;
mod matching;
mod rank;
mod search;
mod text_hits;
mod windows;

pub use batch::{OffsetLists, WordQuery, count_batch, search_batch};
pub use context::{
    Context, ContextBatch, ContextForm, ContextWords, DEFAULT_KWIC_WIDTH, MAX_CONTEXT_BYTES, NeighbourCounts, Window,
    count_neighbours, kwic, kwic_segments,
};
pub use grep::{
    GrepLine, GrepOptions, LineExpression, LinePattern, PathTexts, SegmentPaths, TextLead, grep, grep_documents,
    grep_texts, has_line_ends, is_any_case_by_smart_case,
};
pub use hit::{DEFAULT_MAX_HITS, DocumentCount, Hit, SearchOptions};
pub use language::{Expression, Leaf, Place, Query, QueryLimits, WordPattern};
pub use leaf_lists::LeafLists;
pub use matching::{
    DocSet, SegmentWords, TextPattern, WordCondition, candidate_docs, candidate_documents, documents_for_demands,
    may_match, segments_for_query, segments_for_texts,
};
pub use rank::{RankOptions, RankedDocument, Ranker};
pub use search::{
    LineCounter, LinePlace, check_num_hits, count, count_by_document, search, search_segments, search_with, term_count,
};
pub use text_hits::{SnippetOptions, TextHit, highlight, highlight_hits, snippet, text_hits};

pub(crate) use batch::check_word;
pub(crate) use matching::{Question, Way, climb, kept_count};
