//! JSON files: their source where numbers are read as texts, arrays of values, and a byte order mark in front,
//! which is read as blanks.
//!
//! ```text
//! DataFusion    lines of values
//! here          arrays of values; both, if numbers are to be texts
//! ```
//!
//! DataFusion's source reads a number as a text only where no table asks for it. This one does, from lines of values
//! and from arrays of values. It stays on the machine where it is made.
//!
//! DataFusion reads an array of a local file to its last byte, also if it is cut short, and reads nothing of a file
//! without one. An array of a store it reads in a thread, and takes the end of the thread for the end of the array. So
//! arrays are read here, in one pass and without a thread, and what is no whole array is an error.
//!
//! Programs of Windows write the mark in front of UTF-8. Readers of CSV skip it; those of JSON find no value there.
//! Three blanks in its place change no offset, so a file may still be read in parts.

use std::collections::HashSet;
use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::ReaderBuilder;
use datafusion::common::{exec_datafusion_err, exec_err, internal_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonDecoder;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource, JsonSource};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_datasource::decoder::{DecoderDeserializer, deserialize_stream};
use datafusion_datasource::projection::{ProjectionOpener, SplitProjection};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use crate::plan_methods::{passing_source_methods, with_sources};
use crate::text_files::{error_of_rows, part_of_file};

/// Key of the number of rows by which the columns of a file were found, in the metadata of their schema.
pub(super) const FIRST_ROWS: &str = "tadoc.first_rows";
/// End of Arrow's message about a field without a column.
const NO_COLUMN: &str = "missing from schema";

/// Source of JSON files in a finished plan.
pub(super) struct JsonTexts {
    /// DataFusion's source of the same columns, with texts for numbers.
    inner: Arc<dyn FileSource>,
    /// The one that it replaces, which knows if it reads arrays.
    declared: Arc<dyn FileSource>,
    batch_size: Option<usize>,
}

impl JsonTexts {
    /// Creates the source of the columns and expressions of `inner`, in files as those of `declared`.
    pub(super) fn new(inner: Arc<dyn FileSource>, declared: Arc<dyn FileSource>) -> Self {
        Self { inner, declared, batch_size: None }
    }

    fn opener(&self, store: Arc<dyn ObjectStore>, scan: &FileScanConfig, reads: Values) -> Result<Arc<dyn FileOpener>> {
        let (Some(projection), Some(batch_size)) = (self.inner.projection(), self.batch_size) else {
            return internal_err!("a scan of JSON without columns or a size of batches");
        };
        let file_schema = self.inner.table_schema().file_schema();
        let projection = SplitProjection::new(file_schema, projection);
        let schema = Arc::new(file_schema.project(&projection.file_indices)?);
        let store = Arc::new(WithoutMarks(store));
        // A field behind the rows that are wanted is no error.
        let batch_size =
            if reads.are_all { batch_size.min(scan.limit.unwrap_or(batch_size).max(1)) } else { batch_size };
        let opener = ValueOpener { store, schema, compression: scan.file_compression_type, batch_size, reads };
        ProjectionOpener::try_new(projection, Arc::new(opener), file_schema)
    }
}

impl FileSource for JsonTexts {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        scan: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let Some(batch_size) = self.batch_size else {
            return internal_err!("a scan of JSON without a size of batches");
        };
        let are_all = needs_all_fields(self.declared.as_ref());
        let values = Values { are_texts: true, are_in_array: false, are_all };
        let lines = self.opener(Arc::clone(&store), scan, values)?;
        let arrays = self.opener(Arc::clone(&store), scan, Values { are_in_array: true, ..values })?;
        let declared = self.declared.with_batch_size(batch_size).create_file_opener(store, scan, partition)?;
        Ok(Arc::new(JsonOpener { declared, lines, arrays }))
    }

    passing_source_methods!(inner);

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let inner = Arc::clone(&self.inner);
        let declared = Arc::clone(&self.declared);
        Arc::new(Self { inner, declared, batch_size: Some(batch_size) })
    }
}

/// Values of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Values {
    /// If true, numbers become texts where a column has texts.
    pub(super) are_texts: bool,
    /// If true, a file without an array is an error.
    pub(super) are_in_array: bool,
    /// If true, a field without a column is an error.
    pub(super) are_all: bool,
}

#[derive(Clone)]
pub(super) struct ValueOpener {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) schema: SchemaRef,
    pub(super) compression: FileCompressionType,
    pub(super) batch_size: usize,
    pub(super) reads: Values,
}

impl FileOpener for ValueOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = self.clone();
        Ok(Box::pin(async move { opener.rows(&file).await }))
    }
}

impl ValueOpener {
    pub(super) async fn rows(self, file: &PartitionedFile) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let bytes = self.compression.convert_stream(self.bytes(file).await?)?;
        let name = file.object_meta.location.to_string();
        let values = values_of_array(bytes, name.clone(), self.reads);
        let num_rows = num_first_rows(&self.schema).unwrap_or_default().to_owned();
        let decoder = ReaderBuilder::new(self.schema).with_batch_size(self.batch_size);
        let decoder = decoder.with_coerce_primitive(self.reads.are_texts).with_strict_mode(self.reads.are_all);
        let decoder = DecoderDeserializer::new(JsonDecoder::new(decoder.build_decoder()?));
        let rows = deserialize_stream(values.fuse(), decoder);
        Ok(rows.map_err(move |error| error_of_values(&name, &num_rows, error)).boxed())
    }

    /// Returns the bytes of a file, or of the lines that begin in a part of it.
    async fn bytes(&self, file: &PartitionedFile) -> Result<BoxStream<'static, Result<Bytes>>> {
        let location = &file.object_meta.location;
        let Some(range) = &file.range else {
            let whole = self.store.get_opts(location, GetOptions::default()).await?;
            return Ok(whole.into_stream().map_err(DataFusionError::from).boxed());
        };
        part_of_file(&self.store, file, range, b'\n').await
    }
}

/// Returns the number of rows by which the columns of a file were found; `None` if a table declares them.
pub(super) fn num_first_rows(columns: &Schema) -> Option<&str> {
    columns.metadata().get(FIRST_ROWS).map(String::as_str)
}

/// Returns true if `source` reads the whole of each column, and the columns are those of the first rows, so that a
/// field of another row would be missing.
fn needs_all_fields(source: &dyn FileSource) -> bool {
    let columns = source.table_schema().file_schema();
    let Some(projection) = source.projection() else { return false };
    let read = projection.iter().filter_map(|one| one.expr.downcast_ref::<Column>());
    let read = read.map(Column::index).collect::<HashSet<_>>();
    num_first_rows(columns).is_some() && (0..columns.fields().len()).all(|idx| read.contains(&idx))
}

/// Returns the error of values of `file`, whose columns are those of its first `num_rows` rows.
fn error_of_values(file: &str, num_rows: &str, error: ArrowError) -> DataFusionError {
    match error {
        ArrowError::JsonError(text) if text.ends_with(NO_COLUMN) => exec_datafusion_err!(
            "{file}: {text}, which has the fields of the first {num_rows} rows; to read those of more rows write \
             CREATE EXTERNAL TABLE … STORED AS JSON LOCATION '…' OPTIONS ('format.schema_infer_max_rec' '1000000'), \
             and to read some fields declare their columns there, or name fewer columns in SELECT"
        ),
        error => error_of_rows(file, error),
    }
}

/// Returns `bytes` of a file, without the brackets and commas around the values if it is an array.
fn values_of_array(
    bytes: BoxStream<'static, Result<Bytes>>,
    file: String,
    reads: Values,
) -> BoxStream<'static, Result<Bytes>> {
    let state = (bytes, ArrayOfValues::default());
    stream::try_unfold(state, move |(mut bytes, mut array)| {
        let file = file.clone();
        async move {
            let chunk = bytes.next().await.transpose()?;
            let is_end = chunk.is_none();
            let values = chunk.map(|chunk| array.values(chunk));
            let is_no_array = array.place == Place::Lines || array.place == Place::Begin && is_end;
            match array.place {
                Place::Array if is_end => exec_err!("{file}: the array of JSON ends without `]`; get the file again"),
                _ if is_no_array && reads.are_in_array => exec_err!(
                    "{file}: expected an array of JSON, got none; leave 'format.newline_delimited' out if the file has \
                     a value in each line"
                ),
                Place::Trailing => exec_err!("{file}: there is more behind the array of JSON; end the file with `]`"),
                _ => Ok(values.map(|values| (values, (bytes, array)))),
            }
        }
    })
    .boxed()
}

/// Place of a reader in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// Before the first value, and before the array.
    #[default]
    Begin,
    /// In the array.
    Array,
    /// Behind the array, where only blanks are.
    End,
    /// Behind something else that is behind the array.
    Trailing,
    /// In values that are in no array.
    Lines,
}

/// Finds the brackets and commas between the values of an array.
#[derive(Debug, Default)]
struct ArrayOfValues {
    place: Place,
    /// Objects and arrays that are open in the array.
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl ArrayOfValues {
    /// Returns `chunk` with blanks for what is between values.
    fn values(&mut self, chunk: Bytes) -> Bytes {
        if self.place == Place::Lines {
            return chunk;
        }
        let mut values = Vec::from(chunk);
        for byte in &mut values {
            if self.is_between(*byte) {
                *byte = b' ';
            }
        }
        values.into()
    }

    fn is_between(&mut self, byte: u8) -> bool {
        match self.place {
            Place::Array => return self.is_between_values(byte),
            Place::Begin if byte == b'[' => {
                self.place = Place::Array;
                return true;
            }
            Place::Begin if !byte.is_ascii_whitespace() => self.place = Place::Lines,
            Place::End if !byte.is_ascii_whitespace() => self.place = Place::Trailing,
            Place::Begin | Place::End | Place::Trailing | Place::Lines => {}
        }
        false
    }

    fn is_between_values(&mut self, byte: u8) -> bool {
        if self.is_in_text {
            self.is_in_text = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return false;
        }
        match byte {
            b'"' => self.is_in_text = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => self.depth -= 1,
            b']' => {
                self.place = Place::End;
                return true;
            }
            b',' => return self.depth == 0,
            _ => {}
        }
        false
    }
}

const MARK: &[u8] = b"\xef\xbb\xbf";
const BLANKS: &[u8] = b"   ";

/// Returns `plan`, which runs here, with scans of JSON that read byte order marks as blanks, and arrays whole.
pub(super) fn with_marked_json(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    with_sources(plan, |source| {
        let is_plain = source.is::<JsonSource>();
        Ok(is_plain.then(|| Arc::new(MarkedSource { inner: Arc::clone(source), batch_size: None }) as _))
    })
}

/// Source of JSON files in a finished plan. It supports only reading.
struct MarkedSource {
    inner: Arc<dyn FileSource>,
    batch_size: Option<usize>,
}

impl FileSource for MarkedSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        scan: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let declared = Arc::clone(&self.inner);
        let texts = JsonTexts { inner: Arc::clone(&self.inner), declared, batch_size: self.batch_size };
        let are_all = needs_all_fields(self.inner.as_ref());
        let values = Values { are_texts: false, are_in_array: true, are_all };
        let arrays = texts.opener(Arc::clone(&store), scan, values)?;
        let marked = Arc::new(WithoutMarks(Arc::clone(&store)));
        let declared = self.inner.create_file_opener(marked, scan, partition)?;
        let lines = if are_all {
            texts.opener(store, scan, Values { are_in_array: false, ..values })?
        } else {
            Arc::clone(&declared)
        };
        Ok(Arc::new(JsonOpener { declared, lines, arrays }))
    }

    passing_source_methods!(inner);

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { inner: self.inner.with_batch_size(batch_size), batch_size: Some(batch_size) })
    }
}

/// Opener of files of lines, and of arrays.
struct JsonOpener {
    /// Opener of DataFusion's source, which knows if it reads arrays.
    declared: Arc<dyn FileOpener>,
    lines: Arc<dyn FileOpener>,
    arrays: Arc<dyn FileOpener>,
}

impl FileOpener for JsonOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        if file.range.is_none() && self.are_arrays(&file) {
            return self.arrays.open(file);
        }
        self.lines.open(file)
    }
}

impl JsonOpener {
    /// Returns true if the source reads arrays. It does not tell, but it refuses parts of files then, before it reads.
    fn are_arrays(&self, file: &PartitionedFile) -> bool {
        self.declared.open(file.clone().with_range(0, 0)).is_err()
    }
}

/// A store whose objects begin with blanks in place of a mark.
#[derive(Debug)]
pub(super) struct WithoutMarks(pub(super) Arc<dyn ObjectStore>);

/// Shows the store itself, by whose name local files are known.
impl fmt::Display for WithoutMarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for WithoutMarks {
    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        let found = self.0.get_opts(path, options).await?;
        if found.range.start > 0 {
            return Ok(found);
        }
        let GetResult { payload, meta, range, attributes } = found;
        let payload = match payload {
            GetResultPayload::File(mut file, path) => {
                let mut head = [0; MARK.len()];
                let has_mark = file.read_exact(&mut head).is_ok() && head == MARK;
                let is_rewound = file.seek(SeekFrom::Start(0)).is_ok();
                let payload = GetResultPayload::File(file, path);
                if !has_mark && is_rewound {
                    return Ok(GetResult { payload, meta, range, attributes });
                }
                let meta = meta.clone();
                let range = range.clone();
                let attributes = attributes.clone();
                GetResult { payload, meta, range, attributes }.into_stream()
            }
            GetResultPayload::Stream(stream) => stream,
        };
        let chunks = payload.enumerate().map(|(idx, chunk)| if idx == 0 { chunk.map(without_mark) } else { chunk });
        Ok(GetResult { payload: GetResultPayload::Stream(chunks.boxed()), meta, range, attributes })
    }

    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        self.0.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.0.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

/// Returns the first bytes of an object with blanks for the mark.
fn without_mark(chunk: Bytes) -> Bytes {
    match chunk.strip_prefix(MARK) {
        Some(rest) => [BLANKS, rest].concat().into(),
        None => chunk,
    }
}
