//! Search in a corpus without decompressing it.
//!
//! ```text
//! language   text of a query ─▶ Query (patterns of words)
//! matching   patterns ─▶ word ids of a segment ─▶ occurrences: climbed to, counted or scanned for
//! search     documents that meet AND, OR, NOT; hits, counts by document, line and column of a hit
//! rank       the best documents by BM25
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
//! Reading order: `language`, `matching`, `text_hits` (also windows of NEAR), `search`, `leaves`, `context`, `rank`,
//! `batch`, `grep`. Options of a search, hits of a segment, and hits counted by document are here.
//!
//! A document that was cut at a block border is searched as one document: offsets and word numbers count from its
//! start, and phrases match across the cut. All code is iterative, so a hostile grammar cannot exhaust the stack.
//! Limits are checked against computed sizes before memory is allocated.
//!
//! # Hits
//!
//! The occurrences of the leaves of a query that begin in one segment come in order:
//!
//! ```text
//! phrase     occurrences inside the segment, then those that cross its end
//! placed     those of the phrase at the first word of a document; exact ones, whose text is read and
//!            compared
//! NEAR       occurrences of its items ─▶ Windows ─▶ stretches
//!            (behind the end of the segment: while a stretch that begins in it can go on)
//! query      hits of all leaves, merged by a heap
//! ```
//!
//! Hits of phrases are produced one by one, stretches are listed for one segment at a time. Memory
//! is that of the places in the grammar and of these lists. Cost: O(log leaves) for each hit.

mod batch;
mod context;
mod grep;
mod language;
mod leaves;
mod matching;
mod rank;
mod search;
mod text_hits;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use crate::error::{Canceller, Error, Result};
use crate::ids::DocId;
use crate::read::extract;
use crate::segment::Corpus;

use matching::occurrences::ItemStream;
use matching::{PartStart, ResolvedQuery, doc_cut_after, part_start};
use text_hits::{Rule, Windows, words};

pub(crate) use batch::check_word;
pub use batch::{OffsetLists, WordQuery, count_batch, count_batch_by, search_batch, search_batch_by};
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
pub(crate) use matching::{Question, Way, climb, kept_count};
pub use rank::{RankOptions, RankedDocument, Ranker};
pub use search::{
    LineCounter, LinePlace, check_num_hits, count, count_by_document, search, search_segments, search_with, term_count,
};
pub use text_hits::{SnippetOptions, TextHit, highlight, highlight_hits, snippet, text_hits};

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

/// Documents of a segment, shared by the streams that are restricted to them.
type Filter<'a> = Option<&'a Arc<DocSet>>;

/// Hits of one leaf that begin in one segment, in order.
struct LeafHits {
    /// Hits that end in the segment, if the leaf is a phrase.
    inside: Option<ItemStream>,
    /// Hits that end in a later segment. They begin in the last document, after all other hits.
    /// All hits, if the leaf is no phrase.
    listed: std::vec::IntoIter<Hit>,
    first_doc_id: u64,
    continued: PartStart,
}

impl LeafHits {
    fn from_list(hits: Vec<Hit>) -> Self {
        let first_doc_id = 0;
        let continued = PartStart::default();
        Self { inside: None, listed: hits.into_iter(), first_doc_id, continued }
    }

    /// Finds the occurrences of an item where `place` fits.
    fn from_part(
        resolved: &ResolvedQuery<'_>,
        segment_idx: usize,
        (item_idx, place): (usize, &Place),
        filter: Filter<'_>,
    ) -> Result<Self> {
        let all = Self::from_item(resolved, segment_idx, item_idx, filter)?;
        if place.is_any() {
            return Ok(all);
        }
        let mut fitting = Vec::new();
        for hit in all.filter(|hit| !place.is_first || hit.word_index == 0) {
            if has_gaps(resolved.corpus(), &hit, &place.gaps)? {
                fitting.push(hit);
            }
        }
        Ok(Self::from_list(fitting))
    }

    fn from_item(
        resolved: &ResolvedQuery<'_>,
        segment_idx: usize,
        item_idx: usize,
        filter: Filter<'_>,
    ) -> Result<Self> {
        let corpus = resolved.corpus();
        let cut_doc = doc_cut_after(corpus, segment_idx).filter(|&doc| filter.is_none_or(|docs| docs.contains(doc)));
        let item = resolved.item(segment_idx, item_idx);
        let inside = item.map(|item| item.stream(filter)).transpose()?;
        let mut across = Vec::new();
        if let Some(doc) = cut_doc {
            let matches = resolved.matches_across(segment_idx, item_idx)?;
            across.extend(matches.iter().map(|found| Hit {
                doc_id: corpus.doc_id(segment_idx, doc),
                byte_offset: found.byte_offset,
                byte_len: found.byte_len,
                word_index: found.word_idx,
            }));
        }
        Ok(Self {
            inside,
            listed: across.into_iter(),
            first_doc_id: corpus.first_doc_id(segment_idx),
            continued: part_start(corpus, segment_idx)?,
        })
    }

    /// Adds hits to `batch` until it has `max_len` or none are left.
    fn fill(&mut self, batch: &mut Vec<Hit>, max_len: usize) {
        if let Some(ItemStream::Walked { walk, byte_lens }) = &mut self.inside {
            // Most hits come from here: one loop without the layers between.
            while batch.len() < max_len
                && let Some(spot) = walk.next()
            {
                let start = if spot.doc == DocId::FIRST { self.continued } else { PartStart::default() };
                batch.push(Hit {
                    doc_id: self.first_doc_id + u64::from(spot.doc),
                    byte_offset: start.bytes + spot.offsets[0],
                    byte_len: byte_lens[spot.match_idx as usize],
                    word_index: start.words + spot.offsets[1],
                });
            }
        }
        let num_left = max_len - batch.len();
        batch.extend(self.take(num_left));
    }
}

impl Iterator for LeafHits {
    type Item = Hit;

    #[inline]
    fn next(&mut self) -> Option<Hit> {
        let Some((doc, found)) = self.inside.as_mut().and_then(Iterator::next) else {
            return self.listed.next();
        };
        let start = if doc == DocId::FIRST { self.continued } else { PartStart::default() };
        Some(Hit {
            doc_id: self.first_doc_id + u64::from(doc),
            byte_offset: start.bytes + found.byte_offset,
            byte_len: found.byte_len,
            word_index: start.words + found.word_idx,
        })
    }
}

/// Hits of several leaves or items in order, each with the index of its leaf or item.
pub(in crate::query) struct Merged {
    /// Next hit of each source that has one, and the index of the source; the least hit comes
    /// first.
    next: BinaryHeap<Reverse<(Hit, usize)>>,
    sources: Vec<LeafHits>,
}

impl Merged {
    fn new(mut sources: Vec<LeafHits>) -> Self {
        let first = |(idx, source): (usize, &mut LeafHits)| Some(Reverse((source.next()?, idx)));
        let next = sources.iter_mut().enumerate().filter_map(first).collect();
        Self { next, sources }
    }
}

impl Iterator for Merged {
    type Item = (Hit, usize);

    #[inline]
    fn next(&mut self) -> Option<(Hit, usize)> {
        let mut least = self.next.peek_mut()?;
        let Reverse((hit, idx)) = *least;
        match self.sources[idx].next() {
            Some(following) => least.0.0 = following,
            None => drop(PeekMut::pop(least)),
        }
        Some((hit, idx))
    }
}

/// Returns the hits of a leaf that is no plain phrase, which begin in segment `segment_idx`, in
/// order.
pub(in crate::query) fn listed(
    resolved: &ResolvedQuery<'_>,
    segment_idx: usize,
    leaf: &Leaf,
    filter: Filter<'_>,
) -> Result<Vec<Hit>> {
    let Leaf::Placed { item, place } = leaf else {
        return stretches(resolved, segment_idx, leaf, filter);
    };
    let fitting = LeafHits::from_part(resolved, segment_idx, (*item, place), filter)?;
    Ok(fitting.collect())
}

/// Returns true if the texts around the words of `hit` are `gaps`, or if there are none.
fn has_gaps(corpus: &Corpus, hit: &Hit, gaps: &[String]) -> Result<bool> {
    let [before, between @ .., behind] = gaps else { return Ok(true) };
    let Some(start) = hit.byte_offset.checked_sub(before.len() as u64) else { return Ok(false) };
    let len = hit.byte_len + (before.len() + behind.len()) as u64;
    let text = extract(corpus, hit.doc_id, start, len)?;
    let inside = text.strip_prefix(before.as_bytes());
    let inside = inside.and_then(|text| text.strip_suffix(behind.as_bytes()));
    let Some(inside) = inside.filter(|inside| inside.len() as u64 == hit.byte_len) else {
        return Ok(false);
    };
    let words = words(corpus.profile(), inside);
    let found = words.windows(2).map(|pair| &inside[pair[0].1.end..pair[1].1.start]);
    Ok(found.eq(between.iter().map(String::as_bytes)))
}

/// Returns the stretches of a leaf of several items that begin in segment `segment_idx`, in order.
fn stretches(resolved: &ResolvedQuery<'_>, segment_idx: usize, leaf: &Leaf, filter: Filter<'_>) -> Result<Vec<Hit>> {
    let corpus = resolved.corpus();
    let items = leaf.items();
    let lens = items.iter().map(|&item| resolved.query().items()[item].len() as u64).collect();
    let rule = match leaf {
        Leaf::Gapped { max_between, .. } => Rule::Gapped(*max_between),
        Leaf::Near { max_between, .. } => Rule::Near(*max_between),
        Leaf::Phrase(_) | Leaf::Placed { .. } => Rule::Near(0),
    };
    let mut windows = Windows::new(rule, lens);
    let mut found = Vec::new();
    let mut last = None;
    let mut note = |hit: Hit| found.push(hit);
    let docs = Arc::new(docs_with_all(resolved, segment_idx, items, filter)?);
    for (hit, part) in occurrences(resolved, segment_idx, leaf, &docs)? {
        last = Some(hit);
        windows.push(part, hit, true, &mut note);
    }
    // A stretch of the last document can end in a later segment.
    let last_word = last.map_or(0, |hit| hit.word_index).saturating_add(windows.reach_words());
    let cut_doc = doc_cut_after(corpus, segment_idx).map(|doc| corpus.doc_id(segment_idx, doc));
    let cut_doc = last.map(|hit| hit.doc_id).filter(|&doc_id| cut_doc == Some(doc_id));
    let parts = cut_doc.map(|doc_id| corpus.doc_parts(doc_id));
    let later = parts.into_iter().flatten().filter(|&(idx, _)| idx > segment_idx);
    'segments: for (idx, doc) in later {
        let mut docs = DocSet::none(resolved.num_docs(idx));
        docs.insert(doc);
        for (hit, part) in occurrences(resolved, idx, leaf, &Arc::new(docs))? {
            if hit.word_index > last_word {
                break 'segments;
            }
            windows.push(part, hit, false, &mut note);
        }
    }
    windows.finish(&mut note);
    Ok(found)
}

fn occurrences(resolved: &ResolvedQuery<'_>, segment_idx: usize, leaf: &Leaf, docs: &Arc<DocSet>) -> Result<Merged> {
    let of = |(part, &item): (usize, &usize)| {
        LeafHits::from_part(resolved, segment_idx, (item, leaf.place(part)), Some(docs))
    };
    let sources =
        if docs.is_empty() { Vec::new() } else { leaf.items().iter().enumerate().map(of).collect::<Result<_>>()? };
    Ok(Merged::new(sources))
}

/// Returns the documents of `filter` that have all `items` in segment `segment_idx`, and those that
/// are cut there and may have them in another segment.
fn docs_with_all(
    resolved: &ResolvedQuery<'_>,
    segment_idx: usize,
    items: &[usize],
    filter: Filter<'_>,
) -> Result<DocSet> {
    let corpus = resolved.corpus();
    let num_docs = resolved.num_docs(segment_idx);
    let mut docs = match filter {
        Some(docs) => docs.as_ref().clone(),
        None => DocSet::all(num_docs),
    };
    let cut = doc_cut_after(corpus, segment_idx).into_iter().filter(|&doc| docs.contains(doc));
    let cut: Vec<DocId> = cut.collect();
    for &item in items {
        if docs.is_empty() {
            break;
        }
        let is_all = filter.is_none() && docs.len() == num_docs;
        let counts = segment_item_counts(resolved, segment_idx, item, Some(&docs).filter(|_| !is_all))?;
        docs = DocSet::none(num_docs);
        docs.extend(counts.iter().map(|&(doc, _)| doc).chain(cut.iter().copied()));
    }
    Ok(docs)
}

/// Hits of all leaves that begin in one segment, in order.
pub(in crate::query) enum SegmentHits {
    One(Box<LeafHits>),
    Many(Merged),
}

impl SegmentHits {
    /// Finds the hits of `leaves`, each with the documents that it is restricted to.
    pub fn new<'f>(
        resolved: &ResolvedQuery<'_>,
        segment_idx: usize,
        leaves: impl Iterator<Item = (&'f Leaf, Filter<'f>)>,
    ) -> Result<Self> {
        let hits = leaves.map(|(leaf, filter)| match leaf {
            Leaf::Phrase(item) => LeafHits::from_item(resolved, segment_idx, *item, filter),
            _ => listed(resolved, segment_idx, leaf, filter).map(LeafHits::from_list),
        });
        let hits: Vec<LeafHits> = hits.collect::<Result<_>>()?;
        Ok(match <[LeafHits; 1]>::try_from(hits) {
            Ok([leaf]) => Self::One(Box::new(leaf)),
            Err(leaves) => Self::Many(Merged::new(leaves)),
        })
    }

    /// Fills the empty `batch` with at most `max_len` hits. It stays empty if no hits are left.
    pub fn fill(&mut self, batch: &mut Vec<Hit>, max_len: usize) {
        match self {
            Self::One(leaf) => leaf.fill(batch, max_len),
            Self::Many(leaves) => batch.extend(leaves.take(max_len).map(|(hit, _)| hit)),
        }
    }
}
