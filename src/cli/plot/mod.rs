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

mod chart;
mod drawing;

use std::collections::BTreeSet;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use clap::Args;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use tadoc_documents::display;
use tadoc_session::{Failure, Outcome, interrupt, runtime};

use self::chart::{MAX_LABEL_CHARS, cut};
use self::drawing::{Axis, Page, Strips};
use crate::output::{check_file, write_file};
use crate::sql::Console;

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
  tadoc plot \"CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'laws.tadoc';
              SELECT d.year, s.sequence, sum(s.count)
              FROM sequence_count('d', n => 2, by_doc => true) AS s JOIN d USING (doc_id)
              WHERE s.sequence IN ('data protection', 'climate change')
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
    let (shown, svg) = (display::path(path), display::path(&path.with_extension("svg")));
    Err(Failure::usage(format!(
        "{shown}: a plot is an SVG; write -o {svg}, which browsers show, and turn it into {ending} with \
         rsvg-convert, Inkscape or ImageMagick, such as rsvg-convert {svg} -f {ending} -o {shown}"
    )))
}

async fn draw(arguments: &Arguments) -> Outcome<String> {
    let console = Console::for_tables()?.on_workers(&arguments.workers)?;
    console.session.prepare().await?;
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
    let series = chart::series_of(&rows_of(stream).await?)?;
    chart::svg_of(&series, title, &sql)
}

async fn rows_of(mut stream: SendableRecordBatchStream) -> Outcome<RecordBatch> {
    let (mut batches, mut num_rows) = (Vec::new(), 0);
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
        let (corpus, text) = (quoted(corpus), quoted(query));
        let sql = format!("SELECT doc_id, word_index FROM search({corpus}, {text})");
        let (mut marks, mut num_hits) = (BTreeSet::new(), 0);
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
