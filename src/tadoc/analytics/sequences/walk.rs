//! The ways to meet every window of a corpus once, in tasks.
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

/// Positions of the grammar in a task.
const TASK_POSITIONS: usize = 1 << 15;
/// Memory of a window whose row is kept while others are counted: met, split and, if there is no other like it, a
/// row. Words of sequences that do not fit a key are not included.
const WINDOW_BYTES: u64 = 64;
/// Keys that a window takes whose rows are handed over in small parts: one, in a vector with room for twice as many.
/// Splitting takes a task's worth more in each thread, and a bucket the other half of the memory at most, where the
/// edges were before.
const KEYS_PER_WINDOW: usize = 2;

/// One of the ways.
pub(in crate::analytics) enum Walk {
    Rules(Vec<Edges>),
    Tokens(TokenWalk),
}

impl Walk {
    /// Prepares windows of `reach` + 1 words by `traversal`; there is no way from the bottom up.
    ///
    /// # Errors
    /// As [`Edges::of_segments`].
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

    /// The weights that windows are met with.
    pub fn weights(&self) -> Weights {
        match self {
            Self::Rules(edges) => Weights::of_rules(edges),
            Self::Tokens(_) => Weights::one(),
        }
    }

    /// Main memory held.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Rules(edges) => edges.iter().map(Edges::memory_bytes).sum(),
            Self::Tokens(walk) => walk.memory_bytes(),
        }
    }

    /// Hands every window to one of the sinks.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) where more than the limit are met.
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

/// Windows that all tasks together may meet.
pub(in crate::analytics) struct Limit {
    max_met: usize,
    /// Of these, what one task may meet, as several are on their way before they are added up.
    max_of_task: usize,
    /// Words that a token scan may go through.
    max_words: u64,
    num_met: AtomicUsize,
}

impl Limit {
    /// For windows that are no keys, or whose rows are kept.
    pub fn new(max_memory_bytes: u64, packing: Packing) -> Self {
        let words = if packing.is_whole() { 0 } else { packing.num_words as u64 };
        Self::of_windows(max_memory_bytes, words.saturating_mul(4).saturating_add(WINDOW_BYTES))
    }

    /// For windows that are keys, whose rows are handed over.
    pub fn of_keys<K>(max_memory_bytes: u64) -> Self {
        let all = Self::of_windows(max_memory_bytes, (KEYS_PER_WINDOW * size_of::<K>()) as u64);
        Self { max_of_task: all.max_met / rayon::current_num_threads(), ..all }
    }

    /// For a scan, whose windows all have the same weight.
    pub fn of_scan(max_memory_bytes: u64, packing: Packing) -> Self {
        match packing.all_bits() {
            0..=64 => Self::of_keys::<u64>(max_memory_bytes),
            65..=128 => Self::of_keys::<u128>(max_memory_bytes),
            _ => Self::new(max_memory_bytes, packing),
        }
    }

    /// Half of the memory is for what walks hold.
    fn of_windows(max_memory_bytes: u64, window_bytes: u64) -> Self {
        let max_met = (max_memory_bytes / 2 / window_bytes).min(u64::from(u32::MAX)) as usize;
        let (max_words, num_met) = (max_met as u64, AtomicUsize::new(0));
        Self { max_met, max_of_task: max_met, max_words, num_met }
    }

    /// The same limit for a walk that keeps the windows of a range only, and goes through more words.
    pub fn of_range(&self) -> Self {
        let max_words = u64::from(u32::MAX);
        let (max_met, num_met) = (self.max_met, AtomicUsize::new(0));
        Self { max_met, max_of_task: max_met, max_words, num_met }
    }

    /// Whether `num_windows` numbered windows fit, and counts of a group of documents for each of them
    /// in every thread, which take half a window's memory.
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

/// Walks over the grammars of all segments and the borders between them, in tasks.
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
        edges.dag().weights();
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
            // Half of the memory, with room for two keys each.
            assert_eq!(limit.max_met() * 2 * key_bytes, 1 << 19);
            // All threads together meet no more before they are refused.
            assert_eq!(limit.max_of_task() * 4, limit.max_met());
            assert_eq!(limit.of_range().max_of_task(), limit.max_met());
            assert!(limit.add(limit.max_met()).is_ok() && limit.add(1).is_err());
        }
    }
}
