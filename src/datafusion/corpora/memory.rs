//! Memory of segments: before they are read, while they are decoded, and with the data that queries derive from them.
//!
//! ```text
//! held       ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇     by all segments
//! decoding                          ▒▒    3 MiB or more for each segment that is decoded
//! ```
//!
//! Each core decodes a segment where memory has room for that. Plans count on two at once.

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};

use crate::corpora::open_file::Sections;
use crate::errors::datafusion_error;
use crate::options::TadocOptions;
use crate::throughput::num_cores;
use tadoc::Error;
use tadoc::format::{FileFooter, SegmentMeta};
use tadoc::segment::{DocumentLength, Segment};

/// Number of segments that are decoded in parallel with little memory, if there are as many cores.
const LEAST_AT_ONCE: usize = 2;
/// Name of the memory of the segments of a file.
pub(crate) const CORPUS: &str = "TadocCorpus";
/// Name of the memory of a version of a living corpus.
pub(crate) const VERSION: &str = "TadocVersion";
/// Name of the memory of words, and of what is derived of them.
pub(crate) const VOCABULARY: &str = "TadocVocabulary";
/// Name of the memory of the edits of a version.
pub(crate) const EDITS: &str = "TadocEdits";

/// Returns true if the memory of the consumer of this name is that of open corpora, which later
/// statements use too.
///
/// ```
/// use datafusion_tadoc::is_memory_of_corpora;
///
/// assert!(is_memory_of_corpora("TadocCorpus[notes.tadoc]"));
/// assert!(!is_memory_of_corpora("SortExec[0]"));
/// ```
pub fn is_memory_of_corpora(consumer: &str) -> bool {
    let kind = consumer.split('[').next().unwrap_or_default();
    [CORPUS, VERSION, VOCABULARY, EDITS].contains(&kind)
}

/// Returns the peak memory of loading a file.
///
/// # Errors
/// [`Error::Capacity`] if it exceeds `tadoc.max_memory_bytes`.
pub(crate) fn estimate_bytes(
    footer: &FileFooter,
    parallel: usize,
    sections: Sections,
    options: &TadocOptions,
) -> Result<usize> {
    let needed = peak_bytes(footer.segments.iter(), parallel, sections);
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

/// Returns the peak memory of loading `segments`: decoded, plus the stored bytes and decoding
/// memory of the segments in flight.
pub(super) fn peak_bytes<'a>(
    segments: impl ExactSizeIterator<Item = &'a SegmentMeta> + Clone,
    parallel: usize,
    sections: Sections,
) -> u64 {
    let parallel = parallel.min(segments.len()) as u64;
    let kept = |s: &SegmentMeta| sections.memory_bytes(s) - sections.decoding_bytes(s);
    let decoded = segments.clone().map(kept).fold(0, u64::saturating_add);
    let most_in_flight = segments.map(|segment| in_flight_bytes(segment, sections)).max().unwrap_or(0);
    decoded.saturating_add(most_in_flight.saturating_mul(parallel))
}

/// Returns the peak memory while `read_at_once` of `segments` are read and `decoded_at_once` decoded at a time, and
/// none is kept.
pub(super) fn counting_bytes(segments: &[&SegmentMeta], decoded_at_once: usize, read_at_once: usize) -> u64 {
    let most = |bytes: fn(&SegmentMeta) -> u64| segments.iter().map(|segment| bytes(segment)).max().unwrap_or(0);
    let decoded_bytes = most(|segment| Sections::All.memory_bytes(segment));
    let stored_bytes = most(stored_bytes);
    let decoded_bytes = decoded_bytes.saturating_mul(decoded_at_once as u64);
    decoded_bytes.saturating_add(stored_bytes.saturating_mul(read_at_once as u64))
}

fn stored_bytes(segment: &SegmentMeta) -> u64 {
    let stored = Sections::All.range(segment);
    stored.end - stored.start
}

/// Returns the bytes that a segment needs only while it is decoded, with those that are stored.
fn in_flight_bytes(segment: &SegmentMeta, sections: Sections) -> u64 {
    let stored = sections.range(segment);
    sections.decoding_bytes(segment).saturating_add(stored.end - stored.start)
}

/// Data of segments that a scan uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Uses {
    /// Words and their counts.
    Words,
    /// Paths and lengths of documents.
    Facts,
    /// The grammar, read from the root.
    Text,
    /// Positions of words too, which need the inverse grammar.
    #[default]
    Positions,
}

/// Memory that segments need for decoding and use. Known before they are decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MemoryWhenUsed {
    /// Bytes of the segments, including the data that queries may derive from them.
    held_bytes: u64,
    /// Maximum bytes for decoding one segment, with those that are stored.
    decoding_bytes: u64,
    num_segments: u64,
}

impl MemoryWhenUsed {
    pub(crate) fn for_segments(segments: &[SegmentMeta], uses: Uses) -> Self {
        let held = segments.iter().map(|segment| held_when_used(segment, uses));
        let held_bytes = held.fold(0, u64::saturating_add);
        let decoding = segments.iter().map(|segment| match uses {
            Uses::Words => in_flight_bytes(segment, Sections::Words),
            Uses::Facts => 0,
            Uses::Text | Uses::Positions => in_flight_bytes(segment, Sections::All),
        });
        let decoding_bytes = decoding.max().unwrap_or(0);
        Self { held_bytes, decoding_bytes, num_segments: segments.len() as u64 }
    }

    /// Returns the number of segments.
    pub(crate) fn num_segments(self) -> u64 {
        self.num_segments
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            held_bytes: self.held_bytes.saturating_add(other.held_bytes),
            decoding_bytes: self.decoding_bytes.max(other.decoding_bytes),
            num_segments: self.num_segments + other.num_segments,
        }
    }

    /// Returns the bytes that suffice for each of `num_parts` parts, if they are alike.
    pub(crate) fn bytes_of_part(self, num_parts: u64) -> u64 {
        let held_bytes = self.held_bytes.div_ceil(num_parts.max(1));
        Self { held_bytes, ..self }.bytes()
    }

    /// Returns the bytes that suffice.
    pub(crate) fn bytes(self) -> u64 {
        let at_once = self.num_segments.min(least_at_once() as u64);
        self.held_bytes.saturating_add(at_once.saturating_mul(self.decoding_bytes))
    }

    /// Returns the number of segments that are decoded in parallel if they may take `limit_bytes`.
    pub(super) fn at_once(self, limit_bytes: u64) -> usize {
        let room_bytes = limit_bytes.saturating_sub(self.held_bytes);
        let at_once = room_bytes.checked_div(self.decoding_bytes).unwrap_or(u64::MAX);
        at_once.clamp(least_at_once() as u64, num_cores() as u64) as usize
    }
}

/// Returns the number of segments that are decoded in parallel with little memory.
fn least_at_once() -> usize {
    num_cores().min(LEAST_AT_ONCE)
}

fn held_when_used(segment: &SegmentMeta, uses: Uses) -> u64 {
    let terminals = u64::from(segment.num_words) + u64::from(segment.num_separators);
    let ids = terminals + u64::from(segment.num_rules);
    let elements = segment.num_elements;
    let decoded = || segment.memory_bytes().saturating_sub(segment.decoding_bytes());
    match uses {
        Uses::Words => {
            let decoding_bytes = segment.words_decoding_bytes();
            segment.words_memory_bytes().saturating_sub(decoding_bytes)
        }
        Uses::Facts => segment.facts_memory_bytes(),
        Uses::Text => decoded().saturating_add(sums_bytes(elements, ids, segment.num_docs)),
        Uses::Positions => {
            let sums = sums_bytes(elements, ids, segment.num_docs);
            decoded().saturating_add(sums).saturating_add(inverse_bytes(elements, ids))
        }
    }
}

/// Returns the bytes of the data that every query may derive from a grammar: prefix sums (under 6
/// bytes for each element), weights, and lengths of documents.
fn sums_bytes(num_elements: u64, num_ids: u64, num_docs: u64) -> u64 {
    let lengths = num_docs.saturating_mul(size_of::<DocumentLength>() as u64);
    num_elements.saturating_mul(6).saturating_add(num_ids.saturating_mul(8)).saturating_add(lengths)
}

/// Returns the bytes of the inverse grammar.
fn inverse_bytes(num_elements: u64, num_ids: u64) -> u64 {
    num_elements.saturating_mul(8).saturating_add(num_ids.saturating_mul(4))
}

/// Returns the bytes of `segments`, including all data that queries may derive from them.
pub(crate) fn all_memory(segments: &[Arc<Segment>]) -> usize {
    text_memory(segments) + positions_memory(segments)
}

/// Returns the bytes of `segments` without [`positions_memory`]. Text runs, texts of elements and
/// words of documents are included, unless a segment [keeps none](tadoc::segment::Segment::keep_no_copies).
pub(crate) fn text_memory(segments: &[Arc<Segment>]) -> usize {
    let segment_bytes = |segment: &Arc<Segment>| {
        let dag = &segment.dag;
        let decoded = segment.dictionary.memory_bytes() + dag.memory_bytes() + segment.kept_bytes();
        let grammar = dag.grammar();
        let num_ids = dag.num_elements() as u64;
        let sums = sums_bytes(grammar.symbols.len() as u64, num_ids, grammar.num_docs() as u64);
        let texts = segment.max_text_runs_bytes() + segment.max_element_texts_bytes();
        let copies = texts + segment.max_doc_words_bytes();
        decoded + segment.paths.memory_bytes() + sums as usize + copies
    };
    segments.iter().map(segment_bytes).sum()
}

/// Returns the bytes of the data that queries derive from `segments` to find positions of words.
pub(crate) fn positions_memory(segments: &[Arc<Segment>]) -> usize {
    let segment_bytes = |segment: &Arc<Segment>| {
        let dag = &segment.dag;
        inverse_bytes(dag.grammar().symbols.len() as u64, dag.num_elements() as u64) as usize
    };
    segments.iter().map(segment_bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tadoc::build::{CorpusBuilder, IngestOptions};
    use tadoc::format::OpenLimits;
    use tadoc::segment::Corpus;

    #[test]
    fn small_files_need_what_they_hold() {
        let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
        let text: String = (0..200).map(|at| format!("word {} and {at}, ", at % 7)).collect();
        builder.push_document("small.txt", text.as_bytes()).unwrap();
        let (file, _) = builder.finish(None).unwrap();
        let limits = OpenLimits::default();
        let (footer, _) = Corpus::from_bytes("small.tadoc", &file, &limits).unwrap();
        let segment = footer.segments[0].clone();
        let small = MemoryWhenUsed::for_segments(std::slice::from_ref(&segment), Uses::Positions);
        assert_eq!(segment.decoding_bytes(), 3 << 20);
        let decoding = in_flight_bytes(&segment, Sections::All);
        assert_eq!(small.bytes(), small.held_bytes + decoding);
        assert!(small.held_bytes < 64 << 10, "{small:?}");
        // 5,000 files: the other files wait or are decoded.
        let all = (0..5_000).map(|_| small).fold(MemoryWhenUsed::default(), MemoryWhenUsed::and);
        let least = least_at_once() as u64;
        assert_eq!(all.bytes(), 5_000 * small.held_bytes + least * decoding);
        assert!(all.bytes() < 512 << 20, "{all:?}");
        assert_eq!(all.at_once(0), least as usize);
        assert_eq!(all.at_once(all.bytes() + decoding), num_cores().min(least as usize + 1));
        assert_eq!(all.at_once(u64::MAX), num_cores());
        assert_eq!(all, MemoryWhenUsed::for_segments(&vec![segment; 5_000], Uses::Positions));
    }
}
