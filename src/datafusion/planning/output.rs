//! The output of a scan: bounded, sliced and limited, and aware of a reader that has left.
//!
//! Functions pass batches of any length. Output batches have at most `batch_size` rows and the
//! right projection, and together no more rows than the pushed limit. The value `false` means stop:
//! the limit is reached, or nobody reads any more. This is how cancellation reaches blocking code.

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
