//! Keys of sequences that devices found in segments, as keys of the corpus's rows, and where parts begin.
//!
//! ```text
//! segment 0   a b | b c  b d | c a c b        ascending by the words' ids, so by the corpus's rows too
//! segment 1   b a   b d | d a                 cut where parts begin
//! ```
//!
//! Parts begin at keys of a sample, so that each has about as many rows. Where words are folded, rows do not
//! ascend with ids: such keys are sorted before they are cut. O(words) for the table of rows, O(log rows) for
//! each part and segment.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use tadoc::analytics::Vocabulary;

/// One row of a segment in so many is looked at to cut parts, which have so many of them.
pub(super) const SAMPLED_ROWS: usize = 1024;
pub(super) const PART_SAMPLES: usize = 7;
/// Words of the vocabulary that a core looks at, at a time.
const TASK_WORDS: usize = 1 << 14;

/// Keys of one segment.
#[derive(Debug)]
pub(super) struct SegmentKeys {
    /// The words of each by id, `word_bits` each, the first one highest.
    pub(super) keys: Vec<u64>,
    pub(super) word_bits: u32,
}

/// The keys of all segments.
#[derive(Debug)]
pub(super) struct RowKeys {
    pub(super) num_words: usize,
    /// Whether the smaller of two words stands first.
    pub(super) are_pairs: bool,
    /// Bits of a word in keys of rows.
    pub(super) word_bits: u32,
    /// Ascending by rows.
    pub(super) segments: Vec<SegmentKeys>,
    /// Rows by word id of each segment; none where they are equal.
    rows: Vec<Vec<u32>>,
}

impl RowKeys {
    /// Those of `segments`, one for each of the corpus of `vocabulary`.
    pub(super) fn new(
        vocabulary: &Vocabulary,
        num_words: usize,
        are_pairs: bool,
        segments: Vec<SegmentKeys>,
    ) -> Self {
        let word_bits = word_bits(vocabulary.len());
        let rows = if has_ids_as_rows(vocabulary) { Vec::new() } else { rows_by_id(vocabulary) };
        Self { num_words, are_pairs, word_bits, segments, rows }
    }

    /// The same with `keys`, which are those of rows, instead of all segments'.
    pub(super) fn of_rows(self, keys: Vec<u64>) -> Self {
        let segments = vec![SegmentKeys { keys, word_bits: self.word_bits }];
        Self { segments, rows: Vec::new(), ..self }
    }

    /// Number of keys of a segment.
    pub(super) fn len(&self, segment_idx: usize) -> usize {
        self.segments[segment_idx].keys.len()
    }

    /// The key by rows of place `at` of a segment.
    #[inline]
    pub(super) fn key(&self, segment_idx: usize, at: usize) -> u64 {
        let segment = &self.segments[segment_idx];
        let key = segment.keys[at];
        let Some(rows) = self.rows.get(segment_idx) else { return key };
        let mut ids = words(key, self.num_words, segment.word_bits);
        if self.are_pairs
            && let (Some(first), Some(second)) = (ids.next(), ids.next())
        {
            let (first, second) = (rows[first as usize], rows[second as usize]);
            return u64::from(first.min(second)) << self.word_bits | u64::from(first.max(second));
        }
        ids.fold(0, |key, id| key << self.word_bits | u64::from(rows[id as usize]))
    }

    /// For each part where it begins in each segment, and where the last one ends: a part has
    /// [`PART_SAMPLES`] of the places `sampled`.
    pub(super) fn cut(&self, sampled: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
        let segments = 0..self.segments.len();
        let sample = segments.clone().flat_map(|segment_idx| {
            let places = sampled(segment_idx).into_iter();
            places.map(move |at| self.key(segment_idx, at))
        });
        let mut sample: Vec<u64> = sample.collect();
        sample.sort_unstable();
        let mut firsts: Vec<u64> = sample.into_iter().step_by(PART_SAMPLES).skip(1).collect();
        firsts.dedup();
        let starts_of = |first: u64| -> Vec<usize> {
            segments.clone().map(|segment_idx| self.start_of(segment_idx, first)).collect()
        };
        let mut starts = vec![vec![0; self.segments.len()]];
        starts.extend(firsts.into_par_iter().map(starts_of).collect::<Vec<_>>());
        starts.push(segments.map(|segment_idx| self.len(segment_idx)).collect());
        starts
    }

    /// How many keys of a segment come before `first`.
    fn start_of(&self, segment_idx: usize, first: u64) -> usize {
        let (mut start, mut end) = (0, self.len(segment_idx));
        while start < end {
            let middle = start.midpoint(end);
            match self.key(segment_idx, middle) < first {
                true => start = middle + 1,
                false => end = middle,
            }
        }
        start
    }
}

/// The places of part `at` in each segment.
pub(super) fn ranges(starts: &[Vec<usize>], at: usize) -> Vec<Range<usize>> {
    starts[at].iter().zip(&starts[at + 1]).map(|(&start, &end)| start..end).collect()
}

/// The words of a key, the first one in its highest bits.
#[inline]
pub(super) fn words(
    key: u64,
    num_words: usize,
    word_bits: u32,
) -> impl ExactSizeIterator<Item = u32> {
    let mask = u64::MAX >> (u64::BITS - word_bits);
    (0..num_words).rev().map(move |at| (key >> (at as u32 * word_bits) & mask) as u32)
}

/// Bits of numbers below `len`, 1 at least.
pub(super) fn word_bits(len: usize) -> u32 {
    (usize::BITS - len.saturating_sub(1).leading_zeros()).max(1)
}

/// Whether rows are the word ids of the only segment, all of which occur.
fn has_ids_as_rows(vocabulary: &Vocabulary) -> bool {
    match vocabulary.corpus().segments() {
        [only] => {
            vocabulary.folded_words().is_none() && vocabulary.len() == only.dag.num_words() as usize
        }
        _ => false,
    }
}

/// For each segment the row of each word id; of ids that occur nowhere any.
fn rows_by_id(vocabulary: &Vocabulary) -> Vec<Vec<u32>> {
    let segments = vocabulary.corpus().segments().iter();
    let new = |num_words| (0..num_words).map(|_| AtomicU32::new(0)).collect();
    let tables: Vec<Vec<AtomicU32>> =
        segments.map(|segment| new(segment.dag.num_words())).collect();
    (0..vocabulary.len()).into_par_iter().with_min_len(TASK_WORDS).for_each(|row| {
        for (segment_idx, word) in vocabulary.ids(row) {
            tables[segment_idx][word as usize].store(row as u32, Ordering::Relaxed);
        }
    });
    let plain = |table: Vec<AtomicU32>| table.into_iter().map(AtomicU32::into_inner).collect();
    tables.into_iter().map(plain).collect()
}
