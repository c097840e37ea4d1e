//! Counts of sequences of single segments, made elsewhere (on a device), as counts of the corpus.
//!
//! ```text
//! segment 0   a b: 3   b c: 1          rows 0 1: 3   1 2: 1 ┐
//! segment 1   b a: 2   (its b is 0)    rows 1 0: 2          ┴─▶ sorted, added up
//! ```
//!
//! Word ids become rows of the vocabulary; the keys of an only segment, whose ids are its rows, are taken as
//! they are. O(rows) and what sorting them takes, in parallel; 32 bytes a row of all segments. Windows
//! over the place where a document was cut belong to no segment: such corpora are refused.

use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::Vocabulary;
use crate::analytics::word_rows::{SegmentRows, WordRows};
use crate::error::{Error, Result};

use super::count::SequenceCounts;
use super::entries::{Entry, sorted_buckets};
use super::key::Key;
use super::packing::Packing;
use super::rows::{Counted, Sequences};

/// Rows that a task makes entries of.
const TASK_ROWS: usize = 1 << 16;

/// Sequences of one segment and how often they occur in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSequences {
    /// The words of each by id, `word_bits` each, the first one highest; ascending.
    pub keys: Vec<u64>,
    /// How often each occurs.
    pub counts: Vec<u64>,
    /// Bits of a word.
    pub word_bits: u32,
}

impl SequenceCounts {
    /// Why counts of segments cannot be [`of_segments`](Self::of_segments), if they cannot.
    pub fn segments_refused(vocabulary: &Vocabulary, n: usize) -> Option<String> {
        let segments = vocabulary.corpus().segments();
        let word_bits = Packing::new(n, vocabulary.len()).word_bits();
        if n < 2 || n > (u64::BITS / word_bits) as usize {
            return Some(format!("{n} words of {word_bits} bits, it takes 2 and more in 64 bits"));
        }
        let is_cut = segments.iter().skip(1).any(|segment| segment.continues);
        is_cut.then(|| "a document goes on in another segment".to_owned())
    }

    /// The counts of sequences of `n` words of `vocabulary`, from those of each of its segments.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where they are [refused](Self::segments_refused) or are not one part
    /// for each segment, [`Error::Capacity`] where a count has more than 64 bits.
    pub fn of_segments(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        mut parts: Vec<SegmentSequences>,
    ) -> Result<Self> {
        let num_segments = vocabulary.corpus().segments().len();
        let refused = (parts.len() != num_segments)
            .then(|| format!("{} parts of {num_segments} segments", parts.len()));
        if let Some(got) = refused.or_else(|| Self::segments_refused(&vocabulary, n)) {
            let allowed = "one part for each segment, and whole documents in them".to_owned();
            return Err(Error::InvalidArgument { name: "counts of segments", got, allowed });
        }
        let packing = Packing::new(n, vocabulary.len());
        let is_ready = |part: &SegmentSequences| {
            part.word_bits == packing.word_bits() && !part.counts.contains(&0)
        };
        if vocabulary.is_one_segment()
            && let Some(part) = parts.pop_if(|part| is_ready(part))
        {
            let mut sequences = Sequences::new(vocabulary, packing);
            sequences.set_keys(part.keys);
            return Ok(Self::from_parts(sequences, part.counts));
        }
        let counted = merged(&vocabulary, packing, &parts)?;
        drop(parts);
        let mut sequences = Sequences::new(vocabulary, packing);
        sequences.extend(counted.iter());
        let counts = counted.iter().map(|part| part.counts.as_slice()).collect::<Vec<_>>().concat();
        Ok(Self::from_parts(sequences, counts))
    }
}

fn merged(
    vocabulary: &Vocabulary,
    packing: Packing,
    parts: &[SegmentSequences],
) -> Result<Vec<Counted>> {
    let rows = WordRows::new(vocabulary);
    let tasks = parts.iter().enumerate().flat_map(|(segment_idx, part)| {
        let rows = rows.of(segment_idx);
        let tasks = part.keys.chunks(TASK_ROWS).zip(part.counts.chunks(TASK_ROWS));
        tasks.map(move |(keys, counts)| (rows, part.word_bits, keys, counts))
    });
    let tasks: Vec<_> = tasks.collect();
    let entries: Vec<Vec<Entry>> = tasks
        .into_par_iter()
        .map(|(rows, word_bits, keys, counts)| entries(packing, rows, word_bits, keys, counts))
        .collect();
    let add = |entries: &mut [Entry]| {
        let mut counted = Counted::default();
        counted.add(entries, packing, &|_| &[], &|count| count, 1)?;
        Ok(counted)
    };
    let all = (0, u64::ones(packing.key_bits()));
    sorted_buckets(entries, all, add).into_iter().collect()
}

/// Keys by rows; words that occur nowhere have none.
fn entries(
    packing: Packing,
    rows: SegmentRows<'_>,
    word_bits: u32,
    keys: &[u64],
    counts: &[u64],
) -> Vec<Entry> {
    let occurring = keys.iter().zip(counts).filter(|(_, count)| **count > 0);
    let entry = |(&key, &value): (&u64, &u64)| {
        let of_segment = |at: usize| {
            let shift = word_bits * (packing.num_words - 1 - at) as u32;
            (key >> shift & (u64::MAX >> (u64::BITS - word_bits))) as u32
        };
        let key = (0..packing.num_words)
            .fold(0u64, |key, at| key << packing.word_bits() | u64::from(rows.row(of_segment(at))));
        Entry { key, value }
    };
    occurring.map(entry).collect()
}

#[cfg(test)]
mod tests {
    use crate::analytics::{Fold, Traversal};
    use crate::corpus::{Corpus, CorpusBuilder, IngestOptions, OpenLimits};

    use super::*;

    fn corpus(block_bytes: usize, documents: &[String]) -> Corpus {
        let options = IngestOptions { block_bytes, ..IngestOptions::default() };
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
        for (doc, text) in documents.iter().enumerate() {
            builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
        }
        let (file, _) = builder.finish(None).unwrap();
        Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap().1
    }

    fn documents() -> Vec<String> {
        let word = |at: usize| ["be", "To", "or", "not", "to", "Be", "an"][at * at % 31 % 7];
        let text = |doc: usize| (0..40 + doc % 7).map(|at| word(at + doc * 3)).collect::<Vec<_>>();
        (0..90).map(|doc| text(doc).join(" ")).collect()
    }

    /// What a device answers for a segment: counts of it alone, by word id.
    fn part(corpus: &Corpus, segment_idx: usize, n: usize) -> SegmentSequences {
        let segment = corpus.segments()[segment_idx].clone();
        let word_bits = Packing::new(n, segment.dag.num_words() as usize).word_bits();
        let alone = Corpus::new(corpus.profile(), vec![segment]);
        let vocabulary = Arc::new(Vocabulary::new(&alone).unwrap());
        let counts =
            SequenceCounts::with_vocabulary(vocabulary.clone(), n, Traversal::TopDown, 1 << 30);
        let counts = counts.unwrap();
        let id = |row: u32| u64::from(vocabulary.ids(row as usize).next().unwrap().1);
        let key = |row| counts.sequences().words(row).fold(0, |key, at| key << word_bits | id(at));
        let keys = (0..counts.len()).map(key).collect();
        SegmentSequences { keys, counts: counts.counts().to_vec(), word_bits }
    }

    #[test]
    fn counts_of_segments_are_those_of_the_corpus() {
        for block_bytes in [1 << 20, 700, 300] {
            let corpus = corpus(block_bytes, &documents());
            assert_eq!(corpus.segments().len() == 1, block_bytes == 1 << 20);
            for (n, fold) in [(2, Fold::None), (3, Fold::None), (3, Fold::Case), (5, Fold::Case)] {
                let plain = Vocabulary::new(&corpus).unwrap();
                let vocabulary = match fold {
                    Fold::None => Arc::new(plain),
                    fold => Arc::new(plain.folded(fold).unwrap()),
                };
                let parts = (0..corpus.segments().len()).map(|at| part(&corpus, at, n)).collect();
                let got = SequenceCounts::of_segments(vocabulary.clone(), n, parts).unwrap();
                let expected =
                    SequenceCounts::with_vocabulary(vocabulary, n, Traversal::Auto, 1 << 30);
                let expected = expected.unwrap();
                assert!(got.len() > 10 && got.counts() == expected.counts(), "{n}, {fold:?}");
                let is_same = |row| got.sequences().words(row).eq(expected.sequences().words(row));
                assert!((0..got.len()).all(is_same), "{n}, {fold:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_joined_is_refused() {
        let whole = Arc::new(Vocabulary::new(&corpus(300, &documents())).unwrap());
        assert_eq!(SequenceCounts::segments_refused(&whole, 3), None);
        for n in [0, 1, 22, usize::MAX] {
            let refused = SequenceCounts::segments_refused(&whole, n).unwrap();
            assert!(refused.contains("64 bits"), "{refused}");
        }
        assert!(SequenceCounts::of_segments(whole, 3, Vec::new()).is_err());
        let cut = corpus(300, &["one two three ".repeat(100)]);
        let cut = Vocabulary::new(&cut).unwrap();
        let refused = SequenceCounts::segments_refused(&cut, 3).unwrap();
        assert_eq!(refused, "a document goes on in another segment");
    }

    #[test]
    fn what_occurs_nowhere_is_left_out() {
        let corpus = corpus(1 << 20, &documents());
        let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
        let mut part = part(&corpus, 0, 2);
        part.counts[1] = 0;
        let num_rows = part.counts.len();
        let got = SequenceCounts::of_segments(vocabulary, 2, vec![part]).unwrap();
        assert_eq!(got.len(), num_rows - 1);
    }
}
