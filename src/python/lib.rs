//! `datafusion_tadoc._native`: the part of the Python module that is Rust.
//!
//! ```text
//! datafusion_tadoc/__init__.py   what users see: connect, sql, Result, ingest, open
//!        │
//!        ▼
//! session    ─▶ parameters (Python values as SQL literals), feed (documents from Python)
//! statement  ─▶ streams of rows
//! gathered   ─▶ rows_of (rows as Python values)
//!        │
//!        ▼
//! waiting       statements run on threads of this library. Python's lock is free meanwhile, and
//!               Ctrl-C ends the statement
//! capsules      Arrow from and to other libraries, without copies
//!
//! device        GSST columns as text on a GPU
//! made_names    errors without the names of tables that the package made
//! host          capsules for the package `datafusion`, over crossing (a plan as a table) and
//!               crossing_functions
//! ```
//!
//! Sessions are those of the command line (`tadoc_session::Session`), so errors have the same texts. The command
//! itself is a feature, which wheels have.
//! Panics become errors at two borders: in the task of a statement, and in each function that
//! Python calls.

mod capsules;
mod crossing;
mod crossing_functions;
#[cfg(feature = "cuda")]
mod device;
mod feed;
mod gathered;
mod host;
mod made_names;
mod parameters;
mod plan;
mod rows_of;
mod session;
mod statement;
mod usual_types;
mod waiting;

use pyo3::prelude::*;
use tadoc_session::Failure;

use self::made_names::without_made_names;

pyo3::create_exception!(
    datafusion_tadoc,
    Error,
    pyo3::exceptions::PyException,
    "A statement, an ingest or a connection failed. The text is that of the command line."
);

/// Returns the exception of a failure.
fn error_of(failure: impl Into<Failure>) -> PyErr {
    Error::new_err(without_made_names(&failure.into().into_text()))
}

/// The Rust part of `datafusion_tadoc`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::Error;
    #[cfg(feature = "cuda")]
    #[pymodule_export]
    use super::device::{DeviceArray, device_arrays};
    #[pymodule_export]
    use super::gathered::Gathered;
    #[pymodule_export]
    use super::host::{HostFactory, HostFunction, HostScalar};
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::statement::Statement;

    #[cfg(feature = "command")]
    use std::ffi::OsString;

    use pyo3::prelude::*;

    /// Runs a command line and returns its exit status. The first argument is the program's name.
    #[cfg(feature = "command")]
    #[pyfunction]
    fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| tadoc_cli::run(arguments))
    }

    /// Raises an error if the package `datafusion` has another major version than this library.
    #[pyfunction]
    fn check_host(py: Python<'_>) -> PyResult<()> {
        super::host::check_host(py)
    }

    /// Returns the number of bytes that a text such as `4GiB` names.
    #[pyfunction]
    fn size(text: &str) -> PyResult<u64> {
        tadoc_documents::display::parse_size(text).map_err(super::Error::new_err)
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        datafusion_tadoc::quiet_readers();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
