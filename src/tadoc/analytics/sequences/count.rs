//! Sequence count: the number of occurrences of each sequence of n words.
//!
//! Windows are met where they cross a border in the grammar ([`edges`](super::edges)), with the weight of the rule, or
//! at every word of the text ([`walk`](super::walk)). They are then sorted by ranges of sequences and added up.
//! O(windows * n), with at most as many windows as the text has words. Single words use their weights, O(G). If memory
//! has no room for all windows, they are met in several walks ([`walk`](super::walk)).
//!
//! # Counts of segments
//!
//! Counts of sequences and pairs of segments, made elsewhere (on a device), are joined to a corpus:
//!
//! ```text
//! segment 0   a b: 3   b c: 1          rows 0 1: 3   1 2: 1 ┐
//! segment 1   b a: 2   (its b is 0)    rows 1 0: 2          ┴─▶ sorted, added up
//! ```
//!
//! Word ids become rows of the vocabulary. If there is only one segment and its ids are the rows, its keys are used as
//! they are. With folded words, the smaller word of a pair may become the larger one. O(rows) plus the time to sort
//! them, in parallel; 32 bytes for each row of all segments. Windows across the place where a document is cut belong to
//! no segment, so corpora with cut documents are rejected.

use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::TraversalTask::SequenceCount;
use crate::analytics::vocabulary::{SegmentRows, WordRows};
use crate::analytics::{TaskLimits, Traversal, Vocabulary, WordCounts};
use crate::error::{Canceller, Error, Result};
use crate::segment::Corpus;

use super::edges::{Limit, chosen};
use super::entries::{Entry, sorted_buckets};
use super::key::{Key, Keyed, Packing};
use super::walk::{PART_WORDS, RowMaker, Walk, for_each_pass};
use super::windows::{NumberedWeights, PackedWindows, TextWindows};
use super::{Counted, Sequences};

/// Initial room for the windows of a parallel task.
const TASK_WINDOWS: usize = 1 << 16;

/// Counts the occurrences of each sequence of `n` words in `corpus`. Rows ascend by the words in
/// order. A sequence lies within one document; separators between words are ignored.
///
/// # Errors
/// [`Error::InvalidArgument`] for `n` = 0, [`Error::Capacity`] if one sequence alone is met more
/// often than the memory of `limits` holds or a count needs more than 64 bits,
/// [`Error::Cancelled`], and the errors of [`Vocabulary::new`].
pub fn sequence_count<'a>(corpus: &Corpus, n: usize, limits: impl Into<TaskLimits<'a>>) -> Result<SequenceCounts> {
    let vocabulary = Arc::new(Vocabulary::new(corpus)?);
    SequenceCounts::with_vocabulary(vocabulary, n, Traversal::Auto, limits)
}

/// Sequences and their counts as rows.
#[derive(Debug, Clone)]
pub struct SequenceCounts {
    sequences: Sequences,
    counts: Vec<u64>,
}

impl SequenceCounts {
    /// Counts the sequences of `n` words of `vocabulary` by `traversal`; [`Traversal::Auto`] uses
    /// the cheaper one ([`choose_task_traversal`](crate::analytics::choose_task_traversal)), and
    /// bottom-up is treated as top-down. The memory of `limits` is that for counting; the rows need
    /// more memory beside it.
    ///
    /// # Errors
    /// The errors of [`sequence_count`].
    pub fn with_vocabulary<'a>(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        traversal: Traversal,
        limits: impl Into<TaskLimits<'a>>,
    ) -> Result<Self> {
        let mut parts = Vec::new();
        let rows = |part: Self| (part.sequences, part.counts);
        let words = vocabulary.clone();
        Self::in_parts(words, n, traversal, limits, rows, |part, _| {
            parts.push(part);
            Ok(true)
        })?;
        let packing = Packing::new(n, vocabulary.len());
        let (sequences, counts) = Sequences::joined(vocabulary, packing, &parts);
        Ok(Self { sequences, counts })
    }

    /// Counts the sequences of `n` words and passes the rows on in parts, in order.
    /// `make` is called in parallel. `take` is called with each result of `make` and the bytes held
    /// for counting, until it returns false. Memory holds only a few parts at a time, however many
    /// rows there are.
    ///
    /// # Errors
    /// The errors of [`sequence_count`] and of `take`.
    pub fn in_parts<'a, T: Send>(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        traversal: Traversal,
        limits: impl Into<TaskLimits<'a>>,
        make: impl Fn(Self) -> T + Send + Sync,
        mut take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<()> {
        check_num_words(n)?;
        let limits: TaskLimits<'_> = limits.into();
        let canceller = limits.canceller();
        canceller.check()?;
        let make = |sequences, counts| make(Self { sequences, counts });
        if n == 1 {
            return words_in_parts(&vocabulary, make, take);
        }
        let packing = Packing::new(n, vocabulary.len());
        let scan_limit = Limit::for_scan(limits, packing);
        let way = chosen(traversal, SequenceCount, &vocabulary, n, &scan_limit);
        let walk = Walk::new(&vocabulary, n - 1, way, limits.max_memory_bytes / 2, canceller)?;
        let weights = walk.weights();
        let key_bits = packing.all_bits().saturating_add((&weights).bits());
        let words = &vocabulary;
        let weights = &weights;
        let min_count = 1;
        let maker = RowMaker { vocabulary: words, packing, weights, min_count, canceller };
        match key_bits {
            0..=64 => packed::<u64, T>(&maker, walk, limits, make, &mut take),
            65..=128 => packed::<u128, T>(&maker, walk, limits, make, &mut take),
            _ => {
                let limit = Limit::new(limits, packing);
                let (new, make) = (|keep| TextWindows::new(packing, keep), &make);
                for_each_pass(walk, &vocabulary, &limit, packing.key_bits(), new, |tasks, range, held_bytes| {
                    let take = |part, bytes| take(part, held_bytes + bytes);
                    maker.texts_to_rows(&tasks, range, make, take)
                })
            }
        }
    }

    /// Creates rows with these counts.
    pub(super) fn from_parts(sequences: Sequences, counts: Vec<u64>) -> Self {
        Self { sequences, counts }
    }

    /// Returns the sequences of the rows.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// Returns the number of rows, which are the distinct sequences.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns true if there is no sequence.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the number of occurrences of the sequence of each row, 1 or more.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the memory of the rows in bytes, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.sequences.memory_bytes() + size_of_val(self.counts.as_slice())
    }
}

pub(in crate::analytics) fn check_num_words(n: usize) -> Result<()> {
    if n > 0 {
        return Ok(());
    }
    let allowed = "1 word or more".to_owned();
    Err(Error::InvalidArgument { name: "n", got: n.to_string(), allowed })
}

/// Counts windows that fit keys together with the number of a weight.
fn packed<K: Key + Keyed<Key = K>, T: Send>(
    maker: &RowMaker<'_>,
    walk: Walk,
    limits: TaskLimits<'_>,
    make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
    take: &mut impl FnMut(T, usize) -> Result<bool>,
) -> Result<()> {
    let packing = maker.packing;
    let new = |keep| PackedWindows::<K, _>::new(packing, maker.weights, keep, TASK_WINDOWS);
    let limit = Limit::for_keys::<K>(limits);
    for_each_pass(walk, maker.vocabulary, &limit, packing.all_bits(), new, |tasks, range, held_bytes| {
        let keys = tasks.into_iter().map(|windows| windows.keys).collect();
        maker.keys_to_rows(keys, range, &make, |part, bytes| take(part, held_bytes + bytes))
    })
}

/// Counts words as sequences of one word.
fn words_in_parts<T>(
    vocabulary: &Arc<Vocabulary>,
    make: impl Fn(Sequences, Vec<u64>) -> T,
    mut take: impl FnMut(T, usize) -> Result<bool>,
) -> Result<()> {
    let words = WordCounts::with_vocabulary(vocabulary.clone())?;
    for start in (0..vocabulary.len()).step_by(PART_WORDS) {
        let rows = start..vocabulary.len().min(start + PART_WORDS);
        let counts = words.counts()[rows.clone()].to_vec();
        let part = make(Sequences::from_words(vocabulary.clone(), rows), counts);
        if !take(part, size_of_val(words.counts()))? {
            break;
        }
    }
    Ok(())
}

/// Number of rows that a parallel task converts to entries.
const TASK_ROWS: usize = 1 << 16;

/// Sequences of one segment and their counts in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSequences {
    /// Sequences as word ids with `word_bits` bits each, the first word highest; ascending.
    pub keys: Vec<u64>,
    /// Number of occurrences of each sequence.
    pub counts: Vec<u64>,
    /// Number of bits of a word.
    pub word_bits: u32,
}

impl SequenceCounts {
    /// Returns the reason why [`from_segments`](Self::from_segments) cannot join the counts of
    /// segments, or `None` if it can.
    pub fn segments_refused(vocabulary: &Vocabulary, n: usize) -> Option<String> {
        refused_words(vocabulary, n, 2)
    }

    /// Joins the counts of all segments to the counts of the sequences of `n` words of
    /// `vocabulary`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the counts [cannot be joined](Self::segments_refused) or there
    /// is not one part for each segment, [`Error::Capacity`] if a count needs more than 64 bits,
    /// and [`Error::Cancelled`].
    pub fn from_segments<'a>(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        parts: Vec<SegmentSequences>,
        limits: impl Into<TaskLimits<'a>>,
    ) -> Result<Self> {
        check_parts(&vocabulary, parts.len(), Self::segments_refused(&vocabulary, n))?;
        let packing = Packing::new(n, vocabulary.len());
        let canceller = limits.into().canceller();
        let joining = Joining { packing, min_count: 1, are_pairs: false, canceller };
        let (sequences, counts) = joining.rows(vocabulary, parts)?;
        Ok(Self::from_parts(sequences, counts))
    }
}

/// Returns the reason why sequences of `n` words of segments cannot be joined, or `None` if they
/// can: they have fewer words than `least`, they do not fit keys, or a document is cut.
pub(super) fn refused_words(vocabulary: &Vocabulary, n: usize, least: usize) -> Option<String> {
    let word_bits = Packing::new(n, vocabulary.len()).word_bits();
    if n < least || n > (u64::BITS / word_bits) as usize {
        let allowed = format!("it takes {least} and more in 64 bits");
        return Some(format!("{n} words of {word_bits} bits, {allowed}"));
    }
    cut_document(vocabulary)
}

/// Returns a message if a document continues in another segment.
pub(in crate::analytics) fn cut_document(vocabulary: &Vocabulary) -> Option<String> {
    let segments = vocabulary.corpus().segments();
    let is_cut = segments.iter().skip(1).any(|segment| segment.continues);
    is_cut.then(|| "a document goes on in another segment".to_owned())
}

/// Checks that there is one part for each segment, and that `refused` is `None`.
///
/// # Errors
/// [`Error::InvalidArgument`] if not.
pub(in crate::analytics) fn check_parts(
    vocabulary: &Vocabulary,
    num_parts: usize,
    refused: Option<String>,
) -> Result<()> {
    let num_segments = vocabulary.corpus().segments().len();
    let are_fewer = (num_parts != num_segments).then(|| format!("{num_parts} parts of {num_segments} segments"));
    match are_fewer.or(refused) {
        None => Ok(()),
        Some(got) => {
            let allowed = "one part for each segment, and whole documents in them".to_owned();
            Err(Error::InvalidArgument { name: "counts of segments", got, allowed })
        }
    }
}

/// Parameters of joining the counts of segments.
pub(in crate::analytics) struct Joining<'a> {
    pub packing: Packing,
    /// Minimum count of a row.
    pub min_count: u64,
    /// True if the smaller of two words comes first.
    pub are_pairs: bool,
    pub canceller: Canceller<'a>,
}

impl Joining<'_> {
    /// Returns the rows of all `parts`, one for each segment. Sequences must fit keys.
    ///
    /// # Errors
    /// [`Error::Capacity`] if a count needs more than 64 bits, and [`Error::Cancelled`].
    pub fn rows(&self, vocabulary: Arc<Vocabulary>, mut parts: Vec<SegmentSequences>) -> Result<(Sequences, Vec<u64>)> {
        let is_ready =
            |part: &SegmentSequences| part.word_bits == self.packing.word_bits() && !part.counts.contains(&0);
        if vocabulary.is_one_segment()
            && let Some(SegmentSequences { mut keys, mut counts, .. }) = parts.pop_if(|part| is_ready(part))
        {
            if self.min_count > 1 {
                let mut are_kept = counts.iter().map(|&count| count >= self.min_count);
                keys.retain(|_| are_kept.next().unwrap_or(false));
                counts.retain(|&count| count >= self.min_count);
            }
            let mut sequences = Sequences::new(vocabulary, self.packing);
            sequences.set_keys(keys);
            return Ok((sequences, counts));
        }
        let counted = self.merged(&vocabulary, &parts)?;
        drop(parts);
        Ok(Counted::joined(counted).into_rows(vocabulary, self.packing))
    }

    fn merged(&self, vocabulary: &Vocabulary, parts: &[SegmentSequences]) -> Result<Vec<Counted>> {
        let rows = WordRows::new(vocabulary);
        let tasks = parts.iter().enumerate().flat_map(|(segment_idx, part)| {
            let rows = rows.for_segment(segment_idx);
            let tasks = part.keys.chunks(TASK_ROWS).zip(part.counts.chunks(TASK_ROWS));
            tasks.map(move |(keys, counts)| (rows, part.word_bits, keys, counts))
        });
        let tasks: Vec<_> = tasks.collect();
        let entries: Vec<Vec<Entry>> = tasks
            .into_par_iter()
            .map(|(rows, word_bits, keys, counts)| {
                self.canceller.check()?;
                Ok(self.entries(rows, word_bits, keys, counts))
            })
            .collect::<Result<_>>()?;
        let add = |entries: &mut [Entry]| {
            let mut counted = Counted::default();
            let packing = self.packing;
            let min_count = self.min_count;
            counted.add(entries, packing, &|_| &[], &|count| count, min_count, self.canceller)?;
            Ok(counted)
        };
        let all = (0, u64::ones(self.packing.key_bits()));
        sorted_buckets(entries, all, self.canceller, add)
    }

    /// Converts keys of word ids to entries with keys of rows. Sequences that do not occur are left
    /// out, because their words may have no row.
    fn entries(&self, rows: SegmentRows<'_>, word_bits: u32, keys: &[u64], counts: &[u64]) -> Vec<Entry> {
        let occurring = keys.iter().zip(counts).filter(|(_, count)| **count > 0);
        let entry = |(&key, &value): (&u64, &u64)| {
            let key = row_key(key, word_bits, rows, self.packing);
            Entry { key: if self.are_pairs { self.ordered(key) } else { key }, value }
        };
        occurring.map(entry).collect()
    }

    /// Returns the key of a pair with the smaller word first.
    fn ordered(&self, key: u64) -> u64 {
        let first = self.packing.word(key, 0);
        let second = self.packing.word(key, 1);
        self.packing.key(&[first.min(second), first.max(second)])
    }
}

/// Converts a key of word ids of `word_bits` bits each to a key of rows.
pub(super) fn row_key(key: u64, word_bits: u32, rows: SegmentRows<'_>, packing: Packing) -> u64 {
    let id = |at: usize| {
        let shift = word_bits * (packing.num_words - 1 - at) as u32;
        (key >> shift & (u64::MAX >> (u64::BITS - word_bits))) as u32
    };
    (0..packing.num_words).fold(0u64, |key, at| key << packing.word_bits() | u64::from(rows.row(id(at))))
}

/// A segment as a corpus of its own, whose rows are counted on the cores in the form of a device's answer.
pub(super) struct LoneSegment {
    pub corpus: Corpus,
    pub vocabulary: Arc<Vocabulary>,
    /// Number of bits of a word in a key of the segment.
    pub word_bits: u32,
}

impl LoneSegment {
    /// Takes a segment of `corpus`, for sequences of `n` words.
    pub fn new(corpus: &Corpus, segment_idx: usize, n: usize) -> Result<Self> {
        let segment = corpus.segments()[segment_idx].clone();
        let word_bits = Packing::new(n, segment.dag.num_words() as usize).word_bits();
        let corpus = Corpus::new(corpus.profile(), vec![segment]);
        let vocabulary = Arc::new(Vocabulary::new(&corpus)?);
        Ok(Self { corpus, vocabulary, word_bits })
    }

    /// Returns a sequence of rows of the vocabulary as a key of word ids. A row has one id in an only segment.
    pub fn key(&self, words: impl Iterator<Item = u32>) -> u64 {
        let id = |row: u32| self.vocabulary.ids(row as usize).next().map_or(0, |(_, id)| u64::from(id));
        words.fold(0, |key, row| key << self.word_bits | id(row))
    }
}

#[cfg(test)]
mod tests {
    use crate::analytics::{Cooccurrences, Fold};
    use crate::build::corpus_from_texts;

    use super::*;

    fn documents() -> Vec<String> {
        let word = |at: usize| ["be", "To", "or", "not", "to", "Be", "an"][at * at % 31 % 7];
        let text = |doc: usize| (0..40 + doc % 7).map(|at| word(at + doc * 3)).collect::<Vec<_>>();
        (0..90).map(|doc| text(doc).join(" ")).collect()
    }

    /// Returns the answer of a device for a segment: counts of it alone, by word id.
    fn part(corpus: &Corpus, segment_idx: usize, n: usize) -> SegmentSequences {
        let alone = LoneSegment::new(corpus, segment_idx, n).unwrap();
        let counts = SequenceCounts::with_vocabulary(alone.vocabulary.clone(), n, Traversal::TopDown, 1 << 30);
        let counts = counts.unwrap();
        let keys = (0..counts.len()).map(|row| alone.key(counts.sequences().words(row))).collect();
        SegmentSequences { keys, counts: counts.counts().to_vec(), word_bits: alone.word_bits }
    }

    #[test]
    fn counts_of_segments_are_those_of_the_corpus() {
        for block_bytes in [1 << 20, 700, 300] {
            let corpus = corpus_from_texts(block_bytes, &documents());
            assert_eq!(corpus.segments().len() == 1, block_bytes == 1 << 20);
            for (n, fold) in [(2, Fold::NONE), (3, Fold::NONE), (3, Fold::CASE), (5, Fold::CASE)] {
                let plain = Vocabulary::new(&corpus).unwrap();
                let vocabulary = Arc::new(plain.folded(&fold).unwrap());
                let parts = (0..corpus.segments().len()).map(|at| part(&corpus, at, n)).collect();
                let got = SequenceCounts::from_segments(vocabulary.clone(), n, parts, 0).unwrap();
                let expected = SequenceCounts::with_vocabulary(vocabulary, n, Traversal::Auto, 1 << 30);
                let expected = expected.unwrap();
                assert!(got.len() > 10 && got.counts() == expected.counts(), "{n}, {fold:?}");
                let is_same = |row| got.sequences().words(row).eq(expected.sequences().words(row));
                assert!((0..got.len()).all(is_same), "{n}, {fold:?}");
            }
        }
    }

    /// Returns the answer of a device for the pairs of a segment.
    fn pairs(corpus: &Corpus, segment_idx: usize, window: usize) -> SegmentSequences {
        let segment = corpus.segments()[segment_idx].clone();
        let word_bits = Packing::new(2, segment.dag.num_words() as usize).word_bits();
        let alone = Corpus::new(corpus.profile(), vec![segment]);
        let vocabulary = Arc::new(Vocabulary::new(&alone).unwrap());
        let words = vocabulary.clone();
        let way = Traversal::TopDown;
        let found = Cooccurrences::with_vocabulary(words, window, 1, way, 1 << 30).unwrap();
        let id = |row: u32| u64::from(vocabulary.ids(row as usize).next().unwrap().1);
        let key = |row| found.pairs().words(row).fold(0, |key, at| key << word_bits | id(at));
        let keys = (0..found.len()).map(key).collect();
        SegmentSequences { keys, counts: found.counts().to_vec(), word_bits }
    }

    #[test]
    fn pairs_of_segments_are_those_of_the_corpus() {
        for (block_bytes, is_folded) in [(1 << 20, false), (1 << 20, true), (300, false), (300, true)] {
            let corpus = corpus_from_texts(block_bytes, &documents());
            let plain = Vocabulary::new(&corpus).unwrap();
            let fold = if is_folded { Fold::CASE } else { Fold::NONE };
            let vocabulary = Arc::new(plain.folded(&fold).unwrap());
            for (window, min_count) in [(2, 1), (5, 1), (3, 40), (3, 0)] {
                let parts = (0..corpus.segments().len()).map(|at| pairs(&corpus, at, window));
                let words = vocabulary.clone();
                let shown = words.clone();
                let parts = parts.collect();
                let got = Cooccurrences::from_segments(shown, min_count, parts, 0);
                let got = got.unwrap();
                let way = Traversal::Auto;
                let expected = Cooccurrences::with_vocabulary(words, window, min_count, way, 1 << 30).unwrap();
                assert!(got.len() > 5 && got.counts() == expected.counts(), "{window}");
                let is_same = |row| got.pairs().words(row).eq(expected.pairs().words(row));
                assert!((0..got.len()).all(is_same), "{window}, {is_folded}");
            }
            assert!(Cooccurrences::from_segments(vocabulary, 1, Vec::new(), 0).is_err());
        }
    }

    #[test]
    fn what_cannot_be_joined_is_refused() {
        let whole = Arc::new(Vocabulary::new(&corpus_from_texts(300, &documents())).unwrap());
        assert_eq!(SequenceCounts::segments_refused(&whole, 3), None);
        for n in [0, 1, 22, usize::MAX] {
            let refused = SequenceCounts::segments_refused(&whole, n).unwrap();
            assert!(refused.contains("64 bits"), "{refused}");
        }
        assert!(SequenceCounts::from_segments(whole, 3, Vec::new(), 0).is_err());
        let cut = corpus_from_texts(300, &["one two three ".repeat(100)]);
        let cut = Vocabulary::new(&cut).unwrap();
        let refused = SequenceCounts::segments_refused(&cut, 3).unwrap();
        assert_eq!(refused, "a document goes on in another segment");
        assert_eq!(Cooccurrences::segments_refused(&cut), Some(refused));
    }

    #[test]
    fn what_occurs_nowhere_is_left_out() {
        let corpus = corpus_from_texts(1 << 20, &documents());
        let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
        let mut part = part(&corpus, 0, 2);
        part.counts[1] = 0;
        let num_rows = part.counts.len();
        let got = SequenceCounts::from_segments(vocabulary, 2, vec![part], 0).unwrap();
        assert_eq!(got.len(), num_rows - 1);
    }
}
