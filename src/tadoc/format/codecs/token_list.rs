//! List of the tokens of a dictionary, or of a part of one, encoded and decoded.
//!
//! The codecs of the [dictionary](super::dictionary) and of its [blocks](super::dictionary_blocks) are made of
//! such lists, which are coded as [`strings`](crate::format::strings) or as
//! [front-coded strings](crate::format::front_coded) in zstd.

use crate::error::Result;
use crate::format::cursor::{Cursor, Origin};
use crate::format::entropy::{Decoder, MAX_SYMBOLS_PER_BYTE};
use crate::format::front_coded::FrontCoded;
use crate::format::strings::StringModels;

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
        let (mut models, mut decoder) = (StringModels::new(), Decoder::new(place, self.bytes)?);
        let tokens = self.decode_all(place, |arena, previous, max_len| {
            models.decode(&mut decoder, arena, previous, max_len)
        })?;
        decoder.finish()?;
        Ok(tokens)
    }

    pub(super) fn decode_front_coded(&self, place: Origin<'_>) -> Result<Tokens> {
        let mut cursor = Cursor::new(place, self.bytes);
        let packed = FrontCoded::unpack(place, &mut cursor, self.num_tokens, self.len)?;
        cursor.finish()?;
        let mut strings = packed.strings();
        let decode =
            |arena: &mut Vec<u8>, previous, max_len| strings.decode(arena, previous, max_len);
        let tokens = self.decode_all(place, decode)?;
        strings.finish()?;
        Ok(tokens)
    }

    /// Decodes every token with `decode`. It appends one token to the arena, and receives the start of
    /// the previous token and the greatest length of the arena.
    fn decode_all(
        &self,
        place: Origin<'_>,
        mut decode: impl FnMut(&mut Vec<u8>, usize, usize) -> Option<()>,
    ) -> Result<Tokens> {
        let (num_tokens, len) = (self.num_tokens as usize, self.len as usize);
        let (mut arena, mut offsets) = (Vec::new(), vec![0]);
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
        let (mut arena, mut offsets) = (Vec::with_capacity(len), Vec::with_capacity(num_offsets));
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
