//! Reader of `.tadoc` files, which returns the right result or a typed error for any bytes.
//!
//! Order of checks: the footer (checksum, consistent counts, sections that tile the file), the
//! memory that the footer needs against the limit, checksum and zeros of each section, then the
//! decoders, which check every count again, then the totals of the whole segment (lengths, sums).
//! Before the memory check no allocation depends on a number from the file.
//!
//! Opening takes O(G + dictionary + paths). Segments are decoded in parallel, and so are the
//! dictionary and the grammar of each. There is no recursion, so deep grammars need no stack.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::format::codec_numbers;
use crate::format::codecs;
use crate::format::codecs::dictionary::DictionaryBytes;
use crate::format::codecs::grammar_stream::GrammarStream;
use crate::format::codecs::word_lists::{ListDirectory, WordDocuments};
use crate::format::cursor::Origin;
use crate::format::framing::{
    ALIGNMENT, HEADER_BYTES, OpenLimits, SectionKind, SectionMeta, VERSION_FROM_END, check_header,
};
use crate::format::layout::{FileFooter, FooterOutcome, SegmentMeta, section_for};
use crate::grammar::Grammar;
use crate::segment::{Corpus, Dag, DocumentLength, PathRuns, Paths, Segment, SegmentFacts};
use crate::text::{Dictionary, TokenizerProfile};

/// Decodes segment `segment_idx` of `file` from `bytes`, which must be exactly its
/// [`byte_range`](SegmentMeta::byte_range). `file` is a name for error messages.
///
/// # Errors
/// [`Error::OutOfRange`] if the segment does not exist, [`Error::Format`], [`Error::Checksum`],
/// [`Error::Version`] for codecs of a later version, [`Error::Capacity`] if `limits` are exceeded.
pub fn read_segment(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    limits: &OpenLimits,
) -> Result<Segment> {
    let stored = StoredSegment::new(file, footer, segment_idx, bytes, SegmentMeta::byte_range)?;
    limits.check_memory(stored.meta.memory_bytes())?;
    stored.check_sections(|kind| !kind.is_list())?;
    stored.decode()
}

/// Variant of [`read_segment`] that also compares the numbers that are stored beside the grammar
/// with those of the grammar: tokens, counts of words, lengths of documents, word lists. Statements
/// read either. `bytes` must be exactly its [`whole_range`](SegmentMeta::whole_range).
///
/// # Errors
/// Same as [`read_segment`].
pub fn verify_segment(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    limits: &OpenLimits,
) -> Result<Segment> {
    let stored = StoredSegment::new(file, footer, segment_idx, bytes, SegmentMeta::whole_range)?;
    limits.check_memory(stored.meta.memory_bytes())?;
    stored.check_sections(|_| true)?;
    let segment = stored.decode()?;
    stored.check_numbers(&segment)?;
    stored.check_groups()?;
    stored.check_lists(&segment)?;
    stored.check_blocks()?;
    stored.check_entrances(limits)?;
    Ok(segment)
}

/// Variant of [`read_segment`] for a segment whose dictionary was read before
/// ([`StoredDictionary`](crate::format::StoredDictionary), [`read_words`]). `bytes` must be exactly its
/// [`rest_range`](SegmentMeta::rest_range).
///
/// # Errors
/// Same as [`read_segment`].
pub fn read_segment_with(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    dictionary: Dictionary,
    limits: &OpenLimits,
) -> Result<Segment> {
    let stored = StoredSegment::rest(file, footer, segment_idx, bytes, limits)?;
    let grammar = stored.grammar()?;
    stored.segment(dictionary, grammar)
}

/// Bytes of a segment, or of some of its sections.
pub(super) struct StoredSegment<'a> {
    pub(super) file: &'a str,
    pub(super) profile: TokenizerProfile,
    pub(super) meta: &'a SegmentMeta,
    bytes: &'a [u8],
    /// Offset of the bytes in the file.
    start: u64,
}

impl<'a> StoredSegment<'a> {
    /// Takes `bytes`, which must be exactly `range` of segment `segment_idx`.
    pub(super) fn new(
        file: &'a str,
        footer: &'a FileFooter,
        segment_idx: usize,
        bytes: &'a [u8],
        range: impl Fn(&SegmentMeta) -> Range<u64>,
    ) -> Result<Self> {
        let meta = segment_meta(footer, segment_idx)?;
        let range = range(meta);
        check_range(range.clone(), bytes)?;
        Ok(Self { file, profile: footer.profile, meta, bytes, start: range.start })
    }

    /// Takes the `bytes` of all sections but the dictionary, and checks them.
    pub(super) fn rest(
        file: &'a str,
        footer: &'a FileFooter,
        segment_idx: usize,
        bytes: &'a [u8],
        limits: &OpenLimits,
    ) -> Result<Self> {
        let stored = Self::new(file, footer, segment_idx, bytes, SegmentMeta::rest_range)?;
        limits.check_memory(stored.meta.memory_bytes())?;
        stored.check_sections(|kind| !kind.is_dictionary() && !kind.is_list())?;
        Ok(stored)
    }

    /// Checks the bytes of the sections whose kind is `wanted`, known or not.
    pub(super) fn check_sections(&self, wanted: impl Fn(SectionKind) -> bool) -> Result<()> {
        let mut sections = self.meta.sections.iter().filter(|section| wanted(section.kind));
        sections.try_for_each(|section| self.bytes_of(section).map(drop))
    }

    /// Returns the checked bytes of `section`, one of its own.
    pub(super) fn bytes_of(&self, section: &SectionMeta) -> Result<&'a [u8]> {
        section_bytes(self.file, section, self.bytes, self.start)
    }

    pub(super) fn section(&self, kind: SectionKind) -> Result<(&'a SectionMeta, &'a [u8])> {
        let section = section_for(self.file, self.meta, kind)?;
        Ok((section, self.bytes_of(section)?))
    }

    pub(super) fn dictionary(&self) -> Result<Dictionary> {
        decode_checked_dictionary(&self.dictionary_bytes()?, self.meta, self.profile)
    }

    pub(super) fn dictionary_bytes(&self) -> Result<DictionaryBytes<'a>> {
        dictionary_bytes(self.file, self.meta, self.bytes, self.start)
    }

    /// Decodes the grammar and checks it.
    pub(super) fn grammar(&self) -> Result<Grammar> {
        let (section, bytes) = self.section(SectionKind::Grammar)?;
        let grammar = decode_grammar(self.file, section, bytes, self.meta)?;
        let valid = grammar.validate();
        valid.map_err(|e| section.origin(self.file).fault(0, e.to_string()))?;
        Ok(grammar)
    }

    pub(super) fn decode(&self) -> Result<Segment> {
        let (dictionary, grammar) = rayon::join(|| self.dictionary(), || self.grammar());
        self.segment(dictionary?, grammar?)
    }

    /// Decodes what is left, and builds the segment.
    pub(super) fn segment(&self, dictionary: Dictionary, grammar: Grammar) -> Result<Segment> {
        let file = self.file;
        let meta = self.meta;
        let grammar_at = section_for(file, meta, SectionKind::Grammar)?.origin(file);
        let (section, bytes) = self.section(SectionKind::Documents)?;
        let paths = codecs::documents::decode(section.origin(file), section.codec, bytes, meta)?;
        // The decoders return only grammars whose rules are all used.
        let (dag, steep_rule) = Dag::from_valid(grammar, meta.num_words, dictionary.lengths())
            .map_err(|e| grammar_at.fault(0, e.to_string()))?;
        check_totals(grammar_at, meta, &dag)?;
        refuse_steep_rule(grammar_at, steep_rule)?;
        let segment = Segment::new(dictionary, dag, paths, meta.continues);
        // Sections of a copy with other numbers are found by the ties, where a file has them.
        if meta.section(SectionKind::Ties).is_none() {
            self.check_numbers(&segment)?;
        }
        Ok(segment)
    }

    /// Compares the numbers that are stored beside the grammar with those of the grammar.
    fn check_numbers(&self, segment: &Segment) -> Result<()> {
        let file = self.file;
        let meta = self.meta;
        let grammar_at = section_for(file, meta, SectionKind::Grammar)?.origin(file);
        let weights = segment.weights_or_derive();
        let terminals = &weights[..segment.dag.num_terminals() as usize];
        let num_tokens = terminals.iter().try_fold(0u64, |sum, &weight| sum.checked_add(weight));
        let num_tokens = num_tokens.ok_or_else(|| grammar_at.fault(0, "more than 2^64 tokens"))?;
        check_total(grammar_at, "tokens", meta.num_tokens, num_tokens)?;
        if meta.section(SectionKind::DocumentLengths).is_some() {
            let (section, bytes) = self.section(SectionKind::DocumentLengths)?;
            let lengths = document_lengths(file, section, bytes, meta)?;
            check_lengths(section.origin(file), &lengths, &segment.dag)?;
        }
        if meta.section(SectionKind::WordCounts).is_some() {
            let (section, bytes) = self.section(SectionKind::WordCounts)?;
            let counts = word_counts(file, section, bytes, &segment.dictionary, meta)?;
            check_word_counts(section.origin(file), &counts, weights)?;
        }
        Ok(())
    }

    /// Checks the groups of the dictionary, if it has any.
    fn check_groups(&self) -> Result<()> {
        let bytes = self.dictionary_bytes()?;
        bytes.index(self.meta)?.map_or(Ok(()), |index| index.check_groups(bytes.place, bytes.section))
    }

    /// Checks the places at which parts of the grammar are read, if there are any.
    fn check_entrances(&self, limits: &OpenLimits) -> Result<()> {
        let (section, bytes) = self.section(SectionKind::Grammar)?;
        if !codec_numbers::is_stream(section.codec) {
            return Ok(());
        }
        GrammarStream::open(section.origin(self.file), section.codec, bytes, self.meta)?.check_entrances(limits)
    }

    /// Compares the word lists, if there are any, with the words of the documents.
    fn check_lists(&self, segment: &Segment) -> Result<()> {
        if self.meta.section(SectionKind::WordLists).is_none() {
            return Ok(());
        }
        let (section, bytes) = self.section(SectionKind::WordLists)?;
        check_lists_codec(self.file, section)?;
        let (directory_section, directory) = self.section(SectionKind::ListDirectory)?;
        let directory = list_directory(self.file, directory_section, directory, self.meta)?;
        let place = section.origin(self.file);
        let documents = WordDocuments::from_dag(&segment.dag)
            .ok_or_else(|| place.fault(0, "expected lists of fewer words and documents"))?;
        directory.check(place, bytes, &documents)
    }
}

/// Reads the directory of the word lists of the segment `meta` from its section.
pub(super) fn list_directory(
    file: &str,
    section: &SectionMeta,
    bytes: &[u8],
    meta: &SegmentMeta,
) -> Result<ListDirectory> {
    check_lists_codec(file, section)?;
    let lists = section_for(file, meta, SectionKind::WordLists)?;
    if lists.codec != section.codec {
        let reason = format!("expected word lists of codec {}, got {}", section.codec, lists.codec);
        return Err(section.origin(file).fault(0, reason));
    }
    ListDirectory::read(section.origin(file), section.codec, bytes, meta, lists.len)
}

/// Refuses word lists of an unknown codec.
pub(super) fn check_lists_codec(file: &str, section: &SectionMeta) -> Result<()> {
    if codec_numbers::is_word_lists(section.codec) {
        return Ok(());
    }
    check_codec(file, section, codec_numbers::WORD_LISTS)
}

/// Decodes the words of segment `segment_idx` of `file` and their counts, as a segment of words
/// alone. `bytes` must be exactly its
/// [`words_range`](SegmentMeta::words_range). `file` is a name for error messages. The rest of the
/// segment is not checked.
///
/// # Errors
/// Same as [`read_segment`], and [`Error::InvalidArgument`] for a segment without word counts that
/// are tied to its grammar.
pub fn read_words(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    limits: &OpenLimits,
) -> Result<Segment> {
    let meta = segment_meta(footer, segment_idx)?;
    let (range, section) = tied(meta, segment_idx, meta.words_range(), SectionKind::WordCounts)?;
    check_range(range.clone(), bytes)?;
    limits.check_memory(meta.words_memory_bytes())?;
    let dictionary =
        decode_checked_dictionary(&dictionary_bytes(file, meta, bytes, range.start)?, meta, footer.profile)?;
    let counts = section_bytes(file, section, bytes, range.start)?;
    let counts = word_counts(file, section, counts, &dictionary, meta)?;
    Segment::from_words(dictionary, &counts).map_err(|e| section.origin(file).fault(0, e.to_string()))
}

/// Decodes a dictionary and checks its words.
pub(super) fn decode_checked_dictionary(
    bytes: &DictionaryBytes<'_>,
    meta: &SegmentMeta,
    profile: TokenizerProfile,
) -> Result<Dictionary> {
    let dictionary = bytes.decode(meta)?;
    check_words(bytes.place, profile, &dictionary)?;
    Ok(dictionary)
}

/// Returns the checked bytes of the dictionary of the segment `meta`. Its sections lie in `bytes`, the part of the
/// file from `start` on.
pub(super) fn dictionary_bytes<'a>(
    file: &'a str,
    meta: &SegmentMeta,
    bytes: &'a [u8],
    start: u64,
) -> Result<DictionaryBytes<'a>> {
    let section = section_for(file, meta, SectionKind::Dictionary)?;
    let head = meta.head_range().and_then(|_| meta.section(SectionKind::DictionaryHead));
    let head = head.map(|head| Ok((head.origin(file), section_bytes(file, head, bytes, start)?))).transpose()?;
    let codec = section.codec;
    let place = section.origin(file);
    Ok(DictionaryBytes { codec, head, place, section: section_bytes(file, section, bytes, start)? })
}

fn decode_grammar(file: &str, section: &SectionMeta, bytes: &[u8], meta: &SegmentMeta) -> Result<Grammar> {
    let origin = section.origin(file);
    match section.codec {
        codec_numbers::PACKED_GRAMMAR => codecs::packed_grammar::decode(origin, bytes, meta),
        codec_numbers::GRAMMAR => codecs::grammar::decode(origin, bytes, meta),
        codec_numbers::SEQUENTIAL_GRAMMAR => codecs::grammar::decode::decode_sequential(origin, bytes, meta),
        codec if codec_numbers::is_stream(codec) => codecs::grammar_stream::decode(origin, codec, bytes, meta),
        codec => {
            let expected = "grammar codec 1 to 5".into();
            let got = format!("grammar codec {codec}");
            Err(Error::Version { file: file.into(), expected, got })
        }
    }
}

fn word_counts(
    file: &str,
    section: &SectionMeta,
    bytes: &[u8],
    dictionary: &Dictionary,
    meta: &SegmentMeta,
) -> Result<Vec<u64>> {
    check_codec(file, section, codec_numbers::WORD_COUNTS)?;
    codecs::documents::decode_counts(section.origin(file), bytes, dictionary, meta)
}

/// Refuses `counts` that differ from those of the grammar, because results must not depend on the
/// choice between them.
fn check_word_counts(place: Origin<'_>, counts: &[u64], weights: &[u64]) -> Result<()> {
    match counts.iter().zip(weights).position(|(count, weight)| count != weight) {
        None => Ok(()),
        Some(word) => {
            let expected = weights[word];
            let got = counts[word];
            Err(place.fault(0, format!("expected word {word} {expected} times, got {got}")))
        }
    }
}

fn document_lengths(
    file: &str,
    section: &SectionMeta,
    bytes: &[u8],
    meta: &SegmentMeta,
) -> Result<Vec<DocumentLength>> {
    check_codec(file, section, codec_numbers::DOCUMENT_LENGTHS)?;
    codecs::documents::decode_lengths(section.origin(file), bytes, meta)
}

/// Refuses `lengths` that differ from those of the grammar, because results must not depend on the
/// choice between them.
fn check_lengths(place: Origin<'_>, lengths: &[DocumentLength], dag: &Dag) -> Result<()> {
    let mut docs = dag.grammar().docs().zip(lengths);
    match docs.find(|&(doc, &length)| dag.doc_length(doc) != length) {
        None => Ok(()),
        Some((doc, &DocumentLength { len_bytes, num_words })) => {
            let expected = dag.doc_length(doc);
            let reason = format!(
                "expected document {doc} with {} bytes and {} words, got {len_bytes} and {num_words}",
                expected.len_bytes, expected.num_words
            );
            Err(place.fault(0, reason))
        }
    }
}

/// Decodes the paths and lengths of the documents of segment `segment_idx` of `file`: one entry for
/// each document, including a continued part. `bytes` must be exactly its
/// [`facts_range`](SegmentMeta::facts_range). `file` is a name for error messages. The rest of the
/// segment is not checked.
///
/// # Errors
/// Same as [`read_segment`], and [`Error::InvalidArgument`] for a segment without document lengths
/// that are tied to its grammar.
pub fn read_document_facts(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    limits: &OpenLimits,
) -> Result<SegmentFacts> {
    let meta = segment_meta(footer, segment_idx)?;
    let (range, section) = tied(meta, segment_idx, meta.facts_range(), SectionKind::DocumentLengths)?;
    check_range(range.clone(), bytes)?;
    limits.check_memory(meta.facts_memory_bytes())?;
    let lengths = section_bytes(file, section, bytes, range.start)?;
    let lengths = document_lengths(file, section, lengths, meta)?;
    let section = section_for(file, meta, SectionKind::Documents)?;
    let paths = section_bytes(file, section, bytes, range.start)?;
    let paths = codecs::documents::decode(section.origin(file), section.codec, paths, meta)?;
    Ok(SegmentFacts { paths, lengths, continues: meta.continues })
}

/// Decodes the paths of segment `segment_idx` of `file`: one for each document, including a
/// continued part. `bytes` must be exactly its [`paths_range`](SegmentMeta::paths_range). `file` is
/// a name for error messages. The rest of the segment is not checked.
///
/// # Errors
/// Same as [`read_segment`].
pub fn read_paths(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    limits: &OpenLimits,
) -> Result<Paths> {
    let (meta, section, bytes) = paths_section(file, footer, segment_idx, bytes, limits)?;
    codecs::documents::decode(section.origin(file), section.codec, bytes, meta)
}

/// Variant of [`read_paths`] that keeps one path of equal neighbours. It is faster where lines have the path of their
/// file.
///
/// # Errors
/// Same as [`read_segment`].
pub fn read_path_runs(
    file: &str,
    footer: &FileFooter,
    segment_idx: usize,
    bytes: &[u8],
    limits: &OpenLimits,
) -> Result<PathRuns> {
    let (meta, section, bytes) = paths_section(file, footer, segment_idx, bytes, limits)?;
    codecs::documents::decode_runs(section.origin(file), section.codec, bytes, meta)
}

/// Returns the checked section of the paths of a segment, and its bytes.
fn paths_section<'a>(
    file: &str,
    footer: &'a FileFooter,
    segment_idx: usize,
    bytes: &'a [u8],
    limits: &OpenLimits,
) -> Result<(&'a SegmentMeta, &'a SectionMeta, &'a [u8])> {
    let meta = segment_meta(footer, segment_idx)?;
    check_range(meta.paths_range(), bytes)?;
    limits.check_memory(meta.paths_memory_bytes())?;
    let section = section_for(file, meta, SectionKind::Documents)?;
    let bytes = section_bytes(file, section, bytes, section.offset)?;
    Ok((meta, section, bytes))
}

/// Returns `range` and the section of `kind`, which segment `segment_idx` must have, tied to its
/// grammar.
fn tied(
    meta: &SegmentMeta,
    segment_idx: usize,
    range: Option<Range<u64>>,
    kind: SectionKind,
) -> Result<(Range<u64>, &SectionMeta)> {
    range.zip(meta.section(kind)).ok_or_else(|| {
        let got = format!("{segment_idx}, without");
        let allowed = format!("a segment with tied {}", kind.name());
        Error::InvalidArgument { name: "segment_idx", got, allowed }
    })
}

pub(super) fn segment_meta(footer: &FileFooter, segment_idx: usize) -> Result<&SegmentMeta> {
    footer.segments.get(segment_idx).ok_or(Error::OutOfRange {
        what: "segment",
        got: segment_idx as u64,
        len: footer.segments.len() as u64,
    })
}

/// Refuses `bytes` whose length differs from that of `range`.
pub(super) fn check_range(range: Range<u64>, bytes: &[u8]) -> Result<()> {
    if range.end.saturating_sub(range.start) == bytes.len() as u64 {
        return Ok(());
    }
    Err(Error::InvalidArgument {
        name: "bytes",
        got: format!("{} bytes", bytes.len()),
        allowed: format!("bytes {} to {} of the file", range.start, range.end),
    })
}

/// Checks and returns the columns of `file`, a Parquet file of one row for each document. `bytes`
/// are the `len` bytes at the `offset` of `section`. `file` is a name for error messages.
///
/// # Errors
/// [`Error::Checksum`], [`Error::Version`] for an unknown codec, [`Error::InvalidArgument`] for
/// bytes of another length.
pub fn read_columns(file: &str, section: &SectionMeta, bytes: &[u8]) -> Result<Bytes> {
    if bytes.len() as u64 != section.len {
        return Err(Error::InvalidArgument {
            name: "bytes",
            got: format!("{} bytes", bytes.len()),
            allowed: format!("{} bytes", section.len),
        });
    }
    check_codec(file, section, codec_numbers::COLUMNS)?;
    section.origin(file).verify(bytes, section.crc32c)?;
    Ok(Bytes::copy_from_slice(bytes))
}

impl Corpus {
    /// Opens `bytes`, a whole file that errors call `file`, and checks every byte of it.
    ///
    /// # Errors
    /// Same as [`read_segment`] and [`FileFooter::parse`].
    pub fn from_bytes(file: &str, bytes: &[u8], limits: &OpenLimits) -> Result<(FileFooter, Self)> {
        let footer = match FileFooter::parse(file, bytes, bytes.len() as u64, limits)? {
            FooterOutcome::Footer(footer) => footer,
            FooterOutcome::NeedsTail(len) => return Err(lacks_tail(file, len)),
        };
        check_header(file, bytes)?;
        for section in footer.file_sections() {
            section_bytes(file, section, bytes, 0)?;
        }
        if let Some(section) = &footer.columns {
            check_codec(file, section, codec_numbers::COLUMNS)?;
        }
        limits.check_memory(footer.memory_bytes())?;
        let segments = (0..footer.segments.len()).into_par_iter().map(|i| {
            let range = footer.segments[i].whole_range();
            let bytes = &bytes[range.start as usize..range.end as usize];
            verify_segment(file, &footer, i, bytes, limits).map(Arc::new)
        });
        let corpus = Self::new(footer.profile, segments.collect::<Result<_>>()?);
        Ok((footer, corpus))
    }

    /// Opens the file at `path` and checks every byte of its header, segments and footer. It does
    /// not check the columns, see [`read_columns`]. It reads the tail, then each segment.
    ///
    /// # Errors
    /// Same as [`Corpus::from_bytes`], and [`Error::Io`].
    pub fn open(path: &Path, limits: &OpenLimits) -> Result<(FileFooter, Self)> {
        let source = FileSource { path, name: path.display().to_string() };
        let file_len = source.len()?;
        let mut tail_len = FileFooter::TAIL_BYTES.min(file_len);
        let footer = loop {
            let tail = source.read(file_len - tail_len, tail_len)?;
            match FileFooter::parse(&source.name, &tail, file_len, limits)? {
                FooterOutcome::Footer(footer) => break footer,
                FooterOutcome::NeedsTail(len) if len > tail_len => tail_len = len.min(file_len),
                FooterOutcome::NeedsTail(len) => return Err(lacks_tail(&source.name, len)),
            }
        };
        // Read both ends, because the postscript repeats the version of the header.
        let mut ends = source.read(0, HEADER_BYTES as u64)?;
        let version_len = VERSION_FROM_END as u64;
        ends.extend(source.read(file_len.saturating_sub(version_len), version_len)?);
        check_header(&source.name, &ends)?;
        limits.check_memory(footer.memory_bytes())?;
        let segments = (0..footer.segments.len()).into_par_iter().map(|i| {
            let range = footer.segments[i].whole_range();
            let bytes = source.read(range.start, range.end - range.start)?;
            verify_segment(&source.name, &footer, i, &bytes, limits).map(Arc::new)
        });
        let corpus = Self::new(footer.profile, segments.collect::<Result<_>>()?);
        Ok((footer, corpus))
    }
}

/// A file on the local disk.
struct FileSource<'a> {
    path: &'a Path,
    name: String,
}

impl FileSource<'_> {
    fn len(&self) -> Result<u64> {
        let meta = std::fs::metadata(self.path);
        Ok(meta.map_err(|e| Error::io(format!("opening {}", self.name), e))?.len())
    }

    fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let read = || {
            let mut file = File::open(self.path)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::new();
            file.take(len).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|e| Error::io(format!("reading {}", self.name), e))?;
        if bytes.len() as u64 == len {
            return Ok(bytes);
        }
        let place = Origin { file: &self.name, section: "file", offset };
        let got = bytes.len();
        Err(place.fault(got, format!("expected {len} bytes, got {got}; was the file cut just now?")))
    }
}

fn lacks_tail(file: &str, len: u64) -> Error {
    let place = Origin { file, section: "footer", offset: 0 };
    place.fault(0, format!("expected a footer inside the file, {len} bytes declared"))
}

/// Checks that this build can read the codec of `section`.
pub(super) fn check_codec(file: &str, section: &SectionMeta, codec: u16) -> Result<()> {
    if section.codec == codec {
        return Ok(());
    }
    let name = section.kind.name();
    let expected = format!("{name} codec {codec}");
    let got = format!("{name} codec {}", section.codec);
    Err(Error::Version { file: file.into(), expected, got })
}

/// Returns the checked bytes of `section`. The section and the zeros behind it lie in `bytes`, the
/// part of the file from `start` on.
pub(super) fn section_bytes<'a>(file: &str, section: &SectionMeta, bytes: &'a [u8], start: u64) -> Result<&'a [u8]> {
    let place = section.origin(file);
    let from = section.offset.checked_sub(start).and_then(|from| usize::try_from(from).ok());
    let rest = from.and_then(|from| bytes.get(from..));
    let Some((section_bytes, rest)) = rest.and_then(|r| r.split_at_checked(section.len as usize)) else {
        return Err(place.fault(0, "expected the section inside the bytes read"));
    };
    place.verify(section_bytes, section.crc32c)?;
    let padding_len = section.offset.wrapping_add(section.len).wrapping_neg() % ALIGNMENT;
    match rest.iter().take(padding_len as usize).position(|&byte| byte != 0) {
        Some(at) => Err(place.fault(section_bytes.len() + at, "expected zeros up to the next section")),
        None => Ok(section_bytes),
    }
}

/// Refuses words of the profiles `auto` and `word` that contain a blank or a smaller byte. Correct words
/// contain none, and therefore texts of sequences are ordered as their words are. It needs O(bytes)
/// time, 4 KiB at a time.
pub(super) fn check_words(place: Origin<'_>, profile: TokenizerProfile, dictionary: &Dictionary) -> Result<()> {
    let end = dictionary.offsets()[dictionary.num_words() as usize] as usize;
    let mut chunks = dictionary.bytes()[..end].chunks(4096);
    let is_low = |chunk: &[u8]| chunk.iter().fold(u8::MAX, |least, &byte| least.min(byte)) <= b' ';
    let has_no_blanks = matches!(profile, TokenizerProfile::Auto | TokenizerProfile::Word);
    if has_no_blanks && chunks.any(is_low) {
        return Err(place.fault(0, "expected words without blanks and control characters"));
    }
    Ok(())
}

/// Compares the totals in the footer with those of the decoded segment.
fn check_totals(place: Origin<'_>, meta: &SegmentMeta, dag: &Dag) -> Result<()> {
    check_total(place, "words", meta.num_word_tokens, dag.len_words(dag.num_terminals()))?;
    check_total(place, "bytes", meta.len_bytes, root_len_bytes(dag))
}

fn check_total(place: Origin<'_>, what: &str, expected: u64, got: u64) -> Result<()> {
    if expected == got { Ok(()) } else { Err(place.fault(0, format!("expected {expected} {what} of text, got {got}"))) }
}

/// Refuses rules that take many steps and yield almost no text: chains of rules of one element,
/// runs of the empty separator. With 20,000 of either, a file of 500 bytes made a passage of 20 KB
/// take 3 seconds.
pub(super) fn refuse_steep_rule(place: Origin<'_>, steep_rule: Option<(u64, u64)>) -> Result<()> {
    match steep_rule {
        None => Ok(()),
        Some((num_steps, len_bytes)) => {
            let reason = format!("expected rules of a builder, got {num_steps} elements in {len_bytes} bytes");
            Err(place.fault(0, reason))
        }
    }
}

/// Returns the number of bytes of all documents: those of the root, without the blanks that would
/// cross a document splitter.
fn root_len_bytes(dag: &Dag) -> u64 {
    let grammar = dag.grammar();
    let root = grammar.root();
    let crosses = |&&start: &&u32| {
        let start = start as usize;
        start > 0 && start < root.len() && dag.ends_with_word(root[start - 1]) && dag.begins_with_word(root[start])
    };
    let mut starts: Vec<u32> = grammar.doc_offsets.clone();
    starts.dedup();
    let num_crossing = starts.iter().filter(crosses).count() as u64;
    dag.len_bytes(grammar.num_terminals) - num_crossing
}
