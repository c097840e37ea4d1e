//! The metrics of a partition of a scan that `EXPLAIN ANALYZE` shows, summed over its files.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder, Time};

/// Metrics of a partition.
#[derive(Clone)]
pub(super) struct Counters {
    pub(super) bytes_scanned: Count,
    pub(super) row_groups_pruned: Count,
    pub(super) row_groups_read: Count,
    pub(super) rows_decoded: Count,
    text_bytes_decoded: Count,
    pub(super) device_row_groups: Count,
    pub(super) device_rows_matched: Count,
    pub(super) device_fallbacks: Count,
    pub(super) pruning_errors: Count,
    predicted_mb_per_s: Gauge,
    measured_mb_per_s: Gauge,
    started: Arc<OnceLock<Instant>>,
    pub(super) time_fetching: Time,
    pub(super) time_on_device: Time,
    pub(super) time_decoding: Time,
}

impl Counters {
    pub(super) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, partition);
        let gauge = |name| MetricBuilder::new(metrics).gauge(name, partition);
        let time = |name| MetricBuilder::new(metrics).subset_time(name, partition);
        Self {
            bytes_scanned: counter("bytes_scanned"),
            row_groups_pruned: counter("row_groups_pruned"),
            row_groups_read: counter("row_groups_read"),
            rows_decoded: counter("rows_decoded"),
            text_bytes_decoded: counter("text_bytes_decoded"),
            device_row_groups: counter("device_row_groups"),
            device_rows_matched: counter("device_rows_matched"),
            device_fallbacks: counter("device_fallbacks"),
            predicted_mb_per_s: gauge("predicted_mb_per_s"),
            measured_mb_per_s: gauge("measured_mb_per_s"),
            started: Arc::default(),
            pruning_errors: counter("pruning_errors"),
            time_fetching: time("time_fetching"),
            time_on_device: time("time_on_device"),
            time_decoding: time("time_decoding"),
        }
    }

    /// Notes the rate that the model predicts for all partitions together.
    pub(super) fn predict(&self, rate_gb_per_s: f64) {
        self.predicted_mb_per_s.set((rate_gb_per_s * 1000.0) as usize);
    }

    /// Starts the clock of the measured rate when the first file is opened.
    pub(super) fn start(&self) {
        self.started.get_or_init(Instant::now);
    }

    /// Counts decoded text, and updates the measured rate of all text so far.
    pub(super) fn count_text(&self, len_bytes: u64) {
        self.text_bytes_decoded.add(len_bytes as usize);
        let Some(started) = self.started.get() else { return };
        let micros = started.elapsed().as_micros().max(1) as usize;
        self.measured_mb_per_s.set(self.text_bytes_decoded.value() / micros);
    }
}
