//! How often each sequence of n words occurs.
//!
//! Windows are met where they cross a border in the grammar ([`edges`](super::edges)), each with
//! the weight of its rule, then sorted by ranges of sequences and added up. O(windows * n) with at most
//! as many windows as the text has words.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::analytics::Vocabulary;
use crate::corpus::Corpus;
use crate::error::{Error, Result};

use super::borders::walk_borders;
use super::edges::{Edges, Sink, too_many_windows};
use super::entries::{Entry, sorted_buckets};
use super::packing::Packing;
use super::rows::{Counted, Sequences};
use super::windows::{PackedWindows, TextWindows};

/// Positions of the grammar in a task.
const TASK_POSITIONS: usize = 1 << 15;
/// Memory of a window while it is counted, its words not included.
const WINDOW_BYTES: u64 = 64;

/// How often each sequence of `n` words occurs in `corpus`, ascending by the words in order.
/// Sequences lie within one document; separators between words do not matter.
///
/// # Errors
/// [`Error::InvalidArgument`] for `n` = 0, [`Error::Capacity`] where more than `max_memory_bytes`
/// would be used or a count has more than 64 bits, and as [`Vocabulary::new`].
pub fn sequence_count(corpus: &Corpus, n: usize, max_memory_bytes: u64) -> Result<SequenceCounts> {
    SequenceCounts::with_vocabulary(Arc::new(Vocabulary::new(corpus)?), n, max_memory_bytes)
}

/// Sequences and their counts as rows.
#[derive(Debug, Clone)]
pub struct SequenceCounts {
    sequences: Sequences,
    counts: Vec<u64>,
}

impl SequenceCounts {
    /// The counts of the sequences of `n` words of `vocabulary`.
    ///
    /// # Errors
    /// As [`sequence_count`].
    pub fn with_vocabulary(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        max_memory_bytes: u64,
    ) -> Result<Self> {
        check_num_words(n)?;
        let packing = Packing::new(n, vocabulary.len());
        let edges = Edges::of_segments(&vocabulary, n - 1, max_memory_bytes / 2)?;
        let limit = Limit::new(max_memory_bytes, packing);
        let counted: Result<Vec<Counted>> = if packing.is_whole() {
            let tasks = walk_tasks(&edges, &vocabulary, &limit, || PackedWindows::new(packing))?;
            let entries = tasks.into_iter().map(|windows| windows.entries).collect();
            let add =
                |entries: &mut [Entry]| counted(entries, packing, &|_| &[][..], &|value| value, 1);
            sorted_buckets(entries, packing.key_bits(), add).into_iter().collect()
        } else {
            let tasks = walk_tasks(&edges, &vocabulary, &limit, || TextWindows::new(packing))?;
            let entries =
                tasks.par_iter().enumerate().map(|(at, task)| task.entries((at as u64) << 32));
            let entries = entries.collect();
            let (task, window) = (|value: u64| (value >> 32) as usize, |value: u64| value as u32);
            let words = |value| tasks[task(value)].words(window(value) as usize);
            let weight = |value| tasks[task(value)].weight(window(value) as usize);
            let add = |entries: &mut [Entry]| counted(entries, packing, &words, &weight, 1);
            sorted_buckets(entries, packing.key_bits(), add).into_iter().collect()
        };
        drop(edges);
        let counted = counted?;
        let mut sequences = Sequences::new(vocabulary, packing);
        sequences.extend(counted.iter());
        let counts = counted.iter().map(|part| part.counts.as_slice()).collect::<Vec<_>>().concat();
        Ok(Self { sequences, counts })
    }

    /// The rows' sequences.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// Number of rows, the distinct sequences.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no sequence.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How often the sequence of each row occurs, 1 or more.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Main memory of the rows, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.sequences.memory_bytes() + size_of_val(self.counts.as_slice())
    }
}

pub(in crate::analytics) fn check_num_words(n: usize) -> Result<()> {
    if n > 0 {
        return Ok(());
    }
    let allowed = "1 word or more".to_owned();
    Err(Error::InvalidArgument { name: "n", got: n.to_string(), allowed })
}

/// Rows of the sequences in a bucket that occur `min_count` times or more.
pub(in crate::analytics) fn counted<'a>(
    entries: &mut [Entry],
    packing: Packing,
    words: &impl Fn(u64) -> &'a [u32],
    weight: &impl Fn(u64) -> u64,
    min_count: u64,
) -> Result<Counted> {
    let mut counted = Counted::default();
    counted.add(entries, packing, words, weight, min_count)?;
    Ok(counted)
}

/// Windows that all tasks together may meet.
pub(in crate::analytics) struct Limit {
    max_met: usize,
    num_met: AtomicUsize,
}

impl Limit {
    pub fn new(max_memory_bytes: u64, packing: Packing) -> Self {
        let words = if packing.is_whole() { 0 } else { packing.num_words as u64 };
        let window_bytes = words.saturating_mul(4).saturating_add(WINDOW_BYTES);
        Self::of_windows(max_memory_bytes / 2 / window_bytes)
    }

    pub fn of_windows(max_met: u64) -> Self {
        let max_met = max_met.min(u64::from(u32::MAX)) as usize;
        Self { max_met, num_met: AtomicUsize::new(0) }
    }

    pub fn max_met(&self) -> usize {
        self.max_met
    }

    pub fn add(&self, num_met: usize) -> Result<()> {
        let sum = self.num_met.fetch_add(num_met, Ordering::Relaxed) + num_met;
        if sum > self.max_met { Err(too_many_windows(sum, self.max_met)) } else { Ok(()) }
    }
}

/// Walks over the grammars of all segments and the borders between them, in tasks.
pub(in crate::analytics) fn walk_tasks<S: Sink + Send>(
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
        edges[at].walk_all(range, &mut sink, limit.max_met)?;
        limit.add(sink.num_met())?;
        Ok(sink)
    };
    let mut sinks = tasks.into_par_iter().map(walk).collect::<Result<Vec<S>>>()?;
    let mut sink = new();
    walk_borders(edges, vocabulary.corpus(), None, &mut sink);
    limit.add(sink.num_met())?;
    sinks.push(sink);
    Ok(sinks)
}
