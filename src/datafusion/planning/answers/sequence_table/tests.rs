//! Comparisons of slices of sequences and pairs with the rows of the cores, for one segment and
//! many, with and without folded words.

use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, UnboundedMemoryPool};

use crate::planning::answers::{SLICE_SAMPLES, word_bits};
use tadoc::analytics::{Cooccurrences, Fold, SequenceCounts, Sequences, Traversal};
use tadoc::segment::Corpus;
use testkit::corpus_of_texts;

use super::*;

/// Returns documents of words of two letters, some of them capital. Hardly any sequence of three
/// words occurs twice.
pub(in crate::planning::answers) fn documents(num_docs: usize) -> Vec<String> {
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

pub(in crate::planning::answers) fn held() -> MemoryReservation {
    let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
    MemoryConsumer::new("test").register(&pool)
}

/// Returns the sequences or pairs of `words` with their counts, as the cores count them.
fn counted(words: Arc<Vocabulary>, counted: Counted) -> (Sequences, Vec<u64>) {
    let (n, way) = (counted.num_words, Traversal::TopDown);
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
