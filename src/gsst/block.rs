//! A block of rows: its writer and its reader.
//!
//! [`Block::open`] checks a block once: checksum, header, table, lengths, and one pass over the
//! codes that compares the splits. After that, the only possible error is an index out of range.
//!
//! # Sealed blocks
//!
//! A check of every code takes several times as long as decoding them. Opening a [`SealedBlock`]
//! checks the checksum and the small parts: header, symbol table, words of splits, validity and the
//! heads of packed lengths. The decoder must check the rest, as the device does
//! (`kernels/gsst_check.cu`): codes have symbols, the length of their text agrees with splits and
//! rows, and no row ends inside an escape. Nearly all of the time of opening is for the checksum.

use std::ops::Range;

use crate::decode::{CodeRange, Decoder};
use crate::encode::{EncodedRows, Parse, encode_rows};
use crate::layout::{
    self, HEADER_BYTES, Header, MAX_BLOCK_ROWS, MAX_BLOCK_TEXT_BYTES, RowFrame, SPLIT_FIRST_TILE_BIT, SPLIT_LOG2,
    SPLIT_STARTS_WITH_LITERAL, Sections, seal,
};
use crate::symbol_table::{CodeWidth, SymbolTable};
use crate::training::TrainingOptions;
use crate::{Error, Result, fault};

/// Rows of text as codes of one symbol table. `B` owns or borrows the bytes.
///
/// ```
/// use gsst::{Block, BlockOptions, write_block};
///
/// let rows = [Some(&b"http://a.example"[..]), None, Some(b""), Some(b"http://b.example")];
/// let block = Block::open(write_block(&rows, &BlockOptions::default())?)?;
/// assert_eq!((block.num_rows(), block.text_len_bytes()), (4, 32));
/// let mut text = Vec::new();
/// assert!(block.decode_row(3, &mut text)?);
/// assert_eq!(text, b"http://b.example");
/// # Ok::<(), gsst::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Block<B> {
    bytes: B,
    header: Header,
    sections: Sections,
    table: SymbolTable,
    decoder: Decoder,
    /// End of the codes of each row. One more than rows, the first 0.
    code_ends: Vec<u32>,
    /// End of the text of each row, if the block stores lengths of texts.
    text_ends: Option<Vec<u32>>,
}

/// Decoded rows, in one buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecodedRows {
    /// The text of all rows.
    pub text: Vec<u8>,
    /// End of each row in `text`. One more than rows, the first 0. Null rows are empty.
    pub offsets: Vec<u32>,
}

/// Defines what an open block and a sealed one say about themselves.
macro_rules! facts {
    ($block:ident) => {
        impl<B: AsRef<[u8]>> $block<B> {
            /// Returns the bytes of the block.
            pub fn as_bytes(&self) -> &[u8] {
                self.bytes.as_ref()
            }

            /// Returns the number of rows, nulls included.
            pub fn num_rows(&self) -> usize {
                self.header.num_rows
            }

            /// Returns the number of rows that are null.
            pub fn num_nulls(&self) -> usize {
                self.header.num_nulls
            }

            /// Returns the length of the text of all rows in the header, in bytes.
            pub fn text_len_bytes(&self) -> usize {
                self.header.text_len_bytes
            }

            /// Returns the number of code units, escapes and literals included.
            pub fn num_codes(&self) -> usize {
                self.header.num_codes
            }

            /// Returns the width of the codes.
            pub fn width(&self) -> CodeWidth {
                self.header.width
            }

            /// Returns the symbol table.
            pub fn table(&self) -> &SymbolTable {
                &self.table
            }

            /// Returns one bit per row, low bits first, 1 for a row that is not null. `None` if no
            /// row is null.
            pub fn validity(&self) -> Option<&[u8]> {
                let validity = self.sections.validity.clone();
                self.header.has_validity.then(|| &self.bytes.as_ref()[validity])
            }
        }
    };
}

facts!(Block);
facts!(SealedBlock);

impl<B: AsRef<[u8]>> Block<B> {
    /// Opens the block that fills `bytes`, and checks every part of it.
    ///
    /// The time is linear in the length of the block. For short rows it is several times the time
    /// of decoding. The memory is at most 8 bytes per row, and a block has at most 2^20 rows.
    ///
    /// # Errors
    ///
    /// [`Error::Format`], [`Error::Version`] or [`Error::Checksum`] if the bytes are not a block
    /// whose codes agree with its header and lengths.
    pub fn open(bytes: B) -> Result<Self> {
        let block = bytes.as_ref();
        let (header, sections) = Header::read(block)?;
        let table = SymbolTable::from_bytes(header.width, &block[sections.table.clone()])?;
        let decoder = Decoder::new(&table);
        let num_rows = header.num_rows;
        let num_codes = header.num_codes;
        let counts = &block[sections.code_counts.clone()];
        let code_ends = layout::unpack_ends(counts, num_rows, num_codes, "numbers of codes")?;
        let codes = &block[sections.codes.clone()];
        let scan = layout::scan(&decoder, codes, num_codes, header.split_log2, &code_ends)?;
        if scan.text_len_bytes != header.text_len_bytes {
            let reason = format!("they have {} bytes of text", scan.text_len_bytes);
            return Err(fault("codes", 0, reason));
        }
        if scan.has_escapes == header.has_no_escapes && num_codes > 0 {
            return Err(fault("codes", 0, "the flag of escapes does not fit"));
        }
        let stored = block[sections.splits.clone()].as_chunks::<4>().0;
        if !stored.iter().map(|word| u32::from_le_bytes(*word)).eq(scan.splits) {
            return Err(fault("splits", sections.splits.start, "they do not fit the codes"));
        }
        let mut block = Self { bytes, header, sections, table, decoder, code_ends, text_ends: None };
        check_validity(&block.header, &block.sections, block.as_bytes())?;
        block.check_nulls()?;
        block.text_ends = block.checked_text_ends()?;
        Ok(block)
    }

    /// Returns the stored lengths of texts as ends, after comparing them with the codes.
    fn checked_text_ends(&self) -> Result<Option<Vec<u32>>> {
        if !self.header.has_text_lengths {
            return Ok(None);
        }
        const SECTION: &str = "lengths of texts";
        let lengths = &self.bytes.as_ref()[self.sections.text_lengths.clone()];
        let num_rows = self.header.num_rows;
        let total = self.header.text_len_bytes;
        let ends = layout::unpack_ends(lengths, num_rows, total, SECTION)?;
        if ends != self.computed_text_ends(0..num_rows) {
            return Err(fault(SECTION, self.sections.text_lengths.start, "they do not fit the codes"));
        }
        Ok(Some(ends))
    }

    /// Returns the end of each row's text, computed from the codes.
    fn computed_text_ends(&self, rows: Range<usize>) -> Vec<u32> {
        self.decoder.text_ends(self.codes(), &self.code_ends[rows.start..=rows.end])
    }

    /// Checks that no null row has codes.
    fn check_nulls(&self) -> Result<()> {
        let has_codes = |row: &usize| self.is_null(*row) && !self.code_range(*row).is_empty();
        let found = if self.header.has_validity { (0..self.num_rows()).find(has_codes) } else { None };
        match found {
            Some(row) => Err(fault("validity", row / 8, format!("row {row} is null and has codes"))),
            None => Ok(()),
        }
    }

    /// Returns true if no code is an escape, so that every unit is a symbol.
    pub fn has_no_escapes(&self) -> bool {
        self.header.has_no_escapes
    }

    /// Returns the codes of all rows in stored form: one byte each, or two codes in three bytes.
    pub fn codes(&self) -> &[u8] {
        &self.bytes.as_ref()[self.sections.codes.clone()]
    }

    /// Returns the number of code units of each split. The last split may have fewer.
    pub fn split_codes(&self) -> usize {
        1 << self.header.split_log2
    }

    /// Returns the words of the splits, as drawn in [`layout`].
    pub fn splits(&self) -> impl ExactSizeIterator<Item = u32> {
        let words = self.bytes.as_ref()[self.sections.splits.clone()].as_chunks::<4>().0;
        words.iter().map(|word| u32::from_le_bytes(*word))
    }

    /// Returns the end of the codes of each row, in code units. One more than rows, the first 0.
    pub fn code_ends(&self) -> &[u32] {
        &self.code_ends
    }

    /// Returns the end of the text of each row. One more than rows, the first 0. `None` if the
    /// block was written without lengths of texts.
    pub fn text_ends(&self) -> Option<&[u32]> {
        self.text_ends.as_deref()
    }

    /// Returns true if row `row` is null.
    ///
    /// # Panics
    ///
    /// Panics if `row` is not below [`Block::num_rows`] and there are nulls.
    pub fn is_null(&self, row: usize) -> bool {
        self.validity().is_some_and(|bits| bits[row / 8] >> (row % 8) & 1 == 0)
    }

    /// Returns the range of the code units of row `row`.
    ///
    /// # Panics
    ///
    /// Panics if `row` is not below [`Block::num_rows`].
    pub(crate) fn code_range(&self, row: usize) -> Range<usize> {
        self.code_ends[row] as usize..self.code_ends[row + 1] as usize
    }

    /// Appends the text of row `row` to `text`, without decoding other rows. Returns true if the
    /// row is not null.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if there is no such row.
    pub fn decode_row(&self, row: usize, text: &mut Vec<u8>) -> Result<bool> {
        self.check_rows(row..row + 1)?;
        self.append(self.code_range(row), text);
        Ok(!self.is_null(row))
    }

    /// Decodes a range of rows.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if the range ends behind the last row.
    pub fn decode_rows(&self, rows: Range<usize>) -> Result<DecodedRows> {
        self.check_rows(rows.clone())?;
        Ok(self.decode_checked_rows(rows))
    }

    /// Decodes all rows.
    pub fn decode_all(&self) -> DecodedRows {
        self.decode_checked_rows(0..self.num_rows())
    }

    fn decode_checked_rows(&self, rows: Range<usize>) -> DecodedRows {
        let offsets = match &self.text_ends {
            Some(ends) => {
                let ends = &ends[rows.start..=rows.end];
                ends.iter().map(|end| end - ends[0]).collect()
            }
            None => self.computed_text_ends(rows.clone()),
        };
        let codes = self.code_ends[rows.start] as usize..self.code_ends[rows.end] as usize;
        let len_bytes = offsets.last().map_or(0, |end| *end as usize);
        let mut text = Vec::new();
        self.decoder.decode(self.range(codes), len_bytes, &mut text);
        DecodedRows { text, offsets }
    }

    /// Appends the text of all rows to `text`.
    pub fn decode_text(&self, text: &mut Vec<u8>) {
        self.decoder.decode(self.range(0..self.num_codes()), self.text_len_bytes(), text);
    }

    /// Decodes some rows, in the given order.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if one of the rows does not exist.
    pub fn decode_selected(&self, rows: &[u32]) -> Result<DecodedRows> {
        let mut decoded = DecodedRows { text: Vec::new(), offsets: vec![0] };
        decoded.offsets.reserve(rows.len());
        for &row in rows {
            let row = row as usize;
            self.check_rows(row..row + 1)?;
            self.append(self.code_range(row), &mut decoded.text);
            let end = u32::try_from(decoded.text.len()).map_err(|_| Error::Capacity {
                what: "text of selected rows",
                requested: decoded.text.len() as u64,
                limit: u64::from(u32::MAX),
                knob: "the number of calls",
            })?;
            decoded.offsets.push(end);
        }
        Ok(decoded)
    }

    pub(super) fn range(&self, codes: Range<usize>) -> CodeRange<'_> {
        CodeRange { stored: self.codes(), start: codes.start, end: codes.end }
    }

    /// Appends the text of a few codes.
    pub(super) fn append(&self, codes: Range<usize>, text: &mut Vec<u8>) {
        let max_bytes = 8 * codes.len();
        self.decoder.decode(self.range(codes), max_bytes, text);
    }

    fn check_rows(&self, rows: Range<usize>) -> Result<()> {
        if rows.start <= rows.end && rows.end <= self.num_rows() {
            return Ok(());
        }
        let got = rows.start.max(rows.end.saturating_sub(1)) as u64;
        Err(Error::OutOfRange { what: "row", got, len: self.num_rows() as u64 })
    }
}

/// Checks that the number of nulls equals the header's, and that no bit is set behind the last row.
fn check_validity(header: &Header, sections: &Sections, block: &[u8]) -> Result<()> {
    if !header.has_validity {
        return Ok(());
    }
    let bits = &block[sections.validity.clone()];
    let num_rows = header.num_rows;
    let num_valid: usize = bits.iter().map(|byte| byte.count_ones() as usize).sum();
    let has_tail = !num_rows.is_multiple_of(8) && bits.last().is_some_and(|last| last >> (num_rows % 8) != 0);
    if has_tail || num_valid + header.num_nulls != num_rows {
        return Err(fault("validity", sections.validity.start, "it has other nulls"));
    }
    Ok(())
}

/// A block whose header and small sections are checked, but not its codes. `B` owns or borrows the
/// bytes.
///
/// ```
/// use gsst::{Block, BlockOptions, SealedBlock, write_block};
///
/// let bytes = write_block(&[Some(&b"a"[..]), None], &BlockOptions::default())?;
/// let sealed = SealedBlock::open(&bytes)?;
/// assert_eq!((sealed.num_rows(), sealed.text_len_bytes()), (2, 1));
/// # Ok::<(), gsst::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SealedBlock<B> {
    bytes: B,
    header: Header,
    sections: Sections,
    table: SymbolTable,
    frames: RowFrames,
}

/// Frames of packed lengths, one for every 128 rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowFrames {
    /// Frames of the numbers of codes.
    pub code_counts: Vec<RowFrame>,
    /// Frames of the lengths of texts. Empty if the block does not store them.
    pub text_lengths: Vec<RowFrame>,
}

impl<B: AsRef<[u8]>> SealedBlock<B> {
    /// Opens the block that fills `bytes`, without checking individual codes and lengths.
    ///
    /// # Errors
    ///
    /// [`Error::Format`], [`Error::Version`] or
    /// [`Error::Checksum`], as for [`Block::open`], which finds more
    /// faults.
    pub fn open(bytes: B) -> Result<Self> {
        let block = bytes.as_ref();
        let (header, sections) = Header::read(block)?;
        let table = SymbolTable::from_bytes(header.width, &block[sections.table.clone()])?;
        check_validity(&header, &sections, block)?;
        check_splits(&header, &sections, block)?;
        let frames = frames(&header, &sections, block)?;
        Ok(Self { bytes, header, sections, table, frames })
    }

    /// Returns true if the text must be ASCII: all symbols are ASCII, and there are no escapes.
    pub fn is_ascii(&self) -> bool {
        let is_ascii = |symbol: &crate::Symbol| symbol.as_bytes().is_ascii();
        self.header.has_no_escapes && self.table.symbols().iter().all(is_ascii)
    }

    /// Returns log2 of the number of code units of each split. The last split may have fewer.
    pub fn split_codes_log2(&self) -> u32 {
        u32::from(self.header.split_log2)
    }

    /// Returns the number of splits.
    pub fn num_splits(&self) -> usize {
        self.header.num_splits()
    }

    /// Returns the offset of the words of the splits in the block.
    pub fn splits_offset(&self) -> usize {
        self.sections.splits.start
    }

    /// Returns the frames of packed lengths.
    pub fn frames(&self) -> &RowFrames {
        &self.frames
    }

    /// Returns true if the block stores lengths of texts.
    pub fn has_text_lengths(&self) -> bool {
        self.header.has_text_lengths
    }

    /// Returns the offset of the validity in the block, or `None` if no row is null.
    pub fn validity_offset(&self) -> Option<usize> {
        self.header.has_validity.then_some(self.sections.validity.start)
    }
}

impl<'a> SealedBlock<&'a [u8]> {
    /// Borrows an open block, without checking it again.
    pub fn from_valid<B: AsRef<[u8]>>(block: &'a Block<B>) -> Self {
        let header = block.header.clone();
        let sections = block.sections.clone();
        let bytes = block.as_bytes();
        // Cannot fail: the lengths of an open block were read from these frames.
        let frames = frames(&header, &sections, bytes).unwrap_or_default();
        Self { bytes, header, sections, table: block.table.clone(), frames }
    }
}

fn frames(header: &Header, sections: &Sections, block: &[u8]) -> Result<RowFrames> {
    let read = |section: &Range<usize>, name| {
        let packed = &block[section.clone()];
        layout::frames(packed, section.start, header.num_rows, name)
    };
    let code_counts = read(&sections.code_counts, "numbers of codes")?;
    let text_lengths =
        if header.has_text_lengths { read(&sections.text_lengths, "lengths of texts")? } else { Vec::new() };
    Ok(RowFrames { code_counts, text_lengths })
}

/// Checks the words of the splits: texts are in order and inside the block's text, and the bits for
/// escapes agree with the header.
fn check_splits(header: &Header, sections: &Sections, block: &[u8]) -> Result<()> {
    let words = block[sections.splits.clone()].as_chunks::<4>().0;
    let wrong = |reason: &str| Err(fault("splits", sections.splits.start, reason));
    let mut before = 0;
    let mut has_escapes = false;
    for (split_idx, word) in words.iter().enumerate() {
        let word = u32::from_le_bytes(*word);
        let text_at = word & (SPLIT_STARTS_WITH_LITERAL - 1);
        if text_at < before || text_at as usize > header.text_len_bytes {
            return wrong("their texts are not in order");
        }
        if split_idx == 0 && (text_at != 0 || word & SPLIT_STARTS_WITH_LITERAL != 0) {
            return wrong("the first one does not start with the text");
        }
        before = text_at;
        has_escapes |= word >> SPLIT_FIRST_TILE_BIT != 0 || word & SPLIT_STARTS_WITH_LITERAL != 0;
    }
    if header.num_codes == 0 && header.text_len_bytes > 0 {
        return Err(fault("codes", 0, "there are none, but text"));
    }
    if header.num_codes > 0 && has_escapes == header.has_no_escapes {
        return Err(fault("codes", 0, "the flag of escapes does not fit"));
    }
    let last = block[sections.codes.clone()].last();
    let is_half_used = header.width == CodeWidth::Twelve && header.num_codes % 2 == 1;
    if is_half_used && last.is_some_and(|last| last >> 4 != 0) {
        let offset = sections.codes.end;
        return Err(fault("codes", offset, "half a byte behind the codes is not 0"));
    }
    Ok(())
}

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
    let scan = layout::scan(&decoder, codes, *num_codes, split_log2, row_ends)?;
    let stored_table = table.to_bytes();
    let mut code_counts = Vec::new();
    let starts = std::iter::once(&0).chain(row_ends);
    layout::pack(row_ends.iter().zip(starts).map(|(end, start)| end - start), &mut code_counts);
    let mut text_lengths = Vec::new();
    if options.has_text_lengths {
        let lengths = rows.iter().map(|row| row.map_or(0, |row| row.len() as u32));
        layout::pack(lengths, &mut text_lengths);
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
