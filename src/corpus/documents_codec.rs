//! The documents section: one path a document, front coded against the one before.
//!
//! ```text
//! pack(per document: shared bytes, own bytes) | pack(own bytes of all)     LEB128 inside zstd
//! ```
//!
//! Paths share their folder with their neighbour; zstd sees the rest. A corpus of lines or rows
//! has one path for all documents, or ascending numbers: both shrink to a few bytes a thousand.

use super::Paths;
use super::cursor::{Cursor, Place, pack, push_varint};
use super::format::SegmentMeta;
use crate::error::Result;

/// Number of the coding in the footer.
pub(super) const CODEC: u16 = 0;
const LEVEL: i32 = 19;
const LEVEL_OF_LARGE: i32 = 9;
const LARGE_LEN_BYTES: usize = 4 << 20;

/// The section's bytes for `paths`.
pub(super) fn encode(paths: &Paths) -> Result<Vec<u8>> {
    let (mut lengths, mut suffixes) = (Vec::new(), Vec::new());
    let mut previous: &[u8] = &[];
    for path in (0..paths.len()).filter_map(|doc| paths.get(doc)) {
        let path = path.as_bytes();
        let shared = previous.iter().zip(path).take_while(|(a, b)| a == b).count();
        push_varint(&mut lengths, shared as u64);
        push_varint(&mut lengths, (path.len() - shared) as u64);
        suffixes.extend_from_slice(&path[shared..]);
        previous = path;
    }
    let is_large = lengths.len() + suffixes.len() > LARGE_LEN_BYTES;
    let level = if is_large { LEVEL_OF_LARGE } else { LEVEL };
    let mut out = Vec::new();
    pack(&mut out, &lengths, level)?;
    pack(&mut out, &suffixes, level)?;
    Ok(out)
}

/// The paths of the segment `meta` from its section.
pub(super) fn decode(place: Place<'_>, bytes: &[u8], meta: &SegmentMeta) -> Result<Paths> {
    let mut cursor = Cursor::new(place, bytes);
    let lengths = cursor.unpack((meta.num_docs as usize).saturating_mul(20))?;
    let suffixes = cursor.unpack(meta.paths_bytes as usize)?;
    let (mut lengths, mut suffixes) = (Cursor::new(place, &lengths), Cursor::new(place, &suffixes));
    let mut arena: Vec<u8> = Vec::new();
    let mut ends: Vec<u64> = Vec::new();
    let mut previous = 0;
    for _ in 0..meta.num_docs {
        let shared = usize::try_from(lengths.varint()?).unwrap_or(usize::MAX);
        let suffix = suffixes.take(usize::try_from(lengths.varint()?).unwrap_or(usize::MAX))?;
        let start = arena.len();
        if shared > start - previous || (start + shared + suffix.len()) as u64 > meta.paths_bytes {
            return Err(cursor.fault("expected paths within the declared bytes"));
        }
        arena.extend_from_within(previous..previous + shared);
        arena.extend_from_slice(suffix);
        if std::str::from_utf8(&arena[start..]).is_err() {
            return Err(cursor.fault("expected paths in UTF-8"));
        }
        previous = start;
        ends.push(arena.len() as u64);
    }
    if arena.len() as u64 != meta.paths_bytes {
        let (expected, got) = (meta.paths_bytes, arena.len());
        return Err(cursor.fault(format!("expected {expected} bytes of paths, got {got}")));
    }
    lengths.finish()?;
    suffixes.finish()?;
    cursor.finish()?;
    let bytes = String::from_utf8(arena).map_err(|e| place.fault(0, e.to_string()))?;
    Ok(Paths { bytes, ends })
}
