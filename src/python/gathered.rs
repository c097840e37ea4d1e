//! The rows of a statement, gathered in memory.
//!
//! A statement runs to its end in a task of the runtime, so its errors and interrupts are exceptions
//! of Python. Other libraries then take the rows without copies.
//!
//! Some libraries do not read all types: pandas has no views in lists, and polars reads decimals of 32 and 64
//! bits from a stream as if they had 128 (2.1.0). So columns of such types, at any depth, are cast before
//! these libraries take them.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchIterator};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::FormatOptions;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
use datafusion::logical_expr::LogicalPlan;
use futures::TryStreamExt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use tadoc_session::{BoundedTable, MaxWidth, Outcome, is_shown_whole};

use crate::capsules::{Reader, stream_capsule};
use crate::error_of;
use crate::rows_of::rows_of;

/// Rows in memory.
#[derive(Clone)]
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct Gathered {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// True for plans and descriptions, which are shown whole.
    is_shown_whole: bool,
}

impl Gathered {
    /// Creates rows from batches of `schema`.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches, is_shown_whole: false }
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
        Ok(Self { schema, batches, ..*self })
    }

    /// Returns the first rows as cells for people. A cell has at most `max_width` characters, any number if
    /// it is `None`, and a note of what was cut.
    #[pyo3(signature = (limit, max_width))]
    pub fn preview(&self, limit: usize, max_width: Option<usize>) -> PyResult<Preview> {
        // The rows are in memory, and their cells are shorter.
        let pool: Arc<dyn MemoryPool> = Arc::<UnboundedMemoryPool>::default();
        let width = width_for(max_width, self.is_shown_whole);
        let mut preview = Preview::new(&self.schema, limit, width, &pool);
        for batch in &self.batches {
            preview.push(batch).map_err(error_of)?;
        }
        Ok(preview)
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
pub async fn gather(session: &tadoc_session::Session, plan: LogicalPlan, limit: Option<usize>) -> Outcome<Gathered> {
    let is_shown_whole = is_shown_whole(&plan);
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
        Ok(Gathered { is_shown_whole, ..Gathered::new(schema, batches) })
    });
    Ok(gathered.await?)
}

/// The first rows of a statement as cells for people.
#[pyclass(module = "datafusion_tadoc._native")]
pub struct Preview {
    table: BoundedTable<'static>,
    room: usize,
    has_more: bool,
}

impl Preview {
    fn new(schema: &Schema, limit: usize, width: MaxWidth, pool: &Arc<dyn MemoryPool>) -> Self {
        let options = FormatOptions::default().with_null("NULL");
        Self { table: BoundedTable::new(schema, options, width, pool), room: limit, has_more: false }
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let num_rows = self.room.min(batch.num_rows());
        self.room -= num_rows;
        self.has_more |= num_rows < batch.num_rows();
        self.table.push(&batch.slice(0, num_rows))
    }
}

#[pymethods]
impl Preview {
    /// True if the statement has more rows.
    #[getter]
    fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns the rows as a table in text.
    fn text(&self) -> String {
        self.table.to_string()
    }

    /// Returns the names of the columns and the cells of each row.
    fn cells(&self) -> (Vec<String>, Vec<Vec<String>>) {
        self.table.rows()
    }
}

/// Runs a plan until it has more than `limit` rows, and returns the first ones as cells for people. It keeps
/// the cells of a batch, not the batch.
pub async fn preview(
    session: &tadoc_session::Session,
    plan: LogicalPlan,
    limit: usize,
    max_width: Option<usize>,
) -> Outcome<Preview> {
    let width = width_for(max_width, is_shown_whole(&plan));
    let pool = Arc::clone(&session.context().runtime_env().memory_pool);
    let rows = session.start(plan).await?;
    let shown = rows.take(async |mut stream| {
        let mut preview = Preview::new(&stream.schema(), limit, width, &pool);
        while !preview.has_more
            && let Some(batch) = stream.try_next().await?
        {
            preview.push(&batch)?;
        }
        Ok(preview)
    });
    Ok(shown.await?)
}

fn width_for(max_width: Option<usize>, is_shown_whole: bool) -> MaxWidth {
    match max_width {
        _ if is_shown_whole => MaxWidth::Lines,
        Some(num_chars) => MaxWidth::Chars(num_chars),
        None => MaxWidth::Unlimited,
    }
}

/// Returns `schema` with usual types. Texts and bytes may stay views if `has_views`.
fn usual_schema(schema: &Schema, has_views: bool) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(|field| usual_field(field, has_views)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns `batch` with the types of `schema`.
///
/// # Errors
/// A type has no cast.
fn cast_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let fields = schema.fields().iter();
    let columns = batch.columns().iter().zip(fields).map(|(column, field)| {
        if column.data_type() == field.data_type() { Ok(Arc::clone(column)) } else { cast(column, field.data_type()) }
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
}

fn usual_field(field: &FieldRef, has_views: bool) -> FieldRef {
    let data_type = usual_type(field.data_type(), has_views);
    if data_type == *field.data_type() {
        Arc::clone(field)
    } else {
        Arc::new(Field::clone(field).with_data_type(data_type))
    }
}

fn usual_type(data_type: &DataType, has_views: bool) -> DataType {
    let inner = |field: &FieldRef| usual_field(field, has_views);
    match data_type {
        DataType::Utf8View if !has_views => DataType::LargeUtf8,
        DataType::BinaryView if !has_views => DataType::LargeBinary,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::List(item) | DataType::ListView(item) => DataType::List(inner(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, len) => DataType::FixedSizeList(inner(item), *len),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(inner(entries), *is_sorted),
        other => other.clone(),
    }
}
