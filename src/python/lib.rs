//! `datafusion_tadoc._native`: the part of the Python module that is Rust.
//!
//! ```text
//! datafusion_tadoc/__init__.py   what users see: connect, sql, Result, ingest, open
//!        │
//!        ▼
//! session    ─▶ feed (documents from Python), variables (variables of Python as tables of a statement, and
//!               parameters as SQL literals)
//! statement  ─▶ streams of rows
//! gathered   ─▶ rows in memory, and as Python values
//!        │
//!        ▼
//! waiting       statements run on threads of this library. Python's lock is free meanwhile, and
//!               Ctrl-C ends the statement
//! capsules      Arrow from and to other libraries, without copies; and what the package `datafusion` takes,
//!               over crossing (a plan as a table, and functions)
//!
//! device        GSST columns as text on a GPU, and device_array, which other libraries take without a copy
//! error_of      errors without the names of tables that the package made
//! ```
//!
//! Sessions are those of the command line (`tadoc_session::Session`), so errors have the same texts. The
//! command itself is a feature, which wheels have. `read_gsst`, `ingest` and living corpora make tables for
//! themselves. Their names say nothing to a user, so errors speak of what the table is.
//!
//! Panics become errors at two borders: in the task of a statement, and in each function that Python calls.

mod capsules;
mod crossing;
#[cfg(feature = "cuda")]
mod device;
#[cfg(feature = "cuda")]
mod device_array;
mod feed;
mod gathered;
mod session;
mod statement;
mod variables;
mod waiting;

use pyo3::prelude::*;
use tadoc_session::Failure;

pyo3::create_exception!(
    datafusion_tadoc,
    Error,
    pyo3::exceptions::PyException,
    "A statement, an ingest or a connection failed. The text is that of the command line."
);

pyo3::create_exception!(
    datafusion_tadoc,
    Interrupted,
    Error,
    "A statement was ended by interrupt(), which another thread called."
);

/// Returns the exception of a failure.
fn error_of(failure: impl Into<Failure>) -> PyErr {
    Error::new_err(without_made_names(&failure.into().into_text()))
}

/// The Rust part of `datafusion_tadoc`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::capsules::{HostFactory, HostFunction, HostScalar};
    #[cfg(feature = "cuda")]
    #[pymodule_export]
    use super::device::{DeviceArrayIterator, DeviceArrays, device_arrays};
    #[cfg(feature = "cuda")]
    #[pymodule_export]
    use super::device_array::{DeviceArray, DeviceBuffer};
    #[pymodule_export]
    use super::gathered::Gathered;
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::statement::{Batches, Statement};
    #[pymodule_export]
    use super::{Error, Interrupted};

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
        super::capsules::check_host(py)
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

/// Beginnings of the names, and what a user calls these tables. A number of 32 digits follows.
const NAMES: [(&str, &str); 4] = [
    ("tadoc_gsst_", "the file"),
    ("tadoc_rows_", "the rows"),
    ("tadoc_columns_", "the rows"),
    ("living_", "the corpus"),
];
/// Number of digits of the number behind a beginning.
const NUM_DIGITS: usize = 32;
/// Qualifier of tables in errors of DataFusion.
const SCHEMA: &str = "datafusion.public.";

/// Returns `text` without names of tables that this package made.
fn without_made_names(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, len, meaning)) = first_name(rest) {
        let before = &rest[..at];
        let behind = &rest[at + len..];
        shown.push_str(before.strip_suffix(SCHEMA).unwrap_or(before));
        match behind.strip_prefix('.').filter(|column| column.starts_with(is_of_name)) {
            // The name qualifies a column.
            Some(column) => rest = column,
            None => {
                shown.push_str(meaning);
                rest = behind;
            }
        }
    }
    shown.push_str(rest);
    shown
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '"')
}

/// Returns the place, the length and the meaning of the first name in `text`.
fn first_name(text: &str) -> Option<(usize, usize, &'static str)> {
    let places = NAMES.iter().flat_map(|&(prefix, meaning)| {
        text.match_indices(prefix).filter_map(move |(at, _)| {
            let digits = text.as_bytes().get(at + prefix.len()..at + prefix.len() + NUM_DIGITS)?;
            let is_number = digits.iter().all(u8::is_ascii_hexdigit);
            is_number.then_some((at, prefix.len() + NUM_DIGITS, meaning))
        })
    });
    places.min_by_key(|&(at, _, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_made_are_not_shown() {
        let digits = "0123456789abcdef0123456789abcdef";
        for (text, expected) in [
            (
                format!("No field named x. Valid fields are tadoc_gsst_{digits}.id, tadoc_gsst_{digits}.\"A b\"."),
                "No field named x. Valid fields are id, \"A b\".",
            ),
            (format!("table 'datafusion.public.living_{digits}' not found"), "table 'the corpus' not found"),
            (format!("tadoc_rows_{digits}: broken."), "the rows: broken."),
            ("living_room tadoc_gsst_12.x".to_owned(), "living_room tadoc_gsst_12.x"),
            ("é living_".to_owned(), "é living_"),
        ] {
            assert_eq!(without_made_names(&text), expected);
        }
    }
}
