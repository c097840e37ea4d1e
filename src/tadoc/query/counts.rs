//! Counts of occurrences by document, in one segment and in a corpus.

use crate::error::{Error, Result};
use crate::ids::DocId;

use crate::query::matching::cut::doc_cut_after;
use crate::query::matching::doc_set::DocSet;
use crate::query::matching::resolved::ResolvedQuery;

/// Number of hits of a query in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentCount {
    /// Id of the document.
    pub doc_id: u64,
    /// Number of occurrences, 1 or more.
    pub count: u64,
}

/// Number of occurrences by document, ascending; no number is 0.
pub(in crate::query) type DocCounts = Vec<(DocId, u64)>;

/// Returns the number of occurrences of an item that begin in segment `segment_idx`, by document.
pub(in crate::query) fn segment_item_counts(
    resolved: &ResolvedQuery<'_>,
    segment_idx: usize,
    item_idx: usize,
    filter: Option<&DocSet>,
) -> Result<DocCounts> {
    let item = resolved.item(segment_idx, item_idx);
    let mut counts = item.map_or(Ok(Vec::new()), |item| item.count_by_doc(filter))?;
    let cut_doc = doc_cut_after(resolved.corpus(), segment_idx)
        .filter(|&doc| filter.is_none_or(|docs| docs.contains(doc)));
    if let Some(doc) = cut_doc {
        let across = resolved.matches_across(segment_idx, item_idx)?.len() as u64;
        add_to(&mut counts, doc, across)?;
    }
    Ok(counts)
}

/// Adds `count` to the count of `doc`.
pub(in crate::query) fn add_to(counts: &mut DocCounts, doc: DocId, count: u64) -> Result<()> {
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
pub(in crate::query) fn checked_sum(mut counts: impl Iterator<Item = u64>) -> Result<u64> {
    let sum = counts.try_fold(0u64, |sum, count| sum.checked_add(count));
    sum.ok_or(Error::Capacity {
        what: "a sum of counts",
        requested: u64::MAX,
        limit: u64::MAX - 1,
        knob: "nothing (counts are 64-bit numbers)",
    })
}
