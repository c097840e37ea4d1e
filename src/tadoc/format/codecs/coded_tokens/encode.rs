//! Encoder of the tokens of a dictionary: one pass counts the bytes behind pairs, one the symbols of the chosen
//! contexts, and one writes. It needs O(bytes of tokens) time.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::format::cursor::{pack, push_varint};
use crate::format::entropy::monotone::encode_monotone;
use crate::format::entropy::prefix_code::{BitWriter, code_lens, codes};
use crate::text::Dictionary;

use super::contexts::{
    FIRST_BYTE, FIRST_SHARED_LEN, LONG_LEN, MAX_PAIRS, MAX_SYMBOL_LEN, NUM_BYTES, NUM_SINGLE, OWN_LEN, Pairs,
    SHARED_LEN, WIDTH_BITS, len_context, next_context,
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
pub(in crate::format::codecs) fn encode(dictionary: &Dictionary) -> Result<Vec<u8>> {
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
