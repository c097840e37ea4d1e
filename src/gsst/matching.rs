//! Which rows of a block match: on codes, or on decoded text where that is faster.
//!
//! ```text
//! =  IN           first code a prefix of a constant? last code a suffix?  then decode and compare
//! LIKE 'x%', …    automaton over codes, which ends early
//! LIKE '%x%', …   decode all, search the longest literal in the whole text, test the rows it hits
//! ```
//!
//! Measured on 8 MB each of `l_comment` and `ps_comment` (8-bit codes, one core, GB/s of text):
//!
//! ```text
//!                              by codes       by text
//! the%                         5.8   19.3     2.9   5.7
//! %e%                          1.3    5.8     2.0   6.0
//! %special%                    1.5    2.7     2.6   3.8
//! %furiously final deposits%   1.5    2.3     3.0   3.4
//! ```
//!
//! So a pattern that starts with `%` goes by text whatever the length of the needle (an automaton
//! waits for one lookup per code, the search does not), any other by codes.
//!
//! Constants are never encoded and compared as codes: unequal codes mean unequal rows only where
//! both were parsed by the same function, and a block cannot prove that its rows were. The filters
//! above hold for any codes that decode to the row.

use std::ops::Range;

use memchr::memmem;

use super::block::{Block, DecodedRows};
use super::byte_automaton::ByteAutomaton;
use super::code_automaton::CodeAutomaton;
use super::pattern::Pattern;
use super::symbol_table::{CodeWidth, ESCAPE_CODE};
use super::twelve;

/// One bit per row.
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

    /// The bits, low bits first, those behind the last row 0.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bits
    }

    /// Number of rows, set or not.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of rows that are set.
    pub fn num_set(&self) -> usize {
        self.bits.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// Whether `row` is set.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    pub fn is_set(&self, row: usize) -> bool {
        self.bits[row / 8] >> (row % 8) & 1 == 1
    }

    /// The rows that are set, ascending: what [`Block::decode_selected`] takes.
    pub fn rows(&self) -> Vec<u32> {
        (0..self.num_rows).filter(|row| self.is_set(*row)).map(|row| row as u32).collect()
    }
}

/// How to look for a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Codes,
    Text,
}

impl<B: AsRef<[u8]>> Block<B> {
    /// The rows whose text is one of `constants`; null rows are none of them.
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

    /// The rows whose text is like `pattern`; null rows are not.
    pub fn rows_like(&self, pattern: &Pattern) -> RowMask {
        if let Some(literal) = pattern.whole_literal() {
            return self.rows_equal_to(&[&literal]);
        }
        let way = if pattern.starts_with_any_bytes() { Way::Text } else { Way::Codes };
        self.rows_like_by(pattern, way)
    }

    pub(super) fn rows_like_by(&self, pattern: &Pattern, way: Way) -> RowMask {
        let mut mask = RowMask::none(self.num_rows());
        if way == Way::Codes
            && let Some(automaton) = ByteAutomaton::new(pattern)
        {
            let automaton = CodeAutomaton::new(&automaton, self.table());
            for row in (0..self.num_rows()).filter(|row| !self.is_null(*row)) {
                mask.set(row, automaton.matches(self.range(self.code_range(row))));
            }
            return mask;
        }
        let decoded = self.decode_all();
        let literal = pattern.longest_literal();
        if literal.is_empty() {
            for row in (0..self.num_rows()).filter(|row| !self.is_null(*row)) {
                mask.set(row, pattern.matches(&decoded.text[row_range(&decoded, row)]));
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

/// Sets the rows like `pattern`, all of which contain `literal`, which is not empty.
fn search(decoded: &DecodedRows, literal: &[u8], pattern: &Pattern, mask: &mut RowMask) {
    let DecodedRows { text, offsets } = decoded;
    let finder = memmem::Finder::new(literal);
    let is_contains = pattern.is_contains();
    let (mut at, mut row) = (0, 0);
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

/// What the codes of a row that is one of some constants can begin and end with.
struct PossibleEnds {
    /// By code: whether its symbol begins one of the constants.
    begins: Vec<bool>,
    /// By code: whether its symbol ends one of them. Of no use where codes may be literals.
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
            CodeWidth::Twelve => usize::from(twelve::code_at(block.codes(), code_idx)),
        };
        let may_end = || self.ends.as_ref().is_none_or(|ends| ends[code(codes.end - 1)]);
        self.begins[code(codes.start)] && may_end()
    }
}
