//! What is read of files: all of their segments, or the words and how often each occurs.
//!
//! Words are a tenth of a file, which is enough to count them; both are kept under keys of their own.

use std::ops::Range;

use crate::source::{OpenFile, Source};
use tadoc::format::SegmentMeta;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sections {
    All,
    /// Words and how often each occurs.
    Words,
}

impl Sections {
    /// What tells them from those of other files, versions and portions.
    pub(super) fn key(self, file: &OpenFile) -> String {
        match self {
            Self::All => file.key(),
            Self::Words => format!("words of {}", file.key()),
        }
    }

    /// The same of all files of `source`, and of the version that edits make of them.
    pub(super) fn keys(self, source: &Source) -> Vec<String> {
        let files = source.corpora().iter().map(|open| self.key(open));
        let view = source.living().filter(|_| self == Self::All);
        files.chain(view.map(|view| view.key.clone())).collect()
    }

    /// Bytes of the file that are read for a segment, one behind the other.
    pub(super) fn range(self, segment: &SegmentMeta) -> Range<u64> {
        match self {
            Self::All => segment.byte_range(),
            Self::Words => segment.words_range().unwrap_or_default(),
        }
    }

    /// Memory of a segment while it is opened.
    pub(super) fn memory_bytes(self, segment: &SegmentMeta) -> u64 {
        match self {
            Self::All => segment.memory_bytes(),
            Self::Words => segment.words_memory_bytes(),
        }
    }

    /// What of it is free again when the segment is decoded.
    pub(super) fn decoding_bytes(self, segment: &SegmentMeta) -> u64 {
        match self {
            Self::All => segment.decoding_bytes(),
            Self::Words => segment.words_decoding_bytes(),
        }
    }
}
