//! Decoder of rows of CSV into batches of texts.
//!
//! ```text
//! id,text            id    text
//! 1,"a,b"       ─▶   1     a,b
//! 2                  2     NULL        a row with fewer cells
//! 3,x,y              line 4 has 3 cells: not in the batch
//! ```
//!
//! The crate csv-core finds the cells. Arrow's decoder does, too, but it cannot go on behind a row with more cells than
//! columns. Each byte is looked at a constant number of times. Memory is that of a batch and a row.

use std::str;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringBuilder};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use memchr::memchr_iter;

/// Number of rows decoded at once. It is small because cells can be long texts.
pub const BATCH_ROWS: usize = 256;
/// Number of ends of cells that are found at once.
const ENDS: usize = 64;
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
    /// Creates a decoder of the columns `wanted` of `schema`.
    pub fn new(form: &Form, schema: &Schema, wanted: Vec<usize>) -> Result<Self, ArrowError> {
        let mut reader = ReaderBuilder::new();
        reader.delimiter(form.delimiter).quote(form.quote);
        Ok(Self {
            reader: reader.build(),
            num_columns: schema.fields().len(),
            schema: Arc::new(schema.project(&wanted)?),
            wanted,
            null: form.null.clone(),
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
            self.data_len = self.row_begin;
            self.row.clear();
            return fault;
        }
        self.row.resize(self.num_columns, MISSING);
        self.ends.append(&mut self.row);
        self.begins.push(self.row_begin);
        self.row_begin = self.data_len;
        None
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
            cells.append_option(cell.filter(|cell| *cell != self.null));
        }
        Arc::new(cells.finish())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::csv::ReaderBuilder as ArrowReader;
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
        let mut decoder = Decoder::new(&form(), &schema, vec![0, 1, 2]).unwrap();
        let (mut rows, mut bad) = (Vec::new(), Vec::new());
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
}
