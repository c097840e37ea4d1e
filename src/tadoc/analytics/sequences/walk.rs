//! Walks that meet every window of a corpus once, in parallel tasks.
//!
//! - *top-down*: over the rules, each with its weight ([`edges`](super::edges)).
//! - *token scan*: over the text, each window with weight 1 ([`token_walk`](super::token_walk)).

use std::ops::Range;

use rayon::prelude::*;

use crate::analytics::{Traversal, Vocabulary};
use crate::error::Result;
use crate::interrupt::Canceller;

use super::Sink;
use super::borders::walk_borders;
use super::edges::Edges;
use super::limit::Limit;
use super::token_walk::TokenWalk;
use super::weights::Weights;

/// Number of positions of the grammar in a parallel task.
const TASK_POSITIONS: usize = 1 << 15;
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
    /// The errors of [`Edges::from_segments`].
    pub fn new(
        vocabulary: &Vocabulary,
        reach: usize,
        traversal: Traversal,
        max_bytes: u64,
        canceller: Canceller<'_>,
    ) -> Result<Self> {
        Ok(match traversal {
            Traversal::TokenScan => Self::Tokens(TokenWalk::new(vocabulary, reach, canceller)?),
            _ => Self::Rules(Edges::from_segments(vocabulary, reach, max_bytes, canceller)?),
        })
    }

    /// Returns the weights of the windows.
    pub fn weights(&self) -> Weights {
        match self {
            Self::Rules(edges) => Weights::from_rules(edges),
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
    /// [`Error::Capacity`](crate::Error::Capacity) if more windows than `limit` allows are met, and
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn tasks<S: Sink + Send>(
        &self,
        vocabulary: &Vocabulary,
        limit: &Limit<'_>,
        new: impl Fn() -> S + Sync,
    ) -> Result<Vec<S>> {
        match self {
            Self::Rules(edges) => walk_rules(edges, vocabulary, limit, new),
            Self::Tokens(walk) => walk.tasks(vocabulary, limit, new),
        }
    }
}

/// Walks over the grammars of all segments and the borders between them, in parallel tasks.
fn walk_rules<S: Sink + Send>(
    edges: &[Edges],
    vocabulary: &Vocabulary,
    limit: &Limit<'_>,
    new: impl Fn() -> S + Sync,
) -> Result<Vec<S>> {
    let canceller = limit.canceller();
    let tasks: Vec<(usize, Range<usize>)> = edges
        .iter()
        .enumerate()
        .flat_map(|(at, edges)| edges.ranges(TASK_POSITIONS).map(move |range| (at, range)))
        .collect();
    edges.par_iter().try_for_each(|edges| {
        canceller.check()?;
        edges.weights();
        Ok(())
    })?;
    let walk = |(at, range): (usize, Range<usize>)| {
        canceller.check()?;
        let mut sink = new();
        edges[at].walk_all(range, &mut sink, &mut limit.for_task())?;
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
    use crate::analytics::TaskLimits;

    #[test]
    fn windows_are_reckoned_as_their_keys() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let all = TaskLimits::from(1 << 20);
        let limits = || [Limit::for_keys::<u64>(all), Limit::for_keys::<u128>(all)];
        for (limit, key_bytes) in pool.install(limits).iter().zip([8, 16]) {
            // Half of the memory, with room for two keys for each window.
            assert_eq!(limit.max_met() * 2 * key_bytes, 1 << 19);
            // All threads together meet no more windows before they are rejected.
            assert_eq!(limit.max_of_task * 4, limit.max_met());
            assert_eq!(limit.for_range().max_of_task, limit.max_met());
            assert!(limit.add(limit.max_met()).is_ok() && limit.add(1).is_err());
        }
    }
}
