//! Codec of the documents section: one path for each document, in document order.
//!
//! There are two codecs. The small layout takes the smaller result, the fast layout the second codec:
//!
//! ```text
//! 1  strings (see `strings`)
//! 2  front-coded strings in zstd (see `front_coded`)
//! ```
//!
//! Neighbouring paths share their folder. In a corpus of lines or rows all paths are equal, or end
//! in ascending numbers. Names of one word each are smaller with the first codec (tldr pages: 23.6
//! KB, zstd 28.3). Names of repeated parts are smaller with the second (Office reference: 25.2 KB,
//! strings 32.1).

use crate::error::{Error, Result};
use crate::format::cursor::{Cursor, Origin};
use crate::format::entropy::{Decoder, Encoder, MAX_SYMBOLS_PER_BYTE};
use crate::format::front_coded::{self, FrontCoded};
use crate::format::layout::SegmentMeta;
use crate::format::segment_layout::SegmentLayout;
use crate::format::strings::StringModels;
use crate::segment::Paths;

/// Numbers of the codecs in the footer.
const STRINGS: u16 = 1;
const ZSTD: u16 = 2;
const LEVEL: i32 = 19;
/// Compression level above [`LARGE_LEN_BYTES`], so that writing keeps up with the grammar builder.
const LEVEL_OF_LARGE: i32 = 6;
const LARGE_LEN_BYTES: usize = 1 << 20;

/// Returns the codec of the section and its bytes for `paths`, in the layout `layout`.
///
/// # Errors
/// [`Error::Io`] if zstd cannot allocate memory.
pub(in crate::format) fn encode(paths: &Paths, layout: SegmentLayout) -> Result<(u16, Vec<u8>)> {
    let all = || (0..paths.len()).filter_map(|doc| paths.get(doc)).map(str::as_bytes);
    let level = |len_bytes| if len_bytes > LARGE_LEN_BYTES { LEVEL_OF_LARGE } else { LEVEL };
    let mut packed = Vec::new();
    front_coded::encode(&mut packed, all(), level)?;
    if layout == SegmentLayout::Fast {
        return Ok((ZSTD, packed));
    }
    let (mut models, mut encoder) = (StringModels::new(), Encoder::default());
    let mut previous: &[u8] = &[];
    for path in all() {
        models.encode(&mut encoder, previous, path);
        previous = path;
    }
    let mut strings = Vec::new();
    encoder.finish(&mut strings);
    Ok(if packed.len() < strings.len() { (ZSTD, packed) } else { (STRINGS, strings) })
}

/// Decodes the paths of the segment `meta` from its section, which is encoded by `codec`.
///
/// # Errors
/// [`Error::Format`] if the section does not contain exactly the paths that `meta` declares,
/// [`Error::Version`] for an unknown codec.
pub(in crate::format) fn decode(
    place: Origin<'_>,
    codec: u16,
    bytes: &[u8],
    meta: &SegmentMeta,
) -> Result<Paths> {
    let mut paths = PathsDecoder { place, meta, arena: Vec::new(), ends: Vec::new() };
    match codec {
        STRINGS => {
            let (mut models, mut decoder) = (StringModels::new(), Decoder::new(place, bytes)?);
            // Shared bytes cost nothing, so the section bounds only the number of paths.
            if meta.num_docs > (bytes.len() as u64).saturating_mul(MAX_SYMBOLS_PER_BYTE) {
                return Err(place.fault(0, format!("expected fewer than {} paths", meta.num_docs)));
            }
            paths.decode_all(|arena, previous, max_len| {
                models.decode(&mut decoder, arena, previous, max_len)
            })?;
            decoder.finish()?;
        }
        ZSTD => {
            let mut cursor = Cursor::new(place, bytes);
            let packed = FrontCoded::unpack(place, &mut cursor, meta.num_docs, meta.paths_bytes)?;
            cursor.finish()?;
            let mut strings = packed.strings();
            paths
                .decode_all(|arena, previous, max_len| strings.decode(arena, previous, max_len))?;
            strings.finish()?;
        }
        codec => {
            let (expected, got) =
                ("documents codec 1 or 2".into(), format!("documents codec {codec}"));
            return Err(Error::Version { file: place.file.into(), expected, got });
        }
    }
    paths.finish()
}

struct PathsDecoder<'a> {
    place: Origin<'a>,
    meta: &'a SegmentMeta,
    arena: Vec<u8>,
    ends: Vec<u64>,
}

impl PathsDecoder<'_> {
    /// Decodes every path with `decode`. It appends one path to the arena, and receives the start
    /// of the previous path and the greatest length of the arena.
    fn decode_all(
        &mut self,
        mut decode: impl FnMut(&mut Vec<u8>, usize, usize) -> Option<()>,
    ) -> Result<()> {
        let mut previous = 0;
        for doc in 0..self.meta.num_docs {
            let start = self.arena.len();
            let is_decoded = decode(&mut self.arena, previous, self.meta.paths_bytes as usize);
            if is_decoded.is_none() || std::str::from_utf8(&self.arena[start..]).is_err() {
                let reason = format!("expected path {doc} in UTF-8 and within the bytes declared");
                return Err(self.place.fault(0, reason));
            }
            previous = start;
            self.ends.push(self.arena.len() as u64);
        }
        Ok(())
    }

    fn finish(self) -> Result<Paths> {
        let (expected, got) = (self.meta.paths_bytes, self.arena.len());
        if got as u64 != expected {
            return Err(self
                .place
                .fault(0, format!("expected {expected} bytes of paths, got {got}")));
        }
        let bytes =
            String::from_utf8(self.arena).map_err(|e| self.place.fault(0, e.to_string()))?;
        Ok(Paths::from_parts(bytes, self.ends))
    }
}
