//! Grammar builder that works in rounds: locally maximal Re-Pair on token ids.
//!
//! ```text
//! share segments ─▶ learn from samples ─▶ longest matches ─▶ rounds ─▶ repeats ─▶ clean-up
//!      dedup              learn               phrases      sequence or   repeats    cleanup
//!                                                           a device
//! ```
//!
//! In a round at threshold T, every pair with count T or more competes with the pairs that overlap
//! it, and the more frequent pair wins. Pairs that win at least twice become rules and are replaced
//! all at once. Only pairs next to a replacement are counted again. T falls geometrically from the
//! largest count to 3. There the rounds continue, four times at most, until they replace almost
//! nothing. Passages that then still stand twice become one rule each.
//!
//! Sources: Larsson & Moffat, *Off-line dictionary-based compression* (Re-Pair, 1999), for the pair
//! replacement; Sequitur's rule utility (Nevill-Manning & Witten, 1997) for the clean-up.
//!
//! Properties: the grammar does not depend on the number of threads. Its depth is at most the
//! number of rounds: 14 over each sample, 18 over the sequence, one for repeats and one for each
//! repetition (7 to 21 observed). With the effort `small` the sequence has 24 rounds in each of
//! four passes.
//!
//! Memory: 9 bytes for each token, see [`Sequence`].
//!
//! Fewer rounds, a stop at 3 without repeats, full recounts in every round, and counts in hash
//! tables keyed by pair give larger grammars or take longer.
//!
//! # Learned rules
//!
//! Frequent rules that are learned from samples.
//!
//! ```text
//! text      |#---------------|#---------------| ...   1 of 64 stretches: rounds ─▶ rules
//! text      |##------|##------|##------|##---- ...    1 of 8: longest matches, rounds ─▶ more rules
//! ```
//!
//! Most replacements concern pairs that occur in any sample. [`Phrases`] replaces them in the whole
//! text in one pass, before its pairs are counted. The rules of the first sample make the second
//! one short. The later rounds count what remains, so they find the pairs that the samples missed.
//! The clean-up removes learned rules that are never used.
//!
//! Without learning, the grammar is larger and the build is slower.

use crate::error::Result;

use super::Grammar;
use super::cleanup::{Draft, clean_up};
use super::dedup::{Dedup, Shared, share_segments};
use super::pair_join::{Pair, unpair};
use super::phrases::Phrases;
use super::repeats::replace_repeats;
use super::schedule::{BARRIER, Effort, Thresholds};
use super::sequence::Sequence;

/// Settings of the rounds builder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoundsOptions {
    /// Choice of whether repeated token ranges are shared before the rounds.
    pub dedup: Dedup,
    /// Time that is spent on a smaller grammar.
    pub effort: Effort,
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
    let num_tokens = tokens.len();
    let shared = share_segments(tokens, doc_offsets, num_terminals, options.dedup)?;
    let first_rule = num_terminals + shared.num_segments;
    let learned = learn(&shared.symbols, first_rule);
    let effort = options.effort;
    let mut grammar = run_rounds(shared, learned, num_terminals, effort)?;
    for _ in 0..effort.num_more_passes(grammar.symbols.len(), num_tokens) {
        let shared = Shared::from_grammar(&grammar);
        grammar = run_rounds(shared, Vec::new(), num_terminals, effort)?;
    }
    Ok(grammar)
}

/// Replaces `learned` rules, runs all rounds over documents and rule bodies, then the clean-up.
fn run_rounds(shared: Shared, learned: Vec<Pair>, num_terminals: u32, effort: Effort) -> Result<Grammar> {
    let Shared { mut symbols, num_segments } = shared;
    let first_learned = num_terminals + num_segments;
    if let Some(phrases) = Phrases::new(&learned, first_learned) {
        phrases.replace(&mut symbols);
        symbols.shrink_to_fit();
    }
    let first_rule = first_learned + learned.len() as u32;
    let mut sequence = Sequence::new(symbols, first_rule);
    sequence.run(|largest| Thresholds::for_effort(effort, largest));
    let (mut symbols, pair_ids, rules) = sequence.into_parts();
    let pairs: Vec<(u32, u32)> = learned.into_iter().chain(rules).map(unpair).collect();
    let first_repeat = first_learned + pairs.len() as u32;
    let repeats = replace_repeats(&mut symbols, pair_ids, first_repeat);
    clean_up(Draft { num_terminals, num_segments, pairs, repeats, symbols })
}

/// Least length of a text that is worth a sample.
const LEAST_SAMPLED: usize = 1 << 18;

/// Number of elements in a stretch of a sample.
const STRETCH_LEN: usize = 2_048;

/// Distances of the stretches of each sample, in stretches.
const SAMPLE_STEPS: [usize; 2] = [64, 8];

/// Returns the bodies of rules that are frequent in samples of `symbols`, oldest first. Their ids
/// begin at `first_rule`. There are none if the text is short.
pub(super) fn learn(symbols: &[u32], first_rule: u32) -> Vec<Pair> {
    let mut rules = Vec::new();
    if symbols.len() < LEAST_SAMPLED {
        return rules;
    }
    for step in SAMPLE_STEPS {
        let mut sample = sample(symbols, step);
        if let Some(phrases) = Phrases::new(&rules, first_rule) {
            phrases.replace(&mut sample);
        }
        let mut sequence = Sequence::new(sample, first_rule + rules.len() as u32);
        sequence.run(Thresholds::for_sample);
        rules.extend(sequence.into_rules());
    }
    rules
}

/// Returns one of `step` stretches of the text, each followed by a barrier.
fn sample(symbols: &[u32], step: usize) -> Vec<u32> {
    let mut sample = Vec::with_capacity(symbols.len() / step + 2 * STRETCH_LEN);
    for part in symbols.chunks(STRETCH_LEN * step) {
        sample.extend_from_slice(&part[..part.len().min(STRETCH_LEN)]);
        sample.push(BARRIER);
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_the_first_stretch_of_each_part() {
        let symbols: Vec<u32> = (0..5 * STRETCH_LEN as u32).collect();
        let sample = sample(&symbols, 2);
        let stretches: Vec<&[u32]> = sample.split(|&symbol| symbol == BARRIER).collect();
        let expected = [&symbols[..2_048], &symbols[4_096..6_144], &symbols[8_192..], &[]];
        assert_eq!(stretches, expected);
    }

    #[test]
    fn frequent_phrases_are_learned() {
        let symbols = [0, 1, 2, 3].repeat(LEAST_SAMPLED / 4);
        let rules = learn(&symbols, 4);
        assert!(!rules.is_empty());
        assert!(learn(&symbols[1..], 4).is_empty());
        let mut replaced = symbols.clone();
        Phrases::new(&rules, 4).unwrap().replace(&mut replaced);
        assert!(replaced.len() < symbols.len() / 32);
    }
}
