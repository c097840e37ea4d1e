//! Sections of a `.tadoc` file: their kinds, and the entry of a section in the footer.

use crate::format::cursor::Origin;

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
            Self::Unknown(kind) => kind,
        }
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
