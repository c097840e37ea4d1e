//! From a grammar to its section.

use super::super::entropy::Encoder;
use super::recency::{Entry, Recency};
use super::{
    Context, DOC_END, FIRST_SYMBOL, Models, NEW_RULE, rules, SEPARATORS, UNSEEN_SEPARATOR, UNSEEN_WORD,
    WORDS, symbol_of,
};
use crate::grammar::Grammar;

/// The section's bytes for `grammar`, which is valid and has `num_words` words.
pub(in crate::corpus) fn encode(grammar: &Grammar, num_words: u32) -> Vec<u8> {
    let mut writer = GrammarEncoder::new(grammar, num_words);
    let mut doc_ends = grammar.doc_offsets[1..].iter().peekable();
    let mut position = 0;
    loop {
        while doc_ends.next_if(|&&end| end == position).is_some() {
            writer.end_document();
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
    num_words: u32,
    encoder: Encoder,
    models: Models,
    context: Context,
    /// One a symbol.
    recency: Vec<Recency>,
    /// List of each element that was used, by element id.
    lists: Vec<u8>,
    /// Times each element was used.
    num_uses: Vec<u32>,
    /// Index in its `recency`, or among the unseen.
    index_of: Vec<u32>,
    unseen: [Vec<u32>; 2],
    open: Vec<OpenRule>,
}

impl<'a> GrammarEncoder<'a> {
    fn new(grammar: &'a Grammar, num_words: u32) -> Self {
        let num_terminals = grammar.num_terminals;
        let num_elements = num_terminals as usize + grammar.num_rules();
        let mut index_of = vec![0; num_elements];
        (0..num_words).for_each(|word| index_of[word as usize] = word);
        (num_words..num_terminals).for_each(|s| index_of[s as usize] = s - num_words);
        let mut lists = vec![WORDS as u8; num_elements];
        lists[num_words as usize..].fill(SEPARATORS as u8);
        Self {
            grammar,
            num_words,
            encoder: Encoder::default(),
            models: Models::new(),
            context: Context::new(),
            recency: (0..32).map(|_| Recency::default()).collect(),
            lists,
            num_uses: vec![0; num_elements],
            index_of,
            unseen: [(0..num_words).collect(), (num_words..num_terminals).collect()],
            open: Vec::new(),
        }
    }

    fn end_document(&mut self) {
        self.symbol(DOC_END);
        self.context = Context::new();
    }

    /// Writes `element` of the root, and all rules it is the first to need.
    fn element(&mut self, element: u32) {
        self.one_element(element);
        while let Some(open) = self.open.last_mut() {
            let rule_idx = open.rule_idx as usize;
            if open.next < self.grammar.rule_offsets[rule_idx + 1] {
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
        let rule_idx = element.checked_sub(self.grammar.num_terminals);
        match (self.num_uses[element as usize], rule_idx) {
            (0, Some(rule_idx)) => return self.open_rule(rule_idx),
            (0, None) => self.unseen_token(element),
            _ => self.seen_element(element),
        }
        let l = usize::from(self.lists[element as usize]);
        let begins_with_separator = if l < 2 { l == SEPARATORS } else { l >= 4 };
        self.note_first_token(begins_with_separator);
    }

    fn unseen_token(&mut self, element: u32) {
        let list = usize::from(element >= self.num_words);
        let symbol = [UNSEEN_WORD, UNSEEN_SEPARATOR][list];
        self.symbol(symbol);
        let index = self.index_of[element as usize];
        let unseen = &mut self.unseen[list];
        self.encoder.uniform(index, unseen.len() as u32);
        unseen.swap_remove(index as usize);
        if let Some(&moved) = unseen.get(index as usize) {
            self.index_of[moved as usize] = index;
        }
        self.context = Context { kind: symbol, ends_with_separator: list == SEPARATORS };
        self.push(list, Entry::new(element, list == SEPARATORS));
    }

    fn seen_element(&mut self, element: u32) {
        let list = usize::from(self.lists[element as usize]);
        let symbol = symbol_of(list, self.num_uses[element as usize]);
        self.symbol(symbol);
        let recency = &mut self.recency[symbol];
        let distance = recency.len() - 1 - self.index_of[element as usize] as usize;
        self.encoder.number(&mut self.models.distances[symbol - FIRST_SYMBOL[0]], distance as u32);
        let index_of = &mut self.index_of;
        let taken = recency.take(distance, |element, index| {
            if let Some(at) = index_of.get_mut(element as usize) {
                *at = index as u32;
            }
        });
        if let Some(entry) = taken {
            self.context = Context {
                kind: list + FIRST_SYMBOL[0],
                ends_with_separator: entry.ends_with_separator(),
            };
            self.push(list, entry.used_again());
        }
    }

    fn open_rule(&mut self, rule_idx: u32) {
        let (first, end) = (
            self.grammar.rule_offsets[rule_idx as usize],
            self.grammar.rule_offsets[rule_idx as usize + 1],
        );
        self.symbol(NEW_RULE);
        self.encoder.number(&mut self.models.rule_len, end - first);
        self.context.kind = NEW_RULE;
        self.open.push(OpenRule { rule_idx, next: first, begins_with_separator: None });
    }

    fn close_rule(&mut self) {
        let Some(rule) = self.open.pop() else { return };
        let begins_with_separator = rule.begins_with_separator.unwrap_or_default();
        let list = rules(begins_with_separator, self.context.ends_with_separator);
        let element = self.grammar.num_terminals + rule.rule_idx;
        self.push(list, Entry::new(element, self.context.ends_with_separator));
        self.note_first_token(begins_with_separator);
    }

    fn note_first_token(&mut self, is_separator: bool) {
        if let Some(open) = self.open.last_mut() {
            open.begins_with_separator.get_or_insert(is_separator);
        }
    }

    fn symbol(&mut self, symbol: usize) {
        self.encoder.symbol(&mut self.models.symbols[self.context.index()], symbol);
    }

    fn push(&mut self, list: usize, entry: Entry) {
        let recency = &mut self.recency[symbol_of(list, entry.num_uses())];
        let element = entry.element as usize;
        self.lists[element] = list as u8;
        self.num_uses[element] = entry.num_uses();
        self.index_of[element] = recency.len() as u32;
        recency.push(entry);
    }
}
