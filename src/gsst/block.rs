//! A block of rows: reading it.
//!
//! A [`Block`] is checked once, when it is opened: checksum, header, table, lengths, and one pass
//! over the codes that compares the splits. After that nothing about it can fail but an index.

use std::ops::Range;

use crate::error::{Error, Result};

use super::decode::{CodeRange, Decoder};
use super::layout::{Header, Sections, fault};
use super::packed_lengths;
use super::splits;
use super::symbol_table::{CodeWidth, SymbolTable};

/// Rows of text as codes of one symbol table; `B` owns or borrows its bytes.
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
/// # Ok::<(), crate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Block<B> {
    bytes: B,
    header: Header,
    sections: Sections,
    table: SymbolTable,
    decoder: Decoder,
    /// Where the codes of each row end; one more than rows, the first 0.
    code_ends: Vec<u32>,
    /// The same for texts, where the block has their lengths.
    text_ends: Option<Vec<u32>>,
}

/// Decoded rows, one behind the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecodedRows {
    /// The text of all rows.
    pub text: Vec<u8>,
    /// Where each row ends in `text`; one more than rows, the first 0. Null rows are empty.
    pub offsets: Vec<u32>,
}

impl<B: AsRef<[u8]>> Block<B> {
    /// Opens the block that is all of `bytes` and checks every part of it.
    ///
    /// Takes time linear in the length of the block, for short rows several times that of decoding
    /// it, and memory of at most 8 bytes per row, of which a block has at most 2^20.
    ///
    /// # Errors
    ///
    /// [`Error::Format`], [`Error::Version`] or [`Error::Checksum`] where the bytes are not a block
    /// that decodes to what it says.
    pub fn open(bytes: B) -> Result<Self> {
        let block = bytes.as_ref();
        let (header, sections) = Header::read(block)?;
        let table = SymbolTable::from_bytes(header.width, &block[sections.table.clone()])?;
        let decoder = Decoder::new(&table);
        let (num_rows, num_codes) = (header.num_rows, header.num_codes);
        let counts = &block[sections.code_counts.clone()];
        let code_ends =
            packed_lengths::unpack_ends(counts, num_rows, num_codes, "numbers of codes")?;
        let codes = &block[sections.codes.clone()];
        let scan = splits::scan(&decoder, codes, num_codes, header.split_log2, &code_ends)?;
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
        let mut block =
            Self { bytes, header, sections, table, decoder, code_ends, text_ends: None };
        check_validity(&block.header, &block.sections, block.as_bytes())?;
        block.check_nulls()?;
        block.text_ends = block.checked_text_ends()?;
        Ok(block)
    }

    /// The stored lengths of texts as ends, after comparing them with the codes.
    fn checked_text_ends(&self) -> Result<Option<Vec<u32>>> {
        if !self.header.has_text_lengths {
            return Ok(None);
        }
        const SECTION: &str = "lengths of texts";
        let lengths = &self.bytes.as_ref()[self.sections.text_lengths.clone()];
        let (num_rows, total) = (self.header.num_rows, self.header.text_len_bytes);
        let ends = packed_lengths::unpack_ends(lengths, num_rows, total, SECTION)?;
        if ends != self.computed_text_ends(0..num_rows) {
            return Err(fault(
                SECTION,
                self.sections.text_lengths.start,
                "they do not fit the codes",
            ));
        }
        Ok(Some(ends))
    }

    /// Where the text of each row ends, from the codes.
    fn computed_text_ends(&self, rows: Range<usize>) -> Vec<u32> {
        self.decoder.text_ends(self.codes(), &self.code_ends[rows.start..=rows.end])
    }

    /// Whether no null row has codes.
    fn check_nulls(&self) -> Result<()> {
        let has_codes = |row: &usize| self.is_null(*row) && !self.code_range(*row).is_empty();
        let found = match self.header.has_validity {
            true => (0..self.num_rows()).find(has_codes),
            false => None,
        };
        match found {
            Some(row) => {
                Err(fault("validity", row / 8, format!("row {row} is null and has codes")))
            }
            None => Ok(()),
        }
    }

    /// What it is made of.
    pub(super) fn parts(&self) -> (&Header, &Sections, &SymbolTable) {
        (&self.header, &self.sections, &self.table)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Number of rows, nulls included.
    pub fn num_rows(&self) -> usize {
        self.header.num_rows
    }

    /// Number of rows that are null.
    pub fn num_nulls(&self) -> usize {
        self.header.num_nulls
    }

    /// Length of the text of all rows, in bytes.
    pub fn text_len_bytes(&self) -> usize {
        self.header.text_len_bytes
    }

    /// Number of code units, escapes and literals included.
    pub fn num_codes(&self) -> usize {
        self.header.num_codes
    }

    /// Width of its codes.
    pub fn width(&self) -> CodeWidth {
        self.header.width
    }

    /// Whether no code is an escape, so that every unit is a symbol.
    pub fn has_no_escapes(&self) -> bool {
        self.header.has_no_escapes
    }

    /// Its symbols.
    pub fn table(&self) -> &SymbolTable {
        &self.table
    }

    /// The codes of all rows as stored: a byte each, or two in three bytes.
    pub fn codes(&self) -> &[u8] {
        &self.bytes.as_ref()[self.sections.codes.clone()]
    }

    /// Code units of a split, the last one excepted.
    pub fn split_codes(&self) -> usize {
        1 << self.header.split_log2
    }

    /// The words of the splits, as drawn in [`layout`](super::layout).
    pub fn splits(&self) -> impl ExactSizeIterator<Item = u32> {
        let words = self.bytes.as_ref()[self.sections.splits.clone()].as_chunks::<4>().0;
        words.iter().map(|word| u32::from_le_bytes(*word))
    }

    /// Where the codes of each row end, in code units; one more than rows, the first 0.
    pub fn code_ends(&self) -> &[u32] {
        &self.code_ends
    }

    /// Where the text of each row ends; one more than rows, the first 0. `None` where the block was
    /// written without lengths of texts.
    pub fn text_ends(&self) -> Option<&[u32]> {
        self.text_ends.as_deref()
    }

    /// One bit per row, low bits first, 1: not null. `None` where no row is null.
    pub fn validity(&self) -> Option<&[u8]> {
        let has_validity = self.header.has_validity;
        has_validity.then(|| &self.bytes.as_ref()[self.sections.validity.clone()])
    }

    /// Whether row `row` is null.
    ///
    /// # Panics
    ///
    /// Where `row` is not below [`Block::num_rows`] and there are nulls.
    pub fn is_null(&self, row: usize) -> bool {
        self.validity().is_some_and(|bits| bits[row / 8] >> (row % 8) & 1 == 0)
    }

    /// The code units of row `row`.
    ///
    /// # Panics
    ///
    /// Where `row` is not below [`Block::num_rows`].
    pub fn code_range(&self, row: usize) -> Range<usize> {
        self.code_ends[row] as usize..self.code_ends[row + 1] as usize
    }

    /// Appends the text of row `row` to `text`, without decoding another; whether it is not null.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] where there is no such row.
    pub fn decode_row(&self, row: usize, text: &mut Vec<u8>) -> Result<bool> {
        self.check_rows(row..row + 1)?;
        self.append(self.code_range(row), text);
        Ok(!self.is_null(row))
    }

    /// Decodes the rows of a range.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] where it ends behind the last row.
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

    /// Decodes some rows, in the order given.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] where one of them does not exist.
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

    /// Appends the text of few codes.
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

/// Whether there are as many nulls as the header says, and no bit behind the last row.
pub(super) fn check_validity(header: &Header, sections: &Sections, block: &[u8]) -> Result<()> {
    if !header.has_validity {
        return Ok(());
    }
    let bits = &block[sections.validity.clone()];
    let num_rows = header.num_rows;
    let num_valid: usize = bits.iter().map(|byte| byte.count_ones() as usize).sum();
    let has_tail =
        !num_rows.is_multiple_of(8) && bits.last().is_some_and(|last| last >> (num_rows % 8) != 0);
    if has_tail || num_valid + header.num_nulls != num_rows {
        return Err(fault("validity", sections.validity.start, "it has other nulls"));
    }
    Ok(())
}
