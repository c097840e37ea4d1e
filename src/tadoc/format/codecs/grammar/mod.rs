//! Codec of the grammar section: depth-first from the root, each rule written at its first use.
//!
//! ```text
//! root  a R7 b R7 c │ R7 = d R3 │ R3 = e e       a NEW(2) d NEW(2) e e b ref c END
//! ```
//!
//! A rule gets its number when it is complete, and only complete rules can be referred to. So no stream can describe a
//! cycle. In memory the rule that is completed last, the root, is rule 0, and parents come before children. A rule is
//! written in place of its first use, so that use costs nothing.
//!
//! Each event is one symbol (of 32), followed by the information that the symbol does not determine:
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
//! The symbol's distribution depends on the kinds of the two events before (an element of a list, predicted, unseen,
//! …). Two separators never meet, so the last token of a rule restricts the next event. The greatest gain is that
//! recently used elements are used again, see [`Recency`](recency::Recency). All steps take O(events).
//!
//! No distribution depends on an element. So symbols and numbers are decoded without the elements, in four lanes
//! (`decode`), and the elements are found afterwards ([`replay`]), by another thread if there is one. The codec before
//! ([`decode::decode_sequential`]) has the kind of one event and the trust in the prediction instead. There, each
//! symbol waits for an element from memory. `benches/grammar_sections.rs` measures this codec.
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
//! Rejected experiments: predictions as a stream of their own, decoded in the replay and with trust (-0.3 to +1.2 %:
//! symbols then do not know where a prediction stands), outcomes of the last predictions in the context (logs -1 %,
//! others +0.1 %), kinds of three events (+0.1 to +2 %), classes that depend on the whole previous symbol (dilution: +1
//! %), distances that depend on the previous distance or kind (+1 to 2 %), unseen words as differences to the last one
//! (+8 % of their share; logs -7 %), end marks instead of lengths, prediction from the previous element as well (-0.4 %
//! on small documents, a second table), prediction from both (worse than from one), octaves instead of half octaves of
//! distance (+0.2 %), two learning rates mixed (±0), frequencies recomputed every 64 symbols instead of moving (+0.4 %,
//! logs +2.5 %).
//!
//! # Encoder
//!
//! Two steps run in parallel:
//!
//! ```text
//! grammar ─ EventOrder ─▶ Describer ─▶ batch of symbols and magnitudes ─ BatchCoder ─▶ rANS
//!                              └─────▶ plain bits
//! ```
//!
//! Distances depend on the whole history but not on probabilities. Probabilities depend only on the
//! symbols. So one batch of symbols is encoded while the next is described, by another thread if
//! there is one. The bytes are the same in both cases. Three fifths of the time are for the description.
//!
//! Experiments without effect: prefetching the data of 64 events, and storing the symbol of an element's next use.

pub(in crate::format) mod decode;
mod recency;
pub(super) mod replay;

use crate::error::{Error, Result};
use crate::format::codecs::grammar::recency::{ElementState, UseOrder};
use crate::format::codecs::grammar::replay::{Event, EventOrder};
use crate::format::cursor::Origin;
use crate::format::entropy::{BitEncoder, Distribution, SymbolEncoder, push_part};
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;
use crate::ids::RuleId;

pub(in crate::format) use decode::decode;

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
    let mut symbol = 0;
    let mut list = 0;
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
        let mut tokens = 0u64;
        let mut words = 0u64;
        let mut is_too_large = false;
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

/// Returns the section's bytes for `grammar`, which must be valid and has `num_words` words.
pub(in crate::format) fn encode(grammar: &Grammar, num_words: u32) -> Vec<u8> {
    let mut order = EventOrder::new(grammar);
    let mut describer = Describer::new(grammar, num_words);
    let mut coder = BatchCoder { models: new_models(), encoder: SymbolEncoder::default() };
    let mut batch = describer.describe(&mut order);
    while !batch.symbols.is_empty() {
        let (next, ()) = rayon::join(|| describer.describe(&mut order), || coder.code(&batch));
        batch = next;
    }
    let mut out = Vec::new();
    push_part(&mut out, &coder.encoder.finish());
    push_part(&mut out, &describer.bits.finish());
    out.extend_from_slice(&describer.indices.finish());
    out
}

/// Symbols of a batch of events, and the magnitudes of their numbers.
#[derive(Debug, Default)]
struct Batch {
    symbols: Vec<u8>,
    magnitudes: Vec<u8>,
}

/// Second step, which applies the probabilities.
struct BatchCoder {
    models: Models,
    encoder: SymbolEncoder<LANES>,
}

impl BatchCoder {
    fn code(&mut self, batch: &Batch) {
        let len = batch.symbols.len();
        let lane_len = lane_len(len);
        let mut contexts = [Context::START; LANES];
        for i in 0..lane_len {
            for (lane, context) in contexts.iter_mut().enumerate() {
                self.symbol(lane, context, batch.symbols[lane * lane_len + i]);
            }
        }
        let mut context = contexts[LANES - 1];
        for &symbol in &batch.symbols[LANES * lane_len..] {
            self.symbol(0, &mut context, symbol);
        }
        let num_in_lanes = num_in_lanes(batch.magnitudes.len(), len);
        let with_number = batch.symbols.iter().filter(|&symbol| HAS_NUMBER >> symbol & 1 == 1);
        for (i, (&symbol, &magnitude)) in with_number.zip(&batch.magnitudes).enumerate() {
            let lane = if i < num_in_lanes { i % LANES } else { 0 };
            let model = &mut self.models[number_model(symbol)];
            self.encoder.symbol(lane, model, magnitude.into());
        }
        self.encoder.end_batch(num_lanes(len));
    }

    #[inline]
    fn symbol(&mut self, lane: usize, context: &mut Context, symbol: u8) {
        let model = &mut self.models[context.model()];
        self.encoder.symbol(lane, model, symbol.into());
        context.note(symbol.into());
    }
}

/// First step, which turns events into symbols.
struct Describer<'a> {
    grammar: &'a Grammar,
    batch: Batch,
    /// Bits of numbers.
    bits: BitEncoder,
    /// Indices of unseen tokens.
    indices: BitEncoder,
    /// Element that last followed two after each element.
    followers: Vec<u32>,
    /// Last element and the one before it, or the two places behind all ids at the begin of a
    /// document.
    before: usize,
    before_last: usize,
    ends_with_separator: bool,
    /// Elements of each symbol in order of their last use.
    orders: Vec<UseOrder>,
    /// State of each element.
    states: Vec<ElementState>,
    unseen: [Vec<u32>; 2],
    /// For each rule that is being written, true if it begins with a separator, `None` if that is
    /// unknown.
    open: Vec<Option<bool>>,
}

impl<'a> Describer<'a> {
    fn new(grammar: &'a Grammar, num_words: u32) -> Self {
        let num_terminals = grammar.num_terminals;
        let num_elements = num_terminals as usize + grammar.num_rules();
        let mut states = vec![ElementState::default(); num_elements];
        let (words, others) = states.split_at_mut(num_words as usize);
        (0..).zip(words).for_each(|(place, word)| {
            *word = ElementState { place, list: WORDS as u8, ..Default::default() };
        });
        (0..).zip(others).for_each(|(place, separator)| {
            *separator = ElementState { place, list: SEPARATORS as u8, ..Default::default() };
        });
        Self {
            grammar,
            batch: Batch::default(),
            bits: BitEncoder::default(),
            indices: BitEncoder::default(),
            followers: vec![u32::MAX; num_elements + 2],
            before: num_elements + 1,
            before_last: num_elements,
            ends_with_separator: true,
            orders: (0..NUM_SYMBOLS).map(|_| UseOrder::default()).collect(),
            states,
            unseen: [(0..num_words).collect(), (num_words..num_terminals).collect()],
            open: Vec::new(),
        }
    }

    /// Describes events until a batch is full. Returns an empty batch if there are no more events.
    fn describe(&mut self, order: &mut EventOrder<'_>) -> Batch {
        self.batch.symbols.reserve(BATCH_LEN);
        self.batch.magnitudes.reserve(BATCH_LEN);
        while self.batch.symbols.len() < BATCH_LEN
            && let Some(event) = order.next_event()
        {
            self.event(event);
        }
        std::mem::take(&mut self.batch)
    }

    #[inline]
    fn event(&mut self, event: Event) {
        match event {
            Event::Element(element) => self.element(element),
            Event::OpenRule(rule_idx) => self.open_rule(rule_idx),
            Event::CloseRule(rule_idx) => self.close_rule(rule_idx),
            Event::DocEnd => {
                self.symbol(DOC_END);
                self.ends_with_separator = true;
                self.before_last = self.followers.len() - 2;
                self.before = self.before_last + 1;
            }
        }
    }

    /// Writes a terminal or a complete rule.
    #[inline]
    fn element(&mut self, element: u32) {
        let ElementState { num_uses, list, .. } = self.states[element as usize];
        let list = usize::from(list);
        if num_uses == 0 {
            self.unseen_token(element, list);
        } else if self.followers[self.before_last] == element {
            self.symbol(PREDICTED);
        } else {
            self.seen_element(element, list, num_uses);
        }
        self.ends_with_separator = ends_with_separator(list);
        self.followers[self.before_last] = element;
        self.before_last = self.before;
        self.before = element as usize;
        self.note_first_token(begins_with_separator(list));
    }

    fn unseen_token(&mut self, element: u32, list: usize) {
        self.symbol([UNSEEN_WORD, UNSEEN_SEPARATOR][list]);
        let index = self.states[element as usize].place;
        let unseen = &mut self.unseen[list];
        self.indices.uniform(index, unseen.len() as u32);
        unseen.swap_remove(index as usize);
        if let Some(&moved) = unseen.get(index as usize) {
            self.states[moved as usize].place = index;
        }
        self.push(list, element, 1);
    }

    #[inline]
    fn seen_element(&mut self, element: u32, list: usize, num_uses: u16) {
        let symbol = symbol_for(list, u32::from(num_uses));
        self.symbol(symbol);
        let distance = self.orders[symbol].take(element, &mut self.states);
        self.number(distance);
        self.push(list, element, num_uses.saturating_add(1));
    }

    fn open_rule(&mut self, rule_idx: u32) {
        self.symbol(NEW_RULE);
        let len = self.grammar.rule(RuleId::from(rule_idx)).len() as u32;
        self.number(len);
        self.open.push(None);
    }

    fn close_rule(&mut self, rule_idx: u32) {
        let begins_with_separator = self.open.pop().flatten().unwrap_or_default();
        let list = rules(begins_with_separator, self.ends_with_separator);
        self.push(list, self.grammar.num_terminals + rule_idx, 1);
        self.note_first_token(begins_with_separator);
    }

    #[inline]
    fn note_first_token(&mut self, is_separator: bool) {
        if let Some(begins_with_separator) = self.open.last_mut() {
            begins_with_separator.get_or_insert(is_separator);
        }
    }

    #[inline]
    fn symbol(&mut self, symbol: usize) {
        self.batch.symbols.push(symbol as u8);
    }

    #[inline]
    fn number(&mut self, number: u32) {
        self.batch.magnitudes.push(self.bits.number(number) as u8);
    }

    #[inline]
    fn push(&mut self, list: usize, element: u32, num_uses: u16) {
        let state = &mut self.states[element as usize];
        (state.list, state.num_uses) = (list as u8, num_uses);
        self.orders[symbol_for(list, u32::from(num_uses))].push(element, &mut self.states);
    }
}

/// Returns a section of events that need not be a grammar. Indices of unseen tokens have no bits.
#[cfg(test)]
fn encode_events(events: &[(u8, u32)]) -> Vec<u8> {
    let mut batch = Batch::default();
    let mut bits = BitEncoder::default();
    for &(symbol, number) in events {
        batch.symbols.push(symbol);
        if HAS_NUMBER >> symbol & 1 != 0 {
            batch.magnitudes.push(bits.number(number) as u8);
        }
    }
    let mut coder = BatchCoder { models: new_models(), encoder: SymbolEncoder::default() };
    coder.code(&batch);
    let mut out = Vec::new();
    push_part(&mut out, &coder.encoder.finish());
    push_part(&mut out, &bits.finish());
    out
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
