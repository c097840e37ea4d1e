//! CSV: rows of cells with a delimiter, with or without a header and comment lines.
//!
//! ```text
//! header ─▶ names ─┐                        a log of Zeek: names, types, delimiter ◀─ comment lines
//! rows ────────────┴─▶ Decoder ─▶ batches of texts ─▶ rows
//! ```
//!
//! Every cell is first read as text. The receiver of columns gives a column a narrower type if all of its
//! values fit. An empty cell of the text column is an empty document. Quotes are those of [`Quotes`]; between
//! tabs a quotation mark is text by default, as the registration of text/tab-separated-values at the IANA knows
//! no quotes. Memory is a few times [`BATCH_BYTES`], plus a row.
//!

use std::collections::HashSet;
use std::io::{self, BufRead, Cursor, Read};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::{Decoder, Format};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use memchr::memchr2;

use crate::failure::{Failure, Outcome};
use crate::open::Opened;
use crate::quotes::{NO_QUOTE, Quotes};
use crate::rows::Rows;
use crate::{BATCH_BYTES, display};

/// Number of rows decoded at once. It is small because cells can be long texts.
const BATCH_ROWS: usize = 256;

/// The quotation mark around cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    /// This byte.
    Byte(u8),
    /// There is none: every byte of a cell is text.
    None,
}

/// Form of the rows of CSV.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// Byte between cells. If there is none, it is a tab for names that end in `.tsv`, else a comma.
    pub delimiter: Option<u8>,
    /// True if the first row has the names of the columns.
    pub has_header: bool,
    /// First byte of lines that are left out.
    pub comment: Option<u8>,
    /// Quotation mark. If it is not given, it is none where a tab is between cells, else `"`.
    pub quote: Option<Quote>,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { delimiter: None, has_header: true, comment: None, quote: None }
    }
}

/// Reads the rows of one input. `column` is the name of the text column.
pub fn read(column: &str, dialect: Dialect, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let delimiter = dialect.delimiter.unwrap_or_else(|| delimiter(&rows.input.path));
    let quote = match dialect.quote {
        Some(Quote::Byte(quote)) => quote,
        Some(Quote::None) => NO_QUOTE,
        None if delimiter == b'\t' => NO_QUOTE,
        None => b'"',
    };
    let max_bytes = rows.options.max_row_bytes;
    let quotes = || Quotes::new(quote, delimiter, dialect.comment);
    let first = read_first_row(&mut *opened.reader, dialect.comment, quotes(), max_bytes);
    let (first, row) = first.map_err(|error| opened.failed(rows.input, &error))?;
    if first.len() as u64 > max_bytes {
        let what = if dialect.has_header { "the header" } else { "row 1" };
        return Err(rows.too_large(what));
    }
    let format = Format::default().with_header(dialect.has_header).with_delimiter(delimiter).with_quote(quote);
    let schema = schema_of(&first[row..], &format).map_err(|error| bad_csv(rows, &error))?;
    let reader = ReaderBuilder::new(Arc::new(schema.clone()))
        .with_header(dialect.has_header)
        .with_delimiter(delimiter)
        .with_quote(quote);
    let reader = match dialect.comment {
        Some(comment) => reader.with_comment(comment),
        None => reader,
    };
    // The first row is decoded too, so that line numbers in errors are right.
    let (quotes, typed) = (quotes(), &|batch| Ok(batch));
    let table = Table { column, schema: &schema, reader, first, quotes, typed };
    table.read(opened, rows)
}

/// The rows behind the names of the columns.
pub struct Table<'a> {
    /// Name of the text column.
    pub column: &'a str,
    /// Names of the columns, all of which are texts.
    pub schema: &'a Schema,
    /// Form of the rows.
    pub reader: ReaderBuilder,
    /// Bytes before the reader of the input.
    pub first: Vec<u8>,
    /// Quotation marks before these bytes.
    pub quotes: Quotes,
    /// Gives the cells their types.
    pub typed: &'a dyn Fn(RecordBatch) -> Result<RecordBatch, ArrowError>,
}

impl Table<'_> {
    /// Reads all rows.
    pub fn read(self, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
        let Self { column, schema, reader, first, quotes, typed } = self;
        rows.check_text_column(column, schema)?;
        rows.check_num_columns(schema)?;
        rows.check_time_column(schema)?;
        let reader = reader.with_batch_size(BATCH_ROWS);
        let reader = if rows.options.keep_columns {
            reader
        } else {
            reader.with_projection(indices(schema, |name| rows.needs(name, column)))
        };
        let mut feeder = Feeder::new(reader.build_decoder(), first, quotes);
        let mut row_idx = 0;
        loop {
            let is_end = feeder.feed(&mut opened, rows, row_idx)?;
            rows.sink.count_read(opened.take_counts());
            let batch = feeder.decoder.flush().map_err(|error| bad_csv(rows, &error))?;
            let is_empty = batch.is_none();
            if let Some(batch) = batch {
                let batch = typed(batch).map_err(|error| bad_csv(rows, &error))?;
                take(column, &batch, rows, row_idx)?;
                row_idx += batch.num_rows();
            }
            if is_end && is_empty {
                feeder.quotes.say(rows);
                return Ok(());
            }
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

/// Feeds a decoder with the first bytes and then with the rest of the input.
struct Feeder {
    decoder: Decoder,
    first: Cursor<Vec<u8>>,
    quotes: Quotes,
    /// Bytes of the incomplete row. Those that were decoded together with the end of the previous
    /// row are not counted.
    row_bytes: u64,
}

impl Feeder {
    fn new(decoder: Decoder, first: Vec<u8>, quotes: Quotes) -> Self {
        Self { decoder, first: Cursor::new(first), quotes, row_bytes: 0 }
    }

    /// Decodes until a batch is full or the input ends, and returns true at the end of the input.
    /// `row_idx` is the index of the first row of the batch.
    fn feed(&mut self, opened: &mut Opened<'_>, rows: &Rows<'_, '_>, row_idx: usize) -> Outcome<bool> {
        let mut batch_bytes = 0;
        loop {
            let from_first = self.first.position() < self.first.get_ref().len() as u64;
            let bytes = if from_first { self.first.fill_buf() } else { opened.reader.fill_buf() };
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(error) => return Err(opened.failed(rows.input, &error)),
            };
            let is_end = bytes.is_empty();
            if let Some(line) = self.quotes.open_line().filter(|_| is_end) {
                return Err(not_closed(rows, line, "to the end"));
            }
            // A batch of large rows ends early. It can end only at the end of a row.
            let is_large = batch_bytes >= BATCH_BYTES;
            let bytes = if is_large { up_to_line_end(bytes) } else { bytes };
            let (len, num_rows) =
                decode(&mut self.decoder, bytes).map_err(|e| self.quotes.with_hint(bad_csv(rows, &e)))?;
            self.quotes.take(&bytes[..len]);
            if let Some(line) = self.quotes.odd_byte {
                return Err(Failure::new(format!(
                    "{}: no valid CSV: line {line} has the byte 0xFF, which no text in UTF-8 has; name its \
                     character set with --charset",
                    rows.input.shown()
                )));
            }
            if from_first {
                self.first.consume(len)
            } else {
                opened.reader.consume(len)
            }
            batch_bytes += len;
            self.row_bytes = if num_rows > 0 { 0 } else { self.row_bytes + len as u64 };
            if self.row_bytes > rows.options.max_row_bytes {
                let num_decoded = BATCH_ROWS - self.decoder.capacity();
                if let Some(line) = self.quotes.open_line() {
                    let max = display::bytes(rows.options.max_row_bytes);
                    return Err(not_closed(rows, line, &format!("within {max} (--max-row-size)")));
                }
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

/// Reads the first row, which may span lines inside quotes, and the comment lines before it. Returns
/// their bytes and the place of the row. They are cut if they are longer than `max_bytes`.
fn read_first_row(
    reader: &mut dyn BufRead,
    comment: Option<u8>,
    mut quotes: Quotes,
    max_bytes: u64,
) -> io::Result<(Vec<u8>, usize)> {
    let (mut first, mut row) = (Vec::new(), 0);
    let mut reader = reader.take(max_bytes.saturating_add(1));
    loop {
        let len = reader.read_until(b'\n', &mut first)?;
        if row == 0 && first.starts_with(b"\xef\xbb\xbf") {
            first.drain(..3);
        }
        let is_comment = comment.is_some() && first.get(row) == comment.as_ref();
        if is_comment && len > 0 {
            row = first.len();
            continue;
        }
        quotes.take(&first[first.len() - len.min(first.len())..]);
        if len == 0 || quotes.open_line().is_none() {
            return Ok((first, row));
        }
    }
}

fn delimiter(path: &str) -> u8 {
    let name = path.strip_suffix(".gz").or(path.strip_suffix(".zst")).unwrap_or(path);
    if name.to_ascii_lowercase().ends_with(".tsv") { b'\t' } else { b',' }
}

/// Builds a schema with all columns of `row` as texts.
fn schema_of(row: &[u8], format: &Format) -> Result<Schema, ArrowError> {
    let (schema, _) = format.infer_schema(Cursor::new(row), Some(0))?;
    Ok(texts(schema.fields().iter().map(|field| field.name().as_str())))
}

/// Returns a schema with columns of texts. Those with an empty or repeated name get a new one.
pub fn texts<'a>(names: impl Iterator<Item = &'a str>) -> Schema {
    let mut taken = HashSet::new();
    let fields = names.enumerate().map(|(idx, name)| {
        let name = match name {
            "" => format!("column_{}", idx + 1),
            name if taken.contains(name) => format!("{name}_{}", idx + 1),
            name => name.to_owned(),
        };
        taken.insert(name.clone());
        Field::new(name, DataType::Utf8, true)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

fn indices(schema: &Schema, wanted: impl Fn(&str) -> bool) -> Vec<usize> {
    let fields = schema.fields().iter().enumerate();
    fields.filter(|(_, field)| wanted(field.name())).map(|(idx, _)| idx).collect()
}

fn not_closed(rows: &Rows<'_, '_>, line: u64, end: &str) -> Failure {
    Failure::new(format!(
        "{}: no valid CSV: the quote that is opened on line {line} is not closed {end}; close it, or pass --quote \
         none where quotation marks are text",
        rows.input.shown()
    ))
}

fn bad_csv(rows: &Rows<'_, '_>, error: &ArrowError) -> Failure {
    let text = error.to_string();
    let reason = text.split_once("error: ").map_or(text.as_str(), |(_, reason)| reason);
    Failure::new(format!("{}: no valid CSV: {reason}", rows.input.shown()))
}
