//! Runs and rows that stay on the device.

#![allow(unsafe_code, reason = "copies by address, in the order of a stream")]

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::result;

use super::device::Device;
use super::error::GpuError;
use super::gsst_run::{RowForm, RunLayout};
use super::memory::DeviceMemory;
use super::pinned::PinnedPool;
use super::scanned_rows::ScannedRows;

/// A run of blocks in device memory.
#[derive(Debug)]
pub struct DeviceRun {
    pub(super) layout: RunLayout,
    pub(super) input: DeviceMemory,
    pub(super) scratch: DeviceMemory,
    pub(super) validity: Option<Vec<u8>>,
}

/// The rows of a run on the device.
#[derive(Debug)]
pub struct DeviceColumn {
    pub(super) device: Device,
    pub(super) output: DeviceMemory,
    pub(super) form: RowForm,
    pub(super) text: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) num_rows: usize,
    pub(super) num_nulls: usize,
    pub(super) validity: Option<Vec<u8>>,
}

impl DeviceRun {
    /// Returns the length of the text of all rows, in bytes.
    pub fn text_len_bytes(&self) -> usize {
        self.layout.text_len_bytes
    }

    /// Returns the stored length of the blocks, in bytes.
    pub fn stored_len_bytes(&self) -> usize {
        self.layout.stored_len_bytes
    }

    /// Returns the number of rows.
    pub fn num_rows(&self) -> usize {
        self.layout.num_rows
    }

    /// Returns the device memory used in addition to the stored blocks, in bytes: symbols, places
    /// and sums of lengths.
    pub fn extra_bytes(&self) -> usize {
        self.layout.extra_bytes()
    }
}

impl DeviceColumn {
    /// Returns the number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Sets all bytes to one value. Tests use this to find bytes that a kernel does not write.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn fill(&self, byte: u8) -> Result<(), GpuError> {
        let filling = self.device.fault("filling device memory");
        self.device.context().bind_to_thread().map_err(&filling)?;
        let (at, stream) = (self.output.address(), self.output.stream().cu_stream());
        // SAFETY: the allocation has this length and lives until the work on its stream is done.
        unsafe { result::memset_d8_async(at, byte, self.output.len_bytes(), stream) }
            .map_err(filling)
    }

    /// Copies the rows to host memory.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn to_host(&self) -> Result<ScannedRows, GpuError> {
        let copying = self.device.fault("copying rows from the device");
        self.device.context().bind_to_thread().map_err(&copying)?;
        let mut buffer = PinnedPool::new(self.device.context(), 0).take(self.output.len_bytes());
        let (at, stream) = (self.output.address(), self.output.stream());
        // SAFETY: source and destination have the same length; the wait below ends the copy.
        let copied = unsafe { result::memcpy_dtoh_async(&mut buffer, at, stream.cu_stream()) };
        let waited = stream.synchronize();
        copied.and(waited).map_err(copying)?;
        Ok(ScannedRows {
            buffer: Arc::new(buffer),
            form: self.form,
            text: self.text.clone(),
            rows: self.rows.clone(),
            num_rows: self.num_rows,
            num_nulls: self.num_nulls,
            block_rows: Vec::new(),
            validity: self.validity.clone(),
        })
    }
}
