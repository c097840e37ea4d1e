//! Converts the rows of a query to labels, positions and values.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::util::display::array_value_to_string;
use tadoc_session::{Failure, Outcome};

/// The data to draw.
pub struct AllSeries {
    /// Name of the first column.
    pub key_name: String,
    /// Name of the values.
    pub value_name: String,
    /// First column as text, by row.
    pub labels: Vec<String>,
    /// First column as finite numbers, by row, or `None` if it is text.
    pub positions: Option<Vec<Option<f64>>>,
    /// True if positions are numbers, false if they are dates.
    pub is_numeric: bool,
    /// Series in the order of the columns, or in the order in which their names first occur.
    pub series: Vec<Series>,
}

/// A series of values.
pub struct Series {
    pub name: String,
    /// Rows with their values. `None` stands for a value that is missing or not finite.
    pub values: Vec<(usize, Option<f64>)>,
}

impl Series {
    /// Returns the rows that have a value.
    pub fn present(&self) -> impl Iterator<Item = (usize, f64)> {
        self.values.iter().filter_map(|&(row, value)| Some((row, value?)))
    }
}

/// Converts the rows of a query to series.
pub fn series_of(rows: &RecordBatch) -> Outcome<AllSeries> {
    let schema = rows.schema();
    let name = |idx: usize| schema.field(idx).name().clone();
    let Some((key, others)) = rows.columns().split_first().filter(|(_, others)| !others.is_empty())
    else {
        return Err(unfit(rows));
    };
    let (value_name, series) = match others {
        [names, values] if is_text(names.data_type()) && values.data_type().is_numeric() => {
            (name(2), by_name(names, values)?)
        }
        _ if others.iter().all(|column| column.data_type().is_numeric()) => {
            let series = |(idx, column)| -> Outcome<Series> {
                Ok(Series { name: name(idx + 1), values: numbers(column)? })
            };
            let value_name = if others.len() == 1 { name(1) } else { String::new() };
            (value_name, others.iter().enumerate().map(series).collect::<Outcome<_>>()?)
        }
        _ => return Err(unfit(rows)),
    };
    let labels = (0..rows.num_rows()).map(|row| array_value_to_string(key, row));
    Ok(AllSeries {
        key_name: name(0),
        value_name,
        labels: labels.collect::<Result<_, _>>()?,
        positions: positions(key).ok_or_else(|| unfit(rows))?,
        is_numeric: key.data_type().is_numeric(),
        series,
    })
}

/// Returns the first column as numbers. The result is `Some(None)` if it is text, and `None` if it
/// is neither text, numbers nor dates.
fn positions(key: &ArrayRef) -> Option<Option<Vec<Option<f64>>>> {
    if is_text(key.data_type()) {
        return Some(None);
    }
    let numbers = match key.data_type() {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            cast(key, &DataType::Int64).and_then(|ticks| cast(&ticks, &DataType::Float64)).ok()?
        }
        kind if kind.is_numeric() => cast(key, &DataType::Float64).ok()?,
        _ => return None,
    };
    let numbers = numbers.as_primitive::<Float64Type>().iter();
    Some(Some(numbers.map(|number| number.filter(|number| number.is_finite())).collect()))
}

/// Groups `values` by the text beside them.
fn by_name(names: &ArrayRef, values: &ArrayRef) -> Outcome<Vec<Series>> {
    let mut series: Vec<Series> = Vec::new();
    for (row, value) in numbers(values)? {
        let name = array_value_to_string(names, row)?;
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.values.push((row, value)),
            None => series.push(Series { name, values: vec![(row, value)] }),
        }
    }
    series.retain(|series| series.present().next().is_some());
    Ok(series)
}

/// Returns the rows and values of a column.
fn numbers(column: &ArrayRef) -> Outcome<Vec<(usize, Option<f64>)>> {
    let values = cast(column, &DataType::Float64)?;
    let values = values.as_primitive::<Float64Type>().iter();
    Ok(values.map(|value| value.filter(|value| value.is_finite())).enumerate().collect())
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn unfit(rows: &RecordBatch) -> Failure {
    let schema = rows.schema();
    let columns =
        schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
    Failure::new(format!(
        "a plot needs a column of texts, numbers or dates and then columns of numbers, or of texts and \
         numbers; the query gives ({})",
        columns.collect::<Vec<_>>().join(", ")
    ))
}
