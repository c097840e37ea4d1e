//! Segments of which some documents are decoded.
//!
//! ```text
//! layout     documents that are asked for
//! indexed    their units of text, with the rules that these reach, and the words in them
//! others     the whole segment
//! ```
//!
//! The time is that of the asked documents and of their neighbours in the units, besides the
//! checksums and the paths of the segment.

use crate::error::Result;
use crate::format::codecs;
use crate::format::codecs::grammar_stream::{GrammarStream, PartialGrammar};
use crate::format::framing::{OpenLimits, SectionKind};
use crate::format::layout::{FileFooter, SegmentMeta};
use crate::format::reader::{StoredSegment, check_words, refuse_steep_rule, section_for};
use crate::grammar::Grammar;
use crate::segment::{Dag, Segment};
use crate::text::Dictionary;

/// Variant of [`read_segment`](crate::format::read_segment) that has the text of the documents
/// `docs`, which ascend and count from the first document of the segment. Other documents may lack
/// text; their ids and paths are those of the whole segment.
///
/// # Errors
/// Same as [`read_segment`](crate::format::read_segment).
///
/// ```
/// use tadoc::Corpus;
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::{FileFooter, FooterOutcome, OpenLimits, SegmentLayout, read_documents};
///
/// # fn main() -> tadoc::Result<()> {
/// let options = IngestOptions { layout: SegmentLayout::INDEXED, ..IngestOptions::default() };
/// let mut builder = CorpusBuilder::new(Vec::new(), options)?;
/// builder.push_document("a.txt", b"to be or not to be")?;
/// builder.push_document("b.txt", b"let it be")?;
/// let (file, _report) = builder.finish(None)?;
///
/// let limits = OpenLimits::default();
/// let outcome = FileFooter::parse("a.tadoc", &file, file.len() as u64, &limits)?;
/// let FooterOutcome::Footer(footer) = outcome else { panic!("the whole file was passed") };
/// let range = footer.segments[0].byte_range();
/// let bytes = &file[range.start as usize..range.end as usize];
/// let segment = read_documents("a.tadoc", &footer, 0, bytes, &[1], &limits)?;
/// let corpus = Corpus::new(footer.profile, vec![segment.into()]);
/// assert_eq!((corpus.document_text(1)?, corpus.path(1)), ("let it be".into(), Some("b.txt")));
/// # Ok(())
/// # }
/// ```
pub fn read_documents(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    docs: &[u32],
    limits: &OpenLimits,
) -> Result<Segment> {
    let stored = StoredSegment::new(file, footer, segment_idx, bytes, SegmentMeta::byte_range)?;
    limits.check_memory(stored.meta.memory_bytes())?;
    stored.check_sections(|kind| !kind.is_list())?;
    match units_of(&stored, docs)? {
        Some((stream, units)) => stored.units(&stream, units, |ids| stored.tokens(ids), limits),
        None => stored.decode(),
    }
}

/// A segment of which some documents are decoded.
#[derive(Debug)]
pub struct PartialSegment {
    /// The segment, in which other documents may lack text.
    pub segment: Segment,
    /// Number of units that were decoded.
    pub num_decoded: usize,
    /// Number of all units.
    pub num_units: usize,
}

/// Variant of [`read_documents`] for a segment whose dictionary was read before. `tokens` returns the dictionary of
/// some of its tokens, which ascend, or of all. `bytes` must be exactly its [`rest_range`](SegmentMeta::rest_range).
///
/// # Errors
/// Same as [`read_segment`](crate::format::read_segment).
pub fn read_documents_with(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    tokens: impl FnOnce(Option<&[u32]>) -> Result<Dictionary>,
    docs: &[u32],
    limits: &OpenLimits,
) -> Result<PartialSegment> {
    let stored = StoredSegment::rest(file, footer, segment_idx, bytes, limits)?;
    let found = units_of(&stored, docs)?;
    let numbers = found.as_ref().map(|(stream, units)| (units.len(), stream.units().len()));
    let (num_decoded, num_units) = numbers.unwrap_or((1, 1));
    let segment = match found {
        Some((stream, units)) if num_decoded < num_units => {
            stored.units(&stream, units, |ids| tokens(Some(ids)), limits)?
        }
        _ => stored.segment(tokens(None)?, stored.grammar()?)?,
    };
    Ok(PartialSegment { segment, num_decoded, num_units })
}

/// Decodes the grammar of segment `segment_idx` of `file` alone. `bytes` must be exactly its
/// [`grammar_range`](SegmentMeta::grammar_range). `file` is a name for error messages. The rest of the
/// segment is not checked.
///
/// # Errors
/// Same as [`read_segment`](crate::format::read_segment).
pub fn read_grammar(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    limits: &OpenLimits,
) -> Result<Grammar> {
    let stored = StoredSegment::new(file, footer, segment_idx, bytes, SegmentMeta::grammar_range)?;
    limits.check_memory(stored.meta.memory_bytes())?;
    stored.grammar()
}

/// Returns the grammar of `stored` and the units of the documents `docs`, or `None` for another layout.
fn units_of<'a>(stored: &StoredSegment<'a>, docs: &[u32]) -> Result<Option<(GrammarStream<'a>, Vec<usize>)>> {
    let (section, bytes) = stored.section(SectionKind::Grammar)?;
    if !codecs::grammar_stream::is_stream(section.codec) {
        return Ok(None);
    }
    let stream = GrammarStream::open(section.origin(stored.file), section.codec, bytes, stored.meta)?;
    let mut units: Vec<usize> = docs.iter().flat_map(|&doc| stream.units().for_doc(doc)).collect();
    units.dedup();
    Ok(Some((stream, units)))
}

impl StoredSegment<'_> {
    /// Returns the dictionary of the tokens `ids`, which ascend.
    fn tokens(&self, ids: &[u32]) -> Result<Dictionary> {
        let bytes = self.dictionary_bytes()?;
        let dictionary = bytes.subset(self.meta, ids)?;
        check_words(bytes.place, self.profile, &dictionary)?;
        Ok(dictionary)
    }

    /// Decodes `units` of `stream` and builds a segment of them. `tokens` returns the dictionary of some tokens.
    fn units(
        &self,
        stream: &GrammarStream<'_>,
        units: Vec<usize>,
        tokens: impl FnOnce(&[u32]) -> Result<Dictionary>,
        limits: &OpenLimits,
    ) -> Result<Segment> {
        let place = section_for(self.file, self.meta, SectionKind::Grammar)?.origin(self.file);
        let PartialGrammar { grammar, terminals } = stream.decode_units(units, limits)?;
        let dictionary = tokens(&terminals)?;
        let (section, paths) = self.section(SectionKind::Documents)?;
        let paths = codecs::documents::decode(section.origin(self.file), section.codec, paths, self.meta)?;
        let (dag, steep_rule) = Dag::from_valid(grammar, dictionary.num_words(), dictionary.lengths())
            .map_err(|e| place.fault(0, e.to_string()))?;
        refuse_steep_rule(place, steep_rule)?;
        Ok(Segment::new(dictionary, dag, paths, self.meta.continues))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::Corpus;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::{FooterOutcome, SegmentLayout, StoredDictionary};

    fn file_in(layout: SegmentLayout, texts: &[String]) -> (FileFooter, Vec<u8>) {
        let options = IngestOptions { layout, ..IngestOptions::default() };
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
        texts.iter().for_each(|text| builder.push_document("a", text.as_bytes()).unwrap());
        let (file, _) = builder.finish(None).unwrap();
        let outcome = FileFooter::parse("a", &file, file.len() as u64, &OpenLimits::default()).unwrap();
        let FooterOutcome::Footer(footer) = outcome else { panic!("the whole file was passed") };
        (footer, file)
    }

    #[test]
    fn words_of_a_large_dictionary_are_read_alone() {
        let text = |doc: u32| {
            (0..3_000).map(|at| format!("a_word_whose_length_is_36_bytes_{:07} ", 3_000 * doc + at)).collect()
        };
        let texts: Vec<String> = (0..40).map(text).collect();
        let (footer, file) = file_in(SegmentLayout::INDEXED, &texts);
        let part = |range: std::ops::Range<u64>| &file[range.start as usize..range.end as usize];
        let (meta, limits) = (&footer.segments[0], OpenLimits::default());
        let words = StoredDictionary::new("a", &footer, 0, part(meta.dictionary_range()).to_vec().into()).unwrap();
        assert_eq!(words.word_id("a_word_whose_length_is_36_bytes_0011999").unwrap(), Some(Some(11_999)));
        assert_eq!(words.word_id("a_word_whose_length_is_36_bytes_0120000").unwrap(), Some(None));
        let all = words.decode(&limits).unwrap();
        assert_eq!((all.num_words(), all.word(70_000.into())), (120_000, "a_word_whose_length_is_36_bytes_0070000"));
        let mut num_read = 0;
        let tokens = |ids: Option<&[u32]>| {
            num_read = ids.unwrap().len();
            words.subset(ids.unwrap(), &limits)
        };
        let rest = part(meta.rest_range());
        let some = read_documents_with("a", &footer, 0, rest, tokens, &[3, 17], &limits).unwrap();
        assert!(some.num_decoded < some.num_units && num_read < 40_000, "{num_read}");
        let corpus = Corpus::new(footer.profile, vec![Arc::new(some.segment)]);
        let whole = read_documents("a", &footer, 0, part(meta.byte_range()), &[3, 17], &limits).unwrap();
        let other = Corpus::new(footer.profile, vec![Arc::new(whole)]);
        for doc in [3, 17] {
            assert_eq!(corpus.document_text(doc).unwrap(), texts[doc as usize]);
            assert_eq!(other.document_text(doc).unwrap(), texts[doc as usize]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn documents_have_their_text(
            seed: u32, num_docs in 1usize..40, wanted in proptest::collection::btree_set(0u32..40, 0..6),
        ) {
            let word = |at: u32| (at ^ seed).wrapping_mul(0x9E37_79B1) >> 19;
            let len = |doc: u32| [0, 9, 3_000, 9_000][(word(doc) % 4) as usize];
            let text = |doc: u32| (0..len(doc)).map(|at| format!("w{} ", word(doc * 7 + at / 3))).collect();
            let texts: Vec<String> = (0..num_docs as u32).map(text).collect();
            let wanted: Vec<u32> = wanted.into_iter().filter(|&doc| (doc as usize) < num_docs).collect();
            for layout in [SegmentLayout::INDEXED, SegmentLayout::Small] {
                let (footer, file) = file_in(layout, &texts);
                let range = footer.segments[0].byte_range();
                let bytes = &file[range.start as usize..range.end as usize];
                let segment = read_documents("a", &footer, 0, bytes, &wanted, &OpenLimits::default()).unwrap();
                let corpus = Corpus::new(footer.profile, vec![Arc::new(segment)]);
                prop_assert_eq!(corpus.num_docs(), num_docs as u64);
                for &doc in &wanted {
                    prop_assert_eq!(&corpus.document_text(doc.into()).unwrap(), &texts[doc as usize]);
                }
            }
        }
    }
}
