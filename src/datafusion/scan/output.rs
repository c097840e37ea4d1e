//! The way of rows out of a scan: bounded, sliced, limited, and aware of a reader that left.
//!
//! Functions hand over batches of any length; what goes out has at most `batch_size` rows, the
//! right projection, and no more rows than the pushed limit. A `false` says stop: the limit is
//! reached or nobody reads any more, which is how cancellation reaches blocking code.

use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use tokio::sync::mpsc::Sender;

/// Where a partition's rows go.
#[derive(Debug)]
pub(crate) struct Output {
    sender: Sender<Result<RecordBatch>>,
    schema: SchemaRef,
    batch_size: usize,
    remaining: Option<usize>,
    metrics: BaselineMetrics,
    /// Since when the partition computes; not while it waits for its reader.
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

    /// From here on time is the partition's, until rows are sent, and again after that.
    pub(crate) fn start_computing(&mut self) {
        self.computing_since = Some(Instant::now());
    }

    fn stop_computing(&mut self) {
        if let Some(since) = self.computing_since.take() {
            self.metrics.elapsed_compute().add_duration(since.elapsed());
        }
    }

    /// Rows of one batch.
    pub(crate) fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Whether no more rows are wanted.
    pub(crate) fn is_done(&self) -> bool {
        self.remaining == Some(0) || self.sender.is_closed()
    }

    /// Tells, from any thread, whether the reader has left.
    pub(crate) fn canceller(&self) -> Sender<Result<RecordBatch>> {
        self.sender.clone()
    }

    /// Sends rows made of projected `columns` from a blocking thread; false says stop.
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

    /// Sends rows made of projected `columns` from a task; false says stop.
    pub(crate) async fn send_columns_async(
        &mut self,
        columns: Vec<ArrayRef>,
        num_rows: usize,
    ) -> Result<bool> {
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
