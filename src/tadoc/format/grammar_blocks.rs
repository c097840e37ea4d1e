//! Grammar sections of which blocks are read: the units of some documents, without the rest of the text.
//!
//! ```text
//! checksums   crc32c u32 of each 8 KiB of the grammar section; the last of these blocks may be shorter
//!
//! first       checksums ┃ head of the grammar       ─▶ places of its parts, units of the documents
//! then        ids ┃ root of these units ┃ rules ┃ paths of the documents         ─▶ partial segment
//! ```
//!
//! A block is checked when it is read, and the checksums are checked by that of their section. What is not read is zero
//! in the image of the section that is decoded, and units do not touch it.
//!
//! The root is about 0.6 of a section, and a unit takes one or two blocks of it. Rules are read as a whole: in segments
//! with 16 MiB of sources a unit of 64 KiB reaches rules in half of all blocks of 4 KiB, and ten units in nine tenths.
//! To find them would also take one request after another. Ranges with at most four blocks between them are read with
//! one request.
//!
//! A section of less than 64 KiB has no checksums and is read as a whole. The others take 4 bytes for 8 KiB.

use std::iter::once;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::codec_numbers::{self, is_stream};
use crate::format::codecs::grammar_stream::{GrammarStream, SectionPlaces};
use crate::format::cursor::Origin;
use crate::format::framing::{OpenLimits, SectionKind, SectionMeta};
use crate::format::layout::{FileFooter, SegmentMeta, section_for};
use crate::format::reader::{StoredSegment, check_codec, check_range, section_bytes, segment_meta};
use crate::format::stored_parts::{PartialSegment, SomeGrammar, grammar_from_units, segment_from_units};
use crate::text::Dictionary;

/// Length of a block, except the last one of a section.
const BLOCK_BYTES: usize = 8 << 10;
/// Least length of a section that has checksums of its blocks.
const MIN_SECTION_BYTES: usize = 64 << 10;
/// A head has at most about this part of a section, and one block.
const HEAD_PART: u64 = 256;
/// Greatest distance of two ranges that are read with one request.
const MAX_GAP_BYTES: u64 = 4 * BLOCK_BYTES as u64;

/// Returns the checksums of the blocks of a `grammar` section, or `None` if it is read as a whole.
pub(super) fn encode_checksums(grammar: &[u8]) -> Option<Vec<u8>> {
    let checksums = grammar.chunks(BLOCK_BYTES).flat_map(|block| crc32c::crc32c(block).to_le_bytes());
    (grammar.len() >= MIN_SECTION_BYTES).then(|| checksums.collect())
}

/// Reads the `checksums` of the blocks of the section `grammar` of `file` from the bytes of their `section`.
fn read_checksums(file: &str, section: &SectionMeta, checksums: &[u8], grammar: &SectionMeta) -> Result<Vec<u32>> {
    check_codec(file, section, codec_numbers::GRAMMAR_CHECKSUMS)?;
    let num_blocks = grammar.len.div_ceil(BLOCK_BYTES as u64);
    let (checksums, rest) = checksums.as_chunks();
    if checksums.len() as u64 != num_blocks || !rest.is_empty() {
        let got = 4 * checksums.len() + rest.len();
        let reason = format!("expected checksums of {num_blocks} blocks, 4 bytes each, got {got} bytes");
        return Err(section.origin(file).fault(0, reason));
    }
    Ok(checksums.iter().map(|&checksum| u32::from_le_bytes(checksum)).collect())
}

impl StoredSegment<'_> {
    /// Compares the checksums of the blocks of the grammar, if there are any, with its bytes.
    pub(super) fn check_blocks(&self) -> Result<()> {
        let section = self.meta.section(SectionKind::GrammarChecksums).filter(|section| is_known(section));
        let Some(section) = section else { return Ok(()) };
        let (grammar, bytes) = self.section(SectionKind::Grammar)?;
        let checksums = read_checksums(self.file, section, self.bytes_of(section)?, grammar)?;
        let mut blocks = bytes.chunks(BLOCK_BYTES).enumerate();
        blocks.try_for_each(|(block, bytes)| check_block(self.file, grammar, &checksums, block, bytes))
    }
}

/// Returns true for checksums of blocks that this build reads. Others are skipped as sections of an unknown kind are.
fn is_known(section: &SectionMeta) -> bool {
    section.codec == codec_numbers::GRAMMAR_CHECKSUMS
}

fn check_block(file: &str, grammar: &SectionMeta, checksums: &[u32], block: usize, bytes: &[u8]) -> Result<()> {
    let origin = grammar.origin(file);
    let offset = origin.offset.saturating_add((block * BLOCK_BYTES) as u64);
    let place = Origin { offset, ..origin };
    let checksum = checksums.get(block).ok_or_else(|| place.fault(0, "expected a block with a checksum"))?;
    place.verify(bytes, *checksum)
}

impl SegmentMeta {
    /// Returns the range of the file that [`GrammarHead`] needs. Returns `None` if documents are not read without the
    /// rest of the grammar.
    pub fn grammar_head_range(&self) -> Option<Range<u64>> {
        let checksums = self.section(SectionKind::GrammarChecksums).filter(|section| is_known(section))?;
        let grammar = self.section(SectionKind::Grammar).filter(|section| is_stream(section.codec))?;
        let num_blocks = 1 + (grammar.len / HEAD_PART).div_ceil(BLOCK_BYTES as u64);
        let head_len = grammar.len.min(num_blocks * BLOCK_BYTES as u64);
        let are_neighbours = checksums.padded_end() == grammar.offset;
        are_neighbours.then(|| checksums.offset..grammar.offset.saturating_add(head_len))
    }
}

/// Begin of a grammar section, by which the parts are found that some documents need, and the checksums of its blocks.
///
/// ```
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::{FileFooter, FooterOutcome, GrammarHead, OpenLimits, StoredDictionary};
/// use tadoc::Corpus;
///
/// # fn main() -> tadoc::Result<()> {
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// let mixed = |at: u32| at.wrapping_mul(0x9E37_79B1);
/// let word = |at: u32| (mixed(at) ^ mixed(at) >> 15).wrapping_mul(0x85EB_CA6B) >> 20;
/// let text = |doc: u32| (0..5_000).map(|at| format!("word{} ", word(doc * 5_000 + at))).collect::<String>();
/// for doc in 0..40 {
///     builder.push_document(&format!("{doc}.txt"), text(doc).as_bytes())?;
/// }
/// let (file, _report) = builder.finish(None)?;
///
/// let limits = OpenLimits::default();
/// let outcome = FileFooter::parse("a.tadoc", &file, file.len() as u64, &limits)?;
/// let FooterOutcome::Footer(footer) = outcome else { panic!("the whole file was passed") };
/// let meta = &footer.segments[0];
/// let part = |range: std::ops::Range<u64>| &file[range.start as usize..range.end as usize];
/// let words = StoredDictionary::new("a.tadoc", &footer, 0, part(meta.dictionary_range()).to_vec().into())?;
///
/// let range = meta.grammar_head_range().expect("the grammar is large");
/// let head = GrammarHead::new("a.tadoc", &footer, 0, part(range))?;
/// let units = head.units(&[7], &limits)?.expect("one document is a small part");
/// let parts: Vec<&[u8]> = units.ranges().iter().cloned().map(part).collect();
/// assert!(4 * parts.concat().len() < file.len());
/// let tokens = |ids: Option<&[u32]>| ids.map_or_else(|| words.decode(&limits), |ids| words.subset(ids, &limits));
/// let read = units.read(&parts, tokens, &limits)?;
/// let corpus = Corpus::new(footer.profile, vec![read.segment.into()]);
/// assert_eq!(corpus.document_text(7)?, text(7));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct GrammarHead {
    file: String,
    meta: SegmentMeta,
    checksums: Vec<u32>,
    /// Whole blocks from the begin of the section on, which were checked.
    bytes: Vec<u8>,
}

impl GrammarHead {
    /// Takes the head of the grammar of segment `segment_idx` of `file`. `bytes` must be exactly its
    /// [`grammar_head_range`](SegmentMeta::grammar_head_range). `file` is a name for error messages.
    ///
    /// # Errors
    /// Same as [`read_segment`](crate::format::read_segment), and [`Error::InvalidArgument`] for a segment
    /// without such a range.
    pub fn new(file: &str, footer: &FileFooter, segment_idx: usize, bytes: &[u8]) -> Result<Self> {
        let meta = segment_meta(footer, segment_idx)?;
        let range = meta.grammar_head_range().ok_or_else(|| {
            let got = format!("{segment_idx}, without");
            let allowed = "a segment with checksums of the blocks of its grammar".into();
            Error::InvalidArgument { name: "segment_idx", got, allowed }
        })?;
        check_range(range.clone(), bytes)?;
        let section = section_for(file, meta, SectionKind::GrammarChecksums)?;
        let grammar = section_for(file, meta, SectionKind::Grammar)?;
        let checksums = section_bytes(file, section, bytes, range.start)?;
        let checksums = read_checksums(file, section, checksums, grammar)?;
        let bytes = &bytes[(grammar.offset - range.start) as usize..];
        for (block, bytes) in bytes.chunks(BLOCK_BYTES).enumerate() {
            check_block(file, grammar, &checksums, block, bytes)?;
        }
        Ok(Self { file: file.to_owned(), meta: meta.clone(), checksums, bytes: bytes.to_vec() })
    }

    /// Returns the units of the documents `docs`, which ascend and count from the first document of the segment.
    /// Returns `None` if reading them alone saves little, or if the head is not one that this build understands. Then
    /// the segment has to be read.
    ///
    /// # Errors
    /// [`Error::Capacity`] if `limits` are exceeded.
    pub fn units(self, docs: &[u32], limits: &OpenLimits) -> Result<Option<StoredUnits>> {
        let Self { file, meta, checksums, bytes } = self;
        let grammar = section_for(&file, &meta, SectionKind::Grammar)?.clone();
        limits.check_memory(meta.memory_bytes().max(grammar.len))?;
        // Memory that is not written takes none.
        let mut image = vec![0; grammar.len as usize];
        image[..bytes.len()].copy_from_slice(&bytes);
        let Ok(stream) = GrammarStream::open(grammar.origin(&file), grammar.codec, &image, &meta) else {
            return Ok(None);
        };
        let SectionPlaces { head_len, root_start, rules_start } = stream.places();
        if head_len > bytes.len() {
            return Ok(None);
        }
        let wanted = stream.units_for(docs);
        let num_units = stream.units().len();
        let unit_bytes = wanted.iter().map(|&unit| stream.root_bytes(unit));
        let parts = unit_bytes.chain([bytes.len()..root_start, rules_start..image.len()]);
        let parts = parts.map(|part| to_blocks(part, image.len()));
        let parts = parts.filter(|part| part.end > bytes.len().max(part.start));
        let parts = parts.map(|part| grammar.offset + part.start as u64..grammar.offset + part.end as u64);
        let paths = section_for(&file, &meta, SectionKind::Documents)?;
        let ranges = joined(parts.chain(once(paths.offset..paths.padded_end())).collect());
        let num_bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let rest = meta.rest_range();
        if 4 * num_bytes > 3 * (rest.end - rest.start) {
            return Ok(None);
        }
        Ok(Some(StoredUnits { file, meta, grammar, checksums, image, wanted, num_units, ranges }))
    }
}

/// Returns the blocks of a section of `len` bytes that have the bytes of `part`.
fn to_blocks(part: Range<usize>, len: usize) -> Range<usize> {
    let end = part.end.next_multiple_of(BLOCK_BYTES).min(len);
    part.start / BLOCK_BYTES * BLOCK_BYTES..end
}

/// Joins ranges that overlap or lie near each other. Returns them ascending.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(MAX_GAP_BYTES) => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Units of some documents, before their bytes are read. [`GrammarHead`] has an example.
#[derive(Debug)]
pub struct StoredUnits {
    file: String,
    meta: SegmentMeta,
    grammar: SectionMeta,
    checksums: Vec<u32>,
    /// The grammar section, of which the head is there.
    image: Vec<u8>,
    /// Numbers of the units.
    wanted: Vec<usize>,
    /// Number of units of the segment.
    num_units: usize,
    ranges: Vec<Range<u64>>,
}

impl StoredUnits {
    /// Returns the ranges of the file that they need, ascending.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Decodes the units. `parts` are the bytes of the [`ranges`](Self::ranges). `tokens` returns the dictionary of
    /// some tokens of the segment, which ascend, or of all. Documents outside the units lack text.
    ///
    /// # Errors
    /// Same as [`read_segment`](crate::format::read_segment), and [`Error::InvalidArgument`] for other bytes
    /// than those of the ranges.
    pub fn read(
        mut self,
        parts: &[impl AsRef<[u8]>],
        tokens: impl FnOnce(Option<&[u32]>) -> Result<Dictionary>,
        limits: &OpenLimits,
    ) -> Result<PartialSegment> {
        let paths = self.take_parts(parts)?;
        let Self { file, meta, grammar, image, wanted, num_units, .. } = self;
        let stream = GrammarStream::open(grammar.origin(&file), grammar.codec, &image, &meta)?;
        let num_decoded = wanted.len();
        let tokens = |ids: &[u32]| tokens(Some(ids));
        let segment = segment_from_units(&file, &meta, &stream, wanted, paths, tokens, limits)?;
        Ok(PartialSegment { segment, num_decoded, num_units })
    }

    /// Variant of [`read`](Self::read) that decodes the grammar alone, to count words.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_grammar(mut self, parts: &[impl AsRef<[u8]>], limits: &OpenLimits) -> Result<SomeGrammar> {
        self.take_parts(parts)?;
        let place = self.grammar.origin(&self.file);
        let stream = GrammarStream::open(place, self.grammar.codec, &self.image, &self.meta)?;
        grammar_from_units(&stream, self.wanted, limits)
    }

    /// Takes the bytes of the ranges. Returns those of the section of the paths.
    fn take_parts<'p>(&mut self, parts: &'p [impl AsRef<[u8]>]) -> Result<&'p [u8]> {
        if parts.len() != self.ranges.len() {
            let got = parts.len().to_string();
            let allowed = format!("{}, one for each range", self.ranges.len());
            return Err(Error::InvalidArgument { name: "parts", got, allowed });
        }
        let ranges = std::mem::take(&mut self.ranges);
        let section = section_for(&self.file, &self.meta, SectionKind::Documents)?.clone();
        let mut paths: &[u8] = &[];
        for (range, part) in ranges.into_iter().zip(parts) {
            let part = part.as_ref();
            check_range(range.clone(), part)?;
            self.take_blocks(range.start, part)?;
            if range.start <= section.offset && section.padded_end() <= range.end {
                paths = section_bytes(&self.file, &section, part, range.start)?;
            }
        }
        Ok(paths)
    }

    /// Checks the whole blocks among the bytes of the file from `start` on, and keeps them.
    fn take_blocks(&mut self, start: u64, bytes: &[u8]) -> Result<()> {
        let before = self.grammar.offset.saturating_sub(start) as usize;
        let first_block = (start.saturating_sub(self.grammar.offset) as usize).div_ceil(BLOCK_BYTES);
        let mut rest = bytes.get(before..).unwrap_or_default();
        for (block, to) in self.image.chunks_mut(BLOCK_BYTES).enumerate().skip(first_block) {
            let Some((bytes, behind)) = rest.split_at_checked(to.len()) else { break };
            check_block(&self.file, &self.grammar, &self.checksums, block, bytes)?;
            to.copy_from_slice(bytes);
            rest = behind;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Corpus;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::{FooterOutcome, SegmentLayout, StoredDictionary, read_grammar, read_segment, verify_segment};
    use crate::grammar::expand_tokens;

    use super::*;

    /// A file of one segment with many units.
    struct Sample {
        texts: Vec<String>,
        footer: FileFooter,
        file: Vec<u8>,
    }

    impl Sample {
        fn new(seed: u32, num_docs: u32, num_words: u32) -> Self {
            let mixed = |at: u32| (at ^ seed).wrapping_mul(0x9E37_79B1);
            let word =
                |at: u32| (mixed(at) ^ mixed(at) >> 15).wrapping_mul(0x85EB_CA6B) >> [19, 22, 27][at as usize % 3];
            let text = |doc: u32| (0..num_words).map(|at| format!("w{} ", word(doc * num_words + at))).collect();
            let texts: Vec<String> = (0..num_docs).map(text).collect();
            let options = IngestOptions { layout: SegmentLayout::INDEXED, ..IngestOptions::default() };
            let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
            texts.iter().for_each(|text| builder.push_document("a", text.as_bytes()).unwrap());
            let (file, _) = builder.finish(None).unwrap();
            let outcome = FileFooter::parse("a", &file, file.len() as u64, &OpenLimits::default()).unwrap();
            let FooterOutcome::Footer(footer) = outcome else { panic!("the whole file was passed") };
            Self { texts, footer, file }
        }

        fn meta(&self) -> &SegmentMeta {
            &self.footer.segments[0]
        }

        fn part(&self, range: Range<u64>) -> &[u8] {
            &self.file[range.start as usize..range.end as usize]
        }

        fn section(&mut self, kind: SectionKind) -> &mut SectionMeta {
            self.footer.segments[0].sections.iter_mut().find(|section| section.kind == kind).unwrap()
        }

        /// Gives the section of `kind` the checksum of its bytes.
        fn seal(&mut self, kind: SectionKind) {
            let section = self.section(kind).clone();
            let crc32c = crc32c::crc32c(self.part(section.offset..section.offset + section.len));
            self.section(kind).crc32c = crc32c;
        }

        fn units(&self, docs: &[u32]) -> Result<Option<StoredUnits>> {
            let head = self.part(self.meta().grammar_head_range().unwrap());
            GrammarHead::new("a", &self.footer, 0, head)?.units(docs, &OpenLimits::default())
        }

        fn parts(&self, units: &StoredUnits) -> Vec<&[u8]> {
            units.ranges().iter().map(|range| self.part(range.clone())).collect()
        }

        /// Returns the texts of `docs` from their units.
        fn texts_from(&self, units: StoredUnits, docs: &[u32]) -> Result<Vec<String>> {
            let limits = OpenLimits::default();
            let words = self.part(self.meta().dictionary_range()).to_vec();
            let words = StoredDictionary::new("a", &self.footer, 0, words.into())?;
            let tokens = |ids: Option<&[u32]>| words.subset(ids.unwrap(), &limits);
            let parts = self.parts(&units);
            let read = units.read(&parts, tokens, &limits)?;
            assert!(read.num_decoded < read.num_units);
            let corpus = Corpus::new(self.footer.profile, vec![read.segment.into()]);
            docs.iter().map(|&doc| corpus.document_text(doc.into())).collect()
        }

        /// Returns the ids in the segment of the tokens of `docs`, from the grammar of their units.
        fn tokens_from(&self, units: StoredUnits, docs: &[u32]) -> Vec<Vec<u32>> {
            let parts = self.parts(&units);
            let SomeGrammar { grammar, terminals, .. } = units.read_grammar(&parts, &OpenLimits::default()).unwrap();
            let tokens = expand_tokens(&grammar);
            let in_segment = |&token: &u32| terminals.as_ref().map_or(token, |ids| ids[token as usize]);
            docs.iter().map(|&doc| tokens[doc as usize].iter().map(in_segment).collect()).collect()
        }

        fn tokens(&self, docs: &[u32]) -> Vec<Vec<u32>> {
            let bytes = self.part(self.meta().grammar_range());
            let limits = OpenLimits::default();
            let whole = read_grammar("a", &self.footer, 0, bytes, None, &limits).unwrap();
            let some = read_grammar("a", &self.footer, 0, bytes, Some(docs), &limits).unwrap();
            assert_eq!((whole.num_decoded, whole.terminals), (0, None));
            assert!(some.num_decoded < some.num_units);
            let tokens = expand_tokens(&whole.grammar);
            docs.iter().map(|&doc| tokens[doc as usize].clone()).collect()
        }

        fn expected(&self, docs: &[u32]) -> Vec<String> {
            docs.iter().map(|&doc| self.texts[doc as usize].clone()).collect()
        }

        fn verify(&self) -> Result<()> {
            let whole = self.part(self.meta().whole_range());
            verify_segment("a", &self.footer, 0, whole, &OpenLimits::default()).map(drop)
        }
    }

    #[test]
    fn a_document_is_read_with_a_part_of_the_grammar() {
        let sample = Sample::new(1, 60, 4_000);
        sample.verify().unwrap();
        let units = sample.units(&[40]).unwrap().unwrap();
        let num_bytes: usize = sample.parts(&units).iter().map(|part| part.len()).sum();
        let rest = sample.meta().rest_range();
        assert!(num_bytes < (rest.end - rest.start) as usize / 2, "{num_bytes} of {rest:?}");
        assert_eq!(sample.texts_from(units, &[40]).unwrap(), sample.expected(&[40]));
        // All documents are read as a segment is.
        let all: Vec<u32> = (0..60).collect();
        assert!(sample.units(&all).unwrap().is_none());
    }

    #[test]
    fn a_small_grammar_is_read_as_a_whole() {
        assert!(Sample::new(1, 3, 50).meta().grammar_head_range().is_none());
        assert!(encode_checksums(&[0; MIN_SECTION_BYTES - 1]).is_none());
        assert_eq!(encode_checksums(&[0; MIN_SECTION_BYTES + 1]).map(|checksums| checksums.len()), Some(36));
    }

    #[test]
    fn other_bytes_than_asked_for_are_refused() {
        let sample = Sample::new(2, 60, 4_000);
        let tokens = |_: Option<&[u32]>| panic!("nothing is decoded");
        let units = || sample.units(&[3, 40]).unwrap().unwrap();
        let parts = sample.parts(&units());
        assert!(parts.len() > 1);
        let read = |parts: &[&[u8]]| units().read(parts, tokens, &OpenLimits::default());
        assert!(matches!(read(&parts[1..]), Err(Error::InvalidArgument { .. })));
        let swapped: Vec<&[u8]> = parts.iter().rev().copied().collect();
        assert!(matches!(read(&swapped), Err(Error::InvalidArgument { .. })));
        let head = sample.part(sample.meta().grammar_head_range().unwrap());
        assert!(GrammarHead::new("a", &sample.footer, 0, &head[1..]).is_err());
        assert!(GrammarHead::new("a", &sample.footer, 1, head).is_err());
        let limits = OpenLimits { max_memory_bytes: 1000, ..OpenLimits::default() };
        let head = GrammarHead::new("a", &sample.footer, 0, head).unwrap();
        assert!(matches!(head.units(&[3], &limits), Err(Error::Capacity { .. })));
    }

    #[test]
    fn checksums_of_a_later_codec_are_skipped() {
        let mut sample = Sample::new(3, 60, 4_000);
        sample.section(SectionKind::GrammarChecksums).codec = 9;
        assert!(sample.meta().grammar_head_range().is_none());
        sample.verify().unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn documents_are_those_of_the_whole_segment(
            seed: u32, num_words in 1_000u32..5_000, wanted in proptest::collection::btree_set(0u32..60, 0..5),
        ) {
            let sample = Sample::new(seed, 60, num_words);
            let docs: Vec<u32> = wanted.into_iter().collect();
            if sample.meta().grammar_head_range().is_some()
                && let Some(units) = sample.units(&docs).unwrap()
            {
                prop_assert_eq!(sample.texts_from(units, &docs).unwrap(), sample.expected(&docs));
                let units = sample.units(&docs).unwrap().unwrap();
                prop_assert_eq!(sample.tokens_from(units, &docs), sample.tokens(&docs));
            }
        }
    }

    #[test]
    fn changed_bytes_are_faults_where_they_are_read() {
        let mut sample = Sample::new(5, 60, 4_000);
        let docs = [11, 30];
        let expected = sample.expected(&docs);
        let ranges = sample.units(&docs).unwrap().unwrap().ranges;
        let head_range = sample.meta().grammar_head_range().unwrap();
        let (start, end) = (head_range.start, sample.meta().grammar_range().end);
        let mut num_unread = 0;
        for step in 0..160 {
            let at = start + (end - start) * step / 160 + step % 7;
            sample.file[at as usize] ^= 1 << (step % 8);
            let is_read = head_range.contains(&at) || ranges.iter().any(|range| range.contains(&at));
            let found = sample.units(&docs);
            match found.and_then(|units| sample.texts_from(units.unwrap(), &docs)) {
                Ok(texts) => {
                    assert!(!is_read && texts == expected, "{at}");
                    num_unread += 1;
                }
                Err(Error::Checksum { .. } | Error::Format { .. }) => assert!(is_read, "{at}"),
                Err(error) => panic!("{error}"),
            }
            assert!(sample.verify().is_err(), "{at}");
            sample.file[at as usize] ^= 1 << (step % 8);
        }
        assert!(num_unread > 20, "{num_unread}");
    }

    #[test]
    fn changed_bytes_with_right_checksums_are_no_panic() {
        let original = Sample::new(6, 60, 4_000);
        let docs = [11, 30];
        let grammar = original.meta().grammar_range();
        let checksums = original.meta().section(SectionKind::GrammarChecksums).unwrap().offset;
        for step in 0u64..60 {
            // The head, then all of the section.
            let len = if step < 30 { 60 } else { grammar.end - grammar.start };
            let at = (grammar.start + len * (step % 30) / 30) as usize;
            let mut sample = Sample { texts: Vec::new(), footer: original.footer.clone(), file: original.file.clone() };
            sample.file[at] ^= 1 << (step % 8);
            let block = (at - grammar.start as usize) / BLOCK_BYTES;
            let from = grammar.start + (block * BLOCK_BYTES) as u64;
            let bytes = sample.part(from..grammar.end.min(from + BLOCK_BYTES as u64));
            let checksum = crc32c::crc32c(bytes).to_le_bytes();
            sample.file[checksums as usize + 4 * block..][..4].copy_from_slice(&checksum);
            sample.seal(SectionKind::GrammarChecksums);
            sample.seal(SectionKind::Grammar);
            let from_units = match sample.units(&docs) {
                Ok(Some(units)) => sample.texts_from(units, &docs),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            // What passes verification has the texts of the whole segment.
            if sample.verify().is_ok() {
                let bytes = sample.part(sample.meta().byte_range());
                let whole = read_segment("a", &sample.footer, 0, bytes, &OpenLimits::default()).unwrap();
                let whole = Corpus::new(sample.footer.profile, vec![whole.into()]);
                let texts: Vec<String> = docs.iter().map(|&doc| whole.document_text(doc.into()).unwrap()).collect();
                assert_eq!(from_units.unwrap(), texts);
            }
        }
    }

    #[test]
    fn wrong_checksums_of_blocks_are_found_by_verification() {
        let mut sample = Sample::new(7, 60, 4_000);
        let section = sample.section(SectionKind::GrammarChecksums).clone();
        sample.file[section.offset as usize + 8] ^= 1;
        assert!(matches!(sample.units(&[3]), Err(Error::Checksum { .. })));
        sample.seal(SectionKind::GrammarChecksums);
        assert!(matches!(sample.verify(), Err(Error::Checksum { .. })));
        sample.section(SectionKind::GrammarChecksums).len -= 4;
        sample.seal(SectionKind::GrammarChecksums);
        assert!(matches!(sample.units(&[3]), Err(Error::Format { .. })));
        assert!(matches!(sample.verify(), Err(Error::Format { .. })));
    }
}
