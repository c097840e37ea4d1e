//! Decoders of gzip, bzip2 and lz4 that read streams one behind the other, as the tools of these formats do.
//!
//! Frames to skip may stand before the first frame of zstd or lz4, and hold its dictionary.
//!
//! ```text
//! 50…5f 2a 4d 18 │ length, 4 bytes │ bytes to skip │ … │ 28 b5 2f fd: a frame of zstd │ …
//! ```
//!
//! pzstd writes one before each frame, and seekable files have one at their end. A `.warc.zst` holds its
//! dictionary in the first one. Frames that are skipped have to be followed by a frame of a known kind, so they
//! are held until then. Sources: RFC 8878, "Skippable Frames"; "Use of Zstandard compression in WARC files" (IIPC).

use std::cell::Cell;
use std::io::{self, BufRead, Chain, Cursor, ErrorKind, Read};
use std::rc::Rc;

use bzip2::bufread::BzDecoder;
use flate2::GzHeader;
use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;

/// Fills `bytes` as far as the input goes, and returns the number of bytes read.
pub fn read_up_to(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match reader.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// Fills the buffer of `reader`, again if a signal interrupts it. Returns true if there are no more
/// bytes.
///
/// # Errors
/// The other errors of `reader`.
pub fn is_at_end(reader: &mut dyn BufRead) -> io::Result<bool> {
    loop {
        match reader.fill_buf() {
            Ok(bytes) => return Ok(bytes.is_empty()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A decoder of gzip members, one behind the other. Zeros behind them, as on tapes, are left out: GNU gzip
/// does so, and `MultiGzDecoder` does not.
pub struct GzipMembers<R: BufRead> {
    /// The decoder of a member. It is none between two members only.
    member: Option<GzDecoder<R>>,
    /// Time of the last change in the header of the member.
    changed: Rc<Cell<u32>>,
}

impl<R: BufRead> GzipMembers<R> {
    /// Reads the members of `reader`. The time of the last change goes to `changed`.
    pub fn new(reader: R, changed: Rc<Cell<u32>>) -> Self {
        Self { member: Some(GzDecoder::new(reader)), changed }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let len = member.read(bytes)?;
            self.changed.set(member.header().map_or(0, GzHeader::mtime));
            if len > 0 || bytes.is_empty() {
                return Ok(len);
            }
            let is_end = skip_zeros(member.get_mut())?;
            let reader = self.member.take().map(GzDecoder::into_inner);
            self.member = reader.filter(|_| !is_end).map(GzDecoder::new);
        }
        Ok(0)
    }
}

/// Skips bytes that are zero. Returns true if nothing is behind them.
fn skip_zeros(reader: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = reader.fill_buf()?;
        let len = bytes.len();
        let num_zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        reader.consume(num_zeros);
        if len == 0 || num_zeros < len {
            return Ok(len == 0);
        }
    }
}

/// A decoder of a stream of bzip2, and its first bytes before the input.
type Bzip2Stream<R> = BzDecoder<Chain<Cursor<Vec<u8>>, R>>;

/// A decoder of bzip2 streams, one behind the other. Empty streams are skipped, because a decoder takes
/// megabytes of memory however short its stream is.
pub struct Bzip2Streams<R: BufRead> {
    /// The decoder of a stream, and its first bytes. It is none at the end only.
    stream: Option<Bzip2Stream<R>>,
    /// The input before the first stream.
    unread: Option<R>,
}

/// The magic behind the level of an empty stream of bzip2, and its checksum.
const BZIP2_EMPTY: [u8; 10] = [0x17, 0x72, 0x45, 0x38, 0x50, 0x90, 0, 0, 0, 0];
/// Bytes of an empty stream of bzip2.
const BZIP2_EMPTY_BYTES: usize = 4 + BZIP2_EMPTY.len();

impl<R: BufRead> Bzip2Streams<R> {
    /// Reads the streams of `reader`.
    pub fn new(reader: R) -> Self {
        Self { stream: None, unread: Some(reader) }
    }

    /// Returns the decoder of the next stream that is not empty, or `None` at the end of `reader`.
    fn next_stream(mut reader: R) -> io::Result<Option<Bzip2Stream<R>>> {
        loop {
            let mut head = vec![0; BZIP2_EMPTY_BYTES];
            let len = read_up_to(&mut reader, &mut head)?;
            head.truncate(len);
            let is_empty = matches!(head.as_slice(),
                [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] if rest == BZIP2_EMPTY);
            if len == 0 {
                return Ok(None);
            }
            if !is_empty {
                return Ok(Some(BzDecoder::new(Cursor::new(head).chain(reader))));
            }
        }
    }
}

impl<R: BufRead> Read for Bzip2Streams<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let Some(reader) = self.unread.take() {
            self.stream = Self::next_stream(reader)?;
        }
        while let Some(stream) = &mut self.stream {
            let len = stream.read(bytes)?;
            if len > 0 || bytes.is_empty() {
                return Ok(len);
            }
            let reader = self.stream.take().map(|stream| stream.into_inner().into_inner().1);
            self.stream = match reader {
                Some(reader) => Self::next_stream(reader)?,
                None => None,
            };
        }
        Ok(0)
    }
}

/// A decoder of lz4 frames, one behind the other. Skippable frames before them are left out. The decoder of a
/// frame takes an input that ends between two blocks for whole, so the end mark of each frame is looked at here.
pub struct Lz4Frames<R: BufRead> {
    decoder: FrameDecoder<LastBytes<R>>,
    /// Bytes of the checksum behind the end mark of this frame, or none before the first frame.
    checksum_bytes: Option<usize>,
}

/// Bytes of the end mark of a frame of lz4, which are zeros.
const LZ4_END_BYTES: usize = 4;
/// Bytes that a frame of lz4 has at least, of which some are looked at.
const LZ4_HEAD_BYTES: usize = 8;
/// Bit of the fifth byte of a frame by which a checksum follows the end mark.
const LZ4_HAS_CHECKSUM: u8 = 1 << 2;

impl<R: BufRead> Lz4Frames<R> {
    /// Reads the frames of `reader`.
    pub fn new(reader: R) -> Self {
        let ahead = Cursor::new(Vec::new());
        let reader = LastBytes { ahead, inner: reader, last: [u8::MAX; 8] };
        Self { decoder: FrameDecoder::new(reader), checksum_bytes: None }
    }
}

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(checksum_bytes) = self.checksum_bytes {
                let len = self.decoder.read(bytes)?;
                if len > 0 || bytes.is_empty() {
                    return Ok(len);
                }
                self.decoder.get_ref().check_end(checksum_bytes)?;
            }
            self.checksum_bytes = self.decoder.get_mut().next_frame()?;
            if self.checksum_bytes.is_none() {
                return Ok(0);
            }
        }
    }
}

/// A reader of lz4 that looks at the first bytes of frames, and knows the last bytes that were taken.
struct LastBytes<R> {
    /// Bytes of `inner` that were looked at.
    ahead: Cursor<Vec<u8>>,
    inner: R,
    last: [u8; 8],
}

impl<R: Read> LastBytes<R> {
    /// Skips skippable frames. Returns the bytes of the checksum behind the end mark of the next frame, or
    /// `None` at the end.
    fn next_frame(&mut self) -> io::Result<Option<usize>> {
        loop {
            let mut head = [0; LZ4_HEAD_BYTES];
            let len = read_up_to(self, &mut head)?;
            if len == 0 {
                return Ok(None);
            }
            if let Some(skipped_bytes) = skippable_bytes(&head[..len]) {
                let mut skipped = (&mut self.inner).take(skipped_bytes);
                if io::copy(&mut skipped, &mut io::sink())? < skipped_bytes {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            }
            self.ahead = Cursor::new(head[..len].to_vec());
            let has_checksum = head[4] & LZ4_HAS_CHECKSUM != 0;
            return Ok(Some(if has_checksum { 4 } else { 0 }));
        }
    }

    /// Checks that the end mark of a frame, and its checksum, were the last bytes.
    fn check_end(&self, checksum_bytes: usize) -> io::Result<()> {
        let end = self.last.len() - checksum_bytes;
        if self.last[end - LZ4_END_BYTES..end] != [0; LZ4_END_BYTES] {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

impl<R: Read> Read for LastBytes<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut len = self.ahead.read(bytes)?;
        if len == 0 {
            len = self.inner.read(bytes)?;
        }
        let kept = len.min(self.last.len());
        self.last.rotate_left(kept);
        let start = self.last.len() - kept;
        self.last[start..].copy_from_slice(&bytes[len - kept..len]);
        Ok(len)
    }
}

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
