//! From a grammar to its section.

use super::super::entropy::Encoder;
use super::recency::Entry;
use super::{
    DOC_END, History, Models, NEW_RULE, PREDICTED, SEPARATORS, UNSEEN_SEPARATOR, UNSEEN_WORD,
    WORDS, begins_with_separator, rules, symbol_of,
};
use crate::grammar::Grammar;

/// The section's bytes for `grammar`, which is valid and has `num_words` words.
pub(in crate::corpus) fn encode(grammar: &Grammar, num_words: u32) -> Vec<u8> {
    let mut writer = GrammarEncoder::new(grammar, num_words);
    let mut doc_ends = grammar.doc_offsets[1..].iter().peekable();
    let mut position = 0;
    loop {
        while doc_ends.next_if(|&&end| end == position).is_some() {
            writer.symbol(DOC_END);
            writer.history.note_doc_end();
        }
        let Some(&element) = grammar.root().get(position as usize) else { break };
        writer.element(element);
        position += 1;
    }
    let mut out = Vec::new();
    writer.encoder.finish(&mut out);
    out
}

/// A rule that is being written out.
struct OpenRule {
    rule_idx: u32,
    next: u32,
    begins_with_separator: Option<bool>,
}

struct GrammarEncoder<'a> {
    grammar: &'a Grammar,
    encoder: Encoder,
    models: Models,
    history: History,
    /// By element id: its list (of a rule once it is complete).
    lists: Vec<u8>,
    /// By element id: how often it was used, predictions aside.
    num_uses: Vec<u32>,
    /// By element id: index in its `Recency`, or among the unseen.
    index_of: Vec<u32>,
    unseen: [Vec<u32>; 2],
    open: Vec<OpenRule>,
}

impl<'a> GrammarEncoder<'a> {
    fn new(grammar: &'a Grammar, num_words: u32) -> Self {
        let num_terminals = grammar.num_terminals;
        let num_elements = num_terminals as usize + grammar.num_rules();
        let mut lists = vec![WORDS as u8; num_elements];
        lists[num_words as usize..].fill(SEPARATORS as u8);
        let mut index_of: Vec<u32> = (0..num_words).chain(0..num_terminals - num_words).collect();
        index_of.resize(num_elements, 0);
        Self {
            grammar,
            encoder: Encoder::default(),
            models: Models::new(),
            history: History::new(num_elements),
            lists,
            num_uses: vec![0; num_elements],
            index_of,
            unseen: [(0..num_words).collect(), (num_words..num_terminals).collect()],
            open: Vec::new(),
        }
    }

    /// Writes `element` of the root, and all rules it is the first to need.
    fn element(&mut self, element: u32) {
        self.one_element(element);
        while let Some(open) = self.open.last_mut() {
            if open.next < self.grammar.rule_offsets[open.rule_idx as usize + 1] {
                let element = self.grammar.symbols[open.next as usize];
                open.next += 1;
                self.one_element(element);
            } else {
                self.close_rule();
            }
        }
    }

    /// Writes `element`, or opens the rule it stands for.
    fn one_element(&mut self, element: u32) {
        let is_unseen = self.num_uses[element as usize] == 0;
        if let Some(rule_idx) =
            element.checked_sub(self.grammar.num_terminals).filter(|_| is_unseen)
        {
            return self.open_rule(rule_idx);
        }
        let list = usize::from(self.lists[element as usize]);
        if is_unseen {
            self.unseen_token(element, list);
        } else if self.history.prediction.next() == Some((element, list)) {
            self.symbol(PREDICTED);
        } else {
            self.seen_element(element, list);
        }
        self.history.note_element(element, list, is_unseen);
        self.note_first_token(begins_with_separator(list));
    }

    fn unseen_token(&mut self, element: u32, list: usize) {
        self.symbol([UNSEEN_WORD, UNSEEN_SEPARATOR][list]);
        let index = self.index_of[element as usize];
        let unseen = &mut self.unseen[list];
        self.encoder.uniform(index, unseen.len() as u32);
        unseen.swap_remove(index as usize);
        if let Some(&moved) = unseen.get(index as usize) {
            self.index_of[moved as usize] = index;
        }
        self.push(list, Entry { element, num_uses: 1 });
    }

    fn seen_element(&mut self, element: u32, list: usize) {
        let symbol = symbol_of(list, self.num_uses[element as usize]);
        self.symbol(symbol);
        let recency = &mut self.history.recency[symbol];
        let distance = recency.len() - 1 - self.index_of[element as usize] as usize;
        self.encoder.number(&mut self.models.distances[symbol], distance as u32);
        let index_of = &mut self.index_of;
        let taken = recency.take(distance, |element, index| {
            // Gaps have no index.
            if let Some(at) = index_of.get_mut(element as usize) {
                *at = index as u32;
            }
        });
        if let Some(entry) = taken {
            self.push(list, entry.used_again());
        }
    }

    fn open_rule(&mut self, rule_idx: u32) {
        let offsets = &self.grammar.rule_offsets;
        let (next, end) = (offsets[rule_idx as usize], offsets[rule_idx as usize + 1]);
        self.symbol(NEW_RULE);
        self.encoder.number(&mut self.models.rule_len, end - next);
        self.history.note_new_rule();
        self.open.push(OpenRule { rule_idx, next, begins_with_separator: None });
    }

    fn close_rule(&mut self) {
        let Some(rule) = self.open.pop() else { return };
        let begins_with_separator = rule.begins_with_separator.unwrap_or_default();
        let element = self.grammar.num_terminals + rule.rule_idx;
        let list = rules(begins_with_separator, self.history.ends_with_separator);
        self.push(list, Entry { element, num_uses: 1 });
        self.note_first_token(begins_with_separator);
    }

    fn note_first_token(&mut self, is_separator: bool) {
        if let Some(open) = self.open.last_mut() {
            open.begins_with_separator.get_or_insert(is_separator);
        }
    }

    fn symbol(&mut self, symbol: usize) {
        self.encoder.symbol(&mut self.models.symbols[self.history.context()], symbol);
    }

    fn push(&mut self, list: usize, entry: Entry) {
        let symbol = self.history.push(list, entry);
        let element = entry.element as usize;
        self.lists[element] = list as u8;
        self.num_uses[element] = entry.num_uses;
        self.index_of[element] = self.history.recency[symbol].len() as u32 - 1;
    }
}
