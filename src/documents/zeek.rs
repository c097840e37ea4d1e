//! Logs of Zeek: tab-separated values behind comment lines with names and types.
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
//! Source: the ASCII writer of Zeek, <https://docs.zeek.org/en/master/log-formats.html>. A quotation mark
//! is a byte like others, and `\x..` in a cell stays as it is. `time` becomes a timestamp in UTC, `count`,
//! `int` and `port` integers, `double` and `interval` numbers of seconds, `bool` a boolean. Sets and
//! vectors are texts. Memory is that of CSV.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use arrow::error::ArrowError;
use memchr::memchr_iter;

use crate::csv::{self, Table};
use crate::csv_rows::{Form, NO_QUOTE, Quotes};
use crate::failure::{Failure, Outcome};
use crate::open::Opened;
use crate::rows::Rows;
use crate::timestamps;

/// First bytes of a log.
const MAGIC: &[u8] = b"#separator ";
/// Returns true if an input that begins with `head` is a log of Zeek.
pub fn is_log(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Reads the rows of one log. `column` is the name of the text column.
pub fn read(column: &str, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let max_bytes = rows.options.max_row_bytes;
    let header = read_header(&mut *opened.reader, max_bytes);
    let header = header.map_err(|error| opened.failed(rows.input, &error))?;
    if header.len() as u64 > max_bytes {
        return Err(rows.too_large("the header"));
    }
    let lines = memchr_iter(b'\n', &header).count() as u64;
    let header = Header::parse(&header)
        .map_err(|reason| Failure::new(format!("{}: no valid log of Zeek: {reason}", rows.input.shown())))?;
    let schema = csv::texts(header.names.iter().map(String::as_str));
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
    let (first, typed) = (Vec::new(), &typed);
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
