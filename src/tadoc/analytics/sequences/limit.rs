//! Limits of a walk: the windows that it may meet, from the memory that it may use, and its time,
//! since the caller may leave. They decide about the traversal, too.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::analytics::traversal::{TraversalTask, cheapest_first};
use crate::analytics::{SegmentShape, TaskLimits, Traversal, Vocabulary};
use crate::error::{Error, Result};
use crate::interrupt::{Canceller, Interrupt};

use super::key::Packing;

/// Memory of a window whose row is kept while others are counted: met, split and, if no other
/// window is equal, a row. The words of sequences that do not fit a key are not included.
const WINDOW_BYTES: u64 = 64;
/// Number of keys in memory for each window whose rows are passed on in small parts: one, in a
/// vector with room for twice as many. Splitting takes the memory of one more task in each thread.
/// A bucket takes at most the other half of the memory, where the edges were before.
const KEYS_PER_WINDOW: usize = 2;

/// Limit of the number of windows that all parallel tasks together may meet.
#[derive(Debug)]
pub(in crate::analytics) struct Limit<'a> {
    max_met: usize,
    /// Maximum number of windows of one task. Several tasks run before their numbers are added up.
    pub(super) max_of_task: usize,
    /// Maximum number of words of a token scan.
    max_words: u64,
    num_met: AtomicUsize,
    canceller: Canceller<'a>,
}

impl<'a> Limit<'a> {
    /// Creates the limit for windows that are no keys, or whose rows are kept.
    pub fn new(limits: TaskLimits<'a>, packing: Packing) -> Self {
        let words = if packing.is_whole() { 0 } else { packing.num_words as u64 };
        Self::from_windows(limits, words.saturating_mul(4).saturating_add(WINDOW_BYTES))
    }

    /// Creates the limit for windows that are keys and whose rows are passed on.
    pub fn for_keys<K>(limits: TaskLimits<'a>) -> Self {
        let all = Self::from_windows(limits, (KEYS_PER_WINDOW * size_of::<K>()) as u64);
        Self { max_of_task: all.max_met / rayon::current_num_threads(), ..all }
    }

    /// Creates the limit for a token scan, whose windows all have the same weight.
    pub fn for_scan(limits: TaskLimits<'a>, packing: Packing) -> Self {
        match packing.all_bits() {
            0..=64 => Self::for_keys::<u64>(limits),
            65..=128 => Self::for_keys::<u128>(limits),
            _ => Self::new(limits, packing),
        }
    }

    /// Creates a limit from half of the memory; the other half is for the data of walks.
    fn from_windows(limits: TaskLimits<'a>, window_bytes: u64) -> Self {
        let max_met = (limits.max_memory_bytes / 2 / window_bytes).min(u64::from(u32::MAX)) as usize;
        let max_words = max_met as u64;
        let num_met = AtomicUsize::new(0);
        let canceller = limits.canceller();
        Self { max_met, max_of_task: max_met, max_words, num_met, canceller }
    }

    /// Returns the limit for a walk that keeps only the windows of a range, and may read more
    /// words.
    pub fn for_range(&self) -> Self {
        let max_words = u64::from(u32::MAX);
        let max_met = self.max_met;
        let num_met = AtomicUsize::new(0);
        Self { max_met, max_of_task: max_met, max_words, num_met, canceller: self.canceller }
    }

    /// Returns true if `num_windows` numbered windows fit, together with counts of a group of
    /// documents for each of them in every thread. Such counts take half the memory of a window.
    pub fn fits_numbers(&self, num_windows: u64) -> bool {
        let num_threads = rayon::current_num_threads() as u64;
        num_windows.saturating_mul(2 + num_threads) / 2 <= self.max_met as u64
    }

    pub fn max_met(&self) -> usize {
        self.max_met
    }

    /// Returns the limit of one parallel task.
    pub fn for_task(&self) -> StepLimit<'a> {
        StepLimit { max_met: self.max_of_task, interrupt: self.canceller.interrupt() }
    }

    pub fn canceller(&self) -> Canceller<'a> {
        self.canceller
    }

    pub fn max_words(&self) -> u64 {
        self.max_words
    }

    pub fn add(&self, num_met: usize) -> Result<()> {
        let sum = self.num_met.fetch_add(num_met, Ordering::Relaxed) + num_met;
        if sum > self.max_met { Err(too_many_windows(sum, self.max_met)) } else { Ok(()) }
    }
}

/// Limit of one parallel task, which is checked after each step.
#[derive(Debug)]
pub(in crate::analytics) struct StepLimit<'a> {
    max_met: usize,
    interrupt: Interrupt<'a>,
}

impl StepLimit<'_> {
    /// Checks the limit after a step that read `num_words` words. The task has met `num_met`
    /// windows.
    ///
    /// # Errors
    /// [`Error::Capacity`] if these are too many, and [`Error::Cancelled`].
    #[inline]
    pub fn check(&mut self, num_met: usize, num_words: usize) -> Result<()> {
        self.interrupt.pass(num_words)?;
        if num_met <= self.max_met {
            return Ok(());
        }
        // A sink that stopped because the caller has left says so by a number that is too large.
        self.interrupt.ask()?;
        Err(too_many_windows(num_met, self.max_met))
    }
}

pub(in crate::analytics) fn too_many_windows(requested: usize, limit: usize) -> Error {
    let what = "counting sequences (windows held at once, at least)";
    Error::memory_of_task(what, requested as u64, limit as u64)
}

/// Returns the traversal for windows of `n` words, never [`Traversal::Auto`]: the forced one or the
/// cheapest. A token scan is not chosen if there are more words than `limit` has windows. Bottom-up
/// is not chosen if its numbers, or their counts in all threads, need more memory than `limit` has.
pub(in crate::analytics) fn chosen(
    traversal: Traversal,
    task: TraversalTask,
    vocabulary: &Vocabulary,
    n: usize,
    limit: &Limit<'_>,
) -> Traversal {
    if traversal != Traversal::Auto {
        return traversal;
    }
    let segments = vocabulary.corpus().segments().iter();
    let shape: SegmentShape = segments.map(|segment| SegmentShape::from(segment.as_ref())).sum();
    let max_words = match task {
        TraversalTask::Cooccurrence => limit.max_met() as u64 / n as u64,
        _ => limit.max_met() as u64,
    };
    let reach = n.saturating_sub(1).max(1) as u64;
    let fits = |way: &Traversal| match way {
        Traversal::TokenScan => shape.num_words <= max_words,
        Traversal::BottomUp => limit.fits_numbers(shape.num_elements.saturating_mul(reach)),
        _ => true,
    };
    let ways = cheapest_first(task, shape, n).into_iter().map(|(way, _)| way);
    ways.clone().find(fits).unwrap_or(Traversal::TopDown)
}
