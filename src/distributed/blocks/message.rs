//! Messages of blocks and of their segments. Numbers are little-endian.
//!
//! ```text
//! block     text │ length of each document │ length of each path │ paths │ tail
//!           the lengths are varints
//! tail      documents u64 │ bytes of text u64 │ bytes of paths u64 │ tokenizer u8 │ builder u8 │ dedup u8 │ layout u8
//!           │ percent of lists u16 │ zero u16 │ checksum of all before u32 │ version u32 │ magic "TADOCBLK"
//! segment   magic "TADOCSEG" │ version u32 │ checksum of the block u32 │ a file .tadoc with one segment
//! ```
//!
//! The text is first, so that it stays where it arrived. The checksum is CRC32C. The file of a segment has checksums of
//! its own. The checksum of the block in front of it says which block it is of. Any bytes give a block, a segment or an
//! error, and a block takes no more memory than some times the bytes of its message: each document has at least two.

use std::sync::Arc;

use tadoc::build::{Block, BuilderKind, IngestOptions};
use tadoc::format::cursor::{Cursor, Origin, push_varint};
use tadoc::format::{EncodedSegment, SegmentLayout};
use tadoc::grammar::Dedup;
use tadoc::segment::Paths;
use tadoc::text::TokenizerProfile;
use tadoc::{Error, Result};
use tonic::codegen::Bytes;

/// Version of both messages.
const VERSION: u32 = 1;
const BLOCK_MAGIC: &[u8; 8] = b"TADOCBLK";
const SEGMENT_MAGIC: &[u8; 8] = b"TADOCSEG";
const TAIL_BYTES: usize = 48;
/// Bytes of the tail behind what the checksum covers.
const BEHIND_CHECKSUM: usize = 16;
const HEAD_BYTES: usize = 16;
/// Name of a block in errors.
const BLOCK: &str = "a block";

/// The message of a block, in two parts.
pub(super) struct BlockMessage {
    /// The text, which is not copied.
    pub(super) text: Bytes,
    /// Everything behind the text.
    pub(super) rest: Bytes,
    /// Checksum of both.
    pub(super) checksum: u32,
}

/// Texts of a block that a message shares.
struct TextOf(Arc<Block>);

impl AsRef<[u8]> for TextOf {
    fn as_ref(&self) -> &[u8] {
        self.0.text()
    }
}

impl BlockMessage {
    /// Writes `block` and the options by which it becomes a segment.
    pub(super) fn new(block: &Arc<Block>, options: &IngestOptions) -> Self {
        let ends = block.doc_ends();
        let paths = block.paths();
        let mut rest = Vec::with_capacity(4 * ends.len() + paths.len_bytes() + TAIL_BYTES);
        let mut start = 0;
        for &end in ends {
            push_varint(&mut rest, (end - start) as u64);
            start = end;
        }
        let each_path = || (0..paths.len()).map(|doc| paths.get(doc).unwrap_or_default());
        for path in each_path() {
            push_varint(&mut rest, path.len() as u64);
        }
        for path in each_path() {
            rest.extend_from_slice(path.as_bytes());
        }
        for number in [ends.len(), block.text().len(), paths.len_bytes()] {
            rest.extend((number as u64).to_le_bytes());
        }
        let (layout, percent) = match options.layout {
            SegmentLayout::Small => (0, 0),
            SegmentLayout::Indexed { max_lists_percent } => (1, max_lists_percent),
        };
        let builder = match options.builder {
            BuilderKind::Rounds => 0,
            BuilderKind::Sequitur => 1,
        };
        let dedup = match options.dedup {
            Dedup::Auto => 0,
            Dedup::On => 1,
            Dedup::Off => 2,
        };
        rest.extend([options.profile.as_u8(), builder, dedup, layout]);
        rest.extend(percent.to_le_bytes());
        rest.extend([0; 2]);
        let checksum = crc32c::crc32c_append(crc32c::crc32c(block.text()), &rest);
        rest.extend(checksum.to_le_bytes());
        rest.extend(VERSION.to_le_bytes());
        rest.extend(BLOCK_MAGIC);
        Self { text: Bytes::from_owner(TextOf(Arc::clone(block))), rest: rest.into(), checksum }
    }

    /// Returns the length in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len() + self.rest.len()
    }
}

/// Returns the block of a message, its options, and the checksum.
///
/// # Errors
/// [`Error::Format`], [`Error::Checksum`] or [`Error::Version`] if the bytes are no such message.
pub(super) fn read_block(mut message: Vec<u8>) -> Result<(Block, IngestOptions, u32)> {
    let Some(tail_at) = message.len().checked_sub(TAIL_BYTES) else {
        let place = Origin { file: BLOCK, section: "tail", offset: 0 };
        return Err(place.fault(0, format!("expected {TAIL_BYTES} bytes and more, got {}", message.len())));
    };
    let place = Origin { file: BLOCK, section: "tail", offset: tail_at as u64 };
    let mut tail = Cursor::new(place, &message[tail_at..]);
    let [num_docs, text_bytes, paths_bytes] = [tail.u64()?, tail.u64()?, tail.u64()?];
    let [profile, builder, dedup, layout] = [tail.u8()?, tail.u8()?, tail.u8()?, tail.u8()?];
    let percent = tail.u16()?;
    let zero = tail.u16()?;
    let checksum = tail.u32()?;
    let version = tail.u32()?;
    check_frame(place, tail.take(BLOCK_MAGIC.len())?, BLOCK_MAGIC, version)?;
    place.verify(&message[..message.len() - BEHIND_CHECKSUM], checksum)?;
    let fault = |reason: String| place.fault(0, reason);
    let options = IngestOptions {
        profile: TokenizerProfile::from_u8(profile)
            .ok_or_else(|| fault(format!("expected a tokenizer of this build, got number {profile}")))?,
        builder: match builder {
            0 => BuilderKind::Rounds,
            1 => BuilderKind::Sequitur,
            other => return Err(fault(format!("expected builder 0 or 1, got {other}"))),
        },
        dedup: match dedup {
            0 => Dedup::Auto,
            1 => Dedup::On,
            2 => Dedup::Off,
            other => return Err(fault(format!("expected dedup 0, 1 or 2, got {other}"))),
        },
        layout: match (layout, percent) {
            (0, 0) => SegmentLayout::Small,
            (1, max_lists_percent) => SegmentLayout::Indexed { max_lists_percent },
            other => return Err(fault(format!("expected layout 0 or 1, got {other:?}"))),
        },
        ..IngestOptions::default()
    };
    let text_len = usize::try_from(text_bytes).ok().filter(|&text_len| text_len <= tail_at);
    let Some(text_len) = text_len.filter(|_| zero == 0) else {
        return Err(fault(format!("expected at most {tail_at} bytes of text and a zero, got {text_bytes} and {zero}")));
    };
    let place = Origin { file: BLOCK, section: "documents", offset: text_bytes };
    let (doc_ends, paths) = read_documents(Cursor::new(place, &message[text_len..tail_at]), num_docs, paths_bytes)?;
    message.truncate(text_len);
    Ok((Block::new(message, doc_ends, paths)?, options, checksum))
}

/// Reads the ends of documents and their paths.
fn read_documents(mut cursor: Cursor<'_>, num_docs: u64, paths_bytes: u64) -> Result<(Vec<usize>, Paths)> {
    if num_docs > cursor.remaining() as u64 / 2 {
        let reason = format!("expected at most one document for two bytes, got {num_docs} documents");
        return Err(cursor.fault(reason));
    }
    let mut doc_ends = Vec::with_capacity(num_docs as usize);
    let mut end = 0usize;
    for _ in 0..num_docs {
        let len = cursor.varint()?;
        end = add(&cursor, end, len)?;
        doc_ends.push(end);
    }
    let mut path_lens = Vec::with_capacity(num_docs as usize);
    for _ in 0..num_docs {
        let len = cursor.varint()?;
        path_lens.push(add(&cursor, 0, len)?);
    }
    let mut paths = Paths::default();
    for len in path_lens {
        let at = cursor.clone();
        let path = std::str::from_utf8(cursor.take(len)?);
        paths.push(path.map_err(|error| at.fault(format!("expected a path in UTF-8: {error}")))?);
    }
    if paths.len_bytes() as u64 != paths_bytes {
        return Err(cursor.fault(format!("expected {paths_bytes} bytes of paths, got {}", paths.len_bytes())));
    }
    cursor.finish()?;
    Ok((doc_ends, paths))
}

fn add(cursor: &Cursor<'_>, sum: usize, len: u64) -> Result<usize> {
    let sum = usize::try_from(len).ok().and_then(|len| sum.checked_add(len));
    sum.ok_or_else(|| cursor.fault("expected lengths below 2^64 in sum"))
}

fn check_frame(place: Origin<'_>, magic: &[u8], expected: &[u8], version: u32) -> Result<()> {
    if magic != expected {
        return Err(place.fault(0, format!("expected the magic {}, got other bytes", expected.escape_ascii())));
    }
    if version != VERSION {
        let expected = format!("version {VERSION} of the message");
        return Err(Error::Version { file: place.file.into(), expected, got: format!("version {version}") });
    }
    Ok(())
}

/// Returns the message of the segment in `file`, of the block with this checksum: its head, and the file.
pub(super) fn segment_message(checksum: u32, file: Vec<u8>) -> [Bytes; 2] {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    head.extend(SEGMENT_MAGIC);
    head.extend(VERSION.to_le_bytes());
    head.extend(checksum.to_le_bytes());
    [head.into(), file.into()]
}

/// Returns the segment of `block` out of a message. Errors call the message `name`.
///
/// # Errors
/// [`Error::Format`], [`Error::Checksum`] or [`Error::Version`] if the bytes are no message of this segment.
pub(super) fn read_segment(
    name: &str,
    message: &[u8],
    (block, options, checksum): (&Block, &IngestOptions, u32),
) -> Result<EncodedSegment> {
    let place = Origin { file: name, section: "head", offset: 0 };
    let mut head = Cursor::new(place, message);
    let magic = head.take(SEGMENT_MAGIC.len())?;
    let version = head.u32()?;
    let got = head.u32()?;
    check_frame(place, magic, SEGMENT_MAGIC, version)?;
    if got != checksum {
        return Err(Error::Checksum { file: name.into(), section: "head", offset: 12, expected: checksum, got });
    }
    block.take_segment(name, options, head.take(head.remaining())?)
}

/// Returns the most bytes that a message of the segment of `block` may have. A segment that is larger is built here: no
/// text needs as many, and memory of an answer is bounded before it has arrived.
pub(super) fn max_segment_bytes(block: &Block) -> usize {
    let docs_bytes = block.doc_ends().len().saturating_mul(32);
    let text_bytes = block.text().len().saturating_add(block.paths().len_bytes()).saturating_mul(4);
    docs_bytes.saturating_add(text_bytes).saturating_add(1 << 20)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(docs: &[(Vec<u8>, String)]) -> Arc<Block> {
        let mut text = Vec::new();
        let mut ends = Vec::new();
        let mut paths = Paths::default();
        for (doc, path) in docs {
            text.extend(doc);
            ends.push(text.len());
            paths.push(path);
        }
        Arc::new(Block::new(text, ends, paths).unwrap())
    }

    fn bytes(message: &BlockMessage) -> Vec<u8> {
        [&message.text[..], &message.rest[..]].concat()
    }

    fn any_docs() -> impl Strategy<Value = Vec<(Vec<u8>, String)>> {
        let text = prop::collection::vec(any::<u8>(), 0..300);
        prop::collection::vec((text, "[a-c/é]{0,200}"), 0..20)
    }

    proptest! {
        #[test]
        fn blocks_arrive_as_they_were(docs in any_docs(), percent: u16, which in 0usize..12) {
            let options = IngestOptions {
                profile: TokenizerProfile::ALL[which % TokenizerProfile::ALL.len()],
                builder: [BuilderKind::Rounds, BuilderKind::Sequitur][which % 2],
                dedup: [Dedup::Auto, Dedup::On, Dedup::Off][which % 3],
                layout: [SegmentLayout::Small, SegmentLayout::Indexed { max_lists_percent: percent }][which / 6],
                ..IngestOptions::default()
            };
            let sent = block(&docs);
            let message = BlockMessage::new(&sent, &options);
            prop_assert_eq!(message.len(), bytes(&message).len());
            let (got, got_options, checksum) = read_block(bytes(&message)).unwrap();
            prop_assert_eq!(got_options, options);
            prop_assert_eq!(checksum, message.checksum);
            prop_assert_eq!(got.text(), sent.text());
            prop_assert_eq!(got.doc_ends(), sent.doc_ends());
            prop_assert_eq!(got.paths(), sent.paths());
        }

        #[test]
        fn damaged_blocks_are_errors_and_forged_ones_no_panics(
            docs in any_docs(),
            changes in prop::collection::vec((any::<usize>(), 1u8..), 1..4),
            cut: Option<usize>,
            is_forged: bool,
        ) {
            let mut message = bytes(&BlockMessage::new(&block(&docs), &IngestOptions::default()));
            let before = message.clone();
            for (at, flip) in changes {
                let at = at % message.len();
                message[at] ^= flip;
            }
            if let Some(cut) = cut {
                message.truncate(cut % message.len());
            }
            if is_forged && message.len() >= TAIL_BYTES {
                let end = message.len() - BEHIND_CHECKSUM;
                let checksum = crc32c::crc32c(&message[..end]);
                message[end..end + 4].copy_from_slice(&checksum.to_le_bytes());
                if let Ok((block, _, _)) = read_block(message) {
                    prop_assert_eq!(block.paths().len(), block.doc_ends().len());
                }
            } else if message != before {
                prop_assert!(read_block(message).is_err());
            }
        }
    }

    #[test]
    fn segments_of_other_blocks_are_refused() {
        let options = IngestOptions::default();
        let docs = |text: &str| block(&[(text.as_bytes().to_vec(), "a".to_owned())]);
        let own = docs("to be or not");
        let twin = docs("to be or nut");
        let checksum = |block: &Arc<Block>| BlockMessage::new(block, &options).checksum;
        let answer = |block: &Arc<Block>| {
            segment_message(checksum(block), Block::clone(block).build(&options).unwrap()).concat()
        };
        let read = |message: &[u8]| read_segment("worker", message, (&own, &options, checksum(&own)));
        read(&answer(&own)).unwrap();
        assert!(matches!(read(&answer(&twin)), Err(Error::Checksum { .. })));
        assert!(answer(&own).len() <= max_segment_bytes(&own));
        let mut other = answer(&own);
        other[8] = 2;
        assert!(matches!(read(&other), Err(Error::Version { .. })));
        for len in [0, 7, HEAD_BYTES, HEAD_BYTES + 1, other.len() - 1] {
            assert!(read(&answer(&own)[..len]).is_err(), "{len}");
        }
    }
}
