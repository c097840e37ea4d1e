//! Ranked inverted index: for each sequence of n words, the documents that contain it, by falling count.
//!
//! The counts by document are sorted by sequence, which keeps documents ascending. Then the
//! documents of each sequence are sorted by count. O(rows * log rows), where a row is a distinct
//! sequence of a document. If the rows do not fit into memory, they are made by ranges of
//! sequences, and all documents are counted again for each range ([`walk`](super::walk)).
//!
//! # Indexes of segments
//!
//! Ranked indexes of single segments, made elsewhere (on a device), are joined to that of the corpus:
//!
//! ```text
//! segment 0   a b: 3 in 7, 1 in 2          documents 0 to 9   ┐
//! segment 1   a b: 2 in 0    (document 10)                    ┴─▶ a b: 3 in 7, 2 in 10, 1 in 2
//! ```
//!
//! As for counts ([`count`](super::count)), corpora with cut documents are rejected. Entries of equal
//! sequences are joined and ranked again. If there is only one segment, its rows are used as they are.
//! O(entries) plus the time to sort them, in parallel; 32 bytes for each entry.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::vocabulary::WordRows;
use crate::analytics::{DocSelection, TaskLimits, Traversal, Vocabulary};
use crate::error::{Canceller, Error, Result};
use crate::ids::DocId;
use crate::segment::Corpus;

use super::by_document::DocumentSequences;
use super::count::{LoneSegment, check_parts, refused_words, row_key};
use super::entries::{Entry, for_each_sequence, sorted_buckets};
use super::key::{Keep, Key, Packing};
use super::walk::{KeyRange, fitting_ranges};
use super::{Counted, DocumentSequenceCounts, Sequences};

/// Number of rows of a parallel task.
const TASK_ROWS: usize = 1 << 16;

/// Builds the ranked index of the sequences of `n` words. Sequences ascend. The documents of a
/// sequence are in descending order of count; documents with equal counts are in ascending order of
/// id.
///
/// # Errors
/// The errors of [`DocumentSequences::new`], and [`Error::Capacity`] if one sequence alone has more
/// documents, or one document more sequences, than the memory of `limits` holds.
pub fn ranked_inverted_index<'a>(
    corpus: &Corpus,
    n: usize,
    limits: impl Into<TaskLimits<'a>>,
) -> Result<RankedInvertedIndex> {
    let vocabulary = Arc::new(Vocabulary::new(corpus)?);
    RankedInvertedIndex::with_vocabulary(vocabulary, n, Traversal::Auto, limits)
}

/// Sequences and their documents as rows.
#[derive(Debug, Clone)]
pub struct RankedInvertedIndex {
    sequences: Sequences,
    /// Ends in `doc_ids` and `counts`: sequence `row` has the entries `ends[row]..ends[row + 1]`.
    ends: Vec<usize>,
    doc_ids: Vec<u64>,
    counts: Vec<u64>,
}

/// Result of one range of sequences.
#[derive(Default)]
pub(super) struct RankedRange {
    pub sequences: Counted,
    /// Number of documents of each sequence.
    pub lens: Vec<usize>,
    pub doc_ids: Vec<u64>,
    pub counts: Vec<u64>,
}

impl RankedInvertedIndex {
    /// Builds the index of the sequences of `n` words of `vocabulary`. Documents are counted by
    /// `traversal`. The memory of `limits` is that for counting; if there are several ranges, the
    /// rows need more memory beside it.
    ///
    /// # Errors
    /// The errors of [`ranked_inverted_index`].
    pub fn with_vocabulary<'a>(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        traversal: Traversal,
        limits: impl Into<TaskLimits<'a>>,
    ) -> Result<Self> {
        let docs = DocSelection::all(vocabulary.corpus());
        let mut ranges = Vec::new();
        let words = vocabulary.clone();
        Self::in_ranges(words, &docs, n, traversal, limits, |range| {
            ranges.push(range);
            Ok(true)
        })?;
        if ranges.len() == 1 {
            return Ok(ranges.remove(0));
        }
        let packing = Packing::new(n, vocabulary.len());
        let mut parts = Vec::new();
        let mut all_lens = Vec::new();
        let mut doc_ids = Vec::new();
        let mut counts = Vec::new();
        for range in ranges {
            all_lens.extend(range.ends.windows(2).map(|ends| ends[1] - ends[0]));
            doc_ids.extend(range.doc_ids);
            counts.extend(range.counts);
            parts.push((range.sequences, Vec::new()));
        }
        let (sequences, _) = Sequences::joined(vocabulary, packing, &parts);
        Ok(Self { sequences, ends: ends_from(all_lens.into_iter()), doc_ids, counts })
    }

    /// Builds the index of `docs` and passes it to `take`: at once if memory has room for all rows,
    /// else one range of sequences after another, until `take` returns false.
    ///
    /// # Errors
    /// The errors of [`ranked_inverted_index`] and of `take`.
    pub fn in_ranges<'a>(
        vocabulary: Arc<Vocabulary>,
        docs: &DocSelection,
        n: usize,
        traversal: Traversal,
        limits: impl Into<TaskLimits<'a>>,
        mut take: impl FnMut(Self) -> Result<bool>,
    ) -> Result<()> {
        let doc_ids: Vec<u64> = docs.iter().collect();
        let limits: TaskLimits<'_> = limits.into();
        let canceller = limits.canceller();
        let by_document = DocumentSequences::new(vocabulary, n, traversal, limits)?;
        let key_bits = by_document.packing().key_bits();
        match by_document.chunk(&doc_ids) {
            Ok(table) => {
                drop(by_document);
                let all = (0, u64::ones(key_bits));
                return take(Self::from_table(table, all, canceller)?).map(drop);
            }
            Err(Error::Capacity { .. }) => {}
            Err(error) => return Err(error),
        }
        let ranges =
            fitting_ranges(&by_document.limit(), key_bits, |keep| by_document.chunk_for(&doc_ids, keep).map(drop))?;
        for (first, last) in ranges {
            let table = by_document.chunk_for(&doc_ids, &Keep::Within(first, last))?;
            if !take(Self::from_table(table, (first, last), canceller)?)? {
                break;
            }
        }
        Ok(())
    }

    /// Builds the index of the rows of `table`, whose keys lie in `range`.
    fn from_table(table: DocumentSequenceCounts, range: KeyRange<u64>, canceller: Canceller<'_>) -> Result<Self> {
        let packing = table.sequences().packing();
        let part = |entries: &mut [Entry]| part(entries, &table, canceller);
        let parts = sorted_buckets(entries(&table, canceller)?, range, canceller, part)?;
        let vocabulary = table.sequences().vocabulary().clone();
        drop(table);
        Self::from_parts(vocabulary, packing, &parts, canceller)
    }

    /// Joins `parts`, whose sequences ascend, to an index.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(super) fn from_parts(
        vocabulary: Arc<Vocabulary>,
        packing: Packing,
        parts: &[RankedRange],
        canceller: Canceller<'_>,
    ) -> Result<Self> {
        let mut sequences = Sequences::new(vocabulary, packing);
        sequences.extend(parts.iter().map(|part| &part.sequences));
        let ends = ends_from(parts.iter().flat_map(|part| part.lens.iter().copied()));
        let num_entries = parts.iter().map(|part| part.doc_ids.len()).sum();
        let mut doc_ids = Vec::with_capacity(num_entries);
        let mut counts = Vec::with_capacity(num_entries);
        for part in parts {
            canceller.check()?;
            doc_ids.extend_from_slice(&part.doc_ids);
            counts.extend_from_slice(&part.counts);
        }
        Ok(Self { sequences, ends, doc_ids, counts })
    }

    /// Creates the index of `sequences`. Sequence `row` has the entries `ends[row]..ends[row + 1]`.
    pub(super) fn from_rows(sequences: Sequences, ends: Vec<usize>, doc_ids: Vec<u64>, counts: Vec<u64>) -> Self {
        Self { sequences, ends, doc_ids, counts }
    }

    /// Returns the sequences of the rows.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// Returns the number of rows, which are the distinct sequences.
    pub fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// Returns true if there is no sequence.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the range of [`doc_ids`](Self::doc_ids) and [`counts`](Self::counts) that belongs to
    /// the sequence of `row`. Its first entry has rank 1.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn entries_of(&self, row: usize) -> Range<usize> {
        self.ends[row]..self.ends[row + 1]
    }

    /// Returns the documents of all sequences, by rank within each sequence.
    pub fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// Returns the number of occurrences of the sequence in each of [`doc_ids`](Self::doc_ids), 1
    /// or more.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the memory of the rows in bytes, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.sequences.memory_bytes() + 8 * (self.ends.len() + self.doc_ids.len() + self.counts.len())
    }
}

fn ends_from(lens: impl Iterator<Item = usize>) -> Vec<usize> {
    let ends = lens.scan(0, |end, len| {
        *end += len;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// Returns the rows of `table` as entries, in parallel tasks.
fn entries(table: &DocumentSequenceCounts, canceller: Canceller<'_>) -> Result<Vec<Vec<Entry>>> {
    let num_rows = table.counts().len();
    let starts: Vec<usize> = (0..num_rows).step_by(TASK_ROWS).collect();
    let entry = |row| Entry { key: table.sequences().key(row), value: row as u64 };
    let task = |start: usize| {
        canceller.check()?;
        Ok((start..num_rows.min(start + TASK_ROWS)).map(entry).collect())
    };
    starts.into_par_iter().map(task).collect()
}

fn part(entries: &mut [Entry], table: &DocumentSequenceCounts, canceller: Canceller<'_>) -> Result<RankedRange> {
    let mut part = RankedRange::default();
    let mut docs: Vec<(Reverse<u64>, u64)> = Vec::new();
    let sequences = table.sequences();
    let words = |row: u64| sequences.row_words(row as usize);
    for_each_sequence(entries, sequences.packing(), &words, canceller, |run| {
        docs.clear();
        docs.extend(run.iter().map(|entry| {
            let row = entry.value as usize;
            (Reverse(table.counts()[row]), table.doc_id_for(row))
        }));
        docs.sort_unstable();
        part.sequences.push(run[0], sequences.packing(), &words);
        part.lens.push(docs.len());
        part.doc_ids.extend(docs.iter().map(|&(_, doc_id)| doc_id));
        part.counts.extend(docs.iter().map(|&(Reverse(count), _)| count));
    })?;
    Ok(part)
}

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
    /// [`Error::InvalidArgument`] if the indexes [cannot be
    /// joined](Self::segments_refused) or there is not one part of the right shape for each
    /// segment, and [`Error::Cancelled`].
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
    let first_doc_ids: Vec<u64> = (0..parts.len()).map(|at| vocabulary.corpus().first_doc_id(at)).collect();
    let doc_id = |segment_idx: usize, at: usize| first_doc_ids[segment_idx] + u64::from(parts[segment_idx].docs[at]);
    let tasks = parts.iter().enumerate().flat_map(|(segment_idx, part)| {
        let starts = (0..part.keys.len()).step_by(TASK_SEQUENCES);
        starts.map(move |start| (segment_idx, start..part.keys.len().min(start + TASK_SEQUENCES)))
    });
    let tasks: Vec<_> = tasks.collect();
    // A value has a segment index and a place in that segment.
    let entries = tasks.into_par_iter().map(|(segment_idx, sequences)| {
        canceller.check()?;
        let part = &parts[segment_idx];
        let rows = rows.for_segment(segment_idx);
        let for_sequence = |sequence: usize| {
            let key = row_key(part.keys[sequence], part.word_bits, rows, packing);
            let places = part.starts[sequence] as usize..part.starts[sequence + 1] as usize;
            let wanted = places.filter(|&at| is_wanted[doc_id(segment_idx, at) as usize]);
            wanted.map(move |at| Entry { key, value: (segment_idx as u64) << 32 | at as u64 })
        };
        Ok(sequences.flat_map(for_sequence).collect())
    });
    let entries = entries.collect::<Result<Vec<Vec<Entry>>>>()?;
    let all = (0, u64::ones(packing.key_bits()));
    sorted_buckets(entries, all, canceller, |entries| {
        let mut part = RankedRange::default();
        let mut found: Vec<(u64, u64)> = Vec::new();
        for_each_sequence(entries, packing, &|_| &[], canceller, |run| {
            found.clear();
            found.extend(run.iter().map(|entry| {
                let segment_idx = (entry.value >> 32) as usize;
                let at = entry.value as u32 as usize;
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
        let alone = LoneSegment::new(corpus, segment_idx, n)?;
        let words = Arc::clone(&alone.vocabulary);
        let way = Traversal::TokenScan;
        let index = RankedInvertedIndex::with_vocabulary(words, n, way, 1 << 30)?;
        let key = |row| alone.key(index.sequences().words(row));
        let doc = |&doc_id: &u64| alone.corpus.doc_in(0, doc_id).map(u32::from);
        let ends = (0..index.len()).map(|row| index.entries_of(row).end as u32);
        Ok(Self {
            keys: (0..index.len()).map(key).collect(),
            starts: std::iter::once(0).chain(ends).collect(),
            docs: index.doc_ids().iter().filter_map(doc).collect(),
            counts: index.counts().to_vec(),
            word_bits: alone.word_bits,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::analytics::Fold;
    use crate::build::corpus_from_texts;

    use super::*;

    fn documents() -> Vec<String> {
        let word = |at: usize| ["be", "To", "or", "not", "to", "Be", "an"][at * at % 31 % 7];
        let text = |doc: usize| (0..doc * 7 % 40).map(|at| word(at + doc * 3)).collect::<Vec<_>>();
        (0..90).map(|doc| text(doc).join(" ")).collect()
    }

    fn parts(corpus: &Corpus, n: usize) -> Vec<SegmentRanked> {
        (0..corpus.segments().len()).map(|at| SegmentRanked::from_segment(corpus, at, n).unwrap()).collect()
    }

    #[test]
    fn ranks_of_segments_are_those_of_the_corpus() {
        for block_bytes in [1 << 20, 700, 300] {
            let corpus = corpus_from_texts(block_bytes, &documents());
            assert_eq!(corpus.segments().len() == 1, block_bytes == 1 << 20);
            let some = DocSelection::list([0, 3, 4, 40, 89]).unwrap();
            for (n, fold) in [(1, Fold::NONE), (2, Fold::CASE), (3, Fold::NONE), (1, Fold::CASE)] {
                let plain = Vocabulary::new(&corpus).unwrap();
                let vocabulary = Arc::new(plain.folded(&fold).unwrap());
                for docs in [&DocSelection::all(&corpus), &some] {
                    let words = vocabulary.clone();
                    let all = parts(&corpus, n);
                    let got = RankedInvertedIndex::from_segments(words.clone(), docs, n, all, 0).unwrap();
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
        let whole = corpus_from_texts(300, &documents());
        let vocabulary = Arc::new(Vocabulary::new(&whole).unwrap());
        let docs = DocSelection::all(&whole);
        let of = |n, parts| RankedInvertedIndex::from_segments(vocabulary.clone(), &docs, n, parts, 0);
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
        let cut = Vocabulary::new(&corpus_from_texts(300, &["one two three ".repeat(100)])).unwrap();
        let refused = RankedInvertedIndex::segments_refused(&cut, 3).unwrap();
        assert_eq!(refused, "a document goes on in another segment");
    }
}
