//! Sequence count: the number of occurrences of each sequence of n words.
//!
//! Windows are met where they cross a border in the grammar ([`edges`](super::edges)), with the
//! weight of the rule, or at every word of the text ([`token_walk`](super::token_walk)). They are
//! then sorted by ranges of sequences and added up. O(windows * n), with at most as many windows as
//! the text has words. Single words use their weights, O(G). If memory has no room for all windows,
//! they are met in several walks ([`passes`](super::passes)).

use std::ops::Range;
use std::sync::Arc;

use crate::analytics::TraversalTask::SequenceCount;
use crate::analytics::{Share, TaskLimits, Traversal, Vocabulary, WordCounts};
use crate::error::{Error, Result};
use crate::segment::Corpus;

use super::choice::chosen;
use super::key::Key;
use super::key::Keyed;
use super::limit::Limit;
use super::packing::Packing;
use super::passes::{KeyRange, for_each_pass, keys_of};
use super::row_maker::{PART_WORDS, RowMaker};
use super::rows::Sequences;
use super::walk::Walk;
use super::weights::NumberedWeights;
use super::windows::{PackedWindows, TextWindows};

/// Initial room for the windows of a parallel task.
const TASK_WINDOWS: usize = 1 << 16;

/// Counts the occurrences of each sequence of `n` words in `corpus`. Rows ascend by the words in
/// order. A sequence lies within one document; separators between words are ignored.
///
/// # Errors
/// [`Error::InvalidArgument`] for `n` = 0, [`Error::Capacity`] if one sequence alone is met more
/// often than the memory of `limits` holds or a count needs more than 64 bits, [`Error::Cancelled`],
/// and the errors of [`Vocabulary::new`].
pub fn sequence_count<'a>(
    corpus: &Corpus,
    n: usize,
    limits: impl Into<TaskLimits<'a>>,
) -> Result<SequenceCounts> {
    let vocabulary = Arc::new(Vocabulary::new(corpus)?);
    SequenceCounts::with_vocabulary(vocabulary, n, Traversal::Auto, limits)
}

/// Sequences and their counts as rows.
#[derive(Debug, Clone)]
pub struct SequenceCounts {
    sequences: Sequences,
    counts: Vec<u64>,
}

impl SequenceCounts {
    /// Counts the sequences of `n` words of `vocabulary` by `traversal`; [`Traversal::Auto`] uses
    /// the cheaper one ([`choose_task_traversal`](crate::analytics::choose_task_traversal)), and
    /// bottom-up is treated as top-down. The memory of `limits` is that for counting; the rows need
    /// more memory beside it.
    ///
    /// # Errors
    /// The errors of [`sequence_count`].
    pub fn with_vocabulary<'a>(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        traversal: Traversal,
        limits: impl Into<TaskLimits<'a>>,
    ) -> Result<Self> {
        let mut parts = Vec::new();
        let rows = |part: Self| (part.sequences, part.counts);
        let words = vocabulary.clone();
        let all = Share::default();
        Self::in_parts(words, (n, all), traversal, limits, rows, |part, _| {
            parts.push(part);
            Ok(true)
        })?;
        let packing = Packing::new(n, vocabulary.len());
        let (sequences, counts) = Sequences::joined(vocabulary, packing, &parts);
        Ok(Self { sequences, counts })
    }

    /// Counts the sequences of `n` words of a share and passes the rows on in parts, in order. `make` is
    /// called in parallel. `take` is called with each result of `make` and the bytes held for counting, until
    /// it returns false. Memory holds only a few parts at a time, however many rows there are.
    ///
    /// # Errors
    /// The errors of [`sequence_count`] and of `take`.
    pub fn in_parts<'a, T: Send>(
        vocabulary: Arc<Vocabulary>,
        (n, share): (usize, Share),
        traversal: Traversal,
        limits: impl Into<TaskLimits<'a>>,
        make: impl Fn(Self) -> T + Send + Sync,
        mut take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<()> {
        check_num_words(n)?;
        let limits: TaskLimits<'_> = limits.into();
        let canceller = limits.canceller();
        canceller.check()?;
        let make = |sequences, counts| make(Self { sequences, counts });
        if n == 1 {
            return words_in_parts(&vocabulary, share, make, take);
        }
        let packing = Packing::new(n, vocabulary.len());
        let firsts = share.for_sequences(&vocabulary);
        if firsts.is_empty() {
            return Ok(());
        }
        let firsts = (!share.is_all()).then_some(firsts);
        let scan_limit = Limit::for_scan(limits, packing);
        let way = chosen(traversal, SequenceCount, &vocabulary, n, &scan_limit);
        let walk = Walk::new(&vocabulary, n - 1, way, limits.max_memory_bytes / 2, canceller)?;
        let weights = walk.weights();
        let key_bits = packing.all_bits().saturating_add((&weights).bits());
        let (words, weights, min_count) = (&vocabulary, &weights, 1);
        let maker = RowMaker { vocabulary: words, packing, weights, min_count, canceller };
        match key_bits {
            0..=64 => packed::<u64, T>(&maker, walk, firsts, limits, make, &mut take),
            65..=128 => packed::<u128, T>(&maker, walk, firsts, limits, make, &mut take),
            _ => {
                let limit = Limit::new(limits, packing);
                let (new, make) = (|keep| TextWindows::new(packing, keep), &make);
                let bits = packing.key_bits();
                let keys =
                    (bits, firsts.and_then(|words| keys_of(words, packing.word_bits(), bits)));
                for_each_pass(walk, &vocabulary, &limit, keys, new, |tasks, range, held_bytes| {
                    let take = |part, bytes| take(part, held_bytes + bytes);
                    maker.texts_to_rows(&tasks, range, make, take)
                })
            }
        }
    }

    /// Creates rows with these counts.
    pub(super) fn from_parts(sequences: Sequences, counts: Vec<u64>) -> Self {
        Self { sequences, counts }
    }

    /// Returns the sequences of the rows.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// Returns the number of rows, which are the distinct sequences.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns true if there is no sequence.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the number of occurrences of the sequence of each row, 1 or more.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the memory of the rows in bytes, without the vocabulary.
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

/// Counts windows that fit keys together with the number of a weight.
fn packed<K: Key + Keyed<Key = K>, T: Send>(
    maker: &RowMaker<'_>,
    walk: Walk,
    firsts: Option<Range<usize>>,
    limits: TaskLimits<'_>,
    make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
    take: &mut impl FnMut(T, usize) -> Result<bool>,
) -> Result<()> {
    let packing = maker.packing;
    let new = |keep| PackedWindows::<K, _>::new(packing, maker.weights, keep, TASK_WINDOWS);
    let (limit, bits) = (Limit::for_keys::<K>(limits), packing.all_bits());
    let within: Option<KeyRange<K>> =
        firsts.and_then(|words| keys_of(words, packing.word_bits(), bits));
    for_each_pass(
        walk,
        maker.vocabulary,
        &limit,
        (bits, within),
        new,
        |tasks, range, held_bytes| {
            let keys = tasks.into_iter().map(|windows| windows.keys).collect();
            maker.keys_to_rows(keys, range, &make, |part, bytes| take(part, held_bytes + bytes))
        },
    )
}

/// Counts words as sequences of one word.
fn words_in_parts<T>(
    vocabulary: &Arc<Vocabulary>,
    share: Share,
    make: impl Fn(Sequences, Vec<u64>) -> T,
    mut take: impl FnMut(T, usize) -> Result<bool>,
) -> Result<()> {
    let words = WordCounts::with_vocabulary(vocabulary.clone())?;
    let share = share.part(vocabulary.len());
    for start in share.clone().step_by(PART_WORDS) {
        let rows = start..share.end.min(start + PART_WORDS);
        let counts = words.counts()[rows.clone()].to_vec();
        let part = make(Sequences::from_words(vocabulary.clone(), rows), counts);
        if !take(part, size_of_val(words.counts()))? {
            break;
        }
    }
    Ok(())
}
