//! Source of JSON files whose declared decimals are read as texts.
//!
//! DataFusion's source reads a number as a text only where no table asks for it. This one does, from lines of values
//! and from arrays of values. It stays on the machine where it is made.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::ReaderBuilder;
use datafusion::common::{exec_err, internal_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonDecoder;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource};
use datafusion::error::{DataFusionError, Result};
use datafusion_datasource::boundary_stream::AlignedBoundaryStream;
use datafusion_datasource::decoder::{DecoderDeserializer, deserialize_stream};
use datafusion_datasource::projection::{ProjectionOpener, SplitProjection};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::{GetOptions, ObjectStore};

use super::marks::WithoutMarks;
use crate::file_scans::passing_source_methods;

/// Source of JSON files in a finished plan.
pub(super) struct JsonTexts {
    /// DataFusion's source of the same columns.
    inner: Arc<dyn FileSource>,
    batch_size: Option<usize>,
}

impl JsonTexts {
    /// Creates the source of the columns and expressions of `inner`.
    pub(super) fn new(inner: Arc<dyn FileSource>) -> Self {
        Self { inner, batch_size: None }
    }
}

impl FileSource for JsonTexts {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        scan: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let (Some(projection), Some(batch_size)) = (self.inner.projection(), self.batch_size) else {
            return internal_err!("a scan of JSON without columns or a size of batches");
        };
        let file_schema = self.inner.table_schema().file_schema();
        let projection = SplitProjection::new(file_schema, projection);
        let schema = Arc::new(file_schema.project(&projection.file_indices)?);
        let store = Arc::new(WithoutMarks(store));
        let opener = TextOpener { store, schema, compression: scan.file_compression_type, batch_size };
        ProjectionOpener::try_new(projection, Arc::new(opener), file_schema)
    }

    passing_source_methods!(inner);

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { inner: Arc::clone(&self.inner), batch_size: Some(batch_size) })
    }
}

#[derive(Clone)]
struct TextOpener {
    store: Arc<dyn ObjectStore>,
    schema: SchemaRef,
    compression: FileCompressionType,
    batch_size: usize,
}

impl FileOpener for TextOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = self.clone();
        Ok(Box::pin(async move { opener.rows(&file).await }))
    }
}

impl TextOpener {
    async fn rows(self, file: &PartitionedFile) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let bytes = self.compression.convert_stream(self.bytes(file).await?)?;
        let values = values_of_array(bytes, file.object_meta.location.to_string());
        let decoder = ReaderBuilder::new(self.schema).with_batch_size(self.batch_size).with_coerce_primitive(true);
        let decoder = DecoderDeserializer::new(JsonDecoder::new(decoder.build_decoder()?));
        Ok(deserialize_stream(values.fuse(), decoder).map_err(DataFusionError::from).boxed())
    }

    /// Returns the bytes of a file, or of the lines that begin in a part of it.
    async fn bytes(&self, file: &PartitionedFile) -> Result<BoxStream<'static, Result<Bytes>>> {
        let location = &file.object_meta.location;
        let Some(range) = &file.range else {
            let whole = self.store.get_opts(location, GetOptions::default()).await?;
            return Ok(whole.into_stream().map_err(DataFusionError::from).boxed());
        };
        let (Ok(start), Ok(end)) = (u64::try_from(range.start), u64::try_from(range.end)) else {
            return internal_err!("a part of {location} from {} to {}", range.start, range.end);
        };
        let (store, num_bytes) = (Arc::clone(&self.store), file.object_meta.size);
        let lines = AlignedBoundaryStream::new(store, location.clone(), start, end, num_bytes, b'\n').await?;
        Ok(lines.map_err(DataFusionError::from).boxed())
    }
}

/// Returns `bytes` of a file, without the brackets and commas around the values if it is an array.
fn values_of_array(bytes: BoxStream<'static, Result<Bytes>>, file: String) -> BoxStream<'static, Result<Bytes>> {
    let state = (bytes, ArrayOfValues::default());
    stream::try_unfold(state, move |(mut bytes, mut array)| {
        let file = file.clone();
        async move {
            match bytes.next().await {
                Some(chunk) => Ok(Some((array.values(chunk?), (bytes, array)))),
                None if array.is_open => exec_err!("{file}: the array of JSON ends without `]`; get the file again"),
                None => Ok(None),
            }
        }
    })
    .boxed()
}

/// Finds the brackets and commas between the values of an array.
#[derive(Debug, Default)]
struct ArrayOfValues {
    /// True if the first value has begun, or the array.
    has_begun: bool,
    /// True in the array.
    is_open: bool,
    /// Objects and arrays that are open in the array.
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl ArrayOfValues {
    /// Returns `chunk` with blanks for what is between values.
    fn values(&mut self, chunk: Bytes) -> Bytes {
        if self.has_begun && !self.is_open {
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
        if !self.is_open {
            self.is_open = !self.has_begun && byte == b'[';
            self.has_begun |= !byte.is_ascii_whitespace();
            return self.is_open;
        }
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
                self.is_open = false;
                return true;
            }
            b',' => return self.depth == 0,
            _ => {}
        }
        false
    }
}
