//! Pairs that a walk meets, collected in buckets.

use crate::analytics::sequences::Sink;
use crate::analytics::sequences::keep::Keep;
use crate::analytics::sequences::key::Key;
use crate::analytics::sequences::packing::Packing;
use crate::analytics::sequences::weights::{NumberedWeights, Weights};
use crate::interrupt::Canceller;

use super::buckets::FirstWords;

/// Number of words of a text that are kept before the oldest are dropped.
const CONTEXT_LEN: usize = 1 << 12;
/// Initial room for the pairs of a parallel task.
const TASK_PAIRS: usize = 1 << 17;
/// Number of pairs of words that are looked at between two looks at the cancellation.
const CHECK_PAIRS: usize = 1 << 16;
/// Number of pairs met after the caller has left, too large for any limit.
const STOPPED: usize = usize::MAX;

/// Parameters of meeting pairs.
#[derive(Debug, Clone, Copy)]
pub(in crate::analytics) struct Meeting<'a> {
    pub packing: Packing,
    /// Maximum distance between the words of a pair.
    pub reach: usize,
    pub weights: &'a Weights,
    pub firsts: &'a FirstWords,
    /// Maximum number of pairs kept. A walk with more pairs is going to be rejected.
    pub max_met: usize,
    pub canceller: Canceller<'a>,
}

/// Pairs of a parallel task, in buckets. A key has the smaller word, the other word and, in the
/// lowest bits, the number of the weight.
#[derive(Debug)]
pub(in crate::analytics) struct Pairs<'a, K> {
    meeting: Meeting<'a>,
    /// Number of the current weight.
    weight: u32,
    /// Last words of the text; only the last `reach` of them matter.
    context: Vec<u32>,
    keep: Keep<K>,
    /// Least word whose pairs may be kept.
    least: u32,
    num_met: usize,
    /// Number of pairs to the next look at the cancellation.
    num_unchecked: usize,
    pub buckets: Vec<Vec<K>>,
}

impl<'a, K: Key> Pairs<'a, K> {
    pub fn new(meeting: Meeting<'a>, keep: Keep<K>) -> Self {
        let num_buckets = meeting.firsts.num_buckets();
        let room = if keep.is_all() { TASK_PAIRS / num_buckets.max(1) } else { 0 };
        let buckets = (0..num_buckets).map(|_| Vec::with_capacity(room)).collect();
        let least = match &keep {
            Keep::Within(first, _) => meeting.packing.word(*first, 0),
            Keep::All | Keep::Counted(_) => 0,
        };
        let (num_met, num_unchecked) = (0, CHECK_PAIRS);
        let context = Vec::new();
        Self { meeting, weight: 0, context, keep, least, num_met, num_unchecked, buckets }
    }

    /// Pairs `word` with the words of the context. There are `skipped` words between the context
    /// and `word`.
    #[inline]
    fn meet(&mut self, word: u32, skipped: usize) {
        let Meeting { packing, reach, weights, firsts, max_met, canceller } = self.meeting;
        if word < self.least || self.num_met > max_met {
            return;
        }
        let reach = reach.saturating_sub(skipped).min(self.context.len());
        // A step of a walk has a word, so pairs of wide windows are checked here.
        if reach >= self.num_unchecked {
            self.num_unchecked = CHECK_PAIRS;
            if canceller.check().is_err() {
                self.num_met = STOPPED;
                return;
            }
        }
        self.num_unchecked -= reach.min(self.num_unchecked);
        let near = &self.context[self.context.len() - reach..];
        let (word_bits, all_bits) = (packing.word_bits(), packing.all_bits());
        let (weight, weight_bits) = (self.weight, weights.bits());
        let pairs = near.iter().map(|&other| {
            let first = word.min(other);
            let pair = K::default().rolled(first, word_bits, all_bits);
            (firsts.bucket(first), pair.rolled(word.max(other), word_bits, all_bits))
        });
        if self.keep.is_all() {
            for (bucket, pair) in pairs {
                self.buckets[bucket].push(pair.with_value(weight, weight_bits));
            }
            self.num_met += reach;
            return;
        }
        for (bucket, pair) in pairs {
            if self.keep.is_kept(|| pair) {
                self.buckets[bucket].push(pair.with_value(weight, weight_bits));
                self.num_met += 1;
            }
        }
    }
}

impl<K: Key> Sink for Pairs<'_, K> {
    fn begin(&mut self, weight: u64) {
        self.context.clear();
        self.weight = self.meeting.weights.number(weight);
    }

    #[inline]
    fn push(&mut self, word: u32) {
        self.meet(word, 0);
        self.context.push(word);
        let reach = self.meeting.reach;
        if self.context.len() >= reach.saturating_mul(2).saturating_add(CONTEXT_LEN) {
            self.context.drain(..self.context.len() - reach);
        }
    }

    fn push_child(&mut self, head: &[u32], tail: Option<&[u32]>) {
        for (at, &word) in head.iter().enumerate() {
            self.meet(word, at);
        }
        if tail.is_some() {
            self.context.clear();
        }
        self.context.extend_from_slice(tail.unwrap_or(head));
    }

    fn prime(&mut self, words: &[u32]) {
        self.context.extend_from_slice(words);
    }

    fn num_met(&self) -> usize {
        self.num_met
    }

    fn close(&mut self) {
        self.context = Vec::new();
        let room: usize = self.buckets.iter().map(Vec::capacity).sum();
        if self.num_met < room / 2 {
            self.buckets.iter_mut().for_each(Vec::shrink_to_fit);
        }
    }
}
