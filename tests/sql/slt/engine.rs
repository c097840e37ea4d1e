//! DataFusion as an engine of the sqllogictest runner.
//!
//! Cells print as Arrow prints them, NULL as `NULL`, an empty string as `(empty)`, NUL as `\0`. If
//! the last cell has several lines (a plan, a text), each line becomes a numbered row, with its
//! indentation as `-`, because the runner folds blanks. The crate datafusion-sqllogictest does the
//! same, but depends on datafusion-spark, whose features make `cargo test` build half of DataFusion
//! once more.

use std::fmt;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use sqllogictest::{AsyncDB, ColumnType, DBOutput, Normalizer};

/// Mark in an expected answer for text that may differ.
const IGNORED: &str = "<slt:ignore>";

/// A session that answers the runner.
pub struct Engine(pub SessionContext);

/// Letter of a column in a `query` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter(char);

impl ColumnType for Letter {
    fn from_char(value: char) -> Option<Self> {
        "BIRTP?".contains(value).then_some(Self(value))
    }

    fn to_char(&self) -> char {
        self.0
    }
}

impl Letter {
    fn from_field(field: &Field) -> Self {
        Self(match field.data_type() {
            DataType::Boolean => 'B',
            kind if kind.is_integer() => 'I',
            kind if kind.is_floating() || kind.is_decimal() => 'R',
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => 'T',
            DataType::Timestamp(_, _) => 'P',
            _ => '?',
        })
    }
}

/// An error of a statement, in DataFusion's words.
#[derive(Debug)]
pub struct Failure(DataFusionError);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataFusion error: {}", self.0)
    }
}

impl std::error::Error for Failure {}

#[async_trait]
impl AsyncDB for Engine {
    type Error = Failure;
    type ColumnType = Letter;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<Letter>, Failure> {
        let frame = self.0.sql(sql).await.map_err(Failure)?;
        let types: Vec<Letter> = frame.schema().fields().iter().map(|f| Letter::from_field(f)).collect();
        let batches = frame.collect().await.map_err(Failure)?;
        if types.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        Ok(DBOutput::Rows { types, rows: batches.iter().flat_map(rows).collect() })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "DataFusion"
    }
}

fn rows(batch: &RecordBatch) -> Vec<Vec<String>> {
    let cells = |row| batch.columns().iter().map(|column| cell(column, row)).collect();
    (0..batch.num_rows()).flat_map(|row| unfold(cells(row))).collect()
}

fn cell(column: &dyn Array, row: usize) -> String {
    let options = FormatOptions::new().with_null("NULL");
    let text = ArrayFormatter::try_new(column, &options).unwrap().value(row).to_string();
    if text.is_empty() { "(empty)".into() } else { text.replace('\0', "\\0") }
}

/// Splits the last cell into one row for each line.
fn unfold(mut cells: Vec<String>) -> Vec<Vec<String>> {
    match cells.pop() {
        Some(last) if last.trim_end().contains('\n') => {
            let lines = last.trim_end().lines().zip(1..).map(|(line, number)| {
                let text = line.trim_start();
                vec![format!("{number:02}){}{text}", "-".repeat(line.len() - text.len()))]
            });
            std::iter::once(cells).filter(|cells| !cells.is_empty()).chain(lines).collect()
        }
        last => vec![cells.into_iter().chain(last.map(|cell| cell.trim_end().into())).collect()],
    }
}

/// Removes trailing blanks, which are not compared.
#[allow(clippy::ptr_arg)]
pub fn normalize(line: &String) -> String {
    line.trim_end().to_string()
}

/// Compares an answer with a file's expected answer, except for text marked as open.
pub fn is_expected(normalizer: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    let actual: Vec<String> = actual.iter().map(|row| normalizer(&row.join(" "))).collect();
    let expected: Vec<String> = expected.iter().map(normalizer).collect();
    if !expected.iter().any(|line| line.contains(IGNORED)) {
        return actual == expected;
    }
    let actual = actual.join("\n");
    let mut rest = actual.as_str();
    for (i, fragment) in expected.join("\n").split(IGNORED).enumerate() {
        match rest.find(fragment) {
            Some(at) if i > 0 || at == 0 => rest = &rest[at + fragment.len()..],
            _ => return false,
        }
    }
    true
}
