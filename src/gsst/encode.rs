//! The encoder: rows to codes.
//!
//! ```text
//! rows      ▶ staging    row ⊥ row ⊥ …     ⊥: a byte that occurs nowhere; segments of about 2 KiB
//! segments  ▶ four cursors, each     find longest symbol, write code, advance
//!             step taken in turn     (a step waits for its lookups; four waits overlap); a cursor
//!                                    at the end of its segment takes the next one
//! codes     ▶ one buffer, and the end of each row's codes
//! ```
//!
//! Each row is encoded on its own: no symbol crosses the end of a row. Both parses depend on table
//! and row alone, not on the code path. Rows longer than the staging, and batches in which the
//! closing byte occurs, are encoded row by row with the exact index.
//!
//! One core of a Xeon, greedy, whole block with lengths and checksum, compared with the codes alone
//! of fsst-rs 0.7 (`compress_bulk_into::<4>`), MB/s: `l_comment` 402 and 347, `ps_comment` 694 and
//! 673, `wiki` 285 and 274, `urls2` 376 and 503. Failed experiments: one long segment for each
//! cursor (the slowest cursor finishes alone), 3 and 5 to 8 cursors, and a stored number of codes
//! for every place of the text instead of every row (these stores alone fill the cache).

use crate::{Error, Result};

use super::matcher::{
    Cursor, MAX_STAGED_BYTES, MAX_STAGED_ROWS, Matcher, NO_SYMBOL, OptimalParse, PrefixIndex, row_end_byte, word_at,
};
use crate::symbol_table::{self, CodeWidth, ESCAPE_CODE, Symbol, SymbolTable, bytes_for};

/// Method that cuts rows into symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parse {
    /// The longest symbol at each place. Fast.
    #[default]
    Greedy,
    /// The fewest code units. A few per cent smaller, four times slower.
    Optimal,
}

/// Codes of some rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EncodedRows {
    /// Codes in stored form: one byte each, or two codes in three bytes.
    pub(super) codes: Vec<u8>,
    pub(super) num_codes: usize,
    /// Number of codes up to the end of each row.
    pub(super) row_ends: Vec<u32>,
}

/// Encodes `rows`. Empty and null rows have no codes.
///
/// # Errors
///
/// [`Error::InvalidArgument`] if codes have 12 bits and a byte has no symbol.
pub(super) fn encode_rows(table: &SymbolTable, rows: &[Option<&[u8]>], parse: Parse) -> Result<EncodedRows> {
    if table.width() == CodeWidth::Twelve {
        let has_code = table.bytes_with_codes();
        let occurs = bytes_for(rows.iter().flatten().copied());
        if let Some(byte) = (0..256).find(|byte| occurs[*byte] && !has_code[*byte]) {
            return Err(Error::InvalidArgument {
                name: "rows",
                got: format!("byte {byte:#04x}"),
                allowed: "bytes that are symbols of the table of 12-bit codes".to_owned(),
            });
        }
    }
    Ok(match table.width() {
        CodeWidth::Eight => {
            let (codes, row_ends) = encode::<u8, 1024, 1024>(table, rows, parse);
            EncodedRows { num_codes: codes.len(), codes, row_ends }
        }
        CodeWidth::Twelve => {
            let (codes, row_ends) = encode::<u16, 8192, 16384>(table, rows, parse);
            EncodedRows { num_codes: codes.len(), codes: symbol_table::pack(&codes), row_ends }
        }
    })
}

fn encode<C: CodeUnit, const NUM_BUCKETS: usize, const NUM_IDS: usize>(
    table: &SymbolTable,
    rows: &[Option<&[u8]>],
    parse: Parse,
) -> (Vec<C>, Vec<u32>) {
    let mut by_row = RowEncoder::new(table, parse);
    let row_end = if parse == Parse::Greedy { row_end_byte(table) } else { None };
    if let Some(row_end) = row_end {
        let matcher = Matcher::<NUM_BUCKETS, NUM_IDS>::new(table.symbols(), row_end);
        return encode_greedy(&matcher, rows, row_end, &mut by_row);
    }
    let mut encoded = (Vec::new(), Vec::with_capacity(rows.len()));
    by_row.append(rows, &mut encoded);
    encoded
}

/// Greedy parser for a text that is parsed repeatedly, each time with other symbols.
pub(super) struct GreedyParser<'a> {
    rows: Vec<Option<&'a [u8]>>,
    /// Byte that occurs in none of the rows.
    row_end: u8,
    staging: Staging<u16>,
    matcher: Box<Matcher<PARSER_BUCKETS, PARSER_IDS>>,
}

impl<'a> GreedyParser<'a> {
    /// Largest number of symbols that [`GreedyParser::parse`] supports.
    pub(super) const MAX_SYMBOLS: usize = PARSER_IDS / 2 - 2;

    /// Creates a parser of `rows`, in which the byte `row_end` does not occur.
    pub(super) fn new(rows: Vec<Option<&'a [u8]>>, row_end: u8) -> Self {
        Self { rows, row_end, staging: Staging::new(), matcher: Matcher::new(&[], row_end) }
    }

    /// Parses all rows. Returns each symbol as its place in `symbols`, and for each row the number
    /// of symbols up to its end. `symbols` must contain each single byte. Returns `None` if a row
    /// is too long, or if there are too many symbols.
    pub(super) fn parse(&mut self, symbols: &[Symbol]) -> Option<(Vec<u16>, Vec<u32>)> {
        if symbols.len() > Self::MAX_SYMBOLS {
            return None;
        }
        self.matcher.rebuild(symbols, self.row_end, 1);
        let mut encoded = (Vec::new(), Vec::with_capacity(self.rows.len()));
        let mut rows = &self.rows[..];
        while !rows.is_empty() {
            let rest = self.staging.fill(rows, self.row_end);
            if rest.len() == rows.len() {
                return None;
            }
            self.staging.encode(&self.matcher);
            self.staging.append(&mut encoded);
            rows = rest;
        }
        Some(encoded)
    }
}

const PARSER_BUCKETS: usize = 1024;
const PARSER_IDS: usize = 2048;

/// A code in the form that the encoder writes.
trait CodeUnit: Copy + Default {
    /// Writes a code and, behind it, the literal that may belong to it.
    fn write(out: &mut [Self], at: usize, code: u16, literal: u8);
}

impl CodeUnit for u8 {
    #[inline(always)]
    fn write(out: &mut [u8], at: usize, code: u16, literal: u8) {
        out[at..at + 2].copy_from_slice(&[code as u8, literal]);
    }
}

impl CodeUnit for u16 {
    #[inline(always)]
    fn write(out: &mut [u16], at: usize, code: u16, _literal: u8) {
        out[at] = code;
    }
}

/// Number of cursors that take turns.
const NUM_LANES: usize = 4;
/// Smallest text of a full segment, in bytes. A segment ends with the row that reaches this size.
const SEGMENT_BYTES: usize = 2 << 10;
/// Remaining text, in bytes, for which a cursor takes its last steps alone.
const LAST_BYTES: usize = 16;

/// Bytes behind the text, so that 8 bytes can be read at each place.
const SLACK_BYTES: usize = 8;

/// A buffer of staged text, with its codes.
struct Staging<C> {
    /// Buffer of [`MAX_STAGED_BYTES`] and the slack. Only the first `len_bytes` are in use.
    text: Vec<u8>,
    len_bytes: usize,
    num_rows: usize,
    segments: Vec<Segment>,
    /// Codes. Those of a segment start at twice the place of its text.
    codes: Vec<C>,
    /// For each row, the number of codes up to its end, counted from twice the place of its
    /// segment's text.
    row_ends: Vec<u32>,
}

/// A run of rows of the staged text, encoded by one cursor.
#[derive(Debug, Clone, Copy)]
struct Segment {
    start: usize,
    end: usize,
    first_row: usize,
    /// End of its codes.
    code_end: usize,
}

fn encode_greedy<C: CodeUnit, const NUM_BUCKETS: usize, const NUM_IDS: usize>(
    matcher: &Matcher<NUM_BUCKETS, NUM_IDS>,
    mut rows: &[Option<&[u8]>],
    row_end: u8,
    by_row: &mut RowEncoder,
) -> (Vec<C>, Vec<u32>) {
    let mut encoded = (Vec::new(), Vec::with_capacity(rows.len()));
    let mut staging = Staging::<C>::new();
    while !rows.is_empty() {
        let rest = staging.fill(rows, row_end);
        // A row that is too long for the staging is encoded on its own.
        let batch = &rows[..(rows.len() - rest.len()).max(1)];
        rows = &rows[batch.len()..];
        // The byte must occur only at the ends of rows.
        let num_ends = memchr::memchr_iter(row_end, &staging.text[..staging.len_bytes]).count();
        if num_ends == staging.num_rows && num_ends > 0 {
            staging.encode(matcher);
            staging.append(&mut encoded);
        } else {
            by_row.append(batch, &mut encoded);
        }
    }
    encoded
}

impl<C: CodeUnit> Staging<C> {
    fn new() -> Self {
        Self {
            text: vec![0; MAX_STAGED_BYTES + SLACK_BYTES],
            len_bytes: 0,
            num_rows: 0,
            segments: Vec::new(),
            codes: vec![C::default(); 2 * MAX_STAGED_BYTES + 2],
            row_ends: vec![0; MAX_STAGED_ROWS],
        }
    }

    /// Takes the next rows, as far as they fit, and returns the remaining rows.
    fn fill<'r, 't>(&mut self, mut rows: &'r [Option<&'t [u8]>], row_end: u8) -> &'r [Option<&'t [u8]>] {
        self.segments.clear();
        let mut end = 0;
        let mut num_rows = 0;
        let mut segment = Segment { start: 0, end: 0, first_row: 0, code_end: 0 };
        while let Some((row, behind)) = rows.split_first() {
            let row = row.unwrap_or_default();
            // One byte stays free, so that a cursor at the end is below the maximum. There are
            // fewer rows than bytes.
            if end + row.len() + 1 >= MAX_STAGED_BYTES {
                break;
            }
            self.text[end..end + row.len()].copy_from_slice(row);
            end += row.len();
            self.text[end] = row_end;
            end += 1;
            num_rows += 1;
            if end - segment.start >= SEGMENT_BYTES {
                self.segments.push(Segment { end, ..segment });
                (segment.start, segment.first_row) = (end, num_rows);
            }
            rows = behind;
        }
        if end > segment.start {
            self.segments.push(Segment { end, ..segment });
        }
        self.text[end..end + SLACK_BYTES].fill(row_end);
        (self.len_bytes, self.num_rows) = (end, num_rows);
        rows
    }

    /// Appends the codes and row ends of all segments to the output.
    fn append(&self, (codes, row_ends): &mut (Vec<C>, Vec<u32>)) {
        for (segment_idx, segment) in self.segments.iter().enumerate() {
            let next = self.segments.get(segment_idx + 1);
            let rows = segment.first_row..next.map_or(self.num_rows, |next| next.first_row);
            let start = 2 * segment.start;
            let shift = (codes.len() as u32).wrapping_sub(start as u32);
            codes.extend_from_slice(&self.codes[start..segment.code_end]);
            row_ends.extend(self.row_ends[rows].iter().map(|end| end.wrapping_add(shift)));
        }
    }

    /// Encodes the staged text.
    fn encode<const NUM_BUCKETS: usize, const NUM_IDS: usize>(&mut self, matcher: &Matcher<NUM_BUCKETS, NUM_IDS>) {
        let (text, _) = self.text.as_chunks::<{ MAX_STAGED_BYTES + SLACK_BYTES }>();
        let (codes, _) = self.codes.as_chunks_mut::<{ 2 * MAX_STAGED_BYTES + 2 }>();
        let (row_ends, _) = self.row_ends.as_chunks_mut::<MAX_STAGED_ROWS>();
        let text = &text[0];
        let codes = &mut codes[0];
        let row_ends = &mut row_ends[0];
        let mut cursors = [Cursor::default(); NUM_LANES];
        let mut segments = self.segments.iter_mut();
        let mut lanes: Vec<&mut Segment> = Vec::with_capacity(NUM_LANES);
        loop {
            while lanes.len() < NUM_LANES
                && let Some(segment) = segments.next()
            {
                let Segment { start, first_row, .. } = *segment;
                cursors[lanes.len()] = Cursor::new(start, 2 * start, first_row);
                lanes.push(segment);
            }
            // A step advances by at most 8 bytes.
            let left_bytes = lanes.iter().zip(&cursors).map(|(lane, cursor)| lane.end - cursor.at());
            let Some(least_bytes) = left_bytes.min() else {
                return;
            };
            if lanes.len() == NUM_LANES {
                for _ in 0..least_bytes / 8 {
                    for cursor in &mut cursors {
                        step(matcher, text, cursor, codes, row_ends);
                    }
                }
            } else {
                for _ in 0..least_bytes / 8 {
                    for cursor in &mut cursors[..lanes.len()] {
                        step(matcher, text, cursor, codes, row_ends);
                    }
                }
            }
            for lane in (0..lanes.len()).rev() {
                if lanes[lane].end - cursors[lane].at() > LAST_BYTES {
                    continue;
                }
                let mut cursor = cursors[lane];
                while cursor.at() < lanes[lane].end {
                    step(matcher, text, &mut cursor, codes, row_ends);
                }
                lanes[lane].code_end = cursor.num_codes();
                lanes.swap_remove(lane);
                cursors[lane] = cursors[lanes.len()];
            }
        }
    }
}

#[inline(always)]
fn step<C: CodeUnit, const NUM_BUCKETS: usize, const NUM_IDS: usize>(
    matcher: &Matcher<NUM_BUCKETS, NUM_IDS>,
    text: &[u8; MAX_STAGED_BYTES + SLACK_BYTES],
    cursor: &mut Cursor,
    codes: &mut [C; 2 * MAX_STAGED_BYTES + 2],
    row_ends: &mut [u32; MAX_STAGED_ROWS],
) {
    let at = cursor.at();
    let num_codes = cursor.num_codes();
    let word = word_at(text, at);
    let found = matcher.find(word);
    // Each step in a row overwrites this number. The last step, at the end of the row, counts.
    row_ends[cursor.row()] = num_codes as u32;
    C::write(codes, num_codes, found.code(), word as u8);
    cursor.advance(found);
}

/// Encoder that works row by row with the exact index. It serves the optimal parse and tables in
/// which every byte occurs.
struct RowEncoder {
    index: PrefixIndex,
    byte_units: [u8; 256],
    parse: Parse,
    optimal: OptimalParse,
    text: Vec<u8>,
}

impl RowEncoder {
    fn new(table: &SymbolTable, parse: Parse) -> Self {
        Self {
            index: PrefixIndex::new(table.symbols()),
            byte_units: table.bytes_with_codes().map(|has_code| if has_code { 1 } else { 2 }),
            parse,
            optimal: OptimalParse::default(),
            text: Vec::new(),
        }
    }

    /// Appends the codes of `rows`.
    fn append<C: CodeUnit>(&mut self, rows: &[Option<&[u8]>], (codes, row_ends): &mut (Vec<C>, Vec<u32>)) {
        let mut num_codes = codes.len();
        for row in rows {
            let Self { index, byte_units, parse, optimal, text } = self;
            text.clear();
            text.extend_from_slice(row.unwrap_or_default());
            let len = text.len();
            text.extend_from_slice(&[0; SLACK_BYTES]);
            let max_codes = num_codes + 2 * len + 2;
            if codes.len() < max_codes {
                codes.resize(max_codes.max(2 * codes.len()), C::default());
            }
            let emit = |id: u16, at: usize| {
                let is_escape = id == NO_SYMBOL;
                let code = if is_escape { u16::from(ESCAPE_CODE) } else { id };
                C::write(codes, num_codes, code, text[at]);
                num_codes += 1 + usize::from(is_escape);
            };
            match parse {
                Parse::Optimal => optimal.run(index, byte_units, text, (0, len), emit),
                Parse::Greedy => longest_symbols(index, &text[..], len, emit),
            }
            row_ends.push(num_codes as u32);
        }
        codes.truncate(num_codes);
    }
}

/// Parses the first `len` bytes of `text` greedily.
fn longest_symbols(index: &PrefixIndex, text: &[u8], len: usize, mut emit: impl FnMut(u16, usize)) {
    let mut at = 0;
    while at < len {
        let (id, len_bytes) = index.longest(word_at(text, at), len - at);
        emit(id, at);
        at += len_bytes;
    }
}
