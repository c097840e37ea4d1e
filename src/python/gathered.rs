//! The rows of a statement, gathered in memory.
//!
//! A statement runs to its end in a task of the runtime, so its errors and interrupts are exceptions
//! of Python. Other libraries then take the rows without copies.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchIterator};
use arrow::datatypes::SchemaRef;
use arrow::util::display::FormatOptions;
use arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::logical_expr::LogicalPlan;
use futures::TryStreamExt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use tadoc_cli::Outcome;

use crate::capsules::{Reader, stream_capsule};
use crate::error_of;
use crate::rows_of::rows_of;
use crate::usual_types::{cast_batch, usual_schema};

/// Rows in memory.
#[derive(Clone)]
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct Gathered {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Gathered {
    /// Creates rows from batches of `schema`.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    /// Returns the schema of the rows.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Returns the rows as batches.
    pub fn reader(&self) -> Reader {
        let batches = self.batches.clone().into_iter().map(Ok);
        Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema)))
    }
}

#[pymethods]
impl Gathered {
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Returns the rows as a list of tuples.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        rows_of(py, &self.batches)
    }

    /// Returns the rows in types that pandas reads, or polars if texts may stay views.
    fn usual(&self, has_views: bool) -> PyResult<Self> {
        let schema = usual_schema(&self.schema, has_views);
        if schema == self.schema {
            return Ok(self.clone());
        }
        let batches = self.batches.iter().map(|batch| cast_batch(batch, &schema));
        let batches = batches.collect::<Result<_, _>>().map_err(error_of)?;
        Ok(Self { schema, batches })
    }

    /// Returns the rows as a table in text.
    fn table(&self) -> PyResult<String> {
        let mut batches = vec![RecordBatch::new_empty(Arc::clone(&self.schema))];
        batches.extend(self.batches.iter().cloned());
        let options = FormatOptions::default().with_null("NULL");
        let table = pretty_format_batches_with_options(&batches, &options).map_err(error_of)?;
        Ok(table.to_string())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Best effort, as the interface allows: the reader casts.
        let _ = requested_schema;
        stream_capsule(py, self.reader())
    }
}

/// Runs a plan and returns its rows, at most `limit` of them.
pub async fn gather(
    session: &tadoc_cli::Session,
    plan: LogicalPlan,
    limit: Option<usize>,
) -> Outcome<Gathered> {
    let rows = session.start(plan).await?;
    let gathered = rows.take(async |mut stream| {
        let schema = stream.schema();
        let mut left = limit.unwrap_or(usize::MAX);
        let mut batches: Vec<RecordBatch> = Vec::new();
        while left > 0
            && let Some(batch) = stream.try_next().await?
        {
            let room = left.min(batch.num_rows());
            left -= room;
            batches.push(batch.slice(0, room));
        }
        Ok(Gathered::new(schema, batches))
    });
    Ok(gathered.await?)
}
