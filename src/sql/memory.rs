//! How much memory segments take: before anything is read of them, while they are decoded, and with what queries
//! derive from them.
//!
//! ```text
//! held       ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇     by every segment
//! decoding                          ▒▒    3 MiB or more for each that is decoded at the moment: one for each core
//! ```

use datafusion::error::{DataFusionError, Result};

use super::failure::datafusion_error;
use super::options::TadocOptions;
use super::sections::Sections;
use crate::Error;
use crate::corpus::{FileFooter, Segment, SegmentMeta};

/// Peak memory of loading: the decoded segments, and the stored bytes of those in flight and what decoding them takes.
pub(super) fn estimate_bytes(
    footer: &FileFooter,
    parallel: usize,
    sections: Sections,
    options: &TadocOptions,
) -> Result<usize> {
    let segments = || footer.segments.iter();
    let kept = |s: &SegmentMeta| sections.memory_bytes(s) - sections.decoding_bytes(s);
    let decoded = segments().map(kept).fold(0, u64::saturating_add);
    let in_flight = |s: &SegmentMeta| {
        let stored = sections.range(s);
        sections.decoding_bytes(s).saturating_add(stored.end - stored.start)
    };
    let most_in_flight = segments().map(in_flight).max().unwrap_or(0);
    let parallel = parallel.min(footer.segments.len()) as u64;
    let needed = decoded.saturating_add(most_in_flight.saturating_mul(parallel));
    if needed > options.max_memory_bytes {
        return Err(datafusion_error(Error::Capacity {
            what: "opening the corpus",
            requested: needed,
            limit: options.max_memory_bytes,
            knob: "tadoc.max_memory_bytes",
        }));
    }
    usize::try_from(needed).map_err(|_| DataFusionError::ResourcesExhausted("corpus".into()))
}

/// What segments need from their decoding to their use, before they are decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MemoryWhenUsed {
    /// With what queries may derive from them.
    held_bytes: u64,
    /// Of one that is decoded, at most.
    decoding_bytes: u64,
    num_segments: u64,
}

impl MemoryWhenUsed {
    pub(super) fn of(segments: &[SegmentMeta]) -> Self {
        let held_bytes = segments.iter().map(held_when_used).fold(0, u64::saturating_add);
        let decoding_bytes = segments.iter().map(SegmentMeta::decoding_bytes).max().unwrap_or(0);
        Self { held_bytes, decoding_bytes, num_segments: segments.len() as u64 }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            held_bytes: self.held_bytes.saturating_add(other.held_bytes),
            decoding_bytes: self.decoding_bytes.max(other.decoding_bytes),
            num_segments: self.num_segments + other.num_segments,
        }
    }

    /// Bytes where `num_at_once` segments are decoded at once.
    pub(super) fn bytes(self, num_at_once: usize) -> u64 {
        let num_at_once = self.num_segments.min(num_at_once as u64);
        self.held_bytes.saturating_add(num_at_once.saturating_mul(self.decoding_bytes))
    }
}

fn held_when_used(segment: &SegmentMeta) -> u64 {
    let terminals = u64::from(segment.num_words) + u64::from(segment.num_separators);
    let ids = terminals + u64::from(segment.num_rules);
    let decoded = segment.memory_bytes().saturating_sub(segment.decoding_bytes());
    decoded.saturating_add(derived_bytes(segment.num_elements, ids))
}

/// Bytes of what every query may derive from a grammar: its inverse (8 bytes an element, 4 an id), prefix sums (under 6
/// bytes an element), word counts.
fn derived_bytes(num_elements: u64, num_ids: u64) -> u64 {
    num_elements.saturating_mul(14).saturating_add(num_ids.saturating_mul(12))
}

/// Bytes of a segment with everything that queries may derive from it, text runs and words of documents, too.
pub(super) fn memory_with_derived(segment: &Segment) -> usize {
    let dag = &segment.dag;
    let derived = derived_bytes(dag.grammar().symbols.len() as u64, dag.num_elements() as u64);
    let derived = derived as usize + dag.max_text_runs_bytes() + dag.max_doc_words_bytes();
    segment.dictionary.memory_bytes() + dag.memory_bytes() + segment.paths.memory_bytes() + derived
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{Corpus, CorpusBuilder, IngestOptions, OpenLimits};

    #[test]
    fn small_files_need_what_they_hold() {
        let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
        let text: String = (0..200).map(|at| format!("word {} and {at}, ", at % 7)).collect();
        builder.push_document("small.txt", text.as_bytes()).unwrap();
        let (file, _) = builder.finish(None).unwrap();
        let limits = OpenLimits::default();
        let (footer, _) = Corpus::from_bytes("small.tadoc", &file, &limits).unwrap();
        let segment = footer.segments[0].clone();
        let small = MemoryWhenUsed::of(std::slice::from_ref(&segment));
        let decoding = segment.decoding_bytes();
        assert_eq!(decoding, 3 << 20);
        assert_eq!(small.bytes(16), small.held_bytes + decoding);
        assert!(small.held_bytes < 64 << 10, "{small:?}");
        // 5,000 files: 16 cores decode one each, the others wait or are done with it.
        let all = (0..5_000).map(|_| small).fold(MemoryWhenUsed::default(), MemoryWhenUsed::and);
        assert_eq!(all.bytes(16), 5_000 * small.held_bytes + 16 * decoding);
        assert!(all.bytes(16) < 512 << 20, "{all:?}");
        assert_eq!(all, MemoryWhenUsed::of(&vec![segment; 5_000]));
    }
}
