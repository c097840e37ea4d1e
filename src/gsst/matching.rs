//! Predicates on the rows of a block, answered on codes, or on decoded text if that is faster.
//!
//! ```text
//! =  IN           first code a prefix of a constant? last code a suffix?  then decode and compare
//! LIKE            by codes: automaton over codes, which stops as soon as the answer is known
//!                 by text:  decode all; search the longest literal in the whole text and test the
//!                           rows with hits; for '%x' compare the end of each row
//! ```
//!
//! The faster way depends on how early in a row the answer is known and on how many rows have to be tested, not on the
//! length of the literal. So both ways are first estimated on a few rows, with fitted costs. The automaton waits for
//! one lookup per code, and for a wrong branch prediction where it stops after another number of codes than in the row
//! before. The text costs the decoding, each hit, and each byte of a row that has to be tested. In small blocks the
//! automaton is not worthwhile for patterns that start with `%`.
//!
//! Constants are never encoded and compared as codes. Unequal codes mean unequal rows only if both
//! were parsed by the same function, and a block cannot prove that its rows were. The filters above
//! hold for any codes that decode to the row.
//!
//! # Automaton over codes
//!
//! It takes one lookup per code instead of one per byte.
//!
//! ```text
//! next(state, code) = next(… next(state, byte 0 of its symbol) …, last byte)
//! ```
//!
//! An automaton is built for one symbol table. This takes states x symbols x bytes of a symbol steps. It is correct for
//! any codes, however rows were parsed.

use std::ops::Range;

use memchr::memmem;

use crate::block::{Block, DecodedRows};
use crate::decode::CodeRange;
use crate::pattern::{ByteAutomaton, Pattern};
use crate::symbol_table::{self, CodeWidth, ESCAPE_CODE, SymbolTable};

/// A bit mask with one bit per row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowMask {
    bits: Vec<u8>,
    num_rows: usize,
}

impl RowMask {
    fn none(num_rows: usize) -> Self {
        Self { bits: vec![0; num_rows.div_ceil(8)], num_rows }
    }

    fn set(&mut self, row: usize, is_set: bool) {
        self.bits[row / 8] |= u8::from(is_set) << (row % 8);
    }

    /// Returns the bits, low bits first. Those behind the last row are 0.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bits
    }

    /// Returns the number of rows, set or not.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Returns the number of rows that are set.
    pub fn num_set(&self) -> usize {
        self.bits.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// Returns true if `row` is set.
    ///
    /// # Panics
    ///
    /// Panics if there is no such row.
    pub fn is_set(&self, row: usize) -> bool {
        self.bits[row / 8] >> (row % 8) & 1 == 1
    }

    /// Returns the rows that are set, ascending, as [`Block::decode_selected`] takes them.
    pub fn rows(&self) -> Vec<u32> {
        (0..self.num_rows).filter(|row| self.is_set(*row)).map(|row| row as u32).collect()
    }
}

/// Cost of a row by codes. These constants are the costs in the rule of the module's documentation.
const ROW_NS: f64 = 2.0;
/// Additional cost of a row for which the automaton reads another number of codes than before.
const CHANGE_NS: f64 = 8.0;
/// Cost of a code in the automaton.
const CODE_NS: f64 = 1.5;
/// Cost of a row by text.
const DECODED_ROW_NS: f64 = 1.5;
/// Cost of a code that is decoded and searched.
const DECODED_CODE_NS: f64 = 0.5;
/// Cost of a hit in the text.
const HIT_NS: f64 = 8.0;
/// Cost of a byte of a row that is tested after a hit.
const TESTED_BYTE_NS: f64 = 1.4;
/// Number of rows on which both ways are estimated.
const NUM_COMPARED_ROWS: usize = 64;
/// Smallest text, in bytes, for which a pattern that starts with `%` is estimated.
const MIN_COMPARED_BYTES: usize = 256 << 10;

/// Way to look for a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Codes,
    Text,
}

impl<B: AsRef<[u8]>> Block<B> {
    /// Returns the rows whose text is one of `constants`. Null rows are not set.
    pub fn rows_equal_to(&self, constants: &[&[u8]]) -> RowMask {
        let mut mask = RowMask::none(self.num_rows());
        let ends = PossibleEnds::new(self, constants);
        let mut text = Vec::new();
        for row in 0..self.num_rows() {
            if self.is_null(row) || !ends.may_be(self, row) {
                continue;
            }
            text.clear();
            self.append(self.code_range(row), &mut text);
            mask.set(row, constants.contains(&&text[..]));
        }
        mask
    }

    /// Returns the rows whose text matches `pattern`. Null rows are not set.
    pub fn rows_like(&self, pattern: &Pattern) -> RowMask {
        if let Some(literal) = pattern.whole_literal() {
            return self.rows_equal_to(&[&literal]);
        }
        let starts_anywhere = pattern.starts_with_any_bytes();
        if starts_anywhere && self.text_len_bytes() < MIN_COMPARED_BYTES {
            return self.rows_like_on_text(pattern);
        }
        let Some(bytes) = ByteAutomaton::new(pattern) else {
            return self.rows_like_on_text(pattern);
        };
        let automaton = CodeAutomaton::new(&bytes, self.table());
        match self.cheaper_way(pattern, &automaton) {
            Way::Codes => self.rows_like_on_codes(&automaton),
            Way::Text => self.rows_like_on_text(pattern),
        }
    }

    /// Estimates the costs of both ways on some rows, by the rule of the module's documentation,
    /// and returns the cheaper way.
    fn cheaper_way(&self, pattern: &Pattern, automaton: &CodeAutomaton<'_>) -> Way {
        let literal = pattern.longest_literal();
        let is_contains = pattern.is_contains();
        let is_suffix = pattern.suffix().is_some();
        let mut by_codes_ns = 0.0;
        let mut by_text_ns = 0.0;
        let mut text = Vec::new();
        let mut before = 0;
        let num_rows = self.num_rows();
        for row in (0..num_rows).step_by(num_rows.div_ceil(NUM_COMPARED_ROWS).max(1)) {
            let codes = self.code_range(row);
            text.clear();
            self.append(codes.clone(), &mut text);
            let num_looked_at = automaton.num_looked_at(self.range(codes.clone()));
            by_codes_ns += ROW_NS + CODE_NS * num_looked_at as f64;
            by_codes_ns += if num_looked_at == before { 0.0 } else { CHANGE_NS };
            by_text_ns += DECODED_ROW_NS + DECODED_CODE_NS * codes.len() as f64;
            before = num_looked_at;
            if !is_suffix && memmem::find(&text, &literal).is_some() {
                let test_ns = if is_contains { 0.0 } else { TESTED_BYTE_NS * text.len() as f64 };
                by_text_ns += HIT_NS + test_ns;
            }
        }
        if by_codes_ns < by_text_ns { Way::Codes } else { Way::Text }
    }

    #[cfg(test)]
    pub(super) fn rows_like_by(&self, pattern: &Pattern, way: Way) -> RowMask {
        match ByteAutomaton::new(pattern) {
            Some(bytes) if way == Way::Codes => self.rows_like_on_codes(&CodeAutomaton::new(&bytes, self.table())),
            _ => self.rows_like_on_text(pattern),
        }
    }

    fn rows_like_on_codes(&self, automaton: &CodeAutomaton<'_>) -> RowMask {
        let mut mask = RowMask::none(self.num_rows());
        for row in (0..self.num_rows()).filter(|row| !self.is_null(*row)) {
            mask.set(row, automaton.matches(self.range(self.code_range(row))));
        }
        mask
    }

    fn rows_like_on_text(&self, pattern: &Pattern) -> RowMask {
        let mut mask = RowMask::none(self.num_rows());
        let decoded = self.decode_all();
        let literal = pattern.longest_literal();
        let suffix = pattern.suffix();
        if literal.is_empty() || suffix.is_some() {
            for row in (0..self.num_rows()).filter(|row| !self.is_null(*row)) {
                let text = &decoded.text[row_range(&decoded, row)];
                let is_like = match &suffix {
                    Some(suffix) => text.ends_with(suffix),
                    None => pattern.matches(text),
                };
                mask.set(row, is_like);
            }
        } else {
            search(&decoded, &literal, pattern, &mut mask);
        }
        mask
    }
}

fn row_range(decoded: &DecodedRows, row: usize) -> Range<usize> {
    decoded.offsets[row] as usize..decoded.offsets[row + 1] as usize
}

/// Sets the rows that match `pattern`. All of them contain `literal`, which must not be empty.
fn search(decoded: &DecodedRows, literal: &[u8], pattern: &Pattern, mask: &mut RowMask) {
    let DecodedRows { text, offsets } = decoded;
    let finder = memmem::Finder::new(literal);
    let is_contains = pattern.is_contains();
    let mut at = 0;
    let mut row = 0;
    while let Some(found) = finder.find(&text[at..]) {
        let start = at + found;
        while offsets[row + 1] as usize <= start {
            row += 1;
        }
        let range = row_range(decoded, row);
        if start + literal.len() <= range.end {
            at = range.end;
            mask.set(row, is_contains || pattern.matches(&text[range]));
        } else {
            // The hit crosses the end of its row.
            at = start + 1;
        }
    }
}

/// First and last codes that are possible in a row that is one of some constants.
struct PossibleEnds {
    /// True, by code, if its symbol begins one of the constants.
    begins: Vec<bool>,
    /// True, by code, if its symbol ends one of the constants. `None` if codes may be literals.
    ends: Option<Vec<bool>>,
    has_empty: bool,
}

impl PossibleEnds {
    fn new<B: AsRef<[u8]>>(block: &Block<B>, constants: &[&[u8]]) -> Self {
        let mut begins = vec![false; 1 << block.width().bits()];
        let mut ends = begins.clone();
        for (code, symbol) in block.table().symbols().iter().enumerate() {
            begins[code] = constants.iter().any(|constant| constant.starts_with(symbol.as_bytes()));
            ends[code] = constants.iter().any(|constant| constant.ends_with(symbol.as_bytes()));
        }
        if block.width() == CodeWidth::Eight {
            begins[usize::from(ESCAPE_CODE)] = true;
        }
        let has_empty = constants.iter().any(|constant| constant.is_empty());
        Self { begins, ends: block.has_no_escapes().then_some(ends), has_empty }
    }

    fn may_be<B: AsRef<[u8]>>(&self, block: &Block<B>, row: usize) -> bool {
        let codes = block.code_range(row);
        if codes.is_empty() {
            return self.has_empty;
        }
        let code = |code_idx: usize| match block.width() {
            CodeWidth::Eight => usize::from(block.codes()[code_idx]),
            CodeWidth::Twelve => usize::from(symbol_table::code_at(block.codes(), code_idx)),
        };
        let may_end = || self.ends.as_ref().is_none_or(|ends| ends[code(codes.end - 1)]);
        self.begins[code(codes.start)] && may_end()
    }
}

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
                ESCAPE_CODE => rest.next().map_or(state, |literal| self.bytes.next(state, *literal)),
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
            let code = usize::from(symbol_table::code_at(codes.stored, code_idx));
            state = self.next[usize::from(state) << 12 | code];
            if self.bytes.is_final(state) {
                return (state, code_idx + 1 - codes.start);
            }
        }
        (state, codes.end - codes.start)
    }
}
