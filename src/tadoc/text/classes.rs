//! Classification of bytes into word bytes and others, as one bit per byte, 64 bytes at a time.
//!
//! ```text
//! bytes   I t ' s   d é j à   v u .
//! bits    1 1 0 1 0 1 1 1 1 1 1 0 1 1 0        (é and à are two bytes each)
//! ```
//!
//! The class of an ASCII byte is computed by arithmetic that the compiler turns into vector
//! instructions. Then one multiplication turns eight class bytes into eight bits. Only characters
//! above U+007F are decoded. Invalid UTF-8 is never part of a word: a lead byte without its
//! continuation and each byte that cannot begin a character have bit 0. This agrees with
//! `std::str::Utf8Chunks`. That type may report several of these bytes as one fault, but a fault
//! has no word bytes, so the bits are equal.
//!
//! SWAR arithmetic on `u64` is slower, a plain loop over bits much slower. SSE2 intrinsics cannot
//! be called without `unsafe`, even on a target that always has them.

use std::sync::LazyLock;

/// Number of bytes in a block, and of bits in its result.
pub(super) const BLOCK_BYTES: usize = 64;

/// A class of characters that form words.
pub(super) trait WordClass {
    /// Returns true if an ASCII byte is in the class, false for bytes from 0x80 on. It has no
    /// branches, so that it vectorizes.
    fn has_ascii(byte: u8) -> bool;
    /// Returns true if a character above U+007F is in the class.
    fn has_wide(&self, c: u32) -> bool;
    /// Returns true if a character is in the class.
    fn has_char(&self, c: char) -> bool {
        if c.is_ascii() { Self::has_ascii(c as u8) } else { self.has_wide(c as u32) }
    }
}

/// The class `\w` of the regex crate.
pub(super) struct PerlWord(&'static [u64]);

impl PerlWord {
    pub(super) fn new() -> Self {
        Self(&PERL_WORD_BITS)
    }
}

impl WordClass for PerlWord {
    #[inline(always)]
    fn has_ascii(byte: u8) -> bool {
        ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10) | (byte == b'_')
    }

    #[inline]
    fn has_wide(&self, c: u32) -> bool {
        self.0.get(c as usize / 64).is_some_and(|bits| bits >> (c % 64) & 1 == 1)
    }
}

/// Table with one bit for each code point, 136 KiB. Ordinary text touches a few pages of it.
static PERL_WORD_BITS: LazyLock<Vec<u64>> = LazyLock::new(|| bits_for(r"\w"));

/// Returns one bit for each code point: 1 if `class`, a class of a regular expression, has it.
pub(super) fn bits_for(class: &str) -> Vec<u64> {
    let mut bits = vec![0_u64; (char::MAX as usize + 1) / 64];
    let ranges = regex_syntax::parse(class).map(|hir| hir.into_kind());
    if let Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) = ranges {
        for c in class.iter().flat_map(|range| range.start()..=range.end()) {
            bits[c as usize / 64] |= 1 << (c as u32 % 64);
        }
    }
    bits
}

/// The class of all characters except white space and NUL.
pub(super) struct Ink;

impl WordClass for Ink {
    #[inline(always)]
    fn has_ascii(byte: u8) -> bool {
        (byte.wrapping_sub(9) >= 5) & (byte != b' ') & (byte != 0) & (byte < 0x80)
    }

    #[inline]
    fn has_wide(&self, c: u32) -> bool {
        char::from_u32(c).is_some_and(|c| !c.is_whitespace())
    }
}

/// Classes of up to 64 bytes, lowest bit first. Bits behind the end of the text are 0.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Block {
    /// Bytes of words.
    pub(super) words: u64,
    /// Bytes that are a blank, U+0020.
    pub(super) blanks: u64,
}

/// Iterator over the classes of a text, block by block.
pub(super) struct ClassBits<'a, C> {
    class: C,
    text: &'a [u8],
    at: usize,
    /// Number of bytes at the start of the next block that belong to a character of this one.
    carried_len: u32,
    carried_bits: u64,
}

impl<'a, C: WordClass> ClassBits<'a, C> {
    /// Starts at byte `at` of `text`. The bytes before it have no influence.
    pub(super) fn new(class: C, text: &'a [u8], at: usize) -> Self {
        Self { class, text, at, carried_len: 0, carried_bits: 0 }
    }

    /// Returns the classes of the next [`BLOCK_BYTES`] bytes, or of the rest of the text.
    #[inline(always)]
    pub(super) fn next_block(&mut self) -> Option<Block> {
        let rest = &self.text[self.at..];
        let (mut block, high) = match rest.first_chunk::<BLOCK_BYTES>() {
            Some(bytes) => ascii_classes::<C>(bytes),
            None if rest.is_empty() => return None,
            None => {
                let mut bytes = [0; BLOCK_BYTES];
                bytes[..rest.len()].copy_from_slice(rest);
                ascii_classes::<C>(&bytes)
            }
        };
        if high != 0 {
            block.words |= self.wide_words(high);
        }
        self.at += BLOCK_BYTES.min(rest.len());
        Some(block)
    }

    /// Returns the word bits of the characters above U+007F. `high` has the bits of their bytes.
    fn wide_words(&mut self, high: u64) -> u64 {
        let mut words = self.carried_bits;
        let mut open = high & (!0 << self.carried_len);
        (self.carried_len, self.carried_bits) = (0, 0);
        while open != 0 {
            let offset = open.trailing_zeros();
            let (c, len) = decode_wide(&self.text[self.at + offset as usize..]);
            let bytes = ((1_u128 << len) - 1) << offset;
            if c.is_some_and(|c| self.class.has_wide(c)) {
                words |= bytes as u64;
                self.carried_bits = (bytes >> BLOCK_BYTES) as u64;
            }
            self.carried_len = (offset + len).saturating_sub(BLOCK_BYTES as u32);
            open &= !(bytes as u64);
        }
        words
    }
}

/// Returns the classes of the ASCII bytes, and the bits of the bytes that are not ASCII.
#[inline(always)]
fn ascii_classes<C: WordClass>(bytes: &[u8; BLOCK_BYTES]) -> (Block, u64) {
    let words = gather(&bytes.map(|byte| u8::from(C::has_ascii(byte))));
    let blanks = gather(&bytes.map(|byte| u8::from(byte == b' ')));
    let any = bytes.iter().fold(0, |any, byte| any | byte);
    let high = if any < 0x80 { 0 } else { gather(&bytes.map(|byte| byte >> 7)) };
    (Block { words, blanks }, high)
}

/// Collects 64 bytes into 64 bits. Each byte must be 0 or 1, and byte i becomes bit i.
#[inline(always)]
fn gather(flags: &[u8; BLOCK_BYTES]) -> u64 {
    let mut bits = 0;
    for (word_idx, word) in flags.as_chunks::<8>().0.iter().enumerate() {
        let eight = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= eight << (8 * word_idx);
    }
    bits
}

/// Decodes the character above U+007F at the start of `bytes` and returns it with its length, or
/// `None` and 1.
#[inline]
fn decode_wide(bytes: &[u8]) -> (Option<u32>, u32) {
    let lead = bytes[0];
    let tail = |idx: usize| match bytes.get(idx) {
        Some(&byte) if byte & 0xC0 == 0x80 => Some(u32::from(byte & 0x3F)),
        _ => None,
    };
    let decoded = match lead {
        0xC2..=0xDF => tail(1).map(|a| (u32::from(lead & 0x1F) << 6 | a, 2)),
        0xE0..=0xEF => tail(1)
            .zip(tail(2))
            .map(|(a, b)| (u32::from(lead & 0x0F) << 12 | a << 6 | b, 3))
            .filter(|(c, _)| *c >= 0x800 && !(0xD800..0xE000).contains(c)),
        0xF0..=0xF4 => tail(1)
            .zip(tail(2))
            .zip(tail(3))
            .map(|((a, b), c)| (u32::from(lead & 0x07) << 18 | a << 12 | b << 6 | c, 4))
            .filter(|(c, _)| (0x1_0000..=0x10_FFFF).contains(c)),
        _ => None,
    };
    decoded.map_or((None, 1), |(c, len)| (Some(c), len))
}
