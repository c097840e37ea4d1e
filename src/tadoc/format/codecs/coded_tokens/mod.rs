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
//! microseconds. A token is read with 16 others before it on average. Blocks of zstd take about as many bytes,
//! and all of their tokens are decoded sooner.

mod contexts;
mod encode;
mod tables;
#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::format::cursor::{Cursor, Origin};
use crate::format::entropy::monotone::Monotone;
use crate::format::entropy::prefix_code::Stream;
use crate::format::layout::SegmentMeta;
use crate::format::strings::Tokens;
use crate::text::Dictionary;

use contexts::{FIRST_BYTE, FIRST_SHARED_LEN, OWN_LEN, SHARED_LEN, last_two, len_context, pair_context};
pub(super) use encode::encode;
use tables::Tables;

const BLOCK_LEN: u32 = 32;
const GROUP_LEN: u32 = 1024;
/// Number of tokens that are decoded by one thread at once.
const TOKENS_AT_ONCE: usize = 16 * GROUP_LEN as usize;
/// The same where each of them is in a block of its own, so that two threads share the words of one unit.
const SOME_AT_ONCE: usize = 256;

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
        let parts = ids.par_chunks(SOME_AT_ONCE).map(|ids| self.tokens(place, bytes, ids.iter().copied()));
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
