//! The sample of a column that a symbol table is trained on: short ranges of text, spread evenly.
//!
//! ```text
//! text     ──────▣▣──────────▣▣─────────────▣▣──────      the text is cut into equal parts; each
//! sample   ▣▣▣▣▣▣ 00000000                                gives one range, at a scrambled place so
//!                                                         that periods in the data do no harm
//! ```
//!
//! A range ends at the end of its row, so training learns no symbol that occurs in no row. The same
//! rows give the same sample.

use rustc_hash::FxHashSet;

use super::symbol::{Symbol, bytes_of};

/// Bytes of text per range. It starts at the start of a row if the row is not longer than this.
const PIECE_BYTES: usize = 192;

/// Approximate number of bytes of text that are searched for bytes that occur.
const MAX_SEARCHED_BYTES: usize = 1 << 20;

/// Text of some rows, with 8 zero bytes behind it, and the range of each row in it.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) text: Vec<u8>,
    pub(super) rows: Vec<(usize, usize)>,
    /// Length of the text that the sample was taken from.
    pub(super) text_len_bytes: usize,
}

impl Sample {
    /// Takes about `len_bytes` of the rows, whose text has `text_len_bytes`.
    pub(super) fn new(rows: &[Option<&[u8]>], text_len_bytes: usize, len_bytes: usize) -> Self {
        let mut sample = Self {
            text: Vec::with_capacity(len_bytes.min(text_len_bytes) + 4096),
            rows: Vec::new(),
            text_len_bytes,
        };
        if text_len_bytes <= len_bytes {
            rows.iter().flatten().for_each(|row| sample.add(row));
        } else {
            sample.add_pieces(rows, text_len_bytes, (len_bytes / PIECE_BYTES).max(1));
        }
        sample.text.extend_from_slice(&[0; 8]);
        sample
    }

    /// Returns, for each byte, true if it occurs in the sample.
    pub(super) fn occurs(&self) -> [bool; 256] {
        bytes_of(self.rows.iter().map(|&(start, end)| &self.text[start..end]))
    }

    /// Returns the distinct strings of `len_bytes` that occur in rows, sorted. Returns `None` if
    /// there are more than `max_strings`, or none at all.
    pub(super) fn strings_of(&self, len_bytes: usize, max_strings: usize) -> Option<Vec<Symbol>> {
        let rows = self.rows.iter().map(|&(start, end)| &self.text[start..end]);
        let mut words = FxHashSet::default();
        let mut strings = Vec::new();
        for string in rows.flat_map(|row| row.windows(len_bytes)).filter_map(Symbol::try_new) {
            if words.insert(string.word()) {
                strings.push(string);
                if strings.len() > max_strings {
                    return None;
                }
            }
        }
        strings.sort_unstable_by_key(|string| string.word());
        (!strings.is_empty()).then_some(strings)
    }

    /// Returns, for each byte, true if it occurs in the sample or in a wider selection of `rows`,
    /// from which the sample was taken: all rows if their text is short, otherwise every n-th.
    pub(super) fn occurs_around(&self, rows: &[Option<&[u8]>]) -> [bool; 256] {
        let step = (self.text_len_bytes / MAX_SEARCHED_BYTES).max(1);
        let mut occurs = bytes_of(rows.iter().step_by(step).flatten().copied());
        occurs.iter_mut().zip(self.occurs()).for_each(|(all, here)| *all |= here);
        occurs
    }

    /// Returns true if more than a quarter of the sample's bytes are not ASCII.
    pub(super) fn is_mostly_multibyte(&self) -> bool {
        4 * self.text.iter().filter(|byte| !byte.is_ascii()).count() > self.text.len()
    }

    fn add_pieces(&mut self, rows: &[Option<&[u8]>], text_len_bytes: usize, num_pieces: usize) {
        let part_bytes = text_len_bytes / num_pieces;
        let place_of = |piece: usize| piece * part_bytes + scramble(piece) % part_bytes.max(1);
        let (mut piece, mut left_bytes, mut row_start) = (0, 0, 0);
        for row in rows.iter().flatten() {
            let row_end = row_start + row.len();
            if left_bytes > 0 && row.len() <= PIECE_BYTES {
                self.add(row);
                left_bytes = usize::saturating_sub(left_bytes, row.len());
            }
            while piece < num_pieces && place_of(piece) < row_end {
                let place = place_of(piece) - row_start;
                piece += 1;
                if row.len() > PIECE_BYTES {
                    let start = place.min(row.len() - PIECE_BYTES);
                    self.add(&row[start..start + PIECE_BYTES]);
                    left_bytes = 0;
                } else if left_bytes == 0 {
                    // The sample may already have this row. The range starts with the next one.
                    left_bytes = PIECE_BYTES;
                }
            }
            row_start = row_end;
        }
    }

    fn add(&mut self, row: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(row);
        self.rows.push((start, self.text.len()));
    }
}

/// Returns a number that looks unrelated to its neighbours' (Fibonacci hashing).
fn scramble(number: usize) -> usize {
    ((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_about_the_length_asked_for() {
        let long: Vec<u8> = (0..1 << 20).map(|i: u32| (i % 251) as u8).collect();
        for row_len in [1, 31, 200, 5000, 1 << 20] {
            let rows: Vec<_> = long.chunks(row_len).map(Some).collect();
            for len_bytes in [256, 4096, 65536] {
                let sample = Sample::new(&rows, 1 << 20, len_bytes);
                let got = sample.text.len() - 8;
                assert!((len_bytes / 2..2 * len_bytes + 1024).contains(&got), "{row_len}: {got}");
                assert!(sample.rows.iter().all(|(start, end)| start <= end && *end <= got));
            }
        }
        assert_eq!(Sample::new(&[None, Some(b"ab"), Some(b"")], 2, 100).rows, [(0, 2), (2, 2)]);
    }
}
