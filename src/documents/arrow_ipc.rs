//! Reads rows of Arrow IPC: streams (`.arrows`) and files (`.arrow`, `.feather`).
//!
//! ```text
//! stream    schema │ dictionaries and batches │ end
//! file      ARROW1 │ the same stream │ footer │ ARROW1        the footer is for random access only
//! message   ff ff ff ff │ length │ flatbuffer │ body          bodies may be lz4 or zstd, buffer by buffer
//! ```
//!
//! Source: the columnar format of Apache Arrow, <https://arrow.apache.org/docs/format/Columnar.html>.
//! Memory is one message, which grows as its bytes arrive, and what its buffers expand to. Their lengths
//! stand in front of them, and are held against the limits before anything is decompressed.

use std::io::{self, BufRead, Read};

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::{Message, root_as_message};
use tadoc::containment::contain_panics;

use crate::failure::{Failure, Outcome};
use crate::open::{Budget, Opened};
use crate::rows::Rows;

/// First bytes of a file. Zeros follow up to the stream, to a multiple of 8 or of 64 bytes.
const FILE_MAGIC: &[u8] = b"ARROW1";
const PADDED_BYTES: usize = 8;
/// First bytes of the first version of Feather, which is another format.
const FEATHER_1_MAGIC: &[u8] = b"FEA1";
/// First bytes of a message since version 0.15 of Arrow.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// The end of a stream.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// Number of rows that are passed on at once.
const BATCH_ROWS: usize = 1024;
/// Rows that a batch may have without any bytes, and for each byte: a boolean takes a bit.
const FREE_ROWS: u64 = 1 << 16;
const ROWS_PER_BYTE: u64 = 8;

/// Reads the rows of one input. `column` is the name of the text column.
pub fn read(column: &str, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
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
    let mut stream = Stream { decoder: StreamDecoder::new(), is_checked: false, num_rows: 0 };
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
    if stream.is_checked {
        Ok(())
    } else {
        Err(Failure::new(format!("{file}: no valid Arrow IPC: there is no schema")))
    }
}

/// The rows of a stream so far.
struct Stream {
    decoder: StreamDecoder,
    /// True if the columns of the schema were checked.
    is_checked: bool,
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
            if let Some(schema) = self.decoder.schema().filter(|_| !self.is_checked) {
                rows.check_text_column(column, &schema)?;
                rows.check_num_columns(&schema)?;
                rows.check_time_column(&schema)?;
                self.is_checked = true;
            }
            if let Some(batch) = batch {
                let max_rows = expanded_bytes.saturating_mul(ROWS_PER_BYTE).max(FREE_ROWS);
                if batch.num_rows() as u64 > max_rows {
                    let reason = format!("{} rows in {expanded_bytes} bytes", batch.num_rows());
                    return Err(Failure::new(format!("{file}: no valid Arrow IPC: {reason}")));
                }
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
