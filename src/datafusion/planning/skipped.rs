//! Count of the segments that a statement skips.
//!
//! ```text
//! segments       [ 0 .. 9 ][ 9 .. 30 ][ 30 .. 40 ][ 40 .. 64 ]
//! partition 0    looks at 0 .. 32: keeps 3, 7
//! partition 1    looks at 32 .. 64: keeps 41
//! skipped                   ^ here     ^ when partition 1 reports
//! ```
//!
//! A segment is skipped if it is not opened, or if all of its documents were looked at and none is left
//! by the conditions that need no text and by the grammar. Partitions report what they have looked at.
//! A statement that ends early leaves documents that nobody looked at, and their segments do not count.
//! A report takes O(segments + log of the documents that are kept).

use std::ops::Range;

/// Segments of a scan, and the documents in them that nobody has looked at yet.
#[derive(Debug)]
pub(crate) struct SkippedSegments {
    segments: Vec<Segment>,
}

#[derive(Debug)]
struct Segment {
    docs: Range<u64>,
    num_unseen: u64,
    /// False once a document is left, or the segment is counted.
    may_count: bool,
}

impl SkippedSegments {
    /// Creates the count of segments that hold parts of `docs`. Those that are `absent` are counted
    /// already.
    pub(crate) fn new(docs: Vec<Range<u64>>, absent: impl Fn(usize) -> bool) -> Self {
        let segment = |(place, docs): (usize, Range<u64>)| Segment {
            num_unseen: docs.end.saturating_sub(docs.start),
            may_count: !docs.is_empty() && !absent(place),
            docs,
        };
        Self { segments: docs.into_iter().enumerate().map(segment).collect() }
    }

    /// Notes that of the documents `seen` only those of `kept`, which ascend, are left. Returns the
    /// number of segments that turn out to be skipped.
    pub(crate) fn note(&mut self, seen: &Range<u64>, kept: &[u64]) -> usize {
        let mut num_skipped = 0;
        for segment in &mut self.segments {
            let begin = segment.docs.start.max(seen.start);
            let end = segment.docs.end.min(seen.end);
            if begin >= end || !segment.may_count {
                continue;
            }
            let next = kept.partition_point(|&id| id < begin);
            segment.may_count = kept.get(next).is_none_or(|&id| id >= end);
            segment.num_unseen = segment.num_unseen.saturating_sub(end - begin);
            if segment.may_count && segment.num_unseen == 0 {
                segment.may_count = false;
                num_skipped += 1;
            }
        }
        num_skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_count_when_all_partitions_have_left_them() {
        let docs = || vec![0..9, 9..30, 30..40, 40..64, 64..64];
        let mut skipped = SkippedSegments::new(docs(), |_| false);
        assert_eq!(skipped.note(&(0..32), &[3, 7]), 1);
        assert_eq!(skipped.note(&(32..64), &[41]), 1);
        // The order of the partitions does not matter.
        let mut skipped = SkippedSegments::new(docs(), |place| place == 1);
        assert_eq!(skipped.note(&(32..64), &[41]), 0);
        assert_eq!(skipped.note(&(0..32), &[31]), 1);
    }

    #[test]
    fn a_document_in_several_segments_keeps_all_of_them() {
        // Document 4 is cut twice.
        let docs = || vec![0..5, 4..5, 4..9];
        let skipped = |kept: &[u64]| SkippedSegments::new(docs(), |_| false).note(&(0..9), kept);
        assert_eq!(skipped(&[4]), 0);
        assert_eq!(skipped(&[0]), 2);
        assert_eq!(skipped(&[8]), 2);
        assert_eq!(skipped(&[]), 3);
    }

    #[test]
    fn documents_that_nobody_looked_at_keep_their_segment() {
        let mut skipped = SkippedSegments::new(vec![0..10, 10..20], |_| false);
        assert_eq!(skipped.note(&(0..15), &[]), 1);
    }
}
