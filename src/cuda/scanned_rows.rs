//! The rows of a run, in host memory.

#![allow(unsafe_code, reason = "numbers in the bytes of a buffer")]

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::CudaEvent;

use super::block_check::BlockCheck;
use super::device::Device;
use super::error::GpuError;
use super::gsst_decode::NO_ERROR;
use super::gsst_run::RowForm;
use super::pinned::HostBuffer;

/// Block number in the error word for faults of the text of a run, as in `kernels/gsst_run.cuh`.
const NO_BLOCK: u64 = 0xffff_fffe;

/// A run that the device works on. Dropping it waits for the device.
#[derive(Debug)]
pub struct PendingRows {
    pub(super) device: Device,
    pub(super) done: Option<CudaEvent>,
    pub(super) rows: Option<ScannedRows>,
}

/// The rows of a run, in host memory.
#[derive(Debug, Clone)]
pub struct ScannedRows {
    pub(super) buffer: Arc<HostBuffer>,
    pub(super) form: RowForm,
    pub(super) text: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) num_rows: usize,
    pub(super) num_nulls: usize,
    pub(super) block_rows: Vec<usize>,
    pub(super) validity: Option<Vec<u8>>,
}

/// Converts an error word to a result.
pub(super) fn verdict(word: u64) -> Result<(), GpuError> {
    let (block, check, place) = (word >> 32, word as u32 >> 26, word as u32 % (1 << 26));
    match (word, block) {
        (NO_ERROR, _) => Ok(()),
        (_, NO_BLOCK) => Err(GpuError::NotText { check: BlockCheck::from_number(check), place }),
        (_, block) => {
            let block_idx = block as usize;
            Err(GpuError::Malformed { block_idx, check: BlockCheck::from_number(check), place })
        }
    }
}

impl PendingRows {
    /// Returns true if waiting would return at once.
    pub fn is_done(&self) -> bool {
        self.done.as_ref().is_none_or(CudaEvent::is_complete)
    }

    /// Waits for the rows. The call blocks the thread.
    ///
    /// # Errors
    ///
    /// [`GpuError::Malformed`] or [`GpuError::NotText`] if the blocks are invalid,
    /// [`GpuError::Driver`] for faults of the device.
    pub fn wait(mut self) -> Result<ScannedRows, GpuError> {
        let waiting = self.device.fault("decoding GSST blocks");
        if let Some(done) = &self.done {
            done.synchronize().map_err(waiting)?;
            self.done = None;
        }
        let gone = GpuError::Mismatch { what: "rows of a run", got: 0, expected: 1 };
        let rows = self.rows.take().ok_or(gone)?;
        let word = rows.buffer.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word));
        verdict(word)?;
        Ok(rows)
    }
}

impl Drop for PendingRows {
    fn drop(&mut self) {
        if let Some(done) = &self.done {
            let _ = done.synchronize(); // the buffer is written until then
        }
    }
}

impl ScannedRows {
    /// Returns the text of all rows.
    pub fn text(&self) -> &[u8] {
        &self.buffer[self.text.clone()]
    }

    /// Returns the offsets of the rows in the text: 0, then the end of each row. `None` unless the
    /// form is [`RowForm::Offsets`].
    pub fn offsets(&self) -> Option<&[u32]> {
        (self.form == RowForm::Offsets).then(|| {
            // SAFETY: any bits are a valid `u32`; the part starts at a multiple of 64.
            unsafe { self.buffer[self.rows.clone()].align_to::<u32>() }.1
        })
    }

    /// Returns Arrow's views, one per row. `None` unless the form is [`RowForm::Views`].
    pub fn views(&self) -> Option<&[u128]> {
        (self.form == RowForm::Views).then(|| {
            // SAFETY: any bits are a valid `u128`; the part starts at a multiple of 64.
            unsafe { self.buffer[self.rows.clone()].align_to::<u128>() }.1
        })
    }

    /// Returns the host memory that holds the rows. Clones keep it alive.
    pub fn buffer(&self) -> &Arc<HostBuffer> {
        &self.buffer
    }

    /// Returns the range of the text in the buffer. It starts at a multiple of 64.
    pub fn text_range(&self) -> Range<usize> {
        self.text.clone()
    }

    /// Returns the range of the offsets or views in the buffer. It starts at a multiple of 64.
    pub fn rows_range(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Returns the number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Returns the number of rows that are null.
    pub fn num_nulls(&self) -> usize {
        self.num_nulls
    }

    /// Returns the number of rows of each block.
    pub fn block_rows(&self) -> &[usize] {
        &self.block_rows
    }

    /// Returns one bit per row, low bits first; 1 means not null. `None` if no row is null.
    pub fn validity(&self) -> Option<&[u8]> {
        self.validity.as_deref()
    }
}
