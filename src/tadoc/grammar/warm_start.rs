//! Frequent rules learned from a sample and applied to the whole sequence without counting.
//!
//! ```text
//! sequence  |##------|##------|##------| ...     ## every 16th stretch is the sample
//! sample    rounds down to LEAST_COUNT ─▶ rules with counts, a threshold a round
//! chunk     look pairs up ─▶ choose ─▶ replace ─▶ look new pairs up ─▶ choose ─▶ ...
//! ```
//!
//! Most replacements are of a few thousand pairs that any sample shows. Applying them to a chunk takes
//! a look-up in a table that fits the second-level cache instead of a radix join, and no chunk
//! waits for another. The rounds that follow number and count what is left, so pairs that the sample
//! missed are found all the same; a learned rule that nothing uses goes in the clean-up.

use rayon::prelude::*;

use super::chunk::{Chunk, with_rules};
use super::pair_join::{Answer, Pair, SEEN_ONCE, hash, level};
use super::schedule::{BARRIER, SAMPLE_STEP, STRETCH_LEN, sample_len};

/// Stretches of the sequence, with barriers between them; nothing if the sequence is short.
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

/// What a sample taught.
#[derive(Default)]
pub(super) struct Learned {
    /// The rules' bodies, oldest first.
    pub(super) pairs: Vec<Pair>,
    /// How often each body stood in the sample when it became a rule.
    pub(super) counts: Vec<u32>,
    /// The threshold of each round.
    pub(super) thresholds: Vec<u32>,
}

/// Applies what was learned to all chunks; its rules have the symbols from `first_rule` up.
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

/// Notes the ids of those pairs at `places` that are rules; none of them has one.
fn look_up(table: &PairTable, chunk: &mut Chunk, places: &[u32]) {
    // Where there is no rule, no id is noted again: which ones are rules is as good as random.
    for &position in places {
        chunk.set_pair_id(position, table.get(chunk.pair_at(position)));
    }
}

/// Ids of pairs, which are their places in the list the table was made of, and levels.
pub(super) struct PairTable {
    /// Pair and answer; [`SEEN_ONCE`] marks a free slot.
    slots: Vec<(Pair, Answer)>,
}

impl PairTable {
    /// A table of distinct pairs, a quarter full at most, with how often each was seen.
    pub(super) fn new(pairs: &[Pair], counts: &[u32]) -> Self {
        let num_slots = (4 * pairs.len()).next_power_of_two();
        let mut table = Self { slots: vec![(0, Answer::new(SEEN_ONCE, 0)); num_slots] };
        for ((id, &pair), &count) in (0..).zip(pairs).zip(counts) {
            let slot_idx = table.find(pair);
            table.slots[slot_idx] = (pair, Answer::new(id, level(count)));
        }
        table
    }

    /// Id and level of `pair`; [`SEEN_ONCE`] if it is not here.
    #[inline]
    pub(super) fn get(&self, pair: Pair) -> Answer {
        self.slots[self.find(pair)].1
    }

    /// The slot that has `pair`, or the free one where it belongs.
    #[inline]
    fn find(&self, pair: Pair) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot_idx = hash(pair) as usize & mask;
        // One branch for both ways to end.
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
