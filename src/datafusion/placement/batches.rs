//! The place of a batch of questions to documents, chosen by the measured rates of earlier batches.
//!
//! ```text
//! batch of n rows ──▶ rates of its kind and of n's power of two, of this corpus
//! batch of n rows ◀── the place with the faster one (`windows`)
//! ```
//!
//! Batches of several partitions run side by side and share the place. As for tasks (`chooser`), the cores come first,
//! and an open device is tried as soon as the cores have spent what copies of the corpus may cost. Larger batches have
//! rates of their own, because a device takes some time for any batch.
//!
//! A batch that copies the corpus to a device is not counted. Where copies did not stay in the device's memory, their
//! estimated time is added to that of the batch.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::placement::WORDS_KEPT;
use crate::placement::chooser::{COPY_S, Choice, NOT_TIMED, SMALL, SMALL_BYTES, TRIAL_COSTS_MORE, trial_s};
use crate::placement::windows::Windows;
use crate::throughput::{DeviceState, Hindrance};

/// Rows below which a batch stays on the cores and is not timed.
pub(crate) const MIN_ROWS: usize = 1024;
/// Rows of batches that have a rate of their own.
const WINDOW_ROWS: u64 = 1 << 15;

/// The question that a batch asks of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum QuestionKind {
    /// The bytes of passages.
    Passages,
    /// Counts of words.
    Counts,
    /// Places of words.
    Places,
}

/// Rates of the batches of a corpus, by kind and power of two of the rows.
#[derive(Debug, Default)]
pub(crate) struct BatchRates(Mutex<HashMap<(QuestionKind, u32), Sums>>);

#[derive(Debug, Default)]
struct Sums {
    cores: PlaceSums,
    device: PlaceSums,
}

/// Sums of the batches at a place.
#[derive(Debug, Default)]
struct PlaceSums {
    windows: Windows<WINDOW_ROWS>,
    /// Time in which batches of all windows ran.
    spent: Duration,
}

/// Rates of batches as one finds them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct KnownBatches {
    /// Seconds of the cores for a row.
    cores_row_s: Option<f64>,
    /// Seconds of a device for a row.
    device_row_s: Option<f64>,
    /// Seconds that the cores have spent on batches of this kind.
    spent_s: f64,
}

/// A batch as the choice sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchWork {
    pub(crate) num_rows: usize,
    pub(crate) text_bytes: u64,
    /// Number of elements in segments that lack copies on the device.
    pub(crate) missing_elements: u64,
    pub(crate) known: KnownBatches,
    /// True if the segments keep the counts.
    pub(crate) are_words_kept: bool,
}

/// A batch that runs, until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningBatch<'a> {
    rates: &'a BatchRates,
    kind: QuestionKind,
    num_rows: usize,
    is_on_device: bool,
}

impl BatchRates {
    /// Returns what is known of batches like one of `num_rows` rows.
    pub(crate) fn known(&self, kind: QuestionKind, num_rows: usize) -> KnownBatches {
        let rates = self.lock();
        let like = rates.get(&(kind, power(num_rows)));
        let spent = rates.iter().filter(|((other, _), _)| *other == kind).map(|(_, sums)| sums.cores.spent);
        KnownBatches {
            cores_row_s: like.and_then(|sums| sums.cores.row_s()),
            device_row_s: like.and_then(|sums| sums.device.row_s()),
            spent_s: spent.sum::<Duration>().as_secs_f64(),
        }
    }

    /// Notes that a batch begins.
    pub(crate) fn begin(&self, kind: QuestionKind, num_rows: usize, is_on_device: bool) -> RunningBatch<'_> {
        let running = RunningBatch { rates: self, kind, num_rows, is_on_device };
        let mut rates = self.lock();
        let place = running.place(&mut rates);
        place.windows.begin_one();
        drop(rates);
        running
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(QuestionKind, u32), Sums>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningBatch<'_> {
    fn place<'r>(&self, rates: &'r mut HashMap<(QuestionKind, u32), Sums>) -> &'r mut PlaceSums {
        let sums = rates.entry((self.kind, power(self.num_rows))).or_default();
        if self.is_on_device { &mut sums.device } else { &mut sums.cores }
    }
}

impl Drop for RunningBatch<'_> {
    fn drop(&mut self) {
        let mut rates = self.rates.lock();
        self.place(&mut rates).end_one(self.num_rows as u64);
    }
}

impl PlaceSums {
    /// Returns the seconds for a row.
    fn row_s(&self) -> Option<f64> {
        self.windows.rate_per_s().map(f64::recip)
    }

    /// Notes that one of the running batches has ended.
    fn end_one(&mut self, num_rows: u64) {
        self.spent += self.windows.end_one(num_rows);
    }
}

/// Returns the power of two of a number of rows.
fn power(num_rows: usize) -> u32 {
    num_rows.checked_ilog2().unwrap_or(0)
}

/// Chooses the place of a batch. Asks for the `state` of the device only if it is to be used.
pub(crate) fn choose_batch(work: &BatchWork, state: impl FnOnce() -> DeviceState) -> Choice {
    if work.text_bytes < SMALL_BYTES {
        return Choice::cores(SMALL, false);
    }
    if work.are_words_kept {
        return Choice::cores(WORDS_KEPT, false);
    }
    let known = &work.known;
    let Some(cores_row_s) = known.cores_row_s else { return Choice::cores(NOT_TIMED, true) };
    let cores_us = 1e6 * cores_row_s;
    let copying_row_s = work.missing_elements as f64 * COPY_S / work.num_rows.max(1) as f64;
    let reason = match known.device_row_s.map(|row_s| row_s + copying_row_s) {
        Some(device_row_s) if device_row_s >= cores_row_s => {
            let reason = format!("{cores_us:.3} µs a row instead of {:.3} µs on a device", 1e6 * device_row_s);
            return Choice::cores(reason, false);
        }
        Some(device_row_s) => format!("{:.3} µs a row instead of {cores_us:.3} µs on the cores", 1e6 * device_row_s),
        None if known.spent_s < trial_s(work.missing_elements) => return Choice::cores(TRIAL_COSTS_MORE, true),
        None => format!("a trial, the cores have taken {:.3} s so far", known.spent_s),
    };
    match Hindrance::for_state(state()) {
        Some(hindrance) => Choice::cores(hindrance.to_string(), true),
        None => Choice { is_on_device: true, reason, is_missed: false },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const KIND: QuestionKind = QuestionKind::Counts;

    fn choice(known: KnownBatches, missing_elements: u64) -> Choice {
        let work = BatchWork { num_rows: 2000, text_bytes: 1 << 30, missing_elements, known, are_words_kept: false };
        choose_batch(&work, || DeviceState::Open)
    }

    #[test]
    fn rates_are_those_of_all_batches_together() {
        let rates = BatchRates::default();
        assert_eq!(rates.known(KIND, 5000), KnownBatches::default());
        let began = Instant::now();
        let running = [(); 3].map(|()| rates.begin(KIND, 5000, false));
        std::thread::sleep(Duration::from_millis(20));
        drop(running);
        let longest_s = began.elapsed().as_secs_f64();
        // Time in which nothing runs does not count.
        std::thread::sleep(Duration::from_millis(20));
        let known = rates.known(KIND, 8191);
        let row_s = known.cores_row_s.unwrap();
        assert!(row_s >= 0.02 / 15000.0 && row_s <= longest_s / 15000.0, "{row_s}");
        assert!(known.device_row_s.is_none() && known.spent_s >= 0.02);
        // Other sizes and kinds have rates of their own; the time of a kind is that of all sizes.
        let larger = rates.known(KIND, 8192);
        assert_eq!((larger.cores_row_s, larger.spent_s), (None, known.spent_s));
        assert_eq!(rates.known(QuestionKind::Places, 5000), KnownBatches::default());
    }

    #[test]
    fn the_cores_come_first_then_a_trial_then_the_faster_place() {
        let rates = BatchRates::default();
        assert_eq!(choice(rates.known(KIND, 2000), 0).reason, NOT_TIMED);
        let running = rates.begin(KIND, 2000, false);
        std::thread::sleep(Duration::from_millis(20));
        drop(running);
        let known = rates.known(KIND, 2000);
        assert!(choice(known, 0).reason.starts_with("a trial, the cores have taken 0.0"));
        let waits = choice(known, 1 << 40);
        assert_eq!((waits.is_on_device, waits.is_missed, waits.reason.as_str()), (false, true, TRIAL_COSTS_MORE));
        let known = |row_s| KnownBatches { cores_row_s: Some(1e-5), device_row_s: Some(row_s), spent_s: 0.02 };
        let chosen = choice(known(4e-6), 1000);
        assert!(chosen.is_on_device, "{chosen:?}");
        assert_eq!(chosen.reason, "4.005 µs a row instead of 10.000 µs on the cores");
        // Copies that did not stay have to be made again.
        assert!(!choice(known(4e-6), 1 << 30).is_on_device);
        let slower = "10.000 µs a row instead of 20.000 µs on a device";
        assert_eq!(choice(known(2e-5), 0), Choice::cores(slower, false));
    }

    #[test]
    fn small_texts_and_kept_words_need_no_device() {
        let asked = || unreachable!("the driver is asked");
        let known = KnownBatches { cores_row_s: Some(1.0), device_row_s: Some(0.1), spent_s: 9.0 };
        let work = BatchWork {
            num_rows: 2000,
            text_bytes: SMALL_BYTES - 1,
            missing_elements: 0,
            known,
            are_words_kept: false,
        };
        assert_eq!(choose_batch(&work, asked), Choice::cores(SMALL, false));
        let work = BatchWork { text_bytes: SMALL_BYTES, are_words_kept: true, ..work };
        assert_eq!(choose_batch(&work, asked), Choice::cores(WORDS_KEPT, false));
        let work = BatchWork { are_words_kept: false, ..work };
        let closed = choose_batch(&work, || DeviceState::Closed);
        assert!(!closed.is_on_device && closed.is_missed);
        assert!(choose_batch(&work, || DeviceState::Open).is_on_device);
    }
}
