//! Numbers pairs of neighbours: equal pairs get one id, pairs that stand alone get none.
//!
//! ```text
//! chunk 0 ─ group by shard ─┐                        ┌─ ungroup ─ ids of chunk 0
//! chunk 1 ─ group by shard ─┼─▶ shard by shard:      ┼─ ungroup ─ ids of chunk 1
//! chunk 2 ─ group by shard ─┘   hash, count, number  └─ ungroup ─ ids of chunk 2
//! ```
//!
//! A radix join. A shard has some [`SHARD_LEN`] pairs, so its table stays in the second-level cache
//! whatever the size of the input, and one thread fills it, so no atomics are needed. Shards follow
//! from the number of pairs, ids from the order of shards and of chunks: the result does not depend
//! on threads. Tried: look-ups from the chunks straight into one large table, batched so that cache
//! misses overlap: the whole build took 1.2 times as long on 28 million tokens.

use rayon::prelude::*;

/// Two neighbouring elements, the left one in the high half.
pub(super) type Pair = u64;

/// The pair (`left`, `right`).
#[inline]
pub(super) fn pair(left: u32, right: u32) -> Pair {
    u64::from(left) << 32 | u64::from(right)
}

/// Both halves of a pair.
#[inline]
pub(super) fn unpair(pair: Pair) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// Number of a pair that was seen twice or more.
pub(super) type PairId = u32;

/// In place of the id of a pair that was seen once.
pub(super) const SEEN_ONCE: PairId = PairId::MAX;

/// Pairs in a shard: its table takes 512 KiB.
const SHARD_LEN: usize = 16_384;

/// Most shards: more streams than this are not written to without cache misses.
const MAX_SHARDS: usize = 2_048;

/// Count as a level: 0 below 2, then four steps an octave, rising with the count.
pub(super) fn level(count: u32) -> u8 {
    match count {
        0 | 1 => 0,
        2 | 3 => 2 + 2 * (count & 1) as u8,
        _ => {
            let octave = count.ilog2();
            (4 * octave + (count >> (octave - 2) & 3)) as u8
        }
    }
}

/// Ids for all pairs that were asked for, and what they stand for.
pub(super) struct Numbered {
    /// Id and level of each chunk's pairs, in the order they were given.
    pub(super) ids: Vec<Vec<(PairId, u8)>>,
    /// The pairs that have ids, ascending from the first id.
    pub(super) pairs: Vec<Pair>,
    /// How often each of them was given.
    pub(super) counts: Vec<u32>,
}

/// Numbers the pairs of all chunks from `first_id` up.
pub(super) fn number_pairs(chunks: Vec<Vec<Pair>>, first_id: PairId) -> Numbered {
    let num_pairs: usize = chunks.iter().map(Vec::len).sum();
    let num_shards = (num_pairs / SHARD_LEN).next_power_of_two().clamp(1, MAX_SHARDS);
    let grouped: Vec<Grouped> =
        chunks.into_par_iter().map(|pairs| Grouped::new(&pairs, num_shards)).collect();
    let mut shards: Vec<Shard> =
        (0..num_shards).into_par_iter().map(|shard| Shard::new(&grouped, shard)).collect();
    let mut first = first_id;
    for shard in &mut shards {
        shard.first_id = first;
        first += shard.repeated.len() as PairId;
    }
    let starts = starts_of_chunks(&grouped, num_shards);
    let ids = grouped
        .into_par_iter()
        .zip(starts.par_chunks(num_shards))
        .map(|(chunk, starts)| chunk.ungroup(&shards, starts))
        .collect();
    let repeated = shards.into_iter().flat_map(|shard| shard.repeated);
    let (pairs, counts) = repeated.unzip();
    Numbered { ids, pairs, counts }
}

/// A 64-bit hash whose high bits depend on all bits of the pair.
#[inline]
fn hash(pair: Pair) -> u64 {
    let mixed = (pair ^ pair >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Pairs of one chunk, grouped by shard: a counting sort that can be undone.
struct Grouped {
    /// Shard of each pair, in the order they were given.
    shards: Vec<u16>,
    ends: Vec<u32>,
    pairs: Vec<Pair>,
}

impl Grouped {
    fn new(pairs: &[Pair], num_shards: usize) -> Self {
        let mask = num_shards as u64 - 1;
        let shards: Vec<u16> = pairs.iter().map(|&p| (hash(p) >> 48 & mask) as u16).collect();
        let mut starts = vec![0u32; num_shards + 1];
        for &shard in &shards {
            starts[shard as usize + 1] += 1;
        }
        for shard in 0..num_shards {
            starts[shard + 1] += starts[shard];
        }
        let mut grouped = vec![0; pairs.len()];
        for (&pair, &shard) in pairs.iter().zip(&shards) {
            let next = &mut starts[shard as usize];
            grouped[*next as usize] = pair;
            *next += 1;
        }
        starts.pop();
        Self { shards, ends: starts, pairs: grouped }
    }

    fn shard(&self, shard: usize) -> &[Pair] {
        let start = shard.checked_sub(1).map_or(0, |s| self.ends[s] as usize);
        &self.pairs[start..self.ends[shard] as usize]
    }

    /// Ids and levels in the order the pairs were given; `starts` says where the chunk's begin in
    /// each shard.
    fn ungroup(self, shards: &[Shard], starts: &[u32]) -> Vec<(PairId, u8)> {
        let mut next = starts.to_vec();
        self.shards
            .iter()
            .map(|&shard| {
                let next = &mut next[shard as usize];
                *next += 1;
                let shard = &shards[shard as usize];
                let (local_id, level) = shard.local_ids[*next as usize - 1];
                let is_once = local_id == SEEN_ONCE;
                (if is_once { SEEN_ONCE } else { shard.first_id + local_id }, level)
            })
            .collect()
    }
}

/// Where the pairs of each chunk begin in each shard, chunk after chunk.
fn starts_of_chunks(chunks: &[Grouped], num_shards: usize) -> Vec<u32> {
    let mut next = vec![0u32; num_shards];
    let mut starts = Vec::with_capacity(chunks.len() * num_shards);
    for chunk in chunks {
        starts.extend_from_slice(&next);
        let mut start = 0;
        for (next, &end) in next.iter_mut().zip(&chunk.ends) {
            *next += end - start;
            start = end;
        }
    }
    starts
}

/// The pairs of one shard over all chunks, counted and numbered.
struct Shard {
    /// Id inside the shard and level of each pair, chunk after chunk.
    local_ids: Vec<(PairId, u8)>,
    repeated: Vec<(Pair, u32)>,
    first_id: PairId,
}

impl Shard {
    fn new(chunks: &[Grouped], shard: usize) -> Self {
        let num_pairs: usize = chunks.iter().map(|c| c.shard(shard).len()).sum();
        let mut table = Table::new(num_pairs);
        let mut slots_of_pairs = Vec::with_capacity(num_pairs);
        for chunk in chunks {
            slots_of_pairs.extend(chunk.shard(shard).iter().map(|&pair| table.count(pair)));
        }
        let local_ids = slots_of_pairs.iter().map(|&slot| table.id_and_level(slot)).collect();
        Self { local_ids, repeated: table.into_repeated(), first_id: 0 }
    }
}

#[derive(Clone, Copy)]
struct Slot {
    pair: Pair,
    /// How often the pair was seen; 0 marks a free slot.
    count: u32,
    /// Given when the pair is seen again.
    id: PairId,
}

/// Open addressing with linear probing, at most two thirds full.
struct Table {
    slots: Vec<Slot>,
    /// Slots of the pairs seen twice or more, by id.
    repeated: Vec<u32>,
}

impl Table {
    fn new(max_pairs: usize) -> Self {
        let num_slots = (max_pairs * 3 / 2 + 1).next_power_of_two();
        let free = Slot { pair: 0, count: 0, id: SEEN_ONCE };
        Self { slots: vec![free; num_slots], repeated: Vec::new() }
    }

    /// Counts one more of `pair` and returns its slot.
    #[inline]
    fn count(&mut self, pair: Pair) -> u32 {
        let mask = self.slots.len() - 1;
        let mut slot_idx = hash(pair) as usize & mask;
        while self.slots[slot_idx].count != 0 && self.slots[slot_idx].pair != pair {
            slot_idx = (slot_idx + 1) & mask;
        }
        let slot = &mut self.slots[slot_idx];
        slot.pair = pair;
        slot.count += 1;
        if slot.count == 2 {
            slot.id = self.repeated.len() as PairId;
            self.repeated.push(slot_idx as u32);
        }
        slot_idx as u32
    }

    #[inline]
    fn id_and_level(&self, slot_idx: u32) -> (PairId, u8) {
        let slot = &self.slots[slot_idx as usize];
        (slot.id, level(slot.count))
    }

    fn into_repeated(self) -> Vec<(Pair, u32)> {
        let slots = self.repeated.iter().map(|&slot_idx| self.slots[slot_idx as usize]);
        slots.map(|slot| (slot.pair, slot.count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn check(chunks: Vec<Vec<Pair>>) {
        let mut expected: HashMap<Pair, u32> = HashMap::new();
        for &pair in chunks.iter().flatten() {
            *expected.entry(pair).or_default() += 1;
        }
        let numbered = number_pairs(chunks.clone(), 7);
        for (pairs, ids) in chunks.iter().zip(&numbered.ids) {
            assert_eq!(pairs.len(), ids.len());
            for (pair, &(id, pair_level)) in pairs.iter().zip(ids) {
                assert_eq!(pair_level, level(expected[pair]));
                if expected[pair] == 1 {
                    assert_eq!(id, SEEN_ONCE);
                } else {
                    let i = id as usize - 7;
                    assert_eq!((numbered.pairs[i], numbered.counts[i]), (*pair, expected[pair]));
                }
            }
        }
        let num_repeated = expected.values().filter(|&&count| count > 1).count();
        assert_eq!(numbered.pairs.len(), num_repeated);
    }

    #[test]
    fn many_shards_equal_a_map() {
        let chunks = (0..9u32).map(|c| {
            (0..20_000u32).map(|i| pair(i.wrapping_mul(2_654_435_761) % 30_000, (i + c) % 5)).collect()
        });
        check(chunks.collect());
    }

    proptest! {
        #[test]
        fn level_rises_with_count(a in 0u32.., b in 0u32..) {
            prop_assert!((a <= b) <= (level(a) <= level(b)));
        }

        #[test]
        fn few_pairs_equal_a_map(
            chunks in prop::collection::vec(prop::collection::vec((0u32..9, 0u32..9), 0..60), 0..6),
        ) {
            check(chunks.iter().map(|c| c.iter().map(|&(a, b)| pair(a, b)).collect()).collect());
        }
    }
}
