//! Writer of a `.tadoc` file, segment by segment.
//!
//! The sections of a segment are written when it is passed, so the writer holds at most one encoded
//! segment. The bytes depend only on the arguments, never on threads or time. The writer does not
//! sync: the owner of the file decides about durability. Encoding takes O(G + dictionary + paths).

use std::io::Write;

use crate::error::{Error, Result};
use crate::format::codec_numbers::{self, is_stream};
use crate::format::codecs;
use crate::format::codecs::dictionary::EncodedDictionary;
use crate::format::codecs::documents::document_lengths;
use crate::format::codecs::grammar::count_tokens;
use crate::format::codecs::grammar_stream::cut_units;
use crate::format::codecs::word_lists::{Regions, WordDocuments};
use crate::format::cursor::Origin;
use crate::format::framing::{SectionKind, SectionMeta, SegmentLayout, align_up, check_header, header};
use crate::format::grammar_blocks::encode_checksums;
use crate::format::layout::{FileFooter, SegmentMeta};
use crate::format::reader::StoredSegment;
use crate::grammar::Grammar;
use crate::segment::{Dag, Paths, Segment};
use crate::text::{Dictionary, TokenizerProfile};

/// Name and version of the writing program, as files have it. It follows the release of
/// `datafusion-tadoc` and not the version of this crate.
pub const WRITER: &str = "datafusion-tadoc 55.0.0";

/// Length of document lengths that are always written.
const MAX_LENGTHS_BYTES: usize = 1024;
/// Text of a segment that is decoded in some milliseconds. Lists save little there.
const SMALL_TEXT_BYTES: u64 = 8 << 20;

/// Writer of the header, segments and footer of one file.
#[derive(Debug)]
pub struct CorpusWriter<W: Write> {
    out: W,
    footer: FileFooter,
    offset: u64,
}

impl<W: Write> CorpusWriter<W> {
    /// Begins a file in `out`. Its text is tokenized by `profile` and compressed by the grammar
    /// builder named `builder`.
    ///
    /// # Errors
    /// [`Error::Io`] if writing the header to `out` fails.
    pub fn new(out: W, profile: TokenizerProfile, builder: &str) -> Result<Self> {
        let footer = FileFooter {
            profile,
            unicode_version: profile.unicode_version(),
            writer: WRITER.into(),
            builder: builder.into(),
            segments: Vec::new(),
            columns: None,
            others: Vec::new(),
        };
        let mut writer = Self { out, footer, offset: 0 };
        writer.write(&header())?;
        Ok(writer)
    }

    /// Appends a segment.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it continues a document that does not exist, [`Error::Io`] if
    /// writing fails.
    pub fn write_segment(&mut self, segment: EncodedSegment) -> Result<()> {
        let EncodedSegment { mut meta, sections } = segment;
        if meta.continues && !self.footer.may_continue(self.footer.segments.len(), meta.num_docs) {
            return Err(Error::InvalidArgument {
                name: "continues",
                got: "true".into(),
                allowed: "false where no document is there to continue".into(),
            });
        }
        for (kind, codec, bytes) in sections {
            meta.sections.push(self.section(kind, codec, &bytes)?);
        }
        meta.sections.push(self.section(SectionKind::Ties, codec_numbers::TIES, &meta.ties())?);
        self.footer.segments.push(meta);
        Ok(())
    }

    /// Completes the file with `columns`, an optional Parquet file of one row for each document,
    /// and the footer. Flushes the output and returns it with the footer.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails.
    pub fn finish(mut self, columns: Option<&[u8]>) -> Result<(W, FileFooter)> {
        if let Some(bytes) = columns {
            self.footer.columns = Some(self.section(SectionKind::Columns, codec_numbers::COLUMNS, bytes)?);
            let ties = self.section(SectionKind::Ties, codec_numbers::TIES, &self.footer.ties())?;
            self.footer.others.push(ties);
        }
        let footer = self.footer.to_bytes()?;
        self.write(&footer)?;
        self.out.flush().map_err(|e| Error::io("flushing a corpus file", e))?;
        Ok((self.out, self.footer))
    }

    fn section(&mut self, kind: SectionKind, codec: u16, bytes: &[u8]) -> Result<SectionMeta> {
        let offset = self.offset;
        let len = bytes.len() as u64;
        self.write(bytes)?;
        let padding = align_up(self.offset) - self.offset;
        self.write(&[0; 64][..padding as usize])?;
        Ok(SectionMeta { kind, codec, offset, len, crc32c: crc32c::crc32c(bytes) })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|e| Error::io("writing a corpus file", e))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// Contents of a segment before encoding.
#[derive(Debug)]
pub struct SegmentContents {
    /// Terminals of the segment.
    pub dictionary: Dictionary,
    /// Documents and rules.
    pub grammar: Grammar,
    /// Paths, one for each document.
    pub paths: Paths,
    /// True if the first document continues the last one of the previous segment.
    pub continues: bool,
    /// Number of stored tokens of the text: words and separators, without implied blanks.
    pub num_tokens: u64,
    /// Number of tokens that are words.
    pub num_word_tokens: u64,
    /// Length of the text in bytes.
    pub len_bytes: u64,
}

impl SegmentContents {
    /// Returns the contents of an open segment, whose footer has `meta`. So it can be written
    /// again, in any layout, without its grammar being built anew.
    pub fn from_segment(segment: &Segment, meta: &SegmentMeta) -> Self {
        Self {
            dictionary: segment.dictionary.clone(),
            grammar: segment.dag.grammar().clone(),
            paths: segment.paths.clone(),
            continues: segment.continues,
            num_tokens: meta.num_tokens,
            num_word_tokens: meta.num_word_tokens,
            len_bytes: meta.len_bytes,
        }
    }

    /// Returns the description of the segment, without sections.
    fn description(&self) -> SegmentMeta {
        let Self { dictionary, grammar, paths, .. } = self;
        SegmentMeta {
            num_docs: grammar.num_docs() as u64,
            continues: self.continues,
            len_bytes: self.len_bytes,
            num_tokens: self.num_tokens,
            num_word_tokens: self.num_word_tokens,
            dictionary_bytes: dictionary.bytes().len() as u64,
            paths_bytes: paths.len_bytes() as u64,
            num_words: dictionary.num_words(),
            num_separators: dictionary.len() - dictionary.num_words(),
            num_rules: grammar.num_rules() as u32,
            num_elements: grammar.symbols.len() as u64,
            sections: Vec::new(),
        }
    }
}

/// Kind, codec and bytes of a section.
type EncodedSection = (SectionKind, u16, Vec<u8>);

/// Encoded sections of a segment, ready to be written.
#[derive(Debug)]
pub struct EncodedSegment {
    /// Description of the segment, without sections.
    meta: SegmentMeta,
    sections: Vec<EncodedSection>,
}

impl EncodedSegment {
    /// Encodes a segment in the layout `layout`. Rules may have other numbers when the segment is
    /// read back.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the parts contradict each other, [`Error::Capacity`] for
    /// segments of 2^32 elements.
    pub fn new(parts: &SegmentContents, layout: SegmentLayout) -> Result<Self> {
        check_contents(parts)?;
        let sections = match layout {
            SegmentLayout::Small => encode_sections(parts, layout, &[])?,
            SegmentLayout::Indexed { max_lists_percent } => {
                let SegmentContents { dictionary, grammar, .. } = parts;
                let (dag, _) = Dag::from_valid(grammar.clone(), dictionary.num_words(), dictionary.lengths())?;
                let unit_starts = cut_units(grammar, |element| dag.len_bytes(element));
                let (sections, documents) =
                    rayon::join(|| encode_sections(parts, layout, &unit_starts), || WordDocuments::from_dag(&dag));
                let mut sections = sections?;
                if let Some(documents) = documents {
                    let max_bytes = max_lists_bytes(parts.len_bytes, &sections, max_lists_percent);
                    let regions = Regions::from_units(grammar, &unit_starts);
                    sections.splice(0..0, encode_lists(&documents, &regions, max_bytes));
                }
                sections
            }
        };
        Ok(Self { meta: parts.description(), sections })
    }

    /// Takes the only segment of `file`, whose name is `name` and whose footer is `footer`, with every byte checked
    /// against its checksum.
    ///
    /// # Errors
    /// [`Error::Format`] if the file has other sections than those of one segment of this build, [`Error::Checksum`] if
    /// a section is damaged.
    pub(crate) fn from_file(name: &str, footer: &FileFooter, file: &[u8]) -> Result<Self> {
        check_header(name, file)?;
        let [meta] = footer.segments.as_slice() else {
            let place = Origin { file: name, section: "footer", offset: footer.body_len() };
            return Err(place.fault(0, format!("expected one segment, got {}", footer.segments.len())));
        };
        let is_unknown = |section: &&SectionMeta| matches!(section.kind, SectionKind::Unknown(_));
        let foreign = footer.file_sections().next().or_else(|| meta.sections.iter().find(is_unknown));
        if let Some(section) = foreign {
            return Err(section.origin(name).fault(0, "expected no sections but those of a segment"));
        }
        let range = meta.whole_range();
        let bytes = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let bytes = bytes.and_then(|(start, end)| file.get(start..end)).unwrap_or_default();
        let stored = StoredSegment::new(name, footer, 0, bytes, SegmentMeta::whole_range)?;
        let mut sections = Vec::with_capacity(meta.sections.len());
        for section in &meta.sections {
            let bytes = stored.bytes_of(section)?;
            if section.kind != SectionKind::Ties {
                sections.push((section.kind, section.codec, bytes.to_vec()));
            }
        }
        Ok(Self { meta: SegmentMeta { sections: Vec::new(), ..meta.clone() }, sections })
    }

    /// Returns the description of the segment, without sections.
    pub(crate) fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// Says if the first document continues the last one of the segment before.
    pub(crate) fn set_continues(&mut self, continues: bool) {
        self.meta.continues = continues;
    }
}

/// Checks that the parts of a segment agree.
fn check_contents(parts: &SegmentContents) -> Result<()> {
    let SegmentContents { dictionary, grammar, paths, .. } = parts;
    grammar.validate()?;
    check_equal("paths", paths.len() as u64, grammar.num_docs() as u64)?;
    check_equal("num_terminals", u64::from(grammar.num_terminals), u64::from(dictionary.len()))?;
    let counts = count_tokens(grammar, dictionary.num_words());
    let (tokens, words) = counts.ok_or_else(|| mismatch("grammar", u64::MAX, u64::MAX))?;
    check_equal("num_tokens", parts.num_tokens, tokens)?;
    check_equal("num_word_tokens", parts.num_word_tokens, words)
}

/// Encodes the sections that segments of each layout have, in the order of the file. They are encoded side by side.
fn encode_sections(parts: &SegmentContents, layout: SegmentLayout, unit_starts: &[u32]) -> Result<Vec<EncodedSection>> {
    let SegmentContents { dictionary, grammar, paths, .. } = parts;
    let encode_counts = || codecs::documents::encode_counts(dictionary, &grammar.weights());
    let encode_documents = || {
        let lengths = document_lengths(grammar, dictionary);
        (codecs::documents::encode_lengths(&lengths), codecs::documents::encode(paths, layout))
    };
    let encode_dictionary = || codecs::dictionary::encode(dictionary, layout);
    let encode_rest = || rayon::join(encode_dictionary, || rayon::join(encode_counts, encode_documents));
    let (grammar, (dictionary, (counts, (lengths, documents)))) =
        rayon::join(|| encode_grammar(grammar, dictionary.num_words(), layout, unit_starts), encode_rest);
    let EncodedDictionary { codec: dictionary_codec, head, section: dictionary } = dictionary?;
    let (grammar_codec, grammar) = grammar?;
    let (documents_codec, documents) = documents?;
    let lengths = lengths?;
    let checksums = if is_stream(grammar_codec) { encode_checksums(&grammar) } else { None };
    let checksums = checksums.map(|bytes| (SectionKind::GrammarChecksums, codec_numbers::GRAMMAR_CHECKSUMS, bytes));
    let mut sections = Vec::new();
    sections.extend(head.map(|head| (SectionKind::DictionaryHead, dictionary_codec, head)));
    sections.push((SectionKind::Dictionary, dictionary_codec, dictionary));
    sections.push((SectionKind::WordCounts, codec_numbers::WORD_COUNTS, counts));
    sections.extend(checksums);
    sections.push((SectionKind::Grammar, grammar_codec, grammar));
    sections.push((SectionKind::Documents, documents_codec, documents));
    if is_worth_its_bytes(&lengths, &sections, layout) {
        sections.push((SectionKind::DocumentLengths, codec_numbers::DOCUMENT_LENGTHS, lengths));
    }
    Ok(sections)
}

/// Returns the codec and the section of a grammar, whose first `num_words` terminals are words.
fn encode_grammar(
    grammar: &Grammar,
    num_words: u32,
    layout: SegmentLayout,
    unit_starts: &[u32],
) -> Result<(u16, Vec<u8>)> {
    match layout {
        SegmentLayout::Indexed { .. } => {
            let section = codecs::grammar_stream::encode(grammar, unit_starts)?;
            Ok((codec_numbers::GRAMMAR_STREAM, section))
        }
        SegmentLayout::Small => Ok((codec_numbers::GRAMMAR, codecs::grammar::encode(grammar, num_words))),
    }
}

/// Returns the sections of the lists of words, which have `max_bytes` at most.
fn encode_lists(documents: &WordDocuments, regions: &Regions, max_bytes: usize) -> [EncodedSection; 2] {
    let (directory, lists) = codecs::word_lists::encode(documents, regions, max_bytes);
    let codec = codec_numbers::WORD_LISTS;
    [(SectionKind::ListDirectory, codec, directory), (SectionKind::WordLists, codec, lists)]
}

/// Returns the number of bytes that lists may have beside `others`, in a segment with a text of `text_bytes`.
fn max_lists_bytes(text_bytes: u64, others: &[EncodedSection], max_percent: u16) -> usize {
    let max_bytes = sections_bytes(others) * usize::from(max_percent) / 100;
    if text_bytes < SMALL_TEXT_BYTES { 2 * max_bytes / 3 } else { max_bytes }
}

fn sections_bytes(sections: &[EncodedSection]) -> usize {
    sections.iter().map(|(_, _, bytes)| bytes.len()).sum()
}

/// Returns true if document lengths are written. The small layout goes without if they were a
/// larger part of the segment: where each line is a document, they would take a tenth of a file.
fn is_worth_its_bytes(lengths: &[u8], others: &[EncodedSection], layout: SegmentLayout) -> bool {
    layout != SegmentLayout::Small || lengths.len() <= MAX_LENGTHS_BYTES.max(sections_bytes(others) / 64)
}

fn check_equal(name: &'static str, got: u64, expected: u64) -> Result<()> {
    if got == expected { Ok(()) } else { Err(mismatch(name, got, expected)) }
}

fn mismatch(name: &'static str, got: u64, allowed: u64) -> Error {
    Error::InvalidArgument { name, got: got.to_string(), allowed: allowed.to_string() }
}
