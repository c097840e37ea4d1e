//! Keys of sequences that devices found in segments, converted to keys of the corpus, and cut into
//! slices.
//!
//! ```text
//! segment 0   a b | b c  b d | c a c b        ascending by word ids, so also by rows
//! segment 1   b a   b d | d a                 cut at the starts of slices
//! ```
//!
//! Slices begin at keys of a sample, so that all slices have about the same number of rows. If
//! words are folded, the order of rows is not the order of ids, and the keys are sorted before they
//! are cut. O(words) for the table of rows, O(log rows) for each slice and segment.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use tadoc::analytics::Vocabulary;

/// Distance between two sampled rows of a segment.
pub(super) const SAMPLED_ROWS: usize = 1024;
/// Number of sampled rows of a slice.
pub(super) const SLICE_SAMPLES: usize = 7;
/// Number of words of the vocabulary that a parallel task converts.
const TASK_WORDS: usize = 1 << 14;

/// Keys of one segment.
#[derive(Debug)]
pub(super) struct SegmentKeys {
    /// Sequences as word ids with `word_bits` bits each, the first word highest.
    pub(super) keys: Vec<u64>,
    pub(super) word_bits: u32,
}

/// The keys of all segments.
#[derive(Debug)]
pub(super) struct RowKeys {
    pub(super) num_words: usize,
    /// True if the smaller of the two words comes first.
    pub(super) are_pairs: bool,
    /// Number of bits of a word in keys of the corpus.
    pub(super) word_bits: u32,
    /// Keys of each segment, ascending by their keys of the corpus.
    pub(super) segments: Vec<SegmentKeys>,
    /// Row of the vocabulary for each word id, by segment. Empty if rows and ids are equal.
    rows: Vec<Vec<u32>>,
}

impl RowKeys {
    /// Builds the keys from those of all `segments` of the corpus of `vocabulary`.
    pub(super) fn new(vocabulary: &Vocabulary, num_words: usize, are_pairs: bool, segments: Vec<SegmentKeys>) -> Self {
        let word_bits = word_bits(vocabulary.len());
        let rows = if has_ids_as_rows(vocabulary) { Vec::new() } else { rows_by_id(vocabulary) };
        Self { num_words, are_pairs, word_bits, segments, rows }
    }

    /// Returns `self` with `keys`, which are keys of the corpus, in place of the keys of segments.
    pub(super) fn with_rows(self, keys: Vec<u64>) -> Self {
        let segments = vec![SegmentKeys { keys, word_bits: self.word_bits }];
        Self { segments, rows: Vec::new(), ..self }
    }

    /// Returns the number of keys of a segment.
    pub(super) fn len(&self, segment_idx: usize) -> usize {
        self.segments[segment_idx].keys.len()
    }

    /// Returns the key number `at` of a segment, converted to a key of the corpus.
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

    /// Returns the start of each slice in each segment, and the end of the last slice. `sampled`
    /// returns the sampled places of a segment; a slice has [`SLICE_SAMPLES`] of them.
    pub(super) fn cut(&self, sampled: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
        let segments = 0..self.segments.len();
        let sample = segments.clone().flat_map(|segment_idx| {
            let places = sampled(segment_idx).into_iter();
            places.map(move |at| self.key(segment_idx, at))
        });
        let mut sample: Vec<u64> = sample.collect();
        sample.sort_unstable();
        let mut firsts: Vec<u64> = sample.into_iter().step_by(SLICE_SAMPLES).skip(1).collect();
        firsts.dedup();
        let starts_of = |first: u64| -> Vec<usize> {
            segments.clone().map(|segment_idx| self.start_of(segment_idx, first)).collect()
        };
        let mut starts = vec![vec![0; self.segments.len()]];
        starts.extend(firsts.into_par_iter().map(starts_of).collect::<Vec<_>>());
        starts.push(segments.map(|segment_idx| self.len(segment_idx)).collect());
        starts
    }

    /// Returns the number of keys of a segment that are below `first`.
    fn start_of(&self, segment_idx: usize, first: u64) -> usize {
        let (mut start, mut end) = (0, self.len(segment_idx));
        while start < end {
            let middle = start.midpoint(end);
            if self.key(segment_idx, middle) < first { start = middle + 1 } else { end = middle }
        }
        start
    }
}

/// Returns the range of slice `at` in each segment.
pub(super) fn ranges(starts: &[Vec<usize>], at: usize) -> Vec<Range<usize>> {
    starts[at].iter().zip(&starts[at + 1]).map(|(&start, &end)| start..end).collect()
}

/// Returns the words of a key in order. The first word is in the highest bits.
#[inline]
pub(super) fn words(key: u64, num_words: usize, word_bits: u32) -> impl ExactSizeIterator<Item = u32> {
    let mask = u64::MAX >> (u64::BITS - word_bits);
    (0..num_words).rev().map(move |at| (key >> (at as u32 * word_bits) & mask) as u32)
}

/// Returns the number of bits of numbers below `len`, at least 1.
pub(super) fn word_bits(len: usize) -> u32 {
    (usize::BITS - len.saturating_sub(1).leading_zeros()).max(1)
}

/// Returns true if rows and word ids are equal: the corpus has one segment, all of whose words
/// occur and are not folded.
fn has_ids_as_rows(vocabulary: &Vocabulary) -> bool {
    match vocabulary.corpus().segments() {
        [only] => vocabulary.folded_words().is_none() && vocabulary.len() == only.dag.num_words() as usize,
        _ => false,
    }
}

/// Returns the row of each word id, by segment. Ids that do not occur get an arbitrary row.
fn rows_by_id(vocabulary: &Vocabulary) -> Vec<Vec<u32>> {
    let segments = vocabulary.corpus().segments().iter();
    let new = |num_words| (0..num_words).map(|_| AtomicU32::new(0)).collect();
    let tables: Vec<Vec<AtomicU32>> = segments.map(|segment| new(segment.dag.num_words())).collect();
    (0..vocabulary.len()).into_par_iter().with_min_len(TASK_WORDS).for_each(|row| {
        for (segment_idx, word) in vocabulary.ids(row) {
            tables[segment_idx][word as usize].store(row as u32, Ordering::Relaxed);
        }
    });
    let plain = |table: Vec<AtomicU32>| table.into_iter().map(AtomicU32::into_inner).collect();
    tables.into_iter().map(plain).collect()
}
