//! Answers of devices as the CPU's rows, with one function for each task.
//!
//! Each function joins the rows of all segments to rows of the corpus. `None` means that the CPU counts. The session's
//! memory pool reserves memory for the rows before they are copied to the host. If there is no room, the CPU counts,
//! because it needs less memory at a time. EXPLAIN ANALYZE shows the time of each step, added up over devices:
//!
//! ```text
//! function ── answers::… ─▶ None: the CPU counts, because it was chosen or a device failed
//!               └─▶ Some: rows of the CPU's type, or parts of them (slice_tables)
//!
//! time_on_device   time_preparing   missing copies are uploaded and derived
//!                  time_counting    kernels run
//!                  time_copying     rows are copied to the host
//!                  time_joining     rows of segments are joined at once (not by slice)
//! device_upload_bytes               bytes that were uploaded
//! ```
//!
//! Keys of sequences are converted to keys of the corpus, and cut into slices:
//!
//! ```text
//! segment 0   a b | b c  b d | c a c b        ascending by word ids, so also by rows
//! segment 1   b a   b d | d a                 cut at the starts of slices
//! ```
//!
//! Slices begin at keys of a sample, so that all slices have about the same number of rows. If words are folded, the
//! order of rows is not the order of ids, and the keys are sorted before they are cut. O(words) for the table of rows,
//! O(log rows) for each slice and segment.

mod slices;

use std::error::Error as StdError;
use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::metrics::{Count, Time};
use rayon::prelude::*;

use crate::errors::datafusion_error;
use crate::options::Device;
use crate::placement::WORDS_KEPT;
use crate::planning::Execution;
use crate::planning::answers::slices::{Counted, RankedTable};
pub(crate) use slices::{SequenceSlice, SequenceTable};
use tadoc::accelerator::{Accelerator, RowAccount, SegmentWork, Step};
use tadoc::analytics::{
    Cooccurrences, DocSelection, DocumentSequences, InvertedIndex, Pairing, RankedInvertedIndex, SequenceCounts,
    TaskLimits, TermVectors, Traversal, Vocabulary,
};

/// Memory of a row, in bytes, while it is joined with rows of other segments.
const JOIN_ROW_BYTES: usize = 32;

/// Returns true if a device was chosen when the plan was made, but the segments have the words of
/// their documents in memory by now. Always returns false if the device is demanded.
fn is_counted(run: &Execution, vocabulary: &Vocabulary) -> bool {
    let scan = &run.scan;
    let segments = vocabulary.corpus().segments();
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

/// Returns the sequences of `n` words of each document.
pub(crate) fn document_sequences<'a>(
    run: &Execution,
    vocabulary: &Arc<Vocabulary>,
    n: usize,
    limits: TaskLimits<'a>,
) -> Result<Option<DocumentSequences<'a>>> {
    let refused = || DocumentSequences::segments_refused(vocabulary, n);
    let count = |devices: &dyn Accelerator, work: SegmentWork<'_>| devices.document_sequences(work, n);
    let joined = |parts, _| DocumentSequences::from_segments(Arc::clone(vocabulary), n, parts, limits);
    unless(run, refused, || answer(run, vocabulary, 0, count, joined))
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
    let on_device = run.time("time_on_device");
    let joining = run.time("time_joining");
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

/// Distance between two sampled rows of a segment.
const SAMPLED_ROWS: usize = 1024;
/// Number of sampled rows of a slice.
const SLICE_SAMPLES: usize = 7;
/// Number of words of the vocabulary that a parallel task converts.
const TASK_WORDS: usize = 1 << 14;

/// Keys of one segment.
#[derive(Debug)]
struct SegmentKeys {
    /// Sequences as word ids with `word_bits` bits each, the first word highest.
    keys: Vec<u64>,
    word_bits: u32,
}

/// The keys of all segments.
#[derive(Debug)]
struct RowKeys {
    num_words: usize,
    /// True if the smaller of the two words comes first.
    are_pairs: bool,
    /// Number of bits of a word in keys of the corpus.
    word_bits: u32,
    /// Keys of each segment, ascending by their keys of the corpus.
    segments: Vec<SegmentKeys>,
    /// Row of the vocabulary for each word id, by segment. Empty if rows and ids are equal.
    rows: Vec<Vec<u32>>,
}

impl RowKeys {
    /// Builds the keys from those of all `segments` of the corpus of `vocabulary`.
    fn new(vocabulary: &Vocabulary, num_words: usize, are_pairs: bool, segments: Vec<SegmentKeys>) -> Self {
        let word_bits = word_bits(vocabulary.len());
        let rows = if has_ids_as_rows(vocabulary) { Vec::new() } else { rows_by_id(vocabulary) };
        Self { num_words, are_pairs, word_bits, segments, rows }
    }

    /// Returns `self` with `keys`, which are keys of the corpus, in place of the keys of segments.
    fn with_rows(self, keys: Vec<u64>) -> Self {
        let segments = vec![SegmentKeys { keys, word_bits: self.word_bits }];
        Self { segments, rows: Vec::new(), ..self }
    }

    /// Returns the number of keys of a segment.
    fn len(&self, segment_idx: usize) -> usize {
        self.segments[segment_idx].keys.len()
    }

    /// Returns the key number `at` of a segment, converted to a key of the corpus.
    #[inline]
    fn key(&self, segment_idx: usize, at: usize) -> u64 {
        let segment = &self.segments[segment_idx];
        let key = segment.keys[at];
        let Some(rows) = self.rows.get(segment_idx) else { return key };
        let mut ids = words(key, self.num_words, segment.word_bits);
        if self.are_pairs
            && let (Some(first), Some(second)) = (ids.next(), ids.next())
        {
            let first = rows[first as usize];
            let second = rows[second as usize];
            return u64::from(first.min(second)) << self.word_bits | u64::from(first.max(second));
        }
        ids.fold(0, |key, id| key << self.word_bits | u64::from(rows[id as usize]))
    }

    /// Returns the start of each slice in each segment, and the end of the last slice. `sampled`
    /// returns the sampled places of a segment; a slice has [`SLICE_SAMPLES`] of them.
    fn cut(&self, sampled: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
        let segments = 0..self.segments.len();
        let sample = segments.clone().flat_map(|segment_idx| {
            let places = sampled(segment_idx).into_iter();
            places.map(move |at| self.key(segment_idx, at))
        });
        let mut sample: Vec<u64> = sample.collect();
        sample.sort_unstable();
        let mut firsts: Vec<u64> = sample.into_iter().step_by(SLICE_SAMPLES).skip(1).collect();
        firsts.dedup();
        let starts_of = |first: u64| -> Vec<usize> {
            segments.clone().map(|segment_idx| self.start_of(segment_idx, first)).collect()
        };
        let mut starts = vec![vec![0; self.segments.len()]];
        starts.extend(firsts.into_par_iter().map(starts_of).collect::<Vec<_>>());
        starts.push(segments.map(|segment_idx| self.len(segment_idx)).collect());
        starts
    }

    /// Returns the number of keys of a segment that are below `first`.
    fn start_of(&self, segment_idx: usize, first: u64) -> usize {
        let mut start = 0;
        let mut end = self.len(segment_idx);
        while start < end {
            let middle = start.midpoint(end);
            if self.key(segment_idx, middle) < first { start = middle + 1 } else { end = middle }
        }
        start
    }
}

/// Returns the range of slice `at` in each segment.
fn ranges(starts: &[Vec<usize>], at: usize) -> Vec<Range<usize>> {
    starts[at].iter().zip(&starts[at + 1]).map(|(&start, &end)| start..end).collect()
}

/// Returns the words of a key in order. The first word is in the highest bits.
#[inline]
fn words(key: u64, num_words: usize, word_bits: u32) -> impl ExactSizeIterator<Item = u32> {
    let mask = u64::MAX >> (u64::BITS - word_bits);
    (0..num_words).rev().map(move |at| (key >> (at as u32 * word_bits) & mask) as u32)
}

/// Returns the number of bits of numbers below `len`, at least 1.
fn word_bits(len: usize) -> u32 {
    (usize::BITS - len.saturating_sub(1).leading_zeros()).max(1)
}

/// Returns true if rows and word ids are equal: the corpus has one segment, all of whose words
/// occur and are not folded.
fn has_ids_as_rows(vocabulary: &Vocabulary) -> bool {
    match vocabulary.corpus().segments() {
        [only] => vocabulary.folded_words().is_none() && vocabulary.len() == only.dag.num_words() as usize,
        _ => false,
    }
}

/// Returns the row of each word id, by segment. Ids that do not occur get an arbitrary row.
fn rows_by_id(vocabulary: &Vocabulary) -> Vec<Vec<u32>> {
    let segments = vocabulary.corpus().segments().iter();
    let new = |num_words| (0..num_words).map(|_| AtomicU32::new(0)).collect();
    let tables: Vec<Vec<AtomicU32>> = segments.map(|segment| new(segment.dag.num_words())).collect();
    (0..vocabulary.len()).into_par_iter().with_min_len(TASK_WORDS).for_each(|row| {
        for (segment_idx, word) in vocabulary.ids(row) {
            tables[segment_idx][word as usize].store(row as u32, Ordering::Relaxed);
        }
    });
    let plain = |table: Vec<AtomicU32>| table.into_iter().map(AtomicU32::into_inner).collect();
    tables.into_iter().map(plain).collect()
}
