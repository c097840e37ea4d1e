//! What `EXPLAIN ANALYZE` shows of a partition of a scan.

use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder, Time,
};

/// What is counted of a partition.
#[derive(Clone)]
pub(super) struct Counters {
    pub(super) bytes_scanned: Count,
    pub(super) row_groups_pruned: Count,
    pub(super) row_groups_read: Count,
    pub(super) rows_decoded: Count,
    pub(super) text_bytes_decoded: Count,
    pub(super) device_row_groups: Count,
    pub(super) device_rows_matched: Count,
    pub(super) device_fallbacks: Count,
    pub(super) pruning_errors: Count,
    pub(super) predicted_mb_per_s: Gauge,
    pub(super) measured_mb_per_s: Gauge,
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
            pruning_errors: counter("pruning_errors"),
            time_fetching: time("time_fetching"),
            time_on_device: time("time_on_device"),
            time_decoding: time("time_decoding"),
        }
    }
}
