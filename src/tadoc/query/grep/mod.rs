//! Lines that match a regular expression, as `grep` finds them.
//!
//! ```text
//! line_pattern   expression ─▶ automaton that stays inside a line, and case of letters
//! places         expression ─▶ demands: literals of which a matching line has one each
//!                demands ─▶ bytes of a long document that a matching line overlaps
//! lines          text of a document ─▶ matching lines with their neighbours
//! line_counts    grammar ─▶ numbers of matching lines, by line_automaton: states of a line
//!
//! demands ─▶ candidates (grammar) ─┬▶ short: decode, 1 MiB at a time ─▶ lines
//!                                  └▶ long: places (grammar) ─▶ decode around them ─▶ lines
//! ```
//!
//! A line ends at `\n`, which is not part of it. A `\r` in front of it is. The last line may lack
//! its end, and behind a last `\n` there is no line. The result is that of the expression on each
//! line alone, with `^` and `$` at its borders.
//!
//! Documents are decoded together up to [`BATCH_BYTES`], longer ones in pieces of whole lines. So
//! memory is that of a batch, of a line, or of a line with its neighbours, whichever is longest.
//! Cost: that of the candidates ([`TextPattern`](crate::query::TextPattern)), and O(bytes of the
//! candidates). Of a document of [`LONG_BYTES`] or more only the lines around places are decoded,
//! if these are few. `texts` joins the documents of a path and searches them as one text.
//!
//! # Lines
//!
//! ```text
//! window    | kept lines | lines to search         | lines that follow |
//!           0            at                        to             bytes.len()
//! ```
//!
//! A window has whole lines. A line that is found has its neighbours in the window: those before it
//! are kept, and those after it were read. Lines are numbered by counting line ends between one
//! that is found and the next, so each byte is read twice.

mod line_counts;
mod line_pattern;
mod places;
mod texts;

use std::ops::{ControlFlow, Range};

use memchr::{memchr, memchr_iter, memrchr};

use crate::error::{Error, Result};
use crate::read::{DEFAULT_MAX_OUTPUT_BYTES, DocumentDecoder, document_len_bytes, extract_into};
use crate::segment::Corpus;

use super::SearchOptions;
use super::matching::candidates::documents_for_demands;
use super::search::check_num_hits;

use places::{Place, PlaceFinder};
use texts::{JoinedSearch, LineStart};

pub use line_counts::MatchingLineCounter;
pub use line_pattern::{LineExpression, LinePattern, demands_across_lines, is_any_case_by_smart_case};
pub use texts::{PathTexts, SegmentPaths, TextLead, has_line_ends};

/// Bytes of documents that are decoded together.
const BATCH_BYTES: u64 = 1 << 20;
/// Length of a document from which on it is decoded in pieces, and least length of a piece.
const PIECE_BYTES: u64 = 4 << 20;

/// Length of a document from which on it is asked for places.
const LONG_BYTES: u64 = 1 << 20;
/// Bytes before and after places that are decoded first.
const MARGIN_BYTES: u64 = 256;
/// Most bytes between two places that are decoded together, and most bytes of such places.
const GAP_BYTES: u64 = 1 << 10;
const GROUP_BYTES: u64 = 64 << 10;

/// Settings of [`grep`].
#[derive(Debug, Clone, Copy)]
pub struct GrepOptions<'a> {
    /// Documents, limit of the lines, and cancellation.
    pub search: SearchOptions<'a>,
    /// Number of lines before each line.
    pub before: usize,
    /// Number of lines after each line.
    pub after: usize,
    /// Most lines of each document.
    pub max_lines_per_doc: u64,
    /// Most bytes of a line with its neighbours.
    pub max_output_bytes: u64,
}

impl Default for GrepOptions<'_> {
    fn default() -> Self {
        Self {
            search: SearchOptions::default(),
            before: 0,
            after: 0,
            max_lines_per_doc: u64::MAX,
            max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES,
        }
    }
}

/// Calls `visit` with each line that `pattern` selects, in order of document and offset, until it
/// breaks. Documents that cannot have such a line are not decoded.
///
/// # Errors
/// [`Error::OutOfRange`] if there is no document `doc_id` or one of `docs`;
/// [`Error::InvalidArgument`] named `docs` if these do not ascend; [`Error::Capacity`] for more
/// lines than `max_hits`, or for a line with its neighbours of more than `max_output_bytes`;
/// [`Error::Cancelled`].
pub fn grep(
    corpus: &Corpus,
    pattern: &LinePattern,
    options: &GrepOptions<'_>,
    visit: &mut dyn FnMut(&GrepLine<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let selected = options.search.selected(corpus)?;
    let candidates = documents_for_demands(corpus, pattern.demands());
    let docs = match (selected, candidates) {
        (Some(mut docs), Some(candidates)) => {
            docs.retain(|doc_id| candidates.binary_search(doc_id).is_ok());
            docs
        }
        (Some(docs), None) | (None, Some(docs)) => docs,
        (None, None) => (0..corpus.num_docs()).collect(),
    };
    grep_documents(corpus, pattern, &docs, options, visit)
}

/// Variant of [`grep`] that decodes all of `docs`, whatever documents the options choose.
///
/// # Errors
/// As [`grep`].
pub fn grep_documents(
    corpus: &Corpus,
    pattern: &LinePattern,
    docs: &[u64],
    options: &GrepOptions<'_>,
    visit: &mut dyn FnMut(&GrepLine<'_>) -> ControlFlow<()>,
) -> Result<()> {
    grep_texts(corpus, pattern, &PathTexts::default(), docs, options, visit)
}

/// Variant of [`grep_documents`] that searches the documents of a path as one text: they have the line numbers,
/// offsets and neighbours of `texts`. `docs` are in [their order](PathTexts::in_order). The most lines of a document
/// are those of a text. The id of a line in a joined text is that of one of its documents.
///
/// # Errors
/// As [`grep`].
pub fn grep_texts(
    corpus: &Corpus,
    pattern: &LinePattern,
    texts: &PathTexts,
    docs: &[u64],
    options: &GrepOptions<'_>,
    visit: &mut dyn FnMut(&GrepLine<'_>) -> ControlFlow<()>,
) -> Result<()> {
    // A copy has scratch memory of its own, so that threads do not wait for each other's.
    let pattern = pattern.clone();
    let mut search = Search { corpus, pattern: &pattern, options, visit, num_lines: 0, is_over: false };
    let mut decoder = DocumentDecoder::new(corpus.clone(), u64::MAX);
    let mut finder = PlaceFinder::new(corpus, pattern.demands());
    let mut joined = JoinedSearch::new(texts, options);
    let mut rest = docs;
    while let Some(&first) = rest.first()
        && !search.is_over
    {
        let run = texts.run_with(first).filter(|run| texts.is_joined(run.text));
        let len = match run {
            Some(run) => rest.iter().take_while(|doc| run.docs.contains(doc)).count(),
            None => rest.iter().take_while(|&&doc| !texts.is_in_joined(doc)).count(),
        };
        let (docs, behind) = rest.split_at(len);
        rest = behind;
        match run {
            Some(run) => joined.search(&mut search, &mut decoder, &mut finder, run, docs)?,
            None => {
                joined.flush(&mut search, &mut decoder)?;
                search.search_alone(docs, &mut decoder, &mut finder)?;
            }
        }
    }
    joined.flush(&mut search, &mut decoder)
}

/// A search under way.
struct Search<'a, 'v> {
    corpus: &'a Corpus,
    pattern: &'a LinePattern,
    options: &'a GrepOptions<'a>,
    visit: &'v mut dyn FnMut(&GrepLine<'_>) -> ControlFlow<()>,
    num_lines: u64,
    is_over: bool,
}

impl Search<'_, '_> {
    /// Searches `docs`, each of which is a text.
    fn search_alone(
        &mut self,
        docs: &[u64],
        decoder: &mut DocumentDecoder,
        finder: &mut PlaceFinder<'_>,
    ) -> Result<()> {
        let mut ends: Vec<(u64, usize)> = Vec::new();
        for &doc_id in docs {
            let len_bytes = document_len_bytes(self.corpus, doc_id)?;
            let is_long = len_bytes >= LONG_BYTES;
            let places = is_long.then(|| finder.places(doc_id, len_bytes)).flatten();
            if places.is_some() || decoder.bytes().len() as u64 + len_bytes > BATCH_BYTES {
                self.search_batch(decoder.bytes(), &mut ends)?;
                decoder.clear();
            }
            if self.is_over {
                break;
            }
            let mut search = LineSearch::new(self.pattern, doc_id, self.options);
            match places {
                Some(places) => self.search_places(&mut search, doc_id, len_bytes, &places)?,
                None if len_bytes > PIECE_BYTES => self.search_in_pieces(&mut search, doc_id, len_bytes, b"")?,
                None => {
                    decoder.append_document(doc_id)?;
                    ends.push((doc_id, decoder.bytes().len()));
                }
            }
        }
        self.search_batch(decoder.bytes(), &mut ends)?;
        decoder.clear();
        Ok(())
    }

    /// Searches the documents in `bytes`, given with their ends, and forgets them.
    fn search_batch(&mut self, bytes: &[u8], ends: &mut Vec<(u64, usize)>) -> Result<()> {
        self.check_cancellation()?;
        let mut start = 0;
        for (doc_id, end) in ends.drain(..) {
            if !self.is_over {
                let mut search = LineSearch::new(self.pattern, doc_id, self.options);
                self.search_window(&mut search, Window::whole(&bytes[start..end]))?;
            }
            start = end;
        }
        Ok(())
    }

    /// Searches document `doc_id` of `len_bytes`, piece by piece. `end` follows it.
    fn search_in_pieces(&mut self, search: &mut LineSearch<'_>, doc_id: u64, len_bytes: u64, end: &[u8]) -> Result<()> {
        let GrepOptions { before, after, max_output_bytes, .. } = *self.options;
        let mut bytes: Vec<u8> = Vec::new();
        // Ends of the lines that were searched, and of the whole lines that were read.
        let mut searched = 0;
        let mut whole = 0;
        let mut read = 0;
        while read < len_bytes && !search.is_over() {
            self.check_cancellation()?;
            // Pieces grow with what is kept, so that a long line is copied a few times only.
            let piece_bytes = PIECE_BYTES.max(bytes.len() as u64).min(len_bytes - read);
            let start = bytes.len();
            let limit = max_output_bytes.saturating_add(PIECE_BYTES);
            extract_into(self.corpus, doc_id, read, piece_bytes, limit, &mut bytes)?;
            read += piece_bytes;
            let is_last = read == len_bytes;
            if is_last {
                bytes.extend_from_slice(end);
            }
            whole = match memrchr(b'\n', &bytes[start..]) {
                _ if is_last => bytes.len(),
                Some(at) => start + at + 1,
                None => whole,
            };
            let end = if is_last { whole } else { start_of_last_lines(&bytes[searched..whole], after) + searched };
            let window = Window { bytes: &bytes[..whole], to: end };
            self.search_window(search, window)?;
            if self.is_over {
                break;
            }
            let kept = start_of_last_lines(&bytes[..end], before);
            search.forget(&bytes[..kept]);
            bytes.drain(..kept);
            (searched, whole) = (end - kept, whole - kept);
        }
        Ok(())
    }

    /// Searches the lines of document `doc_id` of `len_bytes` that overlap one of `places`.
    fn search_places(
        &mut self,
        search: &mut LineSearch<'_>,
        doc_id: u64,
        len_bytes: u64,
        places: &[Place],
    ) -> Result<()> {
        let mut bytes: Vec<u8> = Vec::new();
        // End of the lines that were searched. The search knows the number of the next one.
        let mut searched = 0;
        let mut rest = places;
        while let Some(first) = rest.first() {
            let group = &rest[..len_of_group(rest)];
            rest = &rest[group.len()..];
            let end = group[group.len() - 1].range.end.min(len_bytes);
            if end <= searched {
                continue;
            }
            self.check_cancellation()?;
            let range = first.range.start.max(searched)..end;
            let around = self.lines_around(doc_id, len_bytes, range.clone(), &mut bytes)?;
            let line_number =
                if range.start > first.range.start { search.line_number() } else { first.num_line_ends + 1 };
            search.resume(around.offset, around.lines.start, line_number);
            let window = Window { bytes: &bytes, to: around.lines.end };
            self.search_window(search, window)?;
            if self.is_over || search.is_over() {
                break;
            }
            searched = around.offset + around.lines.end as u64;
        }
        Ok(())
    }

    /// Reads the lines of a document of `len_bytes` that overlap `range`, with the lines before and
    /// after them that are wanted, into `bytes`.
    fn lines_around(&self, doc_id: u64, len_bytes: u64, range: Range<u64>, bytes: &mut Vec<u8>) -> Result<LinesAround> {
        let GrepOptions { before, after, max_output_bytes, .. } = *self.options;
        // Margins are at most four times as long as a line with its neighbours.
        let limit = max_output_bytes.saturating_mul(8).saturating_add(PIECE_BYTES);
        let mut back = MARGIN_BYTES;
        let mut ahead = MARGIN_BYTES;
        loop {
            let offset = range.start.saturating_sub(back);
            let end = range.end.saturating_add(ahead).min(len_bytes);
            bytes.clear();
            extract_into(self.corpus, doc_id, offset, end - offset, limit, bytes)?;
            let head = (range.start - offset) as usize;
            let last = (range.end - 1 - offset) as usize;
            let has_before = offset == 0 || memchr_iter(b'\n', &bytes[..head]).count() > before;
            let line_end = memchr(b'\n', &bytes[last..]).map_or(bytes.len(), |at| last + at + 1);
            let has_after = end == len_bytes
                || bytes[line_end - 1] == b'\n' && memchr_iter(b'\n', &bytes[line_end..]).count() >= after;
            if has_before && has_after {
                let start = memrchr(b'\n', &bytes[..head]).map_or(0, |at| at + 1);
                return Ok(LinesAround { offset, lines: start..line_end });
            }
            back = if has_before { back } else { back.saturating_mul(4) };
            ahead = if has_after { ahead } else { ahead.saturating_mul(4) };
        }
    }

    fn search_window(&mut self, search: &mut LineSearch<'_>, window: Window<'_>) -> Result<()> {
        let max_hits = self.options.search.max_hits;
        while let Some(line) = search.next_line(&window)? {
            self.num_lines += 1;
            check_num_hits(self.num_lines, max_hits)?;
            if (self.visit)(&line).is_break() {
                self.is_over = true;
                break;
            }
        }
        Ok(())
    }

    fn check_cancellation(&self) -> Result<()> {
        if (self.options.search.is_cancelled)() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Whole lines in bytes that were read from `offset` of a document.
struct LinesAround {
    offset: u64,
    lines: Range<usize>,
}

/// Returns the number of the first of `places`, of which there is one, that are decoded together.
fn len_of_group(places: &[Place]) -> usize {
    let most = places[0].range.start.saturating_add(GROUP_BYTES);
    let is_far = |pair: &[Place]| pair[1].range.start > pair[0].range.end + GAP_BYTES || pair[1].range.start > most;
    places.windows(2).position(is_far).map_or(places.len(), |at| at + 1)
}

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
struct Window<'w> {
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
struct LineSearch<'p> {
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
    /// Lines and bytes of its text before the document.
    start: LineStart,
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
            start: LineStart::default(),
        }
    }

    /// Begins at position `at` of a window, where the text has `start` before it, and wants `num_left` lines.
    pub fn start_at(&mut self, start: LineStart, at: usize, num_left: u64) {
        (self.start, self.at, self.num_left) = (start, at, num_left);
    }

    /// Returns the number of lines that are still wanted.
    pub fn num_left(&self) -> u64 {
        self.num_left
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
        let found = if self.is_over() { None } else { self.pattern.find_line(&bytes[..window.to], self.at) };
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
            line_number: self.start.num_lines.wrapping_add(line_number),
            line_offset: self.start.offset.wrapping_add(self.offset + line.start as u64),
            matched: matched.start - line.start..matched.end - line.start,
            line: &bytes[line],
            before: &bytes[before],
            after: &bytes[after],
        }))
    }

    /// Continues at position `at` of a window that begins at `offset` of the document. The line
    /// there, which begins there, has the number `line_number`.
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

/// Returns the start of the last `num_lines` lines of `bytes`, which are whole lines; 0 if there
/// are fewer.
fn start_of_last_lines(bytes: &[u8], num_lines: usize) -> usize {
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
