//! The words of a block's splits, computed from its codes in one pass.
//!
//! The encoder stores these words. The reader compares the words of an opened block with its codes,
//! before anything relies on them.

use crate::error::{Result, fault};

use super::decode::{Decoder, LITERAL, Literals, Symbols};
use super::layout::{SPLIT_FIRST_TILE_BIT, SPLIT_STARTS_WITH_LITERAL, TILE_CODES};
use super::symbol_table::ESCAPE_CODE;
use super::twelve;

/// Result of a pass over the codes.
#[derive(Debug)]
pub(super) struct CodeScan {
    /// Words of the splits.
    pub(super) splits: Vec<u32>,
    pub(super) text_len_bytes: usize,
    pub(super) has_escapes: bool,
}

/// Scans `num_codes` codes.
///
/// # Errors
///
/// [`Error::Format`](crate::error::Error::Format) if a code has no symbol, an escape is the last
/// code, or one of `row_ends` lies between an escape and its literal.
pub(super) fn scan(
    decoder: &Decoder,
    stored: &[u8],
    num_codes: usize,
    split_log2: u8,
    row_ends: &[u32],
) -> Result<CodeScan> {
    let mut scan = CodeScan {
        splits: Vec::with_capacity(num_codes.div_ceil(1 << split_log2)),
        text_len_bytes: 0,
        has_escapes: false,
    };
    match decoder {
        Decoder::Eight(symbols) => scan.eight(symbols, stored, split_log2, row_ends)?,
        Decoder::Twelve(symbols) => scan.twelve(symbols, stored, num_codes, split_log2)?,
    }
    Ok(scan)
}

impl CodeScan {
    fn eight(
        &mut self,
        symbols: &Symbols<512>,
        codes: &[u8],
        split_log2: u8,
        row_ends: &[u32],
    ) -> Result<()> {
        let lens = counted_lens(symbols);
        let mut literals = vec![0; codes.len().div_ceil(8)];
        let mut is_literal = false;
        for (split_idx, split) in codes.chunks(1 << split_log2).enumerate() {
            let mut word = self.text_len_bytes as u32;
            word |= if is_literal { SPLIT_STARTS_WITH_LITERAL } else { 0 };
            for (tile_idx, tile) in split.chunks(TILE_CODES).enumerate() {
                let start = (split_idx << split_log2) + tile_idx * TILE_CODES;
                let literals = &mut literals[start / 8..];
                let (sum, has_escape) = scan_tile(&lens, tile, &mut is_literal, literals);
                if has_escape {
                    word |= 1 << (SPLIT_FIRST_TILE_BIT as usize + tile_idx);
                    self.has_escapes = true;
                }
                self.add(sum, start)?;
            }
            self.splits.push(word);
        }
        if is_literal {
            return Err(fault("codes", codes.len(), "the last code is an escape"));
        }
        let starts_with_literal = |end: &&u32| {
            let end = **end as usize;
            end < codes.len() && literals[end / 8] >> (end % 8) & 1 == 1
        };
        match row_ends.iter().find(starts_with_literal).filter(|_| self.has_escapes) {
            Some(end) => Err(fault("codes", *end as usize, "a row ends inside an escape")),
            None => Ok(()),
        }
    }

    fn twelve(
        &mut self,
        symbols: &Symbols<4096>,
        packed: &[u8],
        num_codes: usize,
        split_log2: u8,
    ) -> Result<()> {
        let lens = counted_lens(symbols);
        for start in (0..num_codes).step_by(1 << split_log2) {
            self.splits.push(self.text_len_bytes as u32);
            let end = num_codes.min(start + (1 << split_log2));
            // The sum of a tile fits below [`UNKNOWN`]. The sum of a split may not.
            for tile in (start..end).step_by(TILE_CODES) {
                let codes = tile..end.min(tile + TILE_CODES);
                let len = |code_idx| lens[usize::from(twelve::code_at(packed, code_idx))];
                self.add(codes.map(len).sum(), tile)?;
            }
        }
        if num_codes % 2 == 1 && packed.last().is_some_and(|last| last >> 4 != 0) {
            return Err(fault("codes", packed.len(), "half a byte behind the codes is not 0"));
        }
        Ok(())
    }

    /// Adds the sum of a tile's lengths.
    fn add(&mut self, sum: u32, start: usize) -> Result<()> {
        if sum >= UNKNOWN {
            return Err(fault("codes", start, "a code that has no symbol"));
        }
        self.text_len_bytes += sum as usize;
        Ok(())
    }
}

/// Length of a code without a symbol: more than the sum of a tile's lengths.
const UNKNOWN: u32 = 1 << 16;
const _: () = assert!(8 * TILE_CODES < UNKNOWN as usize);

/// Returns the lengths by code, with [`UNKNOWN`] for a code without a symbol and 0 for an escape.
fn counted_lens<const N: usize>(symbols: &Symbols<N>) -> [u32; N] {
    let mut lens = symbols.lens_bytes.map(|len| if len == 0 { UNKNOWN } else { u32::from(len) });
    if N == 512 {
        lens[usize::from(ESCAPE_CODE)] = 0;
    }
    lens
}

/// Returns the sum of the lengths of a tile, and true if the tile holds an escape or a literal.
/// Sets the bits of its literals in `literals`, which begins with the tile.
fn scan_tile(
    lens: &[u32; 512],
    tile: &[u8],
    is_literal: &mut bool,
    literals: &mut [u8],
) -> (u32, bool) {
    let (groups, rest) = tile.as_chunks::<8>();
    let (mut sum, mut has_escape) = (0, false);
    for (group, literals) in groups.iter().zip(literals.iter_mut()) {
        let found = Literals::from_group(u64::from_le_bytes(*group), *is_literal);
        if found == Literals::NONE {
            sum += group.iter().map(|code| lens[usize::from(*code)]).sum::<u32>();
            continue;
        }
        has_escape = true;
        *literals = found.mask();
        *is_literal = found.is_next();
        sum += (0..8).map(|i| lens[usize::from(group[i]) | found.index_bit(i)]).sum::<u32>();
    }
    for (code_idx, code) in rest.iter().enumerate() {
        let index = usize::from(*code) | if *is_literal { LITERAL } else { 0 };
        has_escape |= *is_literal || *code == ESCAPE_CODE;
        if *is_literal && let Some(literals) = literals.get_mut(groups.len()) {
            *literals |= 1 << code_idx;
        }
        *is_literal = index == usize::from(ESCAPE_CODE);
        sum += lens[index];
    }
    (sum, has_escape)
}
