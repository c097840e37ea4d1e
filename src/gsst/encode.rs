//! Rows to codes.
//!
//! ```text
//! rows      ▶ four staging buffers   row ⊥ row ⊥ …      ⊥: a byte that occurs nowhere
//! staging   ▶ four cursors, each     find longest symbol, write code, advance
//!             step taken in turn     (a step waits for its lookups; four waits overlap)
//! codes     ▶ one buffer, and for each row where its codes end
//! ```
//!
//! Rows are encoded on their own: no symbol crosses their ends. Both parses are functions of table
//! and row, whatever path computes them. Rows longer than the staging, and batches in which the
//! closing byte occurs, go row by row through the exact index.
//!
//! One core of a Xeon, 8 MB, greedy, whole block with lengths and checksum, beside the codes alone of
//! fsst-rs 0.7 (`compress_bulk_into::<4>`), MB/s: `l_comment` 250 and 370, `ps_comment` 350 and 790,
//! `wiki` 240 and 260. With 2 or 3 cursors: `l_comment` 208 and 215 (on a busier machine).

use crate::error::{Error, Result};

use super::matcher::{Cursor, MAX_STAGED_BYTES, Matcher, MatcherView, row_end_byte};
use super::optimal::{OptimalParse, word_at};
use super::prefix_index::{NO_SYMBOL, PrefixIndex};
use super::symbol_table::{CodeWidth, ESCAPE_CODE, SymbolTable};
use super::training::bytes_of;
use super::twelve;

/// How rows are cut into symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parse {
    /// The longest symbol at each place; fast.
    #[default]
    Greedy,
    /// The fewest code units; a few per cent smaller, four times slower.
    Optimal,
}

/// Codes of some rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EncodedRows {
    /// As stored: a byte each, or two in three bytes.
    pub(super) codes: Vec<u8>,
    pub(super) num_codes: usize,
    /// For each row the number of codes up to its end.
    pub(super) row_ends: Vec<u32>,
}

/// Encodes `rows`, empty ones and those that are null to no codes.
///
/// # Errors
///
/// [`Error::InvalidArgument`] where codes are of 12 bits and a byte has no symbol.
pub(super) fn encode_rows(
    table: &SymbolTable,
    rows: &[Option<&[u8]>],
    parse: Parse,
) -> Result<EncodedRows> {
    if table.width() == CodeWidth::Twelve {
        let (has_code, occurs) =
            (table.bytes_with_codes(), bytes_of(rows.iter().flatten().copied()));
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
            let (codes, row_ends) = encode::<u8, 1024>(table, rows, parse);
            EncodedRows { num_codes: codes.len(), codes, row_ends }
        }
        CodeWidth::Twelve => {
            let (codes, row_ends) = encode::<u16, 8192>(table, rows, parse);
            EncodedRows { num_codes: codes.len(), codes: twelve::pack(&codes), row_ends }
        }
    })
}

fn encode<C: CodeUnit, const NUM_BUCKETS: usize>(
    table: &SymbolTable,
    rows: &[Option<&[u8]>],
    parse: Parse,
) -> (Vec<C>, Vec<u32>) {
    let mut by_row = RowEncoder::new(table, parse);
    let row_end = if parse == Parse::Greedy { row_end_byte(table) } else { None };
    if let Some(row_end) = row_end {
        let matcher = Matcher::<NUM_BUCKETS>::new(table, row_end);
        if let Some(view) = matcher.view() {
            return encode_greedy(view, rows, row_end, &mut by_row);
        }
    }
    let mut encoded = (Vec::new(), Vec::with_capacity(rows.len()));
    by_row.append(rows, &mut encoded);
    encoded
}

/// A code as the encoder writes it.
trait CodeUnit: Copy + Default {
    /// Writes a code, and the literal that may belong to it behind it.
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

/// Cursors that take turns.
const NUM_LANES: usize = 4;
/// Text that a lane stages at a time, in bytes: staging and codes of all lanes stay in the L2 cache.
const LANE_BYTES: usize = 16 << 10;

/// Bytes behind the text, so that 8 can be read at each place.
const SLACK_BYTES: usize = 8;

/// Staged text of all lanes, one behind the other, and what becomes of it.
struct Staging<C> {
    /// [`MAX_STAGED_BYTES`] and the slack; only the first `len_bytes` count.
    text: Vec<u8>,
    len_bytes: usize,
    /// For each row where it ends in the text.
    text_ends: Vec<u32>,
    /// For each lane where its text starts and how many rows precede it.
    lanes: [(usize, usize); NUM_LANES],
    /// Those of a lane start at twice the place of its text.
    codes: Vec<C>,
    /// For each place where a step began the number of codes before it.
    codes_before: Vec<u32>,
}

fn encode_greedy<C: CodeUnit, const NUM_BUCKETS: usize>(
    matcher: MatcherView<'_, NUM_BUCKETS>,
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
        // Besides the ends of rows there must be no such byte.
        let num_ends = memchr::memchr_iter(row_end, &staging.text[..staging.len_bytes]).count();
        if num_ends == staging.text_ends.len() && num_ends > 0 {
            let cursors = staging.encode(matcher);
            staging.append(cursors, &mut encoded);
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
            text_ends: Vec::new(),
            lanes: [(0, 0); NUM_LANES],
            codes: vec![C::default(); 2 * MAX_STAGED_BYTES + 2],
            codes_before: vec![0; MAX_STAGED_BYTES],
        }
    }

    /// Takes the next rows, as far as they fit; the rows that are left.
    fn fill<'r, 't>(
        &mut self,
        mut rows: &'r [Option<&'t [u8]>],
        row_end: u8,
    ) -> &'r [Option<&'t [u8]>] {
        self.text_ends.clear();
        let mut end = 0;
        for lane in &mut self.lanes {
            *lane = (end, self.text_ends.len());
            let lane_end = end + LANE_BYTES;
            while end < lane_end
                && let Some((row, behind)) = rows.split_first()
            {
                let row = row.unwrap_or_default();
                // One byte stays free, so that a cursor at the end is below the maximum.
                if end + row.len() + 1 >= MAX_STAGED_BYTES {
                    break;
                }
                self.text[end..end + row.len()].copy_from_slice(row);
                end += row.len();
                self.text_ends.push(end as u32);
                self.text[end] = row_end;
                end += 1;
                rows = behind;
            }
        }
        self.text[end..end + SLACK_BYTES].fill(row_end);
        self.len_bytes = end;
        rows
    }

    /// Appends what the cursors wrote.
    fn append(&self, cursors: [Cursor; NUM_LANES], (codes, row_ends): &mut (Vec<C>, Vec<u32>)) {
        for (lane, cursor) in cursors.into_iter().enumerate() {
            let (start, first_row) = self.lanes[lane];
            let end_row = self.lanes.get(lane + 1).map_or(self.text_ends.len(), |next| next.1);
            let shift = (codes.len() as u32).wrapping_sub(2 * start as u32);
            codes.extend_from_slice(&self.codes[2 * start..cursor.num_codes()]);
            let text_ends = &self.text_ends[first_row..end_row];
            let codes_before = |end: &u32| self.codes_before[*end as usize].wrapping_add(shift);
            row_ends.extend(text_ends.iter().map(codes_before));
        }
    }

    /// Encodes the staged text; where the cursors end.
    fn encode<const NUM_BUCKETS: usize>(
        &mut self,
        matcher: MatcherView<'_, NUM_BUCKETS>,
    ) -> [Cursor; NUM_LANES] {
        let mut cursors = self.lanes.map(|(start, _)| Cursor::new(start, 2 * start));
        let lane_end = |lane: usize| self.lanes.get(lane + 1).map_or(self.len_bytes, |next| next.0);
        let ends: [usize; NUM_LANES] = std::array::from_fn(lane_end);
        let (text, _) = self.text.as_chunks::<{ MAX_STAGED_BYTES + SLACK_BYTES }>();
        let (codes, _) = self.codes.as_chunks_mut::<{ 2 * MAX_STAGED_BYTES + 2 }>();
        let (codes_before, _) = self.codes_before.as_chunks_mut::<MAX_STAGED_BYTES>();
        let (text, codes, codes_before) = (&text[0], &mut codes[0], &mut codes_before[0]);
        loop {
            // A step advances by at most 8 bytes.
            let left = (0..NUM_LANES).map(|lane| ends[lane].saturating_sub(cursors[lane].at()));
            let num_steps = left.min().unwrap_or(0) / 8;
            if num_steps == 0 {
                break;
            }
            for _ in 0..num_steps {
                for cursor in &mut cursors {
                    step(matcher, text, cursor, codes, codes_before);
                }
            }
        }
        for (cursor, end) in cursors.iter_mut().zip(ends) {
            while cursor.at() < end {
                step(matcher, text, cursor, codes, codes_before);
            }
        }
        cursors
    }
}

#[inline(always)]
fn step<C: CodeUnit, const NUM_BUCKETS: usize>(
    matcher: MatcherView<'_, NUM_BUCKETS>,
    text: &[u8; MAX_STAGED_BYTES + SLACK_BYTES],
    cursor: &mut Cursor,
    codes: &mut [C; 2 * MAX_STAGED_BYTES + 2],
    codes_before: &mut [u32; MAX_STAGED_BYTES],
) {
    let (at, num_codes) = (cursor.at(), cursor.num_codes());
    let word = word_at(text, at);
    let found = matcher.find(word);
    codes_before[at] = num_codes as u32;
    C::write(codes, num_codes, found.code(), word as u8);
    cursor.advance(found);
}

/// Row by row with the exact index: for the optimal parse, and where every byte occurs.
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
    fn append<C: CodeUnit>(
        &mut self,
        rows: &[Option<&[u8]>],
        (codes, row_ends): &mut (Vec<C>, Vec<u32>),
    ) {
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

/// The greedy parse of the first `len` bytes of `text`.
fn longest_symbols(index: &PrefixIndex, text: &[u8], len: usize, mut emit: impl FnMut(u16, usize)) {
    let mut at = 0;
    while at < len {
        let word = word_at(text, at);
        let mut longest = None;
        index.for_each_longer(word, len - at, |id, len_bytes| {
            longest = longest.or(Some((id, len_bytes)));
        });
        let (id, len_bytes) = longest.unwrap_or((index.one(word), 1));
        emit(id, at);
        at += len_bytes;
    }
}
