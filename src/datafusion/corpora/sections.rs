//! Sections of a file that are read: whole segments, only words and their counts, or only facts
//! about documents.
//!
//! Words with their counts are a tenth of a file and suffice to count words. Paths and lengths of
//! documents are a hundredth and suffice for rows without texts. Each choice is cached under its own
//! key.

use std::ops::Range;

use crate::corpora::{OpenFile, Source};
use tadoc::format::SegmentMeta;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sections {
    All,
    /// Words and their counts.
    Words,
    /// Paths and lengths of documents.
    Facts,
}

impl Sections {
    /// Returns a key that distinguishes these sections from those of other files, versions and
    /// portions.
    pub(super) fn key(self, file: &OpenFile) -> String {
        match self {
            Self::All => file.key(),
            Self::Words => format!("words of {}", file.key()),
            Self::Facts => format!("facts of {}", file.key()),
        }
    }

    /// Returns the keys of all files of `source`, and of the version with its edits.
    pub(super) fn keys(self, source: &Source) -> Vec<String> {
        let files = source.corpora().iter().map(|open| self.key(open));
        let view = source.living().filter(|_| self == Self::All);
        files.chain(view.map(|view| view.key.clone())).collect()
    }

    /// Returns the contiguous range of bytes in the file that is read for a segment.
    pub(super) fn range(self, segment: &SegmentMeta) -> Range<u64> {
        match self {
            Self::All => segment.byte_range(),
            Self::Words => segment.words_range().unwrap_or_default(),
            Self::Facts => segment.facts_range().unwrap_or_default(),
        }
    }

    /// Returns the memory of a segment while it is opened, in bytes.
    pub(super) fn memory_bytes(self, segment: &SegmentMeta) -> u64 {
        match self {
            Self::All => segment.memory_bytes(),
            Self::Words => segment.words_memory_bytes(),
            Self::Facts => segment.facts_memory_bytes(),
        }
    }

    /// Returns the part of that memory that is free again once the segment is decoded.
    pub(super) fn decoding_bytes(self, segment: &SegmentMeta) -> u64 {
        match self {
            Self::All => segment.decoding_bytes(),
            Self::Words => segment.words_decoding_bytes(),
            Self::Facts => 0,
        }
    }
}
