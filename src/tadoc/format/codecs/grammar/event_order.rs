//! Iterator over a grammar as the events of its section, see the [module](super).
//!
//! Each element of each rule is one event. The first use of a rule is two events, around its body.
//! It needs one bit for each element, and a stack as deep as the nesting of rules.

use crate::grammar::Grammar;

/// One event of the section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::format) enum Event {
    /// A terminal or a complete rule, by id.
    Element(u32),
    /// First use of a rule, by index.
    OpenRule(u32),
    /// End of the rule opened last, by index.
    CloseRule(u32),
    DocEnd,
}

/// Remaining elements of a rule.
struct Open {
    rule_idx: u32,
    next: u32,
    end: u32,
}

/// Iterator state: the next positions in the root and in the open rules.
pub(in crate::format) struct EventOrder<'a> {
    grammar: &'a Grammar,
    /// Bit of each element, set if it is a rule that was not opened yet. Terminals are included so
    /// that the walk has no branch on the kind of element.
    is_new_rule: Vec<u64>,
    next_doc: usize,
    root_next: u32,
    open: Vec<Open>,
}

impl<'a> EventOrder<'a> {
    /// Creates the iterator over the events of `grammar`, which must be valid.
    pub(in crate::format) fn new(grammar: &'a Grammar) -> Self {
        let num_terminals = grammar.num_terminals as usize;
        let mut is_new_rule = vec![u64::MAX; (num_terminals + grammar.num_rules()).div_ceil(64)];
        is_new_rule[..num_terminals / 64].fill(0);
        if let Some(mixed) = is_new_rule.get_mut(num_terminals / 64) {
            *mixed = u64::MAX << (num_terminals % 64);
        }
        Self { grammar, is_new_rule, next_doc: 1, root_next: 0, open: Vec::new() }
    }

    /// Returns the next event.
    #[inline]
    pub(in crate::format) fn next_event(&mut self) -> Option<Event> {
        let position = match self.open.last_mut() {
            Some(&mut Open { rule_idx, next, end }) if next == end => {
                self.open.pop();
                return Some(Event::CloseRule(rule_idx));
            }
            Some(open) => &mut open.next,
            None if self.grammar.doc_offsets.get(self.next_doc) == Some(&self.root_next) => {
                self.next_doc += 1;
                return Some(Event::DocEnd);
            }
            None if self.root_next == self.grammar.rule_offsets[1] => return None,
            None => &mut self.root_next,
        };
        let element = self.grammar.symbols[*position as usize];
        *position += 1;
        let is_new_rule = self.is_new_rule[element as usize / 64] >> (element % 64) & 1 != 0;
        Some(if is_new_rule { self.open_rule(element) } else { Event::Element(element) })
    }

    fn open_rule(&mut self, element: u32) -> Event {
        self.is_new_rule[element as usize / 64] &= !(1 << (element % 64));
        let rule_idx = element - self.grammar.num_terminals;
        let offsets = &self.grammar.rule_offsets;
        let (next, end) = (offsets[rule_idx as usize], offsets[rule_idx as usize + 1]);
        self.open.push(Open { rule_idx, next, end });
        Event::OpenRule(rule_idx)
    }
}
