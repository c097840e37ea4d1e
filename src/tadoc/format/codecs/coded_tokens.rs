//! Codec of the tokens of a dictionary in which any token is read alone.
//!
//! ```text
//! section   codes | groups | blocks | bits
//! codes     pairs of bytes with codes of their own | symbols of contexts, code lengths: zstd
//! groups    of each 1,024 tokens: their bytes LEB128, length LEB128 and bytes of the first one
//! blocks    bit at which each block of 32 tokens begins (`monotone`)
//! bits      of each token: length shared with a token before | own length | own bytes
//!
//! "plant"   groups  │ fish │ needle │ …      blocks  │ night │ over │ pin │ …      tokens  pin pint plan plant
//! ```
//!
//! The first token of a block shares bytes with the first token of its group, and any other with the
//! token before it. Numbers and bytes are in static prefix codes (`prefix_code`), with a code for each
//! context: lengths depend on the lengths before them, the first own byte on the byte that it replaces,
//! and other bytes on the byte before and on being the last one. Pairs of bytes after which this saves
//! bits have codes of their own. A length of 31 or more is an escape, and then its width in 5 bits and
//! itself.
//!
//! A word is found by its group, then by the first tokens of blocks, then in one block: it takes some
//! microseconds. A token takes 60 to 90 ns, and 16 others before it on average. Blocks of zstd with 4,096
//! tokens take 0.98 of the bytes, and all of their tokens are decoded in about the same time.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::format::cursor::{Cursor, Origin, pack, push_varint};
use crate::format::entropy::monotone::{Monotone, encode_monotone};
use crate::format::entropy::prefix_code::{BitWriter, Stream, code_lens, codes};
use crate::format::layout::SegmentMeta;
use crate::format::strings::Tokens;
use crate::text::Dictionary;

const BLOCK_LEN: u32 = 32;
const GROUP_LEN: u32 = 1024;
/// Number of tokens that are decoded by one thread at once.
const TOKENS_AT_ONCE: usize = 16 * GROUP_LEN as usize;
/// Greatest length of a code, so that the tables of all contexts fit into a cache.
const MAX_SYMBOL_LEN: u8 = 8;
/// Level of zstd for the codes.
const LEVEL: i32 = 15;

/// Least length that is escaped, and the symbol of the escape.
const LONG_LEN: usize = 31;
/// Bits that hold the width of a long length.
const WIDTH_BITS: u8 = 5;

/// Contexts, one behind another. Those of pairs of bytes follow.
const SHARED_LEN: usize = 0;
const FIRST_SHARED_LEN: usize = SHARED_LEN + NUM_LEN_CONTEXTS;
const OWN_LEN: usize = FIRST_SHARED_LEN + 1;
const FIRST_BYTE: usize = OWN_LEN + NUM_LEN_CONTEXTS;
const NEXT_BYTE: usize = FIRST_BYTE + NUM_BYTES;
const NUM_SINGLE: usize = NEXT_BYTE + 2 * NUM_BYTES;
const NUM_LEN_CONTEXTS: usize = 128;
const NUM_BYTES: usize = 256;
/// Number of pairs of bytes before another, each with true or false for the last one.
const NUM_PAIRS: usize = 2 * NUM_BYTES * NUM_BYTES;
/// Greatest number of pairs with codes of their own. With 16 times as many a dictionary is 2 % smaller, and its tables
/// do not fit into a cache: tokens take a third longer.
const MAX_PAIRS: usize = 1 << 10;
/// Bits that a code takes: for itself, and for each symbol.
const CODE_BITS: u64 = 20;
const SYMBOL_BITS: u64 = 8;

/// Returns the context, less than [`NUM_LEN_CONTEXTS`], of a length and of the rest of another string.
#[inline]
fn len_context(len: usize, other_len: usize) -> usize {
    len.min(15) * 8 + other_len.saturating_sub(len).min(7)
}

/// The pair of the last two bytes of `token`, and true if the next one is its last, and the context of the
/// last one.
#[inline]
fn next_context(token: &[u8], is_last: bool) -> (usize, usize) {
    let [one, two] = match token {
        [.., two, one] => [*one, *two],
        [one] => [*one, 0],
        [] => [0, 0],
    };
    let single = 2 * usize::from(one) + usize::from(is_last);
    (2 * NUM_BYTES * usize::from(two) + single, NEXT_BYTE + single)
}

/// Receiver of the tokens of a dictionary.
trait Sink {
    fn begin_block(&mut self) {}
    fn symbol(&mut self, context: usize, symbol: u8);
    /// Receives a byte behind the `pair` of bytes, of which the last one has the context `single`.
    fn next_byte(&mut self, pair: usize, single: usize, byte: u8);
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

/// Passes the tokens of `dictionary` to `sink`.
fn put_tokens(sink: &mut impl Sink, dictionary: &Dictionary) {
    let mut shared_before = 0;
    for id in 0..dictionary.len() {
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
            match other.get(at).filter(|_| at == shared_len) {
                Some(&replaced) => sink.symbol(FIRST_BYTE + usize::from(replaced), token[at]),
                None => {
                    let (pair, single) = next_context(&token[..at], at + 1 == token.len());
                    sink.next_byte(pair, single, token[at]);
                }
            }
        }
        shared_before = shared_len;
    }
}

/// Counts of the symbols of each context.
type Counts = BTreeMap<usize, [u64; NUM_BYTES]>;

fn count(counts: &mut Counts, context: usize, symbol: u8) {
    counts.entry(context).or_insert([0; NUM_BYTES])[usize::from(symbol)] += 1;
}

/// Counts the bytes behind pairs.
#[derive(Default)]
struct PairCounts(Counts);

impl Sink for PairCounts {
    fn symbol(&mut self, _context: usize, _symbol: u8) {}

    fn next_byte(&mut self, pair: usize, _single: usize, byte: u8) {
        count(&mut self.0, pair, byte);
    }
}

impl PairCounts {
    /// Returns the pairs, ascending, whose bytes take less with a code of their own than with that of the last byte.
    fn worth_codes(&self) -> Vec<usize> {
        let mut singles = Counts::new();
        for (pair, counts) in &self.0 {
            let sums = singles.entry(pair % (2 * NUM_BYTES)).or_insert([0; NUM_BYTES]);
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        let lens = singles.into_iter().map(|(single, counts)| (single, code_lens(&counts, MAX_SYMBOL_LEN)));
        let lens: BTreeMap<usize, Vec<u8>> = lens.collect();
        let gain = |pair: usize, counts: &[u64; NUM_BYTES]| {
            let num_symbols = counts.iter().filter(|&&count| count > 0).count() as u64;
            let own = num_bits(counts, &code_lens(counts, MAX_SYMBOL_LEN)) + CODE_BITS + SYMBOL_BITS * num_symbols;
            num_bits(counts, &lens[&(pair % (2 * NUM_BYTES))]).saturating_sub(own)
        };
        let gains = self.0.iter().map(|(&pair, counts)| (gain(pair, counts), pair));
        let mut gains: Vec<(u64, usize)> = gains.filter(|&(gain, _)| gain > 0).collect();
        gains.sort_unstable_by(|a, b| b.cmp(a));
        let mut pairs: Vec<usize> = gains.into_iter().map(|(_, pair)| pair).take(MAX_PAIRS).collect();
        pairs.sort_unstable();
        pairs
    }
}

fn num_bits(counts: &[u64; NUM_BYTES], lens: &[u8]) -> u64 {
    counts.iter().zip(lens).map(|(count, &len)| count * u64::from(len)).sum()
}

/// Finds the context of pairs with codes of their own.
#[derive(Debug)]
struct Pairs {
    /// Context of each pair, or 0.
    contexts: Vec<u16>,
}

impl Pairs {
    /// Takes `pairs`, which ascend.
    fn new(pairs: &[usize]) -> Self {
        let mut contexts = vec![0; NUM_PAIRS];
        for (context, &pair) in (NUM_SINGLE as u16..).zip(pairs) {
            contexts[pair] = context;
        }
        Self { contexts }
    }

    #[inline]
    fn context(&self, pair: usize, single: usize) -> usize {
        match self.contexts[pair] {
            0 => single,
            context => context.into(),
        }
    }
}

struct SymbolCounts<'a> {
    pairs: &'a Pairs,
    counts: Counts,
}

impl Sink for SymbolCounts<'_> {
    fn symbol(&mut self, context: usize, symbol: u8) {
        count(&mut self.counts, context, symbol);
    }

    fn next_byte(&mut self, pair: usize, single: usize, byte: u8) {
        self.symbol(self.pairs.context(pair, single), byte);
    }
}

struct Writer<'a> {
    pairs: &'a Pairs,
    /// Lengths and codes of the symbols of each context.
    codes: BTreeMap<usize, (Vec<u8>, Vec<u32>)>,
    bits: BitWriter,
    blocks: Vec<u64>,
}

impl Sink for Writer<'_> {
    fn begin_block(&mut self) {
        self.blocks.push(self.bits.position());
    }

    fn symbol(&mut self, context: usize, symbol: u8) {
        let (lens, codes) = &self.codes[&context];
        self.bits.push(codes[usize::from(symbol)], lens[usize::from(symbol)]);
    }

    fn next_byte(&mut self, pair: usize, single: usize, byte: u8) {
        self.symbol(self.pairs.context(pair, single), byte);
    }

    fn plain(&mut self, number: u32, width: u8) {
        self.bits.push(number, width);
    }
}

/// Returns the section's bytes for `dictionary`.
///
/// # Errors
/// [`Error::Io`] if zstd cannot allocate memory.
pub(super) fn encode(dictionary: &Dictionary) -> Result<Vec<u8>> {
    let mut from_pairs = PairCounts::default();
    put_tokens(&mut from_pairs, dictionary);
    let own_pairs = from_pairs.worth_codes();
    let pairs = Pairs::new(&own_pairs);
    let mut counted = SymbolCounts { pairs: &pairs, counts: Counts::new() };
    put_tokens(&mut counted, dictionary);
    let lens = counted.counts.iter().map(|(&context, counts)| (context, code_lens(counts, MAX_SYMBOL_LEN)));
    let lens: BTreeMap<usize, Vec<u8>> = lens.collect();
    let mut out = Vec::new();
    push_codes(&mut out, &own_pairs, &lens)?;
    let with_codes = lens.into_iter().map(|(context, lens)| {
        let codes = codes(&lens);
        (context, (lens, codes))
    });
    let codes = with_codes.collect();
    let mut writer = Writer { pairs: &pairs, codes, bits: BitWriter::default(), blocks: Vec::new() };
    put_tokens(&mut writer, dictionary);
    let num_bits = writer.bits.position();
    for id in (0..dictionary.len()).step_by(GROUP_LEN as usize) {
        let offset = |id: u32| u64::from(dictionary.offsets()[id as usize]);
        push_varint(&mut out, offset(dictionary.len().min(id.saturating_add(GROUP_LEN))) - offset(id));
        push_varint(&mut out, dictionary.get(id).len() as u64);
        out.extend_from_slice(dictionary.get(id));
    }
    push_varint(&mut out, num_bits);
    encode_monotone(&mut out, &writer.blocks, num_bits + 1);
    out.extend(writer.bits.finish());
    Ok(out)
}

/// Appends the pairs with contexts of their own, and the lengths of the codes of contexts.
fn push_codes(out: &mut Vec<u8>, pairs: &[usize], lens: &BTreeMap<usize, Vec<u8>>) -> Result<()> {
    let (mut keys, mut counts, mut symbols, mut used_lens) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut next = 0;
    for &pair in pairs {
        push_varint(&mut keys, (pair - next) as u64);
        next = pair + 1;
    }
    for context in 0..NUM_SINGLE + pairs.len() {
        let used = lens.get(&context).into_iter().flatten().enumerate().filter(|(_, len)| **len > 0);
        let (mut num_symbols, mut next) = (0u64, 0);
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

/// A symbol, found by the next bits of a context.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    symbol: u8,
    code_len: u8,
}

/// Tables of the codes of all contexts.
#[derive(Debug)]
struct Tables {
    pairs: Pairs,
    entries: Vec<Entry>,
    /// Start of the entries of each context, and log2 of their number. A context that is not used has none.
    contexts: Vec<Option<(u32, u8)>>,
}

impl Tables {
    /// Reads what [`push_codes`] wrote.
    ///
    /// # Errors
    /// [`Error::Format`] if a code is not complete.
    fn read(cursor: &mut Cursor<'_>, place: Origin<'_>) -> Result<Self> {
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
    fn symbol(&self, stream: &mut Stream<'_>, context: usize) -> Option<u8> {
        let (start, width) = self.contexts[context]?;
        let bits = stream.bits() as usize & ((1 << width) - 1);
        let Entry { symbol, code_len } = self.entries[start as usize + bits];
        stream.skip(code_len.into());
        Some(symbol)
    }

    #[inline]
    fn len(&self, stream: &mut Stream<'_>, context: usize) -> Option<usize> {
        let len = usize::from(self.symbol(stream, context)?);
        if len < LONG_LEN {
            return Some(len);
        }
        let width = stream.plain(WIDTH_BITS) as u8;
        Some(LONG_LEN + stream.plain(width) as usize)
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&self.pairs.contexts[..]) + size_of_val(&self.entries[..]) + size_of_val(&self.contexts[..])
    }
}

#[derive(Debug)]
struct Group {
    /// Length of its tokens in bytes.
    len: usize,
    /// The first token, as a range of the section.
    first: Range<usize>,
}

/// Codes of a section, and the places of its parts.
#[derive(Debug)]
pub(in crate::format) struct CodedTokens {
    num_words: u32,
    num_tokens: u32,
    /// Length of all tokens in bytes.
    len: usize,
    tables: Tables,
    groups: Vec<Group>,
    /// Starts of blocks, as a range of the section, and a limit of their bits.
    blocks: Range<usize>,
    num_bits: u64,
}

impl CodedTokens {
    /// Reads the codes and groups of the segment `meta`.
    ///
    /// # Errors
    /// [`Error::Format`] if `bytes` are no such section.
    pub(super) fn read(place: Origin<'_>, bytes: &[u8], meta: &SegmentMeta) -> Result<Self> {
        let mut cursor = Cursor::new(place, bytes);
        let tables = Tables::read(&mut cursor, place)?;
        // Together they are less than 2^32, as the footer was checked.
        let num_tokens = meta.num_words.saturating_add(meta.num_separators);
        let (mut groups, mut len_left) = (Vec::new(), meta.dictionary_bytes);
        for _ in 0..num_tokens.div_ceil(GROUP_LEN) {
            let (len, first_len) = (cursor.varint()?, cursor.varint()?);
            len_left = len_left.checked_sub(len).ok_or_else(|| cursor.fault("expected a group of fewer bytes"))?;
            let start = bytes.len() - cursor.remaining();
            let first = cursor.take(usize::try_from(first_len).unwrap_or(usize::MAX))?;
            groups.push(Group { len: len as usize, first: start..start + first.len() });
        }
        if len_left > 0 {
            return Err(
                cursor.fault(format!("expected groups of {} bytes, {len_left} are left", meta.dictionary_bytes))
            );
        }
        let num_bits = cursor.varint()?;
        // Each token has two lengths of one bit or more, so the bytes bound the memory.
        if num_bits > 8 * bytes.len() as u64 || 2 * u64::from(num_tokens) > num_bits {
            return Err(cursor.fault(format!("expected {num_tokens} tokens in fewer bits, got {num_bits}")));
        }
        let start = bytes.len() - cursor.remaining();
        Monotone::read(&mut cursor, num_tokens.div_ceil(BLOCK_LEN) as usize, num_bits + 1)?;
        let blocks = start..bytes.len() - cursor.remaining();
        cursor.take(num_bits.div_ceil(8) as usize)?;
        cursor.finish()?;
        let from_words = groups[..meta.num_words.div_ceil(GROUP_LEN) as usize].iter();
        if !from_words.map(|group| &bytes[group.first.clone()]).is_sorted_by(|a, b| a < b) {
            return Err(place.fault(0, "expected groups of words in ascending order"));
        }
        let len = usize::try_from(meta.dictionary_bytes).unwrap_or(usize::MAX);
        Ok(Self { num_words: meta.num_words, num_tokens, len, tables, groups, blocks, num_bits })
    }

    /// Returns the number of bytes of main memory in use.
    pub(in crate::format) fn memory_bytes(&self) -> usize {
        self.tables.memory_bytes() + size_of_val(&self.groups[..])
    }

    /// Decodes all tokens.
    ///
    /// # Errors
    /// [`Error::Format`] for tokens that are not as declared.
    pub(super) fn decode(&self, place: Origin<'_>, bytes: &[u8]) -> Result<Tokens> {
        let parts: Vec<u32> = (0..self.num_tokens).step_by(TOKENS_AT_ONCE).collect();
        let decode = |&start: &u32| {
            let end = self.num_tokens.min(start.saturating_add(TOKENS_AT_ONCE as u32));
            self.tokens(place, bytes, start..end)
        };
        let tokens = Tokens::joined(&parts.par_iter().map(decode).collect::<Result<Vec<_>>>()?);
        let is_at_end = tokens.arena.len() == self.len;
        if is_at_end { Ok(tokens) } else { Err(self.fault(place)) }
    }

    /// Returns the dictionary of the tokens `ids`, which ascend. Decodes only their blocks.
    ///
    /// # Errors
    /// [`Error::Format`] for tokens that are not as declared, [`Error::OutOfRange`] for an id that does not exist.
    pub(in crate::format) fn subset(&self, place: Origin<'_>, bytes: &[u8], ids: &[u32]) -> Result<Dictionary> {
        if let Some(&id) = ids.last().filter(|&&id| id >= self.num_tokens) {
            return Err(Error::OutOfRange { what: "token", got: id.into(), len: self.num_tokens.into() });
        }
        let parts = ids.par_chunks(TOKENS_AT_ONCE / 8).map(|ids| self.tokens(place, bytes, ids.iter().copied()));
        let Tokens { arena, offsets } = Tokens::joined(&parts.collect::<Result<Vec<_>>>()?);
        let num_words = ids.partition_point(|&id| id < self.num_words) as u32;
        Dictionary::from_parts(num_words, offsets, Bytes::from(arena)).map_err(|e| place.fault(0, e.to_string()))
    }

    /// Returns the id of `word`, if it is one of the words.
    ///
    /// # Errors
    /// [`Error::Format`] for tokens that are not as declared.
    pub(in crate::format) fn word_id(&self, place: Origin<'_>, bytes: &[u8], word: &[u8]) -> Result<Option<u32>> {
        let groups = &self.groups[..self.num_words.div_ceil(GROUP_LEN) as usize];
        let behind = groups.partition_point(|group| bytes[group.first.clone()] <= *word);
        let Some(group) = behind.checked_sub(1) else { return Ok(None) };
        let mut reader = self.reader(place, bytes)?;
        let start = group as u32 * GROUP_LEN;
        let end = self.num_words.min(start.saturating_add(GROUP_LEN));
        let (mut low, mut high) = (0, (end - start).div_ceil(BLOCK_LEN));
        while high - low > 1 {
            let middle = low.midpoint(high);
            let is_before = reader.seek(start + middle * BLOCK_LEN)? <= word;
            (low, high) = if is_before { (middle, high) } else { (low, middle) };
        }
        let first = start + low * BLOCK_LEN;
        for id in first..end.min(first + BLOCK_LEN) {
            let token = if id == first { reader.seek(id)? } else { reader.next()? };
            if token >= word {
                return Ok((token == word).then_some(id));
            }
        }
        Ok(None)
    }

    /// Decodes `ids`, which ascend and exist.
    fn tokens(&self, place: Origin<'_>, bytes: &[u8], ids: impl Iterator<Item = u32>) -> Result<Tokens> {
        let mut reader = self.reader(place, bytes)?;
        let mut tokens = Tokens { arena: Vec::new(), offsets: vec![0] };
        // The token of the reader, and the length of the tokens of all groups that were begun.
        let (mut current, mut max_len) = (None, 0usize);
        for id in ids {
            let group = |id: u32| (id / GROUP_LEN) as usize;
            if current.is_none_or(|current| group(current) != group(id)) {
                max_len = max_len.saturating_add(self.groups[group(id)].len);
            }
            let mut at = match current {
                Some(current) if current / BLOCK_LEN == id / BLOCK_LEN => current,
                _ => {
                    reader.seek(id - id % BLOCK_LEN)?;
                    id - id % BLOCK_LEN
                }
            };
            while at < id {
                reader.next()?;
                at += 1;
            }
            current = Some(id);
            if tokens.arena.len() + reader.token.len() > max_len {
                return Err(self.fault(place));
            }
            tokens.arena.extend_from_slice(&reader.token);
            tokens.offsets.push(tokens.arena.len() as u32);
        }
        Ok(tokens)
    }

    fn reader<'a>(&'a self, place: Origin<'a>, bytes: &'a [u8]) -> Result<Reader<'a>> {
        let num_blocks = self.num_tokens.div_ceil(BLOCK_LEN) as usize;
        let blocks = &bytes[self.blocks.clone()];
        let blocks = Monotone::read(&mut Cursor::new(place, blocks), num_blocks, self.num_bits + 1)?;
        let stream = Stream::new(&bytes[self.blocks.end..]);
        Ok(Reader { coded: self, place, bytes, blocks, stream, token: Vec::new(), shared_before: 0 })
    }

    fn fault(&self, place: Origin<'_>) -> Error {
        let (num_tokens, len) = (self.num_tokens, self.len);
        place.fault(0, format!("expected {num_tokens} tokens of {len} bytes"))
    }
}

/// Reader of tokens in order, from any block on.
struct Reader<'a> {
    coded: &'a CodedTokens,
    place: Origin<'a>,
    bytes: &'a [u8],
    blocks: Monotone<'a>,
    stream: Stream<'a>,
    token: Vec<u8>,
    shared_before: usize,
}

impl Reader<'_> {
    /// Returns token `id`, which is the first one of a block.
    fn seek(&mut self, id: u32) -> Result<&[u8]> {
        let bit = self.blocks.get((id / BLOCK_LEN) as usize).ok_or_else(|| self.coded.fault(self.place))?;
        self.stream.position = bit as usize;
        self.token.clear();
        self.token.extend_from_slice(&self.bytes[self.coded.groups[(id / GROUP_LEN) as usize].first.clone()]);
        self.read(FIRST_SHARED_LEN)
    }

    /// Returns the next token of the block.
    fn next(&mut self) -> Result<&[u8]> {
        self.read(SHARED_LEN + len_context(self.shared_before, self.token.len()))
    }

    #[inline]
    fn read(&mut self, shared_context: usize) -> Result<&[u8]> {
        let (mut stream, tables) = (self.stream, &self.coded.tables);
        let is_read = read_token(&mut stream, tables, shared_context, &mut self.token, self.coded.len);
        let shared_len = is_read.filter(|_| !stream.is_behind_end());
        self.stream = stream;
        self.shared_before = shared_len.ok_or_else(|| self.coded.fault(self.place))?;
        Ok(&self.token)
    }
}

/// Reads a token of at most `max_len` bytes over the `token` with which it shares bytes, and returns
/// their number.
#[inline]
fn read_token(
    stream: &mut Stream<'_>,
    tables: &Tables,
    shared_context: usize,
    token: &mut Vec<u8>,
    max_len: usize,
) -> Option<usize> {
    let other_len = token.len();
    let shared_len = tables.len(stream, shared_context)?;
    let own_len = tables.len(stream, OWN_LEN + len_context(shared_len, other_len))?;
    if shared_len > other_len || own_len > max_len - shared_len.min(max_len) {
        return None;
    }
    let replaced = token.get(shared_len).copied();
    token.truncate(shared_len);
    for at in 1..=own_len {
        let context = match replaced.filter(|_| at == 1) {
            Some(byte) => FIRST_BYTE + usize::from(byte),
            None => {
                let (pair, single) = next_context(token, at == own_len);
                tables.pairs.context(pair, single)
            }
        };
        token.push(tables.symbol(stream, context)?);
    }
    Some(shared_len)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const PLACE: Origin<'static> = Origin { file: "f", section: "dictionary", offset: 0 };

    fn dictionary(words: &BTreeSet<String>, separators: &BTreeSet<Vec<u8>>) -> (Dictionary, SegmentMeta) {
        let tokens = words.iter().map(|word| word.as_bytes()).chain(separators.iter().map(|bytes| &bytes[..]));
        let (mut arena, mut offsets) = (Vec::new(), vec![0u32]);
        for token in tokens {
            arena.extend_from_slice(token);
            offsets.push(arena.len() as u32);
        }
        let meta = SegmentMeta {
            num_docs: 1,
            dictionary_bytes: arena.len() as u64,
            num_words: words.len() as u32,
            num_separators: separators.len() as u32,
            num_rules: 1,
            ..SegmentMeta::default()
        };
        (Dictionary::from_parts(meta.num_words, offsets, arena.into()).unwrap(), meta)
    }

    /// Words of a few letters, some of them longer than an escape, and enough of them for several groups.
    fn words() -> impl Strategy<Value = BTreeSet<String>> {
        let long = prop::collection::vec("[ab]{1,3}[a-é]{0,50}", 0..60);
        (long, 0u32..2500, any::<u32>()).prop_map(|(long, num_words, seed)| {
            let word =
                |at: u32| format!("{}w{}", ["", "the", "x"][at as usize % 3], (at ^ seed).wrapping_mul(2654435761));
            long.into_iter().chain((0..num_words).map(word)).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn tokens_come_back(
            words in words(),
            separators in prop::collection::btree_set(prop::collection::vec(any::<u8>(), 0..40), 0..80),
            others in prop::collection::vec("[abtx]{0,2}[a-z0-9é]{0,4}", 0..20),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let (dictionary, meta) = dictionary(&words, &separators);
            let bytes = encode(&dictionary).unwrap();
            let coded = CodedTokens::read(PLACE, &bytes, &meta).unwrap();
            let Tokens { arena, offsets } = coded.decode(PLACE, &bytes).unwrap();
            prop_assert_eq!((&arena[..], &offsets[..]), (&dictionary.bytes()[..], dictionary.offsets()));
            for word in words.iter().chain(&others) {
                let id = words.contains(word).then(|| words.range(..word.clone()).count() as u32);
                prop_assert_eq!(coded.word_id(PLACE, &bytes, word.as_bytes()).unwrap(), id, "{}", word);
            }
            if !dictionary.is_empty() {
                let ids: BTreeSet<u32> = picks.iter().map(|pick| pick.index(dictionary.len() as usize) as u32).collect();
                let ids: Vec<u32> = ids.into_iter().collect();
                let some = coded.subset(PLACE, &bytes, &ids).unwrap();
                prop_assert_eq!(some.len() as usize, ids.len());
                for (at, &id) in ids.iter().enumerate() {
                    prop_assert_eq!(some.get(at as u32), dictionary.get(id));
                    prop_assert_eq!(some.is_word(at as u32), dictionary.is_word(id));
                }
            }
        }

        #[test]
        fn damaged_sections_are_refused_or_answer(at in any::<prop::sample::Index>(), bit in 0u32..8, cut in any::<bool>()) {
            let words: BTreeSet<String> = (0..1500).map(|n| format!("w{}", n * n)).collect();
            let (dictionary, meta) = dictionary(&words, &BTreeSet::from([vec![b' ']]));
            let mut bytes = encode(&dictionary).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            if cut {
                bytes.truncate(at);
            }
            if let Ok(coded) = CodedTokens::read(PLACE, &bytes, &meta) {
                let _ = coded.word_id(PLACE, &bytes, b"w10000");
                let _ = coded.decode(PLACE, &bytes);
                let _ = coded.subset(PLACE, &bytes, &[0, 700, 1400, 9000]);
            }
        }
    }

    #[test]
    fn lies_of_the_footer_are_refused() {
        let words: BTreeSet<String> = (0..100).map(|n| format!("word{n}")).collect();
        let (dictionary, meta) = dictionary(&words, &BTreeSet::new());
        let bytes = encode(&dictionary).unwrap();
        for (num_words, len) in [(99, meta.dictionary_bytes), (100, 40), (u32::MAX, meta.dictionary_bytes), (0, 0)] {
            let lie = SegmentMeta { num_words, dictionary_bytes: len, ..meta.clone() };
            let decoded = CodedTokens::read(PLACE, &bytes, &lie).and_then(|coded| coded.decode(PLACE, &bytes));
            assert!(decoded.is_err(), "{num_words} {len}");
        }
    }
}
