//! Document ids of consecutive segments, in which documents may be cut.

use std::ops::Range;

/// Ids of the documents of consecutive segments, counted from 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocIds {
    /// Id of the first document (or continued part) of each segment.
    firsts: Vec<u64>,
    num_docs: u64,
}

impl DocIds {
    /// Numbers the documents of `segments` in order. Each segment has a flag that is true if its
    /// first document continues the last one before it, if there is one, and its number of
    /// documents.
    pub(crate) fn new(segments: impl ExactSizeIterator<Item = (bool, u64)>) -> Self {
        let mut firsts = Vec::with_capacity(segments.len());
        let mut num_docs = 0u64;
        for (continues, docs_here) in segments {
            // A segment without documents gets the id of the last document too. A later segment may
            // continue that document, and first ids must not fall, because they are searched.
            let is_at_last = num_docs > 0 && (continues || docs_here == 0);
            let first = num_docs - u64::from(is_at_last);
            firsts.push(first);
            num_docs = num_docs.max(first + docs_here);
        }
        Self { firsts, num_docs }
    }

    /// Returns the id of the first document (or continued part) of segment `segment_idx`.
    #[inline]
    pub(crate) fn first_of(&self, segment_idx: usize) -> u64 {
        self.firsts[segment_idx]
    }

    /// Returns the number of documents.
    #[inline]
    pub(crate) fn num_docs(&self) -> u64 {
        self.num_docs
    }

    /// Returns the position that document `doc_id` has in segment `segment_idx` if a part of it lies
    /// there. Returns `None` if it lies before. The caller compares the position with the number of
    /// documents there.
    #[inline]
    pub(crate) fn index_in(&self, segment_idx: usize, doc_id: u64) -> Option<usize> {
        Some(doc_id.checked_sub(self.firsts[segment_idx])? as usize)
    }

    /// Returns the segments that may hold parts of document `doc_id`. Each other segment holds none.
    #[inline]
    pub(crate) fn segments_with(&self, doc_id: u64) -> Range<usize> {
        let last = self.firsts.partition_point(|&first| first <= doc_id);
        let begins = self.firsts[..last].partition_point(|&first| first < doc_id);
        begins.saturating_sub(1)..last
    }
}
