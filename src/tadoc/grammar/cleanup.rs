//! Clean-up that turns the binary rules of the rounds into the final grammar: rule utility,
//! inlining, numbering.
//!
//! 1. Rules used once are inlined (Sequitur's rule utility), and so is every rule that saves
//!    nothing: a rule of length l with u uses costs l + u elements as a rule and l·u if inlined. In
//!    this way chains of pairs become long rules (average length 2 becomes 8-9 on versioned text, G
//!    falls by 38 %).
//! 2. Rules are numbered parents before children (Kahn's algorithm) and written as one CSR.
//!
//! It needs O(G) time. It does not recurse: expansion has its own stack.

use std::slice::Iter;

use rayon::prelude::*;

use super::Grammar;
use super::schedule::BARRIER;
use crate::error::Result;

/// Result of a builder. Element ids are terminals, then segment rules, then pair rules.
pub(super) struct Draft {
    pub(super) num_terminals: u32,
    /// Number of rules whose bodies follow the documents in `symbols`.
    pub(super) num_segments: u32,
    /// Bodies of the pair rules.
    pub(super) pairs: Vec<(u32, u32)>,
    /// Documents, then segment bodies, each ended by a barrier.
    pub(super) symbols: Vec<u32>,
}

/// Inlines rules that save nothing and numbers the others.
pub(super) fn clean_up(draft: Draft) -> Result<Grammar> {
    let num_terminals = draft.num_terminals;
    let rules = Rules::from_draft(draft);
    let uses = rules.count_uses();
    let order = rules.parents_first(&uses);
    let is_inlined = rules.choose_inlined(&uses, &order);
    emit(num_terminals, &rules, &order, &is_inlined)
}

/// Number of references to each element. It includes terminals, because a branch on the kind of
/// element would be unpredictable.
pub(super) struct Uses {
    in_root: Vec<u32>,
    in_bodies: Vec<u32>,
}

/// Rules of any length over elements. The root is separate and has its barriers.
pub(super) struct Rules {
    num_terminals: u32,
    root: Vec<u32>,
    offsets: Vec<u32>,
    bodies: Vec<u32>,
}

impl Rules {
    /// Creates an empty set of rules. Rule `r` has element id `num_terminals + r`.
    pub(super) fn new(num_terminals: u32, root: Vec<u32>) -> Self {
        Self { num_terminals, root, offsets: vec![0], bodies: Vec::new() }
    }

    /// Appends the next rule.
    pub(super) fn push(&mut self, body: impl IntoIterator<Item = u32>) {
        self.bodies.extend(body);
        self.offsets.push(self.bodies.len() as u32);
    }

    fn from_draft(draft: Draft) -> Self {
        let num_barriers = draft.symbols.iter().filter(|&&s| s == BARRIER).count();
        let num_docs = num_barriers - draft.num_segments as usize;
        let mut root = draft.symbols;
        let root_len = end_of_documents(&root, num_docs);
        let segments = root.split_off(root_len);
        let mut rules = Self::new(draft.num_terminals, root);
        for body in segments.split(|&s| s == BARRIER).take(draft.num_segments as usize) {
            rules.push(body.iter().copied());
        }
        rules.bodies.reserve(2 * draft.pairs.len());
        rules.offsets.reserve(draft.pairs.len());
        for (left, right) in draft.pairs {
            rules.push([left, right]);
        }
        rules
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn body(&self, rule: usize) -> &[u32] {
        &self.bodies[self.offsets[rule] as usize..self.offsets[rule + 1] as usize]
    }

    /// Returns the number of elements, which are terminals and rules.
    fn num_elements(&self) -> usize {
        self.num_terminals as usize + self.len()
    }

    /// Returns the number of references to each element in the root and in used rules.
    pub(super) fn count_uses(&self) -> Uses {
        let num_terminals = self.num_terminals as usize;
        let mut in_root = vec![0; self.num_elements()];
        for &element in self.root.iter().filter(|&&element| element != BARRIER) {
            in_root[element as usize] += 1;
        }
        let mut in_bodies = vec![0; self.num_elements()];
        for &element in &self.bodies {
            in_bodies[element as usize] += 1;
        }
        let mut uses = Uses { in_root, in_bodies };
        let is_unused = |uses: &Uses, element: usize| {
            element >= num_terminals && uses.in_root[element] == 0 && uses.in_bodies[element] == 0
        };
        let rules = num_terminals..self.num_elements();
        let mut unused: Vec<usize> = rules.filter(|&rule| is_unused(&uses, rule)).collect();
        while let Some(element) = unused.pop() {
            for &child in self.body(element - num_terminals) {
                uses.in_bodies[child as usize] -= 1;
                if is_unused(&uses, child as usize) {
                    unused.push(child as usize);
                }
            }
        }
        uses
    }

    /// Returns the used rules, each after all rules that refer to it.
    pub(super) fn parents_first(&self, uses: &Uses) -> Vec<u32> {
        let num_terminals = self.num_terminals;
        let mut waiting = uses.in_bodies.clone();
        let is_ready = |&rule: &u32| {
            let element = (num_terminals + rule) as usize;
            waiting[element] == 0 && uses.in_root[element] > 0
        };
        let mut order: Vec<u32> = (0..self.len() as u32).filter(is_ready).collect();
        let (mut next, mut num_ordered) = (0, order.len());
        // The next rule is always written, also if it is not ready, so one more entry is needed.
        order.resize(self.len() + 1, 0);
        while next < num_ordered {
            for &element in self.body(order[next] as usize) {
                let waiting = &mut waiting[element as usize];
                *waiting -= 1;
                order[num_ordered] = element.wrapping_sub(num_terminals);
                num_ordered += usize::from((element >= num_terminals) & (*waiting == 0));
            }
            next += 1;
        }
        order.truncate(num_ordered);
        order
    }

    /// Marks the rules that save nothing. It visits children first, so that lengths are final.
    fn choose_inlined(&self, uses: &Uses, order: &[u32]) -> Vec<bool> {
        let num_terminals = self.num_terminals as usize;
        let uses = uses.in_root.iter().zip(&uses.in_bodies);
        let mut num_uses: Vec<u32> = uses.map(|(root, body)| root + body).collect();
        // Number of elements that each use of an element adds to the rule that uses it.
        let mut lengths = vec![1u64; num_uses.len()];
        let mut is_inlined = vec![false; self.len()];
        for &rule in order.iter().rev() {
            let rule = rule as usize;
            let body = self.body(rule);
            let length: u64 = body.iter().map(|&element| lengths[element as usize]).sum();
            let uses = num_uses[num_terminals + rule];
            if uses == 1 || length * u64::from(uses) <= length + u64::from(uses) {
                is_inlined[rule] = true;
                lengths[num_terminals + rule] = length;
                for &element in body {
                    let num_uses: &mut u32 = &mut num_uses[element as usize];
                    *num_uses = num_uses.wrapping_add(uses - 1);
                }
            }
        }
        is_inlined
    }
}

/// Returns the length of the documents, including barriers.
fn end_of_documents(symbols: &[u32], num_docs: usize) -> usize {
    match num_docs {
        0 => 0,
        _ => symbols
            .iter()
            .enumerate()
            .filter(|&(_, &s)| s == BARRIER)
            .nth(num_docs - 1)
            .map_or(0, |(position, _)| position + 1),
    }
}

/// Writes the rules that are not inlined, in `order`, as the final grammar.
pub(super) fn emit(
    num_terminals: u32,
    rules: &Rules,
    order: &[u32],
    is_inlined: &[bool],
) -> Result<Grammar> {
    let kept: Vec<u32> = order.iter().copied().filter(|&rule| !is_inlined[rule as usize]).collect();
    let mut final_ids: Vec<u32> = (0..num_terminals).collect();
    final_ids.resize(num_terminals as usize + rules.len(), INLINED);
    for (i, &rule) in kept.iter().enumerate() {
        final_ids[(num_terminals + rule) as usize] = num_terminals + 1 + i as u32;
    }
    let writer = Writer { rules, final_ids };
    let documents = join(rules.root.par_chunks(PIECE_LEN).map(|p| writer.documents(p)).collect());
    let bodies = join(kept.par_chunks(PIECE_LEN).map(|piece| writer.bodies(piece)).collect());
    let root_len = documents.symbols.len() as u32;
    let grammar = Grammar {
        num_terminals,
        rule_offsets: [0, root_len]
            .into_iter()
            .chain(bodies.ends.iter().map(|end| root_len + end))
            .collect(),
        symbols: [documents.symbols, bodies.symbols].concat(),
        doc_offsets: std::iter::once(0).chain(documents.ends).collect(),
    };
    debug_assert!(grammar.validate().is_ok());
    Ok(grammar)
}

/// Mark of an inlined rule in the table of final ids.
const INLINED: u32 = u32::MAX;

/// Number of elements of the root, or of rules, that a thread writes at a time.
const PIECE_LEN: usize = 1 << 15;

/// Symbols of documents or rules, and the end of each.
#[derive(Default)]
struct Written {
    symbols: Vec<u32>,
    ends: Vec<u32>,
}

fn join(pieces: Vec<Written>) -> Written {
    let mut joined = Written {
        symbols: Vec::with_capacity(pieces.iter().map(|piece| piece.symbols.len()).sum()),
        ends: Vec::with_capacity(pieces.iter().map(|piece| piece.ends.len()).sum()),
    };
    for piece in pieces {
        let start = joined.symbols.len() as u32;
        joined.ends.extend(piece.ends.iter().map(|end| start + end));
        joined.symbols.extend(piece.symbols);
    }
    joined
}

struct Writer<'a> {
    rules: &'a Rules,
    /// Final id of each element.
    final_ids: Vec<u32>,
}

impl Writer<'_> {
    /// Writes a part of the root, in which barriers end documents.
    fn documents<'s>(&'s self, elements: &'s [u32]) -> Written {
        let mut written =
            Written { symbols: Vec::with_capacity(elements.len() * 5 / 4), ends: Vec::new() };
        let mut stack = Vec::new();
        for document in elements.split_inclusive(|&element| element == BARRIER) {
            let body = document.strip_suffix(&[BARRIER]);
            self.expand(body.unwrap_or(document), &mut stack, &mut written.symbols);
            if body.is_some() {
                written.ends.push(written.symbols.len() as u32);
            }
        }
        written
    }

    fn bodies(&self, rules: &[u32]) -> Written {
        let mut written = Written::default();
        let mut stack = Vec::new();
        for &rule in rules {
            self.expand(self.rules.body(rule as usize), &mut stack, &mut written.symbols);
            written.ends.push(written.symbols.len() as u32);
        }
        written
    }

    /// Appends the elements with their final ids. Inlined rules are replaced by their bodies.
    /// `stack` is scratch space.
    fn expand<'s>(
        &'s self,
        elements: &'s [u32],
        stack: &mut Vec<Iter<'s, u32>>,
        symbols: &mut Vec<u32>,
    ) {
        stack.push(elements.iter());
        while let Some(mut rest) = stack.pop() {
            while let Some(&element) = rest.next() {
                match self.final_ids[element as usize] {
                    INLINED => {
                        stack.push(rest);
                        rest =
                            self.rules.body((element - self.rules.num_terminals) as usize).iter();
                    }
                    final_id => symbols.push(final_id),
                }
            }
        }
    }
}
