//! Sequitur, the builder of the TADOC papers, kept as published baseline and as an oracle.
//!
//! Nevill-Manning & Witten, *Identifying Hierarchical Structure in Sequences* (JAIR 7, 1997). Two invariants hold after
//! each token: no pair of neighbours occurs twice (digram uniqueness), and no rule is used once (rule utility).
//!
//! ```text
//! nodes    circular doubly linked lists in flat arrays; a rule is a list closed by its guard
//! digrams  pair -> node of its one indexed occurrence
//! ```
//!
//! It is serial and follows pointers: 24 bytes for each token, about half the speed of the rounds, and no bound on the
//! depth of rules. There is no clean-up beyond the two invariants, so G is the number that the papers report.

use std::collections::HashMap;

use crate::error::Result;

use super::Grammar;
use super::cleanup::{Rules, emit};
use super::pair_join::BARRIER;

/// Bit that marks a guard. The other bits are the guard's rule.
const GUARD: u32 = 1 << 31;

const NONE: u32 = u32::MAX;

/// Builds the Sequitur grammar of `tokens`. The arguments are those of
/// [`build_rounds`](super::build_rounds).
///
/// # Errors
/// It never fails. The result type is that of the other builder.
pub fn build_sequitur(tokens: &[u32], doc_offsets: &[usize], num_terminals: u32) -> Result<Grammar> {
    let mut sequitur = Sequitur::new(num_terminals);
    for doc in doc_offsets.windows(2) {
        for &token in &tokens[doc[0]..doc[1]] {
            sequitur.append(token);
        }
        sequitur.append(BARRIER);
    }
    sequitur.finish()
}

struct Sequitur {
    num_terminals: u32,
    symbols: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    free: Vec<u32>,
    /// Node + 1 of the indexed occurrence, 0 for none.
    digrams: HashMap<(u32, u32), u32>,
    /// Guard of each rule. The root is rule 0.
    guards: Vec<u32>,
    uses: Vec<u32>,
}

impl Sequitur {
    fn new(num_terminals: u32) -> Self {
        let mut sequitur = Self {
            num_terminals,
            symbols: Vec::new(),
            next: Vec::new(),
            previous: Vec::new(),
            free: Vec::new(),
            digrams: HashMap::new(),
            guards: Vec::new(),
            uses: Vec::new(),
        };
        sequitur.new_rule();
        sequitur
    }

    fn append(&mut self, token: u32) {
        let last = self.previous[self.guards[0] as usize];
        let node = self.new_node(token);
        self.insert_after(last, node);
        self.check(last);
    }

    fn new_node(&mut self, symbol: u32) -> u32 {
        if let Some(rule) = self.rule_of(symbol) {
            self.uses[rule] += 1;
        }
        if let Some(node) = self.free.pop() {
            self.symbols[node as usize] = symbol;
            self.next[node as usize] = NONE;
            self.previous[node as usize] = NONE;
            return node;
        }
        self.symbols.push(symbol);
        self.next.push(NONE);
        self.previous.push(NONE);
        self.symbols.len() as u32 - 1
    }

    fn new_rule(&mut self) -> u32 {
        let rule = self.guards.len() as u32;
        let guard = self.new_node(GUARD | rule);
        self.next[guard as usize] = guard;
        self.previous[guard as usize] = guard;
        self.guards.push(guard);
        self.uses.push(0);
        rule
    }

    fn is_guard(&self, node: u32) -> bool {
        let symbol = self.symbols[node as usize];
        symbol & GUARD != 0 && symbol != BARRIER
    }

    fn rule_of(&self, symbol: u32) -> Option<usize> {
        (symbol & GUARD == 0 && symbol >= self.num_terminals).then(|| (symbol - self.num_terminals) as usize)
    }

    /// Returns the index entry of the digram at `node`, unless the digram contains a guard or a
    /// barrier.
    fn digram(&mut self, node: u32) -> Option<&mut u32> {
        let left = self.symbols[node as usize];
        let right = self.symbols[self.next[node as usize] as usize];
        ((left | right) & GUARD == 0).then(|| self.digrams.entry((left, right)).or_default())
    }

    fn index_digram(&mut self, node: u32) {
        if let Some(slot) = self.digram(node) {
            *slot = node + 1;
        }
    }

    fn forget_digram(&mut self, node: u32) {
        if let Some(slot) = self.digram(node)
            && *slot == node + 1
        {
            *slot = 0;
        }
    }

    /// Links two nodes. If this ends a digram inside a run of three equal symbols, the other,
    /// overlapping digram of the run is indexed instead.
    fn join(&mut self, left: u32, right: u32) {
        if self.next[left as usize] != NONE {
            self.forget_digram(left);
            if self.is_run_centre(right) {
                self.index_digram(right);
            }
            if self.is_run_centre(left) {
                self.index_digram(self.previous[left as usize]);
            }
        }
        self.next[left as usize] = right;
        self.previous[right as usize] = left;
    }

    fn is_run_centre(&self, node: u32) -> bool {
        let previous = self.previous[node as usize];
        let next = self.next[node as usize];
        previous != NONE
            && next != NONE
            && self.symbols[node as usize] == self.symbols[previous as usize]
            && self.symbols[node as usize] == self.symbols[next as usize]
    }

    fn insert_after(&mut self, left: u32, node: u32) {
        self.join(node, self.next[left as usize]);
        self.join(left, node);
    }

    fn remove(&mut self, node: u32) {
        let previous = self.previous[node as usize];
        let next = self.next[node as usize];
        self.join(previous, next);
        self.forget_digram(node);
        if let Some(rule) = self.rule_of(self.symbols[node as usize]) {
            self.uses[rule] -= 1;
        }
        self.free.push(node);
    }

    /// Enforces digram uniqueness at `node`. Returns true if the digram was already indexed.
    fn check(&mut self, node: u32) -> bool {
        let Some(slot) = self.digram(node) else { return false };
        match *slot {
            0 => {
                *slot = node + 1;
                false
            }
            found => {
                if self.next[found as usize - 1] != node {
                    self.match_digram(node, found - 1);
                }
                true
            }
        }
    }

    fn match_digram(&mut self, node: u32, found: u32) {
        let before = self.previous[found as usize];
        let second = self.next[found as usize];
        let rule = if self.is_guard(before) && self.is_guard(self.next[second as usize]) {
            let rule = self.symbols[before as usize] & !GUARD;
            self.substitute(node, rule);
            rule
        } else {
            let rule = self.new_rule();
            for element in [node, self.next[node as usize]] {
                let copy = self.new_node(self.symbols[element as usize]);
                let last = self.previous[self.guards[rule as usize] as usize];
                self.insert_after(last, copy);
            }
            self.substitute(found, rule);
            self.substitute(node, rule);
            self.index_digram(self.first(rule));
            rule
        };
        let first = self.first(rule);
        let used_once = |&child: &usize| self.uses[child] == 1;
        if let Some(child) = self.rule_of(self.symbols[first as usize]).filter(used_once) {
            self.expand(first, child);
        }
    }

    fn first(&self, rule: u32) -> u32 {
        self.next[self.guards[rule as usize] as usize]
    }

    /// Replaces the digram at `node` by `rule`.
    fn substitute(&mut self, node: u32, rule: u32) {
        let before = self.previous[node as usize];
        self.remove(self.next[before as usize]);
        self.remove(self.next[before as usize]);
        let symbol = self.num_terminals + rule;
        let replacement = self.new_node(symbol);
        self.insert_after(before, replacement);
        if !self.check(before) {
            self.check(self.next[before as usize]);
        }
    }

    /// Replaces `node`, the only use of `child`, by the body of `child` (rule utility).
    fn expand(&mut self, node: u32, child: usize) {
        let left = self.previous[node as usize];
        let right = self.next[node as usize];
        let guard = self.guards[child];
        let first = self.next[guard as usize];
        let last = self.previous[guard as usize];
        self.forget_digram(node);
        self.join(left, first);
        self.join(last, right);
        self.index_digram(last);
        self.uses[child] = 0;
        self.next[guard as usize] = guard;
        self.previous[guard as usize] = guard;
        self.free.push(node);
    }

    fn body(&self, rule: usize) -> Vec<u32> {
        let guard = self.guards[rule];
        let mut body = Vec::new();
        let mut node = self.next[guard as usize];
        while node != guard {
            body.push(self.symbols[node as usize]);
            node = self.next[node as usize];
        }
        body
    }

    /// Returns the used rules, each after all rules that refer to it (Kahn's algorithm).
    fn parents_first(&self) -> Vec<u32> {
        let mut waiting = self.uses.clone();
        let mut order = vec![0];
        let mut next = 0;
        while let Some(&parent) = order.get(next) {
            for child in self.body(parent as usize).into_iter().filter_map(|s| self.rule_of(s)) {
                waiting[child] -= 1;
                if waiting[child] == 0 {
                    order.push(child as u32);
                }
            }
            next += 1;
        }
        // The root is not written as a rule.
        order.remove(0);
        order
    }

    fn finish(self) -> Result<Grammar> {
        let mut rules = Rules::new(self.num_terminals, self.body(0));
        for rule in 0..self.guards.len() {
            let is_dead = self.uses[rule] == 0;
            rules.push(if rule == 0 || is_dead { Vec::new() } else { self.body(rule) });
        }
        emit(self.num_terminals, &rules, &self.parents_first(), &vec![false; self.guards.len()])
    }
}
