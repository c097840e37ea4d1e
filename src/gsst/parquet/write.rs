//! The writer of Parquet files with GSST columns.
//!
//! ```text
//! batches ─┬─ ordinary columns ──────────────────────────▶ Parquet's writers of this row group
//!          └─ GSST columns: slices of up to a stretch ──▶ blocks ──▶ run ──▶ one Binary array
//! ```
//!
//! A stretch ends when a block of one of the columns is full. A row group ends after the number of
//! rows in the properties, or when a run is long enough. Memory: the text of a stretch, then the
//! encoded row group. Checksums are computed from the bytes on their way to the output (`seal`).
//!
//! # Choice of columns
//!
//! A column with few different values, such as a level or the name of a host, is shorter as an ordinary column:
//! Parquet stores each value once and a number of a few bits for each row, and compresses those. GSST takes a
//! byte and more for each row. [`GsstColumns::without_repeated`] leaves such columns to Parquet, by the rows that a
//! file begins with: in their second half hardly a value is new. Five values are seen after a few rows, 10,000
//! values after some ten thousand. A sorted column goes on with new values, so each must fill 16 rows. If other
//! values follow, Parquet gives up its dictionary, and the column is compressed text.
//!
//! Complexity: a hash of each value of the first rows, at most [`NUM_FIRST_ROWS`].

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, BooleanBufferBuilder, RecordBatch};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{Field, Schema, SchemaRef};
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use crate::arrow::{BlockEncoder, TextType, rows};
use crate::block::BlockOptions;
use crate::layout::{MAX_BLOCK_ROWS, MAX_BLOCK_TEXT_BYTES};
use crate::symbol_table::CodeWidth;
use crate::{Error, Result};

use super::external;
use super::index::{BlockRun, GsstColumn, GsstRowGroup, INDEX_KEY, Index, StoredBlock, TextStatistics};
use super::metadata::{SEAL_KEY, SealedOutput, first_leaves, has_extension, open_seal, stored_field, stored_names};

/// Length of a run, in bytes, after which a row group ends. A page must stay below 2^31 bytes, and
/// other readers hold a run in memory.
const MAX_RUN_BYTES: usize = 64 << 20;
/// Largest number of rows that are taken from a batch at once.
const PIECE_ROWS: usize = 8192;

/// Options for writing a file.
#[derive(Debug, Clone)]
pub struct GsstParquetOptions {
    /// Columns that become GSST columns.
    pub columns: GsstColumns,
    /// Options for their blocks.
    pub block: BlockOptions,
    /// Parquet's properties, for all other columns and the number of rows of a row group.
    pub properties: WriterProperties,
}

impl Default for GsstParquetOptions {
    /// Returns options for all text columns, with the defaults of blocks and of Parquet.
    fn default() -> Self {
        Self { columns: GsstColumns::AllText, block: BlockOptions::default(), properties: WriterProperties::default() }
    }
}

/// Writer of record batches to a Parquet file with GSST columns.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{Int64Array, RecordBatch, StringArray};
/// use bytes::Bytes;
/// use gsst::parquet::{
///     GsstParquetOptions, GsstParquetReader, GsstParquetWriter, ReadOptions,
/// };
///
/// let ids = Arc::new(Int64Array::from(vec![1, 2, 3]));
/// let urls = StringArray::from(vec![Some("http://a.example"), None, Some("http://b.example")]);
/// let batch = RecordBatch::try_from_iter([("id", ids as _), ("url", Arc::new(urls) as _)])?;
/// let options = GsstParquetOptions::default();
/// let mut writer = GsstParquetWriter::new(Vec::new(), batch.schema(), options)?;
/// writer.write(&batch)?;
/// let file = Bytes::from(writer.finish()?);
///
/// let reader = GsstParquetReader::open(file)?;
/// let read = reader.read_row_group(0, &ReadOptions::default())?.next().ok_or("no rows")??;
/// assert_eq!(read, batch);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GsstParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<SealedOutput<W>>,
    row_group_writers: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    stored_schema: SchemaRef,
    /// First leaf of each field.
    leaves: Vec<usize>,
    columns: Vec<ColumnWriter>,
    row_groups: Vec<GsstRowGroup>,
    max_row_group_rows: usize,
    /// Writers of the current row group, by leaf.
    writers: Vec<ArrowColumnWriter>,
    stretch_rows: Vec<usize>,
    num_row_group_rows: usize,
    /// Number of rows of the current stretch.
    num_pending_rows: usize,
}

impl<W: Write + Send> GsstParquetWriter<W> {
    /// Starts a file of batches with this schema.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if a named column does not exist or cannot be a GSST column.
    /// [`Error::External`] if Parquet does not support the schema or `output` fails.
    pub fn new(output: W, schema: SchemaRef, options: GsstParquetOptions) -> Result<Self> {
        let columns = chosen_columns(&schema, &options.columns, options.block.width)?;
        let mut stored_fields: Vec<Arc<Field>> = schema.fields().to_vec();
        let mut properties = options.properties.into_builder().set_offset_index_disabled(false);
        for (column, stored_name) in columns.iter().zip(stored_names(&schema, &columns)) {
            let field = &mut stored_fields[column.field_idx];
            *field = Arc::new(stored_field(field, &stored_name));
            let path = ColumnPath::new(vec![field.name().clone()]);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
                .set_column_compression(path.clone(), Compression::UNCOMPRESSED)
                .set_column_bloom_filter_enabled(path.clone(), false)
                .set_column_statistics_enabled(path, EnabledStatistics::None);
        }
        let mut properties = properties.build();
        let max_row_group_rows = properties.max_row_group_row_count().unwrap_or(usize::MAX).max(1);
        let metadata = schema.metadata().clone();
        let stored_schema = Arc::new(Schema::new_with_metadata(stored_fields, metadata));
        add_encoded_arrow_schema_to_metadata(&stored_schema, &mut properties);
        let failed = external("starting a Parquet file");
        let parquet_schema = ArrowSchemaConverter::new().convert(&stored_schema).map_err(failed)?;
        let leaves = first_leaves(&parquet_schema, stored_schema.fields().len());
        let root = parquet_schema.root_schema_ptr();
        let output = SealedOutput::new(output);
        let file = SerializedFileWriter::new(output, root, Arc::new(properties)).map_err(failed)?;
        let row_group_writers = ArrowRowGroupWriterFactory::new(&file, stored_schema.clone());
        Ok(Self {
            file,
            row_group_writers,
            schema,
            stored_schema,
            leaves,
            columns: columns.into_iter().map(|column| ColumnWriter::new(column, options.block)).collect(),
            row_groups: Vec::new(),
            max_row_group_rows,
            writers: Vec::new(),
            stretch_rows: Vec::new(),
            num_row_group_rows: 0,
            num_pending_rows: 0,
        })
    }

    /// Returns the GSST columns of the file, sorted by field.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = GsstColumn> {
        self.columns.iter().map(|column| column.column)
    }

    /// Returns the memory of the current row group, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let ordinary = self.writers.iter().map(ArrowColumnWriter::memory_size).sum::<usize>();
        ordinary + self.columns.iter().map(ColumnWriter::memory_bytes).sum::<usize>()
    }

    /// Adds the rows of `batch`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if its columns have other types than the schema.
    /// [`Error::Capacity`] if a value has more than 2^23 bytes. [`Error::External`] if the output
    /// fails. After an error, the file cannot be finished.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let types =
            |schema: &Schema| -> Vec<_> { schema.fields().iter().map(|field| field.data_type().clone()).collect() };
        if types(&batch.schema()) != types(&self.schema) {
            return Err(Error::InvalidArgument {
                name: "batch",
                got: batch.schema().to_string(),
                allowed: self.schema.to_string(),
            });
        }
        let mut start = 0;
        while start < batch.num_rows() {
            let left = (batch.num_rows() - start)
                .min(PIECE_ROWS)
                .min(MAX_BLOCK_ROWS - self.num_pending_rows)
                .min(self.max_row_group_rows - self.num_row_group_rows);
            let mut num_rows = left;
            for column in &self.columns {
                let array = batch.column(column.column.field_idx).slice(start, left);
                num_rows = num_rows.min(column.num_rows_that_fit(&array)?);
            }
            if num_rows > 0 {
                self.push(&batch.slice(start, num_rows))?;
                start += num_rows;
            }
            if self.num_row_group_rows == self.max_row_group_rows {
                self.finish_row_group()?;
            } else if num_rows < left || self.num_pending_rows == MAX_BLOCK_ROWS {
                self.finish_stretch()?;
            }
        }
        Ok(())
    }

    /// Ends the current row group, if it has rows.
    ///
    /// # Errors
    ///
    /// [`Error::External`] if the output fails.
    pub fn flush(&mut self) -> Result<()> {
        self.finish_row_group()
    }

    /// Writes the remaining rows and the footer, and returns the output.
    ///
    /// # Errors
    ///
    /// [`Error::External`] if the output fails.
    pub fn finish(mut self) -> Result<W> {
        const FINISHING: &str = "finishing a Parquet file";
        self.finish_row_group()?;
        self.file.flush().map_err(|error| Error::external(FINISHING, error))?;
        let start = self.file.bytes_written() as u64;
        let index = self.index();
        for (key, value) in [(INDEX_KEY, index.to_text()), (SEAL_KEY, open_seal(start))] {
            self.file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        self.file.inner_mut().begin_end();
        let output = self.file.into_inner().map_err(external(FINISHING))?;
        output.finish().map_err(|error| Error::external(FINISHING, error))
    }

    /// Returns the index of all row groups. Their bytes must have reached the output.
    fn index(&mut self) -> Index {
        let mut row_groups = std::mem::take(&mut self.row_groups);
        let checksums = self.file.inner().checksums();
        let num_leaves = self.file.schema_descr().num_columns().max(1);
        for (row_group, checksums) in row_groups.iter_mut().zip(checksums.chunks(num_leaves)) {
            row_group.chunk_checksums = checksums.to_vec();
        }
        let columns: Vec<GsstColumn> = self.columns().collect();
        let name = |column: &GsstColumn| self.schema.field(column.field_idx).name().clone();
        let names = columns.iter().map(name).collect();
        Index { columns, names, row_groups, has_checksums: true }
    }

    /// Tells the output where the chunks of the next row group will be.
    fn expect(&mut self, chunks: &[ArrowColumnChunk]) {
        let mut start = self.file.bytes_written() as u64;
        for chunk in chunks {
            let len_bytes = chunk.close().metadata.compressed_size();
            let end = start + u64::try_from(len_bytes).unwrap_or_default();
            self.file.inner_mut().expect_chunk(start..end);
            start = end;
        }
    }

    /// Adds rows that fit into the stretch and the row group.
    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let failed = external("writing a Parquet column");
        if self.writers.is_empty() {
            let row_group_idx = self.file.flushed_row_groups().len();
            self.writers = self.row_group_writers.create_column_writers(row_group_idx).map_err(failed)?;
        }
        for (field_idx, field) in self.stored_schema.fields().iter().enumerate() {
            let array = batch.column(field_idx);
            if let Some(column) = self.columns.iter_mut().find(|column| column.column.field_idx == field_idx) {
                column.push(array)?;
                continue;
            }
            let writers = &mut self.writers[self.leaves[field_idx]..];
            let leaves = compute_leaves(field, array).map_err(failed)?;
            for (writer, leaf) in writers.iter_mut().zip(&leaves) {
                writer.write(leaf).map_err(failed)?;
            }
        }
        self.num_pending_rows += batch.num_rows();
        self.num_row_group_rows += batch.num_rows();
        Ok(())
    }

    /// Encodes the rows of the stretch as a block for each column.
    fn finish_stretch(&mut self) -> Result<()> {
        if self.num_pending_rows == 0 {
            return Ok(());
        }
        for column in &mut self.columns {
            column.finish_stretch()?;
        }
        self.stretch_rows.push(self.num_pending_rows);
        self.num_pending_rows = 0;
        if self.columns.iter().any(|column| column.run.len() >= MAX_RUN_BYTES) {
            self.finish_row_group()?;
        }
        Ok(())
    }

    fn finish_row_group(&mut self) -> Result<()> {
        self.finish_stretch()?;
        if self.num_row_group_rows == 0 {
            return Ok(());
        }
        let failed = external("writing a Parquet row group");
        let mut carriers = Vec::new();
        let mut runs = Vec::new();
        for column in &mut self.columns {
            let field_idx = column.column.field_idx;
            let (run, carrier_row, array) = column.finish_row_group()?;
            let field = &self.stored_schema.fields()[field_idx];
            let writers = &mut self.writers[self.leaves[field_idx]..];
            for (writer, leaf) in writers.iter_mut().zip(&compute_leaves(field, &array).map_err(failed)?) {
                writer.write(leaf).map_err(failed)?;
            }
            carriers.push((self.leaves[field_idx], carrier_row));
            runs.push(run);
        }
        let chunks: Vec<ArrowColumnChunk> = std::mem::take(&mut self.writers)
            .into_iter()
            .map(|writer| writer.close().map_err(failed))
            .collect::<Result<_>>()?;
        let page_ends: Vec<Option<u64>> = carriers.iter().map(|(leaf, row)| page_end(&chunks[*leaf], *row)).collect();
        self.expect(&chunks);
        let mut row_group = self.file.next_row_group().map_err(failed)?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut row_group).map_err(failed)?;
        }
        let written = row_group.close().map_err(failed)?;
        for ((run, (leaf, _)), page_end) in runs.iter_mut().zip(&carriers).zip(page_ends) {
            let chunk_start = written.column(*leaf).byte_range().0;
            if let Some(page_end) = page_end {
                run.start = chunk_start + page_end - run.len_bytes();
            }
        }
        let stretch_rows = std::mem::take(&mut self.stretch_rows);
        self.row_groups.push(GsstRowGroup { stretch_rows, runs, chunk_checksums: Vec::new() });
        self.num_row_group_rows = 0;
        Ok(())
    }
}

/// Returns the end of the page with this row, from the start of the chunk. The run ends there,
/// because a page's bytes come last and all values but one are empty.
fn page_end(chunk: &ArrowColumnChunk, row: usize) -> Option<u64> {
    let pages = &chunk.close().offset_index.as_ref()?.page_locations;
    let chunk_start = pages.first()?.offset;
    let page = pages.iter().rev().find(|page| page.first_row_index <= row as i64)?;
    u64::try_from(page.offset - chunk_start + i64::from(page.compressed_page_size)).ok()
}

/// Writer of a GSST column in the current row group.
struct ColumnWriter {
    pub(super) column: GsstColumn,
    encoder: BlockEncoder,
    pending: Vec<ArrayRef>,
    pending_text_bytes: usize,
    pub(super) run: Vec<u8>,
    blocks: Vec<StoredBlock>,
    validity: BooleanBufferBuilder,
}

impl ColumnWriter {
    pub(super) fn new(column: GsstColumn, options: BlockOptions) -> Self {
        Self {
            column,
            encoder: BlockEncoder::new(options),
            pending: Vec::new(),
            pending_text_bytes: 0,
            run: Vec::new(),
            blocks: Vec::new(),
            validity: BooleanBufferBuilder::new(0),
        }
    }

    /// Returns the memory of pending text and finished blocks, in bytes.
    fn memory_bytes(&self) -> usize {
        self.pending_text_bytes + self.run.capacity()
    }

    /// Returns how many of the first rows still fit into the block: at least one if nothing is
    /// pending.
    pub(super) fn num_rows_that_fit(&self, array: &dyn Array) -> Result<usize> {
        let mut text_bytes = self.pending_text_bytes;
        let fits = |row: &&Option<&[u8]>| {
            text_bytes += row.map_or(0, <[u8]>::len);
            text_bytes <= MAX_BLOCK_TEXT_BYTES
        };
        let rows = rows(array)?;
        let num_rows = rows.iter().take_while(fits).count();
        match rows.get(num_rows).copied().flatten() {
            Some(row) if row.len() > MAX_BLOCK_TEXT_BYTES => Err(Error::Capacity {
                what: "a value of a GSST column",
                requested: row.len() as u64,
                limit: MAX_BLOCK_TEXT_BYTES as u64,
                knob: "the number of ordinary columns",
            }),
            _ => Ok(num_rows),
        }
    }

    /// Adds rows that fit into the stretch.
    pub(super) fn push(&mut self, array: &ArrayRef) -> Result<()> {
        self.pending_text_bytes += rows(array)?.iter().flatten().map(|row| row.len()).sum::<usize>();
        self.pending.push(array.clone());
        Ok(())
    }

    fn finish_stretch(&mut self) -> Result<()> {
        let mut stretch = Vec::new();
        for array in &self.pending {
            stretch.append(&mut rows(array)?);
        }
        let statistics = TextStatistics::from_rows(&stretch, self.column.text_type.is_utf8());
        let mut len_bytes = 0;
        if statistics.num_nulls < statistics.num_rows {
            let block = self.encoder.encode_rows(&stretch)?;
            len_bytes = block.len();
            self.run.extend_from_slice(&block);
        }
        stretch.iter().for_each(|row| self.validity.append(row.is_some()));
        self.blocks.push(StoredBlock { len_bytes, statistics });
        self.pending.clear();
        self.pending_text_bytes = 0;
        Ok(())
    }

    /// Returns the run, the row that carries it, and the array for Parquet.
    fn finish_row_group(&mut self) -> Result<(BlockRun, usize, ArrayRef)> {
        let run = BlockRun { start: 0, blocks: std::mem::take(&mut self.blocks) };
        let nulls = NullBuffer::new(self.validity.finish());
        let carrier_row = nulls.valid_indices().next().unwrap_or(0);
        let bytes = std::mem::take(&mut self.run);
        let too_long = |_| Error::Capacity {
            what: "blocks of a GSST column in a row group",
            requested: bytes.len() as u64,
            limit: i32::MAX as u64,
            knob: "the number of row groups",
        };
        let end = i32::try_from(bytes.len()).map_err(too_long)?;
        let mut offsets = vec![end; nulls.len() + 1];
        offsets[..=carrier_row].fill(0);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let array = BinaryArray::try_new(offsets, Buffer::from_vec(bytes), nulls)
            .map_err(|error| Error::external("writing a GSST column", error))?;
        Ok((run, carrier_row, Arc::new(array)))
    }
}

/// Most rows that tell whether the values of a column repeat.
pub const NUM_FIRST_ROWS: usize = 1 << 16;
/// Smallest number of values among them that tells it. Fewer tell nothing.
const MIN_VALUES: usize = 4096;
/// A column is left to Parquet if one value in so many, or fewer, is new in the second half of the first rows.
const MIN_REPEATS: usize = 16;

/// Choice of the columns that become GSST columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GsstColumns {
    /// All top-level fields of a [`TextType`] without an extension type.
    AllText,
    /// Columns with these names.
    Named(Vec<String>),
}

impl GsstColumns {
    /// Returns the choice for a file that begins with the rows of `first`: [`GsstColumns::AllText`] without the
    /// columns that have few different values there. Columns that were named stay, and so do all columns of a
    /// file with fewer than 4,096 values.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow::array::{RecordBatch, StringArray};
    /// use gsst::parquet::GsstColumns;
    ///
    /// let levels = StringArray::from_iter_values((0..8192).map(|i| ["INFO", "WARN"][i % 2]));
    /// let lines = StringArray::from_iter_values((0..8192).map(|i| format!("request {i}")));
    /// let batch = RecordBatch::try_from_iter([("level", Arc::new(levels) as _), ("line", Arc::new(lines) as _)])?;
    /// assert_eq!(GsstColumns::AllText.without_repeated(&[batch])?, GsstColumns::Named(vec!["line".to_owned()]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None for batches of one schema.
    pub fn without_repeated(self, first: &[RecordBatch]) -> Result<Self> {
        let (Self::AllText, Some(batch)) = (&self, first.first()) else { return Ok(self) };
        let mut names = Vec::new();
        let mut is_shorter = false;
        for (field_idx, field) in batch.schema().fields().iter().enumerate() {
            if TextType::from_data_type(field.data_type()).is_none() || has_extension(field) {
                continue;
            }
            if has_few_values(first, field_idx)? {
                is_shorter = true;
            } else {
                names.push(field.name().clone());
            }
        }
        Ok(if is_shorter { Self::Named(names) } else { self })
    }
}

/// Returns true if the first rows of a column have enough values, and those of their second half are hardly new.
fn has_few_values(first: &[RecordBatch], field_idx: usize) -> Result<bool> {
    let mut arrays = Vec::new();
    let mut num_rows = 0;
    for batch in first {
        let num_left = NUM_FIRST_ROWS - num_rows;
        let array = batch.column(field_idx).slice(0, num_left.min(batch.num_rows()));
        num_rows += array.len();
        arrays.push(array);
    }
    let num_values: usize = arrays.iter().map(|array| array.len() - array.null_count()).sum();
    let half = num_values / 2;
    let mut seen = HashSet::new();
    let mut num_seen_values = 0;
    let mut num_new = 0;
    for array in &arrays {
        for value in rows(array)?.into_iter().flatten() {
            if !seen.contains(value) {
                seen.insert(value.to_vec());
                num_new += usize::from(num_seen_values >= half);
            }
            num_seen_values += 1;
        }
    }
    Ok(num_values >= MIN_VALUES && num_new * MIN_REPEATS <= num_values - half)
}

fn chosen_columns(schema: &Schema, choice: &GsstColumns, width: CodeWidth) -> Result<Vec<GsstColumn>> {
    if let GsstColumns::Named(names) = choice {
        for name in names {
            let field = schema.field_with_name(name).ok();
            let field = field.filter(|field| TextType::from_data_type(field.data_type()).is_some());
            if field.is_none_or(has_extension) {
                return Err(Error::InvalidArgument {
                    name: "GSST columns",
                    got: name.clone(),
                    allowed: format!("strings or binary: {}", possible_columns(schema)),
                });
            }
        }
    }
    let column = |(field_idx, field): (usize, &Arc<Field>)| {
        let is_chosen = match choice {
            GsstColumns::AllText => !has_extension(field),
            GsstColumns::Named(names) => names.contains(field.name()),
        };
        let text_type = TextType::from_data_type(field.data_type()).filter(|_| is_chosen);
        text_type.map(|text_type| GsstColumn { field_idx, text_type, width: Some(width) })
    };
    Ok(schema.fields().iter().enumerate().filter_map(column).collect())
}

/// Returns the names of the fields that can become GSST columns.
fn possible_columns(schema: &Schema) -> String {
    let is_possible =
        |field: &&Arc<Field>| TextType::from_data_type(field.data_type()).is_some() && !has_extension(field);
    let names = schema.fields().iter().filter(is_possible).map(|field| field.name().as_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none of these".to_owned() } else { names.join(", ") }
}
