//! The capsules that the Python package `datafusion` takes: functions and tables for its sessions.
//!
//! ```text
//! ctx.register_udtf(udtf(f, 'word_count'))   __datafusion_table_function__(session)
//! ctx.register_udf(udf(f))                   __datafusion_scalar_udf__()
//! ctx.register_table_factory('TADOC', f)     __datafusion_table_provider_factory__(session)
//! ctx.register_table('t', result)            __datafusion_table_provider__(session)
//! ```
//!
//! A capsule holds a struct of the crate `datafusion-ffi`. Its layout is the same in all releases
//! of one major version, and both sides read each other's structs, so the major version of the
//! package is checked before a capsule is made, and that of the session's codec before it is used.

#![allow(unsafe_code, reason = "capsules hold raw pointers")]

use std::ffi::CStr;
use std::sync::Arc;

use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::table_provider::FFI_TableProvider;
use datafusion_ffi::table_provider_factory::FFI_TableProviderFactory;
use datafusion_ffi::udf::FFI_ScalarUDF;
use datafusion_ffi::udtf::FFI_TableFunction;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tokio::runtime::Handle;

use crate::crossing::Crossing;
use crate::crossing::{CrossingFactory, CrossingFunction, CrossingScalar};
use crate::waiting::runtime;
use crate::{Error, error_of};

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
