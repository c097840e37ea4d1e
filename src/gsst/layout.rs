//! The bytes of a block: its header and the place of each section.
//!
//! ```text
//! offset  bytes
//!      0      4  magic "GSST"
//!      4      4  CRC32C of all bytes behind this field
//!      8      4  length of the block, header included
//!     12      1  version, 1
//!     13      1  bits of a code, 8 or 12
//!     14      1  flags: 1 no escapes, 2 lengths of texts, 4 validity
//!     15      1  log2 of the codes of a split, 9 to 12
//!     16      4  number of rows, nulls included, at most 2^20
//!     20      4  number of codes, escapes and literals included
//!     24      4  length of all texts, at most 2^23
//!     28      4  number of nulls
//!     32      4  length of the symbol table
//!     36      4  length of the packed numbers of codes per row
//!     40      4  length of the packed lengths of texts, 0 without them
//!     44     20  0
//!     64         codes, then zeros up to a multiple of 16
//!                splits, 4 bytes each: one for every 512 to 4,096 codes
//!                symbol table                              (symbol_table)
//!                number of codes of each row               (packed_lengths)
//!                length of the text of each row            (packed_lengths)
//!                validity, one bit per row, 1: not null
//!                zeros up to a multiple of 16
//! ```
//!
//! All numbers are little-endian. Blocks are multiples of 16 bytes long. So if a file of blocks
//! starts on a 16-byte boundary, all codes do, and the file can go to a device unchanged.
//!
//! A split is the unit that one warp decodes on its own. The code units of split `i` start at `i`
//! times the units of a split, so no place in the codes is stored. Its word holds the rest:
//!
//! ```text
//! bits 0..23    where its text starts in the text of the block
//! bit  23       its first unit is a literal whose escape is the last unit of the split before
//! bits 24..32   bit k: units 512k to 512k + 511 of the split hold an escape or a literal
//! ```
//!
//! So a decoder always knows if a split begins inside an escape. Without escapes (always with 12
//! bits) the upper 9 bits are 0. The 4 bytes for 4,096 units are 0.1 % of the codes.
//!
//! ```
//! use gsst::layout::{ALIGNMENT_BYTES, HEADER_BYTES};
//! use gsst::{BlockOptions, write_block};
//!
//! let block = write_block(&[Some(b"to be"), None], &BlockOptions::default())?;
//! assert!(block.starts_with(b"GSST") && block.len() > HEADER_BYTES);
//! assert_eq!(block.len() % ALIGNMENT_BYTES, 0);
//! // The number of rows stands at offset 16.
//! assert_eq!(block[16..20], 2u32.to_le_bytes());
//! # Ok::<(), gsst::Error>(())
//! ```

use std::ops::Range;

use crate::error::{Error, Result, SOURCE, fault};

use crate::symbol_table::CodeWidth;

/// Largest text of a block, in bytes. Text offsets of splits have 23 bits.
pub const MAX_BLOCK_TEXT_BYTES: usize = 1 << 23;
/// Largest number of rows of a block. The limit keeps a small input from requesting much memory.
pub const MAX_BLOCK_ROWS: usize = 1 << 20;
/// Number of code units per tile. A split's word has one bit for each tile.
pub const TILE_CODES: usize = 512;
/// Bit of a split's word that is set if the split starts with a literal.
pub const SPLIT_STARTS_WITH_LITERAL: u32 = 1 << 23;
/// Lowest of the bits of a split's word that mark tiles with escapes.
pub const SPLIT_FIRST_TILE_BIT: u32 = 24;
/// Length of the header, in bytes.
pub const HEADER_BYTES: usize = 64;
/// Alignment of codes, splits and blocks, in bytes.
pub const ALIGNMENT_BYTES: usize = 16;

const MAGIC: &[u8; 4] = b"GSST";
const VERSION: u8 = 1;
const CHECKED_FROM: usize = 8;
const NO_ESCAPES: u8 = 1;
const TEXT_LENGTHS: u8 = 2;
const VALIDITY: u8 = 4;
/// Range of log2 of a split's code units: 512 to 4,096 units, since a split's word has 8 bits for
/// tiles.
pub(super) const SPLIT_LOG2: Range<u8> = 9..13;

/// Contents of the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) width: CodeWidth,
    pub(super) has_no_escapes: bool,
    pub(super) has_text_lengths: bool,
    pub(super) has_validity: bool,
    pub(super) split_log2: u8,
    pub(super) num_rows: usize,
    pub(super) num_codes: usize,
    pub(super) text_len_bytes: usize,
    pub(super) num_nulls: usize,
    pub(super) table_len_bytes: usize,
    pub(super) code_counts_len_bytes: usize,
    pub(super) text_lengths_len_bytes: usize,
}

/// Ranges of the sections in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sections {
    pub(super) codes: Range<usize>,
    pub(super) splits: Range<usize>,
    pub(super) table: Range<usize>,
    pub(super) code_counts: Range<usize>,
    pub(super) text_lengths: Range<usize>,
    pub(super) validity: Range<usize>,
    /// Length of the block.
    pub(super) end: usize,
}

impl Header {
    /// Returns the number of splits.
    pub(super) fn num_splits(&self) -> usize {
        self.num_codes.div_ceil(1 << self.split_log2)
    }

    /// Returns the ranges of the sections.
    pub(super) fn sections(&self) -> Sections {
        let mut at = HEADER_BYTES;
        let mut next = |len_bytes: usize| {
            let start = at;
            at += len_bytes;
            start..at
        };
        let codes = next(self.width.stored_bytes(self.num_codes));
        next(codes.end.next_multiple_of(ALIGNMENT_BYTES) - codes.end);
        let splits = next(4 * self.num_splits());
        let table = next(self.table_len_bytes);
        let code_counts = next(self.code_counts_len_bytes);
        let text_lengths = next(self.text_lengths_len_bytes);
        let validity = next(if self.has_validity { self.num_rows.div_ceil(8) } else { 0 });
        let end = validity.end.next_multiple_of(ALIGNMENT_BYTES);
        Sections { codes, splits, table, code_counts, text_lengths, validity, end }
    }

    /// Returns the header's bytes, with a checksum of 0.
    pub(super) fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(MAGIC);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        bytes[12] = VERSION;
        bytes[13] = self.width.bits() as u8;
        bytes[14] = flag(self.has_no_escapes, NO_ESCAPES)
            | flag(self.has_text_lengths, TEXT_LENGTHS)
            | flag(self.has_validity, VALIDITY);
        bytes[15] = self.split_log2;
        let numbers = [
            (8, self.sections().end),
            (16, self.num_rows),
            (20, self.num_codes),
            (24, self.text_len_bytes),
            (28, self.num_nulls),
            (32, self.table_len_bytes),
            (36, self.code_counts_len_bytes),
            (40, self.text_lengths_len_bytes),
        ];
        for (at, number) in numbers {
            bytes[at..at + 4].copy_from_slice(&(number as u32).to_le_bytes());
        }
        bytes
    }

    /// Reads the header of `block`, which must hold exactly one block, and verifies the checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Format`], [`Error::Version`] or [`Error::Checksum`].
    pub(super) fn read(block: &[u8]) -> Result<(Self, Sections)> {
        if block.len() < HEADER_BYTES || &block[..4] != MAGIC {
            return Err(fault("header", 0, "no GSST block"));
        }
        if block[12] != VERSION {
            return Err(Error::Version {
                file: SOURCE.to_owned(),
                expected: format!("GSST version {VERSION}"),
                got: format!("version {}", block[12]),
            });
        }
        let number = |at: usize| {
            let bytes = [block[at], block[at + 1], block[at + 2], block[at + 3]];
            u32::from_le_bytes(bytes) as usize
        };
        if number(8) != block.len() {
            let reason = format!("{} bytes, the header says {}", block.len(), number(8));
            return Err(fault("header", 8, reason));
        }
        let expected = number(4) as u32;
        let got = crc32c::crc32c(&block[CHECKED_FROM..]);
        if expected != got {
            let file = SOURCE.to_owned();
            return Err(Error::Checksum { file, section: "block", offset: 0, expected, got });
        }
        let flags = block[14];
        let header = Self {
            width: match block[13] {
                8 => CodeWidth::Eight,
                12 => CodeWidth::Twelve,
                bits => return Err(fault("header", 13, format!("codes of {bits} bits"))),
            },
            has_no_escapes: flags & NO_ESCAPES != 0,
            has_text_lengths: flags & TEXT_LENGTHS != 0,
            has_validity: flags & VALIDITY != 0,
            split_log2: block[15],
            num_rows: number(16),
            num_codes: number(20),
            text_len_bytes: number(24),
            num_nulls: number(28),
            table_len_bytes: number(32),
            code_counts_len_bytes: number(36),
            text_lengths_len_bytes: number(40),
        };
        header.check(flags, &block[44..HEADER_BYTES])?;
        let sections = header.sections();
        if sections.end != block.len() {
            let reason = format!("sections end at {}, the block at {}", sections.end, block.len());
            return Err(fault("header", 8, reason));
        }
        let is_zero = |range: Range<usize>| block[range].iter().all(|byte| *byte == 0);
        if !is_zero(sections.codes.end..sections.splits.start) || !is_zero(sections.validity.end..sections.end) {
            return Err(fault("header", 0, "padding that is not 0"));
        }
        Ok((header, sections))
    }

    /// Checks that the numbers can belong to a block. After this check, no sum of them overflows.
    fn check(&self, flags: u8, reserved: &[u8]) -> Result<()> {
        let is_twelve = self.width == CodeWidth::Twelve;
        let checks = [
            (flags <= 7 && (self.has_no_escapes || !is_twelve), 14, "unknown flags"),
            (SPLIT_LOG2.contains(&self.split_log2), 15, "splits of a size that is not allowed"),
            (self.num_rows <= MAX_BLOCK_ROWS, 16, "more than 2^20 rows"),
            (self.text_len_bytes <= MAX_BLOCK_TEXT_BYTES, 24, "more than 2^23 bytes of text"),
            (self.num_codes <= 2 * self.text_len_bytes, 20, "more codes than the text can need"),
            (self.num_nulls <= self.num_rows, 28, "more nulls than rows"),
            (self.has_validity == (self.num_nulls > 0), 14, "validity without nulls"),
            (self.has_text_lengths || self.text_lengths_len_bytes == 0, 40, "lengths of no texts"),
            (reserved.iter().all(|byte| *byte == 0), 44, "reserved bytes that are not 0"),
        ];
        match checks.iter().find(|(holds, _, _)| !holds) {
            Some((_, offset, reason)) => Err(fault("header", *offset, *reason)),
            None => Ok(()),
        }
    }
}

/// Writes the checksum into a finished block.
pub(super) fn seal(block: &mut [u8]) {
    let checksum = crc32c::crc32c(&block[CHECKED_FROM..]);
    block[4..CHECKED_FROM].copy_from_slice(&checksum.to_le_bytes());
}
