//! Walk over the words of a document in order, with an explicit stack of rules.

use std::ops::Range;

use crate::segment::{Dag, Measure, PrefixSums};

/// Position of a walk over the expansion of a document.
#[derive(Debug, Default)]
pub(super) struct WordWalk {
    range: Range<usize>,
    stack: Vec<Range<usize>>,
}

impl WordWalk {
    /// Moves the walk before the first word at `positions` of the root.
    pub fn start(&mut self, positions: Range<usize>) {
        self.range = positions;
        self.stack.clear();
    }

    /// Moves the walk before word `word_index` of the expansion at `positions` of the root, which has
    /// more words. It needs O(depth * log of a rule's length) time.
    pub fn start_at(
        &mut self,
        dag: &Dag,
        sums: &PrefixSums,
        positions: Range<usize>,
        mut word_index: u64,
    ) {
        self.start(positions);
        loop {
            let range = self.range.clone();
            let (position, start) = sums.locate(dag, Measure::Words, range.clone(), word_index);
            word_index -= start;
            let rule_id = dag.rule_of(dag.grammar().symbols[position]);
            let Some(rule_id) = rule_id.filter(|_| word_index > 0) else {
                self.range = position..range.end;
                return;
            };
            if position + 1 < range.end {
                self.stack.push(position + 1..range.end);
            }
            self.range = dag.rule_range(rule_id);
        }
    }

    /// Calls `f` with the next words, at most `max_words`. Returns the number of words, which is
    /// smaller only at the end. The walk does not enter rules without words. So each step but the
    /// last few reaches a word or passes a separator that is an element of the grammar.
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
            } else if let Some(rule_id) = dag.rule_of(element)
                && dag.len_words(element) > 0
            {
                let outer = std::mem::replace(&mut self.range, dag.rule_range(rule_id));
                if !outer.is_empty() {
                    self.stack.push(outer);
                }
            }
        }
        num_found
    }
}
