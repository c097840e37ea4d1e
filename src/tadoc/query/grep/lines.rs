//! Matching lines in a part of a document, with their numbers and neighbours.
//!
//! ```text
//! window    | kept lines | lines to search         | lines that follow |
//!           0            at                        to             bytes.len()
//! ```
//!
//! A window has whole lines. A line that is found has its neighbours in the window: those before it
//! are kept, and those after it were read. Lines are numbered by counting line ends between one that
//! is found and the next, so each byte is read twice.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use crate::error::{Error, Result};
use crate::query::grep::GrepOptions;
use crate::query::grep::line_pattern::LinePattern;

/// A line of a document, with its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepLine<'a> {
    /// Id of the document.
    pub doc_id: u64,
    /// Number of the line in the document, from 1.
    pub line_number: u64,
    /// Number of bytes of the document before the line.
    pub line_offset: u64,
    /// The line, without its end.
    pub line: &'a [u8],
    /// Place of the first match in `line`; all of it if lines without a match are selected.
    pub matched: Range<usize>,
    /// The lines before it, each with its end.
    pub before: &'a [u8],
    /// The lines after it, each with its end, which the last one of a document may lack.
    pub after: &'a [u8],
}

impl GrepLine<'_> {
    /// Returns the number of bytes of the document before the match.
    pub fn byte_offset(&self) -> u64 {
        self.line_offset + self.matched.start as u64
    }

    /// Returns the length of the match in bytes.
    pub fn byte_len(&self) -> u64 {
        self.matched.len() as u64
    }
}

/// Part of a document. See the module's description.
pub(super) struct Window<'w> {
    pub bytes: &'w [u8],
    /// End of the lines to search.
    pub to: usize,
}

impl<'w> Window<'w> {
    /// Returns the window of a whole document.
    pub fn whole(bytes: &'w [u8]) -> Self {
        Self { bytes, to: bytes.len() }
    }
}

/// A search through the lines of one document.
pub(super) struct LineSearch<'p> {
    pattern: &'p LinePattern,
    doc_id: u64,
    before: usize,
    after: usize,
    max_bytes: u64,
    num_left: u64,
    /// Offset of the window in the document.
    offset: u64,
    /// Position in the window of the next line to search.
    at: usize,
    /// Number of the line at `at`.
    line_number: u64,
}

impl<'p> LineSearch<'p> {
    pub fn new(pattern: &'p LinePattern, doc_id: u64, options: &GrepOptions<'_>) -> Self {
        Self {
            pattern,
            doc_id,
            before: options.before,
            after: options.after,
            max_bytes: options.max_output_bytes,
            num_left: options.max_lines_per_doc,
            offset: 0,
            at: 0,
            line_number: 1,
        }
    }

    /// Returns true if no more lines of the document are wanted.
    pub fn is_over(&self) -> bool {
        self.num_left == 0
    }

    /// Returns the next line of `window` that the pattern selects.
    ///
    /// # Errors
    /// [`Error::Capacity`] if it is too long with its neighbours.
    pub fn next_line<'w>(&mut self, window: &Window<'w>) -> Result<Option<GrepLine<'w>>> {
        let bytes = window.bytes;
        let found = if self.is_over() {
            None
        } else {
            self.pattern.find_line(&bytes[..window.to], self.at)
        };
        let Some((line, matched)) = found else {
            self.advance(bytes, window.to);
            return Ok(None);
        };
        self.num_left -= 1;
        self.advance(bytes, line.start);
        let line_number = self.line_number;
        let next = bytes.len().min(line.end + 1);
        let before = start_of_last_lines(&bytes[..line.start], self.before)..line.start;
        let after = next..next + end_of_first_lines(&bytes[next..], self.after);
        self.check_len((after.end - before.start) as u64)?;
        self.advance(bytes, next);
        Ok(Some(GrepLine {
            doc_id: self.doc_id,
            line_number,
            line_offset: self.offset + line.start as u64,
            matched: matched.start - line.start..matched.end - line.start,
            line: &bytes[line],
            before: &bytes[before],
            after: &bytes[after],
        }))
    }

    /// Continues at position `at` of a window that begins at `offset` of the document. The line there,
    /// which begins there, has the number `line_number`.
    pub fn resume(&mut self, offset: u64, at: usize, line_number: u64) {
        (self.offset, self.at, self.line_number) = (offset, at, line_number);
    }

    /// Returns the number of the line at which the search continues.
    pub fn line_number(&self) -> u64 {
        self.line_number
    }

    /// Continues in a window without `bytes`, its first ones.
    pub fn forget(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        self.at -= bytes.len();
    }

    /// Moves to the line at position `to`.
    fn advance(&mut self, bytes: &[u8], to: usize) {
        self.line_number += memchr_iter(b'\n', &bytes[self.at..to]).count() as u64;
        self.at = to;
    }

    fn check_len(&self, len_bytes: u64) -> Result<()> {
        if len_bytes <= self.max_bytes {
            Ok(())
        } else {
            Err(Error::Capacity {
                what: "a line with its context in bytes",
                requested: len_bytes,
                limit: self.max_bytes,
                knob: "tadoc.max_output_bytes",
            })
        }
    }
}

/// Returns the start of the last `num_lines` lines of `bytes`, which are whole lines; 0 if there are
/// fewer.
pub(super) fn start_of_last_lines(bytes: &[u8], num_lines: usize) -> usize {
    let mut start = bytes.len();
    for _ in 0..num_lines {
        if start == 0 {
            break;
        }
        start = memrchr(b'\n', &bytes[..start - 1]).map_or(0, |at| at + 1);
    }
    start
}

/// Returns the end of the first `num_lines` lines of `bytes`; their length if there are fewer.
fn end_of_first_lines(bytes: &[u8], num_lines: usize) -> usize {
    let mut end = 0;
    for _ in 0..num_lines {
        if end == bytes.len() {
            break;
        }
        end = memchr(b'\n', &bytes[end..]).map_or(bytes.len(), |at| end + at + 1);
    }
    end
}
