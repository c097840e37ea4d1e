//! The decoder: codes to text, with one fast loop and a checked variant for the remaining codes.
//!
//! ```text
//! 8 codes at once   8 x (store the 8 bytes of a symbol, advance by its length)
//!                   the next symbol overwrites the bytes behind a symbol's end
//! with an escape    the same, from the half of the table that holds literals: the mask of the
//!                   bytes 255 among the 8 codes tells which of them are literals
//! ```
//!
//! The loop writes into spare capacity as long as there is room for 8 whole symbols, whatever the
//! codes are. So it is memory-safe on unchecked bytes, and validation only affects the output. One
//! core of a Xeon, 8 MB of `l_comment`, table of fsst-rs, MB/s: this loop 5,960, fsst-rs 0.7 5,593,
//! the best safe loop (a window on the stack, copied out) 4,986. On short symbols (`wiki`): 3,390,
//! 3,328 and 2,993. On symbols of 6 bytes (`l_shipinstruct`): 14,514, 14,539 and 10,009.

use std::ops::Range;

use crate::symbol_table::{self, CodeWidth, ESCAPE_CODE, SymbolTable};

/// Number of codes that are decoded at once. [`GROUP_BYTES`] is the most bytes that they can write.
const GROUP_CODES: usize = 8;
const GROUP_BYTES: usize = 8 * GROUP_CODES;
/// Number of codes whose lengths are summed up in one step.
const RUN_CODES: usize = 512;
/// Bit that is set in the index of a literal.
pub(super) const LITERAL: usize = 256;

/// Symbols and their lengths by code, for `N` codes. The length is 0 for a code without a symbol.
#[derive(Debug, Clone)]
pub(super) struct Symbols<const N: usize> {
    words: [u64; N],
    pub(super) lens_bytes: [u8; N],
}

/// Decoding tables: for codes of 8 bits and literals, or for codes of 12 bits.
#[derive(Debug, Clone)]
pub(super) enum Decoder {
    Eight(Box<Symbols<512>>),
    Twelve(Box<Symbols<4096>>),
}

/// Consecutive codes, from number `start` to before `end`.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeRange<'a> {
    /// All codes of the block, in stored form.
    pub(super) stored: &'a [u8],
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Decoder {
    pub(super) fn new(table: &SymbolTable) -> Self {
        match table.width() {
            CodeWidth::Eight => Self::Eight(Symbols::for_eight(table)),
            CodeWidth::Twelve => Self::Twelve(Symbols::from_table(table)),
        }
    }

    /// Appends the text of `codes` to `text`. `len_bytes` is the expected length and affects only
    /// the speed. An escape at the end has no text.
    pub(super) fn decode(&self, codes: CodeRange<'_>, len_bytes: usize, text: &mut Vec<u8>) {
        text.reserve(len_bytes + GROUP_BYTES);
        match self {
            Self::Eight(symbols) => {
                let rest = symbols.decode_eight(&codes.stored[codes.start..codes.end], text);
                let rest = symbols.decode_last_eight(rest, text);
                symbols.decode_eight_checked(rest, text);
            }
            Self::Twelve(symbols) => {
                let rest = symbols.decode_twelve(codes, text);
                symbols.decode_twelve_checked(rest, text);
            }
        }
    }

    /// Returns the end of each row's text, given the ends of its codes: one number for each of
    /// `code_ends`, the first 0. The function sums over runs of codes instead of rows, because
    /// short loops of unpredictable length took three times as long.
    pub(super) fn text_ends(&self, stored: &[u8], code_ends: &[u32]) -> Vec<u32> {
        let mut ends = Vec::with_capacity(code_ends.len());
        let mut rows = code_ends.iter().map(|end| *end as usize).peekable();
        let last = code_ends.last().map_or(0, |end| *end as usize);
        let mut start = rows.peek().copied().unwrap_or_default();
        let mut is_literal = false;
        let mut before = [0; RUN_CODES + 1];
        loop {
            let end = last.min(start + RUN_CODES);
            before[0] = before[RUN_CODES];
            match self {
                Self::Eight(symbols) => {
                    symbols.sum_eight(&stored[start..end], &mut is_literal, &mut before);
                }
                Self::Twelve(symbols) => symbols.sum_twelve(stored, start..end, &mut before),
            }
            before[RUN_CODES] = before[end - start];
            while let Some(row_end) = rows.next_if(|row_end| *row_end <= end) {
                ends.push(before[row_end - start]);
            }
            if end == last {
                return ends;
            }
            start = end;
        }
    }
}

impl<const N: usize> Symbols<N> {
    fn from_table(table: &SymbolTable) -> Box<Self> {
        let mut symbols = Box::new(Self { words: [0; N], lens_bytes: [0; N] });
        for (code, symbol) in table.symbols().iter().enumerate() {
            symbols.words[code] = symbol.word();
            symbols.lens_bytes[code] = symbol.len_bytes() as u8;
        }
        symbols
    }

    /// Appends the symbol at `index`.
    fn push(&self, index: usize, text: &mut Vec<u8>) {
        let len_bytes = usize::from(self.lens_bytes[index]);
        text.extend_from_slice(&self.words[index].to_le_bytes()[..len_bytes]);
    }
}

/// Returns the number of bytes that can still be written without growing `text`.
fn spare_bytes(text: &Vec<u8>) -> usize {
    text.capacity() - text.len()
}

impl Symbols<512> {
    fn for_eight(table: &SymbolTable) -> Box<Self> {
        let mut symbols = Self::from_table(table);
        for literal in 0..256 {
            symbols.words[LITERAL + literal] = literal as u64;
            symbols.lens_bytes[LITERAL + literal] = 1;
        }
        symbols
    }

    /// Returns the place of `code` in the table, given whether it is a literal. Updates
    /// `is_literal` for the next code.
    #[inline]
    fn index(code: u8, is_literal: &mut bool) -> usize {
        let index = usize::from(code) | if *is_literal { LITERAL } else { 0 };
        *is_literal = index == usize::from(ESCAPE_CODE);
        index
    }

    /// Sums lengths: sets `before[i + 1]` to `before[0]` plus the text length of the codes up to
    /// `i`.
    fn sum_eight(&self, codes: &[u8], is_literal: &mut bool, before: &mut [u32; RUN_CODES + 1]) {
        let mut sum = before[0];
        if !*is_literal && !codes.contains(&ESCAPE_CODE) {
            for (code, before) in codes.iter().zip(&mut before[1..]) {
                sum += u32::from(self.lens_bytes[usize::from(*code)]);
                *before = sum;
            }
            return;
        }
        for (code, before) in codes.iter().zip(&mut before[1..]) {
            sum += u32::from(self.lens_bytes[Self::index(*code, is_literal)]);
            *before = sum;
        }
    }

    /// Decodes groups of codes while there is room, and returns the remaining codes, which do not
    /// begin with a literal.
    #[allow(unsafe_code, reason = "1.15 times as fast as the best safe loop, see above")]
    fn decode_eight<'a>(&self, codes: &'a [u8], text: &mut Vec<u8>) -> &'a [u8] {
        let start = text.len();
        let spare_bytes = spare_bytes(text);
        let spare = text.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        let has_room = |out: *mut u8| out.addr() - spare.addr() + GROUP_BYTES <= spare_bytes;
        let mut out = spare;
        let mut is_literal = false;
        let mut groups = codes.as_chunks::<GROUP_CODES>().0;
        while has_room(out)
            && let Some((group, behind)) = groups.split_first()
        {
            let group = u64::from_le_bytes(*group);
            let literals = Literals::from_group(group, is_literal);
            groups = behind;
            // There are two loop bodies: looking for literals in groups without any took a third of
            // the speed.
            if literals == Literals::NONE {
                for code_idx in 0..GROUP_CODES {
                    let index = usize::from((group >> (8 * code_idx)) as u8);
                    // SAFETY: the test before the group left `GROUP_BYTES` at `out`, and each code
                    // takes at most 8 of them: `lens_bytes` has no larger value.
                    out = unsafe { write_symbol(out, self.words[index], self.lens_bytes[index]) };
                }
                continue;
            }
            is_literal = literals.is_next();
            for code_idx in 0..GROUP_CODES {
                let code = usize::from((group >> (8 * code_idx)) as u8);
                let index = code | literals.index_bit(code_idx);
                // SAFETY: as in the loop above.
                out = unsafe { write_symbol(out, self.words[index], self.lens_bytes[index]) };
            }
        }
        // SAFETY: all bytes from `spare` to `out` were written, and `out` is in the spare capacity.
        unsafe { text.set_len(start + out.addr() - spare.addr()) };
        let num_left = GROUP_CODES * groups.len() + codes.len() % GROUP_CODES;
        // An escape at the end of a group is decoded again, together with its literal.
        &codes[codes.len() - num_left - usize::from(is_literal)..]
    }

    /// Decodes the last codes of less than a group, if there is room for a group, and returns the
    /// remaining codes. The checked variant would be slower for single rows. This is a function of
    /// its own because inlining it into the loop's function makes the loop slower.
    #[inline(never)]
    #[allow(unsafe_code, reason = "single rows decode 1.8 times as fast")]
    fn decode_last_eight<'a>(&self, codes: &'a [u8], text: &mut Vec<u8>) -> &'a [u8] {
        if codes.len() > GROUP_CODES || spare_bytes(text) < GROUP_BYTES {
            return codes;
        }
        let start = text.len();
        let spare = text.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        let mut out = spare;
        let mut is_literal = false;
        for code in codes {
            let index = Self::index(*code, &mut is_literal);
            // SAFETY: there are at most `GROUP_CODES` codes; the test above left 8 bytes for each.
            out = unsafe { write_symbol(out, self.words[index], self.lens_bytes[index]) };
        }
        // SAFETY: all bytes from `spare` to `out` were written, and `out` is in the spare capacity.
        unsafe { text.set_len(start + out.addr() - spare.addr()) };
        &[]
    }

    /// Decodes any number of codes with bounds checks, as the variant of the two functions above.
    fn decode_eight_checked(&self, codes: &[u8], text: &mut Vec<u8>) {
        let mut is_literal = false;
        for code in codes {
            self.push(Self::index(*code, &mut is_literal), text);
        }
    }
}

impl Symbols<4096> {
    /// Sums lengths as [`Symbols::sum_eight`] does.
    fn sum_twelve(&self, packed: &[u8], codes: Range<usize>, before: &mut [u32; RUN_CODES + 1]) {
        let mut sum = before[0];
        for (code_idx, before) in codes.zip(&mut before[1..]) {
            let code = usize::from(symbol_table::code_at(packed, code_idx));
            sum += u32::from(self.lens_bytes[code]);
            *before = sum;
        }
    }

    /// Decodes groups of codes while there is room, and returns the remaining codes.
    #[allow(unsafe_code, reason = "as for codes of 8 bits")]
    fn decode_twelve<'a>(&self, mut codes: CodeRange<'a>, text: &mut Vec<u8>) -> CodeRange<'a> {
        if codes.start % 2 == 1 && codes.start < codes.end {
            self.decode_twelve_checked(CodeRange { end: codes.start + 1, ..codes }, text);
            codes.start += 1;
        }
        let start = text.len();
        let spare_bytes = spare_bytes(text);
        let spare = text.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        let mut out = spare;
        for group in codes.stored[codes.start / 2 * 3..].as_chunks::<12>().0 {
            let is_full = out.addr() - spare.addr() + GROUP_BYTES > spare_bytes;
            if is_full || codes.start + GROUP_CODES > codes.end {
                break;
            }
            codes.start += GROUP_CODES;
            let low = u64::from_le_bytes([group[0], group[1], group[2], group[3], group[4], group[5], 0, 0]);
            let high = u64::from_le_bytes([group[6], group[7], group[8], group[9], group[10], group[11], 0, 0]);
            for half in [low, high] {
                for shift in [0, 12, 24, 36] {
                    let code = (half >> shift) as usize % 4096;
                    // SAFETY: the test above left room for 8 symbols, and each takes at most 8
                    // bytes.
                    out = unsafe { write_symbol(out, self.words[code], self.lens_bytes[code]) };
                }
            }
        }
        // SAFETY: all bytes from `spare` to `out` were written, and `out` is in the spare capacity.
        unsafe { text.set_len(start + out.addr() - spare.addr()) };
        codes
    }

    /// Decodes any number of codes with bounds checks, as the variant of
    /// [`Symbols::decode_twelve`].
    fn decode_twelve_checked(&self, codes: CodeRange<'_>, text: &mut Vec<u8>) {
        for code_idx in codes.start..codes.end {
            self.push(usize::from(symbol_table::code_at(codes.stored, code_idx)), text);
        }
    }
}

/// Writes the 8 bytes of a symbol and returns the place behind its end.
///
/// # Safety
///
/// `out` is valid for writes of 8 bytes, and `len_bytes` is at most 8.
#[inline(always)]
#[allow(unsafe_code, reason = "the store of the loops above")]
unsafe fn write_symbol(out: *mut u8, word: u64, len_bytes: u8) -> *mut u8 {
    // SAFETY: the caller promises 8 bytes at `out`; their alignment does not matter.
    unsafe { out.cast::<u64>().write_unaligned(word.to_le()) };
    // SAFETY: the place is at most one past those 8 bytes.
    unsafe { out.add(usize::from(len_bytes)) }
}

/// A mask that tells which of 8 codes are literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Literals(u16);

impl Literals {
    /// Value for a group with neither a literal nor an escape.
    pub(super) const NONE: Self = Self(0);

    /// Finds the literals of a group, given whether its first code is a literal.
    #[inline(always)]
    pub(super) fn from_group(group: u64, is_first: bool) -> Self {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        // The high bit of each byte that is 255. The multiplication below puts these bits side by
        // side.
        let escapes = ((group & LOW) + 0x0101_0101_0101_0101) & group & !LOW;
        let first = if is_first { LITERAL } else { 0 };
        if escapes == 0 && first == 0 {
            return Self::NONE;
        }
        let mask = (escapes.wrapping_mul(0x0002_0408_1020_4081) >> 56) as usize;
        Self(LITERALS[first | mask])
    }

    /// Returns the mask of the literals, one bit for each code.
    pub(super) fn mask(self) -> u8 {
        self.0 as u8
    }

    /// Returns [`LITERAL`] if code `code_idx` is a literal, else 0.
    #[inline(always)]
    pub(super) fn index_bit(self, code_idx: usize) -> usize {
        (usize::from(self.0) >> code_idx & 1) * LITERAL
    }

    /// Returns true if the first code behind the group is a literal.
    #[inline(always)]
    pub(super) fn is_next(self) -> bool {
        usize::from(self.0) & LITERAL != 0
    }
}

/// Masks of the literals of a group. The index is the mask of the bytes 255 in the group, plus
/// [`LITERAL`] if its first code is a literal. The value has [`LITERAL`] set if the first code
/// behind the group is a literal.
static LITERALS: [u16; 512] = literals();

const fn literals() -> [u16; 512] {
    let mut table = [0; 512];
    let mut key = 0;
    while key < 512 {
        let mut is_literal = key >= LITERAL;
        let mut code_idx = 0;
        while code_idx < GROUP_CODES {
            if is_literal {
                table[key] |= 1 << code_idx;
                is_literal = false;
            } else {
                is_literal = key >> code_idx & 1 == 1;
            }
            code_idx += 1;
        }
        if is_literal {
            table[key] |= LITERAL as u16;
        }
        key += 1;
    }
    table
}
