//! How often each sequence of n words occurs.
//!
//! Windows are met where they cross a border in the grammar ([`edges`](super::edges)), each with
//! the weight of its rule, or at every word of the text ([`token_walk`](super::token_walk)); then sorted
//! by ranges of sequences and added up. O(windows * n) with at most as many windows as the text has
//! words. Single words have their weights, O(G).

use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::TraversalTask::SequenceCount;
use crate::analytics::{Traversal, Vocabulary, WordCounts};
use crate::corpus::Corpus;
use crate::error::{Error, Result};

use super::choice::chosen;
use super::entries::{Entry, Keyed, sorted_buckets};
use super::key::Key;
use super::packing::Packing;
use super::rows::{Counted, Sequences};
use super::walk::{Limit, Walk};
use super::weights::{NumberedWeights, Weights};
use super::windows::{PackedWindows, TextWindows};

/// Room for windows that a task begins with.
const TASK_WINDOWS: usize = 1 << 16;

/// How often each sequence of `n` words occurs in `corpus`, ascending by the words in order.
/// Sequences lie within one document; separators between words do not matter.
///
/// # Errors
/// [`Error::InvalidArgument`] for `n` = 0, [`Error::Capacity`] where more than `max_memory_bytes`
/// would be used or a count has more than 64 bits, and as [`Vocabulary::new`].
pub fn sequence_count(corpus: &Corpus, n: usize, max_memory_bytes: u64) -> Result<SequenceCounts> {
    let vocabulary = Arc::new(Vocabulary::new(corpus)?);
    SequenceCounts::with_vocabulary(vocabulary, n, Traversal::Auto, max_memory_bytes)
}

/// Sequences and their counts as rows.
#[derive(Debug, Clone)]
pub struct SequenceCounts {
    sequences: Sequences,
    counts: Vec<u64>,
}

impl SequenceCounts {
    /// The counts of the sequences of `n` words of `vocabulary`, by `traversal` or the better
    /// way ([`choose_task_traversal`](crate::analytics::choose_task_traversal)). Bottom-up is taken as top-down.
    ///
    /// # Errors
    /// As [`sequence_count`].
    pub fn with_vocabulary(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        traversal: Traversal,
        max_memory_bytes: u64,
    ) -> Result<Self> {
        check_num_words(n)?;
        let packing = Packing::new(n, vocabulary.len());
        if n == 1 {
            let words = WordCounts::with_vocabulary(vocabulary.clone())?;
            let counts = words.counts().to_vec();
            return Ok(Self { sequences: Sequences::of_words(vocabulary, packing), counts });
        }
        let limit = Limit::new(max_memory_bytes, packing);
        let way = match traversal {
            Traversal::Auto => chosen(SequenceCount, &vocabulary, n, &limit),
            forced => forced,
        };
        let walk = Walk::new(&vocabulary, n - 1, way, max_memory_bytes / 2)?;
        let weights = walk.weights();
        let key_bits = packing.all_bits().saturating_add((&weights).bits());
        let counting = Counting { vocabulary: &vocabulary, packing, limit, weights: &weights };
        let counted = match key_bits {
            0..=64 => counting.packed::<u64>(walk)?,
            65..=128 => counting.packed::<u128>(walk)?,
            _ => counting.texts(walk)?,
        };
        let mut sequences = Sequences::new(vocabulary, packing);
        sequences.extend(counted.iter());
        let counts = counted.iter().map(|part| part.counts.as_slice()).collect::<Vec<_>>().concat();
        Ok(Self { sequences, counts })
    }

    /// Rows with these counts.
    pub(super) fn from_parts(sequences: Sequences, counts: Vec<u64>) -> Self {
        Self { sequences, counts }
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

/// What the ways to hold a window share.
struct Counting<'a> {
    vocabulary: &'a Vocabulary,
    packing: Packing,
    limit: Limit,
    weights: &'a Weights,
}

impl Counting<'_> {
    /// Windows that fit keys with the number of a weight.
    fn packed<K: Key + Keyed<Key = K>>(&self, walk: Walk) -> Result<Vec<Counted>> {
        let new = || PackedWindows::<K, _>::new(self.packing, self.weights, TASK_WINDOWS);
        let tasks = walk.tasks(self.vocabulary, &self.limit, new)?;
        drop(walk);
        let keys = tasks.into_iter().map(|windows| windows.keys).collect();
        counted_keys(keys, self.packing, self.weights, 1)
    }

    /// Windows of any length.
    fn texts(&self, walk: Walk) -> Result<Vec<Counted>> {
        let tasks = walk.tasks(self.vocabulary, &self.limit, || TextWindows::new(self.packing))?;
        drop(walk);
        let entries =
            tasks.par_iter().enumerate().map(|(at, task)| task.entries((at as u64) << 32));
        let entries: Vec<Vec<Entry>> = entries.collect();
        let (task, window) = (|value: u64| (value >> 32) as usize, |value: u64| value as u32);
        let words = |value| tasks[task(value)].words(window(value) as usize);
        let weight = |value| tasks[task(value)].weight(window(value) as usize);
        let add = |entries: &mut [Entry]| {
            let mut counted = Counted::default();
            counted.add(entries, self.packing, &words, &weight, 1)?;
            Ok(counted)
        };
        sorted_buckets(entries, self.packing.key_bits(), 0, add).into_iter().collect()
    }
}

/// Rows of the sequences that occur `min_count` times or more, ascending.
pub(in crate::analytics) fn counted_keys<K: Key + Keyed<Key = K>>(
    tasks: Vec<Vec<K>>,
    packing: Packing,
    weights: &Weights,
    min_count: u64,
) -> Result<Vec<Counted>> {
    let weight_bits = { weights }.bits();
    let add = |keys: &mut [K]| {
        let mut counted = Counted::with_capacity(keys.len(), packing);
        counted.add_keys(keys, packing, &weights, min_count)?;
        Ok(counted)
    };
    let key_bits = packing.all_bits() + weight_bits;
    sorted_buckets(tasks, key_bits, weight_bits, add).into_iter().collect()
}
