//! Word count: the number of occurrences of each word, from one sweep over the rules.
//!
//! Rules are numbered with parents before children. So the weight of a rule is known when the sweep
//! reaches its right-hand side, and the sweep adds that weight to every element there
//! ([`Segment::weights_or_derive`], which keeps the result). O(G) for each segment, with segments
//! in parallel. Sums over segments are checked for overflow. TADOC uses a queue of rules and a hash
//! table for each rule (Zhang et al., VLDB Journal 2021, section 4); flat arrays need neither.
//!
//! [`Segment::weights_or_derive`]: crate::segment::Segment::weights_or_derive

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::segment::{Corpus, Segment};

use super::Vocabulary;
use super::vocabulary::word_weights;

/// Returns the number of occurrences of each word of `segment`, by word id. A document that
/// continues in another segment counts with the part that is in this one.
pub fn segment_word_counts(segment: &Segment) -> &[u64] {
    word_weights(segment)
}

/// Counts the occurrences of each word of `corpus`. Rows are in byte order of the words.
///
/// # Errors
/// [`Error::Capacity`] if a count needs more than 64 bits, and the errors of [`Vocabulary::new`].
pub fn word_count(corpus: &Corpus) -> Result<WordCounts> {
    // The sweeps are most of the work, so they run for all segments in parallel first.
    corpus.segments().par_iter().for_each(|segment| {
        segment.weights_or_derive();
    });
    WordCounts::with_vocabulary(Arc::new(Vocabulary::new(corpus)?))
}

/// Words and their counts as rows.
#[derive(Debug, Clone)]
pub struct WordCounts {
    vocabulary: Arc<Vocabulary>,
    /// Counts by row. Empty if the counts are the weights of one segment whose word ids are the
    /// rows.
    merged: Vec<u64>,
}

impl WordCounts {
    /// Counts the words of `vocabulary`; rows are those of `vocabulary`.
    ///
    /// # Errors
    /// [`Error::Capacity`] if a count needs more than 64 bits.
    pub fn with_vocabulary(vocabulary: Arc<Vocabulary>) -> Result<Self> {
        let mut merged = Vec::new();
        if !vocabulary.is_one_segment() {
            let segments = vocabulary.corpus().segments();
            let weights: Vec<&[u64]> = segments.iter().map(|s| word_weights(s)).collect();
            merged = sums(&vocabulary, &weights)?;
        }
        Ok(Self { vocabulary, merged })
    }

    /// Returns the vocabulary that the rows belong to.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the number of rows, which are the distinct words.
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Returns true if there is no word.
    pub fn is_empty(&self) -> bool {
        self.vocabulary.is_empty()
    }

    /// Returns the word of `row`. Words ascend in byte order.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn word(&self, row: usize) -> &str {
        self.vocabulary.word(row)
    }

    /// Returns the number of occurrences of the word of `row`, which is 1 or more.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn count(&self, row: usize) -> u64 {
        self.counts()[row]
    }

    /// Returns the counts of all rows.
    pub fn counts(&self) -> &[u64] {
        if self.merged.is_empty() && self.vocabulary.is_one_segment() {
            return word_weights(&self.vocabulary.corpus().segments()[0]);
        }
        &self.merged
    }

    /// Returns the `num_rows` rows with the highest counts, in descending order of count. Rows with
    /// the same count are in byte order of their words. O(rows log `num_rows`); one comparison
    /// rejects nearly every row.
    pub fn top(&self, num_rows: usize) -> Vec<usize> {
        // The top of the heap is the worst row kept: the least count and, among equal counts, the
        // last row.
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

    /// Returns the words and counts of all rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u64)> + '_ {
        self.counts().iter().enumerate().map(|(row, &count)| (self.word(row), count))
    }
}

/// Adds up the counts of all segments, given by word id, to counts by row.
fn sums<C: AsRef<[u64]> + Sync>(vocabulary: &Vocabulary, counts: &[C]) -> Result<Vec<u64>> {
    let sum = |row| {
        vocabulary
            .ids(row)
            .try_fold(0u64, |sum, (segment_idx, word)| sum.checked_add(counts[segment_idx].as_ref()[word as usize]))
    };
    (0..vocabulary.len()).into_par_iter().with_min_len(1 << 14).map(|row| sum(row).ok_or_else(too_large)).collect()
}

pub(super) fn too_large() -> Error {
    Error::count_overflow("the count of a word over all segments")
}
