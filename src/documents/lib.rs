//! Readers of documents: files, archives, tables, mailboxes and crawls become texts with paths and columns.
//!
//! ```text
//! Input ─open─▶ bytes ─decompress─▶ text ─┬─ files   one document per file
//!            (members of archives)        ├─ lines   one document per line, or record of lines
//!                                         ├─ jsonl   one document per row: text column ─▶ Batch
//!                                         ├─ csv                           path column ─▶ Batch
//!                                         └─ parquet, arrow, avro          the others  ─▶ ColumnSink
//! ```
//!
//! Readers pass on [`Batch`]es of at most [`BATCH_BYTES`] of text. A document may continue in the
//! next batch, so memory does not grow with a file or a line. A row is held in memory as a whole,
//! and `--max-row-size` limits its size. Messages name options as the command `tadoc ingest` has them.
//!
//! The crate knows Arrow and Parquet, and neither DataFusion nor an object store: a [`StoredFile`] reaches a store.
//! An input whose reader belongs to a feature that a build lacks is an error that names the feature
//! ([`FailureKind::LeftOut`]).
//!
//! | feature | reader |
//! | --- | --- |
//! | `html` | pages as text, and the character sets that they name |
//! | `mail` | mailboxes and messages |
//! | `warc` | crawls |
//! | `office` | zip files, and so the text of what office programs write (docx, pptx, xlsx, odt, odp, ods) |
//!
//! ```
//! use tadoc_documents::{
//!     ArchiveOptions, Batch, ColumnSink, Documents, Input, Outcome, ReadOptions, Sink, Source, read,
//! };
//! # use arrow::{array::RecordBatch, datatypes::Schema};
//!
//! #[derive(Default)]
//! struct Texts(Vec<String>);
//!
//! impl Sink for Texts {
//!     fn take(&mut self, batch: Batch) -> Outcome {
//!         self.0.extend(batch.iter().map(|part| String::from_utf8_lossy(part.text).into_owned()));
//!         Ok(())
//!     }
//! }
//! # struct NoColumns;
//! # impl ColumnSink for NoColumns {
//! #     fn check(&self, _: &Schema, _: &str) -> Outcome { Ok(()) }
//! #     fn push(&mut self, _: &RecordBatch) -> Outcome { Ok(()) }
//! #     fn num_columns(&self) -> usize { 0 }
//! # }
//!
//! # fn main() -> Outcome {
//! let source = Source::Text { bytes: "to be\nto do\n".into(), lines_before: 0 };
//! let inputs = [Input::new(source, "a.txt".to_owned(), 12)];
//! let (lines, options) = (Documents::Lines.into(), ReadOptions::default());
//! let mut texts = Texts::default();
//! read(&inputs, &lines, options, &ArchiveOptions::default(), &mut NoColumns, &mut texts)?;
//! assert_eq!(texts.0, ["to be", "to do"]);
//! # Ok(())
//! # }
//! ```

#![cfg_attr(
    not(all(feature = "html", feature = "mail", feature = "office", feature = "warc")),
    allow(dead_code, unused_imports, reason = "what only the readers of a feature use")
)]

mod archives;
mod arrow_files;
mod avro;
mod charset;
pub mod columns;
mod csv;
mod csv_rows;
mod decoders;
pub mod display;
pub mod failure;
#[cfg(any(feature = "mail", feature = "warc"))]
mod headers;
mod html;
mod inputs;
mod json_chunk;
mod json_mend;
mod json_objects;
mod json_shape;
mod jsonl;
mod lines;
mod log_lines;
#[cfg(feature = "mail")]
mod mail;
#[cfg(feature = "office")]
mod office;
mod open;
pub mod pattern;
mod remarks;
mod timestamps;
#[cfg(feature = "warc")]
mod warc;

use std::fmt;
use std::io::{self, BufRead};
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;

use regex::bytes::Regex;

pub use self::archives::ArchiveOptions;
use self::archives::Archives;
pub use self::charset::Charset;
pub use self::columns::{ColumnSink, Numbers};
use self::columns::{NoColumns, Rows};
pub use self::csv::{Dialect, Quote};
use self::failure::Faults;
pub use self::failure::{Failure, FailureKind, Outcome};
use self::inputs::Ahead;
pub use self::inputs::{Input, Source, StoredBytes, StoredFile, since_1970};
use self::log_lines::{JoinedParts, Mended, WithoutColours};
pub use self::open::{Counts, ExpansionLimits};
use self::open::{Opened, open};
use self::remarks::{Judged, Tally, Undecoded, Unsearchable};
use self::timestamps::Clock;
pub use self::timestamps::Timestamps;

/// Maximum bytes of text in a batch.
pub const BATCH_BYTES: usize = 4 << 20;

/// Default for the maximum bytes of a row. It equals the default size of a block.
const MAX_ROW_BYTES: u64 = 128 << 20;

/// Default maximum number of user columns.
pub const MAX_COLUMNS: usize = 1000;

/// The unit that becomes one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Documents {
    /// A whole file.
    Files,
    /// A line, without its line end.
    Lines,
    /// A row of JSON lines; the text is in this field.
    Jsonl(String),
    /// A row of CSV, or of a log of Zeek; the text is in this column.
    Csv(String),
    /// A row of CSV with tabs between the cells; the text is in this column.
    Tsv(String),
    /// A row of Parquet; the text is in this column.
    Parquet(String),
    /// A row of Arrow IPC, a stream or a file; the text is in this column.
    Arrow(String),
    /// A row of Avro; the text is in this field.
    Avro(String),
    /// A response, resource or conversion of WARC.
    Warc,
    /// A message of a mailbox, or a file with one message.
    Mbox,
}

impl FromStr for Documents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, column) = match text.split_once(':') {
            Some((kind, column)) => (kind, Some(column).filter(|column| !column.is_empty())),
            None => (text, None),
        };
        match (kind, column.map(str::to_owned)) {
            ("files", None) => Ok(Self::Files),
            ("lines", None) => Ok(Self::Lines),
            ("warc", None) => Ok(Self::Warc),
            ("mbox", None) => Ok(Self::Mbox),
            ("jsonl" | "ndjson", Some(field)) => Ok(Self::Jsonl(field)),
            ("csv", Some(column)) => Ok(Self::Csv(column)),
            ("tsv", Some(column)) => Ok(Self::Tsv(column)),
            ("parquet", Some(column)) => Ok(Self::Parquet(column)),
            ("arrow" | "feather", Some(column)) => Ok(Self::Arrow(column)),
            ("avro", Some(field)) => Ok(Self::Avro(field)),
            ("jsonl" | "ndjson" | "csv" | "tsv" | "parquet" | "arrow" | "feather" | "avro", None) => {
                Err(format!("say which column holds the text, such as {kind}:text"))
            }
            _ => {
                let tables = "jsonl:FIELD, csv:COLUMN, tsv:COLUMN, parquet:COLUMN, arrow:COLUMN, \
                              avro:FIELD";
                Err(format!("expected files, lines, {tables}, warc or mbox"))
            }
        }
    }
}

impl fmt::Display for Documents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files => write!(f, "files"),
            Self::Lines => write!(f, "lines"),
            Self::Warc => write!(f, "warc"),
            Self::Mbox => write!(f, "mbox"),
            Self::Jsonl(field) => write!(f, "jsonl:{field}"),
            Self::Csv(column) => write!(f, "csv:{column}"),
            Self::Tsv(column) => write!(f, "tsv:{column}"),
            Self::Parquet(column) => write!(f, "parquet:{column}"),
            Self::Arrow(column) => write!(f, "arrow:{column}"),
            Self::Avro(field) => write!(f, "avro:{field}"),
        }
    }
}

/// The division of inputs into documents, and the place of their timestamps.
#[derive(Debug, Clone)]
pub struct Division {
    /// The unit that becomes one document.
    pub documents: Documents,
    /// Matches the first line of a record, if a document is a record of several lines.
    pub record_start: Option<Regex>,
    /// Place of the timestamps, if there is to be a column of them.
    pub timestamps: Option<Timestamps>,
    /// Form of the rows of CSV.
    pub dialect: Dialect,
}

impl From<Documents> for Division {
    fn from(documents: Documents) -> Self {
        Self { documents, record_start: None, timestamps: None, dialect: Dialect::default() }
    }
}

/// Options for reading inputs.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions {
    /// If true, compressed inputs are decompressed.
    pub decompress: bool,
    /// Limits of decompression.
    pub expansion: ExpansionLimits,
    /// Maximum bytes of a row.
    pub max_row_bytes: u64,
    /// If true, rows without a text become empty documents instead of an error.
    pub allow_missing: bool,
    /// If true, user columns of rows are kept, besides text and path.
    pub keep_columns: bool,
    /// Maximum number of user columns, with the fields of structures.
    pub max_columns: usize,
    /// If true, HTML becomes text, and so do messages.
    pub html_to_text: bool,
    /// If true, office files are one document with their text, and not their members. It is for files and lines.
    pub office_to_text: bool,
    /// Character set of the text. `None` keeps the bytes, and warns if they are UTF-16.
    pub charset: Option<Charset>,
    /// If true, damaged inputs are left out from their damage on, and rows that do not fit are left out.
    pub keep_going: bool,
    /// If true, colour codes of terminals are left out of files and lines. `None` means of lines.
    pub strip_ansi: Option<bool>,
    /// If true, the parts of lines that container runtimes divide are joined.
    pub join_partial: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            decompress: true,
            expansion: ExpansionLimits::DEFAULT,
            max_row_bytes: MAX_ROW_BYTES,
            allow_missing: false,
            keep_columns: true,
            max_columns: MAX_COLUMNS,
            html_to_text: false,
            office_to_text: true,
            charset: None,
            keep_going: false,
            strip_ansi: None,
            join_partial: true,
        }
    }
}

/// A batch of documents, with their texts one after another.
#[derive(Debug, Default)]
pub struct Batch {
    /// Texts of the documents.
    pub text: Vec<u8>,
    /// Path of each document, and the end of its text.
    pub documents: Vec<(Arc<str>, usize)>,
    /// True if the last document continues in the next batch.
    pub goes_on: bool,
    /// Bytes read since the previous batch.
    pub read: Counts,
}

/// A document, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentText<'a> {
    /// Path of the document.
    pub path: &'a str,
    /// Next bytes of the document's text.
    pub text: &'a [u8],
    /// True if the document ends with these bytes.
    pub is_last: bool,
}

impl Batch {
    /// Ends the document whose bytes have been appended to `text`.
    pub fn end_document(&mut self, path: &Arc<str>) {
        self.documents.push((path.clone(), self.text.len()));
    }

    /// Returns the documents in order.
    pub fn iter(&self) -> impl Iterator<Item = DocumentText<'_>> {
        let mut begin = 0;
        self.documents.iter().enumerate().map(move |(idx, (path, end))| {
            let text = &self.text[begin..*end];
            begin = *end;
            DocumentText { path, text, is_last: !(self.goes_on && idx + 1 == self.documents.len()) }
        })
    }
}

/// A receiver of batches.
pub trait Sink {
    /// Takes a batch. Waits while the receiver is busy.
    ///
    /// # Errors
    /// The receiver takes no more batches.
    fn take(&mut self, batch: Batch) -> Outcome;
}

/// The result of reading inputs, besides their documents.
#[derive(Default)]
pub struct Read {
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Faults of inputs that were left out from there on.
    pub faults: Vec<String>,
}

/// Reads all `inputs` in order, and the members of archives among them. `sink` gets their documents, and `columns`
/// the user columns of rows.
///
/// # Errors
/// A file cannot be read, or it does not fit `division`. The text names the file, the line if
/// there are lines, and the remedy.
pub fn read(
    inputs: &[Input],
    division: &Division,
    options: ReadOptions,
    archives: &ArchiveOptions,
    columns: &mut dyn ColumnSink,
    sink: &mut dyn Sink,
) -> Outcome<Read> {
    let mut clock = division.timestamps.as_ref().map(Clock::new);
    read_by(&mut clock, inputs, division, options, archives, columns, sink)
}

/// Reads the timestamps of the lines of all `inputs`, and returns a table of their forms with shares and examples.
///
/// # Errors
/// Same as [`read`].
pub fn explain_timestamps(
    inputs: &[Input],
    division: &Division,
    options: ReadOptions,
    archives: &ArchiveOptions,
) -> Outcome<Vec<String>> {
    let mut clock = division.timestamps.as_ref().map(Clock::explaining);
    read_by(&mut clock, inputs, division, options, archives, &mut NoColumns, &mut Nowhere)?;
    Ok(clock.and_then(|clock| clock.explanation()).unwrap_or_default())
}

/// A receiver that drops all documents.
struct Nowhere;

impl Sink for Nowhere {
    fn take(&mut self, _batch: Batch) -> Outcome {
        Ok(())
    }
}

fn read_by(
    clock: &mut Option<Clock>,
    inputs: &[Input],
    division: &Division,
    options: ReadOptions,
    archives: &ArchiveOptions,
    columns: &mut dyn ColumnSink,
    sink: &mut dyn Sink,
) -> Outcome<Read> {
    let faults = Faults::new(options.keep_going);
    let mut sink = Gather::new(sink, &faults);
    let mut archives = Archives::new(archives);
    if options.office_to_text && matches!(division.documents, Documents::Files | Documents::Lines) {
        archives = archives.with_office_text(options.max_row_bytes);
    }
    for (input, reader) in Ahead::new(inputs) {
        let changed = clock.as_ref().map(|_| timestamps::changed(input));
        let mut visit = |opened: Opened<'_>, input: &Input, head: &[u8]| {
            let columns = &mut *columns;
            let mut clock = clock.as_mut();
            if let (Some(clock), Some(changed)) = (&mut clock, changed) {
                clock.enter(input.changed.unwrap_or(changed), &opened.changed);
            }
            let rows = &mut Rows { input, options, columns, clock, sink: &mut sink };
            let outcome = read_one(division, opened, head, rows);
            match division.documents {
                Documents::Files | Documents::Lines if outcome.is_err() => {
                    sink.end_open_document()?;
                }
                _ => {}
            }
            outcome
        };
        let outcome = open(input, reader, options.decompress, options.expansion, &faults)
            .and_then(|opened| archives.visit(opened, input, &mut visit));
        faults.pass(input, outcome)?;
    }
    sink.flush()?;
    let mut warnings = sink.unsearchable.warnings();
    warnings.extend(archives.warnings());
    warnings.extend(clock.as_ref().and_then(Clock::warning));
    let notes = sink.notes();
    Ok(Read { warnings, notes, faults: faults.warnings() })
}

/// Reads one input, which begins with `head`.
fn read_one(division: &Division, opened: Opened<'_>, head: &[u8], rows: &mut Rows<'_, '_>) -> Outcome {
    let input = rows.input;
    let options = rows.options;
    let page = html::Form::from_path(&input.path).filter(|_| options.html_to_text);
    let opened = match options.charset {
        Some(charset) if page.is_none() && charset != Charset::Keep => opened.in_utf8(charset, input)?,
        _ => opened,
    };
    let damage = Rc::clone(&opened.damage);
    let outcome = match &division.documents {
        Documents::Jsonl(field) => jsonl::read(field, opened, rows),
        Documents::Csv(column) | Documents::Tsv(column) if csv::is_zeek_log(head) => {
            csv::read_zeek(column, opened, rows)
        }
        Documents::Csv(column) => csv::read(column, division.dialect, opened, rows),
        Documents::Tsv(column) => {
            let delimiter = division.dialect.delimiter.or(Some(b'\t'));
            csv::read(column, Dialect { delimiter, ..division.dialect }, opened, rows)
        }
        Documents::Parquet(column) => arrow_files::read_parquet(column, opened, rows),
        Documents::Arrow(column) => arrow_files::read_ipc(column, opened, rows),
        Documents::Avro(field) => avro::read(field, opened, rows),
        #[cfg(feature = "warc")]
        Documents::Warc => warc::read(opened, head, rows),
        #[cfg(not(feature = "warc"))]
        Documents::Warc => Err(Failure::left_out("crawls (WARC)", "warc").within(input.shown())),
        #[cfg(feature = "mail")]
        Documents::Mbox => mail::read(opened, rows),
        #[cfg(not(feature = "mail"))]
        Documents::Mbox => Err(Failure::left_out("mailboxes", "mail").within(input.shown())),
        Documents::Lines => {
            rows.sink.count_unsearchable(input, options, head, opened.codec.is_some());
            let opened = rows.sink.mended(opened, head, options);
            match &division.record_start {
                None if rows.clock.is_none() => lines::read_lines(opened, input, rows.sink),
                start => lines::read_records(opened, start.as_ref(), rows),
            }
        }
        Documents::Files => match page {
            Some(form) => {
                // A page says its character set.
                let is_unpacked = opened.codec.is_some();
                let charset = options.charset.or(Some(Charset::Mark));
                let options = ReadOptions { charset, ..options };
                rows.sink.count_unsearchable(input, options, head, is_unpacked);
                html::read_file(form, opened, rows)
            }
            None => {
                rows.sink.count_unsearchable(input, options, head, opened.codec.is_some());
                let opened = match options.strip_ansi {
                    Some(true) => rows.sink.without_colours(opened),
                    _ => opened,
                };
                lines::read_file(opened, input, rows.sink)
            }
        },
    };
    if let Some(charset) = damage.get() {
        rows.sink.undecoded.add_damaged(charset, input);
    }
    outcome
}

/// Joins small documents into batches, and divides long ones.
pub struct Gather<'a> {
    batch: Batch,
    unsearchable: Unsearchable,
    undecoded: Undecoded,
    /// Cells of CSV with text behind the closing quote.
    odd_cells: Tally,
    /// Colour codes that were left out.
    colours: Mended,
    /// Parts of lines that were joined.
    joined_parts: Mended,
    /// Rows of JSON with values that the standard does not have.
    odd_rows: Tally,
    /// Messages that were being delivered.
    undelivered: Tally,
    faults: Faults,
    /// Path of the document that has bytes and no end yet.
    open: Option<Arc<str>>,
    sink: &'a mut dyn Sink,
}

impl<'a> Gather<'a> {
    fn new(sink: &'a mut dyn Sink, faults: &Faults) -> Self {
        Self {
            batch: Batch::default(),
            unsearchable: Unsearchable::default(),
            undecoded: Undecoded::default(),
            odd_cells: Tally::default(),
            colours: Mended::default(),
            joined_parts: Mended::default(),
            odd_rows: Tally::default(),
            undelivered: Tally::default(),
            faults: faults.clone(),
            open: None,
            sink,
        }
    }

    /// Adds one document.
    fn push(&mut self, path: &Arc<str>, text: &[u8]) -> Outcome {
        self.append(path, text)?;
        self.end_document(path)
    }

    /// Appends text to the open document.
    fn append(&mut self, path: &Arc<str>, mut text: &[u8]) -> Outcome {
        if self.open.is_none() && !text.is_empty() {
            self.open = Some(Arc::clone(path));
        }
        while !text.is_empty() {
            let room = BATCH_BYTES - self.batch.text.len();
            let (now, later) = text.split_at(room.min(text.len()));
            self.batch.text.extend_from_slice(now);
            text = later;
            if self.batch.text.len() == BATCH_BYTES {
                self.batch.end_document(path);
                self.batch.goes_on = true;
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Appends all bytes of `reader` to the open document.
    fn append_from(
        &mut self,
        path: &Arc<str>,
        reader: &mut dyn BufRead,
        failed: &dyn Fn(io::Error) -> Failure,
    ) -> Outcome {
        while !lines::is_at_end(reader).map_err(failed)? {
            let bytes = reader.fill_buf().map_err(failed)?;
            let len = bytes.len();
            self.append(path, bytes)?;
            reader.consume(len);
        }
        Ok(())
    }

    /// Ends the document that a fault has left open.
    fn end_open_document(&mut self) -> Outcome {
        match self.open.take() {
            Some(path) => self.end_document(&path),
            None => Ok(()),
        }
    }

    /// Ends the open document.
    fn end_document(&mut self, path: &Arc<str>) -> Outcome {
        self.open = None;
        self.batch.end_document(path);
        // Empty documents count too, so that a batch does not collect a million of them.
        if self.batch.text.len() + 64 * self.batch.documents.len() < BATCH_BYTES { Ok(()) } else { self.flush() }
    }

    /// Adds to the number of bytes read.
    fn count_read(&mut self, read: Counts) {
        self.batch.read += read;
    }

    /// Notes that `input` cannot be searched if `head` says so, unless its bytes are wanted.
    fn count_unsearchable(&mut self, input: &Input, options: ReadOptions, head: &[u8], is_unpacked: bool) {
        if options.decompress && options.charset != Some(Charset::Keep) {
            let has_charset = options.charset.is_some();
            let is_kept = matches!(options.charset, None | Some(Charset::Mark));
            self.unsearchable.count(input, Judged { head, is_unpacked, has_charset, is_kept });
        }
    }

    /// Notes that `input` goes on with `bytes`, if they are no text as those before.
    fn watch(&mut self, input: &Input, bytes: &[u8]) {
        self.unsearchable.watch(input, bytes);
    }

    /// Returns an input of lines, which begins with `head`, without colour codes and with the parts of lines joined.
    fn mended<'o>(&self, opened: Opened<'o>, head: &[u8], options: ReadOptions) -> Opened<'o> {
        let opened = if options.strip_ansi == Some(false) { opened } else { self.without_colours(opened) };
        if !options.join_partial || !log_lines::is_of_container(head) {
            return opened;
        }
        let max_line_bytes = usize::try_from(options.max_row_bytes).unwrap_or(usize::MAX);
        opened.map(|reader| Box::new(JoinedParts::new(reader, max_line_bytes, &self.joined_parts)))
    }

    fn without_colours<'o>(&self, opened: Opened<'o>) -> Opened<'o> {
        opened.map(|reader| Box::new(WithoutColours::new(reader, &self.colours)))
    }

    /// Returns what is said once about all inputs, besides warnings.
    fn notes(&self) -> Vec<String> {
        let odd_cells = self.odd_cells.first().map(|(count, first)| {
            format!(
                "{} with text behind the closing quote lost the quotes ({first}); where quotation marks are \
                 text, pass --quote none",
                display::plural(count, "cell")
            )
        });
        let odd_rows = remarks::odd_rows(&self.odd_rows);
        let colours = Some(self.colours.get()).filter(|&num_codes| num_codes > 0).map(|num_codes| {
            format!("{} left out of the text; --strip-ansi=never keeps them", display::plural(num_codes, "colour code"))
        });
        let joined = Some(self.joined_parts.get()).filter(|&num_parts| num_parts > 0).map(|num_parts| {
            let parts = display::plural(num_parts, "part");
            format!("{parts} of lines of containers joined; --join-partial never keeps them apart")
        });
        let undelivered = remarks::undelivered(&self.undelivered);
        let notes = odd_cells.into_iter().chain(odd_rows).chain(colours).chain(joined).chain(undelivered);
        let notes = notes.chain(self.undecoded.notes());
        notes.chain(self.unsearchable.notes()).collect()
    }

    fn flush(&mut self) -> Outcome {
        let batch = std::mem::take(&mut self.batch);
        if batch.documents.is_empty() && batch.read == Counts::default() {
            Ok(())
        } else {
            self.sink.take(batch).inspect_err(|_| self.faults.end())
        }
    }
}

#[cfg(test)]
mod tests;
