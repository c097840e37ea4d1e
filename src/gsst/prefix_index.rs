//! An index that finds all symbols that begin at a place of the text, for training and the optimal
//! parse.
//!
//! ```text
//! first byte        ▶ the symbol of 1 byte
//! first two bytes   ▶ the symbol of 2 bytes
//! hash of three     ▶ bucket: the longer symbols with that hash, longest first
//! ```
//!
//! Unlike the encoder's table, the index keeps every symbol, so the number of symbols is free
//! (training looks at several times the symbols that it keeps). A search probes each of the three
//! tables once and compares each symbol in the bucket once.
//!
//! # Best cuts
//!
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

use crate::symbol_table::{MAX_SYMBOL_BYTES, PREFIX_MASKS, Symbol};

/// Id that says that there is no such symbol.
pub(super) const NO_SYMBOL: u16 = u16::MAX;

/// A symbol of three bytes or more.
#[derive(Debug, Clone, Copy, Default)]
struct LongSymbol {
    word: u64,
    mask: u64,
    id: u16,
    len_bytes: u8,
}

/// Symbols by their first bytes. The id of a symbol is its place in the indexed list.
#[derive(Debug)]
pub(super) struct PrefixIndex {
    ones: [u16; 256],
    twos: Vec<u16>,
    /// Places in `twos` that hold a symbol.
    set_twos: Vec<u16>,
    bucket_ends: Vec<u16>,
    longs: Vec<LongSymbol>,
    shift: u32,
}

impl PrefixIndex {
    /// Creates an index of `symbols`, which must be fewer than 65,535.
    pub(super) fn new(symbols: &[Symbol]) -> Self {
        let mut index = Self {
            ones: [NO_SYMBOL; 256],
            twos: vec![NO_SYMBOL; 1 << 16],
            set_twos: Vec::new(),
            bucket_ends: Vec::new(),
            longs: Vec::new(),
            shift: 0,
        };
        index.rebuild(symbols);
        index
    }

    /// Replaces the indexed symbols by `symbols`.
    pub(super) fn rebuild(&mut self, symbols: &[Symbol]) {
        let num_buckets = (2 * symbols.len()).next_power_of_two().max(256);
        self.shift = 64 - num_buckets.trailing_zeros();
        self.ones.fill(NO_SYMBOL);
        for two in self.set_twos.drain(..) {
            self.twos[usize::from(two)] = NO_SYMBOL;
        }
        // `bucket_ends` first holds counts, then the start of each bucket. Placing a symbol
        // advances the start, so that it finally is the end.
        self.bucket_ends.clear();
        self.bucket_ends.resize(num_buckets + 2, 0);
        let mut num_by_length = [0; MAX_SYMBOL_BYTES + 1];
        for (id, symbol) in symbols.iter().enumerate() {
            num_by_length[symbol.len_bytes()] += 1;
            match symbol.len_bytes() {
                1 => self.ones[symbol.word() as usize] = id as u16,
                2 => {
                    self.twos[symbol.word() as usize] = id as u16;
                    self.set_twos.push(symbol.word() as u16);
                }
                _ => self.bucket_ends[bucket(symbol.word(), self.shift) + 2] += 1,
            }
        }
        for bucket in 2..num_buckets + 2 {
            self.bucket_ends[bucket] += self.bucket_ends[bucket - 1];
        }
        let num_longs = num_by_length[3..].iter().sum();
        self.longs.clear();
        self.longs.resize(num_longs, LongSymbol::default());
        for len_bytes in (3..=MAX_SYMBOL_BYTES).rev().filter(|len| num_by_length[*len] > 0) {
            for (id, symbol) in symbols.iter().enumerate() {
                if symbol.len_bytes() == len_bytes {
                    let word = symbol.word();
                    let place = &mut self.bucket_ends[bucket(word, self.shift) + 1];
                    let mask = PREFIX_MASKS[len_bytes];
                    let id = id as u16;
                    self.longs[usize::from(*place)] = LongSymbol { word, mask, id, len_bytes: len_bytes as u8 };
                    *place += 1;
                }
            }
        }
    }

    /// Returns the symbol that consists of the first byte of `word`.
    #[inline]
    pub(super) fn one(&self, word: u64) -> u16 {
        self.ones[usize::from(word as u8)]
    }

    /// Returns the longest symbol of at most `max_len` bytes that `word` begins with, and its
    /// length. `max_len` is at least 1.
    #[inline]
    pub(super) fn longest(&self, word: u64, max_len: usize) -> (u16, usize) {
        let bucket = bucket(word, self.shift);
        let start = self.bucket_ends[bucket];
        let end = self.bucket_ends[bucket + 1];
        for symbol in &self.longs[usize::from(start)..usize::from(end)] {
            let len_bytes = usize::from(symbol.len_bytes);
            if word & symbol.mask == symbol.word && len_bytes <= max_len {
                return (symbol.id, len_bytes);
            }
        }
        let two = self.twos[usize::from(word as u16)];
        if two != NO_SYMBOL && max_len >= 2 { (two, 2) } else { (self.one(word), 1) }
    }

    /// Calls `found(id, length)` for each symbol of 2 to `max_len` bytes that `word` begins with,
    /// longest first.
    #[inline]
    pub(super) fn for_each_longer(&self, word: u64, max_len: usize, mut found: impl FnMut(u16, usize)) {
        let bucket = bucket(word, self.shift);
        let start = self.bucket_ends[bucket];
        let end = self.bucket_ends[bucket + 1];
        for symbol in &self.longs[usize::from(start)..usize::from(end)] {
            let len_bytes = usize::from(symbol.len_bytes);
            if word & symbol.mask == symbol.word && len_bytes <= max_len {
                found(symbol.id, len_bytes);
            }
        }
        let two = self.twos[usize::from(word as u16)];
        if two != NO_SYMBOL && max_len >= 2 {
            found(two, 2);
        }
    }
}

#[inline]
fn bucket(word: u64, shift: u32) -> usize {
    // The first three bytes move to the top and are multiplied by an odd number near 2^64 / golden
    // ratio.
    ((word << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}

/// State of the parse. Each place has a key `cost << 32 | (8 - length) << 16 | id`, so that less is
/// better.
#[derive(Debug, Default)]
pub(super) struct OptimalParse {
    keys: Vec<u64>,
}

impl OptimalParse {
    /// Parses `text[start..end]` and calls `emit(id, place)` for each symbol from left to right. A
    /// byte without a symbol has the id [`NO_SYMBOL`]. `byte_units`
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
