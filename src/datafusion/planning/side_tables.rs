//! Tables beside the corpus of a call: synonyms of its fold, and texts that it compares with the corpus.
//!
//! ```text
//! CREATE TABLE cars AS VALUES ('automobile', 'car'), ('cab', 'taxi')        word, and what it counts as
//! search('notes.tadoc', 'car', fold => 'case,synonyms:cars')
//!
//! overlap('corpus.tadoc', 'questions')                 a table or view of the session
//! overlap('corpus.tadoc', 'questions.jsonl')           a file that the session reads by its name
//! overlap('corpus.tadoc', 'other.tadoc')               the documents of a corpus
//! ```
//!
//! Each scan reads the table, because it may change between two statements. One of synonyms has two columns and at
//! most [`MAX_ROWS`] rows; rows with NULL are left out. Texts are in the column `text`, or in the only column. A
//! column `id` gives their ids. Their rows are counted in the session's memory.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::{ExecutionPlanProperties, collect};
use futures::StreamExt;

use crate::errors::datafusion_error;
use tadoc::text::{Fold, Synonyms};

/// Maximum number of rows of a table of synonyms.
const MAX_ROWS: usize = 1 << 20;
const PREFIX: &str = "synonyms:";
/// The table that is expected, for messages.
pub(super) const EXPECTED: &str = "a table of two columns of text: a word, and the word that it counts as";

/// Splits the text of a fold into the parts that need no table, and the name of the table.
///
/// # Errors
/// A message if there are several tables, or if the name is missing.
pub(super) fn split(text: &str) -> std::result::Result<(String, Option<String>), String> {
    let table_of = |part: &str| {
        let prefix = part.get(..PREFIX.len())?;
        prefix.eq_ignore_ascii_case(PREFIX).then(|| part[PREFIX.len()..].trim().to_owned())
    };
    let mut tables = Vec::new();
    let mut parts = Vec::new();
    for part in text.split(',') {
        match table_of(part.trim()) {
            Some(table) => tables.push(table),
            None => parts.push(part),
        }
    }
    match tables.as_slice() {
        [] => Ok((text.to_owned(), None)),
        [table] if !table.is_empty() => {
            let parts = if parts.is_empty() { Fold::NONE.to_string() } else { parts.join(",") };
            Ok((parts, Some(table.clone())))
        }
        _ => Err(format!("fold: got '{text}', expected one synonyms:TABLE")),
    }
}

/// Reads the synonyms of words after `fold` from the table `name`.
///
/// # Errors
/// A plan error if its rows are not words and meanings; the errors of the table.
pub(super) async fn read(
    session: &dyn Session,
    table: &Arc<dyn TableProvider>,
    name: &str,
    fold: &Fold,
) -> Result<Synonyms> {
    let num_columns = table.schema().fields().len();
    if num_columns != 2 {
        return plan_err!("fold: table {name} has {num_columns} columns, expected {EXPECTED}");
    }
    let plan = table.scan(session, None, &[], Some(MAX_ROWS + 1)).await?;
    let mut rows = Vec::new();
    for batch in collect(plan, session.task_ctx()).await? {
        let [words, meanings] = [0, 1].map(|column| cast(batch.column(column), &DataType::Utf8View));
        let words = words?;
        let meanings = meanings?;
        let pairs = words.as_string_view().iter().zip(meanings.as_string_view());
        rows.extend(pairs.filter_map(|(word, meaning)| Some((word?.to_owned(), meaning?.to_owned()))));
        if rows.len() > MAX_ROWS {
            return plan_err!("fold: table {name} has more than {MAX_ROWS} rows of synonyms");
        }
    }
    Synonyms::new(name, fold, rows).map_err(datafusion_error)
}

/// Name of the argument that names the table.
pub(super) const TEXTS: &str = "texts";
const TEXT: &str = "text";
const ID: &str = "id";

/// Texts in the order of their table, which is kept from partition to partition.
pub struct Texts {
    /// Texts and their ids, batch by batch.
    batches: Vec<(StringViewArray, Option<StringViewArray>)>,
    _reservation: Option<MemoryReservation>,
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Texts({} batches)", self.batches.len())
    }
}

impl Texts {
    /// Reads the texts of `table`, which is called `name`.
    ///
    /// # Errors
    /// A plan error if the table has no texts; the errors of reading it.
    pub(super) async fn read(session: &dyn Session, table: &Arc<dyn TableProvider>, name: &str) -> Result<Self> {
        let (text, id) = columns_of(&table.schema(), name)?;
        let columns: Vec<usize> = std::iter::once(text).chain(id).collect();
        let plan = table.scan(session, Some(&columns), &[], None).await?;
        let pool = &session.runtime_env().memory_pool;
        let reservation = MemoryConsumer::new(format!("TadocTexts[{name}]")).register(pool);
        let mut batches = Vec::new();
        for partition in 0..plan.output_partitioning().partition_count() {
            let mut stream = plan.execute(partition, session.task_ctx())?;
            while let Some(batch) = stream.next().await.transpose()? {
                let text_of = |column| -> Result<StringViewArray> {
                    Ok(cast(batch.column(column), &DataType::Utf8View)?.as_string_view().clone())
                };
                let texts = text_of(0)?;
                let ids = id.map(|_| text_of(1)).transpose()?;
                let bytes_of = |array: &StringViewArray| array.get_array_memory_size();
                reservation.try_grow(bytes_of(&texts) + ids.as_ref().map_or(0, bytes_of))?;
                batches.push((texts, ids));
            }
        }
        Ok(Self { batches, _reservation: Some(reservation) })
    }

    /// Builds texts of ids and texts that were read elsewhere.
    pub fn from_rows<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let (ids, texts): (Vec<&str>, Vec<&str>) = rows.unzip();
        let array = |values: Vec<&str>| StringViewArray::from_iter_values(values);
        Self { batches: vec![(array(texts), Some(array(ids)))], _reservation: None }
    }

    /// Returns each text, empty where it is NULL, and its id: the one that the table gives, or its
    /// number, from 0.
    pub fn iter(&self) -> impl Iterator<Item = (&str, String)> {
        let rows = self.batches.iter().flat_map(|(texts, ids)| {
            (0..texts.len()).map(move |row| {
                let id = ids.as_ref().filter(|ids| ids.is_valid(row)).map(|ids| ids.value(row));
                (if texts.is_valid(row) { texts.value(row) } else { "" }, id)
            })
        });
        rows.enumerate().map(|(number, (text, id))| (text, id.map_or_else(|| number.to_string(), str::to_owned)))
    }
}

/// Returns the positions of the column with texts, and of the one with their ids.
fn columns_of(schema: &SchemaRef, name: &str) -> Result<(usize, Option<usize>)> {
    let id = schema.index_of(ID).ok();
    let others = || (0..schema.fields().len()).filter(|&column| Some(column) != id);
    let text = schema.index_of(TEXT).ok().or_else(|| others().next().filter(|_| others().count() == 1));
    match text {
        Some(text) => Ok((text, id)),
        None => {
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            plan_err!(
                "texts: {name} has the columns {}, expected a column {TEXT} and, if the texts have ids, \
                 a column {ID}",
                names.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_are_split_off() {
        for (text, parts, table) in [
            ("case", "case", None),
            ("synonyms:cars", "none", Some("cars")),
            ("case, Synonyms: s.Cars ,accents", "case,accents", Some("s.Cars")),
            ("none,synonyms:t", "none", Some("t")),
            ("", "", None),
        ] {
            assert_eq!(split(text).unwrap(), (parts.to_owned(), table.map(str::to_owned)));
        }
        for text in ["synonyms:", "synonyms:a,synonyms:b", "case,synonyms: "] {
            assert!(split(text).unwrap_err().contains("expected one synonyms:TABLE"), "{text}");
        }
    }
}
