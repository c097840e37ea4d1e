//! Texts of another table or file, for functions that compare them with a corpus.
//!
//! ```text
//! overlap('corpus.tadoc', 'questions')                 a table or view of the session
//! overlap('corpus.tadoc', 'questions.jsonl')           a file that the session reads by its name
//! overlap('corpus.tadoc', 'other.tadoc')               the documents of a corpus
//! ```
//!
//! The texts are in the column `text`, or in the only column. A column `id` gives their ids. Each scan
//! reads the table, because it may change between two statements. Its rows are counted in the session's
//! memory.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::ExecutionPlanProperties;
use futures::StreamExt;

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
                let (texts, ids) = (text_of(0)?, id.map(|_| text_of(1)).transpose()?);
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
