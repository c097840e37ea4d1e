//! Counts of sequences that devices found in segments, as rows of the corpus, slice by slice.
//!
//! ```text
//! segment 0   b c  b d        slice 1 of both
//! segment 1   b a   b d
//! slice 1     b a  b c  b d   merged by rows; counts of equal rows are added up
//! ```
//!
//! The partitions that send slices also make them, several at a time. So only the rows from the
//! devices are in memory all at once. O(rows * log segments). The function that gives the same rows
//! at once is [`SequenceCounts::from_segments`](tadoc::analytics::SequenceCounts::from_segments).

use datafusion::execution::memory_pool::MemoryReservation;
use rayon::prelude::*;

use tadoc::analytics::{SegmentSequences, Vocabulary, too_many_occurrences};
use tadoc::error::Result;

use crate::planning::answers::{RowKeys, SAMPLED_ROWS, SegmentKeys, ranges, words};

/// Number of counts that a parallel task checks.
const TASK_ROWS: usize = 1 << 14;

/// Description of the rows that are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    /// Number of words of a row.
    pub(super) num_words: usize,
    /// Least count of a row.
    pub(super) min_count: u64,
    /// True if the rows are pairs, whose smaller word comes first.
    pub(super) are_pairs: bool,
}

/// The rows of all segments.
#[derive(Debug)]
pub(crate) struct SequenceTable {
    keys: RowKeys,
    /// Count of each key, by segment.
    counts: Vec<Vec<u64>>,
    min_count: u64,
    /// Start of each slice in each segment, and the end of the last slice.
    starts: Vec<Vec<usize>>,
    /// Reservation of the memory of the rows.
    _held: MemoryReservation,
}

/// The rows of one slice, ascending.
#[derive(Debug)]
pub(crate) struct SequenceSlice {
    num_words: usize,
    word_bits: u32,
    keys: Vec<u64>,
    counts: Vec<u64>,
}

impl SequenceTable {
    /// Builds the rows from those of all `segments` of the corpus of `vocabulary`. `held` is the
    /// reservation of their memory.
    pub(super) fn new(
        vocabulary: &Vocabulary,
        Counted { num_words, min_count, are_pairs }: Counted,
        segments: Vec<SegmentSequences>,
        held: MemoryReservation,
    ) -> Self {
        let split = segments.into_par_iter().map(occurring).map(|segment| {
            let SegmentSequences { keys, counts, word_bits } = segment;
            (SegmentKeys { keys, word_bits }, counts)
        });
        let (segments, mut counts): (Vec<_>, Vec<_>) = split.unzip();
        let mut keys = RowKeys::new(vocabulary, num_words, are_pairs, segments);
        if vocabulary.folded_words().is_some() {
            (keys, counts) = sorted(keys, &counts);
        }
        let starts = keys.cut(|at| (0..keys.len(at)).step_by(SAMPLED_ROWS).collect());
        Self { keys, counts, min_count, starts, _held: held }
    }

    /// Returns the number of slices, at least 1.
    pub(crate) fn num_slices(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the rows of slice `at`. They follow those of the slice before.
    ///
    /// # Errors
    /// [`Error::Capacity`](tadoc::Error::Capacity) if a count has more than 64 bits.
    ///
    /// # Panics
    /// Panics if `at` is not below [`num_slices`](Self::num_slices).
    pub(crate) fn slice(&self, at: usize) -> Result<SequenceSlice> {
        let mut entries: Vec<(u64, u64)> = Vec::new();
        for (segment_idx, range) in ranges(&self.starts, at).into_iter().enumerate() {
            let counts = &self.counts[segment_idx];
            entries.extend(range.map(|at| (self.keys.key(segment_idx, at), counts[at])));
        }
        if self.counts.len() > 1 {
            // The stable sort merges ascending runs.
            entries.sort_by_key(|&(key, _)| key);
        }
        let mut slice = SequenceSlice {
            num_words: self.keys.num_words,
            word_bits: self.keys.word_bits,
            keys: Vec::with_capacity(entries.len()),
            counts: Vec::with_capacity(entries.len()),
        };
        for equal in entries.chunk_by(|a, b| a.0 == b.0) {
            let sum = equal.iter().try_fold(0u64, |sum, &(_, count)| sum.checked_add(count));
            let count = sum.ok_or_else(too_many_occurrences)?;
            if count >= self.min_count {
                slice.keys.push(equal[0].0);
                slice.counts.push(count);
            }
        }
        Ok(slice)
    }
}

impl SequenceSlice {
    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the count of each row, 1 or more.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the words of `row` in order, as rows of the vocabulary.
    ///
    /// # Panics
    /// Panics if `row` is not below [`len`](Self::len).
    #[inline]
    pub(crate) fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        words(self.keys[row], self.num_words, self.word_bits)
    }
}

/// Returns the keys and counts of all segments in one list, sorted by keys of the corpus.
fn sorted(keys: RowKeys, counts: &[Vec<u64>]) -> (RowKeys, Vec<Vec<u64>>) {
    let of_rows = &keys;
    let entries = counts.par_iter().enumerate().flat_map(|(segment_idx, counts)| {
        let places = counts.par_iter().enumerate();
        places.map(move |(at, &count)| (of_rows.key(segment_idx, at), count))
    });
    let mut entries: Vec<(u64, u64)> = entries.collect();
    entries.par_sort_unstable_by_key(|&(key, _)| key);
    let (row_keys, counts) = entries.into_par_iter().unzip();
    (keys.with_rows(row_keys), vec![counts])
}

/// Returns the sequences with a count above 0. These are nearly always all.
fn occurring(mut segment: SegmentSequences) -> SegmentSequences {
    if segment.counts.par_iter().with_min_len(TASK_ROWS).any(|&count| count == 0) {
        let mut counts = segment.counts.iter();
        segment.keys.retain(|_| counts.next().is_some_and(|&count| count > 0));
        segment.counts.retain(|&count| count > 0);
    }
    segment
}

#[cfg(test)]
pub(super) mod tests;
