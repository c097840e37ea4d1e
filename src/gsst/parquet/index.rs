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
//!
//! # Statistics
//!
//! Bounds are decoded values, in the order of bytes (for UTF-8 the order of code points). Long ones
//! are cut to 64 bytes. A prefix is a lower bound as it is. It is an upper bound after its last
//! character, or byte, is replaced by the next one. Such bounds are marked as not exact.

use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::schema::types::SchemaDescriptor;

use crate::arrow::TextType;
use crate::symbol_table::CodeWidth;
use crate::{Error, Result};

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
        let expected = input.number()? as u32;
        let got = crc32c::crc32c(&bytes[CHECKED_FROM..]);
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
        let num_columns = input.number()?;
        let num_row_groups = input.number()?;
        let mut index = Self { has_checksums: version > FIRST_VERSION, ..Self::default() };
        for _ in 0..num_columns {
            let field_idx = input.number()?;
            let number = input.number()?;
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
    push(bytes, number_for(column.text_type));
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
                        bytes.extend_from_slice(&[if *is_exact { 1 } else { 2 }, bound.len() as u8]);
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
                let len_bytes = self.number()?;
                let num_nulls = self.number()?;
                let text_len_bytes = self.number()? as u64;
                let is_utf8 = column.text_type.is_utf8();
                let min = self.bound(is_utf8)?;
                let max = self.bound(is_utf8)?;
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
        let kind = head[0];
        let len_bytes = usize::from(head[1]);
        let bytes = self.take(len_bytes)?;
        let is_text = !is_utf8 || std::str::from_utf8(bytes).is_ok();
        if kind > 2 || len_bytes > MAX_BOUND_BYTES || !is_text || (kind == 0 && len_bytes > 0) {
            return Err(fault(start, "a bound that cannot be"));
        }
        Ok((kind > 0).then(|| Bound { bytes: bytes.to_vec(), is_exact: kind == 1 }))
    }
}

fn number_for(text_type: TextType) -> usize {
    TextType::ALL.iter().position(|other| *other == text_type).unwrap_or_default()
}

fn from_digits(digits: &[u8]) -> Result<Vec<u8>> {
    let value_for = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|&[high, low]| Some(value_for(high)? << 4 | value_for(low)?)).collect();
    bytes.filter(|_| rest.is_empty()).ok_or_else(|| fault(0, "no hexadecimal digits"))
}

/// File name in errors. Only the callers know the origin of the bytes.
pub(super) const SOURCE: &str = "Parquet file";
const SECTION: &str = "GSST index";

/// Returns a format error of the index.
pub(super) fn fault(offset: usize, reason: impl Into<String>) -> Error {
    let file = SOURCE.to_owned();
    let reason = reason.into();
    Error::Format { file, section: SECTION, offset: offset as u64, reason }
}

/// Beginning of what follows the name of a GSST column in the file.
pub(super) const STORED_NAME_MARK: &str = " (tadoc GSST codes";

/// Returns the value of a key in the footer.
pub(super) fn value_for<'a>(footer: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
    let pairs = footer.file_metadata().key_value_metadata();
    let pair = pairs.into_iter().flatten().find(|pair| pair.key == key)?;
    pair.value.as_deref()
}

/// Returns true if the file has keys of another file whose other columns were copied. Programs keep
/// all keys when they rewrite a file. No column of the index is there, neither by its name nor by
/// its type and encoding, so no single damage can look like this.
pub(super) fn are_keys_left_over(footer: &ParquetMetaData) -> bool {
    let index = value_for(footer, INDEX_KEY).map(Index::from_text);
    let Some(Ok(index)) = index else { return false };
    let schema = footer.file_metadata().schema_descr();
    let is_there = |column: &GsstColumn| {
        let mut leaves = 0..schema.num_columns();
        let leaf = leaves.find(|leaf| schema.get_column_root_idx(*leaf) == column.field_idx);
        let is_codes = |leaf| has_stored_name(schema, leaf) || has_stored_type(footer, leaf);
        leaf.is_some_and(is_codes)
    };
    index.has_checksums && !index.columns.is_empty() && !index.columns.iter().any(is_there)
}

/// Returns true if a leaf has a name that GSST columns have in a file.
pub(super) fn has_stored_name(schema: &SchemaDescriptor, leaf: usize) -> bool {
    schema.column(leaf).path().parts().first().is_some_and(|name| name.contains(STORED_NAME_MARK))
}

/// Returns true if a leaf has the type and the encoding of codes.
pub(super) fn has_stored_type(footer: &ParquetMetaData, leaf: usize) -> bool {
    let column = footer.file_metadata().schema_descr().column(leaf);
    let is_plain_bytes = column.physical_type() == PhysicalType::BYTE_ARRAY
        && column.logical_type_ref().is_none()
        && column.path().parts().len() == 1;
    let mut chunks = footer.row_groups().iter().filter_map(|group| group.columns().get(leaf));
    let has_encoding =
        |chunk: &ColumnChunkMetaData| chunk.encodings().any(|encoding| encoding == Encoding::DELTA_LENGTH_BYTE_ARRAY);
    is_plain_bytes && chunks.all(has_encoding)
}

/// Largest length of a bound, in bytes.
pub(super) const MAX_BOUND_BYTES: usize = 64;

/// A lower or upper bound of the values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Bytes of the bound, which are UTF-8 if the column is.
    pub bytes: Vec<u8>,
    /// True if the bound is one of the values.
    pub is_exact: bool,
}

/// Statistics of the text of some rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextStatistics {
    /// Number of rows, nulls included.
    pub num_rows: usize,
    /// Number of rows that are null.
    pub num_nulls: usize,
    /// Length of the text of all rows, in bytes.
    pub text_len_bytes: u64,
    /// Lower bound of the values. `None` if all rows are null.
    pub min: Option<Bound>,
    /// Upper bound of the values. `None` if all rows are null or no short value is above them.
    pub max: Option<Bound>,
}

impl TextStatistics {
    /// Computes the statistics of `rows` (`None` is null).
    pub(super) fn from_rows(rows: &[Option<&[u8]>], is_utf8: bool) -> Self {
        let values = || rows.iter().flatten().copied();
        Self {
            num_rows: rows.len(),
            num_nulls: rows.len() - values().count(),
            text_len_bytes: values().map(|value| value.len() as u64).sum(),
            min: values().min().map(|min| lower_bound(min, is_utf8)),
            max: values().max().and_then(|max| upper_bound(max, is_utf8)),
        }
    }

    /// Returns the statistics of the rows of both.
    pub fn merge(&self, other: &Self) -> Self {
        let has_values = |one: &Self| one.num_nulls < one.num_rows;
        let (min, max) = match (has_values(self), has_values(other)) {
            (true, true) => {
                let both = |one: &Option<Bound>, two: &Option<Bound>| one.clone().zip(two.clone());
                let smaller = |(one, two): (Bound, Bound)| if two.bytes < one.bytes { two } else { one };
                let larger = |(one, two): (Bound, Bound)| if two.bytes > one.bytes { two } else { one };
                (both(&self.min, &other.min).map(smaller), both(&self.max, &other.max).map(larger))
            }
            (false, true) => (other.min.clone(), other.max.clone()),
            _ => (self.min.clone(), self.max.clone()),
        };
        Self {
            num_rows: self.num_rows + other.num_rows,
            num_nulls: self.num_nulls + other.num_nulls,
            text_len_bytes: self.text_len_bytes.saturating_add(other.text_len_bytes),
            min,
            max,
        }
    }

    /// Returns true if a row may have this text. If false, no row has it.
    pub fn may_be(&self, text: &[u8]) -> bool {
        self.num_nulls < self.num_rows
            && self.min.as_ref().is_none_or(|min| &min.bytes[..] <= text)
            && self.max.as_ref().is_none_or(|max| &max.bytes[..] >= text)
    }
}

fn lower_bound(value: &[u8], is_utf8: bool) -> Bound {
    let bytes = prefix(value, is_utf8);
    Bound { bytes: bytes.to_vec(), is_exact: bytes.len() == value.len() }
}

fn upper_bound(value: &[u8], is_utf8: bool) -> Option<Bound> {
    let bytes = prefix(value, is_utf8);
    if bytes.len() == value.len() {
        return Some(Bound { bytes: bytes.to_vec(), is_exact: true });
    }
    let next = if is_utf8 { next_text(bytes) } else { next_bytes(bytes) };
    next.map(|bytes| Bound { bytes, is_exact: false })
}

/// Returns at most [`MAX_BOUND_BYTES`] of `value`, as whole characters if `is_utf8`.
fn prefix(value: &[u8], is_utf8: bool) -> &[u8] {
    if value.len() <= MAX_BOUND_BYTES {
        return value;
    }
    let is_continuation = |at: &usize| is_utf8 && value[*at] & 0xc0 == 0x80;
    let len_bytes = (1..=MAX_BOUND_BYTES).rev().find(|at| !is_continuation(at));
    &value[..len_bytes.unwrap_or(0)]
}

/// Returns the smallest bytes above all that start with `bytes`, or `None` if all are 0xff.
fn next_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    let last = bytes.iter().rposition(|byte| *byte < 0xff)?;
    let mut next = bytes[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// Returns a text above all that start with `bytes`, or `None` if there is none. The last character
/// that has a successor of the same length is replaced by it, and the rest is cut off.
fn next_text(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let next_of = |character: char| {
        let next = (u32::from(character) + 1..=0xe000).chain(u32::from(character) + 1..);
        next.take(2049).find_map(char::from_u32)
    };
    text.char_indices().rev().find_map(|(at, character)| {
        let next = next_of(character)?;
        let fits = next.len_utf8() == character.len_utf8();
        fits.then(|| [&bytes[..at], next.encode_utf8(&mut [0; 4]).as_bytes()].concat())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(values: &[Option<&[u8]>], is_utf8: bool) {
        let statistics = TextStatistics::from_rows(values, is_utf8);
        for value in values.iter().flatten() {
            assert!(statistics.may_be(value));
        }
        for bound in statistics.min.iter().chain(&statistics.max) {
            assert!(bound.bytes.len() <= MAX_BOUND_BYTES);
            assert!(!is_utf8 || std::str::from_utf8(&bound.bytes).is_ok());
            assert!(!bound.is_exact || values.contains(&Some(&bound.bytes)));
        }
        let (one, two) = values.split_at(values.len() / 2);
        let merged = TextStatistics::from_rows(one, is_utf8).merge(&TextStatistics::from_rows(two, is_utf8));
        assert_eq!((merged.num_rows, merged.num_nulls), (values.len(), statistics.num_nulls));
        assert!(values.iter().flatten().all(|value| merged.may_be(value)));
    }

    proptest! {
        #[test]
        fn bounds_hold(texts in proptest::collection::vec(
            prop_oneof![
                1 => Just(None),
                3 => "\\PC{0,80}".prop_map(Some),
                1 => "a{60,64}[ÿ\u{7f}\u{7ff}\u{d7ff}\u{ffff}\u{10ffff}]{1,3}b*".prop_map(Some),
                1 => "\u{10ffff}{14,20}".prop_map(Some),
            ],
            0..8,
        )) {
            let values: Vec<_> =
                texts.iter().map(|text| text.as_ref().map(|text| text.as_bytes())).collect();
            check(&values, true);
            check(&values, false);
        }
    }

    #[test]
    fn bounds_of_long_values() {
        let long = ["a".repeat(63), "ÿ".repeat(3)].concat();
        let rows = [Some(long.as_bytes())];
        let statistics = TextStatistics::from_rows(&rows, true);
        let min = statistics.min.unwrap();
        let max = statistics.max.unwrap();
        assert_eq!(min, Bound { bytes: b"a".repeat(63), is_exact: false });
        assert_eq!(max.bytes, [b"a".repeat(62), b"b".to_vec()].concat());
        let high = [0xff; 70];
        assert_eq!(TextStatistics::from_rows(&[Some(&high)], false).max, None);
        assert_eq!(next_text("a\u{d7ff}".as_bytes()).unwrap(), "a\u{e000}".as_bytes());
        let nothing = TextStatistics::from_rows(&[None], true);
        assert!(nothing.min.is_none() && !nothing.may_be(b""));
    }
}
