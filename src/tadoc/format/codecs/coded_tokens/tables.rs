//! Tables that decode the symbols of all contexts, one look-up for each. They take 2 bytes for each of up to 256
//! entries of a context.

use crate::error::Result;
use crate::format::cursor::{Cursor, Origin};
use crate::format::entropy::prefix_code::Stream;

use super::contexts::{LONG_LEN, MAX_PAIRS, MAX_SYMBOL_LEN, NUM_BYTES, NUM_PAIRS, NUM_SINGLE, Pairs, WIDTH_BITS};

/// A symbol, found by the next bits of a context.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    symbol: u8,
    code_len: u8,
}

/// Tables of the codes of all contexts.
#[derive(Debug)]
pub struct Tables {
    pub pairs: Pairs,
    entries: Vec<Entry>,
    /// Start of the entries of each context, and log2 of their number. A context that is not used has none.
    contexts: Vec<Option<(u32, u8)>>,
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
        let mut tables = Self { pairs: Pairs::new(&pairs), entries: Vec::new(), contexts: Vec::new() };
        let (mut symbols, mut lens) = (&symbols[..], &lens[..]);
        for _ in 0..NUM_SINGLE + num_pairs {
            let num_used = usize::try_from(counts.varint()?).unwrap_or(usize::MAX);
            let parts = symbols.split_at_checked(num_used).zip(lens.split_at_checked(num_used));
            let ((own, symbols_left), (own_lens, lens_left)) = parts.ok_or_else(misfit)?;
            (symbols, lens) = (symbols_left, lens_left);
            let table = if num_used == 0 { None } else { Some(tables.push(own, own_lens).ok_or_else(misfit)?) };
            tables.contexts.push(table);
        }
        if symbols.is_empty() && lens.is_empty() { Ok(tables) } else { Err(misfit()) }
    }

    /// Adds the table of a code of symbols, by the gaps between them, with these lengths. Returns `None` if it is not
    /// complete. A code of one symbol takes one bit.
    fn push(&mut self, gaps: &[u8], lens: &[u8]) -> Option<(u32, u8)> {
        let mut nums = [0u32; MAX_SYMBOL_LEN as usize + 1];
        for &len in lens {
            *nums.get_mut(usize::from(len)).filter(|_| len > 0)? += 1;
        }
        let width = *lens.iter().max()?;
        // The first code of each length.
        let (mut next_codes, mut code) = ([0u32; MAX_SYMBOL_LEN as usize + 1], 0);
        for len in 1..=usize::from(width) {
            code = (code + nums[len - 1]) << 1;
            next_codes[len] = code;
        }
        let is_single = matches!(lens, [1]);
        if !is_single && next_codes[usize::from(width)] + nums[usize::from(width)] != 1 << width {
            return None;
        }
        let start = self.entries.len();
        self.entries.resize(start + (1 << width), Entry::default());
        let entries = &mut self.entries[start..];
        let mut next = 0usize;
        for (&gap, &code_len) in gaps.iter().zip(lens) {
            let symbol = u8::try_from(next + usize::from(gap)).ok()?;
            next = usize::from(symbol) + 1;
            let code = &mut next_codes[usize::from(code_len)];
            let low_first = code.reverse_bits() >> (u32::BITS - u32::from(code_len));
            *code += 1;
            let step = if is_single { 1 } else { 1 << code_len };
            let with_code = entries.iter_mut().skip(low_first as usize).step_by(step);
            with_code.for_each(|entry| *entry = Entry { symbol, code_len });
        }
        Some((start as u32, width))
    }

    /// Reads a symbol. Returns `None` in a context that is not used.
    #[inline]
    pub fn symbol(&self, stream: &mut Stream<'_>, context: usize) -> Option<u8> {
        let (start, width) = self.contexts[context]?;
        let bits = stream.bits() as usize & ((1 << width) - 1);
        let Entry { symbol, code_len } = self.entries[start as usize + bits];
        stream.skip(code_len.into());
        Some(symbol)
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
        self.pairs.memory_bytes() + size_of_val(&self.entries[..]) + size_of_val(&self.contexts[..])
    }
}
