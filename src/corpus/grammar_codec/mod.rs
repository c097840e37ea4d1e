//! The grammar section: the root depth first, each rule written out where it is first used.
//!
//! ```text
//! root  a R7 b R7 c │ R7 = d R3 │ R3 = e e       a NEW(2) d NEW(2) e e b ref c END
//! ```
//!
//! A rule gets its number when it is complete, and only complete rules can be referred to, so no
//! stream whatsoever describes a cycle; in memory the last one to be complete, the root, is rule 0
//! and parents come before children. Spelling a rule out in place makes its first use free.
//!
//! Each event is one symbol (of 32), then what the symbol leaves open:
//!
//! ```text
//!  0 unseen word        which of those left (uniform)
//!  1 unseen separator   likewise
//!  2 new rule           its length
//!  3 end of document
//!  4 … 11  seen word, by how often it was seen: 1, 2-3, 4-7, 8-15, 16-63, 64-511, 512-8191, more
//! 12 … 17  seen separator             │ how many others of the same
//! 18 … 24  rule beginning with a word │ symbol were used since, about
//! 25 … 31  rule beginning with a separator
//! ```
//!
//! The symbol's distribution depends on the kind of the event before and on whether the text before
//! ends with a word (two separators never meet, so the first word of what comes is half known).
//! That what was used a moment ago is used again pays most: see [`Recency`].
//!
//! Everything takes O(events); memory is 8 bytes an element and about 30 an id. What a valid grammar
//! could say and this does not: rules nobody uses.

mod decode;
mod encode;
mod recency;

pub(super) use decode::decode;
pub(super) use encode::encode;

use super::entropy::Distribution;
use crate::grammar::Grammar;

/// Number of the coding in the footer.
pub(super) const CODEC: u16 = 1;

const UNSEEN_WORD: usize = 0;
const UNSEEN_SEPARATOR: usize = 1;
const NEW_RULE: usize = 2;
const DOC_END: usize = 3;
/// First symbol of each list: words, separators, and rules by first and last token.
const FIRST_SYMBOL: [usize; 6] = [4, 11, 16, 20, 24, 28];
const WORDS: usize = 0;
const SEPARATORS: usize = 1;
const RULES: usize = 2;
const NUM_CLASS_SYMBOLS: usize = 28;
/// Class by list and by the log2 of how often an element was used.
const CLASSES: [[u8; 16]; 6] = [
    [0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6],
    [0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4],
    [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3],
    [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3],
    [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3],
    [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3],
];

/// The symbol of an element of `list` that was used `num_uses` times, 1 or more.
#[inline]
fn symbol_of(list: usize, num_uses: u32) -> usize {
    let octave = num_uses.max(1).ilog2().min(15) as usize;
    FIRST_SYMBOL[list] + usize::from(CLASSES[list][octave])
}

/// The list of a seen element's `symbol`.
#[inline]
fn list_of(symbol: usize) -> usize {
    FIRST_SYMBOL[1..].iter().map(|&first| usize::from(symbol >= first)).sum()
}

/// The list of rules that begin and end so.
#[inline]
fn rules(begins_with_separator: bool, ends_with_separator: bool) -> usize {
    RULES + 2 * usize::from(begins_with_separator) + usize::from(ends_with_separator)
}

/// Everything that is learnt.
struct Models {
    symbols: Vec<Distribution>,
    distances: Vec<Distribution>,
    rule_len: Distribution,
}

impl Models {
    fn new() -> Self {
        let many = |num| vec![Distribution::new(); num];
        Self {
            symbols: many(32),
            distances: many(NUM_CLASS_SYMBOLS),
            rule_len: Distribution::new(),
        }
    }
}

/// What the next event's symbol depends on.
#[derive(Debug, Clone, Copy)]
struct Context {
    kind: usize,
    ends_with_separator: bool,
}

impl Context {
    fn new() -> Self {
        Self { kind: DOC_END, ends_with_separator: true }
    }

    /// Index of the distribution, below 16.
    #[inline]
    fn index(self) -> usize {
        2 * self.kind + usize::from(self.ends_with_separator)
    }
}

/// Tokens of the text, and how many of them are words, or `None` past 2^64.
pub(super) fn count_tokens(grammar: &Grammar, num_words: u32) -> Option<(u64, u64)> {
    let mut counts = vec![(0u64, 0u64); grammar.num_rules()];
    for rule_idx in (0..grammar.num_rules()).rev() {
        let (mut tokens, mut words) = (0u64, 0u64);
        for &element in grammar.rule(rule_idx) {
            let (t, w) = match element.checked_sub(grammar.num_terminals) {
                Some(child) => counts[child as usize],
                None => (1, u64::from(element < num_words)),
            };
            tokens = tokens.checked_add(t)?;
            // Words are tokens: their sum cannot be larger.
            words += w;
        }
        counts[rule_idx] = (tokens, words);
    }
    counts.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_lists_agree() {
        for list in 0..LISTS.len() {
            let mut last = 0;
            for num_uses in (0..31).map(|octave| 1 << octave) {
                let symbol = symbol_of(list, num_uses);
                assert!(symbol >= last && symbol < 32);
                assert_eq!(list_of(symbol), list);
                last = symbol;
            }
            assert_eq!(last + 1, LISTS[list].0 + LISTS[list].1);
        }
    }
}
