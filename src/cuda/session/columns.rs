//! GSST columns on the devices of a session, as Arrow arrays.
//!
//! Partition `p` uses device `p` modulo the number of devices that did not fail. A result is one
//! buffer of pinned host memory. The arrays of all stretches are slices of it, so no text is copied
//! on the host. The account counts the buffer until the last slice is dropped.

use std::sync::Arc;

use arrow::array::ArrayRef;
use bytes::Bytes;

use super::column_arrays::{block_matches, stretch_arrays};
use super::{CudaSession, Seat};
use crate::error::GpuError;
use crate::gsst_match::RowPredicate;
use crate::gsst_run::RowForm;
use crate::matched_rows::PendingMatches;
use crate::scan_memory::RunBytes;
use crate::scanned_rows;
use gsst::SealedBlock;
use gsst::arrow::TextType;
use gsst::parquet::device::{
    ColumnDevice, ColumnMatcher, ColumnScanner, DeviceError, DeviceFault, DeviceResult,
    PendingRows, RowMemory,
};
use gsst::parquet::{CodePredicate, CodeTest, StretchMatches};

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
        let mut predicates = predicates.to_vec();
        // The first test scans all rows, so it should not be a negation.
        predicates.sort_by_key(|predicate| predicate.is_negated);
        let tests = predicates.into_iter().map(|predicate| {
            let test = match &predicate.test {
                CodeTest::IsIn(texts) => {
                    let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
                    seat.scanner.matcher().one_of(&texts)?
                }
                CodeTest::Like(pattern) => seat.scanner.matcher().like(pattern)?,
            };
            Ok(if predicate.is_negated { test.negated() } else { test })
        });
        let tests = tests.collect::<Result<Vec<RowPredicate>, GpuError>>()?;
        Ok(Box::new(SeatMatcher { seat: Arc::clone(seat), tests }))
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

impl PendingRows<ArrayRef> for Pending<scanned_rows::PendingRows> {
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
