//! For each sequence of n words the documents that hold it, those that repeat it most first.
//!
//! The counts by document are sorted by sequence, which keeps documents ascending, and each
//! sequence's documents by count: O(rows * log rows), rows being distinct sequences of a document.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::{Traversal, Vocabulary};
use crate::corpus::Corpus;
use crate::error::Result;

use super::by_document::{DocumentSequenceCounts, DocumentSequences};
use super::entries::{Entry, for_each_sequence, sorted_buckets};
use super::rows::{Counted, Sequences};

/// Rows of a task.
const TASK_ROWS: usize = 1 << 16;

/// For each sequence of `n` words, ascending, the documents that hold it by descending count; those
/// with equal counts by ascending id.
///
/// # Errors
/// As [`DocumentSequences::new`] and [`DocumentSequences::chunk`] for all documents.
pub fn ranked_inverted_index(
    corpus: &Corpus,
    n: usize,
    max_memory_bytes: u64,
) -> Result<RankedInvertedIndex> {
    let vocabulary = Arc::new(Vocabulary::new(corpus)?);
    RankedInvertedIndex::with_vocabulary(vocabulary, n, Traversal::Auto, max_memory_bytes)
}

/// Sequences and their documents as rows.
#[derive(Debug, Clone)]
pub struct RankedInvertedIndex {
    sequences: Sequences,
    /// Sequence `row` has the entries `ends[row]..ends[row + 1]` of `docs` and `counts`.
    ends: Vec<usize>,
    doc_ids: Vec<u64>,
    counts: Vec<u64>,
}

/// What is found in one range of sequences.
#[derive(Default)]
struct Part {
    sequences: Counted,
    lens: Vec<usize>,
    doc_ids: Vec<u64>,
    counts: Vec<u64>,
}

impl RankedInvertedIndex {
    /// The index of the sequences of `n` words of `vocabulary`; documents are counted by `traversal`.
    ///
    /// # Errors
    /// As [`ranked_inverted_index`].
    pub fn with_vocabulary(
        vocabulary: Arc<Vocabulary>,
        n: usize,
        traversal: Traversal,
        max_memory_bytes: u64,
    ) -> Result<Self> {
        let all: Vec<u64> = (0..vocabulary.corpus().num_docs()).collect();
        let by_document =
            DocumentSequences::new(vocabulary.clone(), n, traversal, max_memory_bytes)?;
        let table = by_document.chunk(&all)?;
        drop(by_document);
        let packing = table.sequences().packing();
        let parts =
            sorted_buckets(entries(&table), packing.key_bits(), 0, |entries| part(entries, &table));
        let mut sequences = Sequences::new(vocabulary, packing);
        sequences.extend(parts.iter().map(|part| &part.sequences));
        let mut ends = vec![0];
        ends.extend(parts.iter().flat_map(|part| &part.lens).scan(0, |end, len| {
            *end += len;
            Some(*end)
        }));
        let doc_ids = parts.iter().flat_map(|part| part.doc_ids.iter().copied()).collect();
        let counts = parts.iter().flat_map(|part| part.counts.iter().copied()).collect();
        Ok(Self { sequences, ends, doc_ids, counts })
    }

    /// The rows' sequences.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// Number of rows, the distinct sequences.
    pub fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// Whether there is no sequence.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Places in [`doc_ids`](Self::doc_ids) and [`counts`](Self::counts) that belong to the sequence
    /// of `row`; rank 1 is the first of them.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
    pub fn places_of(&self, row: usize) -> Range<usize> {
        self.ends[row]..self.ends[row + 1]
    }

    /// Documents of all sequences, by rank within each.
    pub fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// How often the sequence occurs in each of [`doc_ids`](Self::doc_ids), 1 or more.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Main memory of the rows, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.sequences.memory_bytes()
            + 8 * (self.ends.len() + self.doc_ids.len() + self.counts.len())
    }
}

/// The rows of `table`, in tasks.
fn entries(table: &DocumentSequenceCounts) -> Vec<Vec<Entry>> {
    let num_rows = table.counts().len();
    let starts: Vec<usize> = (0..num_rows).step_by(TASK_ROWS).collect();
    let entry = |row| Entry { key: table.sequences().key(row), value: row as u64 };
    let task = |start: usize| (start..num_rows.min(start + TASK_ROWS)).map(entry).collect();
    starts.into_par_iter().map(task).collect()
}

fn part(entries: &mut [Entry], table: &DocumentSequenceCounts) -> Part {
    let mut part = Part::default();
    let mut docs: Vec<(Reverse<u64>, u64)> = Vec::new();
    let sequences = table.sequences();
    let words = |row: u64| sequences.row_words(row as usize);
    for_each_sequence(entries, sequences.packing(), &words, |run| {
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
    });
    part
}
