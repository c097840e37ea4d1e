//! Grammar of one segment: rules over elements, root first, cut by document splitters.
//!
//! ```text
//! element  0 ..... num_words ..... num_terminals ..... num_terminals + num_rules
//!          | words (sorted) | separators (sorted) | rules, parents before children |
//!
//! rule_offsets [0, 5, 8, 10]      rule 0 is the root, rule r is sym[off[r]..off[r+1]]
//! symbols      [9 4 9 7 8 | 0 5 10 | 1 2]
//! doc_offsets  [0, 2, 2, 5]       document d is root[doc_offsets[d]..doc_offsets[d+1]]
//! ```
//!
//! Invariants of a [`Grammar`] (ensured by the builders, checked by [`Grammar::validate`] for bytes
//! from outside): a rule refers only to rules with a larger index, so there are no cycles. No rule
//! refers to the root. `doc_offsets` starts at 0, never falls and ends at the root's length. A
//! grammar contains no bytes: terminals are ids of a [`Dictionary`](crate::text::Dictionary).
//!
//! ```
//! use tadoc::grammar::{RoundsOptions, build_rounds, expand_tokens};
//!
//! # fn main() -> tadoc::Result<()> {
//! let tokens: Vec<u32> = [0, 1, 2].repeat(4);
//! let grammar = build_rounds(tokens.clone(), &[0, 12], 3, &RoundsOptions::default())?;
//! assert!(grammar.symbols.len() < tokens.len());
//! assert_eq!(expand_tokens(&grammar), [tokens]);
//! # Ok(())
//! # }
//! ```

mod chunk;
mod cleanup;
mod dedup;
mod pair_join;
mod phrases;
mod repeats;
mod rounds;
mod schedule;
mod sequence;
mod sequitur;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::error::{Error, Result};
use crate::ids::{DocId, RuleId};

pub use dedup::Dedup;
pub use rounds::{RoundsOptions, build_rounds};
pub use schedule::Effort;
pub use sequitur::build_sequitur;

/// Rules over the elements of one segment, see the drawing in the module docs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grammar {
    /// Number of terminals (words, then separators). The id of rule `r` is `num_terminals + r`.
    pub num_terminals: u32,
    /// Start of each rule in `symbols`, and the end of the last one: `num_rules + 1` values.
    pub rule_offsets: Vec<u32>,
    /// Elements of all right-hand sides, root first (G values).
    pub symbols: Vec<u32>,
    /// Start of each document in the root, and the end of the last one: `num_docs + 1` values.
    pub doc_offsets: Vec<u32>,
}

impl Grammar {
    /// Returns the number of rules, including the root.
    pub fn num_rules(&self) -> usize {
        self.rule_offsets.len() - 1
    }

    /// Returns the number of documents.
    pub fn num_docs(&self) -> usize {
        self.doc_offsets.len() - 1
    }

    /// Returns the ids of all documents.
    pub fn docs(&self) -> impl ExactSizeIterator<Item = DocId> + DoubleEndedIterator + use<> {
        DocId::range(0..self.num_docs())
    }

    /// Returns the ids of all rules, root first.
    pub fn rule_ids(&self) -> impl ExactSizeIterator<Item = RuleId> + DoubleEndedIterator + use<> {
        (0..self.num_rules() as u32).map(RuleId::from)
    }

    /// Returns the rule that `element` is, or `None` for a terminal.
    #[inline]
    pub fn rule_of(&self, element: u32) -> Option<RuleId> {
        element.checked_sub(self.num_terminals).map(RuleId::from)
    }

    /// Returns the id of a rule as an element.
    #[inline]
    pub(crate) fn element_for(&self, rule_id: RuleId) -> u32 {
        self.num_terminals + u32::from(rule_id)
    }

    /// Returns the positions of rule `rule_id`, which must exist, in `symbols`.
    #[inline]
    pub(crate) fn rule_range(&self, rule_id: RuleId) -> Range<usize> {
        let rule_idx = rule_id.index();
        self.rule_offsets[rule_idx] as usize..self.rule_offsets[rule_idx + 1] as usize
    }

    /// Returns the elements of rule `rule_id`, which must exist.
    pub fn rule(&self, rule_id: RuleId) -> &[u32] {
        &self.symbols[self.rule_range(rule_id)]
    }

    /// Returns the elements of the root.
    pub fn root(&self) -> &[u32] {
        self.rule(RuleId::ROOT)
    }

    /// Returns the number of occurrences of each element in the text, by element id: one forward
    /// sweep over the rules, O(G). The root has weight 1. The grammar must be valid.
    ///
    /// The weights are exact for words, rules and separators with bytes, which occur at most as
    /// often as the root has bytes. Only the weight of the empty separator may wrap, because a
    /// hostile file can contain many of them side by side.
    ///
    /// The coarsening of the TADOC papers does not pay for one sweep: merging equal elements of a
    /// rule or inlining small rules takes longer than the sweep.
    pub fn weights(&self) -> Vec<u64> {
        let num_terminals = self.num_terminals as usize;
        let mut weights = vec![0u64; num_terminals + self.num_rules()];
        weights[num_terminals] = 1;
        for rule_id in self.rule_ids() {
            let weight = weights[self.element_for(rule_id) as usize];
            for &element in self.rule(rule_id) {
                weights[element as usize] = weights[element as usize].wrapping_add(weight);
            }
        }
        weights
    }

    /// Checks every invariant of the module docs in O(G).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] that names the first broken invariant.
    pub fn validate(&self) -> Result<()> {
        check_offsets("rule_offsets", &self.rule_offsets, self.symbols.len())?;
        check_offsets("doc_offsets", &self.doc_offsets, self.root().len())?;
        let num_elements = u64::from(self.num_terminals) + self.num_rules() as u64;
        if num_elements > u64::from(u32::MAX) {
            return broken("num_terminals + num_rules", num_elements.to_string(), "at most 2^32 - 1");
        }
        for rule_id in self.rule_ids() {
            // A rule may refer only to terminals and to later rules. The ids between are
            // subtracted, so that the allowed ids are below a limit, which is checked for many
            // elements at a time.
            let first_allowed = self.element_for(rule_id) + 1;
            let num_allowed = num_elements as u32 - first_allowed;
            let is_allowed = |&e: &u32| (e < self.num_terminals) | (e.wrapping_sub(first_allowed) < num_allowed);
            if self.rule(rule_id).iter().fold(true, |all, e| all & is_allowed(e)) {
                continue;
            }
            if let Some(e) = self.rule(rule_id).iter().find(|e| !is_allowed(e)) {
                return broken(
                    "symbols",
                    format!("element {e} in rule {rule_id}"),
                    "a terminal or a rule with a larger index",
                );
            }
        }
        Ok(())
    }
}

fn check_offsets(name: &'static str, offsets: &[u32], end: usize) -> Result<()> {
    let spans = offsets.first() == Some(&0) && offsets.last().is_some_and(|&l| l as usize == end);
    if !spans || offsets.len() < 2 && name == "rule_offsets" {
        return broken(name, format!("{} offsets", offsets.len()), "offsets from 0 to the end");
    }
    match offsets.windows(2).position(|w| w[0] > w[1]) {
        Some(i) => broken(name, format!("a fall after offset {i}"), "offsets that never fall"),
        None => Ok(()),
    }
}

fn broken<T>(name: &'static str, got: String, allowed: &str) -> Result<T> {
    Err(Error::InvalidArgument { name, got, allowed: allowed.into() })
}

/// Returns the tokens of each document, in order.
pub fn expand_tokens(grammar: &Grammar) -> Vec<Vec<u32>> {
    grammar
        .doc_offsets
        .windows(2)
        .map(|doc| expand(grammar, &grammar.root()[doc[0] as usize..doc[1] as usize]))
        .collect()
}

fn expand(grammar: &Grammar, elements: &[u32]) -> Vec<u32> {
    let mut tokens = Vec::new();
    let mut stack = vec![elements.iter()];
    while let Some(top) = stack.last_mut() {
        match top.next() {
            None => {
                stack.pop();
            }
            Some(&element) => match grammar.rule_of(element) {
                None => tokens.push(element),
                Some(rule_id) => stack.push(grammar.rule(rule_id).iter()),
            },
        }
    }
    tokens
}
