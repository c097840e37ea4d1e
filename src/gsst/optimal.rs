//! The parse with the fewest code units, by dynamic programming from the end of a row.
//!
//! ```text
//! cost(end) = 0
//! cost(i)   = min over symbols s that begin at i of cost(i + |s|) + units(s)
//! ```
//!
//! `units` is 1, or 2 for a byte without a code (escape and literal). Of several best parses, the
//! one with the longest symbol wins, so the parse depends on table and row alone. Time O(bytes x
//! symbols that share three bytes). OptFSST (Chehaidar) measured the benefit of this parse.

use super::prefix_index::PrefixIndex;
use super::symbol::MAX_SYMBOL_BYTES;

/// State of the parse. Each place has a key `cost << 32 | (8 - length) << 16 | id`, so that less is
/// better.
#[derive(Debug, Default)]
pub(super) struct OptimalParse {
    keys: Vec<u64>,
}

impl OptimalParse {
    /// Parses `text[start..end]` and calls `emit(id, place)` for each symbol from left to right. A
    /// byte without a symbol has the id [`NO_SYMBOL`](super::prefix_index::NO_SYMBOL). `byte_units`
    /// are the units of single bytes. `text` must have 8 bytes behind `end`.
    pub(super) fn run(
        &mut self,
        index: &PrefixIndex,
        byte_units: &[u8; 256],
        text: &[u8],
        (start, end): (usize, usize),
        mut emit: impl FnMut(u16, usize),
    ) {
        let len = end - start;
        self.keys.clear();
        self.keys.resize(len + 1, 0);
        for i in (0..len).rev() {
            let word = word_at(text, start + i);
            let cost = |len_bytes: usize| self.keys[i + len_bytes] >> 32;
            let key = |units: u64, len_bytes: usize, id: u16| {
                units << 32 | ((MAX_SYMBOL_BYTES - len_bytes) as u64) << 16 | u64::from(id)
            };
            let units = u64::from(byte_units[usize::from(word as u8)]);
            let mut best = key(cost(1) + units, 1, index.one(word));
            index.for_each_longer(word, len - i, |id, len_bytes| {
                best = best.min(key(cost(len_bytes) + 1, len_bytes, id));
            });
            self.keys[i] = best;
        }
        let mut i = 0;
        while i < len {
            let key = self.keys[i];
            let len_bytes = MAX_SYMBOL_BYTES - (key >> 16 & 0xff) as usize;
            emit(key as u16, start + i);
            i += len_bytes;
        }
    }
}

/// Returns the 8 bytes from `at` on.
#[inline]
pub(super) fn word_at(text: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&text[at..at + 8]);
    u64::from_le_bytes(bytes)
}
