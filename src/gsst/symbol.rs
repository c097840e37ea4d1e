//! A symbol: a string of 1 to 8 bytes that has a code.
//!
//! ```text
//! bits    0..8     8..16            56..64
//! word    byte 0   byte 1   …       byte 7       bytes behind the end are 0
//! packed  byte 0   byte 1   …       length, or byte 7 of a symbol of 8 bytes
//! ```
//!
//! Device kernels read the packed form. A top byte below 8 is the length. Any other top byte is the
//! last of 8 bytes. So a symbol of 8 bytes must not end in a byte below 8, which does not occur in
//! text.

use std::fmt;

use crate::error::{Error, Result};

/// Length of the longest symbol, in bytes.
pub const MAX_SYMBOL_BYTES: usize = 8;

/// Masks that keep the first `len` bytes of a little-endian word, indexed by `len`.
pub(super) const PREFIX_MASKS: [u64; MAX_SYMBOL_BYTES + 1] = prefix_masks();

/// A string of 1 to 8 bytes; one of 8 bytes does not end in a byte below 8.
///
/// ```
/// use gsst::Symbol;
///
/// let symbol = Symbol::new(b"the ")?;
/// assert_eq!((symbol.as_bytes(), symbol.len_bytes()), (&b"the "[..], 4));
/// assert!(Symbol::new(b"").is_err() && Symbol::new(b"123456\n\x07").is_err());
/// # Ok::<(), gsst::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Symbol {
    bytes: [u8; MAX_SYMBOL_BYTES],
    pub(super) len_bytes: u8,
}

impl Symbol {
    /// Returns the symbol with these bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if there are no bytes or more than 8, or if the eighth is below
    /// 8.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        Self::try_new(bytes).ok_or_else(|| Error::InvalidArgument {
            name: "symbol",
            got: format!("{bytes:?}"),
            allowed: "1 to 8 bytes, the eighth not below 8".to_owned(),
        })
    }

    /// Returns the symbol with these bytes, or `None` if [`Symbol::new`] would fail.
    pub(super) fn try_new(bytes: &[u8]) -> Option<Self> {
        let len_bytes = bytes.len();
        let has_form = (1..=MAX_SYMBOL_BYTES).contains(&len_bytes);
        if !has_form || (len_bytes == MAX_SYMBOL_BYTES && usize::from(bytes[7]) < MAX_SYMBOL_BYTES)
        {
            return None;
        }
        let mut padded = [0; MAX_SYMBOL_BYTES];
        padded[..len_bytes].copy_from_slice(bytes);
        Some(Self { bytes: padded, len_bytes: len_bytes as u8 })
    }

    /// Returns the symbol of one byte.
    pub(super) fn from_byte(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0, 0, 0, 0, 0], len_bytes: 1 }
    }

    /// Returns `self` followed by `next`, or `None` if the result is not a valid symbol.
    pub(super) fn concat(self, next: Self) -> Option<Self> {
        let len_bytes = self.len_bytes() + next.len_bytes();
        if len_bytes > MAX_SYMBOL_BYTES {
            return None;
        }
        let word = self.word() | next.word() << (8 * self.len_bytes());
        Self::try_new(&word.to_le_bytes()[..len_bytes])
    }

    /// Returns the bytes of the symbol.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len_bytes()]
    }

    /// Returns the length, 1 to 8.
    pub fn len_bytes(&self) -> usize {
        usize::from(self.len_bytes)
    }

    /// Returns the bytes as a little-endian word. The bytes behind the end are 0.
    pub fn word(&self) -> u64 {
        u64::from_le_bytes(self.bytes)
    }

    /// Returns word and length in 8 bytes, as drawn in the module's documentation.
    pub fn packed(&self) -> u64 {
        match self.len_bytes() {
            MAX_SYMBOL_BYTES => self.word(),
            len_bytes => self.word() | (len_bytes as u64) << 56,
        }
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbol(\"{}\")", self.as_bytes().escape_ascii())
    }
}

const fn prefix_masks() -> [u64; MAX_SYMBOL_BYTES + 1] {
    let mut masks = [0; MAX_SYMBOL_BYTES + 1];
    let mut len = 1;
    while len <= MAX_SYMBOL_BYTES {
        masks[len] = u64::MAX >> (64 - 8 * len);
        len += 1;
    }
    masks
}

/// Returns, for each byte, true if it occurs in `rows`.
pub(super) fn bytes_of<'a>(rows: impl Iterator<Item = &'a [u8]>) -> [bool; 256] {
    // Stores per pair of bytes are half as many as stores per byte.
    let mut pairs = vec![false; 1 << 16];
    let mut occurs = [false; 256];
    if let Ok(pairs) = <&mut [bool; 1 << 16]>::try_from(&mut pairs[..]) {
        for row in rows {
            let (chunks, rest) = row.as_chunks::<2>();
            for chunk in chunks {
                pairs[usize::from(u16::from_le_bytes(*chunk))] = true;
            }
            if let [last] = rest {
                occurs[usize::from(*last)] = true;
            }
        }
    }
    for (second, firsts) in pairs.as_chunks::<256>().0.iter().enumerate() {
        for (first, pair) in firsts.iter().enumerate() {
            occurs[first] |= pair;
        }
        occurs[second] |= firsts.contains(&true);
    }
    occurs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packed_form_tells_bytes_and_length() {
        for len_bytes in 1..=8 {
            let bytes = &b"\0\x01abcde\xff"[..len_bytes];
            let packed = Symbol::new(bytes).unwrap().packed();
            let top = (packed >> 56) as usize;
            assert_eq!(top.min(8), len_bytes);
            let mask = u64::MAX >> (64 - 8 * len_bytes);
            assert_eq!(packed & mask, Symbol::new(bytes).unwrap().word());
        }
        assert!(Symbol::new(b"0123456\x07").is_err() && Symbol::new(b"0123456\x08").is_ok());
        assert!(Symbol::new(b"012345678").is_err());
    }

    #[test]
    fn concatenations_stop_at_eight_bytes() {
        let symbol = |bytes: &[u8]| Symbol::new(bytes).unwrap();
        assert_eq!(symbol(b"abc").concat(symbol(b"defgh")), Some(symbol(b"abcdefgh")));
        assert_eq!(symbol(b"abc").concat(symbol(b"defghi")), None);
        assert_eq!(symbol(b"abc").concat(symbol(b"defg\x01")), None);
    }
}
