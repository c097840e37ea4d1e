//! Near duplicates: pairs of documents that have most of their n-grams in common.
//!
//! ```text
//! documents  0: a b c d e f    1: a b c d e g    2: a b c d e f      n = 2
//! n-grams    ab bc cd de ef    ab bc cd de eg    as 0
//! pairs      0, 2: 5 of 5 in common, 1.0     0, 1: 4 of 6, 0.67      not 1, 2: 2 equals 0
//! ```
//!
//! The similarity of two documents is that of Jaccard: the n-grams of both, divided by the n-grams of
//! either, each counted once. It is computed on the sets themselves, so no pair is wrong, and none is
//! missed. Documents of fewer than n words have no n-grams and no pairs. Of documents with equal sets
//! only the first stands for all in pairs with others: it has a pair with each of them, and they have
//! no more. So 10,000 equal documents make 9,999 pairs.
//!
//! ```text
//! text ──grams──▶ names ──sets──▶ sorted by rarity ──join──▶ pairs
//!                 of n-grams      x: │prefix │ rest │
//!                                 y: │prefix   │ rest │      similar only if the prefixes meet
//! ```
//!
//! The join filters by prefixes (Chaudhuri, Ganti, Kaushik, "A primitive operator for similarity joins
//! in data cleaning", ICDE 2006; Bayardo, Ma, Srikant, "Scaling up all pairs similarity search", WWW
//! 2007). Let all sets be sorted by the same order. Two sets of s and s' n-grams that are similar share
//! at least threshold * s. So each has one of them among its first s - ceil(threshold * s) + 1 n-grams.
//! Rare n-grams come first, so few sets meet. Sets of lengths that differ too much are not compared.
//! MinHash would need less memory and miss pairs.
//!
//! O(words * log words), and O(n-grams) for each pair of sets whose prefixes meet. Memory is at most
//! [`WORD_BYTES`] for each word. A text that needs more than the caller allows is rejected before it
//! is read.
//!
//! Reading order: `sets`, `join`.

mod join;
mod sets;

use std::sync::Arc;

use crate::error::{Error, Result};

use super::repeated_phrases::check_at_least;
use super::sequences::for_each_in_order;
use super::{DocSelection, Vocabulary};
use join::Index;
use sets::Sets;

/// Bytes of memory for each word: 4 for the text, 16 for its sorted n-grams, 4 for their names, and
/// the reserve of vectors.
const WORD_BYTES: u64 = 36;
/// Number of documents that one task compares with others.
const DOCS_PER_TASK: usize = 16;

/// Two documents that are similar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimilarPair {
    /// Document with the lower id.
    pub doc_id_a: u64,
    /// Document with the higher id.
    pub doc_id_b: u64,
    /// N-grams of both, divided by n-grams of either: above 0, and 1 at most.
    pub similarity: f64,
}

/// Documents of a corpus as sets of n-grams, ready to be compared.
#[derive(Debug)]
pub struct NearDuplicates {
    sets: Sets,
    index: Index,
    threshold: f64,
}

impl NearDuplicates {
    /// Reads the n-grams of `docs`, with `num_words` words each, as words of `vocabulary`. Pairs will
    /// have a similarity of `threshold` or more.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tadoc::Corpus;
    /// use tadoc::analytics::{DocSelection, NearDuplicates, Vocabulary};
    /// use tadoc::build::{CorpusBuilder, IngestOptions};
    /// use tadoc::format::OpenLimits;
    ///
    /// # fn main() -> tadoc::Result<()> {
    /// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// builder.push_document("a", b"the quick brown fox jumps")?;
    /// builder.push_document("b", b"The quick brown fox jumps")?;
    /// let (file, _report) = builder.finish(None)?;
    /// let (_footer, corpus) = Corpus::from_bytes("c.tadoc", &file, &OpenLimits::default())?;
    ///
    /// let vocabulary = Arc::new(Vocabulary::new(&corpus)?);
    /// let docs = DocSelection::all(&corpus);
    /// let documents = NearDuplicates::new(&vocabulary, &docs, 0.5, 2, 1 << 30)?;
    /// documents.for_each_pairs(&|| false, |pairs| {
    ///     assert_eq!((pairs[0].doc_id_a, pairs[0].doc_id_b, pairs[0].similarity), (0, 1, 0.6));
    ///     Ok(true)
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`check`](Self::check); [`Error::Capacity`] if the work needs more than `max_memory_bytes`.
    pub fn new(
        vocabulary: &Arc<Vocabulary>,
        docs: &DocSelection,
        threshold: f64,
        num_words: usize,
        max_memory_bytes: u64,
    ) -> Result<Self> {
        Self::check(threshold, num_words)?;
        let sets = Sets::read(vocabulary, docs, num_words, max_memory_bytes)?;
        let index = Index::new(&sets, threshold);
        Ok(Self { sets, index, threshold })
    }

    /// Checks the arguments of [`new`](Self::new).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `threshold` is not above 0 and at most 1, or if `num_words` is 0.
    pub fn check(threshold: f64, num_words: usize) -> Result<()> {
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(Error::InvalidArgument {
                name: "threshold",
                got: threshold.to_string(),
                allowed: "a number above 0, 1 at most".to_owned(),
            });
        }
        check_at_least("n", num_words as u64, 1)
    }

    /// Calls `take` with the pairs, in order of both ids and some at a time, until it returns false.
    /// Pairs are found in parallel. `is_cancelled` is asked for each document.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and the errors of `take`.
    pub fn for_each_pairs(
        &self,
        is_cancelled: &(dyn Fn() -> bool + Sync),
        mut take: impl FnMut(&[SimilarPair]) -> Result<bool>,
    ) -> Result<()> {
        let find = |task: usize| {
            let mut pairs = Vec::new();
            let end = self.sets.len().min((task + 1) * DOCS_PER_TASK);
            for set in task * DOCS_PER_TASK..end {
                if is_cancelled() {
                    return Err(Error::Cancelled);
                }
                self.index.find_pairs(&self.sets, set, self.threshold, &mut pairs);
            }
            Ok(pairs)
        };
        let num_tasks = self.sets.len().div_ceil(DOCS_PER_TASK);
        for_each_in_order(num_tasks, find, |pairs: Result<Vec<SimilarPair>>| {
            let pairs = pairs?;
            if pairs.is_empty() { Ok(true) } else { take(&pairs) }
        })
        .map(drop)
    }

    /// Returns the bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        self.sets.memory_bytes() + self.index.memory_bytes()
    }
}
