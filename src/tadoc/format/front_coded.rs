//! Front-coded strings, compressed by zstd: each string by the bytes that it shares with the one before.
//!
//! ```text
//! pack(shared length, own length: LEB128 each) | pack(own bytes)      zstd
//! ```
//!
//! Decoding takes about 15 ns for each string, a tenth of the coder of [`strings`](super::strings),
//! whose result is smaller for lists of words.

use crate::error::Result;
use crate::format::cursor::{Cursor, Origin, pack, push_varint};

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
    let (mut lens, mut own_bytes) = (Vec::new(), Vec::new());
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
    /// Reads the list of at most `num_strings` strings, which together have at most `max_len` bytes.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if `cursor` is not at such a list.
    pub(super) fn unpack(
        place: Origin<'a>,
        cursor: &mut Cursor<'_>,
        num_strings: u64,
        max_len: u64,
    ) -> Result<Self> {
        let lens = cursor.unpack((num_strings as usize).saturating_mul(MAX_LENS_BYTES))?;
        let own_bytes = cursor.unpack(max_len as usize)?;
        Ok(Self { place, lens, own_bytes })
    }

    /// Returns the decoder at the first string.
    pub(super) fn strings(&self) -> Strings<'_> {
        Strings {
            lens: Cursor::new(self.place, &self.lens),
            own_bytes: Cursor::new(self.place, &self.own_bytes),
        }
    }
}

/// Decoder of the strings of a list, one after the other.
pub(super) struct Strings<'a> {
    lens: Cursor<'a>,
    own_bytes: Cursor<'a>,
}

impl Strings<'_> {
    /// Decodes the string that follows `arena[previous_start..]` and appends it. Returns `None` if the
    /// list ends, if `arena` would have more than `max_len` bytes or if the string shares more bytes
    /// than the previous one has.
    #[inline]
    pub(super) fn decode(
        &mut self,
        arena: &mut Vec<u8>,
        previous_start: usize,
        max_len: usize,
    ) -> Option<()> {
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
