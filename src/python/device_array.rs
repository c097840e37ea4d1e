//! A column of text in the memory of a GPU, for libraries that take such memory without a copy.
//!
//! ```text
//! DeviceArray ─┬─ __arrow_c_device_array__   validity, offsets, text as one array of Arrow
//!              ├─ text, offsets, validity    DeviceBuffer: `__cuda_array_interface__`, `__dlpack__`
//!              └─ memory, which all of them share
//! ```
//!
//! Sources: arrow.apache.org, "The Arrow PyCapsule Interface" and "C device data interface"; numba.readthedocs.io,
//! "CUDA Array Interface (version 3)"; dmlc.github.io/dlpack, `dlpack.h`, "Python Specification for DLPack". The rows
//! are complete when an array exists, so no stream is to be waited for.
//!
//! Limits: consumers of `__dlpack__` get the struct without a version, which all of them read.

#![allow(unsafe_code, reason = "capsules give back what nobody took out of them")]

use std::ffi::{CStr, c_void};
use std::ptr;

use arrow::datatypes::Field;
use arrow::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyBufferError, PyNotImplementedError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use tadoc_cuda::{ArrowDeviceArray, DeviceRange, SharedColumn};

use crate::error_of;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_device_array";
const TENSOR: &CStr = c"dltensor";
/// Device type of CUDA in DLPack.
const CUDA: i32 = 2;

/// The rows of a row group in the memory of a device.
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct DeviceArray {
    rows: SharedColumn,
    field: Field,
}

/// A range of device memory, as numbers of one type.
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct DeviceBuffer {
    /// Keeps the memory.
    rows: SharedColumn,
    range: DeviceRange,
    number: Number,
}

/// A type of numbers.
#[derive(Debug, Clone, Copy)]
enum Number {
    Byte,
    Int32,
}

impl Number {
    fn len_bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Int32 => 4,
        }
    }

    /// Returns the name in the array interface.
    fn typestr(self) -> &'static str {
        match self {
            Self::Byte => "|u1",
            Self::Int32 => "<i4",
        }
    }

    /// Returns code and bits of DLPack.
    fn dl_type(self) -> DlType {
        match self {
            Self::Byte => DlType { code: 1, bits: 8, lanes: 1 },
            Self::Int32 => DlType { code: 0, bits: 32, lanes: 1 },
        }
    }
}

/// An array that is released when its capsule is, unless a consumer took it.
#[repr(transparent)]
struct Held(ArrowDeviceArray);

// SAFETY: the array is memory of the device and a list of addresses, and any thread may free them.
unsafe impl Send for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(release) = self.0.array.release {
            // SAFETY: the array is valid. A consumer that takes it makes `release` null.
            unsafe { release(&raw mut self.0.array) };
        }
    }
}

impl DeviceArray {
    /// Wraps rows with offsets.
    pub fn new(rows: SharedColumn, field: Field) -> Self {
        Self { rows, field }
    }

    fn buffer(&self, range: DeviceRange, number: Number) -> DeviceBuffer {
        DeviceBuffer { rows: self.rows.clone(), range, number }
    }
}

#[pymethods]
impl DeviceArray {
    /// Hands the rows over, with their type.
    #[pyo3(signature = (requested_schema=None, **options))]
    fn __arrow_c_device_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // Best effort, as the interface allows: the reader casts.
        let _ = requested_schema;
        for (name, value) in options.into_iter().flatten() {
            if !value.is_none() {
                return Err(PyNotImplementedError::new_err(format!("the option {name} of __arrow_c_device_array__")));
            }
        }
        let schema = FFI_ArrowSchema::try_from(&self.field).map_err(error_of)?;
        let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
        Ok((schema, PyCapsule::new_with_value(py, Held(self.rows.to_arrow_device()), ARRAY)?))
    }

    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    /// The number of rows that are null.
    #[getter]
    fn null_count(&self) -> usize {
        self.rows.num_nulls()
    }

    /// The ordinal of the device.
    #[getter]
    fn device(&self) -> usize {
        self.rows.ordinal()
    }

    /// The bytes of all rows, one behind the other.
    #[getter]
    fn text(&self) -> DeviceBuffer {
        self.buffer(self.rows.text(), Number::Byte)
    }

    /// Starts of the rows in the text, and the end of the last: 32-bit numbers, one more than rows.
    #[getter]
    fn offsets(&self) -> DeviceBuffer {
        self.buffer(self.rows.rows(), Number::Int32)
    }

    /// One bit for each row, low bits first, 1 for one that is not null; `None` if no row is null.
    #[getter]
    fn validity(&self) -> Option<DeviceBuffer> {
        self.rows.validity().map(|range| self.buffer(range, Number::Byte))
    }
}

impl DeviceBuffer {
    fn len(&self) -> usize {
        self.range.len_bytes / self.number.len_bytes()
    }

    /// Returns the address, or 0 if there are no numbers, as consumers expect it.
    fn address(&self) -> u64 {
        if self.range.len_bytes == 0 { 0 } else { self.range.address }
    }

    /// Returns type and ordinal of the device.
    fn dl_device(&self) -> (i32, i32) {
        (CUDA, i32::try_from(self.rows.ordinal()).unwrap_or(i32::MAX))
    }
}

#[pymethods]
impl DeviceBuffer {
    fn __len__(&self) -> usize {
        self.len()
    }

    /// The address and type of the numbers, for CuPy, numba, PyTorch and JAX.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", (self.len(),))?;
        interface.set_item("typestr", self.number.typestr())?;
        interface.set_item("data", (self.address(), false))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }

    /// The type and ordinal of the device in DLPack's numbers.
    fn __dlpack_device__(&self) -> (i32, i32) {
        self.dl_device()
    }

    /// Hands the numbers over as a tensor of one dimension.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The numbers are complete on every stream, and a tensor without a version is always allowed.
        let _ = (stream, max_version);
        if dl_device.is_some_and(|wanted| wanted != self.dl_device()) {
            return Err(PyBufferError::new_err("the numbers stay on their device; ask without dl_device"));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err("the numbers are not copied; ask without copy"));
        }
        let tensor = Tensor::leak(self);
        // SAFETY: the tensor stays until its deleter is called, by the consumer that renamed the capsule
        // or by `give_back`.
        let capsule = unsafe { pyo3::ffi::PyCapsule_New(tensor.cast(), TENSOR.as_ptr(), Some(give_back)) };
        // SAFETY: a new reference, or null with an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, capsule) }.inspect_err(|_| {
            // SAFETY: nobody else has the tensor.
            unsafe { delete(tensor) };
        })
    }
}

/// `DLDataType`.
#[repr(C)]
struct DlType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`, and behind it the rest of `DLManagedTensor`.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    num_dimensions: i32,
    dtype: DlType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
    manager: *mut Manager,
    deleter: Option<unsafe extern "C" fn(*mut Tensor)>,
}

const _: () = assert!(size_of::<Tensor>() == 64);

/// Memory that a tensor keeps.
struct Manager {
    _rows: SharedColumn,
    shape: i64,
}

impl Tensor {
    /// Returns a tensor that [`delete`] frees.
    fn leak(buffer: &DeviceBuffer) -> *mut Self {
        let manager = Box::into_raw(Box::new(Manager { _rows: buffer.rows.clone(), shape: buffer.len() as i64 }));
        let (device_type, device_id) = buffer.dl_device();
        Box::into_raw(Box::new(Self {
            data: ptr::without_provenance_mut(buffer.address() as usize),
            device_type,
            device_id,
            num_dimensions: 1,
            dtype: buffer.number.dl_type(),
            // SAFETY: the manager was just made.
            shape: unsafe { &raw mut (*manager).shape },
            strides: ptr::null_mut(),
            byte_offset: 0,
            manager,
            deleter: Some(delete),
        }))
    }
}

/// Frees a tensor.
///
/// # Safety
///
/// `tensor` comes from [`Tensor::leak`] and is not used any more.
unsafe extern "C" fn delete(tensor: *mut Tensor) {
    // SAFETY: the caller guarantees it.
    let tensor = unsafe { Box::from_raw(tensor) };
    // SAFETY: `leak` made it, and the tensor is freed once.
    drop(unsafe { Box::from_raw(tensor.manager) });
}

/// Frees the tensor of a capsule that no consumer took, which would have renamed it.
///
/// # Safety
///
/// `capsule` is a capsule of [`DeviceBuffer::__dlpack__`].
unsafe extern "C" fn give_back(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: the caller guarantees it, and the name is compared before the pointer is read.
    unsafe {
        if pyo3::ffi::PyCapsule_IsValid(capsule, TENSOR.as_ptr()) == 1 {
            delete(pyo3::ffi::PyCapsule_GetPointer(capsule, TENSOR.as_ptr()).cast());
        }
    }
}
