//! User columns: what travels with the documents, one row each, as an embedded Parquet file.
//!
//! A corpus stores the Parquet bytes as one opaque section. Here they get their types: strings
//! become `Utf8View` on the way in, everything else keeps its Arrow type. Only the columns a query
//! wants are decoded. Files of one location may differ in their columns: a column missing in one
//! of them is NULL there, a column of two types is an error that names both files.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchReader, new_null_array};
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{exec_datafusion_err, plan_datafusion_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use object_store::ObjectStoreExt;

use super::corpora::OpenFile;
use super::failure::{datafusion_error, task_error};
use super::location::store_of;
use crate::corpus::read_columns;

/// Names that `documents` gives itself; user columns cannot have them.
pub(crate) const RESERVED: [&str; 6] = ["doc_id", "path", "bytes", "words", "text", "content"];

/// The type a user column has in SQL.
fn sql_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        other => other.clone(),
    }
}

/// The user columns of all `files`, as fields of a table.
pub(crate) async fn user_fields(runtime: &RuntimeEnv, files: &[OpenFile]) -> Result<Vec<FieldRef>> {
    let mut fields: Vec<(FieldRef, &str)> = Vec::new();
    for open in files {
        let Some(bytes) = columns_bytes(runtime, open).await? else { continue };
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| damaged(open, e))?;
        for field in builder.schema().fields() {
            let path = open.file.path.as_str();
            let data_type = sql_type(field.data_type());
            match fields.iter().find(|(known, _)| known.name() == field.name()) {
                Some((known, _)) if known.data_type() == &data_type => {}
                Some((known, first)) => {
                    return Err(plan_datafusion_err!(
                        "column {} is {} in {first} and {data_type} in {path}; query them one by one",
                        field.name(),
                        known.data_type()
                    ));
                }
                None if RESERVED.contains(&field.name().as_str()) => {}
                None => fields.push((Arc::new(Field::new(field.name(), data_type, true)), path)),
            }
        }
    }
    Ok(fields.into_iter().map(|(field, _)| field).collect())
}

/// One array for each of `fields`, a row per document of `files`.
pub(crate) async fn read_user_columns(
    runtime: &RuntimeEnv,
    files: &[OpenFile],
    fields: Vec<FieldRef>,
    reservation: &MemoryReservation,
) -> Result<Vec<ArrayRef>> {
    let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); fields.len()];
    for open in files {
        let num_docs = open.footer.num_docs() as usize;
        let arrays = match columns_bytes(runtime, open).await? {
            None => fields.iter().map(|f| new_null_array(f.data_type(), num_docs)).collect(),
            Some(bytes) => {
                let (open, wanted) = (open.clone(), fields.clone());
                let decode = move || decode_file(&open, bytes, &wanted);
                tokio::task::spawn_blocking(decode).await.map_err(task_error)??
            }
        };
        for (part, array) in parts.iter_mut().zip(arrays) {
            reservation.try_grow(array.get_array_memory_size())?;
            part.push(array);
        }
    }
    let join = |arrays: Vec<ArrayRef>| match arrays.as_slice() {
        [one] => Ok(Arc::clone(one)),
        many => Ok(concat(&many.iter().map(AsRef::as_ref).collect::<Vec<_>>())?),
    };
    parts.into_iter().map(join).collect()
}

async fn columns_bytes(runtime: &RuntimeEnv, open: &OpenFile) -> Result<Option<Bytes>> {
    let Some(section) = &open.footer.columns else { return Ok(None) };
    let store = store_of(runtime, &open.file)?;
    let range = section.offset..section.offset + section.len;
    let bytes = store.get_range(&open.file.meta.location, range).await?;
    read_columns(&open.file.path, section, &bytes).map(Some).map_err(datafusion_error)
}

fn decode_file(open: &OpenFile, bytes: Bytes, wanted: &[FieldRef]) -> Result<Vec<ArrayRef>> {
    let num_docs = open.footer.num_docs() as usize;
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| damaged(open, e))?;
    let num_rows = builder.metadata().file_metadata().num_rows();
    if num_rows != num_docs as i64 {
        return Err(damaged(open, format!("expected {num_docs} rows, got {num_rows}")));
    }
    let is_wanted = |name: &str| wanted.iter().any(|field| field.name() == name);
    let stored = Arc::clone(builder.schema());
    let roots = (0..stored.fields().len()).filter(|&i| is_wanted(stored.field(i).name()));
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    let reader = builder
        .with_projection(mask)
        .with_batch_size(8192)
        .build()
        .map_err(|e| damaged(open, e))?;
    let schema = reader.schema();
    let batches: Vec<RecordBatch> =
        reader.collect::<Result<_, _>>().map_err(|e| damaged(open, e))?;
    let array = |field: &FieldRef| -> Result<ArrayRef> {
        let Ok(position) = schema.index_of(field.name()) else {
            return Ok(new_null_array(field.data_type(), num_docs));
        };
        let parts: Vec<&dyn Array> = batches.iter().map(|b| b.column(position).as_ref()).collect();
        let whole = match parts.as_slice() {
            [] => new_null_array(schema.field(position).data_type(), 0),
            parts => concat(parts)?,
        };
        Ok(cast(&whole, field.data_type())?)
    };
    wanted.iter().map(array).collect()
}

fn damaged(open: &OpenFile, what: impl std::fmt::Display) -> DataFusionError {
    exec_datafusion_err!("{}: section columns: {what}", open.file.path)
}

/// Collects user columns while documents are written.
pub(crate) struct ColumnsWriter {
    schema: SchemaRef,
    positions: Vec<usize>,
    writer: ArrowWriter<Vec<u8>>,
}

impl ColumnsWriter {
    /// A writer for the columns at `positions` of `schema`; `None` where there are none.
    pub(crate) fn try_new(schema: &Schema, positions: Vec<usize>) -> Result<Option<Self>> {
        if positions.is_empty() {
            return Ok(None);
        }
        let field = |&i: &usize| {
            let field = schema.field(i);
            Field::new(field.name(), sql_type(field.data_type()), true)
        };
        let schema = Arc::new(Schema::new(positions.iter().map(field).collect::<Vec<_>>()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties))?;
        Ok(Some(Self { schema, positions, writer }))
    }

    /// Appends the rows of `batch`.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = self.positions.iter().zip(self.schema.fields());
        let columns = columns.map(|(&i, field)| cast(batch.column(i), field.data_type()));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        Ok(self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), columns)?)?)
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.writer.memory_size() + self.writer.bytes_written()
    }

    /// The Parquet file.
    pub(crate) fn finish(self) -> Result<Vec<u8>> {
        Ok(self.writer.into_inner()?)
    }
}
