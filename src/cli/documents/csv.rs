//! CSV with a header line. `.tsv` files are split at tabs.
//!
//! Every cell is first read as text. [`Columns`] gives a column a narrower type if all of its
//! values fit. An empty cell of the text column is an empty document. Memory is a few times
//! [`BATCH_BYTES`], plus a row.
//!
//! [`Columns`]: crate::columns::Columns

use std::collections::HashSet;
use std::io::{self, BufRead, Cursor, Read};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::ReaderBuilder;
use datafusion::arrow::csv::reader::{Decoder, Format};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::error::ArrowError;
use memchr::memchr2;

use super::BATCH_BYTES;
use super::open::Opened;
use super::rows::Rows;
use crate::failure::{Failure, Outcome};

/// Number of rows decoded at once. It is small because cells can be long texts.
const BATCH_ROWS: usize = 256;

/// Reads the rows of one input. `column` is the name of the text column.
pub fn read(column: &str, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let max_bytes = rows.options.max_row_bytes;
    let header = read_header(&mut *opened.reader, max_bytes);
    let header = header.map_err(|error| opened.failed(rows.input, &error))?;
    if header.len() as u64 > max_bytes {
        return Err(rows.too_large("the header"));
    }
    let delimiter = delimiter(&rows.input.path);
    let schema = schema_of(&header, delimiter).map_err(|error| bad_csv(rows, &error))?;
    rows.check_text_column(column, &schema)?;
    rows.check_time_column(&schema)?;
    let reader = ReaderBuilder::new(Arc::new(schema.clone()))
        .with_header(true)
        .with_delimiter(delimiter)
        .with_batch_size(BATCH_ROWS);
    let reader = match rows.options.keep_columns {
        true => reader,
        false => reader.with_projection(indices(&schema, |name| rows.needs(name, column))),
    };
    // The header is decoded too, so that line numbers in errors are right.
    let mut feeder = Feeder::new(reader.build_decoder(), header);
    let mut row_idx = 0;
    loop {
        let is_end = feeder.feed(&mut opened, rows, row_idx)?;
        rows.sink.count_read(opened.take_counts());
        let batch = feeder.decoder.flush().map_err(|error| bad_csv(rows, &error))?;
        if let Some(batch) = &batch {
            take(column, batch, rows, row_idx)?;
            row_idx += batch.num_rows();
        }
        if is_end && batch.is_none() {
            return Ok(());
        }
    }
}

/// Takes the rows of `batch`. The decoder reads empty cells as nulls; in the text column they are
/// empty documents.
fn take(column: &str, batch: &RecordBatch, rows: &mut Rows<'_, '_>, row_idx: usize) -> Outcome {
    let asked = rows.options.allow_missing;
    rows.options.allow_missing = true;
    let taken = rows.take(column, batch, &|idx| format!("row {}", row_idx + idx + 1));
    rows.options.allow_missing = asked;
    taken
}

/// Feeds a decoder with the header and then with the input.
struct Feeder {
    decoder: Decoder,
    header: Cursor<Vec<u8>>,
    /// Bytes of the incomplete row. Those that were decoded together with the end of the previous
    /// row are not counted.
    row_bytes: u64,
}

impl Feeder {
    fn new(decoder: Decoder, header: Vec<u8>) -> Self {
        Self { decoder, header: Cursor::new(header), row_bytes: 0 }
    }

    /// Decodes until a batch is full or the input ends, and returns true at the end of the input.
    /// `row_idx` is the index of the first row of the batch.
    fn feed(
        &mut self,
        opened: &mut Opened<'_>,
        rows: &Rows<'_, '_>,
        row_idx: usize,
    ) -> Outcome<bool> {
        let mut batch_bytes = 0;
        loop {
            let from_header = self.header.position() < self.header.get_ref().len() as u64;
            let bytes = match from_header {
                true => self.header.fill_buf(),
                false => opened.reader.fill_buf(),
            };
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(error) => return Err(opened.failed(rows.input, &error)),
            };
            let is_end = bytes.is_empty();
            // A batch of large rows ends early. It can end only at the end of a row.
            let is_large = batch_bytes >= BATCH_BYTES;
            let bytes = if is_large { up_to_line_end(bytes) } else { bytes };
            let (len, num_rows) =
                decode(&mut self.decoder, bytes).map_err(|e| bad_csv(rows, &e))?;
            match from_header {
                true => self.header.consume(len),
                false => opened.reader.consume(len),
            }
            batch_bytes += len;
            self.row_bytes = if num_rows > 0 { 0 } else { self.row_bytes + len as u64 };
            if self.row_bytes > rows.options.max_row_bytes {
                let num_decoded = BATCH_ROWS - self.decoder.capacity();
                return Err(rows.too_large(&format!("row {}", row_idx + num_decoded + 1)));
            }
            if len == 0 || self.decoder.capacity() == 0 || is_large && num_rows > 0 {
                return Ok(is_end);
            }
        }
    }
}

/// Decodes a part of `bytes`. Returns the number of decoded bytes and of completed rows.
fn decode(decoder: &mut Decoder, bytes: &[u8]) -> Result<(usize, usize), ArrowError> {
    let before = decoder.capacity();
    let len = decoder.decode(bytes)?;
    Ok((len, before.saturating_sub(decoder.capacity())))
}

/// Returns `bytes` up to the first line end, as a row can end only there.
fn up_to_line_end(bytes: &[u8]) -> &[u8] {
    match memchr2(b'\n', b'\r', bytes) {
        Some(end) => &bytes[..=end],
        None => bytes,
    }
}

/// Reads the first record, which may span lines inside quotes. It is cut if it is longer than
/// `max_bytes`.
fn read_header(reader: &mut dyn BufRead, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    let mut reader = reader.take(max_bytes.saturating_add(1));
    loop {
        let len = reader.read_until(b'\n', &mut header)?;
        let num_quotes = header.iter().filter(|&&byte| byte == b'"').count();
        if len == 0 || num_quotes % 2 == 0 {
            break;
        }
    }
    if header.starts_with(b"\xef\xbb\xbf") {
        header.drain(..3);
    }
    Ok(header)
}

fn delimiter(path: &str) -> u8 {
    let name = path.strip_suffix(".gz").or(path.strip_suffix(".zst")).unwrap_or(path);
    if name.to_ascii_lowercase().ends_with(".tsv") { b'\t' } else { b',' }
}

/// Builds a schema with all columns as texts. Columns with an empty or repeated name get a new one.
fn schema_of(header: &[u8], delimiter: u8) -> Result<Schema, ArrowError> {
    let format = Format::default().with_header(true).with_delimiter(delimiter);
    let (schema, _) = format.infer_schema(Cursor::new(header), Some(0))?;
    let mut taken = HashSet::new();
    let fields = schema.fields().iter().enumerate().map(|(idx, field)| {
        let name = match field.name().as_str() {
            "" => format!("column_{}", idx + 1),
            name if taken.contains(name) => format!("{name}_{}", idx + 1),
            name => name.to_owned(),
        };
        taken.insert(name.clone());
        Field::new(name, DataType::Utf8, true)
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

fn indices(schema: &Schema, wanted: impl Fn(&str) -> bool) -> Vec<usize> {
    let fields = schema.fields().iter().enumerate();
    fields.filter(|(_, field)| wanted(field.name())).map(|(idx, _)| idx).collect()
}

fn bad_csv(rows: &Rows<'_, '_>, error: &ArrowError) -> Failure {
    let text = error.to_string();
    let reason = text.split_once("error: ").map_or(text.as_str(), |(_, reason)| reason);
    Failure::new(format!("{}: no valid CSV: {reason}", rows.input.shown()))
}
