//! A predicate in the form that kernels take.

use gsst::{ByteAutomaton, CodeWidth};

/// Longest literal of a filter. The beginning of a longer one suffices.
const MAX_LITERAL_BYTES: usize = 128;
/// A condition on rows: an automaton over their bytes, and a literal for a filter.
#[derive(Debug, Clone)]
pub struct RowPredicate {
    /// Next state by state and byte. The final states are the last ones.
    next: Vec<u8>,
    /// By state, true if a text that ends in it matches.
    accepts: Vec<bool>,
    /// First of the final states. Their answer holds for any continuation.
    first_final: usize,
    /// Literal that every matching row contains; empty if none is known.
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

    /// Returns the predicate of the rows that are not null and do not match `self`.
    #[must_use]
    pub fn negated(self) -> Self {
        let accepts = self.accepts.into_iter().map(|accepts| !accepts).collect();
        Self { accepts, literal: Vec::new(), ..self }
    }

    /// Returns the same predicate without a filter, so that the automaton runs over every row. For
    /// benchmarks and tests of the filter.
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

    /// Returns the automaton, the flags of states and the literal, concatenated: 256 bytes per
    /// state, 256 bytes, and the literal.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut flags = [0; 256];
        for (flag, accepts) in flags.iter_mut().zip(&self.accepts) {
            *flag = u8::from(*accepts);
        }
        [&self.next[..], &flags, &self.literal].concat()
    }

    /// Largest length of [`RowPredicate::to_bytes`].
    pub(super) const MAX_BYTES: usize = 256 * 256 + 256 + MAX_LITERAL_BYTES;

    /// Returns the size of the tables of one block, in bytes.
    pub(super) fn tables_len_bytes(&self, width: CodeWidth) -> usize {
        tables_len_bytes(self.num_states() as u32, width)
    }
}

/// Returns the size of the tables of one block, in bytes: the automaton over codes, and the filter.
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
