//! CSV files: their source in a finished plan, which looks at the quotation marks before rows are made.
//!
//! ```text
//! 1,x
//! 2,"open          a mark that begins a value takes the rows behind it: up to the end of the file,
//! 3,y              or up to the mark in the next line with one, behind which text follows
//! 4,"z" w
//! ```
//!
//! Source: RFC 4180. Arrow's decoder takes such rows as the text of one value, so a count is too small and nothing says
//! so. Here both are errors. A value of several lines whose marks are closed is right, as are marks inside of a value,
//! and text behind a closing mark on one line. No row with such a value comes before its error.
//!
//! Between tabs many programs write quotation marks as text, others enclose values. What can only be text is an error
//! there: a mark behind whose closing one text follows, and a value with a line in it that has all tabs of a row.
//!
//! The source stands where a plan is run, and cannot travel. Each byte is looked at once, by searches for the next
//! mark. A part of a file is read from the start of a line. If a value of several lines goes over its end, the part
//! behind it would begin inside of the value: that is an error, too, which names the setting that reads a file as one.
//! So is a comment where rows end with another byte than `\n`: the decoder sees no end of it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::ReaderBuilder;
use datafusion::common::{exec_err, internal_err};
use datafusion::datasource::file_format::csv::CsvDecoder;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{CsvSource, FileOpenFuture, FileOpener, FileScanConfig, FileSource};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_datasource::decoder::{DecoderDeserializer, deserialize_stream};
use datafusion_datasource::projection::{ProjectionOpener, SplitProjection};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use memchr::{memchr, memchr_iter, memchr2};
use object_store::{GetOptions, GetResultPayload, ObjectStore};

use crate::plan_methods::{passing_source_methods, with_sources};
use crate::text_files::{error_of_rows, part_of_file};

/// Bytes that are read of a local file at once.
const CHUNK_BYTES: usize = 1 << 16;

/// The mark that programs of Windows write in front of UTF-8. Arrow's decoder skips it.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns `plan`, which runs here, with scans of CSV that look at quotation marks.
pub(super) fn with_checked_csv(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    with_sources(plan, |source| {
        let source = source.downcast_ref::<CsvSource>();
        Ok(source.map(|source| Arc::new(CheckedCsv { inner: source.clone(), batch_size: None }) as _))
    })
}

/// Source of CSV files in a finished plan.
struct CheckedCsv {
    inner: CsvSource,
    batch_size: Option<usize>,
}

impl FileSource for CheckedCsv {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        scan: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let (Some(projection), Some(batch_size)) = (self.inner.projection(), self.batch_size) else {
            return internal_err!("a scan of CSV without columns or a size of batches");
        };
        let file_schema = self.inner.table_schema().file_schema();
        let projection = SplitProjection::new(file_schema, projection);
        let opener = CsvOpener {
            store,
            source: self.inner.clone(),
            columns: projection.file_indices.clone(),
            compression: scan.file_compression_type,
            batch_size,
        };
        ProjectionOpener::try_new(projection, Arc::new(opener), file_schema)
    }

    passing_source_methods!(inner);

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { inner: self.inner.clone(), batch_size: Some(batch_size) })
    }

    fn supports_repartitioning(&self) -> bool {
        self.inner.supports_repartitioning()
    }
}

#[derive(Clone)]
struct CsvOpener {
    store: Arc<dyn ObjectStore>,
    source: CsvSource,
    /// Indices of the columns that are read.
    columns: Vec<usize>,
    compression: FileCompressionType,
    batch_size: usize,
}

impl FileOpener for CsvOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = self.clone();
        Ok(Box::pin(async move { opener.rows(&file).await }))
    }
}

impl CsvOpener {
    async fn rows(self, file: &PartitionedFile) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let start = file.range.as_ref().map_or(0, |range| range.start);
        let is_part = file.range.is_some();
        let quotes = Quotes::new(Marks::from_source(&self.source), start == 0);
        let name = file.object_meta.location.to_string();
        let is_tsv = self.source.delimiter() == b'\t';
        let place = FilePlace { file: name.clone(), is_tsv, is_part, start };
        let bytes = checked(self.bytes(file).await?, quotes, place);
        let has_header = self.source.has_header() && start == 0;
        let reader = reader_of(&self.source, self.columns, self.batch_size, has_header);
        let decoder = DecoderDeserializer::new(CsvDecoder::new(reader.build_decoder()));
        let rows = deserialize_stream(bytes.fuse(), decoder);
        Ok(rows.map_err(move |error| error_of_rows(&name, error)).boxed())
    }

    /// Returns the text of a file, or of the lines that begin in a part of it.
    async fn bytes(&self, file: &PartitionedFile) -> Result<BoxStream<'static, Result<Bytes>>> {
        if let Some(range) = &file.range {
            let line_end = self.source.terminator().unwrap_or(b'\n');
            return part_of_file(&self.store, file, range, line_end).await;
        }
        let whole = self.store.get_opts(&file.object_meta.location, GetOptions::default()).await?;
        match whole.payload {
            // DataFusion reads local files so, too.
            GetResultPayload::File(file, _) => chunks(self.compression, file),
            GetResultPayload::Stream(bytes) => {
                self.compression.convert_stream(bytes.map_err(DataFusionError::from).boxed())
            }
        }
    }
}

/// Returns Arrow's reader with the options of a source.
fn reader_of(source: &CsvSource, columns: Vec<usize>, batch_size: usize, has_header: bool) -> ReaderBuilder {
    let mut reader = ReaderBuilder::new(Arc::clone(source.table_schema().file_schema()))
        .with_delimiter(source.delimiter())
        .with_batch_size(batch_size)
        .with_header(has_header)
        .with_quote(source.quote())
        .with_truncated_rows(source.truncate_rows())
        .with_projection(columns);
    if let Some(terminator) = source.terminator() {
        reader = reader.with_terminator(terminator);
    }
    if let Some(escape) = source.escape() {
        reader = reader.with_escape(escape);
    }
    if let Some(comment) = source.comment() {
        reader = reader.with_comment(comment);
    }
    reader
}

/// Returns the text of a local file.
fn chunks(compression: FileCompressionType, file: File) -> Result<BoxStream<'static, Result<Bytes>>> {
    let mut reader = compression.convert_read(file)?;
    let next = move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        match reader.read(&mut chunk) {
            Ok(0) => None,
            Ok(len) => {
                chunk.truncate(len);
                Some(Ok(Bytes::from(chunk)))
            }
            Err(error) => Some(Err(DataFusionError::from(error))),
        }
    };
    Ok(stream::iter(std::iter::from_fn(next)).boxed())
}

/// Returns `bytes`, with an error in place of those that end a value in the wrong place, or behind a value that does
/// not end.
fn checked(
    bytes: BoxStream<'static, Result<Bytes>>,
    quotes: Quotes,
    place: FilePlace,
) -> BoxStream<'static, Result<Bytes>> {
    let state = (bytes, quotes, place);
    stream::try_unfold(state, |(mut bytes, mut quotes, place)| async move {
        let chunk = bytes.next().await.transpose()?;
        let fault = match &chunk {
            Some(chunk) => quotes.take(chunk),
            None => quotes.at_end(),
        };
        match fault {
            Some(fault) => place.error(&fault),
            None => Ok(chunk.map(|chunk| (chunk, (bytes, quotes, place)))),
        }
    })
    .boxed()
}

/// The file, or the part of it, that errors name.
struct FilePlace {
    file: String,
    is_tsv: bool,
    is_part: bool,
    /// Byte behind which the part begins.
    start: i64,
}

impl FilePlace {
    fn error<T>(&self, fault: &Fault) -> Result<T> {
        let behind = if self.start > 0 { format!(" behind byte {}", self.start) } else { String::new() };
        let format = if self.is_tsv { "TSV" } else { "CSV" };
        let other_mark = format!(
            "where quotation marks are text, declare a table with another one: CREATE EXTERNAL TABLE … STORED AS {format} \
             LOCATION '…' OPTIONS ('format.quote' '|')"
        );
        let as_one =
            "if it is closed later, SET datafusion.catalog.newlines_in_values = true, which reads the file as one";
        let way_out = match fault {
            Fault::Comment { .. } => "leave out the option format.comment or format.terminator".to_owned(),
            Fault::Open { .. } if self.is_part => format!("{as_one}; {other_mark}"),
            Fault::RowsInside { .. } => other_mark,
            _ => format!("close it; {other_mark}"),
        };
        exec_err!("{}: no valid {format}: {fault}{behind}; {way_out}", self.file)
    }
}

/// A fault of quotation marks. Lines count from 1.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// The mark on this line is not closed.
    Open { line: u64 },
    /// The mark on this line is closed by one on a later line, or between tabs on the same, behind which text follows.
    TextBehind { line: u64, end: u64 },
    /// The mark on this line opens a value with rows in it.
    RowsInside { line: u64, end: u64 },
    /// The comment on this line takes all rows behind it.
    Comment { line: u64 },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { line } => write!(f, "the quotation mark on line {line} opens a value that is not closed"),
            Self::TextBehind { line, end } if line == end => {
                write!(f, "text follows the quotation mark that closes a value on line {line}")
            }
            Self::RowsInside { line, end } => {
                write!(f, "the quotation marks on lines {line} and {end} enclose lines that have as many tabs as rows")
            }
            Self::TextBehind { line, end } => write!(
                f,
                "the quotation mark on line {line} opens a value of several lines, and text follows the mark that closes \
                 it on line {end}"
            ),
            Self::Comment { line } => {
                write!(f, "the comment on line {line} has no end, as another character than a new line ends the rows")
            }
        }
    }
}

/// The bytes that have a meaning in the rows.
#[derive(Debug, Clone, Copy)]
struct Marks {
    quote: u8,
    delimiter: u8,
    /// End of a row; `None` stands for `\n`, `\r` and both.
    terminator: Option<u8>,
    escape: Option<u8>,
    comment: Option<u8>,
    /// Number of tabs in a row, if values have tabs between them, and there are several.
    num_tabs: Option<usize>,
}

impl Marks {
    fn from_source(source: &CsvSource) -> Self {
        let num_tabs = source.table_schema().file_schema().fields().len().checked_sub(1);
        Self {
            quote: source.quote(),
            delimiter: source.delimiter(),
            terminator: source.terminator(),
            escape: source.escape(),
            comment: source.comment(),
            num_tabs: num_tabs.filter(|num_tabs| *num_tabs > 0 && source.delimiter() == b'\t'),
        }
    }

    fn ends_row(&self, byte: u8) -> bool {
        self.terminator.map_or(matches!(byte, b'\n' | b'\r'), |terminator| byte == terminator)
    }

    fn has_row_end(&self, bytes: &[u8]) -> bool {
        match self.terminator {
            Some(terminator) => memchr(terminator, bytes).is_some(),
            None => memchr2(b'\n', b'\r', bytes).is_some(),
        }
    }

    /// The byte by which lines are counted.
    fn line_end(&self) -> u8 {
        self.terminator.unwrap_or(b'\n')
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not between marks.
    Outside,
    /// Between marks.
    Inside,
    /// Behind the byte that makes the next one text.
    Escaped,
    /// Behind a mark that closes the value, or is the first of two that mean one.
    Closing,
    /// Behind blanks behind a mark that closes the value.
    Closed,
    /// In a line that is left out.
    Comment,
}

/// The quotation marks so far.
#[derive(Debug)]
struct Quotes {
    marks: Marks,
    place: Place,
    /// Byte before the next one.
    last: u8,
    /// True before the first byte of a file.
    is_at_start: bool,
    /// Number of the line of the next byte.
    line: u64,
    /// Line of the mark that opened the latest value.
    opened_on: u64,
    /// True if that value has ends of lines.
    has_lines: bool,
    /// Tabs of its line so far, and true if a line of it behind the first one has those of a row.
    num_tabs: usize,
    has_rows: bool,
}

impl Quotes {
    fn new(marks: Marks, is_at_start: bool) -> Self {
        let last = marks.line_end();
        let (has_lines, num_tabs, has_rows) = (false, 0, false);
        Self { marks, place: Place::Outside, last, is_at_start, line: 1, opened_on: 1, has_lines, num_tabs, has_rows }
    }

    /// Takes the next bytes. Returns the first fault.
    fn take(&mut self, bytes: &[u8]) -> Option<Fault> {
        let is_at_start = std::mem::take(&mut self.is_at_start);
        let mut rest = bytes.strip_prefix(MARK).filter(|_| is_at_start).unwrap_or(bytes);
        while !rest.is_empty() {
            let (len, fault) = self.step(rest);
            let (done, behind) = rest.split_at(len);
            self.line += self.num_lines(done);
            self.last = done.last().copied().unwrap_or(self.last);
            if fault.is_some() {
                return fault;
            }
            rest = behind;
        }
        None
    }

    fn at_end(&self) -> Option<Fault> {
        match self.place {
            Place::Inside | Place::Escaped => Some(Fault::Open { line: self.opened_on }),
            Place::Comment if self.marks.line_end() != b'\n' => Some(Fault::Comment { line: self.opened_on }),
            Place::Closing | Place::Closed => self.rows_inside(true),
            _ => None,
        }
    }

    fn num_lines(&self, bytes: &[u8]) -> u64 {
        u64::try_from(memchr_iter(self.marks.line_end(), bytes).count()).unwrap_or(u64::MAX)
    }

    /// Looks at bytes up to the next place. Returns their number.
    fn step(&mut self, bytes: &[u8]) -> (usize, Option<Fault>) {
        match self.place {
            Place::Outside => (self.outside(bytes), None),
            Place::Inside => (self.inside(bytes), None),
            Place::Escaped => {
                self.place = Place::Inside;
                self.has_lines |= self.marks.ends_row(bytes[0]);
                (1, None)
            }
            Place::Closing if bytes[0] == self.marks.quote => {
                self.place = Place::Inside;
                (1, None)
            }
            Place::Closing | Place::Closed => self.closed(bytes[0]),
            Place::Comment => (self.comment(bytes), None),
        }
    }

    fn outside(&mut self, bytes: &[u8]) -> usize {
        let Marks { quote, comment, .. } = self.marks;
        let found = match comment {
            Some(comment) => memchr2(quote, comment, bytes),
            None => memchr(quote, bytes),
        };
        let Some(idx) = found else { return bytes.len() };
        let before = idx.checked_sub(1).map_or(self.last, |before| bytes[before]);
        let begins_row = self.marks.ends_row(before);
        if begins_row && comment == Some(bytes[idx]) {
            self.place = Place::Comment;
            self.opened_on = self.line + self.num_lines(&bytes[..idx]);
        } else if bytes[idx] == quote && (begins_row || before == self.marks.delimiter) {
            self.place = Place::Inside;
            self.opened_on = self.line + self.num_lines(&bytes[..idx]);
            self.has_lines = false;
            self.num_tabs = 0;
            self.has_rows = false;
        }
        idx + 1
    }

    fn inside(&mut self, bytes: &[u8]) -> usize {
        let found = match self.marks.escape {
            Some(escape) => memchr2(self.marks.quote, escape, bytes),
            None => memchr(self.marks.quote, bytes),
        };
        self.take_text(&bytes[..found.unwrap_or(bytes.len())]);
        let Some(idx) = found else { return bytes.len() };
        let is_quote = bytes[idx] == self.marks.quote;
        self.place = if is_quote { Place::Closing } else { Place::Escaped };
        idx + 1
    }

    /// Returns the fault of a value that is closed, at the end of a row or before, if a line of it looks like a row.
    fn rows_inside(&self, is_row_end: bool) -> Option<Fault> {
        let is_last_row = is_row_end && self.has_lines && Some(self.num_tabs) == self.marks.num_tabs;
        (self.has_rows || is_last_row).then_some(Fault::RowsInside { line: self.opened_on, end: self.line })
    }

    /// Looks at text between marks.
    fn take_text(&mut self, text: &[u8]) {
        let Some(num_tabs) = self.marks.num_tabs else {
            self.has_lines |= self.marks.has_row_end(text);
            return;
        };
        for &byte in text {
            if byte == b'\t' {
                self.num_tabs += 1;
            } else if self.marks.ends_row(byte) {
                self.has_rows |= self.has_lines && self.num_tabs == num_tabs;
                self.has_lines = true;
                self.num_tabs = 0;
            }
        }
    }

    /// Looks at the byte behind a closing mark, and blanks, which some programs write there.
    fn closed(&mut self, byte: u8) -> (usize, Option<Fault>) {
        let ends_value = byte == self.marks.delimiter || self.marks.ends_row(byte);
        if !ends_value && matches!(byte, b' ' | b'\t') {
            self.place = Place::Closed;
            return (1, None);
        }
        self.place = Place::Outside;
        if !ends_value && (self.has_lines || self.marks.num_tabs.is_some()) {
            return (1, Some(Fault::TextBehind { line: self.opened_on, end: self.line }));
        }
        (1, self.rows_inside(byte != self.marks.delimiter))
    }

    /// Looks for the end of a comment. The decoder sees none where another byte than `\n` ends rows.
    fn comment(&mut self, bytes: &[u8]) -> usize {
        let end = memchr(b'\n', bytes).filter(|_| self.marks.line_end() == b'\n');
        let Some(idx) = end else { return bytes.len() };
        self.place = Place::Outside;
        idx + 1
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Array, AsArray};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use testkit::random::Random;

    use super::*;

    const MARKS: Marks =
        Marks { quote: b'"', delimiter: b',', terminator: None, escape: None, comment: None, num_tabs: None };
    const OTHER: Marks = Marks {
        quote: b'\'',
        delimiter: b';',
        terminator: Some(b'|'),
        escape: Some(b'\\'),
        comment: Some(b'#'),
        num_tabs: None,
    };
    const TABS: Marks = Marks { delimiter: b'\t', num_tabs: Some(1), ..MARKS };

    fn fault_of(marks: Marks, text: &str) -> Option<Fault> {
        let mut quotes = Quotes::new(marks, true);
        quotes.take(text.as_bytes()).or_else(|| quotes.at_end())
    }

    #[test]
    fn values_that_take_rows_are_faults() {
        for (text, fault) in [
            ("a,b\n1,\"x\n2,y\n", Fault::Open { line: 2 }),
            ("\"", Fault::Open { line: 1 }),
            ("\u{feff}\"a\nb", Fault::Open { line: 1 }),
            ("1,\"x\"\"\n", Fault::Open { line: 1 }),
            ("1,\"x\r2,\"y", Fault::TextBehind { line: 1, end: 1 }),
            ("1,2\n1,\"x\n3,\"y\",z\n", Fault::TextBehind { line: 2, end: 3 }),
        ] {
            assert_eq!(fault_of(MARKS, text), Some(fault), "{text:?}");
        }
        for text in ["", "a,\"b\nc\"\n", "5\" tape\n", "\"x\" y,z\n", "\"a\nb\" ,c\n", "a,\"\"", "\"a\"\"\n\"\"\"\r\n"]
        {
            assert_eq!(fault_of(MARKS, text), None, "{text:?}");
        }
        assert_eq!(fault_of(OTHER, "1;'x\\'|'|2;'y'|"), None);
        assert_eq!(fault_of(OTHER, "1;2|'x\\'"), Some(Fault::Open { line: 2 }));
        assert_eq!(fault_of(OTHER, "1;2|#x\n3;4|"), Some(Fault::Comment { line: 2 }));
    }

    #[test]
    fn marks_between_tabs_that_can_only_be_text_are_faults() {
        for (text, fault) in [
            ("1\t\"a\" b\n", Fault::TextBehind { line: 1, end: 1 }),
            ("1\tx\n2\t\"a\"b\n", Fault::TextBehind { line: 2, end: 2 }),
            ("1\t\"a\n2\tb\n3\tc\"\n4\td\n", Fault::RowsInside { line: 1, end: 3 }),
            ("1\t\"a\r\n2\tb\r\n3\tc\"", Fault::RowsInside { line: 1, end: 3 }),
            ("1\t\"a\n2\tb\"\n3\tc\n", Fault::RowsInside { line: 1, end: 2 }),
            ("1\t\"a\n2\tb\"", Fault::RowsInside { line: 1, end: 2 }),
            ("1\t\"a\n2\tb\n", Fault::Open { line: 1 }),
        ] {
            assert_eq!(fault_of(TABS, text), Some(fault), "{text:?}");
        }
        for text in [
            "1\t\"a\nb\"\n",
            "1\t\"say \"\"a\"\" b\"\n2\t5\" tape\n",
            "1\t\"a\n\nb\tc\td\ne\"\r\n",
            "\"a\nb\tc\"\t2\n",
            "1\t\"a\tb\"\n\"2\"\t\"\"\n",
            "1\t\"a\"",
        ] {
            assert_eq!(fault_of(TABS, text), None, "{text:?}");
        }
        let three = Marks { num_tabs: Some(2), ..TABS };
        assert_eq!(fault_of(three, "1\t\"a\nx\ty\nc\"\t\n"), None);
    }

    #[test]
    fn any_division_into_pieces_has_the_same_end() {
        let signs = ["\"", ",", "\n", "a", "#", "\r\n", "\\", " ", "\t"];
        let marks = Marks { escape: Some(b'\\'), comment: Some(b'#'), ..MARKS };
        for (case, marks) in (0..8000).map(|case| (case, if case % 2 == 0 { marks } else { TABS })) {
            let random = &mut Random(case);
            let text: String = (0..random.below(20)).map(|_| *random.pick(&signs)).collect();
            let mut pieces = Quotes::new(marks, true);
            let fault = text.bytes().find_map(|byte| pieces.take(&[byte])).or_else(|| pieces.at_end());
            assert_eq!(fault_of(marks, &text), fault, "{text:?}");
        }
    }

    /// A row of its own behind the text is the last one of Arrow's decoder where no value is open before it.
    #[test]
    fn a_value_is_open_where_arrow_takes_the_next_row_for_its_text() {
        for (marks, signs) in [
            (MARKS, ["\"", "\n", "a", "\r\n", "\"\"", " "]),
            (Marks { escape: Some(b'\\'), comment: Some(b'#'), ..MARKS }, ["\"", "\n", "a", "#", "\\", " "]),
            (OTHER, ["'", "|", "a", "#", "\\", "\n"]),
        ] {
            let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
            for case in 0..4000 {
                let random = &mut Random(case);
                let text: String = (0..random.below(14)).map(|_| *random.pick(&signs)).collect();
                let end = char::from(marks.line_end());
                let options = datafusion::common::config::CsvOptions {
                    has_header: Some(false),
                    delimiter: marks.delimiter,
                    quote: marks.quote,
                    terminator: marks.terminator,
                    escape: marks.escape,
                    comment: marks.comment,
                    ..Default::default()
                };
                let source = CsvSource::new(Arc::clone(&schema)).with_csv_options(options);
                let reader = reader_of(&source, vec![0], 8192, false);
                let rows = reader.build(std::io::Cursor::new(format!("{text}{end}end"))).unwrap();
                let rows = rows.last().unwrap().unwrap();
                let cells = rows.column(0).as_string::<i32>();
                let is_alone = cells.value(cells.len() - 1) == "end";
                let mut quotes = Quotes::new(marks, true);
                for byte in format!("{text}{end}").bytes() {
                    // The decoder goes on behind text that follows a closing mark.
                    let _ = quotes.take(&[byte]);
                }
                assert_eq!(quotes.at_end().is_none(), is_alone, "{text:?}");
            }
        }
    }
}
