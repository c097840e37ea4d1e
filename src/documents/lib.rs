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
#[cfg(any(feature = "mail", feature = "office"))]
mod code_pages;
pub mod columns;
mod csv;
mod csv_rows;
mod decoders;
pub mod display;
mod documents;
pub mod failure;
mod gather;
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
mod options;
pub mod pattern;
mod plain;
mod remarks;
mod rows;
mod terminal_codes;
mod timestamps;
#[cfg(feature = "warc")]
mod warc;

use std::rc::Rc;

pub use self::archives::ArchiveOptions;
use self::archives::Archives;
pub use self::charset::Charset;
use self::columns::NoColumns;
pub use self::columns::{ColumnSink, Numbers};
pub use self::documents::Documents;
use self::failure::Faults;
pub use self::failure::{Failure, FailureKind, Outcome};
pub use self::gather::{BATCH_BYTES, Batch, DocumentText, Sink};
use self::gather::{Gather, Nowhere};
use self::inputs::Ahead;
pub use self::inputs::{Input, Source, StoredBytes, StoredFile, since_1970};
pub use self::open::{Counts, ExpansionLimits};
use self::open::{Opened, open};
pub use self::options::{Dialect, Division, MAX_COLUMNS, Quote, ReadOptions};
use self::rows::Rows;
use self::timestamps::Clock;
pub use self::timestamps::Timestamps;

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

#[cfg(test)]
mod tests;
