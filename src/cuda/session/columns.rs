//! GSST columns on the devices of a session, as Arrow arrays.
//!
//! ```text
//! partition ──▶ its seat ──▶ scanner: blocks ──▶ rows in one buffer of the host ──▶ arrays, which are slices of it
//! ```
//!
//! Partition `p` uses device `p` modulo the number of devices that did not fail. A result is one
//! buffer of pinned host memory. The arrays of all stretches are slices of it, so no text is copied
//! on the host. The account counts the buffer until the last slice is dropped.
//!
//! The device has checked the properties that Arrow would check again, row by row: views point into
//! the text, and if UTF-8 is demanded, the text is valid and rows start at characters
//! (`kernels/gsst_rows.cu`). A second check on the host takes longer than all work of the device.
//! `tests/gpu/parity.rs` and the suite `gpu_sql` compare such arrays with checked ones of the CPU.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow::array::{
    ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray, StringArray, StringViewArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use bytes::Bytes;
use gsst::SealedBlock;
use gsst::arrow::TextType;
use gsst::parquet::device::{
    ColumnDevice, ColumnMatcher, ColumnScanner, DeviceError, DeviceFault, DeviceResult, DistinctCounter, FrequentTexts,
    PendingRows, RowMemory,
};
use gsst::parquet::{CodePredicate, CodeTest, StretchMatches};

use crate::error::GpuError;
use crate::gsst_distinct::{DistinctRows, FrequentRows};
use crate::gsst_match::RowPredicate;
use crate::gsst_run::RowForm;
use crate::gsst_scan::{GsstScanner, RunBytes};
use crate::matched_rows::{MatchedRows, PendingMatches};
use crate::memory::HostBuffer;
use crate::scan_slot::{self, ScannedRows};

use super::{CudaSession, Seat, lock};

impl From<GpuError> for DeviceError {
    fn from(error: GpuError) -> Self {
        let fault = match &error {
            GpuError::Malformed { .. } | GpuError::NotText { .. } => DeviceFault::Data,
            GpuError::OutOfMemory { .. } => DeviceFault::DeviceMemory,
            GpuError::Lost { .. } => DeviceFault::Lost,
            _ => DeviceFault::Other,
        };
        Self { fault, error: gsst::Error::external("GPU", error) }
    }
}

impl ColumnDevice for CudaSession {
    fn scanner(&self, partition: usize, max_bytes: u64) -> DeviceResult<Arc<dyn ColumnScanner>> {
        let usable = self.usable_seats()?;
        let seat = usable[partition % usable.len()];
        seat.scanner.set_max_bytes(max_bytes);
        Ok(Arc::new(SeatScanner(Arc::clone(seat))))
    }
}

/// The scanner of a seat.
#[derive(Debug)]
struct SeatScanner(Arc<Seat>);

impl ColumnScanner for SeatScanner {
    fn decode(
        &self,
        blocks: Vec<Bytes>,
        text_type: TextType,
        memory: Box<dyn RowMemory>,
    ) -> DeviceResult<Box<dyn PendingRows<ArrayRef>>> {
        let sealed = sealed(blocks)?;
        let run = RunBytes::from_blocks(&sealed, RowForm::Views)?;
        resize(memory.as_ref(), run.staging + run.rows)?;
        let Self(seat) = self;
        let submit = || seat.scanner.submit(&sealed, RowForm::Views, text_type.is_utf8());
        Ok(Box::new(Pending { rows: seat.retried(submit)?, text_type, memory }))
    }

    fn matcher(&self, predicates: &[&CodePredicate]) -> DeviceResult<Box<dyn ColumnMatcher>> {
        let Self(seat) = self;
        Ok(Box::new(SeatMatcher { seat: Arc::clone(seat), tests: row_predicates(&seat.scanner, predicates)? }))
    }

    fn distinct(&self, has_counts: bool) -> DeviceResult<Arc<dyn DistinctCounter>> {
        let Self(seat) = self;
        let rows = seat.retried(|| DistinctRows::new(&seat.device))?;
        let rows = if has_counts { rows.with_counts() } else { rows };
        Ok(Arc::new(SeatDistinct { seat: Arc::clone(seat), rows: Mutex::new(rows) }))
    }
}

/// Builds the automata of `predicates`.
fn row_predicates(scanner: &GsstScanner, predicates: &[&CodePredicate]) -> Result<Vec<RowPredicate>, GpuError> {
    let mut predicates = predicates.to_vec();
    // The first test scans all rows, so it should not be a negation.
    predicates.sort_by_key(|predicate| predicate.is_negated);
    let tests = predicates.into_iter().map(|predicate| {
        let test = match &predicate.test {
            CodeTest::IsIn(texts) => {
                let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
                scanner.matcher().one_of(&texts)?
            }
            CodeTest::Like(pattern) => scanner.matcher().like(pattern)?,
        };
        Ok(if predicate.is_negated { test.negated() } else { test })
    });
    tests.collect()
}

/// Different rows on the device of a seat. Runs are decoded at the same time, and added one after the other.
#[derive(Debug)]
struct SeatDistinct {
    seat: Arc<Seat>,
    rows: Mutex<DistinctRows>,
}

impl DistinctCounter for SeatDistinct {
    fn add(
        &self,
        blocks: Vec<Bytes>,
        predicates: &[&CodePredicate],
        text_type: TextType,
        memory: &dyn RowMemory,
    ) -> DeviceResult<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let sealed = sealed(blocks)?;
        resize(memory, RunBytes::from_blocks(&sealed, RowForm::Offsets)?.staging)?;
        let scanner = &self.seat.scanner;
        let tests = row_predicates(scanner, predicates)?;
        let column = self.seat.retried(|| {
            if tests.is_empty() {
                scanner.decode_to_device(&sealed, RowForm::Offsets, text_type.is_utf8())?.share()
            } else {
                scanner.submit_matching(&sealed, &tests, true)?.wait_on_device()?.share()
            }
        })?;
        let mut rows = lock(&self.rows);
        let added = match rows.add(&column) {
            Err(GpuError::OutOfMemory { .. }) => {
                self.seat.release();
                rows.add(&column)
            }
            added => added,
        };
        Ok(added.map(drop)?)
    }

    fn num_rows(&self) -> u64 {
        lock(&self.rows).num_rows()
    }

    fn num_nulls(&self) -> u64 {
        lock(&self.rows).num_nulls()
    }

    fn most_frequent(
        &self,
        num_rows: usize,
        with_ties: bool,
        text_type: TextType,
    ) -> DeviceResult<Option<FrequentTexts>> {
        let Some(found) = lock(&self.rows).most_frequent(num_rows, with_ties)? else { return Ok(None) };
        let FrequentRows { counts, offsets, text } = found;
        let offsets = offsets.into_iter().map(|offset| offset as i64).collect::<Vec<_>>();
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let not_valid = |error| gsst::Error::external("rows of a device", error);
        let texts: ArrayRef = if text_type.is_utf8() {
            let texts = LargeStringArray::try_new(offsets, Buffer::from(text), None).map_err(not_valid)?;
            Arc::new(StringViewArray::from(&texts))
        } else {
            let texts = LargeBinaryArray::try_new(offsets, Buffer::from(text), None).map_err(not_valid)?;
            Arc::new(BinaryViewArray::from(&texts))
        };
        Ok(Some(FrequentTexts { texts, counts }))
    }
}

/// Predicates on a column, tested by the scanner of a seat.
struct SeatMatcher {
    seat: Arc<Seat>,
    tests: Vec<RowPredicate>,
}

impl ColumnMatcher for SeatMatcher {
    fn find(
        &self,
        blocks: Vec<Bytes>,
        text_type: TextType,
        is_text_wanted: bool,
        memory: Box<dyn RowMemory>,
    ) -> DeviceResult<Box<dyn PendingRows<StretchMatches>>> {
        let sealed = sealed(blocks)?;
        resize(memory.as_ref(), RunBytes::from_blocks(&sealed, RowForm::Views)?.staging)?;
        let scanner = &self.seat.scanner;
        let submit = || scanner.submit_matching(&sealed, &self.tests, is_text_wanted);
        Ok(Box::new(Pending { rows: self.seat.retried(submit)?, text_type, memory }))
    }
}

/// Rows `R` that the device works on, with the account of their memory.
struct Pending<R> {
    rows: R,
    text_type: TextType,
    memory: Box<dyn RowMemory>,
}

impl PendingRows<ArrayRef> for Pending<scan_slot::PendingRows> {
    fn wait(self: Box<Self>) -> DeviceResult<Vec<ArrayRef>> {
        let rows = self.rows.wait()?;
        // The staging memory is free again, but the buffer may be larger than the rows.
        resize(self.memory.as_ref(), rows.buffer().capacity_bytes())?;
        Ok(stretch_arrays(rows, self.text_type, self.memory)?)
    }
}

impl PendingRows<StretchMatches> for Pending<PendingMatches> {
    fn wait(self: Box<Self>) -> DeviceResult<Vec<StretchMatches>> {
        let rows = self.rows.wait()?;
        resize(self.memory.as_ref(), rows.buffer().capacity_bytes())?;
        Ok(block_matches(&rows, self.text_type, self.memory)?)
    }
}

fn sealed(blocks: Vec<Bytes>) -> DeviceResult<Vec<SealedBlock<Bytes>>> {
    blocks.into_iter().map(|block| Ok(SealedBlock::open(block)?)).collect()
}

fn resize(memory: &dyn RowMemory, len_bytes: usize) -> DeviceResult<()> {
    memory.try_resize(len_bytes).map_err(|full| DeviceError {
        fault: DeviceFault::HostMemory,
        error: gsst::Error::external("host memory for the rows of a device", full),
    })
}

/// Host memory of Arrow arrays, with its account.
struct Held {
    buffer: Arc<HostBuffer>,
    _account: Box<dyn RowMemory>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

/// Returns the rows of each block of a run. `account` lives until the last array is dropped.
///
/// # Errors
///
/// [`gsst::Error::InvalidArgument`] if the rows have no views.
fn stretch_arrays(rows: ScannedRows, text_type: TextType, account: Box<dyn RowMemory>) -> gsst::Result<Vec<ArrayRef>> {
    if rows.views().is_none() {
        return Err(gsst::Error::InvalidArgument {
            name: "rows of a device",
            got: "offsets".to_owned(),
            allowed: "views".to_owned(),
        });
    }
    let held = Held { buffer: Arc::clone(rows.buffer()), _account: account };
    let all = Buffer::from(Bytes::from_owner(held));
    let part = |range: Range<usize>| all.slice_with_length(range.start, range.len());
    let text = part(rows.text_range());
    let views = part(rows.rows_range());
    let views: ScalarBuffer<u128> = ScalarBuffer::new(views, 0, rows.num_rows());
    let validity = rows.validity().map(|bits| Buffer::from(bits.to_vec()));
    let mut start = 0;
    let stretch = |num_rows: &usize| {
        let from = start;
        let num_rows = *num_rows;
        start += num_rows;
        let views = views.slice(from, num_rows);
        let nulls = validity.as_ref().map(|bits| NullBuffer::new(BooleanBuffer::new(bits.clone(), from, num_rows)));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        array(views, text.clone(), nulls, text_type)
    };
    Ok(rows.block_rows().iter().map(stretch).collect())
}

/// Returns the rows of each block that match, with their text if the device returned it. `account`
/// lives until the last array is dropped.
///
/// The text of the few selected rows is checked to be UTF-8 here, as on the CPU.
///
/// # Errors
///
/// [`gsst::Error::External`] if the text is not valid for `text_type`.
fn block_matches(
    matched: &MatchedRows,
    text_type: TextType,
    account: Box<dyn RowMemory>,
) -> gsst::Result<Vec<StretchMatches>> {
    let texts = match (matched.offsets_range(), matched.text_range()) {
        (Some(offsets), Some(text)) => {
            let held = Held { buffer: Arc::clone(matched.buffer()), _account: account };
            Some(matched_texts(held, offsets, text, text_type)?)
        }
        _ => None,
    };
    let mut rows = matched.rows().peekable();
    let mut first_row = 0;
    let mut start = 0;
    let block_matches = |num_rows: &usize| {
        let end = first_row + *num_rows as u32;
        let block_rows: Vec<u32> =
            std::iter::from_fn(|| rows.next_if(|row| *row < end).map(|row| row - first_row)).collect();
        let text = texts.as_ref().map(|texts| texts.slice(start, block_rows.len()));
        first_row = end;
        start += block_rows.len();
        StretchMatches { rows: block_rows, text }
    };
    Ok(matched.block_rows().iter().map(block_matches).collect())
}

/// Returns the text of all rows that match, as views of the memory in `held`.
fn matched_texts(held: Held, offsets: Range<usize>, text: Range<usize>, text_type: TextType) -> gsst::Result<ArrayRef> {
    let all = Buffer::from(Bytes::from_owner(held));
    let part = |range: Range<usize>| all.slice_with_length(range.start, range.len());
    let num_offsets = offsets.len() / size_of::<i32>();
    let offsets = OffsetBuffer::new(ScalarBuffer::new(part(offsets), 0, num_offsets));
    let not_valid = |error| gsst::Error::external("rows of a device", error);
    Ok(if text_type.is_utf8() {
        let texts = StringArray::try_new(offsets, part(text), None).map_err(not_valid)?;
        Arc::new(StringViewArray::from(&texts))
    } else {
        let texts = BinaryArray::try_new(offsets, part(text), None).map_err(not_valid)?;
        Arc::new(BinaryViewArray::from(&texts))
    })
}

#[allow(unsafe_code, reason = "arrays of rows that were checked on the device")]
fn array(views: ScalarBuffer<u128>, text: Buffer, nulls: Option<NullBuffer>, text_type: TextType) -> ArrayRef {
    if text_type.is_utf8() {
        // SAFETY: the rows were decoded with `must_be_utf8`. So the device has checked that the
        // text is UTF-8 and that all rows start at characters. It made the views from its own
        // offsets.
        Arc::new(unsafe { StringViewArray::new_unchecked(views, vec![text], nulls) })
    } else {
        // SAFETY: the device made the views from its own offsets.
        Arc::new(unsafe { BinaryViewArray::new_unchecked(views, vec![text], nulls) })
    }
}
