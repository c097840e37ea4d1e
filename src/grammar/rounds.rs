//! The round-based builder: locally maximal Re-Pair on token ids.
//!
//! A round at threshold T: every pair counted T times or more competes with the pairs it overlaps,
//! the more frequent one wins; pairs that won twice or more become rules and are replaced all at
//! once; only pairs next to a replacement are counted again. T falls geometrically from the largest
//! count to 2, where rounds go on until they replace next to nothing.
//!
//! ```text
//! select (per chunk) ─▶ count winners (per shard) ─▶ replace (per chunk) ─▶ recount (per shard)
//! ```
//!
//! Sources: Larsson & Moffat, *Off-line dictionary-based compression* (Re-Pair, 1999), for the pair
//! replacement; Sequitur's rule utility (Nevill-Manning & Witten, 1997) for the clean-up.
//! Properties: the same grammar for any number of threads; depth at most [`MAX_ROUNDS`] a
//! repetition plus the segment level (9 to 39 seen); hash work about N + 3 (N - G) instead of rounds x N, because counts of old pairs
//! only fall: a pair involves the younger of its two symbols, and a symbol is placed only in the
//! round that made it. A pair seen once never can become frequent, so it is dropped after counting.
//! Memory: 5 bytes a token, plus 32 bytes for each distinct pair seen
//! twice, plus at most [`COUNT_BUFFER_BYTES`] while counting.
//! Tried and dropped (anchors/tadoc.md 2.3): stopping after 4-6 rounds (G +4 % on prose, +115 %
//! on versioned text), full recounts every round (3x slower on logs).

use rayon::prelude::*;

use super::chunk::{CHUNK_LEN, Changes, Chunk, Selection};
use super::cleanup::{Draft, clean_up};
use super::dedup::{Dedup, Shared, share_segments};
use super::pair_table::{
    Pair, PairTable, PairsByShard, ShardedPairs, count_shard, hash, unpair,
};
use super::Grammar;
use crate::error::Result;

/// Most rounds, and so most levels of pair rules.
const MAX_ROUNDS: usize = 64;

/// By what T falls from round to round: fast while few pairs reach it, then by octaves. Measured G:
/// step 2 throughout is 0.3 % smaller on logs at seven rounds more; step 6 throughout is 6 % larger
/// on logs and 2 % on versioned text, step 12 twice that; prose does not care.
fn next_threshold(threshold: u32) -> u32 {
    let step = if threshold > 1000 { 8 } else { 2 };
    (threshold / step).max(2)
}

/// Rounds at T = 2 stop when they replace less than this share of the sequence.
const LEAST_REPLACED_SHARE: f64 = 0.001;

/// The rounds run again over their own result (root and rule bodies) while that makes it at least
/// 1 % smaller: inlining moves rule borders, so repeats that were cut differently in two places
/// meet. e-peps-revisions: G falls 5.6 %, 1.7 %, 0.7 %; d-logs 0.9 %, 0.2 %; prose 0.3 %.
const LEAST_REPEAT_GAIN: f64 = 0.99;

/// Most repetitions; each costs time in proportion to G, not N.
const MAX_REPEATS: usize = 3;

/// The rounds are repeated only where G is below N / 3: the gain of prose is not worth its time.
const REPEAT_SHARE: usize = 3;

/// Memory for pairs while counting the whole sequence; longer ones are counted in passes.
const COUNT_BUFFER_BYTES: usize = 256 << 20;

/// How the builder runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoundsOptions {
    /// Whether repeated segments are shared before the rounds.
    pub dedup: Dedup,
}

/// Builds a grammar over `tokens`, whose documents begin at `doc_offsets` (one more offset than
/// documents) and whose ids are below `num_terminals`. Uses all threads of the current rayon pool;
/// the result does not depend on their number.
///
/// # Errors
/// [`Error::Capacity`](crate::Error::Capacity) if the grammar would have more than 2^32 - 2 elements.
pub fn build_rounds(
    tokens: Vec<u32>,
    doc_offsets: &[usize],
    num_terminals: u32,
    options: &RoundsOptions,
) -> Result<Grammar> {
    let num_tokens = tokens.len();
    let mut grammar =
        run_rounds(share_segments(tokens, doc_offsets, num_terminals, options.dedup)?, num_terminals)?;
    for _ in 0..MAX_REPEATS {
        let num_elements = grammar.symbols.len();
        if num_elements > num_tokens / REPEAT_SHARE {
            break;
        }
        grammar = run_rounds(Shared::from_grammar(&grammar), num_terminals)?;
        if grammar.symbols.len() as f64 > LEAST_REPEAT_GAIN * num_elements as f64 {
            break;
        }
    }
    Ok(grammar)
}

/// All rounds over documents and rule bodies, and the clean-up.
fn run_rounds(shared: Shared, num_terminals: u32) -> Result<Grammar> {
    let num_segments = shared.num_segments;
    let mut sequence = Sequence::new(shared.symbols, num_terminals + num_segments);
    sequence.run();
    let (symbols, pairs) = sequence.finish();
    clean_up(Draft { num_terminals, num_segments, pairs, symbols })
}

/// The sequence under replacement: chunks, the counts of their pairs, the rules so far.
struct Sequence {
    chunks: Vec<Chunk>,
    counts: ShardedPairs,
    num_shards: usize,
    first_rule: u32,
    rules: Vec<Pair>,
}

impl Sequence {
    fn new(symbols: Vec<u32>, first_rule: u32) -> Self {
        // Shards of some 32,768 pairs, so that one fits the second-level cache while it is filled.
        let num_shards = (symbols.len() / 32_768).next_power_of_two().clamp(1, 1024);
        let chunks = into_chunks(symbols);
        let counts = ShardedPairs::new(num_shards);
        Self { chunks, counts, num_shards, first_rule, rules: Vec::new() }
    }

    fn len(&self) -> usize {
        self.chunks.iter().map(Chunk::len).sum()
    }

    fn run(&mut self) {
        let mut threshold = self.count_all().max(2);
        for _ in 0..MAX_ROUNDS {
            threshold = next_threshold(threshold);
            let num_replaced = self.round(threshold);
            self.merge_chunks();
            if threshold == 2 && num_replaced as f64 <= LEAST_REPLACED_SHARE * self.len() as f64 {
                break;
            }
        }
    }

    /// Counts every pair, keeps those seen twice or more, and returns the largest count.
    fn count_all(&mut self) -> u32 {
        let num_shards = self.num_shards;
        let num_passes = (self.len() * size_of::<Pair>())
            .div_ceil(COUNT_BUFFER_BYTES)
            .next_power_of_two()
            .min(num_shards);
        let shards_of_pass = num_shards / num_passes;
        let mut tables = Vec::with_capacity(num_shards);
        for pass in 0..num_passes {
            let in_pass = |pair: Pair| {
                let pass_bits = num_passes.trailing_zeros();
                hash(pair).checked_shr(64 - pass_bits).unwrap_or(0) as usize == pass
            };
            let chunks: Vec<PairsByShard> =
                self.chunks.par_iter().map(|c| c.pairs(num_shards, in_pass)).collect();
            let first_shard = pass * shards_of_pass;
            tables.par_extend((first_shard..first_shard + shards_of_pass).into_par_iter().map(
                |shard| repeated(&count_shard(chunks.iter(), shard)),
            ));
        }
        let largest = tables.iter().flat_map(|t| t.iter().map(|(_, count)| count)).max();
        self.counts = ShardedPairs::from_shards(tables);
        let counts = &self.counts;
        self.chunks.par_iter_mut().for_each(|chunk| chunk.set_levels(counts));
        largest.unwrap_or(0)
    }

    /// One round; returns how many pairs were replaced.
    fn round(&mut self, threshold: u32) -> usize {
        let (counts, num_shards) = (&self.counts, self.num_shards);
        let selections: Vec<Selection> = self
            .chunks
            .par_iter_mut()
            .map(|chunk| chunk.select(threshold, counts, num_shards))
            .collect();
        let rules = self.make_rules(&selections);
        let changes: Vec<Changes> = self
            .chunks
            .par_iter_mut()
            .zip(&selections)
            .map(|(chunk, selection)| chunk.replace(selection, &rules, num_shards))
            .collect();
        self.recount(&changes);
        let counts = &self.counts;
        self.chunks
            .par_iter_mut()
            .zip(&changes)
            .for_each(|(chunk, changes)| chunk.set_added_levels(changes, counts));
        changes.iter().map(|c| c.num_replaced).sum()
    }

    /// Makes a rule of every pair that was chosen twice or more; the others map to 0.
    fn make_rules(&mut self, selections: &[Selection]) -> ShardedPairs {
        let chosen: Vec<PairTable> = (0..self.num_shards)
            .into_par_iter()
            .map(|shard| count_shard(selections.iter().map(|s| &s.pairs), shard))
            .collect();
        let mut tables = Vec::with_capacity(self.num_shards);
        for shard in &chosen {
            let mut table = PairTable::with_capacity(0);
            for (pair, _) in shard.iter().filter(|&(_, uses)| uses >= 2) {
                *table.entry(pair) = self.first_rule + self.rules.len() as u32;
                self.rules.push(pair);
            }
            tables.push(table);
        }
        self.counts.par_shards_mut().zip(&chosen).for_each(|(counts, chosen)| {
            for (pair, uses) in chosen.iter().filter(|&(_, uses)| uses >= 2) {
                if let Some(count) = counts.get_mut(pair) {
                    *count = count.saturating_sub(uses);
                }
            }
        });
        ShardedPairs::from_shards(tables)
    }

    /// Applies the changes of all chunks to the counts.
    fn recount(&mut self, changes: &[Changes]) {
        self.counts.par_shards_mut().enumerate().for_each(|(shard, counts)| {
            for &pair in changes.iter().flat_map(|c| c.removed.shard(shard)) {
                if let Some(count) = counts.get_mut(pair) {
                    *count = count.saturating_sub(1);
                }
            }
            let added = count_shard(changes.iter().map(|c| &c.added), shard);
            for (pair, count) in added.iter().filter(|&(_, count)| count >= 2) {
                *counts.entry(pair) += count;
            }
        });
    }

    /// Joins neighbours once chunks are half empty on average.
    fn merge_chunks(&mut self) {
        while self.chunks.len() > 1 && self.len() < self.chunks.len() * CHUNK_LEN / 2 {
            let mut chunks = std::mem::take(&mut self.chunks).into_iter();
            while let Some(mut chunk) = chunks.next() {
                if let Some(next) = chunks.next() {
                    chunk.append(next, &self.counts);
                }
                self.chunks.push(chunk);
            }
        }
    }

    /// The final sequence and the rules, oldest first.
    fn finish(self) -> (Vec<u32>, Vec<(u32, u32)>) {
        let mut symbols = Vec::with_capacity(self.len());
        for chunk in self.chunks {
            symbols.extend(chunk.symbols);
        }
        (symbols, self.rules.into_iter().map(unpair).collect())
    }
}

/// Cuts the sequence, last chunk first, and gives memory back as it goes: the peak is one copy.
fn into_chunks(mut symbols: Vec<u32>) -> Vec<Chunk> {
    const CHUNKS_PER_SHRINK: usize = 64;
    let num_chunks = symbols.len().div_ceil(CHUNK_LEN);
    let mut chunks = Vec::with_capacity(num_chunks);
    for chunk_idx in (0..num_chunks).rev() {
        chunks.push(Chunk::new(symbols.split_off(chunk_idx * CHUNK_LEN)));
        if chunk_idx % CHUNKS_PER_SHRINK == 0 {
            symbols.shrink_to_fit();
        }
    }
    chunks.reverse();
    chunks
}

/// The pairs counted twice or more.
fn repeated(table: &PairTable) -> PairTable {
    let num_repeated = table.iter().filter(|&(_, count)| count >= 2).count();
    let mut kept = PairTable::with_capacity(num_repeated);
    for (pair, count) in table.iter().filter(|&(_, count)| count >= 2) {
        *kept.entry(pair) = count;
    }
    kept
}
