//! Work on the devices of a session: tasks over corpora.
//!
//! ```text
//! segment     ──▶ its seat: devices take turns
//! device      ──▶ a lock around the copies of its segments, one segment or group of segments at a time
//! found rows  ──▶ the account reserves memory ──▶ copy to the host
//! ```
//!
//! Several devices work at the same time, each on its own segments.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

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

    /// Returns the rows that `find` finds in each segment, in host memory. It gets many segments at a time. Keys of
    /// rows have `key_words` words.
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
    /// lengths `lens`. It gets their indices. Limits the memory of each device from now on. A device stops at its first
    /// error.
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
