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
//! The symbol's distribution depends on the kinds of the two events before (an element of a list,
//! predicted, unseen, …). Two separators never meet, so the last token of a rule restricts the next
//! event. The greatest gain is that recently used elements are used again, see
//! [`Recency`](recency::Recency). All steps take O(events).
//!
//! No distribution depends on an element. So symbols and numbers are decoded without the elements,
//! in four lanes ([`batches`]), and the elements are found afterwards ([`replay`]), by another
//! thread if there is one. The codec before ([`decode::decode_sequential`]) has the kind of one
//! event and the trust in the prediction instead. There, each symbol waits for an element from
//! memory. `benches/grammar_sections.rs` measures this codec.
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
//! | … and prediction, with trust in it (the codec before) | 7,438,000 |
//! | kinds of two events instead of trust, one predicted element (this) | 7,448,000 |
//!
//! Sizes of sections against the codec before: 0.993 to 1.005 on the seven corpora, 1.003 on 250 MB
//! of sources, 0.995 on 112 MB of logs.
//!
//! Rejected experiments: predictions as a stream of their own, decoded in the replay and with trust
//! (-0.3 to +1.2 %: symbols then do not know where a prediction stands), outcomes of the last
//! predictions in the context (logs -1 %, others +0.1 %), kinds of three events (+0.1 to +2 %),
//! classes that depend on the whole previous symbol (dilution: +1 %), distances that depend on the
//! previous distance or kind (+1 to 2 %), unseen words as differences to the last one (+8 % of
//! their share; logs -7 %), end marks instead of lengths, prediction from the previous element as
//! well (-0.4 % on small documents, a second table), prediction from both (worse than from one),
//! octaves instead of half octaves of distance (+0.2 %), two learning rates mixed (±0), frequencies
//! recomputed every 64 symbols instead of moving (+0.4 %, logs +2.5 %).

mod batches;
pub(in crate::format) mod decode;
mod encode;
mod recency;
pub(super) mod replay;

pub(in crate::format) use decode::decode;
pub(in crate::format) use encode::encode;

use crate::error::{Error, Result};
use crate::format::cursor::Origin;
use crate::format::entropy::Distribution;
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;

/// Number of the codec in the footer.
pub(in crate::format) const CODEC: u16 = 3;

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
fn symbol_for(list: usize, num_uses: u32) -> usize {
    let octave = num_uses.max(1).ilog2().min(15) as usize;
    FIRST_SYMBOL[list] + usize::from(CLASSES[list][octave])
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

/// Number of events in a batch but the last. It bounds the memory of both sides and the events that
/// a byte can stand for.
const BATCH_LEN: usize = 1 << 15;
/// Number of lanes of a batch that is not short.
const LANES: usize = 4;
/// Number of events from which on a batch has several lanes.
const MIN_LEN_OF_LANES: usize = 256;

/// Returns the number of symbols in each lane of a batch of `len` events. The rest is in the first.
fn lane_len(len: usize) -> usize {
    if len < MIN_LEN_OF_LANES { 0 } else { len / LANES }
}

/// Returns the number of lanes of a batch of `len` events.
fn num_lanes(len: usize) -> usize {
    if len < MIN_LEN_OF_LANES { 1 } else { LANES }
}

/// Returns how many of `num` magnitudes of a batch of `len` events are in lanes, in turn. The rest
/// is in the first.
fn num_in_lanes(num: usize, len: usize) -> usize {
    if len < MIN_LEN_OF_LANES { 0 } else { num / LANES * LANES }
}

/// Bit of each symbol, set if a number follows: a distance, or the length of a rule.
const HAS_NUMBER: u32 = u32::MAX << FIRST_SYMBOL[0] | 1 << NEW_RULE;

/// Distributions of symbols by context, and of magnitudes by symbol.
type Models = Box<[Distribution<NUM_SYMBOLS>; 256]>;

/// Returns all distributions in their initial state.
fn new_models() -> Models {
    Box::new(std::array::from_fn(|_| Distribution::new()))
}

/// Number of kinds of events: elements of each list, and one for each other symbol.
const NUM_KINDS: usize = NUM_LISTS + FIRST_SYMBOL[0];

/// List of each symbol of an element that was seen before.
const LISTS: [u8; NUM_SYMBOLS] = {
    let mut lists = [0; NUM_SYMBOLS];
    let (mut symbol, mut list) = (0, 0);
    while symbol < NUM_SYMBOLS {
        if list + 1 < NUM_LISTS && symbol == FIRST_SYMBOL[list + 1] {
            list += 1;
        }
        lists[symbol] = list as u8;
        symbol += 1;
    }
    lists
};

/// Kind of each symbol.
const KINDS: [u8; NUM_SYMBOLS] = {
    let mut kinds = LISTS;
    let mut symbol = 0;
    while symbol < FIRST_SYMBOL[0] {
        kinds[symbol] = (NUM_LISTS + symbol) as u8;
        symbol += 1;
    }
    kinds
};

/// Kinds of the last event and of the one before it, four bits each.
#[derive(Debug, Clone, Copy)]
struct Context(u8);

impl Context {
    /// Context of the first event of a lane.
    const START: Self = Self(KINDS[DOC_END] << 4 | KINDS[DOC_END]);

    /// Returns the index of the next symbol's distribution.
    #[inline]
    fn model(self) -> usize {
        self.0.into()
    }

    #[inline]
    fn note(&mut self, symbol: usize) {
        self.0 = KINDS[symbol % NUM_SYMBOLS] << 4 | self.0 >> 4;
    }
}

/// Returns the index of the distribution of the magnitudes that follow `symbol`.
#[inline]
fn number_model(symbol: u8) -> usize {
    NUM_KINDS * 16 + usize::from(symbol) % NUM_SYMBOLS
}

/// Refuses a grammar without a root, and more elements or documents than `bytes` can stand for, at
/// most `max_per_byte` each.
fn check_counts(place: Origin<'_>, bytes: &[u8], meta: &SegmentMeta, max_per_byte: u64) -> Result<()> {
    if meta.num_rules == 0 {
        return Err(place.fault(0, "expected at least one rule, got none"));
    }
    let max_elements = (bytes.len() as u64).saturating_mul(max_per_byte);
    if meta.num_elements > max_elements || meta.num_docs > max_elements {
        let num_elements = meta.num_elements.max(meta.num_docs);
        let num_bytes = bytes.len();
        let reason = format!("expected fewer than {num_elements} elements in {num_bytes} bytes");
        return Err(place.fault(0, reason));
    }
    Ok(())
}

fn misfit(place: Origin<'_>) -> Error {
    place.fault(0, "expected events that fit one another and the declared counts")
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
            let (sum, wraps) = tokens.overflowing_add(t + u64::from(element < grammar.num_terminals));
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
                let symbol = symbol_for(list, num_uses);
                assert!(symbol == last || symbol == last + 1);
                assert_eq!(usize::from(LISTS[symbol]), list);
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
