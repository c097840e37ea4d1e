//! The text of an office file as it grows: paragraphs as lines, cells and rows of tables, and text that stands aside.
//!
//! ```text
//! a paragraph, with a box ─ in it ─▶  line of the paragraph       body
//!                                     lines of the box
//! a note ──────────────────────────▶  lines of the note           behind the body
//! ```
//!
//! The body goes to memory, and from [`MEMORY_BYTES`] on to a temporary file. All of it counts for the limits of
//! expansion, because cells may be repeated. Text that stands aside stays in memory, within `--max-row-size`.

use std::io::{self, Seek, Write};
use std::sync::Arc;

use tempfile::SpooledTempFile;

use super::Fault;
use crate::open::{Budget, Counters};

/// Bytes of text in memory.
const MEMORY_BYTES: usize = 4 << 20;
/// Bytes of text that are written at once.
const WRITE_BYTES: usize = 64 << 10;

/// Text of an office file.
pub struct Text {
    body: Lines,
    /// Texts that have begun in each other.
    aside: Vec<(Lines, Aside)>,
    behind_body: String,
    /// Bytes of text that stood aside.
    aside_bytes: u64,
    max_aside_bytes: u64,
    file: SpooledTempFile,
    budget: Budget,
    counters: Counters,
}

/// The place of a text that stands aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aside {
    /// Behind the line of the paragraph around it.
    Box,
    /// Behind the body.
    Note,
}

#[derive(Default)]
struct Lines {
    text: String,
    /// Boxes of the line that has not ended.
    boxes: String,
    /// True if the cell has a line.
    has_line: bool,
}

impl Text {
    /// Creates an empty text. It counts for `counters`, and `max_aside_bytes` of it may stand aside.
    pub fn new(budget: &Budget, counters: &Counters, max_aside_bytes: u64) -> Self {
        Self {
            body: Lines::default(),
            aside: Vec::new(),
            behind_body: String::new(),
            aside_bytes: 0,
            max_aside_bytes,
            file: SpooledTempFile::new(MEMORY_BYTES),
            budget: budget.clone(),
            counters: counters.clone(),
        }
    }

    fn lines(&mut self) -> &mut Lines {
        match self.aside.last_mut() {
            Some((lines, _)) => lines,
            None => &mut self.body,
        }
    }

    /// Appends to the line.
    ///
    /// # Errors
    /// The text exceeds a limit, or the temporary file cannot be written.
    pub fn push(&mut self, text: &str) -> Result<(), Fault> {
        self.lines().text.push_str(text);
        if self.aside.is_empty() {
            return if self.body.text.len() < WRITE_BYTES { Ok(()) } else { self.write() };
        }
        self.hold(text.len() as u64)
    }

    /// Appends to the line, with a blank for each line end.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn push_in_line(&mut self, text: &str) -> Result<(), Fault> {
        if text.contains(['\n', '\r']) { self.push(&text.replace(['\n', '\r'], " ")) } else { self.push(text) }
    }

    /// Counts bytes that are held in memory.
    ///
    /// # Errors
    /// There are too many.
    pub fn hold(&mut self, len_bytes: u64) -> Result<(), Fault> {
        self.aside_bytes += len_bytes;
        self.check_held(0)
    }

    /// Checks that `more_bytes` may be held in memory, too.
    ///
    /// # Errors
    /// There are too many.
    pub fn check_held(&self, more_bytes: u64) -> Result<(), Fault> {
        if self.aside_bytes + more_bytes > self.max_aside_bytes { Err(Fault::TooLong) } else { Ok(()) }
    }

    /// Ends the line of a paragraph.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn end_paragraph(&mut self) -> Result<(), Fault> {
        self.lines().has_line = true;
        self.push("\n")?;
        self.end_boxes()
    }

    /// Appends the boxes of the line.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn end_boxes(&mut self) -> Result<(), Fault> {
        let boxes = std::mem::take(&mut self.lines().boxes);
        self.push(&boxes)
    }

    /// Begins a cell of a table.
    pub fn begin_cell(&mut self) {
        self.lines().has_line = false;
    }

    /// Ends a cell of a table.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn end_cell(&mut self) -> Result<(), Fault> {
        let lines = self.lines();
        if lines.has_line && lines.text.ends_with('\n') {
            lines.text.pop();
        }
        lines.has_line = true;
        self.push("\t")
    }

    /// Ends a row of a table.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn end_row(&mut self) -> Result<(), Fault> {
        let lines = self.lines();
        if lines.text.ends_with('\t') {
            lines.text.pop();
        }
        self.end_paragraph()
    }

    /// Begins a text that stands aside.
    pub fn begin_aside(&mut self, aside: Aside) {
        self.aside.push((Lines::default(), aside));
    }

    /// Ends the innermost text that stands aside.
    pub fn end_aside(&mut self) {
        let Some((lines, aside)) = self.aside.pop() else { return };
        let place = match aside {
            Aside::Box => &mut self.lines().boxes,
            Aside::Note => &mut self.behind_body,
        };
        for text in [lines.text, lines.boxes] {
            place.push_str(&text);
            if !(text.is_empty() || text.ends_with('\n')) {
                place.push('\n');
            }
        }
    }

    /// Ends the innermost text that stands aside, and returns it.
    pub fn take_aside(&mut self) -> String {
        match self.aside.pop() {
            Some((lines, _)) => lines.text + &lines.boxes,
            None => String::new(),
        }
    }

    /// Writes the text of the body but for its last character, which may still change.
    fn write(&mut self) -> Result<(), Fault> {
        let text = &mut self.body.text;
        let end = text.char_indices().next_back().map_or(0, |(at, _)| at);
        self.budget.count(&self.counters, end as u64)?;
        self.file.write_all(&text.as_bytes()[..end])?;
        text.drain(..end);
        Ok(())
    }

    /// Ends the text, and returns a reader of it.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn finish(mut self) -> Result<SpooledTempFile, Fault> {
        let rest = [&self.body.text, &self.body.boxes, &self.behind_body].map(String::as_str).concat();
        self.budget.count(&self.counters, rest.len() as u64)?;
        self.file.write_all(rest.as_bytes())?;
        self.file.rewind()?;
        Ok(self.file)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Read(Arc::new(error))
    }
}
