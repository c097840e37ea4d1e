//! How often each sequence of n words occurs in each document.
//!
//! A document is counted from the rules below it: weights inside the document flow from its part of
//! the root to its rules, parents before children, and every rule is looked at once, however often
//! the document repeats it. O(windows of the rules below) for each document, and nothing is kept
//! between documents, so that callers choose documents and stop between chunks of them.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::analytics::Vocabulary;
use crate::error::{Error, Result};

use super::borders::walk_borders;
use super::count::{Limit, check_num_words};
use super::edges::{Edges, Sink};
use super::entries::sort;
use super::packing::Packing;
use super::rows::{Counted, Sequences};
use super::windows::{PackedWindows, TextWindows};

/// Tasks for each thread, so that uneven documents do not matter.
const TASKS_PER_THREAD: usize = 8;

/// Counts sequences of n words by document, in chunks of documents.
#[derive(Debug)]
pub struct DocumentSequences {
    vocabulary: Arc<Vocabulary>,
    packing: Packing,
    edges: Vec<Edges>,
    max_memory_bytes: u64,
}

impl DocumentSequences {
    /// Prepares the grammar: O(rules * n).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `n` = 0, [`Error::Capacity`] where that takes more than
    /// `max_memory_bytes`.
    pub fn new(vocabulary: Arc<Vocabulary>, n: usize, max_memory_bytes: u64) -> Result<Self> {
        check_num_words(n)?;
        let packing = Packing::new(n, vocabulary.len());
        let edges = Edges::of_segments(&vocabulary, n - 1, max_memory_bytes / 2)?;
        Ok(Self { vocabulary, packing, edges, max_memory_bytes })
    }

    /// Main memory held between chunks, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.edges.iter().map(Edges::memory_bytes).sum()
    }

    /// The counts of the documents `doc_ids`, in this order; no other document is looked at.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where there is no such document, [`Error::Capacity`] where the chunk
    /// would take more than the limit.
    pub fn chunk(&self, doc_ids: &[u64]) -> Result<DocumentSequenceCounts> {
        let num_docs = self.vocabulary.corpus().num_docs();
        if let Some(&got) = doc_ids.iter().find(|&&doc_id| doc_id >= num_docs) {
            return Err(Error::OutOfRange { what: "doc_id", got, len: num_docs });
        }
        let limit = Limit::new(self.max_memory_bytes, self.packing);
        let num_tasks = rayon::current_num_threads() * TASKS_PER_THREAD;
        let task_len = doc_ids.len().div_ceil(num_tasks).max(1);
        let tasks = doc_ids.par_chunks(task_len).map(|doc_ids| match self.packing.is_whole() {
            true => self.count_packed(doc_ids, &limit),
            false => self.count_texts(doc_ids, &limit),
        });
        let (counted, lens): (Vec<Counted>, Vec<Vec<usize>>) =
            tasks.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let mut ends = vec![0];
        ends.extend(lens.iter().flatten().scan(0, |end, len| {
            *end += len;
            Some(*end)
        }));
        let mut sequences = Sequences::new(self.vocabulary.clone(), self.packing);
        sequences.extend(counted.iter());
        let counts = counted.iter().map(|part| part.counts.as_slice()).collect::<Vec<_>>().concat();
        Ok(DocumentSequenceCounts { doc_ids: doc_ids.to_vec(), ends, sequences, counts })
    }

    /// Sequences of documents one after another, and how many rows each document has.
    fn count_packed(&self, doc_ids: &[u64], limit: &Limit) -> Result<(Counted, Vec<usize>)> {
        let mut windows = PackedWindows::new(self.packing);
        let mut rules = LocalRules::new(&self.edges);
        let (mut counted, mut lens) = (Counted::default(), Vec::new());
        for &doc_id in doc_ids {
            windows.entries.clear();
            self.walk(doc_id, &mut rules, &mut windows, limit)?;
            let before = counted.counts.len();
            sort(&mut windows.entries);
            let packing = self.packing;
            counted.add(&mut windows.entries, packing, &|_| &[][..], &|value| value, 1)?;
            lens.push(counted.counts.len() - before);
            limit.add(counted.counts.len() - before)?;
        }
        Ok((counted, lens))
    }

    /// The same for sequences that do not fit a key.
    fn count_texts(&self, doc_ids: &[u64], limit: &Limit) -> Result<(Counted, Vec<usize>)> {
        let mut windows = TextWindows::new(self.packing);
        let mut rules = LocalRules::new(&self.edges);
        let (mut counted, mut lens) = (Counted::default(), Vec::new());
        for &doc_id in doc_ids {
            windows.clear();
            self.walk(doc_id, &mut rules, &mut windows, limit)?;
            let mut entries = windows.entries(0);
            let before = counted.counts.len();
            sort(&mut entries);
            let words = |value: u64| windows.words(value as usize);
            let weight = |value: u64| windows.weight(value as usize);
            counted.add(&mut entries, self.packing, &words, &weight, 1)?;
            lens.push(counted.counts.len() - before);
            limit.add(counted.counts.len() - before)?;
        }
        Ok((counted, lens))
    }

    /// Hands all windows of a document to `sink`.
    fn walk(
        &self,
        doc_id: u64,
        rules: &mut LocalRules,
        sink: &mut impl Sink,
        limit: &Limit,
    ) -> Result<()> {
        let corpus = self.vocabulary.corpus();
        let mut num_parts = 0;
        for (at, doc) in corpus.doc_parts(doc_id) {
            let edges = &self.edges[at];
            let range = edges.dag().doc_range(doc);
            sink.begin(1);
            edges.walk(range.clone(), sink, limit.max_met())?;
            rules.add_children(edges, range, 1);
            while let Some((rule_idx, weight)) = rules.pop() {
                let range = edges.dag().rule_range(rule_idx);
                sink.begin(weight);
                edges.walk(range.clone(), sink, limit.max_met())?;
                rules.add_children(edges, range, weight);
            }
            num_parts += 1;
        }
        if num_parts > 1 {
            walk_borders(&self.edges, corpus, Some(doc_id), sink);
        }
        Ok(())
    }
}

/// Rules of one document that are still to be looked at, parents before children.
struct LocalRules {
    weights: Vec<u64>,
    /// One bit a rule: it has a weight.
    bits: Vec<u64>,
    /// One bit for each of `bits` that is not 0.
    summary: Vec<u64>,
    /// Before here `summary` is 0.
    first: usize,
}

impl LocalRules {
    fn new(edges: &[Edges]) -> Self {
        let num_rules = edges.iter().map(|edges| edges.dag().grammar().num_rules()).max();
        let num_rules = num_rules.unwrap_or(0);
        let bits = vec![0; num_rules / 64 + 1];
        let summary = vec![0; bits.len() / 64 + 1];
        Self { weights: vec![0; num_rules], bits, summary, first: 0 }
    }

    fn add_children(&mut self, edges: &Edges, positions: Range<usize>, weight: u64) {
        let dag = edges.dag();
        for &element in &dag.grammar().symbols[positions] {
            if let Some(rule_idx) = dag.rule_of(element) {
                self.weights[rule_idx] += weight;
                self.bits[rule_idx / 64] |= 1 << (rule_idx % 64);
                self.summary[rule_idx / 4096] |= 1 << (rule_idx / 64 % 64);
            }
        }
    }

    /// The first rule and its weight.
    fn pop(&mut self) -> Option<(usize, u64)> {
        let ahead = self.summary[self.first..].iter().position(|&bits| bits != 0);
        let Some(ahead) = ahead else {
            self.first = 0;
            return None;
        };
        self.first += ahead;
        let at = self.first * 64 + self.summary[self.first].trailing_zeros() as usize;
        let bits = self.bits[at];
        let rule_idx = at * 64 + bits.trailing_zeros() as usize;
        self.bits[at] = bits & (bits - 1);
        if self.bits[at] == 0 {
            self.summary[self.first] &= self.summary[self.first] - 1;
        }
        Some((rule_idx, std::mem::take(&mut self.weights[rule_idx])))
    }
}

/// Sequences and their counts by document, as rows in the order of the documents and, inside a
/// document, of the words.
#[derive(Debug, Clone)]
pub struct DocumentSequenceCounts {
    doc_ids: Vec<u64>,
    /// Document `at` has the rows `ends[at]..ends[at + 1]`.
    ends: Vec<usize>,
    sequences: Sequences,
    counts: Vec<u64>,
}

impl DocumentSequenceCounts {
    /// The documents of the chunk.
    pub fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// The rows of the document `at` that place of [`doc_ids`](Self::doc_ids).
    ///
    /// # Panics
    /// When `at` is not below the number of documents.
    pub fn rows_of(&self, at: usize) -> Range<usize> {
        self.ends[at]..self.ends[at + 1]
    }

    /// The document of `row`.
    pub(super) fn doc_id_of(&self, row: usize) -> u64 {
        self.doc_ids[self.ends.partition_point(|&end| end <= row) - 1]
    }

    /// The rows' sequences.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// How often the sequence of each row occurs in the row's document, 1 or more.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Main memory of the rows, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.sequences.memory_bytes()
            + size_of_val(self.counts.as_slice())
            + size_of_val(self.doc_ids.as_slice())
            + size_of_val(self.ends.as_slice())
    }
}
