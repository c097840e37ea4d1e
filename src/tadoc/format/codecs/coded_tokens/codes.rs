//! Codes of the tokens of a dictionary: the contexts of their symbols, the encoder, and the tables of the decoder.
//!
//! The encoder counts the symbols of all contexts in one pass and writes them in another, in O(bytes of tokens). A
//! table decodes a symbol by one look-up and takes 2 bytes for each of up to 256 entries of a context.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::format::codecs::push_group;
use crate::format::cursor::{Cursor, Origin, pack, push_varint};
use crate::format::entropy::encode_monotone;
use crate::format::entropy::prefix_code::{BitWriter, Stream, code_lens, codes, is_complete};
use crate::text::Dictionary;

use super::{BLOCK_LEN, GROUP_LEN};

/// Level of zstd for the codes.
const LEVEL: i32 = 15;
/// Bits that a code takes: for itself, and for each symbol.
const CODE_BITS: u64 = 20;
const SYMBOL_BITS: u64 = 8;

/// Receiver of the tokens of a dictionary.
trait Sink {
    fn begin_block(&mut self) {}
    fn symbol(&mut self, context: usize, symbol: u8);
    fn plain(&mut self, _number: u32, _width: u8) {}

    fn len(&mut self, context: usize, len: usize) {
        self.symbol(context, len.min(LONG_LEN) as u8);
        if len >= LONG_LEN {
            let rest = (len - LONG_LEN) as u32;
            let width = (u32::BITS - rest.leading_zeros()) as u8;
            self.plain(width.into(), WIDTH_BITS);
            self.plain(rest, width);
        }
    }
}

/// Passes the tokens `ids` of `dictionary`, which begin with a block, to `sink`. `next_context` returns the
/// context of a byte by the pair of bytes before it, and by the context of the last one.
fn put_tokens(
    sink: &mut impl Sink,
    dictionary: &Dictionary,
    ids: Range<u32>,
    next_context: impl Fn(usize, usize) -> usize,
) {
    let mut shared_before = 0;
    for id in ids {
        let token = dictionary.get(id);
        let is_first = id % BLOCK_LEN == 0;
        let other = if is_first { dictionary.get(id - id % GROUP_LEN) } else { dictionary.get(id - 1) };
        let shared_len = other.iter().zip(token).take_while(|(a, b)| a == b).count();
        let context = if is_first { FIRST_SHARED_LEN } else { SHARED_LEN + len_context(shared_before, other.len()) };
        if is_first {
            sink.begin_block();
        }
        sink.len(context, shared_len);
        sink.len(OWN_LEN + len_context(shared_len, other.len()), token.len() - shared_len);
        for at in shared_len..token.len() {
            let context = match other.get(at).filter(|_| at == shared_len) {
                Some(&replaced) => FIRST_BYTE + usize::from(replaced),
                None => {
                    let pair = pair_context(last_two(&token[..at]), at + 1 == token.len());
                    next_context(pair, single_context(pair))
                }
            };
            sink.symbol(context, token[at]);
        }
        shared_before = shared_len;
    }
}

/// Counts of the symbols of contexts, or none for a context that is not used.
struct Counts(Vec<Option<Box<[u64; NUM_BYTES]>>>);

impl Sink for Counts {
    fn symbol(&mut self, context: usize, symbol: u8) {
        self.at(context)[usize::from(symbol)] += 1;
    }
}

impl Counts {
    fn new(num_contexts: usize) -> Self {
        Self(vec![None; num_contexts])
    }

    fn at(&mut self, context: usize) -> &mut [u64; NUM_BYTES] {
        self.0[context].get_or_insert_with(|| Box::new([0; NUM_BYTES]))
    }

    fn add(&mut self, context: usize, counts: &[u64; NUM_BYTES]) {
        self.at(context).iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }

    /// Returns the lengths of the codes of each context, none for one that is not used.
    fn code_lens(&self) -> Vec<Vec<u8>> {
        let lens = |counts: &[u64; NUM_BYTES]| code_lens(counts, MAX_SYMBOL_LEN);
        self.0.iter().map(|counts| counts.as_deref().map(lens).unwrap_or_default()).collect()
    }

    /// Gives pairs codes of their own where this saves bits. The counts are those of single contexts, and then of
    /// each pair. Returns these pairs, ascending, and counts of single contexts, with all other pairs, and then of
    /// these.
    fn with_own_pairs(self) -> (Vec<usize>, Self) {
        let mut counts = self.0;
        let from_pairs = counts.split_off(NUM_SINGLE);
        let single = |pair: usize| NEXT_BYTE + pair % (2 * NUM_BYTES);
        let used = || from_pairs.iter().enumerate().filter_map(|(pair, counts)| Some((pair, counts.as_deref()?)));
        let mut sums = Self::new(NUM_SINGLE);
        used().for_each(|(pair, counts)| sums.add(single(pair), counts));
        let sum_lens = sums.code_lens();
        let gains = used().map(|(pair, counts)| (gain(counts, &sum_lens[single(pair)]), pair));
        let mut gains: Vec<(u64, usize)> = gains.filter(|&(gain, _)| gain > 0).collect();
        gains.sort_unstable_by(|a, b| b.cmp(a));
        let mut own: Vec<usize> = gains.into_iter().map(|(_, pair)| pair).take(MAX_PAIRS).collect();
        own.sort_unstable();
        let mut all = Self(counts);
        for (pair, counts) in used() {
            if own.binary_search(&pair).is_ok() {
                all.0.push(Some(Box::new(*counts)));
            } else {
                all.add(single(pair), counts);
            }
        }
        (own, all)
    }
}

/// Returns the number of bits that a code of their own saves for symbols whose codes have the lengths `lens`.
fn gain(counts: &[u64; NUM_BYTES], lens: &[u8]) -> u64 {
    let num_bits = |lens: &[u8]| counts.iter().zip(lens).map(|(count, &len)| count * u64::from(len)).sum::<u64>();
    let num_symbols = counts.iter().filter(|&&count| count > 0).count() as u64;
    let own = num_bits(&code_lens(counts, MAX_SYMBOL_LEN)) + CODE_BITS + SYMBOL_BITS * num_symbols;
    num_bits(lens).saturating_sub(own)
}

struct Writer<'a> {
    /// Lengths and codes of the symbols of each context.
    codes: &'a [(Vec<u8>, Vec<u32>)],
    bits: BitWriter,
    blocks: Vec<u64>,
}

impl Writer<'_> {
    /// Returns the number of bits, the starts of blocks and the bits, one behind another.
    fn finish(self) -> Vec<u8> {
        let mut out = Vec::new();
        let num_bits = self.bits.position();
        push_varint(&mut out, num_bits);
        encode_monotone(&mut out, &self.blocks, num_bits + 1);
        out.extend(self.bits.finish());
        out
    }
}

impl Sink for Writer<'_> {
    fn begin_block(&mut self) {
        self.blocks.push(self.bits.position());
    }

    fn symbol(&mut self, context: usize, symbol: u8) {
        let (lens, codes) = &self.codes[context];
        self.bits.push(codes[usize::from(symbol)].into(), lens[usize::from(symbol)]);
    }

    fn plain(&mut self, number: u32, width: u8) {
        self.bits.push(number.into(), width);
    }
}

/// Returns the section's bytes for `dictionary` in codec 5, which earlier versions wrote.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if zstd cannot allocate memory.
#[cfg(test)]
pub(in crate::format::codecs) fn encode(dictionary: &Dictionary) -> Result<Vec<u8>> {
    let (mut out, parts) = encode_parts(dictionary, dictionary.len().max(1))?;
    for id in (0..dictionary.len()).step_by(GROUP_LEN as usize) {
        push_entry(&mut out, dictionary, id);
    }
    if parts.is_empty() {
        push_varint(&mut out, 0);
    }
    out.extend(parts.into_iter().flatten());
    Ok(out)
}

/// Returns the bytes of the head and of the section for `dictionary`.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if zstd cannot allocate memory.
pub(in crate::format::codecs) fn encode_with_head(dictionary: &Dictionary) -> Result<(Vec<u8>, Vec<u8>)> {
    let (mut head, parts) = encode_parts(dictionary, GROUP_LEN)?;
    for (id, part) in (0..).step_by(GROUP_LEN as usize).zip(&parts) {
        push_entry(&mut head, dictionary, id);
        push_group(&mut head, part);
    }
    Ok((head, parts.into_iter().flatten().collect()))
}

/// Appends the length of the tokens of the group that begins with token `id`, and this token.
fn push_entry(out: &mut Vec<u8>, dictionary: &Dictionary, id: u32) {
    let offset = |id: u32| u64::from(dictionary.offsets()[id as usize]);
    push_varint(out, offset(dictionary.len().min(id.saturating_add(GROUP_LEN))) - offset(id));
    push_varint(out, dictionary.get(id).len() as u64);
    out.extend_from_slice(dictionary.get(id));
}

/// Returns the codes, and the parts of `part_len` tokens each.
fn encode_parts(dictionary: &Dictionary, part_len: u32) -> Result<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut counts = Counts::new(NUM_SINGLE + NUM_PAIRS);
    put_tokens(&mut counts, dictionary, 0..dictionary.len(), |pair, _| NUM_SINGLE + pair);
    let (own_pairs, counts) = counts.with_own_pairs();
    let lens = counts.code_lens();
    let mut out = Vec::new();
    push_codes(&mut out, &own_pairs, &lens)?;
    let with_codes = lens.into_iter().map(|lens| {
        let codes = codes(&lens);
        (lens, codes)
    });
    let codes: Vec<_> = with_codes.collect();
    let mut contexts: Vec<usize> = vec![0; NUM_PAIRS];
    (NUM_SINGLE..).zip(&own_pairs).for_each(|(context, &pair)| contexts[pair] = context);
    let next_context = |pair: usize, single: usize| if contexts[pair] > 0 { contexts[pair] } else { single };
    let part_at = |start: u32| {
        let mut writer = Writer { codes: &codes, bits: BitWriter::default(), blocks: Vec::new() };
        let ids = start..dictionary.len().min(start.saturating_add(part_len));
        put_tokens(&mut writer, dictionary, ids, next_context);
        writer.finish()
    };
    Ok((out, (0..dictionary.len()).step_by(part_len as usize).map(part_at).collect()))
}

/// Appends the pairs with contexts of their own, and the lengths of the codes of contexts.
fn push_codes(out: &mut Vec<u8>, pairs: &[usize], lens: &[Vec<u8>]) -> Result<()> {
    let mut keys = Vec::new();
    let mut counts = Vec::new();
    let mut symbols = Vec::new();
    let mut used_lens = Vec::new();
    let mut next = 0;
    for &pair in pairs {
        push_varint(&mut keys, (pair - next) as u64);
        next = pair + 1;
    }
    for lens in lens {
        let used = lens.iter().enumerate().filter(|(_, len)| **len > 0);
        let mut num_symbols = 0u64;
        let mut next = 0;
        for (symbol, &len) in used {
            symbols.push((symbol - next) as u8);
            used_lens.push(len);
            next = symbol + 1;
            num_symbols += 1;
        }
        push_varint(&mut counts, num_symbols);
    }
    push_varint(out, pairs.len() as u64);
    push_varint(out, symbols.len() as u64);
    for part in [keys, counts, symbols, used_lens] {
        pack(out, &part, LEVEL)?;
    }
    Ok(())
}

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
    /// The table of each pair: its own, or that of its last byte. So a byte takes two look-ups that wait for each
    /// other.
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
        let num_pairs = num_pairs as usize;
        let num_symbols = num_symbols as usize;
        let [keys, counts] = [cursor.unpack(3 * num_pairs)?, cursor.unpack(2 * (NUM_SINGLE + num_pairs))?];
        let [symbols, lens] = [cursor.unpack(num_symbols)?, cursor.unpack(num_symbols)?];
        let mut keys = Cursor::new(place, &keys);
        let mut counts = Cursor::new(place, &counts);
        let mut pairs = Vec::with_capacity(num_pairs);
        let mut next = 0u64;
        for _ in 0..num_pairs {
            let pair = next.saturating_add(keys.varint()?);
            pairs.push(usize::try_from(pair).ok().filter(|&pair| pair < NUM_PAIRS).ok_or_else(misfit)?);
            next = pair + 1;
        }
        let mut tables = Self { entries: Vec::new(), single: Vec::new(), pairs: Vec::new() };
        let mut symbols = &symbols[..];
        let mut lens = &lens[..];
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
