//! DataFusion's functions whose answers can be far longer than their arguments, under a limit of memory.
//!
//! DataFusion counts the memory of operators, not of expressions: `repeat('x', 2000000000)` takes 2 GB that
//! no limit knows, and takes them while a statement is planned if its arguments are constants.
//! [`bound_functions`] puts a function in front of each such function. It computes the most bytes of the
//! answer from the arguments and asks the memory pool for them while the function runs:
//!
//! ```text
//! repeat(text, n)                 n texts
//! lpad, rpad(text, n, fill)       the text and n characters
//! array_repeat(element, n)        n elements
//! array_resize(list, n, element)  the list and n elements
//! range, generate_series          8 bytes for each step from start to stop
//! ```
//!
//! The pool has the bytes back when the function returns. `replace`, `regexp_replace` and `||` are not
//! bounded here: their answers depend on the texts, or are as long as their arguments. Elements and lists of
//! different lengths count with their mean, so the bytes of such an answer are an estimate.
//!
//! Cost: O(rows) for the bound.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Float64Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::{
    DataType, FieldRef, Float64Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::resources_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, human_readable_size};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};

/// Answers of fewer bytes do not ask the pool.
const FREE_BYTES: u64 = 1 << 20;
/// Most bytes of a character.
const MAX_CHAR_BYTES: u64 = 4;
/// Bytes of a number or an offset.
const WORD_BYTES: u64 = 8;
const DAY_NANOS: f64 = 86_400e9;
/// Days of the shortest month.
const MONTH_DAYS: f64 = 28.0;

/// Returns the most bytes of an answer of this many rows.
type Bound = fn(&[ColumnarValue], usize) -> Result<u64>;

const BOUNDS: [(&str, Bound); 7] = [
    ("repeat", repeated_bytes),
    ("lpad", padded_bytes),
    ("rpad", padded_bytes),
    ("array_repeat", repeated_elements_bytes),
    ("array_resize", resized_bytes),
    ("range", steps_bytes),
    ("generate_series", steps_bytes),
];

/// Puts the functions of `registry` whose answers can be far longer than their arguments under the limit
/// of `pool`: they fail where it has too few bytes for an answer.
///
/// # Errors
/// The errors of `registry`.
pub fn bound_functions(
    registry: &mut dyn FunctionRegistry,
    pool: &Arc<dyn MemoryPool>,
) -> Result<()> {
    for (name, bound) in BOUNDS {
        if let Ok(inner) = registry.udf(name) {
            let bounded = BoundedFunction { inner, bound, pool: Arc::clone(pool) };
            registry.register_udf(Arc::new(bounded.into()))?;
        }
    }
    Ok(())
}

/// A function that asks for the memory of its answer first; see the module's description.
#[derive(Debug)]
struct BoundedFunction {
    inner: Arc<ScalarUDF>,
    bound: Bound,
    pool: Arc<dyn MemoryPool>,
}

impl BoundedFunction {
    fn too_long(&self, len_bytes: usize, cause: &DataFusionError) -> DataFusionError {
        resources_datafusion_err!(
            "the answer of {} may take {}, and so much memory is not left; ask for less, or raise the limit \
             (--memory-limit of tadoc): {}",
            self.name(),
            human_readable_size(len_bytes),
            cause.strip_backtrace()
        )
    }
}

impl PartialEq for BoundedFunction {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for BoundedFunction {}

impl Hash for BoundedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ScalarUDFImpl for BoundedFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let len_bytes = (self.bound)(&args.args, args.number_rows)?;
        let reservation = MemoryConsumer::new(self.name()).register(&self.pool);
        if len_bytes > FREE_BYTES {
            let len_bytes = usize::try_from(len_bytes).unwrap_or(usize::MAX);
            let grown = reservation.try_grow(len_bytes);
            grown.map_err(|cause| self.too_long(len_bytes, &cause))?;
        }
        self.inner.invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// An argument in whole numbers.
struct Numbers(Int64Array);

impl Numbers {
    /// Takes the values of an argument.
    fn of(argument: &ColumnarValue) -> Result<Self> {
        let array = first_or_all(argument)?;
        Ok(Self(cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone()))
    }

    /// Takes the length of an argument: bytes of texts, elements of lists.
    fn lens(argument: &ColumnarValue) -> Result<Self> {
        let array = first_or_all(argument)?;
        Ok(Self(
            cast(&length(array.as_ref())?, &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
        ))
    }

    /// Returns the number of a row, 0 if it is negative or NULL.
    fn at(&self, row: usize) -> u64 {
        let row = if self.0.len() == 1 { 0 } else { row };
        if self.0.is_null(row) { 0 } else { u64::try_from(self.0.value(row)).unwrap_or(0) }
    }
}

/// Returns an argument as an array, with one row if it is the same in all rows.
fn first_or_all(argument: &ColumnarValue) -> Result<Arc<dyn Array>> {
    match argument {
        ColumnarValue::Array(array) => Ok(Arc::clone(array)),
        ColumnarValue::Scalar(scalar) => scalar.to_array(),
    }
}

/// Returns the sum of `bytes_of` over rows.
fn total(num_rows: usize, bytes_of: impl Fn(usize) -> u64) -> u64 {
    (0..num_rows).map(bytes_of).fold(0, u64::saturating_add)
}

fn repeated_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let [text, n, ..] = args else { return Ok(0) };
    let (lens, n) = (Numbers::lens(text)?, Numbers::of(n)?);
    Ok(total(num_rows, |row| lens.at(row).saturating_mul(n.at(row))))
}

fn padded_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let [text, n, fill @ ..] = args else { return Ok(0) };
    let (lens, n) = (Numbers::lens(text)?, Numbers::of(n)?);
    let fill = fill.first().map(Numbers::lens).transpose()?;
    Ok(total(num_rows, |row| {
        let char_bytes = fill.as_ref().map_or(1, |fill| fill.at(row).min(MAX_CHAR_BYTES));
        n.at(row).saturating_mul(char_bytes).saturating_add(lens.at(row))
    }))
}

fn repeated_elements_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let [element, n, ..] = args else { return Ok(0) };
    let (element_bytes, n) = (mean_bytes(element)?, Numbers::of(n)?);
    Ok(total(num_rows, |row| element_bytes.saturating_mul(n.at(row))))
}

fn resized_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let [list, n, element @ ..] = args else { return Ok(0) };
    let element_bytes = element.first().map_or(Ok(WORD_BYTES), mean_bytes)?;
    let (list_bytes, n) = (mean_bytes(list)?, Numbers::of(n)?);
    Ok(total(num_rows, |row| element_bytes.saturating_mul(n.at(row)).saturating_add(list_bytes)))
}

/// Returns the bytes of a row of an argument, as a mean that is rounded up.
fn mean_bytes(argument: &ColumnarValue) -> Result<u64> {
    let array = first_or_all(argument)?;
    let len_bytes = array.to_data().get_slice_memory_size()?;
    Ok(len_bytes.div_ceil(array.len().max(1)).max(1) as u64)
}

fn steps_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let (start, stop, step) = match args {
        [stop] => (None, places(stop)?, None),
        [start, stop] => (Some(places(start)?), places(stop)?, None),
        [start, stop, step] => (Some(places(start)?), places(stop)?, Some(places(step)?)),
        _ => return Ok(0),
    };
    let at = |places: &Float64Array, row: usize| {
        let row = if places.len() == 1 { 0 } else { row };
        if places.is_null(row) { 0.0 } else { places.value(row) }
    };
    Ok(total(num_rows, |row| {
        let span = at(&stop, row) - start.as_ref().map_or(0.0, |start| at(start, row));
        let step = step.as_ref().map_or(1.0, |step| at(step, row).abs().max(1.0));
        ((span.abs() / step + 1.0) as u64).saturating_mul(WORD_BYTES)
    }))
}

/// Takes numbers as they are, moments in nanoseconds, and intervals as the fewest nanoseconds that they
/// can be.
fn places(argument: &ColumnarValue) -> Result<Float64Array> {
    let array = first_or_all(argument)?;
    if let DataType::Interval(_) = array.data_type() {
        let array = cast(&array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
        return Ok(array.as_primitive::<IntervalMonthDayNanoType>().unary(|interval| {
            let (months, days, nanos) = IntervalMonthDayNanoType::to_parts(interval);
            (f64::from(months) * MONTH_DAYS + f64::from(days)) * DAY_NANOS + nanos as f64
        }));
    }
    let unit_nanos = match array.data_type() {
        DataType::Date32 => DAY_NANOS,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1e6,
        DataType::Timestamp(TimeUnit::Second, _) => 1e9,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1e3,
        _ => 1.0,
    };
    let numbers = cast(&cast(&array, &DataType::Int64)?, &DataType::Float64)?;
    Ok(numbers.as_primitive::<Float64Type>().unary(|number| number * unit_nanos))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::display::array_value_to_string;
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn first_value(context: &SessionContext, expression: &str) -> Result<String> {
        let rows = context.sql(&format!("SELECT {expression}")).await?.collect().await?;
        Ok(array_value_to_string(rows[0].column(0), 0)?)
    }

    /// Returns the answer of `expression`, or the error, with 4 MiB of memory for answers.
    async fn answer(expression: &str) -> Result<String> {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(4 << 20));
        let mut context = SessionContext::new();
        bound_functions(&mut context, &pool)?;
        let value = first_value(&context, expression).await;
        assert_eq!(pool.reserved(), 0, "{expression}");
        value
    }

    #[tokio::test]
    async fn answers_are_those_of_datafusion() {
        for expression in [
            "repeat('ab', 3)",
            "repeat('ab', -1)",
            "repeat(NULL, 3)",
            "lpad('a', 5)",
            "lpad('é', 3, 'ß')",
            "rpad('a', 5, 'xy')",
            "rpad('abc', -2, 'xy')",
            "array_repeat('a', 3)",
            "list_repeat(make_array(1, 2), 2)",
            "array_resize(make_array(1, 2), 4)",
            "list_resize(make_array('a'), 3, 'b')",
            "range(5)",
            "range(5, 1, -2)",
            "generate_series(1, 3)",
            "generate_series(DATE '2020-01-31', DATE '2020-05-01', INTERVAL '1 month')",
            "range(TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02', INTERVAL '6 hours')",
            "length(repeat('x', 2000000))",
        ] {
            let expected = first_value(&SessionContext::new(), expression).await.unwrap();
            assert_eq!(answer(expression).await.unwrap(), expected, "{expression}");
        }
    }

    #[tokio::test]
    async fn long_answers_are_refused_before_they_are_made() {
        for expression in [
            "length(repeat('x', 2000000000))",
            "length(repeat('x', 9223372036854775807))",
            "length(lpad('x', 2000000000))",
            "length(rpad('x', 1100000, 'ßß'))",
            "length(rpad('x', 2000000000, 'y'))",
            "length(repeat(column1, 5000000)) FROM (VALUES ('x'), ('y'))",
            "length(repeat('x', column1)) FROM (VALUES (1), (5000000))",
            "cardinality(array_repeat('x', 2000000000))",
            "cardinality(array_resize(make_array(1), 2000000000))",
            "cardinality(range(2000000000))",
            "cardinality(range(-9223372036854775807, 9223372036854775807))",
            "cardinality(generate_series(0, -2000000000, -2))",
            "cardinality(range(TIMESTAMP '2020-01-01', TIMESTAMP '2021-01-01', INTERVAL '1 second'))",
            "cardinality(range(arrow_cast(0, 'Date32'), arrow_cast(2000000000, 'Date32'), INTERVAL '1 day'))",
        ] {
            let error = answer(expression).await.unwrap_err().to_string();
            assert!(error.contains("so much memory is not left"), "{expression}: {error}");
        }
    }
}
