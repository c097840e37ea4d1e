//! Ranked indexes of single segments, made elsewhere (on a device), joined to that of the corpus.
//!
//! ```text
//! segment 0   a b: 3 in 7, 1 in 2          documents 0 to 9   ┐
//! segment 1   a b: 2 in 0    (document 10)                    ┴─▶ a b: 3 in 7, 2 in 10, 1 in 2
//! ```
//!
//! Word ids become rows of the vocabulary, and documents become those of the corpus. Entries of
//! equal sequences are joined and ranked again. If there is only one segment, its rows are used as
//! they are. O(entries) plus the time to sort them, in parallel; 32 bytes for each entry. Windows
//! across the place where a document is cut belong to no segment, so corpora with cut documents are
//! rejected.

use std::cmp::Reverse;
use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::word_rows::WordRows;
use crate::analytics::{DocSelection, TaskLimits, Traversal, Vocabulary};
use crate::error::Result;
use crate::ids::DocId;
use crate::interrupt::Canceller;
use crate::segment::Corpus;

use super::entries::{Entry, for_each_sequence, sorted_buckets};
use super::key::Key;
use super::merged::{check_parts, refused_words, row_key};
use super::packing::Packing;
use super::ranked::{RankedInvertedIndex, RankedRange};
use super::rows::Sequences;

/// Number of sequences that a parallel task converts to entries.
const TASK_SEQUENCES: usize = 1 << 14;

/// Sequences of one segment, and the documents that contain them, by rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRanked {
    /// Sequences as word ids with `word_bits` bits each, the first word highest; ascending.
    pub keys: Vec<u64>,
    /// Start of the entries of each sequence, and the end of the last.
    pub starts: Vec<u32>,
    /// Ids of documents in the segment, by descending count, then ascending.
    pub docs: Vec<u32>,
    /// Number of occurrences of the sequence in each document, 1 or more.
    pub counts: Vec<u64>,
    /// Number of bits of a word.
    pub word_bits: u32,
}

impl RankedInvertedIndex {
    /// Returns the reason why [`from_segments`](Self::from_segments) cannot join the indexes of
    /// segments, or `None` if it can.
    pub fn segments_refused(vocabulary: &Vocabulary, n: usize) -> Option<String> {
        refused_words(vocabulary, n, 1)
    }

    /// Joins the indexes of all segments to the index of the sequences of `n` words of `vocabulary`
    /// in `docs`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the indexes [cannot be
    /// joined](Self::segments_refused) or there is not one part of the right shape for each
    /// segment, and [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn from_segments<'a>(
        vocabulary: Arc<Vocabulary>,
        docs: &DocSelection,
        n: usize,
        mut parts: Vec<SegmentRanked>,
        limits: impl Into<TaskLimits<'a>>,
    ) -> Result<Self> {
        let refused = Self::segments_refused(&vocabulary, n);
        let refused = refused.or_else(|| misshapen(&vocabulary, &parts));
        check_parts(&vocabulary, parts.len(), refused)?;
        let packing = Packing::new(n, vocabulary.len());
        let num_docs = vocabulary.corpus().num_docs() as usize;
        let docs = docs.within(0..num_docs as u64);
        let is_ready = vocabulary.is_one_segment() && docs.len() == num_docs;
        if let Some(part) = parts.pop_if(|part| is_ready && part.word_bits == packing.word_bits()) {
            let mut sequences = Sequences::new(vocabulary, packing);
            sequences.set_keys(part.keys);
            let ends = part.starts.iter().map(|&start| start as usize).collect();
            let doc_ids = part.docs.iter().map(|&doc| u64::from(doc)).collect();
            return Ok(Self::from_rows(sequences, ends, doc_ids, part.counts));
        }
        let mut is_wanted = vec![false; num_docs];
        docs.iter().for_each(|doc_id| is_wanted[doc_id as usize] = true);
        let canceller = limits.into().canceller();
        let found = ranked(&vocabulary, packing, &parts, &is_wanted, canceller)?;
        Self::from_parts(vocabulary, packing, &found, canceller)
    }
}

/// Returns the error in the shape of the first misshapen part, if there is one. The number of parts
/// is not checked.
fn misshapen(vocabulary: &Vocabulary, parts: &[SegmentRanked]) -> Option<String> {
    let segments = vocabulary.corpus().segments();
    let is_right = |(part, num_docs): (&SegmentRanked, usize)| {
        let ends = (part.starts.first().copied(), part.starts.last().map(|&end| end as usize));
        part.starts.len() == part.keys.len() + 1
            && part.starts.is_sorted()
            && ends == (Some(0), Some(part.docs.len()))
            && part.counts.len() == part.docs.len()
            && part.docs.iter().max().is_none_or(|&doc| DocId::from(doc).index() < num_docs)
    };
    let num_docs = segments.iter().map(|segment| segment.dag.grammar().num_docs());
    let at = parts.iter().zip(num_docs).position(|part| !is_right(part))?;
    Some(format!("a part of segment {at} that is no matrix of its documents"))
}

/// Returns the entries of all `parts` for wanted documents, by sequence and rank.
fn ranked(
    vocabulary: &Vocabulary,
    packing: Packing,
    parts: &[SegmentRanked],
    is_wanted: &[bool],
    canceller: Canceller<'_>,
) -> Result<Vec<RankedRange>> {
    let rows = WordRows::new(vocabulary);
    let first_doc_ids: Vec<u64> =
        (0..parts.len()).map(|at| vocabulary.corpus().first_doc_id(at)).collect();
    let doc_id = |segment_idx: usize, at: usize| {
        first_doc_ids[segment_idx] + u64::from(parts[segment_idx].docs[at])
    };
    let tasks = parts.iter().enumerate().flat_map(|(segment_idx, part)| {
        let starts = (0..part.keys.len()).step_by(TASK_SEQUENCES);
        starts.map(move |start| (segment_idx, start..part.keys.len().min(start + TASK_SEQUENCES)))
    });
    let tasks: Vec<_> = tasks.collect();
    // A value has a segment index and a place in that segment.
    let entries = tasks.into_par_iter().map(|(segment_idx, sequences)| {
        canceller.check()?;
        let (part, rows) = (&parts[segment_idx], rows.for_segment(segment_idx));
        let of_sequence = |sequence: usize| {
            let key = row_key(part.keys[sequence], part.word_bits, rows, packing);
            let places = part.starts[sequence] as usize..part.starts[sequence + 1] as usize;
            let wanted = places.filter(|&at| is_wanted[doc_id(segment_idx, at) as usize]);
            wanted.map(move |at| Entry { key, value: (segment_idx as u64) << 32 | at as u64 })
        };
        Ok(sequences.flat_map(of_sequence).collect())
    });
    let entries = entries.collect::<Result<Vec<Vec<Entry>>>>()?;
    let all = (0, u64::ones(packing.key_bits()));
    sorted_buckets(entries, all, canceller, |entries| {
        let mut part = RankedRange::default();
        let mut found: Vec<(u64, u64)> = Vec::new();
        for_each_sequence(entries, packing, &|_| &[], canceller, |run| {
            found.clear();
            found.extend(run.iter().map(|entry| {
                let (segment_idx, at) = ((entry.value >> 32) as usize, entry.value as u32 as usize);
                (doc_id(segment_idx, at), parts[segment_idx].counts[at])
            }));
            found.sort_unstable();
            // With folded words, a document may contain several sequences that become equal, but
            // fewer than 2^32.
            found.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                kept.1 += if is_same { next.1 } else { 0 };
                is_same
            });
            found.sort_by_key(|&(_, count)| Reverse(count));
            part.sequences.push(run[0], packing, &|_| &[]);
            part.lens.push(found.len());
            part.doc_ids.extend(found.iter().map(|&(doc_id, _)| doc_id));
            part.counts.extend(found.iter().map(|&(_, count)| count));
        })?;
        Ok(part)
    })
}

impl SegmentRanked {
    /// Counts a segment of `corpus` on the cores, in the form of a device's answer.
    ///
    /// Answers of devices are compared with it. It takes up to 1 GiB of memory.
    ///
    /// # Errors
    /// The errors of [`RankedInvertedIndex::with_vocabulary`].
    pub fn from_segment(corpus: &Corpus, segment_idx: usize, n: usize) -> Result<Self> {
        let segment = corpus.segments()[segment_idx].clone();
        let word_bits = Packing::new(n, segment.dag.num_words() as usize).word_bits();
        let alone = Corpus::new(corpus.profile(), vec![segment]);
        let vocabulary = Arc::new(Vocabulary::new(&alone)?);
        let (words, way) = (vocabulary.clone(), Traversal::TokenScan);
        let index = RankedInvertedIndex::with_vocabulary(words, n, way, 1 << 30)?;
        // The only segment has an id for each word of its own vocabulary.
        let id = |row: u32| vocabulary.ids(row as usize).next().map_or(0, |(_, id)| u64::from(id));
        let key = |row| index.sequences().words(row).fold(0, |key, at| key << word_bits | id(at));
        let doc = |&doc_id: &u64| alone.doc_in(0, doc_id).map(u32::from);
        let ends = (0..index.len()).map(|row| index.entries_of(row).end as u32);
        Ok(Self {
            keys: (0..index.len()).map(key).collect(),
            starts: std::iter::once(0).chain(ends).collect(),
            docs: index.doc_ids().iter().filter_map(doc).collect(),
            counts: index.counts().to_vec(),
            word_bits,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::analytics::{Fold, Traversal};
    use crate::build::of_texts::corpus_of_texts;
    use crate::segment::Corpus;

    use super::*;

    fn documents() -> Vec<String> {
        let word = |at: usize| ["be", "To", "or", "not", "to", "Be", "an"][at * at % 31 % 7];
        let text = |doc: usize| (0..doc * 7 % 40).map(|at| word(at + doc * 3)).collect::<Vec<_>>();
        (0..90).map(|doc| text(doc).join(" ")).collect()
    }

    fn parts(corpus: &Corpus, n: usize) -> Vec<SegmentRanked> {
        (0..corpus.segments().len())
            .map(|at| SegmentRanked::from_segment(corpus, at, n).unwrap())
            .collect()
    }

    #[test]
    fn ranks_of_segments_are_those_of_the_corpus() {
        for block_bytes in [1 << 20, 700, 300] {
            let corpus = corpus_of_texts(block_bytes, &documents());
            assert_eq!(corpus.segments().len() == 1, block_bytes == 1 << 20);
            let some = DocSelection::list([0, 3, 4, 40, 89]).unwrap();
            for (n, fold) in [(1, Fold::NONE), (2, Fold::CASE), (3, Fold::NONE), (1, Fold::CASE)] {
                let plain = Vocabulary::new(&corpus).unwrap();
                let vocabulary = Arc::new(plain.folded(&fold).unwrap());
                for docs in [&DocSelection::all(&corpus), &some] {
                    let (words, all) = (vocabulary.clone(), parts(&corpus, n));
                    let got =
                        RankedInvertedIndex::from_segments(words.clone(), docs, n, all, 0).unwrap();
                    let mut expected = Vec::new();
                    let way = Traversal::TokenScan;
                    RankedInvertedIndex::in_ranges(words, docs, n, way, 1 << 30, |index| {
                        expected.push(index);
                        Ok(true)
                    })
                    .unwrap();
                    let [expected] = &expected[..] else { panic!("{} ranges", expected.len()) };
                    assert!(got.len() > 3 && got.len() == expected.len(), "{n}, {fold:?}");
                    for row in 0..got.len() {
                        let words = got.sequences().words(row);
                        assert!(words.eq(expected.sequences().words(row)), "{n}, {fold:?}");
                        assert_eq!(got.entries_of(row), expected.entries_of(row));
                    }
                    assert_eq!(got.doc_ids(), expected.doc_ids(), "{n}, {fold:?}");
                    assert_eq!(got.counts(), expected.counts(), "{n}, {fold:?}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_joined_is_refused() {
        let whole = corpus_of_texts(300, &documents());
        let (vocabulary, docs) =
            (Arc::new(Vocabulary::new(&whole).unwrap()), DocSelection::all(&whole));
        let of =
            |n, parts| RankedInvertedIndex::from_segments(vocabulary.clone(), &docs, n, parts, 0);
        assert_eq!(RankedInvertedIndex::segments_refused(&vocabulary, 3), None);
        for n in [0, 22, usize::MAX] {
            let refused = RankedInvertedIndex::segments_refused(&vocabulary, n).unwrap();
            assert!(refused.contains("64 bits"), "{refused}");
        }
        assert!(of(3, Vec::new()).is_err());
        let changes: [fn(&mut SegmentRanked); 5] = [
            |part| part.starts[0] = 1,
            |part| part.starts.truncate(1),
            |part| part.docs[0] = 99,
            |part| part.counts.truncate(1),
            |part| part.keys.truncate(1),
        ];
        for change in changes {
            let mut wrong = parts(&whole, 3);
            change(&mut wrong[1]);
            let got = of(3, wrong).unwrap_err();
            assert!(got.to_string().contains("a part of segment 1"), "{got}");
        }
        assert!(of(3, parts(&whole, 3)).is_ok());
        let cut = Vocabulary::new(&corpus_of_texts(300, &["one two three ".repeat(100)])).unwrap();
        let refused = RankedInvertedIndex::segments_refused(&cut, 3).unwrap();
        assert_eq!(refused, "a document goes on in another segment");
    }
}
