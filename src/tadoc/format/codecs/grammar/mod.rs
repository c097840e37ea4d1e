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
//!  0 unseen word         which of those left (uniform)
//!  1 unseen separator    likewise
//!  2 new rule            its length
//!  3 end of document
//!  4 as predicted        the element that last came two after the one before last
//!  5 … 11 seen word      by how often: 1, 2-7, 8-31, 32-255, 256-2047, 2048-16383, more
//! 12 … 15 separator      1, 2-7, 8-63, more       │ how many others of the same
//! 16 … 19 rule  w … w    1, 2-7, 8-63, more       │ symbol were used since, about
//! 20 … 23 rule  w … s      first and last token:
//! 24 … 27 rule  s … w      a word or a separator
//! 28 … 31 rule  s … s
//! ```
//!
//! The symbol's distribution depends on the kind of the event before (two separators never meet, so
//! what a rule ends with half tells what comes) and on how well predictions held. That what was used a
//! moment ago is used again pays most: see [`Recency`](recency::Recency). Everything takes O(events); memory while
//! decoding is 8 bytes an element and about 35 an id.
//!
//! Measured on the seven corpora of 4 to 15 MB (sum of the sections; size of zstd -3 --long: 13.8 MB),
//! each step with all before it:
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
//! Tried and left out: classes that depend on the whole symbol before (dilution: +1 %), distances that
//! depend on the distance or kind before (+1 to 2 %), words not seen yet as differences to the last
//! one (+8 % of their share; logs -7 %), end marks instead of lengths, prediction from the element
//! just before as well (-0.4 % on small documents, a second table), from both (worse than from one),
//! octaves instead of half octaves of distance (+0.2 %), two learning rates mixed (±0), frequencies set anew
//! every 64 symbols instead of moving (+0.4 %, logs +2.5 %).

mod decode;
mod encode;
mod event_order;
mod prediction;
mod recency;
mod use_order;

pub(in crate::format) use decode::decode;
pub(in crate::format) use encode::encode;

use self::prediction::Prediction;
use crate::format::entropy::Distribution;
use crate::grammar::Grammar;

/// Number of the coding in the footer.
pub(in crate::format) const CODEC: u16 = 1;

const UNSEEN_WORD: usize = 0;
const UNSEEN_SEPARATOR: usize = 1;
const NEW_RULE: usize = 2;
const DOC_END: usize = 3;
const PREDICTED: usize = 4;
const NUM_SYMBOLS: usize = 32;
/// First symbol of each list.
const FIRST_SYMBOL: [usize; NUM_LISTS] = [5, 12, 16, 20, 24, 28];
/// Lists: words, separators, and four of rules.
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

/// Whether the elements of `list` begin with a separator.
#[inline]
fn begins_with_separator(list: usize) -> bool {
    list == SEPARATORS || list >= RULES + 2
}

/// Whether the elements of `list` end with a separator.
#[inline]
fn ends_with_separator(list: usize) -> bool {
    list % 2 == SEPARATORS
}

/// Distributions of everything coded: of symbols by [`History::context`], then of distances by
/// symbol, then of the lengths of rules.
const NUM_CONTEXTS: usize = NUM_KINDS * prediction::NUM_LEVELS;
const FIRST_DISTANCES: usize = NUM_CONTEXTS;
const RULE_LEN: usize = FIRST_DISTANCES + NUM_SYMBOLS;
const NUM_MODELS: usize = RULE_LEN + 1;

/// All distributions, as they are before anything is coded.
fn new_models() -> Vec<Distribution<NUM_SYMBOLS>> {
    vec![Distribution::new(); NUM_MODELS]
}

/// Kinds of events: an element of a list, unseen, new rule after a word or a separator, document.
const NUM_KINDS: usize = NUM_LISTS + 5;
const UNSEEN_KIND: usize = NUM_LISTS;
const NEW_RULE_KIND: usize = NUM_LISTS + 2;
const DOC_END_KIND: usize = NUM_LISTS + 4;

/// What both sides know of the events so far.
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

    /// Which distribution the next symbol has.
    #[inline]
    fn context(&self) -> usize {
        NUM_KINDS * self.prediction.level() + self.kind
    }

    /// Notes a use of `element` of `list`, the first one if `is_unseen`.
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

/// Tokens of the text, and how many of them are words, or `None` past 2^64.
pub(in crate::format) fn count_tokens(grammar: &Grammar, num_words: u32) -> Option<(u64, u64)> {
    // A terminal adds what the root's counts are until the end, nothing, and itself: what is a rule
    // and what is not cannot be guessed.
    let mut counts = vec![[0u64; 2]; grammar.num_rules()];
    for rule_idx in (0..grammar.num_rules()).rev() {
        let (mut tokens, mut words, mut is_too_large) = (0u64, 0u64, false);
        for &element in grammar.rule(rule_idx) {
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
        counts[rule_idx] = [tokens, words];
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
