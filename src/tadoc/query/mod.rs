//! Search in a corpus without decompressing it.
//!
//! ```text
//! language   text of a query ─▶ Query (patterns of words)
//! matching   patterns ─▶ word ids of a segment ─▶ occurrences: climbed to, counted or scanned for
//! search     documents that meet AND, OR, NOT; hits, counts by document, line and column of a hit
//! hits       occurrences of each leaf, merged       rank   the best documents by BM25
//! context    hits with their context, words near hits and how often
//! leaves     documents with a leaf, kept for leaves that are asked for again, or counted from word lists and
//!            grammars without opening segments
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
//! Reading order: `language`, `matching`, `text_hits` (also windows of NEAR), `hits`, `search`, `leaves`, `context`, `rank`, `batch`,
//! `grep`. Options of a search, hits, and hits counted by document are here.
//!
//! A document that was cut at a block border is searched as one document: offsets and word numbers
//! count from its start, and phrases match across the cut. All code is iterative, so a hostile
//! grammar cannot exhaust the stack. Limits are checked against computed sizes before memory is
//! allocated.

mod batch;
mod context;
mod grep;
mod hits;
mod language;
mod leaves;
mod matching;
mod rank;
mod search;
mod text_hits;

use crate::error::{Canceller, Error, Result};
use crate::ids::DocId;
use crate::segment::Corpus;

use matching::{ResolvedQuery, doc_cut_after};

pub use batch::{OffsetLists, WordQuery, count_batch, search_batch};
pub use context::{
    Context, ContextBatch, ContextForm, ContextWords, DEFAULT_KWIC_WIDTH, MAX_CONTEXT_BYTES, NeighbourCounts, Window,
    count_neighbours, kwic, kwic_hits, kwic_segments,
};
pub use grep::{
    GrepLine, GrepOptions, LineExpression, LinePattern, MatchingLineCounter, PathTexts, SegmentPaths, TextLead,
    demands_across_lines, grep, grep_documents, grep_texts, has_line_ends, is_any_case_by_smart_case,
};
pub use language::{Expression, Leaf, Place, Query, QueryLimits, WordPattern};
pub use leaves::{LeafCounts, LeafLists, LeafWords, leaf_list, leaf_segment};
pub use matching::{
    DocSet, SegmentWords, TextPattern, WordCondition, candidate_docs, candidate_documents, count_in_grammar,
    documents_for_demands, may_match, segments_for_query, segments_for_texts,
};
pub use rank::{RankOptions, RankedDocument, Ranker};
pub use search::{
    LineCounter, LinePlace, check_num_hits, count, count_by_document, search, search_segments, search_with, term_count,
};
pub use text_hits::{SnippetOptions, TextHit, highlight, highlight_hits, snippet, text_hits};

pub(crate) use batch::check_word;
pub(crate) use matching::{Question, Way, climb, kept_count};

/// One occurrence of a leaf of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hit {
    /// Id of the document.
    pub doc_id: u64,
    /// Start of the first word, in bytes from the start of the document.
    pub byte_offset: u64,
    /// Number of bytes from the start of the first word to the end of the last word.
    pub byte_len: u64,
    /// Index of the first word among the words of the document.
    pub word_index: u64,
}

/// Number of hits of a query in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentCount {
    /// Id of the document.
    pub doc_id: u64,
    /// Number of occurrences, 1 or more.
    pub count: u64,
}

/// Number of occurrences by document, ascending; no number is 0.
type DocCounts = Vec<(DocId, u64)>;

/// Returns the number of occurrences of an item that begin in segment `segment_idx`, by document.
fn segment_item_counts(
    resolved: &ResolvedQuery<'_>,
    segment_idx: usize,
    item_idx: usize,
    filter: Option<&DocSet>,
) -> Result<DocCounts> {
    let item = resolved.item(segment_idx, item_idx);
    let mut counts = item.map_or(Ok(Vec::new()), |item| item.count_by_doc(filter))?;
    let cut_doc =
        doc_cut_after(resolved.corpus(), segment_idx).filter(|&doc| filter.is_none_or(|docs| docs.contains(doc)));
    if let Some(doc) = cut_doc {
        let across = resolved.matches_across(segment_idx, item_idx)?.len() as u64;
        add_to(&mut counts, doc, across)?;
    }
    Ok(counts)
}

/// Adds `count` to the count of `doc`.
fn add_to(counts: &mut DocCounts, doc: DocId, count: u64) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    match counts.binary_search_by_key(&doc, |&(doc, _)| doc) {
        Ok(at) => counts[at].1 = checked_sum([counts[at].1, count].into_iter())?,
        Err(at) => counts.insert(at, (doc, count)),
    }
    Ok(())
}

/// Returns the sum of `counts`.
///
/// # Errors
/// [`Error::Capacity`] if the sum has more than 64 bits.
fn checked_sum(mut counts: impl Iterator<Item = u64>) -> Result<u64> {
    let sum = counts.try_fold(0u64, |sum, count| sum.checked_add(count));
    sum.ok_or(Error::Capacity {
        what: "a sum of counts",
        requested: u64::MAX,
        limit: u64::MAX - 1,
        knob: "nothing (counts are 64-bit numbers)",
    })
}

/// Default limit of the hits of a search: 64 Mi, which take 2 GiB if they are collected.
pub const DEFAULT_MAX_HITS: u64 = 64 << 20;

/// Documents, limit and cancellation of a search.
#[derive(Clone, Copy)]
pub struct SearchOptions<'a> {
    /// The only document to search; `None` for all.
    pub doc_id: Option<u64>,
    /// The only documents to search, in ascending order; `None` for all.
    pub docs: Option<&'a [u64]>,
    /// Most hits to yield; one more is an error.
    pub max_hits: u64,
    /// Function that is called from time to time, from any thread; `true` ends the search with
    /// [`Error::Cancelled`].
    pub is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> SearchOptions<'a> {
    fn canceller(&self) -> Canceller<'a> {
        Canceller::new(self.is_cancelled)
    }

    /// Returns the documents to search, in ascending order; `None` for all.
    fn selected(&self, corpus: &Corpus) -> Result<Option<Vec<u64>>> {
        let only = self.doc_id.map(|doc_id| corpus.check_doc_id(doc_id).map(|()| vec![doc_id]));
        let Some(docs) = self.docs else { return only.transpose() };
        if let Some(pair) = docs.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Error::InvalidArgument {
                name: "docs",
                got: format!("{} behind {}", pair[1], pair[0]),
                allowed: "document ids that ascend".into(),
            });
        }
        docs.last().map_or(Ok(()), |&last| corpus.check_doc_id(last))?;
        let mut docs = docs.to_vec();
        if let Some(only) = only.transpose()? {
            docs.retain(|doc_id| only.contains(doc_id));
        }
        Ok(Some(docs))
    }
}

impl Default for SearchOptions<'_> {
    fn default() -> Self {
        Self { doc_id: None, docs: None, max_hits: DEFAULT_MAX_HITS, is_cancelled: &|| false }
    }
}

impl std::fmt::Debug for SearchOptions<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = formatter.debug_struct("SearchOptions");
        fields.field("doc_id", &self.doc_id).field("docs", &self.docs);
        fields.field("max_hits", &self.max_hits);
        fields.finish_non_exhaustive()
    }
}
