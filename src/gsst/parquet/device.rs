//! Questions to a row group, and devices that answer them and decode GSST columns.
//!
//! Questions are conditions on rows, and rows that were found elsewhere. Conditions on GSST columns are tested on
//! codes, those on ordinary columns before any text is decoded. Column chunks are compared with their checksums before
//! Parquet reads them.
//!
//! # Devices
//!
//! ```text
//! blocks of a column ─▶ ColumnScanner ─ decode ──▶ PendingRows ─ wait ─▶ an array for each stretch
//!                             ├ matcher ─▶ find ─▶ PendingRows ─ wait ─▶ matching rows of each stretch
//!                             └ distinct ─ add, add, … ─▶ number of different rows, the most frequent of them
//! ```
//!
//! The codec defines the traits and knows no device. The crate `tadoc-cuda` implements them. A
//! device gives the arrays that the cores give. The arrays of a run are slices of one buffer of the
//! host, which [`RowMemory`] accounts for as long as one of them lives.
//!
//! ```
//! use std::error::Error;
//!
//! use gsst::parquet::device::{DeviceError, DeviceFault, RowMemory};
//!
//! /// Allows runs of this many bytes.
//! struct Limit(usize);
//!
//! impl RowMemory for Limit {
//!     fn try_resize(&self, len_bytes: usize) -> Result<(), Box<dyn Error + Send + Sync>> {
//!         if len_bytes <= self.0 { Ok(()) } else { Err("the run is too large".into()) }
//!     }
//! }
//!
//! assert!(Limit(1 << 20).try_resize(1000).is_ok());
//! let full = Limit(10).try_resize(1000).unwrap_err();
//! let error = DeviceError {
//!     fault: DeviceFault::HostMemory,
//!     error: gsst::Error::external("rows of a device", full),
//! };
//! assert_eq!(error.to_string(), "rows of a device: the run is too large");
//! ```

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType;
use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use crate::arrow::TextType;
use crate::block::Block;
use crate::pattern::Pattern;
use crate::{Error, Result};

use super::index::{SOURCE, TextStatistics};

/// A condition on one GSST column. Null rows never meet it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePredicate {
    /// Place of the field in the schema.
    pub field_idx: usize,
    /// Test of a row's text.
    pub test: CodeTest,
    /// True to keep the rows that fail the test, as in `NOT LIKE`.
    pub is_negated: bool,
}

/// A test of a row's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeTest {
    /// Equality with one of these texts: `=`, `IN`.
    IsIn(Vec<Vec<u8>>),
    /// A match of this pattern: `LIKE`, `starts_with`, `contains`.
    Like(Pattern),
}

impl CodePredicate {
    /// Returns true if some row may meet the condition. If false, no row meets it.
    pub fn may_match(&self, statistics: &TextStatistics) -> bool {
        match &self.test {
            _ if statistics.num_nulls == statistics.num_rows => false,
            CodeTest::IsIn(texts) if !self.is_negated => texts.iter().any(|text| statistics.may_be(text)),
            CodeTest::IsIn(_) | CodeTest::Like(_) => true,
        }
    }

    /// Keeps those of `rows` that meet the condition.
    pub(super) fn retain<B: AsRef<[u8]>>(&self, block: &Block<B>, rows: &mut Vec<u32>) {
        let mask = match &self.test {
            CodeTest::IsIn(texts) => {
                let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
                block.rows_equal_to(&texts)
            }
            CodeTest::Like(pattern) => block.rows_like(pattern),
        };
        rows.retain(|row| {
            let row = *row as usize;
            !block.is_null(row) && mask.is_set(row) != self.is_negated
        });
    }
}

/// A condition on ordinary columns.
#[derive(Clone)]
pub struct RowFilter {
    /// Fields that the test reads, by their place in the schema, ascending.
    pub fields: Vec<usize>,
    /// Test that returns, for a batch of those fields, the rows to keep. Null means no.
    pub test: RowTest,
}

/// Function type of the test of a [`RowFilter`].
pub type RowTest = Arc<dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync>;

impl fmt::Debug for RowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowFilter").field("fields", &self.fields).finish_non_exhaustive()
    }
}

/// Rows of a stretch that meet all predicates on a GSST column.
#[derive(Debug, Clone)]
pub struct StretchMatches {
    /// Numbers of the rows in the stretch, ascending.
    pub rows: Vec<u32>,
    /// Text of the rows, if the batches contain the column.
    pub text: Option<ArrayRef>,
}

impl StretchMatches {
    /// Returns true if the rows ascend and exist, and the text has their number and type
    /// `text_type`.
    pub(super) fn is_of(&self, num_rows: usize, text_type: &DataType) -> bool {
        let is_theirs = |text: &ArrayRef| text.len() == self.rows.len() && text.data_type() == text_type;
        self.rows.is_sorted_by(|one, next| one < next)
            && self.rows.last().is_none_or(|last| (*last as usize) < num_rows)
            && self.text.as_ref().is_none_or(is_theirs)
    }

    /// Returns the text of `rows`, which must all be among the rows found.
    pub(super) fn text_for(&self, rows: &[u32]) -> Result<Option<ArrayRef>> {
        let Some(text) = &self.text else { return Ok(None) };
        if rows.len() == self.rows.len() {
            return Ok(Some(text.clone()));
        }
        let mut places = Vec::with_capacity(rows.len());
        let mut at = 0;
        for row in rows {
            at += self.rows[at..].iter().take_while(|candidate| *candidate < row).count();
            places.push(at as u32);
        }
        let taken = take(text, &UInt32Array::from(places), None);
        taken.map(Some).map_err(|error| Error::external("choosing rows", error))
    }
}

/// Returns the rows that are in both lists, which must ascend.
pub(super) fn in_both(mut rows: Vec<u32>, others: &[u32]) -> Vec<u32> {
    let mut others = others.iter().peekable();
    rows.retain(|row| {
        while others.next_if(|other| *other < row).is_some() {}
        others.next_if(|other| *other == row).is_some()
    });
    rows
}

/// Returns `chunk`, which starts at `offset` of the file, if it has the checksum `expected`.
pub(super) fn checked_chunk(chunk: Bytes, offset: u64, expected: u32) -> Result<Bytes> {
    let got = crc32c::crc32c(&chunk);
    if got == expected {
        return Ok(chunk);
    }
    let file = SOURCE.to_owned();
    Err(Error::Checksum { file, section: "column chunk", offset, expected, got })
}

/// Chunks of a row group at their places in the file. No other bytes are there.
pub(super) struct CheckedChunks {
    file_len_bytes: u64,
    chunks: Vec<(u64, Bytes)>,
}

impl CheckedChunks {
    /// Creates an input of `chunks`, each with its place in the file.
    pub(super) fn new(file_len_bytes: u64, chunks: Vec<(u64, Bytes)>) -> Self {
        Self { file_len_bytes, chunks }
    }

    /// Returns the bytes from `start` to the end of its chunk.
    fn rest(&self, start: u64) -> ParquetResult<Bytes> {
        let rest = |(chunk_start, chunk): &(u64, Bytes)| {
            let at = usize::try_from(start.checked_sub(*chunk_start)?).ok()?;
            (at < chunk.len()).then(|| chunk.slice(at..))
        };
        let outside = || ParquetError::EOF(format!("byte {start} is in no column that is read"));
        self.chunks.iter().find_map(rest).ok_or_else(outside)
    }
}

impl Length for CheckedChunks {
    fn len(&self) -> u64 {
        self.file_len_bytes
    }
}

impl ChunkReader for CheckedChunks {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.rest(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let rest = self.rest(start)?;
        if length > rest.len() {
            let there = rest.len();
            let reason = format!("{length} bytes at {start} are asked for, {there} are in its column");
            return Err(ParquetError::EOF(reason));
        }
        Ok(rest.slice(..length))
    }
}

/// Kind of a failure of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceFault {
    /// The blocks are damaged. The cores find the same.
    Data,
    /// The device has too little memory, or the limit is too low.
    DeviceMemory,
    /// The account of host memory has no room.
    HostMemory,
    /// The device cannot be used again in this process.
    Lost,
    /// Another fault, or there is no device.
    Other,
}

/// Failure of a device.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct DeviceError {
    /// Kind of the failure.
    pub fault: DeviceFault,
    /// The cause.
    pub error: crate::Error,
}

impl From<crate::Error> for DeviceError {
    /// Wraps an error of the codec, which found damaged blocks.
    fn from(error: crate::Error) -> Self {
        Self { fault: DeviceFault::Data, error }
    }
}

/// `Result` with a [`DeviceError`].
pub type DeviceResult<T> = Result<T, DeviceError>;

/// Account of the host memory of one run. Dropping it gives the memory back.
pub trait RowMemory: Send + Sync {
    /// Changes the accounted memory to `len_bytes`.
    ///
    /// # Errors
    /// An error if there is no room.
    fn try_resize(&self, len_bytes: usize) -> Result<(), Box<dyn StdError + Send + Sync>>;
}

/// Rows that a device is working on.
pub trait PendingRows<T>: Send {
    /// Waits for the rows: one entry for each block.
    ///
    /// # Errors
    /// Errors of the device, or of the blocks.
    fn wait(self: Box<Self>) -> DeviceResult<Vec<T>>;
}

/// Devices that decode columns. A session owns one value.
pub trait ColumnDevice: fmt::Debug + Send + Sync {
    /// Returns the scanner of a partition, limited to `max_bytes` of memory on its device. Opens
    /// the devices, or waits until they are open. Partitions take turns among devices that did not
    /// fail.
    ///
    /// # Errors
    /// An error if no device can be used.
    fn scanner(&self, partition: usize, max_bytes: u64) -> DeviceResult<Arc<dyn ColumnScanner>>;
}

/// A scanner of blocks on one device.
pub trait ColumnScanner: fmt::Debug + Send + Sync {
    /// Submits `blocks` for decoding. Returns when the device has taken them.
    ///
    /// # Errors
    /// Errors of the device, of the blocks, or of `memory`.
    fn decode(
        &self,
        blocks: Vec<Bytes>,
        text_type: TextType,
        memory: Box<dyn RowMemory>,
    ) -> DeviceResult<Box<dyn PendingRows<ArrayRef>>>;

    /// Builds the automata of `predicates` on one column, all of which must hold.
    ///
    /// # Errors
    /// An error if the device cannot test one of them.
    fn matcher(&self, predicates: &[&CodePredicate]) -> DeviceResult<Box<dyn ColumnMatcher>>;

    /// Builds an empty set of rows, in the memory of the device. With `has_counts` it counts how often each occurs.
    ///
    /// # Errors
    /// Errors of the device.
    fn distinct(&self, has_counts: bool) -> DeviceResult<Arc<dyn DistinctCounter>>;
}

/// The different rows of a column, which stay on a device. Any thread may add rows.
pub trait DistinctCounter: fmt::Debug + Send + Sync {
    /// Adds the rows of `blocks` that meet all `predicates`; without predicates all rows. `memory` accounts the host
    /// memory of this call. After an error the number of rows is not that of all blocks.
    ///
    /// # Errors
    /// Errors of the device, of the blocks, or of `memory`; an error if the device cannot test a predicate.
    fn add(
        &self,
        blocks: Vec<Bytes>,
        predicates: &[&CodePredicate],
        text_type: TextType,
        memory: &dyn RowMemory,
    ) -> DeviceResult<()>;

    /// Returns the number of different rows that are not null.
    fn num_rows(&self) -> u64;

    /// Returns the number of null rows.
    fn num_nulls(&self) -> u64;

    /// Returns rows among which are the `num_rows` most frequent ones that are not null. `with_ties` also gives all
    /// that occur as often as the last of them. `None` if these are too many for the device.
    ///
    /// # Errors
    /// Errors of the device; an error if the set has no counts, or if text is not UTF-8 that must be.
    fn most_frequent(
        &self,
        num_rows: usize,
        with_ties: bool,
        text_type: TextType,
    ) -> DeviceResult<Option<FrequentTexts>>;
}

/// Rows of a column that occur most often, in any order.
#[derive(Debug, Clone)]
pub struct FrequentTexts {
    /// Different texts, as views.
    pub texts: ArrayRef,
    /// Number of rows that have each of them.
    pub counts: Vec<u64>,
}

/// Predicates on a column, ready for a device.
pub trait ColumnMatcher {
    /// Submits `blocks` to find the rows that match, and their text if `is_text_wanted`.
    ///
    /// # Errors
    /// Errors of the device, of the blocks, or of `memory`.
    fn find(
        &self,
        blocks: Vec<Bytes>,
        text_type: TextType,
        is_text_wanted: bool,
        memory: Box<dyn RowMemory>,
    ) -> DeviceResult<Box<dyn PendingRows<StretchMatches>>>;
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;

    use super::*;

    #[test]
    fn lists_meet() {
        assert_eq!(in_both(vec![1, 3, 4, 9], &[0, 3, 5, 9, 10]), [3, 9]);
        assert_eq!(in_both(vec![1, 2], &[]), [] as [u32; 0]);
        assert_eq!(in_both(Vec::new(), &[1]), [] as [u32; 0]);
    }

    #[test]
    fn texts_are_those_of_their_rows() {
        let text: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b", "c"]));
        let matches = StretchMatches { rows: vec![2, 5, 7], text: Some(text.clone()) };
        let expected: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "c"]));
        assert_eq!(&matches.text_for(&[2, 7]).unwrap().unwrap(), &expected);
        assert_eq!(&matches.text_for(&[2, 5, 7]).unwrap().unwrap(), &text);
        assert_eq!(matches.text_for(&[]).unwrap().unwrap().len(), 0);
        assert!(matches.is_of(8, &DataType::Utf8View));
        assert!(!matches.is_of(7, &DataType::Utf8View));
        assert!(!matches.is_of(8, &DataType::Utf8));
        let no_text = |rows| StretchMatches { rows, text: None };
        assert!(no_text(vec![0, 1]).text_for(&[0]).unwrap().is_none());
        assert!(!no_text(vec![1, 1]).is_of(2, &DataType::Utf8));
    }
}
