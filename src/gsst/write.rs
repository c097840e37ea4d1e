//! The writer of a block of rows.

use crate::error::{Error, Result};

use super::decode::Decoder;
use super::encode::{EncodedRows, Parse, encode_rows};
use super::layout::{HEADER_BYTES, Header, MAX_BLOCK_ROWS, MAX_BLOCK_TEXT_BYTES, SPLIT_LOG2, seal};
use crate::splits;
use crate::symbol_table::{CodeWidth, SymbolTable};
use crate::training::TrainingOptions;

/// Options for writing a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockOptions {
    /// Width of the codes.
    pub width: CodeWidth,
    /// Method that cuts rows into symbols.
    pub parse: Parse,
    /// Options for training the symbol table.
    pub training: TrainingOptions,
    /// Code units of a split: 512, 1,024, 2,048 or 4,096.
    pub split_codes: usize,
    /// True to store the lengths of texts. They cost 3 % on short rows, and save the pass over the
    /// codes that computes offsets.
    pub has_text_lengths: bool,
}

impl BlockOptions {
    /// Returns the default options: greedy parse, splits of 4,096 codes, stored lengths of texts.
    pub fn new(width: CodeWidth) -> Self {
        Self {
            width,
            parse: Parse::Greedy,
            training: TrainingOptions::new(width),
            split_codes: 4096,
            has_text_lengths: true,
        }
    }
}

impl Default for BlockOptions {
    fn default() -> Self {
        Self::new(CodeWidth::Eight)
    }
}

/// Returns how many of the first `rows` fit into one block: at least one, unless there are none.
pub fn num_rows_that_fit(rows: &[Option<&[u8]>]) -> usize {
    let mut len_bytes = 0;
    let fits = |row: &&Option<&[u8]>| {
        len_bytes += row.map_or(0, <[u8]>::len);
        len_bytes <= MAX_BLOCK_TEXT_BYTES
    };
    let num_rows = rows.iter().take(MAX_BLOCK_ROWS).take_while(fits).count();
    num_rows.max(1).min(rows.len())
}

/// Writes a block of `rows` (`None` is null), with a table trained on them.
///
/// # Errors
///
/// The errors of [`write_block_with`].
pub fn write_block(rows: &[Option<&[u8]>], options: &BlockOptions) -> Result<Vec<u8>> {
    check_size(rows)?;
    let training = TrainingOptions { parse: options.parse, ..options.training };
    let table = SymbolTable::train(options.width, rows, &training);
    write_block_with(&table, rows, options)
}

/// Writes a block of `rows` (`None` is null) with `table`, which may have been trained on other
/// rows. The width of the table applies, not that of the options.
///
/// # Errors
///
/// [`Error::Capacity`] if there are more than 2^20 rows or 2^23 bytes of text, see
/// [`num_rows_that_fit`]. [`Error::InvalidArgument`] if the size of splits is not allowed, or if
/// codes have 12 bits and a byte of the rows has no symbol.
pub fn write_block_with(table: &SymbolTable, rows: &[Option<&[u8]>], options: &BlockOptions) -> Result<Vec<u8>> {
    check_size(rows)?;
    let split_log2 = split_log2(options.split_codes)?;
    let encoded = encode_rows(table, rows, options.parse)?;
    finish(table, rows, options, split_log2, &encoded)
}

fn finish(
    table: &SymbolTable,
    rows: &[Option<&[u8]>],
    options: &BlockOptions,
    split_log2: u8,
    encoded: &EncodedRows,
) -> Result<Vec<u8>> {
    let decoder = Decoder::new(table);
    let EncodedRows { codes, num_codes, row_ends } = encoded;
    let scan = splits::scan(&decoder, codes, *num_codes, split_log2, row_ends)?;
    let stored_table = table.to_bytes();
    let mut code_counts = Vec::new();
    let starts = std::iter::once(&0).chain(row_ends);
    splits::pack(row_ends.iter().zip(starts).map(|(end, start)| end - start), &mut code_counts);
    let mut text_lengths = Vec::new();
    if options.has_text_lengths {
        let lengths = rows.iter().map(|row| row.map_or(0, |row| row.len() as u32));
        splits::pack(lengths, &mut text_lengths);
    }
    let num_nulls = rows.iter().filter(|row| row.is_none()).count();
    let header = Header {
        width: table.width(),
        has_no_escapes: !scan.has_escapes,
        has_text_lengths: options.has_text_lengths,
        has_validity: num_nulls > 0,
        split_log2,
        num_rows: rows.len(),
        num_codes: *num_codes,
        text_len_bytes: scan.text_len_bytes,
        num_nulls,
        table_len_bytes: stored_table.len(),
        code_counts_len_bytes: code_counts.len(),
        text_lengths_len_bytes: text_lengths.len(),
    };
    let sections = header.sections();
    let mut block = vec![0; sections.end];
    block[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    block[sections.codes].copy_from_slice(codes);
    for (stored, word) in block[sections.splits].as_chunks_mut().0.iter_mut().zip(&scan.splits) {
        *stored = word.to_le_bytes();
    }
    block[sections.table].copy_from_slice(&stored_table);
    block[sections.code_counts].copy_from_slice(&code_counts);
    block[sections.text_lengths].copy_from_slice(&text_lengths);
    if num_nulls > 0 {
        let validity = &mut block[sections.validity];
        for (row, _) in rows.iter().enumerate().filter(|(_, row)| row.is_some()) {
            validity[row / 8] |= 1 << (row % 8);
        }
    }
    seal(&mut block);
    Ok(block)
}

fn check_size(rows: &[Option<&[u8]>]) -> Result<()> {
    let text_len_bytes: usize = rows.iter().flatten().map(|row| row.len()).sum();
    let sizes = [
        ("rows of a GSST block", rows.len(), MAX_BLOCK_ROWS),
        ("text of a GSST block", text_len_bytes, MAX_BLOCK_TEXT_BYTES),
    ];
    match sizes.into_iter().find(|(_, requested, limit)| requested > limit) {
        Some((what, requested, limit)) => Err(Error::Capacity {
            what,
            requested: requested as u64,
            limit: limit as u64,
            knob: "the number of blocks",
        }),
        None => Ok(()),
    }
}

fn split_log2(split_codes: usize) -> Result<u8> {
    let log2 = split_codes.checked_ilog2().map_or(0, |log2| log2 as u8);
    if split_codes.is_power_of_two() && SPLIT_LOG2.contains(&log2) {
        return Ok(log2);
    }
    Err(Error::InvalidArgument {
        name: "split_codes",
        got: split_codes.to_string(),
        allowed: "512, 1024, 2048 or 4096".to_owned(),
    })
}
