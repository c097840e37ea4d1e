//! Grammar builder that works in rounds: locally maximal Re-Pair on token ids.
//!
//! In a round at threshold T, every pair with count T or more competes with the pairs that overlap
//! it, and the more frequent pair wins. Pairs that win at least twice become rules and are replaced
//! all at once. Only pairs next to a replacement are counted again. T falls geometrically from the
//! largest count to 2. There the rounds continue until they replace almost nothing.
//!
//! ```text
//! choose (per chunk) ─▶ make rules ─▶ replace (per chunk) ─▶ number new pairs (radix join)
//! ```
//!
//! Sources: Larsson & Moffat, *Off-line dictionary-based compression* (Re-Pair, 1999), for the pair
//! replacement; Sequitur's rule utility (Nevill-Manning & Witten, 1997) for the clean-up.
//!
//! Properties: the grammar does not depend on the number of threads. Its depth is at most
//! [`MAX_ROUNDS`] for each repetition plus the segment level (9 to 39 observed). Each position
//! stores the id of its pair, so counts are plain array look-ups. Pairs are hashed only when they
//! are created: N + 2 for each replacement instead of rounds x N. This works because a new pair
//! contains a new rule, so it differs from every old pair. A pair seen once can never become more
//! frequent, so it is ignored. If an older rule, or one learned by
//! [`warm_start`](super::warm_start), is used again, a pair may get a second id. This costs some
//! elements but is never wrong.
//!
//! Memory: 9 bytes for each token, 12 for each distinct pair seen twice, plus at most 256 MiB while
//! pairs are numbered.
//!
//! Rejected experiments (anchors/tadoc.md 2.3): stopping after 4-6 rounds (G +4 % on prose, +115 %
//! on versioned text), full recounts every round (3x slower on logs). Counts in hash tables keyed
//! by pair, looked up again in every round, were 1.8x slower.

use std::fmt::Debug;

use rayon::prelude::*;

use super::Grammar;
use super::chunk::{Chosen, Chunk, with_rules};
use super::cleanup::{Draft, clean_up};
use super::dedup::{Dedup, Shared, share_segments};
use super::pair_join::{Pair, PairId, SEEN_ONCE, number_pairs, unpair};
use super::schedule::{
    CHUNK_LEN, MAX_ROUNDS, are_joined, is_last_round, next_threshold, num_passes,
    thresholds_of_sample,
};
use super::tally::for_each_count;
use super::warm_start::{Learned, PairTable, apply, sample};
use crate::error::Result;

/// If G is at most N / 3, the rounds run a second time over their own result (root and rule
/// bodies). Inlining moves rule borders, so repeats that were cut differently in two places become
/// equal. On e-peps-revisions G falls by 5.7 % and time rises by a fifth, on d-logs G falls by 1 %,
/// on prose by 0.3 %. A third run reduces G by another 1.7 % on e-peps-revisions and by nothing on
/// logs.
const REPEAT_SHARE: usize = 3;

/// Cost of sorting one id, in ids that can be scanned in the same time.
const SORT_COST: usize = 16;

/// Settings of the rounds builder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoundsOptions {
    /// Choice of whether repeated token ranges are shared before the rounds.
    pub dedup: Dedup,
}

/// Builds a grammar of `tokens`. The documents begin at `doc_offsets` (one more offset than
/// documents), and the ids are below `num_terminals`. It uses all threads of the current rayon
/// pool. The result does not depend on their number.
///
/// # Errors
/// [`Error::Capacity`](crate::Error::Capacity) if there are more than 2^31 tokens.
pub fn build_rounds(
    tokens: Vec<u32>,
    doc_offsets: &[usize],
    num_terminals: u32,
    options: &RoundsOptions,
) -> Result<Grammar> {
    build_rounds_by(None, tokens, doc_offsets, num_terminals, options)
}

/// Builds the same grammar as [`build_rounds`]. `engine` runs the rounds where it can.
///
/// # Errors
/// Same as [`build_rounds`].
pub fn build_rounds_by(
    engine: Option<&dyn RoundsEngine>,
    tokens: Vec<u32>,
    doc_offsets: &[usize],
    num_terminals: u32,
    options: &RoundsOptions,
) -> Result<Grammar> {
    let num_tokens = tokens.len();
    let shared = share_segments(tokens, doc_offsets, num_terminals, options.dedup)?;
    let mut grammar = run_rounds(engine, shared, num_terminals)?;
    if grammar.symbols.len() <= num_tokens / REPEAT_SHARE {
        grammar = run_rounds(engine, Shared::from_grammar(&grammar), num_terminals)?;
    }
    Ok(grammar)
}

/// Replacement for this machine's cores, such as a device, that runs all rounds of a sequence.
pub trait RoundsEngine: Send + Sync + Debug {
    /// Returns the sequence after the rounds that this crate would run, and their rules.
    /// `first_rule` is greater than all symbols except the barriers. `None` leaves the rounds to
    /// the cores.
    fn run(&self, symbols: &[u32], first_rule: u32) -> Option<RoundsOutput>;
}

/// Result of the rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoundsOutput {
    /// Sequence with pairs replaced by rules, and with barriers (`u32::MAX`).
    pub symbols: Vec<u32>,
    /// The two elements of each rule, oldest first.
    pub rules: Vec<(u32, u32)>,
}

/// Runs all rounds over documents and rule bodies, then the clean-up.
fn run_rounds(
    engine: Option<&dyn RoundsEngine>,
    shared: Shared,
    num_terminals: u32,
) -> Result<Grammar> {
    let num_segments = shared.num_segments;
    let first_rule = num_terminals + num_segments;
    let output = match engine.and_then(|engine| engine.run(&shared.symbols, first_rule)) {
        Some(output) => output,
        None => run_on_cores(shared.symbols, first_rule),
    };
    let RoundsOutput { symbols, rules: pairs } = output;
    clean_up(Draft { num_terminals, num_segments, pairs, symbols })
}

/// Runs all rounds on the current rayon pool.
pub(super) fn run_on_cores(symbols: Vec<u32>, first_rule: u32) -> RoundsOutput {
    let mut sequence = Sequence::new(symbols, first_rule);
    sequence.warm_up();
    sequence.run();
    sequence.finish()
}

/// The sequence in its current state, the counts of its pairs, and the rules so far.
struct Sequence {
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
    /// Number of occurrences of the body of each rule made here, when the rule was made.
    rule_counts: Vec<u32>,
    /// Rules that existed before the rounds.
    known_rules: PairTable,
}

impl Sequence {
    fn new(symbols: Vec<u32>, first_rule: u32) -> Self {
        Self {
            chunks: into_chunks(symbols),
            pairs: Vec::new(),
            counts: Vec::new(),
            uses: Vec::new(),
            rule_of_pair: Vec::new(),
            first_rule,
            rules: Vec::new(),
            rule_counts: Vec::new(),
            known_rules: PairTable::new(&[], &[]),
        }
    }

    fn len(&self) -> usize {
        self.chunks.iter().map(Chunk::len).sum()
    }

    /// Learns the frequent rules from a sample and applies them.
    fn warm_up(&mut self) {
        let Some(sample) = sample(&self.chunks) else { return };
        let learned = Self::new(sample, self.first_rule).learn();
        apply(&learned, self.first_rule, &mut self.chunks);
        self.known_rules = PairTable::new(&learned.pairs, &learned.counts);
        self.rules = learned.pairs;
        self.merge_chunks();
    }

    /// Runs the rounds down to [`LEAST_COUNT`](super::schedule::LEAST_COUNT).
    fn learn(mut self) -> Learned {
        self.number_all();
        let thresholds = thresholds_of_sample(self.counts.iter().copied().max().unwrap_or(0));
        for &threshold in &thresholds {
            self.round(threshold);
        }
        Learned { pairs: self.rules, counts: self.rule_counts, thresholds }
    }

    fn run(&mut self) {
        self.number_all();
        let mut threshold = self.counts.iter().copied().max().unwrap_or(0).max(2);
        for _ in 0..MAX_ROUNDS {
            threshold = next_threshold(threshold);
            let num_replaced = self.round(threshold);
            self.merge_chunks();
            if is_last_round(threshold, num_replaced, self.len()) {
                break;
            }
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
        let pairs_at = |(chunk, positions): (&Chunk, &Vec<u32>)| {
            positions.iter().map(|&position| chunk.pair_at(position)).collect()
        };
        let pairs = self.chunks.par_iter().zip(places).map(pairs_at).collect();
        let numbered = number_pairs(pairs, self.pairs.len() as PairId);
        self.add_pairs(numbered.pairs, numbered.counts);
        self.chunks.par_iter_mut().zip(places).zip(&numbered.answers).for_each(
            |((chunk, positions), answers)| {
                positions
                    .iter()
                    .zip(answers)
                    .for_each(|(&p, &answer)| chunk.set_pair_id(p, answer));
            },
        );
    }

    fn add_pairs(&mut self, pairs: Vec<Pair>, counts: Vec<u32>) {
        self.rule_of_pair.extend(pairs.iter().map(|&pair| match self.known_rules.get(pair).id() {
            SEEN_ONCE => 0,
            rule_idx => self.first_rule + rule_idx,
        }));
        self.pairs.extend(pairs);
        self.counts.extend(counts);
        self.uses.resize(self.pairs.len(), 0);
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
                self.rule_counts.push(self.counts[pair_id]);
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

    /// Returns the final sequence and the rules, oldest first.
    fn finish(self) -> RoundsOutput {
        let mut symbols = Vec::with_capacity(self.len());
        for chunk in self.chunks {
            symbols.extend(chunk.symbols());
        }
        RoundsOutput { symbols, rules: self.rules.into_iter().map(unpair).collect() }
    }
}

/// Returns the positions whose pairs belong to a pass.
fn positions_in_pass(
    chunks: &[Chunk],
    places: &[Vec<u32>],
    pass: usize,
    num_passes: usize,
) -> Vec<Vec<u32>> {
    let is_in_pass = |pair: Pair| {
        let mixed = pair.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        (mixed as usize * num_passes) >> 32 == pass
    };
    let filter = |(chunk, positions): (&Chunk, &Vec<u32>)| {
        positions.iter().copied().filter(|&position| is_in_pass(chunk.pair_at(position))).collect()
    };
    chunks.par_iter().zip(places).map(filter).collect()
}

/// Cuts the sequence into chunks, last chunk first, and frees memory on the way. So the peak is one
/// copy.
fn into_chunks(mut symbols: Vec<u32>) -> Vec<Chunk> {
    const CHUNKS_PER_SHRINK: usize = 64;
    let num_chunks = symbols.len().div_ceil(CHUNK_LEN);
    let mut chunks = Vec::with_capacity(num_chunks);
    for chunk_idx in (0..num_chunks).rev() {
        chunks.push(Chunk::new(&symbols[chunk_idx * CHUNK_LEN..]));
        symbols.truncate(chunk_idx * CHUNK_LEN);
        if chunk_idx % CHUNKS_PER_SHRINK == 0 {
            symbols.shrink_to_fit();
        }
    }
    chunks.reverse();
    chunks
}
