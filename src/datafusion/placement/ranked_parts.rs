//! Documents of sequences by rank that devices found in segments, as rows of the corpus, part by part.
//!
//! ```text
//! segment 0   a b: 3 in 7, 1 in 2          documents 0 to 9   ┐
//! segment 1   a b: 2 in 0    (document 10)                    ┴─▶ a b: 3 in 7, 2 in 10, 1 in 2
//! ```
//!
//! As [`SequenceParts`](crate::placement::sequence_parts::SequenceParts): parts are made by whoever sends them, and a
//! part has about as many rows as another, but all of a sequence. Not where words are folded. O(rows) and what
//! ranking those of several segments takes. What gives the same rows at once:
//! [`RankedInvertedIndex::of_segments`](tadoc::analytics::RankedInvertedIndex::of_segments).

use std::cmp::Reverse;

use datafusion::execution::memory_pool::MemoryReservation;
use rayon::prelude::*;

use tadoc::analytics::{DocSelection, SegmentRanked, Vocabulary};
use tadoc::error::{Error, Result};

use crate::placement::row_keys::{RowKeys, SAMPLED_ROWS, SegmentKeys, ranges, words};

/// The rows of all segments.
#[derive(Debug)]
pub(crate) struct RankedParts {
    keys: RowKeys,
    segments: Vec<Entries>,
    /// For each document whether it is asked for; none where all are.
    is_wanted: Vec<bool>,
    /// For each part where it begins in each segment, and where the last one ends.
    starts: Vec<Vec<usize>>,
    /// Memory of the rows.
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

/// Some rows, ascending by sequence and rank.
#[derive(Debug)]
pub(crate) struct RankedPart {
    num_words: usize,
    word_bits: u32,
    /// By row.
    keys: Vec<u64>,
    doc_ids: Vec<u64>,
    counts: Vec<u64>,
    ranks: Vec<u64>,
}

impl RankedParts {
    /// The rows of `segments`, one for each of the corpus of `vocabulary`, whose words are not folded, of
    /// sequences of `n` words in `docs`; their memory is `held`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where a segment is no matrix.
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

    /// Number of parts, one at least.
    pub(crate) fn num_parts(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of part `at`; behind those of the parts before.
    ///
    /// # Panics
    /// When `at` is not below [`num_parts`](Self::num_parts).
    pub(crate) fn part(&self, at: usize) -> RankedPart {
        let mut sequences: Vec<(u64, usize, usize)> = Vec::new();
        for (segment_idx, range) in ranges(&self.starts, at).into_iter().enumerate() {
            sequences.extend(range.map(|at| (self.keys.key(segment_idx, at), segment_idx, at)));
        }
        if self.segments.len() > 1 {
            // Stable sorting takes ascending runs as they are.
            sequences.sort_by_key(|&(key, ..)| key);
        }
        let num_rows = sequences.iter().map(|&(_, segment_idx, at)| {
            let starts = &self.segments[segment_idx].starts;
            (starts[at + 1] - starts[at]) as usize
        });
        let num_rows = num_rows.sum();
        let new = || Vec::with_capacity(num_rows);
        let mut part = RankedPart {
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
            part.keys.resize(part.keys.len() + found.len(), equal[0].0);
            part.doc_ids.extend(found.iter().map(|&(doc_id, _)| doc_id));
            part.counts.extend(found.iter().map(|&(_, count)| count));
            part.ranks.extend(1..=found.len() as u64);
        }
        part
    }
}

impl Entries {
    /// Sequences that have one row in so many, each once.
    fn sampled(&self) -> Vec<usize> {
        let rows = (0..self.docs.len()).step_by(SAMPLED_ROWS);
        let sequence = |row: usize| self.starts.partition_point(|&start| start as usize <= row) - 1;
        let mut sequences: Vec<usize> = rows.map(sequence).collect();
        sequences.dedup();
        sequences
    }

    /// Appends the documents of sequence `at` that are wanted, with counts.
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

impl RankedPart {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The words of the sequence of `row` in order, as rows of the vocabulary.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
    #[inline]
    pub(crate) fn words(&self, row: usize) -> impl ExactSizeIterator<Item = u32> + '_ {
        words(self.keys[row], self.num_words, self.word_bits)
    }

    /// The document of each row.
    pub(crate) fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// How often it holds the sequence.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Which it is among the documents of the sequence, from 1 on.
    pub(crate) fn ranks(&self) -> &[u64] {
        &self.ranks
    }
}

/// That the documents of each sequence follow one another.
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
