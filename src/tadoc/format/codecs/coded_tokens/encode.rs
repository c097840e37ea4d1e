//! Encoder of the tokens of a dictionary: one pass counts the symbols of all contexts, and one writes. It needs
//! O(bytes of tokens) time.

use std::ops::Range;

use crate::error::Result;
use crate::format::codecs::token_groups::push_group;
use crate::format::cursor::{pack, push_varint};
use crate::format::entropy::monotone::encode_monotone;
use crate::format::entropy::prefix_code::{BitWriter, code_lens, codes};
use crate::text::Dictionary;

use super::contexts::{
    FIRST_BYTE, FIRST_SHARED_LEN, LONG_LEN, MAX_PAIRS, MAX_SYMBOL_LEN, NEXT_BYTE, NUM_BYTES, NUM_PAIRS, NUM_SINGLE,
    OWN_LEN, SHARED_LEN, WIDTH_BITS, last_two, len_context, pair_context, single_context,
};
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
    /// each pair. Returns these pairs, ascending, and counts of single contexts, with all other pairs, and then of these.
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
        let (mut out, num_bits) = (Vec::new(), self.bits.position());
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
        self.bits.push(codes[usize::from(symbol)], lens[usize::from(symbol)]);
    }

    fn plain(&mut self, number: u32, width: u8) {
        self.bits.push(number, width);
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
    let (mut keys, mut counts, mut symbols, mut used_lens) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut next = 0;
    for &pair in pairs {
        push_varint(&mut keys, (pair - next) as u64);
        next = pair + 1;
    }
    for lens in lens {
        let used = lens.iter().enumerate().filter(|(_, len)| **len > 0);
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
