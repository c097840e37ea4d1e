//! Numbering of pairs of neighbours: equal pairs get one id, pairs that occur once get none.
//!
//! ```text
//! chunk 0 ─ group by shard ─┐                        ┌─ ungroup ─ ids of chunk 0
//! chunk 1 ─ group by shard ─┼─▶ shard by shard:      ┼─ ungroup ─ ids of chunk 1
//! chunk 2 ─ group by shard ─┘   hash, count, number  └─ ungroup ─ ids of chunk 2
//! ```
//!
//! This is a radix join. A shard has 8,192 to 16,384 pairs, so its table stays in the second-level cache for any size
//! of input. One thread fills it, so no atomics are needed. The number of shards depends only on the number of pairs,
//! and ids only on the order of shards and of chunks. So the result does not depend on threads. Look-ups from the
//! chunks directly into one large table, batched so that cache misses overlap, are slower.
//!
//! # Tallies
//!
//! Each of a few owners has a range of the ids and reads all lists. Reading is cheap. Atomics on the counts of frequent
//! pairs are expensive: one costs 18 cycles alone and a cache miss between two threads.
//!
//! # Schedule
//!
//! The parameters of the rounds stand here too: thresholds, the end of the rounds, and shards and chunks, which
//! determine the ids of pairs. Fewer rounds do not pay: without any round, tokens, learning, numbering pairs and coding
//! take half to nine tenths of the time, and files of logs and sources are 1.24 to 1.5 times as large. More rounds and
//! passes make files 0.97 to 0.999 times as large in 1.2 to 1.7 times the time.

use rayon::prelude::*;

/// Two neighbouring elements, the left one in the high half.
pub(super) type Pair = u64;

/// Packs `left` and `right` into a pair.
#[inline]
pub(super) fn pair(left: u32, right: u32) -> Pair {
    u64::from(left) << 32 | u64::from(right)
}

/// Returns both halves of a pair.
#[inline]
pub(super) fn unpair(pair: Pair) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// Number of a pair that was seen twice or more.
pub(super) type PairId = u32;

/// Mark of a pair that was seen once, used instead of its id.
pub(super) const SEEN_ONCE: PairId = PairId::MAX;

/// Returns the level of a count: 0 below 2, then four steps for each octave, ascending.
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

/// Id and level of a pair, packed. The level is in bits 32 to 39.
#[derive(Clone, Copy)]
pub(super) struct Answer(u64);

impl Answer {
    /// Returns the id of the pair, or [`SEEN_ONCE`].
    pub(super) fn id(self) -> PairId {
        self.0 as u32
    }

    /// Adds `first_id` to the id, if there is one.
    #[inline]
    fn counted_from(self, first_id: PairId) -> Self {
        // Computed without a branch, which would be unpredictable.
        let has_id = u64::from(self.id() != SEEN_ONCE);
        Self(self.0 + has_id * u64::from(first_id))
    }

    /// Returns the level of the pair's count.
    pub(super) fn level(self) -> u8 {
        (self.0 >> 32) as u8
    }
}

/// Ids of all given pairs, and the pairs of these ids.
pub(super) struct Numbered {
    /// Answers of each chunk, for [`Grouped::into_answers`].
    pub(super) chunks: Vec<Grouped>,
    /// First id of each shard.
    pub(super) first_ids: Vec<PairId>,
    /// Pairs that have ids and their numbers of occurrences, in the order of their ids, by shard.
    pub(super) repeated: Vec<Vec<(Pair, u32)>>,
}

/// Numbers the pairs of all chunks, `num_pairs` together. The first id is `first_id`.
pub(super) fn number_pairs<P: Iterator<Item = Pair> + Clone + Send>(
    chunks: impl IndexedParallelIterator<Item = P>,
    num_pairs: usize,
    first_id: PairId,
) -> Numbered {
    let num_shards = num_shards(num_pairs);
    let mut chunks: Vec<Grouped> = chunks.map(|pairs| Grouped::new(pairs, num_shards)).collect();
    let repeated: Vec<Vec<(Pair, u32)>> =
        by_shard(&mut chunks, num_shards).into_par_iter().map_init(Table::default, number_shard).collect();
    let first_ids: Vec<PairId> = repeated
        .iter()
        .scan(first_id, |next, shard| Some(std::mem::replace(next, *next + shard.len() as PairId)))
        .collect();
    Numbered { chunks, first_ids, repeated }
}

/// Returns the groups of each shard, in the order of chunks.
fn by_shard(chunks: &mut [Grouped], num_shards: usize) -> Vec<Vec<&mut [u64]>> {
    let mut shards: Vec<Vec<&mut [u64]>> = (0..num_shards).map(|_| Vec::with_capacity(chunks.len())).collect();
    for chunk in chunks {
        let mut rest = chunk.values.as_mut_slice();
        let mut start = 0;
        for (shard, &end) in shards.iter_mut().zip(&chunk.ends) {
            let (group, after) = rest.split_at_mut((end - start) as usize);
            shard.push(group);
            (rest, start) = (after, end);
        }
    }
    shards
}

/// Multiplier of [`mix`] and its inverse modulo 2^64.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const INVERSE: u64 = 0xf1de_83e1_9937_733d;

/// Returns the pair as a number whose bits serve as a hash. No two pairs have the same number.
#[inline]
fn mix(pair: Pair) -> u64 {
    let product = (pair ^ pair >> 29).wrapping_mul(MULTIPLIER);
    product ^ product >> 32
}

/// Returns the pair with the number `mixed`.
#[inline]
fn unmix(mixed: u64) -> Pair {
    let product = mixed ^ mixed >> 32;
    let shifted = product.wrapping_mul(INVERSE);
    shifted ^ shifted >> 29 ^ shifted >> 58
}

/// Pairs of one chunk, grouped by shard with a counting sort that can be undone.
pub(super) struct Grouped {
    /// Shard of each pair, in the given order. Empty if there is one shard.
    shards: Vec<u16>,
    /// End of each shard's group in `values`.
    ends: Vec<u32>,
    /// Mixed pairs, later replaced by answers whose ids count from 0 in each shard.
    values: Vec<u64>,
}

impl Grouped {
    fn new(pairs: impl Iterator<Item = Pair> + Clone, num_shards: usize) -> Self {
        if num_shards == 1 {
            let values: Vec<u64> = pairs.map(mix).collect();
            return Self { shards: Vec::new(), ends: vec![values.len() as u32], values };
        }
        let mask = num_shards as u64 - 1;
        let shards: Vec<u16> = pairs.clone().map(|p| (mix(p) >> 48 & mask) as u16).collect();
        let mut starts = vec![0u32; num_shards + 1];
        for &shard in &shards {
            starts[shard as usize + 1] += 1;
        }
        for shard in 0..num_shards {
            starts[shard + 1] += starts[shard];
        }
        let mut values = vec![0; shards.len()];
        for (pair, &shard) in pairs.zip(&shards) {
            let next = &mut starts[shard as usize];
            values[*next as usize] = mix(pair);
            *next += 1;
        }
        starts.pop();
        Self { shards, ends: starts, values }
    }

    /// Returns the answers in the order of the given pairs. Ids continue across the shards.
    pub(super) fn into_answers(mut self, first_ids: &[PairId]) -> impl Iterator<Item = Answer> {
        let mut next: Vec<u32> = std::iter::once(0).chain(self.ends.iter().copied()).collect();
        // Reading the values in order first is faster than the jumps alone.
        for (bounds, &first_id) in next.windows(2).zip(first_ids) {
            for value in &mut self.values[bounds[0] as usize..bounds[1] as usize] {
                *value = Answer(*value).counted_from(first_id).0;
            }
        }
        (0..self.values.len()).map(move |i| {
            let shard = self.shards.get(i).map_or(0, |&shard| shard as usize);
            let next = &mut next[shard];
            *next += 1;
            Answer(self.values[*next as usize - 1])
        })
    }
}

/// Replaces each mixed pair of one shard by its answer. Returns the pairs that have ids, and their
/// counts. `table` is scratch space.
fn number_shard(table: &mut Table, mut groups: Vec<&mut [u64]>) -> Vec<(Pair, u32)> {
    table.clear(groups.iter().map(|group| group.len()).sum());
    for value in groups.iter_mut().flat_map(|group| group.iter_mut()) {
        *value = table.count(*value) as u64;
    }
    let repeated = table.finish();
    for value in groups.into_iter().flatten() {
        *value = table.slots[*value as usize].answer().0;
    }
    repeated
}

#[derive(Clone, Copy)]
struct Slot {
    mixed: u64,
    /// Id, assigned at the second occurrence.
    id: PairId,
    /// Number of occurrences of the pair, later 1 more than its level. 0 marks a free slot.
    count: u32,
}

impl Slot {
    /// Returns the answer, after [`Table::finish`]. A pair that was seen once has count 1, so its level is 0.
    #[inline]
    fn answer(&self) -> Answer {
        Answer(u64::from(self.count - 1) << 32 | u64::from(self.id))
    }
}

/// Hash table with open addressing and linear probing, at most two thirds full.
#[derive(Default)]
struct Table {
    slots: Vec<Slot>,
    /// Slots of the pairs seen twice or more, by id, with room for more.
    repeated: Vec<u32>,
    num_repeated: u32,
}

impl Table {
    /// Empties the table and makes room for `max_pairs` pairs.
    fn clear(&mut self, max_pairs: usize) {
        let num_slots = (max_pairs * 3 / 2 + 1).next_power_of_two();
        self.slots.clear();
        self.slots.resize(num_slots, Slot { mixed: 0, id: SEEN_ONCE, count: 0 });
        self.repeated.clear();
        self.repeated.resize(max_pairs / 2 + 1, 0);
        self.num_repeated = 0;
    }

    /// Counts one more occurrence of a pair and returns its slot.
    #[inline]
    fn count(&mut self, mixed: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot_idx = mixed as usize & mask;
        // Both ends of the search share one branch, because the outcome is unpredictable.
        while !((self.slots[slot_idx].count == 0) | (self.slots[slot_idx].mixed == mixed)) {
            slot_idx = (slot_idx + 1) & mask;
        }
        let slot = &mut self.slots[slot_idx];
        slot.mixed = mixed;
        slot.count += 1;
        // Computed without a branch too: the next entry of the list is always written.
        let is_second = slot.count == 2;
        slot.id = if is_second { self.num_repeated } else { slot.id };
        self.repeated[self.num_repeated as usize] = slot_idx as u32;
        self.num_repeated += u32::from(is_second);
        slot_idx
    }

    /// Ends the counts, so that slots have levels. Returns the pairs that have ids, in the order of their ids, and
    /// their counts.
    fn finish(&mut self) -> Vec<(Pair, u32)> {
        let Self { slots, repeated, num_repeated } = self;
        let finish = |&slot_idx: &u32| {
            let slot = &mut slots[slot_idx as usize];
            let count = slot.count;
            slot.count = 1 + u32::from(level(count));
            (unmix(slot.mixed), count)
        };
        repeated[..*num_repeated as usize].iter().map(finish).collect()
    }
}

/// Greatest number of owners. More would read the lists more often than they share the changes.
const MAX_OWNERS: usize = 6;

/// Returns the number of ids that each owner of `num_ids` ids has.
pub(super) fn ids_per_owner(num_ids: usize) -> usize {
    num_ids.div_ceil(rayon::current_num_threads().min(MAX_OWNERS)).max(1)
}

/// Calls `change` with the count of each id in `lists`, once for each time that it is listed. Ids
/// without a count are skipped.
pub(super) fn for_each_count<T: Sync>(
    counts: &mut [u32],
    lists: &[impl AsRef<[T]> + Sync],
    id_of: impl Fn(&T) -> PairId + Sync,
    change: impl Fn(&mut u32) + Sync,
) {
    let ids_per_owner = ids_per_owner(counts.len());
    counts.par_chunks_mut(ids_per_owner).enumerate().for_each(|(owner, counts)| {
        let first_id = owner * ids_per_owner;
        for item in lists.iter().flat_map(|list| list.as_ref()) {
            if let Some(count) = counts.get_mut((id_of(item) as usize).wrapping_sub(first_id)) {
                change(count);
            }
        }
    });
}

/// Symbol that ends a document. It is never part of a pair.
pub(super) const BARRIER: u32 = u32::MAX;

/// Number of elements of a new chunk. Its arrays (576 KiB) stay in the second-level cache.
pub(super) const CHUNK_LEN: usize = 65_536;

/// Least threshold of a round. Rarer pairs become rules as parts of longer repeats.
const LEAST_THRESHOLD: u32 = 3;

/// Greatest number of rounds at the least threshold.
const MAX_LEAST_ROUNDS: usize = 4;

/// Share of the sequence. Rounds at the least threshold stop when they replace at most this share.
const LEAST_REPLACED_SHARE: f64 = 0.004;

/// Divisor of thresholds up to 1,000.
const STEP: u32 = 2;

/// Memory for pairs while the whole sequence is numbered. A longer sequence is numbered in passes.
const JOIN_BUFFER_BYTES: usize = 256 << 20;

/// Memory for each pair during numbering: the pair or its answer, its shard, its position.
const JOIN_BYTES_PER_PAIR: usize = 8 + 2 + 4;

/// Greatest number of pairs in a shard on average. Its table then takes at most 512 KiB.
const SHARD_LEN: usize = 16_384;

/// Greatest number of shards. Writing to more streams than this causes cache misses.
const MAX_SHARDS: usize = 2_048;

/// Least threshold of a round over a sample. The order of rarer pairs in a sample is random.
const LEAST_SAMPLE_THRESHOLD: u32 = 4;

/// Thresholds of the rounds over a sequence, from the largest count down. There are at most 18.
#[derive(Debug, Clone)]
pub(super) struct Thresholds {
    last: u32,
    least: u32,
    /// Number of rounds that may still run at the least threshold.
    num_least: usize,
}

impl Thresholds {
    /// Starts the rounds of a sequence whose most frequent pair has count `largest`.
    pub(super) fn from_largest_count(largest: u32) -> Self {
        Self { last: largest, least: LEAST_THRESHOLD, num_least: MAX_LEAST_ROUNDS }
    }

    /// Starts the rounds of a sample whose most frequent pair has count `largest`.
    pub(super) fn for_sample(largest: u32) -> Self {
        let whole = Self::from_largest_count(largest);
        Self { least: LEAST_SAMPLE_THRESHOLD, num_least: 1, ..whole }
    }

    /// Ends the rounds if the last one ran at the least threshold and replaced few pairs:
    /// `num_replaced`, after which `len` elements remain.
    pub(super) fn end_if_few(&mut self, num_replaced: usize, len: usize) {
        let is_few = num_replaced as f64 <= LEAST_REPLACED_SHARE * len as f64;
        if self.last == self.least && is_few {
            self.num_least = 0;
        }
    }
}

impl Iterator for Thresholds {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.num_least == 0 {
            return None;
        }
        self.last = lowered(self.last).max(self.least);
        self.num_least -= usize::from(self.last == self.least);
        Some(self.last)
    }
}

/// Returns the threshold after `threshold`. It falls fast while few pairs reach it, then by
/// octaves. Measured G: step 2 throughout is 0.3 % smaller on logs and needs seven more rounds.
/// Step 6 throughout is 6 % larger on logs and 2 % on versioned text, step 12 twice that. Prose
/// shows no difference.
fn lowered(threshold: u32) -> u32 {
    threshold / if threshold > 1000 { 8 } else { STEP }
}

/// Returns the number of passes in which `num_pairs` pairs are numbered.
pub(super) fn num_passes(num_pairs: usize) -> usize {
    (num_pairs * JOIN_BYTES_PER_PAIR).div_ceil(JOIN_BUFFER_BYTES)
}

/// Returns the number of shards for `num_pairs` pairs of a pass.
fn num_shards(num_pairs: usize) -> usize {
    (num_pairs / SHARD_LEN).next_power_of_two().clamp(1, MAX_SHARDS)
}

/// Returns true if chunks with `len` elements are half empty on average, so that neighbours are
/// joined.
pub(super) fn are_joined(num_chunks: usize, len: usize) -> bool {
    num_chunks > 1 && len < num_chunks * CHUNK_LEN / 2
}

/// If G is at most N / 3, the rounds run a second time over their own result (root
/// and rule bodies). Inlining moves rule borders, so repeats that were cut differently in two
/// places become equal. On e-peps-revisions G falls by 5.7 % and time rises by a fifth, on d-logs G
/// falls by 1 %, on prose by 0.3 %. A third run reduces G by another 1.7 % on e-peps-revisions and
/// by nothing on logs.
const REPEAT_SHARE: usize = 3;

/// Returns true if the rounds run a second time over their own result, a grammar of `num_elements` elements of a text
/// of `num_tokens` tokens.
pub(super) fn has_second_pass(num_elements: usize, num_tokens: usize) -> bool {
    num_elements <= num_tokens / REPEAT_SHARE
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
        let pairs = chunks.par_iter().map(|pairs| pairs.iter().copied());
        let numbered = number_pairs(pairs, chunks.iter().map(Vec::len).sum(), 7);
        let repeated = numbered.repeated.concat();
        for (pairs, grouped) in chunks.iter().zip(numbered.chunks) {
            let answers: Vec<Answer> = grouped.into_answers(&numbered.first_ids).collect();
            assert_eq!(pairs.len(), answers.len());
            for (pair, answer) in pairs.iter().zip(answers) {
                assert_eq!(answer.level(), level(expected[pair]));
                if expected[pair] == 1 {
                    assert_eq!(answer.id(), SEEN_ONCE);
                } else {
                    let i = answer.id() as usize - 7;
                    assert_eq!(repeated[i], (*pair, expected[pair]));
                }
            }
        }
        let num_repeated = expected.values().filter(|&&count| count > 1).count();
        assert_eq!(repeated.len(), num_repeated);
    }

    #[test]
    fn many_shards_equal_a_map() {
        let chunks = (0..9u32)
            .map(|c| (0..20_000u32).map(|i| pair(i.wrapping_mul(2_654_435_761) % 30_000, (i + c) % 5)).collect());
        check(chunks.collect());
    }

    proptest! {
        #[test]
        fn pairs_are_found_in_their_numbers(left: u32, right: u32) {
            prop_assert_eq!(unpair(unmix(mix(pair(left, right)))), (left, right));
        }

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

    #[test]
    fn rounds_are_few() {
        for (largest, expected) in [(0, 4), (1, 4), (7, 4), (8, 5), (1 << 20, 14), (u32::MAX, 17)] {
            let thresholds: Vec<u32> = Thresholds::from_largest_count(largest).collect();
            assert_eq!(thresholds.len(), expected, "{thresholds:?}");
            assert!(thresholds.is_sorted_by(|a, b| a >= b));
            assert!(thresholds.ends_with(&[LEAST_THRESHOLD; MAX_LEAST_ROUNDS]));
        }
    }

    #[test]
    fn only_rounds_at_the_least_threshold_are_the_last() {
        let mut thresholds = Thresholds::from_largest_count(8);
        assert_eq!(thresholds.next(), Some(4));
        thresholds.end_if_few(0, 1_000);
        assert_eq!(thresholds.next(), Some(3));
        thresholds.end_if_few(5, 1_000);
        assert_eq!(thresholds.next(), Some(3));
        thresholds.end_if_few(4, 1_000);
        assert_eq!(thresholds.next(), None);
    }
}
