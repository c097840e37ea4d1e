//! Answers of devices as the CPU's rows, with one function for each task.
//!
//! Each function joins the rows of all segments to rows of the corpus. `None` means that the CPU
//! counts. The session's memory pool reserves memory for the rows before they are copied to the
//! host. If there is no room, the CPU counts, because it needs less memory at a time. EXPLAIN
//! ANALYZE shows the time of each step, added up over devices:
//!
//! ```text
//! function ── answers::… ─▶ None: the CPU counts, because it was chosen or a device failed
//!               └─▶ Some: rows of the CPU's type, or parts of them (…_table, row_keys)
//!
//! time_on_device   time_preparing   missing copies are uploaded and derived
//!                  time_counting    kernels run
//!                  time_copying     rows are copied to the host
//!                  time_joining     rows of segments are joined at once (not by slice)
//! device_upload_bytes               bytes that were uploaded
//! ```

mod ranked_table;
mod row_keys;
mod sequence_table;

use std::error::Error as StdError;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::metrics::{Count, Time};

use self::ranked_table::RankedTable;
use self::sequence_table::{Counted, SequenceTable};
use crate::errors::datafusion_error;
use crate::options::Device;
use crate::placement::WORDS_KEPT;
use crate::planning::Execution;
use tadoc::accelerator::{Accelerator, RowAccount, SegmentWork, Step};
use tadoc::analytics::{
    Cooccurrences, DocSelection, InvertedIndex, Pairing, RankedInvertedIndex, SequenceCounts, TaskLimits, TermVectors,
    Traversal, Vocabulary,
};

/// Memory of a row, in bytes, while it is joined with rows of other segments.
const JOIN_ROW_BYTES: usize = 32;

/// Returns true if a device was chosen when the plan was made, but the segments have the words of
/// their documents in memory by now. Always returns false if the device is demanded.
fn is_counted(run: &Execution, vocabulary: &Vocabulary) -> bool {
    let (scan, segments) = (&run.scan, vocabulary.corpus().segments());
    let is_chosen = run.plan.placement.is_on_device() && scan.options.device == Device::Auto;
    let is_counted = is_chosen
        && scan.options.traversal == Traversal::Auto
        && segments.iter().all(|segment| segment.doc_words_or_derive_if_worth().is_some());
    if is_counted {
        tracing::info!(corpus = %scan.location, reason = WORDS_KEPT, "counting on the CPU");
    }
    is_counted
}

/// Returns the words of each document.
pub(crate) fn term_vectors(run: &Execution, vocabulary: &Arc<Vocabulary>) -> Result<Option<TermVectors>> {
    if is_counted(run, vocabulary) {
        return Ok(None);
    }
    let joined = |parts, _| TermVectors::from_segments(Arc::clone(vocabulary), parts);
    answer(run, vocabulary, 0, |devices, work| devices.term_vectors(work), joined)
}

/// Returns the documents of each word of `vocabulary`.
pub(crate) fn inverted_index(run: &Execution, vocabulary: &Arc<Vocabulary>) -> Result<Option<InvertedIndex>> {
    if is_counted(run, vocabulary) {
        return Ok(None);
    }
    let joined = |parts, _| InvertedIndex::from_segments(Arc::clone(vocabulary), parts);
    let join_row_bytes = if vocabulary.folded_words().is_some() { 8 } else { 0 };
    answer(run, vocabulary, join_row_bytes, |devices, work| devices.word_documents(work), joined)
}

/// Returns the counts of the sequences of `n` words of `vocabulary`.
pub(crate) fn sequence_counts(
    run: &Execution,
    vocabulary: &Arc<Vocabulary>,
    n: usize,
) -> Result<Option<SequenceTable>> {
    let refused = || SequenceCounts::segments_refused(vocabulary, n);
    let count = |devices: &dyn Accelerator, work: SegmentWork<'_>| devices.sequence_counts(work, n);
    let counted = Counted { num_words: n, min_count: 1, are_pairs: false };
    let joined = |parts, held| Ok(SequenceTable::new(vocabulary, counted, parts, held));
    unless(run, refused, || answer(run, vocabulary, join_row_bytes(vocabulary), count, joined))
}

/// Returns the counts of the pairs of words of `vocabulary`, which are not divided into shares.
pub(crate) fn cooccurrences(
    run: &Execution,
    vocabulary: &Arc<Vocabulary>,
    Pairing { window, min_count, .. }: Pairing,
) -> Result<Option<SequenceTable>> {
    let refused = || Cooccurrences::segments_refused(vocabulary);
    let count = |devices: &dyn Accelerator, work: SegmentWork<'_>| devices.pair_counts(work, window);
    let counted = Counted { num_words: 2, min_count, are_pairs: true };
    let joined = |parts, held| Ok(SequenceTable::new(vocabulary, counted, parts, held));
    unless(run, refused, || answer(run, vocabulary, join_row_bytes(vocabulary), count, joined))
}

/// Returns those of `docs` that contain each sequence of `n` words of `vocabulary`, by rank.
pub(crate) fn ranked_inverted_index(
    run: &Execution,
    vocabulary: &Arc<Vocabulary>,
    docs: &DocSelection,
    n: usize,
) -> Result<Option<RankedInvertedIndex>> {
    let refused = || RankedInvertedIndex::segments_refused(vocabulary, n);
    let rank = |devices: &dyn Accelerator, work: SegmentWork<'_>| devices.ranked_documents(work, n);
    let reader = run.output.canceller();
    let is_cancelled = || reader.is_closed();
    let limits = TaskLimits { is_cancelled: &is_cancelled, ..TaskLimits::default() };
    let joined = |parts, _| RankedInvertedIndex::from_segments(Arc::clone(vocabulary), docs, n, parts, limits);
    unless(run, refused, || answer(run, vocabulary, JOIN_ROW_BYTES, rank, joined))
}

/// Returns the rows of [`ranked_inverted_index`] slice by slice, for words that are not folded.
pub(crate) fn ranked_table(
    run: &Execution,
    vocabulary: &Arc<Vocabulary>,
    docs: &DocSelection,
    n: usize,
) -> Result<Option<RankedTable>> {
    let refused = || RankedInvertedIndex::segments_refused(vocabulary, n);
    let rank = |devices: &dyn Accelerator, work: SegmentWork<'_>| devices.ranked_documents(work, n);
    let joined = |parts, held| RankedTable::new(vocabulary, docs, n, parts, held);
    unless(run, refused, || answer(run, vocabulary, 0, rank, joined))
}

/// Returns the bytes that joining takes for each row. They are 0 if the rows of segments are in the
/// order of the corpus.
fn join_row_bytes(vocabulary: &Vocabulary) -> usize {
    if vocabulary.folded_words().is_some() { JOIN_ROW_BYTES } else { 0 }
}

/// Returns the result of `answer`, unless `refused` refuses the vocabulary. The vocabulary is not
/// known before execution.
fn unless<T>(
    run: &Execution,
    refused: impl FnOnce() -> Option<String>,
    answer: impl FnOnce() -> Result<Option<T>>,
) -> Result<Option<T>> {
    if !run.plan.placement.is_on_device() {
        return Ok(None);
    }
    match refused() {
        Some(reason) => Ok(fall_back(run, &reason)),
        None => answer(),
    }
}

/// Returns the result of `joined` for the rows of all segments. Joining takes `join_row_bytes` for
/// each row; `joined` gets the reservation for all rows. Returns `None` if the task is not placed
/// on a device, if a device fails, or if memory has no room for the rows.
fn answer<R, T>(
    run: &Execution,
    vocabulary: &Vocabulary,
    join_row_bytes: usize,
    rows: impl FnOnce(&dyn Accelerator, SegmentWork<'_>) -> tadoc::Result<Vec<R>>,
    joined: impl FnOnce(Vec<R>, MemoryReservation) -> tadoc::Result<T>,
) -> Result<Option<T>> {
    let devices = run.plan.devices.accelerator();
    let Some(devices) = devices.filter(|_| run.plan.placement.is_on_device()) else {
        return Ok(None);
    };
    let account = Account::new(run, join_row_bytes);
    let (on_device, joining) = (run.time("time_on_device"), run.time("time_joining"));
    let timer = on_device.timer();
    let segments = vocabulary.corpus().segments();
    let max_bytes = run.scan.options.gpu_memory_bytes;
    let rows = rows(devices, SegmentWork { segments, max_bytes, account: &account });
    timer.done();
    let rows = match rows {
        Ok(rows) => rows,
        Err(error) => return Ok(fall_back(run, &error)),
    };
    run.counter("device_rows").add(account.num_rows.into_inner());
    let _timer = joining.timer();
    joined(rows, account.held).map(Some).map_err(datafusion_error)
}

/// The metrics and the memory of an answer.
struct Account {
    held: MemoryReservation,
    join_row_bytes: usize,
    num_rows: AtomicUsize,
    uploaded: Count,
    preparing: Time,
    counting: Time,
    copying: Time,
}

impl Account {
    fn new(run: &Execution, join_row_bytes: usize) -> Self {
        Self {
            held: run.reservation("DeviceRows"),
            join_row_bytes,
            num_rows: AtomicUsize::new(0),
            uploaded: run.counter("device_upload_bytes"),
            preparing: run.time("time_preparing"),
            counting: run.time("time_counting"),
            copying: run.time("time_copying"),
        }
    }
}

impl RowAccount for Account {
    fn reserve(&self, num_rows: usize, len_bytes: usize) -> std::result::Result<(), Box<dyn StdError + Send + Sync>> {
        self.held.try_grow(len_bytes + self.join_row_bytes * num_rows)?;
        self.num_rows.fetch_add(num_rows, Ordering::Relaxed);
        Ok(())
    }

    fn add_time(&self, step: Step, time: Duration) {
        let metric = match step {
            Step::Preparing => &self.preparing,
            Step::Counting => &self.counting,
            Step::Copying => &self.copying,
        };
        metric.add_duration(time);
    }

    fn add_upload(&self, len_bytes: u64) {
        self.uploaded.add(len_bytes as usize);
    }
}

/// Logs the reason why the CPU counts although a device was chosen.
fn fall_back<T>(run: &Execution, reason: &dyn Display) -> Option<T> {
    tracing::warn!(corpus = %run.scan.location, %reason, "counting on the CPU");
    run.counter("device_fallbacks").add(1);
    None
}
