//! The dictionary section: words, then separators, both in byte order, as one list of strings.
//!
//! See [`strings`](super::strings) for the coding. How many there are and how many bytes they have
//! is in the footer; that they ascend and that words are UTF-8 is checked by [`Dictionary`].

use bytes::Bytes;

use super::cursor::Place;
use super::entropy::{Decoder, Encoder, MAX_SYMBOLS_PER_BYTE};
use super::format::SegmentMeta;
use super::strings::StringModels;
use crate::error::Result;
use crate::text::Dictionary;

/// Number of the coding in the footer.
pub(super) const CODEC: u16 = 1;

/// The section's bytes for `dictionary`.
pub(super) fn encode(dictionary: &Dictionary) -> Vec<u8> {
    let (mut models, mut encoder) = (StringModels::new(), Encoder::default());
    let mut previous: &[u8] = &[];
    for id in 0..dictionary.len() {
        let token = dictionary.get(id);
        models.encode(&mut encoder, previous, token);
        previous = token;
    }
    let mut out = Vec::new();
    encoder.finish(&mut out);
    out
}

/// The dictionary of the segment `meta` from its section.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format) where the section does not hold exactly what `meta`
/// declares.
pub(super) fn decode(place: Place<'_>, bytes: &[u8], meta: &SegmentMeta) -> Result<Dictionary> {
    let num_tokens = meta.num_words as usize + meta.num_separators as usize;
    let len = meta.dictionary_bytes as usize;
    let max_symbols = (bytes.len() as u64).saturating_mul(MAX_SYMBOLS_PER_BYTE);
    if (num_tokens as u64).max(meta.dictionary_bytes) > max_symbols {
        let num_bytes = bytes.len();
        return Err(place.fault(0, format!("expected fewer than {len} bytes in {num_bytes}")));
    }
    let (mut models, mut decoder) = (StringModels::new(), Decoder::new(place, bytes)?);
    let mut arena = Vec::with_capacity(len);
    let mut offsets = Vec::with_capacity(num_tokens + 1);
    offsets.push(0);
    let mut previous = 0;
    for _ in 0..num_tokens {
        let start = arena.len();
        if models.decode(&mut decoder, &mut arena, previous, len).is_none() {
            return Err(place.fault(0, format!("expected {num_tokens} tokens of {len} bytes")));
        }
        previous = start;
        offsets.push(arena.len() as u32);
    }
    if arena.len() != len {
        let got = arena.len();
        return Err(place.fault(0, format!("expected {len} bytes of tokens, got {got}")));
    }
    decoder.finish()?;
    Dictionary::from_parts(meta.num_words, offsets, Bytes::from(arena))
        .map_err(|e| place.fault(0, e.to_string()))
}
