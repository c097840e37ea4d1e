//! Limit of the windows that a walk may meet, from the memory that it may use.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};

use super::packing::Packing;

/// Memory of a window whose row is kept while others are counted: met, split and, if no other
/// window is equal, a row. The words of sequences that do not fit a key are not included.
const WINDOW_BYTES: u64 = 64;
/// Number of keys in memory for each window whose rows are passed on in small parts: one, in a
/// vector with room for twice as many. Splitting takes the memory of one more task in each thread.
/// A bucket takes at most the other half of the memory, where the edges were before.
const KEYS_PER_WINDOW: usize = 2;

/// Limit of the number of windows that all parallel tasks together may meet.
pub(in crate::analytics) struct Limit {
    max_met: usize,
    /// Maximum number of windows of one task. Several tasks run before their numbers are added up.
    max_of_task: usize,
    /// Maximum number of words of a token scan.
    max_words: u64,
    num_met: AtomicUsize,
}

impl Limit {
    /// Creates the limit for windows that are no keys, or whose rows are kept.
    pub fn new(max_memory_bytes: u64, packing: Packing) -> Self {
        let words = if packing.is_whole() { 0 } else { packing.num_words as u64 };
        Self::of_windows(max_memory_bytes, words.saturating_mul(4).saturating_add(WINDOW_BYTES))
    }

    /// Creates the limit for windows that are keys and whose rows are passed on.
    pub fn for_keys<K>(max_memory_bytes: u64) -> Self {
        let all = Self::of_windows(max_memory_bytes, (KEYS_PER_WINDOW * size_of::<K>()) as u64);
        Self { max_of_task: all.max_met / rayon::current_num_threads(), ..all }
    }

    /// Creates the limit for a token scan, whose windows all have the same weight.
    pub fn for_scan(max_memory_bytes: u64, packing: Packing) -> Self {
        match packing.all_bits() {
            0..=64 => Self::for_keys::<u64>(max_memory_bytes),
            65..=128 => Self::for_keys::<u128>(max_memory_bytes),
            _ => Self::new(max_memory_bytes, packing),
        }
    }

    /// Creates a limit from half of the memory; the other half is for the data of walks.
    fn of_windows(max_memory_bytes: u64, window_bytes: u64) -> Self {
        let max_met = (max_memory_bytes / 2 / window_bytes).min(u64::from(u32::MAX)) as usize;
        let (max_words, num_met) = (max_met as u64, AtomicUsize::new(0));
        Self { max_met, max_of_task: max_met, max_words, num_met }
    }

    /// Returns the limit for a walk that keeps only the windows of a range, and may read more
    /// words.
    pub fn of_range(&self) -> Self {
        let max_words = u64::from(u32::MAX);
        let (max_met, num_met) = (self.max_met, AtomicUsize::new(0));
        Self { max_met, max_of_task: max_met, max_words, num_met }
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

    pub fn max_of_task(&self) -> usize {
        self.max_of_task
    }

    pub fn max_words(&self) -> u64 {
        self.max_words
    }

    pub fn add(&self, num_met: usize) -> Result<()> {
        let sum = self.num_met.fetch_add(num_met, Ordering::Relaxed) + num_met;
        if sum > self.max_met { Err(too_many_windows(sum, self.max_met)) } else { Ok(()) }
    }
}

pub(in crate::analytics) fn too_many_windows(requested: usize, limit: usize) -> Error {
    let what = "counting sequences (windows held at once, at least)";
    Error::memory_of_task(what, requested as u64, limit as u64)
}
