//! Contexts of the codes of tokens: the lengths, the byte or the pair of bytes before a symbol.

/// Greatest length of a code, so that the tables of all contexts fit into a cache.
pub const MAX_SYMBOL_LEN: u8 = 8;
/// Least length that is escaped, and the symbol of the escape.
pub const LONG_LEN: usize = 31;
/// Bits that hold the width of a long length.
pub const WIDTH_BITS: u8 = 5;

/// Contexts, one behind another. Those of pairs of bytes follow.
pub const SHARED_LEN: usize = 0;
pub const FIRST_SHARED_LEN: usize = SHARED_LEN + NUM_LEN_CONTEXTS;
pub const OWN_LEN: usize = FIRST_SHARED_LEN + 1;
pub const FIRST_BYTE: usize = OWN_LEN + NUM_LEN_CONTEXTS;
pub const NEXT_BYTE: usize = FIRST_BYTE + NUM_BYTES;
pub const NUM_SINGLE: usize = NEXT_BYTE + 2 * NUM_BYTES;
const NUM_LEN_CONTEXTS: usize = 128;
pub const NUM_BYTES: usize = 256;
/// Number of pairs of bytes before another, each with true or false for the last one.
pub const NUM_PAIRS: usize = 2 * NUM_BYTES * NUM_BYTES;
/// Greatest number of pairs with codes of their own. With more of them a dictionary is smaller,
/// and its tables do not fit into a cache.
pub const MAX_PAIRS: usize = 1 << 10;

/// Returns the context, less than [`NUM_LEN_CONTEXTS`], of a length and of the rest of another string.
#[inline]
pub fn len_context(len: usize, other_len: usize) -> usize {
    len.min(15) * 8 + other_len.saturating_sub(len).min(7)
}

/// Returns the last two bytes of `token`, with zeros before it.
#[inline]
pub fn last_two(token: &[u8]) -> [u8; 2] {
    match token {
        [.., two, one] => [*two, *one],
        [one] => [0, *one],
        [] => [0, 0],
    }
}

/// Returns the context of the pair of bytes before another, which `is_last` of its token or not.
#[inline]
pub fn pair_context([two, one]: [u8; 2], is_last: bool) -> usize {
    2 * (NUM_BYTES * usize::from(two) + usize::from(one)) + usize::from(is_last)
}

/// Returns the context of the last byte of a pair alone.
pub fn single_context(pair: usize) -> usize {
    NEXT_BYTE + pair % (2 * NUM_BYTES)
}
