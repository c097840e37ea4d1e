//! Rules in the order in which they are written.
//!
//! Rules are numbered depth-first: the rule that is completed last, the root, is rule 0. The rules that a rule uses
//! first are therefore the ones that were completed last, and their first uses need no id. O(G) time and memory.

use crate::format::codecs::grammar::replay::{Event, EventOrder};
use crate::grammar::Grammar;
use crate::ids::RuleId;

/// Stands for a first use.
pub(super) const FIRST_USE: u32 = u32::MAX;

/// Rules of a grammar in the order and form in which they are written.
pub(super) struct RulesWritten {
    /// Length of each rule but the root, last rule first.
    pub(super) lens: Vec<u32>,
    /// Elements of all rules, root first, by their ids when they are read back, or [`FIRST_USE`].
    pub(super) symbols: Vec<u32>,
}

impl RulesWritten {
    pub(super) fn new(grammar: &Grammar) -> Self {
        let num_rules = grammar.num_rules() as u32;
        let mut order = EventOrder::new(grammar);
        let mut completed = Vec::with_capacity(num_rules as usize);
        let mut is_first_use = vec![false; grammar.symbols.len()];
        while let Some(event) = order.next_event() {
            match event {
                Event::OpenRule(_) => is_first_use[order.opened_at()] = true,
                Event::CloseRule(rule_idx) => completed.push(RuleId::from(rule_idx)),
                _ => {}
            }
        }
        completed.push(RuleId::ROOT);
        // Numbers when read back: the rule that is completed last is rule 0.
        let mut new_idx = vec![0; num_rules as usize];
        for (rule_id, idx) in completed.iter().zip((0..num_rules).rev()) {
            new_idx[rule_id.index()] = idx;
        }
        let mut symbols = Vec::with_capacity(grammar.symbols.len());
        for &rule_id in &completed {
            for at in grammar.rule_range(rule_id).rev() {
                let element = grammar.symbols[at];
                symbols.push(match grammar.rule_of(element) {
                    None => element,
                    Some(_) if is_first_use[at] => FIRST_USE,
                    Some(rule_id) => grammar.num_terminals + new_idx[rule_id.index()],
                });
            }
        }
        symbols.reverse();
        completed.pop();
        let lens = completed.iter().map(|&rule_id| grammar.rule(rule_id).len() as u32).collect();
        Self { lens, symbols }
    }
}
