//! Rows on a device for others: Arrow's C Device Data Interface.
//!
//! ```text
//! ArrowDeviceArray
//!   array          Utf8, Binary          validity, offsets, text
//!                  Utf8View, BinaryView  validity, views, text, length of the text (8 bytes)
//!   device_id      ordinal
//!   device_type    2, CUDA
//!   sync_event     null: the rows are there
//! ```
//!
//! The structs are those of the specification (arrow.apache.org, "C device data interface"), without
//! a dependency on Arrow. All buffers are device memory in the device's primary context, so that
//! CuPy, cuDF, PyTorch and others of the same process can read them. Whoever takes an array calls its
//! `release` once; until then the memory stays. 32-bit offsets have no sign in this library and one
//! in Arrow: runs have less than 2^31 bytes.

#![allow(
    unsafe_code,
    reason = "the interface is raw pointers, and a callback that gives them back"
)]

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::result;

use super::device_column::DeviceColumn;
use super::error::GpuError;
use super::gsst_run::RowForm;
use super::memory::DeviceMemory;

/// CUDA, in the numbers of DLPack, which Arrow took over.
const DEVICE_CUDA: i32 = 2;

/// `struct ArrowArray` of Arrow's C data interface.
#[derive(Debug)]
#[repr(C)]
pub struct ArrowArray {
    /// Number of rows.
    pub length: i64,
    /// Number of rows that are null.
    pub null_count: i64,
    /// Rows to leave out at the start; 0.
    pub offset: i64,
    /// Number of buffers: 3, or 4 for views.
    pub n_buffers: i64,
    /// 0.
    pub n_children: i64,
    /// Addresses of the buffers on the device; the list itself is in host memory.
    pub buffers: *mut *const c_void,
    /// Null.
    pub children: *mut *mut ArrowArray,
    /// Null.
    pub dictionary: *mut ArrowArray,
    /// Gives the memory back; null after that.
    pub release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    /// What `release` needs.
    pub private_data: *mut c_void,
}

/// `struct ArrowDeviceArray` of Arrow's C device data interface.
#[derive(Debug)]
#[repr(C)]
pub struct ArrowDeviceArray {
    /// The array; its buffers are on the device.
    pub array: ArrowArray,
    /// Ordinal of the device.
    pub device_id: i64,
    /// 2: CUDA.
    pub device_type: i32,
    /// Null: nothing to wait for.
    pub sync_event: *mut c_void,
    /// 0.
    pub reserved: [i64; 3],
}

const _: () = assert!(size_of::<ArrowArray>() == 80 && size_of::<ArrowDeviceArray>() == 128);

/// What the rows of a column are to Arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Text; the column was decoded as such.
    Utf8,
    /// Any bytes.
    Binary,
}

/// What an array keeps until it is released.
struct Held {
    _column: DeviceColumn,
    _rest: DeviceMemory,
    buffers: [*const c_void; 4],
}

impl DeviceColumn {
    /// Arrow's format string of this column: `u`, `z`, `vu` or `vz`.
    pub fn arrow_format(&self, column_type: ColumnType) -> &'static str {
        match (self.form, column_type) {
            (RowForm::Offsets, ColumnType::Utf8) => "u",
            (RowForm::Offsets, ColumnType::Binary) => "z",
            (RowForm::Views, ColumnType::Utf8) => "vu",
            (RowForm::Views, ColumnType::Binary) => "vz",
        }
    }

    /// Hands the column to another library of this process. Waits for the device.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`] where there is no room for the validity, [`GpuError::Driver`].
    pub fn into_arrow_device(self) -> Result<ArrowDeviceArray, GpuError> {
        let copying = self.device.fault("copying the validity of rows");
        let stream = self.output.stream().clone();
        // The validity, then the length of the text.
        let validity = self.validity.as_deref().unwrap_or_default();
        let sizes_at = validity.len().next_multiple_of(64);
        let mut host = vec![0; sizes_at + 8];
        host[..validity.len()].copy_from_slice(validity);
        host[sizes_at..].copy_from_slice(&(self.text.len() as u64).to_le_bytes());
        let rest = DeviceMemory::new(&self.device, &stream, "validity of rows", host.len())?;
        // SAFETY: both have the same length, and the wait below ends the copy.
        let copied =
            unsafe { result::memcpy_htod_async(rest.address(), &host, stream.cu_stream()) };
        let waited = stream.synchronize();
        copied.and(waited).map_err(copying)?;
        let at = |address: u64| ptr::without_provenance::<c_void>(address as usize);
        let output = self.output.address();
        let has_nulls = self.num_nulls > 0;
        let (length, null_count) = (self.num_rows as i64, self.num_nulls as i64);
        let (device_id, is_view) = (self.device.ordinal() as i64, self.form == RowForm::Views);
        let mut held = Box::new(Held {
            buffers: [
                if has_nulls { at(rest.address()) } else { ptr::null() },
                at(output + self.rows.start as u64),
                at(output + self.text.start as u64),
                at(rest.address() + sizes_at as u64),
            ],
            _column: self,
            _rest: rest,
        });
        let array = ArrowArray {
            length,
            null_count,
            offset: 0,
            n_buffers: if is_view { 4 } else { 3 },
            n_children: 0,
            buffers: held.buffers.as_mut_ptr(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: Some(release),
            private_data: Box::into_raw(held).cast(),
        };
        let (sync_event, reserved) = (ptr::null_mut(), [0; 3]);
        Ok(ArrowDeviceArray { array, device_id, device_type: DEVICE_CUDA, sync_event, reserved })
    }
}

/// Gives the memory of an array back.
///
/// # Safety
///
/// `array` is null or points to an [`ArrowArray`] of [`DeviceColumn::into_arrow_device`].
unsafe extern "C" fn release(array: *mut ArrowArray) {
    // SAFETY: the caller's promise.
    let Some(array) = (unsafe { array.as_mut() }) else { return };
    if array.release.take().is_some() && !array.private_data.is_null() {
        // SAFETY: made by `Box::into_raw` of a `Held`, and taken once: `release` is null from now on.
        drop(unsafe { Box::from_raw(array.private_data.cast::<Held>()) });
        array.private_data = ptr::null_mut();
        array.buffers = ptr::null_mut();
    }
}
