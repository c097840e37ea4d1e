//! The manifest: the bytes of a version.
//!
//! ```text
//! magic 8 | major u16 | minor u16 | 0 u32 | required features u64              24 bytes
//! number u64 | commit id 16 | parent id 16 | time_us u64 | edits_since u64
//! | kind u8 | profile u8 | writer (length u8, bytes)
//! | docs_added | docs_dropped | edits | text_bytes                            LEB128, from here on
//! | num_parts | parts | num_dropped | dropped: (start - end before, length)
//! | with feature bit 1: num_bookmarks | bookmarks: source, place (each a length and UTF-8)
//! | edits: 0 | 1, bytes as they are up to the end | 2, pack (zstd)
//! crc32c of all bytes before u32
//!
//! required features   bit 0: edits that are not in the parts set user columns
//!                     bit 1: there are bookmarks, which the next version must carry on
//!
//! part   0 | id 16 | len_bytes | crc32c u32 | num_docs          a file
//!        1 | version | num_docs                                 documents of edits
//! ```
//!
//! Integers are little-endian. The checksum covers every byte. It is checked before everything
//! except magic and length, so that a file of a later format is not taken for a damaged one. The
//! first 24 and the last 4 bytes never move in later formats. Content that a reader must not skip
//! sets a bit of the *required features*. Decoding is O(bytes + edits), and its memory is bounded
//! by the bytes and `max_edits_bytes`.

use bytes::Bytes;

use super::names::CommitId;
use super::version::{Bookmark, CommitCounts, CommitKind, Part, Version};
use tadoc::error::{Error, Result};
use tadoc::format::check_version;
use tadoc::format::cursor::{Cursor, Origin, pack, push_varint};
use tadoc::text::TokenizerProfile;

const MAGIC: [u8; 8] = *b"\x89TADOV\r\n";
const MAJOR: u16 = 1;
const MINOR: u16 = 0;
/// Required feature of versions whose edits set user columns.
const SETS_COLUMNS: u64 = 1;
/// Required feature of versions with bookmarks.
const HAS_BOOKMARKS: u64 = 2;
/// Required features that this build supports.
const KNOWN_FEATURES: u64 = SETS_COLUMNS | HAS_BOOKMARKS;
const HEADER_BYTES: usize = 24;
const CRC_BYTES: usize = 4;
/// Latest valid time: the year 10,000, in microseconds, which is inside the range of every clock.
const MAX_TIME_US: u64 = 253_402_300_800_000_000;

const NO_EDITS: u8 = 0;
const PLAIN_EDITS: u8 = 1;
const ZSTD_EDITS: u8 = 2;
/// Shortest edits, in bytes, that are worth a zstd frame.
const MIN_PACKED_BYTES: usize = 128;
const LEVEL: i32 = 3;

/// Returns the bytes of `version` and of the edits of its commit (none, or the result of
/// [`encode_batch`](tadoc::edits::encode_batch)).
///
/// # Errors
/// [`Error::InvalidArgument`] if the version contradicts itself, and [`Error::Io`] from zstd.
pub fn encode_manifest(version: &Version, edits: Option<&[u8]>) -> Result<Vec<u8>> {
    if let Some(got) = version.contradiction() {
        let allowed = "a version whose parts and ranges fit one another".into();
        return Err(Error::InvalidArgument { name: "version", got, allowed });
    }
    let mut out = MAGIC.to_vec();
    out.extend(MAJOR.to_le_bytes());
    out.extend(MINOR.to_le_bytes());
    out.extend([0; 4]);
    out.extend(features(version).to_le_bytes());
    out.extend(version.number.to_le_bytes());
    out.extend(version.commit_id.as_bytes());
    out.extend(version.parent_id.as_bytes());
    out.extend(version.time_us.min(MAX_TIME_US).to_le_bytes());
    out.extend(version.edits_since.to_le_bytes());
    out.extend([version.kind.as_u8(), version.profile.as_u8()]);
    let writer = &version.writer[..version.writer.floor_char_boundary(usize::from(u8::MAX))];
    out.push(writer.len() as u8);
    out.extend(writer.as_bytes());
    let CommitCounts { docs_added, docs_dropped, edits: num_edits, text_bytes } = version.counts;
    for count in [docs_added, docs_dropped, num_edits, text_bytes] {
        push_varint(&mut out, count);
    }
    push_varint(&mut out, version.parts.len() as u64);
    version.parts.iter().for_each(|part| push_part(&mut out, part));
    push_varint(&mut out, version.dropped.len() as u64);
    let mut end = 0;
    for range in &version.dropped {
        push_varint(&mut out, range.start - end);
        push_varint(&mut out, range.end - range.start);
        end = range.end;
    }
    if !version.bookmarks.is_empty() {
        push_varint(&mut out, version.bookmarks.len() as u64);
        for Bookmark { source, place } in &version.bookmarks {
            push_text(&mut out, source);
            push_text(&mut out, place);
        }
    }
    push_edits(&mut out, edits)?;
    out.extend(crc32c::crc32c(&out).to_le_bytes());
    Ok(out)
}

/// Returns the required features of `version`.
fn features(version: &Version) -> u64 {
    let columns = if version.sets_columns { SETS_COLUMNS } else { 0 };
    let bookmarks = if version.bookmarks.is_empty() { 0 } else { HAS_BOOKMARKS };
    columns | bookmarks
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_varint(out, text.len() as u64);
    out.extend(text.as_bytes());
}

fn push_part(out: &mut Vec<u8>, part: &Part) {
    match part {
        Part::File { id, len_bytes, crc32c, num_docs } => {
            out.push(0);
            out.extend(id.as_bytes());
            push_varint(out, *len_bytes);
            out.extend(crc32c.to_le_bytes());
            push_varint(out, *num_docs);
        }
        Part::Edits { version, num_docs } => {
            out.push(1);
            push_varint(out, *version);
            push_varint(out, *num_docs);
        }
    }
}

fn push_edits(out: &mut Vec<u8>, edits: Option<&[u8]>) -> Result<()> {
    let Some(edits) = edits else {
        out.push(NO_EDITS);
        return Ok(());
    };
    let start = out.len();
    if edits.len() >= MIN_PACKED_BYTES {
        out.push(ZSTD_EDITS);
        pack(out, edits, LEVEL)?;
    }
    if out.len() == start || out.len() - start > edits.len() {
        out.truncate(start);
        out.push(PLAIN_EDITS);
        out.extend(edits);
    }
    Ok(())
}

/// Decodes the version in `bytes`, the content of `file` (a name for errors), and the bytes of its
/// edits.
///
/// # Errors
/// [`Error::Format`], [`Error::Checksum`], [`Error::Version`] for later formats, and
/// [`Error::Capacity`] if the edits take more than `max_edits_bytes`.
pub fn decode_manifest(file: &str, bytes: &[u8], max_edits_bytes: u64) -> Result<(Version, Option<Bytes>)> {
    let (version, mut cursor) = decode_head(file, bytes)?;
    let edits = edits(&mut cursor, max_edits_bytes)?;
    cursor.finish()?;
    Ok((version, edits))
}

/// Decodes the version as [`decode_manifest`] does, without unpacking the edits.
///
/// # Errors
/// The errors of [`decode_manifest`], except for those of unpacking the edits.
pub(super) fn decode_version(file: &str, bytes: &[u8], max_edits_bytes: u64) -> Result<Version> {
    let (version, cursor) = decode_head(file, bytes)?;
    edits_kind(cursor, max_edits_bytes)?;
    Ok(version)
}

/// Decodes the version in `bytes`, and returns a cursor at its edits.
fn decode_head<'a>(file: &'a str, bytes: &'a [u8]) -> Result<(Version, Cursor<'a>)> {
    let place = Origin { file, section: "version", offset: 0 };
    if bytes.len() < HEADER_BYTES + CRC_BYTES || !bytes.starts_with(&MAGIC) {
        let reason = "expected the magic of a .tadoc-version file; is it one, and whole?";
        return Err(place.fault(0, reason));
    }
    let (body, crc32c) = bytes.split_at(bytes.len() - CRC_BYTES);
    place.verify(body, Cursor::new(place, crc32c).u32()?)?;
    let mut cursor = Cursor::new(place, body);
    cursor.take(MAGIC.len())?;
    let (major, _minor) = (cursor.u16()?, cursor.u16()?);
    let reserved = cursor.u32()?;
    let features = cursor.u64()?;
    check_version(file, "version format", (MAJOR, KNOWN_FEATURES), (major, features))?;
    if reserved != 0 {
        return Err(cursor.fault(format!("expected zeros before the features, got {reserved}")));
    }
    let mut version = head(&mut cursor)?;
    version.sets_columns = features & SETS_COLUMNS != 0;
    // A part takes at least 3 bytes, a range 2.
    for _ in 0..count(&mut cursor, 3, "parts")? {
        version.parts.push(part(&mut cursor)?);
    }
    let mut end = 0u64;
    for _ in 0..count(&mut cursor, 2, "ranges")? {
        let start = end.checked_add(cursor.varint()?);
        let range_end = start.zip(Some(cursor.varint()?)).and_then(|(s, len)| s.checked_add(len));
        let (Some(start), Some(range_end)) = (start, range_end) else {
            return Err(cursor.fault("expected document ids below 2^64"));
        };
        version.dropped.push(start..range_end);
        end = range_end;
    }
    if features & HAS_BOOKMARKS != 0 {
        for _ in 0..count(&mut cursor, 2, "bookmarks")? {
            let (source, place) = (text(&mut cursor)?, text(&mut cursor)?);
            version.bookmarks.push(Bookmark { source, place });
        }
    }
    if let Some(got) = version.contradiction() {
        return Err(cursor.fault(format!("expected a version that fits itself, got {got}")));
    }
    Ok((version, cursor))
}

fn head(cursor: &mut Cursor<'_>) -> Result<Version> {
    let number = cursor.u64()?;
    let (commit_id, parent_id) = (id(cursor)?, id(cursor)?);
    let (time_us, edits_since) = (cursor.u64()?, cursor.u64()?);
    if time_us > MAX_TIME_US {
        return Err(cursor.fault(format!("expected a time before year 10,000, got {time_us} µs")));
    }
    let kind =
        CommitKind::from_u8(cursor.u8()?).ok_or_else(|| cursor.fault("expected a kind of commit of this build"))?;
    let profile = TokenizerProfile::from_u8(cursor.u8()?)
        .ok_or_else(|| cursor.fault("expected a tokenizer profile of this build"))?;
    let writer = cursor.short_text()?;
    let counts = CommitCounts {
        docs_added: cursor.varint()?,
        docs_dropped: cursor.varint()?,
        edits: cursor.varint()?,
        text_bytes: cursor.varint()?,
    };
    let (parts, dropped) = (Vec::new(), Vec::new());
    Ok(Version {
        number,
        commit_id,
        parent_id,
        time_us,
        kind,
        counts,
        writer,
        profile,
        parts,
        dropped,
        edits_since,
        sets_columns: false,
        bookmarks: Vec::new(),
    })
}

fn id(cursor: &mut Cursor<'_>) -> Result<CommitId> {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(cursor.take(16)?);
    Ok(CommitId::from_bytes(bytes))
}

fn text(cursor: &mut Cursor<'_>) -> Result<String> {
    let len = count(cursor, 1, "bytes of a text")? as usize;
    let bytes = cursor.take(len)?.to_vec();
    String::from_utf8(bytes).map_err(|_| cursor.fault("expected a bookmark in UTF-8"))
}

/// Reads a count of items that take at least `min_bytes` each.
fn count(cursor: &mut Cursor<'_>, min_bytes: u64, what: &str) -> Result<u64> {
    let count = cursor.varint()?;
    match count.checked_mul(min_bytes) {
        Some(needed) if needed <= cursor.remaining() as u64 => Ok(count),
        _ => Err(cursor.fault(format!("expected fewer {what} than {count}"))),
    }
}

fn part(cursor: &mut Cursor<'_>) -> Result<Part> {
    match cursor.u8()? {
        0 => Ok(Part::File {
            id: id(cursor)?,
            len_bytes: cursor.varint()?,
            crc32c: cursor.u32()?,
            num_docs: cursor.varint()?,
        }),
        1 => Ok(Part::Edits { version: cursor.varint()?, num_docs: cursor.varint()? }),
        kind => Err(cursor.fault(format!("expected a kind of part of 0 or 1, got {kind}"))),
    }
}

/// Returns the kind of storage of the edits at `cursor`. Refuses edits of more than `max_bytes`.
fn edits_kind(mut cursor: Cursor<'_>, max_bytes: u64) -> Result<u8> {
    let kind = cursor.u8()?;
    match kind {
        NO_EDITS => {}
        PLAIN_EDITS => check_edits_len(cursor.remaining() as u64, max_bytes)?,
        ZSTD_EDITS => check_edits_len(cursor.varint()?, max_bytes)?,
        _ => return Err(cursor.fault(format!("expected edits of kind 0 to 2, got {kind}"))),
    }
    Ok(kind)
}

fn check_edits_len(requested: u64, limit: u64) -> Result<()> {
    if requested <= limit {
        return Ok(());
    }
    let what = "the edits of one commit (bytes)";
    Err(Error::Capacity { what, requested, limit, knob: "max_version_bytes" })
}

fn edits(cursor: &mut Cursor<'_>, max_bytes: u64) -> Result<Option<Bytes>> {
    let kind = edits_kind(cursor.clone(), max_bytes)?;
    cursor.u8()?;
    Ok(match kind {
        PLAIN_EDITS => Some(Bytes::copy_from_slice(cursor.take(cursor.remaining())?)),
        ZSTD_EDITS => Some(cursor.unpack(max_bytes as usize)?.into()),
        _ => None,
    })
}
