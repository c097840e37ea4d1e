//! `tadoc plot`: draws the rows of a query as an SVG.
//!
//! ```text
//! first column    second            others     drawn as
//! text            numbers           numbers    bars, one for each column of numbers
//! text            text              numbers    bars, one for each text of the second column
//! numbers, dates  numbers           numbers    lines over the first column, one for each other
//! numbers, dates  text              numbers    lines, one for each text of the second column
//! ```
//!
//! With `--dispersion` it draws where queries match in a corpus: one row for each query, one mark for each match.
//!
//! ```text
//! castle   |  | |||   |       |
//! king         |     |||| || |||  |
//!          0        words        9,000
//! ```
//!
//! The scale counts the words of all documents, in order. Matches that fall on one mark are drawn once,
//! so the file is bounded by [`MAX_MARKS`] for each query. Memory is 16 bytes for each document.

mod drawing;

use std::collections::BTreeSet;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use clap::Args;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;

use crate::output::{check_file, write_file};
use crate::plot::drawing::{Area, Axis, Bars, COLORS, Curve, Drawn, Group, LINES_HEIGHT, Page, Strips, draw_lines};
use crate::sql::Console;
use tadoc_documents::display;
use tadoc_session::{Failure, NamedLocation, Outcome, interrupt, runtime};

/// Maximum number of rows. More do not fit into a picture.
const MAX_ROWS: usize = 100_000;

/// Draw the rows of a query as an SVG
///
/// The first column is compared: text gives bars, numbers and dates give lines. The other columns
/// are numbers, or a text that names the bar or line and then its number. A line is interrupted
/// where a value is NULL. If most neighbours are one step apart, it is also interrupted where two
/// are further apart, as rows are missing there. Several statements share one session; the last
/// one is drawn.
///
/// With `--dispersion CORPUS` the arguments are queries, as `search` takes them. Each is a row with a
/// mark at each match, from the first word of the corpus to the last.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Statements, the last one with the rows; or queries
    #[arg(value_name = "SQL|QUERY", required = true)]
    texts: Vec<String>,

    /// Draw the places of the queries in this corpus
    #[arg(long, value_name = "CORPUS")]
    dispersion: Option<String>,

    /// The file to write; without it, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    force: bool,

    /// First line of the picture
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Give a corpus, or a file of rows, the name of a table (may be given several times); a location alone gives its
    /// own name
    #[arg(short = 't', long = "table", value_name = "NAME=LOCATION")]
    tables: Vec<PathBuf>,

    #[command(flatten)]
    workers: crate::workers::Named,
}

/// File name endings of pictures that are not SVG.
const OTHER_PICTURES: [&str; 12] =
    ["png", "jpg", "jpeg", "gif", "webp", "avif", "bmp", "tif", "tiff", "pdf", "ps", "eps"];

const EXAMPLES: &str = "\
Examples:
  tadoc plot \"SELECT word, count FROM word_count('notes.tadoc')
              ORDER BY count DESC LIMIT 20\" -o words.svg
  tadoc plot \"SELECT date_trunc('hour', ts), count(*) FROM 'app.tadoc' GROUP BY 1\" -o hours.svg
  tadoc plot --table d=laws.tadoc \"SELECT year, sequence, sum(count)
              FROM sequence_count('d', n => 2, by_doc => true) JOIN d USING (doc_id)
              WHERE sequence IN ('data protection', 'climate change')
              GROUP BY 1, 2\" -o years.svg
  tadoc plot --dispersion notes.tadoc deadlock 'NEAR(lock wait)' -o places.svg";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    if let Some(path) = &arguments.output {
        refuse_other_pictures(path)?;
        check_file(path, arguments.force)?;
    }
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let interrupted = interrupt::watch();
        tokio::select! {
            outcome = draw(arguments) => outcome,
            () = interrupted.notified() => Err(Failure::interrupted()),
        }
    });
    runtime.shutdown_timeout(interrupt::GRACE);
    let svg = outcome?;
    match &arguments.output {
        Some(path) => write_file(path, svg.as_bytes(), arguments.force),
        None => Ok(stdout().lock().write_all(svg.as_bytes())?),
    }
}

/// Refuses a file name with the ending of another kind of picture.
fn refuse_other_pictures(path: &Path) -> Outcome {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if !OTHER_PICTURES.contains(&ending.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    let shown = display::path(path);
    let svg = display::path(&path.with_extension("svg"));
    Err(Failure::usage(format!(
        "{shown}: a plot is an SVG; write -o {svg}, which browsers show, and turn it into {ending} with \
         rsvg-convert, Inkscape or ImageMagick, such as rsvg-convert {svg} -f {ending} -o {shown}"
    )))
}

async fn draw(arguments: &Arguments) -> Outcome<String> {
    let console = Console::for_tables()?.on_workers(&arguments.workers)?;
    console.prepare(NamedLocation::from_arguments(arguments.tables.iter().map(PathBuf::as_path))?).await?;
    let title = arguments.title.as_deref();
    if let Some(corpus) = &arguments.dispersion {
        return dispersion_svg(&console, corpus, &arguments.texts, title).await;
    }
    let [sql] = arguments.texts.as_slice() else {
        return Err(Failure::usage(
            "a plot takes one argument of SQL; put ; between statements, or write --dispersion CORPUS \
             before queries",
        ));
    };
    let (stream, sql) = console.rows_of(sql).await?;
    let series = series_of(&rows_of(stream).await?)?;
    svg_of(&series, title, &sql)
}

async fn rows_of(mut stream: SendableRecordBatchStream) -> Outcome<RecordBatch> {
    let mut batches = Vec::new();
    let mut num_rows = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        num_rows += batch.num_rows();
        if num_rows > MAX_ROWS {
            let most = display::grouped(MAX_ROWS as u64);
            return Err(Failure::new(format!(
                "the query gives more than {most} rows; GROUP BY or LIMIT what is to be drawn"
            )));
        }
        batches.push(batch);
    }
    Ok(concat_batches(&stream.schema(), &batches)?)
}

/// Most marks of a row; two units of the picture each.
const MAX_MARKS: u64 = 700;
/// Most rows.
const MAX_QUERIES: usize = 40;
/// Most documents whose borders are drawn.
const MAX_BORDERS: usize = 100;

/// Draws the places of `queries` in the corpus at `corpus`.
pub async fn dispersion_svg(
    console: &Console,
    corpus: &str,
    queries: &[String],
    title: Option<&str>,
) -> Outcome<String> {
    if queries.len() > MAX_QUERIES {
        return Err(Failure::usage(format!(
            "got {} queries, and a plot has at most {MAX_QUERIES} rows",
            queries.len()
        )));
    }
    let words = Words::read(console, corpus).await?;
    let mut rows = Vec::new();
    for query in queries {
        rows.push(words.row_of(console, corpus, query).await?);
    }
    let borders = match words.starts.as_slice() {
        starts if starts.len() <= MAX_BORDERS => starts.iter().map(|(_, at)| *at as f64).collect(),
        _ => Vec::new(),
    };
    let strips = Strips { rows, borders };
    let default = format!("Places in {}", display::plain(corpus));
    let subtitle =
        format!("{} words, {}", display::grouped(words.total), display::plural(words.starts.len() as u64, "document"));
    let page = Page { title: title.unwrap_or(&default), subtitle: &subtitle, height: strips.height(), notes: &[] };
    let mut x = Axis::from_values([words.total as f64], true);
    x.max = words.total.max(1) as f64;
    x.ticks.retain(|(place, _)| *place <= x.max);
    let svg = page.to_svg(|area| strips.draw(area, ("words before", x)));
    svg.map_err(|error| Failure::with_cause("the picture cannot be drawn", &error))
}

/// The words of a corpus, one document after the other.
struct Words {
    /// Id of each document, ascending, and the number of words before it.
    starts: Vec<(u64, u64)>,
    total: u64,
}

impl Words {
    async fn read(console: &Console, corpus: &str) -> Outcome<Self> {
        let corpus = quoted(corpus);
        let sql = format!("SELECT doc_id, words FROM documents({corpus}) ORDER BY doc_id");
        let mut words = Self { starts: Vec::new(), total: 0 };
        let (mut batches, _) = console.rows_of(&sql).await?;
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            for (doc_id, len) in numbers(&batch, 0)?.into_iter().zip(numbers(&batch, 1)?) {
                words.starts.push((doc_id, words.total));
                words.total += len;
            }
        }
        Ok(words)
    }

    /// Returns the label of a query and the places of its marks.
    async fn row_of(&self, console: &Console, corpus: &str, query: &str) -> Outcome<(String, Vec<f64>)> {
        let corpus = quoted(corpus);
        let text = quoted(query);
        let sql = format!("SELECT doc_id, word_index FROM search({corpus}, {text})");
        let mut marks = BTreeSet::new();
        let mut num_hits = 0;
        let (mut batches, _) = console.rows_of(&sql).await?;
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            num_hits += batch.num_rows() as u64;
            let hits = numbers(&batch, 0)?.into_iter().zip(numbers(&batch, 1)?);
            marks.extend(hits.filter_map(|(doc_id, word_index)| self.mark_of(doc_id, word_index)));
        }
        let width = self.total as f64 / MAX_MARKS as f64;
        let places = marks.into_iter().map(|mark| (mark as f64 + 0.5) * width).collect();
        let label = cut(&display::plain(query), MAX_LABEL_CHARS);
        Ok((format!("{label} ({})", display::grouped(num_hits)), places))
    }

    /// Returns the mark of a word of a document, from 0.
    fn mark_of(&self, doc_id: u64, word_index: u64) -> Option<u128> {
        let at = self.starts.binary_search_by_key(&doc_id, |(id, _)| *id).ok()?;
        let place = u128::from(self.starts[at].1 + word_index);
        Some(place * u128::from(MAX_MARKS) / u128::from(self.total.max(1)))
    }
}

/// Returns the numbers of a column without NULL, none of which is negative.
fn numbers(batch: &RecordBatch, column: usize) -> Outcome<Vec<u64>> {
    let column = cast(batch.column(column), &DataType::Int64)?;
    let values = column.as_primitive::<Int64Type>().values();
    Ok(values.iter().map(|value| value.unsigned_abs()).collect())
}

/// Returns `text` as a literal of SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

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
    let mut runs = Vec::new();
    let mut run = Vec::<(f64, f64)>::new();
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
                |(idx, column)| -> Outcome<Series> { Ok(Series { name: name(idx + 1), values: values_of(column)? }) };
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
    for (row, value) in values_of(values)? {
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
fn values_of(column: &ArrayRef) -> Outcome<Vec<(usize, Option<f64>)>> {
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
