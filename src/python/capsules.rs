//! PyCapsules: Arrow's streams and arrays from and to other libraries, without copies, and functions and tables for
//! sessions of the Python package `datafusion`.
//!
//! Source: arrow.apache.org, "The Arrow PyCapsule Interface". A capsule holds one struct of the C
//! data interface. Who takes it moves the struct out, and what stays in the capsule is empty.
//! Arrays of other libraries are trusted, as everywhere in the Arrow ecosystem.
//!
//! ```text
//! ctx.register_udtf(udtf(f, 'word_count'))   __datafusion_table_function__(session)
//! ctx.register_udf(udf(f))                   __datafusion_scalar_udf__()
//! ctx.register_table_factory('TADOC', f)     __datafusion_table_provider_factory__(session)
//! ctx.register_table('t', result)            __datafusion_table_provider__(session)
//! ```
//!
//! The capsules hold structs of the crate `datafusion-ffi`. Their layout is the same in all releases
//! of one major version, and both sides read each other's structs, so the major version of the
//! package is checked before a capsule is made, and that of the session's codec before it is used.

#![allow(unsafe_code, reason = "capsules hold raw pointers")]

use std::ffi::CStr;
use std::sync::Arc;

use arrow::array::{ArrayData, RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader, StructArray};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, from_ffi_and_data_type};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::table_provider::FFI_TableProvider;
use datafusion_ffi::table_provider_factory::FFI_TableProviderFactory;
use datafusion_ffi::udf::FFI_ScalarUDF;
use datafusion_ffi::udtf::FFI_TableFunction;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use tokio::runtime::Handle;

use crate::crossing::{Crossing, CrossingFactory, CrossingFunction, CrossingScalar};
use crate::waiting::runtime;
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
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
    Ok(Box::new(StreamReader::new(stream).map_err(error_of)?))
}

fn batch_of(capsules: &Bound<'_, PyAny>) -> PyResult<Reader> {
    let capsules = capsules.cast::<PyTuple>()?;
    let schema = capsules.get_item(0)?;
    let array = capsules.get_item(1)?;
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?;
    let array = array.cast::<PyCapsule>()?.pointer_checked(Some(ARRAY))?;
    // SAFETY: capsules of these names hold a valid schema and a valid array of it. Both are moved
    // out, so they are released once.
    let array = unsafe {
        let schema = FFI_ArrowSchema::from_raw(schema.cast().as_ptr());
        from_ffi(FFI_ArrowArray::from_raw(array.cast().as_ptr()), &schema)
    };
    let array = array.map_err(error_of)?;
    let DataType::Struct(fields) = array.data_type() else {
        return Err(error_of(ArrowError::SchemaError(format!(
            "expected rows with named columns, and got an array of {}",
            array.data_type()
        ))));
    };
    let schema = Arc::new(Schema::new(fields.clone()));
    let batch = rows(array, &schema).map_err(error_of)?;
    Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

/// Returns the rows of an array of structs with the fields of `schema`.
///
/// # Errors
/// A struct is null, which no row can be, or a column without nulls has some.
fn rows(mut array: ArrayData, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let num_rows = array.len();
    let num_nulls = array.null_count();
    if num_nulls > 0 {
        return Err(ArrowError::InvalidArgumentError(format!(
            "expected rows, and got an array of structs in which {num_nulls} of {num_rows} are null; leave \
             them out, as drop_null() does"
        )));
    }
    array.align_buffers();
    let (_, columns, _) = StructArray::from(array).into_parts();
    let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// The batches of a stream of another library.
///
/// Arrow's own reader takes a null struct for a row, and panics at an error without a text.
struct StreamReader {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

impl StreamReader {
    fn new(mut stream: FFI_ArrowArrayStream) -> Result<Self, ArrowError> {
        let get_schema = stream.get_schema.ok_or_else(|| broken("it was read already"))?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream is valid, and takes a place for its schema.
        if unsafe { get_schema(&raw mut stream, &raw mut schema) } != 0 {
            return Err(broken(&last_error(&mut stream)));
        }
        let schema = Arc::new(Schema::try_from(&schema)?);
        Ok(Self { stream, schema })
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let get_next = self.stream.get_next.ok_or_else(|| broken("it has no rows"))?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the stream is valid, and takes a place for its next array.
        if unsafe { get_next(&raw mut self.stream, &raw mut array) } != 0 {
            return Err(broken(&last_error(&mut self.stream)));
        }
        if array.is_released() {
            return Ok(None);
        }
        let kind = DataType::Struct(self.schema.fields().clone());
        // SAFETY: the arrays of a stream have the type of its schema.
        let array = unsafe { from_ffi_and_data_type(array, kind) }?;
        rows(array, &self.schema).map(Some)
    }
}

impl Iterator for StreamReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl RecordBatchReader for StreamReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Returns the text of the last error of `stream`.
fn last_error(stream: &mut FFI_ArrowArrayStream) -> String {
    let text = stream.get_last_error.and_then(|get_last_error| {
        // SAFETY: the stream is valid. Its text, if there is one, lives until the next call.
        let text = unsafe { get_last_error(stream) };
        // SAFETY: as above; the text is copied here.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    });
    text.unwrap_or_else(|| "its library gives no reason".to_owned())
}

fn broken(reason: &str) -> ArrowError {
    ArrowError::CDataInterface(format!("a stream of Arrow: {reason}"))
}

const CODEC: &CStr = c"datafusion_logical_extension_codec";
const FUNCTION: &CStr = c"datafusion_table_function";
const SCALAR: &CStr = c"datafusion_scalar_udf";
const TABLE: &CStr = c"datafusion_table_provider";
const FACTORY: &CStr = c"datafusion_table_provider_factory";

/// A table function for sessions of the package `datafusion`.
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct HostFunction {
    session: Arc<tadoc_session::Session>,
    name: String,
}

impl HostFunction {
    /// Creates the table function `name` of `session`.
    pub fn new(session: Arc<tadoc_session::Session>, name: String) -> Self {
        Self { session, name }
    }
}

#[pymethods]
impl HostFunction {
    fn __datafusion_table_function__<'py>(&self, session: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
        let codec = codec_of(session)?;
        let function = CrossingFunction::new(Arc::clone(&self.session), self.name.clone(), codec.clone());
        let function = FFI_TableFunction::new_with_ffi_codec(Arc::new(function), Some(handle()?), codec);
        PyCapsule::new_with_value(session.py(), function, FUNCTION)
    }
}

/// A scalar function for sessions of the package `datafusion`.
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct HostScalar {
    session: Arc<tadoc_session::Session>,
    name: String,
}

impl HostScalar {
    /// Creates the scalar function `name` of `session`.
    pub fn new(session: Arc<tadoc_session::Session>, name: String) -> Self {
        Self { session, name }
    }
}

#[pymethods]
impl HostScalar {
    fn __datafusion_scalar_udf__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        check_host(py)?;
        let state = self.session.context().state();
        let Some(function) = state.scalar_functions().get(&self.name) else {
            return Err(Error::new_err(format!("there is no function {}", self.name)));
        };
        let function = CrossingScalar::wrap(Arc::clone(&self.session), Arc::clone(function));
        PyCapsule::new_with_value(py, FFI_ScalarUDF::from(function), SCALAR)
    }
}

/// Tables `STORED AS` a file type for sessions of the package `datafusion`.
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct HostFactory {
    session: Arc<tadoc_session::Session>,
    file_type: String,
}

impl HostFactory {
    /// Creates the factory of tables of `file_type` of `session`.
    pub fn new(session: Arc<tadoc_session::Session>, file_type: String) -> Self {
        Self { session, file_type }
    }
}

#[pymethods]
impl HostFactory {
    fn __datafusion_table_provider_factory__<'py>(
        &self,
        session: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let codec = codec_of(session)?;
        let factory = CrossingFactory::new(Arc::clone(&self.session), self.file_type.clone());
        let factory = Arc::new(factory);
        let factory = FFI_TableProviderFactory::new_with_ffi_codec(factory, Some(handle()?), codec);
        PyCapsule::new_with_value(session.py(), factory, FACTORY)
    }
}

/// Returns the capsule of a table for `session`, a session of the package `datafusion`.
///
/// # Errors
/// The package has another major version, or this process was forked.
pub fn table_capsule<'py>(session: &Bound<'py, PyAny>, table: Crossing) -> PyResult<Bound<'py, PyCapsule>> {
    let codec = codec_of(session)?;
    let table = FFI_TableProvider::new_with_ffi_codec(Arc::new(table), true, Some(handle()?), codec);
    PyCapsule::new_with_value(session.py(), table, TABLE)
}

fn handle() -> PyResult<Handle> {
    Ok(runtime()?.handle().clone())
}

/// Checks that the package `datafusion` has the structs that this library writes.
///
/// # Errors
/// It is not installed, or has another major version.
pub fn check_host(py: Python<'_>) -> PyResult<()> {
    let version: String = py.import("datafusion")?.getattr("__version__")?.extract()?;
    let major = version.split('.').next().and_then(|major| major.parse::<u64>().ok());
    if major == Some(datafusion_ffi::version()) { Ok(()) } else { Err(wrong_version(&version)) }
}

fn wrong_version(got: &str) -> PyErr {
    let expected = datafusion_ffi::version();
    Error::new_err(format!(
        "the package datafusion has version {got}, expected {expected}; install \
         'datafusion=={expected}.*', or use datafusion_tadoc.connect(), which needs no other package"
    ))
}

/// Returns the codec of a session of the host.
fn codec_of(session: &Bound<'_, PyAny>) -> PyResult<FFI_LogicalExtensionCodec> {
    check_host(session.py())?;
    let capsule = match session.getattr_opt("__datafusion_logical_extension_codec__")? {
        Some(codec) => codec.call0()?,
        None => session.clone(),
    };
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(CODEC))?;
    // SAFETY: a capsule of this name holds a codec of the major version that was checked. The
    // capsule lives until the end of this function, and the clone has a life of its own.
    let codec = unsafe { pointer.cast::<FFI_LogicalExtensionCodec>().as_ref() };
    // SAFETY: the function takes nothing.
    let version = unsafe { (codec.version)() };
    if version == datafusion_ffi::version() { Ok(codec.clone()) } else { Err(wrong_version(&version.to_string())) }
}

/// Returns the table of `plan` in `session`.
///
/// # Errors
/// Two columns have the same name.
pub fn table_of(
    session: &Arc<tadoc_session::Session>,
    plan: &datafusion::logical_expr::LogicalPlan,
) -> PyResult<Crossing> {
    Crossing::new(Arc::clone(session), plan.clone()).map_err(error_of)
}
