//! Frame of a file: its header, its postscript and the entries of its sections, the layouts of a
//! segment by their names, and limits on the cost of opening a file.
//!
//! The header has magic and version. The postscript is 40 bytes whose layout never changes. Both are
//! drawn in [`layout`](crate::format::layout).

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

use super::cursor::{Cursor, Origin};

/// First and last bytes of a file. A byte above 0x7f and a line end of two characters reveal a
/// transfer that treated the file as text.
pub(super) const MAGIC: [u8; 8] = *b"\x89TADOC\r\n";
pub(super) const FORMAT_MAJOR: u16 = 1;
pub(super) const FORMAT_MINOR: u16 = 0;
/// Required features that this build knows. None exist yet.
pub(super) const KNOWN_FEATURES: u64 = 0;
pub(super) const HEADER_BYTES: usize = 64;
/// Distance from the end of the file to the version in the postscript.
pub(super) const VERSION_FROM_END: usize = 14;
pub(super) const POSTSCRIPT_BYTES: usize = 40;

/// Refuses a file of a `format` that needs a later version. Known and required are each a major
/// version and bits of features.
pub fn check_version(
    file: &str,
    format: &str,
    (known_major, known_features): (u16, u64),
    (major, features): (u16, u64),
) -> Result<()> {
    let unknown = features & !known_features;
    let (expected, got) = if major != known_major {
        (format!("{format} {known_major}"), format!("{format} {major}"))
    } else if unknown != 0 {
        let bit = unknown.trailing_zeros();
        let expected = match known_features {
            0 => "no required features".to_owned(),
            known => format!("required features below {}", known.ilog2() + 1),
        };
        (expected, format!("required feature {bit}"))
    } else {
        return Ok(());
    };
    Err(Error::Version { file: file.into(), expected, got })
}

/// Returns the first 64 bytes of every file that this build writes.
pub(super) fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&FORMAT_MAJOR.to_le_bytes());
    header[10..12].copy_from_slice(&FORMAT_MINOR.to_le_bytes());
    header[16..24].copy_from_slice(&KNOWN_FEATURES.to_le_bytes());
    header
}

/// Checks the header, the first 64 bytes of a file. `bytes` is the header alone, or the header and
/// more bytes that end with the end of the file. In the second case the postscript must name the
/// same minor version.
///
/// # Errors
/// [`Error::Format`] if the header is wrong.
pub fn check_header(file: &str, bytes: &[u8]) -> Result<()> {
    let place = Origin { file, section: "header", offset: 0 };
    let mut expected = header();
    let minor_offset = if bytes.len() == HEADER_BYTES { 10 } else { bytes.len().saturating_sub(VERSION_FROM_END) };
    if let Some(minor) = bytes.get(minor_offset..minor_offset + 2) {
        expected[10..12].copy_from_slice(minor);
    }
    match bytes.iter().zip(&expected).position(|(got, expected)| got != expected) {
        None if bytes.len() >= HEADER_BYTES => Ok(()),
        at => Err(place.fault(at.unwrap_or(bytes.len()), "expected the header of a .tadoc file")),
    }
}

/// Last bytes of a file, which locate its footer.
pub(super) struct Postscript {
    /// Offset of the footer's first byte.
    pub footer_offset: u64,
    /// Length of the footer in bytes.
    pub footer_len: u32,
    /// Checksum of the footer.
    pub footer_crc32c: u32,
}

impl Postscript {
    /// Parses the last [`POSTSCRIPT_BYTES`] of a `file` of `file_len` bytes.
    ///
    /// # Errors
    /// [`Error::Format`] for bytes that are not a postscript,
    /// [`Error::Version`] for a later format.
    pub fn parse(file: &str, bytes: &[u8], file_len: u64) -> Result<Self> {
        let offset = file_len - POSTSCRIPT_BYTES as u64;
        let place = Origin { file, section: "postscript", offset };
        let mut cursor = Cursor::new(place, bytes);
        let footer_offset = cursor.u64()?;
        let footer_len = cursor.u32()?;
        let footer_crc32c = cursor.u32()?;
        let features = cursor.u64()?;
        let major = cursor.u16()?;
        let _minor = cursor.u16()?;
        let checked_len = POSTSCRIPT_BYTES - cursor.remaining();
        let crc32c = cursor.u32()?;
        if cursor.take(MAGIC.len())? != MAGIC {
            let reason = "expected the magic of a .tadoc file at the end; is it one, and whole?";
            return Err(place.fault(checked_len + 4, reason));
        }
        place.verify(&bytes[..checked_len], crc32c)?;
        check_version(file, "format", (FORMAT_MAJOR, KNOWN_FEATURES), (major, features))?;
        if footer_offset.checked_add(u64::from(footer_len)) != Some(offset) {
            let reason = format!("expected a footer that ends here, got {footer_len} bytes at {footer_offset}");
            return Err(place.fault(0, reason));
        }
        Ok(Self { footer_offset, footer_len, footer_crc32c })
    }

    /// Returns the bytes that [`parse`](Self::parse) reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(POSTSCRIPT_BYTES);
        out.extend(self.footer_offset.to_le_bytes());
        out.extend(self.footer_len.to_le_bytes());
        out.extend(self.footer_crc32c.to_le_bytes());
        out.extend(KNOWN_FEATURES.to_le_bytes());
        out.extend(FORMAT_MAJOR.to_le_bytes());
        out.extend(FORMAT_MINOR.to_le_bytes());
        out.extend(crc32c::crc32c(&out).to_le_bytes());
        out.extend(MAGIC);
        out
    }
}

/// Alignment of sections, so that arrays in them may be used in place.
pub(super) const ALIGNMENT: u64 = 64;

/// Content of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SectionKind {
    /// Words and separators of a segment.
    Dictionary,
    /// Rules of a segment, and the ends of its documents.
    Grammar,
    /// Paths of the documents of a segment.
    Documents,
    /// One row for each document, as an opaque Parquet file.
    Columns,
    /// Number of occurrences of each word of a segment, so that word count needs no grammar. Files
    /// of earlier versions have no such section.
    WordCounts,
    /// Length of each document's part in a segment, in bytes and words, so that both are known
    /// without the grammar. Files of earlier versions have no such section.
    DocumentLengths,
    /// Codes, places and checksums of the word lists of a segment.
    ListDirectory,
    /// Documents of each word of a segment, with the occurrences in each, so that words are found
    /// and counted without the grammar. Segments of the layout `indexed` have them.
    WordLists,
    /// Codes, first tokens, places and checksums of the groups of a dictionary, so that a word is found by
    /// the head and one group. Segments of the layout `indexed` have one unless their dictionary is small.
    DictionaryHead,
    /// Checksums of the blocks of the grammar, so that units are read without the rest. Large grammars of the layout
    /// `indexed` have them. Files of earlier versions have none.
    GrammarChecksums,
    /// List of the sections that were written together. Files of earlier versions have no such
    /// section.
    Ties,
    /// A section of a later version that may be ignored.
    Unknown(u16),
}

impl SectionKind {
    pub(super) fn from_u16(kind: u16) -> Self {
        match kind {
            1 => Self::Dictionary,
            2 => Self::Grammar,
            3 => Self::Documents,
            4 => Self::Columns,
            5 => Self::WordCounts,
            6 => Self::Ties,
            7 => Self::DocumentLengths,
            8 => Self::ListDirectory,
            9 => Self::WordLists,
            10 => Self::DictionaryHead,
            11 => Self::GrammarChecksums,
            other => Self::Unknown(other),
        }
    }

    pub(super) fn as_u16(self) -> u16 {
        match self {
            Self::Dictionary => 1,
            Self::Grammar => 2,
            Self::Documents => 3,
            Self::Columns => 4,
            Self::WordCounts => 5,
            Self::Ties => 6,
            Self::DocumentLengths => 7,
            Self::ListDirectory => 8,
            Self::WordLists => 9,
            Self::DictionaryHead => 10,
            Self::GrammarChecksums => 11,
            Self::Unknown(kind) => kind,
        }
    }

    /// Returns true for the sections of word lists, which are read alone.
    pub(super) fn is_list(self) -> bool {
        matches!(self, Self::ListDirectory | Self::WordLists)
    }

    /// Returns true for the sections of the dictionary, which is read before the rest.
    pub(super) fn is_dictionary(self) -> bool {
        matches!(self, Self::DictionaryHead | Self::Dictionary)
    }

    /// Returns the name for error messages and `corpus_verify`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dictionary => "dictionary",
            Self::Grammar => "grammar",
            Self::Documents => "documents",
            Self::Columns => "columns",
            Self::WordCounts => "word counts",
            Self::Ties => "ties",
            Self::DocumentLengths => "document lengths",
            Self::ListDirectory => "list directory",
            Self::WordLists => "word lists",
            Self::DictionaryHead => "dictionary head",
            Self::GrammarChecksums => "grammar checksums",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Place, codec and checksum of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionMeta {
    /// Content of the section.
    pub kind: SectionKind,
    /// Number of the codec. Each kind has its own numbers.
    pub codec: u16,
    /// Offset of the section's first byte in the file, a multiple of 64.
    pub offset: u64,
    /// Length in bytes, without the zeros behind it.
    pub len: u64,
    /// CRC32C of those bytes.
    pub crc32c: u32,
}

impl SectionMeta {
    /// Returns the offset behind the section and its zeros.
    pub(super) fn padded_end(&self) -> u64 {
        align_up(self.offset.saturating_add(self.len))
    }

    /// Returns the origin of the section's bytes in `file`.
    pub(super) fn origin<'a>(&self, file: &'a str) -> Origin<'a> {
        Origin { file, section: self.kind.name(), offset: self.offset }
    }
}

/// Returns `offset`, rounded up to a place where a section may begin.
pub(super) fn align_up(offset: u64) -> u64 {
    offset.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX)
}

/// Choice of the codecs of a segment.
///
/// | layout | size over that of `zstd -3 --long=27` | a cold statement (`benches/peers/opening.py`) |
/// | --- | --- | --- |
/// | indexed | 0.70 to 1.06 | decodes what its answer needs |
/// | small | 0.53 to 0.86 | decodes the segments that may have an answer |
///
/// Every reader reads both, and one file may have segments of each. It also reads the layout `fast` of earlier
/// builds, whose segments are those of `indexed` without entry points and lists, and pass for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentLayout {
    /// Adaptive codes, which are the smallest.
    Small,
    /// Static codes of which parts of the text are decoded alone, and the documents of each word, which
    /// are read alone.
    Indexed {
        /// Greatest size of the lists of documents, in percent of the rest of a segment, and two
        /// thirds of it where a segment has less than 8 MiB of text. Lists of the words of few
        /// documents become shorter, and then the longest lists are left out.
        max_lists_percent: u16,
    },
}

impl Default for SegmentLayout {
    fn default() -> Self {
        Self::INDEXED
    }
}

impl SegmentLayout {
    /// The layout `indexed` with the usual room for lists. Texts whose documents are files need 2 to
    /// 40 percent for all lists. With 32 percent a file is at most as large as one of zstd.
    pub const INDEXED: Self = Self::Indexed { max_lists_percent: 32 };

    /// Returns the name in options and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Indexed { .. } => "indexed",
        }
    }
}

impl fmt::Display for SegmentLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SegmentLayout {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "small" => Ok(Self::Small),
            "indexed" => Ok(Self::INDEXED),
            _ => {
                let percent = name.strip_prefix("indexed:").and_then(|percent| percent.parse().ok());
                if let Some(max_lists_percent) = percent {
                    return Ok(Self::Indexed { max_lists_percent });
                }
                let allowed = "small, indexed or indexed:PERCENT".into();
                Err(Error::InvalidArgument { name: "layout", got: name.into(), allowed })
            }
        }
    }
}

/// Limits on the cost of opening a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenLimits {
    /// Greatest size of the footer in bytes.
    pub max_footer_bytes: u64,
    /// Greatest memory of the decoded segments while they are opened, in bytes. The limit applies
    /// to one segment in [`read_segment`](super::read_segment), and to all together in
    /// [`Corpus::open`](crate::Corpus::open) and [`Corpus::from_bytes`](crate::Corpus::from_bytes).
    pub max_memory_bytes: u64,
}

impl Default for OpenLimits {
    fn default() -> Self {
        Self { max_footer_bytes: 64 << 20, max_memory_bytes: 8 << 30 }
    }
}

impl OpenLimits {
    /// Refuses to decode segments that need `requested` bytes of memory if this exceeds the limit.
    pub fn check_memory(&self, requested: u64) -> Result<()> {
        if requested <= self.max_memory_bytes {
            return Ok(());
        }
        let what = "opening a corpus (bytes of memory)";
        let knob = "max_memory_bytes";
        Err(Error::Capacity { what, requested, limit: self.max_memory_bytes, knob })
    }
}
