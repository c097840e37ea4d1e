//! Search in a corpus without decompressing it.
//!
//! ```text
//! language   text of a query ─▶ Query (patterns of words)
//! matching   patterns ─▶ word ids of a segment ─▶ occurrences: climbed to, counted or scanned for
//! condition  documents that meet AND, OR, NOT       hits   occurrences of each leaf, merged
//! search     hits            term_count   counts by document        kwic   hits with their context
//! lines      line and column of a hit                  rank      the best documents by BM25
//! leaf_lists  documents with a leaf, kept for leaves that are asked for again
//! batch      words in documents, many at once
//! text_hits  hits in a text that is in no corpus       snippet   its best part, hits marked
//! grep       lines of text that match a regular expression
//! collocates  words near hits, and how often
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
//! Reading order: `language`, `matching`, `options`, `hit`, `counts`, `windows` (NEAR), `hits`,
//! `condition`, `search`, `term_count`, `leaf_lists`, `kwic`, `collocates`, `lines`, `rank`, `batch`,
//! `grep`, `text_hits`, `snippet`.
//!
//! A document that was cut at a block border is searched as one document: offsets and word numbers
//! count from its start, and phrases match across the cut. All code is iterative, so a hostile
//! grammar cannot exhaust the stack. Limits are checked against computed sizes before memory is
//! allocated.

mod batch;
mod collocates;
mod condition;
mod counts;
mod grep;
mod hit;
mod hits;
mod kwic;
mod language;
mod leaf_lists;
mod lines;
mod matching;
mod options;
mod rank;
mod search;
mod snippet;
mod term_count;
mod text_hits;
mod windows;

pub use batch::{OffsetLists, WordQuery, count_batch, search_batch};
pub use collocates::{NeighbourCounts, Window, count_neighbours};
pub use counts::DocumentCount;
pub use grep::{
    GrepLine, GrepOptions, LineExpression, LinePattern, grep, grep_documents,
    is_any_case_by_smart_case,
};
pub use hit::Hit;
pub use kwic::{
    Context, ContextBatch, ContextForm, ContextWords, DEFAULT_KWIC_WIDTH, MAX_CONTEXT_BYTES, kwic,
    kwic_segments,
};
pub use language::{Expression, Leaf, Place, Query, QueryLimits, WordPattern};
pub use leaf_lists::LeafLists;
pub use lines::{LineCounter, LinePlace};
pub use matching::{
    DocSet, SegmentWords, TextPattern, candidate_docs, candidate_documents, documents_for_demands,
    may_match, may_match_rules, may_match_rules_with, segments_for_query, segments_for_texts,
};
pub use options::{DEFAULT_MAX_HITS, SearchOptions};
pub use rank::{RankOptions, RankedDocument, Ranker};
pub use search::{check_num_hits, count, count_by_document, search, search_segments, search_with};
pub use snippet::{SnippetOptions, highlight, highlight_hits, snippet};
pub use term_count::term_count;
pub use text_hits::{TextHit, text_hits};

pub(crate) use batch::check_word;
pub(crate) use matching::{Question, Way, climb, kept_count};
