//! One version of a living corpus: the value, and its bytes, the manifest.
//!
//! ```text
//! parts        [ file A: 3 ids ][ file B: 2 ids ][ edits of version 9: 1 id ]
//! ids            0   1   2         3   4            5
//! dropped            1..2                                  ids whose documents are dropped
//! edits_since  8: the edits of versions 8, 9, … up to this one apply to the parts, in order
//! ```
//!
//! Ids are dense over the parts and permanent: a dropped document keeps its id. Files hold a
//! document for every id. Those of dropped ids are empty.
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
//! Integers are little-endian. The checksum covers every byte. It is checked before everything except magic and length,
//! so that a file of a later format is not taken for a damaged one. The first 24 and the last 4 bytes never move in
//! later formats. Content that a reader must not skip sets a bit of the *required features*. Decoding is O(bytes +
//! edits), and its memory is bounded by the bytes and `max_edits_bytes`.

use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tadoc::error::{Error, Result};
use tadoc::format::check_version;
use tadoc::format::cursor::{Cursor, Origin, pack, push_varint};
use tadoc::text::TokenizerProfile;

use crate::storage::{CommitId, segment_name};

/// Largest number of a version.
const MAX_NUMBER: u64 = u64::MAX >> 1;

/// Purpose of a commit, as the history shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CommitKind {
    /// Creation of the corpus.
    Create = 0,
    /// Addition of documents from files.
    Append = 1,
    /// Insertion of rows.
    Insert = 2,
    /// Dropping of documents.
    Delete = 3,
    /// Replacement of documents' bytes.
    Update = 4,
    /// Edits of the text of documents.
    Edit = 5,
    /// Optimization of parts and edits, which changes no document.
    Optimize = 6,
}

impl CommitKind {
    const ALL: [Self; 7] =
        [Self::Create, Self::Append, Self::Insert, Self::Delete, Self::Update, Self::Edit, Self::Optimize];

    /// Returns the number that is stored in files.
    pub fn as_u8(self) -> u8 {
        self as u8
    }

    /// Returns the kind stored under this number, if this build knows it.
    pub fn from_u8(stored: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_u8() == stored)
    }

    /// Returns the name used in SQL and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Append => "append",
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Update => "update",
            Self::Edit => "edit",
            Self::Optimize => "optimize",
        }
    }
}

impl fmt::Display for CommitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Counts of the changes of a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommitCounts {
    /// Number of documents added, in files and by edits.
    pub docs_added: u64,
    /// Number of documents dropped.
    pub docs_dropped: u64,
    /// Number of edits, those that add and drop documents included.
    pub edits: u64,
    /// Bytes of text added by documents, insertions and replacements.
    pub text_bytes: u64,
}

/// A run of documents with consecutive ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A `.tadoc` file of one or more segments.
    File {
        /// Id that names the file: `segments/<id>.tadoc`.
        id: CommitId,
        /// Length of the file, in bytes.
        len_bytes: u64,
        /// CRC32C of all bytes of the file.
        crc32c: u32,
        /// Number of documents in the file.
        num_docs: u64,
    },
    /// Documents that the edits of a version added.
    Edits {
        /// Number of the version.
        version: u64,
        /// Number of documents that it added.
        num_docs: u64,
    },
}

impl Part {
    /// Returns the number of ids that the part covers.
    pub fn num_docs(&self) -> u64 {
        match self {
            Self::File { num_docs, .. } | Self::Edits { num_docs, .. } => *num_docs,
        }
    }

    /// Returns the length of the file in bytes, if the part is a file.
    pub fn file_len_bytes(&self) -> Option<u64> {
        match self {
            Self::File { len_bytes, .. } => Some(*len_bytes),
            Self::Edits { .. } => None,
        }
    }

    /// Returns the name of the file, relative to the location of the corpus, if the part is a file.
    pub fn file_name(&self) -> Option<String> {
        match self {
            Self::File { id, .. } => Some(segment_name(*id)),
            Self::Edits { .. } => None,
        }
    }
}

/// The place up to which a source was read into a corpus, such as a log that grows. Commits carry
/// it on, so that a writer that was killed goes on where its last commit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bookmark {
    /// Name of the source, as its reader chose it.
    pub source: String,
    /// Place in the source, in the form of its reader.
    pub place: String,
}

/// A state of a living corpus after one commit. It never changes and is cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Number of the version: 1 for the commit that created the corpus.
    pub number: u64,
    /// Id of the commit that made this version.
    pub commit_id: CommitId,
    /// Id of the commit that made the version before. Zeros for the first version.
    pub parent_id: CommitId,
    /// Time of the commit, in microseconds since 1970, by the writer's clock. Never before the
    /// parent's.
    pub time_us: u64,
    /// Purpose of the commit.
    pub kind: CommitKind,
    /// Counts of the commit's changes.
    pub counts: CommitCounts,
    /// Name and version of the program that wrote the version.
    pub writer: String,
    /// Tokenizer profile of all parts.
    pub profile: TokenizerProfile,
    /// Parts with the documents in order of id.
    pub parts: Vec<Part>,
    /// Ranges of ids whose documents are dropped in the parts. Ascending, neither empty nor
    /// adjacent.
    pub dropped: Vec<Range<u64>>,
    /// First version whose edits are not in the parts, or the next version's number if there is
    /// none.
    pub edits_since: u64,
    /// True if edits that are not in the parts may set user columns.
    pub sets_columns: bool,
    /// Bookmarks of all sources that were read up to a place, in ascending order of their names.
    pub bookmarks: Vec<Bookmark>,
}

impl Version {
    /// Returns the number of document ids given so far, those of dropped documents included.
    pub fn num_doc_ids(&self) -> u64 {
        self.parts.iter().map(Part::num_docs).fold(0, u64::saturating_add)
    }

    /// Returns each part with its range of ids.
    pub fn part_ids(&self) -> impl Iterator<Item = (&Part, Range<u64>)> {
        self.parts.iter().scan(0u64, |end, part| {
            let first = *end;
            *end = end.saturating_add(part.num_docs());
            Some((part, first..*end))
        })
    }

    /// Returns the versions whose edits apply to the parts, in order. Empty if all edits are in the
    /// parts.
    pub fn edit_versions(&self) -> RangeInclusive<u64> {
        self.edits_since..=self.number
    }

    /// Returns the place up to which `source` was read, if a commit has stored one.
    pub fn bookmark(&self, source: &str) -> Option<&str> {
        let idx = self.bookmark_idx(source).ok()?;
        self.bookmarks.get(idx).map(|bookmark| bookmark.place.as_str())
    }

    /// Stores the place up to which a source was read.
    pub(super) fn set_bookmark(&mut self, bookmark: Bookmark) {
        match self.bookmark_idx(&bookmark.source) {
            Ok(idx) => self.bookmarks[idx] = bookmark,
            Err(idx) => self.bookmarks.insert(idx, bookmark),
        }
    }

    fn bookmark_idx(&self, source: &str) -> std::result::Result<usize, usize> {
        self.bookmarks.binary_search_by(|bookmark| bookmark.source.as_str().cmp(source))
    }

    /// Returns the time of the commit.
    pub fn time(&self) -> SystemTime {
        // The sum stays in the clock's range, because decoding a manifest limits the time.
        SystemTime::UNIX_EPOCH + Duration::from_micros(self.time_us)
    }

    /// Returns a description of the first contradiction between the fields, or `None` if there is
    /// none.
    pub(super) fn contradiction(&self) -> Option<String> {
        let number = self.number;
        // The limit leaves room for the numbers of later versions.
        if !(1..=MAX_NUMBER).contains(&number) || !(1..=number + 1).contains(&self.edits_since) {
            return Some(format!("edits since {}, version {number}", self.edits_since));
        }
        let mut num_ids = Some(0u64);
        let mut files = std::collections::HashSet::new();
        let mut last_edits = self.edits_since - 1;
        for part in &self.parts {
            num_ids = num_ids.and_then(|sum| sum.checked_add(part.num_docs()));
            match part {
                Part::File { id, .. } if !files.insert(*id) => {
                    return Some(format!("two parts of the file {id}"));
                }
                Part::Edits { version, .. } if *version <= last_edits || *version > number => {
                    return Some(format!("a part of the edits of version {version}"));
                }
                Part::Edits { version, .. } => last_edits = *version,
                Part::File { .. } => {}
            }
        }
        let Some(num_ids) = num_ids else { return Some("more than 2^64 documents".into()) };
        let mut end = None;
        for range in &self.dropped {
            if range.is_empty() || end.is_some_and(|end| range.start <= end) || range.end > num_ids {
                return Some(format!("dropped documents {range:?} of {num_ids}"));
            }
            end = Some(range.end);
        }
        let is_disordered = |pair: &[Bookmark]| pair[0].source >= pair[1].source;
        let disordered = self.bookmarks.windows(2).find(|pair| is_disordered(pair));
        disordered.map(|pair| format!("bookmarks of {:?} before {:?}", pair[0].source, pair[1].source))
    }
}

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
    let major = cursor.u16()?;
    let _minor = cursor.u16()?;
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
            let source = text(&mut cursor)?;
            let place = text(&mut cursor)?;
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
    let commit_id = id(cursor)?;
    let parent_id = id(cursor)?;
    let time_us = cursor.u64()?;
    let edits_since = cursor.u64()?;
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
    let parts = Vec::new();
    let dropped = Vec::new();
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
