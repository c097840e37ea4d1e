//! The symbol table of a block, which maps codes to symbols, and its stored form.
//!
//! ```text
//! codes of 8 bits    0 … 254 symbols, at most 255      255: the next byte is a literal ("escape")
//! codes of 12 bits   0 … 4095 symbols, at most 4,096   no escape: every byte has to be a symbol
//!
//! stored   number of symbols (u16), then for each of them in order of its code
//!          bits 0..3  length - 1
//!          bits 3..6  bytes it shares with the symbol before it
//!          …          the other bytes
//! ```
//!
//! Trained tables are sorted by their bytes, so a symbol takes about 3 bytes. The form can store
//! any order, so tables of other FSST encoders keep their codes.
//!
//! # Symbols
//!
//! ```text
//! bits    0..8     8..16            56..64
//! word    byte 0   byte 1   …       byte 7       bytes behind the end are 0
//! packed  byte 0   byte 1   …       length, or byte 7 of a symbol of 8 bytes
//! ```
//!
//! Device kernels read the packed form. A top byte below 8 is the length. Any other top byte is the last of 8 bytes. So
//! a symbol of 8 bytes must not end in a byte below 8, which does not occur in text.
//!
//! # Codes of twelve bits
//!
//! ```text
//! byte      3k                 3k + 1                            3k + 2
//! holds     code 2k, bits 0-7  code 2k, bits 8-11 in its low     code 2k+1, bits 4-11
//!                              half; code 2k+1, bits 0-3
//! ```
//!
//! The last of an odd number of codes takes two bytes, and the high half of the second one is 0.

use std::fmt;

use crate::{Error, Result};

/// 8-bit code that announces a literal byte.
pub const ESCAPE_CODE: u8 = 255;

/// Number of bits of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeWidth {
    /// 8 bits: up to 255 symbols and an escape, as in FSST.
    Eight,
    /// 12 bits: up to 4,096 symbols, two codes in three bytes.
    Twelve,
}

impl CodeWidth {
    /// Returns the number of bits: 8 or 12.
    pub fn bits(self) -> usize {
        match self {
            Self::Eight => 8,
            Self::Twelve => 12,
        }
    }

    /// Returns the largest number of symbols of a table: 255 or 4,096.
    pub(crate) fn max_symbols(self) -> usize {
        match self {
            Self::Eight => usize::from(ESCAPE_CODE),
            Self::Twelve => 1 << 12,
        }
    }

    /// Returns the number of bytes that `num_codes` codes take.
    pub fn stored_bytes(self, num_codes: usize) -> usize {
        (num_codes * self.bits()).div_ceil(8)
    }
}

/// A list of symbols, indexed by code.
///
/// ```
/// use gsst::{CodeWidth, Symbol, SymbolTable};
///
/// let symbols = vec![Symbol::new(b"the ")?, Symbol::new(b"t")?];
/// let table = SymbolTable::new(CodeWidth::Eight, symbols)?;
/// assert_eq!(table.symbols()[0].as_bytes(), b"the ");
/// assert_eq!(SymbolTable::from_bytes(CodeWidth::Eight, &table.to_bytes())?, table);
/// # Ok::<(), gsst::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolTable {
    width: CodeWidth,
    symbols: Vec<Symbol>,
}

impl SymbolTable {
    /// Creates the table in which `symbols[code]` is the symbol of `code`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if there are more symbols than codes.
    pub fn new(width: CodeWidth, symbols: Vec<Symbol>) -> Result<Self> {
        if symbols.len() > width.max_symbols() {
            return Err(Error::InvalidArgument {
                name: "symbols",
                got: symbols.len().to_string(),
                allowed: format!("at most {}", width.max_symbols()),
            });
        }
        Ok(Self { width, symbols })
    }

    /// Creates a table from symbols that are known to fit `width`.
    pub(super) fn from_trained(width: CodeWidth, symbols: Vec<Symbol>) -> Self {
        debug_assert!(symbols.len() <= width.max_symbols());
        Self { width, symbols }
    }

    /// Returns the width of the codes.
    pub fn width(&self) -> CodeWidth {
        self.width
    }

    /// Returns the symbols, indexed by code.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Returns the [`Symbol::packed`] form of each code's symbol, and 0 for codes without a symbol.
    /// Device kernels read these 256 or 4,096 words.
    pub fn packed(&self) -> Vec<u64> {
        let mut packed = vec![0; 1 << self.width.bits()];
        for (word, symbol) in packed.iter_mut().zip(&self.symbols) {
            *word = symbol.packed();
        }
        packed
    }

    /// Returns, for each byte, true if it is a symbol of its own.
    pub(super) fn bytes_with_codes(&self) -> [bool; 256] {
        let mut has_code = [false; 256];
        for symbol in self.symbols.iter().filter(|symbol| symbol.len_bytes() == 1) {
            has_code[usize::from(symbol.as_bytes()[0])] = true;
        }
        has_code
    }

    /// Returns the stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut stored = (self.symbols.len() as u16).to_le_bytes().to_vec();
        let mut before: &[u8] = &[];
        for symbol in &self.symbols {
            let bytes = symbol.as_bytes();
            let num_shared = before.iter().zip(bytes).take_while(|(a, b)| a == b).count().min(bytes.len() - 1);
            stored.push((num_shared as u8) << 3 | (bytes.len() - 1) as u8);
            stored.extend_from_slice(&bytes[num_shared..]);
            before = bytes;
        }
        stored
    }

    /// Reads a table from its stored form, which must fill `stored`.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] with the offset inside `stored` if the bytes are not a table of this
    /// width.
    pub fn from_bytes(width: CodeWidth, stored: &[u8]) -> Result<Self> {
        let Some((count, mut rest)) = stored.split_first_chunk::<2>() else {
            return Err(fault(0, "shorter than a symbol count"));
        };
        let num_symbols = usize::from(u16::from_le_bytes(*count));
        if num_symbols > width.max_symbols() {
            let reason = format!("{num_symbols} symbols, at most {}", width.max_symbols());
            return Err(fault(0, reason));
        }
        let mut symbols = Vec::with_capacity(num_symbols);
        let mut bytes = [0; MAX_SYMBOL_BYTES];
        let mut len_before = 0;
        for _ in 0..num_symbols {
            let offset = stored.len() - rest.len();
            let Some((&head, behind)) = rest.split_first() else {
                return Err(fault(offset, "ends inside the table"));
            };
            let len_bytes = usize::from(head & 7) + 1;
            let num_shared = usize::from(head >> 3);
            if num_shared >= len_bytes || num_shared > len_before {
                return Err(fault(offset, format!("{num_shared} shared bytes of {len_bytes}")));
            }
            let Some((suffix, behind)) = behind.split_at_checked(len_bytes - num_shared) else {
                return Err(fault(offset, "ends inside a symbol"));
            };
            bytes[num_shared..len_bytes].copy_from_slice(suffix);
            let symbol = Symbol::try_new(&bytes[..len_bytes])
                .ok_or_else(|| fault(offset, "symbol of 8 bytes that ends in a byte below 8"))?;
            symbols.push(symbol);
            (len_before, rest) = (len_bytes, behind);
        }
        if !rest.is_empty() {
            return Err(fault(stored.len() - rest.len(), "bytes behind the last symbol"));
        }
        Ok(Self { width, symbols })
    }
}

fn fault(offset: usize, reason: impl Into<String>) -> Error {
    crate::fault("symbol table", offset, reason)
}

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
        if !has_form || (len_bytes == MAX_SYMBOL_BYTES && usize::from(bytes[7]) < MAX_SYMBOL_BYTES) {
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
pub(super) fn bytes_for<'a>(rows: impl Iterator<Item = &'a [u8]>) -> [bool; 256] {
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

/// Packs codes into their stored form.
pub(super) fn pack(codes: &[u16]) -> Vec<u8> {
    let mut packed = Vec::with_capacity((codes.len() * 3).div_ceil(2));
    let (pairs, last) = codes.as_chunks::<2>();
    for &[first, second] in pairs {
        let pair = u32::from(first) | u32::from(second) << 12;
        packed.extend_from_slice(&pair.to_le_bytes()[..3]);
    }
    if let [last] = last {
        packed.extend_from_slice(&last.to_le_bytes());
    }
    packed
}

/// Returns the code with the number `code_idx`.
#[inline]
pub(super) fn code_at(packed: &[u8], code_idx: usize) -> u16 {
    let at = code_idx / 2 * 3 + code_idx % 2;
    let pair = u16::from(packed[at]) | u16::from(packed[at + 1]) << 8;
    if code_idx.is_multiple_of(2) { pair & 0xfff } else { pair >> 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_forms_read_back_in_any_order() {
        let words = [&b"t"[..], b"the ", b"the", b"then", b"a", b"\xff\0\x01", b"12345678"];
        let symbols: Vec<_> = words.iter().map(|word| Symbol::new(word).unwrap()).collect();
        for width in [CodeWidth::Eight, CodeWidth::Twelve] {
            let table = SymbolTable::new(width, symbols.clone()).unwrap();
            let stored = table.to_bytes();
            assert_eq!(SymbolTable::from_bytes(width, &stored).unwrap(), table);
            for len in 0..stored.len() {
                let cut = SymbolTable::from_bytes(width, &stored[..len]);
                assert!(matches!(cut, Err(Error::Format { .. })), "{len}");
            }
            let longer = [&stored[..], &[0]].concat();
            assert!(SymbolTable::from_bytes(width, &longer).is_err());
        }
    }

    #[test]
    fn too_many_symbols_are_refused() {
        let symbols = vec![Symbol::from_byte(b'a'); 256];
        assert!(matches!(SymbolTable::new(CodeWidth::Eight, symbols.clone()), Err(Error::InvalidArgument { .. })));
        let stored = SymbolTable::new(CodeWidth::Twelve, symbols).unwrap().to_bytes();
        assert!(SymbolTable::from_bytes(CodeWidth::Eight, &stored).is_err());
    }

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

    #[test]
    fn packed_codes_read_back() {
        let codes: Vec<u16> = (0..4096).map(|code| code * 7 % 4096).collect();
        for len in (0..70).chain([4095, 4096]) {
            let packed = pack(&codes[..len]);
            assert_eq!(packed.len(), (3 * len).div_ceil(2));
            let read: Vec<u16> = (0..len).map(|code_idx| code_at(&packed, code_idx)).collect();
            assert_eq!(read, codes[..len]);
        }
    }
}
