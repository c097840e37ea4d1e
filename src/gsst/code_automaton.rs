//! A pattern as an automaton over codes, with one lookup per code instead of one per byte.
//!
//! ```text
//! next(state, code) = next(… next(state, byte 0 of its symbol) …, last byte)
//! ```
//!
//! An automaton is built for one symbol table. This takes states x symbols x bytes of a symbol
//! steps: about 20 µs for 20 states and 255 symbols, 0.4 ms for 4,096. It is correct for any codes,
//! however rows were parsed.

use super::byte_automaton::ByteAutomaton;
use super::decode::CodeRange;
use super::symbol_table::{CodeWidth, ESCAPE_CODE, SymbolTable};
use super::twelve;

/// The automaton of a pattern over the codes of a table.
#[derive(Debug)]
pub(super) struct CodeAutomaton<'a> {
    bytes: &'a ByteAutomaton,
    width: CodeWidth,
    /// Next state, by state and code.
    next: Vec<u8>,
}

impl<'a> CodeAutomaton<'a> {
    pub(super) fn new(bytes: &'a ByteAutomaton, table: &SymbolTable) -> Self {
        let num_codes = 1 << table.width().bits();
        let mut next = vec![0; bytes.num_states() * num_codes];
        for (state, next) in next.chunks_mut(num_codes).enumerate() {
            for (next, symbol) in next.iter_mut().zip(table.symbols()) {
                let step = |state, byte: &u8| bytes.next(state, *byte);
                *next = symbol.as_bytes().iter().fold(state as u8, step);
            }
        }
        Self { bytes, width: table.width(), next }
    }

    /// Returns true if the text of `codes` matches.
    pub(super) fn matches(&self, codes: CodeRange<'_>) -> bool {
        self.bytes.accepts(self.run(codes).0)
    }

    /// Returns the number of leading `codes` that decide if their text matches.
    pub(super) fn num_looked_at(&self, codes: CodeRange<'_>) -> usize {
        self.run(codes).1
    }

    fn run(&self, codes: CodeRange<'_>) -> (u8, usize) {
        match self.width {
            CodeWidth::Eight => self.run_eight(&codes.stored[codes.start..codes.end]),
            CodeWidth::Twelve => self.run_twelve(codes),
        }
    }

    fn run_eight(&self, codes: &[u8]) -> (u8, usize) {
        let mut state = 0;
        let mut rest = codes.iter();
        while let Some(code) = rest.next() {
            state = match *code {
                ESCAPE_CODE => {
                    rest.next().map_or(state, |literal| self.bytes.next(state, *literal))
                }
                code => self.next[usize::from(state) << 8 | usize::from(code)],
            };
            if self.bytes.is_final(state) {
                break;
            }
        }
        (state, codes.len() - rest.len())
    }

    fn run_twelve(&self, codes: CodeRange<'_>) -> (u8, usize) {
        let mut state = 0;
        for code_idx in codes.start..codes.end {
            let code = usize::from(twelve::code_at(codes.stored, code_idx));
            state = self.next[usize::from(state) << 12 | code];
            if self.bytes.is_final(state) {
                return (state, code_idx + 1 - codes.start);
            }
        }
        (state, codes.end - codes.start)
    }
}
