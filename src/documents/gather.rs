//! Batches of documents: small documents are joined, long ones are divided.
//!
//! ```text
//! a.txt  b.txt  c.txt: 9 MiB
//! └────── batch ──────┘└── batch ──┘└─ batch: at most BATCH_BYTES of text; the middle two go on
//! ```
//!
//! All readers of an input push into one [`Gather`], which also counts the remarks about them: text that cannot be
//! searched, cells and rows that were mended, colour codes and parts of lines that were left out or joined.

use std::io::{self, BufRead};
use std::sync::Arc;

use crate::charset::Charset;
use crate::decoders::is_at_end;
use crate::failure::{Failure, Faults, Outcome};
use crate::inputs::Input;
use crate::log_lines::{JoinedParts, Mended};
use crate::open::{Counts, Opened};
use crate::options::ReadOptions;
use crate::remarks::{Judged, Tally, Undecoded, Unsearchable};
use crate::terminal_codes::WithoutColours;
use crate::{display, log_lines, remarks};

/// Maximum bytes of text in a batch.
pub const BATCH_BYTES: usize = 4 << 20;

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

/// A receiver that drops all documents.
pub struct Nowhere;

impl Sink for Nowhere {
    fn take(&mut self, _batch: Batch) -> Outcome {
        Ok(())
    }
}

/// Joins small documents into batches, and divides long ones.
pub struct Gather<'a> {
    batch: Batch,
    pub unsearchable: Unsearchable,
    pub undecoded: Undecoded,
    /// Cells of CSV with text behind the closing quote.
    pub odd_cells: Tally,
    /// Colour codes that were left out.
    colours: Mended,
    /// Parts of lines that were joined.
    pub joined_parts: Mended,
    /// Rows of JSON with values that the standard does not have.
    pub odd_rows: Tally,
    /// Messages that were being delivered.
    pub undelivered: Tally,
    pub faults: Faults,
    /// Path of the document that has bytes and no end yet.
    open: Option<Arc<str>>,
    sink: &'a mut dyn Sink,
}

impl<'a> Gather<'a> {
    pub fn new(sink: &'a mut dyn Sink, faults: &Faults) -> Self {
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
    pub fn push(&mut self, path: &Arc<str>, text: &[u8]) -> Outcome {
        self.append(path, text)?;
        self.end_document(path)
    }

    /// Appends text to the open document.
    pub fn append(&mut self, path: &Arc<str>, mut text: &[u8]) -> Outcome {
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
    pub fn append_from(
        &mut self,
        path: &Arc<str>,
        reader: &mut dyn BufRead,
        failed: &dyn Fn(io::Error) -> Failure,
    ) -> Outcome {
        while !is_at_end(reader).map_err(failed)? {
            let bytes = reader.fill_buf().map_err(failed)?;
            let len = bytes.len();
            self.append(path, bytes)?;
            reader.consume(len);
        }
        Ok(())
    }

    /// Ends the document that a fault has left open.
    pub fn end_open_document(&mut self) -> Outcome {
        match self.open.take() {
            Some(path) => self.end_document(&path),
            None => Ok(()),
        }
    }

    /// Ends the open document.
    pub fn end_document(&mut self, path: &Arc<str>) -> Outcome {
        self.open = None;
        self.batch.end_document(path);
        // Empty documents count too, so that a batch does not collect a million of them.
        if self.batch.text.len() + 64 * self.batch.documents.len() < BATCH_BYTES { Ok(()) } else { self.flush() }
    }

    /// Adds to the number of bytes read.
    pub fn count_read(&mut self, read: Counts) {
        self.batch.read += read;
    }

    /// Notes that `input` cannot be searched if `head` says so, unless its bytes are wanted.
    pub fn count_unsearchable(&mut self, input: &Input, options: ReadOptions, head: &[u8], is_unpacked: bool) {
        if options.decompress && options.charset != Some(Charset::Keep) {
            let has_charset = options.charset.is_some();
            let is_kept = matches!(options.charset, None | Some(Charset::Mark));
            self.unsearchable.count(input, Judged { head, is_unpacked, has_charset, is_kept });
        }
    }

    /// Notes that `input` goes on with `bytes`, if they are no text as those before.
    pub fn watch(&mut self, input: &Input, bytes: &[u8]) {
        self.unsearchable.watch(input, bytes);
    }

    /// Returns an input of lines, which begins with `head`, without colour codes and with the parts of lines joined.
    pub fn mended<'o>(&self, opened: Opened<'o>, head: &[u8], options: ReadOptions) -> Opened<'o> {
        let opened = if options.strip_ansi == Some(false) { opened } else { self.without_colours(opened) };
        if !options.join_partial || !log_lines::is_of_container(head) {
            return opened;
        }
        let max_line_bytes = usize::try_from(options.max_row_bytes).unwrap_or(usize::MAX);
        opened.map(|reader| Box::new(JoinedParts::new(reader, max_line_bytes, &self.joined_parts)))
    }

    pub fn without_colours<'o>(&self, opened: Opened<'o>) -> Opened<'o> {
        opened.map(|reader| Box::new(WithoutColours::new(reader, &self.colours)))
    }

    /// Returns what is said once about all inputs, besides warnings.
    pub fn notes(&self) -> Vec<String> {
        let odd_cells = self.odd_cells.first().map(|(count, first)| {
            format!(
                "{} with text behind the closing quote lost the quotes ({first}); where quotation marks are \
                 text, pass --quote none",
                display::plural(count, "cell")
            )
        });
        let odd_rows = remarks::odd_rows(&self.odd_rows);
        let colours = Some(self.colours.get()).filter(|&num_codes| num_codes > 0).map(|num_codes| {
            format!(
                "{} left out of the text; --strip-ansi=never keeps them",
                display::plural(num_codes, "terminal code")
            )
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

    pub fn flush(&mut self) -> Outcome {
        let batch = std::mem::take(&mut self.batch);
        if batch.documents.is_empty() && batch.read == Counts::default() {
            Ok(())
        } else {
            self.sink.take(batch).inspect_err(|_| self.faults.end())
        }
    }
}
