//! Which words stand near one another, and how often.
//!
//! A pair of positions i < j < i + window of one document, counted in words, is one occurrence of the
//! pair of their words, the smaller word first; separators do not matter, and a word pairs with
//! itself. So `window` = 2 pairs neighbours, and k equal words in a row have k - 1 such pairs.
//!
//! Pairs are met like windows of `window` words: in the rule where they cross a border between two
//! children, with the rule's weight, or at every word of the text. O(windows * window).

use std::sync::Arc;

use super::sequences::choice::chosen;
use super::sequences::edges::Sink;
use super::sequences::entries::Keyed;
use super::sequences::keep::Keep;
use super::sequences::key::Key;
use super::sequences::merged::{Joining, check_parts, cut_document};
use super::sequences::packing::Packing;
use super::sequences::parts::Parts;
use super::sequences::passes::for_each_pass;
use super::sequences::rows::Sequences;
use super::sequences::walk::{Limit, Walk};
use super::sequences::weights::{NumberedWeights, Weights};
use super::sequences::windows::give_back_room;
use super::{SegmentSequences, Traversal, TraversalTask, Vocabulary};
use crate::corpus::Corpus;
use crate::error::{Error, Result};

/// Words of a text that are kept before the oldest are dropped.
const CONTEXT_LEN: usize = 1 << 12;
/// Room for pairs that a task begins with.
const TASK_PAIRS: usize = 1 << 17;

/// How often each pair of words stands at a distance below `window`, where that is `min_count`
/// times or more; ascending by the first word, then the second.
///
/// # Errors
/// [`Error::InvalidArgument`] for a `window` below 2, [`Error::Capacity`] where one pair alone is met more
/// often than `max_memory_bytes` hold or a count has more than 64 bits, and as [`Vocabulary::new`].
pub fn cooccurrence(
    corpus: &Corpus,
    window: usize,
    min_count: u64,
    max_memory_bytes: u64,
) -> Result<Cooccurrences> {
    let vocabulary = Arc::new(Vocabulary::new(corpus)?);
    let auto = Traversal::Auto;
    Cooccurrences::with_vocabulary(vocabulary, window, min_count, auto, max_memory_bytes)
}

/// What a pair is, and which are rows.
#[derive(Debug, Clone, Copy)]
pub struct Pairing {
    /// Words of which each two are a pair.
    pub window: usize,
    /// Rarer pairs are no rows.
    pub min_count: u64,
}

/// Pairs of words and their counts as rows.
#[derive(Debug, Clone)]
pub struct Cooccurrences {
    pairs: Sequences,
    counts: Vec<u64>,
}

impl Cooccurrences {
    /// The pairs of the words of `vocabulary`, by `traversal`. Bottom-up is taken as top-down.
    /// `max_memory_bytes` is for counting; the rows are held beside it.
    ///
    /// # Errors
    /// As [`cooccurrence`].
    pub fn with_vocabulary(
        vocabulary: Arc<Vocabulary>,
        window: usize,
        min_count: u64,
        traversal: Traversal,
        max_memory_bytes: u64,
    ) -> Result<Self> {
        let mut parts = Vec::new();
        let (pairing, words) = (Pairing { window, min_count }, vocabulary.clone());
        let rows = |part: Self| (part.pairs, part.counts);
        Self::in_parts(words, pairing, traversal, max_memory_bytes, rows, |part, _| {
            parts.push(part);
            Ok(true)
        })?;
        let packing = Packing::new(2, vocabulary.len());
        let (pairs, counts) = Sequences::joined(vocabulary, packing, &parts);
        Ok(Self { pairs, counts })
    }

    /// The same rows part by part, in order: `make` is called in parallel, `take` with what it made and
    /// the bytes held for counting, until it answers false. However many rows there are, memory has few
    /// parts of them.
    ///
    /// # Errors
    /// As [`cooccurrence`], and those of `take`.
    pub fn in_parts<T: Send>(
        vocabulary: Arc<Vocabulary>,
        Pairing { window, min_count }: Pairing,
        traversal: Traversal,
        max_memory_bytes: u64,
        make: impl Fn(Self) -> T + Send + Sync,
        mut take: impl FnMut(T, usize) -> Result<bool>,
    ) -> Result<()> {
        if window < 2 {
            let (got, allowed) = (window.to_string(), "2 words or more".to_owned());
            return Err(Error::InvalidArgument { name: "window", got, allowed });
        }
        let packing = Packing::new(2, vocabulary.len());
        let limit = Limit::new(max_memory_bytes, packing);
        let way = match traversal {
            Traversal::Auto => chosen(TraversalTask::Cooccurrence, &vocabulary, window, &limit),
            forced => forced,
        };
        let walk = Walk::new(&vocabulary, window - 1, way, max_memory_bytes / 2)?;
        let weights = walk.weights();
        let parts = Parts { vocabulary: &vocabulary, packing, weights: &weights, min_count };
        let make = |pairs, counts| make(Self { pairs, counts });
        match packing.all_bits() + (&weights).bits() {
            0..=64 => counted::<u64, T>(&parts, walk, window - 1, &limit, make, &mut take),
            _ => counted::<u128, T>(&parts, walk, window - 1, &limit, make, &mut take),
        }
    }

    /// Why pairs of segments cannot be [`of_segments`](Self::of_segments), if they cannot.
    pub fn segments_refused(vocabulary: &Vocabulary) -> Option<String> {
        cut_document(vocabulary)
    }

    /// The pairs of the words of `vocabulary`, from those of each of its segments, of which all are there.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where they are [refused](Self::segments_refused) or are not one part
    /// for each segment, [`Error::Capacity`] where a count has more than 64 bits.
    pub fn of_segments(
        vocabulary: Arc<Vocabulary>,
        min_count: u64,
        parts: Vec<SegmentSequences>,
    ) -> Result<Self> {
        check_parts(&vocabulary, parts.len(), Self::segments_refused(&vocabulary))?;
        let packing = Packing::new(2, vocabulary.len());
        let (pairs, counts) =
            Joining { packing, min_count, are_pairs: true }.rows(vocabulary, parts)?;
        Ok(Self { pairs, counts })
    }

    /// The rows' pairs, as sequences of 2 words.
    pub fn pairs(&self) -> &Sequences {
        &self.pairs
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How often the pair of each row occurs.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Main memory of the rows, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.pairs.memory_bytes() + size_of_val(self.counts.as_slice())
    }
}

/// Meets all pairs at a distance of `reach` at most and adds them up.
fn counted<K: Key + Keyed<Key = K>, T: Send>(
    parts: &Parts<'_>,
    walk: Walk,
    reach: usize,
    limit: &Limit,
    make: impl Fn(Sequences, Vec<u64>) -> T + Send + Sync,
    take: &mut impl FnMut(T, usize) -> Result<bool>,
) -> Result<()> {
    let packing = parts.packing;
    let new = |keep| Pairs::<K>::new(packing, reach, parts.weights, keep, limit.max_met());
    let bits = packing.all_bits();
    for_each_pass(walk, parts.vocabulary, limit, bits, new, |tasks, range, held_bytes| {
        let keys = tasks.into_iter().map(|pairs| pairs.keys).collect();
        parts.of_keys(keys, range, &make, |part, bytes| take(part, held_bytes + bytes))
    })
}

/// Pairs as they are met: the smaller word, the other, and below them the number of the weight.
#[derive(Debug)]
struct Pairs<'a, K> {
    packing: Packing,
    /// Largest distance.
    reach: usize,
    weights: &'a Weights,
    /// Number of the weight at hand.
    weight: u32,
    /// Pairs after which no more are kept, as the walk will be refused.
    max_met: usize,
    /// Words of the text so far; the last `reach` of them matter.
    context: Vec<u32>,
    keep: Keep<K>,
    keys: Vec<K>,
}

impl<'a, K: Key> Pairs<'a, K> {
    fn new(
        packing: Packing,
        reach: usize,
        weights: &'a Weights,
        keep: Keep<K>,
        max_met: usize,
    ) -> Self {
        let room = if keep.is_all() { TASK_PAIRS } else { 0 };
        let (context, keys) = (Vec::new(), Vec::with_capacity(room));
        Self { packing, reach, weights, weight: 0, max_met, context, keep, keys }
    }

    /// Pairs `word`, `skipped` words behind the context, with the words of that.
    #[inline]
    fn meet(&mut self, word: u32, skipped: usize) {
        if self.keys.len() > self.max_met {
            return;
        }
        let reach = self.reach.saturating_sub(skipped).min(self.context.len());
        let (word_bits, all_bits) = (self.packing.word_bits(), self.packing.all_bits());
        let (weight, weight_bits) = (self.weight, self.weights.bits());
        let near = self.context[self.context.len() - reach..].iter();
        let pairs = near.map(|&other| {
            let first = K::default().rolled(word.min(other), word_bits, all_bits);
            first.rolled(word.max(other), word_bits, all_bits)
        });
        let with_weight = |pair: K| pair.with_value(weight, weight_bits);
        if self.keep.is_all() {
            self.keys.extend(pairs.map(with_weight));
        } else {
            let keep = &self.keep;
            let kept = pairs.filter(|&pair| keep.is_kept(|| pair));
            self.keys.extend(kept.map(with_weight));
        }
    }
}

impl<K: Key> Sink for Pairs<'_, K> {
    fn begin(&mut self, weight: u64) {
        self.context.clear();
        self.weight = self.weights.number(weight);
    }

    #[inline]
    fn push(&mut self, word: u32) {
        self.meet(word, 0);
        self.context.push(word);
        if self.context.len() >= self.reach.saturating_mul(2).saturating_add(CONTEXT_LEN) {
            self.context.drain(..self.context.len() - self.reach);
        }
    }

    fn push_child(&mut self, head: &[u32], tail: Option<&[u32]>) {
        for (at, &word) in head.iter().enumerate() {
            self.meet(word, at);
        }
        match tail {
            None => self.context.extend_from_slice(head),
            Some(tail) => {
                self.context.clear();
                self.context.extend_from_slice(tail);
            }
        }
    }

    fn num_met(&self) -> usize {
        self.keys.len()
    }

    fn forget(&mut self, num_met: usize) {
        self.keys.truncate(num_met);
    }

    fn close(&mut self) {
        self.context = Vec::new();
        give_back_room(&mut self.keys);
    }
}
