//! Coder of ordered strings, each stored by its difference from the one before, and paths as text.
//!
//! ```text
//! folder/alpha.md          shared length, own length, own bytes
//! folder/alps.txt    9 6 "s.txt"      two symbols, then two halves of 4 bits a byte
//! ```
//!
//! Contexts of the distributions:
//!
//! - A length depends on the lengths of the previous string.
//! - The first own byte depends on the byte at this position in the previous string and on whether
//!   it is the last. (In sorted order it is larger, for digits by little.)
//! - Other bytes depend on the byte before and on the number of remaining bytes, up to 3.
//!
//! A length of 31 or more is an escape and a number.
//!
//! Measured on the dictionaries of the seven corpora, in bytes: lengths and bytes as three zstd -9 frames 2,774,000,
//! zstd -19 2,640,000, this coder 2,451,000 (without the corpus of random strings: 431,000, 413,000, 337,000). Contexts
//! of two bytes are worse on all but the largest (dilution). Five contexts of up to four bytes, mixed bit by bit, are
//! equal and 10 times slower. The distributions take up to 1 MB and are created on first use.
//!
//! # Front coding
//!
//! ```text
//! pack(shared length, own length: LEB128 each) | pack(own bytes)      zstd
//! ```
//!
//! Decoding takes a tenth of the time of the coder above, whose result is smaller for lists of words. The codecs of the
//! [dictionary](super::codecs::dictionary) are made of lists of tokens that are coded in one of these ways.
//!
//! # Paths as text
//!
//! ```text
//! name on disk             path in the file, in SQL and in messages
//! notes/été.txt            notes/été.txt
//! n, byte FF, .txt         n\xFF.txt         a byte that is not UTF-8
//! n, \, xFF.txt            n\x5CxFF.txt      a backslash that would look like an escape
//! a\b.txt, a\xff.txt       a\b.txt, a\xff.txt
//! ```
//!
//! UTF-8 is unchanged. Escapes are only `\x80` to `\xFF` and `\x5C`, in capitals. [`path_bytes`] reverses
//! [`path_text`], so two different names never have the same path. Both take O(length).

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::error::Result;

use super::cursor::{Cursor, Origin, pack, push_varint};
use super::entropy::{Decoder, Distribution, Encoder, MAX_SYMBOLS_PER_BYTE};

/// Distributions of the two halves of a byte: the high half, then the low half for each high half.
type ByteModel = [Distribution<16>; 17];

const NUM_LEN_CONTEXTS: usize = 128;
const FIRST_BYTE_CONTEXTS: usize = 512;
const NUM_BYTE_CONTEXTS: usize = FIRST_BYTE_CONTEXTS + 1024;
/// Least length that is escaped.
const LONG_LEN: usize = 31;

/// Distributions learned from a list of strings.
pub(super) struct StringModels {
    shared_lens: Vec<Distribution<32>>,
    own_lens: Vec<Distribution<32>>,
    long_lens: Distribution<32>,
    bytes: Vec<Option<Box<ByteModel>>>,
    previous_shared_len: usize,
}

impl StringModels {
    pub(super) fn new() -> Self {
        Self {
            shared_lens: vec![Distribution::new(); NUM_LEN_CONTEXTS],
            own_lens: vec![Distribution::new(); NUM_LEN_CONTEXTS],
            long_lens: Distribution::new(),
            bytes: vec![None; NUM_BYTE_CONTEXTS],
            previous_shared_len: 0,
        }
    }

    /// Encodes `string`, which follows `previous`.
    pub(super) fn encode(&mut self, encoder: &mut Encoder, previous: &[u8], string: &[u8]) {
        let shared_len = previous.iter().zip(string).take_while(|(a, b)| a == b).count();
        let own_len = string.len() - shared_len;
        let context = len_context(self.previous_shared_len, previous.len());
        encode_len(encoder, &mut self.shared_lens[context], &mut self.long_lens, shared_len);
        let context = len_context(shared_len, previous.len());
        encode_len(encoder, &mut self.own_lens[context], &mut self.long_lens, own_len);
        for at in shared_len..string.len() {
            let replaced = previous.get(at).filter(|_| at == shared_len);
            let before = at.checked_sub(1).map_or(0, |i| string[i]);
            let context = byte_context(replaced.copied(), before, string.len() - 1 - at);
            let model = self.bytes[context].get_or_insert_with(new_byte_model);
            let high = usize::from(string[at] >> 4);
            let low = usize::from(string[at] & 15);
            encoder.symbol(&mut model[0], high);
            encoder.symbol(&mut model[1 + high], low);
        }
        self.previous_shared_len = shared_len;
    }

    /// Decodes the string that follows `arena[previous_start..]` and appends it. Returns `None` if
    /// `arena` would have more than `max_len` bytes or the string shares more bytes than the
    /// previous one has.
    #[inline]
    pub(super) fn decode(
        &mut self,
        decoder: &mut Decoder<'_>,
        arena: &mut Vec<u8>,
        previous_start: usize,
        max_len: usize,
    ) -> Option<()> {
        let start = arena.len();
        let previous_len = start - previous_start;
        let context = len_context(self.previous_shared_len, previous_len);
        let shared_len = decode_len(decoder, &mut self.shared_lens[context], &mut self.long_lens);
        let context = len_context(shared_len.min(previous_len), previous_len);
        let own_len = decode_len(decoder, &mut self.own_lens[context], &mut self.long_lens);
        if shared_len > previous_len || shared_len.checked_add(own_len)? > max_len - start {
            return None;
        }
        arena.extend_from_within(previous_start..previous_start + shared_len);
        let mut before = if shared_len > 0 { arena[start + shared_len - 1] } else { 0 };
        for at in 0..own_len {
            let replaced = (at == 0 && shared_len < previous_len).then(|| arena[previous_start + shared_len]);
            let context = byte_context(replaced, before, own_len - 1 - at);
            let model = self.bytes[context].get_or_insert_with(new_byte_model);
            let high = decoder.symbol(&mut model[0]);
            let low = decoder.symbol(&mut model[1 + high]);
            before = (high << 4 | low) as u8;
            arena.push(before);
        }
        self.previous_shared_len = shared_len;
        Some(())
    }
}

fn new_byte_model() -> Box<ByteModel> {
    Box::new(std::array::from_fn(|_| Distribution::new()))
}

/// Returns the context, less than [`NUM_LEN_CONTEXTS`], of a shared length and the rest of the
/// previous string.
#[inline]
fn len_context(shared_len: usize, previous_len: usize) -> usize {
    shared_len.min(15) * 8 + previous_len.saturating_sub(shared_len).min(7)
}

/// Returns the context, less than [`NUM_BYTE_CONTEXTS`], of a byte. It combines the byte replaced
/// in the previous string, or the byte before, with the number of remaining bytes.
#[inline]
fn byte_context(replaced: Option<u8>, before: u8, num_left: usize) -> usize {
    match replaced {
        Some(byte) => 2 * usize::from(byte) + usize::from(num_left == 0),
        None => FIRST_BYTE_CONTEXTS + 4 * usize::from(before) + num_left.min(3),
    }
}

fn encode_len(encoder: &mut Encoder, lens: &mut Distribution<32>, long_lens: &mut Distribution<32>, len: usize) {
    encoder.symbol(lens, len.min(LONG_LEN));
    if len >= LONG_LEN {
        encoder.number(long_lens, (len - LONG_LEN) as u32);
    }
}

#[inline]
fn decode_len(decoder: &mut Decoder<'_>, lens: &mut Distribution<32>, long_lens: &mut Distribution<32>) -> usize {
    match decoder.symbol(lens) {
        LONG_LEN => LONG_LEN + decoder.number(long_lens) as usize,
        len => len,
    }
}

/// Greatest length of the two lengths of a string.
const MAX_LENS_BYTES: usize = 20;

/// Appends `strings` to `out`. `level` returns the level of zstd for a number of bytes.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if zstd cannot allocate memory.
pub(super) fn encode<'a>(
    out: &mut Vec<u8>,
    strings: impl Iterator<Item = &'a [u8]>,
    level: impl Fn(usize) -> i32,
) -> Result<()> {
    let mut lens = Vec::new();
    let mut own_bytes = Vec::new();
    let mut previous: &[u8] = &[];
    for string in strings {
        let shared_len = previous.iter().zip(string).take_while(|(a, b)| a == b).count();
        push_varint(&mut lens, shared_len as u64);
        push_varint(&mut lens, (string.len() - shared_len) as u64);
        own_bytes.extend_from_slice(&string[shared_len..]);
        previous = string;
    }
    let level = level(lens.len() + own_bytes.len());
    pack(out, &lens, level)?;
    pack(out, &own_bytes, level)
}

/// Lengths and bytes of a list of strings, without zstd.
pub(super) struct FrontCoded<'a> {
    place: Origin<'a>,
    lens: Vec<u8>,
    own_bytes: Vec<u8>,
}

impl<'a> FrontCoded<'a> {
    /// Reads the list of at most `num_strings` strings, which together have at most `max_len`
    /// bytes.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if `cursor` is not at such a list.
    pub(super) fn unpack(place: Origin<'a>, cursor: &mut Cursor<'_>, num_strings: u64, max_len: u64) -> Result<Self> {
        let lens = cursor.unpack((num_strings as usize).saturating_mul(MAX_LENS_BYTES))?;
        let own_bytes = cursor.unpack(max_len as usize)?;
        Ok(Self { place, lens, own_bytes })
    }

    /// Returns the decoder at the first string.
    pub(super) fn strings(&self) -> Strings<'_> {
        Strings { lens: Cursor::new(self.place, &self.lens), own_bytes: Cursor::new(self.place, &self.own_bytes) }
    }
}

/// Decoder of the strings of a list, one after the other.
pub(super) struct Strings<'a> {
    lens: Cursor<'a>,
    own_bytes: Cursor<'a>,
}

impl Strings<'_> {
    /// Decodes the string that follows `arena[previous_start..]` and appends it. Returns `None` if
    /// the list ends, if `arena` would have more than `max_len` bytes or if the string shares more
    /// bytes than the previous one has.
    #[inline]
    pub(super) fn decode(&mut self, arena: &mut Vec<u8>, previous_start: usize, max_len: usize) -> Option<()> {
        let shared_len = usize::try_from(self.lens.varint().ok()?).ok()?;
        let own_len = usize::try_from(self.lens.varint().ok()?).ok()?;
        let own = self.own_bytes.take(own_len).ok()?;
        let len = arena.len();
        if shared_len > len - previous_start || shared_len + own.len() > max_len - len {
            return None;
        }
        arena.extend_from_within(previous_start..previous_start + shared_len);
        arena.extend_from_slice(own);
        Some(())
    }

    /// Checks that all strings were decoded.
    pub(super) fn finish(self) -> Result<()> {
        self.lens.finish()?;
        self.own_bytes.finish()
    }
}

/// A list that is still encoded.
pub(super) struct List<'a> {
    pub(super) num_tokens: u64,
    /// Length of its tokens in bytes.
    pub(super) len: u64,
    pub(super) bytes: &'a [u8],
}

impl List<'_> {
    /// Refuses a list whose declared size is impossible for its bytes, before memory is allocated.
    pub(super) fn check(&self, place: Origin<'_>) -> Result<()> {
        let num_bytes = self.bytes.len();
        if self.num_tokens.max(self.len) > (num_bytes as u64).saturating_mul(MAX_SYMBOLS_PER_BYTE) {
            let len = self.len;
            return Err(place.fault(0, format!("expected fewer than {len} bytes in {num_bytes}")));
        }
        Ok(())
    }

    pub(super) fn decode(&self, place: Origin<'_>) -> Result<Tokens> {
        let mut models = StringModels::new();
        let mut decoder = Decoder::new(place, self.bytes)?;
        let tokens =
            self.decode_all(place, |arena, previous, max_len| models.decode(&mut decoder, arena, previous, max_len))?;
        decoder.finish()?;
        Ok(tokens)
    }

    pub(super) fn decode_front_coded(&self, place: Origin<'_>) -> Result<Tokens> {
        let mut cursor = Cursor::new(place, self.bytes);
        let packed = FrontCoded::unpack(place, &mut cursor, self.num_tokens, self.len)?;
        cursor.finish()?;
        let mut strings = packed.strings();
        let decode = |arena: &mut Vec<u8>, previous, max_len| strings.decode(arena, previous, max_len);
        let tokens = self.decode_all(place, decode)?;
        strings.finish()?;
        Ok(tokens)
    }

    /// Decodes every token with `decode`. It appends one token to the arena, and receives the start
    /// of the previous token and the greatest length of the arena.
    fn decode_all(
        &self,
        place: Origin<'_>,
        mut decode: impl FnMut(&mut Vec<u8>, usize, usize) -> Option<()>,
    ) -> Result<Tokens> {
        let num_tokens = self.num_tokens as usize;
        let len = self.len as usize;
        let mut arena = Vec::new();
        let mut offsets = vec![0];
        let mut previous = 0;
        for _ in 0..num_tokens {
            let start = arena.len();
            if decode(&mut arena, previous, len).is_none() {
                return Err(place.fault(0, format!("expected {num_tokens} tokens of {len} bytes")));
            }
            previous = start;
            offsets.push(arena.len() as u32);
        }
        if arena.len() != len {
            let got = arena.len();
            return Err(place.fault(0, format!("expected {len} bytes of tokens, got {got}")));
        }
        Ok(Tokens { arena, offsets })
    }
}

/// Tokens one behind another, with the start of each and the end of the last.
pub(in crate::format) struct Tokens {
    pub(super) arena: Vec<u8>,
    pub(super) offsets: Vec<u32>,
}

impl Tokens {
    /// Returns the first token, which is empty if there is none.
    pub(super) fn first(&self) -> &[u8] {
        let end = self.offsets.get(1).copied().unwrap_or_default();
        &self.arena[..end as usize]
    }

    pub(super) fn joined(parts: &[Self]) -> Self {
        let len = parts.iter().map(|part| part.arena.len()).sum();
        let num_offsets = parts.iter().map(|part| part.offsets.len()).sum();
        let mut arena = Vec::with_capacity(len);
        let mut offsets = Vec::with_capacity(num_offsets);
        for part in parts {
            let start = arena.len() as u32;
            let (_, starts) = part.offsets.split_last().unwrap_or((&0, &[]));
            offsets.extend(starts.iter().map(|offset| start + offset));
            arena.extend_from_slice(&part.arena);
        }
        offsets.push(arena.len() as u32);
        Self { arena, offsets }
    }
}

const BACKSLASH: u8 = b'\\';
const ESCAPE_LEN: usize = r"\xFF".len();

/// Returns the path of a document whose name has these bytes.
pub fn path_text(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) if first_escape(name).is_none() => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(name)),
    }
}

/// Returns the bytes of the name from which [`path_text`] makes `path`.
pub fn path_bytes(path: &str) -> Cow<'_, [u8]> {
    let mut rest = path.as_bytes();
    let mut name = Vec::new();
    while let Some((at, byte)) = first_escape(rest) {
        name.extend_from_slice(&rest[..at]);
        name.push(byte);
        rest = &rest[at + ESCAPE_LEN..];
    }
    if name.is_empty() {
        return Cow::Borrowed(rest);
    }
    name.extend_from_slice(rest);
    Cow::Owned(name)
}

fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len() + 2 * ESCAPE_LEN);
    let push_byte = |text: &mut String, byte: u8| {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{byte:02X}");
    };
    for chunk in name.utf8_chunks() {
        let mut valid = chunk.valid();
        // An escape follows the valid bytes, so no other escape begins in them and ends behind
        // them.
        while let Some((at, _)) = first_escape(valid.as_bytes()) {
            text.push_str(&valid[..at]);
            push_byte(&mut text, BACKSLASH);
            valid = &valid[at + 1..];
        }
        text.push_str(valid);
        chunk.invalid().iter().for_each(|&byte| push_byte(&mut text, byte));
    }
    text
}

/// Returns the position of the first escape in `bytes` and the byte that it encodes.
fn first_escape(bytes: &[u8]) -> Option<(usize, u8)> {
    memchr::memchr_iter(BACKSLASH, bytes).find_map(|at| Some((at, escape_at(&bytes[at..])?)))
}

/// Returns the byte that the escape at the start of `bytes` encodes.
fn escape_at(bytes: &[u8]) -> Option<u8> {
    let [BACKSLASH, b'x', high, low, ..] = *bytes else { return None };
    let byte = hex(high)? << 4 | hex(low)?;
    (byte >= 0x80 || byte == BACKSLASH).then_some(byte)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::format::cursor::Origin;

    use super::*;

    proptest! {
        #[test]
        fn what_is_coded_is_decoded(
            strings in prop::collection::vec(prop::collection::vec(prop_oneof![97u8..100, any::<u8>()], 0..80), 0..200),
            is_sorted in any::<bool>(),
        ) {
            let mut strings = strings;
            if is_sorted {
                strings.sort();
            }
            let mut models = StringModels::new();
            let mut encoder = Encoder::default();
            let mut previous: &[u8] = &[];
            for string in &strings {
                models.encode(&mut encoder, previous, string);
                previous = string;
            }
            let mut bytes = Vec::new();
            encoder.finish(&mut bytes);

            let place = Origin { file: "f", section: "s", offset: 0 };
            let mut decoder = Decoder::new(place, &bytes).unwrap();
            let mut models = StringModels::new();
            let mut arena = Vec::new();
            let mut previous = 0;
            for string in &strings {
                let start = arena.len();
                models.decode(&mut decoder, &mut arena, previous, start + string.len()).unwrap();
                prop_assert_eq!(&arena[start..], &string[..]);
                previous = start;
            }
            decoder.finish().unwrap();
        }

        #[test]
        fn any_bytes_decode_within_bounds(bytes in prop::collection::vec(any::<u8>(), 1..300)) {
            let place = Origin { file: "f", section: "s", offset: 0 };
            let Ok(mut decoder) = Decoder::new(place, &bytes) else { return Ok(()) };
            let mut models = StringModels::new();
            let mut arena = Vec::new();
            let mut previous = 0;
            loop {
                let start = arena.len();
                if models.decode(&mut decoder, &mut arena, previous, 5_000).is_none() || start == arena.len() {
                    break;
                }
                previous = start;
            }
            prop_assert!(arena.len() <= 5_000);
        }
    }

    #[test]
    fn utf8_stands_as_it_is() {
        for name in ["", "notes/été.txt", "a\tb\u{1b}", r"a\b", r"a\xff", r"\x41", r"\x5c", r"\xF"] {
            assert_eq!(path_text(name.as_bytes()), name);
        }
    }

    #[test]
    fn other_bytes_and_what_reads_as_an_escape_are_escaped() {
        assert_eq!(path_text(b"n\xff.txt"), r"n\xFF.txt");
        assert_eq!(path_text(br"n\xFF.txt"), r"n\x5CxFF.txt");
        assert_eq!(path_text(b"\xc3"), r"\xC3");
        assert_eq!(path_text(br"\x5C"), r"\x5Cx5C");
        assert_eq!(path_text(b"\\x8\xf0"), r"\x8\xF0");
    }

    /// Generates names with many escapes, parts of escapes and parts of characters.
    fn names() -> impl Strategy<Value = Vec<u8>> {
        let pieces: [&[u8]; 14] =
            [b"\\", b"x", b"\\x", b"F", b"8", b"5", b"C", b"5C", b"FF", b"\xff", b"\xc3", b"\xa9", b"/", b"a"];
        let piece = prop_oneof![
            4 => prop::sample::select(pieces.map(<[u8]>::to_vec).to_vec()),
            1 => prop::collection::vec(any::<u8>(), 1..3),
        ];
        prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Checks that the function can be reversed, so that it maps no two names to one path.
        #[test]
        fn names_come_back(name in names()) {
            let path = path_text(&name);
            prop_assert_eq!(&*path_bytes(&path), &name[..]);
        }

        #[test]
        fn a_path_is_made_component_by_component(left in names(), right in names()) {
            let whole = path_text(&[&left[..], b"/", &right].concat()).into_owned();
            prop_assert_eq!(format!("{}/{}", path_text(&left), path_text(&right)), whole);
        }
    }
}
