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

use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::vocabulary::WordRows;
use crate::analytics::{TaskLimits, Traversal, Vocabulary};
use crate::error::{Canceller, Error, Result};
use crate::ids::DocId;
use crate::segment::Corpus;

use super::Counted;
use super::by_document::DocumentSequences;
use super::count::{check_parts, refused_words, row_key};
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
    fn new(
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

    /// Counts a segment of `corpus` on the cores, in the form of a device's answer.
    ///
    /// Answers of devices are compared with it. It takes up to 1 GiB of memory.
    ///
    /// # Errors
    /// The errors of [`DocumentSequences::new`] and [`DocumentSequences::chunk`].
    pub fn from_segment(corpus: &Corpus, segment_idx: usize, n: usize) -> Result<Self> {
        let segment = corpus.segments()[segment_idx].clone();
        let word_bits = Packing::new(n, segment.dag.num_words() as usize).word_bits();
        let alone = Corpus::new(corpus.profile(), vec![segment]);
        let vocabulary = Arc::new(Vocabulary::new(&alone)?);
        let docs: Vec<u64> = (0..alone.num_docs()).collect();
        let way = Traversal::TokenScan;
        let counted = DocumentSequences::new(Arc::clone(&vocabulary), n, way, 1 << 30)?.chunk(&docs)?;
        // The only segment has an id for each word of its own vocabulary.
        let id = |row: u32| vocabulary.ids(row as usize).next().map_or(0, |(_, id)| u64::from(id));
        let key = |row| counted.sequences().words(row).fold(0, |key, at| key << word_bits | id(at));
        let rows: Vec<u64> = (0..counted.counts().len()).map(key).collect();
        let mut keys = rows.clone();
        keys.sort_unstable();
        keys.dedup();
        let number = |key: &u64| keys.partition_point(|other| other < key) as u32;
        let ends = (0..docs.len()).map(|at| counted.rows_of(at).end as u32);
        Ok(Self {
            word_bits,
            offsets: std::iter::once(0).chain(ends).collect(),
            sequences: rows.iter().map(number).collect(),
            counts: counted.counts().iter().map(|&count| count as u32).collect(),
            keys,
        })
    }
}

impl<'a> DocumentSequences<'a> {
    /// Returns the reason why [`from_segments`](Self::from_segments) cannot use the sequences of segments, or `None` if
    /// it can.
    pub fn segments_refused(vocabulary: &Vocabulary, n: usize) -> Option<String> {
        refused_words(vocabulary, n, 1)
    }

    /// Creates a counter of the documents of `vocabulary` that counts nothing: `parts` have the sequences of all
    /// documents of each segment.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the sequences [cannot be used](Self::segments_refused) or there is not one part of
    /// the right shape for each segment, and [`Error::Cancelled`].
    pub fn from_segments(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        parts: Vec<SegmentDocumentSequences>,
        limits: impl Into<TaskLimits<'a>>,
    ) -> Result<Self> {
        let limits = limits.into();
        let segments = vocabulary.corpus().segments();
        let num_docs = segments.iter().map(|segment| segment.dag.grammar().num_docs());
        let misshapen = parts.iter().zip(num_docs).position(|(part, num_docs)| !part.has_shape(num_docs));
        let misshapen = misshapen.map(|at| format!("a part of segment {at} that is no matrix of its documents"));
        let refused = Self::segments_refused(&vocabulary, n).or(misshapen);
        check_parts(&vocabulary, parts.len(), refused)?;
        let packing = Packing::new(n, vocabulary.len());
        let counted = CountedDocuments::new(&vocabulary, packing, parts, limits.canceller())?;
        Ok(Self::with_counted(vocabulary, packing, counted, limits))
    }
}

#[cfg(test)]
mod tests {
    use crate::analytics::{DocumentSequenceCounts, Fold};
    use crate::build::corpus_from_texts;

    use super::*;

    fn documents() -> Vec<String> {
        let word = |at: usize| ["be", "To", "or", "not", "to", "Be", "an"][at * at % 31 % 7];
        let text = |doc: usize| (0..doc * 7 % 40).map(|at| word(at + doc * 3)).collect::<Vec<_>>();
        (0..90).map(|doc| text(doc).join(" ")).collect()
    }

    fn parts(corpus: &Corpus, n: usize) -> Vec<SegmentDocumentSequences> {
        (0..corpus.segments().len()).map(|at| SegmentDocumentSequences::from_segment(corpus, at, n).unwrap()).collect()
    }

    /// Returns the rows of each document, as words and counts.
    fn rows(counts: &DocumentSequenceCounts) -> Vec<Vec<(Vec<u32>, u64)>> {
        let row = |row: usize| (counts.sequences().words(row).collect(), counts.counts()[row]);
        (0..counts.doc_ids().len()).map(|at| counts.rows_of(at).map(row).collect()).collect()
    }

    #[test]
    fn sequences_of_segments_are_those_of_the_corpus() {
        for block_bytes in [1 << 20, 700, 300] {
            let corpus = corpus_from_texts(block_bytes, &documents());
            assert_eq!(corpus.segments().len() == 1, block_bytes == 1 << 20);
            let all: Vec<u64> = (0..corpus.num_docs()).collect();
            for (n, fold) in [(1, Fold::NONE), (2, Fold::CASE), (3, Fold::NONE), (1, Fold::CASE)] {
                let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap().folded(&fold).unwrap());
                let words = Arc::clone(&vocabulary);
                let got = DocumentSequences::from_segments(words, n, parts(&corpus, n), 1 << 30).unwrap();
                assert_eq!(got.traversal(), Traversal::TokenScan);
                assert!(got.memory_bytes() > 0);
                for docs in [&all[..], &[40, 0, 89, 3], &[]] {
                    let words = Arc::clone(&vocabulary);
                    let expected = DocumentSequences::new(words, n, Traversal::TopDown, 1 << 30).unwrap();
                    let expected = expected.chunk(docs).unwrap();
                    assert_eq!(rows(&got.chunk(docs).unwrap()), rows(&expected), "{n}, {fold:?}");
                }
                assert!(matches!(got.chunk(&[90]), Err(Error::OutOfRange { got: 90, .. })));
            }
        }
    }

    #[test]
    fn what_is_misshapen_is_refused() {
        let corpus = corpus_from_texts(300, &documents());
        let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
        let with = |n, parts| DocumentSequences::from_segments(Arc::clone(&vocabulary), n, parts, 0);
        assert!(with(3, Vec::new()).is_err());
        let refused = with(22, parts(&corpus, 2)).unwrap_err();
        assert!(refused.to_string().contains("64 bits"), "{refused}");
        let changes: [fn(&mut SegmentDocumentSequences); 6] = [
            |part| part.offsets[0] = 1,
            |part| part.offsets.truncate(1),
            |part| part.offsets.reverse(),
            |part| part.sequences[0] = 1 << 20,
            |part| part.counts.truncate(1),
            |part| part.keys.truncate(1),
        ];
        for change in changes {
            let mut wrong = parts(&corpus, 3);
            change(&mut wrong[1]);
            let got = with(3, wrong).unwrap_err();
            assert!(got.to_string().contains("a part of segment 1"), "{got}");
        }
        assert!(with(3, parts(&corpus, 3)).is_ok());
        let cut = Vocabulary::new(&corpus_from_texts(300, &["one two three ".repeat(100)])).unwrap();
        let refused = DocumentSequences::segments_refused(&cut, 3).unwrap();
        assert_eq!(refused, "a document goes on in another segment");
    }
}
