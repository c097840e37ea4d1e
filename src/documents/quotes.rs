//! Follows the quotation marks of CSV through the bytes, beside the decoder of rows.
//!
//! ```text
//! id,text
//! 1,"two        a quote that begins a cell opens it; line ends are text up to the next one
//! lines"
//! 2,5" tape     a quote inside a cell is text
//! 3,"x" y       text behind a closing quote: the decoder drops the quotes of such a cell
//! 4,"no end     a quote that is not closed takes all rows behind it
//! ```
//!
//! Source: RFC 4180, with the states of the crate csv-core, which decodes the rows. Each byte is looked at a
//! constant number of times.

use memchr::{memchr, memchr_iter, memchr3};

use crate::failure::Failure;
use crate::rows::Rows;

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
    use arrow::csv::ReaderBuilder;
    use arrow::datatypes::{DataType, Field, Schema};
    use testkit::random::Random;

    use super::*;

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
