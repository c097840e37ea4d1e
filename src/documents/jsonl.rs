//! JSON lines and other objects of JSON that follow each other. An array of objects is read in the same way, see
//! [`ArrayLines`].
//!
//! ```text
//! bytes ─Objects─▶ chunk of rows ─Shape─▶ types ─┬─▶ arrow's decoder ─▶ batch ─parts─▶ rows
//!                       ▲           │            └─ places with values of several kinds become texts
//!                       └──mend─────┘ a row that is no JSON of the standard
//! ```
//!
//! Each chunk ([`json_chunk`](crate::json_chunk)) is typed and decoded on its own, and the receiver of columns joins
//! the types of all chunks. So nothing is read twice, and standard input works. Memory is a few times the size of a
//! chunk, which is [`BATCH_BYTES`] plus a row; parts of one text are kept together.

use std::io::{self, BufReader, Cursor};
use std::mem;
use std::sync::Arc;

use arrow::array::{BinaryViewArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;

use crate::charset::MARK;
use crate::columns;
use crate::failure::{Failure, Outcome};
use crate::json_chunk::{Chunk, Cutter};
use crate::json_mend::{self, Mended};
use crate::json_objects::{ArrayLines, SEPARATOR};
use crate::json_shape::{Shape, Wanted};
use crate::log_lines::{JoinedRows, join_rows, may_be_parts};
use crate::open::Opened;
use crate::rows::Rows;

/// Reads the rows of one input. `field` is the name of the text field.
pub fn read(field: &str, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let head = opened.head().map_err(|error| opened.failed(rows.input, &error))?;
    let head = head.strip_prefix(MARK).unwrap_or(&head);
    let lines_before = rows.input.lines_before();
    let is_array = lines_before == 0 && head.trim_ascii_start().starts_with(b"[");
    if is_array {
        let array = mem::replace(&mut opened.reader, Box::new(io::empty()));
        opened.reader = Box::new(BufReader::new(ArrayLines::new(array)));
    }
    let unit = if is_array { "element" } else { "line" };
    let wanted = wanted(field, rows);
    let wanted = wanted.as_ref();
    let mut cutter = Cutter::new(opened, lines_before + 1);
    let mut chunk = Chunk::new(0, unit);
    let mut has_rows = false;
    loop {
        let is_end = cutter.fill(&mut chunk, wanted, rows)?;
        rows.sink.count_read(cutter.take_counts());
        let num_taken = take_chunk(field, &mut chunk, Place { has_rows, is_end }, wanted, rows)?;
        has_rows |= num_taken > 0;
        // A new chunk instead of an empty one: the memory of one large row must not be kept to the end.
        chunk = chunk.behind(num_taken, wanted);
        if is_end {
            return Ok(());
        }
    }
}

fn wanted(field: &str, rows: &Rows<'_, '_>) -> Box<Wanted> {
    let keeps_all = rows.options.keep_columns;
    let field = field.to_owned();
    let time_column = rows.time_column().map(str::to_owned);
    Box::new(move |name| {
        let has_times = time_column.as_deref().is_some_and(|path| columns::has_times(name, path));
        keeps_all || columns::leads_to(name, &field) || name == columns::PATH_COLUMN || has_times
    })
}

/// The place of a chunk in its input.
#[derive(Clone, Copy)]
struct Place {
    /// True if there are rows before it.
    has_rows: bool,
    /// True if there are none behind it.
    is_end: bool,
}

impl Chunk {
    /// Mends rows that are no objects of the standard, and leaves out those that are no objects at all.
    ///
    /// # Errors
    /// A row is no object, and faults end the ingest.
    fn mend(&mut self, wanted: &Wanted, rows: &mut Rows<'_, '_>) -> Outcome {
        let empty = Self::new(self.bytes.len(), self.unit);
        let odd = mem::replace(self, empty);
        let faults = rows.sink.faults.clone();
        for (line, row) in odd.rows() {
            let Err(error) = self.push_mended(line, row, wanted, rows) else { continue };
            let way_out = if faults.are_left_out() { "" } else { "; pass --keep-going to leave it out" };
            let failure = bad_row(&rows.input.shown(), self.unit, line, row, &error, way_out);
            faults.pass(rows.input, Err(failure))?;
            // Whole objects may stand in the lines that a cut one seems to have.
            let is_line_end = |byte: &u8| matches!(*byte, b'\r' | SEPARATOR);
            let lines = row.split(is_line_end).enumerate().filter(|(_, part)| !part.trim_ascii().is_empty());
            for (idx, part) in lines {
                if part.len() == row.len() || self.push_mended(line + idx, part, wanted, rows).is_err() {
                    faults.add_rows(1);
                }
            }
        }
        Ok(())
    }

    /// Adds `row`, mended if it is no object of the standard.
    fn push_mended(
        &mut self,
        line: usize,
        row: &[u8],
        wanted: &Wanted,
        rows: &mut Rows<'_, '_>,
    ) -> Result<(), serde_json::Error> {
        if Shape::default().add(row, wanted).is_ok() {
            self.push(line, row);
            return Ok(());
        }
        let (mended, parts) = json_mend::mend(row);
        Shape::default().add(&mended, wanted)?;
        self.push(line, &mended);
        note_mended(parts, line, self.unit, rows);
        Ok(())
    }

    /// Mends all rows.
    fn mend_all(&mut self) {
        let empty = Self::new(self.bytes.len(), self.unit);
        let odd = mem::replace(self, empty);
        odd.rows().for_each(|(line, row)| self.push(line, &json_mend::mend(row).0));
    }

    /// Returns the rows with texts where values are of several kinds.
    fn with_texts(&self, shape: &Shape) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for (_, row) in self.rows() {
            bytes.extend_from_slice(&json_mend::with_texts(row, shape));
            bytes.push(b'\n');
        }
        bytes
    }
}

fn note_mended(parts: Mended, line: usize, unit: &str, rows: &mut Rows<'_, '_>) {
    if parts.has_bytes {
        rows.sink.undecoded.add_damaged("UTF-8", rows.input);
    }
    if parts.has_halves || parts.has_no_numbers {
        let first = format!("{}, {unit} {line}", rows.input.shown());
        rows.sink.odd_rows.add(1, || first);
    }
}

/// Takes rows of `chunk`, all but those with parts that may go on, and returns their number.
fn take_chunk(
    field: &str,
    chunk: &mut Chunk,
    place: Place,
    wanted: &Wanted,
    rows: &mut Rows<'_, '_>,
) -> Outcome<usize> {
    let mut shape = match chunk.shape.take().or_else(|| chunk.shape_of_rows(wanted)) {
        Some(shape) => shape,
        None => {
            chunk.mend(wanted, rows)?;
            chunk.shape_of_rows(wanted).unwrap_or_default()
        }
    };
    if chunk.rows.is_empty() {
        return Ok(0);
    }
    let path = path_of(&shape, field);
    let texts = texts(chunk, &mut shape, &path);
    check_field(field, &path, chunk, &shape, place.has_rows, rows)?;
    let schema = Schema::new(shape.columns());
    rows.check_num_columns(&schema)?;
    let schema = Arc::new(Schema::new(columns::as_texts(schema.fields())));
    let mut decoded = decode(&schema, chunk, &shape);
    if decoded.is_err() {
        chunk.mend_all();
        decoded = decode(&schema, chunk, &shape);
    }
    let batch = decoded.and_then(|batch| with_column(batch, field, texts)).map_err(|error| {
        let file = rows.input.shown();
        let line = chunk.line(0);
        let reason = error.to_string();
        Failure::new(format!(
            "{file}: from {} {line}: {reason}; where this is not the text, --no-columns leaves it out",
            chunk.unit
        ))
    })?;
    let joined = if rows.options.join_partial && may_be_parts(field, &batch.schema()) {
        let ends: Vec<usize> = chunk.rows.iter().map(|(_, end)| *end).collect();
        join_rows(&batch, &ends, place.is_end, rows.options.max_row_bytes)?
    } else {
        None
    };
    let locate = |row_idx: usize| format!("{} {}", chunk.unit, chunk.line(row_idx));
    match joined {
        Some(JoinedRows { batch, firsts, num_taken }) => {
            let joined_parts = &rows.sink.joined_parts;
            joined_parts.set(joined_parts.get() + (num_taken - firsts.len()) as u64);
            rows.take(field, &batch, &|row_idx| locate(firsts[row_idx]))?;
            Ok(num_taken)
        }
        None => rows.take(field, &batch, &locate).map(|()| chunk.rows.len()),
    }
}

/// Returns the names that lead to `field`: its whole name, or else those of the objects around it.
fn path_of<'a>(shape: &Shape, field: &'a str) -> Vec<&'a str> {
    if shape.field(field).is_some() { vec![field] } else { field.split('.').collect() }
}

/// The texts of all rows, which are no part of the columns.
type Texts = Vec<Option<Vec<u8>>>;

/// Returns the texts at `path` if a column does not have them as they are: lists of bytes, as journald writes them,
/// and fields of objects. The shape leaves them out.
fn texts(chunk: &Chunk, shape: &mut Shape, path: &[&str]) -> Option<Texts> {
    let place = path.iter().try_fold(&mut *shape, |shape, name| shape.field_mut(name))?;
    if path.len() == 1 && !place.has_lists() {
        return None;
    }
    let values = || chunk.rows().map(|(_, row)| json_mend::value_at(row, path).filter(|value| *value != b"null"));
    let is_text = match place.data_type() {
        DataType::Utf8 | DataType::Null => true,
        DataType::List(_) => values().flatten().all(|value| serde_json::from_slice::<Vec<u8>>(value).is_ok()),
        _ => false,
    };
    if !is_text {
        return None;
    }
    place.is_left_out = true;
    Some(values().map(|value| Some(text_of(value?))).collect())
}

fn text_of(value: &[u8]) -> Vec<u8> {
    match value.first() {
        Some(b'"') => serde_json::from_slice::<String>(value).unwrap_or_default().into_bytes(),
        Some(b'[') => match serde_json::from_slice::<Vec<u8>>(value) {
            Ok(bytes) => bytes,
            Err(_) => value.to_vec(),
        },
        _ => value.to_vec(),
    }
}

/// Returns `batch` with the column `name` of `texts`.
fn with_column(batch: RecordBatch, name: &str, texts: Option<Texts>) -> Result<RecordBatch, ArrowError> {
    let Some(texts) = texts else { return Ok(batch) };
    let mut fields = batch.schema().fields().to_vec();
    let mut columns = batch.columns().to_vec();
    fields.push(Arc::new(Field::new(name, DataType::BinaryView, true)));
    columns.push(Arc::new(BinaryViewArray::from_iter(texts)));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

fn check_field(
    field: &str,
    path: &[&str],
    chunk: &Chunk,
    shape: &Shape,
    has_rows: bool,
    rows: &Rows<'_, '_>,
) -> Outcome {
    let place = format!("from {} {}", chunk.unit, chunk.line(0));
    let mut at = shape;
    let mut above = None;
    for name in path {
        let Some(below) = at.field(name) else {
            // Other rows have it, or rows without it are left out.
            if rows.options.allow_missing || has_rows && rows.sink.faults.are_left_out() {
                return Ok(());
            }
            let inside = above.map_or_else(String::new, |above| format!(" in `{above}`"));
            return Err(Failure::new(format!(
                "{}: {place}: there is no field `{name}`{inside}; the fields{} are {}",
                rows.input.shown(),
                if above.is_some() { " there" } else { "" },
                columns::names(&Schema::new(at.columns()), |_| true)
            )));
        };
        (at, above) = (below, Some(*name));
    }
    let mut fields = shape.columns().to_vec();
    if path.len() > 1 || at.is_left_out {
        let kind = if at.is_left_out { DataType::Utf8 } else { at.data_type() };
        fields.push(Arc::new(Field::new(field, kind, true)));
    }
    rows.check_text_column(field, &Schema::new(fields)).map_err(|failure| failure.within(place))
}

fn decode(schema: &Arc<Schema>, chunk: &Chunk, shape: &Shape) -> Result<RecordBatch, ArrowError> {
    let num_rows = chunk.rows.len();
    if schema.fields().is_empty() {
        let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
        return RecordBatch::try_new_with_options(Arc::clone(schema), Vec::new(), &options);
    }
    let texts;
    let bytes = if shape.has_mixed() {
        texts = chunk.with_texts(shape);
        &texts
    } else {
        &chunk.bytes
    };
    // Numbers and booleans in a column of texts are read as texts.
    let reader = ReaderBuilder::new(Arc::clone(schema)).with_coerce_primitive(true);
    let mut reader = reader.with_batch_size(num_rows.max(1)).build(Cursor::new(bytes))?;
    reader.next().unwrap_or_else(|| Ok(RecordBatch::new_empty(Arc::clone(schema))))
}

/// Builds the failure of `row`, which begins on `line` and is no object.
fn bad_row(file: &str, unit: &str, line: usize, row: &[u8], error: &serde_json::Error, way_out: &str) -> Failure {
    if row.trim_ascii_start().starts_with(b"[") {
        return Failure::new(format!(
            "{file}: {unit} {line}: expected a JSON object, found an array; `jq -c '.[]'` turns arrays into lines"
        ));
    }
    // The parser counts lines from where it began, and a row has no line ends.
    let text = error.to_string();
    let (what, _) = text.split_once(" at line ").unwrap_or((&text, ""));
    let column = error.column();
    let before = row.get(..column.min(row.len())).unwrap_or_default();
    let lines_before = before.iter().filter(|&&byte| byte == b'\r').count();
    let place = match before.iter().rposition(|&byte| byte == b'\r') {
        Some(begin) if unit == "line" => format!("column {} of line {}", column - begin - 1, line + lines_before),
        _ => format!("column {column}"),
    };
    let is_wide =
        row.starts_with(b"\xff\xfe") || row.starts_with(b"\xfe\xff") || row.iter().take(2).any(|byte| *byte == 0);
    let charset = "; it looks like UTF-16: name its character set with --charset (auto with a byte order mark)";
    let way_out = if is_wide { charset } else { way_out };
    Failure::new(format!("{file}: {unit} {line}: no JSON object: {what} at {place}{way_out}"))
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    use serde_json::json;
    use testkit::random::Random;

    use crate::columns::ColumnSink;
    use crate::inputs::{Input, Source};
    use crate::{ArchiveOptions, Batch, Documents, ReadOptions, Sink};

    use super::*;

    /// Texts and numbers of rows.
    #[derive(Default)]
    struct Found {
        texts: Vec<String>,
        numbers: Vec<i64>,
    }

    struct Texts<'a>(&'a mut Vec<String>);

    impl Sink for Texts<'_> {
        fn take(&mut self, batch: Batch) -> Outcome {
            self.0.extend(batch.iter().map(|part| String::from_utf8(part.text.to_vec()).unwrap()));
            Ok(())
        }
    }

    struct Numbers<'a>(&'a mut Vec<i64>);

    impl ColumnSink for Numbers<'_> {
        fn check(&self, _: &Schema, _: &str) -> Outcome {
            Ok(())
        }

        fn push(&mut self, rows: &RecordBatch) -> Outcome {
            self.0.extend(rows.column_by_name("n").unwrap().as_primitive::<Int64Type>().values());
            Ok(())
        }

        fn num_columns(&self) -> usize {
            0
        }
    }

    /// Returns the rows of `bytes`, and the number of faults.
    fn rows(bytes: &[u8], field: &str, keep_going: bool) -> Outcome<(Found, usize)> {
        let source = Source::Text { bytes: bytes.to_vec().into(), lines_before: 0 };
        let inputs = [Input::new(source, "a.json".to_owned(), bytes.len() as u64)];
        let options = ReadOptions { keep_going, ..ReadOptions::default() };
        let division = Documents::Jsonl(field.to_owned()).into();
        let mut found = Found::default();
        let columns = &mut Numbers(&mut found.numbers);
        let sink = &mut Texts(&mut found.texts);
        let read = crate::read(&inputs, &division, options, &ArchiveOptions::default(), columns, sink)?;
        Ok((found, read.faults.len()))
    }

    /// Returns a text as other programs write it, and what it means.
    fn text(random: &mut Random) -> (Vec<u8>, String) {
        let parts: [(&[u8], &str); 8] = [
            (b"word ", "word "),
            (b"\\ud83d!", "\u{fffd}!"),
            (b"\\ud83d\\ude00", "\u{1f600}"),
            (b"\xff ", "\u{fffd} "),
            (b"\\\"}{", "\"}{"),
            (b"\\n", "\n"),
            ("é".as_bytes(), "é"),
            (b"\t", "\t"),
        ];
        let chosen: Vec<_> = (0..random.below(5)).map(|_| *random.pick(&parts)).collect();
        let odd = [b"\"", &chosen.iter().map(|part| part.0).collect::<Vec<_>>().concat()[..], b"\""].concat();
        (odd, chosen.iter().map(|part| part.1).collect())
    }

    /// Returns a value of any shape, which must not matter to the others.
    fn other(random: &mut Random) -> Vec<u8> {
        let values: [&[u8]; 10] = [
            b"NaN",
            b"-Infinity",
            b"1e999",
            b"007",
            b"[1,\n{\"x\":[]}]",
            b"{\"y\": {\"z\":\n1}}",
            b"null",
            b"true",
            b"\"\\udc00\xe2\"",
            b"12",
        ];
        random.pick(&values).to_vec()
    }

    #[test]
    fn rows_are_those_that_were_written() {
        for case in 0..2000 {
            let random = &mut Random(case);
            let is_array = case % 4 == 0;
            let mut bytes = Vec::new();
            let mut texts = Vec::new();
            let mut numbers = Vec::new();
            for number in 0..random.below(8) as i64 {
                let (odd, text) = text(random);
                let mut fields = [
                    [b"\"t\":", &odd[..]].concat(),
                    format!("\"n\" : {number}").into_bytes(),
                    [b"\"o\":", &other(random)[..]].concat(),
                ];
                fields.rotate_left(random.below(3));
                let between = *random.pick::<&[u8]>(&[&b","[..], b", ", b",\r\n\t", b"\n,"]);
                let row = [b"{", &fields.join(between)[..], b"}"].concat();
                let end = *random.pick::<&[u8]>(&[&b"\n"[..], b"", b"\r\n", b" \x1e", b"\n\n"]);
                let end = if is_array { &b",\n"[..] } else { end };
                bytes.extend_from_slice(&[&row[..], end].concat());
                texts.push(text);
                numbers.push(number);
            }
            if is_array {
                bytes.truncate(bytes.len().saturating_sub(2));
                bytes = [b"[", &bytes[..], b"]"].concat();
            }
            let (found, num_faults) = rows(&bytes, "t", false).unwrap_or_else(|error| panic!("{case}: {error}"));
            let shown = String::from_utf8_lossy(&bytes);
            assert_eq!((found.texts, found.numbers, num_faults), (texts, numbers, 0), "{case}: {shown}");
        }
    }

    #[test]
    fn what_is_no_row_leaves_the_others_whole() {
        let junk = ["{\"t\":\"cut", "{\"t\":\"x\",\"n\":", "nope", "[1,2]", "{\"t\" \"x\"}", "{\"n\":7}", "{\"t\":7"];
        for case in 0..2000 {
            let random = &mut Random(case);
            let mut bytes = "{\"t\":\"first\",\"n\":0}\n".to_owned();
            let mut texts = vec!["first".to_owned()];
            let mut has_junk = false;
            for number in 1..random.below(8) {
                let is_junk = random.one_in(3);
                bytes += &if is_junk {
                    (*random.pick(&junk)).to_owned()
                } else {
                    texts.push(format!("text {number}"));
                    json!({"t": format!("text {number}"), "n": number}).to_string()
                };
                bytes.push('\n');
                has_junk |= is_junk;
            }
            let (found, num_faults) = rows(bytes.as_bytes(), "t", true).unwrap();
            assert_eq!((found.texts, num_faults > 0), (texts, has_junk), "{case}: {bytes}");
            assert_eq!(rows(bytes.as_bytes(), "t", false).is_err(), has_junk, "{case}: {bytes}");
        }
    }

    #[test]
    fn bytes_of_any_kind_are_read_without_fault() {
        for case in 0..3000 {
            let random = &mut Random(case);
            let parts: [&[u8]; 12] =
                [b"{", b"}", b"\"t\":", b"\"", b"\\", b"\n", b",", b"[", b"]", b"\x1e", b"1", b"\"a\":{\"t\":\"x\"}"];
            let bytes: Vec<u8> = (0..random.below(30)).flat_map(|_| random.pick(&parts).to_vec()).collect();
            for field in ["t", "a.t"] {
                let read = rows(&[b"{\"n\":1,\"t\":\"x\",\"a\":{\"t\":\"x\"}}\n", &bytes[..]].concat(), field, true);
                let num_rows = read.map_or(1, |(found, _)| found.texts.len());
                assert!(num_rows > 0);
            }
        }
    }
}
