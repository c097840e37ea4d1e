//! JSON lines: one object per line. An array of objects is read in the same way, see [`ArrayLines`].
//!
//! Lines are gathered into chunks. Each chunk is typed and decoded on its own, and the receiver
//! of columns joins the types of all chunks. So nothing is read twice, and standard input works. Memory is a
//! few times the size of a chunk, which is [`BATCH_BYTES`] plus a row.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::mem;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::json::reader::infer_json_schema;
use serde_json::{Map, Value};

use crate::failure::{Failure, Outcome};
use crate::faults::Faults;
use crate::inputs::Input;
use crate::json_array::ArrayLines;
use crate::open::Opened;
use crate::rows::{self, Rows};
use crate::{BATCH_BYTES, numbers};

/// Reads the rows of one input. `field` is the name of the text field.
pub fn read(field: &str, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let head = opened.head().map_err(|error| opened.failed(rows.input, &error))?;
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    let lines_before = rows.input.lines_before();
    let is_array = lines_before == 0 && head.trim_ascii_start().starts_with(b"[");
    if is_array {
        let array = mem::replace(&mut opened.reader, Box::new(io::empty()));
        opened.reader = Box::new(BufReader::new(ArrayLines::new(array)));
    }
    let unit = if is_array { "element" } else { "line" };
    let mut chunk = Chunk { lines: Vec::new(), first_line: lines_before + 1, unit };
    let max_bytes = rows.options.max_row_bytes;
    loop {
        let read = read_line(&mut opened, max_bytes, &mut chunk.lines);
        let len_bytes = match read {
            Ok(len_bytes) => len_bytes,
            // An array that is cut: its whole elements are rows.
            Err(error) if opened.budget.faults.are_left_out() => {
                opened.budget.faults.note(rows.input, opened.failed(rows.input, &error));
                0
            }
            Err(error) => return Err(opened.failed(rows.input, &error)),
        };
        if len_bytes > max_bytes && !chunk.lines.ends_with(b"\n") {
            return Err(rows.too_large(&format!("{unit} {}", chunk.last_line())));
        }
        let is_end = len_bytes == 0;
        if is_end || chunk.lines.len() >= BATCH_BYTES {
            rows.sink.count_read(opened.take_counts());
            chunk.strip_byte_order_mark();
            take_chunk(field, &mut chunk, rows)?;
            chunk.first_line += chunk.num_line_ends();
            // A new vector instead of `clear`: the memory of one large row must not be kept to the
            // end.
            chunk.lines = Vec::new();
        }
        if is_end {
            return Ok(());
        }
    }
}

/// Appends the next line and returns its length, or 0 at the end of the input. It reads at most
/// `max_bytes` + 1 bytes.
fn read_line(opened: &mut Opened<'_>, max_bytes: u64, lines: &mut Vec<u8>) -> io::Result<u64> {
    let mut limited = (&mut *opened.reader).take(max_bytes.saturating_add(1));
    limited.read_until(b'\n', lines).map(|len| len as u64)
}

struct Chunk {
    lines: Vec<u8>,
    first_line: usize,
    /// Name of a line in the input: a line, or an element of an array.
    unit: &'static str,
}

impl Chunk {
    fn strip_byte_order_mark(&mut self) {
        if self.first_line == 1 && self.lines.starts_with(b"\xef\xbb\xbf") {
            self.lines.drain(..3);
        }
    }

    /// Returns the lines that are not blank, with their numbers.
    fn lines(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let numbered = self.lines.split(|&byte| byte == b'\n').enumerate();
        let numbered = numbered.map(|(idx, line)| (self.first_line + idx, line));
        numbered.filter(|(_, line)| !line.trim_ascii().is_empty())
    }

    /// Empties lines that are no JSON objects, and leaves out fields whose items have several shapes.
    fn leave_out_faults(&mut self, input: &Input, faults: &Faults) {
        let mut kept = Vec::new();
        let mut num_left_out = 0;
        for (idx, line) in self.lines.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let Err(error) = infer_json_schema(Cursor::new(line), None) else {
                kept.extend_from_slice(line);
                continue;
            };
            let number = self.first_line + idx;
            faults.note(input, bad_object(&input.shown(), self.unit, number, line, &error));
            match serde_json::from_slice::<Map<String, Value>>(line) {
                Ok(mut object) => {
                    object.retain(|name, value| has_type(name, value));
                    kept.extend_from_slice(Value::Object(object).to_string().as_bytes());
                }
                Err(_) => num_left_out += 1,
            }
            kept.extend(line.strip_suffix(b"\n").map(|_| b'\n'));
        }
        faults.add_lines(num_left_out);
        self.lines = kept;
    }

    /// Leaves out the fields of objects that are not `wanted`, so that their shapes do not matter.
    fn keep_fields(&mut self, wanted: impl Fn(&str) -> bool) {
        let mut kept = Vec::with_capacity(self.lines.len());
        for line in self.lines.split_inclusive(|&byte| byte == b'\n') {
            match serde_json::from_slice::<Map<String, Value>>(line) {
                Ok(mut object) => {
                    object.retain(|name, _| wanted(name));
                    kept.extend_from_slice(Value::Object(object).to_string().as_bytes());
                    kept.extend(line.strip_suffix(b"\n").map(|_| b'\n'));
                }
                Err(_) => kept.extend_from_slice(line),
            }
        }
        self.lines = kept;
    }

    fn num_line_ends(&self) -> usize {
        self.lines.iter().filter(|&&byte| byte == b'\n').count()
    }

    /// Returns the number of the last line, which may be incomplete.
    fn last_line(&self) -> usize {
        self.first_line + self.num_line_ends()
    }

    fn line_of_row(&self, row_idx: usize) -> usize {
        self.lines().nth(row_idx).map_or(self.first_line, |(number, _)| number)
    }
}

fn take_chunk(field: &str, chunk: &mut Chunk, rows: &mut Rows<'_, '_>) -> Outcome {
    let mut inferred = infer_json_schema(Cursor::new(&chunk.lines), None);
    if inferred.is_err() && rows.sink.faults.are_left_out() {
        chunk.leave_out_faults(rows.input, &rows.sink.faults);
        inferred = infer_json_schema(Cursor::new(&chunk.lines), None);
    }
    if inferred.is_err() && !rows.options.keep_columns {
        chunk.keep_fields(|name| rows.needs(name, field));
        inferred = infer_json_schema(Cursor::new(&chunk.lines), None);
    }
    let Some((first_line, first)) = chunk.lines().next() else { return Ok(()) };
    let file = rows.input.shown();
    let unit = chunk.unit;
    if first.trim_ascii_start().starts_with(b"[") {
        return Err(Failure::new(format!(
            "{file}: {unit} {first_line}: expected a JSON object, found an array; `jq -c '.[]'` turns arrays \
             into lines"
        )));
    }
    let (schema, num_rows) = inferred.map_err(|error| bad_line(&file, chunk, &error))?;
    check_field(field, &format!("from {unit} {first_line}"), &schema, rows)?;
    rows.check_num_columns(&schema)?;
    let schema = if rows.options.keep_columns { schema } else { only(&schema, |name| rows.needs(name, field)) };
    let schema = Schema::new(numbers::as_texts(schema.fields()));
    let batch = decode(Arc::new(schema), &chunk.lines, num_rows)
        .and_then(|batch| with_time_numbers(batch, rows.time_column()))
        .map_err(|error| bad_value(&file, chunk, &error))?;
    rows.take(field, &batch, &|row_idx| format!("{unit} {}", chunk.line_of_row(row_idx)))
}

fn check_field(field: &str, place: &str, schema: &Schema, rows: &Rows<'_, '_>) -> Outcome {
    match schema.field_with_name(field) {
        Err(_) if rows.options.allow_missing => Ok(()),
        Err(_) => Err(Failure::new(format!(
            "{}: {place}: there is no field `{field}`; the fields are {}",
            rows.input.shown(),
            rows::names(schema, |_| true)
        ))),
        Ok(_) => rows.check_text_column(field, schema).map_err(|failure| failure.within(place)),
    }
}

fn only(schema: &Schema, wanted: impl Fn(&str) -> bool) -> Schema {
    let fields = schema.fields().iter().filter(|field| wanted(field.name()));
    Schema::new(fields.cloned().collect::<Vec<_>>())
}

/// Returns `batch` with the numbers of the column of timestamps as floats, unless these round a whole one.
fn with_time_numbers(batch: RecordBatch, column: Option<&str>) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let column = column.and_then(|name| schema.index_of(name).ok());
    let Some(idx) = column.filter(|&idx| numbers::is_number(schema.field(idx))) else {
        return Ok(batch);
    };
    if numbers::are_rounded(batch.column(idx)) {
        return Ok(batch);
    }
    let mut fields = schema.fields().to_vec();
    let mut columns = batch.columns().to_vec();
    fields[idx] = Arc::new(Field::new(schema.field(idx).name(), DataType::Float64, true));
    columns[idx] = cast(&columns[idx], &DataType::Float64)?;
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn decode(schema: Arc<Schema>, lines: &[u8], num_rows: usize) -> Result<RecordBatch, ArrowError> {
    // Numbers and booleans in a column of texts are read as texts.
    let reader = ReaderBuilder::new(schema.clone()).with_coerce_primitive(true);
    let mut reader = reader.with_batch_size(num_rows.max(1)).build(Cursor::new(lines))?;
    reader.next().unwrap_or_else(|| Ok(RecordBatch::new_empty(schema)))
}

/// Builds the failure that names the first line that is not a JSON object, or whose types do not
/// fit the lines before it.
fn bad_line(file: &str, chunk: &Chunk, error: &ArrowError) -> Failure {
    for (number, line) in chunk.lines() {
        if let Err(error) = infer_json_schema(Cursor::new(line), None) {
            return bad_object(file, chunk.unit, number, line, &error);
        }
    }
    let number = first_conflict(chunk);
    Failure::new(format!(
        "{file}: {} {number}: a field has another shape than in the {0}s before it ({}); pass \
         --no-columns to keep the text only",
        chunk.unit,
        plain(error)
    ))
}

/// Builds the failure of `line`, which alone has no types.
fn bad_object(file: &str, unit: &str, number: usize, line: &[u8], error: &ArrowError) -> Failure {
    let reason = plain(error);
    let Ok(object) = serde_json::from_slice::<Map<String, Value>>(line) else {
        return Failure::new(format!("{file}: {unit} {number}: no JSON object: {reason}"));
    };
    let odd = object.iter().find(|(name, value)| !has_type(name, value));
    let name = odd.map_or_else(String::new, |(name, _)| format!(" `{name}`"));
    Failure::new(format!(
        "{file}: {unit} {number}: the items of the field{name} have several shapes ({reason}); pass --no-columns \
         to keep the text only, or --keep-going to leave the field out there"
    ))
}

/// Returns true if a field has a type as a column.
fn has_type(name: &str, value: &Value) -> bool {
    let object = Map::from_iter([(name.to_owned(), value.clone())]);
    infer_json_schema(Cursor::new(Value::Object(object).to_string()), None).is_ok()
}

/// Returns the number of the first line that cannot be typed together with the lines before it.
/// The search is a bisection.
fn first_conflict(chunk: &Chunk) -> usize {
    let lines: Vec<(usize, &[u8])> = chunk.lines().collect();
    let fits = |num_lines: usize| {
        let before: Vec<&[u8]> = lines[..num_lines].iter().map(|(_, line)| *line).collect();
        infer_json_schema(Cursor::new(before.join(&b'\n')), None).is_ok()
    };
    let counts: Vec<usize> = (1..=lines.len()).collect();
    let conflict_idx = counts.partition_point(|&num_lines| fits(num_lines));
    lines.get(conflict_idx).map_or(chunk.first_line, |(number, _)| *number)
}

/// Builds the failure that names the line with a value that does not fit its type.
fn bad_value(file: &str, chunk: &Chunk, error: &ArrowError) -> Failure {
    let alone = |line: &[u8]| {
        let (schema, num_rows) = infer_json_schema(Cursor::new(line), None)?;
        decode(Arc::new(schema), line, num_rows)
    };
    let line = chunk.lines().find_map(|(number, line)| alone(line).err().map(|e| (number, e)));
    let (place, reason) = match &line {
        Some((number, error)) => (format!("{} {number}", chunk.unit), plain(error)),
        None => (format!("from {} {}", chunk.unit, chunk.first_line), plain(error)),
    };
    Failure::new(format!("{file}: {place}: {reason}; where this is not the text, --no-columns leaves it out"))
}

/// Returns the text of an error without the name of its kind, and without the number of a line. The
/// parser counts lines from where it began; the caller names the line.
fn plain(error: &ArrowError) -> String {
    let text = error.to_string();
    let (kind, rest) = text.split_once(": ").unwrap_or(("", &text));
    let text = if kind.to_ascii_lowercase().ends_with("error") { rest } else { &text };
    let text = text.strip_prefix("Not valid JSON: ").unwrap_or(text);
    match text.split_once(" at line ").map(|(what, place)| (what, place.split_once(" column "))) {
        Some((what, Some((_, column)))) => format!("{what} at column {column}"),
        _ => text.to_owned(),
    }
}
