//! Options of a search, one occurrence as its result, and occurrences counted by document.

use crate::error::{Error, Result};
use crate::ids::DocId;
use crate::interrupt::Canceller;
use crate::segment::Corpus;

use super::matching::resolved::{ResolvedQuery, doc_cut_after};
use super::matching::sets::DocSet;

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
    let cut_doc =
        doc_cut_after(resolved.corpus(), segment_idx).filter(|&doc| filter.is_none_or(|docs| docs.contains(doc)));
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
    pub(in crate::query) fn canceller(&self) -> Canceller<'a> {
        Canceller::new(self.is_cancelled)
    }

    /// Returns the documents to search, in ascending order; `None` for all.
    pub(in crate::query) fn selected(&self, corpus: &Corpus) -> Result<Option<Vec<u64>>> {
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
