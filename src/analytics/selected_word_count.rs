//! How often each word occurs in selected documents only.
//!
//! Every selected document puts a count on the elements of its root range, then one sweep passes
//! them on, however many documents there are. Where most of a segment is selected, the other
//! documents are counted instead and taken off the counts of the whole segment, which are often
//! there already. O(root ranges that are read + rules reached), at most O(G).

use std::sync::Arc;

use rayon::prelude::*;

use crate::corpus::Corpus;
use crate::dag::Dag;
use crate::error::Result;

use super::vocabulary::word_weights;
use super::word_count::too_large;
use super::{DocSelection, Vocabulary};

/// Words of selected documents and their counts, ascending by row of the vocabulary.
#[derive(Debug, Clone)]
pub struct SelectedWordCounts {
    vocabulary: Arc<Vocabulary>,
    rows: Vec<u32>,
    counts: Vec<u64>,
}

impl SelectedWordCounts {
    /// Counts the words of `docs`. Words that occur in none of them get no row.
    ///
    /// # Errors
    /// [`Error::Capacity`](crate::Error::Capacity) where a count has more than 64 bits.
    pub fn new(vocabulary: Arc<Vocabulary>, docs: &DocSelection) -> Result<Self> {
        let corpus = vocabulary.corpus();
        let by_segment: Vec<Vec<u64>> = (0..corpus.segments().len())
            .into_par_iter()
            .map(|segment_idx| segment_counts(corpus, segment_idx, docs))
            .collect();
        let (mut rows, mut counts) = (Vec::new(), Vec::new());
        for row in 0..vocabulary.len() {
            let count = vocabulary.ids(row).try_fold(0u64, |sum, (segment_idx, word)| {
                let count = by_segment[segment_idx].get(word as usize).copied().unwrap_or(0);
                sum.checked_add(count)
            });
            let count = count.ok_or_else(too_large)?;
            if count > 0 {
                rows.push(row as u32);
                counts.push(count);
            }
        }
        Ok(Self { vocabulary, rows, counts })
    }

    /// The rows' words.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The words that occur, as rows of the vocabulary, ascending.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// How often each of [`rows`](Self::rows) occurs, 1 or more.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Words and counts.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u64)> + '_ {
        let counted = self.rows.iter().zip(&self.counts);
        counted.map(|(&row, &count)| (self.vocabulary.word(row as usize), count))
    }

    /// Main memory held, the vocabulary not counted.
    pub fn memory_bytes(&self) -> usize {
        4 * self.rows.capacity() + 8 * self.counts.capacity()
    }
}

/// Counts by word id of the selected documents of a segment; empty where there are none.
fn segment_counts(corpus: &Corpus, segment_idx: usize, docs: &DocSelection) -> Vec<u64> {
    let segment = &corpus.segments()[segment_idx];
    let dag = &segment.dag;
    let num_docs = dag.grammar().num_docs();
    let first_id = corpus.first_doc_id(segment_idx);
    let selected = docs.within(first_id..first_id + num_docs as u64);
    if selected.is_empty() {
        return Vec::new();
    }
    let selected_docs = || selected.iter().map(|doc_id| (doc_id - first_id) as usize);
    let num_selected: usize = selected_docs().map(|doc| dag.doc_range(doc).len()).sum();
    if 2 * num_selected <= dag.grammar().root().len() {
        return sum_of(dag, selected_docs());
    }
    let mut counts = word_weights(segment).to_vec();
    if selected.len() < num_docs {
        let mut is_selected = vec![false; num_docs];
        selected_docs().for_each(|doc| is_selected[doc] = true);
        let others = sum_of(dag, (0..num_docs).filter(|&doc| !is_selected[doc]));
        counts.iter_mut().zip(others).for_each(|(count, other)| *count -= other);
    }
    counts
}

/// Counts by word id of `docs`. Those of words and rules with words are exact, see [`Dag::weights`].
fn sum_of(dag: &Dag, docs: impl Iterator<Item = usize>) -> Vec<u64> {
    let grammar = dag.grammar();
    let num_terminals = dag.num_terminals() as usize;
    let mut counts = vec![0u64; dag.num_elements()];
    let mut first_rule = grammar.num_rules();
    for doc in docs {
        for &element in &grammar.symbols[dag.doc_range(doc)] {
            counts[element as usize] = counts[element as usize].wrapping_add(1);
            first_rule = first_rule.min(dag.rule_of(element).unwrap_or(first_rule));
        }
    }
    for rule_idx in first_rule..grammar.num_rules() {
        let count = counts[num_terminals + rule_idx];
        if count == 0 {
            continue;
        }
        for &element in grammar.rule(rule_idx) {
            counts[element as usize] = counts[element as usize].wrapping_add(count);
        }
    }
    counts.truncate(dag.num_words() as usize);
    counts
}
