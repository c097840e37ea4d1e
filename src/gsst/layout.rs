//! The bytes of a block: its header, the place of each section, the words of splits and packed lengths.
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
//! Many small numbers, such as the lengths of rows, are packed in frames of 128 numbers, each with its
//! own minimum and width:
//!
//! ```text
//! frame   width (1 byte), smallest number (LEB128), then 128 differences of `width` bits each,
//!         low bits first, the last byte filled with zeros
//! ```
//!
//! One long row widens the other 127 numbers of its frame, not the whole block. For the numbers of
//! codes of `l_comment` (2 to 20) a row takes 5.2 bits.
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

use crate::decode::{Decoder, LITERAL, Literals, Symbols};
use crate::symbol_table::{self, CodeWidth, ESCAPE_CODE};
use crate::{Error, Result, SOURCE, fault};

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
/// [`Error::Format`] if a code has no symbol, an escape is the last
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
    fn eight(&mut self, symbols: &Symbols<512>, codes: &[u8], split_log2: u8, row_ends: &[u32]) -> Result<()> {
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

    fn twelve(&mut self, symbols: &Symbols<4096>, packed: &[u8], num_codes: usize, split_log2: u8) -> Result<()> {
        let lens = counted_lens(symbols);
        for start in (0..num_codes).step_by(1 << split_log2) {
            self.splits.push(self.text_len_bytes as u32);
            let end = num_codes.min(start + (1 << split_log2));
            // The sum of a tile fits below [`UNKNOWN`]. The sum of a split may not.
            for tile in (start..end).step_by(TILE_CODES) {
                let codes = tile..end.min(tile + TILE_CODES);
                let len = |code_idx| lens[usize::from(symbol_table::code_at(packed, code_idx))];
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
fn scan_tile(lens: &[u32; 512], tile: &[u8], is_literal: &mut bool, literals: &mut [u8]) -> (u32, bool) {
    let (groups, rest) = tile.as_chunks::<8>();
    let mut sum = 0;
    let mut has_escape = false;
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

/// Number of lengths per frame.
const FRAME_LEN: usize = 128;
/// Largest width of a difference, in bits. Lengths are below 2^24.
const MAX_WIDTH: u8 = 24;

/// Appends the packed form of `lengths`, all below 2^24.
pub(super) fn pack(lengths: impl Iterator<Item = u32>, packed: &mut Vec<u8>) {
    let mut lengths = lengths.peekable();
    let mut frame = Vec::with_capacity(FRAME_LEN);
    while lengths.peek().is_some() {
        frame.clear();
        frame.extend(lengths.by_ref().take(FRAME_LEN));
        pack_frame(&frame, packed);
    }
}

fn pack_frame(frame: &[u32], packed: &mut Vec<u8>) {
    let smallest = frame.iter().copied().min().unwrap_or_default();
    let largest = frame.iter().copied().max().unwrap_or_default();
    let width = 32 - (largest - smallest).leading_zeros();
    packed.push(width as u8);
    let mut rest = smallest;
    while rest >= 0x80 {
        packed.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    packed.push(rest as u8);
    let mut bits = 0_u64;
    let mut num_bits = 0;
    for length in frame {
        bits |= u64::from(length - smallest) << num_bits;
        num_bits += width;
        while num_bits >= 8 {
            packed.push(bits as u8);
            bits >>= 8;
            num_bits -= 8;
        }
    }
    if num_bits > 0 {
        packed.push(bits as u8);
    }
}

/// Unpacks `num_lengths` lengths, which must fill `packed`, and returns their running sums:
/// `num_lengths + 1` numbers, the first 0, the last `total`.
///
/// # Errors
///
/// [`Error::Format`] if the bytes are not such lengths.
pub(super) fn unpack_ends(packed: &[u8], num_lengths: usize, total: usize, section: &'static str) -> Result<Vec<u32>> {
    // A frame takes at least two bytes, so this allocates at most 256 bytes per byte of input.
    if packed.len() < 2 * num_lengths.div_ceil(FRAME_LEN) {
        return Err(fault(section, 0, format!("too short for {num_lengths} lengths")));
    }
    let mut ends = Vec::with_capacity(num_lengths + 1);
    ends.push(0);
    let mut end = 0;
    let mut at = 0;
    let mut left = num_lengths;
    while left > 0 {
        let frame_len = left.min(FRAME_LEN);
        left -= frame_len;
        let frame =
            Frame::read(packed, &mut at, frame_len).ok_or_else(|| fault(section, at, "a frame that cannot be read"))?;
        for length_idx in 0..frame_len {
            end += frame.get(length_idx);
            ends.push(end as u32);
        }
        if end > total as u64 {
            return Err(fault(section, at, format!("lengths sum up to more than {total}")));
        }
    }
    if end != total as u64 || at != packed.len() {
        let reason = format!("lengths sum up to {end}, not {total}, or bytes are left over");
        return Err(fault(section, at, reason));
    }
    Ok(ends)
}

/// Location and parameters of a frame's bits, which are enough to unpack it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowFrame {
    /// Start of the bits, as an offset in the block.
    pub bits_offset: u32,
    /// Smallest number, at most 2^24.
    pub smallest: u32,
    /// Number of bits of a difference, at most 24.
    pub width_bits: u32,
}

/// Returns the frames of `num_lengths` lengths, which must fill `packed`. `packed` starts at
/// `offset` in the block. The sum of the lengths is not checked.
///
/// # Errors
///
/// [`Error::Format`] if a frame cannot be read.
pub(super) fn frames(packed: &[u8], offset: usize, num_lengths: usize, section: &'static str) -> Result<Vec<RowFrame>> {
    let num_frames = num_lengths.div_ceil(FRAME_LEN);
    if packed.len() < 2 * num_frames {
        return Err(fault(section, 0, format!("too short for {num_lengths} lengths")));
    }
    let mut frames = Vec::with_capacity(num_frames);
    let mut at = 0;
    for frame_idx in 0..num_frames {
        let frame_len = FRAME_LEN.min(num_lengths - frame_idx * FRAME_LEN);
        let frame = Frame::read(packed, &mut at, frame_len)
            .filter(|frame| frame.smallest <= 1 << MAX_WIDTH)
            .ok_or_else(|| fault(section, at, "a frame that cannot be read"))?;
        frames.push(RowFrame {
            bits_offset: (offset + at - frame.bits.len()) as u32,
            smallest: frame.smallest as u32,
            width_bits: frame.width,
        });
    }
    if at != packed.len() {
        return Err(fault(section, at, "bytes behind the last length"));
    }
    Ok(frames)
}

/// A frame whose bytes are known to exist.
struct Frame<'a> {
    smallest: u64,
    width: u32,
    bits: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the frame at `at` and advances `at` behind it.
    fn read(packed: &'a [u8], at: &mut usize, len: usize) -> Option<Self> {
        let width = *packed.get(*at)?;
        if width > MAX_WIDTH {
            return None;
        }
        *at += 1;
        let mut smallest = 0;
        for shift in [0, 7, 14, 21] {
            let byte = *packed.get(*at)?;
            *at += 1;
            smallest |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let bits = packed.get(*at..*at + (len * usize::from(width)).div_ceil(8))?;
                *at += bits.len();
                return Some(Self { smallest, width: u32::from(width), bits });
            }
        }
        None
    }

    #[inline]
    fn get(&self, length_idx: usize) -> u64 {
        let first_bit = length_idx * self.width as usize;
        let word = match self.bits.get(first_bit / 8..first_bit / 8 + 4) {
            Some(bytes) => u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            None => {
                let rest = &self.bits[(first_bit / 8).min(self.bits.len())..];
                rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
            }
        };
        self.smallest + u64::from(word >> (first_bit % 8)) % (1 << self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_lengths_read_back() {
        let shapes: [fn(u32) -> u32; 5] =
            [|i| i % 20, |_| 0, |_| 77, |i| if i == 200 { (1 << 20) - 1 } else { 3 }, |i| i * i % 8191];
        for num_lengths in [0, 1, 2, 7, 127, 128, 129, 255, 256, 257, 1000] {
            for shape in shapes {
                let lengths: Vec<u32> = (0..num_lengths).map(shape).collect();
                let total: usize = lengths.iter().map(|length| *length as usize).sum();
                let mut packed = Vec::new();
                pack(lengths.iter().copied(), &mut packed);
                let unpack = |packed: &[u8], total| unpack_ends(packed, lengths.len(), total, "lengths");
                let ends = unpack(&packed, total).unwrap();
                let read: Vec<u32> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
                assert_eq!(read, lengths);
                let frames = frames(&packed, 1000, lengths.len(), "lengths").unwrap();
                assert_eq!(frames.len(), lengths.len().div_ceil(FRAME_LEN));
                for (expected, frame) in lengths.chunks(FRAME_LEN).zip(frames) {
                    let bits = &packed[frame.bits_offset as usize - 1000..];
                    let smallest = u64::from(frame.smallest);
                    let width = frame.width_bits;
                    let read = Frame { smallest, width, bits };
                    assert!((0..expected.len()).all(|i| read.get(i) == u64::from(expected[i])));
                }
                assert!(unpack(&packed, total + 1).is_err());
                assert!(unpack(&[&packed[..], &[0]].concat(), total).is_err());
                if !packed.is_empty() {
                    assert!(unpack(&packed[..packed.len() - 1], total).is_err());
                }
            }
        }
    }
}
