//! Which symbols begin at a place of the text: the exact search behind training and the optimal
//! parse.
//!
//! ```text
//! first byte        ▶ the symbol of 1 byte
//! first two bytes   ▶ the symbol of 2 bytes
//! hash of three     ▶ bucket: the longer symbols with that hash, longest first
//! ```
//!
//! Unlike the encoder's table nothing is ever dropped, so the number of symbols is free (training
//! looks at several times the symbols it keeps). A search costs one probe of each of the three and
//! one comparison for each symbol in the bucket.

use super::symbol::{PREFIX_MASKS, Symbol};

/// Stands for "no such symbol".
pub(super) const NO_SYMBOL: u16 = u16::MAX;

/// A symbol of three bytes or more.
#[derive(Debug, Clone, Copy)]
struct LongSymbol {
    word: u64,
    mask: u64,
    id: u16,
    len_bytes: u8,
}

/// Symbols by their first bytes; a symbol's id is its place in the list the index was made from.
#[derive(Debug)]
pub(super) struct PrefixIndex {
    ones: [u16; 256],
    twos: Vec<u16>,
    bucket_ends: Vec<u16>,
    longs: Vec<LongSymbol>,
    shift: u32,
}

impl PrefixIndex {
    /// Indexes `symbols`, fewer than 65,535.
    pub(super) fn new(symbols: &[Symbol]) -> Self {
        let num_buckets = (4 * symbols.len()).next_power_of_two().max(256);
        let shift = 64 - num_buckets.trailing_zeros();
        let mut index = Self {
            ones: [NO_SYMBOL; 256],
            twos: vec![NO_SYMBOL; 1 << 16],
            bucket_ends: vec![0; num_buckets + 1],
            longs: Vec::with_capacity(symbols.len()),
            shift,
        };
        for (id, symbol) in symbols.iter().enumerate() {
            let (id, word, len_bytes) = (id as u16, symbol.word(), symbol.len_bytes);
            match len_bytes {
                1 => index.ones[word as usize] = id,
                2 => index.twos[word as usize] = id,
                _ => {
                    let mask = PREFIX_MASKS[usize::from(len_bytes)];
                    index.longs.push(LongSymbol { word, mask, id, len_bytes });
                }
            }
        }
        let bucket_of = |symbol: &LongSymbol| bucket(symbol.word, shift);
        index.longs.sort_by_key(|symbol| {
            (bucket_of(symbol), u8::MAX - symbol.len_bytes, symbol.word.swap_bytes())
        });
        for symbol in &index.longs {
            index.bucket_ends[bucket_of(symbol) + 1] += 1;
        }
        for bucket in 0..num_buckets {
            index.bucket_ends[bucket + 1] += index.bucket_ends[bucket];
        }
        index
    }

    /// The symbol that is this byte.
    #[inline]
    pub(super) fn one(&self, word: u64) -> u16 {
        self.ones[usize::from(word as u8)]
    }

    /// Calls `found(id, length)` for each symbol of two bytes or more that `word` begins with,
    /// longest first, of those that are at most `max_len` long.
    #[inline]
    pub(super) fn for_each_longer(
        &self,
        word: u64,
        max_len: usize,
        mut found: impl FnMut(u16, usize),
    ) {
        let bucket = bucket(word, self.shift);
        let (start, end) = (self.bucket_ends[bucket], self.bucket_ends[bucket + 1]);
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
    // The first three bytes moved to the top, times an odd number near 2^64 / golden ratio.
    ((word << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}
