//! GSST columns of a Parquet file as text on a GPU, for libraries of Arrow's device interface.
//!
//! ```text
//! file ─ footer ─▶ run of each row group ─▶ decoded on the device ─▶ ArrowDeviceArray ─▶ capsule
//! ```
//!
//! Source: arrow.apache.org, "The Arrow PyCapsule Interface" and "C device data interface". Only the
//! codes travel to the device, and the text stays there. Each call of `__arrow_c_device_array__`
//! decodes anew, and who takes the capsule owns the memory.
//!
//! Limits: one row group is one array, at most 64 MiB of codes and 2^31 bytes of text. The file is
//! local. A row group is read when it is asked for.

#![allow(unsafe_code, reason = "a capsule gives back what nobody took out of it")]

use std::ffi::CStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::{DataType, Field};
use arrow::ffi::FFI_ArrowSchema;
use datafusion_tadoc::contain_panics;
use gsst::parquet::GsstFooter;
use gsst::{BlockOptions, SealedBlock, write_block};
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use tadoc_cuda::{ArrowDeviceArray, Device, GsstScanner, RowForm, ScanOptions};

use crate::{Error, error_of};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_device_array";

/// The text of a column in one row group of a file.
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct DeviceArray {
    column: Arc<Column>,
    row_group: usize,
}

/// A GSST column of a file, and the decoder of a device.
struct Column {
    path: PathBuf,
    file: Mutex<File>,
    footer: GsstFooter,
    column_idx: usize,
    field: Field,
    scanner: GsstScanner,
}

/// Opens the column `name` of the file `path`, and returns its row groups.
#[pyfunction]
pub fn device_arrays(py: Python<'_>, path: PathBuf, name: &str, device: usize) -> PyResult<Vec<DeviceArray>> {
    let column = py.detach(|| contained(|| Column::open(path, name, device)))?;
    let column = Arc::new(column);
    let array = |row_group| DeviceArray { column: Arc::clone(&column), row_group };
    Ok((0..column.footer.num_row_groups()).map(array).collect())
}

/// Runs `work` and makes an exception of a panic.
fn contained<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    contain_panics("a GSST column", work).map_err(error_of).and_then(|outcome| outcome)
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

impl Column {
    fn open(path: PathBuf, name: &str, device: usize) -> PyResult<Self> {
        let within = |error: &dyn std::fmt::Display| failed(format!("{}: {error}", path.display()));
        let file = File::open(&path).map_err(|error| within(&error))?;
        let footer = GsstFooter::read(&file).map_err(|error| within(&error))?;
        let field = footer.schema().fields().find(name);
        let column = field.and_then(|(at, field)| {
            let column_idx = footer.gsst().column_of_field(at)?;
            Some((column_idx, field.data_type().clone()))
        });
        let Some((column_idx, data_type)) = column else {
            let columns = footer.gsst().columns().iter();
            let names = columns.map(|c| footer.schema().field(c.field_idx).name().as_str());
            let names: Vec<&str> = names.collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(within(&format!("there is no GSST column {name:?}; those of the file: {names}")));
        };
        // Offsets have 32 bits on the device.
        let data_type = match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
            _ => DataType::Binary,
        };
        let device = Device::open(device).map_err(failed)?;
        let scanner = GsstScanner::new(&device, ScanOptions::default()).map_err(failed)?;
        let field = Field::new(name, data_type, true);
        Ok(Self { file: Mutex::new(file), footer, column_idx, field, scanner, path })
    }

    fn is_text(&self) -> bool {
        *self.field.data_type() == DataType::Utf8
    }

    fn num_rows(&self, row_group: usize) -> usize {
        self.footer.gsst().row_groups()[row_group].stretch_rows.iter().sum()
    }

    /// Reads the run of a row group and decodes it on the device.
    fn decode(&self, row_group: usize) -> PyResult<Held> {
        let index = &self.footer.gsst().row_groups()[row_group];
        let run = &index.runs[self.column_idx];
        let within = |error: &dyn std::fmt::Display| failed(format!("{}: {error}", self.path.display()));
        let mut bytes = Vec::new();
        let mut read = || {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start(run.start))?;
            (&mut *file).take(run.len_bytes()).read_to_end(&mut bytes)
        };
        read().map_err(|error| within(&error))?;
        let mut rest = bytes.as_slice();
        let mut blocks = Vec::new();
        for (stored, &num_rows) in run.blocks.iter().zip(&index.stretch_rows) {
            let Some((block, behind)) = rest.split_at_checked(stored.len_bytes) else {
                return Err(within(&"the run of a GSST column is too short"));
            };
            rest = behind;
            blocks.push(match block {
                // Rows of which all are null have no block.
                [] => write_block(&vec![None; num_rows], &BlockOptions::default()).map_err(|error| within(&error))?,
                block => block.to_vec(),
            });
        }
        let sealed: Vec<_> = blocks
            .iter()
            .map(|block| SealedBlock::open(block.as_slice()))
            .collect::<Result<_, _>>()
            .map_err(|error: gsst::Error| within(&error))?;
        if sealed.iter().map(SealedBlock::num_rows).ne(index.stretch_rows.iter().copied()) {
            return Err(within(&"a block has another number of rows than the footer says"));
        }
        let rows = self.scanner.decode_to_device(&sealed, RowForm::Offsets, self.is_text());
        let array = rows.and_then(|rows| rows.into_arrow_device());
        Ok(Held(array.map_err(|error| within(&error))?))
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

#[pymethods]
impl DeviceArray {
    /// Decodes the rows on the device and hands them over, with their type.
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
        let array = py.detach(|| contained(|| self.column.decode(self.row_group)))?;
        let schema = FFI_ArrowSchema::try_from(&self.column.field).map_err(error_of)?;
        let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
        Ok((schema, PyCapsule::new_with_value(py, array, ARRAY)?))
    }

    fn __len__(&self) -> usize {
        self.column.num_rows(self.row_group)
    }

    /// The ordinal of the device.
    #[getter]
    fn device(&self) -> usize {
        self.column.scanner.device().ordinal()
    }
}
