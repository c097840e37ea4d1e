//! The sequence that the rounds rewrite: its chunks, the counts of its pairs, and the rules so far.
//!
//! ```text
//! choose (per chunk) ─▶ make rules ─▶ replace (per chunk) ─▶ number new pairs (radix join)
//! ```
//!
//! Each position stores the id of its pair, so counts are plain array look-ups. Pairs are hashed only when they are
//! created: N + 2 for each replacement instead of rounds x N. This works because a new pair contains a new rule, so it
//! differs from every old pair. A pair seen once can never become more frequent, so it is ignored. If an older rule is
//! used again, a pair may get a second id. This costs some elements but is never wrong.
//!
//! Memory: 9 bytes for each element, 20 for each distinct pair seen twice, plus at most 256 MiB
//! while pairs are numbered.
//!
//! # Chunks
//!
//! ```text
//! elements   the  cat  sat |  the  cat  |      symbols; | is BARRIER: end of a document
//!              3    -    -    3    -    -      id of the pair (i, i+1) if it was seen twice
//! levels       5    0    0    5    0    0      upper bound of its count, in quarter octaves
//! ```
//!
//! Chunks are independent. No pair crosses a chunk border while both chunks are long. A border costs a few symbols,
//! which is less than 0.02 % with 65,536 tokens in a chunk. Neighbours that have become short are merged between
//! rounds. Chunk borders depend only on the input, so the grammar does not depend on the number of threads.
//!
//! The conditions on a position are practically random. So the loops here always write the value and advance only if it
//! is needed. This saves a tenth of the whole build time. Rejected experiment: choosing over all candidates at once
//! without searching for runs (versioned text +4 %, prose -2 %, logs -3 %).

use std::ops::Range;

use rayon::prelude::*;

use super::pair_join::{
    Answer, BARRIER, CHUNK_LEN, Pair, PairId, SEEN_ONCE, Thresholds, are_joined, for_each_count, level, num_passes,
    number_pairs, pair,
};

/// The sequence in its current state, the counts of its pairs, and the rules so far.
pub(super) struct Sequence {
    chunks: Vec<Chunk>,
    pairs: Vec<Pair>,
    /// Number of occurrences in the sequence, by pair id.
    counts: Vec<u32>,
    /// Number of times the pair was chosen in this round, by pair id.
    uses: Vec<u32>,
    /// Rule of the pair or 0, by pair id.
    rule_of_pair: Vec<u32>,
    first_rule: u32,
    rules: Vec<Pair>,
}

impl Sequence {
    /// Creates a sequence. Its rules get the ids from `first_rule` on.
    pub(super) fn new(symbols: Vec<u32>, first_rule: u32) -> Self {
        Self {
            chunks: into_chunks(symbols),
            pairs: Vec::new(),
            counts: Vec::new(),
            uses: Vec::new(),
            rule_of_pair: Vec::new(),
            first_rule,
            rules: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.chunks.iter().map(Chunk::len).sum()
    }

    /// Runs all rounds. Their thresholds depend on the count of the most frequent pair.
    pub(super) fn run(&mut self, thresholds_of: impl Fn(u32) -> Thresholds) {
        self.number_all();
        let mut thresholds = thresholds_of(self.counts.iter().copied().max().unwrap_or(0));
        while let Some(threshold) = thresholds.next() {
            let num_replaced = self.round(threshold);
            self.merge_chunks();
            thresholds.end_if_few(num_replaced, self.len());
        }
    }

    /// Numbers every pair of the new sequence.
    fn number_all(&mut self) {
        let places = self.chunks.par_iter().map(Chunk::positions).collect();
        self.number(places);
    }

    /// Numbers the pairs at `places`, the positions in each chunk. The pairs must not have ids yet.
    fn number(&mut self, places: Vec<Vec<u32>>) {
        let num_passes = num_passes(places.iter().map(Vec::len).sum());
        for pass in 0..num_passes {
            match num_passes {
                1 => self.number_pass(&places),
                _ => self.number_pass(&positions_in_pass(&self.chunks, &places, pass, num_passes)),
            }
        }
    }

    /// Numbers the pairs at `places` in one pass.
    fn number_pass(&mut self, places: &[Vec<u32>]) {
        let chunks = self.chunks.par_iter().zip(places);
        let pairs = chunks.map(|(chunk, positions)| chunk.pairs_at(positions));
        let num_pairs = places.iter().map(Vec::len).sum();
        let numbered = number_pairs(pairs, num_pairs, self.pairs.len() as PairId);
        let first_ids = &numbered.first_ids;
        self.chunks.par_iter_mut().zip(places).zip(numbered.chunks).for_each(|((chunk, positions), grouped)| {
            chunk.set_pair_ids(positions, grouped.into_answers(first_ids));
        });
        self.add_pairs(&numbered.repeated);
    }

    /// Appends pairs and their counts.
    fn add_pairs(&mut self, repeated: &[Vec<(Pair, u32)>]) {
        for shard in repeated {
            self.pairs.extend(shard.iter().map(|&(pair, _)| pair));
            self.counts.extend(shard.iter().map(|&(_, count)| count));
        }
        self.uses.resize(self.pairs.len(), 0);
        self.rule_of_pair.resize(self.pairs.len(), 0);
    }

    /// Runs one round and returns the number of replaced pairs.
    fn round(&mut self, threshold: u32) -> usize {
        let counts = &self.counts;
        let chosen: Vec<Vec<Chosen>> =
            self.chunks.par_iter_mut().map(|chunk| chunk.choose(threshold, counts)).collect();
        for_each_count(&mut self.uses, &chosen, |chosen| chosen.pair_id, |uses| *uses += 1);
        self.make_rules(&chosen);
        let rules = &self.rule_of_pair;
        let replaced: Vec<_> = chosen.par_iter().map(|chosen| with_rules(chosen, rules)).collect();
        let (ended, places): (Vec<_>, Vec<_>) = self
            .chunks
            .par_iter_mut()
            .zip(&replaced)
            .map(|(chunk, replaced)| (chunk.ended_pairs(replaced), chunk.rewrite(replaced)))
            .unzip();
        for_each_count(&mut self.counts, &ended, |&id| id, |count| *count -= 1);
        self.number(places);
        replaced.iter().map(Vec::len).sum()
    }

    /// Makes a rule of every pair that was chosen twice or more, in the order of the first choices. A pair
    /// that already has a rule keeps it.
    fn make_rules(&mut self, chosen: &[Vec<Chosen>]) {
        for pair_id in chosen.iter().flatten().map(|chosen| chosen.pair_id as usize) {
            // Later choices of the pair find 0 uses.
            let uses = std::mem::take(&mut self.uses[pair_id]);
            let rule = &mut self.rule_of_pair[pair_id];
            if uses >= 2 && *rule == 0 {
                *rule = self.first_rule + self.rules.len() as u32;
                self.rules.push(self.pairs[pair_id]);
            }
            if *rule != 0 {
                self.counts[pair_id] -= uses;
            }
        }
    }

    /// Joins neighbouring chunks while chunks are half empty on average.
    fn merge_chunks(&mut self) {
        while are_joined(self.chunks.len(), self.len()) {
            let mut chunks = std::mem::take(&mut self.chunks).into_iter();
            while let Some(mut chunk) = chunks.next() {
                if let Some(next) = chunks.next() {
                    chunk.append(next);
                }
                self.chunks.push(chunk);
            }
        }
    }

    /// Returns the bodies of the rules, oldest first.
    pub(super) fn into_rules(self) -> Vec<Pair> {
        self.rules
    }

    /// Returns the symbols, the id of the pair at each of them, and the bodies of the rules, oldest
    /// first.
    pub(super) fn into_parts(self) -> (Vec<u32>, Vec<PairId>, Vec<Pair>) {
        let mut symbols = vec![0; self.len()];
        let mut pair_ids = vec![0; self.len()];
        let Self { chunks, rules, .. } = self;
        let mut rest = (symbols.as_mut_slice(), pair_ids.as_mut_slice());
        let targets = chunks.into_iter().map(|chunk| {
            let (symbols, pair_ids) = std::mem::take(&mut rest);
            let (symbols, other_symbols) = symbols.split_at_mut(chunk.len());
            let (pair_ids, other_ids) = pair_ids.split_at_mut(chunk.len());
            rest = (other_symbols, other_ids);
            (chunk, symbols, pair_ids)
        });
        let targets: Vec<(Chunk, &mut [u32], &mut [PairId])> = targets.collect();
        // Each chunk is freed when it is copied.
        targets.into_par_iter().for_each(|(chunk, symbols, pair_ids)| {
            chunk.copy_to(symbols, pair_ids);
        });
        (symbols, pair_ids, rules)
    }
}

/// Returns the positions whose pairs belong to a pass.
fn positions_in_pass(chunks: &[Chunk], places: &[Vec<u32>], pass: usize, num_passes: usize) -> Vec<Vec<u32>> {
    let is_in_pass = |pair: Pair| {
        let mixed = pair.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        (mixed as usize * num_passes) >> 32 == pass
    };
    let filter = |(chunk, positions): (&Chunk, &Vec<u32>)| {
        positions.iter().copied().filter(|&position| is_in_pass(chunk.pair_at(position))).collect()
    };
    chunks.par_iter().zip(places).map(filter).collect()
}

/// Cuts the sequence into chunks, the last ones first, and frees memory on the way. So the peak is
/// one copy.
fn into_chunks(mut symbols: Vec<u32>) -> Vec<Chunk> {
    const CHUNKS_PER_SHRINK: usize = 64;
    let num_chunks = symbols.len().div_ceil(CHUNK_LEN);
    let mut chunks = Vec::with_capacity(num_chunks);
    for start in (0..num_chunks).step_by(CHUNKS_PER_SHRINK).rev() {
        let last = symbols[start * CHUNK_LEN..].par_chunks(CHUNK_LEN).rev().map(Chunk::new);
        chunks.par_extend(last);
        symbols.truncate(start * CHUNK_LEN);
        symbols.shrink_to_fit();
    }
    chunks.reverse();
    chunks
}

/// A range of the sequence.
#[derive(Default)]
pub(super) struct Chunk {
    elements: Vec<Element>,
    levels: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Element {
    symbol: u32,
    pair_id: PairId,
}

/// A pair chosen in a round: its position and id.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    position: u32,
    pair_id: PairId,
}

impl Chunk {
    /// Creates a chunk of `symbols` whose pairs are not numbered yet.
    pub(super) fn new(symbols: &[u32]) -> Self {
        let elements = symbols.iter().map(|&symbol| Element { symbol, pair_id: SEEN_ONCE });
        Self { elements: elements.collect(), levels: vec![0; symbols.len()] }
    }

    /// Returns the number of symbols, including barriers.
    pub(super) fn len(&self) -> usize {
        self.elements.len()
    }

    /// Writes the symbols, including barriers, and the id of the pair at each of them. Both targets
    /// have the chunk's length.
    fn copy_to(&self, symbols: &mut [u32], pair_ids: &mut [PairId]) {
        for ((element, symbol), pair_id) in self.elements.iter().zip(symbols).zip(pair_ids) {
            (*symbol, *pair_id) = (element.symbol, element.pair_id);
        }
    }

    /// Returns the positions of all pairs.
    pub(super) fn positions(&self) -> Vec<u32> {
        let mut positions = Vec::with_capacity(self.len());
        for (position, window) in self.elements.windows(2).enumerate() {
            if window[0].symbol != BARRIER && window[1].symbol != BARRIER {
                positions.push(position as u32);
            }
        }
        positions
    }

    /// Returns the pair at `position`.
    #[inline]
    fn pair_at(&self, position: u32) -> Pair {
        let position = position as usize;
        pair(self.elements[position].symbol, self.elements[position + 1].symbol)
    }

    /// Returns the pairs at `positions`.
    fn pairs_at(&self, positions: &[u32]) -> impl Iterator<Item = Pair> + Clone {
        positions.iter().map(|&position| self.pair_at(position))
    }

    /// Stores the ids and levels of the pairs at `positions`.
    fn set_pair_ids(&mut self, positions: &[u32], answers: impl Iterator<Item = Answer>) {
        for (&position, answer) in positions.iter().zip(answers) {
            self.elements[position as usize].pair_id = answer.id();
            self.levels[position as usize] = answer.level();
        }
    }

    /// Appends `next`. The pair at the border is treated as seen once.
    pub(super) fn append(&mut self, next: Chunk) {
        self.elements.extend(next.elements);
        self.levels.extend(next.levels);
    }

    /// Chooses the pairs to replace, among those with count `threshold` or more. The more frequent
    /// pair comes first. Equal counts are ordered by a hash of the id, runs of one pair from the
    /// left. Every such pair is chosen or overlaps a chosen one. So the result equals a greedy
    /// choice by priority, and no queue is needed.
    pub(super) fn choose(&mut self, threshold: u32, counts: &[u32]) -> Vec<Chosen> {
        let (positions, priorities) = self.candidates(threshold, counts);
        let mut chosen = Vec::with_capacity(positions.len());
        let mut flags = Vec::new();
        let mut start = 0;
        while start < positions.len() {
            let run = 1 + positions[start..].windows(2).take_while(|w| w[1] == w[0] + 1).count();
            choose_in_run(&priorities[start..start + run], &mut flags, |i| {
                let position = positions[start + i];
                let pair_id = self.elements[position as usize].pair_id;
                chosen.push(Chosen { position, pair_id });
            });
            start += run;
        }
        chosen
    }

    /// Returns the positions of pairs with count `threshold` or more, and their priorities.
    fn candidates(&mut self, threshold: u32, counts: &[u32]) -> (Vec<u32>, Vec<u64>) {
        let mut positions = positions_at_least(&self.levels, level(threshold));
        let mut priorities = vec![0; positions.len()];
        let mut num_candidates = 0;
        for i in 0..positions.len() {
            let position = positions[i];
            let id = self.elements[position as usize].pair_id;
            let count = counts[id as usize];
            // Written unconditionally, because a branch would be unpredictable.
            positions[num_candidates] = position;
            priorities[num_candidates] = u64::from(count) << 32 | u64::from(id.wrapping_mul(0x9e37_79b1));
            num_candidates += usize::from(count >= threshold);
            self.levels[position as usize] = level(count);
        }
        positions.truncate(num_candidates);
        priorities.truncate(num_candidates);
        (positions, priorities)
    }

    /// Returns the ids of the pairs beside `replaced` that disappear in the rewrite, once for each
    /// occurrence. The replaced pairs themselves are not included.
    fn ended_pairs(&self, replaced: &[(usize, u32)]) -> Vec<PairId> {
        let mut ended = vec![0; 2 * replaced.len()];
        let mut num_ended = 0;
        let mut last_end = 0;
        for &(position, _) in replaced {
            // Written unconditionally, because a branch would be unpredictable.
            let id = self.elements[position.saturating_sub(1)].pair_id;
            ended[num_ended] = id;
            num_ended += usize::from((last_end != position) & (id != SEEN_ONCE));
            let id = self.elements[position + 1].pair_id;
            ended[num_ended] = id;
            num_ended += usize::from(id != SEEN_ONCE);
            last_end = position + 2;
        }
        ended.truncate(num_ended);
        ended
    }

    /// Replaces the pairs by their rules, compacts the chunk, and returns the positions of new
    /// pairs.
    pub(super) fn rewrite(&mut self, replaced: &[(usize, u32)]) -> Vec<u32> {
        // Written unconditionally, because a branch would be unpredictable.
        let mut touched = vec![0; 2 * replaced.len()];
        let mut num_touched = 0;
        let mut write = replaced.first().map_or(self.len(), |r| r.0);
        let mut last = 0;
        for (i, &(position, rule)) in replaced.iter().enumerate() {
            touched[num_touched] = write.saturating_sub(1) as u32;
            num_touched += usize::from(write > last);
            touched[num_touched] = write as u32;
            num_touched += 1;
            self.elements[write] = Element { symbol: rule, pair_id: SEEN_ONCE };
            let kept = position + 2..replaced.get(i + 1).map_or(self.len(), |next| next.0);
            write += 1;
            last = write;
            self.move_down(kept.clone(), write);
            write += kept.len();
        }
        self.elements.truncate(write);
        self.levels.truncate(write);
        let mut num_new = 0;
        for i in 0..num_touched {
            let position = touched[i] as usize;
            self.elements[position].pair_id = SEEN_ONCE;
            self.levels[position] = 0;
            let next = self.elements.get(position + 1).map_or(BARRIER, |next| next.symbol);
            touched[num_new] = position as u32;
            num_new += usize::from((self.elements[position].symbol != BARRIER) & (next != BARRIER));
        }
        touched.truncate(num_new);
        touched
    }

    /// Moves the elements `from` to `to`, which is before them. Most moves concern one to three
    /// elements.
    #[inline]
    fn move_down(&mut self, from: Range<usize>, to: usize) {
        const FEW: usize = 4;
        // Copies a fixed number of elements if the target and the source are large enough. The
        // number requested is unpredictable.
        if from.len() <= FEW && to + FEW <= from.start && from.start + FEW <= self.levels.len() {
            self.elements.copy_within(from.start..from.start + FEW, to);
            self.levels.copy_within(from.start..from.start + FEW, to);
            return;
        }
        self.elements.copy_within(from.clone(), to);
        self.levels.copy_within(from, to);
    }
}

/// Returns positions and rules of the chosen pairs that have a rule (`rules` by pair id, 0 for
/// none).
fn with_rules(chosen: &[Chosen], rules: &[u32]) -> Vec<(usize, u32)> {
    let placed = chosen.iter().map(|c| (c.position as usize, rules[c.pair_id as usize]));
    placed.filter(|&(_, rule)| rule != 0).collect()
}

/// Returns the positions whose level is at least `lowest`, ascending. There is no branch for each
/// position, because it would be unpredictable.
fn positions_at_least(levels: &[u8], lowest: u8) -> Vec<u32> {
    const RANGE_LEN: usize = 64;
    let mut positions = Vec::new();
    let mut found = [0u32; RANGE_LEN + 1];
    for (range_idx, range) in levels.chunks(RANGE_LEN).enumerate() {
        if range.iter().fold(0, |largest, &level| largest.max(level)) < lowest {
            continue;
        }
        let start = (range_idx * RANGE_LEN) as u32;
        let mut num_found = 0;
        for (position, &level) in (start..).zip(range) {
            found[num_found] = position;
            num_found += usize::from(level >= lowest);
        }
        positions.extend_from_slice(&found[..num_found]);
    }
    positions
}

/// Chooses greedily by priority among neighbouring candidates, so that no two are adjacent. The
/// left one wins a tie. On a rising slope a position depends on its right neighbour, on a falling
/// slope on its left neighbour, in a valley on both. So one sweep in each direction suffices.
/// `flags` is scratch space.
fn choose_in_run(priorities: &[u64], flags: &mut Vec<bool>, mut choose: impl FnMut(usize)) {
    let len = priorities.len();
    match *priorities {
        [_] => return choose(0),
        [left, right] => return choose(usize::from(right > left)),
        _ => {}
    }
    let left_first = |i: usize| i > 0 && priorities[i - 1] >= priorities[i];
    let right_first = |i: usize| i + 1 < len && priorities[i + 1] > priorities[i];
    flags.clear();
    flags.resize(len, false);
    for i in (0..len).rev() {
        if !left_first(i) {
            flags[i] = !right_first(i) || !flags[i + 1];
        }
    }
    for i in 0..len {
        if left_first(i) {
            flags[i] = !(flags[i - 1] || right_first(i) && flags[i + 1]);
        }
        if flags[i] {
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
            choose_in_run(&priorities, &mut Vec::new(), |i| got[i] = true);
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn positions_equal_a_filter(levels in prop::collection::vec(0u8..5, 0..300), lowest in 0u8..6) {
            let expected: Vec<u32> =
                (0..levels.len() as u32).filter(|&p| levels[p as usize] >= lowest).collect();
            prop_assert_eq!(positions_at_least(&levels, lowest), expected);
        }
    }
}
