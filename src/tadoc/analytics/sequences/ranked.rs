//! Ranked inverted index: for each sequence of n words, the documents that contain it, by falling
//! count.
//!
//! The counts by document are sorted by sequence, which keeps documents ascending. Then the
//! documents of each sequence are sorted by count. O(rows * log rows), where a row is a distinct
//! sequence of a document. If the rows do not fit into memory, they are made by ranges of
//! sequences, and all documents are counted again for each range ([`passes`](super::passes)).

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::{DocSelection, TaskLimits, Traversal, Vocabulary};
use crate::error::{Error, Result};
use crate::interrupt::Canceller;
use crate::segment::Corpus;

use super::by_document::DocumentSequences;
use super::document_rows::DocumentSequenceCounts;
use super::entries::{Entry, for_each_sequence, sorted_buckets};
use super::keep::Keep;
use super::key::Key;
use super::packing::Packing;
use super::passes::{KeyRange, fitting_ranges};
use super::rows::{Counted, Sequences};

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
        let (mut parts, mut all_lens) = (Vec::new(), Vec::new());
        let (mut doc_ids, mut counts) = (Vec::new(), Vec::new());
        for range in ranges {
            all_lens.extend(range.ends.windows(2).map(|ends| ends[1] - ends[0]));
            doc_ids.extend(range.doc_ids);
            counts.extend(range.counts);
            parts.push((range.sequences, Vec::new()));
        }
        let (sequences, _) = Sequences::joined(vocabulary, packing, &parts);
        Ok(Self { sequences, ends: ends_of(all_lens.into_iter()), doc_ids, counts })
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
        let ranges = fitting_ranges(&by_document.limit(), key_bits, |keep| {
            by_document.chunk_of(&doc_ids, keep).map(drop)
        })?;
        for (first, last) in ranges {
            let table = by_document.chunk_of(&doc_ids, &Keep::Within(first, last))?;
            if !take(Self::from_table(table, (first, last), canceller)?)? {
                break;
            }
        }
        Ok(())
    }

    /// Builds the index of the rows of `table`, whose keys lie in `range`.
    fn from_table(
        table: DocumentSequenceCounts,
        range: KeyRange<u64>,
        canceller: Canceller<'_>,
    ) -> Result<Self> {
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
        let ends = ends_of(parts.iter().flat_map(|part| part.lens.iter().copied()));
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
    pub(super) fn from_rows(
        sequences: Sequences,
        ends: Vec<usize>,
        doc_ids: Vec<u64>,
        counts: Vec<u64>,
    ) -> Self {
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
        self.sequences.memory_bytes()
            + 8 * (self.ends.len() + self.doc_ids.len() + self.counts.len())
    }
}

fn ends_of(lens: impl Iterator<Item = usize>) -> Vec<usize> {
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

fn part(
    entries: &mut [Entry],
    table: &DocumentSequenceCounts,
    canceller: Canceller<'_>,
) -> Result<RankedRange> {
    let mut part = RankedRange::default();
    let mut docs: Vec<(Reverse<u64>, u64)> = Vec::new();
    let sequences = table.sequences();
    let words = |row: u64| sequences.row_words(row as usize);
    for_each_sequence(entries, sequences.packing(), &words, canceller, |run| {
        docs.clear();
        docs.extend(run.iter().map(|entry| {
            let row = entry.value as usize;
            (Reverse(table.counts()[row]), table.doc_id_of(row))
        }));
        docs.sort_unstable();
        part.sequences.push(run[0], sequences.packing(), &words);
        part.lens.push(docs.len());
        part.doc_ids.extend(docs.iter().map(|&(_, doc_id)| doc_id));
        part.counts.extend(docs.iter().map(|&(Reverse(count), _)| count));
    })?;
    Ok(part)
}
