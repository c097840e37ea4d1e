//! Mends logs on their way to a reader: joins the parts of texts that container runtimes divide.
//!
//! ```text
//! 2024-05-06T07:08:09.1Z stdout P first part    ╮
//! 2024-05-06T07:08:09.3Z stderr F other          │  the line ends where its stream has the tag F
//! 2024-05-06T07:08:09.2Z stdout F and the rest  ╯
//!
//! {"log":"first part of ", "stream":"stdout","time":"…1Z"}        "first part of a line\n", stdout, …1Z
//! {"log":"error\n",        "stream":"stderr","time":"…2Z"}   ─▶   "error\n",                stderr, …2Z
//! {"log":"a line\n",       "stream":"stdout","time":"…3Z"}
//! ```
//!
//! Lines of containers have the form of CRI (Kubernetes, `kube-log-rotation`): time, stream, tags, text. A joined line
//! has the time of its first part, and stands where its last part was. Parts without an end stay as they are. Where
//! each part ends with CR LF, so does the line, and the CR inside are no text.
//!
//! Docker cuts lines after 16 KiB, and writes rows of JSON. A text goes on in the next row of its stream until it ends
//! with a line end. A document stands in the place of its first part and has the other fields of this part.
//!
//! Time is linear in the bytes. Memory is the buffer below, and one line of each stream up to the size of a row.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryViewArray, BooleanArray, RecordBatch};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Field, Schema};
use memchr::memchr;

use crate::columns;
use crate::failure::Outcome;

/// Longest time and stream in front of the tag of a line.
const MAX_HEAD_BYTES: usize = 64;
/// Most bytes of a line that is looked at. A longer one is no line of a container.
const MAX_LINE_BYTES: u64 = 1 << 20;
const STREAMS: [&[u8]; 2] = [b"stdout", b"stderr"];

/// Number of lines or codes that were mended.
pub type Mended = Rc<Cell<u64>>;

/// A reader of the lines of `inner`, a log of a container, whose parts are joined.
pub struct JoinedParts<R> {
    inner: R,
    max_line_bytes: usize,
    /// Lines that are ready.
    text: Vec<u8>,
    at: usize,
    line: Vec<u8>,
    /// True within a line that is too long to be looked at.
    is_in_long_line: bool,
    /// Joined parts of each stream without an end yet.
    open: [Option<Line>; 2],
    num_joined: Mended,
}

/// A line that is not finished.
struct Line {
    text: Vec<u8>,
    /// Place of its tag.
    tag_at: usize,
    num_parts: u64,
    /// Places of the CR that end parts, unless another part ends without one.
    returns: Option<Vec<usize>>,
}

impl Line {
    fn new(part: Part) -> Self {
        Self { text: Vec::new(), tag_at: part.tag_at, num_parts: 0, returns: Some(Vec::new()) }
    }

    /// Appends a part, which `line` ends with.
    fn push(&mut self, text: &[u8], line: &[u8]) {
        self.text.extend_from_slice(text);
        self.num_parts += 1;
        if line.ends_with(b"\r\n") {
            self.returns.iter_mut().for_each(|places| places.push(self.text.len() - 1));
        } else if line.ends_with(b"\n") {
            self.returns = None;
        }
    }

    /// Returns the text with a line end: LF, or CR LF if all parts have it. CR alone is text.
    fn into_text(self) -> Vec<u8> {
        let Self { text, returns, .. } = self;
        let mut line = Vec::with_capacity(text.len() + 1);
        let mut from = 0;
        for at in returns.into_iter().flatten().filter(|at| at + 1 < text.len()) {
            line.extend_from_slice(&text[from..at]);
            from = at + 1;
        }
        line.extend_from_slice(&text[from..]);
        line.push(b'\n');
        line
    }
}

impl<R: BufRead> JoinedParts<R> {
    /// Creates a reader that joins lines of up to `max_line_bytes`, and adds the number of parts to `num_joined`.
    pub fn new(inner: R, max_line_bytes: usize, num_joined: &Mended) -> Self {
        Self {
            inner,
            max_line_bytes,
            text: Vec::new(),
            at: 0,
            line: Vec::new(),
            is_in_long_line: false,
            open: [None, None],
            num_joined: Rc::clone(num_joined),
        }
    }

    /// Reads lines until one is ready or the input ends.
    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.at = 0;
        while self.text.is_empty() {
            self.line.clear();
            let len = self.inner.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut self.line)?;
            if len == 0 {
                for open in self.open.iter_mut().filter_map(Option::take) {
                    self.text.append(&mut open.into_text());
                }
                return Ok(());
            }
            // The last line may have no end.
            let is_whole = self.line.ends_with(b"\n") || (len as u64) < MAX_LINE_BYTES;
            let continues = std::mem::replace(&mut self.is_in_long_line, !is_whole);
            match part(&self.line).filter(|_| is_whole && !continues) {
                Some(part) => self.take_part(part),
                None => self.text.extend_from_slice(&self.line),
            }
        }
        Ok(())
    }

    /// Begins, continues or ends the line of a stream with the part in `line`.
    fn take_part(&mut self, part: Part) {
        let Some(open) = self.open.get_mut(part.stream) else { return };
        let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let content = text.get(part.tag_at + 2..).unwrap_or_default();
        let is_full = |line: &Line| line.text.len() + content.len() > self.max_line_bytes;
        if let Some(full) = open.take_if(|line| is_full(line)) {
            self.text.append(&mut full.into_text());
        }
        if open.is_none() && part.is_last {
            self.text.extend_from_slice(&self.line);
            return;
        }
        let text = if open.is_none() { text } else { content };
        open.get_or_insert_with(|| Line::new(part)).push(text, &self.line);
        if let Some(mut line) = open.take_if(|_| part.is_last) {
            if let Some(tag) = line.text.get_mut(line.tag_at) {
                *tag = b'F';
            }
            self.num_joined.set(self.num_joined.get() + line.num_parts);
            self.text.append(&mut line.into_text());
        }
    }
}

impl<R: BufRead> BufRead for JoinedParts<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.text.len() {
            self.fill()?;
        }
        Ok(self.text.get(self.at..).unwrap_or_default())
    }

    fn consume(&mut self, len: usize) {
        self.at += len;
    }
}

impl<R: BufRead> Read for JoinedParts<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, bytes)
    }
}

/// Reads from the buffer of `reader`.
pub fn read_buffered(reader: &mut impl BufRead, bytes: &mut [u8]) -> io::Result<usize> {
    let buffer = reader.fill_buf()?;
    let len = buffer.len().min(bytes.len());
    bytes[..len].copy_from_slice(&buffer[..len]);
    reader.consume(len);
    Ok(len)
}

/// A line of a container, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    /// Index in [`STREAMS`].
    stream: usize,
    /// Place of the tag `P` or `F`, behind which a blank stands.
    tag_at: usize,
    is_last: bool,
}

/// Returns true if `head` begins with a line of a container.
pub fn is_of_container(head: &[u8]) -> bool {
    part(head).is_some()
}

/// Reads `2024-05-06T07:08:09.1Z stdout P `.
fn part(line: &[u8]) -> Option<Part> {
    let head = line.get(..MAX_HEAD_BYTES).unwrap_or(line);
    let blank = memchr(b' ', head)?;
    let time = head.get(..blank)?;
    let is_time = time.first_chunk::<11>().is_some_and(|date| {
        let is_digit = |&at: &usize| date.get(at).is_some_and(u8::is_ascii_digit);
        [0, 1, 2, 3, 5, 6, 8, 9].iter().all(is_digit) && date[4] == b'-' && date[7] == b'-' && date[10] == b'T'
    });
    let behind = head.get(blank + 1..)?;
    let stream = STREAMS.iter().position(|stream| behind.starts_with(stream))?;
    let tag_at = blank + 1 + STREAMS.get(stream)?.len() + 1;
    let is_last = match head.get(tag_at - 1..tag_at + 2)? {
        b" P " => false,
        b" F " => true,
        _ => return None,
    };
    is_time.then_some(Part { stream, tag_at, is_last })
}

/// Name of the field with the text in logs of Docker.
const DOCKER_TEXT: &str = "log";

/// Rows whose parts are joined.
pub struct JoinedRows {
    /// The rows.
    pub batch: RecordBatch,
    /// Index of the first part of each row.
    pub firsts: Vec<usize>,
    /// Number of the rows before that were taken. Those behind have parts that go on.
    pub num_taken: usize,
}

/// A document of one or more rows.
struct Document {
    first: usize,
    last: usize,
    /// `None` in a row without a text.
    text: Option<Vec<u8>>,
}

/// Returns true if rows with these columns and the text in `field` may be parts.
pub fn may_be_parts(field: &str, schema: &Schema) -> bool {
    let is_text = |name: &str| schema.field_with_name(name).is_ok_and(|field| columns::is_text(field.data_type()));
    field == DOCKER_TEXT && is_text(DOCKER_TEXT) && is_text("stream") && is_text("time")
}

/// Joins the parts in `batch`; `None` if every text is whole. Parts that go on behind the last row are not
/// taken, unless `is_end`, or the rows from the first of them on have more than `max_bytes`. `ends` are the
/// ends of the bytes of the rows.
pub fn join_rows(batch: &RecordBatch, ends: &[usize], is_end: bool, max_bytes: u64) -> Outcome<Option<JoinedRows>> {
    let texts = columns::texts(DOCKER_TEXT, batch)?;
    let texts = texts.as_binary_view();
    if texts.iter().flatten().all(|text| text.ends_with(b"\n")) {
        return Ok(None);
    }
    let Some(streams) = batch.column_by_name("stream") else { return Ok(None) };
    let streams = cast(streams, &DataType::Utf8View)?;
    let streams = streams.as_string_view();
    let mut documents: Vec<Document> = Vec::new();
    let mut open: HashMap<&str, usize> = HashMap::new();
    for row in 0..batch.num_rows() {
        if texts.is_null(row) || streams.is_null(row) {
            let text = texts.is_valid(row).then(|| texts.value(row).to_vec());
            documents.push(Document { first: row, last: row, text });
            continue;
        }
        let text = texts.value(row);
        let stream = streams.value(row);
        let before = open.remove(stream);
        let idx = match before.and_then(|idx| documents[idx].text.as_mut().map(|before| (idx, before))) {
            Some((idx, before)) if (before.len() + text.len()) as u64 <= max_bytes => {
                before.extend_from_slice(text);
                documents[idx].last = row;
                idx
            }
            _ => {
                documents.push(Document { first: row, last: row, text: Some(text.to_vec()) });
                documents.len() - 1
            }
        };
        if !text.ends_with(b"\n") {
            open.insert(stream, idx);
        }
    }
    let num_taken = if is_end { batch.num_rows() } else { num_taken(&documents, open.values(), ends, max_bytes) };
    documents.retain(|document| document.first < num_taken);
    let mut is_first = vec![false; num_taken];
    documents.iter().for_each(|document| is_first[document.first] = true);
    let firsts = documents.iter().map(|document| document.first).collect();
    let joined = BinaryViewArray::from_iter(documents.into_iter().map(|document| document.text));
    let batch = filter_record_batch(&batch.slice(0, num_taken), &BooleanArray::from(is_first))?;
    Ok(Some(JoinedRows { batch: with_texts(&batch, joined)?, firsts, num_taken }))
}

/// Returns the number of rows before the first that goes on behind the last row, or that another one goes on
/// in.
fn num_taken<'a>(
    documents: &[Document],
    open: impl Iterator<Item = &'a usize>,
    ends: &[usize],
    max_bytes: u64,
) -> usize {
    let num_rows = ends.len();
    let first_open = open.map(|&idx| documents[idx].first).min().unwrap_or(num_rows);
    let going_on = |num: usize, document: &Document| if document.last >= num { num.min(document.first) } else { num };
    let num_taken = documents.iter().rev().fold(first_open, going_on);
    let begin = num_taken.checked_sub(1).map_or(0, |last| ends[last]);
    let left = ends.last().map_or(0, |end| end - begin);
    if left as u64 > max_bytes { num_rows } else { num_taken }
}

fn with_texts(batch: &RecordBatch, texts: BinaryViewArray) -> Outcome<RecordBatch> {
    let schema = batch.schema();
    let idx = schema.index_of(DOCKER_TEXT)?;
    let mut fields = schema.fields().to_vec();
    let mut columns = batch.columns().to_vec();
    fields[idx] = Arc::new(Field::new(DOCKER_TEXT, DataType::BinaryView, true));
    columns[idx] = Arc::new(texts);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;
    use proptest::prelude::*;
    use testkit::random::Random;

    use super::*;

    fn joined(text: &[u8], max_line_bytes: usize) -> (String, u64) {
        let num_joined = Mended::default();
        let mut reader = JoinedParts::new(text, max_line_bytes, &num_joined);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        (String::from_utf8(read).unwrap(), num_joined.get())
    }

    proptest! {
        #[test]
        fn parts_are_joined_by_stream(
            parts in prop::collection::vec((0usize..2, prop::bool::weighted(0.6), "[ab ]{0,4}"), 0..12),
            odd_at in 0usize..14,
        ) {
            let mut text = String::new();
            let mut open: [Option<(usize, String)>; 2] = [None, None];
            let mut expected = String::new();
            for (number, (stream, is_last, content)) in parts.iter().enumerate() {
                let name = ["stdout", "stderr"][*stream];
                if number == odd_at {
                    text += "no line of a container\n";
                    expected += "no line of a container\n";
                }
                let head = |number: usize, tag: &str| format!("2024-05-06T07:08:{number:02}.5Z {name} {tag} ");
                text += &format!("{}{content}\n", head(number, if *is_last { "F" } else { "P" }));
                let (first, mut line) = open[*stream].take().unwrap_or((number, String::new()));
                line += content;
                if *is_last {
                    expected += &format!("{}{line}\n", head(first, "F"));
                } else {
                    open[*stream] = Some((first, line));
                }
            }
            for (name, open) in ["stdout", "stderr"].iter().zip(open) {
                if let Some((first, line)) = open {
                    expected += &format!("2024-05-06T07:08:{first:02}.5Z {name} P {line}\n");
                }
            }
            prop_assert_eq!(&joined(text.as_bytes(), 1 << 20).0, &expected);
            let in_dos = |text: &str| text.replace('\n', "\r\n");
            prop_assert_eq!(joined(in_dos(&text).as_bytes(), 1 << 20).0, in_dos(&expected));
        }
    }

    #[test]
    fn line_ends_of_parts_are_no_text() {
        let head = "2024-05-06T07:08:09.5Z stdout";
        for (ends, expected) in [
            (["\r\n", "\r\n", "\r\n"], "abc\r\n"),
            (["\r\n", "\r\n", ""], "abc\n"),
            // A CR in a file without CR LF is text, as a progress bar has it.
            (["\r\n", "\n", "\n"], "a\rbc\n"),
            (["\r\n", "\r\n", "\n"], "a\rb\rc\n"),
        ] {
            let text = format!("{head} P a{}{head} P b{}{head} F c{}", ends[0], ends[1], ends[2]);
            assert_eq!(joined(text.as_bytes(), 1000), (format!("{head} F {expected}"), 3), "{ends:?}");
        }
    }

    #[test]
    fn long_lines_stay_as_they_are() {
        let head = "2024-05-06T07:08:09.5+02:00 stdout";
        let full = format!("{head} P aaaa\n{head} P bbbb\n{head} F c\n");
        let expected = format!("{head} P aaaa\n{head} F bbbbc\n");
        assert_eq!(joined(full.as_bytes(), head.len() + 10), (expected, 2));
        let line = format!("{head} P {}\n", "x".repeat(MAX_LINE_BYTES as usize));
        let text = format!("{line}{head} F y\n");
        assert_eq!(joined(text.as_bytes(), usize::MAX).0, text);
    }

    #[test]
    fn lines_of_containers_are_told_by_their_head() {
        for head in ["2024-05-06T07:08:09.1Z stdout P x", "2024-05-06T07:08:09+02:00 stderr F \n"] {
            assert!(is_of_container(head.as_bytes()), "{head}");
        }
        for head in
            ["", "2024-05-06T07:08:09Z stdout X x", "2024-05-06 stdout P x", "stdout P x", "2024-05-06T07Z stdout P"]
        {
            assert!(!is_of_container(head.as_bytes()), "{head}");
        }
    }

    type Row = (&'static str, &'static str);

    fn batch(rows: &[Row]) -> RecordBatch {
        let column = |idx: fn(&Row) -> &str| Arc::new(StringArray::from_iter_values(rows.iter().map(idx)));
        let columns = [column(|row| row.0), column(|row| row.1), column(|_| "now")];
        let names = [DOCKER_TEXT, "stream", "time"];
        RecordBatch::try_from_iter(names.into_iter().zip(columns.map(|column| column as _))).unwrap()
    }

    fn texts(batch: &RecordBatch) -> Vec<String> {
        let texts = columns::texts(DOCKER_TEXT, batch).unwrap();
        let texts = texts.as_binary_view().iter().map(|text| String::from_utf8(text.unwrap().to_vec()).unwrap());
        texts.collect()
    }

    /// Returns the documents of all `rows`, joined one by one.
    fn expected(rows: &[Row]) -> Vec<String> {
        let mut documents: Vec<(String, bool, &str)> = Vec::new();
        for (text, stream) in rows {
            match documents.iter_mut().find(|(_, is_open, of)| *is_open && of == stream) {
                Some((document, is_open, _)) => {
                    document.push_str(text);
                    *is_open = !text.ends_with('\n');
                }
                None => documents.push(((*text).to_owned(), !text.ends_with('\n'), stream)),
            }
        }
        documents.into_iter().map(|(text, ..)| text).collect()
    }

    #[test]
    fn parts_are_joined_however_the_rows_come() {
        for case in 0..2000 {
            let random = &mut Random(case);
            let row = |_| (*random.pick(&["a", "b\n", "", "\n", "c"]), *random.pick(&["out", "err"]));
            let rows: Vec<Row> = (0..12).map(row).collect();
            let mut found = Vec::new();
            let mut waiting = Vec::new();
            let mut rest = &rows[..];
            while !rest.is_empty() {
                let num = (1 + random.below(5)).min(rest.len());
                waiting.extend_from_slice(&rest[..num]);
                rest = &rest[num..];
                let batch = batch(&waiting);
                let ends = Vec::from_iter(1..=waiting.len());
                match join_rows(&batch, &ends, rest.is_empty(), 1000).unwrap() {
                    Some(joined) => {
                        found.extend(texts(&joined.batch));
                        assert_eq!(joined.firsts.len(), joined.batch.num_rows());
                        waiting.drain(..joined.num_taken);
                    }
                    None => found.extend(waiting.drain(..).map(|(text, _)| text.to_owned())),
                }
            }
            assert_eq!(found, expected(&rows), "{case}: {rows:?}");
        }
    }

    #[test]
    fn no_document_is_larger_than_a_row() {
        let rows = batch(&[("abc", "out"), ("def", "out"), ("g", "out"), ("h\n", "out")]);
        let joined = join_rows(&rows, &[1, 2, 3, 4], true, 4).unwrap().unwrap();
        assert_eq!(
            (texts(&joined.batch), joined.firsts),
            (vec!["abc".to_owned(), "defg".into(), "h\n".into()], vec![0, 1, 3])
        );
        let joined = join_rows(&rows.slice(0, 3), &[10, 20, 30], false, 4).unwrap().unwrap();
        assert_eq!(joined.num_taken, 3);
    }
}
