//! Skippable frames before the first frame of zstd or lz4, and the dictionary that they may hold.
//!
//! ```text
//! 50…5f 2a 4d 18 │ length, 4 bytes │ bytes to skip │ … │ 28 b5 2f fd: a frame of zstd │ …
//! ```
//!
//! pzstd writes one before each frame, and seekable files have one at their end. A `.warc.zst` holds its
//! dictionary in the first one. Frames that are skipped have to be followed by a frame of a known kind, so they
//! are held until then. Sources: RFC 8878, "Skippable Frames"; "Use of Zstandard compression in WARC files" (IIPC).

use std::io::{self, Read};

/// First byte of a skippable frame that holds a dictionary.
const DICTIONARY_FRAME: u8 = 0x5d;
/// First bytes of a dictionary, and of a frame of zstd.
const DICTIONARY_MAGIC: &[u8] = b"\x37\xa4\x30\xec";
const FRAME_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";
/// Bytes before those that are skipped.
const HEADER_BYTES: usize = 8;
/// Bytes of skippable frames that are held at most. Those of an input with more are taken for no frames.
const MAX_HELD_BYTES: usize = 64 << 20;

/// Returns true if `bytes` begin a skippable frame.
pub fn is_skippable(bytes: &[u8]) -> bool {
    matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Returns the number of bytes behind the header of the skippable frame that `bytes` begin, if they do.
pub fn skippable_bytes(bytes: &[u8]) -> Option<u64> {
    let len = bytes.get(4..HEADER_BYTES)?.try_into().ok()?;
    is_skippable(bytes).then(|| u32::from_le_bytes(len).into())
}

/// The first bytes of an input that begins with skippable frames.
#[derive(Default)]
pub struct SkippableFrames {
    /// The frames and a few bytes behind them.
    pub bytes: Vec<u8>,
    /// True if no frame is cut or too long.
    pub are_whole: bool,
    /// End of the frames in `bytes`.
    end: usize,
}

impl SkippableFrames {
    /// Reads the frames of `reader`, of which `head` was read already.
    ///
    /// # Errors
    /// The errors of `reader`.
    pub fn read(head: &[u8], reader: &mut impl Read) -> io::Result<Self> {
        let mut frames = Self { bytes: head.to_vec(), are_whole: false, end: 0 };
        loop {
            frames.fill(frames.end + HEADER_BYTES, reader)?;
            if !is_skippable(&frames.bytes[frames.end..]) {
                frames.are_whole = true;
                frames.fill(frames.end + head.len(), reader)?;
                return Ok(frames);
            }
            let len = skippable_bytes(&frames.bytes[frames.end..]);
            let len = len.and_then(|len| usize::try_from(len).ok());
            let end = len.map_or(usize::MAX, |len| frames.end + HEADER_BYTES + len);
            if end > MAX_HELD_BYTES {
                return Ok(frames);
            }
            frames.fill(end, reader)?;
            if frames.bytes.len() < end {
                return Ok(frames);
            }
            frames.end = end;
        }
    }

    /// Reads up to `len` bytes in all.
    fn fill(&mut self, len: usize, reader: &mut impl Read) -> io::Result<()> {
        let missing = len.saturating_sub(self.bytes.len());
        reader.take(missing as u64).read_to_end(&mut self.bytes)?;
        Ok(())
    }

    /// Sets `magic` to the bytes behind the frames, or to those of a frame that is not whole. Returns their number.
    pub fn next_magic(&self, magic: &mut [u8]) -> usize {
        let rest = &self.bytes[self.end..];
        let len = rest.len().min(magic.len());
        magic[..len].copy_from_slice(&rest[..len]);
        len
    }
}

/// Returns the dictionary of the skippable frame that begins `frames`, or nothing if there is none. It may be
/// compressed, and expands to `max_bytes` at most.
///
/// # Errors
/// It is damaged.
pub fn dictionary(frames: &[u8], max_bytes: u64) -> io::Result<Vec<u8>> {
    let len = skippable_bytes(frames).and_then(|len| usize::try_from(len).ok());
    let held = len.and_then(|len| frames.get(HEADER_BYTES..)?.get(..len));
    let Some(held) = held.filter(|_| frames.first() == Some(&DICTIONARY_FRAME)) else {
        return Ok(Vec::new());
    };
    if held.starts_with(DICTIONARY_MAGIC) {
        return Ok(held.to_vec());
    }
    let mut dictionary = Vec::new();
    if held.starts_with(FRAME_MAGIC) {
        zstd::Decoder::with_buffer(held)?.take(max_bytes).read_to_end(&mut dictionary)?;
    }
    Ok(dictionary)
}
