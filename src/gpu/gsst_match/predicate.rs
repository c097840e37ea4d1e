//! A predicate as kernels take it.

use crate::gsst::{ByteAutomaton, CodeWidth};

/// Longest literal a filter is made of; of longer ones the beginning is enough.
const MAX_LITERAL_BYTES: usize = 128;
const ACCEPTS: u8 = 1;
const IS_FINAL: u8 = 2;

/// What rows are asked: an automaton over their bytes, and what a filter may look for.
#[derive(Debug, Clone)]
pub struct RowPredicate {
    automaton: ByteAutomaton,
    /// What every row that matches contains; empty where nothing is known.
    literal: Vec<u8>,
}

impl RowPredicate {
    pub(super) fn new(automaton: ByteAutomaton, mut literal: Vec<u8>) -> Self {
        literal.truncate(MAX_LITERAL_BYTES);
        Self { automaton, literal }
    }

    /// The rows that are not null and do not match `self`.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { automaton: self.automaton.negated(), literal: Vec::new() }
    }

    /// The same predicate, answered by running the automaton over every row: for benchmarks and
    /// tests of the filter.
    #[must_use]
    pub fn without_filter(self) -> Self {
        Self { literal: Vec::new(), ..self }
    }

    pub(super) fn num_states(&self) -> usize {
        self.automaton.num_states()
    }

    pub(super) fn literal(&self) -> &[u8] {
        &self.literal
    }

    /// Automaton, flags of states and literal, behind one another: 256 bytes per state, 256 bytes,
    /// and the literal.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.automaton.next_states().concat();
        let mut flags = [0; 256];
        for state in 0..=self.num_states().min(256).saturating_sub(1) as u8 {
            let accepts = if self.automaton.accepts(state) { ACCEPTS } else { 0 };
            let is_final = if self.automaton.is_final(state) { IS_FINAL } else { 0 };
            flags[usize::from(state)] = accepts | is_final;
        }
        bytes.extend_from_slice(&flags);
        bytes.extend_from_slice(&self.literal);
        bytes
    }

    /// Most bytes of [`RowPredicate::to_bytes`].
    pub(super) const MAX_BYTES: usize = 256 * 256 + 256 + MAX_LITERAL_BYTES;

    /// What the tables of one block take: the automaton over codes, and the filter.
    pub(super) fn tables_len_bytes(&self, width: CodeWidth) -> usize {
        (self.num_states() + 4) << width.bits()
    }
}
