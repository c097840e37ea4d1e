//! Tables that decode the symbols of all contexts, one look-up for each. They take 2 bytes for each of up to 256
//! entries of a context.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::format::cursor::{Cursor, Origin};
use crate::format::entropy::prefix_code::{Stream, codes, is_complete};

use super::contexts::{LONG_LEN, MAX_PAIRS, MAX_SYMBOL_LEN, NEXT_BYTE, NUM_BYTES, NUM_PAIRS, NUM_SINGLE, WIDTH_BITS};

/// Number of streams of codes: pairs, numbers of symbols, symbols, lengths.
const NUM_PACKED: usize = 4;

/// A symbol, found by the next bits of a context.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    symbol: u8,
    code_len: u8,
}

/// Place of the entries of a context: their start and log2 of their number, 0 for a context that is not used.
#[derive(Debug, Clone, Copy, Default)]
pub struct Table(u32);

impl Table {
    const WIDTH_BITS: u32 = 4;

    fn new(start: usize, width: u8) -> Self {
        Self((start as u32) << Self::WIDTH_BITS | u32::from(width))
    }
}

/// Codes whose tables are made when they are needed.
#[derive(Debug)]
pub struct StoredTables {
    bytes: Vec<u8>,
    tables: Mutex<Option<Arc<Tables>>>,
}

impl StoredTables {
    /// Takes what the encoder wrote.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if `cursor` has fewer bytes.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let bytes = cursor.behind(|cursor| {
            let _numbers = [cursor.varint()?, cursor.varint()?];
            (0..NUM_PACKED).try_for_each(|_| cursor.skip_packed())
        })?;
        Ok(Self { bytes: bytes.to_vec(), tables: Mutex::default() })
    }

    /// Returns the tables of the section at `place`.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if a code is not complete.
    pub fn get(&self, place: Origin<'_>) -> Result<Arc<Tables>> {
        let mut tables = self.lock();
        if let Some(tables) = &*tables {
            return Ok(Arc::clone(tables));
        }
        let made = Arc::new(Tables::read(&mut Cursor::new(place, &self.bytes), place)?);
        *tables = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Drops the tables, which are some hundred times as large as the codes.
    pub fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Tables>>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.lock().as_ref().map_or(0, |tables| tables.memory_bytes())
    }
}

/// Tables of the codes of all contexts.
#[derive(Debug)]
pub struct Tables {
    entries: Vec<Entry>,
    single: Vec<Table>,
    /// The table of each pair: its own, or that of its last byte. So a byte takes two look-ups that wait for each other.
    pairs: Vec<Table>,
}

impl Tables {
    /// Reads what the encoder wrote.
    ///
    /// # Errors
    /// [`Error::Format`] if a code is not complete.
    pub fn read(cursor: &mut Cursor<'_>, place: Origin<'_>) -> Result<Self> {
        let at = cursor.clone();
        let misfit = || at.fault("expected lengths of complete prefix codes");
        let [num_pairs, num_symbols] = [cursor.varint()?, cursor.varint()?];
        if num_pairs > MAX_PAIRS as u64 || num_symbols > (NUM_BYTES * (NUM_SINGLE + MAX_PAIRS)) as u64 {
            return Err(misfit());
        }
        let (num_pairs, num_symbols) = (num_pairs as usize, num_symbols as usize);
        let [keys, counts] = [cursor.unpack(3 * num_pairs)?, cursor.unpack(2 * (NUM_SINGLE + num_pairs))?];
        let [symbols, lens] = [cursor.unpack(num_symbols)?, cursor.unpack(num_symbols)?];
        let (mut keys, mut counts) = (Cursor::new(place, &keys), Cursor::new(place, &counts));
        let (mut pairs, mut next) = (Vec::with_capacity(num_pairs), 0u64);
        for _ in 0..num_pairs {
            let pair = next.saturating_add(keys.varint()?);
            pairs.push(usize::try_from(pair).ok().filter(|&pair| pair < NUM_PAIRS).ok_or_else(misfit)?);
            next = pair + 1;
        }
        let mut tables = Self { entries: Vec::new(), single: Vec::new(), pairs: Vec::new() };
        let (mut symbols, mut lens) = (&symbols[..], &lens[..]);
        for _ in 0..NUM_SINGLE + num_pairs {
            let num_used = usize::try_from(counts.varint()?).unwrap_or(usize::MAX);
            let parts = symbols.split_at_checked(num_used).zip(lens.split_at_checked(num_used));
            let ((own, symbols_left), (own_lens, lens_left)) = parts.ok_or_else(misfit)?;
            (symbols, lens) = (symbols_left, lens_left);
            let is_used = num_used > 0;
            let table = if is_used { tables.push(own, own_lens).ok_or_else(misfit)? } else { Table::default() };
            tables.single.push(table);
        }
        if !symbols.is_empty() || !lens.is_empty() {
            return Err(misfit());
        }
        let own = tables.single.split_off(NUM_SINGLE);
        tables.pairs = tables.single[NEXT_BYTE..].repeat(NUM_BYTES);
        pairs.into_iter().zip(own).for_each(|(pair, table)| tables.pairs[pair] = table);
        Ok(tables)
    }

    /// Adds the table of a code of symbols, by the gaps between them, with these lengths. Returns `None` if it is not
    /// complete. A code of one symbol takes one bit.
    fn push(&mut self, gaps: &[u8], lens: &[u8]) -> Option<Table> {
        let width = *lens.iter().max()?;
        let is_single = matches!(lens, [1]);
        let is_code = is_single || lens.len() > 1 && !lens.contains(&0) && is_complete(lens);
        if !is_code || width > MAX_SYMBOL_LEN {
            return None;
        }
        let start = self.entries.len();
        self.entries.resize(start + (1 << width), Entry::default());
        let entries = &mut self.entries[start..];
        let mut next = 0usize;
        for ((&gap, &code_len), code) in gaps.iter().zip(lens).zip(codes(lens)) {
            let symbol = u8::try_from(next + usize::from(gap)).ok()?;
            next = usize::from(symbol) + 1;
            let step = if is_single { 1 } else { 1 << code_len };
            let with_code = entries.iter_mut().skip(code as usize).step_by(step);
            with_code.for_each(|entry| *entry = Entry { symbol, code_len });
        }
        Some(Table::new(start, width))
    }

    #[inline]
    fn symbol_in(&self, stream: &mut Stream<'_>, Table(table): Table) -> Option<u8> {
        let width = table & ((1 << Table::WIDTH_BITS) - 1);
        if width == 0 {
            return None;
        }
        let bits = stream.bits() as usize & ((1 << width) - 1);
        let Entry { symbol, code_len } = self.entries[(table >> Table::WIDTH_BITS) as usize + bits];
        stream.position += usize::from(code_len);
        Some(symbol)
    }

    /// Reads a symbol. Returns `None` in a context that is not used.
    #[inline]
    pub fn symbol(&self, stream: &mut Stream<'_>, context: usize) -> Option<u8> {
        self.symbol_in(stream, self.single[context])
    }

    /// Reads a byte behind a pair. Returns `None` in a context that is not used.
    #[inline]
    pub fn next_byte(&self, stream: &mut Stream<'_>, pair: usize) -> Option<u8> {
        self.symbol_in(stream, self.pairs[pair])
    }

    #[inline]
    pub fn len(&self, stream: &mut Stream<'_>, context: usize) -> Option<usize> {
        let len = usize::from(self.symbol(stream, context)?);
        if len < LONG_LEN {
            return Some(len);
        }
        let width = stream.plain(WIDTH_BITS) as u8;
        Some(LONG_LEN + stream.plain(width) as usize)
    }

    pub fn memory_bytes(&self) -> usize {
        size_of_val(&self.entries[..]) + size_of_val(&self.single[..]) + size_of_val(&self.pairs[..])
    }
}
