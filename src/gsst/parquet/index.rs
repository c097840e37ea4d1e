//! The index of GSST blocks, stored in a Parquet footer as the value of one key.
//!
//! ```text
//! offset  bytes   (before they become hexadecimal digits, since values of keys are text)
//!      0      4   magic "GSSX"
//!      4      4   CRC32C of all bytes behind this field
//!      8      4   version, 2
//!     12      4   number of columns
//!     16      4   number of row groups
//!     20          columns: place among the fields of the schema (4), type of text (4),
//!                   bits of a code (4), length of the name (4), name
//!                 row groups: number of stretches (4), rows of each of them (4 each), then
//!                   columns: where the run starts in the file (8), then
//!                     stretches: length of the block (4), nulls (4), length of the text (4),
//!                       smallest, largest value
//!                       value: 0 none, 1 exact, 2 bound (1); length (1); bytes
//!                   number of column chunks (4), CRC32C of each of them (4 each)
//! ```
//!
//! All numbers are little-endian. The whole index is read when a file is opened: at most 154 bytes,
//! 308 digits, for up to 8 MiB of text.
//!
//! Version 1 has neither bits and names of columns nor checksums of column chunks. There the names
//! of the columns are those in the file.

use crate::error::{Error, Result};

use super::statistics::{Bound, MAX_BOUND_BYTES, TextStatistics};
use crate::arrow::TextType;
use crate::symbol_table::CodeWidth;

/// Key of the index in the footer.
pub const INDEX_KEY: &str = "tadoc.gsst";

const MAGIC: &[u8; 4] = b"GSSX";
const VERSION: usize = 2;
/// First version, without names, widths and checksums of column chunks.
const FIRST_VERSION: usize = 1;
const CHECKED_FROM: usize = 8;

/// Contents of the index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Index {
    pub(super) columns: Vec<GsstColumn>,
    /// Name of each column in the schema that the file was written from. Empty in version 1.
    pub(super) names: Vec<String>,
    pub(super) row_groups: Vec<GsstRowGroup>,
    /// True if the file has checksums of its column chunks and of its footer, as since version 2.
    pub(super) has_checksums: bool,
}

/// A column that is stored as GSST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GsstColumn {
    /// Place of the column among the fields of the schema.
    pub field_idx: usize,
    /// Type that the column was written from.
    pub text_type: TextType,
    /// Width of the codes. `None` if the file does not say it, as files of version 1.
    pub width: Option<CodeWidth>,
}

/// GSST columns of a row group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GsstRowGroup {
    /// Number of rows of each stretch.
    pub stretch_rows: Vec<usize>,
    /// Blocks of each GSST column.
    pub runs: Vec<BlockRun>,
    /// CRC32C of each column chunk, in the order of Parquet's leaves. Empty in files of version 1.
    pub chunk_checksums: Vec<u32>,
}

/// Blocks of a column in a row group, one behind the other in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockRun {
    /// Offset of the run in the file.
    pub start: u64,
    /// Block of each stretch.
    pub blocks: Vec<StoredBlock>,
}

/// A block in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlock {
    /// Length of the block, or 0 if all rows are null and there is no block.
    pub len_bytes: usize,
    /// Statistics of the rows.
    pub statistics: TextStatistics,
}

impl BlockRun {
    /// Returns the total length of the blocks.
    pub fn len_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.len_bytes as u64).sum()
    }
}

impl Index {
    /// Returns the value of the key.
    pub(super) fn to_text(&self) -> String {
        let mut bytes = [&MAGIC[..], &[0; 4]].concat();
        push(&mut bytes, VERSION);
        push(&mut bytes, self.columns.len());
        push(&mut bytes, self.row_groups.len());
        for (column, name) in self.columns.iter().zip(&self.names) {
            push_column(column, name, &mut bytes);
        }
        for row_group in &self.row_groups {
            push_row_group(row_group, &mut bytes);
        }
        let checksum = crc32c::crc32c(&bytes[CHECKED_FROM..]);
        bytes[4..CHECKED_FROM].copy_from_slice(&checksum.to_le_bytes());
        let digit = |digit: u8| char::from(b"0123456789abcdef"[usize::from(digit)]);
        bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    /// Reads the value of the key. Lists are never longer than the value has bytes for.
    ///
    /// # Errors
    ///
    /// [`Error::Format`], [`Error::Version`] or [`Error::Checksum`].
    pub(super) fn from_text(text: &str) -> Result<Self> {
        let bytes = from_digits(text.as_bytes())?;
        let mut input = Input { bytes: &bytes, at: 0 };
        if input.take(4)? != MAGIC {
            return Err(fault(0, "no index of GSST columns"));
        }
        let (expected, got) = (input.number()? as u32, crc32c::crc32c(&bytes[CHECKED_FROM..]));
        let version = input.number()?;
        if !(FIRST_VERSION..=VERSION).contains(&version) {
            return Err(Error::Version {
                file: SOURCE.to_owned(),
                expected: format!("GSST index version {FIRST_VERSION} to {VERSION}"),
                got: format!("version {version}"),
            });
        }
        if expected != got {
            let file = SOURCE.to_owned();
            return Err(Error::Checksum { file, section: SECTION, offset: 0, expected, got });
        }
        let (num_columns, num_row_groups) = (input.number()?, input.number()?);
        let mut index = Self { has_checksums: version > FIRST_VERSION, ..Self::default() };
        for _ in 0..num_columns {
            let (field_idx, number) = (input.number()?, input.number()?);
            let text_type = TextType::ALL.get(number).copied();
            let text_type = text_type.ok_or_else(|| fault(input.at, "unknown type of text"))?;
            let mut width = None;
            if version > FIRST_VERSION {
                width = Some(input.width()?);
                index.names.push(input.name()?);
            }
            index.columns.push(GsstColumn { field_idx, text_type, width });
        }
        for _ in 0..num_row_groups {
            let mut row_group = input.row_group(&index.columns)?;
            if version > FIRST_VERSION {
                row_group.chunk_checksums = input.checksums()?;
            }
            index.row_groups.push(row_group);
        }
        if input.at != bytes.len() {
            return Err(fault(input.at, "bytes behind the end"));
        }
        Ok(index)
    }
}

fn push(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend_from_slice(&(number as u32).to_le_bytes());
}

fn push_column(column: &GsstColumn, name: &str, bytes: &mut Vec<u8>) {
    push(bytes, column.field_idx);
    push(bytes, number_of(column.text_type));
    push(bytes, column.width.map_or(0, CodeWidth::bits));
    push(bytes, name.len());
    bytes.extend_from_slice(name.as_bytes());
}

fn push_row_group(row_group: &GsstRowGroup, bytes: &mut Vec<u8>) {
    push(bytes, row_group.stretch_rows.len());
    row_group.stretch_rows.iter().for_each(|num_rows| push(bytes, *num_rows));
    for run in &row_group.runs {
        bytes.extend_from_slice(&run.start.to_le_bytes());
        for StoredBlock { len_bytes, statistics } in &run.blocks {
            push(bytes, *len_bytes);
            push(bytes, statistics.num_nulls);
            // A block has at most 2^23 bytes of text.
            push(bytes, statistics.text_len_bytes as usize);
            for bound in [&statistics.min, &statistics.max] {
                match bound {
                    Some(Bound { bytes: bound, is_exact }) => {
                        bytes
                            .extend_from_slice(&[if *is_exact { 1 } else { 2 }, bound.len() as u8]);
                        bytes.extend_from_slice(bound);
                    }
                    None => bytes.extend_from_slice(&[0, 0]),
                }
            }
        }
    }
    push(bytes, row_group.chunk_checksums.len());
    for checksum in &row_group.chunk_checksums {
        bytes.extend_from_slice(&checksum.to_le_bytes());
    }
}

/// A cursor over bytes that are partly read.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, len_bytes: usize) -> Result<&'a [u8]> {
        let taken = self.bytes[self.at..].get(..len_bytes);
        let taken = taken.ok_or_else(|| fault(self.at, "it ends too early"))?;
        self.at += len_bytes;
        Ok(taken)
    }

    fn number(&mut self) -> Result<usize> {
        let bytes = self.take(4)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    fn width(&mut self) -> Result<CodeWidth> {
        match self.number()? {
            8 => Ok(CodeWidth::Eight),
            12 => Ok(CodeWidth::Twelve),
            bits => Err(fault(self.at, format!("codes of {bits} bits, expected 8 or 12"))),
        }
    }

    fn name(&mut self) -> Result<String> {
        let len_bytes = self.number()?;
        let start = self.at;
        let name = std::str::from_utf8(self.take(len_bytes)?);
        name.map(str::to_owned).map_err(|_| fault(start, "a name that is not UTF-8"))
    }

    fn checksums(&mut self) -> Result<Vec<u32>> {
        let num_checksums = self.number()?;
        let mut checksums = Vec::new();
        for _ in 0..num_checksums {
            checksums.push(self.number()? as u32);
        }
        Ok(checksums)
    }

    fn row_group(&mut self, columns: &[GsstColumn]) -> Result<GsstRowGroup> {
        let num_stretches = self.number()?;
        let mut row_group = GsstRowGroup::default();
        for _ in 0..num_stretches {
            row_group.stretch_rows.push(self.number()?);
        }
        for column in columns {
            let start = self.take(8)?;
            let start = start.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
            let mut run = BlockRun { start, blocks: Vec::new() };
            for &num_rows in &row_group.stretch_rows {
                let (len_bytes, num_nulls) = (self.number()?, self.number()?);
                let text_len_bytes = self.number()? as u64;
                let is_utf8 = column.text_type.is_utf8();
                let (min, max) = (self.bound(is_utf8)?, self.bound(is_utf8)?);
                let statistics = TextStatistics { num_rows, num_nulls, text_len_bytes, min, max };
                run.blocks.push(StoredBlock { len_bytes, statistics });
            }
            row_group.runs.push(run);
        }
        Ok(row_group)
    }

    fn bound(&mut self, is_utf8: bool) -> Result<Option<Bound>> {
        let start = self.at;
        let head = self.take(2)?;
        let (kind, len_bytes) = (head[0], usize::from(head[1]));
        let bytes = self.take(len_bytes)?;
        let is_text = !is_utf8 || std::str::from_utf8(bytes).is_ok();
        if kind > 2 || len_bytes > MAX_BOUND_BYTES || !is_text || (kind == 0 && len_bytes > 0) {
            return Err(fault(start, "a bound that cannot be"));
        }
        Ok((kind > 0).then(|| Bound { bytes: bytes.to_vec(), is_exact: kind == 1 }))
    }
}

fn number_of(text_type: TextType) -> usize {
    TextType::ALL.iter().position(|other| *other == text_type).unwrap_or_default()
}

fn from_digits(digits: &[u8]) -> Result<Vec<u8>> {
    let value_of = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|&[high, low]| Some(value_of(high)? << 4 | value_of(low)?)).collect();
    bytes.filter(|_| rest.is_empty()).ok_or_else(|| fault(0, "no hexadecimal digits"))
}

/// File name in errors. Only the callers know the origin of the bytes.
pub(super) const SOURCE: &str = "Parquet file";
const SECTION: &str = "GSST index";

/// Returns a format error of the index.
pub(super) fn fault(offset: usize, reason: impl Into<String>) -> Error {
    let (file, reason) = (SOURCE.to_owned(), reason.into());
    Error::Format { file, section: SECTION, offset: offset as u64, reason }
}
