//! One chunk of the sequence that the rounds rewrite, and the three things a round does to it.
//!
//! ```text
//! symbols  the  cat  sat |  the  cat  |      | is BARRIER: end of a document
//! levels     5    0    0    5    0    0      upper bound of the count of (i, i+1), in quarter octaves
//! ```
//!
//! Chunks are independent: no pair crosses a chunk border while both chunks are long (a border costs
//! a handful of symbols; with 65,536 tokens a chunk less than 0.02 %), and shrunken neighbours are
//! merged between rounds. Their borders depend on the input alone, so the grammar does not depend on
//! the number of threads.

use super::pair_table::{Pair, PairsByShard, ShardedPairs, hash, pair};

/// Ends a document; never part of a pair.
pub(super) const BARRIER: u32 = u32::MAX;

/// Tokens of a fresh chunk: symbols and levels (320 KiB) stay in the second-level cache.
pub(super) const CHUNK_LEN: usize = 65_536;

/// A stretch of the sequence.
#[derive(Default)]
pub(super) struct Chunk {
    pub(super) symbols: Vec<u32>,
    levels: Vec<u8>,
}

/// What a chunk chose in a round: positions whose pair wins over both neighbours.
pub(super) struct Selection {
    positions: Vec<u32>,
    /// The chosen pairs, for counting how often each was chosen.
    pub(super) pairs: PairsByShard,
}

/// What replacing changed: pairs that are gone, pairs that are new and where those stand.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) removed: PairsByShard,
    pub(super) added: PairsByShard,
    pub(super) num_replaced: usize,
    added_positions: Vec<u32>,
}

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

impl Chunk {
    /// A chunk over `symbols` whose levels are not known yet.
    pub(super) fn new(symbols: Vec<u32>) -> Self {
        let levels = vec![0; symbols.len()];
        Self { symbols, levels }
    }

    /// Number of symbols, barriers included.
    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    /// The pair that begins at `position`, unless a barrier or the end is in the way.
    fn pair_at(&self, position: usize) -> Option<Pair> {
        let (left, right) = (self.symbols[position], *self.symbols.get(position + 1)?);
        (left != BARRIER && right != BARRIER).then(|| pair(left, right))
    }

    /// All pairs of the chunk that `keep` accepts, by shard.
    pub(super) fn pairs(&self, num_shards: usize, keep: impl Fn(Pair) -> bool) -> PairsByShard {
        let pairs: Vec<Pair> = self
            .symbols
            .windows(2)
            .filter(|w| w[0] != BARRIER && w[1] != BARRIER)
            .map(|w| pair(w[0], w[1]))
            .filter(|&p| keep(p))
            .collect();
        PairsByShard::new(&pairs, num_shards)
    }

    /// Sets the level of every position from `counts`.
    pub(super) fn set_levels(&mut self, counts: &ShardedPairs) {
        let positions: Vec<u32> = (0..self.len() as u32).collect();
        self.set_levels_at(&positions, counts);
    }

    fn set_levels_at(&mut self, positions: &[u32], counts: &ShardedPairs) {
        let (places, pairs): (Vec<u32>, Vec<Pair>) = positions
            .iter()
            .filter_map(|&position| Some((position, self.pair_at(position as usize)?)))
            .unzip();
        let levels = &mut self.levels;
        counts.get_each(&pairs, |i, count| levels[places[i] as usize] = level(count));
    }

    /// Appends `next`, whose first symbol becomes the right neighbour of this chunk's last one.
    pub(super) fn append(&mut self, next: Chunk, counts: &ShardedPairs) {
        let border = self.len().checked_sub(1);
        self.symbols.extend(next.symbols);
        self.levels.extend(next.levels);
        if let Some(border) = border {
            self.set_levels_at(&[border as u32], counts);
        }
    }

    /// Chooses the positions to replace: pairs counted `threshold` times or more, the more frequent
    /// first, equal counts by hash, runs of one pair from the left. Every such pair is chosen or
    /// touches a chosen one, so the choice equals a greedy one by priority and needs no queue.
    pub(super) fn select(&mut self, threshold: u32, counts: &ShardedPairs, num_shards: usize) -> Selection {
        let (positions, priorities) = self.candidates(threshold, counts);
        let mut chosen = Vec::new();
        let mut start = 0;
        while start < positions.len() {
            let run = 1 + positions[start..].windows(2).take_while(|w| w[1] == w[0] + 1).count();
            choose_in_run(&priorities[start..start + run], |i| chosen.push(positions[start + i]));
            start += run;
        }
        let pairs: Vec<Pair> = chosen.iter().filter_map(|&p| self.pair_at(p as usize)).collect();
        Selection { positions: chosen, pairs: PairsByShard::new(&pairs, num_shards) }
    }

    /// Positions whose pair still counts `threshold` or more, and their priorities.
    fn candidates(&mut self, threshold: u32, counts: &ShardedPairs) -> (Vec<u32>, Vec<u64>) {
        let positions = positions_at_least(&self.levels, level(threshold));
        let pairs: Vec<Pair> =
            positions.iter().filter_map(|&p| self.pair_at(p as usize)).collect();
        let mut kept = Vec::with_capacity(positions.len());
        let mut priorities = Vec::with_capacity(positions.len());
        let levels = &mut self.levels;
        counts.get_each(&pairs, |i, count| {
            if count >= threshold {
                kept.push(positions[i]);
                priorities.push(u64::from(count) << 32 | hash(pairs[i]) & 0xffff_ffff);
            } else {
                levels[positions[i] as usize] = level(count);
            }
        });
        (kept, priorities)
    }

    /// Replaces the selected pairs that `rules` maps to a rule (0: chosen only once, left alone).
    pub(super) fn replace(
        &mut self,
        selection: &Selection,
        rules: &ShardedPairs,
        num_shards: usize,
    ) -> Changes {
        let pairs: Vec<Pair> =
            selection.positions.iter().filter_map(|&p| self.pair_at(p as usize)).collect();
        let mut replaced: Vec<(u32, u32)> = Vec::with_capacity(pairs.len());
        rules.get_each(&pairs, |i, rule| {
            if rule != 0 {
                replaced.push((selection.positions[i], rule));
            }
        });
        if replaced.is_empty() {
            return Changes {
                removed: PairsByShard::new(&[], num_shards),
                added: PairsByShard::new(&[], num_shards),
                ..Changes::default()
            };
        }
        let removed = self.removed_pairs(&replaced);
        let added_positions = self.rewrite(&replaced);
        let added: Vec<Pair> =
            added_positions.iter().filter_map(|&p| self.pair_at(p as usize)).collect();
        Changes {
            removed: PairsByShard::new(&removed, num_shards),
            added: PairsByShard::new(&added, num_shards),
            num_replaced: replaced.len(),
            added_positions,
        }
    }

    /// Neighbouring pairs that end with the replacement. Those counted once (level 0) are in no
    /// table; the replaced pairs themselves are subtracted in bulk by the caller.
    fn removed_pairs(&self, replaced: &[(u32, u32)]) -> Vec<Pair> {
        let mut removed = Vec::with_capacity(2 * replaced.len());
        let mut last_end = usize::MAX;
        for &(position, _) in replaced {
            let position = position as usize;
            let counted = |p: usize| self.levels[p] != 0;
            if position > 0 && last_end != position && counted(position - 1) {
                removed.extend(self.pair_at(position - 1));
            }
            if counted(position + 1) {
                removed.extend(self.pair_at(position + 1));
            }
            last_end = position + 2;
        }
        removed
    }

    /// Writes the rules over their pairs, compacts, and lists the positions of new pairs.
    fn rewrite(&mut self, replaced: &[(u32, u32)]) -> Vec<u32> {
        let mut added = Vec::with_capacity(2 * replaced.len());
        let (mut read, mut write) = (replaced[0].0 as usize, replaced[0].0 as usize);
        for (i, &(position, rule)) in replaced.iter().enumerate() {
            debug_assert_eq!(read, position as usize);
            if let Some(left) = write.checked_sub(1).map(|w| w as u32)
                && added.last() != Some(&left)
            {
                self.levels[left as usize] = 0;
                added.push(left);
            }
            self.symbols[write] = rule;
            self.levels[write] = 0;
            added.push(write as u32);
            read += 2;
            write += 1;
            let next = replaced.get(i + 1).map_or(self.symbols.len(), |r| r.0 as usize);
            self.symbols.copy_within(read..next, write);
            self.levels.copy_within(read..next, write);
            write += next - read;
            read = next;
        }
        self.symbols.truncate(write);
        self.levels.truncate(write);
        added
    }

    /// Sets the levels of the pairs that `changes` added, once they are counted.
    pub(super) fn set_added_levels(&mut self, changes: &Changes, counts: &ShardedPairs) {
        self.set_levels_at(&changes.added_positions, counts);
    }
}

/// Positions whose level is `lowest` or more, ascending. Most stretches have none, and the largest
/// level of a stretch is one vector instruction per 16 or more positions.
fn positions_at_least(levels: &[u8], lowest: u8) -> Vec<u32> {
    const STRETCH_LEN: usize = 64;
    let mut positions = Vec::new();
    for (stretch_idx, stretch) in levels.chunks(STRETCH_LEN).enumerate() {
        if stretch.iter().fold(0, |largest, &level| largest.max(level)) >= lowest {
            let start = (stretch_idx * STRETCH_LEN) as u32;
            positions.extend((start..).zip(stretch).filter(|&(_, &l)| l >= lowest).map(|(p, _)| p));
        }
    }
    positions
}

/// Greedy choice by priority among neighbouring candidates, no two of them adjacent; ties to the
/// left. A position on a rising slope depends on its right neighbour, on a falling one on its
/// left neighbour, in a valley on both: one sweep each way.
fn choose_in_run(priorities: &[u64], mut choose: impl FnMut(usize)) {
    let len = priorities.len();
    if len == 1 {
        return choose(0);
    }
    let left_first = |i: usize| i > 0 && priorities[i - 1] >= priorities[i];
    let right_first = |i: usize| i + 1 < len && priorities[i + 1] > priorities[i];
    let mut chosen = vec![false; len];
    for i in (0..len).rev() {
        if !left_first(i) {
            chosen[i] = !right_first(i) || !chosen[i + 1];
        }
    }
    for i in 0..len {
        if left_first(i) {
            chosen[i] = !chosen[i - 1] && !(right_first(i) && chosen[i + 1]);
        }
        if chosen[i] {
            choose(i);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn choice_is_greedy_by_priority(priorities in prop::collection::vec(0u64..6, 1..40)) {
            let mut order: Vec<usize> = (0..priorities.len()).collect();
            order.sort_by_key(|&i| (std::cmp::Reverse(priorities[i]), i));
            let mut expected = vec![false; priorities.len()];
            for i in order {
                let taken = |j: Option<usize>| j.is_some_and(|j| expected.get(j) == Some(&true));
                expected[i] = !taken(i.checked_sub(1)) && !taken(i.checked_add(1));
            }
            let mut got = vec![false; priorities.len()];
            choose_in_run(&priorities, |i| got[i] = true);
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn level_rises_with_count(a in 0u32.., b in 0u32..) {
            prop_assert!((a <= b) <= (level(a) <= level(b)));
        }
    }
}
