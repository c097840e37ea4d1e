//! Walks that meet every window of a corpus once, in parallel tasks.
//!
//! - *top-down*: over the rules, each with its weight ([`edges`](super::edges)).
//! - *token scan*: over the text, each window with weight 1 ([`token_walk`](super::token_walk)).

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::analytics::{Traversal, Vocabulary};
use crate::error::Result;

use super::borders::walk_borders;
use super::edges::{Edges, Sink, too_many_windows};
use super::packing::Packing;
use super::token_walk::TokenWalk;
use super::weights::Weights;

/// Number of positions of the grammar in a parallel task.
const TASK_POSITIONS: usize = 1 << 15;
/// Memory of a window whose row is kept while others are counted: met, split and, if no other
/// window is equal, a row. The words of sequences that do not fit a key are not included.
const WINDOW_BYTES: u64 = 64;
/// Number of keys in memory for each window whose rows are passed on in small parts: one, in a
/// vector with room for twice as many. Splitting takes the memory of one more task in each thread.
/// A bucket takes at most the other half of the memory, where the edges were before.
const KEYS_PER_WINDOW: usize = 2;

/// Walk of one of the two kinds.
pub(in crate::analytics) enum Walk {
    Rules(Vec<Edges>),
    Tokens(TokenWalk),
}

impl Walk {
    /// Prepares windows of `reach` + 1 words by `traversal`. There is no bottom-up walk; it is
    /// treated as top-down.
    ///
    /// # Errors
    /// The errors of [`Edges::of_segments`].
    pub fn new(
        vocabulary: &Vocabulary,
        reach: usize,
        traversal: Traversal,
        max_bytes: u64,
    ) -> Result<Self> {
        Ok(match traversal {
            Traversal::TokenScan => Self::Tokens(TokenWalk::new(vocabulary, reach)),
            _ => Self::Rules(Edges::of_segments(vocabulary, reach, max_bytes)?),
        })
    }

    /// Returns the weights of the windows.
    pub fn weights(&self) -> Weights {
        match self {
            Self::Rules(edges) => Weights::of_rules(edges),
            Self::Tokens(_) => Weights::one(),
        }
    }

    /// Returns the memory of the walk in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Rules(edges) => edges.iter().map(Edges::memory_bytes).sum(),
            Self::Tokens(walk) => walk.memory_bytes(),
        }
    }

    /// Passes every window to one of the sinks.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) if more windows than `limit` allows are met.
    pub fn tasks<S: Sink + Send>(
        &self,
        vocabulary: &Vocabulary,
        limit: &Limit,
        new: impl Fn() -> S + Sync,
    ) -> Result<Vec<S>> {
        match self {
            Self::Rules(edges) => walk_rules(edges, vocabulary, limit, new),
            Self::Tokens(walk) => walk.tasks(vocabulary, limit, new),
        }
    }
}

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
    pub fn of_keys<K>(max_memory_bytes: u64) -> Self {
        let all = Self::of_windows(max_memory_bytes, (KEYS_PER_WINDOW * size_of::<K>()) as u64);
        Self { max_of_task: all.max_met / rayon::current_num_threads(), ..all }
    }

    /// Creates the limit for a token scan, whose windows all have the same weight.
    pub fn of_scan(max_memory_bytes: u64, packing: Packing) -> Self {
        match packing.all_bits() {
            0..=64 => Self::of_keys::<u64>(max_memory_bytes),
            65..=128 => Self::of_keys::<u128>(max_memory_bytes),
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

/// Walks over the grammars of all segments and the borders between them, in parallel tasks.
fn walk_rules<S: Sink + Send>(
    edges: &[Edges],
    vocabulary: &Vocabulary,
    limit: &Limit,
    new: impl Fn() -> S + Sync,
) -> Result<Vec<S>> {
    let tasks: Vec<(usize, Range<usize>)> = edges
        .iter()
        .enumerate()
        .flat_map(|(at, edges)| edges.ranges(TASK_POSITIONS).map(move |range| (at, range)))
        .collect();
    edges.par_iter().for_each(|edges| {
        edges.weights();
    });
    let walk = |(at, range): (usize, Range<usize>)| {
        let mut sink = new();
        edges[at].walk_all(range, &mut sink, limit.max_of_task)?;
        limit.add(sink.num_met())?;
        sink.close();
        Ok(sink)
    };
    let mut sinks = tasks.into_par_iter().map(walk).collect::<Result<Vec<S>>>()?;
    let mut sink = new();
    walk_borders(edges, vocabulary.corpus(), None, &mut sink);
    limit.add(sink.num_met())?;
    sinks.push(sink);
    Ok(sinks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_reckoned_as_their_keys() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let limits = || [Limit::of_keys::<u64>(1 << 20), Limit::of_keys::<u128>(1 << 20)];
        for (limit, key_bytes) in pool.install(limits).iter().zip([8, 16]) {
            // Half of the memory, with room for two keys for each window.
            assert_eq!(limit.max_met() * 2 * key_bytes, 1 << 19);
            // All threads together meet no more windows before they are rejected.
            assert_eq!(limit.max_of_task() * 4, limit.max_met());
            assert_eq!(limit.of_range().max_of_task(), limit.max_met());
            assert!(limit.add(limit.max_met()).is_ok() && limit.add(1).is_err());
        }
    }
}
