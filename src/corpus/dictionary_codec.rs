//! The dictionary section: words, then separators, both in byte order, front coded.

use bytes::Bytes;

use super::cursor::{Cursor, Place, pack, push_varint};
use super::format::SegmentMeta;
use crate::error::Result;
use crate::text::Dictionary;

/// Number of the coding in the footer.
pub(super) const CODEC: u16 = 0;

/// The section's bytes for `dictionary`.
pub(super) fn encode(dictionary: &Dictionary) -> Result<Vec<u8>> {
    let (mut lengths, mut suffixes) = (Vec::new(), Vec::new());
    let mut previous: &[u8] = &[];
    for id in 0..dictionary.len() {
        let token = dictionary.get(id);
        let shared = previous.iter().zip(token).take_while(|(a, b)| a == b).count();
        push_varint(&mut lengths, shared as u64);
        push_varint(&mut lengths, (token.len() - shared) as u64);
        suffixes.extend_from_slice(&token[shared..]);
        previous = token;
    }
    let mut out = Vec::new();
    pack(&mut out, &lengths, 9)?;
    pack(&mut out, &suffixes, 9)?;
    Ok(out)
}

/// The dictionary of the segment `meta` from its section.
pub(super) fn decode(place: Place<'_>, bytes: &[u8], meta: &SegmentMeta) -> Result<Dictionary> {
    let num_tokens = meta.num_words as usize + meta.num_separators as usize;
    let mut cursor = Cursor::new(place, bytes);
    let lengths = cursor.unpack(num_tokens * 20)?;
    let suffixes = cursor.unpack(meta.dictionary_bytes as usize)?;
    let (mut lengths, mut suffixes) = (Cursor::new(place, &lengths), Cursor::new(place, &suffixes));
    let mut offsets = vec![0u32];
    let mut arena: Vec<u8> = Vec::new();
    let mut previous = 0;
    for _ in 0..num_tokens {
        let shared = usize::try_from(lengths.varint()?).unwrap_or(usize::MAX);
        let suffix = suffixes.take(usize::try_from(lengths.varint()?).unwrap_or(usize::MAX))?;
        let start = arena.len();
        if shared > start - previous
            || (start + shared + suffix.len()) as u64 > meta.dictionary_bytes
        {
            return Err(cursor.fault("expected tokens within the declared bytes"));
        }
        arena.extend_from_within(previous..previous + shared);
        arena.extend_from_slice(suffix);
        previous = start;
        offsets.push(arena.len() as u32);
    }
    if arena.len() as u64 != meta.dictionary_bytes {
        let (expected, got) = (meta.dictionary_bytes, arena.len());
        return Err(cursor.fault(format!("expected {expected} bytes of tokens, got {got}")));
    }
    lengths.finish()?;
    suffixes.finish()?;
    cursor.finish()?;
    Dictionary::from_parts(meta.num_words, offsets, Bytes::from(arena))
        .map_err(|e| place.fault(0, e.to_string()))
}
