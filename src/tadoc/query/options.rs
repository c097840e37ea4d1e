//! Settings of a search.

use crate::error::{Error, Result};
use crate::segment::Corpus;

use crate::interrupt::Canceller;

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
