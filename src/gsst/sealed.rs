//! A block whose codes are not checked yet.
//!
//! [`Block::open`] checks every code, which takes several times as long as decoding them. Opening a
//! [`SealedBlock`] checks the checksum and the small parts: header, symbol table, words of splits,
//! validity and the heads of packed lengths. The decoder must check the rest, as the device does
//! (`kernels/gsst_check.cu`): codes have symbols, the length of their text agrees with splits and
//! rows, and no row ends inside an escape.
//!
//! Opening takes about 0.1 s per GiB of stored bytes, nearly all of it for the checksum.

use std::ops::Range;

use crate::error::{Result, fault};

use super::block::{Block, check_validity};
use super::layout::{Header, SPLIT_FIRST_TILE_BIT, SPLIT_STARTS_WITH_LITERAL, Sections};
use super::packed_lengths::{self, RowFrame};
use super::symbol_table::{CodeWidth, SymbolTable};

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
    /// [`Error::Format`](crate::Error::Format), [`Error::Version`](crate::Error::Version) or
    /// [`Error::Checksum`](crate::Error::Checksum), as for [`Block::open`], which finds more
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

    /// Returns the length of the text of all rows in the header, in bytes. The codes are not
    /// checked.
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

    /// Returns true if the text must be ASCII: all symbols are ASCII, and there are no escapes.
    pub fn is_ascii(&self) -> bool {
        let is_ascii = |symbol: &super::Symbol| symbol.as_bytes().is_ascii();
        self.header.has_no_escapes && self.table.symbols().iter().all(is_ascii)
    }

    /// Returns the symbol table.
    pub fn table(&self) -> &SymbolTable {
        &self.table
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

    /// Returns one bit per row, low bits first, 1 for a row that is not null. `None` if no row is
    /// null.
    pub fn validity(&self) -> Option<&[u8]> {
        let has_validity = self.header.has_validity;
        has_validity.then(|| &self.bytes.as_ref()[self.sections.validity.clone()])
    }

    /// Returns the offset of the validity in the block, or `None` if no row is null.
    pub fn validity_offset(&self) -> Option<usize> {
        self.header.has_validity.then_some(self.sections.validity.start)
    }
}

impl<'a> SealedBlock<&'a [u8]> {
    /// Borrows an open block, without checking it again.
    pub fn from_valid<B: AsRef<[u8]>>(block: &'a Block<B>) -> Self {
        let (header, sections, table) = block.parts();
        let bytes = block.as_bytes();
        // Cannot fail: the lengths of an open block were read from these frames.
        let frames = frames(header, sections, bytes).unwrap_or_default();
        let (header, sections) = (header.clone(), sections.clone());
        Self { bytes, header, sections, table: table.clone(), frames }
    }
}

fn frames(header: &Header, sections: &Sections, block: &[u8]) -> Result<RowFrames> {
    let read = |section: &Range<usize>, name| {
        let packed = &block[section.clone()];
        packed_lengths::frames(packed, section.start, header.num_rows, name)
    };
    let code_counts = read(&sections.code_counts, "numbers of codes")?;
    let text_lengths = if header.has_text_lengths {
        read(&sections.text_lengths, "lengths of texts")?
    } else {
        Vec::new()
    };
    Ok(RowFrames { code_counts, text_lengths })
}

/// Checks the words of the splits: texts are in order and inside the block's text, and the bits for
/// escapes agree with the header.
fn check_splits(header: &Header, sections: &Sections, block: &[u8]) -> Result<()> {
    let words = block[sections.splits.clone()].as_chunks::<4>().0;
    let wrong = |reason: &str| Err(fault("splits", sections.splits.start, reason));
    let (mut before, mut has_escapes) = (0, false);
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
