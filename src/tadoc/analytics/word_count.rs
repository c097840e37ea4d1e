//! How often each word occurs: one sweep over the rules.
//!
//! Rules are numbered parents before children, so a rule's weight is known when its right-hand side
//! is reached, and adding it to every element there is the whole task ([`Dag::weights`], which
//! keeps the result). O(G) for each segment, in parallel over segments; sums over segments are
//! checked. TADOC does the same with a queue of rules and hash tables for each of them (Zhang et
//! al., VLDB Journal 2021, section 4); flat arrays need neither.
//!
//! [`Dag::weights`]: crate::segment::Dag::weights

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::segment::{Corpus, Segment};

use super::Vocabulary;
use super::vocabulary::word_weights;

/// How often each word of `segment` occurs, by word id. A continued document counts with the part
/// that is in this segment.
pub fn segment_word_counts(segment: &Segment) -> &[u64] {
    word_weights(segment)
}

/// How often each word of `corpus` occurs, in byte order of word.
///
/// # Errors
/// [`Error::Capacity`] where a count has more than 64 bits, and as [`Vocabulary::new`].
pub fn word_count(corpus: &Corpus) -> Result<WordCounts> {
    // The sweeps are most of the work: all segments at once, before they are asked for one by one.
    corpus.segments().par_iter().for_each(|segment| {
        segment.dag.weights();
    });
    WordCounts::with_vocabulary(Arc::new(Vocabulary::new(corpus)?))
}

/// Words and their counts as rows.
#[derive(Debug, Clone)]
pub struct WordCounts {
    vocabulary: Arc<Vocabulary>,
    /// By row; empty where the counts are the weights of one segment, whose word ids are the rows.
    merged: Vec<u64>,
}

impl WordCounts {
    /// The counts of the words of `vocabulary`, with its rows.
    ///
    /// # Errors
    /// [`Error::Capacity`] where a count has more than 64 bits.
    pub fn with_vocabulary(vocabulary: Arc<Vocabulary>) -> Result<Self> {
        let mut merged = Vec::new();
        if !vocabulary.is_one_segment() {
            let segments = vocabulary.corpus().segments();
            let weights: Vec<&[u64]> = segments.iter().map(|s| word_weights(s)).collect();
            merged = sums(&vocabulary, &weights)?;
        }
        Ok(Self { vocabulary, merged })
    }

    /// The same from counts made elsewhere (on a device): of each segment by word id.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where they are not one count for each word of each segment,
    /// [`Error::Capacity`] where a count has more than 64 bits.
    pub fn of_segments(vocabulary: Arc<Vocabulary>, mut counts: Vec<Vec<u64>>) -> Result<Self> {
        let segments = vocabulary.corpus().segments();
        let expected = segments.iter().map(|segment| segment.dag.num_words() as usize);
        if !expected.clone().eq(counts.iter().map(Vec::len)) {
            let got =
                format!("{} of {} words", counts.len(), counts.iter().map(Vec::len).sum::<usize>());
            let allowed = format!("{} of {} words", segments.len(), expected.sum::<usize>());
            return Err(Error::InvalidArgument { name: "counts of segments", got, allowed });
        }
        let only = if vocabulary.is_one_segment() { counts.pop() } else { None };
        let merged = match only {
            Some(counts) => counts,
            None => sums(&vocabulary, &counts)?,
        };
        Ok(Self { vocabulary, merged })
    }

    /// The rows' words.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Number of rows, the distinct words.
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.vocabulary.is_empty()
    }

    /// The word of `row`, ascending in byte order.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
    pub fn word(&self, row: usize) -> &str {
        self.vocabulary.word(row)
    }

    /// How often the word of `row` occurs, 1 or more.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
    pub fn count(&self, row: usize) -> u64 {
        self.counts()[row]
    }

    /// Counts of all rows.
    pub fn counts(&self) -> &[u64] {
        if self.merged.is_empty() && self.vocabulary.is_one_segment() {
            return word_weights(&self.vocabulary.corpus().segments()[0]);
        }
        &self.merged
    }

    /// The `num_rows` rows of the highest counts, these first, rows of the same count in byte order
    /// of word. O(rows log `num_rows`), nearly all of them refused by one comparison.
    pub fn top(&self, num_rows: usize) -> Vec<usize> {
        // The heap's largest is the worst that is kept: the least count, and of these the last row.
        let mut kept: BinaryHeap<(Reverse<u64>, usize)> = BinaryHeap::new();
        for (row, &count) in self.counts().iter().enumerate() {
            if kept.len() < num_rows {
                kept.push((Reverse(count), row));
            } else if let Some(mut worst) = kept.peek_mut().filter(|worst| worst.0.0 < count) {
                *worst = (Reverse(count), row);
            }
        }
        kept.into_sorted_vec().into_iter().map(|(_, row)| row).collect()
    }

    /// Words and counts of all rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u64)> + '_ {
        self.counts().iter().enumerate().map(|(row, &count)| (self.word(row), count))
    }
}

/// Counts by row from those by segment and word id.
fn sums<C: AsRef<[u64]> + Sync>(vocabulary: &Vocabulary, counts: &[C]) -> Result<Vec<u64>> {
    let sum = |row| {
        vocabulary.ids(row).try_fold(0u64, |sum, (segment_idx, word)| {
            sum.checked_add(counts[segment_idx].as_ref()[word as usize])
        })
    };
    (0..vocabulary.len())
        .into_par_iter()
        .with_min_len(1 << 14)
        .map(|row| sum(row).ok_or_else(too_large))
        .collect()
}

pub(super) fn too_large() -> Error {
    Error::count_overflow("the count of a word over all segments")
}
