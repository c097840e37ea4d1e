//! Python values as the parameters of statements, which are literals of SQL.

use std::collections::BTreeMap;
use std::ops::Range;

use datafusion::sql::sqlparser::ast::{
    Array, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, Interval, ObjectName, TimezoneInfo, TypedString, UnaryOperator, Value,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyDict, PyFloat, PyInt, PyList,
    PyString, PyTime, PyTuple, PyTzInfoAccess,
};
use tadoc_session::Parameters;

use crate::Error;

/// Lists in each other that a parameter may have.
const MAX_DEPTH: usize = 16;
/// Digits of the widest decimal.
const MAX_DIGITS: i64 = 38;
/// Years of which all moments fit into 64 bits of nanoseconds, as SQL's timestamps are.
const NANOSECOND_YEARS: Range<i32> = 1678..2262;

/// Reads a list, a tuple or a dictionary of values.
///
/// # Errors
/// A value has no literal in SQL, or lists are too deep in each other.
pub fn parameters_of(values: Option<&Bound<'_, PyAny>>) -> PyResult<Parameters> {
    let mut literals = BTreeMap::new();
    let Some(values) = values else { return Ok(Parameters::default()) };
    if let Ok(named) = values.cast::<PyDict>() {
        for (name, value) in named {
            literals.insert(name.extract()?, literal(&value, MAX_DEPTH)?);
        }
    } else if values.is_instance_of::<PyList>() || values.is_instance_of::<PyTuple>() {
        for (at, value) in values.try_iter()?.enumerate() {
            literals.insert((at + 1).to_string(), literal(&value?, MAX_DEPTH)?);
        }
    } else {
        return Err(PyTypeError::new_err("parameters are a list, a tuple or a dictionary"));
    }
    Ok(Parameters::new(literals))
}

/// Returns the literal of a Python value with at most `depth` lists in each other.
fn literal(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Expr> {
    Ok(if value.is_none() {
        plain(Value::Null)
    } else if let Ok(value) = value.cast::<PyBool>() {
        plain(Value::Boolean(value.is_true()))
    } else if value.is_instance_of::<PyInt>() {
        integer(value)?
    } else if let Ok(value) = value.cast::<PyFloat>() {
        float(value.extract()?)
    } else if let Ok(value) = value.cast::<PyString>() {
        plain(Value::SingleQuotedString(value.to_str()?.to_owned()))
    } else if let Ok(value) = value.cast::<PyBytes>() {
        let hex = value.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        plain(Value::HexStringLiteral(hex))
    } else if let Ok(moment) = value.cast::<PyDateTime>() {
        let text: String = value.call_method0("isoformat")?.extract()?;
        match moment.get_tzinfo() {
            // pandas has a moment that is none.
            _ if text == "NaT" => plain(Value::Null),
            // `TIMESTAMP WITH TIME ZONE` takes the zone of the session, which may be none.
            Some(_) => arrow_cast(text, "Timestamp(Microsecond, Some(\"+00:00\"))"),
            None if NANOSECOND_YEARS.contains(&moment.get_year()) => {
                typed(DataType::Timestamp(None, TimezoneInfo::None), text)
            }
            None => arrow_cast(text, "Timestamp(Microsecond, None)"),
        }
    } else if let Ok(span) = value.cast::<PyDelta>() {
        interval(span)
    } else if value.is_instance_of::<PyDate>() {
        typed(DataType::Date, value.call_method0("isoformat")?.extract()?)
    } else if value.is_instance_of::<PyTime>() {
        typed(DataType::Time(None, TimezoneInfo::None), value.call_method0("isoformat")?.extract()?)
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| Error::new_err(format!("a parameter has more than {MAX_DEPTH} lists in each other")))?;
        let elem = value.try_iter()?.map(|item| literal(&item?, depth));
        let elem = elem.collect::<PyResult<_>>()?;
        Expr::Array(Array { elem, named: true })
    } else if is_decimal(value)? {
        decimal(value)?
    } else if value.hasattr("__fspath__")? {
        let path: String = value.call_method0("__fspath__")?.extract()?;
        plain(Value::SingleQuotedString(path))
    } else if let Some(value) = plain_value(value)? {
        literal(&value, depth)?
    } else {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a parameter is None, a bool, int, float, str, bytes, date, time, datetime, timedelta, \
             Decimal, path, scalar of numpy or list of these, and not {kind}"
        )));
    })
}

fn plain(value: Value) -> Expr {
    Expr::Value(value.with_empty_span())
}

fn typed(data_type: DataType, text: String) -> Expr {
    let value = Value::SingleQuotedString(text).with_empty_span();
    Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false })
}

/// Returns the interval of a span of time. It has no days, because SQL orders intervals by days first.
fn interval(span: &Bound<'_, PyDelta>) -> Expr {
    let seconds = i128::from(span.get_days()) * 86_400 + i128::from(span.get_seconds());
    let microseconds = seconds * 1_000_000 + i128::from(span.get_microseconds());
    let (seconds, microseconds) = (microseconds / 1_000_000, microseconds % 1_000_000);
    let text = format!("{seconds} seconds {microseconds} microseconds");
    Expr::Interval(Interval {
        value: Box::new(plain(Value::SingleQuotedString(text))),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    })
}

/// Returns the value of Python that a scalar of numpy stands for, or `None` if there is none.
fn plain_value<'py>(scalar: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_numpy = scalar.get_type().module()?.to_str()? == "numpy";
    if !is_numpy || !scalar.hasattr("dtype")? || !scalar.getattr("shape")?.is_empty()? {
        return Ok(None);
    }
    let kind: String = scalar.getattr("dtype")?.getattr("kind")?.extract()?;
    let value = match kind.as_str() {
        "b" | "i" | "u" | "f" => scalar.call_method0("item")?,
        // Finer units are integers in Python.
        "M" | "m" => {
            let name = if kind == "M" { "datetime64[us]" } else { "timedelta64[us]" };
            let in_microseconds = scalar.call_method1("astype", (name,))?;
            let is_none = scalar.ne(scalar)?;
            // Months have no length, so numpy does not compare them with microseconds.
            if !is_none && in_microseconds.ne(scalar).unwrap_or(true) {
                return Ok(None);
            }
            in_microseconds.call_method0("item")?
        }
        _ => return Ok(None),
    };
    let is_moment = value.is_instance_of::<PyDateTime>() || value.is_instance_of::<PyDelta>();
    let is_expected = match kind.as_str() {
        "M" | "m" => is_moment || value.is_none(),
        _ => value.get_type().module()?.to_str()? == "builtins",
    };
    Ok(is_expected.then_some(value))
}

/// Returns `text` as a value of the Arrow type `data_type`.
fn arrow_cast(text: String, data_type: &str) -> Expr {
    let arguments = [text, data_type.to_owned()].map(|text| {
        let text = plain(Value::SingleQuotedString(text));
        FunctionArg::Unnamed(FunctionArgExpr::Expr(text))
    });
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("arrow_cast")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Returns the literal of an integer of 64 bits. SQL reads a longer one as a float.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    let signed = value.extract::<i64>().map(|value| value.to_string());
    let digits = signed.or_else(|_| value.extract::<u64>().map(|value| value.to_string()));
    digits.map(|digits| number(&digits)).map_err(|_| {
        // Python refuses to write an integer of thousands of digits.
        let shown = value.str().map_or_else(|_| "an integer".to_owned(), |text| text.to_string());
        Error::new_err(format!("a parameter: got {shown}, which does not fit into 64 bits; pass a Decimal or a text"))
    })
}

/// Returns the literal of a number in decimal digits, perhaps with a minus.
fn number(digits: &str) -> Expr {
    match digits.strip_prefix('-') {
        Some(digits) => Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number(digits)) },
        None => plain(Value::Number(digits.to_owned(), false)),
    }
}

fn float(value: f64) -> Expr {
    if value.is_finite() {
        number(&format!("{value:e}"))
    } else {
        typed(DataType::Double(ExactNumberInfo::None), value.to_string())
    }
}

fn is_decimal(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = value.get_type();
    Ok(kind.name()? == "Decimal" && kind.module()?.to_str()? == "decimal")
}

/// Returns a literal with all digits of a decimal, and with the most room before the point.
fn decimal(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    // The text below has no exponent, so a large one would become that many digits.
    let exponent: i64 = value.call_method0("adjusted")?.extract()?;
    if !(-MAX_DIGITS..MAX_DIGITS).contains(&exponent) {
        let shown = value.str()?;
        return Err(Error::new_err(format!(
            "a parameter: got {shown}, expected a decimal of at most {MAX_DIGITS} digits; pass a float \
             or a text"
        )));
    }
    let text: String = value.call_method1("__format__", ("f",))?.extract()?;
    let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let scale = i64::try_from(scale).unwrap_or(i64::MAX);
    Ok(typed(DataType::Decimal(ExactNumberInfo::PrecisionAndScale(38, scale)), text))
}
