//! Sequences of the documents of single segments, which were counted elsewhere (on a device).
//!
//! ```text
//! keys       a b | b a | b c          distinct sequences of the segment, ascending
//! sequences  0 2 | 1 | | 0 1 2        numbers of sequences, by document
//! counts     1 1 | 2 | | 1 1 3
//! ```
//!
//! This is a sparse matrix by rows. Its shape is checked, O(entries), and the data is then used as it is. Keys become
//! keys of the vocabulary once, O(distinct sequences). With folded words, several sequences of a document may become
//! equal; they are sorted and joined where a document is read. Documents are whole in their segments, because windows
//! across a cut belong to no segment. The meaning of the numbers is not checked. Source: ours.

use rayon::prelude::*;

use crate::analytics::Vocabulary;
use crate::analytics::vocabulary::WordRows;
use crate::error::{Canceller, Error, Result};
use crate::ids::DocId;

use super::Counted;
use super::count::row_key;
use super::key::Packing;

/// Number of keys of a parallel task.
const TASK_KEYS: usize = 1 << 16;

/// Sequences of each document of a segment, with their counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentDocumentSequences {
    /// Distinct sequences as word ids with [`word_bits`](Self::word_bits) bits each, the first word highest; ascending.
    pub keys: Vec<u64>,
    /// Number of bits of a word.
    pub word_bits: u32,
    /// Start of the entries of each document, and the end of the last.
    pub offsets: Vec<u32>,
    /// Numbers of sequences, ascending inside a document.
    pub sequences: Vec<u32>,
    /// Number of occurrences of each sequence in its document, 1 or more.
    pub counts: Vec<u32>,
}

/// The sequences of the documents of all segments, as sequences of a vocabulary.
#[derive(Debug)]
pub(super) struct CountedDocuments {
    /// The keys of each part are those of the vocabulary.
    parts: Vec<SegmentDocumentSequences>,
    /// True if keys ascend, which they need not if words are folded.
    are_ascending: bool,
}

impl CountedDocuments {
    /// Converts the keys of `parts`, one for each segment and in the right shape, to keys of `vocabulary`.
    pub fn new(
        vocabulary: &Vocabulary,
        packing: Packing,
        mut parts: Vec<SegmentDocumentSequences>,
        canceller: Canceller<'_>,
    ) -> Result<Self> {
        let rows = WordRows::new(vocabulary);
        for (segment_idx, part) in parts.iter_mut().enumerate() {
            let rows = rows.for_segment(segment_idx);
            let word_bits = part.word_bits;
            part.keys.par_chunks_mut(TASK_KEYS).try_for_each(|keys| {
                canceller.check()?;
                keys.iter_mut().for_each(|key| *key = row_key(*key, word_bits, rows, packing));
                Ok::<_, Error>(())
            })?;
        }
        Ok(Self { parts, are_ascending: vocabulary.folded_words().is_none() })
    }

    /// Appends the sequences of document `doc` of a segment to `counted`, ascending.
    pub fn append(&self, segment_idx: usize, doc: DocId, counted: &mut Counted) {
        let part = &self.parts[segment_idx];
        let entries = part.offsets[doc.index()] as usize..part.offsets[doc.index() + 1] as usize;
        let keys = part.sequences[entries.clone()].iter().map(|&sequence| part.keys[sequence as usize]);
        let counts = part.counts[entries].iter().map(|&count| u64::from(count));
        if self.are_ascending {
            counted.keys.extend(keys);
            counted.counts.extend(counts);
            return;
        }
        let mut joined: Vec<(u64, u64)> = keys.zip(counts).collect();
        joined.sort_unstable();
        for same in joined.chunk_by(|a, b| a.0 == b.0) {
            counted.keys.push(same[0].0);
            // A document has fewer than 2^64 windows, so a sum of their counts fits 64 bits.
            counted.counts.push(same.iter().map(|(_, count)| count).sum());
        }
    }

    /// Returns the memory of the entries in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.parts.iter().map(SegmentDocumentSequences::memory_bytes).sum()
    }
}

impl SegmentDocumentSequences {
    fn memory_bytes(&self) -> usize {
        8 * self.keys.capacity() + 4 * (self.offsets.capacity() + self.sequences.capacity() + self.counts.capacity())
    }

    /// Returns true if this is a matrix of `num_docs` documents.
    fn has_shape(&self, num_docs: usize) -> bool {
        let ends = (self.offsets.first().copied(), self.offsets.last().map(|&end| end as usize));
        self.offsets.len() == num_docs + 1
            && self.offsets.is_sorted()
            && ends == (Some(0), Some(self.sequences.len()))
            && self.counts.len() == self.sequences.len()
            && self.sequences.par_iter().max().is_none_or(|&sequence| (sequence as usize) < self.keys.len())
    }
}

/// Returns the error in the shape of the first misshapen part, if there is one. The number of parts is not checked.
pub(super) fn misshapen(vocabulary: &Vocabulary, parts: &[SegmentDocumentSequences]) -> Option<String> {
    let segments = vocabulary.corpus().segments();
    let num_docs = segments.iter().map(|segment| segment.dag.grammar().num_docs());
    let at = parts.iter().zip(num_docs).position(|(part, num_docs)| !part.has_shape(num_docs))?;
    Some(format!("a part of segment {at} that is no matrix of its documents"))
}
