//! What devices answer, as the CPU's rows: one function for each task.
//!
//! A function says what is done with a segment and how the answers of all segments become rows. `None`
//! is: the CPU counts.

use std::fmt::Display;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::metrics::MetricBuilder;

use super::devices;
use crate::analytics::{SegmentSequences, SequenceCounts, Vocabulary, WordCounts};
use crate::corpus::Segment;
use crate::gpu::{CorpusCopies, GpuError, SequenceRows};
use crate::sql::failure::datafusion_error;
use crate::sql::scan::Run;

pub(crate) use super::devices::{forget, missing_elements};

/// Bytes of a row in host memory: a key and a number.
const ROW_BYTES: usize = 16;

/// What a device answers for a segment, in host memory.
trait Rows {
    fn num_rows(&self) -> usize;
}

impl Rows for Vec<u64> {
    fn num_rows(&self) -> usize {
        self.len()
    }
}

impl Rows for SequenceRows {
    fn num_rows(&self) -> usize {
        self.len()
    }
}

/// How often each word of `vocabulary` occurs.
pub(crate) fn word_counts(run: &Run, vocabulary: &Arc<Vocabulary>) -> Result<Option<WordCounts>> {
    let joined = |counts| WordCounts::of_segments(Arc::clone(vocabulary), counts);
    answer(run, vocabulary, CorpusCopies::word_counts, joined)
}

/// How often each sequence of `n` words of `vocabulary` occurs.
pub(crate) fn sequence_counts(
    run: &Run,
    vocabulary: &Arc<Vocabulary>,
    n: usize,
) -> Result<Option<SequenceCounts>> {
    if !run.scan.placement.is_on_device() {
        return Ok(None);
    }
    if let Some(reason) = SequenceCounts::segments_refused(vocabulary, n) {
        return Ok(fall_back(run, &reason));
    }
    let count = |copies: &mut CorpusCopies, segment: &_| copies.sequence_counts(segment, n);
    let part = |rows: SequenceRows| {
        let word_bits = rows.word_bits();
        let (keys, counts) = rows.into_keys_and_counts();
        SegmentSequences { keys, counts, word_bits }
    };
    let joined = |rows: Vec<SequenceRows>| {
        let parts = rows.into_iter().map(part).collect();
        SequenceCounts::of_segments(Arc::clone(vocabulary), n, parts)
    };
    answer(run, vocabulary, count, joined)
}

/// What `of_segment` gives for each segment, `joined`; `None` where the task is not placed on a device,
/// or a device fails.
fn answer<P: Rows + Send, T>(
    run: &Run,
    vocabulary: &Vocabulary,
    of_segment: impl Fn(&mut CorpusCopies, &Arc<Segment>) -> std::result::Result<P, GpuError> + Sync,
    joined: impl FnOnce(Vec<P>) -> crate::Result<T>,
) -> Result<Option<T>> {
    if !run.scan.placement.is_on_device() {
        return Ok(None);
    }
    let time = MetricBuilder::new(&run.metrics).subset_time("time_on_device", run.partition);
    let timer = time.timer();
    let uploaded = run.counter("device_upload_bytes");
    let max_bytes = run.scan.options.gpu_memory_bytes;
    let parts =
        devices::for_each_segment(vocabulary.corpus().segments(), max_bytes, |copies, at| {
            let before = copies.device().copied_bytes();
            let part = of_segment(copies, at);
            uploaded.add((copies.device().copied_bytes() - before) as usize);
            part
        });
    timer.done();
    let parts = match parts {
        Ok(parts) => parts,
        Err(error) => return Ok(fall_back(run, &error)),
    };
    let num_rows = parts.iter().map(Rows::num_rows).sum();
    run.counter("device_rows").add(num_rows);
    let held = run.reservation("DeviceRows");
    held.try_grow(ROW_BYTES * num_rows)?;
    joined(parts).map(Some).map_err(datafusion_error)
}

/// Says why the CPU counts what was placed on a device.
fn fall_back<T>(run: &Run, reason: &dyn Display) -> Option<T> {
    tracing::warn!(corpus = %run.scan.location, %reason, "counting on the CPU");
    run.counter("device_fallbacks").add(1);
    None
}
