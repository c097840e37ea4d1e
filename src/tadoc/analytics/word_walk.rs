//! The words of a document one after the other, with a stack of its own.

use std::ops::Range;

use crate::segment::Dag;

/// Where a walk over the expansion of a document stands.
#[derive(Debug, Default)]
pub(super) struct WordWalk {
    range: Range<usize>,
    stack: Vec<Range<usize>>,
}

impl WordWalk {
    /// Stands before the first word at `positions` of the root.
    pub fn start(&mut self, positions: Range<usize>) {
        self.range = positions;
        self.stack.clear();
    }

    /// Calls `f` with the next words, at most `max_words`; says how many there were, fewer only at
    /// the end. Rules without words are not entered, so each step but the last few leads to a word
    /// or passes a separator that stands in the grammar.
    #[inline]
    pub fn next_words(&mut self, dag: &Dag, max_words: usize, mut f: impl FnMut(u32)) -> usize {
        let (symbols, num_words) = (&dag.grammar().symbols[..], dag.num_words());
        let mut num_found = 0;
        while num_found < max_words {
            let Some(position) = self.range.next() else {
                match self.stack.pop() {
                    Some(outer) => self.range = outer,
                    None => break,
                }
                continue;
            };
            let element = symbols[position];
            if element < num_words {
                f(element);
                num_found += 1;
            } else if let Some(rule_idx) = dag.rule_of(element)
                && dag.len_words(element) > 0
            {
                let outer = std::mem::replace(&mut self.range, dag.rule_range(rule_idx));
                if !outer.is_empty() {
                    self.stack.push(outer);
                }
            }
        }
        num_found
    }
}
