//! Search: the documents that match a query, with the number and positions of the occurrences.
//!
//! A query of several items is answered in two steps. First, documents are counted for each item
//! without a list of places. Then places are listed in the documents that contain all items. Hits
//! are produced one by one in order. Memory is that of the places in the grammar (at most one for
//! each of its elements), or of the documents found, never of the hits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::DocId;
use crate::segment::Corpus;

use crate::query::language::query::Query;
use crate::query::matching::cut::{PartStart, doc_cut_after, part_start};
use crate::query::matching::doc_set::DocSet;
use crate::query::matching::occurrences::ItemStream;
use crate::query::matching::resolved::ResolvedQuery;
use crate::query::options::SearchOptions;
use crate::query::term_count::{DocumentCount, checked_sum, count_documents, local_docs};

/// Number of hits of a batch.
const BATCH_HITS: usize = 1 << 12;

/// One occurrence of an item of a query.
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

/// Returns all occurrences of `query`, in one document or all, by document and offset.
///
/// # Errors
/// [`Error::OutOfRange`] if there is no document `doc_id`; [`Error::Capacity`] for more than
/// [`DEFAULT_MAX_HITS`](crate::query::DEFAULT_MAX_HITS) hits, counted before any is produced.
pub fn search(corpus: &Corpus, query: &Query, doc_id: Option<u64>) -> Result<Vec<Hit>> {
    let options = SearchOptions { doc_id, ..Default::default() };
    let resolved = ResolvedQuery::new(corpus, query, options.canceller());
    let num_hits = count_resolved(&resolved, &options)?;
    check_num_hits(num_hits, options.max_hits)?;
    let mut hits = Vec::with_capacity(num_hits as usize);
    let segments = 0..corpus.segments().len();
    search_resolved(&resolved, segments, &options, &mut |batch| {
        hits.extend_from_slice(batch);
        ControlFlow::Continue(())
    })?;
    Ok(hits)
}

/// Calls `visit` with the occurrences of `query` in batches, until it breaks. Each batch, and all
/// batches together, are in order of document and offset.
///
/// # Errors
/// [`Error::OutOfRange`] if there is no document `options.doc_id` or one of `options.docs`;
/// [`Error::InvalidArgument`] named `docs` if these do not ascend; [`Error::Capacity`] if there are
/// more than `options.max_hits`, after this number; [`Error::Cancelled`].
pub fn search_with(
    corpus: &Corpus,
    query: &Query,
    options: &SearchOptions<'_>,
    visit: &mut dyn FnMut(&[Hit]) -> ControlFlow<()>,
) -> Result<()> {
    search_segments(corpus, query, 0..corpus.segments().len(), options, visit)
}

/// Calls `visit` as [`search_with`] does, with the occurrences that begin in the existing segments
/// of `segments`. Several threads can search a corpus in this way. If a query has several items,
/// each thread counts the documents of the whole corpus.
///
/// # Errors
/// As [`search_with`]; `options.max_hits` applies to these segments only.
pub fn search_segments(
    corpus: &Corpus,
    query: &Query,
    segments: Range<usize>,
    options: &SearchOptions<'_>,
    visit: &mut dyn FnMut(&[Hit]) -> ControlFlow<()>,
) -> Result<()> {
    let resolved = ResolvedQuery::new(corpus, query, options.canceller());
    search_resolved(&resolved, segments, options, visit)
}

fn search_resolved(
    resolved: &ResolvedQuery<'_>,
    segments: Range<usize>,
    options: &SearchOptions<'_>,
    visit: &mut dyn FnMut(&[Hit]) -> ControlFlow<()>,
) -> Result<()> {
    let corpus = resolved.corpus();
    let docs = selected_docs(resolved, options)?;
    let mut batch = Vec::new();
    let mut num_hits = 0;
    for segment_idx in segments.start..segments.end.min(corpus.segments().len()) {
        let filter = docs.as_ref().map(|docs| Arc::new(local_docs(corpus, segment_idx, docs)));
        if filter.as_ref().is_some_and(|docs| docs.is_empty()) {
            continue;
        }
        let mut hits = segment_hits(resolved, segment_idx, filter.as_ref())?;
        loop {
            batch.clear();
            hits.fill(&mut batch);
            if (options.is_cancelled)() {
                return Err(Error::Cancelled);
            }
            num_hits += batch.len() as u64;
            let excess = num_hits.saturating_sub(options.max_hits);
            batch.truncate(batch.len() - excess as usize);
            if !batch.is_empty() && visit(&batch).is_break() {
                return Ok(());
            }
            check_num_hits(num_hits, options.max_hits)?;
            if batch.is_empty() {
                break;
            }
        }
    }
    Ok(())
}

/// Checks that there are at most `max_hits` occurrences.
///
/// # Errors
/// [`Error::Capacity`] if `requested` is larger.
pub fn check_num_hits(requested: u64, max_hits: u64) -> Result<()> {
    if requested <= max_hits {
        return Ok(());
    }
    Err(Error::Capacity {
        what: "occurrences to list",
        requested,
        limit: max_hits,
        knob: "tadoc.max_hits",
    })
}

/// Returns the number of occurrences of `query` in the documents of `options`. It is exact even if
/// a list of them would exceed any limit.
///
/// # Errors
/// [`Error::OutOfRange`] if there is no document `options.doc_id` or one of `options.docs`;
/// [`Error::InvalidArgument`] named `docs` if these do not ascend; [`Error::Capacity`] if the
/// number has more than 64 bits; [`Error::Cancelled`].
pub fn count(corpus: &Corpus, query: &Query, options: &SearchOptions<'_>) -> Result<u64> {
    count_resolved(&ResolvedQuery::new(corpus, query, options.canceller()), options)
}

fn count_resolved(resolved: &ResolvedQuery<'_>, options: &SearchOptions<'_>) -> Result<u64> {
    if options.doc_id.is_some() || options.docs.is_some() || resolved.num_items() > 1 {
        let counts = counts_by_document(resolved, options)?;
        return checked_sum(counts.iter().map(|counted| counted.count));
    }
    let mut counts = Vec::new();
    for segment_idx in 0..resolved.corpus().segments().len() {
        counts.push(resolved.item(segment_idx, 0).map_or(Ok(0), |item| item.count())?);
        counts.push(resolved.matches_across(segment_idx, 0)?.len() as u64);
    }
    checked_sum(counts.into_iter())
}

/// Returns the documents that contain all items of `query`, and the occurrences of all items in
/// them, in ascending order: [`term_count`](crate::query::term_count()) as one list.
///
/// # Errors
/// As [`count`].
pub fn count_by_document(
    corpus: &Corpus,
    query: &Query,
    options: &SearchOptions<'_>,
) -> Result<Vec<DocumentCount>> {
    counts_by_document(&ResolvedQuery::new(corpus, query, options.canceller()), options)
}

fn counts_by_document(
    resolved: &ResolvedQuery<'_>,
    options: &SearchOptions<'_>,
) -> Result<Vec<DocumentCount>> {
    let docs = options.selected(resolved.corpus())?;
    let mut found = Vec::new();
    count_documents(resolved, docs.as_deref(), &mut |counts| {
        found.extend_from_slice(counts);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Returns the documents that hits can lie in, in ascending order; `None` for all.
fn selected_docs(
    resolved: &ResolvedQuery<'_>,
    options: &SearchOptions<'_>,
) -> Result<Option<Vec<u64>>> {
    if resolved.num_items() > 1 {
        let counts = counts_by_document(resolved, options)?;
        return Ok(Some(counts.iter().map(|counted| counted.doc_id).collect()));
    }
    options.selected(resolved.corpus())
}

/// Returns the hits that begin in one segment, in order.
fn segment_hits(
    resolved: &ResolvedQuery<'_>,
    segment_idx: usize,
    filter: Option<&Arc<DocSet>>,
) -> Result<MergedHits> {
    let corpus = resolved.corpus();
    let first_doc_id = corpus.first_doc_id(segment_idx);
    let continued = part_start(corpus, segment_idx)?;
    let cut_doc = doc_cut_after(corpus, segment_idx)
        .filter(|&doc| filter.is_none_or(|docs| docs.contains(doc)));
    let mut items = Vec::with_capacity(resolved.num_items());
    for item_idx in 0..resolved.num_items() {
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
        let across = across.into_iter();
        items.push(ItemHits { inside, across, first_doc_id, continued });
    }
    Ok(MergedHits::new(items))
}

/// Hits of one item that begin in one segment, in order.
struct ItemHits {
    inside: Option<ItemStream>,
    /// Hits that end in a later segment. They begin in the last document, after all other hits.
    across: std::vec::IntoIter<Hit>,
    first_doc_id: u64,
    continued: PartStart,
}

impl ItemHits {
    /// Adds hits to `batch` until it is full or none are left.
    fn fill(&mut self, batch: &mut Vec<Hit>) {
        if let Some(ItemStream::Walked { walk, byte_lens }) = &mut self.inside {
            // Most hits come from here: one loop without the layers between.
            while batch.len() < BATCH_HITS
                && let Some(spot) = walk.next()
            {
                let start =
                    if spot.doc == DocId::FIRST { self.continued } else { PartStart::default() };
                batch.push(Hit {
                    doc_id: self.first_doc_id + u64::from(spot.doc),
                    byte_offset: start.bytes + spot.offsets[0],
                    byte_len: byte_lens[spot.match_idx as usize],
                    word_index: start.words + spot.offsets[1],
                });
            }
        }
        let num_left = BATCH_HITS - batch.len();
        batch.extend(self.take(num_left));
    }
}

impl Iterator for ItemHits {
    type Item = Hit;

    #[inline]
    fn next(&mut self) -> Option<Hit> {
        let Some((doc, found)) = self.inside.as_mut().and_then(Iterator::next) else {
            return self.across.next();
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

/// Hits of all items, merged; O(log items) for each.
enum MergedHits {
    One(Box<ItemHits>),
    Many {
        /// Next hit of each item that has one, and the index of the item; the least hit comes
        /// first.
        next: BinaryHeap<Reverse<(Hit, usize)>>,
        items: Vec<ItemHits>,
    },
}

impl MergedHits {
    /// Fills the empty `batch`, which stays empty if no hits are left.
    fn fill(&mut self, batch: &mut Vec<Hit>) {
        match self {
            Self::One(item) => item.fill(batch),
            Self::Many { .. } => batch.extend(self.take(BATCH_HITS)),
        }
    }

    fn new(items: Vec<ItemHits>) -> Self {
        match <[ItemHits; 1]>::try_from(items) {
            Ok([item]) => Self::One(Box::new(item)),
            Err(mut items) => {
                let first =
                    |(idx, item): (usize, &mut ItemHits)| Some(Reverse((item.next()?, idx)));
                let next = items.iter_mut().enumerate().filter_map(first).collect();
                Self::Many { next, items }
            }
        }
    }
}

impl Iterator for MergedHits {
    type Item = Hit;

    #[inline]
    fn next(&mut self) -> Option<Hit> {
        let (next, items) = match self {
            Self::One(item) => return item.next(),
            Self::Many { next, items } => (next, items),
        };
        let mut least = next.peek_mut()?;
        let Reverse((hit, item_idx)) = *least;
        match items[item_idx].next() {
            Some(following) => least.0.0 = following,
            None => drop(PeekMut::pop(least)),
        }
        Some(hit)
    }
}
