//! Work on the devices of a session: tasks over corpora, and GSST columns as Arrow arrays.
//!
//! # Corpora
//!
//! ```text
//! segment     ──▶ its seat: devices take turns
//! device      ──▶ a lock around the copies of its segments, one segment or group of segments at a time
//! found rows  ──▶ the account reserves memory ──▶ copy to the host
//! ```
//!
//! Several devices work at the same time, each on its own segments.
//!
//! # Columns
//!
//! Partition `p` uses device `p` modulo the number of devices that did not fail. A result is one
//! buffer of pinned host memory. The arrays of all stretches are slices of it, so no text is copied
//! on the host. The account counts the buffer until the last slice is dropped.
//!
//! The device has checked the properties that Arrow would check again, row by row: views point into
//! the text, and if UTF-8 is demanded, the text is valid and rows start at characters
//! (`kernels/gsst_rows.cu`). A second check on the host takes longer than all work of the device.
//! `tests/gpu/parity.rs` and the suite `gpu_sql` compare such arrays with checked ones of the CPU.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use arrow::array::{ArrayRef, BinaryArray, BinaryViewArray, StringArray, StringViewArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use bytes::Bytes;
use gsst::SealedBlock;
use gsst::arrow::TextType;
use gsst::parquet::device::{
    ColumnDevice, ColumnMatcher, ColumnScanner, DeviceError, DeviceFault, DeviceResult, PendingRows, RowMemory,
};
use gsst::parquet::{CodePredicate, CodeTest, StretchMatches};
use tadoc::accelerator::{Accelerator, DeviceState, RowAccount, SegmentTask, SegmentWork, Step};
use tadoc::analytics::{SegmentDocumentSequences, SegmentDocuments, SegmentRanked, SegmentSequences, SegmentTerms};
use tadoc::error::{Error, Result};
use tadoc::read::{Answers, Questions};
use tadoc::segment::Segment;

use crate::corpus::{
    CopyKey, CorpusCopies, DeviceDocumentSequences, DeviceDocuments, DeviceGroup, DeviceRanked, DeviceSequences,
    DeviceTermVectors, DocumentSequenceRows, DocumentWords, WordDocuments,
};
use crate::device::num_devices;
use crate::error::GpuError;
use crate::gsst_match::RowPredicate;
use crate::gsst_run::RowForm;
use crate::gsst_scan::RunBytes;
use crate::memory::HostBuffer;
use crate::scan_slot::{self, MatchedRows, PendingMatches, ScannedRows};

use super::{CudaSession, Seat, lock, usable};

type GpuResult<T> = std::result::Result<T, GpuError>;

/// Seat of each segment, by the address of the segment.
#[derive(Debug, Default)]
pub(super) struct Homes {
    seats: BTreeMap<usize, usize>,
    next: usize,
    /// Seats and addresses of segments whose copies at these seats are no longer needed.
    gone: Vec<(usize, usize)>,
}

impl Homes {
    /// Returns the seat of the segment at `address`, one of `usable`.
    fn seat(&mut self, address: usize, usable: &[usize]) -> usize {
        let known = self.seats.get(&address).filter(|seat| usable.contains(seat));
        if let Some(&seat) = known {
            return seat;
        }
        let seat = usable[self.next % usable.len()];
        self.next = self.next.wrapping_add(1);
        if let Some(before) = self.seats.insert(address, seat) {
            self.gone.push((before, address));
        }
        seat
    }

    fn forget(&mut self, address: usize) {
        if let Some(seat) = self.seats.remove(&address) {
            self.gone.push((seat, address));
        }
    }

    /// Takes the addresses of the segments whose copies at seat `seat` are no longer needed.
    fn take_gone(&mut self, seat: usize) -> Vec<usize> {
        self.gone.extract_if(.., |(of, _)| *of == seat).map(|(_, address)| address).collect()
    }
}

/// Rows that a device found in a segment or in a group of segments, in its memory.
trait Found {
    /// Type of the rows in host memory.
    type Rows: Send;

    fn num_rows(&self) -> usize;
    /// Returns the size of the rows in host memory, in bytes.
    fn host_bytes(&self) -> usize;
    fn into_rows(self) -> GpuResult<Self::Rows>;
}

impl Found for DeviceSequences {
    type Rows = SegmentSequences;

    fn num_rows(&self) -> usize {
        self.len()
    }

    fn host_bytes(&self) -> usize {
        16 * self.len()
    }

    fn into_rows(self) -> GpuResult<SegmentSequences> {
        let rows = self.to_host()?;
        let word_bits = rows.word_bits();
        let (keys, counts) = rows.into_keys_and_counts();
        Ok(SegmentSequences { keys, counts, word_bits })
    }
}

impl Found for DeviceTermVectors {
    type Rows = Vec<SegmentTerms>;

    fn num_rows(&self) -> usize {
        self.len()
    }

    fn host_bytes(&self) -> usize {
        8 * self.len()
    }

    fn into_rows(self) -> GpuResult<Vec<SegmentTerms>> {
        let rows = |words: DocumentWords| {
            let (offsets, words, counts) = words.into_parts();
            SegmentTerms { offsets, words, counts }
        };
        Ok(self.to_host()?.into_iter().map(rows).collect())
    }
}

impl Found for DeviceDocumentSequences {
    type Rows = Vec<SegmentDocumentSequences>;

    fn num_rows(&self) -> usize {
        self.len()
    }

    fn host_bytes(&self) -> usize {
        8 * self.len() + 16 * self.num_sequences()
    }

    fn into_rows(self) -> GpuResult<Vec<SegmentDocumentSequences>> {
        Ok(self.to_host()?.into_iter().map(DocumentSequenceRows::into_segment).collect())
    }
}

impl Found for DeviceDocuments {
    type Rows = Vec<SegmentDocuments>;

    fn num_rows(&self) -> usize {
        self.len()
    }

    fn host_bytes(&self) -> usize {
        4 * self.len()
    }

    fn into_rows(self) -> GpuResult<Vec<SegmentDocuments>> {
        let rows = |documents: WordDocuments| {
            let (offsets, docs) = documents.into_parts();
            SegmentDocuments { offsets, docs }
        };
        Ok(self.to_host()?.into_iter().map(rows).collect())
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

    fn into_rows(self) -> GpuResult<SegmentRanked> {
        let rows = self.to_host()?;
        let word_bits = rows.word_bits();
        let (keys, starts, docs, counts) = rows.into_parts();
        Ok(SegmentRanked { keys, starts, docs, counts, word_bits })
    }
}

impl Accelerator for CudaSession {
    fn state(&self) -> DeviceState {
        self.state_now()
    }

    fn problem(&self) -> Option<String> {
        if let Err(error) = self.num_devices.get_or_init(num_devices) {
            return Some(error.to_string());
        }
        let error = self.seats.if_opened().map(usable)?.err();
        error.map(|error| error.to_string())
    }

    fn open_soon(&self) {
        let after_opening = Arc::clone(&self.after_opening);
        self.seats.open_soon(move |seats| {
            if let Some(first) = seats.first() {
                after_opening(&first.device);
            }
        });
    }

    fn is_opening(&self) -> bool {
        self.seats.is_working()
    }

    fn missing_elements(&self, task: SegmentTask, segments: &[Arc<Segment>]) -> u64 {
        let is_missing = |segment: &&Arc<Segment>| {
            let key = match task {
                SegmentTask::Terms => CopyKey::for_terms(segment),
                SegmentTask::Sequences(num_words) => CopyKey::for_sequences(segment, num_words),
                SegmentTask::Pairs(window) => CopyKey::for_pairs(segment, window),
                SegmentTask::Ranked(num_words) => CopyKey::for_ranked(segment, num_words),
                SegmentTask::DocumentSequences(num_words) => {
                    CopyKey::for_document_sequences(std::slice::from_ref(segment), num_words)
                }
                SegmentTask::Questions => CopyKey::for_text(segment),
            };
            let has_copy =
                |seat: &Arc<Seat>| seat.device.check().is_ok() && lock(&seat.kept).iter().any(|kept| kept.covers(&key));
            !self.open_seats().iter().any(has_copy)
        };
        let missing = segments.iter().filter(is_missing);
        missing.map(|segment| segment.dag.grammar().symbols.len() as u64).sum()
    }

    fn forget(&self, segments: &mut dyn Iterator<Item = &Arc<Segment>>) {
        let seats = self.open_seats();
        if seats.is_empty() {
            return;
        }
        segments.for_each(|segment| lock(&self.homes).forget(address(segment)));
        for (at, seat) in seats.iter().enumerate() {
            if let Ok(mut copies) = seat.copies.try_lock() {
                copies.forget(&lock(&self.homes).take_gone(at));
                *lock(&seat.kept) = copies.keys();
            }
        }
    }

    fn term_vectors(&self, work: SegmentWork<'_>) -> Result<Vec<SegmentTerms>> {
        self.group_rows(work, 1, CorpusCopies::term_vectors)
    }

    fn word_documents(&self, work: SegmentWork<'_>) -> Result<Vec<SegmentDocuments>> {
        self.group_rows(work, 1, CorpusCopies::word_documents)
    }

    fn sequence_counts(&self, work: SegmentWork<'_>, num_words: usize) -> Result<Vec<SegmentSequences>> {
        self.rows(work, |copies, segment| copies.sequence_counts(segment, num_words))
    }

    fn pair_counts(&self, work: SegmentWork<'_>, window: usize) -> Result<Vec<SegmentSequences>> {
        self.rows(work, |copies, segment| copies.pair_counts(segment, window))
    }

    fn ranked_documents(&self, work: SegmentWork<'_>, num_words: usize) -> Result<Vec<SegmentRanked>> {
        self.rows(work, |copies, segment| copies.ranked_documents(segment, num_words))
    }

    fn document_sequences(&self, work: SegmentWork<'_>, num_words: usize) -> Result<Vec<SegmentDocumentSequences>> {
        self.group_rows(work, num_words, |copies, segments| copies.document_sequences(segments, num_words))
    }

    fn answers(&self, work: SegmentWork<'_>, questions: &[Questions]) -> Result<Vec<Answers>> {
        let SegmentWork { segments, account, .. } = work;
        self.for_each_group(work, one_by_one, |copies, places| {
            let at = places[0];
            let Some(asked) = questions.get(at) else { return Ok(Ok(vec![Answers::Counts(Vec::new())])) };
            let before = copies.device().copied_bytes();
            let answers = timed(account, copies, |copies| copies.answers(&segments[at], asked))?;
            account.add_upload(copies.device().copied_bytes() - before);
            Ok(Ok(vec![answers]))
        })
    }
}

impl CudaSession {
    /// Returns the rows that `find` finds in each segment, in host memory.
    fn rows<F: Found>(
        &self,
        work: SegmentWork<'_>,
        find: impl Fn(&mut CorpusCopies, &Arc<Segment>) -> GpuResult<F> + Sync,
    ) -> Result<Vec<F::Rows>> {
        let SegmentWork { segments, account, .. } = work;
        self.for_each_group(work, one_by_one, |copies, places| {
            let rows = found_rows(account, copies, |copies| find(copies, &segments[places[0]]))?;
            Ok(rows.map(|rows| vec![rows]))
        })
    }

    /// Returns the rows that `find` finds in each segment, in host memory. It gets many segments at a time. Keys of rows
    /// have `key_words` words.
    fn group_rows<R: Send, F: Found<Rows = Vec<R>>>(
        &self,
        work: SegmentWork<'_>,
        key_words: usize,
        find: impl Fn(&mut CorpusCopies, &[Arc<Segment>]) -> GpuResult<F> + Sync,
    ) -> Result<Vec<R>> {
        let SegmentWork { segments, max_bytes, account } = work;
        let lens = |segments: &[Arc<Segment>]| DeviceGroup::lens(segments, max_bytes, key_words);
        self.for_each_group(work, lens, |copies, places| {
            let group = segments_at(segments, places);
            found_rows(account, copies, |copies| find(copies, &group))
        })
    }

    /// Returns the rows of each segment, in order: those that `find` finds in groups of segments, which have the
    /// lengths `lens`. It gets their indices. Limits the memory of each device from now on. A device stops at its first error.
    fn for_each_group<R: Send>(
        &self,
        work: SegmentWork<'_>,
        lens: impl Fn(&[Arc<Segment>]) -> Vec<usize> + Sync,
        find: impl Fn(&mut CorpusCopies, &[usize]) -> GpuResult<Result<Vec<R>>> + Sync,
    ) -> Result<Vec<R>> {
        let SegmentWork { segments, max_bytes, .. } = work;
        let usable: Vec<usize> = self.usable_seats()?.iter().map(|seat| seat.position).collect();
        let seats = self.open_seats();
        let mut by_seat: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, segment) in segments.iter().enumerate() {
            let seat = lock(&self.homes).seat(address(segment), &usable);
            by_seat.entry(seat).or_default().push(at);
        }
        let at_seat = |(seat, places): (usize, Vec<usize>)| -> Result<Vec<(usize, R)>> {
            let mut rows = Vec::with_capacity(places.len());
            let mut left = &places[..];
            for len in lens(&segments_at(segments, &places)) {
                let (group, rest) = left.split_at(len);
                rows.extend(self.halved_at_seat(&seats[seat], max_bytes, group, &find)??);
                left = rest;
            }
            Ok(places.into_iter().zip(rows).collect())
        };
        let parts: Result<Vec<Vec<(usize, R)>>> = if by_seat.len() > 1 {
            thread::scope(|scope| {
                // All threads start before the first one is joined.
                let threads: Vec<_> = by_seat.into_iter().map(|one| scope.spawn(|| at_seat(one))).collect();
                let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
                };
                threads.into_iter().map(join).collect()
            })
        } else {
            by_seat.into_iter().map(at_seat).collect()
        };
        let mut parts: Vec<(usize, R)> = parts?.into_iter().flatten().collect();
        parts.sort_unstable_by_key(|(at, _)| *at);
        Ok(parts.into_iter().map(|(_, part)| part).collect())
    }

    /// Returns what `find` finds in a group at `seat`, or in its halves if the device has no room for all of it.
    fn halved_at_seat<R>(
        &self,
        seat: &Seat,
        max_bytes: u64,
        group: &[usize],
        find: &impl Fn(&mut CorpusCopies, &[usize]) -> GpuResult<Result<Vec<R>>>,
    ) -> GpuResult<Result<Vec<R>>> {
        let found = self.at_seat(seat, max_bytes, |copies| find(copies, group));
        if group.len() < 2 || !matches!(found, Err(GpuError::OutOfMemory { .. })) {
            return found;
        }
        let mut rows = Vec::with_capacity(group.len());
        for half in group.chunks(group.len().div_ceil(2)) {
            match self.halved_at_seat(seat, max_bytes, half, find)? {
                Ok(found) => rows.extend(found),
                refused => return Ok(refused),
            }
        }
        Ok(Ok(rows))
    }

    /// Returns the result of `work` on the copies at `seat`.
    fn at_seat<P>(
        &self,
        seat: &Seat,
        max_bytes: u64,
        work: impl Fn(&mut CorpusCopies) -> GpuResult<P>,
    ) -> GpuResult<P> {
        let mut copies = lock(&seat.copies);
        copies.forget(&lock(&self.homes).take_gone(seat.position));
        copies.set_max_bytes(max_bytes)?;
        let part = work(&mut copies).or_else(|error| match error {
            GpuError::OutOfMemory { .. } => {
                seat.scanner.release_idle();
                work(&mut copies)
            }
            other => Err(other),
        });
        if seat.device.check().is_err() {
            copies.clear();
        }
        *lock(&seat.kept) = copies.keys();
        part
    }
}

/// Returns the lengths of groups of one segment each.
fn one_by_one(segments: &[Arc<Segment>]) -> Vec<usize> {
    vec![1; segments.len()]
}

/// Returns the segments at `places`.
fn segments_at(segments: &[Arc<Segment>], places: &[usize]) -> Vec<Arc<Segment>> {
    places.iter().map(|&at| Arc::clone(&segments[at])).collect()
}

/// Returns the rows that `find` finds, in host memory, or why the account has no room for them.
fn found_rows<F: Found>(
    account: &dyn RowAccount,
    copies: &mut CorpusCopies,
    find: impl FnOnce(&mut CorpusCopies) -> GpuResult<F>,
) -> GpuResult<Result<F::Rows>> {
    let before = copies.device().copied_bytes();
    let found = timed(account, copies, find);
    account.add_upload(copies.device().copied_bytes() - before);
    let found = found?;
    let room = account.reserve(found.num_rows(), found.host_bytes());
    if let Err(full) = room {
        return Ok(Err(Error::external("host memory for the rows of a device", full)));
    }
    let start = Instant::now();
    let rows = found.into_rows()?;
    account.add_time(Step::Copying, start.elapsed());
    Ok(Ok(rows))
}

/// Returns what `find` finds, when the device has finished. Adds the times to `account`.
fn timed<F>(
    account: &dyn RowAccount,
    copies: &mut CorpusCopies,
    find: impl FnOnce(&mut CorpusCopies) -> GpuResult<F>,
) -> GpuResult<F> {
    let start = Instant::now();
    let before = copies.prepare_time();
    let found = find(copies)?;
    copies.device().synchronize()?;
    let preparing = copies.prepare_time() - before;
    account.add_time(Step::Preparing, preparing);
    account.add_time(Step::Counting, start.elapsed().saturating_sub(preparing));
    Ok(found)
}

fn address(segment: &Arc<Segment>) -> usize {
    Arc::as_ptr(segment).addr()
}

impl From<GpuError> for DeviceError {
    fn from(error: GpuError) -> Self {
        let fault = match &error {
            GpuError::Malformed { .. } | GpuError::NotText { .. } => DeviceFault::Data,
            GpuError::OutOfMemory { .. } => DeviceFault::DeviceMemory,
            GpuError::Lost { .. } => DeviceFault::Lost,
            _ => DeviceFault::Other,
        };
        Self { fault, error: gsst::Error::external("GPU", error) }
    }
}

impl ColumnDevice for CudaSession {
    fn scanner(&self, partition: usize, max_bytes: u64) -> DeviceResult<Arc<dyn ColumnScanner>> {
        let usable = self.usable_seats()?;
        let seat = usable[partition % usable.len()];
        seat.scanner.set_max_bytes(max_bytes);
        Ok(Arc::new(SeatScanner(Arc::clone(seat))))
    }
}

/// The scanner of a seat.
#[derive(Debug)]
struct SeatScanner(Arc<Seat>);

impl ColumnScanner for SeatScanner {
    fn decode(
        &self,
        blocks: Vec<Bytes>,
        text_type: TextType,
        memory: Box<dyn RowMemory>,
    ) -> DeviceResult<Box<dyn PendingRows<ArrayRef>>> {
        let sealed = sealed(blocks)?;
        let run = RunBytes::from_blocks(&sealed, RowForm::Views)?;
        resize(memory.as_ref(), run.staging + run.rows)?;
        let Self(seat) = self;
        let submit = || seat.scanner.submit(&sealed, RowForm::Views, text_type.is_utf8());
        Ok(Box::new(Pending { rows: seat.retried(submit)?, text_type, memory }))
    }

    fn matcher(&self, predicates: &[&CodePredicate]) -> DeviceResult<Box<dyn ColumnMatcher>> {
        let Self(seat) = self;
        let mut predicates = predicates.to_vec();
        // The first test scans all rows, so it should not be a negation.
        predicates.sort_by_key(|predicate| predicate.is_negated);
        let tests = predicates.into_iter().map(|predicate| {
            let test = match &predicate.test {
                CodeTest::IsIn(texts) => {
                    let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
                    seat.scanner.matcher().one_of(&texts)?
                }
                CodeTest::Like(pattern) => seat.scanner.matcher().like(pattern)?,
            };
            Ok(if predicate.is_negated { test.negated() } else { test })
        });
        let tests = tests.collect::<gsst::Result<Vec<RowPredicate>, GpuError>>()?;
        Ok(Box::new(SeatMatcher { seat: Arc::clone(seat), tests }))
    }
}

/// Predicates on a column, tested by the scanner of a seat.
struct SeatMatcher {
    seat: Arc<Seat>,
    tests: Vec<RowPredicate>,
}

impl ColumnMatcher for SeatMatcher {
    fn find(
        &self,
        blocks: Vec<Bytes>,
        text_type: TextType,
        is_text_wanted: bool,
        memory: Box<dyn RowMemory>,
    ) -> DeviceResult<Box<dyn PendingRows<StretchMatches>>> {
        let sealed = sealed(blocks)?;
        resize(memory.as_ref(), RunBytes::from_blocks(&sealed, RowForm::Views)?.staging)?;
        let scanner = &self.seat.scanner;
        let submit = || scanner.submit_matching(&sealed, &self.tests, is_text_wanted);
        Ok(Box::new(Pending { rows: self.seat.retried(submit)?, text_type, memory }))
    }
}

/// Rows `R` that the device works on, with the account of their memory.
struct Pending<R> {
    rows: R,
    text_type: TextType,
    memory: Box<dyn RowMemory>,
}

impl PendingRows<ArrayRef> for Pending<scan_slot::PendingRows> {
    fn wait(self: Box<Self>) -> DeviceResult<Vec<ArrayRef>> {
        let rows = self.rows.wait()?;
        // The staging memory is free again, but the buffer may be larger than the rows.
        resize(self.memory.as_ref(), rows.buffer().capacity_bytes())?;
        Ok(stretch_arrays(rows, self.text_type, self.memory)?)
    }
}

impl PendingRows<StretchMatches> for Pending<PendingMatches> {
    fn wait(self: Box<Self>) -> DeviceResult<Vec<StretchMatches>> {
        let rows = self.rows.wait()?;
        resize(self.memory.as_ref(), rows.buffer().capacity_bytes())?;
        Ok(block_matches(&rows, self.text_type, self.memory)?)
    }
}

fn sealed(blocks: Vec<Bytes>) -> DeviceResult<Vec<SealedBlock<Bytes>>> {
    blocks.into_iter().map(|block| Ok(SealedBlock::open(block)?)).collect()
}

fn resize(memory: &dyn RowMemory, len_bytes: usize) -> DeviceResult<()> {
    memory.try_resize(len_bytes).map_err(|full| DeviceError {
        fault: DeviceFault::HostMemory,
        error: gsst::Error::external("host memory for the rows of a device", full),
    })
}

/// Host memory of Arrow arrays, with its account.
struct Held {
    buffer: Arc<HostBuffer>,
    _account: Box<dyn RowMemory>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

/// Returns the rows of each block of a run. `account` lives until the last array is dropped.
///
/// # Errors
///
/// [`gsst::Error::InvalidArgument`] if the rows have no views.
fn stretch_arrays(rows: ScannedRows, text_type: TextType, account: Box<dyn RowMemory>) -> gsst::Result<Vec<ArrayRef>> {
    if rows.views().is_none() {
        return Err(gsst::Error::InvalidArgument {
            name: "rows of a device",
            got: "offsets".to_owned(),
            allowed: "views".to_owned(),
        });
    }
    let held = Held { buffer: Arc::clone(rows.buffer()), _account: account };
    let all = Buffer::from(Bytes::from_owner(held));
    let part = |range: Range<usize>| all.slice_with_length(range.start, range.len());
    let text = part(rows.text_range());
    let views = part(rows.rows_range());
    let views: ScalarBuffer<u128> = ScalarBuffer::new(views, 0, rows.num_rows());
    let validity = rows.validity().map(|bits| Buffer::from(bits.to_vec()));
    let mut start = 0;
    let stretch = |num_rows: &usize| {
        let from = start;
        let num_rows = *num_rows;
        start += num_rows;
        let views = views.slice(from, num_rows);
        let nulls = validity.as_ref().map(|bits| NullBuffer::new(BooleanBuffer::new(bits.clone(), from, num_rows)));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        array(views, text.clone(), nulls, text_type)
    };
    Ok(rows.block_rows().iter().map(stretch).collect())
}

/// Returns the rows of each block that match, with their text if the device returned it. `account`
/// lives until the last array is dropped.
///
/// The text of the few selected rows is checked to be UTF-8 here, as on the CPU.
///
/// # Errors
///
/// [`gsst::Error::External`] if the text is not valid for `text_type`.
fn block_matches(
    matched: &MatchedRows,
    text_type: TextType,
    account: Box<dyn RowMemory>,
) -> gsst::Result<Vec<StretchMatches>> {
    let texts = match (matched.offsets_range(), matched.text_range()) {
        (Some(offsets), Some(text)) => {
            let held = Held { buffer: Arc::clone(matched.buffer()), _account: account };
            Some(matched_texts(held, offsets, text, text_type)?)
        }
        _ => None,
    };
    let mut rows = matched.rows().peekable();
    let mut first_row = 0;
    let mut start = 0;
    let block_matches = |num_rows: &usize| {
        let end = first_row + *num_rows as u32;
        let block_rows: Vec<u32> =
            std::iter::from_fn(|| rows.next_if(|row| *row < end).map(|row| row - first_row)).collect();
        let text = texts.as_ref().map(|texts| texts.slice(start, block_rows.len()));
        first_row = end;
        start += block_rows.len();
        StretchMatches { rows: block_rows, text }
    };
    Ok(matched.block_rows().iter().map(block_matches).collect())
}

/// Returns the text of all rows that match, as views of the memory in `held`.
fn matched_texts(held: Held, offsets: Range<usize>, text: Range<usize>, text_type: TextType) -> gsst::Result<ArrayRef> {
    let all = Buffer::from(Bytes::from_owner(held));
    let part = |range: Range<usize>| all.slice_with_length(range.start, range.len());
    let num_offsets = offsets.len() / size_of::<i32>();
    let offsets = OffsetBuffer::new(ScalarBuffer::new(part(offsets), 0, num_offsets));
    let not_valid = |error| gsst::Error::external("rows of a device", error);
    Ok(if text_type.is_utf8() {
        let texts = StringArray::try_new(offsets, part(text), None).map_err(not_valid)?;
        Arc::new(StringViewArray::from(&texts))
    } else {
        let texts = BinaryArray::try_new(offsets, part(text), None).map_err(not_valid)?;
        Arc::new(BinaryViewArray::from(&texts))
    })
}

#[allow(unsafe_code, reason = "arrays of rows that were checked on the device")]
fn array(views: ScalarBuffer<u128>, text: Buffer, nulls: Option<NullBuffer>, text_type: TextType) -> ArrayRef {
    if text_type.is_utf8() {
        // SAFETY: the rows were decoded with `must_be_utf8`. So the device has checked that the
        // text is UTF-8 and that all rows start at characters. It made the views from its own
        // offsets.
        Arc::new(unsafe { StringViewArray::new_unchecked(views, vec![text], nulls) })
    } else {
        // SAFETY: the device made the views from its own offsets.
        Arc::new(unsafe { BinaryViewArray::new_unchecked(views, vec![text], nulls) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_take_turns_and_stay_where_they_are() {
        let mut homes = Homes::default();
        let seats: Vec<_> = (10..15).map(|address| homes.seat(address, &[0, 1, 2])).collect();
        assert_eq!(seats, [0, 1, 2, 0, 1]);
        assert_eq!((homes.seat(12, &[0, 1, 2]), homes.seat(10, &[0, 1, 2])), (2, 0));
        // Seat 2 is lost. Its segment moves, and the copies of the segment at seat 2 are dropped.
        assert_eq!(homes.seat(12, &[0, 1]), 1);
        assert_eq!(homes.take_gone(2), [12]);
        homes.forget(10);
        homes.forget(99);
        assert_eq!((homes.take_gone(0), homes.take_gone(0)), (vec![10], vec![]));
        assert_eq!(homes.seats.len(), 4);
    }
}
