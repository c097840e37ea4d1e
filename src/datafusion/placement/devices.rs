//! The devices of this process as tasks over corpora use them.
//!
//! ```text
//! segment ──▶ its home: the next device in turn, the same one for as long as it is loaded
//! device  ──▶ a lock around the copies of its segments; one segment at a time, and the grammar of the next
//!             on its way
//! ```
//!
//! Several devices work at the same time, each on its own segments. The devices, and the bound on their
//! memory, are those of GSST scans.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use crate::gsst::device;
use crate::placement::task::Task;
use tadoc::segment::Segment;
use tadoc_cuda::{CopyKey, CorpusCopies, Device, GpuError};

/// A device, and what lies there.
#[derive(Debug)]
struct Seat {
    device: Device,
    copies: Mutex<CorpusCopies>,
    /// What lay there when somebody had the lock last, for those who only ask.
    kept: Mutex<Vec<CopyKey>>,
}

static SEATS: OnceLock<Vec<Seat>> = OnceLock::new();
static HOMES: Mutex<Homes> = Mutex::new(Homes::new());

/// Which seat each segment has, by address.
#[derive(Debug)]
struct Homes {
    seats: BTreeMap<usize, usize>,
    next: usize,
    /// Segments that are not loaded any more, by seat.
    gone: Vec<(usize, usize)>,
}

impl Homes {
    const fn new() -> Self {
        Self { seats: BTreeMap::new(), next: 0, gone: Vec::new() }
    }

    /// The seat of the segment at `address`, which is one of `usable`.
    fn of(&mut self, address: usize, usable: &[usize]) -> usize {
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

    /// The segments at seat `seat` that are gone, told once.
    fn take_gone(&mut self, seat: usize) -> Vec<usize> {
        self.gone.extract_if(.., |(of, _)| *of == seat).map(|(_, address)| address).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seats() -> Result<&'static [Seat], GpuError> {
    if let Some(seats) = SEATS.get() {
        return Ok(seats);
    }
    let seat = |device: Device| {
        let copies = Mutex::new(CorpusCopies::new(device.clone()));
        Seat { device, copies, kept: Mutex::default() }
    };
    let devices = device::devices()?;
    Ok(SEATS.get_or_init(|| devices.into_iter().map(seat).collect()))
}

/// What `work` gives for each of `segments`, in order, on their devices, each of which takes at most
/// `max_bytes` from now on. The first error ends the work of its device.
///
/// # Errors
/// Those of `work`; [`GpuError::Lost`] where all devices failed before.
pub(super) fn for_each_segment<P: Send>(
    segments: &[Arc<Segment>],
    max_bytes: u64,
    work: impl Fn(&mut CorpusCopies, &Arc<Segment>) -> Result<P, GpuError> + Sync,
) -> Result<Vec<P>, GpuError> {
    let seats = seats()?;
    let mut usable = Vec::new();
    let mut problem = GpuError::NoDevice;
    for (at, seat) in seats.iter().enumerate() {
        match seat.device.check() {
            Ok(()) => usable.push(at),
            Err(lost) => problem = lost,
        }
    }
    if usable.is_empty() {
        return Err(problem);
    }
    let mut by_seat: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, segment) in segments.iter().enumerate() {
        let seat = lock(&HOMES).of(Arc::as_ptr(segment).addr(), &usable);
        by_seat.entry(seat).or_default().push(at);
    }
    let of_seat = |(seat, places): (usize, Vec<usize>)| {
        let part = |(i, &at): (usize, &usize)| {
            let next = places.get(i + 1).map(|&at| &segments[at]);
            Ok((at, at_seat(&seats[seat], seat, max_bytes, (&segments[at], next), &work)?))
        };
        places.iter().enumerate().map(part).collect::<Result<Vec<_>, GpuError>>()
    };
    let mut parts: Vec<(usize, P)> = if by_seat.len() > 1 {
        thread::scope(|scope| {
            // The collected handles are what makes the threads run at the same time.
            let threads: Vec<_> =
                by_seat.into_iter().map(|one| scope.spawn(|| of_seat(one))).collect();
            let joined =
                threads.into_iter().map(|one| one.join().unwrap_or_else(|e| resume_unwind(e)));
            joined.collect::<Result<Vec<_>, _>>()
        })?
        .into_iter()
        .flatten()
        .collect()
    } else {
        by_seat
            .into_iter()
            .map(of_seat)
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect()
    };
    parts.sort_unstable_by_key(|(at, _)| *at);
    Ok(parts.into_iter().map(|(_, part)| part).collect())
}

/// What `work` gives for a segment at seat `at`, which has another one next.
fn at_seat<P>(
    seat: &Seat,
    at: usize,
    max_bytes: u64,
    (segment, next): (&Arc<Segment>, Option<&Arc<Segment>>),
    work: &impl Fn(&mut CorpusCopies, &Arc<Segment>) -> Result<P, GpuError>,
) -> Result<P, GpuError> {
    let mut copies = lock(&seat.copies);
    copies.forget(&lock(&HOMES).take_gone(at));
    copies.set_max_bytes(max_bytes)?;
    copies.expect(next);
    let part = work(&mut copies, segment).or_else(|error| match error {
        GpuError::OutOfMemory { .. } => {
            device::release_idle(seat.device.ordinal());
            work(&mut copies, segment)
        }
        other => Err(other),
    });
    if seat.device.check().is_err() {
        copies.clear();
    }
    *lock(&seat.kept) = copies.keys();
    part
}

/// Elements of those of `segments` that no device has what it needs of for `task`.
pub(crate) fn missing_elements(task: Task, segments: &[Arc<Segment>]) -> u64 {
    let seats = SEATS.get().map_or(&[][..], Vec::as_slice);
    let is_missing = |segment: &&Arc<Segment>| {
        let key = match task {
            Task::WordCount => CopyKey::of_weights(segment),
            Task::TermVector { .. } | Task::InvertedIndex { .. } => CopyKey::of_terms(segment),
            Task::SequenceCount { num_words, .. } => CopyKey::of_sequences(segment, num_words),
            Task::Cooccurrence { window, .. } => CopyKey::of_pairs(segment, window),
            Task::RankedInvertedIndex { num_words, .. } => CopyKey::of_ranked(segment, num_words),
        };
        !seats.iter().any(|seat| seat.device.check().is_ok() && lock(&seat.kept).contains(&key))
    };
    let missing = segments.iter().filter(is_missing);
    missing.map(|segment| segment.dag.grammar().symbols.len() as u64).sum()
}

/// Gives up what devices have of `segments`, which are not loaded any more; where a device works, before its
/// next work.
pub(crate) fn forget<'a>(segments: impl Iterator<Item = &'a Arc<Segment>>) {
    let Some(seats) = SEATS.get() else { return };
    segments.for_each(|segment| lock(&HOMES).forget(Arc::as_ptr(segment).addr()));
    for (at, seat) in seats.iter().enumerate() {
        if let Ok(mut copies) = seat.copies.try_lock() {
            copies.forget(&lock(&HOMES).take_gone(at));
            *lock(&seat.kept) = copies.keys();
        }
    }
}

/// Gives up what lies on device `ordinal`, unless somebody works there.
pub(crate) fn release(ordinal: usize) {
    let seats = SEATS.get().map_or(&[][..], Vec::as_slice);
    for seat in seats.iter().filter(|seat| seat.device.ordinal() == ordinal) {
        if let Ok(mut copies) = seat.copies.try_lock() {
            copies.clear();
            *lock(&seat.kept) = copies.keys();
            // Memory comes back when work before is done; a fault of it is found by who waits for it.
            let _ = seat.device.synchronize();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_take_turns_and_stay_where_they_are() {
        let mut homes = Homes::new();
        let seats: Vec<_> = (10..15).map(|address| homes.of(address, &[0, 1, 2])).collect();
        assert_eq!(seats, [0, 1, 2, 0, 1]);
        assert_eq!((homes.of(12, &[0, 1, 2]), homes.of(10, &[0, 1, 2])), (2, 0));
        // Seat 2 is lost: its segment moves, and what is left there is given up.
        assert_eq!(homes.of(12, &[0, 1]), 1);
        assert_eq!(homes.take_gone(2), [12]);
        homes.forget(10);
        homes.forget(99);
        assert_eq!((homes.take_gone(0), homes.take_gone(0)), (vec![10], vec![]));
        assert_eq!(homes.seats.len(), 4);
    }
}
