//! Reads rows of Arrow IPC, streams (`.arrows`) and files (`.arrow`, `.feather`), and of Parquet.
//!
//! ```text
//! stream    schema │ dictionaries and batches │ end
//! file      ARROW1 │ the same stream │ footer │ ARROW1        the footer is for random access only
//! message   ff ff ff ff │ length │ flatbuffer │ body          bodies may be lz4 or zstd, buffer by buffer
//! ```
//!
//! Source: the columnar format of Apache Arrow, <https://arrow.apache.org/docs/format/Columnar.html>.
//! Memory is one message, which grows as its bytes arrive, and what its buffers expand to. Their lengths
//! stand in front of them, and are held against the limits before anything is decompressed. Unions, UUIDs and
//! intervals become texts ([`plain`](crate::plain)).
//!
//! The reader of Parquet needs to seek, so other sources than plain files are first copied to a temporary file. Rows
//! are decoded in batches of about [`BATCH_BYTES`], according to the sizes in the file. Texts
//! are views into the pages, so a dictionary value that a thousand rows share is in memory once.
//! GSST columns are decoded, and have the names that they were written with.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader as _};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::{Message, root_as_message};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::LogicalType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::SchemaDescriptor;

use crate::archives::seekable;
use crate::failure::{Failure, Outcome};
use crate::gather::BATCH_BYTES;
use crate::open::{Budget, Counts, Opened};
use crate::plain::{self, Plain};
use crate::rows::Rows;
use gsst::parquet::{GsstParquetReader, ReadOptions, is_gsst_file};
use tadoc::error::contain_panics;

/// First bytes of a file. Zeros follow up to the stream, to a multiple of 8 or of 64 bytes.
const FILE_MAGIC: &[u8] = b"ARROW1";
const PADDED_BYTES: usize = 8;
/// First bytes of the first version of Feather, which is another format.
const FEATHER_1_MAGIC: &[u8] = b"FEA1";
/// First bytes of a message since version 0.15 of Arrow.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// The end of a stream.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// Maximum number of rows that are decoded or passed on at once.
const BATCH_ROWS: usize = 1024;
/// Rows that a batch may have without any bytes, and for each byte: a boolean takes a bit.
const FREE_ROWS: u64 = 1 << 16;
const ROWS_PER_BYTE: u64 = 8;

/// Reads the rows of one input. `column` is the name of the text column.
pub fn read_ipc(column: &str, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let file = rows.input.shown();
    let head = opened.head().map_err(|error| opened.failed(rows.input, &error))?;
    if head.starts_with(FEATHER_1_MAGIC) {
        return Err(Failure::new(format!(
            "{file}: this is version 1 of Feather; write it again as version 2, such as by \
             pyarrow.feather.write_feather"
        )));
    }
    if head.starts_with(FILE_MAGIC) {
        let padding = head.chunks(PADDED_BYTES).skip(1);
        let num_zeros = padding.take_while(|chunk| chunk.iter().all(|&byte| byte == 0)).count();
        let mut magic = vec![0; PADDED_BYTES * (1 + num_zeros)];
        opened.reader.read_exact(&mut magic).map_err(|error| opened.failed(rows.input, &error))?;
    }
    let mut stream = Stream { decoder: StreamDecoder::new(), plain: None, num_rows: 0 };
    loop {
        let message = next_message(&mut *opened.reader);
        let message = message.map_err(|error| opened.failed(rows.input, &error))?;
        let Some(message) = message else { break };
        let expanded_bytes = message
            .check(&opened.budget)
            .map_err(|reason| Failure::new(format!("{file}: no valid Arrow IPC: {reason}")))?;
        rows.sink.count_read(opened.take_counts());
        stream.take(column, message.bytes, expanded_bytes, rows)?;
    }
    stream.take(column, END.to_vec(), 0, rows)?;
    rows.sink.count_read(opened.take_counts());
    if stream.plain.is_some() {
        Ok(())
    } else {
        Err(Failure::new(format!("{file}: no valid Arrow IPC: there is no schema")))
    }
}

/// The rows of a stream so far.
struct Stream {
    decoder: StreamDecoder,
    /// Forms of the columns, once their schema was checked.
    plain: Option<Plain>,
    num_rows: usize,
}

impl Stream {
    /// Decodes a message, whose buffers expand to `expanded_bytes`, and passes on the rows of the batches.
    fn take(&mut self, column: &str, bytes: Vec<u8>, expanded_bytes: u64, rows: &mut Rows<'_, '_>) -> Outcome {
        let file = rows.input.shown();
        let bad = |error: &(dyn std::error::Error + 'static)| {
            Failure::with_cause(format!("{file}: no valid Arrow IPC"), error)
        };
        let mut bytes = Buffer::from_vec(bytes);
        while !bytes.is_empty() {
            let decoded = contain_panics("message", || self.decoder.decode(&mut bytes));
            let batch = decoded.map_err(|error| bad(&error))?.map_err(|error| bad(&error))?;
            if let Some(schema) = self.decoder.schema().filter(|_| self.plain.is_none()) {
                let plain = Plain::new(&schema, |name| rows.needs(name, column));
                rows.check_text_column(column, plain.schema())?;
                rows.check_num_columns(plain.schema())?;
                rows.check_time_column(plain.schema())?;
                self.plain = Some(plain);
            }
            if let (Some(batch), Some(plain)) = (batch, &self.plain) {
                let max_rows = expanded_bytes.saturating_mul(ROWS_PER_BYTE).max(FREE_ROWS);
                if batch.num_rows() as u64 > max_rows {
                    let reason = format!("{} rows in {expanded_bytes} bytes", batch.num_rows());
                    return Err(Failure::new(format!("{file}: no valid Arrow IPC: {reason}")));
                }
                let batch = contain_panics("batch", || plain.batch(&batch)).map_err(|error| bad(&error))?;
                let batch = batch.map_err(|failure| failure.within(&file))?;
                self.rows_of(column, &batch, rows)?;
            }
        }
        Ok(())
    }

    fn rows_of(&mut self, column: &str, batch: &RecordBatch, rows: &mut Rows<'_, '_>) -> Outcome {
        for start in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            let part = batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start));
            let first = self.num_rows + start + 1;
            rows.take(column, &part, &|idx| format!("row {}", first + idx))?;
        }
        self.num_rows += batch.num_rows();
        Ok(())
    }
}

/// A message with all of its bytes.
struct Bytes {
    bytes: Vec<u8>,
    /// Start and end of the flatbuffer in `bytes`. The body follows.
    metadata: std::ops::Range<usize>,
}

impl Bytes {
    fn message(&self) -> Result<Message<'_>, String> {
        let bytes = self.bytes.get(self.metadata.clone()).unwrap_or_default();
        root_as_message(bytes).map_err(|error| error.to_string())
    }

    /// Checks what the buffers of the body say they expand to, and returns it. Other messages and
    /// buffers that are not compressed expand to their own bytes.
    fn check(&self, budget: &Budget) -> Result<u64, String> {
        let message = self.message()?;
        let batch = message.header_as_record_batch();
        let batch = batch.or_else(|| message.header_as_dictionary_batch().and_then(|d| d.data()));
        let body = self.bytes.get(self.metadata.end..).unwrap_or_default();
        let Some(batch) = batch.filter(|batch| batch.compression().is_some()) else {
            return Ok(body.len() as u64);
        };
        let mut expanded_bytes = 0u64;
        for buffer in batch.buffers().into_iter().flatten() {
            let start = usize::try_from(buffer.offset()).unwrap_or(usize::MAX);
            let prefix = body.get(start..).and_then(|rest| rest.first_chunk());
            // A buffer without bytes has no length.
            let Some(prefix) = prefix.filter(|_| buffer.length() > 0) else { continue };
            let len_bytes = match i64::from_le_bytes(*prefix) {
                -1 => buffer.length(),
                expanded => expanded,
            };
            let len_bytes = u64::try_from(len_bytes).unwrap_or(u64::MAX);
            expanded_bytes = expanded_bytes.saturating_add(len_bytes);
        }
        budget.expand(body.len() as u64, expanded_bytes)?;
        Ok(expanded_bytes)
    }
}

/// Reads the next message, or none at the end of the stream.
fn next_message(reader: &mut dyn BufRead) -> io::Result<Option<Bytes>> {
    let mut bytes = Vec::new();
    if !read_more(reader, 4, &mut bytes)? {
        return Ok(None);
    }
    if bytes == CONTINUATION && !read_more(reader, 4, &mut bytes)? {
        return Err(cut());
    }
    let len = bytes.last_chunk().map_or(0, |len| i32::from_le_bytes(*len));
    let len = u64::try_from(len).map_err(|_| io::Error::other("the length of a message is below 0"))?;
    if len == 0 {
        return Ok(None);
    }
    let start = bytes.len();
    if !read_more(reader, len, &mut bytes)? {
        return Err(cut());
    }
    let mut message = Bytes { metadata: start..bytes.len(), bytes };
    let body_bytes = message.message().map_err(io::Error::other)?.bodyLength();
    let body_bytes = u64::try_from(body_bytes).map_err(|_| cut())?;
    if body_bytes == 0 || read_more(reader, body_bytes, &mut message.bytes)? { Ok(Some(message)) } else { Err(cut()) }
}

/// Appends the next `len` bytes. Returns false if there are none at all.
fn read_more(reader: &mut dyn BufRead, len: u64, bytes: &mut Vec<u8>) -> io::Result<bool> {
    // The memory grows with what is there, not with what the length says.
    let read = reader.take(len).read_to_end(bytes)?;
    if read as u64 == len {
        Ok(true)
    } else if read == 0 {
        Ok(false)
    } else {
        Err(cut())
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the Arrow stream is cut or damaged")
}

/// Reads the rows of one input. `column` is the name of the text column.
pub fn read_parquet(column: &str, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let file = rows.input.shown();
    let bad =
        |error: &(dyn std::error::Error + 'static)| Failure::with_cause(format!("{file}: no valid Parquet"), error);
    let file = seekable(&mut opened, rows.input)?;
    let file_bytes = file.metadata()?.len();
    let contained = |error: tadoc::Error| bad(&error);
    let metadata = contain_panics("footer", || metadata(column, &file)).map_err(contained)?;
    let metadata = metadata.map_err(|error| bad(&error))?;
    let batch_rows = batch_rows(metadata.metadata());
    let num_rows = u64::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or(0);
    let mut taken = Taken { column, file_bytes, num_rows, num_taken: 0 };
    if is_gsst_file(metadata.metadata()) {
        return read_gsst(file, batch_rows, &mut taken, rows);
    }
    rows.check_text_column(column, metadata.schema())?;
    rows.check_num_columns(metadata.schema())?;
    rows.check_time_column(metadata.schema())?;
    let uuids = uuid_columns(metadata.parquet_schema());
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    let mask = if rows.options.keep_columns {
        ProjectionMask::all()
    } else {
        let names = reader.schema().fields().iter().map(|field| field.name().as_str());
        let needed = names.filter(|name| rows.needs(name, column));
        ProjectionMask::columns(reader.parquet_schema(), needed)
    };
    let reader = reader.with_batch_size(batch_rows).with_projection(mask);
    let batches = contain_panics("pages", || reader.build()).map_err(contained)?;
    let mut batches = batches.map_err(|error| bad(&error))?;
    let plain = Plain::new(&with_uuids(&batches.schema(), &uuids), |_| true);
    while let Some(batch) = contain_panics("pages", || batches.next()).map_err(contained)? {
        taken.take(&plain.batch(&batch.map_err(|error| bad(&error))?)?, rows)?;
    }
    Ok(())
}

/// Returns the names of the columns with UUIDs. Writers that know nothing of Arrow say it in Parquet's own schema.
fn uuid_columns(schema: &SchemaDescriptor) -> HashSet<String> {
    let columns = schema.columns().iter();
    let uuids = columns.filter(|column| column.logical_type_ref() == Some(&LogicalType::Uuid));
    uuids.map(|column| column.path().string()).collect()
}

/// Returns `schema` with a mark at the columns of these names, that they have UUIDs.
fn with_uuids(schema: &Schema, names: &HashSet<String>) -> SchemaRef {
    let marked = |field: &FieldRef| {
        if names.contains(field.name()) { Arc::new(plain::marked_uuid(field)) } else { Arc::clone(field) }
    };
    let fields = schema.fields().iter().map(marked);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Reads the rows of a file with GSST columns.
fn read_gsst(file: File, batch_rows: usize, taken: &mut Taken<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let name = rows.input.shown();
    let bad =
        |error: &(dyn std::error::Error + 'static)| Failure::with_cause(format!("{name}: no valid Parquet"), error);
    let contained = |error: tadoc::Error| bad(&error);
    let reader = contain_panics("footer", || GsstParquetReader::open(file)).map_err(contained)?;
    let reader = reader.map_err(|error| bad(&error))?;
    rows.check_text_column(taken.column, reader.schema())?;
    rows.check_time_column(reader.schema())?;
    let fields = reader.schema().fields().iter().enumerate();
    let is_kept = |name: &str| rows.options.keep_columns || rows.needs(name, taken.column);
    let kept = fields.filter(|(_, field)| is_kept(field.name()));
    let options = ReadOptions {
        projection: Some(kept.map(|(field_idx, _)| field_idx).collect()),
        batch_rows,
        text_as_views: true,
        ..ReadOptions::default()
    };
    for row_group_idx in 0..reader.num_row_groups() {
        let batches = reader.read_row_group(row_group_idx, &options);
        let mut batches = batches.map_err(|error| bad(&error))?;
        while let Some(batch) = contain_panics("pages", || batches.next()).map_err(contained)? {
            taken.take(&batch.map_err(|error| bad(&error))?, rows)?;
        }
    }
    Ok(())
}

/// Progress through the rows of a file.
struct Taken<'a> {
    /// Name of the text column.
    column: &'a str,
    file_bytes: u64,
    num_rows: u64,
    num_taken: usize,
}

impl Taken<'_> {
    /// Hands the rows of `batch` over.
    fn take(&mut self, batch: &RecordBatch, rows: &mut Rows<'_, '_>) -> Outcome {
        let share = |whole| share(whole, batch.num_rows() as u64, self.num_rows);
        let disk_bytes = share(rows.input.len_bytes);
        rows.sink.count_read(Counts { disk_bytes, text_bytes: share(self.file_bytes) });
        rows.take(self.column, batch, &|idx| format!("row {}", self.num_taken + idx + 1))?;
        self.num_taken += batch.num_rows();
        Ok(())
    }
}

/// Reads the metadata of `file`, with view types for the texts in `column`.
fn metadata(column: &str, file: &File) -> Result<ArrowReaderMetadata, ParquetError> {
    let metadata = ArrowReaderMetadata::load(file, ArrowReaderOptions::new())?;
    let fields = metadata.schema().fields().iter().map(|field| {
        let view = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            other => other.clone(),
        };
        if field.name() == column { Arc::new(field.as_ref().clone().with_data_type(view)) } else { Arc::clone(field) }
    });
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    // Not every schema is accepted. The schema of the file gives the same values.
    Ok(ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).unwrap_or(metadata))
}

/// Returns the number of rows that take about [`BATCH_BYTES`] in the row group with the largest
/// rows.
fn batch_rows(metadata: &ParquetMetaData) -> usize {
    let row_bytes = metadata.row_groups().iter().map(|group| {
        let bytes = group.total_byte_size();
        let num_rows = group.num_rows();
        usize::try_from(bytes / num_rows.max(1)).unwrap_or(0)
    });
    (BATCH_BYTES / row_bytes.max().unwrap_or(0).max(1)).clamp(1, BATCH_ROWS)
}

/// Returns the part of `whole` for the progress bar, in proportion to the rows. Columns are read in
/// any order, but rows come in order.
fn share(whole: u64, num_rows: u64, all_rows: u64) -> u64 {
    (u128::from(whole) * u128::from(num_rows) / u128::from(all_rows.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    #[test]
    fn uuids_of_parquet_are_marked() {
        let message = "message m { required fixed_len_byte_array(16) u (UUID); required fixed_len_byte_array(16) b; }";
        let schema = SchemaDescriptor::new(Arc::new(parse_message_type(message).unwrap()));
        let names = uuid_columns(&schema);
        assert_eq!(names, HashSet::from(["u".to_owned()]));
        let fields = ["u", "b"].map(|name| Field::new(name, DataType::FixedSizeBinary(16), false));
        let plain = Plain::new(&with_uuids(&Schema::new(fields.to_vec()), &names), |_| true);
        let kinds: Vec<&DataType> = plain.schema().fields().iter().map(|field| field.data_type()).collect();
        assert_eq!(kinds, [&DataType::Utf8, &DataType::FixedSizeBinary(16)]);
    }
}
