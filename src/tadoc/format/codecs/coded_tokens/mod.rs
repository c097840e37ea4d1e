//! Codec of the tokens of a dictionary in which any token is read alone.
//!
//! ```text
//! codec 5   codes | groups | number of bits | blocks | bits
//! codec 7   head: codes | groups, each with the bytes of its part and crc32c u32 of it
//!           part of a group: number of bits LEB128 | blocks | bits; together the section of the dictionary
//! codes     pairs of bytes with codes of their own | symbols of contexts, code lengths: zstd
//! groups    of each 1,024 tokens: their bytes LEB128, length LEB128 and bytes of the first one
//! blocks    bit at which each block of 32 tokens begins, ascending numbers
//! bits      of each token: length shared with a token before | own length | own bytes
//!
//! "plant"   groups  │ fish │ needle │ …      blocks  │ night │ over │ pin │ …      tokens  pin pint plan plant
//! ```
//!
//! The first token of a block shares bytes with the first token of its group, and any other with the token before it.
//! Numbers and bytes are in static prefix codes (`prefix_code`), with a code for each context: lengths depend on the
//! lengths before them, the first own byte on the byte that it replaces, and other bytes on the byte before and on
//! being the last one. Pairs of bytes after which this saves bits have codes of their own. A length of 31 or more is an
//! escape, and then its width in 5 bits and itself.
//!
//! A word is found by its group, then by the first tokens of blocks, then in one block: it takes some microseconds, and
//! one millisecond for the tables of the codes before the first one. A token is read with 16 others before it on
//! average. Blocks of zstd take about as many bytes, and all of their tokens are decoded sooner.

mod codes;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::format::codecs::{FirstTokens, Places, read_group};
use crate::format::cursor::{Cursor, Origin};
use crate::format::entropy::Monotone;
use crate::format::entropy::prefix_code::Stream;
use crate::format::layout::SegmentMeta;
use crate::format::strings::Tokens;
use crate::text::Dictionary;

#[cfg(test)]
pub(super) use codes::encode;
pub(super) use codes::encode_with_head;
use codes::{
    FIRST_BYTE, FIRST_SHARED_LEN, OWN_LEN, SHARED_LEN, StoredTables, Tables, last_two, len_context, pair_context,
};

const BLOCK_LEN: u32 = 32;
const GROUP_LEN: u32 = 1024;
/// Number of tokens that are decoded by one thread at once.
const TOKENS_AT_ONCE: usize = 16 * GROUP_LEN as usize;
/// The same where each of them is in a block of its own, so that two threads share the words of one unit.
const SOME_AT_ONCE: usize = 256;

/// Codes of a section, and the places of its parts.
#[derive(Debug)]
pub(in crate::format) struct CodedTokens {
    num_words: u32,
    num_tokens: u32,
    /// Length of all tokens in bytes.
    len: usize,
    tables: StoredTables,
    /// Length of the tokens of each group in bytes.
    group_lens: Vec<usize>,
    firsts: FirstTokens,
    parts: Parts,
}

/// Parts of the section of which tokens are read.
#[derive(Debug)]
enum Parts {
    /// One of all groups, in which the starts of blocks lie at a range, and a limit of their bits.
    Whole { blocks: Range<usize>, num_bits: u64 },
    /// One of each group.
    Groups(Places),
}

/// A part of the section: the starts of its blocks, the index of the first one, and its bits.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    blocks: Monotone<'a>,
    first_block: u32,
    bits: &'a [u8],
}

impl CodedTokens {
    /// Reads the codes and groups of the segment `meta` from its section, which has the tokens, too.
    ///
    /// # Errors
    /// [`Error::Format`] if `bytes` are no such section.
    pub(super) fn read(place: Origin<'_>, bytes: &[u8], meta: &SegmentMeta) -> Result<Self> {
        let mut cursor = Cursor::new(place, bytes);
        let coded = Self::read_groups(&mut cursor, place, meta, |_, _| Ok(()))?;
        let num_bits = cursor.varint()?;
        let num_tokens = coded.num_tokens;
        // Each token has two lengths of one bit or more, so the bytes bound the memory.
        if num_bits > 8 * bytes.len() as u64 || 2 * u64::from(num_tokens) > num_bits {
            return Err(cursor.fault(format!("expected {num_tokens} tokens in fewer bits, got {num_bits}")));
        }
        let start = bytes.len() - cursor.remaining();
        Monotone::read(&mut cursor, num_tokens.div_ceil(BLOCK_LEN) as usize, num_bits + 1)?;
        let blocks = start..bytes.len() - cursor.remaining();
        cursor.take(num_bits.div_ceil(8) as usize)?;
        cursor.finish()?;
        Ok(Self { parts: Parts::Whole { blocks, num_bits }, ..coded })
    }

    /// Reads the codes and groups of the segment `meta` from its head. The section has `tokens_len` bytes.
    ///
    /// # Errors
    /// [`Error::Format`] if `head` is no such head.
    pub(super) fn read_head(place: Origin<'_>, head: &[u8], meta: &SegmentMeta, tokens_len: u64) -> Result<Self> {
        let mut cursor = Cursor::new(place, head);
        let mut places = Places::default();
        let coded = Self::read_groups(&mut cursor, place, meta, |cursor, _| read_group(&mut places, cursor))?;
        cursor.finish()?;
        // Each token has two lengths of one bit or more, so the bytes bound the memory.
        if places.end() != tokens_len || u64::from(coded.num_tokens) > 4 * tokens_len {
            let expected = coded.num_tokens;
            let got = places.end();
            return Err(place.fault(0, format!("expected {expected} tokens in {tokens_len} bytes, got {got}")));
        }
        Ok(Self { parts: Parts::Groups(places), ..coded })
    }

    /// Reads codes and the entries of groups. `rest` reads what an entry has behind its first token.
    fn read_groups<'a>(
        cursor: &mut Cursor<'a>,
        place: Origin<'_>,
        meta: &SegmentMeta,
        mut rest: impl FnMut(&mut Cursor<'a>, usize) -> Result<()>,
    ) -> Result<Self> {
        let tables = StoredTables::read(cursor)?;
        // Together they are less than 2^32, as the footer was checked.
        let num_tokens = meta.num_words.saturating_add(meta.num_separators);
        let mut group_lens = Vec::new();
        let mut firsts = FirstTokens::default();
        let mut len_left = meta.dictionary_bytes;
        for group in 0..num_tokens.div_ceil(GROUP_LEN) as usize {
            let len = cursor.varint()?;
            let first_len = cursor.varint()?;
            len_left = len_left.checked_sub(len).ok_or_else(|| cursor.fault("expected a group of fewer bytes"))?;
            firsts.push(cursor.take(usize::try_from(first_len).unwrap_or(usize::MAX))?);
            group_lens.push(len as usize);
            rest(cursor, group)?;
        }
        if len_left > 0 {
            let len = meta.dictionary_bytes;
            return Err(cursor.fault(format!("expected groups of {len} bytes, {len_left} are left")));
        }
        firsts.check_order(place, meta.num_words.div_ceil(GROUP_LEN) as usize)?;
        let len = usize::try_from(meta.dictionary_bytes).unwrap_or(usize::MAX);
        let parts = Parts::Groups(Places::default());
        Ok(Self { num_words: meta.num_words, num_tokens, len, tables, group_lens, firsts, parts })
    }

    /// Returns the places of the groups that are read alone, if they are.
    pub(super) fn places(&self) -> Option<&Places> {
        match &self.parts {
            Parts::Whole { .. } => None,
            Parts::Groups(places) => Some(places),
        }
    }

    /// Drops what is made again when tokens are read.
    pub(super) fn forget_tables(&self) {
        self.tables.forget();
    }

    /// Returns the number of bytes of main memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        let groups = size_of_val(&self.group_lens[..]) + self.firsts.memory_bytes();
        self.tables.memory_bytes() + groups + self.places().map_or(0, Places::memory_bytes)
    }

    /// Decodes all tokens. `bytes` are those of the section at `place`.
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
        let is_first = |group: usize| {
            let [start, end] = [0, 1].map(|at| tokens.offsets[group * GROUP_LEN as usize + at] as usize);
            tokens.arena[start..end] == *self.firsts.get(group)
        };
        let is_as_declared = tokens.arena.len() == self.len && (0..self.group_lens.len()).all(is_first);
        if is_as_declared { Ok(tokens) } else { Err(self.fault(place)) }
    }

    /// Returns the dictionary of the tokens `ids`, which ascend. Decodes only their blocks.
    ///
    /// # Errors
    /// [`Error::Format`] for tokens that are not as declared, [`Error::OutOfRange`] for an id that does not exist.
    pub(in crate::format) fn subset(&self, place: Origin<'_>, bytes: &[u8], ids: &[u32]) -> Result<Dictionary> {
        if let Some(&id) = ids.last().filter(|&&id| id >= self.num_tokens) {
            return Err(Error::OutOfRange { what: "token", got: id.into(), len: self.num_tokens.into() });
        }
        let parts = ids.par_chunks(SOME_AT_ONCE).map(|ids| self.tokens(place, bytes, ids.iter().copied()));
        let Tokens { arena, offsets } = Tokens::joined(&parts.collect::<Result<Vec<_>>>()?);
        let num_words = ids.partition_point(|&id| id < self.num_words) as u32;
        Dictionary::from_parts(num_words, offsets, Bytes::from(arena)).map_err(|e| place.fault(0, e.to_string()))
    }

    /// Returns the only group that can have `word`.
    pub(super) fn group_of(&self, word: &[u8]) -> Option<usize> {
        self.firsts.group_of(self.num_words.div_ceil(GROUP_LEN) as usize, word)
    }

    /// Returns the id of `word`, if it is one of the words of `group`. `bytes` are those of the group at `place`, or
    /// of the section where groups are not read alone.
    ///
    /// # Errors
    /// [`Error::Format`] for tokens that are not as declared.
    pub(super) fn word_id(&self, place: Origin<'_>, group: usize, bytes: &[u8], word: &[u8]) -> Result<Option<u32>> {
        let mut reader = Reader::new(self, place, self.open_part(place, group, bytes)?)?;
        let start = group as u32 * GROUP_LEN;
        let end = self.num_words.min(start.saturating_add(GROUP_LEN));
        let mut low = 0;
        let mut high = (end - start).div_ceil(BLOCK_LEN);
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

    /// Decodes `ids`, which ascend and exist, from the `bytes` of the section.
    fn tokens(&self, place: Origin<'_>, bytes: &[u8], ids: impl Iterator<Item = u32>) -> Result<Tokens> {
        let mut tokens = Tokens { arena: Vec::new(), offsets: vec![0] };
        let mut reader: Option<Reader<'_>> = None;
        // The token of the reader, and the length of the tokens of all groups that were begun.
        let mut current = None;
        let mut max_len = 0usize;
        for id in ids {
            let group = |id: u32| (id / GROUP_LEN) as usize;
            if current.is_none_or(|current| group(current) != group(id)) {
                max_len = max_len.saturating_add(self.group_lens[group(id)]);
                match (&mut reader, &self.parts) {
                    (Some(_), Parts::Whole { .. }) => {}
                    (Some(reader), Parts::Groups(_)) => reader.enter(self.part(place, group(id), bytes)?),
                    (None, _) => reader = Some(Reader::new(self, place, self.part(place, group(id), bytes)?)?),
                }
            }
            let Some(reader) = &mut reader else { return Err(self.fault(place)) };
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

    /// Returns the part with the tokens of `group` in the `bytes` of the section.
    fn part<'a>(&self, place: Origin<'a>, group: usize, bytes: &'a [u8]) -> Result<Part<'a>> {
        let part = match &self.parts {
            Parts::Whole { .. } => bytes,
            Parts::Groups(places) => places.part(place, bytes, group)?,
        };
        self.open_part(place, group, part)
    }

    /// Reads the part with the tokens of `group` from its `bytes`.
    fn open_part<'a>(&self, place: Origin<'a>, group: usize, bytes: &'a [u8]) -> Result<Part<'a>> {
        if let Parts::Whole { blocks, num_bits } = &self.parts {
            let num_blocks = self.num_tokens.div_ceil(BLOCK_LEN) as usize;
            let starts = bytes.get(blocks.clone());
            let bits = bytes.get(blocks.end..);
            let (starts, bits) = starts.zip(bits).ok_or_else(|| self.fault(place))?;
            let blocks = Monotone::read(&mut Cursor::new(place, starts), num_blocks, num_bits + 1)?;
            return Ok(Part { blocks, first_block: 0, bits });
        }
        let mut cursor = Cursor::new(place, bytes);
        let num_bits = cursor.varint()?;
        if num_bits > 8 * bytes.len() as u64 {
            return Err(cursor.fault(format!("expected fewer bits of tokens, got {num_bits}")));
        }
        let start = group as u32 * GROUP_LEN;
        let num_blocks = (self.num_tokens - start).min(GROUP_LEN).div_ceil(BLOCK_LEN);
        let blocks = Monotone::read(&mut cursor, num_blocks as usize, num_bits + 1)?;
        let bits = cursor.take(num_bits.div_ceil(8) as usize)?;
        cursor.finish()?;
        Ok(Part { blocks, first_block: start / BLOCK_LEN, bits })
    }

    fn fault(&self, place: Origin<'_>) -> Error {
        let num_tokens = self.num_tokens;
        let len = self.len;
        place.fault(0, format!("expected {num_tokens} tokens of {len} bytes"))
    }
}

/// Reader of tokens in order, from any block on.
struct Reader<'a> {
    coded: &'a CodedTokens,
    tables: Arc<Tables>,
    place: Origin<'a>,
    part: Part<'a>,
    stream: Stream<'a>,
    token: Vec<u8>,
    shared_before: usize,
}

impl<'a> Reader<'a> {
    fn new(coded: &'a CodedTokens, place: Origin<'a>, part: Part<'a>) -> Result<Self> {
        let tables = coded.tables.get(place)?;
        let stream = Stream::new(part.bits);
        Ok(Self { coded, tables, place, part, stream, token: Vec::new(), shared_before: 0 })
    }

    /// Continues in another part.
    fn enter(&mut self, part: Part<'a>) {
        self.part = part;
        self.stream = Stream::new(part.bits);
    }

    /// Returns token `id` of the part, which is the first one of a block.
    fn seek(&mut self, id: u32) -> Result<&[u8]> {
        let block = (id / BLOCK_LEN).checked_sub(self.part.first_block);
        let bit = block.and_then(|block| self.part.blocks.get(block as usize));
        self.stream.position = bit.ok_or_else(|| self.coded.fault(self.place))? as usize;
        self.token.clear();
        self.token.extend_from_slice(self.coded.firsts.get((id / GROUP_LEN) as usize));
        self.read(FIRST_SHARED_LEN)
    }

    /// Returns the next token of the block.
    fn next(&mut self) -> Result<&[u8]> {
        self.read(SHARED_LEN + len_context(self.shared_before, self.token.len()))
    }

    #[inline]
    fn read(&mut self, shared_context: usize) -> Result<&[u8]> {
        let mut stream = self.stream;
        let tables = &*self.tables;
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
    token.resize(shared_len + own_len, 0);
    let (shared, own) = token.split_at_mut(shared_len);
    let mut before = last_two(shared);
    let num_own = own.len();
    for (at, to) in (1..).zip(own) {
        let byte = match replaced.filter(|_| at == 1) {
            Some(byte) => tables.symbol(stream, FIRST_BYTE + usize::from(byte)),
            None => tables.next_byte(stream, pair_context(before, at == num_own)),
        };
        *to = byte?;
        before = [before[1], *to];
    }
    Some(shared_len)
}
