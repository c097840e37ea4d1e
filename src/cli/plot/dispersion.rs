//! Draws where queries match in a corpus: one row for each query, one mark for each match.
//!
//! ```text
//! castle   |  | |||   |       |
//! king         |     |||| || |||  |
//!          0        words        9,000
//! ```
//!
//! The scale counts the words of all documents, in order. Matches that fall on one mark are drawn once,
//! so the file is bounded by [`MAX_MARKS`] for each query. Memory is 16 bytes for each document.

use std::collections::BTreeSet;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use futures::StreamExt;
use tadoc_documents::display;
use tadoc_session::{Failure, Outcome};

use super::chart::{MAX_LABEL_CHARS, cut};
use super::drawing::{Axis, Page, Strips};
use crate::sql::Console;

/// Most marks of a row; two units of the picture each.
const MAX_MARKS: u64 = 700;
/// Most rows.
const MAX_QUERIES: usize = 40;
/// Most documents whose borders are drawn.
const MAX_BORDERS: usize = 100;

/// Draws the places of `queries` in the corpus at `corpus`.
pub async fn svg_of(
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
    let subtitle = format!(
        "{} words, {}",
        display::grouped(words.total),
        display::plural(words.starts.len() as u64, "document")
    );
    let page = Page {
        title: title.unwrap_or(&default),
        subtitle: &subtitle,
        height: strips.height(),
        notes: &[],
    };
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
    async fn row_of(
        &self,
        console: &Console,
        corpus: &str,
        query: &str,
    ) -> Outcome<(String, Vec<f64>)> {
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
