//! Codec of the grammar section: depth-first from the root, each rule written at its first use.
//!
//! ```text
//! root  a R7 b R7 c │ R7 = d R3 │ R3 = e e       a NEW(2) d NEW(2) e e b ref c END
//! ```
//!
//! A rule gets its number when it is complete, and only complete rules can be referred to. So no
//! stream can describe a cycle. In memory the rule that is completed last, the root, is rule 0, and
//! parents come before children. A rule is written in place of its first use, so that use costs
//! nothing.
//!
//! Each event is one symbol (of 32), followed by the information that the symbol does not
//! determine:
//!
//! ```text
//!  0 unseen word         index among those left (uniform)
//!  1 unseen separator    index among those left (uniform)
//!  2 new rule            its length
//!  3 end of document
//!  4 as predicted        the element that last followed two after the one before last
//!  5 … 11 seen word      by number of uses: 1, 2-7, 8-31, 32-255, 256-2047, 2048-16383, more
//! 12 … 15 separator      1, 2-7, 8-63, more       │ how many others of the same
//! 16 … 19 rule  w … w    1, 2-7, 8-63, more       │ symbol were used since, about
//! 20 … 23 rule  w … s      first and last token:
//! 24 … 27 rule  s … w      a word or a separator
//! 28 … 31 rule  s … s
//! ```
//!
//! The symbol's distribution depends on the kind of the previous event and on the success of
//! predictions. (Two separators never meet, so the last token of a rule restricts the next event.)
//! The greatest gain is that recently used elements are used again, see
//! [`Recency`](recency::Recency). All steps take O(events). Decoding needs 8 bytes for each element
//! and about 35 for each id.
//!
//! Measured on the seven corpora of 4 to 15 MB (sum of the sections; size of zstd -3 --long: 13.8
//! MB), each step including all steps above it:
//!
//! | coding | bytes |
//! | --- | --- |
//! | events as LEB128, zstd -9 | 9,977,000 |
//! | static zero-order entropy of the elements, without tables (bound) | 9,031,000 |
//! | class by number of uses, then uniform | 8,275,000 |
//! | class, then distance of last use (recency) | 7,630,000 |
//! | … with exact distances near the end | 7,488,000 |
//! | … rules by last token too, coarser classes | 7,484,000 |
//! | … and prediction (this) | 7,443,000 |
//!
//! Rejected experiments: classes that depend on the whole previous symbol (dilution: +1 %),
//! distances that depend on the previous distance or kind (+1 to 2 %), unseen words as differences
//! to the last one (+8 % of their share; logs -7 %), end marks instead of lengths, prediction from
//! the previous element as well (-0.4 % on small documents, a second table), prediction from both
//! (worse than from one), octaves instead of half octaves of distance (+0.2 %), two learning rates
//! mixed (±0), frequencies recomputed every 64 symbols instead of moving (+0.4 %, logs +2.5 %).

mod decode;
mod encode;
pub(super) mod event_order;
mod prediction;
mod recency;
mod use_order;

pub(in crate::format) use decode::decode;
pub(in crate::format) use encode::encode;

use self::prediction::Prediction;
use crate::format::entropy::Distribution;
use crate::grammar::Grammar;

/// Number of the codec in the footer.
pub(in crate::format) const CODEC: u16 = 1;

const UNSEEN_WORD: usize = 0;
const UNSEEN_SEPARATOR: usize = 1;
const NEW_RULE: usize = 2;
const DOC_END: usize = 3;
const PREDICTED: usize = 4;
const NUM_SYMBOLS: usize = 32;
/// First symbol of each list.
const FIRST_SYMBOL: [usize; NUM_LISTS] = [5, 12, 16, 20, 24, 28];
/// Number of lists: words, separators, and four of rules.
const NUM_LISTS: usize = 6;
const WORDS: usize = 0;
const SEPARATORS: usize = 1;
const RULES: usize = 2;
/// Class by list and by the log2 of the number of uses.
const CLASSES: [[u8; 16]; NUM_LISTS] = [
    [0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6],
    [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3],
    [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3],
    [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3],
    [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3],
    [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3],
];

/// Returns the symbol of an element of `list` with `num_uses` uses, at least 1.
#[inline]
fn symbol_of(list: usize, num_uses: u32) -> usize {
    let octave = num_uses.max(1).ilog2().min(15) as usize;
    FIRST_SYMBOL[list] + usize::from(CLASSES[list][octave])
}

/// Returns the list of a seen element's `symbol`.
#[inline]
fn list_of(symbol: usize) -> usize {
    FIRST_SYMBOL[1..].iter().map(|&first| usize::from(symbol >= first)).sum()
}

/// Returns the list of rules with these first and last tokens.
#[inline]
fn rules(begins_with_separator: bool, ends_with_separator: bool) -> usize {
    RULES + 2 * usize::from(begins_with_separator) + usize::from(ends_with_separator)
}

/// Returns true if the elements of `list` begin with a separator.
#[inline]
fn begins_with_separator(list: usize) -> bool {
    list == SEPARATORS || list >= RULES + 2
}

/// Returns true if the elements of `list` end with a separator.
#[inline]
fn ends_with_separator(list: usize) -> bool {
    list % 2 == SEPARATORS
}

/// Number of distributions of symbols, by [`History::context`]. Then follow those of distances by
/// symbol, and that of the lengths of rules.
const NUM_CONTEXTS: usize = NUM_KINDS * prediction::NUM_LEVELS;
const FIRST_DISTANCES: usize = NUM_CONTEXTS;
const RULE_LEN: usize = FIRST_DISTANCES + NUM_SYMBOLS;
const NUM_MODELS: usize = RULE_LEN + 1;

/// Returns all distributions in their initial state.
fn new_models() -> Vec<Distribution<NUM_SYMBOLS>> {
    vec![Distribution::new(); NUM_MODELS]
}

/// Number of kinds of events: an element of a list, unseen, new rule after a word or a separator,
/// document.
const NUM_KINDS: usize = NUM_LISTS + 5;
const UNSEEN_KIND: usize = NUM_LISTS;
const NEW_RULE_KIND: usize = NUM_LISTS + 2;
const DOC_END_KIND: usize = NUM_LISTS + 4;

/// Facts about the previous events that encoder and decoder share.
struct History {
    prediction: Prediction,
    kind: usize,
    ends_with_separator: bool,
}

impl History {
    fn new(num_elements: usize) -> Self {
        Self {
            prediction: Prediction::new(num_elements),
            kind: DOC_END_KIND,
            ends_with_separator: true,
        }
    }

    /// Returns the index of the next symbol's distribution.
    #[inline]
    fn context(&self) -> usize {
        NUM_KINDS * self.prediction.level() + self.kind
    }

    /// Records a use of `element` of `list`, which is the first one if `is_unseen`.
    #[inline]
    fn note_element(&mut self, element: u32, list: usize, is_unseen: bool) {
        self.kind = if is_unseen { UNSEEN_KIND + list } else { list };
        self.ends_with_separator = ends_with_separator(list);
        self.prediction.note(element, list);
    }

    #[inline]
    fn note_new_rule(&mut self) {
        self.kind = NEW_RULE_KIND + usize::from(self.ends_with_separator);
    }

    fn note_doc_end(&mut self) {
        self.kind = DOC_END_KIND;
        self.ends_with_separator = true;
        self.prediction.note_doc_end();
    }
}

/// Returns the number of tokens and of words in the text, or `None` if it is 2^64 or more.
pub(in crate::format) fn count_tokens(grammar: &Grammar, num_words: u32) -> Option<(u64, u64)> {
    // A terminal reads the root's counts, which are zero until the end, and adds itself. So the
    // loop has no branch on the kind of element, which would be unpredictable.
    let mut counts = vec![[0u64; 2]; grammar.num_rules()];
    for rule_id in grammar.rule_ids().rev() {
        let (mut tokens, mut words, mut is_too_large) = (0u64, 0u64, false);
        for &element in grammar.rule(rule_id) {
            let [t, w] = counts[element.saturating_sub(grammar.num_terminals) as usize];
            let (sum, wraps) =
                tokens.overflowing_add(t + u64::from(element < grammar.num_terminals));
            is_too_large |= wraps;
            tokens = sum;
            words = words.wrapping_add(w + u64::from(element < num_words));
        }
        if is_too_large {
            return None;
        }
        counts[rule_id.index()] = [tokens, words];
    }
    counts.first().map(|&[tokens, words]| (tokens, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_lists_agree() {
        for (list, &first) in FIRST_SYMBOL[..NUM_LISTS].iter().enumerate() {
            let mut last = first;
            for num_uses in (0..31).map(|octave| 1 << octave) {
                let symbol = symbol_of(list, num_uses);
                assert!(symbol == last || symbol == last + 1);
                assert_eq!(list_of(symbol), list);
                last = symbol;
            }
            assert_eq!(last + 1, FIRST_SYMBOL.get(list + 1).copied().unwrap_or(NUM_SYMBOLS));
        }
        for (head, tail) in [(false, false), (false, true), (true, false), (true, true)] {
            let list = rules(head, tail);
            assert_eq!((begins_with_separator(list), ends_with_separator(list)), (head, tail));
        }
    }
}
