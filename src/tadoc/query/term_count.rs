//! Counts of a query in each document, without a list of the occurrences.
//!
//! Segments are processed one after the other. Matches are counted by rule, the counts are passed
//! up to the documents, and the documents that contain every item are passed to the caller. A
//! document that was cut is reported after its last part. Memory is that of the counts of one
//! segment. Time is O(places above the matches), however often these occur. If few documents are
//! selected, they are read instead.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::ids::DocId;
use crate::segment::Corpus;

use crate::query::language::query::Query;
use crate::query::matching::cut::doc_cut_after;
use crate::query::matching::doc_set::DocSet;
use crate::query::matching::resolved::ResolvedQuery;
use crate::query::options::SearchOptions;

/// Number of rows that are passed to the caller at once.
const BATCH_ROWS: usize = 1 << 12;

/// Number of occurrences of all items of a query in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentCount {
    /// Id of the document.
    pub doc_id: u64,
    /// Number of occurrences, 1 or more.
    pub count: u64,
}

/// Calls `visit` with the documents that contain all items of `query` and the number of occurrences
/// of all items in them, in batches in ascending order of the document, until it breaks.
///
/// # Errors
/// [`Error::OutOfRange`] if a document of `options` does not exist; [`Error::InvalidArgument`]
/// named `docs` if `options.docs` do not ascend; [`Error::Capacity`] if a number has more than 64
/// bits; [`Error::Cancelled`]. `options.max_hits` is ignored.
pub fn term_count(
    corpus: &Corpus,
    query: &Query,
    options: &SearchOptions<'_>,
    visit: &mut dyn FnMut(&[DocumentCount]) -> ControlFlow<()>,
) -> Result<()> {
    let docs = options.selected(corpus)?;
    let resolved = ResolvedQuery::new(corpus, query, options.canceller());
    count_documents(&resolved, docs.as_deref(), &mut |counts| {
        for batch in counts.chunks(BATCH_ROWS) {
            if (options.is_cancelled)() {
                return Err(Error::Cancelled);
            }
            if visit(batch).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Occurrences of each item so far in a document that continues in the next segment with documents.
type OpenDoc = Vec<u64>;

/// Calls `visit` with the counts of one segment after the other, for `docs`, which ascend, or for
/// all documents.
pub(in crate::query) fn count_documents(
    resolved: &ResolvedQuery<'_>,
    docs: Option<&[u64]>,
    visit: &mut dyn FnMut(&[DocumentCount]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let corpus = resolved.corpus();
    let mut open: Option<OpenDoc> = None;
    for segment_idx in 0..corpus.segments().len() {
        let filter = docs.map(|docs| local_docs(corpus, segment_idx, docs));
        let num_docs = corpus.segments()[segment_idx].dag.grammar().num_docs();
        if num_docs == 0 || filter.as_ref().is_some_and(DocSet::is_empty) {
            continue;
        }
        let counts = segment_counts(resolved, segment_idx, filter, &mut open)?;
        if visit(&counts)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Returns the documents that end in a segment and contain all items. `open` is the document that
/// continues in this segment; it is replaced by the document that continues after this segment.
fn segment_counts(
    resolved: &ResolvedQuery<'_>,
    segment_idx: usize,
    filter: Option<DocSet>,
    open: &mut Option<OpenDoc>,
) -> Result<Vec<DocumentCount>> {
    let corpus = resolved.corpus();
    let before = open.take();
    let cut_doc = doc_cut_after(corpus, segment_idx)
        .filter(|&doc| filter.as_ref().is_none_or(|docs| docs.contains(doc)));
    let num_docs = corpus.segments()[segment_idx].dag.grammar().num_docs();
    let mut open_counts = Vec::with_capacity(resolved.num_items());
    let mut filter = filter;
    let mut found: Option<Vec<(DocId, u64)>> = None;
    for item_idx in 0..resolved.num_items() {
        let item = resolved.item(segment_idx, item_idx);
        let mut counts = item.map_or(Ok(Vec::new()), |item| item.count_by_doc(filter.as_ref()))?;
        if let Some(carried) = before.as_ref().map(|counts| counts[item_idx]) {
            add_to_first(&mut counts, carried)?;
        }
        if let Some(doc) = cut_doc {
            let inside = counts.pop_if(|last| last.0 == doc).map_or(0, |last| last.1);
            let across = resolved.matches_across(segment_idx, item_idx)?.len() as u64;
            open_counts.push(checked_sum([inside, across].into_iter())?);
        }
        let both = match found.take() {
            None => counts,
            Some(found) => in_both(&found, &counts)?,
        };
        if item_idx + 1 < resolved.num_items() {
            // Documents beside a cut may contain an item in their other parts.
            let mut docs = DocSet::none(num_docs);
            let beside = before.as_ref().map(|_| DocId::FIRST).into_iter().chain(cut_doc);
            docs.extend(both.iter().map(|&(doc, _)| doc).chain(beside));
            if docs.is_empty() {
                // No document is left for the items that follow, and none is cut.
                return Ok(Vec::new());
            }
            filter = Some(docs);
        }
        found = Some(both);
    }
    *open = cut_doc.map(|_| open_counts);
    let listed = found.unwrap_or_default().into_iter();
    let row = |(doc, count)| DocumentCount { doc_id: corpus.doc_id(segment_idx, doc), count };
    Ok(listed.map(row).collect())
}

/// Returns the documents of `docs` (ascending ids) that have a part in segment `segment_idx`.
pub(in crate::query) fn local_docs(corpus: &Corpus, segment_idx: usize, docs: &[u64]) -> DocSet {
    let num_docs = corpus.segments()[segment_idx].dag.grammar().num_docs();
    let mut local = DocSet::none(num_docs);
    let begin = docs.partition_point(|&doc_id| doc_id < corpus.first_doc_id(segment_idx));
    local.extend(docs[begin..].iter().map_while(|&doc_id| corpus.doc_in(segment_idx, doc_id)));
    local
}

/// Adds `carried` to the count of the first document.
fn add_to_first(counts: &mut Vec<(DocId, u64)>, carried: u64) -> Result<()> {
    match counts.first_mut().filter(|first| first.0 == DocId::FIRST) {
        Some(first) => first.1 = checked_sum([first.1, carried].into_iter())?,
        None if carried > 0 => counts.insert(0, (DocId::FIRST, carried)),
        None => {}
    }
    Ok(())
}

/// Returns the documents of both lists, with the sum of both counts.
fn in_both(a: &[(DocId, u64)], b: &[(DocId, u64)]) -> Result<Vec<(DocId, u64)>> {
    let mut b = b.iter().peekable();
    let mut both = Vec::new();
    for &(doc, count) in a {
        while b.next_if(|other| other.0 < doc).is_some() {}
        if let Some(other) = b.next_if(|other| other.0 == doc) {
            both.push((doc, checked_sum([count, other.1].into_iter())?));
        }
    }
    Ok(both)
}

/// Returns the sum of `counts`.
///
/// # Errors
/// [`Error::Capacity`] if the sum has more than 64 bits.
pub(in crate::query) fn checked_sum(mut counts: impl Iterator<Item = u64>) -> Result<u64> {
    let sum = counts.try_fold(0u64, |sum, count| sum.checked_add(count));
    sum.ok_or(Error::Capacity {
        what: "a sum of counts",
        requested: u64::MAX,
        limit: u64::MAX - 1,
        knob: "nothing (counts are 64-bit numbers)",
    })
}
