//! Layout of a `.tadoc` file, and its footer as a value.
//!
//! ```text
//! 0    header      64 bytes: magic, version, required features; zero to the end
//! 64   sections    of segment 0 (list directory, word lists, dictionary head, dictionary, word
//!                  counts, grammar checksums, grammar, documents, document lengths, ties), then of
//!                  segment 1, …, then of the file (columns, ties); zeros follow each, up to a
//!                  multiple of 64
//!      footer      list of the sections and their sizes
//!      postscript  40 bytes, layout never changes
//!
//! header      magic 8 | major u16 | minor u16 | 0 u32 | required features u64 | 0 × 40
//! footer      profile u8 | Unicode version 3 × u8 | writer text | builder text
//!             | num_segments u32 | num_file_sections u32 | segments | sections
//!   text      len u8 | bytes
//!   segment   num_docs u64 | len_bytes u64 | num_tokens u64 | num_word_tokens u64
//!             | dictionary_bytes u64 | paths_bytes u64 | num_words u32 | num_separators u32
//!             | num_rules u32 | num_elements u32 | flags u16 (bit 0: continues)
//!             | num_sections u16                                                    68 bytes
//!   section   offset u64 | len u64 | crc32c u32 | kind u16 | codec u16              24 bytes
//! ties        kind u16 | codec u16 | len u64 | crc32c u32 of each section tied            16 bytes
//! postscript  footer offset u64 | footer len u32 | footer crc32c u32
//!             | required features u64 | major u16 | minor u16
//!             | crc32c of the 28 bytes before u32 | magic 8
//! ```
//!
//! Integers are little-endian. Sections tile the file. The first begins at 64. Each other section
//! begins at the end of the previous one, rounded up to 64. The footer begins at the rounded end of
//! the last section. So every byte is either checksummed or known (header, zeros, magic), and each
//! single flipped bit is found. A file is opened with one read of its tail and one of the rest.
//!
//! *Ties* record the sections that were written together. The ties of a segment name its other sections. The ties of
//! the file name the columns and the ties of each segment. They are compared when the footer is read, only by length
//! and checksum. So a section of another file is detected without reading the sections or the ties. Files of earlier
//! versions have no ties. Their word counts are compared with the grammar and not used.
//!
//! Compatibility: sections of an unknown kind are skipped. A feature that must not be skipped sets
//! a bit of *required features*. A reader refuses unknown bits and names their number. The major
//! version changes only with the layout of header or footer.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::codec_numbers::{self, has_head, has_static_codes};
use crate::format::cursor::{Cursor, Origin};
use crate::format::framing::{
    HEADER_BYTES, OpenLimits, POSTSCRIPT_BYTES, Postscript, SectionKind, SectionMeta, SegmentLayout,
};
use crate::segment::DocIds;
use crate::text::TokenizerProfile;

const SEGMENT_BYTES: u64 = 68;
const SECTION_BYTES: u64 = 24;
const FLAG_CONTINUES: u16 = 1;

/// Facts about a segment that are known without decoding it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(Default))]
pub struct SegmentMeta {
    /// Number of documents, including a continued part.
    pub num_docs: u64,
    /// True if its first document continues the last one of the previous segment.
    pub continues: bool,
    /// Length of the text in bytes.
    pub len_bytes: u64,
    /// Number of tokens of the text (N): words and stored separators, without implied blanks.
    pub num_tokens: u64,
    /// Number of tokens that are words.
    pub num_word_tokens: u64,
    /// Length of all words and separators in bytes.
    pub dictionary_bytes: u64,
    /// Length of all paths in bytes.
    pub paths_bytes: u64,
    /// Number of words in the dictionary.
    pub num_words: u32,
    /// Number of separators in the dictionary.
    pub num_separators: u32,
    /// Number of rules, including the root.
    pub num_rules: u32,
    /// Number of elements on all right-hand sides, including the root's (G).
    pub num_elements: u64,
    /// Sections in file order, never empty.
    pub sections: Vec<SectionMeta>,
}

impl SegmentMeta {
    /// Returns the range of the file that [`read_segment`](crate::format::read_segment) needs: all
    /// but its word lists.
    pub fn byte_range(&self) -> Range<u64> {
        let first = self.sections.iter().find(|section| !section.kind.is_list());
        let start = first.map_or(0, |section| section.offset);
        start..self.sections.last().map_or(start, SectionMeta::padded_end)
    }

    /// Returns the range of the file that [`verify_segment`](crate::format::verify_segment) needs:
    /// all of the segment.
    pub fn whole_range(&self) -> Range<u64> {
        let start = self.sections.first().map_or(0, |section| section.offset);
        start..self.sections.last().map_or(start, SectionMeta::padded_end)
    }

    /// Returns the range of the file that [`StoredLists`](crate::format::StoredLists) needs to be
    /// opened. Returns `None` if the segment has no word lists, no document facts, or other numbers
    /// than these may be in them.
    pub fn lists_range(&self) -> Option<Range<u64>> {
        self.facts_range()?;
        self.section(SectionKind::WordLists)?;
        let directory = self.section(SectionKind::ListDirectory)?;
        Some(directory.offset..directory.padded_end())
    }

    /// Returns the range of the file that [`read_paths`](crate::format::read_paths) needs. It is
    /// empty if there is no such section.
    pub fn paths_range(&self) -> Range<u64> {
        let section = self.section(SectionKind::Documents);
        section.map_or(0..0, |section| section.offset..section.offset.saturating_add(section.len))
    }

    /// Returns the range of the file that [`read_words`](crate::format::read_words) needs. Returns
    /// `None` if the segment has no word counts tied to its grammar, because others must be
    /// compared with it.
    pub fn words_range(&self) -> Option<Range<u64>> {
        let range = self.tied_range(SectionKind::Dictionary, SectionKind::WordCounts)?;
        let dictionary = self.dictionary_range();
        Some(range.start.min(dictionary.start)..range.end.max(dictionary.end))
    }

    /// Returns the range of the file that
    /// [`read_document_facts`](crate::format::read_document_facts) needs. Returns `None` if the
    /// segment has no document lengths tied to its grammar, because others must be compared with
    /// it.
    pub fn facts_range(&self) -> Option<Range<u64>> {
        self.tied_range(SectionKind::Documents, SectionKind::DocumentLengths)
    }

    /// Returns the range of two neighbouring sections, or `None` if one is missing or they are not
    /// tied to the grammar.
    fn tied_range(&self, one: SectionKind, other: SectionKind) -> Option<Range<u64>> {
        self.section(SectionKind::Ties).filter(|ties| ties.codec == codec_numbers::TIES)?;
        let one = self.section(one)?;
        let other = self.section(other)?;
        Some(one.offset.min(other.offset)..one.padded_end().max(other.padded_end()))
    }

    /// Returns the range of the file that [`StoredDictionary`](crate::format::StoredDictionary)
    /// needs. It is empty if there is no such section.
    pub fn dictionary_range(&self) -> Range<u64> {
        let sections = || self.sections.iter().filter(|section| section.kind.is_dictionary());
        let start = sections().map(|s| s.offset).min();
        let end = sections().map(SectionMeta::padded_end).max();
        start.unwrap_or_default()..end.unwrap_or_default()
    }

    /// Returns the range of the file that [`read_grammar`](crate::format::read_grammar) needs. It is empty if there is
    /// no such section.
    pub fn grammar_range(&self) -> Range<u64> {
        let section = self.section(SectionKind::Grammar);
        section.map_or(0..0, |section| section.offset..section.offset.saturating_add(section.len))
    }

    /// Returns the range of the file that [`DictionaryHead`](crate::format::DictionaryHead) needs to be
    /// opened. Returns `None` if the dictionary has no head.
    pub fn head_range(&self) -> Option<Range<u64>> {
        self.section(SectionKind::Dictionary).filter(|section| has_head(section.codec))?;
        let head = self.section(SectionKind::DictionaryHead)?;
        Some(head.offset..head.padded_end())
    }

    /// Returns the range of the file that [`read_segment_with`](crate::format::read_segment_with)
    /// needs: everything behind the dictionary, or everything if the dictionary is not first.
    pub fn rest_range(&self) -> Range<u64> {
        let all = self.byte_range();
        let dictionary = self.dictionary_range();
        let start = if dictionary.start == all.start { dictionary.end } else { all.start };
        start.min(all.end)..all.end
    }

    /// Returns the layout of its grammar. The one before `indexed` passes for it.
    pub fn layout(&self) -> SegmentLayout {
        match self.section(SectionKind::Grammar) {
            Some(section) if has_static_codes(section.codec) => SegmentLayout::INDEXED,
            _ => SegmentLayout::Small,
        }
    }

    /// Returns true if `num_docs` of its documents are so few that the others are not decoded. An eighth
    /// of many documents lies in about a third of the units, which take as long as the whole segment.
    pub fn has_few(&self, num_docs: usize) -> bool {
        let num_docs = num_docs as u64;
        8 * num_docs < self.num_docs.max(16) && 2 * num_docs < self.num_docs.max(2)
    }

    /// Returns the number of words and separators.
    pub(super) fn num_terminals(&self) -> u32 {
        self.num_words + self.num_separators
    }

    /// Returns the bytes of its ties, which describe every other section.
    pub(super) fn ties(&self) -> Vec<u8> {
        ties_for(self.sections.iter().filter(|section| section.kind != SectionKind::Ties))
    }

    /// Returns the section of `kind`, if it exists.
    pub(super) fn section(&self, kind: SectionKind) -> Option<&SectionMeta> {
        self.sections.iter().find(|section| section.kind == kind)
    }
}

/// Returns the section of `kind` of a segment of `file`, which must have one.
pub(super) fn section_for<'a>(file: &str, meta: &'a SegmentMeta, kind: SectionKind) -> Result<&'a SectionMeta> {
    meta.section(kind).ok_or_else(|| {
        let place = Origin { file, section: "footer", offset: 0 };
        place.fault(0, format!("expected a section {}", kind.name()))
    })
}

/// List of the contents of a file, with all facts needed to plan reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFooter {
    /// Profile by which the text was tokenized.
    pub profile: TokenizerProfile,
    /// Unicode version of the character classes that the writer used.
    pub unicode_version: (u8, u8, u8),
    /// Program and version that wrote the file.
    pub writer: String,
    /// Name of the grammar builder. Older files may have an effort behind it, as in `rounds small`.
    pub builder: String,
    /// Segments in document order.
    pub segments: Vec<SegmentMeta>,
    /// User columns, with one row for each document.
    pub columns: Option<SectionMeta>,
    /// Other sections of the file: ties, and sections that this build does not know.
    pub others: Vec<SectionMeta>,
}

/// Result of parsing the tail of a file.
#[derive(Debug, Clone)]
pub enum FooterOutcome {
    /// The footer.
    Footer(FileFooter),
    /// The footer is larger. The caller must pass this many bytes from the end of the file.
    NeedsTail(u64),
}

impl FileFooter {
    /// Number of bytes to read first from the end of a file.
    pub const TAIL_BYTES: u64 = 65_536;

    /// Parses the footer from `tail`, the last bytes of `file`. `file` is a name for error
    /// messages, and `file_len` is the length of the file. It needs O(footer) time.
    ///
    /// # Errors
    /// [`Error::Format`], [`Error::Checksum`], [`Error::Version`] for unknown versions and required
    /// features, [`Error::Capacity`] if the footer is larger than [`OpenLimits::max_footer_bytes`].
    pub fn parse(file: &str, tail: &[u8], file_len: u64, limits: &OpenLimits) -> Result<FooterOutcome> {
        let place = Origin { file, section: "postscript", offset: file_len };
        if file_len < (HEADER_BYTES + POSTSCRIPT_BYTES) as u64 || tail.len() as u64 > file_len {
            let reason = format!("expected a .tadoc file, {file_len} bytes are too few");
            return Err(place.fault(0, reason));
        }
        let Some(split) = tail.len().checked_sub(POSTSCRIPT_BYTES) else {
            return Ok(FooterOutcome::NeedsTail(Self::TAIL_BYTES.min(file_len)));
        };
        let (before, postscript) = tail.split_at(split);
        let postscript = Postscript::parse(file, postscript, file_len)?;
        if u64::from(postscript.footer_len) > limits.max_footer_bytes {
            return Err(Error::Capacity {
                what: "footer",
                requested: u64::from(postscript.footer_len),
                limit: limits.max_footer_bytes,
                knob: "max_footer_bytes",
            });
        }
        let Some(start) = before.len().checked_sub(postscript.footer_len as usize) else {
            let len = u64::from(postscript.footer_len) + POSTSCRIPT_BYTES as u64;
            return Ok(FooterOutcome::NeedsTail(len));
        };
        let place = Origin { file, section: "footer", offset: postscript.footer_offset };
        place.verify(&before[start..], postscript.footer_crc32c)?;
        let footer = parse_footer(Cursor::new(place, &before[start..]))?;
        footer.check(place)?;
        Ok(FooterOutcome::Footer(footer))
    }

    /// Returns the number of documents. A document in several segments counts once.
    pub fn num_docs(&self) -> u64 {
        self.sum(|s| s.num_docs).saturating_sub(self.sum(|s| u64::from(s.continues)))
    }

    /// Returns, for each segment, the documents of which it has a part. They count from the first
    /// document of the file.
    pub fn docs_of_segments(&self) -> Vec<Range<u64>> {
        let all = DocIds::new(self.segments.iter().map(|s| (s.continues, s.num_docs)));
        let docs = |(segment_idx, meta): (usize, &SegmentMeta)| {
            let first = all.first_for(segment_idx);
            first..first.saturating_add(meta.num_docs)
        };
        self.segments.iter().enumerate().map(docs).collect()
    }

    /// Returns, for each segment, true if it has a part of one of the documents `doc_ids`, which
    /// ascend and count from the first document of the file.
    pub fn segments_of(&self, doc_ids: &[u64]) -> Vec<bool> {
        let has_one = |docs: Range<u64>| {
            let next = doc_ids.partition_point(|&id| id < docs.start);
            doc_ids.get(next).is_some_and(|&id| id < docs.end)
        };
        self.docs_of_segments().into_iter().map(has_one).collect()
    }

    /// Returns the length of the text in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.sum(|s| s.len_bytes)
    }

    /// Returns the number of tokens of the text (N).
    pub fn num_tokens(&self) -> u64 {
        self.sum(|s| s.num_tokens)
    }

    /// Returns the number of tokens that are words.
    pub fn num_word_tokens(&self) -> u64 {
        self.sum(|s| s.num_word_tokens)
    }

    /// Returns the number of elements on all right-hand sides (G).
    pub fn num_elements(&self) -> u64 {
        self.sum(|s| s.num_elements)
    }

    fn sum(&self, of: impl Fn(&SegmentMeta) -> u64) -> u64 {
        self.segments.iter().map(of).fold(0, u64::saturating_add)
    }

    fn all_sections(&self) -> impl Iterator<Item = &SectionMeta> {
        let from_segments = self.segments.iter().flat_map(|segment| &segment.sections);
        from_segments.chain(self.file_sections())
    }

    /// Returns the sections that belong to no segment, in file order.
    pub(super) fn file_sections(&self) -> impl Iterator<Item = &SectionMeta> {
        let mut sections: Vec<_> = self.columns.iter().chain(&self.others).collect();
        sections.sort_by_key(|section| section.offset);
        sections.into_iter()
    }

    /// Returns the length of header and sections, which is the offset of the footer.
    pub(super) fn body_len(&self) -> u64 {
        self.all_sections().last().map_or(HEADER_BYTES as u64, SectionMeta::padded_end)
    }

    /// Checks facts that single records cannot show: the sections tile the file up to the footer at
    /// `place`, sums do not overflow, and a document is continued only directly behind a part of
    /// it.
    fn check(&self, place: Origin<'_>) -> Result<()> {
        let mut expected = HEADER_BYTES as u64;
        for section in self.all_sections() {
            if section.offset != expected || section.len > place.offset {
                let got = format!("{} bytes at offset {}", section.len, section.offset);
                let reason = format!("expected section {} at {expected}, got {got}", section.kind.name());
                return Err(place.fault(0, reason));
            }
            expected = section.padded_end();
        }
        if expected != place.offset {
            let reason = format!("expected the last section to end at the footer, got {expected}");
            return Err(place.fault(0, reason));
        }
        self.check_ties(place)?;
        let mut num_docs = 0u64;
        let mut len_bytes = 0u64;
        let mut num_tokens = 0u64;
        for (i, segment) in self.segments.iter().enumerate() {
            if segment.continues && !self.may_continue(i, segment.num_docs) {
                return Err(place.fault(0, format!("segment {i} continues no document")));
            }
            let sums = (
                num_docs.checked_add(segment.num_docs),
                len_bytes.checked_add(segment.len_bytes),
                num_tokens.checked_add(segment.num_tokens),
            );
            let (Some(docs), Some(bytes), Some(tokens)) = sums else {
                return Err(place.fault(0, "expected totals below 2^64"));
            };
            (num_docs, len_bytes, num_tokens) = (docs, bytes, tokens);
        }
        Ok(())
    }

    /// Refuses sections that were not written together.
    fn check_ties(&self, place: Origin<'_>) -> Result<()> {
        for (i, segment) in self.segments.iter().enumerate() {
            let ties = segment.section(SectionKind::Ties);
            if ties.is_some_and(|section| !fits(section, &segment.ties())) {
                let reason = format!(
                    "expected segment {i} with the sections it was written with, got some of \
                     another; restore the file from a copy"
                );
                return Err(place.fault(0, reason));
            }
        }
        let mut from_file = self.others.iter().filter(|section| section.kind == SectionKind::Ties);
        if from_file.any(|section| !fits(section, &self.ties())) {
            let reason = "expected the columns and segments that were written together, got some of \
                          another file; restore it from a copy";
            return Err(place.fault(0, reason));
        }
        Ok(())
    }

    /// Returns the bytes of the file's ties, which describe its columns and the ties of its
    /// segments.
    pub(super) fn ties(&self) -> Vec<u8> {
        let from_segments = self.segments.iter().filter_map(|s| s.section(SectionKind::Ties));
        ties_for(self.columns.iter().chain(from_segments))
    }

    /// Returns true if segment `segment_idx`, of `num_docs` documents, can begin with a continued
    /// document. The segment directly before must have a document at its end.
    pub(super) fn may_continue(&self, segment_idx: usize, num_docs: u64) -> bool {
        let before = segment_idx.checked_sub(1).and_then(|before| self.segments.get(before));
        num_docs > 0 && before.is_some_and(|before| before.num_docs > 0)
    }

    /// Returns the bytes of footer and postscript for a file whose sections end at `body_len()`.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = vec![self.profile.as_u8()];
        out.extend([self.unicode_version.0, self.unicode_version.1, self.unicode_version.2]);
        push_short_text(&mut out, &self.writer);
        push_short_text(&mut out, &self.builder);
        out.extend(count_u32("num_segments", self.segments.len() as u64)?.to_le_bytes());
        out.extend((self.file_sections().count() as u32).to_le_bytes());
        for segment in &self.segments {
            push_segment(&mut out, segment)?;
        }
        for section in self.all_sections() {
            out.extend(section.offset.to_le_bytes());
            out.extend(section.len.to_le_bytes());
            out.extend(section.crc32c.to_le_bytes());
            out.extend(section.kind.as_u16().to_le_bytes());
            out.extend(section.codec.to_le_bytes());
        }
        let footer_len = count_u32("footer", out.len() as u64)?;
        let footer_crc32c = crc32c::crc32c(&out);
        let footer_offset = self.body_len();
        out.extend(Postscript { footer_offset, footer_len, footer_crc32c }.to_bytes());
        Ok(out)
    }
}

/// Returns the bytes of ties that describe `sections`.
fn ties_for<'a>(sections: impl Iterator<Item = &'a SectionMeta>) -> Vec<u8> {
    let mut out = Vec::new();
    for section in sections {
        out.extend(section.kind.as_u16().to_le_bytes());
        out.extend(section.codec.to_le_bytes());
        out.extend(section.len.to_le_bytes());
        out.extend(section.crc32c.to_le_bytes());
    }
    out
}

/// Returns true if the length and checksum of `ties` agree with `expected`. Ties of a later codec
/// may contain anything.
fn fits(ties: &SectionMeta, expected: &[u8]) -> bool {
    let expected = (expected.len() as u64, crc32c::crc32c(expected));
    ties.codec != codec_numbers::TIES || (ties.len, ties.crc32c) == expected
}

fn parse_footer(mut cursor: Cursor<'_>) -> Result<FileFooter> {
    let profile = TokenizerProfile::from_u8(cursor.u8()?)
        .ok_or_else(|| cursor.fault("expected a tokenizer profile of this build"))?;
    let unicode_version = (cursor.u8()?, cursor.u8()?, cursor.u8()?);
    let writer = cursor.short_text()?;
    let builder = cursor.short_text()?;
    let num_segments = cursor.u32()?;
    let num_file_sections = cursor.u32()?;
    let least =
        u64::from(num_segments) * (SEGMENT_BYTES + 3 * SECTION_BYTES) + u64::from(num_file_sections) * SECTION_BYTES;
    if least > cursor.remaining() as u64 {
        let left = cursor.remaining();
        return Err(cursor.fault(format!("expected {least} bytes of records, {left} are left")));
    }
    let mut segments = Vec::with_capacity(num_segments as usize);
    let mut nums_sections = Vec::with_capacity(num_segments as usize);
    for _ in 0..num_segments {
        let (segment, num_sections) = parse_segment(&mut cursor)?;
        segments.push(segment);
        nums_sections.push(num_sections);
    }
    for (segment, num_sections) in segments.iter_mut().zip(nums_sections) {
        for _ in 0..num_sections {
            segment.sections.push(parse_section(&mut cursor)?);
        }
        check_kinds(&cursor, &segment.sections)?;
    }
    let mut file_sections = Vec::with_capacity(num_file_sections as usize);
    for _ in 0..num_file_sections {
        file_sections.push(parse_section(&mut cursor)?);
    }
    let (mut columns, others): (Vec<_>, Vec<_>) =
        file_sections.into_iter().partition(|section| section.kind == SectionKind::Columns);
    if columns.len() > 1 {
        return Err(cursor.fault("expected at most one section of columns"));
    }
    cursor.finish()?;
    let columns = columns.pop();
    Ok(FileFooter { profile, unicode_version, writer, builder, segments, columns, others })
}

fn parse_segment(cursor: &mut Cursor<'_>) -> Result<(SegmentMeta, u16)> {
    let [num_docs, len_bytes, num_tokens] = [cursor.u64()?, cursor.u64()?, cursor.u64()?];
    let [num_word_tokens, dictionary_bytes, paths_bytes] = [cursor.u64()?, cursor.u64()?, cursor.u64()?];
    let [num_words, num_separators] = [cursor.u32()?, cursor.u32()?];
    let [num_rules, num_elements] = [cursor.u32()?, cursor.u32()?];
    let flags = cursor.u16()?;
    let num_sections = cursor.u16()?;
    if flags & !FLAG_CONTINUES != 0 {
        return Err(cursor.fault(format!("expected no segment flags but bit 0, got {flags:#06x}")));
    }
    let segment = SegmentMeta {
        num_docs,
        continues: flags & FLAG_CONTINUES != 0,
        len_bytes,
        num_tokens,
        num_word_tokens,
        dictionary_bytes,
        paths_bytes,
        num_words,
        num_separators,
        num_rules,
        num_elements: u64::from(num_elements),
        sections: Vec::new(),
    };
    check_counts(cursor, &segment)?;
    Ok((segment, num_sections))
}

/// Refuses counts that no valid segment can have.
fn check_counts(cursor: &Cursor<'_>, segment: &SegmentMeta) -> Result<()> {
    let num_terminals = u64::from(segment.num_words) + u64::from(segment.num_separators);
    let num_rules = u64::from(segment.num_rules);
    let is_plausible = num_terminals + num_rules <= u64::from(u32::MAX)
        // Only one terminal, the empty separator, has no bytes.
        && num_terminals <= segment.dictionary_bytes.saturating_add(1)
        && segment.dictionary_bytes <= u64::from(u32::MAX)
        // Every rule but the root is used somewhere and has at least one element.
        && (1..=segment.num_elements + 1).contains(&num_rules)
        && segment.num_docs < u64::from(u32::MAX)
        && segment.num_word_tokens <= segment.num_tokens
        && segment.num_word_tokens <= segment.len_bytes;
    if is_plausible { Ok(()) } else { Err(cursor.fault("expected counts of a segment that fit one another")) }
}

fn check_kinds(cursor: &Cursor<'_>, sections: &[SectionMeta]) -> Result<()> {
    for kind in [SectionKind::Dictionary, SectionKind::Grammar, SectionKind::Documents] {
        let num = sections.iter().filter(|section| section.kind == kind).count();
        if num != 1 {
            let name = kind.name();
            return Err(cursor.fault(format!("expected one section {name} a segment, got {num}")));
        }
    }
    let optional = [
        SectionKind::DictionaryHead,
        SectionKind::WordCounts,
        SectionKind::GrammarChecksums,
        SectionKind::DocumentLengths,
        SectionKind::Ties,
    ];
    for kind in optional {
        if sections.iter().filter(|section| section.kind == kind).count() > 1 {
            let name = kind.name();
            return Err(cursor.fault(format!("expected at most one section {name} a segment")));
        }
    }
    Ok(())
}

fn parse_section(cursor: &mut Cursor<'_>) -> Result<SectionMeta> {
    let offset = cursor.u64()?;
    let len = cursor.u64()?;
    let crc32c = cursor.u32()?;
    let kind = SectionKind::from_u16(cursor.u16()?);
    let codec = cursor.u16()?;
    Ok(SectionMeta { kind, codec, offset, len, crc32c })
}

fn push_segment(out: &mut Vec<u8>, segment: &SegmentMeta) -> Result<()> {
    for count in [
        segment.num_docs,
        segment.len_bytes,
        segment.num_tokens,
        segment.num_word_tokens,
        segment.dictionary_bytes,
        segment.paths_bytes,
    ] {
        out.extend(count.to_le_bytes());
    }
    let num_elements = count_u32("num_elements", segment.num_elements)?;
    for count in [segment.num_words, segment.num_separators, segment.num_rules, num_elements] {
        out.extend(count.to_le_bytes());
    }
    let flags = if segment.continues { FLAG_CONTINUES } else { 0 };
    out.extend(flags.to_le_bytes());
    out.extend((segment.sections.len() as u16).to_le_bytes());
    Ok(())
}

fn push_short_text(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(usize::from(u8::MAX))];
    out.push(text.len() as u8);
    out.extend_from_slice(text.as_bytes());
}

fn count_u32(what: &'static str, count: u64) -> Result<u32> {
    u32::try_from(count).map_err(|_| Error::Capacity {
        what,
        requested: count,
        limit: u64::from(u32::MAX),
        knob: "the number of files",
    })
}
