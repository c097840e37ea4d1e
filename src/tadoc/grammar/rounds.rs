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
//! Properties: the grammar does not depend on the number of threads. Its depth is at most the number
//! of rounds: 14 over each sample, 18 over the sequence, one for repeats and one for each
//! repetition (7 to 21 observed). With the effort `small` the sequence has 24 rounds in each of four passes.
//!
//! Memory: 9 bytes for each token, see [`Sequence`].
//!
//! Rejected experiments (anchors/tadoc.md 2.3): stopping after 4-6 rounds (G +4 % on prose, +115 %
//! on versioned text), stopping at 3 without repeats (G +5 to +8 %), full recounts every round (3x
//! slower on logs). Counts in hash tables keyed by pair, looked up again in every round, were 1.8x
//! slower.

use super::Grammar;
use super::cleanup::{Draft, clean_up};
use super::dedup::{Dedup, Shared, share_segments};
use super::effort::Effort;
use super::learn::learn;
use super::pair_join::{Pair, unpair};
use super::phrases::Phrases;
use super::repeats::replace_repeats;
use super::schedule::Thresholds;
use super::sequence::Sequence;
use crate::error::Result;

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
fn run_rounds(
    shared: Shared,
    learned: Vec<Pair>,
    num_terminals: u32,
    effort: Effort,
) -> Result<Grammar> {
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
