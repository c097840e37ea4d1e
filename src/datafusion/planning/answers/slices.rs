//! Counts of sequences and documents by rank that devices found in segments, as rows of the corpus, slice by slice.
//!
//! ```text
//! segment 0   b c  b d        slice 1 of both        a b: 3 in 7, 1 in 2          documents 0 to 9   ┐
//! segment 1   b a   b d                              a b: 2 in 0    (document 10)                    ┴─▶
//! slice 1     b a  b c  b d   counts are added up    a b: 3 in 7, 2 in 10, 1 in 2
//! ```
//!
//! The partitions that send slices also make them, several at a time. So only the rows from the devices are in memory
//! all at once. All slices have about the same number of rows, and all rows of a sequence are in one slice. Words of
//! ranked rows must not be folded. Counts take O(rows * log segments), ranks O(rows) and the time to sort the documents
//! of a sequence of several segments. The functions that give the same rows at once are
//! [`SequenceCounts::from_segments`](tadoc::analytics::SequenceCounts::from_segments) and
//! [`RankedInvertedIndex::from_segments`](tadoc::analytics::RankedInvertedIndex::from_segments).

use std::cmp::Reverse;

use datafusion::execution::memory_pool::MemoryReservation;
use rayon::prelude::*;

use crate::planning::answers::{RowKeys, SAMPLED_ROWS, SegmentKeys, ranges, words};
use tadoc::analytics::{DocSelection, SegmentRanked, SegmentSequences, Vocabulary, too_many_occurrences};
use tadoc::error::{Error, Result};

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
    let segment_keys = &keys;
    let entries = counts.par_iter().enumerate().flat_map(|(segment_idx, counts)| {
        let places = counts.par_iter().enumerate();
        places.map(move |(at, &count)| (segment_keys.key(segment_idx, at), count))
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
mod tests {
    use std::sync::Arc;

    use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, UnboundedMemoryPool};
    use testkit::corpus_of_texts;

    use super::*;
    use crate::planning::answers::{SLICE_SAMPLES, word_bits};
    use tadoc::analytics::{Cooccurrences, Fold, RankedInvertedIndex, SequenceCounts, Sequences, Traversal};
    use tadoc::segment::Corpus;

    /// Returns documents of words of two letters, some of them capital. Hardly any sequence of three
    /// words occurs twice.
    fn documents(num_docs: usize) -> Vec<String> {
        let mut state = 7u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let letter = |bits: u32, first: u8| char::from(first + (state >> bits) as u8 % 9);
            let first = if state >> 60 == 0 { b'A' } else { b'a' };
            format!("{}{}", letter(33, first), letter(45, b'a'))
        };
        let text = |_| (0..60).map(|_| word()).collect::<Vec<_>>().join(" ");
        (0..num_docs).map(text).collect()
    }

    fn held() -> MemoryReservation {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        MemoryConsumer::new("test").register(&pool)
    }

    /// Returns the sequences or pairs of `words` with their counts, as the cores count them.
    fn counted(words: Arc<Vocabulary>, counted: Counted) -> (Sequences, Vec<u64>) {
        let n = counted.num_words;
        let way = Traversal::TopDown;
        if counted.are_pairs {
            let found = Cooccurrences::with_vocabulary(words, 4, counted.min_count, way, 1 << 30);
            let found = found.unwrap();
            return (found.pairs().clone(), found.counts().to_vec());
        }
        let found = SequenceCounts::with_vocabulary(words, n, way, 1 << 30).unwrap();
        (found.sequences().clone(), found.counts().to_vec())
    }

    /// Returns the rows that a device gives for a segment: its own counts, by word id.
    fn from_segment(corpus: &Corpus, segment_idx: usize, what: Counted) -> SegmentSequences {
        let segment = corpus.segments()[segment_idx].clone();
        let word_bits = word_bits(segment.dag.num_words() as usize);
        let alone = Corpus::new(corpus.profile(), vec![segment]);
        let vocabulary = Arc::new(Vocabulary::new(&alone).unwrap());
        let (sequences, counts) = counted(vocabulary.clone(), Counted { min_count: 1, ..what });
        let id = |row: u32| u64::from(vocabulary.ids(row as usize).next().unwrap().1);
        let key = |row| sequences.words(row).fold(0, |key, at| key << word_bits | id(at));
        SegmentSequences { keys: (0..sequences.len()).map(key).collect(), counts, word_bits }
    }

    #[test]
    fn parts_are_the_rows_of_the_cores() {
        let texts = documents(500);
        let sequences = |num_words| Counted { num_words, min_count: 1, are_pairs: false };
        let pairs = |min_count| Counted { num_words: 2, min_count, are_pairs: true };
        for (block_bytes, fold) in
            [(1 << 20, Fold::NONE), (1 << 20, Fold::CASE), (30_000, Fold::NONE), (30_000, Fold::CASE)]
        {
            let corpus = corpus_of_texts(block_bytes, &texts);
            assert_eq!(corpus.segments().len() > 1, block_bytes < 1 << 20);
            let plain = Vocabulary::new(&corpus).unwrap();
            let vocabulary = Arc::new(plain.folded(&fold).unwrap());
            for what in [sequences(2), sequences(3), sequences(8), pairs(1), pairs(9)] {
                let segments = 0..corpus.segments().len();
                let segments: Vec<_> = segments.map(|at| from_segment(&corpus, at, what)).collect();
                let table = SequenceTable::new(&vocabulary, what, segments, held());
                assert!(table.num_slices() > 1 || what.num_words == 2, "{what:?}");
                let (sequences, counts) = counted(vocabulary.clone(), what);
                let mut row = 0;
                for slice in (0..table.num_slices()).map(|at| table.slice(at).unwrap()) {
                    assert!(slice.len() <= SAMPLED_ROWS * (SLICE_SAMPLES + 1 + corpus.segments().len()));
                    for at in 0..slice.len() {
                        assert!(slice.words(at).eq(sequences.words(row)), "{what:?}, row {row}");
                        assert_eq!(slice.counts()[at], counts[row], "{what:?}, row {row}");
                        row += 1;
                    }
                }
                assert_eq!(row, counts.len(), "{what:?}");
            }
        }
    }

    #[test]
    fn what_occurs_nowhere_is_left_out_and_counts_are_64_bits() {
        let corpus = corpus_of_texts(1 << 20, &documents(40));
        let vocabulary = Vocabulary::new(&corpus).unwrap();
        let what = Counted { num_words: 2, min_count: 1, are_pairs: false };
        let slices = |count| {
            let mut segment = from_segment(&corpus, 0, what);
            let num_rows = segment.keys.len();
            segment.counts[1] = count;
            (num_rows, SequenceTable::new(&vocabulary, what, vec![segment], held()).slice(0).unwrap())
        };
        let (num_rows, slice) = slices(0);
        assert_eq!(slice.len(), num_rows - 1);
        assert_eq!(slices(u64::MAX).1.counts()[1], u64::MAX);
        // Folded words may turn two rows into one.
        let one = corpus_of_one_word();
        let folded = Vocabulary::new(&one).unwrap().folded(&Fold::CASE).unwrap();
        let mut segment = from_segment(&one, 0, what);
        segment.counts.fill(u64::MAX);
        let table = SequenceTable::new(&folded, what, vec![segment], held());
        assert!(table.slice(0).is_err());
    }

    fn corpus_of_one_word() -> Corpus {
        corpus_of_texts(1 << 20, &["So so SO sO so".to_owned()])
    }

    #[test]
    fn nothing_is_one_part_without_rows() {
        let corpus = corpus_of_texts(1 << 20, &[]);
        let vocabulary = Vocabulary::new(&corpus).unwrap();
        let what = Counted { num_words: 3, min_count: 1, are_pairs: false };
        let segments = (0..corpus.segments().len()).map(|at| from_segment(&corpus, at, what)).collect();
        let table = SequenceTable::new(&vocabulary, what, segments, held());
        assert_eq!((table.num_slices(), table.slice(0).unwrap().len()), (1, 0));
    }

    #[test]
    fn slices_of_ranks_are_the_rows_of_the_cores() {
        let texts = documents(300);
        for block_bytes in [1 << 20, 20_000] {
            let corpus = corpus_of_texts(block_bytes, &texts);
            assert_eq!(corpus.segments().len() > 1, block_bytes < 1 << 20);
            let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
            let some: Vec<u64> = (0..300).filter(|doc| doc % 3 != 1).collect();
            let some = DocSelection::list(some).unwrap();
            for (n, docs) in
                [(1, DocSelection::all(&corpus)), (1, some.clone()), (3, some), (3, DocSelection::all(&corpus))]
            {
                let segments = 0..corpus.segments().len();
                let segments: Vec<_> =
                    segments.map(|at| SegmentRanked::from_segment(&corpus, at, n).unwrap()).collect();
                let table = RankedTable::new(&vocabulary, &docs, n, segments.clone(), held()).unwrap();
                assert!(table.num_slices() > 1);
                let index = RankedInvertedIndex::from_segments(vocabulary.clone(), &docs, n, segments, 0);
                let index = index.unwrap();
                let mut sequence = 0;
                let mut row = 0;
                for slice in (0..table.num_slices()).map(|at| table.slice(at)) {
                    for at in 0..slice.len() {
                        while index.entries_of(sequence).end <= row {
                            sequence += 1;
                        }
                        assert!(slice.words(at).eq(index.sequences().words(sequence)), "{n}, {row}");
                        let rank = (row - index.entries_of(sequence).start + 1) as u64;
                        let got = (slice.doc_ids()[at], slice.counts()[at], slice.ranks()[at]);
                        assert_eq!(got, (index.doc_ids()[row], index.counts()[row], rank), "{n}, {row}");
                        row += 1;
                    }
                }
                assert_eq!(row, index.doc_ids().len(), "{n}");
            }
        }
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        let corpus = corpus_of_texts(1 << 20, &documents(9));
        let vocabulary = Vocabulary::new(&corpus).unwrap();
        let docs = DocSelection::all(&corpus);
        let refused = |change: fn(&mut SegmentRanked)| {
            let mut segment = SegmentRanked::from_segment(&corpus, 0, 2).unwrap();
            change(&mut segment);
            RankedTable::new(&vocabulary, &docs, 2, vec![segment], held()).is_err()
        };
        assert!(!refused(|_| ()));
        assert!(refused(|segment| segment.starts[1] = 5000) && refused(|s| s.starts.truncate(3)));
        assert!(refused(|segment| segment.counts.truncate(1)) && refused(|s| s.docs.truncate(1)));
    }
}
