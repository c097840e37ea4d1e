//! Documents of sequences, by rank, that devices found in segments, as rows of the corpus, slice by
//! slice.
//!
//! ```text
//! segment 0   a b: 3 in 7, 1 in 2          documents 0 to 9   ┐
//! segment 1   a b: 2 in 0    (document 10)                    ┴─▶ a b: 3 in 7, 2 in 10, 1 in 2
//! ```
//!
//! The partitions that send slices also make them, as for
//! [`SequenceTable`](crate::planning::answers::sequence_table::SequenceTable). All slices have about the
//! same number of rows, and all rows of a sequence are in one slice. Words must not be folded.
//! O(rows), and the time to sort the documents of a sequence of several segments. The function that
//! gives the same rows at once is
//! [`RankedInvertedIndex::from_segments`](tadoc::analytics::RankedInvertedIndex::from_segments).

use std::cmp::Reverse;

use datafusion::execution::memory_pool::MemoryReservation;
use rayon::prelude::*;

use tadoc::analytics::{DocSelection, SegmentRanked, Vocabulary};
use tadoc::error::{Error, Result};

use crate::planning::answers::{RowKeys, SAMPLED_ROWS, SegmentKeys, ranges, words};

/// The rows of all segments.
#[derive(Debug)]
pub(crate) struct RankedTable {
    keys: RowKeys,
    segments: Vec<Entries>,
    /// For each document, true if it is asked for. Empty if all documents are asked for.
    is_wanted: Vec<bool>,
    /// Start of each slice in each segment, and the end of the last slice.
    starts: Vec<Vec<usize>>,
    /// Reservation of the memory of the rows.
    _held: MemoryReservation,
}

/// Documents of the sequences of a segment.
#[derive(Debug)]
struct Entries {
    first_doc_id: u64,
    starts: Vec<u32>,
    docs: Vec<u32>,
    counts: Vec<u64>,
}

/// The rows of one slice, ascending by sequence and rank.
#[derive(Debug)]
pub(crate) struct RankedSlice {
    num_words: usize,
    word_bits: u32,
    /// Key of the sequence of each row.
    keys: Vec<u64>,
    doc_ids: Vec<u64>,
    counts: Vec<u64>,
    ranks: Vec<u64>,
}

impl RankedTable {
    /// Builds the rows of sequences of `n` words in `docs` from the rows of all `segments` of the
    /// corpus of `vocabulary`, whose words are not folded. `held` is the reservation of their
    /// memory.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the arrays of a segment do not fit together.
    pub(super) fn new(
        vocabulary: &Vocabulary,
        docs: &DocSelection,
        n: usize,
        segments: Vec<SegmentRanked>,
        held: MemoryReservation,
    ) -> Result<Self> {
        let corpus = vocabulary.corpus();
        segments.par_iter().try_for_each(check_shape)?;
        let split = segments.into_iter().enumerate().map(|(at, segment)| {
            let SegmentRanked { keys, starts, docs, counts, word_bits } = segment;
            let first_doc_id = corpus.first_doc_id(at);
            (SegmentKeys { keys, word_bits }, Entries { first_doc_id, starts, docs, counts })
        });
        let (keys, segments): (Vec<_>, Vec<Entries>) = split.unzip();
        let keys = RowKeys::new(vocabulary, n, false, keys);
        let mut is_wanted = Vec::new();
        let docs = docs.within(0..corpus.num_docs());
        if (docs.len() as u64) < corpus.num_docs() {
            is_wanted.resize(corpus.num_docs() as usize, false);
            docs.iter().for_each(|doc_id| is_wanted[doc_id as usize] = true);
        }
        let starts = keys.cut(|at| segments[at].sampled());
        Ok(Self { keys, segments, is_wanted, starts, _held: held })
    }

    /// Returns the number of slices, at least 1.
    pub(crate) fn num_slices(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the rows of slice `at`. They follow those of the slice before.
    ///
    /// # Panics
    /// Panics if `at` is not below [`num_slices`](Self::num_slices).
    pub(crate) fn slice(&self, at: usize) -> RankedSlice {
        let mut sequences: Vec<(u64, usize, usize)> = Vec::new();
        for (segment_idx, range) in ranges(&self.starts, at).into_iter().enumerate() {
            sequences.extend(range.map(|at| (self.keys.key(segment_idx, at), segment_idx, at)));
        }
        if self.segments.len() > 1 {
            // The stable sort merges ascending runs.
            sequences.sort_by_key(|&(key, ..)| key);
        }
        let num_rows = sequences.iter().map(|&(_, segment_idx, at)| {
            let starts = &self.segments[segment_idx].starts;
            (starts[at + 1] - starts[at]) as usize
        });
        let num_rows = num_rows.sum();
        let new = || Vec::with_capacity(num_rows);
        let mut slice = RankedSlice {
            num_words: self.keys.num_words,
            word_bits: self.keys.word_bits,
            keys: new(),
            doc_ids: new(),
            counts: new(),
            ranks: new(),
        };
        let mut found = Vec::new();
        for equal in sequences.chunk_by(|a, b| a.0 == b.0) {
            found.clear();
            for &(_, segment_idx, at) in equal {
                self.segments[segment_idx].append(at, &self.is_wanted, &mut found);
            }
            if equal.len() > 1 {
                found.sort_unstable_by_key(|&(doc_id, count)| (Reverse(count), doc_id));
            }
            slice.keys.resize(slice.keys.len() + found.len(), equal[0].0);
            slice.doc_ids.extend(found.iter().map(|&(doc_id, _)| doc_id));
            slice.counts.extend(found.iter().map(|&(_, count)| count));
            slice.ranks.extend(1..=found.len() as u64);
        }
        slice
    }
}

impl Entries {
    /// Returns the sequences of every [`SAMPLED_ROWS`]th row, without duplicates.
    fn sampled(&self) -> Vec<usize> {
        let rows = (0..self.docs.len()).step_by(SAMPLED_ROWS);
        let sequence = |row: usize| self.starts.partition_point(|&start| start as usize <= row) - 1;
        let mut sequences: Vec<usize> = rows.map(sequence).collect();
        sequences.dedup();
        sequences
    }

    /// Appends those documents of sequence `at` that are asked for, with their counts.
    fn append(&self, at: usize, is_wanted: &[bool], found: &mut Vec<(u64, u64)>) {
        let range = self.starts[at] as usize..self.starts[at + 1] as usize;
        let rows = self.docs[range.clone()].iter().zip(&self.counts[range]);
        let rows = rows.map(|(&doc, &count)| (self.first_doc_id + u64::from(doc), count));
        match is_wanted {
            [] => found.extend(rows),
            _ => found.extend(rows.filter(|&(doc_id, _)| is_wanted[doc_id as usize])),
        }
    }
}

impl RankedSlice {
    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the words of the sequence of `row` in order, as rows of the vocabulary.
    ///
    /// # Panics
    /// Panics if `row` is not below [`len`](Self::len).
    #[inline]
    pub(crate) fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        words(self.keys[row], self.num_words, self.word_bits)
    }

    /// Returns the document of each row.
    pub(crate) fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// Returns, for each row, the number of occurrences of the sequence in the document.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the rank of each row among the documents of its sequence. The first rank is 1.
    pub(crate) fn ranks(&self) -> &[u64] {
        &self.ranks
    }
}

/// Checks that the arrays of a segment fit together: one range of documents for each sequence,
/// without gaps.
fn check_shape(segment: &SegmentRanked) -> Result<()> {
    let SegmentRanked { keys, starts, docs, counts, .. } = segment;
    let ends = (starts.first().copied(), starts.last().map(|&end| end as usize));
    let is_right = starts.len() == keys.len() + 1
        && starts.is_sorted()
        && ends == (Some(0), Some(docs.len()))
        && counts.len() == docs.len();
    if is_right {
        return Ok(());
    }
    Err(Error::InvalidArgument {
        name: "documents of sequences",
        got: format!("{} starts, {} documents of {}", starts.len(), docs.len(), keys.len()),
        allowed: "a matrix for each segment".to_owned(),
    })
}

#[cfg(test)]
mod tests;
