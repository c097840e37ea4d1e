//! What devices answer, as the CPU's rows: one function for each task.
//!
//! A function says what is done with a segment and how the answers of all segments become rows. `None`
//! is: the CPU counts. Rows are counted on the device and reserved in the session's memory before they come
//! to the host; where there is no room, the CPU counts, which needs less at a time. EXPLAIN ANALYZE has the
//! time of each step, added up over devices:
//!
//! ```text
//! time_on_device   time_preparing   what was not there is uploaded and made
//!                  time_counting    kernels
//!                  time_copying     rows to the host
//!                  time_joining     rows of segments to those of the corpus, as far as that is done at once
//! device_upload_bytes               what was not there; device_ahead_bytes of it while the device worked on the
//!                                   segment before, once memory was short
//! ```

use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::metrics::Time;

use crate::errors::datafusion_error;
use crate::options::Device;
use crate::placement::chooser::WORDS_KEPT;
use crate::placement::devices;
use crate::placement::ranked_parts::RankedParts;
use crate::placement::sequence_parts::{Counted, SequenceParts};
use crate::scan::Run;
use tadoc::analytics::{
    Cooccurrences, DocSelection, InvertedIndex, Pairing, RankedInvertedIndex, SegmentDocuments,
    SegmentRanked, SegmentSequences, SegmentTerms, SequenceCounts, TermVectors, Traversal,
    Vocabulary, WordCounts,
};
use tadoc::segment::Segment;
use tadoc_cuda::{
    CorpusCopies, DeviceRanked, DeviceSequences, DeviceTermVectors, DeviceTerms, GpuError,
};

pub(crate) use crate::placement::devices::{forget, missing_elements};

/// Bytes of a row while it is joined with those of other segments.
const JOIN_ROW_BYTES: usize = 32;

/// Rows of a segment and how many; or the session's memory has no room for them.
type Part<R> = std::result::Result<(usize, R), DataFusionError>;

/// What a device found in a segment, in its memory.
trait Found {
    /// The same in host memory.
    type Rows: Send;

    fn num_rows(&self) -> usize;
    /// Bytes of the rows in host memory.
    fn host_bytes(&self) -> usize;
    fn into_rows(self) -> std::result::Result<Self::Rows, GpuError>;
}

/// Counts of words come to the host as they are made.
impl Found for Vec<u64> {
    type Rows = Self;

    fn num_rows(&self) -> usize {
        self.len()
    }

    fn host_bytes(&self) -> usize {
        8 * self.len()
    }

    fn into_rows(self) -> std::result::Result<Self, GpuError> {
        Ok(self)
    }
}

impl Found for DeviceSequences {
    type Rows = SegmentSequences;

    fn num_rows(&self) -> usize {
        self.len()
    }

    fn host_bytes(&self) -> usize {
        16 * self.len()
    }

    fn into_rows(self) -> std::result::Result<SegmentSequences, GpuError> {
        let rows = self.to_host()?;
        let word_bits = rows.word_bits();
        let (keys, counts) = rows.into_keys_and_counts();
        Ok(SegmentSequences { keys, counts, word_bits })
    }
}

impl Found for DeviceTermVectors {
    type Rows = SegmentTerms;

    fn num_rows(&self) -> usize {
        self.len()
    }

    fn host_bytes(&self) -> usize {
        12 * self.len()
    }

    fn into_rows(self) -> std::result::Result<SegmentTerms, GpuError> {
        let (offsets, words, counts) = self.to_host()?.into_parts();
        Ok(SegmentTerms { offsets, words, counts })
    }
}

impl Found for DeviceTerms {
    type Rows = SegmentDocuments;

    fn num_rows(&self) -> usize {
        self.len()
    }

    fn host_bytes(&self) -> usize {
        4 * self.len()
    }

    fn into_rows(self) -> std::result::Result<SegmentDocuments, GpuError> {
        let (offsets, docs) = self.to_host()?.into_parts();
        Ok(SegmentDocuments { offsets, docs })
    }
}

impl Found for DeviceRanked {
    type Rows = SegmentRanked;

    fn num_rows(&self) -> usize {
        DeviceRanked::num_rows(self)
    }

    fn host_bytes(&self) -> usize {
        12 * (DeviceRanked::num_rows(self) + self.len())
    }

    fn into_rows(self) -> std::result::Result<SegmentRanked, GpuError> {
        let rows = self.to_host()?;
        let word_bits = rows.word_bits();
        let (keys, starts, docs, counts) = rows.into_parts();
        Ok(SegmentRanked { keys, starts, docs, counts, word_bits })
    }
}

/// How often each word of `vocabulary` occurs.
pub(crate) fn word_counts(run: &Run, vocabulary: &Arc<Vocabulary>) -> Result<Option<WordCounts>> {
    let joined = |counts, _| WordCounts::of_segments(Arc::clone(vocabulary), counts);
    answer(run, vocabulary, 0, CorpusCopies::word_counts, joined)
}

/// Whether the cores have what a device was chosen for when the plan was made: segments keep the words of their
/// documents by now. Who demands a device gets one all the same.
fn is_counted(run: &Run, vocabulary: &Vocabulary) -> bool {
    let (scan, segments) = (&run.scan, vocabulary.corpus().segments());
    let is_chosen = scan.placement.is_on_device() && scan.options.device == Device::Auto;
    let is_counted = is_chosen
        && scan.options.traversal == Traversal::Auto
        && segments.iter().all(|segment| segment.doc_words_or_derive_if_worth().is_some());
    if is_counted {
        tracing::info!(corpus = %scan.location, reason = WORDS_KEPT, "counting on the CPU");
    }
    is_counted
}

/// The words of each document.
pub(crate) fn term_vectors(run: &Run, vocabulary: &Arc<Vocabulary>) -> Result<Option<TermVectors>> {
    if is_counted(run, vocabulary) {
        return Ok(None);
    }
    let joined = |parts, _| TermVectors::of_segments(Arc::clone(vocabulary), parts);
    answer(run, vocabulary, 0, CorpusCopies::term_vectors, joined)
}

/// The documents of each word of `vocabulary`.
pub(crate) fn inverted_index(
    run: &Run,
    vocabulary: &Arc<Vocabulary>,
) -> Result<Option<InvertedIndex>> {
    if is_counted(run, vocabulary) {
        return Ok(None);
    }
    let joined = |parts, _| InvertedIndex::of_segments(Arc::clone(vocabulary), parts);
    let join_row_bytes = if vocabulary.folded_words().is_some() { 8 } else { 0 };
    answer(run, vocabulary, join_row_bytes, CorpusCopies::word_documents, joined)
}

/// How often each sequence of `n` words of `vocabulary` occurs.
pub(crate) fn sequence_counts(
    run: &Run,
    vocabulary: &Arc<Vocabulary>,
    n: usize,
) -> Result<Option<SequenceParts>> {
    let refused = || SequenceCounts::segments_refused(vocabulary, n);
    let count = |copies: &mut CorpusCopies, segment: &_| copies.sequence_counts(segment, n);
    let counted = Counted { num_words: n, min_count: 1, are_pairs: false };
    let joined = |parts, held| Ok(SequenceParts::new(vocabulary, counted, parts, held));
    unless(run, refused, || answer(run, vocabulary, join_row_bytes(vocabulary), count, joined))
}

/// How often each pair of words of `vocabulary` occurs.
pub(crate) fn cooccurrences(
    run: &Run,
    vocabulary: &Arc<Vocabulary>,
    Pairing { window, min_count }: Pairing,
) -> Result<Option<SequenceParts>> {
    let refused = || Cooccurrences::segments_refused(vocabulary);
    let count = |copies: &mut CorpusCopies, segment: &_| copies.pair_counts(segment, window);
    let counted = Counted { num_words: 2, min_count, are_pairs: true };
    let joined = |parts, held| Ok(SequenceParts::new(vocabulary, counted, parts, held));
    unless(run, refused, || answer(run, vocabulary, join_row_bytes(vocabulary), count, joined))
}

/// Those of `docs` that hold each sequence of `n` words of `vocabulary`, by rank.
pub(crate) fn ranked_inverted_index(
    run: &Run,
    vocabulary: &Arc<Vocabulary>,
    docs: &DocSelection,
    n: usize,
) -> Result<Option<RankedInvertedIndex>> {
    let refused = || RankedInvertedIndex::segments_refused(vocabulary, n);
    let rank = |copies: &mut CorpusCopies, segment: &_| copies.ranked_documents(segment, n);
    let joined =
        |parts, _| RankedInvertedIndex::of_segments(Arc::clone(vocabulary), docs, n, parts);
    unless(run, refused, || answer(run, vocabulary, JOIN_ROW_BYTES, rank, joined))
}

/// The same where words are not folded, part by part.
pub(crate) fn ranked_parts(
    run: &Run,
    vocabulary: &Arc<Vocabulary>,
    docs: &DocSelection,
    n: usize,
) -> Result<Option<RankedParts>> {
    let refused = || RankedInvertedIndex::segments_refused(vocabulary, n);
    let rank = |copies: &mut CorpusCopies, segment: &_| copies.ranked_documents(segment, n);
    let joined = |parts, held| RankedParts::new(vocabulary, docs, n, parts, held);
    unless(run, refused, || answer(run, vocabulary, 0, rank, joined))
}

/// Bytes that joining takes for each row: none where rows ascend as those of segments do.
fn join_row_bytes(vocabulary: &Vocabulary) -> usize {
    if vocabulary.folded_words().is_some() { JOIN_ROW_BYTES } else { 0 }
}

/// What `answer` gives, unless the vocabulary, which is known only now, is `refused`.
fn unless<T>(
    run: &Run,
    refused: impl FnOnce() -> Option<String>,
    answer: impl FnOnce() -> Result<Option<T>>,
) -> Result<Option<T>> {
    if !run.scan.placement.is_on_device() {
        return Ok(None);
    }
    match refused() {
        Some(reason) => Ok(fall_back(run, &reason)),
        None => answer(),
    }
}

/// What `of_segment` finds in each segment, `joined`, which takes `join_row_bytes` for each row and gets the
/// memory of all; `None` where the task is not placed on a device, a device fails, or memory has no room for
/// the rows.
fn answer<F: Found, T>(
    run: &Run,
    vocabulary: &Vocabulary,
    join_row_bytes: usize,
    of_segment: impl Fn(&mut CorpusCopies, &Arc<Segment>) -> std::result::Result<F, GpuError> + Sync,
    joined: impl FnOnce(Vec<F::Rows>, MemoryReservation) -> tadoc::Result<T>,
) -> Result<Option<T>> {
    if !run.scan.placement.is_on_device() {
        return Ok(None);
    }
    let times = Times::new(run);
    let timer = times.all.timer();
    let uploaded = run.counter("device_upload_bytes");
    let ahead = run.counter("device_ahead_bytes");
    let held = run.reservation("DeviceRows");
    let max_bytes = run.scan.options.gpu_memory_bytes;
    let to_host = |found: F| -> std::result::Result<Part<F::Rows>, GpuError> {
        let num_rows = found.num_rows();
        if let Err(full) = held.try_grow(found.host_bytes() + join_row_bytes * num_rows) {
            return Ok(Err(full));
        }
        let _timer = times.copying.timer();
        Ok(Ok((num_rows, found.into_rows()?)))
    };
    let parts =
        devices::for_each_segment(vocabulary.corpus().segments(), max_bytes, |copies, at| {
            let copied_bytes =
                |copies: &CorpusCopies| (copies.device().copied_bytes(), copies.ahead_bytes());
            let before = copied_bytes(copies);
            let part = times.counted(copies, |copies| of_segment(copies, at)).and_then(to_host);
            let after = copied_bytes(copies);
            uploaded.add((after.0 - before.0) as usize);
            ahead.add((after.1 - before.1) as usize);
            part
        });
    timer.done();
    let parts = match parts {
        Ok(parts) => parts,
        Err(error) => return Ok(fall_back(run, &error)),
    };
    let parts = match parts.into_iter().collect::<Result<Vec<_>>>() {
        Ok(parts) => parts,
        Err(full) => return Ok(fall_back(run, &full)),
    };
    run.counter("device_rows").add(parts.iter().map(|(num_rows, _)| num_rows).sum());
    let _timer = times.joining.timer();
    let rows = parts.into_iter().map(|(_, rows)| rows).collect();
    joined(rows, held).map(Some).map_err(datafusion_error)
}

/// Where time goes.
struct Times {
    all: Time,
    preparing: Time,
    counting: Time,
    copying: Time,
    joining: Time,
}

impl Times {
    fn new(run: &Run) -> Self {
        Self {
            all: run.time("time_on_device"),
            preparing: run.time("time_preparing"),
            counting: run.time("time_counting"),
            copying: run.time("time_copying"),
            joining: run.time("time_joining"),
        }
    }

    /// What `count` finds, with all work for it done.
    fn counted<F>(
        &self,
        copies: &mut CorpusCopies,
        count: impl FnOnce(&mut CorpusCopies) -> std::result::Result<F, GpuError>,
    ) -> std::result::Result<F, GpuError> {
        let (start, before) = (Instant::now(), copies.prepare_time());
        let found = count(copies)?;
        copies.device().synchronize()?;
        let preparing = copies.prepare_time() - before;
        self.preparing.add_duration(preparing);
        self.counting.add_duration(start.elapsed().saturating_sub(preparing));
        Ok(found)
    }
}

/// Says why the CPU counts what was placed on a device.
fn fall_back<T>(run: &Run, reason: &dyn Display) -> Option<T> {
    tracing::warn!(corpus = %run.scan.location, %reason, "counting on the CPU");
    run.counter("device_fallbacks").add(1);
    None
}
