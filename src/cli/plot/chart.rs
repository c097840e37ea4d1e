//! Converts the rows of a query to labels, positions and values, and draws them as bars or lines.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::util::display::array_value_to_string;
use tadoc_session::{Failure, Outcome};

use super::drawing::{Area, Axis, Bars, COLORS, Curve, Drawn, Group, LINES_HEIGHT, Page, draw_lines};

/// Maximum number of groups. More could not be told apart.
const MAX_GROUPS: usize = 100;
pub const MAX_LABEL_CHARS: usize = 32;
const MAX_SUBTITLE_CHARS: usize = 130;
/// Maximum number of dates that are named along the axis.
const MAX_NAMED: usize = 6;
/// Largest distance between neighbours without a missing position, in multiples of the smallest
/// one.
const STEP_TOLERANCE: f64 = 1.5;

/// Draws the picture. `sql` stands below its title.
pub fn svg_of(all: &AllSeries, title: Option<&str>, sql: &str) -> Outcome<String> {
    if all.series.len() > COLORS.len() {
        return Err(Failure::new(format!(
            "the query gives {} series, a plot has at most {}; say WHERE which of them",
            all.series.len(),
            COLORS.len()
        )));
    }
    let values = || all.series.iter().flat_map(|series| series.present().map(|(_, value)| value));
    if values().next().is_none() {
        return Err(Failure::new("the query gives no value to draw"));
    }
    let title = match title {
        Some(title) => title.to_owned(),
        None if all.value_name.is_empty() => format!("by {}", all.key_name),
        None => format!("{} by {}", all.value_name, all.key_name),
    };
    let subtitle = cut(&sql.split_whitespace().collect::<Vec<_>>().join(" "), MAX_SUBTITLE_CHARS);
    let page = Page { title: &title, subtitle: &subtitle, height: LINES_HEIGHT, notes: &[] };
    let axis = Axis::from_values(values(), true);
    let svg = match &all.positions {
        Some(positions) => {
            let page = Page { notes: &notes(all, positions), ..page };
            page.to_svg(|area| lines(area, all, positions, axis))
        }
        None if values().any(|value| value < 0.0) => {
            return Err(Failure::new(
                "bars of text begin at 0, and the query gives values below; put a column of numbers first",
            ));
        }
        None => {
            let bars = bars(all)?;
            let page = Page { height: bars.height(), ..page };
            page.to_svg(|area| bars.draw(area, (&all.value_name, axis)))
        }
    };
    svg.map_err(|error| Failure::with_cause("the picture cannot be drawn", &error))
}

fn bars(all: &AllSeries) -> Outcome<Bars> {
    let mut groups: Vec<(&str, Group)> = Vec::new();
    for (series_idx, series) in all.series.iter().enumerate() {
        for (row, value) in series.present() {
            let label = all.labels[row].as_str();
            let is_free = |(name, group): &(&str, Group)| *name == label && group.values[series_idx].is_none();
            let found = groups.iter().position(is_free);
            let group_idx = found.unwrap_or_else(|| {
                let values = vec![None; all.series.len()];
                groups.push((label, Group { label: cut(label, MAX_LABEL_CHARS), values }));
                groups.len() - 1
            });
            groups[group_idx].1.values[series_idx] = Some(value);
        }
        if groups.len() > MAX_GROUPS {
            return Err(Failure::new(format!(
                "the query gives more than {MAX_GROUPS} texts in its first column; LIMIT what is to be drawn"
            )));
        }
    }
    let name = |(series, color): (&Series, _)| (cut(&series.name, MAX_LABEL_CHARS), color);
    Ok(Bars {
        // The axis names a single series.
        series: match all.series.as_slice() {
            [_] => vec![(String::new(), COLORS[0])],
            several => several.iter().zip(COLORS).map(name).collect(),
        },
        groups: groups.into_iter().map(|(_, group)| group).collect(),
    })
}

fn lines(area: &Area<'_>, all: &AllSeries, positions: &[Option<f64>], y: Axis) -> Drawn {
    let step = step_of(positions);
    let curve = |(series, color): (&Series, _)| {
        let name = cut(&series.name, MAX_LABEL_CHARS);
        Curve { name, color, runs: runs_of(series, positions, step) }
    };
    let curves: Vec<Curve> = all.series.iter().zip(COLORS).map(curve).collect();
    let mut x = Axis::from_values(positions.iter().copied().flatten(), false);
    if !all.is_numeric {
        let mut named: Vec<(f64, String)> =
            positions.iter().zip(&all.labels).filter_map(|(at, name)| Some(((*at)?, date(name)))).collect();
        named.sort_by(|a, b| a.0.total_cmp(&b.0));
        named.dedup_by(|a, b| a.0 == b.0);
        if let [first, .., last] = named.as_slice() {
            (x.min, x.max) = (first.0, last.0);
        }
        let every = named.len().div_ceil(MAX_NAMED).max(1);
        x.ticks = named.into_iter().step_by(every).collect();
    }
    draw_lines(area, (&all.key_name, x), (&all.value_name, y), &curves).map(drop)
}

/// Returns notes about data that the picture does not show.
fn notes(all: &AllSeries, positions: &[Option<f64>]) -> Vec<String> {
    let missing = positions.iter().filter(|position| position.is_none()).count();
    let note = || format!("{missing} rows without {} are left out", all.key_name);
    (missing > 0).then(note).into_iter().collect()
}

/// Returns the points of a series by ascending position, split where values or positions are
/// missing.
fn runs_of(series: &Series, positions: &[Option<f64>], step: Option<f64>) -> Vec<Vec<(f64, f64)>> {
    let placed = |&(row, value): &(usize, Option<f64>)| Some((positions[row]?, value));
    let mut placed: Vec<(f64, Option<f64>)> = series.values.iter().filter_map(placed).collect();
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut runs, mut run) = (Vec::new(), Vec::<(f64, f64)>::new());
    for (position, value) in placed {
        let is_far = |&(last, _): &(f64, f64)| step.is_some_and(|step| position - last > step);
        if value.is_none() || run.last().is_some_and(is_far) {
            runs.push(std::mem::take(&mut run));
        }
        run.extend(value.map(|value| (position, value)));
    }
    runs.push(run);
    runs.retain(|run| !run.is_empty());
    runs
}

/// Returns the largest distance between neighbours without a missing position.
///
/// Places are regular if at least half of the neighbours are about as far apart as the nearest two
/// (months have 28 to 31 days). Returns `None` for irregular positions, where nothing counts as
/// missing.
fn step_of(positions: &[Option<f64>]) -> Option<f64> {
    let mut positions: Vec<f64> = positions.iter().copied().flatten().collect();
    positions.sort_by(f64::total_cmp);
    positions.dedup();
    let distances = || positions.windows(2).map(|pair| pair[1] - pair[0]);
    let step = STEP_TOLERANCE * distances().min_by(f64::total_cmp)?;
    let num_near = distances().filter(|&distance| distance <= step).count();
    (2 * num_near >= positions.len() - 1).then_some(step)
}

/// Formats a date, without a time of day that is midnight.
fn date(name: &str) -> String {
    name.trim_end_matches('Z').trim_end_matches("T00:00:00").to_owned()
}

/// Cuts `text` to at most `max_chars` characters.
pub fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

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
    let Some((key, others)) = rows.columns().split_first().filter(|(_, others)| !others.is_empty()) else {
        return Err(unfit(rows));
    };
    let (value_name, series) = match others {
        [names, values] if is_text(names.data_type()) && values.data_type().is_numeric() => {
            (name(2), by_name(names, values)?)
        }
        _ if others.iter().all(|column| column.data_type().is_numeric()) => {
            let series =
                |(idx, column)| -> Outcome<Series> { Ok(Series { name: name(idx + 1), values: numbers(column)? }) };
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
    let columns = schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
    Failure::new(format!(
        "a plot needs a column of texts, numbers or dates and then columns of numbers, or of texts and \
         numbers; the query gives ({})",
        columns.collect::<Vec<_>>().join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_positions_have_a_step() {
        let step = |positions: &[f64]| step_of(&positions.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(step(&[1990.0, 1992.0, 1991.0, 1995.0, 1990.0]), Some(1.5));
        // Ends of months as days of the year, with one missing.
        assert_eq!(step(&[0.0, 31.0, 59.0, 120.0, 151.0]), Some(42.0));
        assert_eq!(step(&[1.0, 10.0, 100.0, 1000.0]), None);
        assert_eq!(step(&[7.0]), None);
        assert_eq!(step_of(&[None]), None);
    }

    #[test]
    fn lines_end_where_values_or_rows_are_missing() {
        let values = [Some(1.0), Some(2.0), None, Some(4.0), Some(5.0)].into_iter().enumerate();
        let series = Series { name: String::new(), values: values.collect() };
        let positions = [0.0, 1.0, 2.0, 3.0, 9.0].map(Some);
        let runs = runs_of(&series, &positions, Some(1.5));
        assert_eq!(runs, [vec![(0.0, 1.0), (1.0, 2.0)], vec![(3.0, 4.0)], vec![(9.0, 5.0)]]);
        let runs = runs_of(&series, &positions, None);
        assert_eq!(runs, [[(0.0, 1.0), (1.0, 2.0)], [(3.0, 4.0), (9.0, 5.0)]]);
    }
}
