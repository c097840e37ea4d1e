//! Expansion of a grammar to tokens, the oracle for the tests of every faster method.
//!
//! It needs O(N) time and uses an explicit stack. It has no limits. Callers that open bytes from
//! outside use [`read`](crate::read), which has limits.

use super::Grammar;

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
