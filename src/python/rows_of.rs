//! Rows as tuples of Python values, without any other package.
//!
//! Columns are converted one after another, so a type is looked at once a batch. Nested values are
//! lists and dictionaries, times are those of `datetime`, decimals those of `decimal`. Times of Python have
//! microseconds, so finer digits of moments are cut off. An interval is a `timedelta`. One with months or
//! with such digits, which has no counterpart, is a tuple of months, days and nanoseconds. A value of a union
//! is that of its type.

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait,
    PrimitiveArray, RecordBatch, StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::ArrowTemporalType;
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDelta, PyDict, PyList, PyTuple};

use crate::error_of;

/// Returns the rows of `batches` as a list of tuples.
///
/// # Errors
/// A date lies outside the years 1 to 9999 of Python.
pub fn rows_of<'py>(py: Python<'py>, batches: &[RecordBatch]) -> PyResult<Bound<'py, PyList>> {
    let rows = PyList::empty(py);
    for batch in batches {
        let columns = batch.columns().iter().map(|column| values_of(py, column));
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        for at in 0..batch.num_rows() {
            rows.append(PyTuple::new(py, columns.iter().map(|column| &column[at]))?)?;
        }
        py.check_signals()?;
    }
    Ok(rows)
}

type Values<'py> = PyResult<Vec<Bound<'py, PyAny>>>;

/// Returns the values of a column.
fn values_of<'py>(py: Python<'py>, column: &ArrayRef) -> Values<'py> {
    macro_rules! numbers {
        ($kind:ty) => {{
            let column = column.as_primitive::<$kind>();
            each(py, column, |at| Ok(column.value(at).into_pyobject(py)?.into_any()))
        }};
    }
    match column.data_type() {
        DataType::Null => Ok(vec![py.None().into_bound(py); column.len()]),
        DataType::Boolean => {
            let column = column.as_boolean();
            each(py, column, |at| Ok(column.value(at).into_pyobject(py)?.to_owned().into_any()))
        }
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        DataType::Float16 => {
            let column = column.as_primitive::<Float16Type>();
            each(py, column, |at| Ok(column.value(at).to_f64().into_pyobject(py)?.into_any()))
        }
        DataType::Utf8 | DataType::LargeUtf8 => values_of(py, &as_type(column, &DataType::Utf8View)?),
        DataType::Utf8View => {
            let column = column.as_string_view();
            each(py, column, |at| Ok(column.value(at).into_pyobject(py)?.into_any()))
        }
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) => {
            values_of(py, &as_type(column, &DataType::BinaryView)?)
        }
        DataType::BinaryView => {
            let column = column.as_binary_view();
            each(py, column, |at| Ok(PyBytes::new(py, column.value(at)).into_any()))
        }
        DataType::List(_) => lists(py, column.as_list::<i32>()),
        DataType::LargeList(_) => lists(py, column.as_list::<i64>()),
        DataType::ListView(item) => values_of(py, &as_type(column, &DataType::List(item.clone()))?),
        DataType::LargeListView(item) => values_of(py, &as_type(column, &DataType::LargeList(item.clone()))?),
        DataType::FixedSizeList(_, _) => fixed_lists(py, column.as_fixed_size_list()),
        DataType::Struct(_) => dictionaries(py, column.as_struct()),
        DataType::Map(_, _) => pairs(py, column.as_map()),
        DataType::Dictionary(_, values) => values_of(py, &as_type(column, values)?),
        DataType::RunEndEncoded(_, values) => values_of(py, &as_type(column, values.data_type())?),
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => {
            values_of(py, &as_type(column, &DataType::Decimal128(38, *scale))?)
        }
        DataType::Decimal128(_, _) => {
            let column = column.as_primitive::<Decimal128Type>();
            decimals(py, column, |at| column.value_as_string(at))
        }
        DataType::Decimal256(_, _) => {
            let column = column.as_primitive::<Decimal256Type>();
            decimals(py, column, |at| column.value_as_string(at))
        }
        DataType::Interval(unit) => intervals(py, column, *unit),
        DataType::Union(_, _) => {
            let column = column.as_union();
            let value = |at| Ok(values_of(py, &column.value(at))?.swap_remove(0));
            (0..column.len()).map(value).collect()
        }
        _ => times_of(py, column),
    }
}

fn intervals<'py>(py: Python<'py>, column: &ArrayRef, unit: IntervalUnit) -> Values<'py> {
    match unit {
        IntervalUnit::YearMonth => {
            let column = column.as_primitive::<IntervalYearMonthType>();
            each(py, column, |at| interval(py, column.value(at), 0, 0))
        }
        IntervalUnit::DayTime => {
            let column = column.as_primitive::<IntervalDayTimeType>();
            each(py, column, |at| {
                let value = column.value(at);
                interval(py, 0, value.days, i64::from(value.milliseconds) * 1_000_000)
            })
        }
        IntervalUnit::MonthDayNano => {
            let column = column.as_primitive::<IntervalMonthDayNanoType>();
            each(py, column, |at| {
                let value = column.value(at);
                interval(py, value.months, value.days, value.nanoseconds)
            })
        }
    }
}

/// Returns a span of days and microseconds, or a tuple if it has anything else.
fn interval(py: Python<'_>, months: i32, days: i32, nanoseconds: i64) -> PyResult<Bound<'_, PyAny>> {
    if months != 0 || nanoseconds % 1_000 != 0 {
        return Ok((months, days, nanoseconds).into_pyobject(py)?.into_any());
    }
    let microseconds = nanoseconds / 1_000;
    let seconds = microseconds / 1_000_000;
    let days = i32::try_from(i64::from(days) + seconds / 86_400);
    let seconds = i32::try_from(seconds % 86_400);
    let microseconds = i32::try_from(microseconds % 1_000_000);
    let (Ok(days), Ok(seconds), Ok(microseconds)) = (days, seconds, microseconds) else {
        return Err(out_of_range());
    };
    let span = PyDelta::new(py, days, seconds, microseconds, true);
    Ok(span.map_err(|_| out_of_range())?.into_any())
}

/// Returns the values of a column of dates and times, or the texts of any other column.
fn times_of<'py>(py: Python<'py>, column: &ArrayRef) -> Values<'py> {
    macro_rules! times {
        ($kind:ty, $value:ident) => {{
            let column = column.as_primitive::<$kind>();
            each(py, column, |at| match column.$value(at) {
                Some(value) => Ok(value.into_pyobject(py).map_err(|_| out_of_range())?.into_any()),
                None => Err(out_of_range()),
            })
        }};
    }
    match column.data_type() {
        DataType::Date32 => times!(Date32Type, value_as_date),
        DataType::Date64 => times!(Date64Type, value_as_date),
        DataType::Time32(TimeUnit::Second) => times!(Time32SecondType, value_as_time),
        DataType::Time32(_) => times!(Time32MillisecondType, value_as_time),
        DataType::Time64(TimeUnit::Microsecond) => times!(Time64MicrosecondType, value_as_time),
        DataType::Time64(_) => times!(Time64NanosecondType, value_as_time),
        DataType::Duration(TimeUnit::Second) => times!(DurationSecondType, value_as_duration),
        DataType::Duration(TimeUnit::Millisecond) => {
            times!(DurationMillisecondType, value_as_duration)
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            times!(DurationMicrosecondType, value_as_duration)
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            times!(DurationNanosecondType, value_as_duration)
        }
        DataType::Timestamp(TimeUnit::Second, None) => {
            times!(TimestampSecondType, value_as_datetime)
        }
        DataType::Timestamp(TimeUnit::Millisecond, None) => {
            times!(TimestampMillisecondType, value_as_datetime)
        }
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            times!(TimestampMicrosecondType, value_as_datetime)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, None) => {
            times!(TimestampNanosecondType, value_as_datetime)
        }
        DataType::Timestamp(unit, Some(name)) => {
            let zone: Tz = name.parse().map_err(error_of)?;
            match unit {
                TimeUnit::Second => zoned::<TimestampSecondType>(py, column, zone, name),
                TimeUnit::Millisecond => zoned::<TimestampMillisecondType>(py, column, zone, name),
                TimeUnit::Microsecond => zoned::<TimestampMicrosecondType>(py, column, zone, name),
                TimeUnit::Nanosecond => zoned::<TimestampNanosecondType>(py, column, zone, name),
            }
        }
        _ => texts(py, column),
    }
}

/// Returns moments with a zone: one of `zoneinfo` if Python knows its name, or else the offset that the zone has at
/// each moment.
fn zoned<'py, T>(py: Python<'py>, column: &ArrayRef, zone: Tz, name: &str) -> Values<'py>
where
    T: ArrowTemporalType,
    i64: From<T::Native>,
{
    let column = column.as_primitive::<T>();
    let named = named_zone(py, name)?;
    each(py, column, |at| {
        let Some(moment) = column.value_as_datetime_with_tz(at, zone) else { return Err(out_of_range()) };
        let moment = moment.fixed_offset().into_pyobject(py).map_err(|_| out_of_range())?;
        match &named {
            Some(named) => moment.call_method1("astimezone", (named,)).map_err(|_| out_of_range()),
            None => Ok(moment.into_any()),
        }
    })
}

/// Returns Python's zone of a name such as `Europe/Berlin`. Offsets have none, and neither have systems without
/// zones.
fn named_zone<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Ok(None);
    }
    let zones = py.import("zoneinfo")?;
    Ok(zones.getattr("ZoneInfo")?.call1((name,)).ok())
}

/// Calls `value` for each row that is not NULL.
fn each<'py>(py: Python<'py>, column: &dyn Array, value: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>) -> Values<'py> {
    let value = |at| if column.is_null(at) { Ok(py.None().into_bound(py)) } else { value(at) };
    (0..column.len()).map(value).collect()
}

fn as_type(column: &ArrayRef, data_type: &DataType) -> PyResult<ArrayRef> {
    cast(column, data_type).map_err(error_of)
}

fn lists<'py, O: OffsetSizeTrait>(py: Python<'py>, column: &GenericListArray<O>) -> Values<'py> {
    each(py, column, |at| Ok(PyList::new(py, values_of(py, &column.value(at))?)?.into_any()))
}

fn fixed_lists<'py>(py: Python<'py>, column: &FixedSizeListArray) -> Values<'py> {
    each(py, column, |at| Ok(PyList::new(py, values_of(py, &column.value(at))?)?.into_any()))
}

fn dictionaries<'py>(py: Python<'py>, column: &StructArray) -> Values<'py> {
    let fields = column.columns().iter().map(|field| values_of(py, field));
    let fields = fields.collect::<PyResult<Vec<_>>>()?;
    each(py, column, |at| {
        let value = PyDict::new(py);
        for (name, values) in column.column_names().into_iter().zip(&fields) {
            value.set_item(name, &values[at])?;
        }
        Ok(value.into_any())
    })
}

/// Returns maps as lists of pairs, because keys may be of any type.
fn pairs<'py>(py: Python<'py>, column: &MapArray) -> Values<'py> {
    each(py, column, |at| {
        let entries = column.value(at);
        let [keys, values] = [entries.column(0), entries.column(1)].map(|column| values_of(py, column));
        let pairs = keys?.into_iter().zip(values?).collect::<Vec<_>>();
        Ok(PyList::new(py, pairs)?.into_any())
    })
}

fn decimals<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    column: &PrimitiveArray<T>,
    text: impl Fn(usize) -> String,
) -> Values<'py> {
    let decimal = py.import("decimal")?.getattr("Decimal")?;
    each(py, column, |at| decimal.call1((text(at),)))
}

fn texts<'py>(py: Python<'py>, column: &ArrayRef) -> Values<'py> {
    let formatter = ArrayFormatter::try_new(column, &FormatOptions::default()).map_err(error_of)?;
    let text = |at| formatter.value(at).try_to_string().map_err(error_of);
    each(py, column, |at| Ok(text(at)?.into_pyobject(py)?.into_any()))
}

fn out_of_range() -> PyErr {
    PyOverflowError::new_err("a date or time outside of Python's range; use arrow()")
}
