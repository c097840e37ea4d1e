//! The rows of a query as labels, places and values.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::util::display::array_value_to_string;

use crate::failure::{Failure, Outcome};

/// What is drawn.
pub struct AllSeries {
    /// Names of the first column and of the values.
    pub key_name: String,
    pub value_name: String,
    /// By row: the first column as text.
    pub labels: Vec<String>,
    /// By row: the first column as a number that is there and finite, unless it is text.
    pub places: Option<Vec<Option<f64>>>,
    /// Whether places are numbers to be read as such, not dates.
    pub is_numeric: bool,
    /// In the order of columns, or in which their names occur first.
    pub series: Vec<Series>,
}

/// Values that belong together.
pub struct Series {
    pub name: String,
    /// Row and value, if that is there and finite.
    pub values: Vec<(usize, Option<f64>)>,
}

impl Series {
    /// Rows and values that are there.
    pub fn present(&self) -> impl Iterator<Item = (usize, f64)> {
        self.values.iter().filter_map(|&(row, value)| Some((row, value?)))
    }
}

/// Reads the rows of a query.
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
        places: places(key).ok_or_else(|| unfit(rows))?,
        is_numeric: key.data_type().is_numeric(),
        series,
    })
}

/// The first column as numbers; none inside where it is text, none at all where it is neither.
fn places(key: &ArrayRef) -> Option<Option<Vec<Option<f64>>>> {
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

/// Values by the text beside them.
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

/// Rows and values of a column.
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
