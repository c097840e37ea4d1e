//! Functions under a limit of memory, and bounds of those whose answers can be far longer than their arguments.
//!
//! DataFusion counts the memory of operators, not of expressions: `repeat('x', 2000000000)` takes 2 GB that
//! no limit knows, and takes them while a statement is planned if its arguments are constants.
//! [`bound_functions`] [charges](super::charged) each call to the memory pool. For a function that makes
//! much of little, the most bytes of the answer are computed from the arguments before it is called:
//!
//! ```text
//! repeat(text, n)                 n texts
//! lpad, rpad(text, n, fill)       the text and n characters
//! array_repeat(element, n)        n elements
//! array_resize(list, n, element)  the list and n elements
//! array_to_string(list, text)     a text for each element
//! range, generate_series          8 bytes for each step from start to stop
//! replace(text, from, to)         how much longer `to` is, for each place of `from`
//! regexp_replace(text, …, to)     `to` for each character of the text, and the text for each group in `to`
//! highlight, snippet              the markers of all hits ([`text`](super::text))
//! ```
//!
//! The pool has the bytes back when the function returns. Elements and lists of different lengths count
//! with their mean, so the bytes of such an answer are an estimate. `regexp_replace` is not bounded for a
//! `to` of up to 64 bytes: its bound is far above most answers.
//!
//! Cost: O(rows) for the bound, O(bytes) for that of `replace`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Float64Array, Int64Array, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::{
    DataType, Float64Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

/// Most bytes of a character.
const MAX_CHAR_BYTES: u64 = 4;
/// Bytes of a replacement of `regexp_replace` that is not bounded.
const MAX_FREE_REPLACEMENT: usize = 64;
/// Bytes of a number or an offset.
const WORD_BYTES: u64 = 8;
/// Most pairs of characters that `levenshtein` compares in a call: about a minute.
const MAX_PAIRS: u64 = 1 << 36;
const DAY_NANOS: f64 = 86_400e9;
/// Days of the shortest month.
const MONTH_DAYS: f64 = 28.0;

/// Returns the most bytes of an answer of this many rows.
type Bound = fn(&[ColumnarValue], usize) -> Result<u64>;

const BOUNDS: [(&str, Bound); 10] = [
    ("repeat", repeated_bytes),
    ("lpad", padded_bytes),
    ("rpad", padded_bytes),
    ("array_repeat", repeated_elements_bytes),
    ("array_resize", resized_bytes),
    ("array_to_string", joined_bytes),
    ("range", steps_bytes),
    ("generate_series", steps_bytes),
    ("replace", replaced_bytes),
    ("regexp_replace", regex_replaced_bytes),
];

/// Returns the most bytes of the answer of the function `name`; 0 if its answer is about as long as its
/// arguments.
pub(super) fn answer_bytes(name: &str, args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    match BOUNDS.iter().find(|(bounded, _)| *bounded == name) {
        Some((_, bound)) => bound(args, num_rows),
        None => Ok(0),
    }
}

/// Refuses a call of `levenshtein` that nobody can wait for. It compares all pairs of characters, and no limit of
/// time ends it.
pub(super) fn check_num_pairs(name: &str, args: &ScalarFunctionArgs) -> Result<()> {
    let [one, other] = args.args.as_slice() else { return Ok(()) };
    if name != "levenshtein" {
        return Ok(());
    }
    let one = Numbers::lens(one)?;
    let other = Numbers::lens(other)?;
    let num_pairs = total(args.number_rows, |row| one.at(row).saturating_mul(other.at(row)));
    if num_pairs > MAX_PAIRS {
        return exec_err!(
            "levenshtein compares {num_pairs} pairs of characters for the rows of a batch, and may compare at \
             most {MAX_PAIRS} under a limit of memory; compare shorter texts, such as left(text, 1000)"
        );
    }
    Ok(())
}

/// Returns true if [`answer_bytes`] knows the answers of the function `name`.
pub(super) fn is_bounded(name: &str) -> bool {
    BOUNDS.iter().any(|(bounded, _)| *bounded == name)
}

/// An argument in whole numbers.
struct Numbers(Int64Array);

impl Numbers {
    /// Takes the values of an argument.
    fn from_argument(argument: &ColumnarValue) -> Result<Self> {
        let array = first_or_all(argument)?;
        Ok(Self(cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone()))
    }

    /// Takes the length of an argument: bytes of texts, elements of lists.
    fn lens(argument: &ColumnarValue) -> Result<Self> {
        let array = first_or_all(argument)?;
        Ok(Self(cast(&length(array.as_ref())?, &DataType::Int64)?.as_primitive::<Int64Type>().clone()))
    }

    /// Returns the number of a row, 0 if it is negative or NULL.
    fn at(&self, row: usize) -> u64 {
        let row = row_of(&self.0, row);
        if self.0.is_null(row) { 0 } else { u64::try_from(self.0.value(row)).unwrap_or(0) }
    }
}

/// An argument in texts.
struct Texts(StringViewArray);

impl Texts {
    fn from_argument(argument: &ColumnarValue) -> Result<Self> {
        let array = first_or_all(argument)?;
        Ok(Self(cast(&array, &DataType::Utf8View)?.as_string_view().clone()))
    }

    /// Returns the text of a row, none if it is NULL.
    fn at(&self, row: usize) -> &str {
        let row = row_of(&self.0, row);
        if self.0.is_null(row) { "" } else { self.0.value(row) }
    }
}

/// Returns an argument as an array, with one row if it is the same in all rows.
fn first_or_all(argument: &ColumnarValue) -> Result<Arc<dyn Array>> {
    match argument {
        ColumnarValue::Array(array) => Ok(Arc::clone(array)),
        ColumnarValue::Scalar(scalar) => scalar.to_array(),
    }
}

/// Returns the index of a row in an argument of [`first_or_all`].
fn row_of(values: &dyn Array, row: usize) -> usize {
    if values.len() == 1 { 0 } else { row }
}

/// Returns the sum of `bytes_of` over rows.
fn total(num_rows: usize, bytes_of: impl Fn(usize) -> u64) -> u64 {
    (0..num_rows).map(bytes_of).fold(0, u64::saturating_add)
}

fn repeated_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let [text, n, ..] = args else { return Ok(0) };
    let lens = Numbers::lens(text)?;
    let n = Numbers::from_argument(n)?;
    Ok(total(num_rows, |row| lens.at(row).saturating_mul(n.at(row))))
}

fn padded_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let [text, n, fill @ ..] = args else { return Ok(0) };
    let lens = Numbers::lens(text)?;
    let n = Numbers::from_argument(n)?;
    let fill = fill.first().map(Numbers::lens).transpose()?;
    Ok(total(num_rows, |row| {
        let char_bytes = fill.as_ref().map_or(1, |fill| fill.at(row).min(MAX_CHAR_BYTES));
        n.at(row).saturating_mul(char_bytes).saturating_add(lens.at(row))
    }))
}

/// Counts beside the answer two lists of indices while it is made: one for each value that is repeated.
fn repeated_elements_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let [element, n, ..] = args else { return Ok(0) };
    let element_bytes = mean_bytes(element)?;
    let is_list = matches!(element.data_type(), DataType::List(_) | DataType::LargeList(_));
    let lens = if is_list { Some(Numbers::lens(element)?) } else { None };
    let n = Numbers::from_argument(n)?;
    Ok(total(num_rows, |row| {
        let num_values = lens.as_ref().map_or(1, |lens| lens.at(row));
        let indices_bytes = num_values.saturating_mul(2 * WORD_BYTES);
        element_bytes.saturating_add(indices_bytes).saturating_mul(n.at(row))
    }))
}

fn resized_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let [list, n, element @ ..] = args else { return Ok(0) };
    let element_bytes = element.first().map_or(Ok(WORD_BYTES), mean_bytes)?;
    let list_bytes = mean_bytes(list)?;
    let n = Numbers::from_argument(n)?;
    Ok(total(num_rows, |row| element_bytes.saturating_mul(n.at(row)).saturating_add(list_bytes)))
}

/// Returns the bytes of a row of an argument, as a mean that is rounded up.
fn mean_bytes(argument: &ColumnarValue) -> Result<u64> {
    let array = first_or_all(argument)?;
    let len_bytes = array.to_data().get_slice_memory_size()?;
    Ok(len_bytes.div_ceil(array.len().max(1)).max(1) as u64)
}

fn joined_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let [list, delimiter, ..] = args else { return Ok(0) };
    let (lens, delimiter) = (Numbers::lens(list)?, Numbers::lens(delimiter)?);
    Ok(total(num_rows, |row| lens.at(row).saturating_mul(delimiter.at(row))))
}

fn replaced_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let [text, from, to] = args else { return Ok(0) };
    let texts = Texts::from_argument(text)?;
    let from = Texts::from_argument(from)?;
    let to = Texts::from_argument(to)?;
    Ok(total(num_rows, |row| {
        let more_bytes = to.at(row).len().saturating_sub(from.at(row).len()) as u64;
        match more_bytes {
            0 => 0,
            more_bytes => more_bytes * texts.at(row).matches(from.at(row)).count() as u64,
        }
    }))
}

fn regex_replaced_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let [text, _, to, flags @ ..] = args else { return Ok(0) };
    let lens = Numbers::lens(text)?;
    let to = Texts::from_argument(to)?;
    let flags = flags.first().map(Texts::from_argument).transpose()?;
    Ok(total(num_rows, |row| {
        let len = lens.at(row);
        let to = to.at(row);
        if to.len() <= MAX_FREE_REPLACEMENT {
            return 0;
        }
        let is_global = flags.as_ref().is_some_and(|flags| flags.at(row).contains('g'));
        let num_matches = if is_global { len.saturating_add(1) } else { 1 };
        let num_groups = to.bytes().filter(|byte| matches!(byte, b'\\' | b'$')).count() as u64;
        let matches_bytes = num_matches.saturating_mul(to.len() as u64);
        matches_bytes.saturating_add(num_groups.saturating_mul(len))
    }))
}

fn steps_bytes(args: &[ColumnarValue], num_rows: usize) -> Result<u64> {
    let (start, stop, step) = match args {
        [stop] => (None, places(stop)?, None),
        [start, stop] => (Some(places(start)?), places(stop)?, None),
        [start, stop, step] => (Some(places(start)?), places(stop)?, Some(places(step)?)),
        _ => return Ok(0),
    };
    let at = |places: &Float64Array, row: usize| {
        let row = row_of(places, row);
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

    use datafusion::execution::memory_pool::MemoryPool;

    use super::*;
    use crate::bound_functions;
    use crate::functions::scalar::TextFunction;

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
            "array_to_string(make_array('a', NULL, 'b'), ', ')",
            "replace('abcab', 'ab', 'xyz')",
            "replace('ab', '', '-')",
            "replace(NULL, 'a', 'b')",
            "length(replace(repeat('a', 100000), 'a', 'xyz'))",
            "regexp_replace('abcab', '(a)(b)', '\\2\\1', 'g')",
            "regexp_replace('abcab', 'b', repeat('x', 100))",
        ] {
            let expected = first_value(&SessionContext::new(), expression).await.unwrap();
            assert_eq!(answer(expression).await.unwrap(), expected, "{expression}");
        }
    }

    #[tokio::test]
    async fn markers_are_bounded() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(4 << 20));
        let mut context = SessionContext::new();
        for function in TextFunction::all(None) {
            context.register_udf(function.as_ref().clone());
        }
        bound_functions(&mut context, &pool).unwrap();
        let answer = async |expression| first_value(&context, expression).await;
        assert_eq!(answer("highlight('a b', 'b', '[', ']')").await.unwrap(), "a [b]");
        let marked = answer("length(highlight(repeat('a ', 1000), 'a', repeat('x', 1000), ''))");
        assert_eq!(marked.await.unwrap(), "1002000");
        for expression in [
            "length(highlight(repeat('a ', 1000), 'a', repeat('x', 10000)))",
            "length(highlight(column1, 'a', '', repeat('x', 3000000))) FROM (VALUES ('a'), ('a a'))",
            "length(snippet(repeat('a ', 1000), 'a', repeat('x', 10000), '', '', 500))",
            "length(snippet('a b c d', 'b', '', '', repeat('x', 3000000), 1))",
        ] {
            let error = answer(expression).await.unwrap_err().to_string();
            assert!(error.contains("so much memory is not left"), "{expression}: {error}");
        }
        assert_eq!(pool.reserved(), 0);
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
            "cardinality(array_repeat(1, 300000))",
            "cardinality(array_repeat(make_array(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), 20000))",
            "cardinality(array_resize(make_array(1), 2000000000))",
            "cardinality(range(2000000000))",
            "cardinality(range(-9223372036854775807, 9223372036854775807))",
            "cardinality(generate_series(0, -2000000000, -2))",
            "cardinality(range(TIMESTAMP '2020-01-01', TIMESTAMP '2021-01-01', INTERVAL '1 second'))",
            "cardinality(range(arrow_cast(0, 'Date32'), arrow_cast(2000000000, 'Date32'), INTERVAL '1 day'))",
            "length(array_to_string(make_array('a', 'b', 'c'), repeat('x', 2000000)))",
            "length(replace(repeat('a', 1000), 'a', repeat('x', 5000)))",
            "length(replace(repeat('a', 1000), '', repeat('x', 5000)))",
            "length(regexp_replace(repeat('a', 1000), 'a', repeat('x', 5000), 'g'))",
            "length(regexp_replace(repeat('a', 100000), '(.*)', repeat('\\1', 100)))",
        ] {
            let error = answer(expression).await.unwrap_err().to_string();
            assert!(error.contains("so much memory is not left"), "{expression}: {error}");
        }
    }
}
