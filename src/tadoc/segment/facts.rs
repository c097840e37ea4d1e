//! Facts about documents that need no grammar: their paths and lengths.
//!
//! # Ids of documents
//!
//! Document ids of consecutive segments, in which documents may be cut.

use std::ops::Range;

use super::Paths;

/// Length of a document, or of its part in a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DocumentLength {
    /// Number of bytes, including implied blanks.
    pub len_bytes: u64,
    /// Number of words.
    pub num_words: u64,
}

/// Facts about the documents of one segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Path of each document, including a continued one.
    pub paths: Paths,
    /// Length of each document's part in the segment.
    pub lengths: Vec<DocumentLength>,
    /// True if the first document continues the last document of the previous segment.
    pub continues: bool,
}

/// Facts about the documents of consecutive segments. Document ids count from 0, as in a
/// [`Corpus`](crate::segment::Corpus) of these segments.
#[derive(Debug, Clone, Default)]
pub struct DocumentFacts {
    segments: Vec<SegmentFacts>,
    doc_ids: DocIds,
}

impl DocumentFacts {
    /// Joins `segments` in order.
    pub fn new(segments: Vec<SegmentFacts>) -> Self {
        let doc_ids = DocIds::new(segments.iter().map(|s| (s.continues, s.lengths.len() as u64)));
        Self { segments, doc_ids }
    }

    /// Returns the number of documents.
    pub fn num_docs(&self) -> u64 {
        self.doc_ids.num_docs()
    }

    /// Returns the facts of each segment, in order.
    pub fn segments(&self) -> &[SegmentFacts] {
        &self.segments
    }

    /// Returns the path of document `doc_id`, if it exists.
    pub fn path(&self, doc_id: u64) -> Option<&str> {
        let (segment, index) = self.parts(doc_id).next()?;
        segment.paths.get(index)
    }

    /// Returns the length of document `doc_id`, if it exists. The parts of a document that was cut
    /// between segments are added up.
    pub fn length(&self, doc_id: u64) -> Option<DocumentLength> {
        let parts = self.parts(doc_id).map(|(segment, index)| segment.lengths[index]);
        // The footer of a file guarantees that the sums of all its documents fit.
        parts.reduce(|sum, part| DocumentLength {
            len_bytes: sum.len_bytes.saturating_add(part.len_bytes),
            num_words: sum.num_words.saturating_add(part.num_words),
        })
    }

    /// Returns the parts of document `doc_id` in order: the segment and the position in it.
    fn parts(&self, doc_id: u64) -> impl Iterator<Item = (&SegmentFacts, usize)> + '_ {
        self.doc_ids.segments_with(doc_id).filter_map(move |segment_idx| {
            let segment = &self.segments[segment_idx];
            let index = self.doc_ids.index_in(segment_idx, doc_id)?;
            (index < segment.lengths.len()).then_some((segment, index))
        })
    }

    /// Returns the number of bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        let for_segment = |segment: &SegmentFacts| {
            let lengths_bytes = size_of::<DocumentLength>() * segment.lengths.len();
            size_of::<SegmentFacts>() + segment.paths.memory_bytes() + lengths_bytes
        };
        self.segments.iter().map(for_segment).sum()
    }
}

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
    pub(crate) fn first_for(&self, segment_idx: usize) -> u64 {
        self.firsts[segment_idx]
    }

    /// Returns the number of documents.
    #[inline]
    pub(crate) fn num_docs(&self) -> u64 {
        self.num_docs
    }

    /// Returns the position that document `doc_id` has in segment `segment_idx` if a part of it
    /// lies there. Returns `None` if it lies before. The caller compares the position with the
    /// number of documents there.
    #[inline]
    pub(crate) fn index_in(&self, segment_idx: usize, doc_id: u64) -> Option<usize> {
        Some(doc_id.checked_sub(self.firsts[segment_idx])? as usize)
    }

    /// Returns the segments that may hold parts of document `doc_id`. Each other segment holds
    /// none.
    #[inline]
    pub(crate) fn segments_with(&self, doc_id: u64) -> Range<usize> {
        let last = self.firsts.partition_point(|&first| first <= doc_id);
        let begins = self.firsts[..last].partition_point(|&first| first < doc_id);
        begins.saturating_sub(1)..last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(continues: bool, docs: &[(&str, u64)]) -> SegmentFacts {
        let mut facts = SegmentFacts { continues, ..SegmentFacts::default() };
        for &(path, len_bytes) in docs {
            facts.paths.push(path);
            facts.lengths.push(DocumentLength { len_bytes, num_words: len_bytes / 2 });
        }
        facts
    }

    #[test]
    fn parts_of_a_cut_document_are_added_up() {
        let facts = DocumentFacts::new(vec![
            segment(false, &[("a", 10), ("b", 20)]),
            segment(true, &[("b", 100)]),
            segment(false, &[]),
            segment(true, &[("b", 6), ("c", 0)]),
            segment(false, &[("d", 2)]),
        ]);
        assert_eq!(facts.num_docs(), 4);
        let told = |doc_id| {
            let DocumentLength { len_bytes, num_words } = facts.length(doc_id)?;
            Some((facts.path(doc_id)?, len_bytes, num_words))
        };
        let expected = [("a", 10, 5), ("b", 126, 63), ("c", 0, 0), ("d", 2, 1)];
        assert_eq!((0..5).map_while(told).collect::<Vec<_>>(), expected);
        assert_eq!((facts.path(4), facts.length(4)), (None, None));
        assert!(facts.memory_bytes() > 6 * 16);
        assert_eq!(DocumentFacts::default().path(0), None);
    }
}
