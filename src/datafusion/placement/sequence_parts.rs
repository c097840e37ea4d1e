//! Sequences that devices counted in segments, as rows of the corpus, part by part.
//!
//! ```text
//! segment 0   b c  b d        part 1 of both (row_keys)
//! segment 1   b a   b d
//! part 1      b a  b c  b d   merged by rows, counts of equal ones added up
//! ```
//!
//! Parts are made by whoever sends them, several at a time, and nothing is as large as all rows but what
//! came from the devices. O(rows * log segments). What gives the same rows at once:
//! [`SequenceCounts::of_segments`](tadoc::analytics::SequenceCounts::of_segments).

use datafusion::execution::memory_pool::MemoryReservation;
use rayon::prelude::*;

use tadoc::analytics::{SegmentSequences, Vocabulary, too_many_occurrences};
use tadoc::error::Result;

use crate::placement::row_keys::{RowKeys, SAMPLED_ROWS, SegmentKeys, ranges, words};

/// Counts that a core looks at, at a time.
const TASK_ROWS: usize = 1 << 14;

/// What is counted, and which of it are rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    /// Words of a row.
    pub(super) num_words: usize,
    /// Those that occur less often are no rows.
    pub(super) min_count: u64,
    /// Whether the smaller of two words stands first.
    pub(super) are_pairs: bool,
}

/// The rows of all segments.
#[derive(Debug)]
pub(crate) struct SequenceParts {
    keys: RowKeys,
    /// By segment and place.
    counts: Vec<Vec<u64>>,
    min_count: u64,
    /// For each part where it begins in each segment, and where the last one ends.
    starts: Vec<Vec<usize>>,
    /// Memory of the rows.
    _held: MemoryReservation,
}

/// Some rows, ascending.
#[derive(Debug)]
pub(crate) struct SequencePart {
    num_words: usize,
    word_bits: u32,
    keys: Vec<u64>,
    counts: Vec<u64>,
}

impl SequenceParts {
    /// The rows of `segments`, one for each of the corpus of `vocabulary`, whose memory is `held`.
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

    /// Rows of all segments.
    pub(crate) fn num_segment_rows(&self) -> u64 {
        self.counts.iter().map(|counts| counts.len() as u64).sum()
    }

    /// Number of parts, one at least.
    pub(crate) fn num_parts(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of part `at`; behind those of the parts before.
    ///
    /// # Errors
    /// [`Error::Capacity`] where a count has more than 64 bits.
    ///
    /// # Panics
    /// When `at` is not below [`num_parts`](Self::num_parts).
    pub(crate) fn part(&self, at: usize) -> Result<SequencePart> {
        let mut entries: Vec<(u64, u64)> = Vec::new();
        for (segment_idx, range) in ranges(&self.starts, at).into_iter().enumerate() {
            let counts = &self.counts[segment_idx];
            entries.extend(range.map(|at| (self.keys.key(segment_idx, at), counts[at])));
        }
        if self.counts.len() > 1 {
            // Stable sorting takes ascending runs as they are.
            entries.sort_by_key(|&(key, _)| key);
        }
        let mut part = SequencePart {
            num_words: self.keys.num_words,
            word_bits: self.keys.word_bits,
            keys: Vec::with_capacity(entries.len()),
            counts: Vec::with_capacity(entries.len()),
        };
        for equal in entries.chunk_by(|a, b| a.0 == b.0) {
            let sum = equal.iter().try_fold(0u64, |sum, &(_, count)| sum.checked_add(count));
            let count = sum.ok_or_else(too_many_occurrences)?;
            if count >= self.min_count {
                part.keys.push(equal[0].0);
                part.counts.push(count);
            }
        }
        Ok(part)
    }
}

impl SequencePart {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// How often each occurs, 1 or more.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The words of `row` in order, as rows of the vocabulary.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
    #[inline]
    pub(crate) fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        words(self.keys[row], self.num_words, self.word_bits)
    }
}

/// The keys and counts of all segments as those of one, by rows.
fn sorted(keys: RowKeys, counts: &[Vec<u64>]) -> (RowKeys, Vec<Vec<u64>>) {
    let of_rows = &keys;
    let entries = counts.par_iter().enumerate().flat_map(|(segment_idx, counts)| {
        let places = counts.par_iter().enumerate();
        places.map(move |(at, &count)| (of_rows.key(segment_idx, at), count))
    });
    let mut entries: Vec<(u64, u64)> = entries.collect();
    entries.par_sort_unstable_by_key(|&(key, _)| key);
    let (row_keys, counts) = entries.into_par_iter().unzip();
    (keys.of_rows(row_keys), vec![counts])
}

/// Those that occur, which nearly always are all.
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
