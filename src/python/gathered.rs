//! The rows of a statement, gathered in memory, and as tuples of Python values.
//!
//! A statement runs to its end in a task of the runtime, so its errors and interrupts are exceptions
//! of Python. Other libraries then take the rows without copies.
//!
//! Some libraries do not read all types: pandas has no views in lists, and polars reads decimals of 32 and 64
//! bits from a stream as if they had 128 (2.1.0). So columns of such types, at any depth, are cast before
//! these libraries take them.
//!
//! Tuples need no other package. Columns are converted one after another, so a type is looked at once a batch. Nested
//! values are lists and dictionaries, times are those of `datetime`, decimals those of `decimal`. Times of Python have
//! microseconds, so finer digits of moments are cut off. An interval is a `timedelta`. One with months or
//! with such digits, which has no counterpart, is a tuple of months, days and nanoseconds. A value of a union
//! is that of its type.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait,
    PrimitiveArray, RecordBatch, RecordBatchIterator, StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowTemporalType, DataType, Date32Type, Date64Type, Decimal128Type, Decimal256Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Field, FieldRef, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalUnit, IntervalYearMonthType, Schema, SchemaRef, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
use datafusion::logical_expr::LogicalPlan;
use futures::TryStreamExt;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDelta, PyDict, PyList, PyTuple};
use tadoc_session::{BoundedTable, MaxWidth, Outcome, is_shown_whole};

use crate::capsules::{Reader, stream_capsule};
use crate::error_of;

/// Rows in memory.
#[derive(Clone)]
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct Gathered {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// True for plans and descriptions, which are shown whole.
    is_shown_whole: bool,
}

impl Gathered {
    /// Creates rows from batches of `schema`.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches, is_shown_whole: false }
    }

    /// Returns the schema of the rows.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Returns the rows as batches.
    pub fn reader(&self) -> Reader {
        let batches = self.batches.clone().into_iter().map(Ok);
        Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema)))
    }
}

#[pymethods]
impl Gathered {
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Returns the rows as a list of tuples.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        rows_of(py, &self.batches)
    }

    /// Returns the rows in types that pandas reads, or polars if texts may stay views.
    fn usual(&self, has_views: bool) -> PyResult<Self> {
        let schema = usual_schema(&self.schema, has_views);
        if schema == self.schema {
            return Ok(self.clone());
        }
        let batches = self.batches.iter().map(|batch| cast_batch(batch, &schema));
        let batches = batches.collect::<Result<_, _>>().map_err(error_of)?;
        Ok(Self { schema, batches, ..*self })
    }

    /// Returns the first rows as cells for people. A cell has at most `max_width` characters, any number if
    /// it is `None`, and a note of what was cut.
    #[pyo3(signature = (limit, max_width))]
    pub fn preview(&self, limit: usize, max_width: Option<usize>) -> PyResult<Preview> {
        // The rows are in memory, and their cells are shorter.
        let pool: Arc<dyn MemoryPool> = Arc::<UnboundedMemoryPool>::default();
        let width = width_for(max_width, self.is_shown_whole);
        let mut preview = Preview::new(&self.schema, limit, width, &pool);
        for batch in &self.batches {
            preview.push(batch).map_err(error_of)?;
        }
        Ok(preview)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Best effort, as the interface allows: the reader casts.
        let _ = requested_schema;
        stream_capsule(py, self.reader())
    }
}

/// Runs a plan and returns its rows, at most `limit` of them.
pub async fn gather(session: &tadoc_session::Session, plan: LogicalPlan, limit: Option<usize>) -> Outcome<Gathered> {
    let is_shown_whole = is_shown_whole(&plan);
    let rows = session.start(plan).await?;
    let gathered = rows.take(async |mut stream| {
        let schema = stream.schema();
        let mut left = limit.unwrap_or(usize::MAX);
        let mut batches: Vec<RecordBatch> = Vec::new();
        while left > 0
            && let Some(batch) = stream.try_next().await?
        {
            let room = left.min(batch.num_rows());
            left -= room;
            batches.push(batch.slice(0, room));
        }
        Ok(Gathered { is_shown_whole, ..Gathered::new(schema, batches) })
    });
    Ok(gathered.await?)
}

/// The first rows of a statement as cells for people.
#[pyclass(module = "datafusion_tadoc._native")]
pub struct Preview {
    table: BoundedTable<'static>,
    room: usize,
    has_more: bool,
}

impl Preview {
    fn new(schema: &Schema, limit: usize, width: MaxWidth, pool: &Arc<dyn MemoryPool>) -> Self {
        let options = FormatOptions::default().with_null("NULL");
        Self { table: BoundedTable::new(schema, options, width, pool), room: limit, has_more: false }
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let num_rows = self.room.min(batch.num_rows());
        self.room -= num_rows;
        self.has_more |= num_rows < batch.num_rows();
        self.table.push(&batch.slice(0, num_rows))
    }
}

#[pymethods]
impl Preview {
    /// True if the statement has more rows.
    #[getter]
    fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns the rows as a table in text.
    fn text(&self) -> String {
        self.table.to_string()
    }

    /// Returns the names of the columns and the cells of each row.
    fn cells(&self) -> (Vec<String>, Vec<Vec<String>>) {
        self.table.rows()
    }
}

/// Runs a plan until it has more than `limit` rows, and returns the first ones as cells for people. It keeps
/// the cells of a batch, not the batch.
pub async fn preview(
    session: &tadoc_session::Session,
    plan: LogicalPlan,
    limit: usize,
    max_width: Option<usize>,
) -> Outcome<Preview> {
    let width = width_for(max_width, is_shown_whole(&plan));
    let pool = Arc::clone(&session.context().runtime_env().memory_pool);
    let rows = session.start(plan).await?;
    let shown = rows.take(async |mut stream| {
        let mut preview = Preview::new(&stream.schema(), limit, width, &pool);
        while !preview.has_more
            && let Some(batch) = stream.try_next().await?
        {
            preview.push(&batch)?;
        }
        Ok(preview)
    });
    Ok(shown.await?)
}

fn width_for(max_width: Option<usize>, is_shown_whole: bool) -> MaxWidth {
    match max_width {
        _ if is_shown_whole => MaxWidth::Lines,
        Some(num_chars) => MaxWidth::Chars(num_chars),
        None => MaxWidth::Unlimited,
    }
}

/// Returns `schema` with usual types. Texts and bytes may stay views if `has_views`.
fn usual_schema(schema: &Schema, has_views: bool) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(|field| usual_field(field, has_views)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns `batch` with the types of `schema`.
///
/// # Errors
/// A type has no cast.
fn cast_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let fields = schema.fields().iter();
    let columns = batch.columns().iter().zip(fields).map(|(column, field)| {
        if column.data_type() == field.data_type() { Ok(Arc::clone(column)) } else { cast(column, field.data_type()) }
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
}

fn usual_field(field: &FieldRef, has_views: bool) -> FieldRef {
    let data_type = usual_type(field.data_type(), has_views);
    if data_type == *field.data_type() {
        Arc::clone(field)
    } else {
        Arc::new(Field::clone(field).with_data_type(data_type))
    }
}

fn usual_type(data_type: &DataType, has_views: bool) -> DataType {
    let inner = |field: &FieldRef| usual_field(field, has_views);
    match data_type {
        DataType::Utf8View if !has_views => DataType::LargeUtf8,
        DataType::BinaryView if !has_views => DataType::LargeBinary,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::List(item) | DataType::ListView(item) => DataType::List(inner(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, len) => DataType::FixedSizeList(inner(item), *len),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(inner(entries), *is_sorted),
        other => other.clone(),
    }
}

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
