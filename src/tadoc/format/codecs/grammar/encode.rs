//! Encoder of the grammar section, in two steps that run in parallel.
//!
//! ```text
//! grammar ─ EventOrder ─▶ Describer ─▶ batch of symbols and magnitudes ─ BatchCoder ─▶ rANS
//!                              └─────▶ plain bits
//! ```
//!
//! Distances depend on the whole history but not on probabilities. Probabilities depend only on the
//! symbols. So one batch of symbols is encoded while the next is described, by another thread if
//! there is one. The bytes are the same in both cases. Three fifths of the time are
//! for the description.
//!
//! Experiments without effect: prefetching the data of 64 events, and storing the symbol of an
//! element's next use.

use crate::format::codecs::grammar::recency::{ElementState, UseOrder};
use crate::format::codecs::grammar::replay::{Event, EventOrder};
use crate::format::codecs::grammar::{
    BATCH_LEN, Context, DOC_END, HAS_NUMBER, LANES, Models, NEW_RULE, NUM_SYMBOLS, PREDICTED, SEPARATORS,
    UNSEEN_SEPARATOR, UNSEEN_WORD, WORDS, begins_with_separator, ends_with_separator, lane_len, new_models,
    num_in_lanes, num_lanes, number_model, rules, symbol_for,
};
use crate::format::entropy::{BitEncoder, SymbolEncoder, push_part};
use crate::grammar::Grammar;
use crate::ids::RuleId;

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
pub(super) fn encode_events(events: &[(u8, u32)]) -> Vec<u8> {
    let (mut batch, mut bits) = (Batch::default(), BitEncoder::default());
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
