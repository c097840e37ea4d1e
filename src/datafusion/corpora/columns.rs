//! User columns: one row for each document, stored as an embedded Parquet file.
//!
//! ```text
//! location ─┬─ living corpus ─▶ files, edits that set columns ─▶ user columns
//!           ├─ one file       ─▶ footer ─▶ schema of its columns ─▶ user columns
//!           └─ several files  ─▶ the same, and `corpus`
//! ```
//!
//! A corpus stores the Parquet bytes as one opaque section. This module gives them SQL types: strings become `Utf8View`
//! and bytes become `BinaryView`, so that repeated values are shared, not copied; other columns keep their Arrow type.
//! Only the columns that a query needs are decoded, on a blocking thread and within `tadoc.max_memory_bytes`. The files
//! of a location may have different columns. A column that a file lacks is NULL there. A column with two types has the
//! type that both fit: numbers widen, and other values become text. Lists and single values fit no type, which is an
//! error that names both files. The values that edits of a living corpus set replace those of the files.
//!
//! For a location of several files, a column `corpus` has the name of the file of each document. It is not stored, and
//! a stored column of this name takes its place.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{
    Array, ArrayRef, RecordBatch, RecordBatchReader, StringViewArray, UInt32Array, new_null_array,
};
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{exec_err, plan_datafusion_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use datafusion::parquet::arrow::{ArrowWriter, ProjectionMask};

use crate::corpora::glob::is_glob;
use crate::corpora::living::{LivingView, no_versions, open_columns};
use crate::corpora::location::{Wanted, read_range, resolve_files, store_of};
use crate::corpora::open_file::{OpenFile, RowSource};
use crate::corpora::{CorpusCache, Source};
use crate::errors::{contain_panics, datafusion_error, task_error};
use crate::options::TadocOptions;
use crate::user_columns::{Overlay, conform, join_types, parquet_properties, table_schema};
use tadoc::Error;
use tadoc::edits::column_tables;
use tadoc::format::read_columns;
use tadoc_store::VersionEdits;

/// Names of the columns that `documents` itself has. User columns cannot have these names.
pub(crate) const RESERVED: [&str; 6] = ["doc_id", "path", "bytes", "words", "text", "content"];

/// Name of the column with the file of each document.
const CORPUS: &str = "corpus";
/// Key of the metadata by which that column is told from a stored one of its name.
const IS_FILE_NAME: &str = "tadoc.file_name";

/// Key of the metadata of a field of times.
const IS_TIME: &str = "tadoc.time";

/// Returns `fields`, the user columns of several files, and the column `corpus`.
pub(crate) fn with_file_names(mut fields: Vec<FieldRef>) -> Vec<FieldRef> {
    if fields.iter().all(|field| field.name() != CORPUS) {
        let marked = [(IS_FILE_NAME.to_owned(), String::new())].into();
        let field = Field::new(CORPUS, DataType::Utf8View, true).with_metadata(marked);
        fields.push(Arc::new(field));
    }
    fields
}

/// Name of the user column with the times of documents, as `tadoc ingest --timestamp` makes it.
pub(crate) const TS: &str = "ts";

/// Returns `data_type`, a type of times, as the field of the column [`TS`]. Stored values that are no times
/// are NULL.
pub(crate) fn times_field(data_type: DataType) -> FieldRef {
    let marked = [(IS_TIME.to_owned(), String::new())].into();
    Arc::new(Field::new(TS, data_type, true).with_metadata(marked))
}

/// Returns true if `stored` can be read as `field`: a field of times needs times.
fn is_readable(field: &FieldRef, stored: &DataType) -> bool {
    use DataType::{Date32, Date64, Timestamp};
    !field.metadata().contains_key(IS_TIME) || matches!(stored, Date32 | Date64 | Timestamp(_, _))
}

/// Returns true if the column has names of files.
pub(crate) fn is_file_name(field: &FieldRef) -> bool {
    field.metadata().contains_key(IS_FILE_NAME)
}

/// Returns the name of the file of `source`, once for each document.
fn file_names(source: &RowSource<'_>) -> Result<ArrayRef> {
    let num_docs = source.num_docs() as usize;
    match source {
        RowSource::File(open) => {
            let name: ArrayRef = Arc::new(StringViewArray::from_iter_values([&open.file.path]));
            // All rows share the bytes of the name.
            Ok(take(&name, &UInt32Array::from_value(0, num_docs), None)?)
        }
        RowSource::Nulls(_) => Ok(new_null_array(&DataType::Utf8View, num_docs)),
    }
}

/// Returns the SQL type of a user column.
pub(crate) fn sql_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other.clone(),
    }
}

/// Returns the user columns of all `files` and those that `edits` set, as fields of a table.
pub(crate) async fn user_fields(
    cache: &CorpusCache,
    runtime: &RuntimeEnv,
    files: &[OpenFile],
    edits: &[Arc<VersionEdits>],
) -> Result<Vec<FieldRef>> {
    let mut fields = Vec::new();
    for open in files {
        let Some(schema) = columns_schema(cache, runtime, open).await? else { continue };
        add_fields(&mut fields, &schema, &open.file.path, "query them one by one")?;
    }
    for edits in edits {
        let place = format!("the edits of version {}", edits.version);
        for table in column_tables(&edits.batch.edits) {
            let schema = contain_panics("reading Parquet", || table_schema(table)).flatten();
            let schema = schema.map_err(datafusion_error)?;
            add_fields(&mut fields, &schema, &place, "`tadoc optimize` gives it one type")?;
        }
    }
    Ok(fields.into_iter().map(|(field, _)| field).collect())
}

/// Returns the schema of the user columns of `open`, if it has any. It is read unless `cache` knows it.
async fn columns_schema(cache: &CorpusCache, runtime: &RuntimeEnv, open: &OpenFile) -> Result<Option<SchemaRef>> {
    let key = open.file.version_key();
    if let Some(schema) = cache.known_columns(&key) {
        return Ok(Some(schema));
    }
    let Some(bytes) = columns_bytes(runtime, open).await? else { return Ok(None) };
    let read_schema = move || Ok(Arc::clone(open_parquet(bytes)?.schema()));
    let schema: SchemaRef = blocking(&open.file.path, read_schema).await?;
    cache.keep_columns(key, Arc::clone(&schema));
    Ok(Some(schema))
}

/// Adds the columns of `schema`, the schema of `place`, to `fields`. Each field is stored with the
/// first place that has it.
fn add_fields(fields: &mut Vec<(FieldRef, String)>, schema: &Schema, place: &str, way_out: &str) -> Result<()> {
    for field in schema.fields() {
        let data_type = sql_type(field.data_type());
        match fields.iter_mut().find(|(known, _)| known.name() == field.name()) {
            Some((known, _)) if known.data_type() == &data_type => {}
            Some((known, first)) => {
                let Some(joined) = join_types(known.data_type(), &data_type) else {
                    return Err(plan_datafusion_err!(
                        "column {} is {} in {first} and {data_type} in {place}; {way_out}",
                        field.name(),
                        known.data_type()
                    ));
                };
                *known = Arc::new(Field::new(field.name(), sql_type(&joined), true));
            }
            None if RESERVED.contains(&field.name().as_str()) => {}
            None => {
                let field = Field::new(field.name(), data_type, true);
                fields.push((Arc::new(field), place.to_owned()));
            }
        }
    }
    Ok(())
}

/// Returns one array for each of `fields`, with one row for each document of `sources`. Values that
/// the edits of `living` set are included. At most `limit_bytes` are decoded for a file.
pub(crate) async fn read_user_columns(
    runtime: &RuntimeEnv,
    sources: Vec<RowSource<'_>>,
    living: Option<&Arc<LivingView>>,
    fields: Vec<FieldRef>,
    limit_bytes: u64,
    reservation: &MemoryReservation,
) -> Result<Vec<ArrayRef>> {
    let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); fields.len()];
    let has_stored = fields.iter().any(|field| !is_file_name(field));
    for source in sources {
        let num_docs = source.num_docs() as usize;
        let stored = match source {
            RowSource::File(open) if has_stored => columns_bytes(runtime, open).await?.map(|bytes| (open, bytes)),
            _ => None,
        };
        let arrays: Vec<ArrayRef> = match stored {
            None => fields.iter().map(|f| new_null_array(f.data_type(), num_docs)).collect(),
            Some((open, bytes)) => {
                let wanted = fields.clone();
                let (rows, num_rows) = match &open.portion {
                    Some(portion) => (portion.docs.start as usize, portion.num_docs_of_file as usize),
                    None => (0, num_docs),
                };
                let decode = move || decode_columns(bytes, num_rows, &wanted, limit_bytes);
                let arrays = blocking(&open.file.path, decode).await?;
                arrays.iter().map(|array| array.slice(rows, num_docs)).collect()
            }
        };
        for ((part, array), field) in parts.iter_mut().zip(arrays).zip(&fields) {
            let array = if is_file_name(field) { file_names(&source)? } else { array };
            reservation.try_grow(array.get_array_memory_size())?;
            part.push(array);
        }
    }
    let join = |arrays: Vec<ArrayRef>| match arrays.as_slice() {
        [one] => Ok(Arc::clone(one)),
        [] => Ok(new_null_array(&DataType::Null, 0)),
        many => Ok(concat(&many.iter().map(AsRef::as_ref).collect::<Vec<_>>())?),
    };
    let arrays = parts.into_iter().map(join).collect::<Result<Vec<_>>>()?;
    match living.filter(|view| view.version.sets_columns) {
        Some(view) => with_edits(view, arrays, fields, limit_bytes, reservation).await,
        None => Ok(arrays),
    }
}

/// Replaces values in `arrays`, the columns `fields`, by those that the edits of `view` set.
async fn with_edits(
    view: &Arc<LivingView>,
    arrays: Vec<ArrayRef>,
    fields: Vec<FieldRef>,
    limit_bytes: u64,
    reservation: &MemoryReservation,
) -> Result<Vec<ArrayRef>> {
    let place = format!("{}: edits", view.location);
    let view = Arc::clone(view);
    let lay_over = move || {
        let edits = view.edits.iter().flat_map(|edits| &edits.batch.edits);
        let overlay = Overlay::read(edits, &fields, limit_bytes).map_err(datafusion_error)?;
        let arrays = arrays.iter().enumerate();
        let arrays = arrays.map(|(place, values)| Ok(overlay.over(place, values, 0)?));
        arrays.collect::<Result<Vec<_>>>()
    };
    let arrays = blocking(&place, lay_over).await?;
    // Counted in addition to the original arrays, although most values are shared with them.
    let held: usize = arrays.iter().map(|array| array.get_array_memory_size()).sum();
    reservation.try_grow(held)?;
    Ok(arrays)
}

async fn columns_bytes(runtime: &RuntimeEnv, open: &OpenFile) -> Result<Option<Bytes>> {
    let Some(section) = &open.footer.columns else { return Ok(None) };
    let store = store_of(runtime, &open.file)?;
    let range = section.offset..section.offset + section.len;
    let bytes = read_range(store.as_ref(), &open.file, range).await?;
    read_columns(&open.file.path, section, &bytes).map(Some).map_err(datafusion_error)
}

/// Runs `work`, which reads the columns of `place`, on a blocking thread.
async fn blocking<T: Send + 'static>(place: &str, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let work = || contain_panics("reading Parquet", work).map_err(datafusion_error).flatten();
    let done = tokio::task::spawn_blocking(work).await.map_err(task_error);
    done.flatten().map_err(|error| error.context(format!("{place}: section columns")))
}

/// Opens a reader of `bytes` that returns strings and bytes as views.
fn open_parquet(bytes: Bytes) -> Result<ParquetRecordBatchReaderBuilder<Bytes>> {
    let metadata = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new())?;
    let stored = metadata.schema();
    let view = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(sql_type(field.data_type())));
    let views: Vec<FieldRef> = stored.fields().iter().map(view).collect();
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(views)));
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)?;
    Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata))
}

fn decode_columns(bytes: Bytes, num_docs: usize, wanted: &[FieldRef], limit_bytes: u64) -> Result<Vec<ArrayRef>> {
    let builder = open_parquet(bytes)?;
    let is_wanted = |name: &str| wanted.iter().any(|f| f.name() == name && !is_file_name(f));
    let stored = Arc::clone(builder.schema());
    let roots = (0..stored.fields().len()).filter(|&i| is_wanted(stored.field(i).name()));
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    let reader = builder.with_projection(mask).with_batch_size(8192).build()?;
    let schema = reader.schema();
    let mut batches = Vec::<RecordBatch>::new();
    let mut num_rows = 0;
    let mut held = 0u64;
    for batch in reader {
        let batch = batch?;
        num_rows += batch.num_rows();
        held = held.saturating_add(batch.get_array_memory_size() as u64);
        if held > limit_bytes {
            return Err(datafusion_error(Error::Capacity {
                what: "decoded columns in bytes",
                requested: held,
                limit: limit_bytes,
                knob: "tadoc.max_memory_bytes",
            }));
        }
        batches.push(batch);
    }
    if num_rows != num_docs && !schema.fields().is_empty() {
        return exec_err!("expected {num_docs} rows, one a document, got {num_rows}");
    }
    let array = |field: &FieldRef| -> Result<ArrayRef> {
        let Ok(position) = schema.index_of(field.name()) else {
            return Ok(new_null_array(field.data_type(), num_docs));
        };
        if !is_readable(field, schema.field(position).data_type()) {
            return Ok(new_null_array(field.data_type(), num_docs));
        }
        let parts: Vec<&dyn Array> = batches.iter().map(|b| b.column(position).as_ref()).collect();
        match parts.as_slice() {
            [] => Ok(new_null_array(field.data_type(), 0)),
            parts => Ok(conform(&concat(parts)?, field.data_type())?),
        }
    };
    wanted.iter().map(array).collect()
}

/// Returns the first of the columns at `positions` of `schema` that no file can hold, with the error that
/// says why. One value of each column is written to find out.
pub(crate) fn unstorable(schema: &Schema, positions: &[usize]) -> Option<(usize, DataFusionError)> {
    let written = |positions: Vec<usize>| -> Result<()> {
        let Some(mut writer) = ColumnsWriter::try_new(schema, positions)? else { return Ok(()) };
        let columns = schema.fields().iter();
        let columns = columns.map(|field| new_null_array(field.data_type(), 1)).collect();
        let fields = schema.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        writer.write(&RecordBatch::try_new(schema, columns)?)?;
        writer.finish().map(drop)
    };
    written(positions.to_vec()).err()?;
    positions.iter().find_map(|&position| Some((position, written(vec![position]).err()?)))
}

/// Writer that collects user columns while documents are written.
pub(crate) struct ColumnsWriter {
    schema: SchemaRef,
    positions: Vec<usize>,
    writer: ArrowWriter<Vec<u8>>,
}

impl ColumnsWriter {
    /// Creates a writer for the columns at `positions` of `schema`; `None` if there are no
    /// positions.
    pub(crate) fn try_new(schema: &Schema, positions: Vec<usize>) -> Result<Option<Self>> {
        if positions.is_empty() {
            return Ok(None);
        }
        let field = |&i: &usize| {
            let field = schema.field(i);
            Field::new(field.name(), sql_type(field.data_type()), true)
        };
        let schema = Arc::new(Schema::new(positions.iter().map(field).collect::<Vec<_>>()));
        let properties = Some(parquet_properties()?);
        let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), properties)?;
        Ok(Some(Self { schema, positions, writer }))
    }

    /// Appends the rows of `batch`.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = self.positions.iter().zip(self.schema.fields());
        let columns = columns.map(|(&i, field)| cast(batch.column(i), field.data_type()));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        Ok(self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), columns)?)?)
    }

    /// Returns the memory held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.writer.memory_size() + self.writer.bytes_written()
    }

    /// Returns the Parquet file.
    pub(crate) fn finish(self) -> Result<Vec<u8>> {
        Ok(self.writer.into_inner()?)
    }
}

/// Columns of the documents at a location behind those that every corpus has.
#[derive(Debug)]
pub(crate) struct FoundColumns {
    pub(crate) fields: Vec<FieldRef>,
    /// True for a living corpus.
    pub(crate) is_living: bool,
}

impl CorpusCache {
    /// Returns the columns of the documents that exist at `location` now, in `version` of a living corpus. `explain`
    /// adds to the error where nothing is there.
    ///
    /// # Errors
    /// A plan error if nothing is there, if plain files have no versions, or if a column of two files has types that
    /// fit no third one; errors of the store and of footers.
    pub(crate) async fn columns_at(
        &self,
        runtime: &Arc<RuntimeEnv>,
        options: &TadocOptions,
        location: &str,
        version: Option<u64>,
        explain: impl FnOnce(DataFusionError) -> DataFusionError,
    ) -> Result<FoundColumns> {
        if let Some(found) = self.living.find(runtime, location).await? {
            let version = found.version(version).await?;
            let (files, edits) = open_columns(self, runtime, options, &found, version).await?;
            let fields = user_fields(self, runtime, &files, &edits).await?;
            return Ok(FoundColumns { fields, is_living: true });
        }
        let files = resolve_files(runtime, location, Wanted::Corpora).await.map_err(explain)?;
        if let Some(version) = version {
            return Err(no_versions(location, version, files.len()));
        }
        let files = self.open(runtime, &options.open_limits(), files).await?;
        let fields = user_fields(self, runtime, &files, &[]).await?;
        let has_several = files.len() > 1 || is_glob(location);
        let fields = if has_several { with_file_names(fields) } else { fields };
        Ok(FoundColumns { fields, is_living: false })
    }

    /// Returns the user columns of `source`, which was opened.
    ///
    /// # Errors
    /// The errors of [`columns_at`](Self::columns_at).
    pub(crate) async fn columns_in(&self, runtime: &RuntimeEnv, source: &Source) -> Result<Vec<FieldRef>> {
        let edits = source.living().filter(|view| view.version.sets_columns);
        let edits = edits.map_or(&[][..], |view| &view.edits);
        user_fields(self, runtime, source.corpora(), edits).await
    }
}
