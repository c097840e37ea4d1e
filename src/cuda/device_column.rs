//! Runs and rows that stay on the device.
//!
//! # Arrow
//!
//! Arrow's C Device Data Interface hands rows on a device to other libraries:
//!
//! ```text
//! ArrowDeviceArray
//!   array          Utf8, Binary          validity, offsets, text
//!                  Utf8View, BinaryView  validity, views, text, length of the text (8 bytes)
//!   device_id      ordinal
//!   device_type    2, CUDA
//!   sync_event     null: the rows are complete
//! ```
//!
//! The structs follow the specification (arrow.apache.org, "C device data interface"), without a dependency on Arrow.
//! All buffers are device memory in the device's primary context, so CuPy, cuDF, PyTorch and other libraries of the
//! same process can read them. The consumer of an array calls its `release` once; the memory stays valid until then.
//! Several arrays and views may share one column ([`SharedColumn`]).
//! Offsets are unsigned 32-bit integers in this library and signed ones in Arrow. Both agree because a run has less
//! than 2^31 bytes.

#![allow(unsafe_code, reason = "copies by address, in the order of a stream, and an interface of raw pointers")]

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::result;

use crate::device::Device;
use crate::error::GpuError;
use crate::gsst_run::{RowForm, RunLayout};
use crate::memory::{DeviceMemory, PinnedPool};
use crate::scan_slot::ScannedRows;

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
        self.output.fill(byte)
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
        let at = self.output.address();
        let stream = self.output.stream();
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

/// Device type of CUDA. Arrow uses the numbers of DLPack.
const DEVICE_CUDA: i32 = 2;

/// `struct ArrowArray` of Arrow's C data interface.
#[derive(Debug)]
#[repr(C)]
pub struct ArrowArray {
    /// Number of rows.
    pub length: i64,
    /// Number of rows that are null.
    pub null_count: i64,
    /// Number of rows to skip at the start; always 0.
    pub offset: i64,
    /// Number of buffers: 3, or 4 for views.
    pub n_buffers: i64,
    /// Number of child arrays; always 0.
    pub n_children: i64,
    /// Addresses of the buffers on the device; the list itself is in host memory.
    pub buffers: *mut *const c_void,
    /// Child arrays; always null.
    pub children: *mut *mut ArrowArray,
    /// Dictionary array; always null.
    pub dictionary: *mut ArrowArray,
    /// Callback that frees the memory; null after the call.
    pub release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    /// Data of the `release` callback.
    pub private_data: *mut c_void,
}

/// `struct ArrowDeviceArray` of Arrow's C device data interface.
#[derive(Debug)]
#[repr(C)]
pub struct ArrowDeviceArray {
    /// Array whose buffers are on the device.
    pub array: ArrowArray,
    /// Ordinal of the device.
    pub device_id: i64,
    /// Device type; always 2 (CUDA).
    pub device_type: i32,
    /// Event to wait for; always null, because the rows are complete.
    pub sync_event: *mut c_void,
    /// Reserved words; always 0.
    pub reserved: [i64; 3],
}

const _: () = assert!(size_of::<ArrowArray>() == 80 && size_of::<ArrowDeviceArray>() == 128);

/// Arrow type of the rows of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8 text. The column must have been decoded as text.
    Utf8,
    /// Arbitrary bytes.
    Binary,
}

/// Rows on the device that views of other libraries and Arrow's arrays share. The memory stays until the last of them
/// goes. Then it is freed once the work is done that the default stream has at that time, so that kernels which were
/// launched on it may read to their end.
#[derive(Debug, Clone)]
pub struct SharedColumn(Arc<SharedRows>);

#[derive(Debug)]
struct SharedRows {
    column: DeviceColumn,
    /// Validity, and length of the text for views.
    rest: Option<DeviceMemory>,
    /// Start of the length of the text in `rest`.
    sizes_at: usize,
}

impl Drop for SharedRows {
    fn drop(&mut self) {
        self.column.output.follow_default_stream();
        if let Some(rest) = &self.rest {
            rest.follow_default_stream();
        }
    }
}

/// A part of a column in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceRange {
    /// Address on the device.
    pub address: u64,
    /// Length in bytes.
    pub len_bytes: usize,
}

/// Rows and addresses that an array of Arrow holds until it is released.
struct Held {
    _rows: SharedColumn,
    buffers: [*const c_void; 4],
}

impl DeviceColumn {
    /// Returns Arrow's format string of this column: `u`, `z`, `vu` or `vz`.
    pub fn arrow_format(&self, column_type: ColumnType) -> &'static str {
        match (self.form, column_type) {
            (RowForm::Offsets, ColumnType::Utf8) => "u",
            (RowForm::Offsets, ColumnType::Binary) => "z",
            (RowForm::Views, ColumnType::Utf8) => "vu",
            (RowForm::Views, ColumnType::Binary) => "vz",
        }
    }

    /// Hands the column to other libraries of this process. Waits for the device.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`] if there is no room for the validity, [`GpuError::Driver`].
    pub fn share(self) -> Result<SharedColumn, GpuError> {
        let validity = self.validity.as_deref().unwrap_or_default();
        let sizes_at = validity.len().next_multiple_of(64);
        let is_view = self.form == RowForm::Views;
        let rest = if is_view || self.num_nulls > 0 { Some(self.copy_rest(validity, sizes_at)?) } else { None };
        Ok(SharedColumn(Arc::new(SharedRows { column: self, rest, sizes_at })))
    }

    /// Copies the validity to the device, and behind it the length of the text.
    fn copy_rest(&self, validity: &[u8], sizes_at: usize) -> Result<DeviceMemory, GpuError> {
        let copying = self.device.fault("copying the validity of rows");
        let stream = self.output.stream();
        let mut host = vec![0; sizes_at + 8];
        host[..validity.len()].copy_from_slice(validity);
        host[sizes_at..].copy_from_slice(&(self.text.len() as u64).to_le_bytes());
        let rest = DeviceMemory::new(self.device.budget(), stream, "validity of rows", host.len())?;
        // SAFETY: source and destination have the same length; the wait below ends the copy.
        let copied = unsafe { result::memcpy_htod_async(rest.address(), &host, stream.cu_stream()) };
        let waited = stream.synchronize();
        copied.and(waited).map_err(copying)?;
        Ok(rest)
    }
}

impl SharedColumn {
    /// Returns the number of rows.
    pub fn num_rows(&self) -> usize {
        self.0.column.num_rows
    }

    /// Returns the number of rows that are null.
    pub fn num_nulls(&self) -> usize {
        self.0.column.num_nulls
    }

    /// Returns the ordinal of the device.
    pub fn ordinal(&self) -> usize {
        self.0.column.device.ordinal()
    }

    /// Returns the place of the text of all rows.
    pub fn text(&self) -> DeviceRange {
        self.range(&self.0.column.text)
    }

    /// Returns the place of the offsets or views.
    pub fn rows(&self) -> DeviceRange {
        self.range(&self.0.column.rows)
    }

    /// Returns the place of one bit per row, low bits first; 1 means not null. `None` if no row is null.
    pub fn validity(&self) -> Option<DeviceRange> {
        let rest = self.0.rest.as_ref().filter(|_| self.num_nulls() > 0)?;
        Some(DeviceRange { address: rest.address(), len_bytes: self.num_rows().div_ceil(8) })
    }

    fn range(&self, part: &Range<usize>) -> DeviceRange {
        DeviceRange { address: self.0.column.output.address() + part.start as u64, len_bytes: part.len() }
    }

    /// Returns the rows as an array of Arrow, which shares the memory.
    pub fn to_arrow_device(&self) -> ArrowDeviceArray {
        let at = |address: u64| ptr::without_provenance::<c_void>(address as usize);
        let is_view = self.0.column.form == RowForm::Views;
        let sizes = self.0.rest.as_ref().map_or(0, |rest| rest.address() + self.0.sizes_at as u64);
        let mut held = Box::new(Held {
            buffers: [
                self.validity().map_or(ptr::null(), |validity| at(validity.address)),
                at(self.rows().address),
                at(self.text().address),
                at(sizes),
            ],
            _rows: self.clone(),
        });
        let array = ArrowArray {
            length: self.num_rows() as i64,
            null_count: self.num_nulls() as i64,
            offset: 0,
            n_buffers: if is_view { 4 } else { 3 },
            n_children: 0,
            buffers: held.buffers.as_mut_ptr(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: Some(release),
            private_data: Box::into_raw(held).cast(),
        };
        let device_id = self.ordinal() as i64;
        let sync_event = ptr::null_mut();
        let reserved = [0; 3];
        ArrowDeviceArray { array, device_id, device_type: DEVICE_CUDA, sync_event, reserved }
    }
}

/// Frees the memory of an array.
///
/// # Safety
///
/// `array` is null or points to an [`ArrowArray`] of [`SharedColumn::to_arrow_device`].
unsafe extern "C" fn release(array: *mut ArrowArray) {
    // SAFETY: the caller guarantees it.
    let Some(array) = (unsafe { array.as_mut() }) else { return };
    if array.release.take().is_some() && !array.private_data.is_null() {
        // SAFETY: the pointer comes from `Box::into_raw` of a `Held`. It is taken once, because
        // `release` is null from now on.
        drop(unsafe { Box::from_raw(array.private_data.cast::<Held>()) });
        array.private_data = ptr::null_mut();
        array.buffers = ptr::null_mut();
    }
}
