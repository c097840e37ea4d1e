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

use crate::error::{Error, Result};

use super::symbol::{MAX_SYMBOL_BYTES, Symbol};

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
    pub fn max_symbols(self) -> usize {
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
            let num_shared =
                before.iter().zip(bytes).take_while(|(a, b)| a == b).count().min(bytes.len() - 1);
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
            let (len_bytes, num_shared) = (usize::from(head & 7) + 1, usize::from(head >> 3));
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
    crate::error::fault("symbol table", offset, reason)
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
        assert!(matches!(
            SymbolTable::new(CodeWidth::Eight, symbols.clone()),
            Err(Error::InvalidArgument { .. })
        ));
        let stored = SymbolTable::new(CodeWidth::Twelve, symbols).unwrap().to_bytes();
        assert!(SymbolTable::from_bytes(CodeWidth::Eight, &stored).is_err());
    }
}
