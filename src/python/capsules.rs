//! Arrow's PyCapsule interface: streams and arrays from and to other libraries, without copies.
//!
//! Source: arrow.apache.org, "The Arrow PyCapsule Interface". A capsule holds one struct of the C
//! data interface. Who takes it moves the struct out, and what stays in the capsule is empty.
//! Arrays of other libraries are trusted, as everywhere in the Arrow ecosystem.

#![allow(unsafe_code, reason = "capsules hold raw pointers")]

use std::ffi::CStr;

use arrow::array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::{Error, error_of};

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// A source of record batches from anywhere.
pub type Reader = Box<dyn RecordBatchReader + Send>;

/// Returns a capsule with the stream of `reader`.
pub fn stream_capsule(py: Python<'_>, reader: Reader) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// Returns a capsule with `schema`.
pub fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(error_of)?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// Returns true if [`reader_of`] can read `object`.
pub fn is_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__arrow_c_stream__")? || object.hasattr("__arrow_c_array__")?)
}

/// Returns the record batches of an object with `__arrow_c_stream__` or `__arrow_c_array__`.
///
/// # Errors
/// `object` has neither, its rows have no columns with names, or rows are null.
pub fn reader_of(object: &Bound<'_, PyAny>) -> PyResult<Reader> {
    if object.hasattr("__arrow_c_stream__")? {
        return stream_of(&object.call_method0("__arrow_c_stream__")?);
    }
    if object.hasattr("__arrow_c_array__")? {
        return batch_of(&object.call_method0("__arrow_c_array__")?);
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "expected an Arrow object, such as a table of pyarrow, polars or pandas, and got {kind}"
    )))
}

fn stream_of(capsule: &Bound<'_, PyAny>) -> PyResult<Reader> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
    // SAFETY: a capsule of this name holds a valid stream. It is moved out, so it is released once.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer.cast().as_ptr()) };
    Ok(Box::new(reader.map_err(error_of)?))
}

fn batch_of(capsules: &Bound<'_, PyAny>) -> PyResult<Reader> {
    let capsules = capsules.cast::<PyTuple>()?;
    let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?;
    let array = array.cast::<PyCapsule>()?.pointer_checked(Some(ARRAY))?;
    // SAFETY: capsules of these names hold a valid schema and a valid array of it. Both are moved
    // out, so they are released once.
    let array = unsafe {
        let schema = FFI_ArrowSchema::from_raw(schema.cast().as_ptr());
        from_ffi(FFI_ArrowArray::from_raw(array.cast().as_ptr()), &schema)
    };
    let array = array.map_err(error_of)?;
    if !matches!(array.data_type(), arrow::datatypes::DataType::Struct(_)) {
        return Err(error_of(ArrowError::SchemaError(format!(
            "expected rows with named columns, and got an array of {}",
            array.data_type()
        ))));
    }
    if array.null_count() > 0 {
        let nulls = array.null_count();
        return Err(Error::new_err(format!(
            "expected rows, and got an array of structs in which {nulls} of {} are null; leave them out, \
             as drop_null() does",
            array.len()
        )));
    }
    let batch = RecordBatch::from(StructArray::from(array));
    let schema = batch.schema();
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}
