//! The output of a scan: bounded, sliced and limited, and aware of a reader that has left; and the count of the
//! segments that a statement skips.
//!
//! Functions pass batches of any length. Output batches have at most `batch_size` rows and the
//! right projection, and together no more rows than the pushed limit. The value `false` means stop:
//! the limit is reached, or nobody reads any more. This is how cancellation reaches blocking code.
//!
//! ```text
//! segments       [ 0 .. 9 ][ 9 .. 30 ][ 30 .. 40 ][ 40 .. 64 ]
//! partition 0    looks at 0 .. 32: keeps 3, 7
//! partition 1    looks at 32 .. 64: keeps 41
//! skipped                   ^ here     ^ when partition 1 reports
//! ```
//!
//! A segment is skipped if it is not opened, or if all of its documents were looked at and none is left by the
//! conditions that need no text and by the grammar. Documents that nobody looks at, because a statement ends early,
//! do not count. A report takes O(segments + log of the documents that are kept).

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use tokio::sync::mpsc::Sender;

/// Output of one partition.
#[derive(Debug)]
pub(crate) struct Output {
    sender: Sender<Result<RecordBatch>>,
    schema: SchemaRef,
    batch_size: usize,
    remaining: Option<usize>,
    metrics: BaselineMetrics,
    /// Time at which the current computation began. `None` while the partition waits for its
    /// reader.
    computing_since: Option<Instant>,
}

impl Output {
    pub(crate) fn new(
        sender: Sender<Result<RecordBatch>>,
        schema: SchemaRef,
        batch_size: usize,
        limit: Option<usize>,
        metrics: BaselineMetrics,
    ) -> Self {
        let batch_size = batch_size.max(1);
        Self { sender, schema, batch_size, remaining: limit, metrics, computing_since: None }
    }

    /// Starts the clock of the partition's computing time. It pauses while rows are sent.
    pub(crate) fn start_computing(&mut self) {
        self.computing_since = Some(Instant::now());
    }

    fn stop_computing(&mut self) {
        if let Some(since) = self.computing_since.take() {
            self.metrics.elapsed_compute().add_duration(since.elapsed());
        }
    }

    /// Returns the largest number of rows of one batch.
    pub(crate) fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Returns true if no more rows are wanted.
    pub(crate) fn is_done(&self) -> bool {
        self.remaining == Some(0) || self.sender.is_closed()
    }

    /// Returns a handle that any thread can ask if the reader has left.
    pub(crate) fn canceller(&self) -> Sender<Result<RecordBatch>> {
        self.sender.clone()
    }

    /// Sends rows of the projected `columns` from a blocking thread. Returns false if the function
    /// should stop.
    pub(crate) fn send_columns(&mut self, columns: Vec<ArrayRef>, num_rows: usize) -> Result<bool> {
        for batch in self.batches(columns, num_rows)? {
            let batch = batch.record_output(&self.metrics);
            self.stop_computing();
            let sent = self.sender.blocking_send(Ok(batch));
            self.start_computing();
            if sent.is_err() {
                return Ok(false);
            }
        }
        Ok(!self.is_done())
    }

    /// Sends rows of the projected `columns` from an asynchronous task. Returns false if the
    /// function should stop.
    pub(crate) async fn send_columns_async(&mut self, columns: Vec<ArrayRef>, num_rows: usize) -> Result<bool> {
        for batch in self.batches(columns, num_rows)? {
            if self.sender.send(Ok(batch.record_output(&self.metrics))).await.is_err() {
                return Ok(false);
            }
        }
        Ok(!self.is_done())
    }

    fn batches(&mut self, columns: Vec<ArrayRef>, num_rows: usize) -> Result<Vec<RecordBatch>> {
        let num_rows = self.remaining.map_or(num_rows, |left| left.min(num_rows));
        if let Some(left) = &mut self.remaining {
            *left -= num_rows;
        }
        let mut batches = Vec::with_capacity(num_rows.div_ceil(self.batch_size));
        let mut start = 0;
        while start < num_rows {
            let len = self.batch_size.min(num_rows - start);
            let slices = columns.iter().map(|column| column.slice(start, len)).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(len));
            let schema = Arc::clone(&self.schema);
            batches.push(RecordBatch::try_new_with_options(schema, slices, &options)?);
            start += len;
        }
        Ok(batches)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.stop_computing();
    }
}

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
