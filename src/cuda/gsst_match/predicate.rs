//! A predicate as kernels take it.

use gsst::{ByteAutomaton, CodeWidth};

/// Longest literal a filter is made of; of longer ones the beginning is enough.
const MAX_LITERAL_BYTES: usize = 128;
/// What rows are asked: an automaton over their bytes, and what a filter may look for.
#[derive(Debug, Clone)]
pub struct RowPredicate {
    /// By state and byte the next state; final states are the last ones.
    next: Vec<u8>,
    /// By state whether a text that ends in it matches.
    accepts: Vec<bool>,
    /// The first of the states whose answer is theirs whatever follows.
    first_final: usize,
    /// What every row that matches contains; empty where nothing is known.
    literal: Vec<u8>,
}

impl RowPredicate {
    pub(super) fn new(automaton: &ByteAutomaton, mut literal: Vec<u8>) -> Self {
        literal.truncate(MAX_LITERAL_BYTES);
        if automaton.is_final(0) {
            // All texts get the same answer.
            let accepts = vec![automaton.accepts(0)];
            return Self { next: vec![0; 256], accepts, first_final: 0, literal: Vec::new() };
        }
        let num_states = automaton.num_states();
        let is_last = |state: &usize| automaton.is_final(*state as u8);
        let mut order: Vec<usize> = (0..num_states).filter(|state| !is_last(state)).collect();
        let first_final = order.len();
        order.extend((0..num_states).filter(is_last));
        let mut place_of = vec![0; num_states];
        for (place, state) in order.iter().enumerate() {
            place_of[*state] = place as u8;
        }
        let next_of = |state: &usize| automaton.next_states()[*state];
        Self {
            next: order.iter().flat_map(next_of).map(|next| place_of[usize::from(next)]).collect(),
            accepts: order.iter().map(|state| automaton.accepts(*state as u8)).collect(),
            first_final,
            literal,
        }
    }

    /// The rows that are not null and do not match `self`.
    #[must_use]
    pub fn negated(self) -> Self {
        let accepts = self.accepts.into_iter().map(|accepts| !accepts).collect();
        Self { accepts, literal: Vec::new(), ..self }
    }

    /// The same predicate, answered by running the automaton over every row: for benchmarks and
    /// tests of the filter.
    #[must_use]
    pub fn without_filter(self) -> Self {
        Self { literal: Vec::new(), ..self }
    }

    pub(super) fn num_states(&self) -> usize {
        self.accepts.len()
    }

    pub(super) fn first_final(&self) -> usize {
        self.first_final
    }

    pub(super) fn literal(&self) -> &[u8] {
        &self.literal
    }

    /// Automaton, flags of states and literal, behind one another: 256 bytes per state, 256 bytes,
    /// and the literal.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut flags = [0; 256];
        for (flag, accepts) in flags.iter_mut().zip(&self.accepts) {
            *flag = u8::from(*accepts);
        }
        [&self.next[..], &flags, &self.literal].concat()
    }

    /// Most bytes of [`RowPredicate::to_bytes`].
    pub(super) const MAX_BYTES: usize = 256 * 256 + 256 + MAX_LITERAL_BYTES;

    /// What the tables of one block take.
    pub(super) fn tables_len_bytes(&self, width: CodeWidth) -> usize {
        tables_len_bytes(self.num_states() as u32, width)
    }
}

/// What the tables of one block take: the automaton over codes, and the filter.
pub(super) fn tables_len_bytes(num_states: u32, width: CodeWidth) -> usize {
    (num_states as usize + 4) << width.bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gsst::Pattern;

    #[test]
    fn renumbered_states_accept_the_same_texts() {
        let patterns = ["%", "", "a%", "%ab%", "a%b_c", "ab", "%a%b%"];
        for pattern in patterns.map(|pattern| Pattern::like(pattern, None)) {
            let automaton = ByteAutomaton::new(&pattern).unwrap();
            let predicate = RowPredicate::new(&automaton, Vec::new());
            let negated = predicate.clone().negated();
            for text in [&b""[..], b"a", b"ab", b"aabxc", b"abab", b"b", b"a\xffb--c"] {
                let mut state = 0;
                for byte in text {
                    let next = predicate.next[state << 8 | usize::from(*byte)];
                    assert!(state < predicate.first_final || usize::from(next) == state);
                    state = usize::from(next);
                }
                assert_eq!(predicate.accepts[state], pattern.matches(text), "{pattern:?}");
                assert_eq!(negated.accepts[state], !pattern.matches(text), "{pattern:?}");
            }
        }
    }
}
