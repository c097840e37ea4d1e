//! The sequence under replacement: its chunks, the counts of its pairs, and the rules so far.
//!
//! ```text
//! choose (per chunk) ─▶ make rules ─▶ replace (per chunk) ─▶ number new pairs (radix join)
//! ```
//!
//! Each position stores the id of its pair, so counts are plain array look-ups. Pairs are hashed
//! only when they are created: N + 2 for each replacement instead of rounds x N. This works because
//! a new pair contains a new rule, so it differs from every old pair. A pair seen once can never
//! become more frequent, so it is ignored. If an older rule is used again, a pair may get a second
//! id. This costs some elements but is never wrong.
//!
//! Memory: 9 bytes for each element, 20 for each distinct pair seen twice, plus at most 256 MiB
//! while pairs are numbered.

use rayon::prelude::*;

use super::chunk::{Chosen, Chunk, with_rules};
use super::pair_join::{Pair, PairId, for_each_count, number_pairs};
use super::schedule::{CHUNK_LEN, Thresholds, are_joined, num_passes};

/// Cost of sorting one id, in ids that can be scanned in the same time.
const SORT_COST: usize = 16;

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
            chunk.set_pair_ids(positions, grouped.answers(first_ids));
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

    /// Makes a rule of every pair that was chosen twice or more, in the order of their ids. A pair
    /// that already has a rule keeps it.
    fn make_rules(&mut self, chosen: &[Vec<Chosen>]) {
        let mut make_rule = |pair_id: usize| {
            let uses = std::mem::take(&mut self.uses[pair_id]);
            let rule = &mut self.rule_of_pair[pair_id];
            if uses >= 2 && *rule == 0 {
                *rule = self.first_rule + self.rules.len() as u32;
                self.rules.push(self.pairs[pair_id]);
            }
            if *rule != 0 {
                self.counts[pair_id] -= uses;
            }
        };
        let num_chosen: usize = chosen.iter().map(Vec::len).sum();
        if num_chosen < self.pairs.len() / SORT_COST {
            let mut ids: Vec<PairId> = chosen.iter().flatten().map(|c| c.pair_id).collect();
            ids.sort_unstable();
            ids.dedup();
            ids.into_iter().for_each(|id| make_rule(id as usize));
        } else {
            (0..self.pairs.len()).for_each(make_rule);
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
        let (mut symbols, mut pair_ids) = (vec![0; self.len()], vec![0; self.len()]);
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
