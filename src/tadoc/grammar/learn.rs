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
//! Without learning, G rises by 3 to 14 % and the build is slower.

use super::pair_join::Pair;
use super::phrases::Phrases;
use super::schedule::{BARRIER, Thresholds};
use super::sequence::Sequence;

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
