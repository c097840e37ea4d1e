//! CSV with a header line; `.tsv` files are cut at tabs.
//!
//! Every cell is read as text first; [`Columns`] gives a column a narrower type when all of its
//! values allow it. An empty cell of the text column is an empty document. Memory is a few times
//! [`BATCH_BYTES`] and a row.
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
use super::open::{Opened, open};
use super::rows::{PATH_COLUMN, Rows};
use crate::failure::{Failure, Outcome};

/// Rows decoded at once. Cells can be long texts, so this is small.
const BATCH_ROWS: usize = 256;

/// Reads the rows of one input; `column` holds the text.
pub fn read(column: &str, rows: &mut Rows<'_, '_>) -> Outcome {
    let mut opened = open(rows.input, rows.options.decompress, rows.options.expansion)?;
    let max_bytes = rows.options.max_row_bytes;
    let header = read_header(&mut *opened.reader, max_bytes);
    let header = header.map_err(|error| opened.failed(rows.input, &error))?;
    if header.len() as u64 > max_bytes {
        return Err(rows.too_large("the header"));
    }
    let delimiter = delimiter(&rows.input.path);
    let schema = schema_of(&header, delimiter).map_err(|error| bad_csv(rows, &error))?;
    rows.check_text_column(column, &schema)?;
    let reader = ReaderBuilder::new(Arc::new(schema.clone()))
        .with_header(true)
        .with_delimiter(delimiter)
        .with_batch_size(BATCH_ROWS);
    let reader = match rows.options.keep_columns {
        true => reader,
        false => reader.with_projection(indices(&schema, &[column, PATH_COLUMN])),
    };
    // The header goes through the decoder too, so that the lines in its errors are right.
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

/// An empty cell is a text without bytes, whereas for other columns it is a null.
fn take(column: &str, batch: &RecordBatch, rows: &mut Rows<'_, '_>, row_idx: usize) -> Outcome {
    let asked = rows.options.allow_missing;
    rows.options.allow_missing = true;
    let taken = rows.take(column, batch, &|idx| format!("row {}", row_idx + idx + 1));
    rows.options.allow_missing = asked;
    taken
}

/// Feeds a decoder: the header, then the input.
struct Feeder {
    decoder: Decoder,
    header: Cursor<Vec<u8>>,
    /// Bytes of the row that is not complete, but for those that came together with the end of another.
    row_bytes: u64,
}

impl Feeder {
    fn new(decoder: Decoder, header: Vec<u8>) -> Self {
        Self { decoder, header: Cursor::new(header), row_bytes: 0 }
    }

    /// Decodes until a batch is full or the input ends (then true). `row_idx` is that of the first row.
    fn feed(&mut self, opened: &mut Opened, rows: &Rows<'_, '_>, row_idx: usize) -> Outcome<bool> {
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
            // A batch of large rows ends early, and can end only where a row does.
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

/// Decodes some of `bytes`; returns how many, and the rows that they complete.
fn decode(decoder: &mut Decoder, bytes: &[u8]) -> Result<(usize, usize), ArrowError> {
    let before = decoder.capacity();
    let len = decoder.decode(bytes)?;
    Ok((len, before.saturating_sub(decoder.capacity())))
}

/// As much of `bytes` as one row can end with: a row ends nowhere but at an end of a line.
fn up_to_line_end(bytes: &[u8]) -> &[u8] {
    match memchr2(b'\n', b'\r', bytes) {
        Some(end) => &bytes[..=end],
        None => bytes,
    }
}

/// The first record, which may span lines inside quotes; cut where it is longer than `max_bytes`.
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

/// All columns as texts; columns without a name or with one that is taken get one.
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

fn indices(schema: &Schema, names: &[&str]) -> Vec<usize> {
    let fields = schema.fields().iter().enumerate();
    let wanted = fields.filter(|(_, field)| names.contains(&field.name().as_str()));
    wanted.map(|(idx, _)| idx).collect()
}

fn bad_csv(rows: &Rows<'_, '_>, error: &ArrowError) -> Failure {
    let text = error.to_string();
    let reason = text.split_once("error: ").map_or(text.as_str(), |(_, reason)| reason);
    Failure::new(format!("{}: no valid CSV: {reason}", rows.input.shown()))
}
