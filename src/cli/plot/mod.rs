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
//! With `--dispersion` it draws the places of queries in a corpus, as rows of marks.

mod chart;
mod dispersion;
mod drawing;
mod series;

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use clap::Args;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use tadoc_documents::display;
use tadoc_session::{Failure, Outcome, interrupt, runtime};

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

    #[cfg(feature = "distributed")]
    #[command(flatten)]
    workers: tadoc_server::workers::Arguments,
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
    let console = Console::for_tables()?;
    #[cfg(feature = "distributed")]
    let console = console.on_workers(&arguments.workers)?;
    console.session.prepare().await?;
    let title = arguments.title.as_deref();
    if let Some(corpus) = &arguments.dispersion {
        return dispersion::svg_of(&console, corpus, &arguments.texts, title).await;
    }
    let [sql] = arguments.texts.as_slice() else {
        return Err(Failure::usage(
            "a plot takes one argument of SQL; put ; between statements, or write --dispersion CORPUS \
             before queries",
        ));
    };
    let (stream, sql) = console.rows_of(sql).await?;
    let series = series::series_of(&rows_of(stream).await?)?;
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
