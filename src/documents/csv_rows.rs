//! Rows of CSV: a decoder into batches of texts, and the quotation marks in the bytes beside it.
//!
//! ```text
//! id,text            id    text
//! 1,"a,b"       ─▶   1     a,b
//! 2                  2     NULL        a row with fewer cells
//! 3,                 3     ''          in the column with the texts; NULL in others
//! 4,x,y              line 5 has 3 cells: not in the batch
//!
//! 1,"two        a quote that begins a cell opens it; line ends are text up to the next one
//! lines"
//! 2,5" tape     a quote inside a cell is text
//! 3,"x" y       text behind a closing quote: the decoder drops the quotes of such a cell
//! 4,"no end     a quote that is not closed takes all rows behind it
//! ```
//!
//! Source: RFC 4180. The crate csv-core finds the cells, and [`Quotes`] has its states. Arrow's decoder finds
//! cells, too, but it cannot go on behind a row with more cells than columns. Each byte is looked at a
//! constant number of times. Memory is that of a batch and a row.

use std::str;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringBuilder};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use memchr::{memchr, memchr_iter, memchr3};

use crate::failure::Failure;
use crate::rows::Rows;

/// Number of rows decoded at once. It is small because cells can be long texts.
pub const BATCH_ROWS: usize = 256;
/// Number of ends of cells that are found at once.
const ENDS: usize = 64;
/// Mark at the end of a text, as DOS has it.
const CTRL_Z: u8 = 0x1a;
/// End of a cell that a row does not have.
const MISSING: usize = usize::MAX;

/// Form of the rows.
#[derive(Debug, Clone)]
pub struct Form {
    /// Byte between cells.
    pub delimiter: u8,
    /// Byte around cells.
    pub quote: u8,
    /// First byte of lines that are left out.
    pub comment: Option<u8>,
    /// True if the first row has the names of the columns.
    pub has_header: bool,
    /// The cell that stands for NULL.
    pub null: String,
}

/// A row that is not in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRow {
    /// Number of its line, counted from the start of the decoder.
    pub line: u64,
    /// The reason.
    pub fault: Fault,
}

/// The reason why a row is in no batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It has this number of cells, which is more than the number of columns.
    Cells(usize),
    /// The cell with this number has bytes that are no UTF-8.
    NoText(usize),
}

/// A decoder of rows.
pub struct Decoder {
    reader: Reader,
    num_columns: usize,
    /// Indices of the columns in batches.
    wanted: Vec<usize>,
    schema: SchemaRef,
    null: String,
    /// Index of the column of texts, which has no NULL but for cells that are missing.
    text: Option<usize>,
    /// True if the next row has names.
    is_header: bool,
    /// Cells of the rows, one behind the other. Only the first `data_len` bytes count.
    data: Vec<u8>,
    data_len: usize,
    /// Places in the data where the rows of the batch begin.
    begins: Vec<usize>,
    /// Ends of the cells of these rows.
    ends: Vec<usize>,
    /// Ends of the cells of the row that is open.
    row: Vec<usize>,
    row_begin: usize,
    comment: Option<u8>,
    is_in_row: bool,
    is_in_comment: bool,
    line: u64,
    row_line: u64,
}

impl Decoder {
    /// Creates a decoder of the columns `wanted` of `schema`. In the column `text` the cell that stands for NULL is
    /// empty.
    pub fn new(form: &Form, schema: &Schema, wanted: Vec<usize>, text: Option<usize>) -> Result<Self, ArrowError> {
        let mut reader = ReaderBuilder::new();
        reader.delimiter(form.delimiter).quote(form.quote);
        Ok(Self {
            reader: reader.build(),
            num_columns: schema.fields().len(),
            schema: Arc::new(schema.project(&wanted)?),
            wanted,
            null: form.null.clone(),
            text,
            is_header: form.has_header,
            data: vec![0; 1 << 12],
            data_len: 0,
            begins: Vec::new(),
            ends: Vec::new(),
            row: Vec::new(),
            row_begin: 0,
            comment: form.comment,
            is_in_row: false,
            is_in_comment: false,
            line: 1,
            row_line: 1,
        })
    }

    /// Returns the number of rows of the batch so far.
    pub fn num_rows(&self) -> usize {
        self.begins.len()
    }

    /// Decodes bytes until the batch is full, or up to a row that is in no batch. No bytes are the end of all rows.
    /// Returns the number of decoded bytes.
    pub fn decode(&mut self, bytes: &[u8]) -> (usize, Option<BadRow>) {
        let is_end = bytes.is_empty();
        let mut done = 0;
        while self.num_rows() < BATCH_ROWS {
            done += self.skip(&bytes[done..]);
            if done == bytes.len() && !is_end {
                break;
            }
            let mut ends = [0; ENDS];
            let (result, num_read, num_written, num_ends) =
                self.reader.read_record(&bytes[done..], &mut self.data[self.data_len..], &mut ends);
            self.line += memchr_iter(b'\n', &bytes[done..done + num_read]).count() as u64;
            self.is_in_row |= num_read > 0;
            done += num_read;
            self.data_len += num_written;
            self.row.extend(ends[..num_ends].iter().map(|end| self.row_begin + end));
            match result {
                ReadRecordResult::InputEmpty | ReadRecordResult::End => break,
                ReadRecordResult::OutputFull => self.data.resize(2 * self.data.len(), 0),
                ReadRecordResult::OutputEndsFull => {}
                // DOS ends a text with Ctrl-Z.
                ReadRecordResult::Record if is_end && self.is_end_mark() => {
                    self.drop_row();
                }
                ReadRecordResult::Record => {
                    if let Some(fault) = self.end_row() {
                        return (done, Some(BadRow { line: self.row_line, fault }));
                    }
                }
            }
        }
        (done, None)
    }

    /// Skips line ends and comments before a row, and returns the number of their bytes.
    fn skip(&mut self, bytes: &[u8]) -> usize {
        let mut len = 0;
        while let Some(&byte) = bytes.get(len).filter(|_| !self.is_in_row) {
            if byte == b'\n' {
                self.line += 1;
                self.is_in_comment = false;
            }
            self.is_in_comment |= Some(byte) == self.comment;
            if !self.is_in_comment && !matches!(byte, b'\n' | b'\r') {
                break;
            }
            len += 1;
        }
        if !self.is_in_row {
            self.row_line = self.line;
        }
        len
    }

    fn end_row(&mut self) -> Option<Fault> {
        let fault = self.fault();
        let is_header = std::mem::take(&mut self.is_header);
        self.is_in_row = false;
        if fault.is_some() || is_header {
            self.drop_row();
            return fault;
        }
        self.row.resize(self.num_columns, MISSING);
        self.ends.append(&mut self.row);
        self.begins.push(self.row_begin);
        self.row_begin = self.data_len;
        None
    }

    /// Returns true if the row that is open is the mark at the end of a text.
    fn is_end_mark(&self) -> bool {
        let data = &self.data[self.row_begin..self.data_len];
        self.row.len() == 1 && !data.is_empty() && data.iter().all(|&byte| byte == CTRL_Z)
    }

    fn drop_row(&mut self) {
        self.is_in_row = false;
        self.data_len = self.row_begin;
        self.row.clear();
    }

    fn fault(&self) -> Option<Fault> {
        if self.row.len() > self.num_columns {
            return Some(Fault::Cells(self.row.len()));
        }
        let mut begin = self.row_begin;
        for (idx, &end) in self.row.iter().enumerate() {
            if str::from_utf8(&self.data[begin..end]).is_err() {
                return Some(Fault::NoText(idx + 1));
            }
            begin = end;
        }
        None
    }

    /// Returns the rows of the batch, and begins the next one; `None` if there are none.
    ///
    /// # Errors
    /// Errors of Arrow only.
    pub fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let num_rows = self.num_rows();
        if num_rows == 0 {
            return Ok(None);
        }
        let columns = self.wanted.iter().map(|&idx| self.column(idx)).collect();
        // The row that is open stays.
        self.data.copy_within(self.row_begin..self.data_len, 0);
        self.data_len -= self.row_begin;
        self.row.iter_mut().for_each(|end| *end -= self.row_begin);
        self.row_begin = 0;
        self.begins.clear();
        self.ends.clear();
        let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map(Some)
    }

    fn column(&self, idx: usize) -> ArrayRef {
        let mut cells = StringBuilder::new();
        for (&row_begin, row) in self.begins.iter().zip(self.ends.chunks_exact(self.num_columns.max(1))) {
            let begin = idx.checked_sub(1).map_or(row_begin, |before| row[before]);
            let cell = self.data.get(begin..row[idx]).and_then(|cell| str::from_utf8(cell).ok());
            match cell {
                Some(cell) if cell != self.null => cells.append_value(cell),
                Some(_) if self.text == Some(idx) => cells.append_value(""),
                _ => cells.append_null(),
            }
        }
        Arc::new(cells.finish())
    }
}

/// A byte that no text in UTF-8 has. Decoders take it for the quotation mark where there is none.
pub const NO_QUOTE: u8 = 0xff;

/// The quotation marks of one input so far.
#[derive(Debug)]
pub struct Quotes {
    quote: u8,
    delimiter: u8,
    comment: Option<u8>,
    place: Place,
    /// Byte before the next one.
    last: u8,
    /// Number of the line that the next byte is in, from 1.
    line: u64,
    /// Line of the latest quote that opened a cell.
    opened_on: u64,
    /// Number of cells with text behind the closing quote.
    num_odd: u64,
    /// Line of the first of them.
    first_odd: u64,
    /// Line of a byte that text without quotes must not have, as the decoder takes it for one.
    pub odd_byte: Option<u64>,
    /// True if `--quote` chooses the quotation mark.
    pub may_be_chosen: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not between quotes.
    Outside,
    /// Between quotes.
    Inside,
    /// Behind a quote that closes the cell, or is the first of two that mean one.
    Behind,
    /// In a line that is left out.
    Comment,
}

impl Quotes {
    /// Creates the state before the first byte.
    pub fn new(quote: u8, delimiter: u8, comment: Option<u8>) -> Self {
        Self {
            quote,
            delimiter,
            comment,
            place: Place::Outside,
            last: b'\n',
            line: 1,
            opened_on: 0,
            num_odd: 0,
            first_odd: 0,
            odd_byte: None,
            may_be_chosen: true,
        }
    }

    /// Returns the state behind `num_lines` lines.
    pub fn after_lines(self, num_lines: u64) -> Self {
        Self { line: self.line + num_lines, ..self }
    }

    /// Takes the next bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        if self.quote == NO_QUOTE {
            return self.take_unquoted(bytes);
        }
        let mut idx = 0;
        while idx < bytes.len() {
            let from = idx;
            let before = if idx == 0 { self.last } else { bytes[idx - 1] };
            idx += match self.place {
                Place::Outside => self.outside(&bytes[idx..], before),
                Place::Inside => self.inside(&bytes[idx..]),
                Place::Behind => self.behind(bytes[idx]),
                Place::Comment => self.comment(&bytes[idx..]),
            };
            self.line += memchr_iter(b'\n', &bytes[from..idx]).count() as u64;
        }
        self.last = bytes.last().copied().unwrap_or(self.last);
    }

    fn take_unquoted(&mut self, bytes: &[u8]) {
        let end = memchr(NO_QUOTE, bytes);
        let before = &bytes[..end.unwrap_or(bytes.len())];
        self.line += memchr_iter(b'\n', before).count() as u64;
        if end.is_some() {
            self.odd_byte = Some(self.line);
        }
    }

    /// Counts the cells that lost their quotes for the notes to the user.
    pub fn say(&self, rows: &mut Rows<'_, '_>) {
        if self.num_odd > 0 {
            let first = format!("{}, line {}", rows.input.shown(), self.first_odd);
            rows.sink.odd_cells.add(self.num_odd, || first);
        }
    }

    /// Adds the way out of rows that may be divided at line ends or delimiters between quotes.
    pub fn with_hint(&self, failure: Failure) -> Failure {
        if self.quote != NO_QUOTE || !self.may_be_chosen {
            return failure;
        }
        let text = failure.to_string();
        Failure::new(format!("{text}; quotation marks are text here: where they stand around cells, pass --quote '\"'"))
    }

    /// Returns the line on which a quote was opened that is not closed yet.
    pub fn open_line(&self) -> Option<u64> {
        (self.place == Place::Inside).then_some(self.opened_on)
    }

    /// Takes bytes up to the next place. `before` is the byte before them.
    fn outside(&mut self, bytes: &[u8], before: u8) -> usize {
        if is_line_end(before) && self.comment.is_some_and(|comment| bytes[0] == comment) {
            self.place = Place::Comment;
            return 1;
        }
        let found = match self.comment {
            Some(_) => memchr3(self.quote, b'\n', b'\r', bytes),
            None => memchr(self.quote, bytes),
        };
        let Some(idx) = found else { return bytes.len() };
        let before = if idx == 0 { before } else { bytes[idx - 1] };
        if bytes[idx] == self.quote && (before == self.delimiter || is_line_end(before)) {
            self.place = Place::Inside;
            self.opened_on = self.line + memchr_iter(b'\n', &bytes[..idx]).count() as u64;
        }
        idx + 1
    }

    fn inside(&mut self, bytes: &[u8]) -> usize {
        match memchr(self.quote, bytes) {
            Some(idx) => {
                self.place = Place::Behind;
                idx + 1
            }
            None => bytes.len(),
        }
    }

    fn behind(&mut self, byte: u8) -> usize {
        if byte == self.quote {
            self.place = Place::Inside;
            return 1;
        }
        self.place = Place::Outside;
        if byte != self.delimiter && !is_line_end(byte) {
            if self.num_odd == 0 {
                self.first_odd = self.line;
            }
            self.num_odd += 1;
        }
        0
    }

    fn comment(&mut self, bytes: &[u8]) -> usize {
        match memchr(b'\n', bytes) {
            Some(idx) => {
                self.place = Place::Outside;
                idx + 1
            }
            None => bytes.len(),
        }
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, AsArray};
    use arrow::csv::{ReaderBuilder, ReaderBuilder as ArrowReader};
    use arrow::datatypes::{DataType, Field, Schema};
    use testkit::random::Random;

    use super::*;
    use crate::csv::texts;

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn form() -> Form {
        Form { delimiter: b',', quote: b'"', comment: Some(b'#'), has_header: false, null: String::new() }
    }

    /// Returns the rows of `bytes`, which come in pieces of `len` bytes, and those that are in no batch.
    fn decoded(bytes: &[u8], len: usize) -> (Vec<Vec<String>>, Vec<BadRow>) {
        let schema = texts(NAMES.into_iter());
        let mut decoder = Decoder::new(&form(), &schema, vec![0, 1, 2], None).unwrap();
        let mut rows = Vec::new();
        let mut bad = Vec::new();
        for piece in bytes.chunks(len).chain([&b""[..]]) {
            let mut piece = piece;
            loop {
                let (num, fault) = decoder.decode(piece);
                piece = &piece[num..];
                bad.extend(fault);
                if let Some(batch) = decoder.flush().unwrap() {
                    rows.extend(rows_of(&batch));
                }
                if piece.is_empty() && fault.is_none() {
                    break;
                }
            }
        }
        (rows, bad)
    }

    fn rows_of(batch: &RecordBatch) -> Vec<Vec<String>> {
        let cell = |column: &ArrayRef, row: usize| {
            let cells = column.as_string::<i32>();
            if cells.is_null(row) { "NULL".to_owned() } else { cells.value(row).to_owned() }
        };
        let row = |row| batch.columns().iter().map(|column| cell(column, row)).collect();
        (0..batch.num_rows()).map(row).collect()
    }

    #[test]
    fn rows_are_those_of_arrow() {
        let cells = ["", "a", "\"x,y\"", "\"line\r\nend\"", "5\" tape", "é", "\"a\"\"b\" c", "\"\""];
        for case in 0..2000 {
            let random = &mut Random(case);
            let mut text = String::new();
            for _ in 0..random.below(9) {
                let row: Vec<&str> = (0..3).map(|_| *random.pick(&cells)).collect();
                text += &row.join(",");
                text += *random.pick(&["\n", "\r\n", "\n\n", "\n# \"x\n"]);
            }
            let schema = Arc::new(texts(NAMES.into_iter()));
            let arrow = ArrowReader::new(schema).with_comment(b'#').build(text.as_bytes()).unwrap();
            let expected: Vec<_> = arrow.flat_map(|batch| rows_of(&batch.unwrap())).collect();
            let (rows, bad) = decoded(text.as_bytes(), 1 + random.below(30));
            assert_eq!((rows, bad), (expected, vec![]), "{case}: {text:?}");
        }
    }

    #[test]
    fn rows_that_do_not_fit_are_told_with_their_lines() {
        let bytes = b"1,2,3\r\n\r\n1\n1,\"2\n\",3,4\n1,2,\xff\n\xe2,\x82\xac,3\n5,,6,,,\n7,8,9";
        let expected = [["1", "2", "3"], ["1", "NULL", "NULL"], ["7", "8", "9"]];
        let bad = [(4, Fault::Cells(4)), (6, Fault::NoText(3)), (7, Fault::NoText(1)), (8, Fault::Cells(6))];
        let bad = bad.map(|(line, fault)| BadRow { line, fault });
        for len in [1, 2, 3, 100] {
            let (rows, found) = decoded(bytes, len);
            assert_eq!((rows, found), (expected.map(|row| row.map(str::to_owned).to_vec()).to_vec(), bad.to_vec()));
        }
        let many = "1,2,3\n4,5,6,7\n".repeat(3 * BATCH_ROWS);
        let (rows, bad) = decoded(many.as_bytes(), 1000);
        assert_eq!((rows.len(), bad.len()), (3 * BATCH_ROWS, 3 * BATCH_ROWS));
        let wide = format!("{}\n1,2,3\n", ",".repeat(1000));
        let (rows, bad) = decoded(wide.as_bytes(), 1000);
        assert_eq!((rows.len(), bad[0]), (1, BadRow { line: 1, fault: Fault::Cells(1001) }));
    }

    #[test]
    fn missing_cells_of_texts_are_null_and_empty_ones_are_not() {
        let schema = Schema::new(NAMES.map(|name| Field::new(name, DataType::Utf8, true)).to_vec());
        let expected = [["1", "", "NULL"], ["NULL", "", "NULL"], ["1", "", "NULL"], ["1", "NULL", "NULL"]];
        for (null, text) in [("", "1,,\n,\n1,\"\"\n1\n"), ("-", "1,-,-\n-,-\n1,-\n1\n")] {
            let form = Form { null: null.to_owned(), ..form() };
            let mut decoder = Decoder::new(&form, &schema, vec![0, 1, 2], Some(1)).unwrap();
            assert_eq!(decoder.decode(text.as_bytes()), (text.len(), None));
            assert_eq!(rows_of(&decoder.flush().unwrap().unwrap()), expected);
        }
    }

    #[test]
    fn ctrl_z_at_the_end_is_no_row() {
        let all = |text: &str| {
            let schema = Schema::new(NAMES.map(|name| Field::new(name, DataType::Utf8, true)).to_vec());
            let mut decoder = Decoder::new(&form(), &schema, vec![0], None).unwrap();
            for piece in [text.as_bytes(), b""] {
                assert_eq!(decoder.decode(piece).1, None);
            }
            decoder.flush().unwrap().map_or(Vec::new(), |batch| rows_of(&batch).concat())
        };
        for (text, expected) in [
            ("a,b\n\x1a", vec!["a"]),
            ("a,b\r\n\x1a\x1a", vec!["a"]),
            ("\x1a", vec![]),
            ("a\n\x1ab", vec!["a", "\x1ab"]),
            ("a\x1a", vec!["a\x1a"]),
            ("\x1a\na", vec!["\x1a", "a"]),
            ("\x1a,", vec!["\x1a"]),
            ("\"\"", vec!["NULL"]),
        ] {
            assert_eq!(all(text), expected, "{text:?}");
        }
    }

    fn quotes(text: &str) -> Quotes {
        let mut quotes = Quotes::new(b'"', b',', Some(b'#'));
        quotes.take(text.as_bytes());
        quotes
    }

    #[test]
    fn the_line_of_an_open_quote_is_known() {
        assert_eq!(quotes("a,b\n1,\"x\n2,y\n").open_line(), Some(2));
        assert_eq!(quotes("a,b\n1,\"x\n\"\"\n").open_line(), Some(2));
        assert_eq!(quotes("\"").open_line(), Some(1));
        for text in ["", "a\n\"b\n\"\n", "5\" tape\n", "# it's \"\n\"a\"", "a,\"\"", "a\r#,\"\n1"] {
            assert_eq!(quotes(text).open_line(), None, "{text:?}");
        }
    }

    #[test]
    fn text_behind_a_closing_quote_is_counted() {
        let odd = quotes("a,b\n1,\"x\" y\n2,\"\"z\"\n3,\"x\"\"y\"\n");
        assert_eq!((odd.num_odd, odd.first_odd), (2, 2));
    }

    #[test]
    fn any_division_into_parts_has_the_same_end() {
        let signs = ["\"", ",", "\n", "a", "#", "\r\n"];
        for case in 0..2000 {
            let random = &mut Random(case);
            let text: String = (0..random.below(20)).map(|_| *random.pick(&signs)).collect();
            let whole = quotes(&text);
            let mut parts = Quotes::new(b'"', b',', Some(b'#'));
            text.bytes().for_each(|byte| parts.take(&[byte]));
            assert_eq!(format!("{whole:?}"), format!("{parts:?}"), "{text:?}");
        }
    }

    /// The last row is of its own where no quote is open before it.
    #[test]
    fn the_decoder_of_rows_says_the_same() {
        let signs = ["\"", "\n", "a", "\r\n"];
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
        for case in 0..2000 {
            let random = &mut Random(case);
            let text: String = (0..random.below(12)).map(|_| *random.pick(&signs)).collect();
            let rows = format!("{text}\nend");
            let rows = ReaderBuilder::new(schema.clone()).build(rows.as_bytes()).unwrap();
            let rows = rows.last().unwrap().unwrap();
            let cells = rows.column(0).as_string::<i32>();
            let is_alone = cells.value(cells.len() - 1) == "end";
            assert_eq!(quotes(&format!("{text}\n")).open_line().is_none(), is_alone, "{text:?}");
        }
    }
}
