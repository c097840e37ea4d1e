//! Frequent rules that are learned from a sample and applied to the whole sequence without
//! counting.
//!
//! ```text
//! sequence  |##------|##------|##------| ...     ## every 16th stretch belongs to the sample
//! sample    rounds down to LEAST_COUNT ─▶ rules with counts, a threshold for each round
//! chunk     look up pairs ─▶ choose ─▶ replace ─▶ look up new pairs ─▶ choose ─▶ ...
//! ```
//!
//! Most replacements concern a few thousand pairs that occur in any sample. Their replacement in a
//! chunk needs look-ups in a table that fits into the second-level cache, not a radix join, and no
//! chunk waits for another. The later rounds number and count the rest, so they find the pairs that
//! the sample missed. The clean-up removes learned rules that are never used.

use rayon::prelude::*;

use super::chunk::{Chunk, with_rules};
use super::pair_join::{Answer, Pair, SEEN_ONCE, hash, level};
use super::schedule::{BARRIER, SAMPLE_STEP, STRETCH_LEN, sample_len};

/// Returns stretches of the sequence, each followed by a barrier, or `None` if the sequence is
/// short.
pub(super) fn sample(chunks: &[Chunk]) -> Option<Vec<u32>> {
    let len: usize = chunks.iter().map(Chunk::len).sum();
    let mut sample = Vec::with_capacity(sample_len(len)?);
    for chunk in chunks {
        for start in (0..chunk.len()).step_by(STRETCH_LEN * SAMPLE_STEP) {
            sample.extend(chunk.symbols().skip(start).take(STRETCH_LEN));
            sample.push(BARRIER);
        }
    }
    Some(sample)
}

/// Rules and thresholds that were learned from a sample.
#[derive(Default)]
pub(super) struct Learned {
    /// Bodies of the rules, oldest first.
    pub(super) pairs: Vec<Pair>,
    /// Number of occurrences of each body in the sample when it became a rule.
    pub(super) counts: Vec<u32>,
    /// Threshold of each round.
    pub(super) thresholds: Vec<u32>,
}

/// Applies the learned rules to all chunks. They get the symbols from `first_rule` on.
pub(super) fn apply(learned: &Learned, first_rule: u32, chunks: &mut [Chunk]) {
    let table = PairTable::new(&learned.pairs, &learned.counts);
    let rules: Vec<u32> = (first_rule..).take(learned.pairs.len()).collect();
    chunks.par_iter_mut().for_each(|chunk| {
        let places = chunk.positions();
        look_up(&table, chunk, &places);
        for &threshold in &learned.thresholds {
            let chosen = chunk.choose(threshold, &learned.counts);
            let places = chunk.rewrite(&with_rules(&chosen, &rules));
            look_up(&table, chunk, &places);
        }
        chunk.forget_pair_ids();
    });
}

/// Stores the ids of the pairs at `places` that are rules. The pairs must not have ids yet.
fn look_up(table: &PairTable, chunk: &mut Chunk, places: &[u32]) {
    // An id is stored for every pair, also if it is not a rule: a branch would be unpredictable.
    for &position in places {
        chunk.set_pair_id(position, table.get(chunk.pair_at(position)));
    }
}

/// Hash table from pairs to levels and ids, which are the indexes in the list of pairs.
pub(super) struct PairTable {
    /// Pairs and answers. [`SEEN_ONCE`] marks a free slot.
    slots: Vec<(Pair, Answer)>,
}

impl PairTable {
    /// Creates a table of distinct pairs with their counts. At most a quarter of its slots is used.
    pub(super) fn new(pairs: &[Pair], counts: &[u32]) -> Self {
        let num_slots = (4 * pairs.len()).next_power_of_two();
        let mut table = Self { slots: vec![(0, Answer::new(SEEN_ONCE, 0)); num_slots] };
        for ((id, &pair), &count) in (0..).zip(pairs).zip(counts) {
            let slot_idx = table.find(pair);
            table.slots[slot_idx] = (pair, Answer::new(id, level(count)));
        }
        table
    }

    /// Returns the id and level of `pair`, or [`SEEN_ONCE`] if it is not in the table.
    #[inline]
    pub(super) fn get(&self, pair: Pair) -> Answer {
        self.slots[self.find(pair)].1
    }

    /// Returns the slot that contains `pair`, or the free slot where it belongs.
    #[inline]
    fn find(&self, pair: Pair) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot_idx = hash(pair) as usize & mask;
        // Both ends of the search share one branch.
        let ends = |&(other, answer): &(Pair, Answer)| (answer.id() == SEEN_ONCE) | (other == pair);
        while !ends(&self.slots[slot_idx]) {
            slot_idx = (slot_idx + 1) & mask;
        }
        slot_idx
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::schedule::CHUNK_LEN;

    #[test]
    fn samples_are_as_long_as_the_schedule_says() {
        for len in [0, 1, 100_000, 262_143, 262_144, 262_145, 294_911, 295_000, 327_680, 400_001] {
            let symbols = vec![7; len];
            let chunks: Vec<Chunk> = symbols.chunks(CHUNK_LEN).map(Chunk::new).collect();
            assert_eq!(sample(&chunks).map(|sample| sample.len()), sample_len(len), "{len}");
        }
    }
}
