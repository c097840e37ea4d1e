//! Words within an edit distance of 1 or 2 of a word.
//!
//! One edit inserts, removes or replaces a character, or swaps two neighbours. A character is
//! edited once (optimal string alignment): `ca` and `abc` are at distance 3. A Levenshtein
//! automaton (Schulz and Mihov 2002) reads each word of the dictionary until no word that begins
//! so can match: a few nanoseconds a word.

use std::sync::LazyLock;

use levenshtein_automata::{Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use rayon::prelude::*;

use crate::text::Dictionary;

use crate::query::matching::word_set::WordSet;

/// Largest edit distance.
pub(in crate::query) const MAX_DISTANCE: u8 = 2;
/// Most characters of a word that is compared with edits. The automaton grows with them.
pub(in crate::query) const MAX_CHARS: usize = 256;
/// Number of words that one task tests.
const WORDS_PER_TASK: usize = 1 << 12;

/// Builders of automata for distances 1 and 2. To make one takes milliseconds.
static BUILDERS: [LazyLock<LevenshteinAutomatonBuilder>; MAX_DISTANCE as usize] = [
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(1, true)),
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(2, true)),
];

/// A word, and the most edits by which others may differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::query) struct FuzzyWord {
    pub word: String,
    pub max_distance: u8,
}

impl FuzzyWord {
    /// Returns true if `word` differs by at most the distance.
    pub fn matches(&self, word: &str) -> bool {
        let (from, to): (Vec<char>, Vec<char>) =
            (self.word.chars().collect(), word.chars().collect());
        from.len().abs_diff(to.len()) <= usize::from(self.max_distance)
            && distance(&from, &to) <= usize::from(self.max_distance)
    }

    /// Returns the words of `dictionary` that match.
    pub fn find(&self, dictionary: &Dictionary) -> WordSet {
        let builder = &BUILDERS[usize::from(self.max_distance.clamp(1, MAX_DISTANCE) - 1)];
        let automaton = builder.build_dfa(&self.word);
        let fits = |id: &u32| {
            let mut state = automaton.initial_state();
            for &byte in dictionary.word((*id).into()).as_bytes() {
                state = automaton.transition(state, byte);
                if state == SINK_STATE {
                    return false;
                }
            }
            matches!(automaton.distance(state), Distance::Exact(_))
        };
        let words = (0..dictionary.num_words()).into_par_iter().with_min_len(WORDS_PER_TASK);
        WordSet::from_ids(&words.filter(fits).collect::<Vec<_>>())
    }
}

/// Returns the number of edits between two words.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut above: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, &character) in from.iter().enumerate() {
        let before = std::mem::replace(&mut above, row);
        row = vec![i + 1];
        for (j, &other) in to.iter().enumerate() {
            let replaced = above[j] + usize::from(character != other);
            let mut least = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && character == to[j - 1] && from[i - 1] == other {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edits_are_counted() {
        let cases = [
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("form", "from", 1),
            ("ca", "abc", 3),
            ("é", "e", 1),
        ];
        for (from, to, expected) in cases {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(distance(&chars(from), &chars(to)), expected, "{from} {to}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_automaton_finds_the_words_of_the_definition(
            words in prop::collection::btree_set("[abcé]{1,6}", 0..40),
            word in "[abcé]{1,6}",
            max_distance in 1u8..=2,
        ) {
            let mut offsets = vec![0];
            words.iter().for_each(|word| offsets.push(offsets[offsets.len() - 1] + word.len() as u32));
            let arena: String = words.iter().map(String::as_str).collect();
            let num_words = words.len() as u32;
            let dictionary = Dictionary::from_parts(num_words, offsets, arena.into()).unwrap();
            let fuzzy = FuzzyWord { word, max_distance };
            let slow: Vec<u32> = (0..num_words)
                .zip(&words)
                .filter(|(_, word)| fuzzy.matches(word))
                .map(|(id, _)| id)
                .collect();
            prop_assert_eq!(fuzzy.find(&dictionary).ids().collect::<Vec<_>>(), slow);
        }
    }
}
