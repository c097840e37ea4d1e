//! CSV: rows of cells with a delimiter, with or without a header and comment lines; and logs of Zeek.
//!
//! ```text
//! header ─▶ names ─┐                        a log of Zeek: names, types, delimiter ◀─ comment lines
//! rows ────────────┴─▶ Decoder ─▶ batches of texts ─▶ rows
//! ```
//!
//! Every cell is first read as text. The receiver of columns gives a column a narrower type if all of its values fit.
//! An empty cell of the text column is an empty document; a row without that cell is a fault, as in JSON. Quotes are
//! those of [`Quotes`]; between tabs a quotation mark is text by default, as the registration of
//! text/tab-separated-values at the IANA knows no quotes. A first line `sep=;`, as Excel has it, names the delimiter.
//! Memory is a few times [`BATCH_BYTES`], plus a row.
//!
//! A log of Zeek has tab-separated values behind comment lines with names and types:
//!
//! ```text
//! #separator \x09
//! #set_separator  ,
//! #empty_field    (empty)
//! #unset_field    -
//! #path   http
//! #fields ts      uid     host    status_code
//! #types  time    string  string  count
//! 1300475167.096535       CHhAvV  example.com     200
//! #close  2024-05-06-07-08-09
//! ```
//!
//! Source: the ASCII writer of Zeek, <https://docs.zeek.org/en/master/log-formats.html>. A quotation mark is a byte
//! like others, and `\x..` in a cell stays as it is. `time` becomes a timestamp in UTC, `count`, `int` and `port`
//! integers, `double` and `interval` numbers of seconds, `bool` a boolean. Sets and vectors are texts.

use std::collections::HashSet;
use std::io::{self, BufRead, Cursor, Read};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::csv::reader::Format;
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use arrow::error::ArrowError;
use memchr::{memchr, memchr_iter, memchr2};

use crate::csv_rows::{BATCH_ROWS, BadRow, Decoder, Fault, Form, NO_QUOTE, Quotes};
use crate::failure::{Failure, Outcome};
use crate::gather::BATCH_BYTES;
use crate::open::Opened;
use crate::options::{Dialect, Quote};
use crate::rows::Rows;
use crate::{display, timestamps};

/// Reads the rows of one input. `column` is the name of the text column.
pub fn read(column: &str, dialect: Dialect, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let lines = skip_lines(&mut *opened.reader, dialect.skip_lines);
    let lines = lines.map_err(|error| opened.failed(rows.input, &error))?;
    let head = opened.head().map_err(|error| opened.failed(rows.input, &error))?;
    let named = named_delimiter(&head);
    let lines = if named.is_some() { lines + 1 } else { lines };
    if named.is_some() {
        skip_lines(&mut *opened.reader, 1).map_err(|error| opened.failed(rows.input, &error))?;
    }
    let delimiter = dialect.delimiter.or(named).unwrap_or_else(|| delimiter(&rows.input.path));
    let quote = match dialect.quote {
        Some(Quote::Byte(quote)) => quote,
        Some(Quote::None) => NO_QUOTE,
        None if delimiter == b'\t' => NO_QUOTE,
        None => b'"',
    };
    let max_bytes = rows.options.max_row_bytes;
    let quotes = || Quotes::new(quote, delimiter, dialect.comment).after_lines(lines);
    let first = read_first_row(&mut *opened.reader, dialect.comment, quotes(), max_bytes);
    let (first, row) = first.map_err(|error| opened.failed(rows.input, &error))?;
    if first.len() as u64 > max_bytes {
        let what = if dialect.has_header { "the header" } else { "row 1" };
        return Err(rows.too_large(what));
    }
    let format = Format::default().with_header(dialect.has_header).with_delimiter(delimiter).with_quote(quote);
    let schema = schema_of(&first[row..], &format).map_err(|error| bad_header(rows, &first[row..], &error))?;
    check_only_column(rows, column, &schema)?;
    let comment = dialect.comment;
    let has_header = dialect.has_header;
    let form = Form { delimiter, quote, comment, has_header, null: String::new() };
    // The first row is decoded too, so that line numbers in errors are right.
    let (quotes, typed) = (quotes(), &|batch| Ok(batch));
    let table = Table { column, schema: &schema, form, lines, first, quotes, typed };
    table.read(opened, rows)
}

/// The rows behind the names of the columns.
pub struct Table<'a> {
    /// Name of the text column.
    pub column: &'a str,
    /// Names of the columns, all of which are texts.
    pub schema: &'a Schema,
    /// Form of the rows.
    pub form: Form,
    /// Number of lines before them.
    pub lines: u64,
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
        let Self { column, schema, form, lines, first, quotes, typed } = self;
        rows.check_text_column(column, schema)?;
        rows.check_num_columns(schema)?;
        rows.check_time_column(schema)?;
        let wanted = indices(schema, |name| rows.options.keep_columns || rows.needs(name, column));
        let decoder = Decoder::new(&form, schema, wanted, schema.index_of(column).ok())?;
        let first = Cursor::new(first);
        let num_columns = schema.fields().len();
        let mut feeder = Feeder { decoder, lines, first, num_columns, quotes, row_bytes: 0 };
        let mut row_idx = 0;
        loop {
            let fed = feeder.feed(&mut opened, rows, row_idx);
            if fed.is_err() && !rows.sink.faults.are_left_out() {
                return fed.map(|_| ());
            }
            // The rows before a fault are stored.
            let is_end = matches!(fed, Ok(true));
            rows.sink.count_read(opened.take_counts());
            let batch = feeder.decoder.flush().map_err(|error| bad_csv(rows, &error))?;
            let is_empty = batch.is_none();
            if let Some(batch) = batch {
                let batch = typed(batch).map_err(|error| bad_csv(rows, &error))?;
                rows.take(column, &batch, &|idx| format!("row {}", row_idx + idx + 1))?;
                row_idx += batch.num_rows();
            }
            fed?;
            if is_end && is_empty {
                feeder.quotes.say(rows);
                return Ok(());
            }
        }
    }
}

/// Feeds a decoder with the first bytes and then with the rest of the input.
struct Feeder {
    decoder: Decoder,
    /// Number of lines before those of the decoder.
    lines: u64,
    first: Cursor<Vec<u8>>,
    num_columns: usize,
    quotes: Quotes,
    /// Bytes of the incomplete row. Those that were decoded together with the end of the previous
    /// row are not counted.
    row_bytes: u64,
}

impl Feeder {
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
            let num_before = self.decoder.num_rows();
            let (len, bad) = self.decoder.decode(bytes);
            let num_rows = self.decoder.num_rows() - num_before;
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
            if let Some(bad) = bad {
                self.leave_out(bad, rows)?;
            }
            self.row_bytes = if num_rows > 0 || bad.is_some() { 0 } else { self.row_bytes + len as u64 };
            if self.row_bytes > rows.options.max_row_bytes {
                let num_decoded = self.decoder.num_rows();
                if let Some(line) = self.quotes.open_line() {
                    let max = display::bytes(rows.options.max_row_bytes);
                    return Err(not_closed(rows, line, &format!("within {max} (--max-row-size)")));
                }
                return Err(rows.too_large(&format!("row {}", row_idx + num_decoded + 1)));
            }
            if is_end && bad.is_none() || self.decoder.num_rows() == BATCH_ROWS || is_large && num_rows > 0 {
                return Ok(is_end);
            }
        }
    }

    /// Leaves out a row that does not fit.
    fn leave_out(&self, bad: BadRow, rows: &Rows<'_, '_>) -> Outcome {
        let faults = &rows.sink.faults;
        let file = rows.input.shown();
        let line = self.lines + bad.line;
        let way_out = if faults.are_left_out() { "" } else { "; pass --keep-going to leave such rows out" };
        let failure = match bad.fault {
            Fault::Cells(num_cells) => self.quotes.with_hint(Failure::new(format!(
                "{file}: no valid CSV: line {line} has {num_cells} cells, but there are {} columns{way_out}",
                self.num_columns
            ))),
            Fault::NoText(cell) => Failure::new(format!(
                "{file}: no valid CSV: cell {cell} of line {line} is no UTF-8; name its character set with --charset"
            )),
        };
        faults.pass_row(rows.input, failure)
    }
}

/// Skips lines, and returns their number.
fn skip_lines(reader: &mut dyn BufRead, num_lines: u64) -> io::Result<u64> {
    let mut num_skipped = 0;
    while num_skipped < num_lines {
        let bytes = reader.fill_buf()?;
        let end = memchr(b'\n', bytes);
        let len = end.map_or(bytes.len(), |end| end + 1);
        if len == 0 {
            break;
        }
        reader.consume(len);
        num_skipped += u64::from(end.is_some());
    }
    Ok(num_skipped)
}

/// Returns the delimiter that a first line such as `sep=;` names.
fn named_delimiter(head: &[u8]) -> Option<u8> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let (name, rest) = head.split_at_checked(4)?;
    match rest {
        [delimiter, b'\n', ..] | [delimiter, b'\r', b'\n', ..] if delimiter.is_ascii() => {
            name.eq_ignore_ascii_case(b"sep=").then_some(*delimiter)
        }
        _ => None,
    }
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
    let mut first = Vec::new();
    let mut row = 0;
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

/// Checks that a header of one column, which is not the text, is not one of several that another character
/// separates.
fn check_only_column(rows: &Rows<'_, '_>, column: &str, schema: &Schema) -> Outcome {
    let [only] = &schema.fields()[..] else { return Ok(()) };
    let name = only.name();
    if name == column {
        return Ok(());
    }
    let way_out = match name.chars().find(|character| ";|\t,".contains(*character)) {
        _ if name.starts_with('#') => "; pass --comment '#' if this line is none of the table".to_owned(),
        Some('\t') => "; pass --delimiter '\\t' if tabs separate its cells".to_owned(),
        Some(delimiter) => format!("; pass --delimiter '{delimiter}' if it separates its cells"),
        None => return Ok(()),
    };
    let file = rows.input.shown();
    Err(Failure::new(format!("{file}: there is no column `{column}`; the only column is `{name}`{way_out}")))
}

/// Builds the failure for a first row that is no valid CSV.
fn bad_header(rows: &Rows<'_, '_>, row: &[u8], error: &ArrowError) -> Failure {
    if std::str::from_utf8(row).is_ok() {
        return bad_csv(rows, error);
    }
    Failure::new(format!(
        "{}: no valid CSV: the first row is no UTF-8; name its character set with --charset (auto for UTF-16 with a \
         byte order mark)",
        rows.input.shown()
    ))
}

fn bad_csv(rows: &Rows<'_, '_>, error: &ArrowError) -> Failure {
    let text = error.to_string();
    let reason = text.split_once("error: ").map_or(text.as_str(), |(_, reason)| reason);
    Failure::new(format!("{}: no valid CSV: {reason}", rows.input.shown()))
}

/// First bytes of a log.
const ZEEK_MAGIC: &[u8] = b"#separator ";
/// Returns true if an input that begins with `head` is a log of Zeek.
pub fn is_zeek_log(head: &[u8]) -> bool {
    head.starts_with(ZEEK_MAGIC)
}

/// Reads the rows of one log. `column` is the name of the text column.
pub fn read_zeek(column: &str, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let max_bytes = rows.options.max_row_bytes;
    let header = read_header(&mut *opened.reader, max_bytes);
    let header = header.map_err(|error| opened.failed(rows.input, &error))?;
    if header.len() as u64 > max_bytes {
        return Err(rows.too_large("the header"));
    }
    let lines = memchr_iter(b'\n', &header).count() as u64;
    let header = Header::parse(&header)
        .map_err(|reason| Failure::new(format!("{}: no valid log of Zeek: {reason}", rows.input.shown())))?;
    let schema = texts(header.names.iter().map(String::as_str));
    let form = Form {
        delimiter: header.separator,
        quote: NO_QUOTE,
        comment: Some(b'#'),
        has_header: false,
        null: header.unset.clone(),
    };
    let mut quotes = Quotes::new(NO_QUOTE, header.separator, Some(b'#')).after_lines(lines);
    quotes.may_be_chosen = false;
    let typed = |batch: RecordBatch| header.typed(column, &schema, &batch);
    let first = Vec::new();
    let typed = &typed;
    let table = Table { column, schema: &schema, form, lines, first, quotes, typed };
    table.read(opened, rows)
}

/// Reads the lines in front that begin with `#`. They are cut if they are longer than `max_bytes`.
fn read_header(reader: &mut dyn BufRead, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    let mut reader = reader.take(max_bytes.saturating_add(1));
    while reader.fill_buf()?.first() == Some(&b'#') {
        reader.read_until(b'\n', &mut header)?;
    }
    Ok(header)
}

/// The lines in front of a log.
#[derive(Debug, PartialEq)]
struct Header {
    separator: u8,
    unset: String,
    empty: String,
    names: Vec<String>,
    types: Vec<String>,
}

impl Header {
    fn parse(header: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(header).map_err(|_| "the header is not UTF-8".to_owned())?;
        let mut lines = text.lines();
        let separator = lines.next().and_then(|line| line.strip_prefix("#separator "));
        let separator = separator
            .and_then(separator_of)
            .ok_or_else(|| "expected one ASCII character behind #separator, such as \\x09".to_owned())?;
        let mut parsed = Self {
            separator,
            unset: "-".to_owned(),
            empty: "(empty)".to_owned(),
            names: Vec::new(),
            types: Vec::new(),
        };
        for line in lines {
            let mut cells = line.split(char::from(separator));
            let key = cells.next();
            let mut cells = cells.map(str::to_owned);
            match key {
                Some("#unset_field") => parsed.unset = cells.next().unwrap_or_default(),
                Some("#empty_field") => parsed.empty = cells.next().unwrap_or_default(),
                Some("#fields") => parsed.names = cells.collect(),
                Some("#types") => parsed.types = cells.collect(),
                _ => {}
            }
        }
        match (parsed.names.len(), parsed.types.len()) {
            (0, _) => Err("there is no line #fields".to_owned()),
            (num_names, num_types) if num_names != num_types => {
                Err(format!("expected as many #types as #fields, got {num_types} and {num_names}"))
            }
            _ => Ok(parsed),
        }
    }

    /// Gives the columns of `batch` the types of the header. `schema` has all columns in order.
    fn typed(&self, text_column: &str, schema: &Schema, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns = batch.schema();
        let columns = columns.fields().iter().zip(batch.columns()).map(|(field, column)| {
            let idx = schema.index_of(field.name())?;
            let zeek_type = self.types.get(idx).map_or("string", String::as_str);
            let column = if field.name() == text_column {
                self.texts(column)
            } else {
                self.column(zeek_type, column).map_err(|error| {
                    let reason = format!("field `{}` of type {zeek_type}: {error}", field.name());
                    ArrowError::ParseError(reason)
                })?
            };
            Ok((Field::new(field.name(), column.data_type().clone(), true), column))
        });
        let (fields, columns): (Vec<_>, Vec<_>) = columns.collect::<Result<Vec<_>, ArrowError>>()?.into_iter().unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }

    fn column(&self, zeek_type: &str, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let exact = CastOptions { safe: false, ..CastOptions::default() };
        match zeek_type {
            "count" | "int" | "port" => cast_with_options(column, &DataType::Int64, &exact),
            "double" | "interval" => cast_with_options(column, &DataType::Float64, &exact),
            "bool" => {
                let cells = column.as_string::<i32>().iter();
                Ok(Arc::new(cells.map(|cell| Some(cell? == "T")).collect::<BooleanArray>()))
            }
            "time" => {
                let seconds = cast_with_options(column, &DataType::Float64, &exact)?;
                let seconds = seconds.as_primitive::<Float64Type>().iter();
                Ok(timestamps::array(seconds.map(|seconds| timestamps::from_seconds(seconds?))))
            }
            // The type of other texts is not guessed.
            _ => cast(&self.texts(column), &DataType::LargeUtf8),
        }
    }

    /// Returns texts with empty ones where the log says so.
    fn texts(&self, column: &ArrayRef) -> ArrayRef {
        let cells = column.as_string::<i32>().iter();
        let text = |cell: &str| if cell == self.empty { String::new() } else { cell.to_owned() };
        let texts = cells.map(|cell| cell.map(text));
        Arc::new(texts.collect::<StringArray>())
    }
}

/// Returns the separator that is written as one character or as `\x09`.
fn separator_of(text: &str) -> Option<u8> {
    let byte = match (text.strip_prefix("\\x"), text.as_bytes()) {
        (Some(digits), _) => u8::from_str_radix(digits, 16).ok()?,
        (None, [byte]) => *byte,
        _ => return None,
    };
    (byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | b'#')).then_some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_in_any_order() {
        let header = "#separator \\x09\n#fields\ta\tb\n#path\tx\n#types\tcount\tset[string]\n\
                      #unset_field\t?\n#open\t2024\n";
        let parsed = Header::parse(header.as_bytes()).unwrap();
        let expected = Header {
            separator: b'\t',
            unset: "?".to_owned(),
            empty: "(empty)".to_owned(),
            names: vec!["a".to_owned(), "b".to_owned()],
            types: vec!["count".to_owned(), "set[string]".to_owned()],
        };
        assert_eq!(parsed, expected);
        assert_eq!(Header::parse(b"#separator ,\n#fields,a\n#types,int").unwrap().separator, b',');
    }

    #[test]
    fn other_headers_are_refused() {
        for (header, reason) in [
            ("", "expected one ASCII character behind #separator, such as \\x09"),
            ("#separator \\xff\n", "expected one ASCII character behind #separator, such as \\x09"),
            ("#separator \\x09\n", "there is no line #fields"),
            ("#separator ,\n#fields,a,b\n#types,int\n", "expected as many #types as #fields, got 1 and 2"),
        ] {
            assert_eq!(Header::parse(header.as_bytes()).unwrap_err(), reason, "{header}");
        }
    }
}
