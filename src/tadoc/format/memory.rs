//! Memory that it takes to open a segment, by the facts in the footer.
//!
//! The estimates are peaks. They are refused against [`OpenLimits`](super::OpenLimits) and reserved by callers before
//! any byte of a section is read.

use crate::format::codecs;
use crate::format::framing::SegmentLayout;
use crate::format::layout::{FileFooter, SegmentMeta};
use crate::segment::DocumentLength;

impl SegmentMeta {
    /// Returns the part of [`memory_bytes`](Self::memory_bytes) that is free again after the
    /// segment is decoded: distributions, and parts of the dictionary.
    pub fn decoding_bytes(&self) -> u64 {
        self.words_decoding_bytes().saturating_add(1 << 20)
    }

    /// Returns the same part of [`words_memory_bytes`](Self::words_memory_bytes).
    pub fn words_decoding_bytes(&self) -> u64 {
        codecs::dictionary::decoding_bytes(self.dictionary_bytes).saturating_add(1 << 20)
    }

    /// Returns the number of bytes of memory for its words and their counts.
    pub fn words_memory_bytes(&self) -> u64 {
        let terminals = u64::from(self.num_words) + u64::from(self.num_separators);
        // Offsets, lengths in bytes and words, edges, weights, and the counts during decoding.
        let arrays = terminals.saturating_mul(29).saturating_add(u64::from(self.num_words) * 8);
        arrays.saturating_add(self.dictionary_bytes).saturating_add(self.words_decoding_bytes())
    }

    /// Returns the peak number of bytes of memory while the facts about its documents are read.
    pub fn facts_memory_bytes(&self) -> u64 {
        let lengths_bytes = self.num_docs.saturating_mul(size_of::<DocumentLength>() as u64);
        self.paths_memory_bytes().saturating_add(lengths_bytes)
    }

    /// Returns the peak number of bytes of memory while the segment is opened.
    pub fn memory_bytes(&self) -> u64 {
        let terminals = u64::from(self.num_words) + u64::from(self.num_separators);
        let ids = terminals + u64::from(self.num_rules);
        let (of_element, of_id, of_rule) = match self.layout() {
            // Open rules and the root, closed rules. Peak while the grammar is decoded, which
            // exceeds the 8 bytes of the DAG: growing recency 24, prediction 8, unseen 4. Offsets,
            // and open rules while they grow.
            SegmentLayout::Small => (8, 36, 28),
            // Elements. Groups and ids in their order, then the DAG. Lengths, offsets, rules that
            // are not taken.
            SegmentLayout::Indexed { .. } => (4, 16, 16),
        };
        [
            self.num_elements.saturating_mul(of_element),
            ids.saturating_mul(of_id),
            u64::from(self.num_rules).saturating_mul(of_rule),
            terminals.saturating_mul(4),
            self.dictionary_bytes,
            self.paths_memory_bytes(),
            self.decoding_bytes(),
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// Returns the peak number of bytes for paths: offsets and ends while they grow, and the text.
    /// Lengths of documents are decoded and dropped before and take less: 26 bytes each.
    pub(super) fn paths_memory_bytes(&self) -> u64 {
        self.num_docs.saturating_mul(36).saturating_add(self.paths_bytes.saturating_mul(4))
    }
}

impl FileFooter {
    /// Returns the sum of the peaks of all segments.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.segments.iter().map(SegmentMeta::memory_bytes).fold(0, u64::saturating_add)
    }
}
