//! Ranking of documents by BM25.
//!
//! ```text
//! score(document) = Σ idf(leaf) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · words / mean words))
//! idf(leaf)       = ln(1 + (N − df + 0.5) / (df + 0.5))
//! ```
//!
//! Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with
//! the idf of Lucene, which is never negative. The sum is over the leaves of the query with hits in
//! the document: words, phrases, wildcards, NEAR lists. `tf` is the number of these hits, `df` the
//! number of documents of the corpus with hits of the leaf alone, `N` the number of documents.
//!
//! [`LeafLists`] keep the documents of the leaves that were asked for last, so a word costs a pass
//! over the grammar once. After that a word costs O(documents with it), words joined by AND cost
//! O(documents with the rarest * log of the others), and words joined by OR leave out documents
//! that bounds on scores exclude. A heap keeps the best documents.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::error::{Error, Interrupt, Result};
use crate::segment::Corpus;

use super::{DocumentCount, SearchOptions};
use crate::query::language::{Expression, Query};
use crate::query::leaves::{LeafList, LeafLists, skip_to};

/// Parameters of a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankOptions {
    /// Most documents to return.
    pub top: usize,
    /// Saturation of the number of hits, 0 or more.
    pub k1: f64,
    /// Influence of the length of a document, 0 to 1.
    pub b: f64,
}

impl Default for RankOptions {
    fn default() -> Self {
        Self { top: 10, k1: 1.2, b: 0.75 }
    }
}

impl RankOptions {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a parameter out of its range.
    pub fn check(&self) -> Result<()> {
        let fault = |name, got: f64, allowed: &str| {
            Err(Error::InvalidArgument { name, got: got.to_string(), allowed: allowed.into() })
        };
        match (self.k1, self.b) {
            (k1, _) if !(0.0..=1e6).contains(&k1) => fault("k1", k1, "a number from 0 to 1000000"),
            (_, b) if !(0.0..=1.0).contains(&b) => fault("b", b, "a number from 0 to 1"),
            _ => Ok(()),
        }
    }
}

/// A document and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedDocument {
    /// Id of the document.
    pub doc_id: u64,
    /// Score, above 0.
    pub score: f64,
}

impl Eq for RankedDocument {}

impl PartialOrd for RankedDocument {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedDocument {
    /// The better document is less: that with the higher score, then that with the lower id.
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.doc_id.cmp(&other.doc_id))
    }
}

/// Ranks the documents of one corpus.
///
/// ```
/// use tadoc::Corpus;
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::OpenLimits;
/// use tadoc::query::{LeafLists, Query, RankOptions, Ranker, SearchOptions};
///
/// # fn main() -> tadoc::Result<()> {
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// builder.push_document("a", b"storm and storm")?;
/// builder.push_document("b", b"a storm in the long night before the day")?;
/// let (file, _report) = builder.finish(None)?;
/// let (_footer, corpus) = Corpus::from_bytes("c.tadoc", &file, &OpenLimits::default())?;
///
/// let (ranker, lists) = (Ranker::new(&corpus, None, None)?, LeafLists::default());
/// let query = Query::parse(corpus.profile(), "storm OR night")?;
/// let (options, search) = (RankOptions::default(), SearchOptions::default());
/// let best = ranker.rank(&corpus, &lists, &query, &options, &search)?;
/// assert_eq!(best.iter().map(|row| row.doc_id).collect::<Vec<_>>(), [1, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Ranker {
    num_docs: u64,
    num_words: u64,
    /// Words of each document; 0 for documents of segments that are not opened.
    doc_lens: Vec<u64>,
}

impl Ranker {
    /// Reads the lengths of the documents of `corpus`. `num_docs` and `num_words` are those of the
    /// whole corpus if segments are absent; `None` for those of `corpus`.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the sum of words has more than 64 bits.
    pub fn new(corpus: &Corpus, num_docs: Option<u64>, num_words: Option<u64>) -> Result<Self> {
        let mut doc_lens = vec![0u64; corpus.num_docs() as usize];
        for (segment_idx, segment) in corpus.segments().iter().enumerate() {
            for doc in segment.dag.grammar().docs() {
                let num_words = segment.doc_length_or_derive(doc).num_words;
                let len = &mut doc_lens[corpus.doc_id(segment_idx, doc) as usize];
                *len = len.checked_add(num_words).ok_or_else(too_many_words)?;
            }
        }
        let sum = doc_lens.iter().try_fold(0u64, |sum, &len| sum.checked_add(len));
        let sum = sum.ok_or_else(too_many_words)?;
        let num_docs = num_docs.unwrap_or_else(|| corpus.num_docs());
        let num_words = num_words.unwrap_or(sum);
        Ok(Self { num_docs, num_words, doc_lens })
    }

    /// Returns the bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&self.doc_lens[..])
    }

    /// Returns the best documents for `query`, best first; of equal scores that with the lower id
    /// comes first. `corpus` is the one that the ranker and `lists` were made for. Only
    /// `search.is_cancelled` is used.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for parameters out of range; those of
    /// [`count`](crate::query::count).
    pub fn rank(
        &self,
        corpus: &Corpus,
        lists: &LeafLists,
        query: &Query,
        options: &RankOptions,
        search: &SearchOptions<'_>,
    ) -> Result<Vec<RankedDocument>> {
        options.check()?;
        let counts = (0..query.leaves().len()).map(|leaf| lists.list(corpus, query, leaf, search));
        let counts: Vec<Arc<LeafList>> = counts.collect::<Result<_>>()?;
        let weights: Vec<f64> = counts.iter().map(|counts| self.idf(counts.docs.len())).collect();
        let lists: Vec<&[DocumentCount]> = counts.iter().map(|counts| &counts.docs[..]).collect();
        let scorer = Scorer { weights: &weights, norms: self.norms(options), k1: options.k1 };
        let mut best = Best { top: options.top, heap: BinaryHeap::new() };
        let canceller = search.canceller();
        let mut interrupt = canceller.interrupt();
        match query.root() {
            Expression::Leaf(leaf) => {
                for count in lists[*leaf] {
                    best.push(count.doc_id, scorer.part(*leaf, *count));
                }
            }
            Expression::And(parts) if let Some(leaves) = leaves_from(parts) => {
                rank_all(&leaves, &lists, &scorer, &mut best, &mut interrupt)?;
            }
            Expression::Or(parts) if let Some(leaves) = leaves_from(parts) => {
                let bounds = leaves.iter().map(|&leaf| scorer.bound(leaf, counts[leaf].max_count));
                let leaves = leaves.iter().copied().zip(bounds).collect();
                rank_any(leaves, &lists, &scorer, &mut best, &mut interrupt)?;
            }
            root => rank_each(root, &lists, &scorer, &mut best, &mut interrupt)?,
        }
        Ok(best.finish())
    }

    fn idf(&self, num_docs_with: usize) -> f64 {
        let all = self.num_docs as f64;
        let with = num_docs_with as f64;
        (1.0 + (all - with + 0.5).max(0.0) / (with + 0.5)).ln()
    }

    /// Returns the part of the formula that depends on the length of a document: the least for an
    /// id that does not exist.
    fn norms(&self, options: &RankOptions) -> impl Fn(u64) -> f64 {
        let mean = self.num_words as f64 / (self.num_docs as f64).max(1.0);
        let per_word = options.b / mean.max(f64::MIN_POSITIVE);
        let k1 = options.k1;
        let fixed = 1.0 - options.b;
        move |doc_id| {
            let len = self.doc_lens.get(doc_id as usize).copied().unwrap_or(0) as f64;
            k1 * (fixed + per_word * len)
        }
    }
}

fn too_many_words() -> Error {
    Error::Capacity {
        what: "the words of a corpus",
        requested: u64::MAX,
        limit: u64::MAX - 1,
        knob: "nothing (counts are 64-bit numbers)",
    }
}

/// Computes the parts of scores.
struct Scorer<'a, Norms> {
    weights: &'a [f64],
    norms: Norms,
    k1: f64,
}

impl<Norms: Fn(u64) -> f64> Scorer<'_, Norms> {
    /// Returns a number that no part of a leaf exceeds, with room for rounding.
    fn bound(&self, leaf: usize, max_count: u64) -> f64 {
        let tf = max_count as f64;
        let shortest = (self.norms)(u64::MAX);
        self.weights[leaf] * tf * (self.k1 + 1.0) / (tf + shortest) * (1.0 + 1e-9)
    }

    fn part(&self, leaf: usize, count: DocumentCount) -> f64 {
        let tf = count.count as f64;
        self.weights[leaf] * tf * (self.k1 + 1.0) / (tf + (self.norms)(count.doc_id))
    }
}

/// Returns the leaves of `parts` if all are leaves.
fn leaves_from(parts: &[Expression]) -> Option<Vec<usize>> {
    let leaf = |part: &Expression| match part {
        Expression::Leaf(leaf) => Some(*leaf),
        _ => None,
    };
    parts.iter().map(leaf).collect()
}

/// Returns the first count of `list` and removes it, if it is that of `doc_id`.
fn take(list: &mut &[DocumentCount], doc_id: u64) -> Option<DocumentCount> {
    let (count, rest) = list.split_first().filter(|(count, _)| count.doc_id == doc_id)?;
    *list = rest;
    Some(*count)
}

/// Scores the documents of all `leaves`: those of the shortest list, looked up in the others.
fn rank_all(
    leaves: &[usize],
    lists: &[&[DocumentCount]],
    scorer: &Scorer<'_, impl Fn(u64) -> f64>,
    best: &mut Best,
    interrupt: &mut Interrupt<'_>,
) -> Result<()> {
    let mut lists: Vec<&[DocumentCount]> = leaves.iter().map(|&leaf| lists[leaf]).collect();
    let shortest = lists.iter().copied().min_by_key(|list| list.len()).unwrap_or_default();
    for count in shortest {
        interrupt.check()?;
        let score = leaves
            .iter()
            .zip(&mut lists)
            .try_fold(0.0, |score, (&leaf, list)| Some(score + scorer.part(leaf, skip_to(list, count.doc_id)?)));
        if let Some(score) = score {
            best.push(count.doc_id, score);
        }
    }
    Ok(())
}

/// Scores the documents of any of `leaves`, each with the bound of its parts. The leaves with the
/// least bounds are left out of the merge as soon as a document with these alone cannot be among
/// the best, and are looked up for documents of the others (MaxScore, Turtle and Flood 1995).
fn rank_any(
    mut leaves: Vec<(usize, f64)>,
    lists: &[&[DocumentCount]],
    scorer: &Scorer<'_, impl Fn(u64) -> f64>,
    best: &mut Best,
    interrupt: &mut Interrupt<'_>,
) -> Result<()> {
    leaves.retain(|&(leaf, _)| !lists[leaf].is_empty());
    leaves.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut lists: Vec<&[DocumentCount]> = leaves.iter().map(|&(leaf, _)| lists[leaf]).collect();
    let sums = leaves.iter().scan(0.0, |sum, (_, bound)| {
        *sum += bound;
        Some(*sum)
    });
    let sums: Vec<f64> = sums.collect();
    let mut first = 0;
    let mut parts = Vec::new();
    while let Some(doc_id) = lists[first..].iter().filter_map(|list| list.first()).map(|c| c.doc_id).min() {
        interrupt.check()?;
        parts.clear();
        let (looked_up, merged) = lists.split_at_mut(first);
        for (list, &(leaf, _)) in merged.iter_mut().zip(&leaves[first..]) {
            if let Some(count) = take(list, doc_id) {
                parts.push((leaf, scorer.part(leaf, count)));
            }
        }
        let mut score: f64 = parts.iter().map(|(_, part)| part).sum();
        let least = best.least();
        for (at, list) in looked_up.iter_mut().enumerate().rev() {
            if score + sums[at] <= least {
                break;
            }
            let leaf = leaves[at].0;
            if let Some(count) = skip_to(list, doc_id) {
                parts.push((leaf, scorer.part(leaf, count)));
                score += scorer.part(leaf, count);
            }
        }
        // Equal documents get equal scores if their parts are added in the same order.
        parts.sort_unstable_by_key(|&(leaf, _)| leaf);
        best.push(doc_id, parts.iter().map(|(_, part)| part).sum());
        while first < sums.len() && sums[first] <= best.least() {
            first += 1;
        }
    }
    Ok(())
}

/// Scores the documents that meet `root`, one after the other.
fn rank_each(
    root: &Expression,
    lists: &[&[DocumentCount]],
    scorer: &Scorer<'_, impl Fn(u64) -> f64>,
    best: &mut Best,
    interrupt: &mut Interrupt<'_>,
) -> Result<()> {
    let mut lists = lists.to_vec();
    let mut here: Vec<Option<DocumentCount>> = vec![None; lists.len()];
    let mut is_scored = vec![false; lists.len()];
    while let Some(doc_id) = lists.iter().filter_map(|list| list.first()).map(|c| c.doc_id).min() {
        interrupt.check()?;
        for (list, here) in lists.iter_mut().zip(&mut here) {
            *here = take(list, doc_id);
        }
        let mut is_there = |leaf: usize| here[leaf].is_some();
        if root.holds(&mut is_there) {
            is_scored.fill(false);
            root.for_each_hit_leaf(&mut is_there, &mut |leaf| is_scored[leaf] = true);
            let leaves = here.iter().enumerate().filter(|&(leaf, _)| is_scored[leaf]);
            let parts = leaves.filter_map(|(leaf, count)| Some(scorer.part(leaf, (*count)?)));
            best.push(doc_id, parts.sum());
        }
    }
    Ok(())
}

/// The best documents so far.
struct Best {
    top: usize,
    /// The worst of them comes first.
    heap: BinaryHeap<RankedDocument>,
}

impl Best {
    fn push(&mut self, doc_id: u64, score: f64) {
        let document = RankedDocument { doc_id, score };
        if self.heap.len() < self.top {
            self.heap.push(document);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && document < *worst
        {
            *worst = document;
        }
    }

    /// Returns the score that a later document has to exceed.
    fn least(&self) -> f64 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.top => worst.score,
            _ if self.top == 0 => f64::INFINITY,
            _ => f64::NEG_INFINITY,
        }
    }

    fn finish(self) -> Vec<RankedDocument> {
        self.heap.into_sorted_vec()
    }
}
